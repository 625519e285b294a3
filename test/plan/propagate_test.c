/* Pins and their consequences: precedence, patterns, and errors, on a step small enough to know
 * every layout of. */
#include "plan/propagate.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "ir/name.h"
#include "sheaf/sheaf.h"
#include "support/plans.h"

/* The layout of the tensor of this name, "a", "a,b" of an argument, as text. */
static void layout_of(const sf_graph *graph, const sf_plan *plan, const char *name, char text[200])
{
    sf_arena arena = {0};
    sf_names names = sf_names_of(graph, &arena);
    sf_buf buf = {0};
    for (size_t v = 0; v < graph->nvalues && buf.length == 0; v++)
        if (strcmp(names.values[v], name) == 0) {
            const sf_type *type = sf_type_of(graph, (sf_value)v);
            sf_layout_print(sf_plan_layout(plan, graph, (sf_value)v), &plan->mesh, type->rank,
                            type->dims, &buf);
        }
    snprintf(text, 200, "%s", buf.text ? buf.text : "none");
    sf_buf_free(&buf);
    sf_arena_free(&arena);
}

enum { MOST_PINS = 4 };
static const struct row {
    const char *mesh, *pins[MOST_PINS];
    const char *name, *layout; /* of this value */
} rows[] = {
    {"data=2", {"batch/x=S(0)@data"}, "batch/x", "[S(0)]"},
    {"data=2", {"/batch/x=S(0)@data"}, "batch/x", "[S(0)]"},
    {"data=2", {"x=S(0)@data"}, "batch/x", "[S(0)]"},
    {"data=2", {"batch/*=S(0)@data"}, "batch/y", "[S(0)]"},
    {"data=2", {"batch/?=S(0)@data"}, "batch/y", "[S(0)]"},
    {"data=2", {"  batch/x  =  S(0)  @ data"}, "batch/x", "[S(0)]"},
    /* The reach of the batch. */
    {"data=2", {"batch/x=S(0)@data"}, "batch/y", "[S(0)]"},
    {"data=2", {"batch/x=S(0)@data"}, "params/fc1/kernel", "[R]"},
    /* A parameter's pin is one for its state and its gradient; after a slash for itself. */
    {"model=2", {"fc1/kernel=S(1)@model"}, "params/fc1/kernel", "[S(1)]"},
    {"model=2", {"fc1/kernel=S(1)@model"}, "opt/0/mu/params/fc1/kernel", "[S(1)]"},
    {"model=2", {"fc1/kernel=S(1)@model"}, "grad/fc1/kernel", "[S(1)]"},
    /* The first pin counts. */
    {"data=2",
     {"/params/fc1/kernel=S(0)@data", "fc1/kernel=S(1)@data"},
     "params/fc1/kernel",
     "[S(0)]"},
    {"data=2",
     {"/params/fc1/kernel=S(0)@data", "fc1/kernel=S(1)@data"},
     "opt/0/mu/params/fc1/kernel",
     "[S(1)]"},
    {"data=2", {"/params/*=R@data", "fc1/kernel=S(0)@data"}, "params/fc1/kernel", "[R]"},
    {"data=2",
     {"/params/*=R@data", "fc1/kernel=S(0)@data"},
     "opt/0/mu/params/fc1/kernel",
     "[S(0)]"},
    {"data=2", {"grad/fc1/kernel=R@data", "batch/*=S(0)@data"}, "params/fc1/kernel", "[R]"},
    /* Two axes: one each, and both on one dimension. */
    {"a=2,b=2", {"fc1/kernel=S(0)@a", "fc1/kernel=S(1)@b"}, "params/fc1/kernel", "[S(0), S(1)]"},
    {"a=2,b=2", {"fc1/kernel=S(1)@a", "fc1/kernel=S(1)@b"}, "params/fc1/kernel", "[S(1), S(1)]"},
    {"a=2,b=2", {"fc1/kernel=S(1)@b"}, "params/fc1/kernel", "[R, S(1)]"},
    /* Strided. */
    {"a=2", {"fc1/kernel=S(1,4)@a"}, "params/fc1/kernel", "[S(1,4)]"},
    /* Any axis: every one, or the first that can. */
    {"a=2,b=2", {"fc1/kernel=S(1)@*"}, "params/fc1/kernel", "[S(1), R]"},
    {"a=2,b=2", {"fc1/kernel=R@a", "fc1/kernel=S(1)@*"}, "params/fc1/kernel", "[R, S(1)]"},
    {"a=2,b=2", {"fc1/kernel=S(0)@b", "fc1/kernel=S(0)@*"}, "params/fc1/kernel", "[R, S(0)]"},
    {"a=3,b=2", {"fc1/kernel=S(1)@*"}, "params/fc1/kernel", "[R, S(1)]"},
    {"a=2,b=2", {"fc1/bias=R@*", "fc1/kernel=S(1)@a"}, "params/fc1/bias", "[R, R]"},
    {"a=2,b=2", {"fc1/kernel=S(1)@a"}, "params/fc1/bias", "[S(0), R]"},
    /* Forbidden splits stay out, where propagation would bring them, and other splits do not. */
    {"a=2", {"fc1/bias=!S(0)@a", "fc1/kernel=S(1)@a"}, "params/fc1/bias", "[R]"},
    {"a=2", {"fc1/bias=!S(0)@*", "fc1/kernel=S(1)@a"}, "params/fc1/bias", "[R]"},
    {"a=2", {"fc2/kernel=!S(1)@a", "fc1/kernel=S(1)@a"}, "params/fc2/kernel", "[S(0)]"},
    {"a=2", {"fc2/kernel=!S(0)@a", "fc1/kernel=S(1)@a"}, "params/fc2/kernel", "[R]"},
    /* Axes of one rank. */
    {"a=1,b=2", {"fc1/kernel=S(1)@a", "fc1/kernel=S(0)@b"}, "params/fc1/kernel", "[S(1), S(0)]"},
    {"a=2,b=1", {"batch/*=S(0)@a", "fc1/kernel=S(1)@b"}, "params/fc1/kernel", "[R, S(1)]"},
    {"a=1", {"fc1/kernel=S(1)@a"}, "params/fc1/kernel", "[S(1)]"},
};

