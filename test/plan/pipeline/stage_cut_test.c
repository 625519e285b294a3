/* Where steps are cut: stages are as even as their nodes allow, borders lie where a step is narrow, and a person can say
 * where. */
#include "plan/pipeline/stage_cut.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "op/flops.h"
#include "sheaf/sheaf.h"
#include "support/plans.h"
#include "support/stage_check.h"

static const uint32_t counts[] = {2, 3, 4, 8};
enum { COUNTS = sizeof counts / sizeof *counts };

/* A device that does 100 flops in the time of 6.7 bytes: some nodes take as long as they compute, others as long as they
 * read and write. */
static double *find_times(const sf_graph *graph, sf_arena *arena)
{
    double *time = SF_ARRAY(arena, graph->nnodes, double);
    for (uint32_t i = 0; i < graph->top->nnodes; i++) {
        const sf_node *node = sf_top_node(graph, i);
        double bytes = 0;
        for (uint32_t o = 0; o < node->noperands; o++)
            bytes += (double)sf_type_bytes(sf_type_of(graph, node->operands[o]));
        for (uint32_t r = 0; r < node->nresults && node->noperands > 0; r++)
            bytes += (double)sf_type_bytes(sf_type_of(graph, node->result + r));
        time[node->id] = fmax(sf_node_flops(graph, node) / 100, bytes * 0.15);
    }
    return time;
}

typedef struct outcome {
    double evenness;  /* the slowest stage by the mean, as the search sees it */
    double least;     /* no less can be had */
    double completed; /* of both passes, with all nodes where they are in the end */
    sf_stage_cut cut;
    sf_stages stages;
    test_census census;
} outcome;

static outcome cut_step(const char *name, const sf_graph *graph, uint32_t count, sf_arena *arena)
{
    outcome o;
    sf_diag *diag = sf_diag_new();
    double *time = find_times(graph, arena), *times = sf_forward_times(graph, time, arena);
    double total = 0, slowest = 0, *stage = SF_ARRAY(arena, count, double);
    sf_stage_request request = {
        .count = count, .time = times, .tolerance = 0.05, .microbatches = 8};
    if (sf_cut_step(graph, &request, arena, diag, &o.cut) != SF_OK ||
        sf_stages_complete(graph, count, o.cut.forward, arena, diag, &o.stages) != SF_OK ||
        test_check_stages(graph, &o.stages, diag, &o.census) != SF_OK)
        fail_msg("%s, %u stages: %s", name, count, sf_diag_text(diag, 0));
    for (uint32_t i = 0; i < graph->top->nnodes; i++) {
        const sf_node *node = sf_top_node(graph, i);
        if (node->phase == SF_UPDATE || o.stages.late[node->id])
            continue;
        stage[o.stages.of_node[node->id]] += time[node->id];
        total += time[node->id];
    }
    for (uint32_t s = 0; s < count; s++)
        slowest = fmax(slowest, stage[s]);
    o.evenness = o.cut.slowest * count / total;
    o.least = o.cut.least_slowest * count / total;
    o.completed = slowest * count / total;
    sf_diag_free(diag);
    return o;
}

static void test_stages_are_even(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        double most; /* of evenness with up to 4 stages */
    } steps[] = {{"gpt-micro", 1.1},   {"t5-micro", 1.1},      {"unet-micro", 1.15},
                 {"moe-micro", 1.1},   {"wresnet-micro", 1.1}, {"evoformer-micro", 1.2},
                 {"swin-micro", 1.15}, {"llama-micro", 1.15},  {"bert-micro", 1.1}};
    print_message("%-16s stages  evenness  at best  completed  forward  backward  kept  per step\n",
                  "step");
    for (size_t s = 0; s < sizeof steps / sizeof *steps; s++) {
        sf_graph *graph = test_step(steps[s].name);
        for (int k = 0; k < COUNTS; k++) {
            sf_arena arena = {0};
            outcome o = cut_step(steps[s].name, graph, counts[k], &arena);
            print_message("%-16s %6u %9.3f %8.3f %10.3f %8.0f %9.0f %5.0f %9.0f\n", steps[s].name,
                          counts[k], o.evenness, o.least, o.completed,
                          (double)o.census.forward_bytes, (double)o.census.backward_bytes,
                          (double)o.census.kept_bytes, (double)o.census.step_bytes);
            assert_true(o.evenness >= o.least - 1e-9);
            assert_true(o.evenness <= (counts[k] == 8 ? 1.25 : 1.1) * o.least);
            assert_true(counts[k] == 8 || o.completed <= steps[s].most);
            assert_true(counts[k] == 8 || o.census.tied > 0 || o.census.step_bytes < 64);
            assert_true(50 * o.census.kept_bytes <= o.census.forward_bytes);
            assert_true((double)o.census.backward_bytes <= 1.3 * (double)o.census.forward_bytes);
            sf_arena_free(&arena);
        }
        sf_graph_free(graph);
    }
}

/* Between the layers of a GPT there is the residual stream, and it alone. */
static void test_borders_are_narrow(void **state)
{
    (void)state;
    sf_graph *graph = test_step("gpt-micro");
    sf_arena arena = {0};
    outcome o = cut_step("gpt-micro", graph, 2, &arena);
    for (uint32_t i = 0; i < graph->top->nnodes; i++) {
        const sf_node *node = sf_top_node(graph, i);
        const char *path = node->scope->path;
        if (node->phase != SF_FORWARD || o.stages.anywhere[node->id])
            continue;
        if (strncmp(path, "layer_0/attn", 12) == 0 || strncmp(path, "layer_0/mlp", 11) == 0)
            assert_int_equal(o.stages.of_node[node->id], 0);
        if (strncmp(path, "layer_1/attn", 12) == 0 || strncmp(path, "layer_1/mlp", 11) == 0)
            assert_int_equal(o.stages.of_node[node->id], 1);
    }
    sf_arena_free(&arena);
    sf_graph_free(graph);
}

