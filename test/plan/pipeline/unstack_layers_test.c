/* A step with its stacks in parts is the step: both run by the oracle, on the same numbers. */
#include "plan/pipeline/unstack_layers.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/hash.h"
#include "op/node_builder.h"
#include "support/plans.h"
#include "support/run.h"

/* All that may be done with rows: they are taken one by one and several at once, put, joined, padded, handed on, folded by a
 * sum and a maximum, and changed in another type. */
static const char *const everything =
    "func.func @main(%w: tensor<5x4xf32>, %m: tensor<5x4xf32>, %x: tensor<4xf32>) -> "
    "(tensor<5x4xf32>, tensor<5x4xf32>, tensor<f32>) {\n"
    "  %zero = stablehlo.constant dense<0.0> : tensor<f32>\n"
    "  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>\n"
    "  %zeros = stablehlo.broadcast_in_dim %zero, dims = [] : (tensor<f32>) -> tensor<5x4xf32>\n"
    "  %i0 = stablehlo.constant dense<0> : tensor<i32>\n"
    "  %i1 = stablehlo.constant dense<1> : tensor<i32>\n"
    "  %i9 = stablehlo.constant dense<9> : tensor<i32>\n"
    "  %half = stablehlo.convert %w : (tensor<5x4xf32>) -> tensor<5x4xf16>\n"
    "  %a = stablehlo.slice %w [0:1, 0:4] : (tensor<5x4xf32>) -> tensor<1x4xf32>\n"
    "  %b = stablehlo.slice %w [1:4, 0:4] : (tensor<5x4xf32>) -> tensor<3x4xf32>\n"
    "  %c = stablehlo.slice %half [4:5, 1:4] : (tensor<5x4xf16>) -> tensor<1x3xf16>\n"
    "  %a1 = stablehlo.reshape %a : (tensor<1x4xf32>) -> tensor<4xf32>\n"
    "  %y = stablehlo.multiply %a1, %x : tensor<4xf32>\n"
    "  %b1 = stablehlo.dot_general %b, %y, contracting_dims = [1] x [0] : (tensor<3x4xf32>, "
    "tensor<4xf32>) -> tensor<3xf32>\n"
    "  %c1 = stablehlo.convert %c : (tensor<1x3xf16>) -> tensor<1x3xf32>\n"
    "  %c2 = stablehlo.reshape %c1 : (tensor<1x3xf32>) -> tensor<3xf32>\n"
    "  %z = stablehlo.multiply %b1, %c2 : tensor<3xf32>\n"
    "  %loss = stablehlo.reduce(%z init: %zero) applies stablehlo.add across dimensions = [0] : "
    "(tensor<3xf32>, tensor<f32>) -> tensor<f32>\n"
    "  %ga = stablehlo.broadcast_in_dim %x, dims = [1] : (tensor<4xf32>) -> tensor<1x4xf32>\n"
    "  %gb = stablehlo.broadcast_in_dim %z, dims = [0] : (tensor<3xf32>) -> tensor<3x4xf32>\n"
    "  %p0 = stablehlo.dynamic_update_slice %zeros, %ga, %i9, %i0 : (tensor<5x4xf32>, "
    "tensor<1x4xf32>, tensor<i32>, tensor<i32>) -> tensor<5x4xf32>\n"
    "  %p1 = stablehlo.dynamic_update_slice %p0, %gb, %i1, %i0 : (tensor<5x4xf32>, "
    "tensor<3x4xf32>, tensor<i32>, tensor<i32>) -> tensor<5x4xf32>\n"
    "  %j = stablehlo.concatenate %ga, %gb, %ga, dim = 0 : (tensor<1x4xf32>, tensor<3x4xf32>, "
    "tensor<1x4xf32>) -> tensor<5x4xf32>\n"
    "  %d = stablehlo.pad %gb, %loss, low = [1, 0], high = [1, 0], interior = [0, 0] : "
    "(tensor<3x4xf32>, tensor<f32>) -> tensor<5x4xf32>\n"
    "  %s = stablehlo.add %p1, %j : tensor<5x4xf32>\n"
    "  %t = stablehlo.add %s, %d : tensor<5x4xf32>\n"
    "  %h:2 = stablehlo.optimization_barrier %t, %y : tensor<5x4xf32>, tensor<4xf32>\n"
    "  %square = stablehlo.multiply %h#0, %h#0 : tensor<5x4xf32>\n"
    "  %sum = stablehlo.reduce(%square init: %zero) applies stablehlo.add across dimensions = [0, "
    "1] : (tensor<5x4xf32>, tensor<f32>) -> tensor<f32>\n"
    "  %most = stablehlo.reduce(%square init: %low) applies stablehlo.maximum across dimensions = "
    "[0] : (tensor<5x4xf32>, tensor<f32>) -> tensor<4xf32>\n"
    "  %each = stablehlo.reduce(%square init: %zero) applies stablehlo.add across dimensions = [1] "
    ": (tensor<5x4xf32>, tensor<f32>) -> tensor<5xf32>\n"
    "  %ms = stablehlo.broadcast_in_dim %most, dims = [1] : (tensor<4xf32>) -> tensor<5x4xf32>\n"
    "  %es = stablehlo.broadcast_in_dim %each, dims = [0] : (tensor<5xf32>) -> tensor<5x4xf32>\n"
    "  %ss = stablehlo.broadcast_in_dim %sum, dims = [] : (tensor<f32>) -> tensor<5x4xf32>\n"
    "  %ys = stablehlo.broadcast_in_dim %h#1, dims = [1] : (tensor<4xf32>) -> tensor<5x4xf32>\n"
    "  %hy = stablehlo.add %h#0, %ys : tensor<5x4xf32>\n"
    "  %n0 = stablehlo.divide %hy, %ss : tensor<5x4xf32>\n"
    "  %n1 = stablehlo.add %n0, %m : tensor<5x4xf32>\n"
    "  %n2 = stablehlo.multiply %n1, %es : tensor<5x4xf32>\n"
    "  %n3 = stablehlo.add %n2, %ms : tensor<5x4xf32>\n"
    "  %new = stablehlo.subtract %w, %n3 : tensor<5x4xf32>\n"
    "  return %new, %n1, %loss : tensor<5x4xf32>, tensor<5x4xf32>, tensor<f32>\n}\n";

