#include "support/spoil.h"

#include <string.h>

#include "base/mem.h"
#include "op/op.h"
#include "op/slots.h"

static const char *const names[TEST_MISTAKES] = {
    [TEST_UNREDUCED] = "a sum left out",      [TEST_TWICE] = "a sum counted twice",
    [TEST_SWAPPED] = "pieces swapped",        [TEST_WRONG_RANK] = "pieces from the wrong rank",
    [TEST_DROPPED] = "pieces dropped",        [TEST_STALE] = "stale state",
    [TEST_OTHER] = "the work of another rank"};

const char *test_mistake_name(test_mistake mistake)
{
    return names[mistake];
}

/* Whether the mistake can be made of this collective. */
static bool suits(const sf_node *node, test_mistake mistake)
{
    if (!sf_is_collective(node))
        return false;
    sf_collective kind = sf_op_collective(node->def);
    bool reduces = kind == SF_ALL_REDUCE || kind == SF_REDUCE_SCATTER;
    switch (mistake) {
    case TEST_UNREDUCED:
        return kind == SF_ALL_REDUCE;
    case TEST_TWICE:
        return reduces;
    case TEST_SWAPPED:
    case TEST_WRONG_RANK:
        return kind == SF_ALL_GATHER || kind == SF_ALL_TO_ALL;
    case TEST_DROPPED:
        return true;
    case TEST_STALE:
    case TEST_OTHER:
    case TEST_MISTAKES:
        break;
    }
    return false;
}

/* Sums alone are additive: the maximum of a softmax, left out, changes nothing. */
static bool adds(const sf_node *node, test_mistake mistake)
{
    if (mistake != TEST_UNREDUCED && mistake != TEST_TWICE)
        return true;
    const sf_attr *monoid = node->attrs[SF_COLLECTIVE_BODY];
    return monoid && monoid->integer == SF_MONOID_ADD;
}

static bool is_state(const sf_graph *graph, uint32_t argument)
{
    uint32_t next = graph->arguments[argument].next;
    return next != SF_NONE && sf_argument_type(graph, argument) == sf_result_type(graph, next) &&
           sf_is_float(sf_argument_type(graph, argument)->dtype);
}

static uint32_t count_state(const sf_graph *graph)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < graph->top->narguments; i++)
        count += is_state(graph, i);
    return count;
}

uint32_t test_spoil_places(const sf_local *local, test_mistake mistake)
{
    const sf_graph *graph = local->graph;
    uint32_t count = 0;
    if (mistake == TEST_OTHER)
        return 1;
    if (mistake == TEST_STALE)
        return count_state(graph);
    for (uint32_t i = 0; i < graph->top->nnodes; i++) {
        const sf_node *node = sf_top_node(graph, i);
        if (suits(node, mistake) && adds(node, mistake))
            count += node->nresults;
    }
    return count;
}

static void replace_uses(const sf_graph *graph, const sf_block *block, const sf_node *but,
                         sf_value from, sf_value to)
{
    for (uint32_t i = 0; i < block->nnodes; i++) {
        sf_node *node = graph->nodes[block->nodes[i]];
        for (uint32_t k = 0; k < node->noperands && node != but; k++)
            if (node->operands[k] == from)
                node->operands[k] = to;
        for (uint32_t k = 0; k < node->nregions; k++)
            replace_uses(graph, node->regions[k], but, from, to);
    }
    for (uint32_t i = 0; i < block->nresults; i++)
        if (block->results[i] == from)
            block->results[i] = to;
}

