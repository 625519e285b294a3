#include "solve/reduce/mutable_problem.h"

#include <stdlib.h>
#include <string.h>

sf_net_view sf_net_view_of(const sf_network *net, uint32_t edge, uint32_t node)
{
    const sf_net_edge *e = &net->edges[edge];
    bool first = e->a == node;
    uint32_t other = first ? e->b : e->a;
    size_t columns = net->nodes[e->b].count;
    return (sf_net_view){e->cost, first ? columns : 1, first ? 1 : columns, other,
                         net->nodes[other].count};
}

static int64_t take_least_row(int64_t *values, size_t count)
{
    int64_t least = SF_FORBIDDEN;
    for (size_t i = 0; i < count; i++)
        least = values[i] < least ? values[i] : least;
    if (least == SF_FORBIDDEN || least == 0)
        return 0;
    for (size_t i = 0; i < count; i++)
        if (values[i] < SF_FORBIDDEN)
            values[i] -= least;
    return least;
}

void sf_net_normalize(sf_network *net, uint32_t node)
{
    net->base += take_least_row(net->nodes[node].cost, net->nodes[node].count);
}

static void normalize_edge(sf_network *net, uint32_t edge)
{
    sf_net_edge *e = &net->edges[edge];
    net->base += take_least_row(e->cost, (size_t)net->nodes[e->a].count * net->nodes[e->b].count);
}

static void init_node(sf_network *net, const sf_problem *problem, uint32_t v)
{
    sf_net_node *node = &net->nodes[v];
    node->alive = true;
    node->count = sf_problem_count(problem, v);
    node->cost =
        sf_arena_copy(net->arena, sf_problem_cost(problem, v), node->count * sizeof(int64_t));
    uint32_t *name = SF_ARRAY(net->arena, node->count, uint32_t);
    for (uint32_t i = 0; i < node->count; i++)
        name[i] = i;
    node->name = name;
    uint32_t nuses = problem->use_first[v + 1] - problem->use_first[v];
    const sf_use *uses = problem->uses + problem->use_first[v];
    for (uint32_t k = 0; k < nuses; k++) {
        sf_net_use use = {uses[k].begin, uses[k].end,
                          sf_arena_copy(net->arena, uses[k].usage, node->count * sizeof(int64_t))};
        sf_net_add_use(net, v, use);
    }
}

void sf_network_init(sf_network *net, const sf_problem *problem, sf_arena *arena)
{
    *net = (sf_network){.arena = arena, .nnodes = problem->nnodes, .base = problem->base};
    net->nodes = SF_ARRAY(arena, net->nnodes, sf_net_node);
    net->queue = SF_ARRAY(arena, net->nnodes, uint32_t);
    net->mark = SF_ARRAY(arena, net->nnodes, uint32_t);
    net->ntimes = problem->ntimes;
    net->limit = sf_arena_copy(arena, problem->limit, problem->ntimes * sizeof(int64_t));
    net->time = sf_arena_copy(arena, problem->time, problem->ntimes * sizeof(int64_t));
    for (uint32_t v = 0; v < net->nnodes; v++)
        init_node(net, problem, v);
    for (uint32_t e = 0; e < problem->nedges; e++) {
        const sf_edge *edge = &problem->edges[e];
        size_t cells = (size_t)net->nodes[edge->a].count * net->nodes[edge->b].count;
        sf_net_join(net, edge->a, edge->b,
                    sf_arena_copy(arena, edge->cost, cells * sizeof(int64_t)));
    }
    for (uint32_t v = 0; v < net->nnodes; v++) {
        sf_net_normalize(net, v);
        sf_net_touch(net, v);
    }
}

void sf_net_touch(sf_network *net, uint32_t node)
{
    if (net->nodes[node].queued || !net->nodes[node].alive)
        return;
    net->nodes[node].queued = true;
    net->queue[(net->queue_first + net->queue_count++) % net->nnodes] = node;
}

void sf_net_touch_around(sf_network *net, uint32_t node)
{
    sf_net_touch(net, node);
    for (size_t k = 0; k < net->nodes[node].nlinks; k++)
        sf_net_touch(net, sf_net_view_of(net, net->nodes[node].links[k], node).node);
}

bool sf_net_next(sf_network *net, uint32_t *node)
{
    while (net->queue_count > 0) {
        *node = net->queue[net->queue_first];
        net->queue_first = (net->queue_first + 1) % net->nnodes;
        net->queue_count--;
        net->nodes[*node].queued = false;
        if (net->nodes[*node].alive)
            return true;
    }
    return false;
}

