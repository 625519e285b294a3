/* What must hold between plans of one step: with more devices, more memory, faster links, more levels or fewer options fixed, a
 * plan is not slower; threads, names of axes and links that no rank uses make no difference. bench/plan_properties has the same of
 * real sizes, with those that do not hold yet. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "plan/plan.h"
#include "sheaf/sheaf.h"
#include "support/plans.h"
#include "support/sanitized.h"

#define SLACK 0.01

/* A search: of 0, the default. */
typedef struct search {
    const char *cluster;
    const char *said; /* fields of a specification, "stages=2 schedule=zb-v"; NULL: none */
    double share;     /* of the memory that the plan without a limit takes */
    int level, threads;
} search;

/* The first must not be slower than the second; with `same`, both take the same. */
typedef struct pair {
    const char *property;
    search faster, slower;
    bool same;
} pair;

static const pair pairs[] = {
    {"more devices", {.cluster = "1x2xV100"}, {.cluster = "1x1xV100"}, false},
    {"more devices", {.cluster = "1x4xV100"}, {.cluster = "1x2xV100"}, false},
    {"more devices", {.cluster = "2x4xV100"}, {.cluster = "1x4xV100"}, false},
    {"more memory",
     {.cluster = "1x4xV100", .share = 0.9},
     {.cluster = "1x4xV100", .share = 0.7},
     false},
    {"more memory", {.cluster = "1x4xV100"}, {.cluster = "1x4xV100", .share = 0.9}, false},
    {"faster links", {.cluster = "2x2xV100@100G"}, {.cluster = "2x2xV100@10G"}, false},
    {"fewer options", {.cluster = "1x4xV100"}, {.cluster = "1x4xV100", .said = "stages=1"}, false},
    {"fewer options", {.cluster = "1x4xV100"}, {.cluster = "1x4xV100", .said = "stages=2"}, false},
    {"fewer options",
     {.cluster = "1x4xV100"},
     {.cluster = "1x4xV100", .said = "mesh=data=4"},
     false},
    {"fewer options",
     {.cluster = "1x4xV100"},
     {.cluster = "1x4xV100", .said = "mesh=data=2,model=2"},
     false},
    {"fewer options",
     {.cluster = "1x4xV100"},
     {.cluster = "1x4xV100", .said = "recompute=none"},
     false},
    {"fewer options",
     {.cluster = "1x4xV100"},
     {.cluster = "1x4xV100", .said = "shard_state=between"},
     false},
    {"fewer options",
     {.cluster = "1x4xV100"},
     {.cluster = "1x4xV100", .said = "micro_batches=2"},
     false},
    {"fewer options",
     {.cluster = "2x2xV100@10G"},
     {.cluster = "2x2xV100@10G", .said = "passes=none"},
     false},
    {"fewer options",
     {.cluster = "2x2xV100@10G"},
     {.cluster = "2x2xV100@10G", .said = "passes=overlap"},
     false},
    {"fewer options",
     {.cluster = "2x2xV100@10G"},
     {.cluster = "2x2xV100@10G", .said = "passes=fsdp,unshard,prefetch,defer-gradient-readers"},
     false},
    {"fewer options",
     {.cluster = "2x2xV100@10G"},
     {.cluster = "2x2xV100@10G", .said = "shard_state=full"},
     false},
    {"fewer options",
     {.cluster = "2x2xV100@10G"},
     {.cluster = "2x2xV100@10G", .said = "recompute=cheap"},
     false},
    {"fewer options",
     {.cluster = "2x2xV100@10G"},
     {.cluster = "2x2xV100@10G", .said = "micro_batches=1"},
     false},
    {"fewer options",
     {.cluster = "1x3xV100"},
     {.cluster = "1x3xV100", .said = "stages=3 micro_batches=4"},
     false},
    {"higher level", {.cluster = "1x4xV100"}, {.cluster = "1x4xV100", .level = 2}, false},
    {"threads", {.cluster = "1x4xV100"}, {.cluster = "1x4xV100", .threads = 3}, true},
    {"names of axes",
     {.cluster = "1x4xV100", .said = "mesh=data=2,model=2"},
     {.cluster = "1x4xV100", .said = "mesh=z=2,y=2"},
     true},
    {"unused links", {.cluster = "1x4xV100@10G"}, {.cluster = "1x4xV100@4x100G"}, true},
};

