/* Fused launches: a kernel whose blocks are divided among small loops.
 *
 *     blocks   0 1 2 | 3 4 5 | 6 | 7 | 8 ...        which of them, and which block of it
 *     loops    text A  text A   B   B   B
 *
 * Loops with one text follow each other, so a division gives the number of the loop, and the
 * parameters of all are in a table, which is the one parameter of the kernel. */
#include <inttypes.h>
#include <string.h>

#include "run/text/kernel_text.h"

enum {
    MOST_POINTERS = 480, /* in a table: every GPU takes 4 KB of parameters */
    MOST_TEXTS = 16,
    AT_WORK =
        768, /* threads that a multiprocessor has at once, at least, whatever the registers of some text */
};

typedef struct picking {
    sf_code *const *codes;
    uint32_t count;
    bool *is_taken;
    uint32_t *members;
    uint32_t nmembers, npointers, ntexts;
    bool has_shared; /* a text that works in shared memory: those of several need not fit */
} picking;

/* One launch of a kernel of pointers into memory that no other works in. */
static bool can_be_dealt(const sf_code *code)
{
    if (code->nlaunches != 1 || code->scratch > 0)
        return false;
    const sf_kernel *kernel = code->launches[0].kernel;
    for (uint32_t i = 0; i < kernel->nparams; i++)
        if (kernel->is_number[i])
            return false;
    return kernel->shared == 0 && kernel->ntable == 0;
}

static const sf_launch *launch_of(const picking *p, uint32_t index)
{
    return &p->codes[index]->launches[0];
}

static bool is_same(const sf_launch *a, const sf_launch *b)
{
    return a->kernel == b->kernel && a->blocks == b->blocks && a->threads == b->threads;
}

/* The instruction, and those after it with the same text, as many as the table has room for. */
static void pick_same(picking *p, uint32_t index)
{
    const sf_launch *launch = launch_of(p, index);
    uint32_t npicked = p->nmembers;
    bool is_shared = strstr(launch->kernel->body, "SHARED") != NULL;
    if (is_shared && p->has_shared)
        return;
    for (uint32_t i = index; i < p->count; i++)
        if (!p->is_taken[i] && is_same(launch, launch_of(p, i)) &&
            p->npointers + launch->kernel->nparams <= MOST_POINTERS) {
            p->is_taken[i] = true;
            p->members[p->nmembers++] = i;
            p->npointers += launch->kernel->nparams;
        }
    p->ntexts += p->nmembers > npicked;
    p->has_shared = p->has_shared || (is_shared && p->nmembers > npicked);
}

static void pick(picking *p, uint32_t index)
{
    p->nmembers = p->npointers = p->ntexts = 0;
    p->has_shared = false;
    for (uint32_t i = index; i < p->count && p->ntexts < MOST_TEXTS; i++)
        if (!p->is_taken[i] && launch_of(p, i)->threads == launch_of(p, index)->threads)
            pick_same(p, i);
}

/* Those of one text: their pointers are in the table from `at` on. */
static void put_text(sf_buf *out, const sf_launch *launch, uint32_t count, uint32_t at)
{
    uint32_t nparams = launch->kernel->nparams;
    sf_buf_printf(
        out, "if (block < %" PRId64 ") {\nconst int own = %u + (int)(block / %" PRId64 ") * %u;\n",
        launch->blocks * count, at, launch->blocks, nparams);
    for (uint32_t i = 0; i < nparams; i++)
        sf_buf_printf(out, "char *p%u = all.at[own + %u];\n", i, i);
    sf_buf_printf(out,
                  "blocks = %" PRId64 ";\nblock %%= blocks;\n%sreturn;\n}\nblock -= %" PRId64 ";\n",
                  launch->blocks, launch->kernel->body, launch->blocks * count);
}

static sf_fused_launch write_picked(const picking *p, sf_kernels *module, sf_arena *arena)
{
    sf_launch *launches = SF_ARRAY(arena, p->nmembers, sf_launch);
    sf_code code = {0};
    sf_writer w = {.module = module, .code = &code, .arena = arena, .ntable = p->npointers};
    int64_t blocks = 0;
    int threads = launch_of(p, p->members[0])->threads;
    w.together = threads < AT_WORK ? AT_WORK / threads : 1;
    sf_buf_puts(&w.body, "{\ns64 block = GRID_BLOCK, blocks = 0; (void)blocks;\n");
    for (uint32_t i = 0, at = 0, same; i < p->nmembers; i += same) {
        const sf_launch *launch = launch_of(p, p->members[i]);
        for (same = 0;
             i + same < p->nmembers && is_same(launch, launch_of(p, p->members[i + same])); same++)
            launches[i + same] = *launch_of(p, p->members[i + same]);
        put_text(&w.body, launch, same, at);
        at += same * launch->kernel->nparams;
        blocks += same * launch->blocks;
    }
    sf_buf_puts(&w.body, "}\n");
    sf_write_launch(&w, blocks, threads, false);
    sf_buf_free(&w.body);
    return (sf_fused_launch){.launch = code.launches[0],
                             .count = p->nmembers,
                             .members =
                                 sf_arena_copy(arena, p->members, p->nmembers * sizeof *p->members),
                             .launches = launches};
}

size_t sf_write_fused_launches(sf_kernels *module, sf_arena *arena, sf_code *const *codes,
                               uint32_t count, sf_fused_launch **out)
{
    sf_arena scratch = {0};
    size_t nbunches = 0, capacity = 0;
    picking p = {.codes = codes, .count = count};
    p.is_taken = SF_ARRAY(&scratch, count, bool);
    p.members = SF_ARRAY(&scratch, count, uint32_t);
    *out = NULL;
    for (uint32_t i = 0; i < count; i++)
        p.is_taken[i] = !can_be_dealt(codes[i]);
    for (uint32_t i = 0; i < count; i++) {
        if (p.is_taken[i])
            continue;
        pick(&p, i);
        p.is_taken[i] = true; /* even where it is too large for a table */
        if (p.nmembers > 1) {
            sf_fused_launch fused = write_picked(&p, module, arena);
            SF_PUSH(arena, *out, nbunches, capacity, fused);
        }
    }
    sf_arena_free(&scratch);
    return nbunches;
}