static int count_pins(const struct row *row)
{
    int n = 0;
    while (n < MOST_PINS && row->pins[n])
        n++;
    return n;
}

static void test_pins(void **state)
{
    (void)state;
    sf_graph *graph = test_step("mlp-micro");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *pins[MOST_PINS + 1] = {0};
        char text[200];
        memcpy(pins, rows[i].pins, (size_t)count_pins(&rows[i]) * sizeof *pins);
        sf_plan *plan = test_plan(graph, NULL, 0, rows[i].mesh, pins);
        layout_of(graph, plan, rows[i].name, text);
        if (strcmp(text, rows[i].layout) != 0)
            fail_msg("row %d, %s: %s is %s, expected %s", (int)i, pins[0], rows[i].name, text,
                     rows[i].layout);
        sf_diag *diag = sf_diag_new();
        if (sf_plan_check(plan, graph, 0, diag) != SF_OK)
            fail_msg("row %d: %s", (int)i, sf_diag_text(diag, 0));
        sf_diag_free(diag);
        sf_plan_free(plan);
    }
    sf_graph_free(graph);
}

static void test_refusals(void **state)
{
    (void)state;
    static const struct {
        const char *mesh, *pin, *why;
    } wrongs[] = {
        {"data=2", "batch/z=S(0)@data", "pin \"batch/z=S(0)@data\" matches no argument, gradient"},
        {"data=2", "/kernel=S(0)@data", "matches no argument"},
        {"data=2", "atch/x=S(0)@data", "matches no argument"},
        {"data=3", "batch/x=S(0)@data", "dimension 0 of size 8 does not split into 3 equal parts"},
        {"data=3", "batch/x=S(0)@data", "batch/x, tensor<8x"},
        {"data=2", "batch/y=S(1)@data", "batch/y, tensor<8x"},
        {"data=2", "batch/x=S(0)@model", "the mesh data=2 has no axis \"model\""},
        {"data=2", "batch/x=Q@data", "Q"},
        {"data=2", "batch/x=S@data", "S"},
        {"data=2", "batch/x=S(-1)@data", "S(-1)"},
        {"data=2", "batch/x=S(0,0)@data", "S(0,0)"},
        {"data=2", "batch/x=S(0,3)@data", "pin \"batch/x=S(0,3)@data\": batch/x"},
        {"data=2", "batch/x=P(+)@data", "partial values come by themselves"},
        {"data=2", "batch/x=!R@data", "only splits can be forbidden"},
        {"data=2", "batch/x=!S(0,2)@data", "with any period"},
        {"data=2", "batch/x=!@data", "no share between '=' and '@'"},
        {"data=2", "batch/x=S(0)@*data", "expected the name of an axis after '@'"},
        {"data=2", "batch/x=S(0)@", "expected the name of an axis after '@'"},
        {"data=2", "batch/x=S(99)@data", "no tensor has so many dimensions"},
        {"data=2", "batch/y=S(3)@*", "there is no dimension 3"},
        {"data=2", "batch/y=!S(3)@*", "fits none of the tensors"},
        {"data=3", "batch/x=S(0)@*", "does not split into 3 equal parts"},
        {"data=2", "batch/x=S(0)", "no '@AXIS' at the end"},
        {"data=2", "batch/x", "expected '=' after a pattern"},
        {"data=2", "=S(0)@data", "expected '=' after a pattern"},
        {"data=2", "  =S(0)@data", "no pattern in front of '='"},
        {"data=2", "", "expected '=' after a pattern"},
        {"a=2,a=2", "batch/x=S(0)@a", "a"},
    };
    sf_graph *graph = test_step("mlp-micro");
    for (size_t i = 0; i < sizeof wrongs / sizeof *wrongs; i++) {
        const char *pins[] = {wrongs[i].pin, NULL};
        test_refusal refusal;
        sf_plan *plan = test_pin(graph, NULL, 0, wrongs[i].mesh, pins, &refusal);
        assert_null(plan);
        assert_says(refusal, SF_EUSAGE, wrongs[i].why);
    }
    sf_graph_free(graph);
}

