#include "front/elementwise_state.h"

#include "ir/clone.h"
#include "op/util.h"

/* Of one result; the walk of a larger one ends there. */
enum { MOST_LOOKED_AT = 4096 };

typedef struct walker {
    const sf_graph *graph;
    sf_arena *arena;
    const sf_type *type;
    uint32_t stamp;
    uint32_t *seen; /* by value: the last walk that came by */
    sf_value *queue;
    size_t count, capacity;
} walker;

static bool is_elementwise(const sf_node *node)
{
    return node->nresults == 1 && node->nregions == 0 && node->noperands > 0 &&
           node->def->factors == sf_factors_pointwise;
}

/* Writes into a part of its first operands: a queue, a memory bank, the rows of a table. */
static bool is_update(const sf_node *node)
{
    return sf_is(node, SF_OP_DYNAMIC_UPDATE_SLICE) || sf_is(node, SF_OP_SCATTER);
}

static void look_at(walker *w, sf_value value)
{
    if (w->seen[value] == w->stamp || w->count == MOST_LOOKED_AT ||
        !sf_same_shape(sf_type_of(w->graph, value), w->type))
        return;
    w->seen[value] = w->stamp;
    SF_PUSH(w->arena, w->queue, w->count, w->capacity, value);
}

/* The operands from `first` to the end that is returned, which an op has so. A negative multiple is no update of anything. */
static uint32_t end_of_operands(const sf_node *node, sf_growing how, uint32_t *first)
{
    *first =
        sf_is(node, SF_OP_SELECT) ? 1 : 0; /* a condition decides, but is no part of the value */
    if (sf_is(node, SF_OP_ADD) || sf_is(node, SF_OP_SELECT) || sf_is(node, SF_OP_MAXIMUM) ||
        sf_is(node, SF_OP_MINIMUM) || sf_is(node, SF_OP_CLAMP) || how == SF_GROWS_ANYHOW)
        return node->noperands;
    if (sf_is(node, SF_OP_CONVERT) || sf_is(node, SF_OP_SUBTRACT))
        return 1;
    if (how == SF_GROWS_KEPT)
        return 0;
    bool scales = sf_is(node, SF_OP_DIVIDE) || sf_is(node, SF_OP_REMAINDER);
    return sf_is(node, SF_OP_MULTIPLY) ? 2 : scales ? 1 : 0;
}

/* A loop's carried value, and the branches' results, represent the node's result. */
static void look_behind(walker *w, const sf_node *node, sf_value value, sf_growing how)
{
    uint32_t number = value - node->result;
    if (sf_is(node, SF_OP_WHILE) || sf_is(node, SF_OP_OPTIMIZATION_BARRIER))
        look_at(w, node->operands[number]);
    for (uint32_t r = 0; sf_is(node, SF_OP_CASE) && r < node->nregions; r++)
        look_at(w, node->regions[r]->results[number]);
    if (is_update(node))
        look_at(w, node->operands[number]);
    uint32_t first, end = end_of_operands(node, how, &first);
    for (uint32_t i = first; is_elementwise(node) && i < end; i++)
        look_at(w, node->operands[i]);
}

/* ends[how]: where in the queue those end that the result has so, or better. */
static void walk(walker *w, sf_value result, size_t ends[SF_GROWS_ANYHOW + 1])
{
    w->count = 0;
    look_at(w, result);
    for (int how = SF_GROWS_KEPT; how <= SF_GROWS_ANYHOW; how++) {
        for (size_t i = 0; i < w->count; i++) {
            const sf_node *node = sf_maker(w->graph, w->queue[i]);
            if (node)
                look_behind(w, node, w->queue[i], (sf_growing)how);
        }
        ends[how] = w->count;
    }
}

enum { MANY = UINT32_MAX };

static void join_origin(void *context, sf_value value)
{
    struct {
        const uint32_t *origins;
        uint32_t all;
    } *join = context;
    uint32_t one = join->origins[value];
    if (join->all == 0)
        join->all = one;
    else if (one != 0 && one != join->all)
        join->all = MANY;
}

