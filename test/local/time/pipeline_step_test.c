/* Steps of pipeline ranks: together they compute the step, under every schedule; each send has its
 * receive, and any mismatch is found; state is on one pipeline rank; and sums over micro-batches
 * are sent once. */
#include "local/time/pipeline_step.h"

#include <inttypes.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "local/check_local.h"
#include "local/messages.h"
#include "op/eval.h"
#include "op/op.h"
#include "op/slots.h"
#include "plan/pipeline_request.h"
#include "run/runner.h"
#include "search/price/price_pipeline.h"
#include "sheaf/sheaf.h"
#include "solve/search/dice.h"
#include "support/chain.h"
#include "support/plans.h"
#include "support/ranks.h"
#include "support/sanitized.h"

static const char *const schedules[] = {"gpipe", "1f1b",    "interleaved:2", "zb-h1",
                                        "zb-v",  "chimera", "dualpipe"};
enum { SCHEDULES = sizeof schedules / sizeof *schedules, MOST_GROUPS = 8 };

/* A step, its arguments, and its results on one device. */
typedef struct step {
    char name[100];
    sf_graph *graph;
    sf_tensor *arguments, *results;
} step;

static step open_step(sf_graph *graph)
{
    const sf_block *top = graph->top;
    step s = {.graph = graph};
    s.arguments = sf_alloc((top->narguments + (size_t)1) * sizeof *s.arguments);
    s.results = sf_alloc((top->nresults + (size_t)1) * sizeof *s.results);
    for (uint32_t i = 0; i < top->narguments; i++) {
        const sf_type *type = sf_argument_type(graph, i);
        s.arguments[i] = (sf_tensor){.type = type, .data = sf_alloc((size_t)sf_type_bytes(type))};
        for (int64_t j = 0; j < type->count; j++)
            sf_store_f64(type->dtype, s.arguments[i].data, j, (double)((j * 7 + i) % 13 - 6) / 16);
    }
    assert_int_equal(sf_eval_graph(graph, s.arguments, s.results, 0, NULL), SF_OK);
    return s;
}

static void close_step(step *s)
{
    for (uint32_t i = 0; i < s->graph->top->narguments; i++)
        sf_free(s->arguments[i].data);
    for (uint32_t i = 0; i < s->graph->top->nresults; i++)
        sf_free(s->results[i].data);
    sf_free(s->arguments);
    sf_free(s->results);
    sf_graph_free(s->graph);
}

static void compare(void *context, int rank, uint32_t result, const sf_tensor *joined)
{
    const step *s = context;
    const sf_tensor *expected = &s->results[result];
    double largest = 0;
    for (int64_t i = 0; i < expected->type->count; i++)
        largest = fmax(largest, fabs(sf_get_f64(expected, i)));
    for (int64_t i = 0; i < expected->type->count; i++) {
        double x = sf_get_f64(joined, i), y = sf_get_f64(expected, i);
        if (!(fabs(x - y) <= 1e-5 * largest))
            fail_msg("%s, rank %d: result %u element %d is %.9g, not %.9g", s->name, rank, result,
                     (int)i, x, y);
    }
}

/* NULL if the schedule does not run so many stages or micro-batches, with the reason. */
static sf_plan *pin(const sf_graph *graph, const sf_plan_spec *options, char reason[300])
{
    sf_diag *diag = sf_diag_new();
    sf_plan *plan = NULL;
    sf_status status = sf_pin_step(graph, options, diag, &plan);
    snprintf(reason, 300, "%s", status == SF_OK ? "" : sf_diag_text(diag, 0));
    if (status != SF_OK) {
        plan = NULL;
        if (status != SF_EUSAGE)
            fail_msg("%s stages, %s, %d turns: %s", options->stages, options->schedule,
                     options->micro_batches, reason);
    }
    sf_diag_free(diag);
    return plan;
}

static sf_plan *must_pin(const sf_graph *graph, const sf_plan_spec *options)
{
    char reason[300];
    sf_plan *plan = pin(graph, options, reason);
    if (!plan)
        fail_msg("%s stages, %s: %s", options->stages, options->schedule, reason);
    return plan;
}

static void check_runs(step *s, const sf_plan *plan)
{
    sf_diag *diag = sf_diag_new();
    if (sf_plan_check(plan, s->graph, 0, diag) != SF_OK ||
        test_run_split(s->graph, plan, s->arguments, compare, s, diag) != SF_OK)
        fail_msg("%s: %s", s->name, sf_diag_text(diag, 0));
    sf_diag_free(diag);
}

