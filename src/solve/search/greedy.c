#include "solve/search/greedy.h"

#include <math.h>
#include <string.h>

enum { SWEEPS = 20 };

typedef struct greedy {
    const sf_problem *problem;
    uint32_t *choice;
    int64_t *usage; /* [ntimes] */
    int64_t *
        cost; /* [widest]: of each strategy of the node at hand, its neighbours being as they are */
    uint32_t *held; /* uses in order of their beginning */
    int64_t work, work_limit;
} greedy;

/* The cost of each strategy of a node. */
static void price_node(greedy *g, uint32_t v)
{
    const sf_problem *p = g->problem;
    uint32_t count = sf_problem_count(p, v);
    memcpy(g->cost, sf_problem_cost(p, v), count * sizeof *g->cost);
    for (uint32_t k = p->link_first[v]; k < p->link_first[v + 1]; k++) {
        const sf_edge *edge = &p->edges[p->links[k]];
        size_t columns = sf_problem_count(p, edge->b);
        bool first = edge->a == v;
        const int64_t *from =
            edge->cost + (first ? g->choice[edge->b] : g->choice[edge->a] * columns);
        for (uint32_t i = 0; i < count; i++)
            g->cost[i] = sf_cost_add(g->cost[i], from[i * (first ? columns : 1)]);
    }
    g->work += (int64_t)count * (1 + p->link_first[v + 1] - p->link_first[v]);
}

/* Adds a node's uses to the usage, or takes them off. */
static void count_uses(greedy *g, uint32_t v, int64_t sign)
{
    const sf_problem *p = g->problem;
    for (uint32_t u = p->use_first[v]; u < p->use_first[v + 1]; u++) {
        int64_t amount = sign * p->uses[u].usage[g->choice[v]];
        if (amount == 0)
            continue;
        for (uint32_t t = p->uses[u].begin; t < p->uses[u].end; t++)
            g->usage[t] += amount;
        g->work += p->uses[u].end - p->uses[u].begin;
    }
}

/* With a strategy in place of its own, a node (counted out of the usage) passes no limit that it did not
 * pass before. */
static bool strategy_fits_rest(greedy *g, uint32_t v, uint32_t strategy)
{
    const sf_problem *p = g->problem;
    for (uint32_t u = p->use_first[v]; u < p->use_first[v + 1]; u++) {
        const sf_use *use = &p->uses[u];
        int64_t amount = use->usage[strategy];
        if (amount <= use->usage[g->choice[v]])
            continue;
        for (uint32_t t = use->begin; t < use->end; t++)
            if (g->usage[t] + amount > p->limit[t])
                return false;
        g->work += use->end - use->begin;
    }
    return true;
}

/* Each node takes its cheapest strategy, repeatedly; if `limited`, within the limits only. */
static void descend_costs(greedy *g, bool limited)
{
    const sf_problem *p = g->problem;
    bool changed = true;
    for (int sweep = 0; changed && sweep < SWEEPS && g->work < g->work_limit; sweep++) {
        changed = false;
        for (uint32_t v = 0; v < p->nnodes; v++) {
            uint32_t own = g->choice[v], best = own;
            price_node(g, v);
            if (limited)
                count_uses(g, v, -1);
            for (uint32_t i = 0; i < sf_problem_count(p, v); i++)
                if (g->cost[i] < g->cost[best] && (!limited || strategy_fits_rest(g, v, i)))
                    best = i;
            g->choice[v] = best;
            if (limited)
                count_uses(g, v, 1);
            changed = changed || best != own;
        }
    }
}

/* A change of one node that gives room at a point. */
typedef struct change {
    uint32_t node, strategy;
    double price; /* the price of a unit of room */
} change;

/* The cheapest change among the strategies of a node, if it is cheaper than `best`. */
static void consider_use(greedy *g, const sf_use *use, int64_t over, change *best)
{
    uint32_t v = use->node, own = g->choice[v];
    price_node(g, v);
    count_uses(g, v, -1);
    for (uint32_t i = 0; i < sf_problem_count(g->problem, v); i++) {
        int64_t room = use->usage[own] - use->usage[i];
        if (room <= 0 || g->cost[i] >= SF_FORBIDDEN || !strategy_fits_rest(g, v, i))
            continue;
        double useful = (double)(room < over ? room : over);
        double price =
            g->cost[own] >= SF_FORBIDDEN ? -1.0 : (double)(g->cost[i] - g->cost[own]) / useful;
        if (price < best->price)
            *best = (change){v, i, price};
    }
    count_uses(g, v, 1);
}