/* What searches found, each made once. */
typedef struct found {
    const search *by;
    double seconds; /* of a step, infinite where nothing fits */
    int64_t memory;
} found;
enum { PAIRS = sizeof pairs / sizeof *pairs };
typedef struct finder {
    const sf_graph *graph;
    int count;
    found all[2 * PAIRS + 1];
} finder;

static bool is_same(const search *a, const search *b)
{
    return strcmp(a->cluster, b->cluster) == 0 && a->share == b->share && a->level == b->level &&
           a->threads == b->threads && strcmp(a->said ? a->said : "", b->said ? b->said : "") == 0;
}

static void say(sf_plan_spec *spec, char *said, sf_diag *diag)
{
    char *state = NULL;
    for (char *field = strtok_r(said, " ", &state); field; field = strtok_r(NULL, " ", &state)) {
        char *value = strchr(field, '=');
        *value++ = '\0';
        assert_int_equal(sf_plan_spec_set(spec, field, value, diag), SF_OK);
    }
}

static const found *find(finder *f, const search *by)
{
    for (int i = 0; i < f->count; i++)
        if (is_same(f->all[i].by, by))
            return &f->all[i];
    static const search roomy = {.cluster = "1x4xV100"};
    sf_diag *diag = sf_diag_new();
    sf_cluster *cluster;
    sf_plan *plan = NULL;
    char said[200];
    sf_plan_spec spec = {.size = sizeof spec};
    if (by->share > 0)
        spec.memory = (int64_t)(by->share * (double)find(f, &roomy)->memory);
    snprintf(said, sizeof said, "%s", by->said ? by->said : "");
    say(&spec, said, diag);
    assert_int_equal(sf_cluster_open(by->cluster, diag, &cluster), SF_OK);
    sf_plan_options options = {.size = sizeof options,
                               .cluster = cluster,
                               .margin = -1,
                               .level = by->level,
                               .threads = by->threads ? by->threads : 1};
    found *new = &f->all[f->count++];
    *new = (found){.by = by, .seconds = HUGE_VAL};
    if (sf_plan_search(f->graph, &spec, &options, diag, &plan) == SF_OK) {
        new->seconds = plan->predicted->seconds;
        new->memory = plan->predicted->memory;
    }
    sf_plan_free(plan);
    sf_cluster_free(cluster);
    sf_diag_free(diag);
    return new;
}

static int judge(const char *step, finder *f, const pair *p)
{
    double faster = find(f, &p->faster)->seconds, slower = find(f, &p->slower)->seconds;
    bool good = p->same ? faster == slower : faster <= slower * (1 + SLACK);
    if (!good)
        print_error("%s: %s: %.3f us on %s, and %.3f us on %s %s\n", step, p->property,
                    1e6 * faster, p->faster.cluster, 1e6 * slower, p->slower.cluster,
                    p->slower.said ? p->slower.said : "");
    return !good;
}

static void test_properties(void **state)
{
    (void)state;
    static const char *const steps[] = {"mlp-micro", "gpt-micro"};
    int failed = 0;
    for (size_t i = 0; i < (test_short() ? 1 : sizeof steps / sizeof *steps); i++) {
        sf_graph *graph = test_step(steps[i]);
        finder f = {.graph = graph};
        for (size_t p = 0; p < PAIRS; p += test_short() ? 3 : 1)
            failed += judge(steps[i], &f, &pairs[p]);
        sf_graph_free(graph);
    }
    assert_int_equal(failed, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_properties),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
