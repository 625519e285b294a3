#include "search/axis/axis.h"

#include <math.h>

#include "base/hash.h"
#include "base/mem.h"
#include "search/axis/axis_builder.h"
#include "solve/solve.h"
#include "solve/start.h"

/* Variables */

static bool is_pinned(const axis_builder *b, sf_value value)
{
    return b->options->fixed.pin && b->options->fixed.pin[value] >= 0;
}

static bool has_rules(const axis_builder *b)
{
    return b->options->fixed.pin || b->options->fixed.banned;
}

/* The pinned share; all of the dimension where it has no period. */
static sf_share pin_of(const axis_builder *b, sf_value value)
{
    const sf_type *type = sf_type_of(b->graph, value);
    sf_share share = b->options->fixed.shares[value];
    if (share.kind == SF_SPLIT && share.period == 0 && share.dim < type->rank)
        share.period = type->dims[share.dim];
    return share;
}

static uint64_t hash_pin(const axis_builder *b, uint64_t hash, sf_value value)
{
    if (b->options->fixed.banned)
        hash = sf_hash_mix(hash, b->options->fixed.banned[value]);
    if (!is_pinned(b, value))
        return sf_hash_mix(hash, 0);
    sf_layout layout = {.axes = {pin_of(b, value)}};
    return sf_hash_mix(hash, sf_layout_hash(&layout) | 1);
}

/* From what nodes, or arguments, have in common to the first of them. */
typedef struct sharing {
    uint64_t *hashes;
    uint32_t *firsts;
    size_t size;
} sharing;

static sharing sharing_for(axis_builder *b, size_t count)
{
    sharing s = {.size = 64};
    while (s.size < 2 * count)
        s.size *= 2;
    s.hashes = SF_ARRAY(&b->arena, s.size, uint64_t);
    s.firsts = SF_ARRAY(&b->arena, s.size, uint32_t);
    return s;
}

static uint32_t first_with(sharing *s, uint64_t hash, uint32_t self)
{
    hash |= hash == 0;
    size_t at = (size_t)hash & (s->size - 1);
    while (s->hashes[at] && s->hashes[at] != hash)
        at = (at + 1) & (s->size - 1);
    if (!s->hashes[at]) {
        s->hashes[at] = hash;
        s->firsts[at] = self;
    }
    return s->firsts[at];
}

/* One for the nodes of a class whose tensors are pinned alike. */
static void add_op_nodes(axis_builder *b, const sf_classes *classes)
{
    const sf_graph *graph = b->graph;
    sharing shared = sharing_for(b, graph->nnodes);
    b->nodes = SF_ARRAY(&b->arena, graph->nnodes, uint32_t);
    for (uint32_t i = 0; i < graph->top->nnodes; i++) {
        const sf_node *node = graph->nodes[graph->top->nodes[i]];
        uint64_t hash = b->options->folded ? classes->nodes[node->id] : node->id;
        for (uint32_t t = 0; t < node->noperands + node->nresults && has_rules(b); t++)
            hash = hash_pin(b, hash, axis_tensor(node, t));
        uint32_t first = first_with(&shared, sf_hash_mix(1, hash), node->id);
        b->nodes[node->id] = first == node->id
                                 ? axis_add_variable(b, b->space->nodes[first].nstrategies)
                                 : b->nodes[first];
    }
}

/* The choices of an argument: its candidates, or what it is pinned to. */
static sf_share_space choices_of(axis_builder *b, uint32_t argument)
{
    sf_value value = b->graph->top->arguments[argument];
    if (!is_pinned(b, value))
        return b->space->arguments[argument];
    sf_share_space one = {1, SF_NEW(&b->arena, sf_share)};
    one.shares[0] = pin_of(b, value);
    return one;
}

