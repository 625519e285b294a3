#include "solve/start.h"

#include <stdlib.h>
#include <string.h>

#include "solve/grow.h"
#include "solve/reduce/components.h"
#include "solve/reduce/eliminate.h"
#include "solve/reduce/mutable_problem.h"
#include "solve/reduce/reductions.h"

enum {
    SEEDS = 12,           /* nodes, of which every strategy is tried */
    KEPT_SEEDS = 8,       /* pairs of a node and a strategy that are remembered */
    PRICED_SEEDS = 6,     /* of these, under prices */
    RAISES = 20,          /* of prices, until an assignment fits */
    REFINEMENTS = 3,      /* of prices that made it fit */
    KEPT_LIMIT = 1 << 20, /* cells, to eliminate a restricted problem */
    BLOCK = 256,          /* nodes; fewer where that is too much work, */
    LEAST_BLOCK = 64,     /* down to this */
    MOST_BLOCKS = 64,
};

typedef struct seed {
    uint32_t node, strategy;
    int64_t value;    /* of its growth without prices */
    uint32_t *choice; /* [nnodes]: that */
} seed;

typedef struct starting {
    const sf_problem *problem;
    sf_arena arena;
    sf_grower grower;
    uint32_t *choice, *best; /* [nnodes]: at hand, and the best */
    sf_start start;
    int64_t limit;          /* of work */
    seed seeds[KEPT_SEEDS]; /* the best until now, best first, no two of one value */
    int nseeds;
    bool too_wide;   /* the last restricted problem was too much work */
    bool *keep;      /* [strategies] */
    bool *seen;      /* [nnodes] */
    uint32_t *queue; /* [nnodes] */
    int64_t *unary;  /* [strategies]: with prices */
    double *price;   /* [ntimes]: of a unit of usage at that point */
    double *paid;    /* [ntimes]: those under which the best was found */
    double *until;   /* [ntimes + 1]: the sum of the prices of earlier points */
} starting;

static bool is_spent(const starting *s)
{
    return s->start.work + s->grower.work >= s->limit;
}

/* Takes the assignment at hand if it is better; returns how far it is over the limit, and where. */
static int64_t consider_choice(starting *s, uint32_t *worst)
{
    sf_verdict verdict = sf_problem_judge(s->problem, s->choice, &s->arena);
    sf_start *best = &s->start;
    bool better = verdict.feasible
                      ? !best->feasible || verdict.cost < best->cost
                      : !best->feasible && verdict.allowed && verdict.over < best->over;
    *worst = verdict.worst;
    s->start.work += s->problem->nedges + s->problem->nuses + s->problem->ntimes;
    if (better) {
        best->feasible = verdict.feasible;
        best->cost = verdict.cost;
        best->over = verdict.feasible ? 0 : verdict.over;
        memcpy(s->best, s->choice, s->problem->nnodes * sizeof *s->best);
    }
    return verdict.allowed ? verdict.over : INT64_MAX;
}

/* The most that a suboptimal strategy of a node costs by itself. */
static int64_t weight_of_node(const sf_problem *p, uint32_t node)
{
    const int64_t *cost = sf_problem_cost(p, node);
    int64_t least = SF_FORBIDDEN, most = 0;
    for (uint32_t i = 0; i < sf_problem_count(p, node); i++)
        if (cost[i] < SF_FORBIDDEN) {
            least = cost[i] < least ? cost[i] : least;
            most = cost[i] > most ? cost[i] : most;
        }
    return most > least ? most - least : 0;
}

/* The heaviest nodes; returns how many. */
static uint32_t heaviest_nodes(const sf_problem *p, uint32_t nodes[SEEDS])
{
    int64_t weights[SEEDS];
    uint32_t count = 0;
    for (uint32_t v = 0; v < p->nnodes; v++) {
        int64_t w = weight_of_node(p, v);
        uint32_t at = count;
        for (; at > 0 && weights[at - 1] < w; at--)
            if (at < SEEDS) {
                weights[at] = weights[at - 1];
                nodes[at] = nodes[at - 1];
            }
        if (at < SEEDS) {
            weights[at] = w;
            nodes[at] = v;
            count += count < SEEDS;
        }
    }
    return count;
}

