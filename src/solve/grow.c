#include "solve/grow.h"

#include <string.h>

void sf_grower_init(sf_grower *grower, const sf_problem *problem, sf_arena *arena)
{
    *grower = (sf_grower){.problem = problem, .unary = problem->cost};
    grower->cost = SF_ARRAY(arena, problem->first[problem->nnodes], int64_t);
    grower->regret = SF_ARRAY(arena, problem->nnodes, int64_t);
    grower->heap = SF_ARRAY(arena, problem->nnodes, uint32_t);
    grower->place = SF_ARRAY(arena, problem->nnodes, uint32_t);
    grower->decided = SF_ARRAY(arena, problem->nnodes, bool);
    grower->settled = SF_ARRAY(arena, problem->nnodes, bool);
}

/* The heap. Of two nodes of one regret the first goes first. */

static bool goes_before(const sf_grower *g, uint32_t a, uint32_t b)
{
    return g->regret[a] != g->regret[b] ? g->regret[a] > g->regret[b] : a < b;
}

static void put_in_heap(sf_grower *g, uint32_t at, uint32_t node)
{
    g->heap[at] = node;
    g->place[node] = at + 1;
}

static void rise_in_heap(sf_grower *g, uint32_t at)
{
    uint32_t node = g->heap[at];
    for (; at > 0 && goes_before(g, node, g->heap[(at - 1) / 2]); at = (at - 1) / 2)
        put_in_heap(g, at, g->heap[(at - 1) / 2]);
    put_in_heap(g, at, node);
}

static void sink_in_heap(sf_grower *g, uint32_t at)
{
    uint32_t node = g->heap[at];
    for (uint32_t child = 2 * at + 1; child < g->count; child = 2 * at + 1) {
        if (child + 1 < g->count && goes_before(g, g->heap[child + 1], g->heap[child]))
            child++;
        if (!goes_before(g, g->heap[child], node))
            break;
        put_in_heap(g, at, g->heap[child]);
        at = child;
    }
    put_in_heap(g, at, node);
}

static uint32_t take_first(sf_grower *g)
{
    uint32_t first = g->heap[0];
    g->place[first] = 0;
    if (--g->count > 0) {
        put_in_heap(g, 0, g->heap[g->count]);
        sink_in_heap(g, 0);
    }
    return first;
}

/* Deciding */

static uint32_t cheapest_strategy(const sf_grower *g, uint32_t node, int64_t *regret)
{
    const int64_t *cost = g->cost + g->problem->first[node];
    uint32_t count = sf_problem_count(g->problem, node), best = 0;
    int64_t second = SF_FORBIDDEN;
    for (uint32_t i = 1; i < count; i++) {
        if (cost[i] < cost[best]) {
            second = cost[best];
            best = i;
        } else if (cost[i] < second)
            second = cost[i];
    }
    *regret = second - cost[best];
    return best;
}

static void meet_node(sf_grower *g, uint32_t node)
{
    cheapest_strategy(g, node, &g->regret[node]);
    if (!g->place[node]) {
        put_in_heap(g, g->count++, node);
        rise_in_heap(g, g->count - 1);
    } else {
        rise_in_heap(g, g->place[node] - 1);
        sink_in_heap(g, g->place[node] - 1);
    }
}

/* Adds the cost of an edge to its undecided end. */
static void add_neighbour_edge(sf_grower *g, const sf_edge *edge, uint32_t decided,
                               uint32_t strategy)
{
    const sf_problem *p = g->problem;
    uint32_t other = sf_edge_other(edge, decided), count = sf_problem_count(p, other);
    uint32_t columns = sf_problem_count(p, edge->b);
    int64_t *cost = g->cost + p->first[other];
    for (uint32_t i = 0; i < count; i++)
        cost[i] =
            sf_cost_add(cost[i], edge->a == decided ? edge->cost[(size_t)strategy * columns + i]
                                                    : edge->cost[(size_t)i * columns + strategy]);
    g->work += count;
}

static void decide_node(sf_grower *g, uint32_t node, uint32_t strategy, uint32_t *choice)
{
    const sf_problem *p = g->problem;
    g->decided[node] = true;
    choice[node] = strategy;
    for (uint32_t l = p->link_first[node]; l < p->link_first[node + 1]; l++) {
        const sf_edge *edge = &p->edges[p->links[l]];
        uint32_t other = sf_edge_other(edge, node);
        if (g->decided[other])
            continue;
        add_neighbour_edge(g, edge, node, strategy);
        meet_node(g, other);
    }
}

