/* Attention block by block against sums over all places, in double: forward and backward, sizes around those of blocks, all types,
 * one thread and several, in exactly the memory that is announced. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "op/attention.h"
#include "run/fast/fast.h"
#include "support/indexing.h"

static const struct {
    int64_t batch, queries, keys, heads, depth;
    bool causal;
    sf_dtype dtype;
    float scale;
    int64_t offset;
} cases[] = {
    {1, 1, 1, 1, 1, false, SF_F32, 1, 0},
    {2, 5, 3, 3, 4, false, SF_F32, 0.5F, 0},
    {1, 129, 129, 1, 8, true, SF_F32, 0.3F, 0},
    {1, 300, 17, 2, 16, false, SF_F32, 0.25F, 0},
    {2, 40, 600, 1, 5, false, SF_F32, 1.5F, 0}, /* more keys than a block has */
    {1, 530, 530, 1, 3, true, SF_F32, 1, 0},
    {1, 257, 257, 2, 32, true, SF_BF16, 0.18F, 0},
    {3, 20, 33, 1, 64, false, SF_BF16, 0.125F, 0},
    {1, 130, 140, 1, 17, false, SF_F16, 0.25F, 0},
    /* Some of all queries: the last, those in the middle, the first, with keys that nobody sees; and such that see all. */
    {1, 100, 300, 1, 8, true, SF_F32, 0.3F, 200},
    {2, 140, 530, 1, 4, true, SF_F32, 0.5F, 130},
    {1, 7, 400, 2, 16, true, SF_BF16, 0.25F, 0},
    {1, 9, 20, 1, 4, true, SF_F32, 1, 19},
    {1, 200, 140, 1, 4, true, SF_F32, 1, 3},
};
enum { CASES = sizeof cases / sizeof *cases, MAX_THREADS = 5 };

enum { Q, K, V, OUT, ENDS, DOUT, OPERANDS };

typedef struct sample {
    size_t number;
    sf_pool *pool;
    sf_arena arena;
    const sf_type *types[OPERANDS];
    const sf_attr *attrs[SF_ATTENTION_SLOTS];
    sf_tensor in[OPERANDS];
    double *out, *gradients[3];
} sample;

static double at(const sample *s, int tensor, int64_t b, int64_t place, int64_t h, int64_t d)
{
    const int64_t *dims = s->types[tensor]->dims;
    return sf_get_f64(&s->in[tensor], ((b * dims[1] + place) * dims[2] + h) * dims[3] + d);
}

static double *element(const sample *s, double *data, int tensor, int64_t b, int64_t place,
                       int64_t h, int64_t d)
{
    const int64_t *dims = s->types[tensor]->dims;
    return &data[((b * dims[1] + place) * dims[2] + h) * dims[3] + d];
}

/* One row of weights, and what follows from it. */
static void add_row(const sample *s, int64_t b, int64_t h, int64_t i, double *weights)
{
    int64_t keys = s->types[K]->dims[1], depth = s->types[Q]->dims[3];
    double sum = 0, delta = 0, scale = (double)cases[s->number].scale;
    int64_t seen = cases[s->number].causal ? i + 1 + cases[s->number].offset : keys;
    seen = seen < keys ? seen : keys;
    for (int64_t j = 0; j < seen; j++) {
        double score = 0;
        for (int64_t d = 0; d < depth; d++)
            score += at(s, Q, b, i, h, d) * at(s, K, b, j, h, d);
        sum += weights[j] = exp(score * scale);
    }
    for (int64_t d = 0; d < depth; d++) {
        double *out = element(s, s->out, Q, b, i, h, d);
        for (int64_t j = 0; j < seen; j++)
            *out += weights[j] / sum * at(s, V, b, j, h, d);
        delta += *out * at(s, DOUT, b, i, h, d);
    }
    for (int64_t j = 0; j < seen; j++) {
        double weight = weights[j] / sum, gradient = 0;
        for (int64_t d = 0; d < depth; d++)
            gradient += at(s, DOUT, b, i, h, d) * at(s, V, b, j, h, d);
        double slope = weight * (gradient - delta) * scale;
        for (int64_t d = 0; d < depth; d++) {
            *element(s, s->gradients[Q], Q, b, i, h, d) += slope * at(s, K, b, j, h, d);
            *element(s, s->gradients[K], K, b, j, h, d) += slope * at(s, Q, b, i, h, d);
            *element(s, s->gradients[V], V, b, j, h, d) += weight * at(s, DOUT, b, i, h, d);
        }
    }
}

static void compute(sample *s)
{
    double *weights = SF_ARRAY(&s->arena, s->types[K]->dims[1], double);
    s->out = SF_ARRAY(&s->arena, s->types[Q]->count, double);
    for (int i = 0; i < 3; i++)
        s->gradients[i] = SF_ARRAY(&s->arena, s->types[i]->count, double);
    for (int64_t b = 0; b < s->types[Q]->dims[0]; b++)
        for (int64_t h = 0; h < s->types[Q]->dims[2]; h++)
            for (int64_t i = 0; i < s->types[Q]->dims[1]; i++)
                add_row(s, b, h, i, weights);
}

