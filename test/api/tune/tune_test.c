/* Tuning from C: settings that depend on each other, and tuners that run out of memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "sheaf/sheaf.h"

#define STEP "examples/gpt-micro.stablehlo.mlir"

typedef struct count {
    int runs;
} count;

/* A triangle: data = 1, 2, 4 by micro-batches = 1 .. data. */
static sf_status apply(void *context, sf_settings *settings, sf_primitives *list, sf_diag *diag)
{
    static const char *const recipes[] = {"dp", "zero1"};
    int64_t data, microbatches;
    int recipe;
    char mesh[32], number[32];
    ((count *)context)->runs++;
    sf_status status = sf_settings_int(settings, "data", 1, 2, 1, diag, &data);
    if (status == SF_OK)
        status = sf_settings_int(settings, "turns", 1, data, 1, diag, &microbatches);
    if (status == SF_OK)
        status = sf_settings_choice(settings, "recipe", 2, recipes, diag, &recipe);
    if (status != SF_OK)
        return status;
    snprintf(mesh, sizeof mesh, "data=%d", (int)data);
    snprintf(number, sizeof number, "%d", (int)microbatches);
    const sf_primitive said[] = {
        {.size = sizeof(sf_primitive), .kind = SF_PRIMITIVE_SET, .name = "mesh", .value = mesh},
        {.size = sizeof(sf_primitive),
         .kind = SF_PRIMITIVE_SET,
         .name = "recipe",
         .value = recipes[recipe]},
        {.size = sizeof(sf_primitive),
         .kind = SF_PRIMITIVE_SET,
         .name = "micro_batches",
         .value = number},
    };
    for (int i = 0; i < 3 && status == SF_OK; i++)
        status = sf_primitives_add(list, &said[i], diag, NULL);
    return status;
}

typedef struct opened {
    sf_graph *graph;
    sf_cluster *cluster;
} opened;

static int open_both(void **state)
{
    static opened both;
    assert_int_equal(sf_load(STEP, NULL, NULL, &both.graph), SF_OK);
    assert_int_equal(sf_cluster_open("1x2xCPU", NULL, &both.cluster), SF_OK);
    *state = &both;
    return 0;
}

static int close_both(void **state)
{
    const opened *both = *state;
    sf_cluster_free(both->cluster);
    sf_graph_free(both->graph);
    return 0;
}

static void test_tunes(void **state)
{
    const opened *both = *state;
    sf_graph *graph = both->graph;
    sf_tune_report *report;
    count runs = {0};
    sf_tune_options options = {
        .size = sizeof options, .cluster = both->cluster, .algorithm = "exhaustive"};
    assert_int_equal(sf_tune(graph, apply, &runs, &options, NULL, &report), SF_OK);
    assert_int_equal(report->points,
                     /* of data=1, one number of micro-batches; of data=2, two; by two recipes */
                     6);
    assert_int_equal(report->nvariables, 3);
    assert_string_equal(report->variables[1], "turns");
    assert_int_equal(report->ntrials, 6);
    assert_int_equal(runs.runs, 6 + 6 + 1); /* to know them, to try them, and for the plan */
    assert_true(report->best >= 0 && report->plan != NULL);
    for (int i = 0; i < report->ntrials; i++)
        assert_true(report->trials[report->best]->seconds <= report->trials[i]->seconds);
    assert_int_equal(sf_plan_check(report->plan, graph, 0, NULL), SF_OK);
    sf_tune_free(report);
    options.algorithm = "luck";
    assert_int_equal(sf_tune(graph, apply, &runs, &options, NULL, &report), SF_EUSAGE);
    sf_tune_free(report);
    options = (sf_tune_options){.size = sizeof(sf_tune_options)};
    assert_int_equal(sf_tune(graph, apply, &runs, &options, NULL, &report), SF_EUSAGE);
}

/* Whichever allocation fails, no memory is lost. */
static void test_memory(void **state)
{
    const opened *both = *state;
    sf_graph *graph = both->graph;
    sf_tune_report *report;
    count runs = {0};
    sf_tune_options options = {.size = sizeof options, .cluster = both->cluster, .trials = 1};
    size_t before = sf_mem_live();
    sf_status status = SF_ENOMEM;
    for (long after = 0; status != SF_OK; after += after / 8 + 1) {
        sf_mem_fail_after(after);
        status = sf_tune(graph, apply, &runs, &options, NULL, &report);
        sf_mem_fail_after(-1);
        sf_tune_free(report);
        assert_int_equal(sf_mem_live(), before);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_tunes), cmocka_unit_test(test_memory)};
    return cmocka_run_group_tests(tests, open_both, close_both);
}
