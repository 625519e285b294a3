#include "solve/search/tree.h"

#include <math.h>
#include <string.h>

double sf_dice_wait(sf_dice *dice)
{
    /* -ln(u) for u = m * 2^-k with 1 <= m < 2; ln(m) by its series in (m - 1) / (m + 1). */
    uint64_t roll = sf_dice_roll(dice);
    int k = 1;
    while (k < 60 && !(roll >> 63)) {
        roll <<= 1;
        k++;
    }
    double m = (double)(roll >> 11) * 0x1p-52, t = (m - 1) / (m + 1), s = t * t;
    return (double)k * 0.69314718055994531 - 2 * t * (1 + s * (1.0 / 3 + s * (0.2 + s / 7)));
}

void sf_tree_init(sf_tree *tree, const sf_tables *tables, sf_arena *arena)
{
    uint32_t nnodes = tables->problem->nnodes;
    *tree = (sf_tree){.tables = tables};
    tree->node = SF_ARRAY(arena, nnodes, uint32_t);
    tree->edge = SF_ARRAY(arena, nnodes, uint32_t);
    tree->picked = SF_ARRAY(arena, nnodes, uint32_t);
    tree->value = SF_ARRAY(arena, tables->problem->first[nnodes], double);
    tree->scratch = SF_ARRAY(arena, tables->widest, double);
    tree->inside = SF_ARRAY(arena, nnodes, uint32_t);
    tree->near = SF_ARRAY(arena, nnodes, uint32_t);
    tree->edges = SF_ARRAY(arena, nnodes, uint32_t);
    tree->last = SF_ARRAY(arena, nnodes, uint32_t);
    tree->border = SF_ARRAY(arena, nnodes, uint32_t);
}

/* Takes a node in; neighbours that are seen for the first time join the border. */
static uint32_t take_best(sf_tree *tree, uint32_t v, uint32_t border)
{
    const sf_problem *problem = tree->tables->problem;
    tree->inside[v] = tree->turn;
    tree->edge[tree->count] = tree->last[v];
    tree->node[tree->count++] = v;
    for (uint32_t l = problem->link_first[v]; l < problem->link_first[v + 1]; l++) {
        uint32_t e = problem->links[l], other = sf_edge_other(&problem->edges[e], v);
        if (tree->near[other] != tree->turn) {
            tree->near[other] = tree->turn;
            tree->edges[other] = 0;
            tree->last[other] = e;
            tree->border[border++] = other;
        }
        tree->edges[other]++;
    }
    tree->work += problem->link_first[v + 1] - problem->link_first[v];
    return border;
}

/* A node with many edges is expensive, and many trees come across it: it is taken in now and then. */
static bool tree_is_worth_it(const sf_tree *tree, uint32_t v, sf_dice *dice)
{
    enum { FEW_EDGES = 16 };
    const sf_problem *problem = tree->tables->problem;
    uint32_t edges = problem->link_first[v + 1] - problem->link_first[v];
    return edges <= FEW_EDGES || sf_dice_below(dice, edges) < FEW_EDGES;
}

void sf_tree_grow(sf_tree *tree, uint32_t root, uint32_t size, sf_dice *dice)
{
    tree->turn++;
    tree->count = 0;
    tree->near[root] = tree->turn;
    uint32_t border = take_best(tree, root, 0);
    while (border > 0 && tree->count < size) {
        uint32_t at = sf_dice_below(dice, border), v = tree->border[at];
        tree->border[at] = tree->border[--border];
        if (tree->edges[v] == 1 && tree_is_worth_it(tree, v, dice))
            border = take_best(tree, v, border);
    }
}

/* The cost of each strategy of a node: its own, and that of the edges that leave the tree. */
static void start_value(sf_tree *tree, const double *unary, const uint32_t *choice, uint32_t v)
{
    const sf_problem *problem = tree->tables->problem;
    uint32_t count = sf_problem_count(problem, v);
    double *value = tree->value + problem->first[v];
    memcpy(value, unary + problem->first[v], count * sizeof *value);
    for (uint32_t l = problem->link_first[v]; l < problem->link_first[v + 1]; l++) {
        uint32_t e = problem->links[l], other = sf_edge_other(&problem->edges[e], v);
        if (tree->inside[other] == tree->turn)
            continue;
        const float *row = sf_tables_view(tree->tables, e, v) + (size_t)choice[other] * count;
        for (uint32_t i = 0; i < count; i++)
            value[i] += (double)row[i];
    }
    tree->work += (int64_t)count * (problem->link_first[v + 1] - problem->link_first[v]);
}

