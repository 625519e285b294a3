/* Recompute: the nodes of each kind, that the step with clones equals the step, to the last bit,
 * and that one which does not is found. */
#include "plan/recompute_policy.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "ir/uses.h"
#include "op/eval.h"
#include "op/node_builder.h"
#include "op/op.h"
#include "plan/recompute_clone.h"
#include "support/plans.h"

static const char *const words[] = {"layer", "cheap", "full", "parts"};
enum { WORDS = sizeof words / sizeof *words };

static sf_plan *plan_again(const sf_graph *graph, const char *recipe, const char *how)
{
    sf_plan *plan = test_plan(graph, recipe, recipe ? 2 : 1, recipe ? NULL : "data=1", NULL);
    sf_diag *diag = sf_diag_new();
    if (test_recompute(graph, plan, how, diag) != SF_OK)
        fail_msg("%s", sf_diag_text(diag, 0));
    sf_diag_free(diag);
    return plan;
}

static const char *step_with_layers(int index)
{
    static const char *const names[] = {"gpt-micro", "gpt-bf16-micro", "moe-micro",
                                        "evoformer-micro", NULL};
    return names[index];
}

/* Later phases read no marked node, the forward pass no clone, and each marked node has one; two,
 * if it is on the way to the outputs of its part of a layer. */
static void check_readers(const sf_graph *graph, const sf_plan *plan, const sf_recomputed_step *t)
{
    const sf_block *top = t->graph->top;
    uint32_t *seen = sf_alloc((graph->nnodes + 1) * sizeof *seen);
    bool *is_twin = sf_alloc((t->graph->nnodes + 1) * sizeof *is_twin);
    for (uint32_t i = 0; i < top->nnodes; i++) {
        const sf_node *node = sf_top_node(t->graph, i);
        uint32_t origin = t->node_of[node->id];
        if (origin != SF_NONE)
            is_twin[node->id] = seen[origin]++ > 0;
        for (uint32_t o = 0; o < node->noperands; o++) {
            const sf_node *maker = sf_maker(t->graph, node->operands[o]);
            uint32_t made = maker ? t->node_of[maker->id] : SF_NONE;
            if (made == SF_NONE)
                continue;
            bool late = node->phase != SF_FORWARD && origin != SF_NONE;
            assert_false(late && plan->recomputed[made] && !is_twin[maker->id]);
            assert_false(node->phase == SF_FORWARD && is_twin[maker->id]);
        }
    }
    uint32_t thrice = 0;
    for (uint32_t i = 0; i < graph->top->nnodes; i++) {
        uint32_t node = graph->top->nodes[i], least = 1 + plan->recomputed[node];
        bool recomputed_per_part = plan->recomputed_per_part && plan->recomputed_per_part[node];
        assert_true(!recomputed_per_part || plan->recomputed[node]);
        assert_in_range(seen[node], least, least + recomputed_per_part);
        thrice += seen[node] == 3;
    }
    assert_true(thrice == 0 || plan->recomputed_per_part);
    sf_free(seen);
    sf_free(is_twin);
}

static void test_twins_stand_for_what_is_marked(void **state)
{
    (void)state;
    for (int s = 0; step_with_layers(s); s++)
        for (int w = 0; w < WORDS; w++) {
            sf_graph *graph = test_step(step_with_layers(s));
            sf_plan *plan = plan_again(graph, "megatron", words[w]);
            assert_true(sf_count_recomputed(graph, plan) > 10);
            sf_recomputed_step t = sf_recompute_step(graph, plan, graph->pool);
            assert_int_equal(sf_check_recomputed(graph, &t, NULL), SF_OK);
            assert_int_equal(sf_graph_verify(t.graph, NULL), SF_OK);
            check_readers(graph, plan, &t);
            sf_recomputed_step_free(&t);
            sf_plan_free(plan);
            sf_graph_free(graph);
        }
}

/* Partial sums of a plan would have to be reduced once more. */
static void test_parts_are_kept(void **state)
{
    (void)state;
    sf_graph *graph = test_step("gpt-micro");
    sf_plan *plan = plan_again(graph, "megatron", "full");
    for (uint32_t i = 0; i < graph->top->nnodes; i++) {
        const sf_node *node = sf_top_node(graph, i);
        for (uint32_t r = 0; r < node->nresults && plan->recomputed[node->id]; r++)
            assert_false(sf_layout_is_partial(&plan->nodes[node->id][node->noperands + r]));
    }
    sf_plan_free(plan);
    sf_graph_free(graph);
}

