/* reduce_window with a monoid.
 *
 * A window is a box, and a monoid that commutes folds a box one dimension after the other: pooling
 * over 3 x 3 is pooling over rows, then over columns. Each such pass folds [outer, from, inner] to
 * [outer, to, inner]; between passes the numbers are in scratch, in the type of registers. Windows
 * that only grow from one result to the next (a cumulative sum, forwards or backwards) are one
 * running fold.
 *
 * Positions of padding hold the initial value. That it is folded in once for each of them changes
 * nothing for most monoids and most initial values; if it does, the results are corrected at the
 * end. */
#include <math.h>
#include <string.h>

#include "op/body.h"
#include "op/slots.h"
#include "op/util.h"
#include "op/window/sliding.h"
#include "run/fast/box.h"
#include "run/fast/fast_fold.h"
#include "run/fast/fast_kernels.h"

typedef struct pass {
    const sf_folding *folding;
    sf_word start;
    int64_t outer, from, to, inner;
    const sf_run *runs; /* [to] */
    const char *source;
    char *target;
    sf_dtype source_type, target_type;
    int64_t source_width, target_width;
} pass;

/* Elements of the largest tensor between two passes; 0 when there is but one pass. */
static int64_t elements_between(const sf_op *op)
{
    int64_t most = 0, count = op->in[0]->count;
    int passes = 0;
    for (int d = 0; d < op->in[0]->rank; d++) {
        sf_sliding window = sf_reduce_window_window(op, d);
        if (sf_sliding_trivial(&window))
            continue;
        passes++;
        count = count / op->in[0]->dims[d] * op->out[0]->dims[d];
        most = count > most ? count : most;
    }
    return passes > 1 ? most : 0;
}

static int64_t runs_bytes(const sf_op *op)
{
    int64_t most = 0;
    for (int d = 0; d < op->out[0]->rank; d++)
        most = op->out[0]->dims[d] > most ? op->out[0]->dims[d] : most;
    return (most * (int64_t)sizeof(sf_run) + 63) & -64;
}

/* The variant is the monoid. */
static int64_t choose_window(const sf_op *op)
{
    sf_monoid monoid = sf_op_monoid(op, SF_REDUCE_WINDOW_BODY);
    if (op->nresults != 1 || monoid == SF_MONOID_NONE || op->in[0]->count == 0 ||
        sf_is_complex(op->in[0]->dtype) || op->out[0]->count == 0)
        return SF_FAST_NONE;
    return monoid;
}

/* Two tensors, to go from one to the other, and the runs. */
static int64_t window_scratch(const sf_op *op, int64_t variant, int threads)
{
    (void)variant, (void)threads;
    int64_t width = sf_dtype_get(op->in[0]->dtype)->bytes > 4 ? 8 : 4;
    return runs_bytes(op) + 2 * ((elements_between(op) * width + 63) & -64);
}

static const char *source_at(const pass *p, int64_t outer, int64_t at, int64_t inner)
{
    return p->source + ((outer * p->from + at) * p->inner + inner) * p->source_width;
}

static char *target_at(const pass *p, int64_t outer, int64_t at, int64_t inner)
{
    return p->target + ((outer * p->to + at) * p->inner + inner) * p->target_width;
}

/* `count` results: side by side along `inner`, or along the dimension itself. `step` is the distance
 * of neighbours in the source, `apart` that in the target. */
static void fold_side(const pass *p, const char *source, int64_t step, sf_run run, char *target,
                      int64_t apart, int64_t count)
{
    const sf_folding *f = p->folding;
    sf_vload *load = f->vec->loads[p->source_type];
    sf_register sum, row;
    sf_register_fill(f->class, p->start, count, &sum);
    for (int64_t k = 0; k < run.count; k++) {
        load(&row, source + k * run.step * p->inner * p->source_width, step, count);
        f->combine(&sum, &sum, &row, NULL, count);
    }
    f->vec->stores[p->target_type](target, apart, &sum, count);
}

