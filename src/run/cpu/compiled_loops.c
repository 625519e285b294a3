#include "run/cpu/compiled_loops.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/native/compile.h"

enum { MOST_PARAMS = 512 };

/* As run/text/kernel_text.c writes it: a pointer to each parameter. */
typedef void entrance(void **params);

struct sf_native {
    const sf_inst *inst;
    const sf_loop *loop;
    const sf_kernel *kernel; /* while it is compiled */
    uint32_t nparams;
    const sf_param *params;
    entrance *run;
};

/* Which loops */

typedef enum choice { AS_SAID, ALL, NONE, UNKNOWN } choice;

static choice choose(void)
{
    const char *word = getenv("SHEAF_COMPILER");
    if (!word || !*word)
        return AS_SAID;
    return strcmp(word, "cc") == 0 ? ALL : strcmp(word, "vm") == 0 ? NONE : UNKNOWN;
}

bool sf_native_wanted(const sf_loop *loop)
{
    choice c = choose();
    return c == ALL || (c != NONE && loop->compiled);
}

int64_t sf_native_rooms(const sf_loop *loop, const sf_tiling *tiling)
{
    return sf_tile_rooms(loop) * tiling->register_bytes[1];
}

/* Objects that were loaded stay; kernels are called by their text, so one that has the name is the one. */
typedef struct object {
    void *handle;
    struct object *next;
} object;

static object *objects;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static entrance *find_entrance(const sf_kernel *kernel)
{
    char name[64];
    entrance *found = NULL;
    snprintf(name, sizeof name, "%s_run", kernel->name);
    pthread_mutex_lock(&lock);
    for (const object *o = objects; o && !found; o = o->next)
        *(void **)&found = dlsym(o->handle, name);
    pthread_mutex_unlock(&lock);
    return found;
}

enum { MOST_FLAGS = 24 };

/* The flags with which the set of vector kernels in use was compiled (cmake/vectors.cmake): a
 * virtual machine may hide features that a compiler believes the processor to have. */
static const char *const *flags_of_set(const char *set)
{
    static const struct {
        const char *set, *flags[10];
    } known[] = {
        {"avx512",
         {"-mavx2", "-mfma", "-mf16c", "-mavx512f", "-mavx512bw", "-mavx512dq", "-mavx512vl",
          "-mprefer-vector-width=512", NULL}},
        {"avx2", {"-mavx2", "-mfma", "-mf16c", NULL}},
        {"sve256", {"-march=armv8.2-a+sve", "-msve-vector-bits=256", NULL}},
        {"sve512", {"-march=armv8.2-a+sve", "-msve-vector-bits=512", NULL}},
        {"", {NULL}},
    };
    size_t at = 0;
    while (*known[at].set && strcmp(known[at].set, set) != 0)
        at++;
    return known[at].flags;
}

/* Nothing that changes results. */
static void list_flags(const char **out)
{
    static const char *const always[] = {"-std=gnu11",
                                         "-w",
                                         "-O3",
                                         "-ffp-contract=off",
                                         "-fno-math-errno",
                                         "-fno-trapping-math",
                                         "-fno-strict-aliasing",
                                         "-fPIC",
                                         "-shared",
                                         NULL};
    const char *const *lists[] = {always, flags_of_set(sf_vec_get()->name)};
    int count = 0;
    for (int l = 0; l < 2; l++)
        for (const char *const *flag = lists[l]; *flag && count < MOST_FLAGS - 1; flag++)
            out[count++] = *flag;
    out[count] = NULL;
}

/* One at a time, so that ranks of a process that want the same find it in the cache. Nothing jumps (base/mem.h) that holds the lock. */
static sf_status compile_text(const sf_buf *text, sf_diag *diag)
{
    static pthread_mutex_t compiling = PTHREAD_MUTEX_INITIALIZER;
    const char *flags[MOST_FLAGS];
    list_flags(flags);
    sf_compiling what = {.text = {text->text, text->length}, .flags = flags, .kept = true};
    object *made = sf_alloc_kept(sizeof *made);
    if (!made)
        return sf_fail(diag, SF_ENOMEM, SF_NOWHERE, "no memory for kernels");
    pthread_mutex_lock(&compiling);
    sf_status status = sf_compile(&what, diag, &made->handle);
    pthread_mutex_unlock(&compiling);
    if (status != SF_OK) {
        sf_free(made);
        return status;
    }
    pthread_mutex_lock(&lock);
    made->next = objects;
    objects = made;
    pthread_mutex_unlock(&lock);
    return SF_OK;
}

sf_status sf_natives_load(const sf_kernels *module, sf_diag *diag)
{
    sf_kernels missing = {.needs = {.vector = true}};
    sf_buf text = {0};
    sf_status status = SF_OK;
    for (size_t i = 0; i < module->nkernels; i++)
        if (!find_entrance(module->kernels[i]))
            SF_PUSH(&missing.arena, missing.kernels, missing.nkernels, missing.capacity,
                    module->kernels[i]);
    if (missing.nkernels > 0) {
        sf_kernels_text(&missing, 0, missing.nkernels, true, &text);
        status = compile_text(&text, diag);
    }
    sf_buf_free(&text);
    sf_kernels_free(&missing);
    return status;
}