/* Faster stages get more, and stages without room less. */
static void test_stages_get_what_suits_them(void **state)
{
    (void)state;
    sf_graph *graph = test_step("gpt-micro");
    sf_arena arena = {0};
    sf_diag *diag = sf_diag_new();
    sf_stage_cut cut;
    double speed[] = {3, 1}, room[] = {1e9, 1e9}, share[2] = {0}, total = 0;
    double *kept = SF_ARRAY(&arena, graph->nnodes, double);
    double *times = sf_forward_times(graph, find_times(graph, &arena), &arena);
    sf_stage_request request = {.count = 2, .time = times, .speed = speed, .tolerance = 0.05};
    assert_int_equal(sf_cut_step(graph, &request, &arena, diag, &cut), SF_OK);
    for (uint32_t n = 0; n < graph->nnodes; n++) {
        total += times[n];
        if (cut.forward[n] != SF_NONE)
            share[cut.forward[n]] += times[n];
        kept[n] = times[n];
    }
    assert_true(share[0] / total > 0.7 && share[0] / total < 0.8);
    request.kept = kept;
    request.room = room;
    room[0] = total / 2;
    assert_int_equal(sf_cut_step(graph, &request, &arena, diag, &cut), SF_OK);
    assert_true(cut.slowest > 0.45 * total); /* the slower one has to take half */
    room[1] = total / 3;
    assert_int_equal(sf_cut_step(graph, &request, &arena, diag, &cut), SF_EMISMATCH);
    assert_non_null(strstr(sf_diag_text(diag, 0), "lacks memory"));
    request.count = 100000;
    request.speed = request.room = NULL;
    assert_int_equal(sf_cut_step(graph, &request, &arena, diag, &cut), SF_EMISMATCH);
    assert_non_null(strstr(sf_diag_text(diag, 1), "too few for 100000"));
    sf_diag_free(diag);
    sf_arena_free(&arena);
    sf_graph_free(graph);
}

static void test_loops_that_stay_are_named(void **state)
{
    (void)state;
#if !SF_FEATURE_LZMA
    skip();
#endif
    sf_diag *diag = sf_diag_new();
    sf_graph *graph;
    sf_arena arena = {0};
    sf_stage_cut cut;
    sf_load_options options = {.size = sizeof options, .unroll = -1};
    assert_int_equal(
        sf_load("test/data/micro/gpt-scan-micro.stablehlo.mlir.xz", &options, diag, &graph), SF_OK);
    sf_stage_request request = {.count = 4,
                                .time = sf_forward_times(graph, find_times(graph, &arena), &arena)};
    int before = sf_diag_count(diag);
    assert_int_equal(sf_cut_step(graph, &request, &arena, diag, &cut), SF_OK);
    assert_int_equal(sf_diag_count(diag), before + 1);
    assert_non_null(strstr(sf_diag_text(diag, before), "cannot be cut"));
    sf_diag_free(diag);
    sf_arena_free(&arena);
    sf_graph_free(graph);
}

static void test_scopes_begin_stages(void **state)
{
    (void)state;
    sf_graph *graph = test_step("gpt-micro");
    sf_arena arena = {0};
    sf_diag *diag = sf_diag_new();
    sf_stages stages;
    uint32_t *forward;
    const char *const two[] = {"layer_0", "layer_1"};
    assert_int_equal(sf_cut_by_scopes(graph, 2, two, &arena, diag, &forward), SF_OK);
    assert_int_equal(sf_stages_complete(graph, 3, forward, &arena, diag, &stages), SF_OK);
    assert_int_equal(test_check_stages(graph, &stages, diag, NULL), SF_OK);
    for (uint32_t i = 0; i < graph->top->nnodes; i++) {
        const sf_node *node = sf_top_node(graph, i);
        if (node->phase != SF_FORWARD || stages.anywhere[node->id])
            continue;
        if (strncmp(node->scope->path, "layer_0/", 8) == 0)
            assert_int_equal(stages.of_node[node->id], 1);
        if (strncmp(node->scope->path, "layer_1/", 8) == 0 ||
            strncmp(node->scope->path, "norm_f", 6) == 0)
            assert_int_equal(stages.of_node[node->id], 2);
    }
    static const struct {
        uint32_t count;
        const char *scopes[2], *says;
    } wrong[] = {{1, {"layer_7"}, "\"layer_7\" is no scope of the forward pass"},
                 {2, {"layer_1", "layer_0"}, "comes after the beginning of a later stage"},
                 {2, {"layer_1", "layer_1"}, "\"layer_1\" cannot begin two stages"}};
    for (int w = 0; w < 3; w++) {
        assert_int_equal(
            sf_cut_by_scopes(graph, wrong[w].count, wrong[w].scopes, &arena, diag, &forward),
            SF_EUSAGE);
        assert_non_null(strstr(sf_diag_text(diag, w), wrong[w].says));
    }
    sf_diag_free(diag);
    sf_arena_free(&arena);
    sf_graph_free(graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stages_are_even),
        cmocka_unit_test(test_borders_are_narrow),
        cmocka_unit_test(test_stages_get_what_suits_them),
        cmocka_unit_test(test_loops_that_stay_are_named),
        cmocka_unit_test(test_scopes_begin_stages),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