/* Runs the step in that many stages under every schedule and number of micro-batches; returns how
 * many suited. */
static int check_schedules(step *s, const char *what, const sf_plan_spec *like)
{
    static const int stages[] = {2, 4, 8}, microbatches[] = {1, 2, 4, 8};
    int ran = 0;
    for (int k = 0; k < SCHEDULES; k++)
        for (int p = 0; p < 3; p++)
            for (int m = 0; m < 4; m++) {
                char count[8], reason[300];
                sf_plan_spec options = *like;
                snprintf(count, sizeof count, "%d", stages[p]);
                snprintf(s->name, sizeof s->name, "%s: %s, %d stages, %d turns", what, schedules[k],
                         stages[p], microbatches[m]);
                options.stages = count;
                options.schedule = schedules[k];
                options.micro_batches = microbatches[m];
                sf_plan *plan = pin(s->graph, &options, reason);
                if (!plan)
                    continue;
                check_runs(s, plan);
                sf_plan_free(plan);
                ran++;
            }
    return ran;
}

static void test_schedules_compute_the_step(void **state)
{
    (void)state;
    for (int tied = 0; tied < 2; tied++) {
        step s = open_step(test_chain(8, 16, 4, tied));
        int ran = check_schedules(&s, tied ? "tied" : "chain",
                                  &(sf_plan_spec){.size = sizeof(sf_plan_spec)});
        print_message("%d pipelines\n", ran);
        assert_true(ran > 50);
        close_step(&s);
    }
}

/* Reports of each example, and of all, from any pipeline rank. */
static void test_reports(void **state)
{
    (void)state;
    step s = open_step(test_chain_reporting(8, 16, 4));
    assert_true(check_schedules(&s, "reports", &(sf_plan_spec){.size = sizeof(sf_plan_spec)}) > 50);
    close_step(&s);
}

/* Sums over the batch that the backward pass reads, or the forward pass: whether a survey finds them or not. */
static void test_needs_of_all_turns(void **state)
{
    (void)state;
    for (int balances = 0; balances < 2; balances++) {
        step s = open_step(test_chain_needing_all(8, 16, 4, balances));
        sf_plan_spec like = {.size = sizeof like, .recompute = balances ? "full" : NULL};
        assert_true(check_schedules(&s, balances ? "balanced" : "shares", &like) > 50);
        close_step(&s);
    }
}

/* Recomputed nodes are in their own stage. */
static void test_with_recompute(void **state)
{
    (void)state;
    step s = open_step(test_chain(8, 16, 4, false));
    assert_true(
        check_schedules(&s, "again",
                        &(sf_plan_spec){.size = sizeof(sf_plan_spec), .recompute = "full"}) > 50);
    close_step(&s);
}

/* Groups of two ranks, which split their parts. */
static void test_groups_of_ranks(void **state)
{
    (void)state;
    for (int k = 0; k < SCHEDULES; k++) {
        step s = open_step(test_chain(8, 16, 4, true));
        sf_plan_spec options = {.size = sizeof options,
                                .stages = k == 2 || k == 4 ? "4" : "2",
                                .schedule = schedules[k],
                                .micro_batches = 4,
                                .recipe = "dp",
                                .ranks = 4};
        snprintf(s.name, sizeof s.name, "dp: %s", schedules[k]);
        sf_plan *plan = must_pin(s.graph, &options);
        check_runs(&s, plan);
        sf_plan_free(plan);
        close_step(&s);
    }
}

/* Ranks that all have a tensor send a part each. Of tied weights, of layers on two pipeline ranks, of activations. */
static void test_messages_are_split(void **state)
{
    (void)state;
    static const char *const recipes[] = {"dp", "megatron"};
    for (int k = 0; k < SCHEDULES; k++)
        for (size_t r = 0; r < sizeof recipes / sizeof *recipes; r++)
            for (int groups = 2; groups <= 4; groups++) {
                if (test_short() && (groups + k + (int)r) % 4 != 0)
                    continue;
                char count[8], reason[300];
                int folds = k == 2 || k == 4 ? 2 : 1;
                snprintf(count, sizeof count, "%d", folds * groups);
                step s = open_step(test_chain(8, 24, 4, true));
                sf_plan_spec options = {.size = sizeof options,
                                        .stages = count,
                                        .schedule = schedules[k],
                                        .micro_batches = groups == 3 ? 6 : 4,
                                        .recipe = recipes[r],
                                        .ranks = 2 * groups};
                snprintf(s.name, sizeof s.name, "split, %s: %s", recipes[r], schedules[k]);
                sf_plan *plan = pin(s.graph, &options, reason);
                if (plan) {
                    plan->pipeline->split_bytes = 1;
                    check_runs(&s, plan);
                }
                assert_true(plan || groups == 3);
                sf_plan_free(plan);
                close_step(&s);
            }
}

