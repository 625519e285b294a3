/* One kernel being written. */
#include "run/text/kernel_text.h"

#include <inttypes.h>
#include <string.h>

#include "base/hash.h"
#include "run/text/kernel_check.h"

enum { MOST_BLOCKS = 1 << 20, SCRATCH_ALIGN = 256 };

int sf_write_param(sf_writer *w, sf_param param)
{
    SF_PUSH(w->arena, w->params, w->nparams, w->param_capacity, param);
    return (int)w->nparams - 1;
}

void sf_write_views(sf_writer *w, const sf_inst *inst)
{
    for (uint32_t i = 0; i < inst->nin; i++)
        sf_write_param(w, (sf_param){.kind = SF_PARAM_IN, .index = i});
    for (uint32_t i = 0; i < inst->nout; i++)
        sf_write_param(w, (sf_param){.kind = SF_PARAM_OUT, .index = i});
}

int64_t sf_write_scratch(sf_writer *w, int64_t bytes)
{
    int64_t at = w->code->scratch;
    sf_scratch_room room = {at, bytes};
    SF_PUSH(w->arena, w->code->rooms, w->code->nrooms, w->code->room_capacity, room);
    w->code->scratch += (bytes + SCRATCH_ALIGN - 1) / SCRATCH_ALIGN * SCRATCH_ALIGN;
    return at;
}

typedef struct sought {
    const char *body;
    uint32_t ntable;
    int bound;
    size_t nparams;
    const sf_param *params;
} sought;

/* A compiler that is not told of more threads than these may give each more registers than a multiprocessor has for all. */
enum { SURELY_RUN = 256 };

static int bound_of(int threads)
{
    return threads > SURELY_RUN ? threads : 0;
}

static bool is_number(const sf_param *param)
{
    return param->kind == SF_PARAM_NUMBER || param->kind == SF_PARAM_PLACE;
}

static bool is_sought_kernel(const void *item, const void *key)
{
    const sf_kernel *kernel = item;
    const sought *s = key;
    if (kernel->nparams != s->nparams || kernel->ntable != s->ntable || kernel->bound != s->bound ||
        strcmp(kernel->body, s->body) != 0)
        return false;
    for (size_t i = 0; i < s->nparams; i++)
        if (kernel->is_number[i] != is_number(&s->params[i]))
            return false;
    return true;
}

static void put_name(sf_buf *text, const sf_writer *w, int threads, const char *name)
{
    sf_buf_puts(text, "KERNEL ");
    if (w->together > 0 || bound_of(threads) > 0)
        sf_buf_printf(text, "BOUNDS(%d, %d) ", threads, w->together > 0 ? w->together : 1);
    sf_buf_printf(text, "%s(", name);
}

static void put_function(sf_buf *text, const sf_writer *w, int threads, const char *name)
{
    put_name(text, w, threads, name);
    for (size_t i = 0; i < w->nparams; i++)
        sf_buf_printf(text, "%s%s p%zu", i ? ", " : "", is_number(&w->params[i]) ? "s64" : "char *",
                      i);
    sf_buf_printf(text, w->module->needs.checks ? ")\n{\nenum { own = 0 };\n%s}\n" : ")\n%s",
                  w->body.text);
}

/* In a fused launch, the caller passes the block's number among its own, and how many there are. */
static void put_dealing(sf_buf *text, const sf_writer *w, int threads, const char *name)
{
    sf_buf_printf(text, "struct %s_all {\nchar *at[%u];\n};\n", name, w->ntable);
    sf_buf_puts(text, "#undef BLOCK\n#undef BLOCKS\n#define BLOCK block\n#define BLOCKS blocks\n");
    put_name(text, w, threads, name);
    sf_buf_printf(text, "FIXED struct %s_all all)\n%s", name, w->body.text);
    sf_buf_puts(text, "#undef BLOCK\n#undef BLOCKS\n#define BLOCK GRID_BLOCK\n"
                      "#define BLOCKS GRID_BLOCKS\n");
}

static sf_kernel *new_kernel(sf_kernels *m, const sf_writer *w, int threads, uint64_t hash)
{
    sf_kernel *kernel = SF_NEW(&m->arena, sf_kernel);
    sf_buf text = {0};
    char name[32];
    int length = snprintf(name, sizeof name, "k%016" PRIx64, hash);
    bool *numbers = SF_ARRAY(&m->arena, w->nparams, bool);
    for (size_t i = 0; i < w->nparams; i++)
        numbers[i] = is_number(&w->params[i]);
    if (w->ntable > 0)
        put_dealing(&text, w, threads, name);
    else
        put_function(&text, w, threads, name);
    *kernel = (sf_kernel){.name = sf_arena_string(&m->arena, name, (size_t)length),
                          .text = sf_arena_string(&m->arena, text.text, text.length),
                          .body = sf_arena_string(&m->arena, w->body.text, w->body.length),
                          .ntable = w->ntable,
                          .bound = bound_of(threads),
                          .nparams = (uint32_t)w->nparams,
                          .is_number = numbers,
                          .shared = w->shared};
    sf_buf_free(&text);
    SF_PUSH(&m->arena, m->kernels, m->nkernels, m->capacity, kernel);
    return kernel;
}