static void add_argument_nodes(axis_builder *b, const sf_classes *classes)
{
    const sf_block *top = b->graph->top;
    sharing shared = sharing_for(b, top->narguments);
    b->arguments = SF_ARRAY(&b->arena, top->narguments, uint32_t);
    b->shares = SF_ARRAY(&b->arena, top->narguments, sf_share_space);
    for (uint32_t i = 0; i < top->narguments; i++) {
        uint64_t hash = b->options->folded ? classes->arguments[i] : i;
        uint32_t first =
            first_with(&shared, sf_hash_mix(2, hash_pin(b, hash, top->arguments[i])), i);
        b->shares[i] = first == i ? choices_of(b, i) : b->shares[first];
        b->arguments[i] =
            first == i ? axis_add_variable(b, b->shares[i].nshares) : b->arguments[first];
        axis_variable *variable = &b->variables[b->arguments[i]];
        for (uint32_t k = 0; k < variable->count; k++) {
            sf_layout layout = b->plan->arguments[i];
            layout.axes[b->options->axis] = (sf_share){0};
            if (sf_is_banned(&b->options->fixed, top->arguments[i], b->shares[i].shares[k]) ||
                !axis_fit(b, sf_type_of(b->graph, top->arguments[i]), &layout,
                          b->shares[i].shares[k], &layout))
                variable->seconds[k] = HUGE_VAL;
        }
    }
}

/* Pins */

/* Whether choice k of the end is what is pinned. */
static bool choice_obeys(const axis_builder *b, const axis_end *end, uint32_t k, sf_value value)
{
    const sf_type *type = sf_type_of(b->graph, value);
    sf_layout chosen, pinned;
    return axis_fit(b, type, &end->others, end->port.shares[(size_t)k * end->port.stride],
                    &chosen) &&
           axis_fit(b, type, &end->others, pin_of(b, value), &pinned) &&
           sf_layout_equal(&chosen, &pinned);
}

/* Forbids all choices but those that obey the pin, if there are any. */
static bool obey_axis_pin(axis_builder *b, const axis_end *end, sf_value value)
{
    bool can = false;
    for (uint32_t k = 0; k < end->port.count; k++)
        can = can || choice_obeys(b, end, k, value);
    for (uint32_t k = 0; k < end->port.count && can; k++)
        if (!choice_obeys(b, end, k, value))
            b->variables[end->port.variable].seconds[k] = HUGE_VAL;
    return can;
}

/* A value that is made and pinned is found so by all readers that can have it so; where none can, it is
 * made so. */
static void obey_pins(axis_builder *b)
{
    for (size_t v = 0; b->options->fixed.pin && v < b->graph->nvalues; v++) {
        sf_value value = (sf_value)v;
        if (!is_pinned(b, value) || !sf_maker(b->graph, value) ||
            b->readers->origin[value] != value)
            continue;
        bool any = false;
        for (uint32_t u = b->readers->first[v]; u < b->readers->first[v + 1]; u++) {
            axis_end reader = axis_read(b, b->readers->at[u]);
            if (b->readers->at[u].node != SF_NONE && b->readers->at[u].operand != SF_NONE)
                any = obey_axis_pin(b, &reader, value) || any;
        }
        axis_end made = axis_made(b, value);
        if (!any)
            obey_axis_pin(b, &made, value);
    }
}

/* Forbids strategies that make, or read, what is made in a way that is banned. To run whole is none. */
static void obey_bans(axis_builder *b)
{
    const sf_fixed *fixed = &b->options->fixed;
    for (uint32_t i = 0; i < b->graph->top->nnodes && fixed->banned; i++) {
        const sf_node *node = b->graph->nodes[b->graph->top->nodes[i]];
        const sf_node_space *space = &b->space->nodes[node->id];
        for (uint32_t t = 0; t < space->ntensors; t++) {
            sf_value value = axis_tensor(node, t);
            if (!sf_maker(b->graph, value) || !fixed->banned[value])
                continue;
            for (uint32_t k = 0; k < space->nstrategies; k++)
                if (sf_is_banned(fixed, value, space->shares[k * space->ntensors + t]))
                    b->variables[b->nodes[node->id]].seconds[k] = HUGE_VAL;
        }
    }
}

/* The network */