/* Groups --------------------------------------------------------------------------------------- */

typedef struct groups {
    sf_graph *graph;
    sf_plan *plan;
    int count;
    sf_local *at[MOST_GROUPS];
} groups;

static groups open_groups(sf_graph *graph, const sf_plan_spec *options)
{
    groups g = {.graph = graph, .plan = must_pin(graph, options)};
    g.count = sf_plan_groups(g.plan);
    assert_true(g.count <= MOST_GROUPS);
    for (int i = 0; i < g.count; i++)
        g.at[i] = test_local(graph, g.plan, sf_plan_group_rank(g.plan, i));
    return g;
}

static void close_groups(groups *g)
{
    for (int i = 0; i < g->count; i++)
        sf_local_free(g->at[i]);
    sf_plan_free(g->plan);
    sf_graph_free(g->graph);
}

/* Each weight is in one group whole, and empty in all others. */
static void test_state_stands_in_one_group(void **state)
{
    (void)state;
    for (int k = 0; k < SCHEDULES; k++) {
        groups g = open_groups(test_chain(8, 16, 4, false),
                               &(sf_plan_spec){.size = sizeof(sf_plan_spec),
                                               .stages = k == 2 || k == 4 ? "8" : "4",
                                               .schedule = schedules[k],
                                               .micro_batches = 4});
        assert_int_equal(g.count, 4);
        int held[MOST_GROUPS] = {0};
        for (uint32_t w = 0; w < 8; w++) {
            int holders = 0;
            for (int i = 0; i < g.count; i++) {
                int64_t count = sf_argument_type(g.at[i]->graph, w)->count;
                assert_true(count == 0 || count == 16);
                holders += count > 0;
                held[i] += count > 0;
                assert_int_equal(sf_result_type(g.at[i]->graph, w)->count, count);
            }
            assert_int_equal(holders, 1);
        }
        for (int i = 0; i < g.count; i++)
            if (held[i] != 2)
                fail_msg("%s: group %d holds %d weights", schedules[k], i, held[i]);
        close_groups(&g);
    }
}

static int count_messages(const sf_local *local, sf_opcode code, int64_t elements)
{
    int count = 0;
    for (uint32_t i = 0; i < local->graph->top->nnodes; i++) {
        const sf_node *node = sf_top_node(local->graph, i);
        if (!sf_is(node, code))
            continue;
        sf_value value = code == SF_OP_SEND ? node->operands[0] : node->result;
        count += sf_type_of(local->graph, value)->count == elements;
    }
    return count;
}

/* Weights of two stages go to the other once, and their gradient comes back once, whatever the
 * number of micro-batches. */
static void test_sums_are_sent_once(void **state)
{
    (void)state;
    for (int microbatches = 1; microbatches <= 16; microbatches *= 2) {
        enum { WIDTH = 6, BATCH = 32 }; /* no micro-batch is as large as the weights */
        groups g = open_groups(test_chain(8, BATCH, WIDTH, true),
                               &(sf_plan_spec){.size = sizeof(sf_plan_spec),
                                               .stages = "4",
                                               .schedule = "1f1b",
                                               .micro_batches = microbatches});
        for (int i = 0; i < g.count; i++) {
            int sent = count_messages(g.at[i], SF_OP_SEND, WIDTH * WIDTH);
            int received = count_messages(g.at[i], SF_OP_RECEIVE, WIDTH * WIDTH);
            bool ends = i == 0 || i == g.count - 1;
            if (sent != ends || received != ends)
                fail_msg("%d turns, group %d: %d weights sent, %d received", microbatches, i, sent,
                         received);
            int passed = count_messages(g.at[i], SF_OP_SEND, BATCH / microbatches * WIDTH);
            assert_int_equal(passed, ends ? microbatches : 2 * microbatches);
        }
        close_groups(&g);
    }
}

static int64_t bytes_sent(const groups *g)
{
    int64_t bytes = 0;
    for (int i = 0; i < g->count; i++)
        for (uint32_t n = 0; n < g->at[i]->graph->top->nnodes; n++) {
            const sf_node *node = sf_top_node(g->at[i]->graph, n);
            if (sf_is(node, SF_OP_SEND))
                bytes += sf_type_bytes(sf_type_of(g->at[i]->graph, node->operands[0]));
        }
    return bytes;
}