static const sf_kernel *find_kernel(sf_writer *w, int threads)
{
    sf_kernels *m = w->module;
    uint64_t hash = sf_hash_bytes(w->nparams + w->ntable, w->body.text, w->body.length);
    for (size_t i = 0; i < w->nparams; i++)
        hash = sf_hash_mix(hash, is_number(&w->params[i]));
    hash = sf_hash_mix(hash, (uint64_t)bound_of(threads));
    sought key = {w->body.text, w->ntable, bound_of(threads), w->nparams, w->params};
    sf_intern_slot *slot = sf_intern_find(&m->names, &m->arena, hash, is_sought_kernel, &key);
    if (!slot->item)
        slot->item = new_kernel(m, w, threads, hash);
    return slot->item;
}

void sf_write_launch(sf_writer *w, int64_t blocks, int threads, bool words)
{
    w->module->needs.words = w->module->needs.words || words;
    if (w->module->needs.checks && w->ntable == 0)
        sf_write_checks(w);
    sf_launch launch = {.kernel = find_kernel(w, threads),
                        .blocks = blocks,
                        .threads = threads,
                        .params =
                            sf_arena_copy(w->arena, w->params, w->nparams * sizeof *w->params)};
    SF_PUSH(w->arena, w->code->launches, w->code->nlaunches, w->code->capacity, launch);
    sf_buf_free(&w->body);
    w->body = (sf_buf){0};
    w->nparams = 0;
    w->shared = w->together = 0;
}

void sf_write_again(sf_writer *w, int64_t blocks, int threads, const sf_param *params)
{
    const sf_launch *last = &w->code->launches[w->code->nlaunches - 1];
    uint32_t nparams = last->kernel->nparams, given = nparams - w->module->needs.checks;
    sf_param *copy = SF_ARRAY(w->arena, nparams, sf_param);
    memcpy(copy, params, given * sizeof *params);
    if (given < nparams)
        copy[given] = last->params[given];
    sf_launch launch = {
        .kernel = last->kernel, .blocks = blocks, .threads = threads, .params = copy};
    SF_PUSH(w->arena, w->code->launches, w->code->nlaunches, w->code->capacity, launch);
}

static void add_file(sf_buf *out, const sf_text_file *file)
{
    sf_buf_add(out, (const char *)file->bytes, file->size);
}

/* The parameters of a kernel are in an array of pointers to them, as for the driver of a GPU. */
static void add_entrance(const sf_kernel *kernel, sf_buf *out)
{
    sf_buf_printf(out, "void %s_run(void **p)\n{\n    %s(", kernel->name, kernel->name);
    if (kernel->ntable > 0)
        sf_buf_printf(out, "*(struct %s_all *)p[0]", kernel->name);
    for (uint32_t i = 0; i < kernel->nparams; i++)
        sf_buf_printf(out, "%s*(%s *)p[%u]", i ? ", " : "", kernel->is_number[i] ? "s64" : "char *",
                      i);
    sf_buf_puts(out, ");\n}\n");
}

void sf_kernels_text(const sf_kernels *m, size_t first, size_t count, bool host, sf_buf *out)
{
    if (m->needs.checks)
        sf_buf_puts(out, "#define CHECKS\n");
    add_file(out, &sf_text_base);
    if (m->needs.vector)
        add_file(out, &sf_text_vector);
    if (m->needs.words)
        add_file(out, &sf_text_words);
    if (m->needs.key_sort)
        add_file(out, &sf_text_key_sort);
    if (m->needs.attention)
        add_file(out, &sf_text_attention);
    for (size_t i = first; i < first + count; i++) {
        sf_buf_putc(out, '\n');
        sf_buf_puts(out, m->kernels[i]->text);
        if (host)
            add_entrance(m->kernels[i], out);
    }
}

void sf_kernels_free(sf_kernels *module)
{
    sf_arena_free(&module->arena);
    *module = (sf_kernels){0};
}

int64_t sf_blocks_for(int64_t count, int threads)
{
    int64_t blocks = (count + threads - 1) / threads;
    return blocks < 1 ? 1 : blocks > MOST_BLOCKS ? MOST_BLOCKS : blocks;
}

const char *sf_index_type(int64_t most)
{
    return most < INT32_MAX - (1 << 28) ? "int" : "s64";
}
