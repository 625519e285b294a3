/* Finding and replacing from C, also where memory runs out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <string.h>

#include "base/mem.h"
#include "sheaf/sheaf.h"

#define STEP "examples/gpt-micro.stablehlo.mlir"

/* tanh(x), or an equal form: 2 / (1 + exp(-2 x)) - 1. */
static sf_status sketch_tanh(bool otherwise, sf_sketch **out)
{
    int x, n, number;
    sf_status status = sf_sketch_new(NULL, out);
    if (status != SF_OK)
        return status;
    sf_sketch *s = *out;
    sf_sketch_input(s, NULL, &x);
    if (!otherwise) {
        status = sf_sketch_op(s, "tanh", 1, &x, 0, NULL, -1, NULL, NULL, NULL, &n);
    } else {
        sf_sketch_number(s, -2, NULL, &number);
        status =
            sf_sketch_op(s, "multiply", 2, (int[]){number, x}, 0, NULL, -1, NULL, NULL, NULL, &n);
        if (status == SF_OK)
            status = sf_sketch_op(s, "exponential", 1, &n, 0, NULL, -1, NULL, NULL, NULL, &n);
        sf_sketch_number(s, 1, NULL, &number);
        if (status == SF_OK)
            status =
                sf_sketch_op(s, "add", 2, (int[]){n, number}, 0, NULL, -1, NULL, NULL, NULL, &n);
        int two;
        sf_sketch_number(s, 2, NULL, &two);
        if (status == SF_OK)
            status =
                sf_sketch_op(s, "divide", 2, (int[]){two, n}, 0, NULL, -1, NULL, NULL, NULL, &n);
        if (status == SF_OK)
            status = sf_sketch_op(s, "subtract", 2, (int[]){n, number}, 0, NULL, -1, NULL, NULL,
                                  NULL, &n);
    }
    return status == SF_OK ? sf_sketch_return(s, 1, &n, NULL) : status;
}

static sf_status replace(sf_primitives *list, int *count)
{
    static const sf_primitive trace = {
        .size = sizeof trace, .kind = SF_PRIMITIVE_TRACE, .module = "layer_?.mlp"};
    sf_sketch *pattern = NULL, *other = NULL;
    int first = 0;
    *count = 0;
    sf_status status = sf_primitives_add(list, &trace, NULL, NULL);
    if (status == SF_OK)
        status = sketch_tanh(false, &pattern);
    if (status == SF_OK)
        status = sketch_tanh(true, &other);
    if (status == SF_OK)
        status = sf_primitives_find(list, "layer_?.mlp", pattern, NULL, &first, count);
    if (status == SF_OK) {
        const sf_sketch *sketches[2] = {other, other};
        sf_primitive said = {.size = sizeof said,
                             .kind = SF_PRIMITIVE_REPLACE,
                             .module = "layer_?.mlp",
                             .subgraphs = (int[]){first, first + 1},
                             .nsubgraphs = 2,
                             .sketches = sketches};
        status = sf_primitives_add(list, &said, NULL, NULL);
    }
    sf_sketch_free(pattern);
    sf_sketch_free(other);
    return status;
}

static void test_replaces(void **state)
{
    (void)state;
    sf_graph *graph;
    sf_primitives *list;
    sf_verify_report *report;
    int count, culprit;
    assert_int_equal(sf_load(STEP, NULL, NULL, &graph), SF_OK);
    assert_int_equal(sf_primitives_new(graph, NULL, &list), SF_OK);
    assert_ptr_equal(sf_primitives_graph(list), graph);
    assert_int_equal(replace(list, &count), SF_OK);
    assert_int_equal(count, 2);
    assert_ptr_not_equal(sf_primitives_graph(list), graph);
    sf_subgraph_view view = {.size = sizeof view};
    assert_true(sf_primitives_subgraph(list, 1, &view));
    assert_int_equal(view.ops, 1);
    sf_op_view op = {.size = sizeof op};
    assert_false(sf_primitives_subgraph_op(list, 1, 0, &op)); /* of the step as it was */
    /* On one rank, and on two. */
    for (int ranks = 1; ranks <= 2; ranks++) {
        sf_plan_spec pin = {
            .size = sizeof pin, .mesh = ranks == 1 ? "data=1" : "data=2", .recipe = "dp"};
        sf_verify_options verify = {.size = sizeof verify, .steps = 2};
        assert_int_equal(sf_primitives_verify(list, &pin, &verify, NULL, &report, &culprit), SF_OK);
        sf_verify_free(report);
    }
    assert_int_equal(sf_primitives_undo(list, -1, NULL), SF_OK);
    assert_ptr_equal(sf_primitives_graph(list), graph);
    sf_primitives_free(list);
    sf_graph_free(graph);
}

/* dot(a, b) along these dimensions. */
static int sketch_dot(sf_sketch *s, int a, int b, int count, const int64_t *left,
                      const int64_t *right)
{
    const sf_sketch_attr attrs[] = {{.size = sizeof(sf_sketch_attr),
                                     .name = "lhs_contracting_dimensions",
                                     .count = count,
                                     .ints = left},
                                    {.size = sizeof(sf_sketch_attr),
                                     .name = "rhs_contracting_dimensions",
                                     .count = count,
                                     .ints = right}};
    int n = 0;
    assert_int_equal(sf_sketch_op(s, "dot_general", 2, (int[]){a, b}, 2,
                                  (const sf_sketch_attr *[]){&attrs[0], &attrs[1]}, -1, NULL, NULL,
                                  NULL, &n),
                     SF_OK);
    return n;
}

