#include "solve/problem/problem.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/checked.h"

typedef struct sf_build_node {
    uint32_t count;
    int64_t *costs;
} sf_build_node;

typedef struct sf_build_use {
    uint32_t node;
    int64_t begin, end;
    const int64_t *usage;
} sf_build_use;

/* Ids, and the strategies in all, stay below this: 32-bit indices have room for twice as many. */
enum { ID_LIMIT = 1 << 30 };

uint32_t sf_problem_builder_count(const sf_problem_builder *builder, size_t node)
{
    return builder->nodes[node].count;
}

/* Copies costs, maps forbidden ones to one value, and adds their range (from 0) to the sum that
 * must not overflow. `what` and `id` are for messages. */
static sf_status take_costs(sf_problem_builder *builder, const char *what, size_t id, size_t count,
                            const int64_t *costs, int64_t **out, sf_diag *diag)
{
    int64_t *copy = sf_arena_copy(builder->arena, costs, count * sizeof *costs);
    int64_t smallest = 0, largest = 0;
    for (size_t i = 0; i < count; i++) {
        if (copy[i] >= SF_FORBIDDEN) {
            copy[i] = SF_FORBIDDEN;
            continue;
        }
        if (copy[i] <= -SF_FORBIDDEN)
            return sf_fail(diag, SF_EINPUT, SF_NOWHERE, "%s %zu: cost %" PRId64 " is out of range",
                           what, id, copy[i]);
        if (copy[i] < smallest)
            smallest = copy[i];
        if (copy[i] > largest)
            largest = copy[i];
    }
    if (builder->cost_sum >= SF_FORBIDDEN - (largest - smallest))
        return sf_fail(diag, SF_EINPUT, SF_NOWHERE,
                       "%s %zu: the costs add up to 10^18 or more, which overflows", what, id);
    builder->cost_sum += largest - smallest;
    *out = copy;
    return SF_OK;
}

sf_status sf_problem_add_node(sf_problem_builder *builder, uint32_t count, const int64_t *costs,
                              sf_diag *diag)
{
    size_t id = builder->nnodes;
    if (count == 0)
        return sf_fail(diag, SF_EINPUT, SF_NOWHERE, "node %zu has no strategies", id);
    if (id >= ID_LIMIT || builder->strategies + count > ID_LIMIT)
        return sf_fail(diag, SF_EINPUT, SF_NOWHERE, "node %zu: too many nodes or strategies", id);
    sf_build_node node = {.count = count};
    SF_TRY(take_costs(builder, "node", id, count, costs, &node.costs, diag));
    SF_PUSH(builder->arena, builder->nodes, builder->nnodes, builder->node_capacity, node);
    builder->strategies += count;
    return SF_OK;
}

sf_status sf_problem_add_use(sf_problem_builder *builder, uint32_t node, int64_t begin, int64_t end,
                             const int64_t *usages, sf_diag *diag)
{
    if (node >= builder->nnodes)
        return sf_fail(diag, SF_EINPUT, SF_NOWHERE, "usage of node %" PRIu32 ", which there is not",
                       node);
    if (begin > end)
        return sf_fail(diag, SF_EINPUT, SF_NOWHERE,
                       "node %" PRIu32 ": the interval begins at %" PRId64 " and ends at %" PRId64,
                       node, begin, end);
    uint32_t count = builder->nodes[node].count;
    int64_t largest = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (usages[i] < 0)
            return sf_fail(diag, SF_EINPUT, SF_NOWHERE,
                           "node %" PRIu32 ": usage %" PRId64 " is negative", node, usages[i]);
        if (usages[i] > largest)
            largest = usages[i];
    }
    if (begin == end || largest == 0)
        return SF_OK;
    /* Uses made from other uses, at given points, may be cut into several that repeat an amount; at
     * no point do they use more than those did. */
    bool overflow = !builder->points && !sf_add(builder->usage_sum, largest, &builder->usage_sum);
    if (builder->nuses >= ID_LIMIT || overflow)
        return sf_fail(diag, SF_EINPUT, SF_NOWHERE, "node %" PRIu32 ": the usages overflow", node);
    sf_build_use use = {node, begin, end,
                        sf_arena_copy(builder->arena, usages, count * sizeof *usages)};
    SF_PUSH(builder->arena, builder->uses, builder->nuses, builder->use_capacity, use);
    return SF_OK;
}

static sf_status add_loop_cost(sf_problem_builder *builder, size_t id, sf_build_node *node,
                               const int64_t *costs, sf_diag *diag)
{
    int64_t *copy;
    size_t count = node->count;
    SF_TRY(take_costs(builder, "edge", id, count * count, costs, &copy, diag));
    for (size_t i = 0; i < count; i++)
        node->costs[i] = sf_cost_add(node->costs[i], copy[i * count + i]);
    return SF_OK;
}