/* Rows or columns of a matrix that stay, in place. */
static void compact_edge(sf_network *net, uint32_t edge, uint32_t node, const bool *keep)
{
    sf_net_edge *e = &net->edges[edge];
    uint32_t rows = net->nodes[e->a].count, columns = net->nodes[e->b].count;
    size_t to = 0;
    for (uint32_t i = 0; i < rows; i++) {
        if (e->a == node && !keep[i])
            continue;
        for (uint32_t j = 0; j < columns; j++)
            if (e->a == node || keep[j])
                e->cost[to++] = e->cost[(size_t)i * columns + j];
    }
}

static void compact_costs(int64_t *values, uint32_t count, const bool *keep)
{
    uint32_t to = 0;
    for (uint32_t i = 0; i < count; i++)
        if (keep[i])
            values[to++] = values[i];
}

void sf_net_keep(sf_network *net, uint32_t v, const bool *keep)
{
    sf_net_node *node = &net->nodes[v];
    uint32_t left = 0;
    for (uint32_t i = 0; i < node->count; i++)
        left += keep[i];
    if (left == node->count)
        return;
    if (left == 0) {
        net->infeasible = true;
        return;
    }
    for (size_t k = 0; k < node->nlinks; k++)
        compact_edge(net, node->links[k], v, keep);
    compact_costs(node->cost, node->count, keep);
    for (size_t k = 0; k < node->nuses; k++)
        compact_costs(node->uses[k].usage, node->count, keep);
    uint32_t *name = SF_ARRAY(net->arena, left, uint32_t);
    for (uint32_t i = 0, to = 0; i < node->count; i++)
        if (keep[i])
            name[to++] = node->name[i];
    node->name = name;
    node->count = left;
    sf_net_normalize(net, v);
    for (size_t k = 0; k < node->nlinks; k++)
        normalize_edge(net, node->links[k]);
    sf_net_touch_around(net, v);
}

void sf_net_keep_all(sf_network *net, const sf_problem *problem, const bool *keep)
{
    for (uint32_t v = 0; v < net->nnodes && !net->infeasible; v++)
        sf_net_keep(net, v, keep + problem->first[v]);
}

static bool find_edge(const sf_network *net, uint32_t a, uint32_t b, uint32_t *out)
{
    uint32_t from = net->nodes[a].nlinks <= net->nodes[b].nlinks ? a : b;
    for (size_t k = 0; k < net->nodes[from].nlinks; k++) {
        uint32_t e = net->nodes[from].links[k];
        if ((net->edges[e].a ^ net->edges[e].b ^ from) == (a ^ b ^ from)) {
            *out = e;
            return true;
        }
    }
    return false;
}

static void add_matrix(sf_network *net, uint32_t edge, uint32_t a, const int64_t *cost)
{
    sf_net_view view = sf_net_view_of(net, edge, a);
    for (uint32_t i = 0; i < net->nodes[a].count; i++)
        for (uint32_t x = 0; x < view.count; x++) {
            int64_t *cell = &view.cost[i * view.own + x * view.other];
            *cell = sf_cost_add(*cell, cost[(size_t)i * view.count + x]);
        }
}

void sf_net_join(sf_network *net, uint32_t a, uint32_t b, int64_t *cost)
{
    uint32_t id;
    if (find_edge(net, a, b, &id)) {
        add_matrix(net, id, a, cost);
    } else {
        sf_net_edge edge = {true, a, b, cost};
        id = (uint32_t)net->nedges;
        SF_PUSH(net->arena, net->edges, net->nedges, net->edge_capacity, edge);
        for (int end = 0; end < 2; end++) {
            sf_net_node *node = &net->nodes[end ? b : a];
            SF_PUSH(net->arena, node->links, node->nlinks, node->link_capacity, id);
        }
    }
    normalize_edge(net, id);
    sf_net_touch(net, a);
    sf_net_touch(net, b);
}

void sf_net_cut(sf_network *net, uint32_t edge)
{
    net->edges[edge].alive = false;
    for (int end = 0; end < 2; end++) {
        uint32_t v = end ? net->edges[edge].b : net->edges[edge].a;
        sf_net_node *node = &net->nodes[v];
        size_t at = 0;
        while (node->links[at] != edge)
            at++;
        node->links[at] = node->links[--node->nlinks];
        sf_net_touch(net, v);
    }
}

void sf_net_remove(sf_network *net, uint32_t node)
{
    SF_ASSERT(net->nodes[node].nlinks == 0);
    net->nodes[node].alive = false;
}

void sf_net_add_use(sf_network *net, uint32_t v, sf_net_use use)
{
    sf_net_node *node = &net->nodes[v];
    SF_PUSH(net->arena, node->uses, node->nuses, node->use_capacity, use);
    node->settled = node->nuses == 1;
}

/* Where a use begins or ends. */
typedef struct border {
    uint32_t at;
    bool ends;
    const int64_t *usage;
} border;