/* Makes room at one point; false when there is none to be made. `live` has the uses that hold it. */
static bool make_room_for_use(greedy *g, uint32_t t, const uint32_t *live, uint32_t nlive)
{
    const sf_problem *p = g->problem;
    while (g->usage[t] > p->limit[t] && g->work < g->work_limit) {
        change best = {.price = HUGE_VAL};
        for (uint32_t k = 0; k < nlive; k++)
            consider_use(g, &p->uses[live[k]], g->usage[t] - p->limit[t], &best);
        if (best.price == HUGE_VAL)
            return false;
        count_uses(g, best.node, -1);
        g->choice[best.node] = best.strategy;
        count_uses(g, best.node, 1);
    }
    return g->usage[t] <= p->limit[t];
}

/* All points in their order, with the uses that hold each. */
static bool make_room_everywhere(greedy *g, sf_arena *scratch)
{
    const sf_problem *p = g->problem;
    uint32_t *live = SF_ARRAY(scratch, p->nuses, uint32_t), nlive = 0, next = 0;
    bool all = true;
    for (uint32_t t = 0; t < p->ntimes && all; t++) {
        uint32_t left = 0;
        for (uint32_t k = 0; k < nlive; k++)
            if (p->uses[live[k]].end > t)
                live[left++] = live[k];
        for (nlive = left; next < p->nuses && p->uses[g->held[next]].begin == t; next++)
            live[nlive++] = g->held[next];
        all = g->usage[t] <= p->limit[t] || make_room_for_use(g, t, live, nlive);
    }
    return all;
}

/* Uses by their beginnings: a counting sort. */
static void sort_uses(greedy *g, sf_arena *scratch)
{
    const sf_problem *p = g->problem;
    uint32_t *first = SF_ARRAY(scratch, p->ntimes + 1, uint32_t);
    g->held = SF_ARRAY(scratch, p->nuses, uint32_t);
    for (uint32_t u = 0; u < p->nuses; u++)
        first[p->uses[u].begin + 1]++;
    for (uint32_t t = 0; t < p->ntimes; t++)
        first[t + 1] += first[t];
    for (uint32_t u = 0; u < p->nuses; u++)
        g->held[first[p->uses[u].begin]++] = u;
}

/* Each node takes the strategy with the least usage, over all of its time. */
static void take_least_costs(greedy *g)
{
    const sf_problem *p = g->problem;
    for (uint32_t v = 0; v < p->nnodes; v++) {
        double least = HUGE_VAL;
        for (uint32_t i = 0; i < sf_problem_count(p, v); i++) {
            double sum = 0;
            for (uint32_t u = p->use_first[v]; u < p->use_first[v + 1]; u++)
                sum += (double)p->uses[u].usage[i] * (p->uses[u].end - p->uses[u].begin);
            if (sum < least) {
                least = sum;
                g->choice[v] = i;
            }
        }
    }
}

static greedy start_greedy(const sf_problem *problem, uint32_t *choice, sf_arena *scratch)
{
    uint32_t widest = 0;
    for (uint32_t v = 0; v < problem->nnodes; v++) {
        uint32_t count = sf_problem_count(problem, v);
        widest = count > widest ? count : widest;
    }
    greedy g = {.problem = problem,
                .choice = choice,
                .usage = SF_ARRAY(scratch, problem->ntimes, int64_t),
                .cost = SF_ARRAY(scratch, widest, int64_t)};
    sort_uses(&g, scratch);
    return g;
}

bool sf_repair(const sf_problem *problem, uint32_t *choice, int64_t work_limit, sf_arena *scratch,
               int64_t *work)
{
    sf_mark mark = sf_arena_mark(scratch);
    greedy g = start_greedy(problem, choice, scratch);
    g.work_limit = work_limit;
    sf_problem_usage(problem, choice, g.usage);
    bool feasible = make_room_everywhere(&g, scratch);
    if (feasible) {
        descend_costs(&g, true);
        feasible = sf_problem_judge(problem, choice, scratch).feasible;
    }
    *work += g.work;
    sf_arena_reset(scratch, mark);
    return feasible;
}

bool sf_greedy(const sf_problem *problem, uint32_t *choice, int64_t work_limit, sf_arena *scratch,
               int64_t *work)
{
    sf_mark mark = sf_arena_mark(scratch);
    greedy g = start_greedy(problem, choice, scratch);
    g.work_limit = work_limit / 4;
    memset(choice, 0, problem->nnodes * sizeof *choice);
    descend_costs(&g, false);
    bool feasible = sf_repair(problem, choice, work_limit / 2, scratch, &g.work);
    if (!feasible) {
        take_least_costs(&g);
        sf_problem_usage(problem, choice, g.usage);
        g.work_limit = work_limit;
        descend_costs(&g, true);
        feasible = sf_problem_judge(problem, choice, scratch).feasible;
    }
    *work += g.work;
    sf_arena_reset(scratch, mark);
    return feasible;
}