/* Of four ranks of a pipeline rank, each sends a fourth. */
static void test_ranks_send_their_share(void **state)
{
    (void)state;
    static const char *const recipes[] = {"dp", "megatron"};
    for (size_t r = 0; r < sizeof recipes / sizeof *recipes; r++) {
        int64_t sent[2];
        for (int split = 0; split < 2; split++) {
            sf_graph *graph = test_chain(8, 32, 8, true);
            sf_plan_spec options = {.size = sizeof options,
                                    .stages = "4",
                                    .micro_batches = 8,
                                    .recipe = recipes[r],
                                    .ranks = 16};
            groups g = {.graph = graph, .plan = must_pin(graph, &options), .count = 4};
            g.plan->pipeline->split_bytes = split ? 1 : INT64_MAX;
            for (int i = 0; i < g.count; i++)
                g.at[i] = test_local(graph, g.plan, sf_plan_group_rank(g.plan, i));
            assert_int_equal(sf_check_messages(g.count, g.at, NULL), SF_OK);
            sent[split] = bytes_sent(&g);
            close_groups(&g);
        }
        /* the weight and its gradient; six times the activations, as the weight is split anyway */
        int64_t whole = r == 0 ? 2 * 8 * 8 * 4 : 6 * 32 * 8 * 4;
        assert_int_equal(sent[0] - sent[1], whole / 4 * 3);
    }
}

/* The place of the first message of so many elements to, or from, the group. */
static uint32_t place_of(const sf_local *local, sf_opcode code, int64_t elements, int64_t peer)
{
    for (uint32_t i = 0; i < local->graph->top->nnodes; i++) {
        const sf_node *node = sf_top_node(local->graph, i);
        if (sf_is(node, code) && node->attrs[SF_MESSAGE_PEER]->integer == peer &&
            sf_type_of(local->graph, code == SF_OP_SEND ? node->operands[0] : node->result)
                    ->count == elements)
            return i;
    }
    fail_msg("no such message");
    return SF_NONE;
}

/* The weight of the first and the last stage is sent after the first activations, and received
 * ahead of those that come later, except where the receiver begins as early as the sender. */
static void test_activations_go_first(void **state)
{
    (void)state;
    enum { WIDTH = 6, BATCH = 32, TURNS = 4, PASSED = BATCH / TURNS * WIDTH };
    static const char *const orders[] = {"1f1b", "gpipe", "zb-h1", "interleaved:2"};
    for (int k = 0; k < 4; k++) {
        groups g = open_groups(test_chain(8, BATCH, WIDTH, true),
                               &(sf_plan_spec){.size = sizeof(sf_plan_spec),
                                               .stages = k == 3 ? "8" : "4",
                                               .schedule = orders[k],
                                               .micro_batches = TURNS});
        assert_true(place_of(g.at[0], SF_OP_SEND, PASSED, 1) <
                    place_of(g.at[0], SF_OP_SEND, WIDTH * WIDTH, 3));
        assert_true(place_of(g.at[3], SF_OP_RECEIVE, WIDTH * WIDTH, 0) <
                    place_of(g.at[3], SF_OP_RECEIVE, PASSED, 2));
        close_groups(&g);
    }
}

/* Under gpipe, values of all micro-batches that the backward pass needs are made between the two;
 * else, and if the forward pass needs them, each micro-batch goes through the stages once more, up
 * to their maker. */
static void test_surveys(void **state)
{
    (void)state;
    enum { WIDTH = 6, BATCH = 32, TURNS = 4, STAGES = 4 };
    for (int balances = 0; balances < 2; balances++)
        for (int k = 0; k < 2; k++) {
            groups g = open_groups(test_chain_needing_all(8, BATCH, WIDTH, balances),
                                   &(sf_plan_spec){.size = sizeof(sf_plan_spec),
                                                   .stages = "4",
                                                   .schedule = schedules[k],
                                                   .micro_batches = TURNS});
            bool surveys = !balances || k == 1;
            for (int i = 0; i < g.count; i++) {
                int forward = i == STAGES - 1 ? 0 : TURNS, backward = i == 0 ? 0 : TURNS;
                int sent = count_messages(g.at[i], SF_OP_SEND, BATCH / TURNS * WIDTH);
                if (sent != forward * (surveys ? 2 : 1) + backward)
                    fail_msg("%s, %s: group %d sends %d", balances ? "balanced" : "shares",
                             schedules[k], i, sent);
            }
            close_groups(&g);
        }
}

