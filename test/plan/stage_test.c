/* Stages of whole steps: whatever is said of the forward pass, the rest keeps the rules, and what is wrong is found. */
#include "plan/stage.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "ir/name.h"
#include "op/op.h"
#include "support/indexing.h"
#include "support/plans.h"

static const struct {
    const char *folder, *name;
} others[] = {{"jump", "adafactor"},     {"jump", "batch-norm"},   {"jump", "dropout"},
              {"jump", "mixtral-bf16"},  {"jump", "muon"},         {"jump", "sign-sgd"},
              {"loops", "loop-layers"},  {"loops", "loop-newton"}, {"loops", "opt-apply-if-finite"},
              {"loops", "accum-scan-m2"}};
enum { OTHERS = sizeof others / sizeof *others };

static const uint32_t counts[] = {1, 2, 3, 4, 8};
enum { COUNTS = sizeof counts / sizeof *counts };

typedef void with_step(const char *name, const sf_graph *graph);

static void each_step(with_step *with)
{
    for (int s = 0; test_steps[s]; s++) {
        sf_graph *graph = test_step(test_steps[s]);
        with(test_steps[s], graph);
        sf_graph_free(graph);
    }
    for (int s = 0; s < OTHERS; s++) {
        sf_graph *graph = test_step_of(others[s].folder, others[s].name);
        with(others[s].name, graph);
        sf_graph_free(graph);
    }
}

/* Equal numbers of forward nodes, in the order of the step. */
static uint32_t *cut_evenly(const sf_graph *graph, uint32_t count, sf_arena *arena)
{
    uint32_t *said = SF_ARRAY(arena, graph->nnodes, uint32_t), total = 0, at = 0;
    for (uint32_t i = 0; i < graph->top->nnodes; i++)
        total += sf_top_node(graph, i)->phase == SF_FORWARD;
    for (uint32_t i = 0; i < graph->top->nnodes; i++) {
        const sf_node *node = sf_top_node(graph, i);
        said[node->id] =
            node->phase == SF_FORWARD ? (uint32_t)((uint64_t)at++ * count / total) : SF_NONE;
    }
    return said;
}

/* Any stages that follow on those of what a node reads, some left unsaid. */
static uint32_t *draw_stages(const sf_graph *graph, uint32_t count, test_random *random,
                             sf_arena *arena)
{
    uint32_t *said = SF_ARRAY(arena, graph->nnodes, uint32_t);
    uint32_t *least = SF_ARRAY(arena, graph->nnodes, uint32_t);
    const bool *anywhere = sf_find_anywhere(graph, arena);
    for (uint32_t i = 0; i < graph->top->nnodes; i++) {
        const sf_node *node = sf_top_node(graph, i);
        for (uint32_t o = 0; o < node->noperands; o++) {
            const sf_node *maker = sf_maker(graph, node->operands[o]);
            if (maker && !anywhere[maker->id] && least[maker->id] > least[node->id])
                least[node->id] = least[maker->id];
        }
        said[node->id] = SF_NONE;
        if (node->phase != SF_FORWARD || anywhere[node->id] || test_draw(random, 0, 3) == 0)
            continue;
        if (least[node->id] + 1 < count && test_draw(random, 0, 20) == 0)
            least[node->id]++;
        said[node->id] = least[node->id];
    }
    return said;
}

static sf_stages complete(const char *name, const sf_graph *graph, uint32_t count,
                          const uint32_t *said, sf_arena *arena, sf_stage_census *census)
{
    sf_stages stages;
    sf_diag *diag = sf_diag_new();
    if (sf_stages_complete(graph, count, said, arena, diag, &stages) != SF_OK ||
        sf_stages_check(graph, &stages, diag, census) != SF_OK)
        fail_msg("%s, %u stages: %s", name, count, sf_diag_text(diag, 0));
    sf_diag_free(diag);
    return stages;
}

/* What is said is what comes out, and nothing reads what a later stage makes, or an earlier one. */
static void check_rules(const char *name, const sf_graph *graph)
{
    test_random random = {.key = 7};
    for (int k = 0; k < COUNTS; k++)
        for (int turn = 0; turn < 4; turn++) {
            sf_arena arena = {0};
            sf_stage_census census;
            uint32_t *said = turn == 0 ? cut_evenly(graph, counts[k], &arena)
                                       : draw_stages(graph, counts[k], &random, &arena);
            sf_stages stages = complete(name, graph, counts[k], said, &arena, &census);
            for (uint32_t i = 0; i < graph->top->nnodes; i++) {
                const sf_node *node = sf_top_node(graph, i);
                if (node->phase == SF_FORWARD && !stages.anywhere[node->id] &&
                    said[node->id] != SF_NONE)
                    assert_int_equal(stages.of_node[node->id], said[node->id]);
            }
            if (counts[k] == 1)
                assert_int_equal(census.forward_bytes + census.backward_bytes + census.kept_bytes +
                                     census.step_bytes,
                                 0);
            sf_arena_free(&arena);
        }
}

static void test_steps_keep_the_rules(void **state)
{
    (void)state;
    each_step(check_rules);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_steps_keep_the_rules),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