/* y = x w + b, or its gradients by x, b and w; `scale` times that of w. */
static sf_sketch *sketch_linear(bool backward, double scale)
{
    static const int64_t first[] = {0}, second[] = {1}, last[] = {2}, rows[] = {0, 1};
    const sf_sketch_attr sum[] = {
        {.size = sizeof(sf_sketch_attr), .name = "dimensions", .count = 2, .ints = rows},
        {.size = sizeof(sf_sketch_attr), .name = "body", .count = -1, .integer = 1}};
    sf_sketch *s;
    int in[4], out[3], number;
    assert_int_equal(sf_sketch_new(NULL, &s), SF_OK);
    for (int i = 0; i < 3 + backward; i++)
        sf_sketch_input(s, NULL, &in[i]);
    if (!backward) {
        int product = sketch_dot(s, in[0], in[2], 1, last, first);
        sf_sketch_op(s, "add", 2, (int[]){product, in[1]}, 0, NULL, -1, NULL, NULL, NULL, &out[0]);
    } else {
        out[0] = sketch_dot(s, in[3], in[2], 1, last, second);
        sf_sketch_number(s, 0, NULL, &number);
        sf_sketch_op(s, "reduce", 2, (int[]){in[3], number}, 2,
                     (const sf_sketch_attr *[]){&sum[0], &sum[1]}, -1, NULL, NULL, NULL, &out[1]);
        int plain = sketch_dot(s, in[0], in[3], 2, rows, rows);
        sf_sketch_number(s, scale, NULL, &number);
        sf_sketch_op(s, "multiply", 2, (int[]){plain, number}, 0, NULL, -1, NULL, NULL, NULL,
                     &out[2]);
    }
    assert_int_equal(sf_sketch_return(s, backward ? 3 : 1, out, NULL), SF_OK);
    return s;
}

/* A module with gradients of its own; wrong ones are detected. */
static void test_gradients(void **state)
{
    (void)state;
    for (int wrong = 0; wrong < 2; wrong++) {
        sf_graph *graph;
        sf_primitives *list;
        sf_verify_report *report;
        int first, count, culprit;
        sf_sketch *forward = sketch_linear(false, 1),
                  *backward = sketch_linear(true, wrong ? 1.5 : 1);
        assert_int_equal(sf_load(STEP, NULL, NULL, &graph), SF_OK);
        assert_int_equal(sf_primitives_new(graph, NULL, &list), SF_OK);
        assert_int_equal(sf_primitives_find_modules(list, "layer_?.mlp.down", NULL, &first, &count),
                         SF_OK);
        assert_int_equal(count, 2);
        sf_primitive said = {.size = sizeof said,
                             .kind = SF_PRIMITIVE_REPLACE,
                             .module = "layer_?.mlp.down",
                             .subgraphs = (int[]){first, first + 1},
                             .nsubgraphs = 2,
                             .sketches = (const sf_sketch *const[]){forward, forward},
                             .backwards = (const sf_sketch *const[]){backward, backward}};
        assert_int_equal(sf_primitives_add(list, &said, NULL, NULL), SF_OK);
        sf_plan_spec pin = {.size = sizeof pin, .mesh = "data=2", .recipe = "dp"};
        assert_int_equal(sf_primitives_verify(
                             list, &pin,
                             &(sf_verify_options){.size = sizeof(sf_verify_options), .steps = 2},
                             NULL, &report, &culprit),
                         wrong ? SF_EMISMATCH : SF_OK);
        assert_int_equal(culprit, wrong ? 0 : -1);
        sf_verify_free(report);
        sf_primitives_free(list);
        sf_graph_free(graph);
        sf_sketch_free(forward);
        sf_sketch_free(backward);
    }
}

/* Whichever allocation fails, the list can go on, and no memory is lost. */
static void test_memory(void **state)
{
    (void)state;
    sf_graph *graph;
    sf_primitives *list;
    int count;
    sf_status status = SF_ENOMEM;
    assert_int_equal(sf_load(STEP, NULL, NULL, &graph), SF_OK);
    size_t before = sf_mem_live();
    for (long after = 0; status != SF_OK; after += after / 16 + 1) {
        assert_int_equal(sf_primitives_new(graph, NULL, &list), SF_OK);
        sf_mem_fail_after(after);
        status = replace(list, &count);
        sf_mem_fail_after(-1);
        assert_true(status == SF_OK || status == SF_ENOMEM);
        if (status == SF_ENOMEM)
            assert_ptr_equal(sf_primitives_graph(list), graph);
        sf_primitives_free(list);
        assert_int_equal(sf_mem_live(), before);
    }
    sf_graph_free(graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_replaces),
                                       cmocka_unit_test(test_gradients),
                                       cmocka_unit_test(test_memory)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