/* Mutants -------------------------------------------------------------------------------------- */

typedef enum mutation { DROP, SWAP, RESIZE, RENUMBER, REROUTE, RELAY, MUTATIONS } mutation;

static sf_node *message_at(const sf_local *local, uint32_t place)
{
    sf_node *node = local->graph->nodes[local->graph->top->nodes[place]];
    return sf_is_message(node) ? node : NULL;
}

/* The next message of the same op to, or from, the same group. */
static uint32_t next_like(const sf_local *local, uint32_t place)
{
    const sf_node *node = message_at(local, place);
    for (uint32_t i = place + 1; i < local->graph->top->nnodes; i++) {
        const sf_node *other = message_at(local, i);
        if (other && other->def == node->def &&
            other->attrs[SF_MESSAGE_PEER]->integer == node->attrs[SF_MESSAGE_PEER]->integer)
            return i;
    }
    return SF_NONE;
}

static bool is_found(const groups *g)
{
    sf_diag *diag = sf_diag_new();
    sf_status status = sf_check_messages(g->count, g->at, diag);
    if (status != SF_OK) {
        assert_int_equal(status, SF_EMISMATCH);
        assert_non_null(strstr(sf_diag_text(diag, 0), "message "));
        assert_non_null(strstr(sf_diag_text(diag, 0), "from pipeline rank "));
    }
    sf_diag_free(diag);
    return status != SF_OK;
}

static void set_attr(sf_node *node, int slot, int64_t value, sf_pool *pool, sf_arena *arena)
{
    const sf_attr **attrs =
        sf_arena_copy(arena, node->attrs, (size_t)node->def->nattrs * sizeof *attrs);
    attrs[slot] = sf_attr_int(pool, value);
    node->attrs = attrs;
}

/* Makes the mutation, runs the check, and undoes it. -1: there is no such mutant. */
static int try_mutant(const groups *g, sf_local *local, uint32_t place, mutation kind)
{
    sf_graph *graph = local->graph;
    sf_node *node = message_at(local, place), saved = *node;
    uint32_t *nodes = (uint32_t *)graph->top->nodes, id = nodes[place],
             other = next_like(local, place);
    sf_arena arena = {0};
    sf_value value = sf_is(node, SF_OP_SEND) ? node->operands[0] : node->result;
    const sf_type *type = sf_type_of(graph, value);
    sf_layout layout = local->pieces[value].layout;
    int64_t size = node->attrs[SF_COLLECTIVE_SIZE]->integer;
    int64_t peer = node->attrs[SF_MESSAGE_PEER]->integer;
    if ((kind == SWAP && other == SF_NONE) || (kind == REROUTE && size < 3)) {
        return -1;
    } else if (kind == DROP) {
        for (uint32_t i = 0; i < graph->top->nnodes; i++)
            if (!message_at(local, i))
                nodes[place] = nodes[i];
        assert_int_not_equal(nodes[place], id);
    } else if (kind == SWAP) {
        nodes[place] = nodes[other];
        nodes[other] = id;
    } else if (kind == RESIZE) {
        const int64_t dims[] = {type->count + 1};
        graph->values[value].type = sf_type_get(graph->pool, type->dtype, 1, dims);
    } else if (kind == RENUMBER) {
        set_attr(node, SF_COLLECTIVE_NUMBER, node->attrs[SF_COLLECTIVE_NUMBER]->integer + 1,
                 graph->pool, &arena);
    } else if (kind == RELAY) { /* another shard of the same size */
        local->pieces[value].layout.axes[0].kind = SF_SPLIT;
    } else {
        int64_t to = peer;
        while (to == peer || g->at[to] == local)
            to = (to + 1) % size;
        set_attr(node, SF_MESSAGE_PEER, to, graph->pool, &arena);
    }
    int found = is_found(g);
    local->pieces[value].layout = layout;
    if (kind == SWAP)
        nodes[other] = nodes[place];
    nodes[place] = id;
    graph->values[value].type = type;
    *node = saved;
    sf_arena_free(&arena);
    return found;
}

