/* Recipes: the number and kind of collectives of a step, against known ones; those that do not
 * apply give the reason; the same plan comes out every time. */
#include "plan/recipe/recipe.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "op/op.h"
#include "op/slots.h"
#include "plan/pin.h"
#include "sheaf/sheaf.h"
#include "support/plans.h"

/* Tensors by kind of collective and phase, but for single numbers: the loss, sums of scales. */
typedef struct tally {
    int nodes; /* a bucket of several tensors is one */
    int all_reduce[SF_PHASE_COUNT], all_gather[SF_PHASE_COUNT], reduce_scatter[SF_PHASE_COUNT],
        all_to_all[SF_PHASE_COUNT], permute[SF_PHASE_COUNT], scalars;
} tally;

static int *counter(tally *t, const sf_node *node)
{
    return sf_is(node, SF_OP_ALL_REDUCE)       ? t->all_reduce
           : sf_is(node, SF_OP_ALL_GATHER)     ? t->all_gather
           : sf_is(node, SF_OP_REDUCE_SCATTER) ? t->reduce_scatter
           : sf_is(node, SF_OP_ALL_TO_ALL)     ? t->all_to_all
                                               : t->permute;
}

static int sum(const int *counts)
{
    return counts[SF_FORWARD] + counts[SF_BACKWARD] + counts[SF_UPDATE];
}

/* axis < 0: of all axes. */
static tally count(const sf_graph *graph, const sf_plan *plan, int axis)
{
    tally t = {0};
    sf_local *local = test_local(graph, plan, 1);
    const sf_node *node;
    for (int i = 0; (node = test_collective(local, i)) != NULL; i++) {
        int64_t axes = node->attrs[SF_COLLECTIVE_AXES]->integer;
        if (axis >= 0 && axes != 1 << axis)
            continue;
        for (uint32_t o = 0; o < node->noperands; o++)
            if (sf_type_of(local->graph, node->operands[o])->count == 1)
                t.scalars++;
            else
                counter(&t, node)[node->phase]++;
        t.nodes++;
    }
    sf_local_free(local);
    return t;
}

static tally count_recipe(const sf_graph *graph, const char *recipe, int ranks)
{
    sf_plan *plan = test_plan(graph, recipe, ranks, NULL, NULL);
    tally t = count(graph, plan, -1);
    sf_plan_free(plan);
    return t;
}

static int count_role(const sf_graph *graph, sf_role role)
{
    int n = 0;
    for (uint32_t i = 0; i < graph->top->narguments; i++)
        n += graph->arguments[i].role == role;
    return n;
}

static int count_gradients(const sf_graph *graph)
{
    int n = 0;
    for (uint32_t i = 0; i < graph->top->narguments; i++)
        n += graph->arguments[i].gradient != SF_NONE;
    return n;
}

/* Each gradient once, all of them in one bucket for each phase that wants them; and the loss. */
static void test_data_parallel(void **state)
{
    (void)state;
    static const char *const steps[] = {"mlp-micro",   "gpt-micro",       "bert-micro",
                                        "llama-micro", "gpt-remat-micro", "t5-micro"};
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        sf_graph *graph = test_step(steps[i]);
        int params = count_role(graph, SF_ROLE_PARAM);
        assert_int_equal(count_gradients(graph), params);
        for (int ranks = 2; ranks <= 4; ranks += 2) {
            tally t = count_recipe(graph, "dp", ranks);
            if (sum(t.all_reduce) != params || t.all_reduce[SF_FORWARD] != 0)
                fail_msg("%s: %d all-reduces, %d of them forward, for %d gradients", steps[i],
                         sum(t.all_reduce), t.all_reduce[SF_FORWARD], params);
            assert_int_equal(sum(t.all_gather) + sum(t.reduce_scatter) + sum(t.all_to_all), 0);
            assert_in_range(t.scalars, 1, 3);
            assert_true(t.nodes <= t.scalars + 2);
        }
        sf_graph_free(graph);
    }
}

static int count_layers(const sf_graph *graph)
{
    int layers = 0, layer;
    for (uint32_t i = 0; i < graph->top->narguments; i++) {
        const char *at = strstr(graph->arguments[i].name, "layer_");
        if (at && sscanf(at, "layer_%d", &layer) == 1 && layer + 1 > layers)
            layers = layer + 1;
    }
    assert_true(layers > 0);
    return layers;
}