static void build_problem(axis_builder *b, const sf_classes *classes)
{
    b->matrices = SF_ARRAY(&b->arena, AXIS_SLOTS, axis_matrix *);
    if (!b->cache->moved)
        b->cache->moved = SF_ARRAY(&b->cache->arena, AXIS_SLOTS, struct axis_moved *);
    b->edges = SF_ARRAY(&b->arena, AXIS_SLOTS, axis_edge *);
    b->fixed = axis_add_variable(b, 1);
    add_op_nodes(b, classes);
    add_argument_nodes(b, classes);
    axis_add_versions(b);
    axis_add_times(b);
    obey_pins(b);
    obey_bans(b);
    for (size_t v = 0; v < b->graph->nvalues; v++)
        axis_add_edges(b, (sf_value)v);
}

/* The problem */

/* Costs are counted in this part of a second, so fine that the sum of all stays in range. */
static double find_scale(const axis_builder *b)
{
    const double finest = 1e12, range = (double)SF_FORBIDDEN / 4;
    double total = 1;
    for (size_t v = 0; v < b->nvariables; v++) {
        double most = 0;
        for (uint32_t k = 0; k < b->variables[v].count; k++)
            if (b->variables[v].seconds[k] < HUGE_VAL)
                most = fmax(most, b->variables[v].seconds[k]);
        total += most;
    }
    for (size_t e = 0; e < b->nedges; e++) {
        const axis_matrix *m = b->edge_list[e]->matrix;
        double most = 0;
        for (size_t i = 0; i < (size_t)m->from.port.count * m->to.port.count; i++)
            if (m->seconds[i] < HUGE_VAL)
                most = fmax(most, m->seconds[i]);
        total += most * b->edge_list[e]->times;
    }
    return fmin(finest, range / total);
}

static int64_t cost_of_seconds(double seconds, double scale)
{
    return seconds < HUGE_VAL ? (int64_t)llround(seconds * scale) : SF_FORBIDDEN;
}

static sf_status make_problem(axis_builder *b, double scale, sf_problem *out)
{
    enum { MOST = 2 * SF_MOST_STRATEGIES };
    sf_problem_builder problem = {.arena = &b->arena};
    int64_t *costs = SF_ARRAY(&b->arena, MOST * MOST, int64_t);
    for (size_t v = 0; v < b->nvariables; v++) {
        const axis_variable *variable = &b->variables[v];
        for (uint32_t k = 0; k < variable->count; k++)
            costs[k] = cost_of_seconds(variable->seconds[k], scale);
        SF_TRY(sf_problem_add_node(&problem, variable->count, costs, b->diag));
    }
    for (size_t e = 0; e < b->nedges; e++) {
        const axis_edge *edge = b->edge_list[e];
        size_t count = (size_t)edge->matrix->from.port.count * edge->matrix->to.port.count;
        for (size_t i = 0; i < count; i++)
            costs[i] = cost_of_seconds(edge->matrix->seconds[i] * edge->times, scale);
        SF_TRY(sf_problem_add_edge(&problem, edge->a, edge->b, costs, b->diag));
    }
    SF_TRY(axis_add_memory(b, &problem));
    return sf_problem_finish(&problem, out, b->diag);
}

/* The solution */

/* Begins from the plan as it is, and takes what comes out if it is better than what was found. */
static void improve_plan(axis_builder *b, const sf_problem *problem, sf_solve_result *result)
{
    bool *known = SF_ARRAY(&b->arena, problem->nnodes, bool);
    uint32_t *choice = SF_ARRAY(&b->arena, problem->nnodes, uint32_t);
    axis_read_plan(b, known, choice);
    sf_start start = sf_start_improve(problem, known, choice);
    if (start.feasible && (!result->feasible || start.cost < result->cost)) {
        result->feasible = true;
        result->cost = start.cost;
        result->choice = choice;
        result->over = 0;
    }
}

