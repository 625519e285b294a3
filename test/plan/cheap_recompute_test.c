/* Values that need not be sent, against a plain search through all their predecessors. */
#include "plan/cheap_recompute.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/mem.h"
#include "plan/pin.h"
#include "support/plans.h"

typedef struct judge {
    const sf_graph *graph;
    const sf_uses *uses;
    uint32_t *place;
    uint32_t *asked; /* by value: the question, times two, plus whether the answer was yes */
    uint32_t question;
} judge;

/* Whether a node of the forward pass at that place, or later, reads the value. */
static bool is_read_from(const judge *j, sf_value value, uint32_t from)
{
    for (uint32_t u = j->uses->first[value]; u < j->uses->first[value + 1]; u++) {
        uint32_t user = j->uses->at[u].node;
        if (user != SF_NONE && j->graph->nodes[user]->phase == SF_FORWARD && j->place[user] >= from)
            return true;
    }
    return false;
}

static bool all_follow(judge *j, const sf_node *node, uint32_t at);

/* Whether the value is available at that place, or follows by cheap ops from available ones. */
static bool follows(judge *j, sf_value value, uint32_t at)
{
    const sf_node *maker = sf_maker(j->graph, value);
    if (!maker || is_read_from(j, value, at))
        return true;
    if (j->asked[value] / 2 != j->question)
        j->asked[value] = 2 * j->question + (maker->phase == SF_FORWARD && sf_op_is_light(maker) &&
                                             all_follow(j, maker, at));
    return j->asked[value] % 2;
}

static bool all_follow(judge *j, const sf_node *node, uint32_t at)
{
    for (uint32_t o = 0; o < node->noperands; o++)
        if (!follows(j, node->operands[o], at))
            return false;
    return true;
}

/* Values of constants alone follow from nothing. */
static bool is_light(judge *j, const sf_node *node)
{
    uint32_t last = 0;
    for (uint32_t r = 0; r < node->nresults; r++)
        for (uint32_t at = last + 1; at < j->graph->top->nnodes; at++)
            last = is_read_from(j, node->result + r, at) ? at : last;
    j->question++;
    return node->phase == SF_FORWARD && sf_op_is_light(node) && all_follow(j, node, last);
}

static void test_beside_a_plain_search(void **state)
{
    (void)state;
    static const char *const names[] = {"gpt-micro", "evoformer-micro", "moe-micro", "t5-micro"};
    uint32_t nlight = 0, nheavy = 0;
    for (size_t s = 0; s < sizeof names / sizeof *names; s++) {
        sf_graph *graph = test_step(names[s]);
        sf_arena arena = {0};
        sf_uses uses = sf_uses_of(graph, &arena);
        const bool *is_free = sf_find_fixed(graph, &arena);
        sf_light light = sf_find_light(graph, &uses, is_free, &arena);
        judge j = {.graph = graph,
                   .uses = &uses,
                   .place = SF_ARRAY(&arena, graph->nnodes, uint32_t),
                   .asked = SF_ARRAY(&arena, graph->nvalues, uint32_t)};
        for (uint32_t i = 0; i < graph->top->nnodes; i++)
            j.place[graph->top->nodes[i]] = i;
        for (uint32_t i = 0; i < graph->top->nnodes; i++) {
            const sf_node *node = sf_top_node(graph, i);
            if (is_free[node->id] || node->nresults != 1)
                continue;
            assert_int_equal(light.is_light[node->id], is_light(&j, node));
            nlight += light.is_light[node->id];
            nheavy += node->phase == SF_FORWARD && !light.is_light[node->id];
        }
        sf_arena_free(&arena);
        sf_graph_free(graph);
    }
    assert_true(nlight > 20 && nheavy > 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_beside_a_plain_search)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