uint32_t *sf_tensor_origins(const sf_graph *graph, sf_arena *arena)
{
    const sf_block *top = graph->top;
    struct {
        const uint32_t *origins;
        uint32_t all;
    } join;
    uint32_t *origins = SF_ARRAY(arena, graph->nvalues, uint32_t);
    join.origins = origins;
    for (uint32_t i = 0; i < top->narguments; i++)
        origins[top->arguments[i]] = sf_argument_type(graph, i)->rank > 0 ? i + 1 : 0;
    for (uint32_t n = 0; n < top->nnodes; n++) {
        const sf_node *node = sf_top_node(graph, n);
        join.all = 0;
        for (uint32_t i = 0; i < node->noperands; i++)
            join_origin(&join, node->operands[i]);
        for (uint32_t r = 0; r < node->nregions; r++)
            sf_block_uses(graph, node->regions[r], join_origin, &join);
        for (uint32_t r = 0; r < node->nresults; r++)
            origins[node->result + r] = join.all;
    }
    return origins;
}

/* By value: ops on single elements alone make it from arguments. */
static bool *find_plain(const sf_graph *graph, const uint32_t *origins, sf_arena *arena)
{
    bool *plain = SF_ARRAY(arena, graph->nvalues, bool);
    for (uint32_t i = 0; i < graph->top->narguments; i++)
        plain[graph->top->arguments[i]] = true;
    for (uint32_t n = 0; n < graph->top->nnodes; n++) {
        const sf_node *node = sf_top_node(graph, n);
        bool all = is_elementwise(node);
        for (uint32_t i = 0; all && i < node->noperands; i++)
            all = plain[node->operands[i]];
        for (uint32_t r = 0; r < node->nresults; r++)
            plain[node->result + r] = all || origins[node->result + r] == 0;
    }
    return plain;
}

static sf_growing how_of(size_t place, const size_t ends[SF_GROWS_ANYHOW + 1])
{
    return place < ends[SF_GROWS_KEPT]     ? SF_GROWS_KEPT
           : place < ends[SF_GROWS_SCALED] ? SF_GROWS_SCALED
                                           : SF_GROWS_ANYHOW;
}

sf_growth sf_growth_of(const sf_graph *graph, const bool *needed, sf_arena *arena)
{
    const sf_block *top = graph->top;
    sf_growth out = {.first = SF_ARRAY(arena, top->nresults + 1, size_t),
                     .forward = SF_ARRAY(arena, top->nresults, bool)};
    const uint32_t *origins = needed ? sf_tensor_origins(graph, arena) : NULL;
    const bool *plain = needed ? find_plain(graph, origins, arena) : NULL;
    walker w = {.graph = graph, .arena = arena, .seen = SF_ARRAY(arena, graph->nvalues, uint32_t)};
    size_t count = 0, capacity = 0, ways = 0, way_capacity = 0, ends[SF_GROWS_ANYHOW + 1];
    for (uint32_t r = 0; r < top->nresults; r++) {
        w.type = sf_result_type(graph, r);
        w.stamp = r + 1;
        walk(&w, top->results[r], ends);
        for (size_t i = 0; i < w.count; i++) {
            const sf_value_info *info = &graph->values[w.queue[i]];
            if (info->node != SF_NONE) {
                sf_value value = w.queue[i];
                if (needed && needed[value] &&
                    (i == 0 || (origins[value] == MANY && !plain[value])))
                    out.forward[r] = true;
            } else if (info->index < top->narguments && w.queue[i] == top->arguments[info->index]) {
                SF_PUSH(arena, out.arguments, count, capacity, info->index);
                SF_PUSH(arena, out.how, ways, way_capacity, (unsigned char)how_of(i, ends));
            }
        }
        out.first[r + 1] = count;
    }
    return out;
}

sf_growing sf_how_it_grows(const sf_growth *growth, uint32_t result, uint32_t argument)
{
    for (size_t i = growth->first[result]; i < growth->first[result + 1]; i++)
        if (growth->arguments[i] == argument)
            return (sf_growing)growth->how[i];
    return SF_GROWS_NOT;
}

bool sf_is_written(const sf_graph *graph, uint32_t result)
{
    const sf_node *node = sf_maker(graph, graph->top->results[result]);
    return node && is_update(node);
}