static void test_bits_are_the_same(void **state)
{
    (void)state;
    sf_graph *graph = test_step("gpt-micro");
    uint32_t narguments = graph->top->narguments, nresults = graph->top->nresults;
    sf_tensor *arguments = sf_alloc(narguments * sizeof *arguments);
    sf_tensor *expected = sf_alloc(nresults * sizeof *expected);
    sf_tensor *ours = sf_alloc(nresults * sizeof *ours);
    for (uint32_t i = 0; i < narguments; i++) {
        const sf_type *type = sf_argument_type(graph, i);
        arguments[i] = (sf_tensor){.type = type, .data = sf_alloc((size_t)sf_type_bytes(type))};
        for (int64_t j = 0; j < type->count; j++)
            if (sf_is_float(type->dtype))
                sf_store_f64(type->dtype, arguments[i].data, j, (double)((j * 11 + i) % 17) / 64);
            else
                sf_store_i64(type->dtype, arguments[i].data, j, (j * 5 + 1) % 16);
    }
    assert_int_equal(sf_eval_graph(graph, arguments, expected, 0, NULL), SF_OK);
    for (int w = 0; w < WORDS; w++) {
        sf_plan *plan = plan_again(graph, NULL, words[w]);
        sf_recomputed_step t = sf_recompute_step(graph, plan, graph->pool);
        assert_int_equal(sf_eval_graph(t.graph, arguments, ours, 0, NULL), SF_OK);
        for (uint32_t r = 0; r < nresults; r++) {
            assert_memory_equal(ours[r].data, expected[r].data,
                                (size_t)sf_type_bytes(expected[r].type));
            sf_free(ours[r].data);
        }
        sf_recomputed_step_free(&t);
        sf_plan_free(plan);
    }
    for (uint32_t i = 0; i < narguments; i++)
        sf_free(arguments[i].data);
    for (uint32_t r = 0; r < nresults; r++)
        sf_free(expected[r].data);
    sf_free(arguments);
    sf_free(expected);
    sf_free(ours);
    sf_graph_free(graph);
}

/* By node of the step with clones, the most clones between the first and the last reader of its
 * results: those of nodes that are recomputed per part, for their own part, see nothing of other
 * parts. */
static uint32_t longest_way(const sf_recomputed_step *t, const sf_plan *plan)
{
    const sf_block *top = t->graph->top;
    uint32_t *place = sf_alloc((t->graph->nnodes + 1) * sizeof *place), longest = 0;
    for (uint32_t i = 0; i < top->nnodes; i++)
        place[top->nodes[i]] = i;
    for (uint32_t i = 0; i < top->nnodes; i++) {
        const sf_node *node = sf_top_node(t->graph, i);
        for (uint32_t o = 0; o < node->noperands && node->phase == SF_BACKWARD; o++) {
            const sf_node *maker = sf_maker(t->graph, node->operands[o]);
            uint32_t of = maker ? t->node_of[maker->id] : SF_NONE;
            if (of == SF_NONE || maker->phase != SF_BACKWARD || !plan->recomputed_per_part[of])
                continue;
            uint32_t way = i - place[maker->id];
            longest = way > longest ? way : longest;
        }
    }
    sf_free(place);
    return longest;
}

/* Nodes that are recomputed in parts live shorter than with the same clones made for all of the
 * layer. */
static void test_parts_stay_for_less(void **state)
{
    (void)state;
    for (int s = 0; step_with_layers(s); s++) {
        sf_graph *graph = test_step(step_with_layers(s));
        sf_plan *plan = plan_again(graph, NULL, "parts");
        bool *recomputed_per_part = plan->recomputed_per_part;
        assert_non_null(recomputed_per_part);
        sf_recomputed_step parts = sf_recompute_step(graph, plan, graph->pool);
        plan->recomputed_per_part = NULL;
        sf_recomputed_step layers = sf_recompute_step(graph, plan, graph->pool);
        plan->recomputed_per_part = recomputed_per_part;
        assert_true(longest_way(&parts, plan) < longest_way(&layers, plan));
        sf_recomputed_step_free(&parts);
        sf_recomputed_step_free(&layers);
        sf_plan_free(plan);
        sf_graph_free(graph);
    }
}

