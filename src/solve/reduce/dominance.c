/* Dominance (dead-end elimination; Desmet et al. 1992, in the form of Goldstein 1994), with usage.
 *
 * Strategy j of a node beats i when it uses no more at any point and, whatever the neighbours take,
 * costs no more:
 *
 *   cost[j] - cost[i] + sum over edges e of max over x of (edge_e[j][x] - edge_e[i][x])  <=  0
 *
 * For a node with one neighbour the same holds pair by pair: given x, j beats i when the difference at x
 * is not positive, and then the pair (i, x) is forbidden. Once each x has one i left, the node is
 * determined. Each step keeps an optimal assignment of the network as the steps before left it, so ties
 * are no problem: the one that stays is there when the next is looked at.
 */
#include "solve/reduce/reductions.h"

/* Nodes with more strategies than this are left alone: the work grows with the square. */
enum { STRATEGY_LIMIT = 1000 };

static bool uses_no_more(const sf_net_node *node, uint32_t j, uint32_t i)
{
    for (size_t k = 0; k < node->nuses; k++)
        if (node->uses[k].usage[j] > node->uses[k].usage[i])
            return false;
    return true;
}

/* The worst extra cost of j over i across an edge. SF_FORBIDDEN when j forbids a pair that i
 * allows; pairs that i forbids do not count. */
static int64_t worst_difference(const sf_net_view *view, uint32_t j, uint32_t i)
{
    int64_t worst = -SF_FORBIDDEN;
    const int64_t *at_j = view->cost + j * view->own, *at_i = view->cost + i * view->own;
    for (uint32_t x = 0; x < view->count; x++) {
        int64_t cost_j = at_j[x * view->other], cost_i = at_i[x * view->other];
        if (cost_i >= SF_FORBIDDEN)
            continue;
        if (cost_j >= SF_FORBIDDEN)
            return SF_FORBIDDEN;
        worst = cost_j - cost_i > worst ? cost_j - cost_i : worst;
    }
    return worst;
}

/* A node with its edges, and for each strategy and edge the x that it likes best: a first test that
 * most pairs fail. */
typedef struct look {
    const sf_net_node *node;
    sf_net_view *views;
    uint32_t *favourite; /* (count, edges) */
} look;

static look look_at_strategy(sf_network *net, uint32_t v)
{
    const sf_net_node *node = &net->nodes[v];
    look l = {node, SF_ARRAY(net->arena, node->nlinks, sf_net_view),
              SF_ARRAY(net->arena, node->count * node->nlinks, uint32_t)};
    for (size_t k = 0; k < node->nlinks; k++) {
        sf_net_view *view = &l.views[k];
        *view = sf_net_view_of(net, node->links[k], v);
        for (uint32_t i = 0; i < node->count; i++) {
            const int64_t *row = view->cost + i * view->own;
            uint32_t best = 0;
            for (uint32_t x = 1; x < view->count; x++)
                if (row[x * view->other] < row[best * view->other])
                    best = x;
            l.favourite[i * node->nlinks + k] = best;
        }
    }
    return l;
}

/* No strategy of the neighbours rules it out at once. */
static bool may_beat(const look *l, uint32_t j, uint32_t i)
{
    int64_t sum = l->node->cost[j] - l->node->cost[i];
    for (size_t k = 0; k < l->node->nlinks; k++) {
        const sf_net_view *view = &l->views[k];
        size_t x = l->favourite[i * l->node->nlinks + k] * view->other;
        int64_t cost_j = view->cost[j * view->own + x];
        if (cost_j >= SF_FORBIDDEN)
            return false;
        sum += cost_j - view->cost[i * view->own + x];
    }
    return sum <= 0;
}

static bool strategy_beats(sf_network *net, const look *l, uint32_t j, uint32_t i)
{
    if (!may_beat(l, j, i) || !uses_no_more(l->node, j, i))
        return false;
    int64_t sum = l->node->cost[j] - l->node->cost[i];
    for (size_t k = 0; k < l->node->nlinks; k++) {
        int64_t worst = worst_difference(&l->views[k], j, i);
        net->work += l->views[k].count;
        if (worst == SF_FORBIDDEN)
            return false;
        sum += worst;
    }
    return sum <= 0;
}

bool sf_rule_dominated(sf_network *net, uint32_t v)
{
    const sf_net_node *node = &net->nodes[v];
    uint32_t count = node->count;
    if (count > STRATEGY_LIMIT || count == 1)
        return false;
    sf_mark mark = sf_arena_mark(net->arena);
    look l = look_at_strategy(net, v);
    bool *keep = SF_ARRAY(net->arena, count, bool), any = false;
    for (uint32_t i = 0; i < count; i++)
        keep[i] = true;
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t j = 0; j < count && keep[i]; j++)
            if (j != i && keep[j] && strategy_beats(net, &l, j, i)) {
                keep[i] = false;
                any = true;
            }
    net->work += (int64_t)count * count;
    if (any)
        sf_net_keep(net, v, keep);
    else
        sf_arena_reset(net->arena, mark);
    return any;
}

bool sf_rule_leaf(sf_network *net, uint32_t v)
{
    const sf_net_node *node = &net->nodes[v];
    if (node->nlinks != 1 || node->count > STRATEGY_LIMIT)
        return false;
    sf_net_view view = sf_net_view_of(net, node->links[0], v);
    bool any = false;
    for (uint32_t i = 0; i < node->count; i++)
        for (uint32_t j = 0; j < node->count; j++) {
            if (i == j || !uses_no_more(node, j, i))
                continue;
            for (uint32_t x = 0; x < view.count; x++) {
                int64_t *cost_i = &view.cost[i * view.own + x * view.other];
                int64_t cost_j = view.cost[j * view.own + x * view.other];
                if (*cost_i < SF_FORBIDDEN && cost_j < SF_FORBIDDEN &&
                    node->cost[j] + cost_j <= node->cost[i] + *cost_i) {
                    *cost_i = SF_FORBIDDEN;
                    any = true;
                }
            }
            net->work += view.count;
        }
    if (any)
        sf_net_touch(net, view.node);
    return any;
}