static void test_wrong_messages_are_found(void **state)
{
    (void)state;
    int mutants = 0;
    for (int k = 0; k < SCHEDULES; k++) {
        groups g = open_groups(test_chain(8, 16, 4, true),
                               &(sf_plan_spec){.size = sizeof(sf_plan_spec),
                                               .stages = k == 2 || k == 4 ? "8" : "4",
                                               .schedule = schedules[k],
                                               .micro_batches = 4});
        assert_false(is_found(&g));
        for (int i = 0; i < g.count; i++)
            for (uint32_t place = 0; place < g.at[i]->graph->top->nnodes; place++)
                for (int kind = 0; message_at(g.at[i], place) && kind < MUTATIONS; kind++) {
                    int found = try_mutant(&g, g.at[i], place, (mutation)kind);
                    if (found == 0)
                        fail_msg("%s, group %d, node %u: mutation %d is not found", schedules[k], i,
                                 place, kind);
                    mutants += found > 0;
                }
        assert_false(is_found(&g));
        close_groups(&g);
    }
    print_message("%d mutants\n", mutants);
    assert_true(mutants > 1000);
}

static sf_node *shared_at(const sf_local *local, uint32_t place)
{
    sf_node *node = local->graph->nodes[local->graph->top->nodes[place]];
    return sf_is_between_groups(node) ? node : NULL;
}

/* The next collective of the pipeline rank that it shares with others. */
static uint32_t next_shared(const sf_local *local, uint32_t place)
{
    uint32_t count = local->graph->top->nnodes;
    for (place++; place < count && !shared_at(local, place); place++)
        continue;
    return place < count ? place : SF_NONE;
}

static void expect_refused(const groups *g, const char *change, uint32_t place)
{
    sf_diag *diag = sf_diag_new();
    if (sf_check_messages(g->count, g->at, diag) != SF_EMISMATCH)
        fail_msg("collective at %u: %s is not found", place, change);
    assert_non_null(strstr(sf_diag_text(diag, 0), "pipeline rank"));
    sf_diag_free(diag);
}

/* Pipeline ranks that share a stage, and one of them comes to another collective than the others: to one of another order,
 * number, micro-batch or value, or to none. */
static void check_shared_mutants(const groups *g, sf_local *local, uint32_t place)
{
    static const int slots[] = {SF_COLLECTIVE_NUMBER, SF_COLLECTIVE_MICROBATCH};
    sf_graph *graph = local->graph;
    sf_node *node = shared_at(local, place), saved = *node;
    uint32_t *nodes = (uint32_t *)graph->top->nodes, id = nodes[place];
    uint32_t other = next_shared(local, place), whole = local->pieces[node->result].whole;
    sf_arena arena = {0};
    for (size_t i = 0; i < sizeof slots / sizeof *slots; i++) {
        set_attr(node, slots[i], node->attrs[slots[i]]->integer + 1, graph->pool, &arena);
        expect_refused(g, "another number", place);
        *node = saved;
    }
    set_attr(node, SF_COLLECTIVE_GROUPS, 1, graph->pool, &arena);
    expect_refused(g, "another set", place);
    *node = saved;
    local->pieces[node->result].whole = local->pieces[graph->top->arguments[0]].whole;
    expect_refused(g, "another value", place);
    local->pieces[node->result].whole = whole;
    if (other != SF_NONE) {
        nodes[place] = nodes[other];
        nodes[other] = id;
        expect_refused(g, "another order", place);
        nodes[other] = nodes[place];
    }
    for (uint32_t i = 0; i < graph->top->nnodes; i++)
        if (!shared_at(local, i))
            nodes[place] = nodes[i];
    expect_refused(g, "none", place);
    nodes[place] = id;
    sf_arena_free(&arena);
}

static void test_wrong_collectives_are_found(void **state)
{
    (void)state;
    int mutants = 0;
    groups g = open_groups(test_step("gpt-micro"), &(sf_plan_spec){.size = sizeof(sf_plan_spec),
                                                                   .stages = "2",
                                                                   .schedule = "interlaced",
                                                                   .micro_batches = 2});
    assert_int_equal(sf_check_messages(g.count, g.at, NULL), SF_OK);
    for (int i = 0; i < g.count; i++)
        for (uint32_t place = 0; place < g.at[i]->graph->top->nnodes; place++)
            if (shared_at(g.at[i], place)) {
                check_shared_mutants(&g, g.at[i], place);
                mutants++;
            }
    assert_int_equal(sf_check_messages(g.count, g.at, NULL), SF_OK);
    close_groups(&g);
    print_message("%d shared collectives\n", mutants);
    assert_true(mutants > 10);
}

/* Mutants of schedules ------------------------------------------------------------------------- */

