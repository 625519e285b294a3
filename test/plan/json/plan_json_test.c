/* The plan as a file: a written plan reads back as the same plan; another step's, a broken or a
 * doctored file is refused, and the message has the place. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "plan/plan_reshards.h"
#include "sheaf/sheaf.h"
#include "support/plans.h"

static sf_status read_text(const sf_graph *graph, const char *text, size_t length, sf_plan **plan,
                           test_refusal *refusal)
{
    sf_diag *diag = sf_diag_new();
    refusal->text[0] = 0;
    refusal->status = sf_plan_read((sf_str){text, length}, "plan.json", graph, diag, plan);
    for (int i = 0; i < sf_diag_count(diag) && sf_diag_text(diag, i); i++) {
        size_t used = strlen(refusal->text);
        snprintf(refusal->text + used, sizeof refusal->text - used, "%s\n", sf_diag_text(diag, i));
    }
    assert_int_equal(refusal->status == SF_OK, sf_diag_count(diag) == 0);
    sf_diag_free(diag);
    return refusal->status;
}

static void check_same(const sf_graph *graph, const sf_plan *a, const sf_plan *b)
{
    const sf_block *top = graph->top;
    assert_string_equal(a->recipe, b->recipe);
    assert_int_equal(a->npins, b->npins);
    for (uint32_t i = 0; i < top->narguments; i++)
        assert_true(sf_layout_equal(&a->arguments[i], &b->arguments[i]));
    for (uint32_t i = 0; i < top->nresults; i++)
        assert_true(sf_layout_equal(&a->results[i], &b->results[i]));
    for (uint32_t i = 0; i < top->nnodes; i++) {
        const sf_node *node = graph->nodes[top->nodes[i]];
        for (uint32_t t = 0; t < node->noperands + node->nresults; t++)
            assert_true(sf_layout_equal(&a->nodes[node->id][t], &b->nodes[node->id][t]));
    }
    assert_memory_equal(a->pinned, b->pinned, graph->nvalues * sizeof *a->pinned);
}

/* Fields that a search writes into a plan. */
static sf_alternative alternatives[] = {{"search", "data=2,model=2", 0.1, 1000, true, true},
                                        {"zero3", "data=4", 1.25e-3, INT64_MAX, false, false}};
static sf_prediction prediction = {.step = "step.mlir",
                                   .cluster = "1x4xV100",
                                   .cluster_hash = 0xfedcba9876543210,
                                   .nodes = "0-1",
                                   .seconds = 0.1,
                                   .compute = 0.07,
                                   .exposed = 0.03,
                                   .hidden = 1.0 / 3,
                                   .traffic = 1e9,
                                   .bound = 0.05,
                                   .memory = 1000,
                                   .limit = 2000,
                                   .nalternatives = 2,
                                   .alternatives = alternatives};

static void check_prediction(const sf_prediction *a, const sf_prediction *b)
{
    assert_string_equal(a->step, b->step);
    assert_string_equal(a->cluster, b->cluster);
    assert_int_equal(a->cluster_hash, b->cluster_hash);
    assert_string_equal(a->nodes, b->nodes);
    assert_true(a->seconds == b->seconds && a->hidden == b->hidden && a->bound == b->bound);
    assert_int_equal(a->limit, b->limit);
    assert_int_equal(a->nalternatives, b->nalternatives);
    for (int i = 0; i < a->nalternatives; i++) {
        assert_string_equal(a->alternatives[i].mesh, b->alternatives[i].mesh);
        assert_int_equal(a->alternatives[i].memory, b->alternatives[i].memory);
        assert_int_equal(a->alternatives[i].fits, b->alternatives[i].fits);
    }
}

