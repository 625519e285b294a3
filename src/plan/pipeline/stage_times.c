/* The forward node to which the time of a backward node belongs.
 *
 * The operands of the forward pass of a backward node determine it: the operand with the fewest
 * other readers first, a weight before an activation. Weights may come by way of the backward pass:
 * a transposed kernel, or the result of a barrier for a recomputed layer. A node that reads only
 * cotangents goes with those. */
#include "ir/opdef.h"
#include "plan/pipeline/stage_cut.h"
#include "plan/pipeline/stage_flow.h"

typedef struct sharing {
    const sf_graph *graph;
    sf_flow flow;
    const bool *anywhere, *moving; /* by node */
    uint32_t *place;               /* by node: in the top block */
    uint32_t *home;                /* by node; SF_NONE: not known */
    /* by node: how many forward nodes read the operand that determined its home; the fewer the
     * better */
    uint32_t *others;
} sharing;

/* Forward nodes that read the value: how many, and of those up to `place` the last, preferably one
 * of the same op as `like`; the first if all come after it. A weight that is read several times has
 * a gradient for each time. */
static uint32_t count_readers(const sharing *s, sf_value value, const sf_node *like, uint32_t place,
                              uint32_t *best)
{
    uint32_t count = 0;
    bool found = false;
    for (uint32_t u = s->flow.uses.first[value]; u < s->flow.uses.first[value + 1]; u++) {
        uint32_t node = s->flow.uses.at[u].node;
        if (node == SF_NONE || s->graph->nodes[node]->phase != SF_FORWARD)
            continue;
        bool alike = s->graph->nodes[node]->def == like->def;
        if (count == 0 || (s->place[node] <= place && (alike || !found)))
            *best = node;
        found = found || (alike && s->place[node] <= place);
        count++;
    }
    return count;
}

/* The place of the first forward node that one of its cotangents belongs to; SF_NONE: none does. */
static uint32_t find_upstream(const sharing *s, const sf_node *node)
{
    uint32_t first = SF_NONE;
    for (uint32_t o = 0; o < node->noperands; o++) {
        const sf_node *maker = sf_maker(s->graph, s->flow.source[node->operands[o]]);
        uint32_t home =
            maker && maker->phase == SF_BACKWARD && s->moving[maker->id] && !s->anywhere[maker->id]
                ? s->home[maker->id]
                : SF_NONE;
        if (home != SF_NONE && s->place[home] < first)
            first = s->place[home];
    }
    return first;
}

static void offer(sharing *s, const sf_node *node, uint32_t home, uint32_t others)
{
    if (home == SF_NONE || others >= s->others[node->id])
        return;
    s->home[node->id] = home;
    s->others[node->id] = others;
}

static void find_home(sharing *s, const sf_node *node)
{
    uint32_t upstream = find_upstream(s, node);
    for (uint32_t o = 0; o < node->noperands; o++) {
        sf_value v = s->flow.source[node->operands[o]];
        const sf_node *maker = sf_maker(s->graph, v);
        if (maker && s->anywhere[maker->id])
            continue;
        if (!maker || maker->phase == SF_FORWARD) {
            uint32_t first = maker ? maker->id : SF_NONE;
            uint32_t others = count_readers(s, v, node, upstream, &first);
            offer(s, node, first, others);
        } else if (!s->moving[maker->id]) {
            offer(s, node, s->home[maker->id], s->others[maker->id]);
        }
    }
    if (s->home[node->id] == SF_NONE && upstream != SF_NONE)
        s->home[node->id] = s->graph->top->nodes[upstream];
}

double *sf_forward_times(const sf_graph *graph, const double *time, sf_arena *arena)
{
    const sf_block *top = graph->top;
    sharing s = {.graph = graph, .flow = sf_flow_of(graph, arena)};
    double *out = SF_ARRAY(arena, graph->nnodes, double);
    const bool *late = sf_find_late(graph, arena);
    uint32_t last = SF_NONE;
    s.anywhere = sf_find_anywhere(graph, arena);
    s.moving = sf_find_moving(graph, arena);
    s.home = SF_ARRAY(arena, graph->nnodes, uint32_t);
    s.place = SF_ARRAY(arena, graph->nnodes, uint32_t);
    s.others = SF_ARRAY(arena, graph->nnodes, uint32_t);
    for (uint32_t i = 0; i < top->nnodes; i++) {
        const sf_node *node = sf_top_node(graph, i);
        bool is_forward = node->phase == SF_FORWARD;
        s.place[node->id] = i;
        s.home[node->id] = is_forward ? node->id : SF_NONE;
        s.others[node->id] = SF_NONE;
        if (node->phase == SF_BACKWARD)
            find_home(&s, node);
        last = is_forward ? node->id : last;
    }
    for (uint32_t i = 0; i < top->nnodes; i++) {
        const sf_node *node = sf_top_node(graph, i);
        uint32_t home = s.home[node->id] == SF_NONE ? last : s.home[node->id];
        if (node->phase != SF_UPDATE && !late[node->id] && home != SF_NONE)
            out[home] += time[node->id];
    }
    return out;
}