static int order_borders(const void *left, const void *right)
{
    const border *a = left, *b = right;
    return (a->at > b->at) - (a->at < b->at);
}

static border *find_borders(sf_network *net, const sf_net_node *node)
{
    border *borders = SF_ARRAY(net->arena, 2 * node->nuses, border);
    for (size_t k = 0; k < node->nuses; k++) {
        borders[2 * k] = (border){node->uses[k].begin, false, node->uses[k].usage};
        borders[2 * k + 1] = (border){node->uses[k].end, true, node->uses[k].usage};
    }
    qsort(borders, 2 * node->nuses, sizeof *borders, order_borders);
    return borders;
}

/* A use of the running sum; none when that is of nothing, a longer one when it is as before. */
static void push_use(sf_network *net, sf_net_node *node, uint32_t begin, uint32_t end,
                     const int64_t *sum)
{
    bool any = false;
    for (uint32_t i = 0; i < node->count; i++)
        any = any || sum[i] != 0;
    if (!any)
        return;
    sf_net_use *last = node->nuses > 0 ? &node->uses[node->nuses - 1] : NULL;
    size_t bytes = node->count * sizeof *sum;
    if (last && last->end == begin && memcmp(last->usage, sum, bytes) == 0) {
        last->end = end;
        return;
    }
    sf_net_use use = {begin, end, sf_arena_copy(net->arena, sum, bytes)};
    SF_PUSH(net->arena, node->uses, node->nuses, node->use_capacity, use);
}

void sf_net_settle(sf_network *net, uint32_t v)
{
    sf_net_node *node = &net->nodes[v];
    if (node->settled || node->nuses == 0)
        return;
    size_t count = 2 * node->nuses;
    border *borders = find_borders(net, node);
    int64_t *sum = SF_ARRAY(net->arena, node->count, int64_t);
    node->uses = NULL;
    node->nuses = node->use_capacity = 0;
    for (size_t k = 0; k < count; k++) {
        for (uint32_t i = 0; i < node->count; i++)
            sum[i] += borders[k].ends ? -borders[k].usage[i] : borders[k].usage[i];
        if (k + 1 < count && borders[k + 1].at > borders[k].at)
            push_use(net, node, borders[k].at, borders[k + 1].at, sum);
    }
    node->settled = true;
    sf_net_touch(net, v);
}

void sf_net_problem(const sf_network *net, sf_arena *arena, sf_problem *out, uint32_t **node_of)
{
    sf_problem_builder builder = {.arena = arena, .base = net->base};
    uint32_t *id = SF_ARRAY(arena, net->nnodes, uint32_t);
    uint32_t count = 0;
    *node_of = SF_ARRAY(arena, net->nnodes, uint32_t);
    sf_problem_set_limits(&builder, net->ntimes,
                          sf_arena_copy(arena, net->limit, net->ntimes * sizeof(int64_t)),
                          sf_arena_copy(arena, net->time, net->ntimes * sizeof(int64_t)));
    sf_status status = SF_OK;
    for (uint32_t v = 0; v < net->nnodes; v++) {
        const sf_net_node *node = &net->nodes[v];
        if (!node->alive)
            continue;
        (*node_of)[count] = v;
        id[v] = count++;
        status |= sf_problem_add_node(&builder, node->count, node->cost, NULL);
        for (size_t k = 0; k < node->nuses; k++)
            status |= sf_problem_add_use(&builder, id[v], node->uses[k].begin, node->uses[k].end,
                                         node->uses[k].usage, NULL);
    }
    for (size_t e = 0; e < net->nedges; e++) {
        const sf_net_edge *edge = &net->edges[e];
        if (edge->alive)
            status |= sf_problem_add_edge(&builder, id[edge->a], id[edge->b], edge->cost, NULL);
    }
    status |= sf_problem_finish(&builder, out, NULL);
    SF_ASSERT(status == SF_OK);
}

static uint32_t index_of_edge(const uint32_t *names, uint32_t count, uint32_t name)
{
    uint32_t at = 0;
    while (at < count && names[at] != name)
        at++;
    SF_ASSERT(at < count);
    return at;
}

void sf_net_lift(const sf_network *net, const uint32_t *node_of, uint32_t count,
                 const uint32_t *choice, uint32_t *out)
{
    for (uint32_t v = 0; v < count; v++)
        out[node_of[v]] = net->nodes[node_of[v]].name[choice[v]];
    for (size_t n = net->nnotes; n-- > 0;) {
        const sf_net_note *note = &net->notes[n];
        size_t at = 0;
        for (uint32_t k = 0; k < note->count; k++)
            at = at * note->sizes[k] +
                 index_of_edge(note->names[k], note->sizes[k], out[note->by[k]]);
        out[note->node] = note->pick[at];
    }
}
