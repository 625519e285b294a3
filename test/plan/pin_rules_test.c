/* Rules against plans: plans that satisfy pins and plans that do not, by hand; and every plan that
 * is propagated with pins of arguments satisfies them, whatever the recipe. */
#include "plan/pin_rules.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "sheaf/sheaf.h"
#include "support/plans.h"

enum { MOST_PINS = 3 };

/* The number of the first pin that the plan breaks, or -1. */
static int broken(const sf_graph *graph, const sf_plan *plan, const char *const *texts)
{
    sf_arena arena = {0};
    sf_names names = sf_names_of(graph, &arena);
    sf_pin pins[MOST_PINS];
    sf_rules rules;
    int count = 0;
    for (; count < MOST_PINS && texts[count]; count++)
        assert_int_equal(sf_pin_parse(texts[count], &plan->mesh, &arena, NULL, &pins[count]),
                         SF_OK);
    assert_int_equal(sf_rules_new(graph, &names, &plan->mesh, count, pins, &arena, NULL, &rules),
                     SF_OK);
    int pin = sf_rules_broken(&rules, plan);
    sf_arena_free(&arena);
    return pin;
}

static const struct row {
    const char *recipe, *mesh;
    const char *pins[MOST_PINS + 1];
    int broken;
} rows[] = {
    {"dp", "data=2", {"batch/*=S(0)@data"}, -1},
    {"dp", "data=2", {"batch/*=S(0)@*"}, -1},
    {"dp", "data=2", {"batch/*=R@data"}, 0},
    {"dp", "data=2", {"batch/*=R@*"}, 0},
    {"dp", "data=2", {"batch/*=!S(0)@*"}, 0},
    {"dp", "data=2", {"batch/ids=!S(1)@*", "batch/*=!S(0)@data"}, 1},
    {"dp", "data=2", {"batch/ids=S(1)@*"}, 0},
    {"dp", "data=2", {"/params/*=R@*"}, -1},
    {"dp", "data=2", {"wte/embedding=S(0)@data"}, 0},
    /* Gradients are partial sums there, and those are not split. */
    {"dp", "data=2", {"grad/*=R@*"}, -1},
    {"zero2", "data=2", {"grad/wte/embedding=R@data"}, 0},
    {"zero2", "data=2", {"grad/wte/embedding=S(0)@data"}, -1},
    {"zero2", "data=2", {"grad/wte/embedding=S(0)@*"}, -1},
    {"zero2", "data=2", {"/params/wte/embedding=R@data", "/opt*wte/embedding=R@*"}, 1},
    /* Results in a scope. */
    {"dp", "data=2", {"layer_0/mlp/up=S(0)@data"}, -1},
    {"dp", "data=2", {"layer_0/mlp/up=R@data"}, 0},
    {"dp", "data=2", {"layer_0/mlp/up=!S(0)@*"}, 0},
    {"dp", "data=2", {"layer_0/mlp/up=!S(1)@*"}, -1},
    /* Several axes. */
    {"2d", "data=2,model=2", {"batch/*=S(0)@*", "mlp/up/kernel=S(1)@*", "wte/*=R@*"}, -1},
    {"2d", "data=2,model=2", {"batch/*=S(0)@data", "mlp/up/kernel=S(1)@data"}, 1},
    {"2d", "data=2,model=2", {"mlp/up/kernel=!S(1)@data", "mlp/up/kernel=!S(1)@model"}, 1},
    {"2d", "data=2,model=2", {"mlp/up/kernel=R@data", "mlp/up/kernel=S(1)@model"}, -1},
};

/* Whether there are rules for the pin on the mesh. */
static bool holds_on(const sf_graph *graph, const char *mesh_text, const char *text)
{
    sf_arena arena = {0};
    sf_names names = sf_names_of(graph, &arena);
    sf_mesh mesh;
    sf_pin pin;
    sf_rules rules;
    assert_int_equal(sf_mesh_parse(sf_str_of(mesh_text), &arena, NULL, &mesh), SF_OK);
    assert_int_equal(sf_pin_parse(text, &mesh, &arena, NULL, &pin), SF_OK);
    bool holds = sf_rules_new(graph, &names, &mesh, 1, &pin, &arena, NULL, &rules) == SF_OK;
    sf_arena_free(&arena);
    return holds;
}

/* A split along any axis needs one whose ranks may have different parts. */
static void test_no_axis(void **state)
{
    (void)state;
    static const struct {
        const char *mesh;
        bool splits;
    } meshes[] = {{"data=2", true},         {"unused=2,data=2", true},
                  {"data=1,model=2", true}, {"unused=2,data=1", false},
                  {"unused=2", false},      {"unused=2,unused2=2", false},
                  {"pipe=2", false},        {"pipe=2,model=2", true},
                  {"data=1", true} /* one rank has one layout */};
    sf_graph *graph = test_step("gpt-micro");
    for (size_t m = 0; m < sizeof meshes / sizeof *meshes; m++) {
        assert_int_equal(holds_on(graph, meshes[m].mesh, "wte/embedding=S(-1)@*"),
                         meshes[m].splits);
        assert_true(holds_on(graph, meshes[m].mesh, "wte/embedding=R@*"));
        assert_true(holds_on(graph, meshes[m].mesh, "wte/embedding=!S(1)@*"));
    }
    sf_graph_free(graph);
}

static void test_rows(void **state)
{
    (void)state;
    sf_graph *graph = test_step("gpt-micro");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        sf_plan *plan = test_plan(graph, rows[i].recipe, 0, rows[i].mesh, NULL);
        int pin = broken(graph, plan, rows[i].pins);
        if (pin != rows[i].broken)
            fail_msg("row %zu, %s: breaks %d, expected %d", i, rows[i].pins[0], pin,
                     rows[i].broken);
        sf_plan_free(plan);
    }
    sf_graph_free(graph);
}

/* Pins that some recipes keep to and others do not. */
static void test_completed(void **state)
{
    (void)state;
    static const char *const sets[][MOST_PINS + 1] = {
        {"batch/*=R@*"},
        {"*=R@*"},
        {"/params/*=!S(0)@*", "/params/*=!S(1)@*"},
        {"mlp/up/kernel=S(0)@*", "mlp/down/kernel=S(1)@*"},
        {"layer_*=R@*"},
        {"layer_0*=!S(0)@*", "layer_1*=!S(1)@*"},
        {"wte/embedding=S(0)@*", "batch/*=!S(0)@*"},
    };
    sf_graph *graph = test_step("gpt-micro");
    int kept = 0, changed = 0;
    for (int r = 0; sf_recipe_name(r); r++)
        for (size_t s = 0; s < sizeof sets / sizeof *sets; s++) {
            test_refusal refusal;
            sf_plan *free = test_pin(graph, sf_recipe_name(r), 4, NULL, NULL, &refusal);
            if (!free)
                continue; /* the recipe does not apply */
            sf_plan *plan = test_plan(graph, sf_recipe_name(r), 4, NULL, sets[s]);
            if (broken(graph, plan, sets[s]) >= 0)
                fail_msg("%s with %s breaks it", sf_recipe_name(r), sets[s][0]);
            changed += broken(graph, free, sets[s]) >= 0;
            kept++;
            sf_plan_free(free);
            sf_plan_free(plan);
        }
    assert_true(kept > 40 && changed > 20);
    sf_graph_free(graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_no_axis),
        cmocka_unit_test(test_completed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