/* Two forward and two backward for each layer. */
static void test_megatron(void **state)
{
    (void)state;
    static const char *const steps[] = {"gpt-micro", "gpt-bf16-micro", "gpt-dropout-micro"};
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        sf_graph *graph = test_step(steps[i]);
        tally t = count_recipe(graph, "megatron", 2);
        int layers = count_layers(graph);
        if (t.all_reduce[SF_FORWARD] != 2 * layers || t.all_reduce[SF_BACKWARD] != 2 * layers)
            fail_msg("%s: %d forward, %d backward", steps[i], t.all_reduce[SF_FORWARD],
                     t.all_reduce[SF_BACKWARD]);
        assert_int_equal(t.all_reduce[SF_UPDATE], 0);
        assert_int_equal(sum(t.all_gather) + sum(t.reduce_scatter) + sum(t.all_to_all), 0);
        sf_plan *plan = test_plan(graph, "2d", 4, NULL, NULL);
        tally data = count(graph, plan, 0), model = count(graph, plan, 1);
        assert_int_equal(sum(data.all_reduce), count_role(graph, SF_ROLE_PARAM));
        assert_int_equal(sum(model.all_reduce), 4 * layers);
        sf_plan_free(plan);
        sf_graph_free(graph);
    }
}

/* Reshards in a phase: no tensor twice. */
static void check_once(const sf_graph *graph, const sf_plan *plan, sf_opcode code)
{
    sf_local *local = test_local(graph, plan, 0);
    const sf_node *a, *b;
    for (int i = 0; (a = test_collective(local, i)) != NULL; i++)
        for (int k = 0; k < i && sf_is(a, code); k++) {
            b = test_collective(local, k);
            if (sf_is(b, code) && a->phase == b->phase && a->operands[0] == b->operands[0])
                fail_msg("%s is moved twice", a->attrs[SF_COLLECTIVE_WHAT]->text);
        }
    sf_local_free(local);
}

/* Sharded state: each gradient is reduced to its shard, each new parameter gathered. */
static void test_zero(void **state)
{
    (void)state;
    sf_graph *graph = test_step("gpt-micro");
    int params = count_role(graph, SF_ROLE_PARAM);
    tally one = count_recipe(graph, "zero1", 4), two = count_recipe(graph, "zero2", 4);
    assert_int_equal(sum(one.reduce_scatter) + sum(one.all_reduce), params);
    assert_int_equal(one.all_gather[SF_UPDATE], params);
    assert_int_equal(sum(one.all_gather), params);
    assert_int_equal(sum(two.reduce_scatter), params);
    assert_int_equal(sum(two.all_reduce), 0);
    assert_int_equal(sum(two.all_gather), params);

    /* Every parameter once forward, the tied embedding for both that read it; backward those of
     * products and norms, whose biases are not needed, and not of the embedding, whose transpose is still there; nothing in the
     * update. */
    sf_plan *plan = test_plan(graph, "zero3", 4, NULL, NULL);
    tally three = count(graph, plan, -1);
    assert_int_equal(three.all_gather[SF_FORWARD], params);
    assert_int_equal(three.all_gather[SF_BACKWARD], 17);
    assert_int_equal(three.all_gather[SF_UPDATE], 0);
    assert_int_equal(sum(three.reduce_scatter), params);
    assert_int_equal(sum(three.all_reduce) + sum(three.all_to_all), 0);
    check_once(graph, plan, SF_OP_ALL_GATHER);
    check_once(graph, plan, SF_OP_REDUCE_SCATTER);
    sf_plan_free(plan);

    /* Between steps: gathers as of zero3, reductions as of zero1. */
    tally between = count_recipe(graph, "zero1-between", 4);
    assert_memory_equal(between.all_gather, three.all_gather, sizeof three.all_gather);
    assert_memory_equal(between.reduce_scatter, one.reduce_scatter, sizeof one.reduce_scatter);
    assert_memory_equal(between.all_reduce, one.all_reduce, sizeof one.all_reduce);
    sf_graph_free(graph);
}

