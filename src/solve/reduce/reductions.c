#include "solve/reduce/reductions.h"

bool sf_rule_forbidden(sf_network *net, uint32_t v)
{
    const sf_net_node *node = &net->nodes[v];
    sf_arena *arena = net->arena;
    sf_mark mark = sf_arena_mark(arena);
    bool *keep = SF_ARRAY(arena, node->count, bool);
    bool all = true;
    for (uint32_t i = 0; i < node->count; i++)
        keep[i] = node->cost[i] < SF_FORBIDDEN;
    for (size_t k = 0; k < node->nlinks; k++) {
        sf_net_view view = sf_net_view_of(net, node->links[k], v);
        for (uint32_t i = 0; i < node->count; i++) {
            bool some = false;
            for (uint32_t x = 0; x < view.count && !some; x++)
                some = view.cost[i * view.own + x * view.other] < SF_FORBIDDEN;
            keep[i] = keep[i] && some;
        }
    }
    for (uint32_t i = 0; i < node->count; i++)
        all = all && keep[i];
    if (all) {
        sf_arena_reset(arena, mark);
        return false;
    }
    sf_net_keep(net, v, keep);
    return true;
}

/* Splits cost[i][x] into own[i] + other[x], where it is such a sum. */
static bool split_table(const sf_net_view *view, uint32_t count, int64_t *own, int64_t *other)
{
    for (uint32_t i = 0; i < count; i++) {
        own[i] = SF_FORBIDDEN;
        for (uint32_t x = 0; x < view->count; x++) {
            int64_t cost = view->cost[i * view->own + x * view->other];
            if (cost >= SF_FORBIDDEN && count > 1 && view->count > 1)
                return false;
            own[i] = cost < own[i] ? cost : own[i];
        }
    }
    if (count == 1)
        own[0] = 0;
    for (uint32_t x = 0; x < view->count; x++) {
        other[x] = view->cost[x * view->other];
        if (count > 1)
            other[x] = view->count > 1 ? other[x] - own[0] : 0;
    }
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t x = 0; x < view->count; x++)
            if (view->cost[i * view->own + x * view->other] != sf_cost_add(own[i], other[x]))
                return false;
    return true;
}

bool sf_rule_separable(sf_network *net, uint32_t v)
{
    bool changed = false;
    for (size_t k = 0; k < net->nodes[v].nlinks;) {
        sf_net_node *node = &net->nodes[v];
        sf_net_view view = sf_net_view_of(net, node->links[k], v);
        sf_mark mark = sf_arena_mark(net->arena);
        int64_t *own = SF_ARRAY(net->arena, node->count, int64_t);
        int64_t *other = SF_ARRAY(net->arena, view.count, int64_t);
        if (split_table(&view, node->count, own, other)) {
            sf_net_node *there = &net->nodes[view.node];
            for (uint32_t i = 0; i < node->count; i++)
                node->cost[i] = sf_cost_add(node->cost[i], own[i]);
            for (uint32_t x = 0; x < view.count; x++)
                there->cost[x] = sf_cost_add(there->cost[x], other[x]);
            sf_net_cut(net, node->links[k]);
            changed = true;
        } else {
            k++;
        }
        sf_arena_reset(net->arena, mark);
    }
    return changed;
}

/* Which strategy of the node at `view` goes with each x of the other; false where one has several. */
static bool only_choice(const sf_net_view *view, uint32_t count, uint32_t *pick)
{
    for (uint32_t x = 0; x < view->count; x++) {
        uint32_t found = 0;
        for (uint32_t i = 0; i < count && found < 2; i++)
            if (view->cost[i * view->own + x * view->other] < SF_FORBIDDEN) {
                pick[x] = i;
                found++;
            }
        if (found != 1)
            return false;
    }
    return true;
}