static void remember_seed(starting *s, seed fresh)
{
    int at = 0;
    while (at < s->nseeds && s->seeds[at].value < fresh.value)
        at++;
    if (at == KEPT_SEEDS || (at < s->nseeds && s->seeds[at].value == fresh.value))
        return;
    s->nseeds += s->nseeds < KEPT_SEEDS;
    fresh.choice = s->seeds[s->nseeds - 1].choice; /* of the one that falls out, or nobody's yet */
    if (!fresh.choice)
        fresh.choice = SF_ARRAY(&s->arena, s->problem->nnodes, uint32_t);
    for (int i = s->nseeds - 1; i > at; i--)
        s->seeds[i] = s->seeds[i - 1];
    memcpy(fresh.choice, s->choice, s->problem->nnodes * sizeof *fresh.choice);
    s->seeds[at] = fresh;
}

static void grow_seed(starting *s, seed from)
{
    sf_grow(&s->grower, from.node, from.strategy, s->choice);
    sf_grow_settle(&s->grower, s->choice);
}

static void try_seeds(starting *s)
{
    uint32_t nodes[SEEDS], count = heaviest_nodes(s->problem, nodes), worst;
    for (uint32_t n = 0; n < count; n++)
        for (uint32_t i = 0; i < sf_problem_count(s->problem, nodes[n]) && !is_spent(s); i++) {
            seed from = {nodes[n], i, 0, NULL};
            grow_seed(s, from);
            from.value = sf_grow_value(&s->grower, s->choice);
            consider_choice(s, &worst);
            remember_seed(s, from);
        }
}

/* Restricted problems */

/* The best assignment of a problem without uses, of strategies for which keep[strategies] is set or, where
 * it is NULL, of all. False when that is too much work, or not better than `value`. */
static bool solve_exactly(starting *s, const sf_problem *problem, const bool *keep, int64_t value,
                          sf_arena *arena, uint32_t *out)
{
    sf_network net;
    sf_elimination order;
    sf_problem rest;
    uint32_t *node_of;
    sf_network_init(&net, problem, arena);
    if (keep)
        sf_net_keep_all(&net, problem, keep);
    sf_reduce(&net);
    sf_net_problem(&net, arena, &rest, &node_of);
    s->start.work += net.work;
    s->too_wide = false;
    if (net.infeasible || rest.base >= value)
        return false;
    s->too_wide = !sf_order_find(&rest, KEPT_LIMIT, arena, &order);
    if (s->too_wide)
        return false;
    uint32_t *choice = SF_ARRAY(arena, rest.nnodes, uint32_t);
    int64_t cost = sf_eliminate(&rest, &order, arena, choice);
    s->start.work += order.cells;
    if (cost < value)
        sf_net_lift(&net, node_of, rest.nnodes, choice, out);
    return cost < value;
}

/* The same of the whole problem at the costs of the grower, uses ignored, for s->choice. */
static bool solve_kept(starting *s, const bool *keep, int64_t value)
{
    sf_arena arena = {0};
    sf_problem problem = *s->problem;
    problem.cost = s->grower.unary;
    problem.nuses = 0;
    problem.use_first = SF_ARRAY(&arena, problem.nnodes + 1, uint32_t);
    bool better = solve_exactly(s, &problem, keep, value, &arena, s->choice);
    sf_arena_free(&arena);
    return better;
}

/* Crosses the results of as many seeds as possible: every node takes the strategy of one of
 * them. */
static void try_crossing(starting *s)
{
    const sf_problem *p = s->problem;
    bool crossed = false;
    for (int count = s->nseeds; count > 1 && !crossed; count--) {
        memset(s->keep, 0, p->first[p->nnodes]);
        for (int i = 0; i < count; i++)
            for (uint32_t v = 0; v < p->nnodes; v++)
                s->keep[p->first[v] + s->seeds[i].choice[v]] = true;
        crossed = solve_kept(s, s->keep, s->seeds[0].value);
    }
    uint32_t worst;
    if (crossed)
        consider_choice(s, &worst);
}