/* Tokens go to their experts and come back, forward and backward; expert weights never move. */
static void test_experts(void **state)
{
    (void)state;
    sf_graph *graph = test_step("moe-micro");
    tally t = count_recipe(graph, "expert", 4);
    assert_int_equal(t.all_to_all[SF_FORWARD], 2);
    assert_int_equal(t.all_to_all[SF_BACKWARD], 2);
    assert_int_equal(sum(t.all_gather) + sum(t.reduce_scatter), 0);
    assert_in_range(sum(t.all_reduce), 1, count_role(graph, SF_ROLE_PARAM) - 2);
    sf_graph_free(graph);
}

static void test_refusals(void **state)
{
    (void)state;
    static const struct {
        const char *step, *recipe;
        int ranks;
        const char *mesh, *why;
    } rows[] = {
        {"mlp-micro", "expert", 4, NULL, "recipe expert does not apply: no parameter holds"},
        {"mlp-micro", "sequence", 4, NULL, "recipe sequence does not apply: no batch argument"},
        {"mlp-micro", "dp", 3, NULL, "batch/x, of size 8, does not split into 3 equal parts"},
        {"gpt-micro", "dp", 64, NULL, "of size 4, does not split into 64 equal parts"},
        {"gpt-micro", "megatron", 7, NULL, "recipe megatron does not apply: no two products"},
        {"gpt-micro", "2d", 7, NULL, "7 ranks are no product of two numbers above 1"},
        {"gpt-micro", "2d", 2, NULL, "2 ranks are no product of two numbers above 1"},
        {"gpt-micro", "2d+zero1", 7, NULL, "7 ranks are no product of two numbers above 1"},
        {"gpt-micro", "dp+sp+tp", 4, NULL, "4 ranks are no product of three numbers above 1"},
        {"gpt-micro", "dp+expert", 4, NULL, "recipe dp+expert does not apply: no parameter"},
        {"gpt-micro", "ep", 4, NULL, "recipe expert does not apply: no parameter holds"},
        {"gpt-micro", "dp", 0, "model=2",
         "recipe dp is about axis \"data\", which the mesh model=2"},
        {"gpt-micro", "dp+", 2, NULL, "there is no recipe \"\""},
        {"gpt-micro", "dp+dp+dp+dp+dp", 2, NULL, "more than 4 recipes are joined"},
        {"gpt-micro", "megatorn", 2, NULL, "did you mean \"megatron\"?"},
        {"gpt-micro", "fspd", 2, NULL, "did you mean \"fsdp\"?"},
        {"gpt-micro", "zero9", 2, NULL, "there is no recipe \"zero9\""},
        {"gpt-micro", "dp", 0, NULL, "a recipe needs a mesh or a number of ranks"},
        {"gpt-micro", "dp", 4, "data=2", "the mesh data=2 has 2 ranks, not 4"},
        {"gpt-micro", NULL, 0, NULL, "pins need a mesh"},
        {"gpt-micro", NULL, 0, "data=0", "data"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        sf_graph *graph = test_step(rows[i].step);
        test_refusal refusal;
        sf_plan *plan =
            test_pin(graph, rows[i].recipe, rows[i].ranks, rows[i].mesh, NULL, &refusal);
        assert_null(plan);
        bool applies = !strstr(refusal.text, "does not apply");
        assert_says(refusal, applies ? SF_EUSAGE : SF_EMISMATCH, rows[i].why);
        sf_graph_free(graph);
    }
}

/* Integers of two dimensions are tokens only where all that the batch has in the second dimension are as many: columns of
 * a table and pixels are none. */
static void test_sequence_has_tokens(void **state)
{
    (void)state;
    static const struct {
        int ids, others;
        bool applies;
    } rows[] = {{8, 8, true}, {8, 4, false}, {4, 8, false}, {6, 2, false}, {4, 4, true}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[2000];
        snprintf(
            text, sizeof text,
            "func.func public @main(%%w: tensor<f32> {tf.aliasing_output = 0 : i32} "
            "loc(\"params['w']\"), %%i: tensor<4x%dxi32> loc(\"batch['ids']\"), %%x: "
            "tensor<4x%dxf32> loc(\"batch['x']\")) -> (tensor<f32>, tensor<f32>) {\n"
            "  %%z = stablehlo.constant dense<0.0> : tensor<f32>\n"
            "  %%f = stablehlo.convert %%i : (tensor<4x%dxi32>) -> tensor<4x%dxf32>\n"
            "  %%a = stablehlo.reduce(%%f init: %%z) applies stablehlo.add across dimensions = "
            "[0, 1] : (tensor<4x%dxf32>, tensor<f32>) -> tensor<f32>\n"
            "  %%b = stablehlo.reduce(%%x init: %%z) applies stablehlo.add across dimensions = "
            "[0, 1] : (tensor<4x%dxf32>, tensor<f32>) -> tensor<f32>\n"
            "  %%c = stablehlo.multiply %%a, %%b : tensor<f32>\n"
            "  %%loss = stablehlo.multiply %%c, %%w : tensor<f32>\n"
            "  %%v = stablehlo.subtract %%w, %%c : tensor<f32>\n"
            "  return %%v, %%loss : tensor<f32>, tensor<f32>\n}\n",
            rows[i].ids, rows[i].others, rows[i].ids, rows[i].ids, rows[i].ids, rows[i].others);
        sf_graph *graph = test_step_text(text);
        test_refusal refusal;
        sf_plan *plan = test_pin(graph, "sequence", 2, NULL, NULL, &refusal);
        assert_int_equal(plan != NULL, rows[i].applies);
        if (!plan)
            assert_says(refusal, SF_EMISMATCH, "they are not the tokens of one sequence");
        sf_plan_free(plan);
        sf_graph_free(graph);
    }
}

/* Names that others have, and recipes that are joined, give the plans that they should. */
static void test_other_names(void **state)
{
    (void)state;
    static const struct {
        const char *name, *same;
        int ranks;
        const char *recipe; /* the plan's description */
    } rows[] = {
        {"ddp", "dp", 4, "dp"},
        {"fsdp", "zero3", 2, "zero3"},
        {"tp", "megatron", 2, "megatron"},
        {"sp", "sequence", 2, "sequence"},
        {"dp+tp", "2d", 4, "dp+megatron"},
        {"2d+zero1", "2d+zero1", 4, "2d+zero1"},
        {"2d+fsdp", "2d+zero3", 4, "2d+zero3"},
        {"2d+zero1-between", "2d+zero1-between", 4, "2d+zero1-between"},
    };
    sf_graph *graph = test_step("gpt-micro");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        sf_plan *plan = test_plan(graph, rows[i].name, rows[i].ranks, NULL, NULL);
        sf_plan *same = test_plan(graph, rows[i].same, rows[i].ranks, NULL, NULL);
        assert_string_equal(plan->recipe, rows[i].recipe);
        assert_int_equal(sf_plan_check(plan, graph, 0, NULL), SF_OK);
        same->recipe = plan->recipe;
        sf_buf x = {0}, y = {0};
        sf_plan_write(plan, graph, NULL, &x);
        sf_plan_write(same, graph, NULL, &y);
        assert_string_equal(x.text, y.text);
        sf_buf_free(&x);
        sf_buf_free(&y);
        sf_plan_free(plan);
        sf_plan_free(same);
    }
    sf_graph_free(graph);
}