/* Puts an op on the value behind node number `at` of the top block, for all who use the value. */
static void insert(sf_graph *graph, uint32_t at, sf_opcode code, sf_value value,
                   const sf_attr *const *attrs)
{
    const sf_type *type = sf_type_of(graph, value);
    sf_node_spec spec = sf_spec_like(sf_top_node(graph, at));
    spec.def = sf_opdef_get(code);
    spec.noperands = code == SF_OP_REVERSE ? 1 : 2;
    spec.operands = (sf_value[]){value, value};
    spec.nresults = 1;
    spec.types = &type;
    spec.attrs = attrs;
    const sf_node *added = sf_graph_add(graph, graph->top, &spec);
    uint32_t *nodes = graph->top->nodes, last = graph->top->nnodes - 1;
    memmove(nodes + at + 2, nodes + at + 1, (last - at - 1) * sizeof *nodes);
    nodes[at + 1] = added->id;
    replace_uses(graph, graph->top, added, value, added->result);
}

static void spoil_part(const sf_local *local, test_spoil *spoil, uint32_t at, uint32_t part,
                       int rank)
{
    sf_graph *graph = local->graph;
    const sf_node *node = sf_top_node(graph, at);
    sf_value value = node->result + part;
    const sf_attr *first = sf_attr_ints(graph->pool, 1, (int64_t[]){0});
    bool is_last = rank == sf_mesh_size(&local->plan->mesh) - 1;
    if (spoil->mistake == TEST_UNREDUCED)
        replace_uses(graph, graph->top, NULL, value, node->operands[part]);
    else if (spoil->mistake == TEST_TWICE)
        insert(graph, at, SF_OP_ADD, value, NULL);
    else if (spoil->mistake == TEST_DROPPED && is_last)
        insert(graph, at, SF_OP_SUBTRACT, value, NULL);
    else if (spoil->mistake == TEST_SWAPPED || (spoil->mistake == TEST_WRONG_RANK && rank == 0))
        insert(graph, at, SF_OP_REVERSE, value, &first);
}

static void spoil_collective(const sf_local *local, test_spoil *spoil, int rank)
{
    const sf_graph *graph = local->graph;
    uint32_t left = spoil->place;
    for (uint32_t i = 0; i < graph->top->nnodes; i++) {
        const sf_node *node = sf_top_node(graph, i);
        if (!suits(node, spoil->mistake) || !adds(node, spoil->mistake))
            continue;
        if (left < node->nresults) {
            int64_t number = node->attrs[SF_COLLECTIVE_NUMBER]->integer;
            if (rank == 0) {
                spoil->of = local->sent[number].parts[left].value;
                spoil->applied = true;
            }
            spoil_part(local, spoil, i, left, rank);
            return;
        }
        left -= node->nresults;
    }
}

static void spoil_state(const sf_local *local, test_spoil *spoil, int rank)
{
    const sf_graph *graph = local->graph;
    uint32_t left = spoil->place;
    for (uint32_t i = 0; i < graph->top->narguments; i++) {
        if (!is_state(graph, i) || left-- > 0)
            continue;
        uint32_t next = graph->arguments[i].next;
        if (rank == 0) {
            spoil->of = local->whole->top->results[next];
            spoil->applied = graph->top->results[next] != graph->top->arguments[i];
        }
        graph->top->results[next] = graph->top->arguments[i];
        return;
    }
}

/* The first rank alone: two that change places do the same where it only matters that one of them does it. */
static void take_other(sf_local *local, test_spoil *spoil, int rank)
{
    sf_local *other;
    if (rank != 0 || sf_local_new(local->whole, local->plan, 1, NULL, &other) != SF_OK)
        return;
    spoil->applied = sf_graph_hash(other->graph) != sf_graph_hash(local->graph);
    sf_local mine = *local;
    *local = *other;
    *other = mine;
    sf_local_free(other);
}

void test_spoil_rank(void *context, sf_local *local, int rank)
{
    test_spoil *spoil = context;
    if (rank == 0)
        spoil->of = SF_NONE;
    if (spoil->mistake == TEST_OTHER)
        take_other(local, spoil, rank);
    else if (spoil->mistake == TEST_STALE)
        spoil_state(local, spoil, rank);
    else
        spoil_collective(local, spoil, rank);
}
