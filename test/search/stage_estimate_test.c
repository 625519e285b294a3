/* What is said of a pipeline before it is lowered is held to its programs: no group takes less memory than it is said to hold, and
 * what makes it take more makes the programs take more. */
#include "search/stage_estimate.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "plan/pipeline/pipeline.h"
#include "plan/pipeline/schedules.h"
#include "plan/recompute_policy.h"
#include "run/runner.h"
#include "search/price/price.h"
#include "sheaf/sheaf.h"
#include "support/chain.h"
#include "support/plans.h"

enum { GROUPS = 4, MEMORY = 1 << 30 };

typedef struct ground {
    sf_prospects p;
    sf_cluster *cluster;
    sf_search_options options;
} ground;

static void open_ground(sf_graph *graph, const char *cluster, ground *g)
{
    *g = (ground){0};
    assert_int_equal(sf_cluster_open(cluster, NULL, &g->cluster), SF_OK);
    g->options = (sf_search_options){
        .cluster = g->cluster, .target = sf_engine_target(NULL), .memory = MEMORY, .limited = true};
    g->p = (sf_prospects){.graph = graph, .options = &g->options};
    g->p.efforts = sf_efforts_new(graph, g->options.target, &g->p.arena);
}

static void close_ground(ground *g)
{
    sf_prospects_free(&g->p);
    sf_cluster_free(g->cluster);
}

/* The draft, without its plan, and the price of its programs. */
static sf_draft draft_of(ground *g, const char *schedule, uint32_t microbatches,
                         const char *recomputed, sf_price *price)
{
    static const double speeds[GROUPS] = {1, 1, 1, 1};
    sf_arena arena = {0};
    sf_costs *costs;
    sf_schedule_kind kind;
    sf_draft draft;
    sf_prospect c = {.groups = GROUPS,
                     .microbatches = microbatches,
                     .schedule = schedule,
                     .speeds = speeds,
                     .mesh = {1, {{SF_PIPE_AXIS, GROUPS}}}};
    sf_recompute_spec how = sf_recompute_of(recomputed, &arena);
    sf_stage_way way = {.recompute = recomputed,
                        .recomputed = sf_recomputed_by(g->p.graph, &how, &arena)};
    assert_int_equal(sf_schedule_parse(schedule, &kind, NULL), SF_OK);
    c.stages = sf_schedule_stages(kind, GROUPS);
    assert_int_equal(sf_mesh_costs(g->cluster, &c.mesh, &arena, NULL, &costs), SF_OK);
    assert_int_equal(sf_draft_make(&g->p, &c, &way, costs, true, &arena, NULL, &draft), SF_OK);
    assert_int_equal(test_recompute(g->p.graph, draft.plan, recomputed, NULL), SF_OK);
    assert_int_equal(
        sf_price_plan(g->p.graph, draft.plan, g->options.target, costs, NULL, NULL, NULL, price),
        SF_OK);
    sf_plan_free(draft.plan);
    sf_arena_free(&arena);
    draft.plan = NULL;
    draft.cut = NULL;
    return draft;
}

static void test_no_group_takes_less(void **state)
{
    (void)state;
    static const char *const schedules[] = {"gpipe", "1f1b", "zb-h1", "interleaved:2", "zb-v"};
    static const struct {
        int batch, width;
    } sizes[] = {{32, 256}, {4096, 64}};
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
        sf_graph *graph = test_chain(16, sizes[k].batch, sizes[k].width, false);
        ground g;
        open_ground(graph, "4xV100", &g);
        for (size_t i = 0; i < sizeof schedules / sizeof *schedules; i++)
            for (uint32_t microbatches = 4; microbatches <= 16; microbatches *= 2) {
                sf_price price;
                sf_draft draft = draft_of(&g, schedules[i], microbatches, "none", &price);
                double takes = (double)price.memory / MEMORY;
                if (draft.held > draft.least || draft.least > takes || draft.least < takes / 8)
                    fail_msg("%s in %u turns, %d rows: %g held, %g at the least, and it takes %g",
                             schedules[i], microbatches, sizes[k].batch, draft.held, draft.least,
                             takes);
            }
        close_ground(&g);
        sf_graph_free(graph);
    }
}

/* All turns are kept by gpipe, as many as groups by 1f1b. */
static void test_what_turns_keep(void **state)
{
    (void)state;
    sf_graph *graph = test_chain(16, 4096, 64, false);
    ground g;
    sf_price all, few;
    open_ground(graph, "4xV100", &g);
    sf_draft gpipe = draft_of(&g, "gpipe", 16, "none", &all),
             other = draft_of(&g, "1f1b", 16, "none", &few);
    assert_true(all.memory > few.memory && gpipe.least > other.least);
    assert_true(gpipe.held == other.held && gpipe.mean <= gpipe.least);
    assert_true((gpipe.about - gpipe.held) > 3.9 * (other.about - other.held));
    close_ground(&g);
    sf_graph_free(graph);
}

/* Layers that are alike are shared evenly where groups divide them. */
static void test_how_evenly(void **state)
{
    (void)state;
    sf_price price;
    for (int layers = 16; layers <= 17; layers++) {
        sf_graph *graph = test_chain(layers, 4096, 256, false);
        ground g;
        open_ground(graph, "4xV100", &g);
        double slower = draft_of(&g, "1f1b", 8, "none", &price).slower;
        double most = (layers + GROUPS - 1) / GROUPS * GROUPS / (double)layers;
        if (slower < 1 || slower > 1.1 * most || (layers == 17 && slower < 1.1))
            fail_msg("%d layers: the busiest group takes %g of the mean", layers, slower);
        close_ground(&g);
        sf_graph_free(graph);
    }
}

/* How much messages make a step longer, beside what they do when it is simulated: against a network that hardly takes time. */
static void test_what_messages_take(void **state)
{
    (void)state;
    static const char *const schedules[] = {"gpipe", "1f1b", "zb-h1", "zb-v"};
    static const char *const networks[] = {"4x1xV100@64x1600G", "4x1xV100@400G", "4x1xV100@10G",
                                           "4x1xV100@1G"};
    sf_graph *graph = test_chain(16, 16384, 512, false);
    for (size_t i = 0; i < sizeof schedules / sizeof *schedules; i++) {
        ground g;
        sf_price price;
        double fast[2] = {1, 1}, before = 1;
        for (size_t n = 0; n < sizeof networks / sizeof *networks; n++) {
            open_ground(graph, networks[n], &g);
            double rehearsed = draft_of(&g, schedules[i], 8, "none", &price).waits / fast[0];
            double simulated = price.seconds / fast[1];
            if (n == 0) {
                fast[0] = rehearsed;
                fast[1] = simulated;
                close_ground(&g);
                continue;
            }
            print_message("%-6s %-14s %.2f rehearsed, %.2f simulated\n", schedules[i], networks[n],
                          rehearsed, simulated);
            assert_true(rehearsed >= before);
            assert_true(rehearsed < 1.25 * simulated && simulated < 1.25 * rehearsed);
            before = rehearsed;
            close_ground(&g);
        }
    }
    sf_graph_free(graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_group_takes_less), cmocka_unit_test(test_what_turns_keep),
        cmocka_unit_test(test_what_messages_take), cmocka_unit_test(test_how_evenly)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
