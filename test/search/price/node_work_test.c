/* What runs as one instruction, what is stored, and what a rank of a mesh does. */
#include "search/price/node_work.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "op/op.h"
#include "run/runner.h"
#include "sheaf/sheaf.h"
#include "support/plans.h"
#include "support/run.h"

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

static sf_efforts *efforts_of(const sf_graph *graph, sf_arena *arena)
{
    return sf_efforts_new(graph, sf_engine_target(NULL), arena);
}

/* What the program runs as one instruction has one, and is charged once with starting it. */
static void test_chain(void **state)
{
    (void)state;
    sf_graph *graph = test_step_text(chain);
    sf_arena arena = {0};
    const sf_efforts *e = efforts_of(graph, &arena);
    const sf_node *dot = test_node(graph, SF_OP_DOT_GENERAL, 0),
                  *u = test_node(graph, SF_OP_ADD, 0), *t = test_node(graph, SF_OP_TANH, 0),
                  *g = test_node(graph, SF_OP_MULTIPLY, 0),
                  *s = test_node(graph, SF_OP_EXPONENTIAL, 0),
                  *r = test_node(graph, SF_OP_REDUCE, 0);
    assert_true(e->nodes[dot->id].starts && e->nodes[dot->id].product);
    assert_true(!e->stored[u->result] && !e->stored[t->result]);
    assert_int_equal(e->nodes[u->id].inst, e->nodes[g->id].inst);
    assert_int_equal(e->nodes[t->id].inst, e->nodes[g->id].inst);
    assert_true(e->stored[s->result] && e->stored[r->result]);
    assert_int_equal(e->last[s->result], e->ninsts);
    const sf_node *bias = test_node(graph, SF_OP_BROADCAST_IN_DIM, 0);
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
    const sf_efforts *e = efforts_of(graph, &arena);
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

static void check_lists(const sf_efforts *e, const char *name)
{
    for (uint32_t i = 0; i < e->ninsts; i++) {
        int starts = 0;
        for (uint32_t k = e->first_of[i]; k < e->first_of[i + 1]; k++) {
            starts += e->nodes[e->nodes_of[k]].starts;
            assert_true(k == e->first_of[i] || e->nodes_of[k - 1] < e->nodes_of[k]);
            if (e->nodes[e->nodes_of[k]].inst != i)
                fail_msg("%s: node %u is in the list of instruction %u, and of %u", name,
                         e->nodes_of[k], i, e->nodes[e->nodes_of[k]].inst);
        }
        if (starts > 1)
            fail_msg("%s: instruction %u is started by %d nodes", name, i, starts);
    }
}

static void check_value(const sf_efforts *e, sf_value value, const char *name)
{
    if (e->place[value] != SF_NONE && !e->stored[e->place[value]])
        fail_msg("%s: value %u stands in what does not stand", name, value);
    if (e->made[value] > e->last[value] + 1)
        fail_msg("%s: value %u is made by instruction %u, and last read by %u", name, value,
                 e->made[value] - 1, e->last[value]);
}

static void check_values(const sf_efforts *e, const char *name)
{
    for (uint32_t i = 0; i < e->graph->top->nnodes; i++) {
        const sf_node *node = e->graph->nodes[e->graph->top->nodes[i]];
        for (uint32_t r = 0; r < node->nresults; r++)
            if (e->stored[node->result + r])
                check_value(e, node->result + r, name);
    }
}

/* Zeros between the spread elements of a transposed convolution are not multiplied, and not counted. */
static void test_spread_elements(void **state)
{
    (void)state;
    sf_graph *graph = test_step_text(
        "func.func @main(%x: tensor<2x4x4x8xf32>, %k: tensor<4x4x8x16xf32>) -> "
        "tensor<2x8x8x16xf32> {\n"
        "  %y = stablehlo.convolution(%x, %k) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, "
        "f],\n"
        "      window = {pad = [[2, 2], [2, 2]], lhs_dilate = [2, 2]}\n"
        "      {batch_group_count = 1 : i64, feature_group_count = 1 : i64}\n"
        "      : (tensor<2x4x4x8xf32>, tensor<4x4x8x16xf32>) -> tensor<2x8x8x16xf32>\n"
        "  return %y : tensor<2x8x8x16xf32>\n"
        "}\n");
    sf_arena arena = {0};
    const sf_efforts *e = efforts_of(graph, &arena);
    const sf_node *node = sf_maker(graph, graph->top->results[0]);
    assert_true(e->nodes[node->id].flops == 2.0 * 2 * 8 * 8 * 16 * 8 * (4 * 4 / (2 * 2)));
    sf_arena_free(&arena);
    sf_graph_free(graph);
}

/* Every instruction of a program is somebody's, and products have their flops in both. */
static void check_flops(const sf_graph *graph, const sf_efforts *e, const char *name)
{
    sf_program *program = test_lower(graph);
    double listed = 0, run = 0;
    for (uint32_t n = 0; n < graph->nnodes; n++)
        listed += e->nodes[n].product ? e->nodes[n].flops : 0;
    for (uint32_t i = 0; i < program->ninsts; i++) {
        const sf_inst *inst = &program->insts[i];
        run += inst->kind == SF_INST_DOT    ? sf_dot_flops(inst->dot)
               : inst->kind == SF_INST_CONV ? sf_conv_flops(inst->conv)
                                            : 0;
    }
    if (run != listed)
        fail_msg("%s: products of %g flops run, nodes list %g", name, run, listed);
    assert_int_equal(program->ninsts, e->ninsts);
    sf_program_free(program);
}

static void test_steps_hold(void **state)
{
    (void)state;
    for (int i = 0; test_steps[i]; i++) {
        sf_arena arena = {0};
        sf_graph *graph = test_step(test_steps[i]);
        const sf_efforts *e = efforts_of(graph, &arena);
        check_lists(e, test_steps[i]);
        check_values(e, test_steps[i]);
        check_flops(graph, e, test_steps[i]);
        sf_arena_free(&arena);
        sf_graph_free(graph);
    }
}

/* Attention of 256 places, which is one op forward and one backward where ranks have all places of a head, and products where they
 * have not. */
static void test_attention(void **state)
{
    (void)state;
    static const struct {
        const char *recipe;
        bool keeps;
    } rows[] = {{"dp", true}, {"tp", true}, {"sequence", false}};
    enum { BATCH = 64, HEADS = 16, PLACES = 256, DEPTH = 64, LAYERS = 2 };
    const double product = 2.0 * BATCH * HEADS * PLACES * PLACES * DEPTH;
    sf_graph *graph = test_step_of("plan", "gpt-batch");
    sf_arena arena = {0};
    const sf_efforts *e = efforts_of(graph, &arena);
    assert_non_null(e->plain);
    check_lists(e, "gpt-batch");
    check_values(e, "gpt-batch");
    double one = 0, several = 0, scores = 0;
    for (uint32_t n = 0; n < graph->nnodes; n++) {
        const sf_node_effort *by_op = &e->nodes[n], *by_products = &e->plain->nodes[n];
        if (by_op->scores == 0 || !by_op->product)
            continue;
        one += by_op->flops;
        several += by_products->flops;
        scores += by_products->charged >> __builtin_ctz(by_op->scores) & 1;
        assert_int_equal(by_op->charged >> __builtin_ctz(by_op->scores) & 1, 0);
    }
    assert_true(scores > 0);                      /* stand in memory */
    assert_true(several == LAYERS * 6 * product); /* two, and four of gradients */
    /* Half of the places see each other, and scores are made again for gradients. */
    assert_true(fabs(one - LAYERS * 7 * product / 2) < product * 1e-6);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        sf_plan *plan = test_plan(graph, rows[i].recipe, 2, NULL, NULL);
        if ((sf_efforts_under(e, plan) == e) != rows[i].keeps)
            fail_msg("%s: %s", rows[i].recipe, rows[i].keeps ? "products" : "an op");
        sf_plan_free(plan);
    }
    sf_arena_free(&arena);
    sf_graph_free(graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_chain),           cmocka_unit_test(test_on_mesh),
        cmocka_unit_test(test_spread_elements), cmocka_unit_test(test_steps_hold),
        cmocka_unit_test(test_attention),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
