/* The work of an instruction: passes of loops, runs, and the packing of convolutions. */
#include "sim/instruction_work.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "op/attention.h"
#include "run/cuda/cuda_target.h"
#include "sim/sim.h"
#include "support/programs.h"

/* A loop that copies rows x columns of f32, read with these strides. */
static sf_effort copy_effort(int rank, int split, const int64_t *dims, const int64_t *strides)
{
    sf_loop_step steps[] = {{.kind = SF_STEP_LOAD, .dtype = SF_F32},
                            {.kind = SF_STEP_STORE, .dtype = SF_F32, .access = 1}};
    sf_access accesses[] = {{.dtype = SF_F32}, {.dtype = SF_F32}};
    sf_loop loop = {.rank = rank,
                    .split = split,
                    .rows = 1,
                    .columns = 1,
                    .nsteps = 2,
                    .steps = steps,
                    .naccesses = 2,
                    .accesses = accesses};
    int64_t next = 1;
    for (int d = rank - 1; d >= 0; d--) {
        loop.dims[d] = dims[d];
        accesses[0].strides[d] = strides[d];
        accesses[1].strides[d] = next;
        next *= dims[d];
        *(d < split ? &loop.rows : &loop.columns) *= dims[d];
    }
    sf_view views[2] = {{.dtype = SF_F32}, {.dtype = SF_F32}};
    sf_inst inst = {.kind = SF_INST_LOOP,
                    .nin = 1,
                    .nout = 1,
                    .in = &views[0],
                    .out = &views[1],
                    .loop = &loop};
    return sf_inst_effort(&inst);
}

static void test_runs(void **state)
{
    (void)state;
    static const struct {
        int rank, split;
        int64_t dims[4], strides[4];
        double runs, strided, copies; /* of loading and storing */
    } cases[] = {
        {1, 0, {64}, {1}, 0, 0, 0},                   /* one row */
        {2, 1, {8, 16}, {16, 1}, 0, 0, 0},            /* rows that follow each other */
        {2, 1, {8, 16}, {32, 1}, 8, 0, 0},            /* rows with gaps */
        {2, 1, {8, 16}, {1, 8}, 8, 128, 0},           /* columns */
        {2, 1, {8, 16}, {0, 1}, 8, 0, 128},           /* one row, repeatedly */
        {3, 2, {2, 4, 16}, {64, 16, 1}, 8 + 8, 0, 0}, /* rows in two dimensions: both sides */
        {3, 1, {2, 4, 16}, {64, 16, 1}, 8 + 8, 0, 0}, /* columns in two */
        {4, 3, {2, 4, 2, 8}, {4, 0, 1, 0}, 16 + 16, 0, 128}, /* one number for a row */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        sf_effort e = copy_effort(cases[i].rank, cases[i].split, cases[i].dims, cases[i].strides);
        assert_true(e.counted && !e.product);
        if (e.passes.runs != cases[i].runs || e.passes.strided != cases[i].strided ||
            e.passes.copies != cases[i].copies)
            fail_msg("case %zu: runs %g, strided %g, copies %g", i, e.passes.runs, e.passes.strided,
                     e.passes.copies);
    }
}

static sf_effort conv_effort(const sf_conv *conv)
{
    sf_view views[3] = {{.dtype = SF_F32}, {.dtype = SF_F32}, {.dtype = SF_F32}};
    sf_conv copy = *conv;
    sf_inst inst = {
        .kind = SF_INST_CONV, .nin = 2, .nout = 1, .in = views, .out = &views[2], .conv = &copy};
    return sf_inst_effort(&inst);
}

/* Four images of 8 x 8 and 16 channels, under a window of 3 x 3, to 32 features. */
static const sf_conv images = {
    .spatial = 2,
    .batch = 4,
    .channels = 16,
    .features = 32,
    .feature_groups = 1,
    .batch_groups = 1,
    .lhs_feature = 1,
    .lhs_batch = 1024,
    .space = {{8, 3, 8, 1, 1, 1, 1, false, 128, 0, 0}, {8, 3, 8, 1, 1, 1, 1, false, 16, 0, 0}}};

static void test_convolutions(void **state)
{
    (void)state;
    double rows = 4 * 64, steps = 9 * 16, kernel = steps * 32;
    sf_effort e = conv_effort(&images);
    assert_true(e.product && e.flops == 2 * rows * steps * 32);
    assert_true(e.packing.elements == rows * steps + kernel && e.packing.across == 0);
    assert_true(e.packing.runs == rows * steps / 16);
    /* Zeros between elements are not multiplied, and not packed. */
    sf_conv spread = images;
    spread.space[0].base = spread.space[1].base = 2;
    sf_effort s = conv_effort(&spread);
    assert_true(s.flops == e.flops / 4 && s.packing.elements == rows * steps / 4 + kernel);
    /* A window of one place is a product. */
    sf_conv plain = images;
    for (int d = 0; d < 2; d++)
        plain.space[d].window = 1, plain.space[d].low = 0;
    assert_true(conv_effort(&plain).packing.runs == 0);
    /* In the gradient of a kernel, channels are what the rows are. */
    sf_conv gradient = images;
    gradient.lhs_batch = 1;
    gradient.lhs_feature = 1024;
    sf_effort g = conv_effort(&gradient);
    assert_true(g.packing.elements == kernel && g.packing.across == rows * steps);
}