/* Pins that cannot hold together; each of them could alone. */
static void test_contradictions(void **state)
{
    (void)state;
    static const struct {
        const char *mesh, *pins[4], *why;
    } rows_of[] = {
        {"a=2",
         {"fc1/kernel=S(0)@a", "fc1/kernel=S(1)@a"},
         "pin \"fc1/kernel=S(1)@a\" contradicts pin \"fc1/kernel=S(0)@a\""},
        {"a=2", {"fc1/kernel=S(0)@a", "fc1/kernel=R@a"}, "contradicts pin \"fc1/kernel=S(0)@a\""},
        {"a=2", {"fc1/kernel=R@*", "fc1/*=S(0)@a"}, ""},
        {"a=2", {"fc1/*=R@*", "fc1/kernel=S(0)@a"}, "contradicts pin \"fc1/*=R@*\""},
        {"a=2", {"fc1/kernel=!S(0)@*", "fc1/kernel=S(0)@a"}, "contradicts pin"},
        {"a=2", {"fc1/kernel=S(0)@a", "fc1/kernel=!S(0)@a"}, "contradicts pin"},
        {"a=2,b=2", {"fc1/kernel=S(0)@a", "fc1/kernel=!S(0)@*"}, ""},
        {"a=2,b=2", {"fc1/kernel=S(0)@*", "fc1/kernel=R@*"}, "no axis is left"},
        {"a=2,b=2", {"fc1/kernel=S(0)@*", "fc1/kernel=!S(0)@a", "fc1/kernel=!S(0)@b"}, "no axis"},
        {"a=2,b=2", {"fc1/kernel=S(0)@*", "fc1/kernel=!S(0)@a"}, ""},
        {"a=2,b=2", {"fc1/kernel=S(0)@a", "fc1/kernel=S(1)@*"}, ""},
        {"a=2", {"fc1/kernel=S(0)@a", "fc1/kernel=S(1)@*"}, "contradicts pin"},
        {"a=4,b=4", {"batch/x=S(0)@a", "batch/x=S(0)@b"}, "does not go with the others"},
    };
    sf_graph *graph = test_step("mlp-micro");
    for (size_t i = 0; i < sizeof rows_of / sizeof *rows_of; i++) {
        test_refusal refusal;
        sf_plan *plan = test_pin(graph, NULL, 0, rows_of[i].mesh, rows_of[i].pins, &refusal);
        if (*rows_of[i].why) {
            assert_null(plan);
            assert_says(refusal, SF_EUSAGE, rows_of[i].why);
        } else if (!plan) {
            fail_msg("row %zu: %s", i, refusal.text);
        }
        sf_plan_free(plan);
    }
    sf_graph_free(graph);
}

