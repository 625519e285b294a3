/* What is fused with what, what is stored, and what a rank of a mesh does. */
#include "search/effort.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "op/op.h"
#include "sheaf/sheaf.h"
#include "support/plans.h"

static const char chain[] =
    "func.func @main(%a: tensor<8x16xf32>, %w: tensor<16x32xf32>, %b: tensor<32xf32>)\n"
    "    -> (tensor<8x32xf32>, tensor<8xf32>) {\n"
    "  %zero = stablehlo.constant dense<0.0> : tensor<f32>\n"
    "  %p = stablehlo.dot_general %a, %w, contracting_dims = [1] x [0]\n"
    "      : (tensor<8x16xf32>, tensor<16x32xf32>) -> tensor<8x32xf32>\n"
    "  %bb = stablehlo.broadcast_in_dim %b, dims = [1] : (tensor<32xf32>) -> tensor<8x32xf32>\n"
    "  %u = stablehlo.add %p, %bb : tensor<8x32xf32>\n"
    "  %t = stablehlo.tanh %u : tensor<8x32xf32>\n"
    "  %g = stablehlo.multiply %u, %t : tensor<8x32xf32>\n"
    "  %s = stablehlo.exponential %g : tensor<8x32xf32>\n"
    "  %r = stablehlo.reduce(%g init: %zero) applies stablehlo.add across dimensions = [1]\n"
    "      : (tensor<8x32xf32>, tensor<f32>) -> tensor<8xf32>\n"
    "  return %s, %r : tensor<8x32xf32>, tensor<8xf32>\n"
    "}\n";

/* A diamond, u -> t -> g <- u, is one kernel; what two kernels read is stored. */
static void test_kernels(void **state)
{
    (void)state;
    sf_graph *graph = test_step_text(chain);
    sf_arena arena = {0};
    const sf_efforts *e = sf_efforts_new(graph, &arena);
    const sf_node *dot = test_node(graph, SF_OP_DOT_GENERAL, 0),
                  *u = test_node(graph, SF_OP_ADD, 0), *t = test_node(graph, SF_OP_TANH, 0),
                  *g = test_node(graph, SF_OP_MULTIPLY, 0),
                  *s = test_node(graph, SF_OP_EXPONENTIAL, 0),
                  *r = test_node(graph, SF_OP_REDUCE, 0);
    assert_true(e->stored[dot->result] && e->nodes[dot->id].starts);
    assert_true(!e->stored[u->result] && !e->stored[t->result]);
    assert_int_equal(e->nodes[u->id].kernel, g->id);
    assert_int_equal(e->nodes[t->id].kernel, g->id);
    assert_true(e->stored[g->result] && e->nodes[g->id].starts);
    assert_true(e->nodes[s->id].starts && e->nodes[r->id].starts);
    /* The kernel reads the product in u and writes g; the bias is read under its broadcast. */
    assert_int_equal(e->nodes[u->id].charged, 1);
    assert_int_equal(e->nodes[t->id].charged, 0);
    assert_int_equal(e->nodes[g->id].charged, 4);
    const sf_node *bias = test_node(graph, SF_OP_BROADCAST_IN_DIM, 0);
    assert_int_equal(e->nodes[bias->id].charged, 1);
    assert_true(!e->nodes[bias->id].starts);
    assert_int_equal(e->place[bias->result], graph->top->arguments[2]);
    sf_arena_free(&arena);
    sf_graph_free(graph);
}

static void test_on_mesh(void **state)
{
    (void)state;
    sf_graph *graph = test_step_text(chain);
    sf_arena arena = {0};
    const sf_efforts *e = sf_efforts_new(graph, &arena);
    const sf_node *dot = test_node(graph, SF_OP_DOT_GENERAL, 0);
    sf_mesh mesh = {.naxes = 2, .axes = {{"x", 2}, {"y", 4}}};
    sf_layout layouts[3] = {0};
    sf_effort whole = sf_effort_of(e, dot, layouts, &mesh);
    assert_true(whole.product && whole.math == SF_MATH_TF32);
    assert_float_equal(whole.flops, 2.0 * 8 * 16 * 32, 0);
    assert_float_equal(whole.bytes, 4.0 * (8 * 16 + 16 * 32 + 8 * 32), 0);
    /* Rows over x, the contracted dimension over y: the result is partial there, and whole in size. */
    layouts[0].axes[0] = (sf_share){.kind = SF_SPLIT, .dim = 0, .period = 8};
    layouts[0].axes[1] = (sf_share){.kind = SF_SPLIT, .dim = 1, .period = 16};
    layouts[1].axes[1] = (sf_share){.kind = SF_SPLIT, .dim = 0, .period = 16};
    layouts[2].axes[0] = (sf_share){.kind = SF_SPLIT, .dim = 0, .period = 8};
    layouts[2].axes[1] = (sf_share){.kind = SF_PARTIAL, .monoid = SF_MONOID_ADD};
    sf_effort piece = sf_effort_of(e, dot, layouts, &mesh);
    assert_float_equal(piece.flops, whole.flops / 8, 0);
    assert_float_equal(piece.bytes, 4.0 * (4 * 4 + 4 * 32 + 4 * 32), 0);
    sf_arena_free(&arena);
    sf_graph_free(graph);
}

static void check_step(const sf_graph *graph, const char *name)
{
    sf_arena arena = {0};
    const sf_efforts *e = sf_efforts_new(graph, &arena);
    for (uint32_t i = 0; i < graph->top->nnodes; i++) {
        const sf_node *node = graph->nodes[graph->top->nodes[i]];
        const sf_node_effort *effort = &e->nodes[node->id];
        if (effort->kernel != node->id && (effort->starts || e->stored[node->result]))
            fail_msg("%s: node %u fuses into %u and stands alone", name, node->id, effort->kernel);
        if (effort->kernel != node->id && !e->nodes[effort->kernel].starts)
            fail_msg("%s: node %u fuses into %u, which is no kernel", name, node->id,
                     effort->kernel);
        for (uint32_t o = 0; o < node->noperands; o++) {
            const sf_node *maker = sf_maker(graph, node->operands[o]);
            if (!e->stored[node->operands[o]] && e->nodes[maker->id].kernel != effort->kernel)
                fail_msg("%s: node %u reads what is not stored", name, node->id);
        }
        for (uint32_t r = 0; r < node->nresults; r++)
            if (e->place[node->result + r] != SF_NONE && e->stored[node->result + r])
                assert_true(e->stored[e->place[node->result + r]]);
    }
    sf_arena_free(&arena);
}

/* What is not stored is read in its own kernel only, and kernels are kernels. */
static void test_steps_hold(void **state)
{
    (void)state;
    for (int i = 0; test_steps[i]; i++) {
        sf_graph *graph = test_step(test_steps[i]);
        check_step(graph, test_steps[i]);
        sf_graph_free(graph);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kernels),
        cmocka_unit_test(test_on_mesh),
        cmocka_unit_test(test_steps_hold),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