static void note_step(sf_network *net, uint32_t v, uint32_t count, const uint32_t *by,
                      const uint32_t *pick)
{
    sf_net_note entry = {.node = v, .count = count};
    size_t cells = 1;
    for (uint32_t k = 0; k < count; k++) {
        entry.by[k] = by[k];
        entry.sizes[k] = net->nodes[by[k]].count;
        entry.names[k] = net->nodes[by[k]].name;
        cells *= entry.sizes[k];
    }
    uint32_t *named = SF_ARRAY(net->arena, cells, uint32_t);
    for (size_t i = 0; i < cells; i++)
        named[i] = net->nodes[v].name[pick[i]];
    entry.pick = named;
    SF_PUSH(net->arena, net->notes, net->nnotes, net->note_capacity, entry);
}

/* Moves cost and usage of node v to node u, whose strategy x makes v take pick[x]. */
static void merge_node(sf_network *net, uint32_t v, uint32_t u, uint32_t edge, const uint32_t *pick)
{
    sf_net_node *gone = &net->nodes[v], *stays = &net->nodes[u];
    sf_net_view view = sf_net_view_of(net, edge, v);
    for (uint32_t x = 0; x < stays->count; x++) {
        int64_t cost = view.cost[pick[x] * view.own + x * view.other];
        stays->cost[x] = sf_cost_add(stays->cost[x], sf_cost_add(cost, gone->cost[pick[x]]));
    }
    note_step(net, v, 1, &u, pick);
    sf_net_cut(net, edge);
    while (gone->nlinks > 0) {
        uint32_t e = gone->links[gone->nlinks - 1];
        sf_net_view far = sf_net_view_of(net, e, v);
        int64_t *cost = SF_ARRAY(net->arena, (size_t)stays->count * far.count, int64_t);
        for (uint32_t x = 0; x < stays->count; x++)
            for (uint32_t y = 0; y < far.count; y++)
                cost[(size_t)x * far.count + y] = far.cost[pick[x] * far.own + y * far.other];
        sf_net_cut(net, e);
        sf_net_join(net, u, far.node, cost);
    }
    for (size_t k = 0; k < gone->nuses; k++) {
        sf_net_use use = gone->uses[k];
        use.usage = SF_ARRAY(net->arena, stays->count, int64_t);
        for (uint32_t x = 0; x < stays->count; x++)
            use.usage[x] = gone->uses[k].usage[pick[x]];
        sf_net_add_use(net, u, use);
    }
    sf_net_remove(net, v);
    sf_net_normalize(net, u);
    sf_net_touch_around(net, u);
}

/* Where each of the two determines the other, the one with less to move goes. */
static void merge_pair(sf_network *net, uint32_t v, uint32_t u, uint32_t edge, uint32_t *pick)
{
    const sf_net_node *a = &net->nodes[v], *b = &net->nodes[u];
    sf_net_view back = sf_net_view_of(net, edge, u);
    uint32_t *other = SF_ARRAY(net->arena, a->count, uint32_t);
    bool lighter = a->nuses + a->nlinks <= b->nuses + b->nlinks;
    if (lighter || !only_choice(&back, b->count, other))
        merge_node(net, v, u, edge, pick);
    else
        merge_node(net, u, v, edge, other);
}

bool sf_rule_determined(sf_network *net, uint32_t v)
{
    for (size_t k = 0; k < net->nodes[v].nlinks; k++) {
        uint32_t edge = net->nodes[v].links[k];
        sf_net_view view = sf_net_view_of(net, edge, v);
        sf_mark mark = sf_arena_mark(net->arena);
        uint32_t *pick = SF_ARRAY(net->arena, view.count, uint32_t);
        if (only_choice(&view, net->nodes[v].count, pick)) {
            merge_pair(net, v, view.node, edge, pick);
            return true;
        }
        sf_arena_reset(net->arena, mark);
    }
    return false;
}

static void eliminate_alone(sf_network *net, uint32_t v)
{
    const sf_net_node *node = &net->nodes[v];
    uint32_t best = 0;
    for (uint32_t i = 1; i < node->count; i++)
        if (node->cost[i] < node->cost[best])
            best = i;
    if (node->cost[best] >= SF_FORBIDDEN)
        net->infeasible = true;
    else
        net->base += node->cost[best];
    note_step(net, v, 0, NULL, &best);
    sf_net_remove(net, v);
}

