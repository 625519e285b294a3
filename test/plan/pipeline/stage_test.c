/* Stages of whole steps: for any stages of the forward pass, the other nodes keep the rules, and
 * errors are found. */
#include "plan/pipeline/stage.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "ir/name.h"
#include "ir/uses.h"
#include "op/op.h"
#include "plan/pipeline/stage_flow.h"
#include "support/indexing.h"
#include "support/plans.h"
#include "support/stage_check.h"

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

/* Any stages no earlier than those of a node's operands, some unset. */
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
                          const uint32_t *said, sf_arena *arena, test_census *census)
{
    sf_stages stages;
    sf_diag *diag = sf_diag_new();
    if (sf_stages_complete(graph, count, said, arena, diag, &stages) != SF_OK ||
        test_check_stages(graph, &stages, diag, census) != SF_OK)
        fail_msg("%s, %u stages: %s", name, count, sf_diag_text(diag, 0));
    sf_diag_free(diag);
    return stages;
}

/* Parts of a step run one behind the other: F0, F1, ..., B1, B0, and what is made once per step. Each must find what it
 * reads, whatever test_check_stages says. */
static void run_node(const sf_graph *graph, const sf_stages *stages, const sf_node *node,
                     bool *done)
{
    for (uint32_t o = 0; o < node->noperands; o++) {
        const sf_node *maker = sf_maker(graph, sf_source_of(graph, node->operands[o]));
        assert_true(!maker || stages->anywhere[maker->id] || done[maker->id]);
    }
    done[node->id] = true;
}

static void check_parts(const sf_graph *graph, const sf_stages *stages, sf_arena *arena)
{
    uint32_t count = stages->count, ran = 0;
    bool *done = SF_ARRAY(arena, graph->nnodes, bool);
    for (uint32_t part = 0; part <= 2 * count; part++)
        for (uint32_t i = 0; i < graph->top->nnodes; i++) {
            const sf_node *node = sf_top_node(graph, i);
            uint32_t stage = stages->of_node[node->id];
            uint32_t own = node->phase == SF_FORWARD ? stage
                           : node->phase == SF_UPDATE || stages->late[node->id]
                               ? 2 * count
                               : 2 * count - 1 - stage;
            if (own != part || stages->anywhere[node->id])
                continue;
            run_node(graph, stages, node, done);
            ran++;
        }
    for (uint32_t i = 0; i < graph->top->nnodes; i++)
        ran += stages->anywhere[graph->top->nodes[i]];
    assert_int_equal(ran, graph->top->nnodes);
}