const double *sf_tree_solve(sf_tree *tree, const double *unary, const uint32_t *choice)
{
    const sf_problem *problem = tree->tables->problem;
    for (uint32_t n = 0; n < tree->count; n++)
        start_value(tree, unary, choice, tree->node[n]);
    for (uint32_t n = tree->count - 1; n > 0; n--) {
        uint32_t v = tree->node[n], e = tree->edge[n];
        uint32_t parent = sf_edge_other(&problem->edges[e], v);
        uint32_t count = sf_problem_count(problem, v), above = sf_problem_count(problem, parent);
        sf_least_sums(tree->value + problem->first[v], sf_tables_view(tree->tables, e, parent),
                      count, above, tree->scratch);
        for (uint32_t i = 0; i < above; i++)
            tree->value[problem->first[parent] + i] += tree->scratch[i];
        tree->work += (int64_t)count * above;
    }
    return tree->value + problem->first[tree->node[0]];
}

bool sf_tree_pick(sf_tree *tree, uint32_t strategy, const uint32_t *choice)
{
    const sf_problem *problem = tree->tables->problem;
    bool changed = choice[tree->node[0]] != strategy;
    tree->picked[tree->node[0]] = strategy;
    for (uint32_t n = 1; n < tree->count; n++) {
        uint32_t v = tree->node[n], e = tree->edge[n], count = sf_problem_count(problem, v);
        uint32_t above = tree->picked[sf_edge_other(&problem->edges[e], v)], best = 0;
        const double *value = tree->value + problem->first[v];
        const float *row = sf_tables_view(tree->tables, e, v) + (size_t)above * count;
        for (uint32_t i = 1; i < count; i++)
            if (value[i] + (double)row[i] < value[best] + (double)row[best])
                best = i;
        tree->picked[v] = best;
        changed = changed || best != choice[v];
    }
    return changed;
}

static int64_t capped_cost(int64_t cost, int64_t forbidden)
{
    return cost < forbidden ? cost : forbidden;
}

/* The change of an edge of a changed node; 0 where the other end, changed as well, reports it. */
static int64_t change_of_edge(const sf_tree *tree, uint32_t e, uint32_t v, const uint32_t *choice,
                              int64_t forbidden)
{
    const sf_edge *edge = &tree->tables->problem->edges[e];
    uint32_t other = sf_edge_other(edge, v);
    size_t columns = sf_problem_count(tree->tables->problem, edge->b);
    bool inside = tree->inside[other] == tree->turn;
    uint32_t there = inside ? tree->picked[other] : choice[other];
    if (there != choice[other] && v == edge->b)
        return 0;
    uint32_t i = v == edge->a ? tree->picked[v] : there, j = v == edge->a ? there : tree->picked[v];
    return capped_cost(edge->cost[i * columns + j], forbidden) -
           capped_cost(edge->cost[choice[edge->a] * columns + choice[edge->b]], forbidden);
}

int64_t sf_tree_change(const sf_tree *tree, const uint32_t *choice, int64_t forbidden)
{
    const sf_problem *problem = tree->tables->problem;
    int64_t sum = 0;
    for (uint32_t n = 0; n < tree->count; n++) {
        uint32_t v = tree->node[n];
        if (tree->picked[v] == choice[v])
            continue;
        const int64_t *cost = sf_problem_cost(problem, v);
        sum +=
            capped_cost(cost[tree->picked[v]], forbidden) - capped_cost(cost[choice[v]], forbidden);
        for (uint32_t l = problem->link_first[v]; l < problem->link_first[v + 1]; l++)
            sum += change_of_edge(tree, problem->links[l], v, choice, forbidden);
    }
    return sum;
}