/* In a scope fitting values are split and others are skipped; if none fits, that is an error. */
static void test_scopes(void **state)
{
    (void)state;
    sf_graph *graph = test_step("gpt-micro");
    const char *good[] = {"batch/*=S(0)@data", "layer_?/norm1=S(1)@model", NULL};
    sf_plan *plan = test_plan(graph, NULL, 0, "data=2,model=2", good);
    int split = 0;
    for (size_t v = 0; v < graph->nvalues; v++) {
        const sf_node *node = sf_maker(graph, (sf_value)v);
        bool inside = node && node->phase == SF_FORWARD && plan->nodes[node->id] &&
                      strcmp(node->scope->path, "layer_0/norm1") == 0;
        if (inside) {
            sf_share share = sf_plan_layout(plan, graph, (sf_value)v)->axes[1];
            split += share.kind == SF_SPLIT && share.dim == 1;
            assert_int_equal(plan->pinned[v], 1);
        }
    }
    assert_true(split > 5);
    sf_plan_free(plan);
    const char *bad[] = {"layer_0/norm1=S(5)@model", NULL};
    test_refusal refusal;
    assert_null(test_pin(graph, NULL, 0, "model=2", bad, &refusal));
    assert_says(refusal, SF_EUSAGE, "fits none of the tensors that it matches");
    sf_graph_free(graph);
}

/* A person's pins go before those of a recipe. */
static void test_over_recipe(void **state)
{
    (void)state;
    sf_graph *graph = test_step("mlp-micro");
    const char *pins[] = {"/params/fc1/kernel=R@data", NULL};
    char text[200];
    sf_plan *plan = test_plan(graph, "zero3", 2, NULL, NULL);
    layout_of(graph, plan, "params/fc1/kernel", text);
    assert_string_not_equal(text, "[R]");
    sf_plan_free(plan);
    plan = test_plan(graph, "zero3", 2, NULL, pins);
    layout_of(graph, plan, "params/fc1/kernel", text);
    assert_string_equal(text, "[R]");
    assert_int_equal(plan->pinned[graph->top->arguments[0]] >= 0, 1);
    sf_plan_free(plan);
    sf_graph_free(graph);
}

/* Names by pattern: all of them against one by one. */
static void test_names(void **state)
{
    (void)state;
    static const char *const patterns[] = {
        "*",          "/params/*",     "kernel",  "layer_?/attn/q/kernel",
        "/batch/ids", "/layer_0/attn", "nothing", "/grad/*"};
    sf_graph *graph = test_step("gpt-micro");
    sf_arena arena = {0};
    sf_names names = sf_names_of(graph, &arena);
    for (size_t p = 0; p < sizeof patterns / sizeof *patterns; p++) {
        size_t count, matched = 0;
        bool *found = SF_ARRAY(&arena, graph->nvalues, bool);
        const sf_named **list = sf_names_match(&names, patterns[p], &arena, &count);
        for (size_t i = 0; i < count; i++)
            for (sf_value v = list[i]->first; v != SF_NONE; v = names.same[v]) {
                assert_false(found[v]);
                found[v] = true;
            }
        for (size_t v = 0; v < graph->nvalues; v++) {
            bool matches = *names.values[v] && sf_name_matches(patterns[p], names.values[v]);
            assert_int_equal(found[v], matches);
            matched += matches;
        }
        assert_int_equal(matched == 0, strcmp(patterns[p], "nothing") == 0);
    }
    sf_arena_free(&arena);
    sf_graph_free(graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pins),           cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_contradictions), cmocka_unit_test(test_scopes),
        cmocka_unit_test(test_over_recipe),    cmocka_unit_test(test_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