sf_status sf_problem_add_edge(sf_problem_builder *builder, uint32_t a, uint32_t b,
                              const int64_t *costs, sf_diag *diag)
{
    size_t id = builder->nedges;
    if (a >= builder->nnodes || b >= builder->nnodes)
        return sf_fail(diag, SF_EINPUT, SF_NOWHERE,
                       "edge %zu goes to node %" PRIu32 ", which there is not", id,
                       a >= builder->nnodes ? a : b);
    if (id >= ID_LIMIT)
        return sf_fail(diag, SF_EINPUT, SF_NOWHERE, "edge %zu: too many edges", id);
    if (a == b)
        return add_loop_cost(builder, id, &builder->nodes[a], costs, diag);
    size_t cells = (size_t)builder->nodes[a].count * builder->nodes[b].count;
    int64_t *copy;
    SF_TRY(take_costs(builder, "edge", id, cells, costs, &copy, diag));
    sf_edge edge = {a, b, copy};
    SF_PUSH(builder->arena, builder->edges, builder->nedges, builder->edge_capacity, edge);
    return SF_OK;
}

void sf_problem_set_limit(sf_problem_builder *builder, int64_t limit)
{
    builder->limited = true;
    builder->limit = limit;
}

void sf_problem_set_limits(sf_problem_builder *builder, uint32_t ntimes, const int64_t *limits,
                           const int64_t *times)
{
    builder->limited = true;
    builder->points = true;
    builder->limits = limits;
    builder->times = times;
    builder->ntimes = ntimes;
}

static int order_times(const void *left, const void *right)
{
    int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;
    return (a > b) - (a < b);
}

/* The points at which some use begins, each with the limit. */
static void make_times(sf_problem_builder *builder, sf_problem *problem)
{
    int64_t *times = SF_ARRAY(builder->arena, builder->nuses, int64_t);
    for (size_t i = 0; i < builder->nuses; i++)
        times[i] = builder->uses[i].begin;
    if (builder->nuses)
        qsort(times, builder->nuses, sizeof *times, order_times);
    uint32_t ntimes = 0;
    for (size_t i = 0; i < builder->nuses; i++)
        if (i == 0 || times[i] != times[i - 1])
            times[ntimes++] = times[i];
    int64_t *limits = SF_ARRAY(builder->arena, ntimes, int64_t);
    for (uint32_t i = 0; i < ntimes; i++)
        limits[i] = builder->limit;
    problem->ntimes = ntimes;
    problem->time = times;
    problem->limit = limits;
}