/* How many results from i on see equally many elements, each a constant distance after the last. */
static int64_t count_alike(const pass *p, int64_t i, int64_t end, int64_t *distance)
{
    const sf_run *runs = p->runs;
    int64_t count = 1;
    *distance = i + 1 < end ? runs[i + 1].first - runs[i].first : 0;
    while (i + count < end && count < SF_FAST_REGISTER && runs[i + count].count == runs[i].count &&
           runs[i + count].step == runs[i].step &&
           runs[i + count].first - runs[i + count - 1].first == *distance)
        count++;
    return count;
}

static void fold_part(void *context, int part, int64_t first, int64_t end)
{
    (void)part;
    const pass *p = context;
    int64_t outer = first / p->to, i = first % p->to;
    while (first < end) {
        sf_run run = p->runs[i];
        int64_t count = 1, distance;
        if (p->inner >= 8) {
            for (int64_t at = 0; at < p->inner; at += SF_FAST_REGISTER)
                fold_side(p, source_at(p, outer, run.first, at), 1, run, target_at(p, outer, i, at),
                          1, p->inner - at < SF_FAST_REGISTER ? p->inner - at : SF_FAST_REGISTER);
        } else {
            count = count_alike(p, i, i + end - first < p->to ? i + end - first : p->to, &distance);
            for (int64_t at = 0; at < p->inner; at++)
                fold_side(p, source_at(p, outer, run.first, at), distance * p->inner, run,
                          target_at(p, outer, i, at), p->inner, count);
        }
        first += count;
        i += count;
        if (i == p->to) {
            i = 0;
            outer++;
        }
    }
}

/* A running fold. */

typedef enum growth { STEADY, FORWARD, BACKWARD } growth;

static growth growth_of(const pass *p)
{
    bool forward = p->to > 2, backward = p->to > 2;
    for (int64_t i = 0; i < p->to; i++) {
        sf_run run = p->runs[i];
        forward = forward && run.count == i + 1 && run.first == 0 && (run.step == 1 || i == 0);
        backward = backward && run.count == p->from - i && run.first == i &&
                   (run.step == 1 || run.count == 1);
    }
    return p->from != p->to ? STEADY : forward ? FORWARD : backward ? BACKWARD : STEADY;
}

typedef struct scanning {
    const pass *pass;
    bool backward, wide;   /* wide: floats are summed in double */
    int64_t chunk, chunks; /* of inner */
} scanning;

static void scan_side(const scanning *s, int64_t outer, int64_t at, int64_t count)
{
    const pass *p = s->pass;
    const sf_folding *f = p->folding;
    const sf_vec *vec = f->vec;
    sf_vkernel *widen = vec->converts[SF_VF32][SF_VF64], *narrow = vec->converts[SF_VF64][SF_VF32];
    sf_vkernel *combine = s->wide ? vec->ops[SF_VADD][SF_VF64] : f->combine;
    sf_register sum, row, other;
    sf_register_fill(s->wide ? SF_VF64 : f->class, p->start, count, &sum);
    for (int64_t i = 0; i < p->to; i++) {
        int64_t place = s->backward ? p->to - 1 - i : i;
        vec->loads[p->source_type](&row, source_at(p, outer, place, at), 1, count);
        if (s->wide)
            widen(&other, &row, NULL, NULL, count);
        combine(&sum, &sum, s->wide ? &other : &row, NULL, count);
        if (s->wide)
            narrow(&row, &sum, NULL, NULL, count);
        vec->stores[p->target_type](target_at(p, outer, place, at), 1, s->wide ? &row : &sum,
                                    count);
    }
}