/* Part of each row, by how the test cuts. */
static uint32_t part_of_row(int how, int64_t row, int64_t rows)
{
    switch (how) {
    case 0:
        return (uint32_t)row;
    case 1:
        return row * 2 >= rows;
    case 2:
        return (uint32_t)row % 2;
    default:
        return row > 0;
    }
}

static void fill(sf_tensor tensor, uint64_t seed)
{
    for (int64_t e = 0; e < tensor.type->count; e++) {
        double number = 0.5 + (double)(sf_hash_mix(seed, (uint64_t)e) % 1000) / 1000;
        if (sf_is_inexact(tensor.type->dtype))
            sf_store_f64(tensor.type->dtype, tensor.data, e, number);
        else
            sf_store_i64(tensor.type->dtype, tensor.data, e, 1 + (int64_t)(number * 4));
    }
}

/* Rows of a part, in the whole. */
static int64_t row_in_whole(const sf_row_split *splits, sf_unstacked_of of, int64_t row)
{
    int64_t at = -1;
    for (int64_t found = -1; found < row;)
        found += splits[of.stack].of_row[++at] == of.part;
    return at;
}

/* The difference of the part to the rows of the whole; it is copied from there first, if wanted. */
static double look_at(const sf_tensor *part, const sf_tensor *whole, const sf_row_split *splits,
                      sf_unstacked_of of, bool copies)
{
    int64_t count = of.stack == SF_NONE ? 1 : part->type->dims[0], size = part->type->count / count;
    size_t bytes = (size_t)size * sf_dtype_get(part->type->dtype)->bytes;
    double worst = 0;
    for (int64_t row = 0; row < count; row++) {
        int64_t at = of.stack == SF_NONE ? 0 : row_in_whole(splits, of, row);
        if (copies)
            memcpy((char *)part->data + (size_t)row * bytes,
                   (const char *)whole->data + (size_t)at * bytes, bytes);
        for (int64_t e = 0; e < size; e++) {
            double a = sf_get_f64(part, row * size + e), b = sf_get_f64(whole, at * size + e);
            worst = fmax(worst, fabs(a - b) / (1e-3 + fabs(b)));
        }
    }
    return worst;
}

