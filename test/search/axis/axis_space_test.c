/* The candidates hold whatever recipes do, each is one that its node's factors allow, and classes do not
 * grow with the depth of a network. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "op/op.h"
#include "plan/recipe/recipe.h"
#include "search/axis/axis_space.h"
#include "sheaf/sheaf.h"
#include "support/plans.h"

/* The strategy whose shares are those that the plan gives the node along the axis, or -1. */
static int strategy_in_plan(const sf_axis_space *space, const sf_plan *plan, const sf_node *node,
                            int axis)
{
    const sf_node_space *s = &space->nodes[node->id];
    for (uint32_t k = 0; k < s->nstrategies; k++) {
        bool same = true;
        for (uint32_t t = 0; same && t < s->ntensors; t++)
            same =
                sf_share_equal(s->shares[k * s->ntensors + t], plan->nodes[node->id][t].axes[axis]);
        if (same)
            return (int)k;
    }
    return -1;
}

static bool has_share(const sf_share_space *space, sf_share share)
{
    for (uint32_t k = 0; k < space->nshares; k++)
        if (sf_share_equal(space->shares[k], share))
            return true;
    return false;
}

static void check_recipe(const sf_graph *graph, const sf_axis_space *space, const char *name,
                         const sf_plan *plan)
{
    for (uint32_t i = 0; i < graph->top->narguments; i++)
        if (!has_share(&space->arguments[i], plan->arguments[i].axes[0]))
            fail_msg("%s: argument %s", name, graph->arguments[i].name);
    for (uint32_t i = 0; i < graph->top->nnodes; i++) {
        const sf_node *node = graph->nodes[graph->top->nodes[i]];
        if (!sf_is_transparent(node) && strategy_in_plan(space, plan, node, 0) < 0)
            fail_msg("%s: node %u, %s, in %s", name, node->id, node->def->name, node->scope->path);
    }
}

static void test_recipes(void **state)
{
    (void)state;
    int checked = 0;
    for (int i = 0; test_steps[i]; i++) {
        sf_graph *graph = test_step(test_steps[i]);
        for (int ranks = 2; ranks <= 4; ranks += 2) {
            sf_arena arena = {0};
            sf_axis_space *space = sf_axis_space_new(graph, ranks, &arena);
            for (int r = 0; sf_recipe_nth(r); r++) {
                test_refusal refusal;
                sf_plan *plan =
                    test_pin(graph, sf_recipe_nth(r)->name, ranks, NULL, NULL, &refusal);
                if (plan && plan->mesh.naxes == 1) {
                    char name[100];
                    snprintf(name, sizeof name, "%s, %s on %d", test_steps[i],
                             sf_recipe_nth(r)->name, ranks);
                    check_recipe(graph, space, name, plan);
                    checked++;
                }
                sf_plan_free(plan);
            }
            sf_arena_free(&arena);
        }
        sf_graph_free(graph);
    }
    assert_true(checked > 80);
}

/* Every candidate is a strategy of the op, whole is the first, and no two are the same. */
static void check_node(const sf_graph *graph, const sf_axis_space *space, const sf_node *node)
{
    sf_arena arena = {0};
    sf_factoring factoring;
    const sf_type **types = SF_ARRAY(&arena, node->noperands + node->nresults, const sf_type *);
    sf_op op = sf_op_of(graph, node, types);
    sf_op_factors(&op, &arena, &factoring);
    const sf_node_space *s = &space->nodes[node->id];
    assert_int_equal(s->ntensors, node->noperands + node->nresults);
    assert_int_equal(s->strategies[0].kind, SF_RUN_WHOLE);
    for (uint32_t k = 0; k < s->nstrategies; k++) {
        for (uint32_t t = 0; t < s->ntensors; t++) {
            sf_share share = s->shares[k * s->ntensors + t];
            sf_layout layout = {.axes = {share}};
            sf_mesh mesh = {.naxes = 1, .axes = {{"x", space->parts}}};
            assert_true(sf_share_equal(
                share, sf_strategy_share(&op, &factoring, &s->strategies[k], (int)t)));
            assert_true(sf_layout_fits(&layout, &mesh, types[t]->rank, types[t]->dims, NULL));
        }
        for (uint32_t j = 0; j < k; j++)
            assert_true(s->strategies[j].kind != s->strategies[k].kind ||
                        s->strategies[j].factor != s->strategies[k].factor ||
                        s->strategies[j].period != s->strategies[k].period ||
                        s->strategies[j].mask != s->strategies[k].mask);
    }
    sf_arena_free(&arena);
}

static void test_candidates(void **state)
{
    (void)state;
    for (int i = 0; test_steps[i]; i++) {
        sf_graph *graph = test_step(test_steps[i]);
        sf_arena arena = {0};
        sf_axis_space *space = sf_axis_space_new(graph, 2, &arena);
        for (uint32_t n = 0; n < graph->top->nnodes; n++)
            check_node(graph, space, graph->nodes[graph->top->nodes[n]]);
        sf_arena_free(&arena);
        sf_graph_free(graph);
    }
}