/* A line of floats, summed in double. */
static void scan_line(const scanning *s, int64_t outer, int64_t at)
{
    const pass *p = s->pass;
    double sum = p->start.real;
    sf_register row;
    for (int64_t done = 0; done < p->to; done += SF_FAST_REGISTER) {
        int64_t n = p->to - done < SF_FAST_REGISTER ? p->to - done : SF_FAST_REGISTER;
        int64_t first = s->backward ? p->to - done - n : done;
        p->folding->vec->loads[p->source_type](&row, source_at(p, outer, first, at), p->inner, n);
        for (int64_t i = 0; i < n; i++) {
            float *x = &row.f32[s->backward ? n - 1 - i : i];
            sum += (double)*x;
            *x = (float)sum;
        }
        p->folding->vec->stores[p->target_type](target_at(p, outer, first, at), p->inner, &row, n);
    }
}

static void scan_part(void *context, int part, int64_t first, int64_t end)
{
    (void)part;
    const scanning *s = context;
    const pass *p = s->pass;
    for (int64_t unit = first; unit < end; unit++) {
        int64_t outer = unit / s->chunks, at = unit % s->chunks * s->chunk;
        int64_t count = p->inner - at < s->chunk ? p->inner - at : s->chunk;
        if (s->wide && s->chunk == 1)
            scan_line(s, outer, at);
        else
            scan_side(s, outer, at, count);
    }
}

static void run_pass(const pass *p, sf_threads *threads)
{
    growth grows = growth_of(p);
    if (grows == STEADY) {
        sf_threads_run(threads, p->outer * p->to, 1 + sf_threads_grain(threads) / (4 * p->inner),
                       fold_part, (void *)p);
        return;
    }
    const sf_folding *f = p->folding;
    scanning s = {.pass = p,
                  .backward = grows == BACKWARD,
                  .wide = f->monoid == SF_MONOID_ADD && f->class == SF_VF32};
    s.chunk = p->inner < 8 ? 1 : p->inner < 64 ? p->inner : 64;
    s.chunks = (p->inner + s.chunk - 1) / s.chunk;
    sf_threads_run(threads, p->outer * s.chunks,
                   1 + sf_threads_grain(threads) / (8 * p->to * s.chunk), scan_part, &s);
}

/* The initial value. */

static sf_word word_of(const sf_tensor *scalar)
{
    if (sf_is_float(scalar->type->dtype))
        return (sf_word){.real = sf_get_f64(scalar, 0)};
    return (sf_word){.integer = (uint64_t)sf_get_i64(scalar, 0)};
}

/* Whether it does not matter how often the initial value is folded in. */
static bool counts_once(sf_monoid monoid, sf_dtype dtype, sf_word init)
{
    bool real = sf_is_float(dtype);
    if (monoid == SF_MONOID_ADD || monoid == SF_MONOID_XOR)
        return real ? init.real == 0 : init.integer == 0;
    if (monoid == SF_MONOID_MUL)
        return real ? init.real == 1 : init.integer == 1;
    return true;
}

/* Folds the initial value into every result, one time for each position of padding. */
static void mend_results(const sf_op *op, sf_monoid monoid, sf_word init, sf_tensor *out)
{
    sf_dtype dtype = out->type->dtype;
    bool real = sf_is_float(dtype);
    int64_t at[SF_MAX_RANK] = {0};
    for (int64_t i = 0; i < out->type->count; i++) {
        int64_t seen = 1, size = 1;
        for (int d = 0; d < out->type->rank; d++) {
            sf_sliding window = sf_reduce_window_window(op, d);
            seen *= sf_sliding_run(&window, at[d]).count;
            size *= window.size;
        }
        int64_t times = size - seen + 1;
        sf_word start = init;
        if (monoid == SF_MONOID_ADD && real)
            start.real *= (double)times;
        else if (monoid == SF_MONOID_MUL && real)
            start.real = pow(init.real, (double)times);
        else
            for (int64_t k = 1; k < times; k++)
                sf_words_combine(monoid, dtype, &start, &init);
        if (real) {
            sf_words_combine(monoid, SF_F64, &start, &(sf_word){.real = sf_get_f64(out, i)});
            sf_store_f64(dtype, out->data, i, start.real);
        } else {
            sf_words_combine(monoid, dtype, &start,
                             &(sf_word){.integer = (uint64_t)sf_get_i64(out, i)});
            sf_store_i64(dtype, out->data, i, (int64_t)start.integer);
        }
        sf_next_index(out->type->rank, out->type->dims, at);
    }
}