static void spoil_schedule(sf_schedule *s, sf_dice *dice)
{
    uint32_t g = sf_dice_below(dice, s->pipe.ngroups), h = sf_dice_below(dice, s->pipe.ngroups);
    sf_stage_task *a = &s->tasks[g][sf_dice_below(dice, s->ntasks[g])];
    uint32_t k = sf_dice_below(dice, 4) ? g : h; /* mostly the same group: others are refused */
    sf_stage_task *b = &s->tasks[k][sf_dice_below(dice, s->ntasks[k])];
    sf_stage_task was = *a;
    *a = *b;
    *b = was;
}

/* Whether groups of the plan come to an end when each does one thing after the other. */
static void check_ends(const sf_graph *graph, const sf_plan *plan, const char *text)
{
    sf_group_runs runs;
    sf_diag *diag = sf_diag_new();
    if (sf_group_runs_new(graph, plan, sf_engine_target(NULL), NULL, diag, &runs) != SF_OK)
        fail_msg("%s\n%s", sf_diag_text(diag, 0), text);
    sf_group_runs_free(&runs);
    sf_diag_free(diag);
}

/* Tasks that change places: the schedule is refused, or the losses are right and no group waits for ever. */
static void test_spoiled_schedules(void **state)
{
    (void)state;
    const int mutants = test_rounds(500);
    static const char *const names[] = {"gpipe", "1f1b", "zb-h1", "chimera"};
    step s = open_step(test_chain(8, 16, 4, true));
    sf_dice dice = {17};
    int refused = 0;
    for (int i = 0; i < mutants; i++) {
        sf_arena arena = {0};
        sf_buf text = {0};
        sf_diag *diag = sf_diag_new();
        sf_plan *plan = must_pin(s.graph, &(sf_plan_spec){.size = sizeof(sf_plan_spec),
                                                          .stages = "4",
                                                          .schedule = names[i % 4],
                                                          .micro_batches = 4});
        sf_pipeline *pipeline = sf_pipeline_copy(plan->pipeline, s.graph, &arena);
        for (int times = i % 3; times >= 0; times--)
            spoil_schedule(&pipeline->schedule, &dice);
        sf_schedule_write(&pipeline->schedule, &text);
        sf_spec spec = {.stages = {.kind = SF_STAGES_COUNT, .count = 4},
                        .table = &pipeline->schedule};
        sf_pipeline_costs costs = {0};
        sf_pipeline made;
        sf_plan_free(plan);
        if (sf_pipeline_by(s.graph, &spec, &costs, &arena, diag, &made) != SF_OK) {
            refused++;
        } else {
            made.axis = 0;
            snprintf(s.name, sizeof s.name, "mutant %d", i);
            plan = test_plan(s.graph, NULL, 4, "pipe=4", NULL);
            assert_int_equal(sf_plan_set_pipeline(plan, s.graph, &made, diag), SF_OK);
            check_ends(s.graph, plan, text.text);
            check_runs(&s, plan);
            sf_plan_free(plan);
        }
        sf_diag_free(diag);
        sf_buf_free(&text);
        sf_arena_free(&arena);
    }
    print_message("%d of %d schedules refused\n", refused, mutants);
    assert_true(refused > mutants / 10 && refused < mutants * 9 / 10);
    close_step(&s);
}

/* Steps of models ------------------------------------------------------------------------------- */

static void check_verified(const char *name, const sf_graph *graph, const sf_plan *plan,
                           const char *schedule)
{
    sf_diag *diag = sf_diag_new();
    sf_verify_report *report = NULL;
    if (sf_verify_plan(graph, plan, &SF_OPTIONS(sf_verify_options, .steps = 2), diag, &report) !=
        SF_OK)
        fail_msg("%s, %u stages, %s, %d turns: %s", name, plan->pipeline->stages.count, schedule,
                 plan->micro_batches, sf_diag_text(diag, 0));
    assert_true(report->passed);
    sf_verify_free(report);
    sf_diag_free(diag);
}

static void verify_micro(const char *name, const sf_graph *graph, const sf_plan_spec *options)
{
    sf_plan *plan = must_pin(graph, options);
    check_verified(name, graph, plan, options->schedule);
    sf_plan_free(plan);
}