/* Sums over rows are rounded otherwise, by no more than this. */
#define NEAR 1e-4

static void check(const sf_graph *graph, uint32_t stacks_wanted, int how)
{
    sf_arena arena = {0};
    sf_stacks stacks = sf_find_stacks(graph, &arena);
    sf_row_split *splits = SF_ARRAY(&arena, stacks.count, sf_row_split);
    sf_unstacked parts;
    assert_int_equal(stacks.count, stacks_wanted);
    for (uint32_t s = 0; s < stacks.count; s++) {
        uint32_t *of_row = SF_ARRAY(&arena, stacks.rows[s], uint32_t);
        for (int64_t row = 0; row < stacks.rows[s]; row++)
            of_row[row] = part_of_row(how, row, stacks.rows[s]);
        splits[s] = (sf_row_split){how == 0 ? (uint32_t)stacks.rows[s] : 2, of_row};
    }
    sf_pool *pool = sf_pool_derive(graph->pool);
    sf_unstack(graph, &stacks, splits, pool, &parts);
    sf_pool_release(pool);
    sf_diag *diag = sf_diag_new();
    if (sf_graph_verify(parts.graph, diag) != SF_OK)
        fail_msg("%s", sf_diag_text(diag, 0));
    sf_runner whole = test_open_engine(graph, "oracle", 1, NULL),
              cut = test_open_engine(parts.graph, "oracle", 1, NULL);
    for (uint32_t i = 0; i < graph->top->narguments; i++)
        fill(test_argument(whole.engine, i), i + 1);
    for (uint32_t i = 0; i < parts.graph->top->narguments; i++) {
        sf_tensor part = test_argument(cut.engine, i),
                  of = test_argument(whole.engine, parts.arguments[i].index);
        assert_true(look_at(&part, &of, splits, parts.arguments[i], true) == 0);
    }
    assert_int_equal(sf_engine_step(whole.engine, diag), SF_OK);
    assert_int_equal(sf_engine_step(cut.engine, diag), SF_OK);
    for (uint32_t i = 0; i < parts.graph->top->nresults; i++) {
        sf_tensor part = test_result(cut.engine, i),
                  of = test_result(whole.engine, parts.results[i].index);
        double worst = look_at(&part, &of, splits, parts.results[i], false);
        if (!(worst <= NEAR))
            fail_msg("result %u, part %u, is off by %g", parts.results[i].index,
                     parts.results[i].part, worst);
    }
    sf_runner_close(&whole);
    sf_runner_close(&cut);
    sf_unstacked_free(&parts);
    sf_diag_free(diag);
    sf_arena_free(&arena);
}

static void test_all_that_is_done_with_rows(void **state)
{
    (void)state;
    sf_graph *graph = test_step_text(everything);
    for (int how = 0; how < 4; how++)
        check(graph, 1, how);
    sf_graph_free(graph);
}

static void test_scanned_steps(void **state)
{
    (void)state;
    static const struct {
        const char *folder, *name;
        uint32_t stacks;
    } steps[] = {{"micro", "gpt-scan-micro", 16}, {"loops", "loop-layers", 16}};
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        sf_graph *graph = test_step_of(steps[i].folder, steps[i].name);
        for (int how = 0; how < 4; how++)
            check(graph, steps[i].stacks, how);
        sf_graph_free(graph);
    }
}

/* A tensor on which an op mixes rows is no stack, nor one that the forward pass does not take by
 * rows. */
static void test_others_are_none(void **state)
{
    (void)state;
    static const char *const names[] = {"gpt-micro", "t5-micro", "moe-micro", "evoformer-micro"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        sf_graph *graph = test_step(names[i]);
        sf_arena arena = {0};
        assert_int_equal(sf_find_stacks(graph, &arena).count, 0);
        sf_arena_free(&arena);
        sf_graph_free(graph);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_that_is_done_with_rows),
        cmocka_unit_test(test_scanned_steps),
        cmocka_unit_test(test_others_are_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