/* A split of heads, met on the other side of a reshape, is strided where heads are minor. */
static void test_strides(void **state)
{
    (void)state;
    static const char text[] =
        "func.func public @main(%x: tensor<4x6xf32>, %w: tensor<6x8xf32>, %v: tensor<4x3xf32>) -> "
        "tensor<4x2x3xf32> {\n"
        "%a = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<4x6xf32>, "
        "tensor<6x8xf32>) -> tensor<4x8xf32>\n"
        "%b = stablehlo.reshape %a : (tensor<4x8xf32>) -> tensor<4x2x4xf32>\n"
        "%c = stablehlo.dot_general %b, %v, contracting_dims = [2] x [0] : (tensor<4x2x4xf32>, "
        "tensor<4x3xf32>) -> tensor<4x2x3xf32>\n"
        "return %c : tensor<4x2x3xf32>\n}\n";
    sf_diag *diag = sf_diag_new();
    sf_graph *graph;
    assert_int_equal(sf_load_text(text, sizeof text - 1, "heads", NULL, diag, &graph), SF_OK);
    sf_arena arena = {0};
    sf_axis_space *space = sf_axis_space_new(graph, 2, &arena);
    assert_true(has_share(&space->arguments[1], (sf_share){SF_SPLIT, 0, 1, 8, 0, NULL}));
    assert_true(has_share(&space->arguments[1], (sf_share){SF_SPLIT, 0, 1, 4, 0, NULL}));
    assert_false(has_share(&space->arguments[1], (sf_share){SF_SPLIT, 0, 1, 2, 0, NULL}));
    assert_true(has_share(&space->arguments[1], (sf_share){0}));
    sf_arena_free(&arena);
    sf_graph_free(graph);
    sf_diag_free(diag);
}

/* Layers of two products with a residual, then gradient-like updates of every weight. */
static sf_graph *deep(int depth)
{
    sf_buf text = {0};
    const char *w = "tensor<8x8xf32>", *dims = "contracting_dims = [1] x [0]";
    sf_buf_puts(&text, "func.func public @main(%x: tensor<4x8xf32>");
    for (int i = 0; i < depth; i++)
        sf_buf_printf(&text,
                      ", %%u%d: %s loc(\"params/layer_%d/up\"), %%d%d: %s "
                      "loc(\"params/layer_%d/down\")",
                      i, w, i, i, w, i);
    sf_buf_puts(&text, ") -> (tensor<4x8xf32>");
    for (int i = 0; i < 2 * depth; i++)
        sf_buf_printf(&text, ", %s", w);
    sf_buf_puts(&text, ") {\n%h0 = stablehlo.tanh %x : tensor<4x8xf32>\n");
    for (int i = 0; i < depth; i++)
        sf_buf_printf(&text,
                      "%%a%d = stablehlo.dot_general %%h%d, %%u%d, %s : (tensor<4x8xf32>, %s) -> "
                      "tensor<4x8xf32>\n%%b%d = stablehlo.tanh %%a%d : tensor<4x8xf32>\n"
                      "%%c%d = stablehlo.dot_general %%b%d, %%d%d, %s : (tensor<4x8xf32>, %s) -> "
                      "tensor<4x8xf32>\n%%h%d = stablehlo.add %%c%d, %%h%d : tensor<4x8xf32>\n",
                      i, i, i, dims, w, i, i, i, i, i, dims, w, i + 1, i, i);
    for (int i = 0; i < depth; i++)
        sf_buf_printf(
            &text, "%%nu%d = stablehlo.negate %%u%d : %s\n%%nd%d = stablehlo.negate %%d%d : %s\n",
            i, i, w, i, i, w);
    sf_buf_printf(&text, "return %%h%d", depth);
    for (int i = 0; i < depth; i++)
        sf_buf_printf(&text, ", %%nu%d, %%nd%d", i, i);
    sf_buf_puts(&text, " : tensor<4x8xf32>");
    for (int i = 0; i < 2 * depth; i++)
        sf_buf_printf(&text, ", %s", w);
    sf_buf_puts(&text, "\n}\n");
    sf_diag *diag = sf_diag_new();
    sf_graph *graph;
    if (sf_load_text(text.text, strlen(text.text), "deep", NULL, diag, &graph) != SF_OK)
        fail_msg("%s", sf_diag_text(diag, 0));
    sf_diag_free(diag);
    sf_buf_free(&text);
    return graph;
}

static uint32_t classes_of_depth(int depth)
{
    sf_graph *graph = deep(depth);
    sf_arena arena = {0};
    sf_classes classes = sf_classes_of(graph, &arena);
    uint32_t middle = 2 * (uint32_t)(depth / 2) + 1;
    /* Two layers in the middle are alike; the two weights of a layer are not. */
    assert_int_equal(classes.arguments[middle], classes.arguments[middle + 2]);
    assert_int_not_equal(classes.arguments[middle], classes.arguments[middle + 1]);
    for (uint32_t i = 0; i < graph->top->nnodes; i++) {
        const sf_node *node = graph->nodes[graph->top->nodes[i]];
        const sf_node *first = graph->nodes[classes.nodes[node->id]];
        assert_int_equal(classes.nodes[first->id], first->id);
        assert_ptr_equal(first->def, node->def);
    }
    uint32_t count = classes.nclasses;
    sf_arena_free(&arena);
    sf_graph_free(graph);
    return count;
}

static void test_depth(void **state)
{
    (void)state;
    uint32_t few = classes_of_depth(24), many = classes_of_depth(96);
    assert_int_equal(few, many);
    assert_true(few < 6 * 24);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_recipes),
        cmocka_unit_test(test_candidates),
        cmocka_unit_test(test_strides),
        cmocka_unit_test(test_depth),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