/* A clone of another node is found, wherever it is. */
static void test_wrong_twins_are_found(void **state)
{
    (void)state;
    sf_graph *graph = test_step("gpt-micro");
    sf_plan *plan = plan_again(graph, NULL, "full");
    sf_recomputed_step t = sf_recompute_step(graph, plan, graph->pool);
    uint32_t found = 0, tried = 0;
    for (uint32_t i = 0; i < t.graph->top->nnodes; i++) {
        sf_node *node = sf_top_node(t.graph, i);
        if (t.node_of[node->id] == SF_NONE || node->noperands == 0)
            continue;
        sf_value kept = node->operands[0];
        const sf_node *origin = graph->nodes[t.node_of[node->id]];
        sf_value other = origin->operands[0] == graph->top->arguments[0]
                             ? t.graph->top->arguments[1]
                             : t.graph->top->arguments[0];
        node->operands[0] = other;
        tried++;
        found += sf_check_recomputed(graph, &t, NULL) == SF_EMISMATCH;
        node->operands[0] = kept;
    }
    assert_true(tried > 100);
    assert_int_equal(found, tried);
    assert_int_equal(sf_check_recomputed(graph, &t, NULL), SF_OK);
    sf_recomputed_step_free(&t);
    sf_plan_free(plan);
    sf_graph_free(graph);
}

/* The text recomputes a loop: twice the loop until a value has converged, of a step whose gradient
 * reads its final value. */
#define T "tensor<4x4xf32>"
#define LOOP(out, w, x)                                                                            \
    "  " out ":2 = stablehlo.while(%z = " x ", %i = %none) : " T ", tensor<i32>\n"                 \
    "  cond {\n"                                                                                   \
    "    %go = stablehlo.compare LT, %i, %turns : (tensor<i32>, tensor<i32>) -> tensor<i1>\n"      \
    "    stablehlo.return %go : tensor<i1>\n"                                                      \
    "  } do {\n"                                                                                   \
    "    %a = stablehlo.dot_general %z, " w ", contracting_dims = [1] x [0] : (" T ", " T          \
    ") -> " T "\n"                                                                                 \
    "    %b = stablehlo.tanh %a : " T "\n"                                                         \
    "    %c = stablehlo.subtract %b, %z : " T "\n"                                                 \
    "    %j = stablehlo.add %i, %one : tensor<i32>\n"                                              \
    "    stablehlo.return %c, %j : " T ", tensor<i32>\n"                                           \
    "  }\n"

static const char loop_again[] =
    "func.func @main(%w: " T ", %x: " T ", %turns: tensor<i32>) -> (" T ", tensor<f32>) {\n"
    "  %zero = stablehlo.constant dense<0.0> : tensor<f32>\n"
    "  %none = stablehlo.constant dense<0> : tensor<i32>\n"
    "  %one = stablehlo.constant dense<1> : tensor<i32>\n" LOOP(
        "%f", "%w",
        "%x") "  %t = stablehlo.tanh %f#0 : " T "\n"
              "  %s = stablehlo.multiply %t, %t : " T "\n"
              "  %loss = stablehlo.reduce(%s init: %zero) applies stablehlo.add across dimensions "
              "= [0, "
              "1] : (" T ", tensor<f32>) -> tensor<f32>\n"
              "  %p:2 = stablehlo.optimization_barrier %w, %x : " T ", " T "\n" LOOP(
                  "%g", "%p#0",
                  "%p#1") "  %v = stablehlo.tanh %g#0 : " T "\n"
                          "  %u = stablehlo.multiply %v, %g#0 : " T "\n"
                          "  %gw = stablehlo.dot_general %x, %u, contracting_dims = [0] x [0] : (" T
                          ", " T ") -> " T "\n"
                          "  %new = stablehlo.subtract %w, %gw : " T "\n"
                          "  return %new, %loss : " T ", tensor<f32>\n}\n";

/* Each operand and each result in turn becomes another of the block; how many were tried, and
 * found. */
static void spoil_block(const sf_graph *graph, sf_recomputed_step *t, sf_block *block, int *tried,
                        int *found)
{
    for (uint32_t i = 0; i < block->nnodes; i++) {
        sf_node *node = t->graph->nodes[block->nodes[i]];
        for (uint32_t o = 0; o < node->noperands; o++) {
            sf_value kept = node->operands[o];
            node->operands[o] =
                kept == block->arguments[0] ? block->arguments[1] : block->arguments[0];
            ++*tried;
            *found += sf_check_recomputed(graph, t, NULL) == SF_EMISMATCH;
            node->operands[o] = kept;
        }
        const sf_type *type = t->graph->values[node->result].type;
        t->graph->values[node->result].type = sf_type_get(graph->pool, SF_F64, 0, NULL);
        ++*tried;
        *found += sf_check_recomputed(graph, t, NULL) == SF_EMISMATCH;
        t->graph->values[node->result].type = type;
    }
    for (uint32_t r = 0; r < block->nresults; r++) {
        sf_value kept = block->results[r];
        block->results[r] = kept == block->arguments[0] ? block->arguments[1] : block->arguments[0];
        ++*tried;
        *found += sf_check_recomputed(graph, t, NULL) == SF_EMISMATCH;
        block->results[r] = kept;
    }
}