static void spread_choice(sf_grower *g, uint32_t *choice)
{
    int64_t regret;
    while (g->count > 0) {
        uint32_t node = take_first(g);
        decide_node(g, node, cheapest_strategy(g, node, &regret), choice);
    }
}

static void begin_growth(sf_grower *g)
{
    const sf_problem *p = g->problem;
    memcpy(g->cost, g->unary, p->first[p->nnodes] * sizeof *g->cost);
    memset(g->decided, 0, p->nnodes * sizeof *g->decided);
    memset(g->place, 0, p->nnodes * sizeof *g->place);
    g->count = 0;
}

/* Nodes that no decision reaches start new growth. */
static void finish_growth(sf_grower *g, uint32_t *choice)
{
    int64_t regret;
    spread_choice(g, choice);
    for (uint32_t v = 0; v < g->problem->nnodes; v++)
        if (!g->decided[v]) {
            decide_node(g, v, cheapest_strategy(g, v, &regret), choice);
            spread_choice(g, choice);
        }
}

void sf_grow(sf_grower *g, uint32_t node, uint32_t strategy, uint32_t *choice)
{
    begin_growth(g);
    decide_node(g, node, strategy, choice);
    finish_growth(g, choice);
}

void sf_grow_rest(sf_grower *g, const bool *fixed, uint32_t *choice)
{
    begin_growth(g);
    memcpy(g->decided, fixed, g->problem->nnodes * sizeof *fixed);
    for (uint32_t v = 0; v < g->problem->nnodes; v++)
        if (fixed[v])
            decide_node(g, v, choice[v], choice);
    finish_growth(g, choice);
}

/* Settling */

static bool settle_node(sf_grower *g, uint32_t node, uint32_t *choice)
{
    const sf_problem *p = g->problem;
    uint32_t count = sf_problem_count(p, node);
    int64_t *cost = g->cost + p->first[node], regret;
    memcpy(cost, g->unary + p->first[node], count * sizeof *cost);
    for (uint32_t l = p->link_first[node]; l < p->link_first[node + 1]; l++) {
        const sf_edge *edge = &p->edges[p->links[l]];
        uint32_t other = sf_edge_other(edge, node);
        add_neighbour_edge(g, edge, other, choice[other]);
    }
    uint32_t best = cheapest_strategy(g, node, &regret);
    g->settled[node] = true;
    if (cost[best] >= cost[choice[node]])
        return false;
    choice[node] = best;
    for (uint32_t l = p->link_first[node]; l < p->link_first[node + 1]; l++)
        g->settled[sf_edge_other(&p->edges[p->links[l]], node)] = false;
    return true;
}

/* All cells; a pass counts as a full one, so that passes with less work do not lead to more of
 * them. */
static int64_t cells_of_pass(const sf_problem *p)
{
    int64_t cells = 0;
    for (uint32_t v = 0; v < p->nnodes; v++)
        cells += (int64_t)sf_problem_count(p, v) * (p->link_first[v + 1] - p->link_first[v]);
    return cells;
}

void sf_grow_settle(sf_grower *g, uint32_t *choice)
{
    enum { MOST_PASSES = 8 };
    bool changed = true;
    int64_t cells = cells_of_pass(g->problem), work = g->work;
    memset(g->settled, false, g->problem->nnodes * sizeof *g->settled);
    for (int pass = 0; changed && pass < MOST_PASSES; pass++) {
        changed = false;
        for (uint32_t v = 0; v < g->problem->nnodes; v++)
            changed |= !g->settled[v] && settle_node(g, v, choice);
        g->work = work += cells;
    }
}

int64_t sf_grow_value(const sf_grower *g, const uint32_t *choice)
{
    const sf_problem *p = g->problem;
    int64_t sum = p->base;
    for (uint32_t v = 0; v < p->nnodes; v++)
        sum = sf_cost_add(sum, g->unary[p->first[v] + choice[v]]);
    for (uint32_t e = 0; e < p->nedges; e++) {
        const sf_edge *edge = &p->edges[e];
        sum = sf_cost_add(
            sum,
            edge->cost[(size_t)choice[edge->a] * sf_problem_count(p, edge->b) + choice[edge->b]]);
    }
    return sum;
}
