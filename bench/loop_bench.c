/* Loops of a step, as the built-in compiler runs them and as that of the system has compiled them.
 *
 *     loop_bench [--rounds N] [--least PERCENT] STEP...
 *
 * Each loop of the step alone, on one thread, on memory of its own; both ways in turns, so many times: the least processor time. Prints a
 * row for each loop that takes at least so much of the time of all loops (1 % unless said), the slowest first, those that do the same at one size
 * together, and the sums over all of them. Loops that run behind products are among them.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/mem.h"
#include "run/cpu/compiled_loops.h"
#include "run/cpu/cpu_target.h"
#include "sheaf/graph.h"

typedef struct timed {
    const sf_inst *inst;
    const sf_native *native;
    int count;          /* loops with the same code and size */
    double seconds[2];  /* step by step, and compiled */
} timed;

static double thread_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Each buffer once, so that what is read and written in place is. */
typedef struct memory {
    char **buffers;
    size_t count;
} memory;

static char *buffer_at(memory *m, const sf_program *p, const sf_view *view)
{
    const sf_buffer *buffer = &p->buffers[view->buffer];
    char **at = &m->buffers[view->buffer];
    if (!*at) {
        *at = sf_alloc((size_t)buffer->bytes + 64);
        for (int64_t i = 0; view->dtype == SF_F32 && i < buffer->bytes / 4; i++)
            ((float *)(void *)*at)[i] = 0.25f + (float)(i % 13) * 0.05f;
    }
    return *at + view->offset * sf_dtype_get(view->dtype)->bytes;
}

static void measure(timed *t, const sf_program *p, int rounds, sf_threads *threads)
{
    const sf_inst *inst = t->inst;
    memory m = {.buffers = calloc(p->nbuffers, sizeof *m.buffers), .count = p->nbuffers};
    char **in = calloc(inst->nin + 1, sizeof *in), **out = calloc(inst->nout + 1, sizeof *out);
    for (uint32_t i = 0; i < inst->nin; i++)
        in[i] = buffer_at(&m, p, &inst->in[i]);
    for (uint32_t i = 0; i < inst->nout; i++)
        out[i] = buffer_at(&m, p, &inst->out[i]);
    char *scratch = sf_alloc((size_t)sf_loop_scratch(inst->loop, 1));
    for (int round = 0; round <= rounds; round++)
        for (int side = 0; side < 2; side++) {
            double start = thread_seconds();
            sf_loop_run(inst->loop, side ? t->native : NULL, (sf_pointers){in, out}, scratch,
                        threads);
            double took = thread_seconds() - start;
            if (round == 1 || (round > 1 && took < t->seconds[side]))
                t->seconds[side] = took;
        }
    for (size_t i = 0; i < m.count; i++)
        sf_free(m.buffers[i]);
    sf_free(scratch);
    free(m.buffers);
    free(in);
    free(out);
}

static int slowest_first(const void *a, const void *b)
{
    const timed *x = a, *y = b;
    double left = x->count * x->seconds[0], right = y->count * y->seconds[0];
    return (left < right) - (left > right);
}

/* Loops of the program, those with the same code once. */
static size_t list_loops(const sf_program *p, const sf_natives *natives, timed *list)
{
    size_t count = 0;
    for (size_t i = 0; i < p->ninsts; i++) {
        const sf_native *native = p->insts[i].loop ? sf_natives_find(natives, &p->insts[i]) : NULL;
        size_t at = 0;
        if (!native)
            continue;
        while (at < count && !(sf_native_is_same(list[at].native, native) &&
                               list[at].inst->loop->rows == p->insts[i].loop->rows &&
                               list[at].inst->loop->columns == p->insts[i].loop->columns))
            at++;
        if (at == count)
            list[count++] = (timed){.inst = &p->insts[i], .native = native};
        list[at].count++;
    }
    return count;
}

static int count_kind(const sf_loop *loop, bool folds)
{
    int count = 0;
    for (uint32_t i = 0; i < loop->nsteps; i++) {
        sf_step_kind kind = loop->steps[i].kind;
        count += folds ? kind == SF_STEP_FOLD || kind == SF_STEP_GATHER : kind == SF_STEP_OP;
    }
    return count;
}

static void print_row(const timed *t)
{
    const sf_loop *loop = t->inst->loop;
    const sf_origin *from = &t->inst->origin;
    char where[256];
    snprintf(where, sizeof where, "%s, %s", from->scope, sf_phase_name(from->phase));
    printf("%-44.44s %6d x %-7d %4d %5d %5d %9.1f %9.1f %6.2f\n", where, (int)loop->rows,
           (int)loop->columns, count_kind(loop, false), count_kind(loop, true), t->count,
           t->seconds[0] * 1e6, t->seconds[1] * 1e6, t->seconds[0] / t->seconds[1]);
}

static sf_status run(const char *path, int rounds, double least, sf_diag *diag)
{
    sf_graph *graph;
    sf_natives natives = {0};
    sf_threads *threads = sf_threads_new(1);
    SF_TRY(sf_load(path, NULL, diag, &graph));
    sf_program *program = sf_lower(graph, &(sf_lower_options){.target = &sf_target_cpu}, NULL);
    SF_TRY(sf_natives_open(&natives, program, diag));
    timed *list = calloc(program->ninsts, sizeof *list);
    size_t count = list_loops(program, &natives, list);
    double all[2] = {0, 0};
    int loops = 0;
    for (size_t i = 0; i < count; i++) {
        measure(&list[i], program, rounds, threads);
        loops += list[i].count;
        for (int side = 0; side < 2; side++)
            all[side] += list[i].count * list[i].seconds[side];
    }
    qsort(list, count, sizeof *list, slowest_first);
    const char *name = strrchr(path, '/');
    printf("\n%-44.44s %16s %4s %5s %5s %9s %9s %6s\n", name ? name + 1 : path, "rows x columns",
           "ops", "folds", "times", "vm, us", "cc, us", "ratio");
    for (size_t i = 0; i < count; i++)
        if (list[i].count * list[i].seconds[0] >= least / 100 * all[0])
            print_row(&list[i]);
    printf("%-44s %16s %4s %5s %5d %9.1f %9.1f %6.2f\n", "all", "", "", "", loops, all[0] * 1e6,
           all[1] * 1e6, all[0] / all[1]);
    free(list);
    sf_natives_free(&natives);
    sf_program_free(program);
    sf_graph_free(graph);
    sf_threads_free(threads);
    return SF_OK;
}

int main(int argc, char **argv)
{
    int at = 1, rounds = 5;
    double least = 1;
    for (; at + 1 < argc && argv[at][0] == '-'; at += 2) {
        if (strcmp(argv[at], "--rounds") == 0)
            rounds = atoi(argv[at + 1]);
        else if (strcmp(argv[at], "--least") == 0)
            least = strtod(argv[at + 1], NULL);
        else
            break;
    }
    if (at >= argc || argv[at][0] == '-' || rounds < 1) {
        fprintf(stderr, "usage: loop_bench [--rounds N] [--least PERCENT] STEP...\n");
        return 2;
    }
    setenv("SHEAF_COMPILER", "cc", 1);
    sf_diag *diag = sf_diag_new();
    for (; at < argc; at++)
        if (run(argv[at], rounds, least, diag) != SF_OK) {
            fprintf(stderr, "%s\n", sf_diag_text(diag, 0));
            return 1;
        }
    sf_diag_free(diag);
    return 0;
}