/* Two heads of three examples, 8 queries and 16 keys of 4 numbers: two products forward, five backward, one for each pair. */
static void test_attention(void **state)
{
    (void)state;
    sf_pool *pool = sf_pool_new();
    const int64_t q[] = {3, 8, 2, 4}, k[] = {3, 16, 2, 4}, ends[] = {3, 2, 8};
    const sf_type *rows = sf_type_get(pool, SF_F32, 4, q),
                  *columns = sf_type_get(pool, SF_F32, 4, k),
                  *sums = sf_type_get(pool, SF_F32, 3, ends);
    const sf_type *in[] = {rows, columns, columns, rows, sums, rows}, *forward[] = {rows, sums},
                  *backward[] = {rows, columns, columns};
    const sf_attr *attrs[SF_ATTENTION_SLOTS] = {NULL, sf_attr_int(pool, 0)};
    for (int i = 0; i < 2; i++) {
        sf_call call = {.op = {.def = i ? &sf_op_attention_gradient : &sf_op_attention,
                               .noperands = i ? 6 : 3,
                               .nresults = i ? 3 : 2,
                               .in = in,
                               .out = i ? backward : forward,
                               .attrs = attrs}};
        sf_inst inst = {.kind = SF_INST_CALL, .call = &call};
        sf_effort e = sf_inst_effort(&inst);
        double scores = 3 * 2 * 8 * 16, numbers = 4;
        assert_true(e.product && e.counted && e.batches == 6);
        assert_true(e.depth == numbers &&
                    e.unit == (i ? SF_UNIT_ATTENTION_GRADIENT : SF_UNIT_ATTENTION));
        assert_true(e.flops == (i ? 5 : 2) * 2 * scores * numbers);
        assert_true(e.passes.functions == scores);
        /* Half of all queries: the last, which others wait for, see 9 to 16 keys; halves of the diagonal count. */
        attrs[SF_ATTENTION_CAUSAL] = sf_attr_int(pool, 1);
        assert_true(sf_inst_effort(&inst).flops == e.flops * 3 / 4);
        assert_true(sf_inst_effort(&inst).passes.functions == scores * 3 / 4);
        assert_true(sf_inst_effort(&inst).bytes == e.bytes);
        attrs[SF_ATTENTION_CAUSAL] = NULL;
    }
    sf_pool_release(pool);
}

/* Three updates of a few bytes each: a launch for each, or one for all of them, of which each has its share. */
static void test_bunches(void **state)
{
    (void)state;
    static const char text[] =
        "func.func public @main(%u: tensor<64xf32> {tf.aliasing_output = 0 : i32}, "
        "%v: tensor<64xf32> {tf.aliasing_output = 1 : i32}, "
        "%w: tensor<128xf32> {tf.aliasing_output = 2 : i32}) -> "
        "(tensor<64xf32>, tensor<64xf32>, tensor<128xf32>) {\n"
        "%a = stablehlo.multiply %u, %u : tensor<64xf32>\n"
        "%b = stablehlo.add %v, %v : tensor<64xf32>\n"
        "%c = stablehlo.add %w, %w : tensor<128xf32>\n"
        "return %a, %b, %c : tensor<64xf32>, tensor<64xf32>, tensor<128xf32>\n}\n";
    int one = 1;
    sf_arena arena = {0};
    sf_cluster *cluster;
    sf_costs *costs;
    assert_int_equal(sf_cluster_open("1xH100", NULL, &cluster), SF_OK);
    assert_int_equal(sf_costs_new(cluster, 1, &one, 0, &arena, NULL, &costs), SF_OK);
    double launch = cluster->kinds[0].launch;
    for (int together = 0; together < 2; together++) {
        sf_target target = sf_target_cuda;
        sf_simulation sim;
        target.small_bytes = together ? target.small_bytes : 0;
        sf_program *p = test_lower_text(text, &target);
        assert_int_equal(p->ninsts, 3);
        sf_simulate(p, costs, &arena, &sim);
        assert_true(fabs(sim.seconds - (together ? 1 : 3) * launch) < 1e-9 * launch);
        for (size_t i = 0; i < p->ninsts; i++) {
            double share = sf_view_bytes(&p->insts[i].out[0]) > 256 ? 0.5 : 0.25;
            double seconds = sim.insts[i].end - sim.insts[i].start;
            assert_true(fabs(seconds - (together ? share : 1) * launch) < 1e-9 * launch);
        }
        sf_program_free(p);
    }
    sf_cluster_free(cluster);
    sf_arena_free(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_attention),
        cmocka_unit_test(test_runs),
        cmocka_unit_test(test_convolutions),
        cmocka_unit_test(test_bunches),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