static void test_loops_of_the_text(void **state)
{
    (void)state;
    sf_graph *graph = test_step_text(loop_again);
    sf_plan *plan = plan_again(graph, NULL, NULL), *cheap = plan_again(graph, NULL, "cheap");
    const sf_node *loop = test_node(graph, SF_OP_WHILE, 0);
    for (uint32_t i = 0; i < graph->top->nnodes; i++)
        assert_true(sf_top_node(graph, i) == loop || sf_top_node(graph, i)->nregions == 0);
    assert_false(cheap->recomputed[loop->id]);
    assert_string_equal(plan->recompute, "text");
    assert_true(plan->recomputed[loop->id]);
    sf_recomputed_step t = sf_recompute_step(graph, plan, graph->pool);
    assert_int_equal(sf_graph_verify(t.graph, NULL), SF_OK);
    assert_int_equal(sf_check_recomputed(graph, &t, NULL), SF_OK);
    check_readers(graph, plan, &t);
    int tried = 0, found = 0;
    for (int nth = 0; nth < 2; nth++)
        for (int r = 0; r < 2; r++)
            spoil_block(graph, &t, test_node(t.graph, SF_OP_WHILE, nth)->regions[r], &tried,
                        &found);
    assert_true(tried > 20);
    assert_int_equal(found, tried);
    assert_int_equal(sf_check_recomputed(graph, &t, NULL), SF_OK);
    sf_recomputed_step_free(&t);
    sf_plan_free(cheap);
    sf_plan_free(plan);
    sf_graph_free(graph);
}

/* Values that a loop keeps for the backward pass stay whatever the kind, with a warning. */
static void test_loops_that_stay(void **state)
{
    (void)state;
    static const struct {
        const char *how, *says;
        sf_status status;
    } cases[] = {
        {"layer", "this loop, which stays, is not looked into", SF_EMISMATCH},
        {"cheap", "the 64 B of the whole step that it keeps", SF_OK},
        {"none", "", SF_OK},
        {"text", "", SF_OK},
        {NULL, "", SF_OK},
    };
    sf_graph *graph = test_step_text(loop_again);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        sf_plan *plan = test_plan(graph, NULL, 1, "data=1", NULL);
        sf_diag *diag = sf_diag_new();
        assert_int_equal(test_recompute(graph, plan, cases[i].how, diag), cases[i].status);
        if (cases[i].status == SF_OK)
            sf_warn_kept_by_loops(graph, plan, diag);
        assert_int_equal(sf_diag_count(diag), *cases[i].says != '\0');
        if (*cases[i].says && !strstr(sf_diag_text(diag, 0), cases[i].says))
            fail_msg("%s", sf_diag_text(diag, 0));
        sf_diag_free(diag);
        sf_plan_free(plan);
    }
    sf_graph_free(graph);
}

static bool is_read_later(const sf_graph *graph, const sf_uses *uses, const sf_node *node)
{
    bool later = false;
    for (uint32_t u = uses->first[node->result]; u < uses->first[node->result + 1]; u++)
        later = later || (uses->at[u].node != SF_NONE &&
                          graph->nodes[uses->at[u].node]->phase != SF_FORWARD);
    return later;
}

/* A word says recompute, whatever the text does. */
static void test_words_and_the_text(void **state)
{
    (void)state;
    sf_graph *graph = test_step("gpt-micro");
    sf_plan *none = plan_again(graph, NULL, NULL), *before = plan_again(graph, NULL, "layer");
    assert_null(none->recomputed);
    assert_string_equal(none->recompute, "");
    uint32_t count = 0;
    sf_arena arena = {0};
    sf_uses uses = sf_uses_of(graph, &arena);
    for (uint32_t i = 0; i < graph->top->nnodes; i++) {
        sf_node *node = sf_top_node(graph, i);
        node->recomputed = sf_can_recompute(graph, node) && sf_is(node, SF_OP_MULTIPLY) &&
                           is_read_later(graph, &uses, node);
        count += node->recomputed;
    }
    sf_plan *text = plan_again(graph, NULL, NULL), *same = plan_again(graph, NULL, "text");
    sf_plan *undone = plan_again(graph, NULL, "none"), *layer = plan_again(graph, NULL, "layer");
    assert_true(count > 10);
    assert_int_equal(sf_count_recomputed(graph, text), count);
    assert_int_equal(sf_count_recomputed(graph, same), count);
    assert_null(undone->recomputed);
    assert_memory_equal(layer->recomputed, before->recomputed,
                        graph->nnodes * sizeof *layer->recomputed);
    sf_plan_free(none);
    sf_plan_free(before);
    sf_plan_free(text);
    sf_plan_free(same);
    sf_plan_free(undone);
    sf_plan_free(layer);
    sf_arena_free(&arena);
    sf_graph_free(graph);
}