/* Opening */

void sf_natives_write(sf_natives *n, sf_kernels *module, const sf_program *p)
{
    for (size_t i = 0; i < p->ninsts; i++) {
        const sf_inst *inst = &p->insts[i];
        for (uint32_t b = 0; b < sf_body_count(inst); b++)
            sf_natives_write(n, module, inst->nest->bodies[b]);
        if (!inst->loop || !sf_native_wanted(inst->loop))
            continue;
        sf_code code = {0};
        sf_writer w = {.module = module, .code = &code, .arena = &n->arena};
        sf_write_tile(&w, inst);
        sf_buf_free(&w.body);
        sf_native native = {.inst = inst,
                            .loop = inst->loop,
                            .kernel = code.launches[0].kernel,
                            .nparams = code.launches[0].kernel->nparams,
                            .params = code.launches[0].params};
        if (native.nparams <= MOST_PARAMS)
            SF_PUSH(&n->arena, n->loops, n->count, n->capacity, native);
    }
}

/* Said once: it is the same for all ranks and programs. */
static void warn_uncompiled(const sf_diag *failed, sf_diag *diag)
{
    static atomic_bool said;
    const char *why = failed->messages[0].text;
    if (!atomic_exchange(&said, true))
        sf_warn(diag, SF_NOWHERE, "loops run by the built-in compiler, with the same results: %s",
                why ? why : "nothing can be compiled");
}

sf_status sf_natives_open(sf_natives *natives, const sf_program *program, sf_diag *diag)
{
    sf_kernels module = {0};
    sf_diag failed = {0};
    if (choose() == UNKNOWN)
        return sf_fail(diag, SF_EUSAGE, SF_NOWHERE,
                       "SHEAF_COMPILER is \"cc\" or \"vm\", not \"%s\"", getenv("SHEAF_COMPILER"));
    sf_natives_write(natives, &module, program);
    if (natives->count > 0 && sf_natives_load(&module, &failed) != SF_OK)
        warn_uncompiled(&failed, diag);
    size_t kept = 0;
    for (size_t i = 0; i < natives->count; i++) {
        sf_native native = natives->loops[i];
        native.run = find_entrance(native.kernel);
        native.kernel = NULL;
        if (native.run)
            natives->loops[kept++] = native;
    }
    natives->count = kept;
    sf_diag_clear(&failed);
    sf_kernels_free(&module);
    return SF_OK;
}

void sf_natives_free(sf_natives *natives)
{
    sf_arena_free(&natives->arena);
    *natives = (sf_natives){0};
}

const sf_native *sf_natives_find(const sf_natives *natives, const sf_inst *inst)
{
    for (size_t i = 0; i < natives->count; i++)
        if (natives->loops[i].inst == inst)
            return &natives->loops[i];
    return NULL;
}

bool sf_native_is_same(const sf_native *a, const sf_native *b)
{
    return a->run == b->run;
}

/* Running */

typedef union value {
    char *pointer;
    sf_vreduce *fold;
    int64_t number;
} value;

static char *sum_of(const sf_native_tile *t, uint32_t step)
{
    const sf_loop *loop = t->native->loop;
    char *at = t->sums;
    for (uint32_t i = 0; i < step; i++)
        if (loop->steps[i].kind == SF_STEP_GATHER)
            at += sf_gathered_bytes(loop, &loop->steps[i]);
    return at;
}

static value value_of(const sf_native_tile *t, const sf_param *param)
{
    const sf_loop_step *steps = t->native->loop->steps;
    const int64_t places[] = {t->row, t->rows, t->column, t->columns};
    switch (param->kind) {
    case SF_PARAM_IN:
        return (value){.pointer = t->pointers.in[param->index]};
    case SF_PARAM_OUT:
        return (value){.pointer = t->pointers.out[param->index]};
    case SF_PARAM_SUM:
        return (value){.pointer = sum_of(t, param->index)};
    case SF_PARAM_ROOM:
        return (value){.pointer = t->rooms + param->value * t->room_bytes};
    case SF_PARAM_FOLD:
        return (value){
            .fold = sf_vec_get()->folds[steps[param->index].fold][steps[param->index].class]};
    case SF_PARAM_PLACE:
        return (value){.number = places[param->index]};
    case SF_PARAM_SCRATCH:
    case SF_PARAM_NUMBER:
    case SF_PARAM_FAULTS:
        break;
    }
    return (value){.number = param->value};
}

void sf_native_run(const sf_native_tile *tile)
{
    value values[MOST_PARAMS];
    void *params[MOST_PARAMS];
    for (uint32_t i = 0; i < tile->native->nparams; i++) {
        values[i] = value_of(tile, &tile->native->params[i]);
        params[i] = &values[i];
    }
    tile->native->run(params);
}