/* The first point at or after a time of the user's. */
static uint32_t find_point(const sf_problem *problem, int64_t time)
{
    uint32_t low = 0, high = problem->ntimes;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (problem->time[middle] < time)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Counts turned into offsets: first[i] becomes where the items of i begin; first[count] their number. */
static void make_offsets(uint32_t *first, uint32_t count)
{
    uint32_t sum = 0;
    for (uint32_t i = 0; i <= count; i++) {
        uint32_t own = first[i];
        first[i] = sum;
        sum += own;
    }
}

static void make_uses(sf_problem_builder *builder, sf_problem *problem)
{
    bool points_given = builder->points;
    uint32_t *first = SF_ARRAY(builder->arena, problem->nnodes + 1, uint32_t);
    uint32_t *next = SF_ARRAY(builder->arena, problem->nnodes + 1, uint32_t);
    sf_use *uses = SF_ARRAY(builder->arena, builder->nuses, sf_use);
    for (size_t i = 0; i < builder->nuses; i++)
        first[builder->uses[i].node]++;
    make_offsets(first, problem->nnodes);
    for (size_t i = 0; i < builder->nuses; i++) {
        const sf_build_use *use = &builder->uses[i];
        sf_use *out = &uses[first[use->node] + next[use->node]++];
        out->node = use->node;
        out->begin = points_given ? (uint32_t)use->begin : find_point(problem, use->begin);
        out->end = points_given ? (uint32_t)use->end : find_point(problem, use->end);
        out->usage = use->usage;
    }
    problem->nuses = (uint32_t)builder->nuses;
    problem->use_first = first;
    problem->uses = uses;
}

static void make_problem_nodes(sf_problem_builder *builder, sf_problem *problem)
{
    problem->nnodes = (uint32_t)builder->nnodes;
    uint32_t *first = SF_ARRAY(builder->arena, problem->nnodes + 1, uint32_t);
    int64_t *cost = SF_ARRAY(builder->arena, builder->strategies, int64_t);
    uint32_t at = 0;
    for (uint32_t v = 0; v < problem->nnodes; v++) {
        const sf_build_node *node = &builder->nodes[v];
        first[v] = at;
        for (uint32_t i = 0; i < node->count; i++)
            cost[at++] = node->costs[i];
    }
    first[problem->nnodes] = at;
    problem->first = first;
    problem->cost = cost;
}

static void make_links(sf_problem_builder *builder, sf_problem *problem)
{
    uint32_t *first = SF_ARRAY(builder->arena, problem->nnodes + 1, uint32_t);
    uint32_t *next = SF_ARRAY(builder->arena, problem->nnodes + 1, uint32_t);
    uint32_t *links = SF_ARRAY(builder->arena, 2 * builder->nedges, uint32_t);
    problem->nedges = (uint32_t)builder->nedges;
    problem->edges = builder->edges;
    for (uint32_t e = 0; e < problem->nedges; e++) {
        first[builder->edges[e].a]++;
        first[builder->edges[e].b]++;
    }
    make_offsets(first, problem->nnodes);
    for (uint32_t e = 0; e < problem->nedges; e++) {
        uint32_t a = builder->edges[e].a, b = builder->edges[e].b;
        links[first[a] + next[a]++] = e;
        links[first[b] + next[b]++] = e;
    }
    problem->link_first = first;
    problem->links = links;
}

sf_status sf_problem_finish(sf_problem_builder *builder, sf_problem *out, sf_diag *diag)
{
    sf_problem problem = {.base = builder->base};
    if (builder->limited && builder->limit < 0)
        return sf_fail(diag, SF_EINPUT, SF_NOWHERE, "the usage limit %" PRId64 " is negative",
                       builder->limit);
    if (!builder->limited)
        builder->nuses = 0;
    make_problem_nodes(builder, &problem);
    if (builder->points) {
        problem.ntimes = builder->ntimes;
        problem.time = builder->times;
        problem.limit = builder->limits;
    } else {
        make_times(builder, &problem);
    }
    make_uses(builder, &problem);
    make_links(builder, &problem);
    *out = problem;
    return SF_OK;
}

void sf_problem_usage(const sf_problem *problem, const uint32_t *choice, int64_t *usage)
{
    /* Differences first: begins minus ends. A use that ends at ntimes has no end. */
    for (uint32_t t = 0; t < problem->ntimes; t++)
        usage[t] = 0;
    for (uint32_t i = 0; i < problem->nuses; i++) {
        const sf_use *use = &problem->uses[i];
        int64_t amount = use->usage[choice[use->node]];
        usage[use->begin] += amount;
        if (use->end < problem->ntimes)
            usage[use->end] -= amount;
    }
    for (uint32_t t = 1; t < problem->ntimes; t++)
        usage[t] += usage[t - 1];
}

static int64_t total_cost(const sf_problem *problem, const uint32_t *choice)
{
    int64_t cost = problem->base;
    for (uint32_t v = 0; v < problem->nnodes; v++)
        cost = sf_cost_add(cost, sf_problem_cost(problem, v)[choice[v]]);
    for (uint32_t e = 0; e < problem->nedges; e++) {
        const sf_edge *edge = &problem->edges[e];
        size_t columns = sf_problem_count(problem, edge->b);
        cost = sf_cost_add(cost, edge->cost[choice[edge->a] * columns + choice[edge->b]]);
    }
    return cost;
}

size_t sf_problem_cells(const sf_problem *problem)
{
    size_t cells = 0;
    for (uint32_t e = 0; e < problem->nedges; e++)
        cells += (size_t)sf_problem_count(problem, problem->edges[e].a) *
                 sf_problem_count(problem, problem->edges[e].b);
    return cells;
}

sf_verdict sf_problem_judge(const sf_problem *problem, const uint32_t *choice, sf_arena *scratch)
{
    sf_verdict verdict = {.cost = total_cost(problem, choice), .first = problem->ntimes};
    sf_mark mark = sf_arena_mark(scratch);
    int64_t *usage = SF_ARRAY(scratch, problem->ntimes, int64_t);
    sf_problem_usage(problem, choice, usage);
    for (uint32_t t = 0; t < problem->ntimes; t++) {
        int64_t over = usage[t] - problem->limit[t];
        if (t == 0 || over > verdict.over) {
            verdict.over = over;
            verdict.worst = t;
        }
        if (over > 0) {
            if (verdict.first == problem->ntimes)
                verdict.first = t;
            if (!sf_add(verdict.surplus, over, &verdict.surplus))
                verdict.surplus = INT64_MAX;
        }
    }
    sf_arena_reset(scratch, mark);
    verdict.allowed = verdict.cost < SF_FORBIDDEN;
    verdict.feasible = verdict.allowed && verdict.first == problem->ntimes;
    return verdict;
}