/* The schedule of the plan with tasks that changed places; false where it is refused. */
static bool spoil_plan(const sf_graph *graph, sf_plan *plan, int times, sf_dice *dice)
{
    sf_arena arena = {0};
    sf_diag *diag = sf_diag_new();
    sf_pipeline *old = sf_pipeline_copy(plan->pipeline, graph, &arena), new;
    for (; times >= 0; times--)
        spoil_schedule(&old->schedule, dice);
    const sf_schedule_choice choice = {.table = &old->schedule};
    const sf_pipe *pipe = &old->schedule.pipe;
    bool taken = sf_pipeline_make(graph, old->stages.count, old->stages.of_node, pipe->ngroups,
                                  pipe->nmicrobatches, &choice, &arena, diag, &new) == SF_OK;
    if (taken) {
        new.axis = old->axis;
        assert_int_equal(sf_plan_set_pipeline(plan, graph, &new, diag), SF_OK);
    }
    sf_diag_free(diag);
    sf_arena_free(&arena);
    return taken;
}

/* Stages that all groups share, and several forward passes: mutants are refused, too, or the losses are right. */
static void test_spoiled_models(void **state)
{
    (void)state;
    enum { MUTANTS = 60 }; /* few are taken */
    static const struct {
        const char *name, *stages, *schedule;
    } cases[] = {{"gpt-micro", "2", "interlaced"}, {"evoformer-micro", "6", "3f1b"}};
    sf_dice dice = {18};
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        sf_graph *graph = test_step(cases[c].name);
        int refused = 0;
        for (int i = 0; i < MUTANTS; i++) {
            sf_plan *plan = must_pin(graph, &(sf_plan_spec){.size = sizeof(sf_plan_spec),
                                                            .stages = cases[c].stages,
                                                            .schedule = cases[c].schedule,
                                                            .micro_batches = 2});
            bool taken = spoil_plan(graph, plan, i % 2, &dice);
            refused += !taken;
            if (taken) {
                check_ends(graph, plan, cases[c].name);
                check_verified(cases[c].name, graph, plan, cases[c].schedule);
            }
            sf_plan_free(plan);
        }
        print_message("%s: %d of %d schedules refused\n", cases[c].schedule, refused, MUTANTS);
        assert_true(refused > MUTANTS / 10 && refused < MUTANTS);
        sf_graph_free(graph);
    }
}

/* A decoder, an encoder and a decoder with tied embeddings, skips over stages, and a graph that is
 * no chain: ranks as threads make the losses and the state of one device. */
static void test_models(void **state)
{
    (void)state;
    static const char *const names[] = {"gpt-micro", "t5-micro", "unet-micro", "evoformer-micro"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        sf_graph *graph = test_step(names[i]);
        for (int k = 0; k < SCHEDULES; k++) {
            if (test_short() && ((size_t)k + i) % 2)
                continue;
            sf_plan_spec options = {.size = sizeof options,
                                    .stages = k == 2 || k == 4 ? "4" : "2",
                                    .schedule = schedules[k],
                                    .micro_batches = 2};
            verify_micro(names[i], graph, &options);
        }
        sf_graph_free(graph);
    }
}

/* The same, split inside of groups, and with recompute. */
static void test_models_are_split_in_groups(void **state)
{
    (void)state;
    static const char *const recipes[] = {"dp", "zero1", "zero2", "zero3", "megatron", "sequence"};
    sf_graph *graph = test_step("gpt-micro");
    for (size_t r = 0; r < sizeof recipes / sizeof *recipes; r++)
        for (int recomputed = 0; recomputed < 2; recomputed++) {
            sf_plan_spec options = {.size = sizeof options,
                                    .stages = recomputed ? "4" : "2",
                                    .schedule = recomputed ? "zb-v" : "1f1b",
                                    .micro_batches = 2,
                                    .recipe = recipes[r],
                                    .ranks = 4,
                                    .recompute = recomputed ? "layer" : NULL};
            verify_micro(recipes[r], graph, &options);
        }
    sf_graph_free(graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_schedules_compute_the_step),
        cmocka_unit_test(test_reports),
        cmocka_unit_test(test_needs_of_all_turns),
        cmocka_unit_test(test_with_recompute),
        cmocka_unit_test(test_groups_of_ranks),
        cmocka_unit_test(test_messages_are_split),
        cmocka_unit_test(test_state_stands_in_one_group),
        cmocka_unit_test(test_sums_are_sent_once),
        cmocka_unit_test(test_ranks_send_their_share),
        cmocka_unit_test(test_activations_go_first),
        cmocka_unit_test(test_surveys),
        cmocka_unit_test(test_wrong_messages_are_found),
        cmocka_unit_test(test_wrong_collectives_are_found),
        cmocka_unit_test(test_spoiled_schedules),
        cmocka_unit_test(test_spoiled_models),
        cmocka_unit_test(test_models),
        cmocka_unit_test(test_models_are_split_in_groups),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