static void test_round_trip(void **state)
{
    (void)state;
    int plans = 0;
    for (int i = 0; test_steps[i]; i++) {
        sf_graph *graph = test_step(test_steps[i]);
        for (int r = 0; sf_recipe_name(r); r++) {
            test_refusal refusal;
            sf_plan *recomputed,
                *plan = test_pin(graph, sf_recipe_name(r), 4, NULL, NULL, &refusal);
            if (!plan)
                continue;
            sf_buf first = {0}, second = {0};
            bool predicted = plans % 2;
            plan->predicted = predicted ? &prediction : NULL;
            sf_plan_write(plan, graph, "-", &first);
            if (read_text(graph, first.text, first.length, &recomputed, &refusal) != SF_OK)
                fail_msg("%s: %s", test_steps[i], refusal.text);
            check_same(graph, plan, recomputed);
            assert_true(predicted == (recomputed->predicted != NULL));
            if (predicted)
                check_prediction(plan->predicted, recomputed->predicted);
            sf_plan_write(recomputed, graph, "-", &second);
            assert_string_equal(first.text, second.text);
            sf_buf_free(&first);
            sf_buf_free(&second);
            sf_plan_free(plan);
            sf_plan_free(recomputed);
            plans++;
        }
        sf_graph_free(graph);
    }
    assert_true(plans > 60);
}

/* The text with the first `from` after `after` replaced. */
static void replaced(const char *text, const char *after, const char *from, const char *to,
                     sf_buf *out)
{
    const char *start = strstr(text, after);
    const char *at = start ? strstr(start + strlen(after), from) : NULL;
    if (!at)
        fail_msg("the plan has no %s behind %s", from, after);
    sf_buf_printf(out, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
}

static const struct {
    const char *after, *from, *to, *says;
} changes[] = {
    {"", "sheaf plan", "another plan", "plan.json: error: this is no plan"},
    {"", "\"version\": 3", "\"version\": 2",
     "this plan file has version 2, and this build reads version 3"},
    {"\"step\"", ": \"", ": \"0", "plan.json:4:11: error: the plan is for another step"},
    {"", "\"step\"", "\"stop\"", "the plan has no \"step\""},
    {"\"order\"", ": \"", ": \"0", "the plan is for another text of this step"},
    {"", "\"mesh\"", "\"mash\"", "a plan has no \"mash\""},
    {"", "\"mesh\"", "\"compiled\": [\"nosuch\"], \"mesh\"", "the step has no scope \"nosuch\""},
    {"\"mesh\"", "\"data\": 2", "\"data\": 0", "the plan has no mesh that can be used"},
    {"\"mesh\"", "\"data\": 2", "\"data\": \"x\"", "a mesh has a whole number for each axis"},
    {"\"mesh\"", "\"data\": 2", "\"data\": 3", "plan.json:"},
    {"\"mesh\"", "\"data\": 2", "\"data\": 2000000000", "plan.json:"},
    {"\"mesh\"", "\"data\": 2", "\"dota\": 2", "is no pin for the mesh of this plan"},
    {"\"pins\"", "S(0)@data", "S(0)", "is no pin for the mesh of this plan"},
    {"\"pins\"", "\"/batch/x=S(0)@data\"", "7", "a pin is no string"},
    {"\"predicted\": ", "{", "[], \"x\": {", "a plan has no \"x\""},
    {"\"predicted\"", "\"step.mlir\"", "1", "\"predicted\" has no string \"step\""},
    {"\"predicted\"", "fedcba", "fedcbx", "is not 16 hex digits"},
    {"\"predicted\"", "\"bound\"", "\"bounds\"", "\"predicted\" has no number \"bound\""},
    {"\"predicted\"", "\"limit\": 2000", "\"limit\": 2e3", "no integers \"memory\" and \"limit\""},
    {"\"predicted\"", "\"alternatives\"", "\"others\"", "has no list \"alternatives\""},
    {"\"alternatives\"", "true", "1", "expected [NAME, MESH, SECONDS"},
    {"\"arguments\"", "batch/x", "batch/z", "the step has no argument \"batch/z\""},
    {"\"arguments\"", "[S(0)]", "[P(+)]", "argument batch/x cannot be partial"},
    {"\"arguments\"", "[S(0)]", "[S(9)]", "[S(9)] is no layout of tensor<8x"},
    {"\"arguments\"", "[S(0)]", "[S(0,3)]", "[S(0,3)] is no layout of tensor<8x"},
    {"\"arguments\"", "\"[S(0)]\"", "[]", "expected a layout"},
    {"\"arguments\"", "[S(0)]", "[S(0), R]", "[S(0), R] is no layout of"},
    {"\"arguments\"", "\"nodes\"", "\"notes\"", "a plan has no \"notes\""},
    {"\"nodes\": [", "[", "[7, ", "expected [NODE, OP, [LAYOUT"},
    {"\"nodes\": [\n", "[", "[-", "the step has no such node"},
    {"\"nodes\": [\n", "[", "[1000000", "the step has no such node"},
    {"\"nodes\": [\n", ", \"", ", \"un", "is a "},
    {"\"nodes\": [\n", "[\"", "[\"[R]\", \"", "layouts here"},
    {"\"nodes\": [\n", "[R]", "[At(0)]", "At is said of arguments alone"},
    {"\"nodes\": [\n", "[S(0)]", "[S(0)At(0)]", "At is said of arguments alone"},
};

/* The place in the file, but for errors about all of it. */
static void check_refused(const sf_graph *graph, const char *text, size_t length, const char *says)
{
    test_refusal refusal;
    sf_plan *plan;
    sf_status status = read_text(graph, text, length, &plan, &refusal);
    if (status == SF_OK)
        fail_msg("a plan was read that should say: %s", says);
    assert_true(status == SF_EINPUT || status == SF_EUNSUPPORTED);
    if (!strstr(refusal.text, says) || !strstr(refusal.text, "plan.json:"))
        fail_msg("%s lacks %s", refusal.text, says);
}

static void test_refusals(void **state)
{
    (void)state;
    sf_graph *graph = test_step("mlp-micro"), *other = test_step("gpt-micro");
    sf_plan *plan = test_plan(graph, "dp", 2, NULL, NULL);
    sf_buf text = {0};
    plan->predicted = &prediction;
    sf_plan_write(plan, graph, "-", &text);
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        sf_buf changed = {0};
        replaced(text.text, changes[i].after, changes[i].from, changes[i].to, &changed);
        check_refused(graph, changed.text, changed.length, changes[i].says);
        sf_buf_free(&changed);
    }
    check_refused(other, text.text, text.length, "the plan is for another step");
    /* Cut off anywhere, but for the last newline. */
    for (size_t length = 0; length + 1 < text.length; length += length < 2000 ? 1 : 97)
        check_refused(graph, text.text, length, "plan.json");
    sf_buf_free(&text);
    sf_plan_free(plan);
    sf_graph_free(graph);
    sf_graph_free(other);
}