static int by_number(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

/* The nodes nearest to one, in ascending order, in s->queue; returns how many. */
static uint32_t find_block(starting *s, uint32_t center, uint32_t size)
{
    const sf_problem *p = s->problem;
    uint32_t count = 0;
    s->seen[center] = true;
    s->queue[count++] = center;
    for (uint32_t at = 0; at < count; at++) {
        uint32_t node = s->queue[at];
        for (uint32_t l = p->link_first[node]; l < p->link_first[node + 1] && count < size; l++) {
            uint32_t other = sf_edge_other(&p->edges[p->links[l]], node);
            if (!s->seen[other])
                s->queue[count++] = other;
            s->seen[other] = true;
        }
    }
    qsort(s->queue, count, sizeof *s->queue, by_number);
    return count;
}

/* The cost of each strategy of a node of the block with the nodes outside, which are as in the
 * best. */
static void add_border(const starting *s, uint32_t node, int64_t *cost)
{
    const sf_problem *p = s->problem;
    uint32_t count = sf_problem_count(p, node);
    memcpy(cost, s->grower.unary + p->first[node], count * sizeof *cost);
    for (uint32_t l = p->link_first[node]; l < p->link_first[node + 1]; l++) {
        const sf_edge *edge = &p->edges[p->links[l]];
        uint32_t other = sf_edge_other(edge, node), columns = sf_problem_count(p, edge->b);
        for (uint32_t i = 0; i < count && !s->seen[other]; i++)
            cost[i] = sf_cost_add(cost[i], edge->a == node
                                               ? edge->cost[(size_t)i * columns + s->best[other]]
                                               : edge->cost[(size_t)s->best[other] * columns + i]);
    }
}

/* The best assignment of a block, at the costs of the grower, into s->choice; false when the
 * current one is as good. */
static bool solve_block(starting *s, sf_cutter *cutter, uint32_t center, uint32_t size)
{
    sf_arena arena = {0};
    sf_problem part;
    uint32_t count = find_block(s, center, size);
    sf_cutter_cut(cutter, s->queue, count, &arena, &part);
    int64_t *costs = SF_ARRAY(&arena, part.first[count], int64_t);
    uint32_t *choice = SF_ARRAY(&arena, count, uint32_t);
    for (uint32_t n = 0; n < count; n++) {
        add_border(s, s->queue[n], costs + part.first[n]);
        choice[n] = s->best[s->queue[n]];
    }
    part.cost = costs;
    part.nuses = 0;
    part.use_first = SF_ARRAY(&arena, count + 1, uint32_t);
    sf_grower value = {.problem = &part, .unary = costs};
    bool better = solve_exactly(s, &part, NULL, sf_grow_value(&value, choice), &arena, choice);
    memcpy(s->choice, s->best, s->problem->nnodes * sizeof *s->choice);
    for (uint32_t n = 0; n < count; n++)
        s->choice[s->queue[n]] = choice[n];
    memset(s->seen, 0, s->problem->nnodes * sizeof *s->seen);
    sf_arena_free(&arena);
    return better;
}

/* Solves block after block of the best assignment. */
static void try_blocks(starting *s)
{
    const sf_problem *p = s->problem;
    uint32_t blocks = p->nnodes / (BLOCK / 4) + 1, worst;
    sf_cutter cutter = sf_cutter_new(p, &s->arena);
    blocks = blocks < MOST_BLOCKS ? blocks : MOST_BLOCKS;
    for (uint32_t i = 0; i < blocks && !is_spent(s); i++) {
        uint32_t center = (uint32_t)((uint64_t)i * p->nnodes / blocks), size = BLOCK;
        bool better = solve_block(s, &cutter, center, size);
        while (s->too_wide && (size /= 2) >= LEAST_BLOCK)
            better = solve_block(s, &cutter, center, size);
        if (better)
            consider_choice(s, &worst);
    }
}

/* Prices */

static void set_start_prices(starting *s, const double *price, double factor)
{
    const sf_problem *p = s->problem;
    const double most = (double)(SF_FORBIDDEN / (1 << 16));
    memcpy(s->unary, p->cost, p->first[p->nnodes] * sizeof *s->unary);
    for (uint32_t t = 0; t < p->ntimes; t++)
        s->until[t + 1] = s->until[t] + price[t] * factor;
    for (uint32_t u = 0; u < p->nuses; u++) {
        const sf_use *use = &p->uses[u];
        double each = s->until[use->end] - s->until[use->begin];
        int64_t *cost = s->unary + p->first[use->node];
        for (uint32_t i = 0; each > 0 && i < sf_problem_count(p, use->node); i++) {
            double more = each * (double)use->usage[i];
            cost[i] = sf_cost_add(cost[i], (int64_t)(more < most ? more : most));
        }
    }
    s->start.work += p->nuses + p->ntimes;
}

static int64_t try_price(starting *s, seed from, double factor, uint32_t *worst)
{
    sf_start before = s->start;
    set_start_prices(s, s->price, factor);
    grow_seed(s, from);
    int64_t over = consider_choice(s, worst);
    for (uint32_t t = 0; t < s->problem->ntimes && s->start.cost != before.cost; t++)
        s->paid[t] = s->price[t] * factor;
    return over;
}

/* The price of the point that is furthest over its limit is doubled until no point is over. Then
 * all prices are lowered as far as that holds. */
static void try_prices(starting *s, seed from)
{
    double first = 0.01 * (double)from.value / (double)(s->problem->limit[0] + 1);
    uint32_t worst;
    int64_t over = 1;
    memset(s->price, 0, s->problem->ntimes * sizeof *s->price);
    for (int i = 0; i < RAISES && over > 0 && !is_spent(s); i++) {
        over = try_price(s, from, 1, &worst);
        if (over > 0)
            s->price[worst] = s->price[worst] > 0 ? 2 * s->price[worst] : first;
    }
    double low = 0.5, high = 1;
    for (int i = 0; i < REFINEMENTS && over <= 0; i++) {
        double middle = (low + high) / 2;
        *(try_price(s, from, middle, &worst) <= 0 ? &high : &low) = middle;
    }
}

static void begin_start(starting *s, const sf_problem *problem, uint32_t *choice)
{
    *s = (starting){
        .problem = problem, .best = choice, .start = {.over = INT64_MAX}, .limit = INT64_MAX};
    sf_grower_init(&s->grower, problem, &s->arena);
    s->choice = SF_ARRAY(&s->arena, problem->nnodes, uint32_t);
    s->keep = SF_ARRAY(&s->arena, problem->first[problem->nnodes], bool);
    s->seen = SF_ARRAY(&s->arena, problem->nnodes, bool);
    s->queue = SF_ARRAY(&s->arena, problem->nnodes, uint32_t);
}

/* Blocks of the assignments found under prices are solved under lower and lower ones. */
static sf_start finish_start(starting *s)
{
    for (double factor = 1; s->start.feasible && s->unary && factor > 0.2; factor /= 3) {
        set_start_prices(s, s->paid, factor);
        try_blocks(s);
    }
    s->grower.unary = s->problem->cost;
    if (s->start.feasible)
        try_blocks(s);
    s->start.work += s->grower.work;
    sf_arena_free(&s->arena);
    return s->start;
}

sf_start sf_start_find(const sf_problem *problem, int64_t work, uint32_t *choice)
{
    starting s;
    begin_start(&s, problem, choice);
    s.limit = work;
    try_seeds(&s);
    try_crossing(&s);
    /* The best that grew is over the limit. */
    bool over = s.nseeds > 0 && (!s.start.feasible || s.start.cost > s.seeds[0].value);
    if (over && problem->ntimes > 0) {
        s.unary = SF_ARRAY(&s.arena, problem->first[problem->nnodes], int64_t);
        s.price = SF_ARRAY(&s.arena, problem->ntimes, double);
        s.paid = SF_ARRAY(&s.arena, problem->ntimes, double);
        s.until = SF_ARRAY(&s.arena, problem->ntimes + 1, double);
        s.grower.unary = s.unary;
        for (int i = 0; i < s.nseeds && i < PRICED_SEEDS; i++)
            try_prices(&s, s.seeds[i]);
    }
    return finish_start(&s);
}

sf_start sf_start_improve(const sf_problem *problem, const bool *fixed, uint32_t *choice)
{
    starting s;
    uint32_t worst;
    begin_start(&s, problem, choice);
    memcpy(s.choice, choice, problem->nnodes * sizeof *choice);
    sf_grow_rest(&s.grower, fixed, s.choice);
    consider_choice(&s, &worst);
    sf_grow_settle(&s.grower, s.choice);
    consider_choice(&s, &worst);
    return finish_start(&s);
}