/* Given stages are kept, and no node reads the result of a later stage, or an earlier one. */
static void check_rules(const char *name, const sf_graph *graph)
{
    test_random random = {.key = 7};
    for (int k = 0; k < COUNTS; k++)
        for (int microbatch = 0; microbatch < 4; microbatch++) {
            sf_arena arena = {0};
            test_census census;
            uint32_t *said = microbatch == 0 ? cut_evenly(graph, counts[k], &arena)
                                             : draw_stages(graph, counts[k], &random, &arena);
            sf_stages stages = complete(name, graph, counts[k], said, &arena, &census);
            for (uint32_t i = 0; i < graph->top->nnodes; i++) {
                const sf_node *node = sf_top_node(graph, i);
                if (node->phase == SF_FORWARD && !stages.anywhere[node->id] &&
                    said[node->id] != SF_NONE)
                    assert_int_equal(stages.of_node[node->id], said[node->id]);
            }
            check_parts(graph, &stages, &arena);
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

/* Invalid stages are found */

static bool is_refused(const sf_graph *graph, const sf_stages *stages)
{
    return test_check_stages(graph, stages, NULL, NULL) == SF_EMISMATCH;
}

/* Whether another node of that phase reads the node's results, in the same stage and in every
 * micro-batch. */
static bool is_read_beside(const sf_graph *graph, const sf_stages *stages, const sf_uses *uses,
                           const sf_node *node)
{
    for (uint32_t u = uses->first[node->result]; u < uses->first[node->result + 1]; u++) {
        uint32_t reader = uses->at[u].node;
        if (reader != SF_NONE && graph->nodes[reader]->phase == node->phase &&
            !stages->anywhere[reader] && stages->of_node[reader] == stages->of_node[node->id])
            return true;
    }
    return false;
}

/* Each node is moved to where its readers cannot have it from. */
static void check_mistakes(const char *name, const sf_graph *graph)
{
    sf_arena arena = {0};
    sf_uses uses = sf_uses_of(graph, &arena);
    sf_stages stages = complete(name, graph, 3, cut_evenly(graph, 3, &arena), &arena, NULL);
    int tried = 0;
    for (uint32_t i = 0; i < graph->top->nnodes; i += 7) {
        const sf_node *node = sf_top_node(graph, i);
        uint32_t *stage = &stages.of_node[node->id], kept = *stage;
        if (node->phase == SF_UPDATE || stages.anywhere[node->id] ||
            !is_read_beside(graph, &stages, &uses, node) ||
            kept == (node->phase == SF_FORWARD ? 2u : 0u))
            continue;
        *stage = node->phase == SF_FORWARD ? kept + 1 : kept - 1;
        assert_true(is_refused(graph, &stages));
        *stage = kept;
        tried++;
    }
    for (uint32_t i = 0; i < graph->top->narguments; i++) {
        const sf_argument *argument = &graph->arguments[i];
        const sf_node *maker = argument->role == SF_ROLE_PARAM && argument->next != SF_NONE
                                   ? sf_maker(graph, graph->top->results[argument->next])
                                   : NULL;
        if (!maker || maker->phase != SF_UPDATE || maker->nresults != 1)
            continue;
        stages.of_node[maker->id] = (stages.of_node[maker->id] + 1) % 3;
        assert_true(is_refused(graph, &stages));
        stages.of_node[maker->id] = (stages.of_node[maker->id] + 2) % 3;
        tried++;
    }
    assert_true(tried > 20);
    assert_false(is_refused(graph, &stages));
    sf_arena_free(&arena);
}

static void test_mistakes_are_found(void **state)
{
    (void)state;
    static const char *const names[] = {"gpt-micro", "t5-micro", "unet-micro", "evoformer-micro",
                                        "gpt-remat-micro"};
    for (size_t s = 0; s < sizeof names / sizeof *names; s++) {
        sf_graph *graph = test_step(names[s]);
        check_mistakes(names[s], graph);
        sf_graph_free(graph);
    }
}

static uint32_t find_argument(const sf_graph *graph, const char *ending)
{
    sf_arena arena = {0};
    const char **names = sf_clean_names(graph, &arena);
    uint32_t found = SF_NONE;
    for (uint32_t i = 0; i < graph->top->narguments && found == SF_NONE; i++)
        if (graph->arguments[i].role == SF_ROLE_PARAM && sf_name_ends(names[i], ending))
            found = i;
    sf_arena_free(&arena);
    assert_int_not_equal(found, SF_NONE);
    return found;
}

/* The embedding is read by the first stage and the last: it is on the first, with its optimizer state, and its gradients
 * meet there, once per step. */
static void test_tied_weights_have_one_owner(void **state)
{
    (void)state;
    static const char *const names[] = {"gpt-micro", "t5-micro", "bert-micro"};
    static const char *const weights[] = {"wte/embedding", "shared/embedding", "wte/embedding"};
    for (size_t s = 0; s < sizeof names / sizeof *names; s++) {
        sf_graph *graph = test_step(names[s]);
        sf_arena arena = {0};
        sf_stages stages = complete(names[s], graph, 4, cut_evenly(graph, 4, &arena), &arena, NULL);
        const sf_argument *weight = &graph->arguments[find_argument(graph, weights[s])];
        const sf_node *sum = sf_maker(graph, weight->gradient);
        const sf_node *update = sf_maker(graph, graph->top->results[weight->next]);
        assert_int_equal(stages.of_argument[weight - graph->arguments], 0);
        assert_true(sf_is(sum, SF_OP_ADD));
        assert_true(stages.late[sum->id]);
        assert_int_equal(stages.of_node[sum->id], 0);
        assert_int_equal(stages.of_node[update->id], 0);
        sf_arena_free(&arena);
        sf_graph_free(graph);
    }
}

/* A weight of another stage that is read in fewer bits is converted where it is, unless it is read in all bits as well. */
static void test_weights_are_sent_in_fewer_bits(void **state)
{
    (void)state;
    for (int whole = 0; whole < 2; whole++) {
        char text[1500];
        snprintf(text, sizeof text,
                 "func.func public @main(%%w: tensor<8x8xf32> loc(\"params/w\"), "
                 "%%x: tensor<8x8xf32> loc(\"batch/x\")) -> (tensor<8x8xf32>, tensor<8x8xbf16>) {\n"
                 "%%a = stablehlo.dot_general %%x, %%w, contracting_dims = [1] x [0] : "
                 "(tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>\n"
                 "%%b = stablehlo.tanh %%a : tensor<8x8xf32>\n"
                 "%%c = stablehlo.%s : tensor<8x8xf32>\n"
                 "%%d = stablehlo.convert %%c : (tensor<8x8xf32>) -> tensor<8x8xbf16>\n"
                 "%%e = stablehlo.convert %%w : (tensor<8x8xf32>) -> tensor<8x8xbf16>\n"
                 "%%f = stablehlo.dot_general %%d, %%e, contracting_dims = [1] x [1] : "
                 "(tensor<8x8xbf16>, tensor<8x8xbf16>) -> tensor<8x8xbf16>\n"
                 "return %%w, %%f : tensor<8x8xf32>, tensor<8x8xbf16>\n}\n",
                 whole ? "multiply %b, %w" : "exponential %b");
        sf_graph *graph = test_step_text(text);
        sf_arena arena = {0};
        sf_stages stages;
        uint32_t *said = SF_ARRAY(&arena, graph->nnodes, uint32_t), converted = SF_NONE;
        for (uint32_t n = 0; n < graph->nnodes; n++) {
            const sf_node *node = graph->nodes[n];
            bool is_first = sf_is(node, SF_OP_TANH) ||
                            (sf_is(node, SF_OP_DOT_GENERAL) && !sf_maker(graph, node->operands[0]));
            said[n] = !is_first;
            if (sf_is(node, SF_OP_CONVERT) && !sf_maker(graph, node->operands[0]))
                converted = n;
        }
        assert_int_not_equal(converted, SF_NONE);
        assert_int_equal(sf_stages_complete(graph, 2, said, &arena, NULL, &stages), SF_OK);
        assert_int_equal(stages.of_node[converted], whole);
        sf_arena_free(&arena);
        sf_graph_free(graph);
    }
}

/* Updates send nothing large: only numbers cross stages. */
static void test_updates_send_little(void **state)
{
    (void)state;
    sf_graph *graph = test_step("gpt-bf16-micro"); /* no tied weights */
    sf_arena arena = {0};
    test_census census;
    complete("gpt-bf16-micro", graph, 4, cut_evenly(graph, 4, &arena), &arena, &census);
    assert_int_equal(census.tied, 0);
    assert_int_equal(census.updates_elsewhere, 0);
    assert_int_equal(census.gradients_elsewhere, 0);
    sf_arena_free(&arena);
    sf_graph_free(graph);
}

/* Lion's moment leads to no weight of this step, only to itself in the next one: it is where the gradient is, as an average of
 * weights is where its weight is. */
static void test_state_that_only_the_next_step_reads(void **state)
{
    (void)state;
    sf_graph *graph = test_step_of("jump", "lion");
    sf_arena arena = {0};
    const char **names = sf_clean_names(graph, &arena);
    sf_stages stages = complete("lion", graph, 2, cut_evenly(graph, 2, &arena), &arena, NULL);
    uint32_t pairs = 0, later = 0;
    for (uint32_t i = 0; i < graph->top->narguments; i++)
        for (uint32_t m = 0; m < graph->top->narguments && strncmp(names[i], "params/", 7) == 0;
             m++)
            if (strstr(names[m], "/mu/") && sf_name_ends(names[m], names[i] + 7)) {
                assert_int_equal(stages.of_argument[m], stages.of_argument[i]);
                later += stages.of_argument[i];
                pairs++;
            }
    assert_int_equal(pairs, 20);
    assert_true(later > 0);
    sf_arena_free(&arena);
    sf_graph_free(graph);
}

static void test_order_is_checked(void **state)
{
    (void)state;
    sf_graph *graph = test_step("mlp-micro");
    sf_arena arena = {0};
    sf_diag *diag = sf_diag_new();
    sf_stages stages;
    uint32_t *said = cut_evenly(graph, 2, &arena);
    for (uint32_t n = 0; n < graph->nnodes; n++)
        said[n] = said[n] == SF_NONE ? SF_NONE : 1 - said[n];
    assert_int_equal(sf_stages_complete(graph, 2, said, &arena, diag, &stages), SF_EUSAGE);
    assert_non_null(strstr(sf_diag_text(diag, 0), "is said to be in stage 0, but reads"));
    said = cut_evenly(graph, 3, &arena);
    assert_int_equal(sf_stages_complete(graph, 2, said, &arena, diag, &stages), SF_EUSAGE);
    assert_non_null(strstr(sf_diag_text(diag, 1), "there is no stage 2 of 2"));
    assert_int_equal(sf_stages_complete(graph, 0, said, &arena, diag, &stages), SF_EUSAGE);
    sf_diag_free(diag);
    sf_arena_free(&arena);
    sf_graph_free(graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_steps_keep_the_rules),
        cmocka_unit_test(test_mistakes_are_found),
        cmocka_unit_test(test_tied_weights_have_one_owner),
        cmocka_unit_test(test_weights_are_sent_in_fewer_bits),
        cmocka_unit_test(test_updates_send_little),
        cmocka_unit_test(test_state_that_only_the_next_step_reads),
        cmocka_unit_test(test_order_is_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