/* Places of arguments follow from the pipeline, and those in the file are dropped: the rest has to
 * fit over all ranks. A node may not have an uneven partition. */
static void test_places(void **state)
{
    static const char step[] = "func.func public @main(%w: tensor<3x4xf32> loc(\"params/w\")) -> "
                               "tensor<3x4xf32> {\n"
                               "%a = stablehlo.tanh %w : tensor<3x4xf32>\n"
                               "return %a : tensor<3x4xf32>\n}\n";
    static const struct {
        const char *argument, *node, *says;
    } rows[] = {
        {"[S(0)At(0)]", "[R]", "the layout of argument params/w does not fit"},
        {"[R]", "[At(0:0-1,1:2)]", "At is said of arguments alone"},
        {"[R]", "[At(0,1)]", "At is said of arguments alone"},
        {"[R]", "[R]\"], [\"[R]\"]], [0, \"tanh\", [\"[R]", "node 0 comes twice"},
        {"[At(0:0-1,1:2)]", "[R]", NULL},
        {"[S(1)At(0)]", "[R]", NULL},
    };
    (void)state;
    sf_graph *graph = test_step_text(step);
    sf_plan *plan = test_plan(graph, NULL, 2, "data=2", NULL);
    sf_buf text = {0};
    sf_plan_write(plan, graph, "-", &text);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        sf_buf first = {0}, second = {0};
        char argument[100], node[100];
        snprintf(argument, sizeof argument, "\"arguments\": {\"params/w\": \"%s\"}",
                 rows[i].argument);
        snprintf(node, sizeof node, "\"nodes\": [[0, \"tanh\", [\"%s\"], [\"[R]\"]]]",
                 rows[i].node);
        replaced(text.text, "", "\"arguments\": {}", argument, &first);
        replaced(first.text, "", "\"nodes\": []", node, &second);
        sf_plan *read = NULL;
        test_refusal refusal;
        if (rows[i].says)
            check_refused(graph, second.text, second.length, rows[i].says);
        else if (read_text(graph, second.text, second.length, &read, &refusal) != SF_OK)
            fail_msg("%s", refusal.text);
        if (read)
            for (uint32_t a = 0; a < SF_MAX_AXES; a++)
                assert_true(!read->arguments[0].axes[a].on &&
                            !read->arguments[0].axes[a].partition);
        sf_plan_free(read);
        sf_buf_free(&first);
        sf_buf_free(&second);
    }
    sf_buf_free(&text);
    sf_plan_free(plan);
    sf_graph_free(graph);
}