static void eliminate_leaf(sf_network *net, uint32_t v)
{
    const sf_net_node *node = &net->nodes[v];
    uint32_t edge = node->links[0];
    sf_net_view view = sf_net_view_of(net, edge, v);
    int64_t *cost = net->nodes[view.node].cost;
    uint32_t *pick = SF_ARRAY(net->arena, view.count, uint32_t);
    for (uint32_t x = 0; x < view.count; x++) {
        int64_t least = SF_FORBIDDEN;
        for (uint32_t i = 0; i < node->count; i++) {
            int64_t here = sf_cost_add(node->cost[i], view.cost[i * view.own + x * view.other]);
            if (here < least) {
                least = here;
                pick[x] = i;
            }
        }
        cost[x] = sf_cost_add(cost[x], least);
    }
    note_step(net, v, 1, &view.node, pick);
    sf_net_cut(net, edge);
    sf_net_remove(net, v);
    sf_net_normalize(net, view.node);
}

/* The least of own[i] + right[i][y] over i, for one x; own holds the cost of v and of its edge with x. */
static void fold_cost_row(const int64_t *own, uint32_t count, const sf_net_view *right,
                          int64_t *least, uint32_t *pick)
{
    for (uint32_t y = 0; y < right->count; y++)
        least[y] = SF_FORBIDDEN;
    for (uint32_t i = 0; i < count; i++) {
        if (own[i] >= SF_FORBIDDEN)
            continue;
        const int64_t *costs = right->cost + i * right->own;
        for (uint32_t y = 0; y < right->count; y++) {
            int64_t cost = costs[y * right->other];
            if (cost < SF_FORBIDDEN && own[i] + cost < least[y]) {
                least[y] = own[i] + cost;
                pick[y] = i;
            }
        }
    }
}

static void eliminate_between(sf_network *net, uint32_t v)
{
    const sf_net_node *node = &net->nodes[v];
    uint32_t edges[2] = {node->links[0], node->links[1]};
    sf_net_view left = sf_net_view_of(net, edges[0], v), right = sf_net_view_of(net, edges[1], v);
    size_t cells = (size_t)left.count * right.count;
    int64_t *least = SF_ARRAY(net->arena, cells, int64_t);
    uint32_t *pick = SF_ARRAY(net->arena, cells, uint32_t);
    int64_t *own = SF_ARRAY(net->arena, node->count, int64_t);
    for (uint32_t x = 0; x < left.count; x++) {
        for (uint32_t i = 0; i < node->count; i++)
            own[i] = sf_cost_add(node->cost[i], left.cost[i * left.own + x * left.other]);
        size_t row = (size_t)x * right.count;
        fold_cost_row(own, node->count, &right, least + row, pick + row);
    }
    net->work += (int64_t)cells * node->count;
    note_step(net, v, 2, (uint32_t[]){left.node, right.node}, pick);
    sf_net_cut(net, edges[0]);
    sf_net_cut(net, edges[1]);
    sf_net_remove(net, v);
    sf_net_join(net, left.node, right.node, least);
}

bool sf_rule_eliminate(sf_network *net, uint32_t v)
{
    const sf_net_node *node = &net->nodes[v];
    if (node->nuses > 0 || node->nlinks > 2)
        return false;
    if (node->nlinks == 0)
        eliminate_alone(net, v);
    else if (node->nlinks == 1)
        eliminate_leaf(net, v);
    else
        eliminate_between(net, v);
    return true;
}

typedef bool rule(sf_network *net, uint32_t node);

void sf_reduce(sf_network *net)
{
    /* Cheapest first: later rules get smaller problems. */
    static rule *const rules[] = {sf_rule_forbidden, sf_rule_separable, sf_rule_determined,
                                  sf_rule_eliminate, sf_rule_dominated, sf_rule_leaf};
    do {
        uint32_t v;
        while (!net->infeasible && sf_net_next(net, &v))
            for (size_t r = 0; r < sizeof rules / sizeof *rules; r++)
                if (rules[r](net, v)) {
                    sf_net_touch(net, v);
                    break;
                }
    } while (!net->infeasible && sf_rule_times(net));
}