typedef struct passing {
    const sf_op *op;
    pass pass;
    sf_run *runs;
    char *buffers[2];
    int done, passes;
    sf_word last; /* initial value of the last pass */
    sf_tensor *out;
} passing;

/* Dimension `dim`, whose window is not trivial or that of all dimensions; earlier ones have their
 * new size. */
static void pass_dim(passing *g, int dim, sf_threads *threads)
{
    pass *p = &g->pass;
    const sf_type *in = g->op->in[0], *to = g->out->type;
    p->outer = p->inner = 1;
    for (int d = 0; d < dim; d++)
        p->outer *= to->dims[d];
    for (int d = dim + 1; d < to->rank; d++)
        p->inner *= in->dims[d];
    p->from = in->dims[dim];
    p->to = to->dims[dim];
    sf_sliding window = sf_reduce_window_window(g->op, dim);
    for (int64_t i = 0; i < p->to; i++)
        g->runs[i] = sf_sliding_run(&window, i);
    p->runs = g->runs;
    bool last = ++g->done == g->passes;
    p->target = last ? g->out->data : g->buffers[g->done % 2];
    p->target_type = last ? to->dtype : p->folding->memory;
    p->target_width = sf_dtype_get(p->target_type)->bytes;
    p->start = last ? g->last : sf_monoid_identity(p->folding->monoid, to->dtype);
    run_pass(p, threads);
    p->source = p->target;
    p->source_type = p->target_type;
    p->source_width = p->target_width;
}

/* No window at all: the initial value is folded into the elements. */
static void pass_none(passing *g, sf_threads *threads)
{
    static const sf_run one = {0, 1, 1};
    pass *p = &g->pass;
    p->outer = p->from = p->to = 1;
    p->inner = g->out->type->count;
    p->runs = &one;
    p->target = g->out->data;
    p->target_type = g->out->type->dtype;
    p->target_width = p->source_width;
    p->start = g->last;
    run_pass(p, threads);
}

static void run_window(const sf_op *op, int64_t variant, const sf_tensor *in, sf_tensor *out,
                       void *scratch, sf_threads *threads)
{
    sf_dtype dtype = out->type->dtype;
    sf_monoid monoid = (sf_monoid)variant;
    sf_folding folding = sf_folding_of(monoid, dtype);
    sf_word init = word_of(&in[1]);
    bool once = counts_once(monoid, dtype, init);
    int64_t half = ((elements_between(op) * sf_dtype_get(folding.memory)->bytes) + 63) & -64;
    passing g = {.op = op, .runs = scratch, .out = out};
    g.last = once ? init : sf_monoid_identity(monoid, dtype);
    g.buffers[0] = (char *)scratch + runs_bytes(op);
    g.buffers[1] = g.buffers[0] + half;
    g.pass = (pass){.folding = &folding,
                    .source = in[0].data,
                    .source_type = dtype,
                    .source_width = sf_dtype_get(dtype)->bytes};
    bool trivial[SF_MAX_RANK];
    for (int d = 0; d < out->type->rank; d++) {
        sf_sliding window = sf_reduce_window_window(op, d);
        trivial[d] = sf_sliding_trivial(&window);
        g.passes += !trivial[d];
    }
    for (int d = 0; d < out->type->rank; d++)
        if (!trivial[d])
            pass_dim(&g, d, threads);
    if (g.passes == 0)
        pass_none(&g, threads);
    if (!once)
        mend_results(op, monoid, init, out);
}

const sf_fast sf_fast_reduce_window = {
    .choose = choose_window, .scratch = window_scratch, .run = run_window};