/* The bytes from which messages are split are kept, and not said where they are the usual ones. */
static void test_split_messages(void **state)
{
    static const int64_t bytes[] = {SF_BUCKET_BYTES, 1, INT64_MAX};
    (void)state;
    sf_graph *graph = test_step("mlp-micro");
    sf_diag *diag = sf_diag_new();
    sf_plan *plan = NULL;
    sf_plan_spec options = {.size = sizeof options, .stages = "2", .micro_batches = 2};
    assert_int_equal(sf_pin_step(graph, &options, diag, &plan), SF_OK);
    for (int i = 0; i < 3; i++) {
        sf_buf text = {0}, spoiled = {0};
        sf_plan *read = NULL;
        test_refusal refusal;
        plan->pipeline->split_bytes = bytes[i];
        sf_plan_write(plan, graph, "-", &text);
        assert_int_equal(strstr(text.text, "split_messages") != NULL, i > 0);
        if (read_text(graph, text.text, text.length, &read, &refusal) != SF_OK)
            fail_msg("%s", refusal.text);
        assert_true(read->pipeline->split_bytes == bytes[i]);
        if (i == 1) {
            replaced(text.text, "", "\"split_messages\": 1", "\"split_messages\": 0", &spoiled);
            check_refused(graph, spoiled.text, spoiled.length, "expected a number of bytes");
        }
        sf_plan_free(read);
        sf_buf_free(&spoiled);
        sf_buf_free(&text);
    }
    sf_plan_free(plan);
    sf_diag_free(diag);
    sf_graph_free(graph);
}

/* A plan that reads but does not follow from the ops is refused before anything runs. */
static void test_contradictions(void **state)
{
    (void)state;
    sf_graph *graph = test_step("mlp-micro");
    sf_plan *plan = test_plan(graph, "dp", 2, NULL, NULL);
    int refused = 0;
    for (uint32_t i = 0; i < graph->top->nnodes; i++) {
        const sf_node *node = graph->nodes[graph->top->nodes[i]];
        sf_layout *layouts = plan->nodes[node->id], was = layouts[node->noperands];
        sf_diag *diag = sf_diag_new();
        layouts[node->noperands].axes[0] =
            was.axes[0].kind == SF_PARTIAL
                ? (sf_share){0}
                : (sf_share){.kind = SF_PARTIAL, .monoid = SF_MONOID_MAX};
        if (sf_plan_check(plan, graph, 0, diag) != SF_OK) {
            assert_non_null(strstr(sf_diag_text(diag, 0), "plan: "));
            refused++;
        }
        layouts[node->noperands] = was;
        sf_diag_free(diag);
    }
    assert_int_equal(refused, graph->top->nnodes);
    sf_plan_free(plan);
    sf_graph_free(graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),     cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_places),         cmocka_unit_test(test_split_messages),
        cmocka_unit_test(test_contradictions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