static void test_words(void **state)
{
    (void)state;
    sf_graph *graph = test_step("gpt-micro");
    sf_plan *layer = plan_again(graph, NULL, "layer"), *full = plan_again(graph, NULL, "full");
    sf_plan *scope = plan_again(graph, NULL, "layer_0"), *none = plan_again(graph, NULL, "none");
    assert_null(none->recomputed);
    assert_true(sf_count_recomputed(graph, scope) > 0);
    assert_true(sf_count_recomputed(graph, scope) < sf_count_recomputed(graph, layer));
    assert_true(sf_count_recomputed(graph, layer) <= sf_count_recomputed(graph, full));
    for (uint32_t n = 0; n < graph->nnodes; n++) {
        if (scope->recomputed[n])
            assert_non_null(strstr(graph->nodes[n]->scope->path, "layer_0"));
        if (layer->recomputed[n])
            assert_non_null(strstr(graph->nodes[n]->scope->path, "layer_"));
        assert_false(layer->recomputed[n] && graph->nodes[n]->phase != SF_FORWARD);
    }
    assert_int_equal(test_recompute(graph, none, "layr", NULL), SF_EUSAGE);
    sf_plan_free(layer);
    sf_plan_free(full);
    sf_plan_free(scope);
    sf_plan_free(none);
    sf_graph_free(graph);
}

/* Without names, layers are the nodes between narrow places: here three products, each with its
 * square. */
static void test_layers_without_names(void **state)
{
    (void)state;
    static const char text[] =
        "func.func @main(%w: tensor<8x8xf32>, %x: tensor<4x8xf32>) -> (tensor<8x8xf32>, "
        "tensor<f32>) {\n"
        "  %zero = stablehlo.constant dense<0.0> : tensor<f32>\n"
        "  %a = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<4x8xf32>, "
        "tensor<8x8xf32>) -> tensor<4x8xf32>\n"
        "  %b = stablehlo.tanh %a : tensor<4x8xf32>\n"
        "  %c = stablehlo.dot_general %b, %w, contracting_dims = [1] x [0] : (tensor<4x8xf32>, "
        "tensor<8x8xf32>) -> tensor<4x8xf32>\n"
        "  %d = stablehlo.tanh %c : tensor<4x8xf32>\n"
        "  %e = stablehlo.multiply %d, %d : tensor<4x8xf32>\n"
        "  %loss = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [0, "
        "1] : (tensor<4x8xf32>, tensor<f32>) -> tensor<f32>\n"
        "  %f = stablehlo.multiply %d, %c : tensor<4x8xf32>\n"
        "  %g = stablehlo.dot_general %b, %f, contracting_dims = [0] x [0] : (tensor<4x8xf32>, "
        "tensor<4x8xf32>) -> tensor<8x8xf32>\n"
        "  %new = stablehlo.subtract %w, %g : tensor<8x8xf32>\n"
        "  return %new, %loss : tensor<8x8xf32>, tensor<f32>\n}\n";
    sf_graph *graph = test_step_text(text);
    sf_plan *plan = plan_again(graph, NULL, "layer");
    assert_true(sf_count_recomputed(graph, plan) > 0);
    sf_plan_free(plan);
    sf_graph_free(graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_twins_stand_for_what_is_marked),
        cmocka_unit_test(test_parts_are_kept),
        cmocka_unit_test(test_parts_stay_for_less),
        cmocka_unit_test(test_bits_are_the_same),
        cmocka_unit_test(test_wrong_twins_are_found),
        cmocka_unit_test(test_loops_of_the_text),
        cmocka_unit_test(test_loops_that_stay),
        cmocka_unit_test(test_words_and_the_text),
        cmocka_unit_test(test_words),
        cmocka_unit_test(test_layers_without_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