static int64_t most_used(axis_builder *b, const sf_problem *problem, const uint32_t *choice)
{
    int64_t *usage = SF_ARRAY(&b->arena, problem->ntimes, int64_t), most = 0;
    sf_problem_usage(problem, choice, usage);
    for (uint32_t t = 0; t < problem->ntimes; t++)
        most = usage[t] > most ? usage[t] : most;
    return most;
}

struct sf_axis_problem {
    axis_builder builder;
    sf_axis_options options;
    sf_axis_cache own; /* where the options have none */
    double scale;
    sf_problem problem;
};

sf_status sf_axis_problem_new(const sf_efforts *efforts, const sf_axis_space *space,
                              const sf_classes *classes, const sf_costs *costs,
                              const sf_axis_options *options, sf_plan *plan, sf_diag *diag,
                              sf_axis_problem **out)
{
    sf_axis_problem *p = sf_alloc(sizeof *p);
    *p = (sf_axis_problem){.options = *options};
    axis_builder *b = &p->builder;
    *b = (axis_builder){.efforts = efforts,
                        .graph = efforts->graph,
                        .readers = &efforts->readers,
                        .space = space,
                        .costs = costs,
                        .options = &p->options,
                        .plan = plan,
                        .mesh = &plan->mesh,
                        .diag = diag,
                        .cache = options->cache ? options->cache : &p->own};
    build_problem(b, classes);
    p->scale = find_scale(b);
    sf_status status = make_problem(b, p->scale, &p->problem);
    if (status != SF_OK)
        sf_axis_problem_free(p);
    *out = status == SF_OK ? p : NULL;
    return status;
}

void sf_axis_problem_free(sf_axis_problem *problem)
{
    if (!problem)
        return;
    sf_arena_free(&problem->builder.arena);
    sf_axis_cache_free(&problem->own);
    sf_free(problem);
}

/* The problem with this limit at all times. */
static sf_problem limit_problem(sf_axis_problem *p, int64_t memory)
{
    sf_problem within = p->problem;
    int64_t *limit = SF_ARRAY(&p->builder.arena, within.ntimes, int64_t);
    for (uint32_t t = 0; t < within.ntimes; t++)
        limit[t] = memory;
    within.limit = limit;
    return within;
}

sf_status sf_axis_problem_solve(sf_axis_problem *p, int64_t memory, sf_plan *plan,
                                sf_axis_result *out)
{
    axis_builder *b = &p->builder;
    sf_problem problem = limit_problem(p, memory);
    sf_solve_result result;
    sf_solve_options options = {.size = sizeof options,
                                .work = p->options.work > 0 ? p->options.work : 1,
                                .gap = p->options.gap};
    b->plan = plan;
    b->mesh = &plan->mesh;
    SF_TRY(sf_solve(&problem, &options, p->options.threads, &b->arena, &result, b->diag));
    if ((!result.feasible || result.cost > result.bound) && !axis_is_whole(b))
        improve_plan(b, &problem, &result);
    *out = (sf_axis_result){.feasible = result.feasible,
                            .seconds = (double)result.cost / p->scale,
                            .bound = (double)result.bound / p->scale,
                            .over = (double)result.over,
                            .variables = problem.nnodes,
                            .edges = problem.nedges};
    if (result.feasible) {
        out->memory = most_used(b, &problem, result.choice);
        axis_write_plan(b, result.choice);
    }
    return SF_OK;
}

sf_status sf_axis_solve(const sf_efforts *efforts, const sf_axis_space *space,
                        const sf_classes *classes, const sf_costs *costs,
                        const sf_axis_options *options, sf_plan *plan, sf_diag *diag,
                        sf_axis_result *out)
{
    sf_axis_problem *problem;
    SF_TRY(sf_axis_problem_new(efforts, space, classes, costs, options, plan, diag, &problem));
    sf_status status = sf_axis_problem_solve(problem, options->memory, plan, out);
    sf_axis_problem_free(problem);
    return status;
}

void sf_axis_cache_free(sf_axis_cache *cache)
{
    sf_arena_free(&cache->arena);
    *cache = (sf_axis_cache){0};
}