/* One recipe after another on one graph, and then on another copy of it. */
static void test_determinism(void **state)
{
    (void)state;
    for (int i = 0; test_steps[i]; i++) {
        sf_graph *graph = test_step(test_steps[i]), *recomputed = test_step(test_steps[i]);
        for (int r = 0; sf_recipe_nth(r); r++) {
            test_refusal refusal;
            sf_plan *a = test_pin(graph, sf_recipe_nth(r)->name, 2, NULL, NULL, &refusal);
            sf_plan *b = test_pin(recomputed, sf_recipe_nth(r)->name, 2, NULL, NULL, &refusal);
            assert_int_equal(a == NULL, b == NULL);
            if (!a)
                continue;
            sf_buf x = {0}, y = {0};
            sf_plan_write(a, graph, NULL, &x);
            sf_plan_write(b, recomputed, NULL, &y);
            assert_string_equal(x.text, y.text);
            sf_buf_free(&x);
            sf_buf_free(&y);
            sf_plan_free(a);
            sf_plan_free(b);
        }
        sf_graph_free(graph);
        sf_graph_free(recomputed);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_data_parallel),
        cmocka_unit_test(test_megatron),
        cmocka_unit_test(test_zero),
        cmocka_unit_test(test_experts),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_determinism),
        cmocka_unit_test(test_sequence_has_tokens),
        cmocka_unit_test(test_other_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