static sample draw(size_t number)
{
    sample s = {.number = number, .pool = sf_pool_new()};
    int64_t q[] = {cases[number].batch, cases[number].queries, cases[number].heads,
                   cases[number].depth};
    int64_t k[] = {q[0], cases[number].keys, q[2], q[3]}, ends[] = {q[0], q[2], q[1]};
    uint32_t bits;
    memcpy(&bits, &cases[number].scale, sizeof bits);
    s.attrs[SF_ATTENTION_CAUSAL] = cases[number].causal ? sf_attr_int(s.pool, 1) : NULL;
    s.attrs[SF_ATTENTION_OFFSET] =
        cases[number].offset ? sf_attr_int(s.pool, cases[number].offset) : NULL;
    s.attrs[SF_ATTENTION_SCALE] = sf_attr_int(s.pool, bits);
    const sf_type *rows = sf_type_get(s.pool, cases[number].dtype, 4, q),
                  *columns = sf_type_get(s.pool, cases[number].dtype, 4, k);
    const sf_type *types[OPERANDS] = {
        rows, columns, columns, rows, sf_type_get(s.pool, SF_F32, 3, ends), rows};
    uint32_t seed = (uint32_t)number + 1;
    for (int t = 0; t < OPERANDS; t++) {
        s.types[t] = types[t];
        s.in[t] = (sf_tensor){types[t],
                              .data = sf_arena_alloc(&s.arena, (size_t)sf_type_bytes(types[t]))};
        for (int64_t i = 0; i < types[t]->count; i++) {
            seed = seed * 1664525 + 1013904223;
            sf_store_f64(types[t]->dtype, s.in[t].data, i, (double)(seed >> 8) / 8388608.0 - 1);
        }
    }
    compute(&s);
    return s;
}

static void compare(const sample *s, const sf_tensor *got, const double *want, const char *what,
                    int threads)
{
    double most = 0, error = cases[s->number].dtype == SF_F32 ? 2e-6 : 1e-2;
    for (int64_t i = 0; i < got->type->count; i++)
        most = fmax(most, fabs(want[i]));
    for (int64_t i = 0; i < got->type->count; i++)
        if (!(fabs(sf_get_f64(got, i) - want[i]) <= error * (1 + most)))
            fail_msg("case %zu, %d threads: element %d of %s is %g, not %g", s->number, threads,
                     (int)i, what, sf_get_f64(got, i), want[i]);
}

/* Runs the op in exactly the memory that it requests. */
static void run(const sample *s, const sf_op *op, sf_tensor *out, sf_threads *threads)
{
    enum { GUARD = 64, MARK = 0x5a };
    int64_t variant;
    const sf_fast *kernel = sf_fast_find(op, &variant);
    int64_t bytes = sf_fast_scratch(kernel, op, variant, sf_threads_count(threads));
    char *scratch = sf_alloc((size_t)bytes + GUARD);
    memset(scratch, MARK, (size_t)bytes + GUARD); /* the old content does not matter */
    sf_fast_run(kernel, op, variant, s->in, out, scratch, threads);
    for (int i = 0; i < GUARD; i++)
        assert_int_equal(scratch[bytes + i], MARK);
    sf_free(scratch);
}

static void check_with(sample *s, sf_threads *threads)
{
    static const char *const names[] = {"dq", "dk", "dv"};
    const sf_op forward = {.def = &sf_op_attention,
                           .noperands = 3,
                           .nresults = 2,
                           .in = s->types,
                           .out = s->types + OUT,
                           .attrs = s->attrs};
    const sf_op backward = {.def = &sf_op_attention_gradient,
                            .noperands = OPERANDS,
                            .nresults = 3,
                            .in = s->types,
                            .out = s->types,
                            .attrs = s->attrs};
    sf_tensor made[3];
    for (int i = 0; i < 3; i++)
        made[i] = (sf_tensor){s->types[i], .data = sf_alloc((size_t)sf_type_bytes(s->types[i]))};
    run(s, &forward, &s->in[OUT], threads);
    compare(s, &s->in[OUT], s->out, "out", sf_threads_count(threads));
    run(s, &backward, made, threads);
    for (int i = 0; i < 3; i++) {
        compare(s, &made[i], s->gradients[i], names[i], sf_threads_count(threads));
        sf_free(made[i].data);
    }
}

static void test_attends(void **state)
{
    (void)state;
    for (size_t i = 0; i < CASES; i++) {
        sample s = draw(i);
        for (int threads = 1; threads <= MAX_THREADS; threads += 2) {
            sf_threads *pool = sf_threads_new(threads);
            check_with(&s, pool);
            sf_threads_free(pool);
        }
        sf_arena_free(&s.arena);
        sf_pool_release(s.pool);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_attends)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
