#include "solve/solve.h"

#include <math.h>

#include "solve/reduce/components.h"
#include "solve/reduce/eliminate.h"
#include "solve/reduce/reductions.h"
#include "solve/solve_remainder.h"

enum {
    ELIMINATE_LIMIT = 1 << 28, /* cells of work for one part */
    KEEP_LIMIT = 1 << 25,      /* cells of memory for one part */
};

#define DEFAULT_SECONDS 60.0

static bool solve_part(sf_cutter *cutter, const uint32_t *nodes, uint32_t count, sf_budget *budget,
                       sf_answer *out)
{
    sf_arena arena = {0};
    sf_problem part;
    sf_elimination order;
    sf_cutter_cut(cutter, nodes, count, &arena, &part);
    bool fits = part.nuses == 0 && sf_order_find(&part, ELIMINATE_LIMIT, &arena, &order) &&
                order.kept <= KEEP_LIMIT;
    if (fits) {
        uint32_t *choice = SF_ARRAY(&arena, count, uint32_t);
        int64_t cost = sf_eliminate(&part, &order, &arena, choice);
        out->feasible = out->feasible && cost < SF_FORBIDDEN;
        out->cost = sf_cost_add(out->cost, cost);
        for (uint32_t n = 0; n < count; n++)
            out->choice[nodes[n]] = choice[n];
        budget->work += order.cells;
    }
    sf_arena_free(&arena);
    return fits;
}

/* Nodes in order of their parts: first[parts + 1] into the nodes that are returned. */
static uint32_t *group_by_part(const uint32_t *part, uint32_t nnodes, uint32_t parts,
                               sf_arena *arena, uint32_t *first)
{
    uint32_t *nodes = SF_ARRAY(arena, nnodes, uint32_t);
    for (uint32_t v = 0; v < nnodes; v++)
        first[part[v] + 1]++;
    for (uint32_t p = 0; p < parts; p++)
        first[p + 1] += first[p];
    for (uint32_t v = 0; v < nnodes; v++)
        nodes[first[part[v]]++] = v;
    for (uint32_t p = parts; p > 0; p--)
        first[p] = first[p - 1];
    first[0] = 0;
    return nodes;
}

/* Solves the parts that elimination can solve. The nodes of the others, in ascending order, go to
 * *rest; out->cost is that of the parts solved. */
static uint32_t solve_parts(const sf_problem *problem, sf_budget *budget, sf_arena *arena,
                            sf_answer *out, uint32_t **rest)
{
    uint32_t *part = SF_ARRAY(arena, problem->nnodes, uint32_t), left = 0;
    uint32_t parts = sf_parts_find(problem, arena, part);
    uint32_t *first = SF_ARRAY(arena, parts + 1, uint32_t);
    uint32_t *nodes = group_by_part(part, problem->nnodes, parts, arena, first);
    bool *solved = SF_ARRAY(arena, parts, bool);
    sf_cutter cutter = sf_cutter_new(problem, arena);
    for (uint32_t p = 0; p < parts; p++)
        solved[p] = solve_part(&cutter, nodes + first[p], first[p + 1] - first[p], budget, out);
    *rest = SF_ARRAY(arena, problem->nnodes, uint32_t);
    for (uint32_t v = 0; v < problem->nnodes; v++)
        if (!solved[part[v]])
            (*rest)[left++] = v;
    return left;
}

/* Solves a problem that is reduced. */
static void solve_reduced(const sf_problem *problem, sf_budget *budget, sf_arena *arena,
                          sf_answer *out)
{
    uint32_t *nodes;
    *out = (sf_answer){SF_ARRAY(arena, problem->nnodes, uint32_t), true, problem->base, 0};
    uint32_t count = solve_parts(problem, budget, arena, out, &nodes);
    out->bound = out->cost;
    if (count == 0 || !out->feasible)
        return;
    sf_cutter cutter = sf_cutter_new(problem, arena);
    sf_problem rest;
    sf_cutter_cut(&cutter, nodes, count, arena, &rest);
    rest.base = out->cost;
    sf_answer found = {.choice = SF_ARRAY(arena, count, uint32_t)};
    sf_solve_rest(&rest, budget, arena, &found);
    for (uint32_t n = 0; n < count; n++)
        out->choice[nodes[n]] = found.choice[n];
    out->feasible = found.feasible;
    out->cost = found.cost;
    out->bound = found.bound;
}

static sf_status check_solve_options(const sf_solve_options *options, sf_diag *diag)
{
    if (!(options->seconds >= 0) || options->work < 0 || options->threads < 0)
        return sf_fail(diag, SF_EUSAGE, SF_NOWHERE,
                       "seconds, work and threads must not be negative");
    if (!(options->gap >= 0))
        return sf_fail(diag, SF_EUSAGE, SF_NOWHERE, "the gap must not be negative");
    return SF_OK;
}

static sf_budget start_budget(const sf_solve_options *options, sf_threads *threads)
{
    double now = sf_now();
    sf_budget budget = {
        .options = options, .threads = threads, .started = now, .deadline = HUGE_VAL};
    bool seconds = options->seconds > 0 || options->work == 0;
    if (seconds)
        budget.deadline = now + (options->seconds > 0 ? options->seconds : DEFAULT_SECONDS);
    budget.work_limit = options->work > 0 ? options->work : INT64_MAX;
    return budget;
}

static sf_stop why_stopped(const sf_budget *budget, const sf_solve_result *result)
{
    if (result->bound >= SF_FORBIDDEN)
        return SF_STOP_INFEASIBLE;
    if (result->feasible && result->bound >= result->cost)
        return SF_STOP_OPTIMAL;
    if (result->feasible && result->gap <= budget->options->gap)
        return SF_STOP_GAP;
    if (budget->asked || sf_interrupt_is_raised(budget->options->interrupt))
        return SF_STOP_ASKED;
    return budget->work >= budget->work_limit ? SF_STOP_WORK : SF_STOP_SECONDS;
}

/* Evaluates the answer in the original problem, not as a sum of the parts. */
static void judge_answer(const sf_problem *problem, const sf_answer *found, const sf_budget *budget,
                         sf_arena *scratch, sf_solve_result *out)
{
    sf_verdict verdict = sf_problem_judge(problem, out->choice, scratch);
    out->feasible = verdict.feasible;
    out->cost = verdict.cost;
    out->bound = found->bound;
    if (verdict.over > 0) {
        out->time = problem->time[verdict.worst];
        out->over = verdict.over;
    }
    out->work = budget->work;
    out->seconds = sf_now() - budget->started;
    out->gap = HUGE_VAL;
    if (out->feasible && out->cost == out->bound)
        out->gap = 0;
    else if (out->feasible)
        out->gap = (double)(out->cost - out->bound) / fabs((double)out->cost);
    out->stop = why_stopped(budget, out);
}

sf_status sf_solve(const sf_problem *problem, const sf_solve_options *options, sf_threads *threads,
                   sf_arena *arena, sf_solve_result *out, sf_diag *diag)
{
    SF_TRY(check_solve_options(options, diag));
    sf_budget budget = start_budget(options, threads);
    sf_arena scratch = {0};
    sf_network net;
    sf_answer found = {.bound = SF_FORBIDDEN};
    *out = (sf_solve_result){.choice = SF_ARRAY(arena, problem->nnodes, uint32_t)};
    sf_network_init(&net, problem, &scratch);
    sf_reduce(&net);
    budget.work += net.work;
    if (!net.infeasible) {
        sf_problem rest;
        uint32_t *node_of;
        sf_net_problem(&net, &scratch, &rest, &node_of);
        solve_reduced(&rest, &budget, &scratch, &found);
        sf_net_lift(&net, node_of, rest.nnodes, found.choice, out->choice);
    }
    judge_answer(problem, &found, &budget, &scratch, out);
    if (net.over > 0) {
        out->time = net.over_time;
        out->over = net.over;
    }
    sf_arena_free(&scratch);
    return SF_OK;
}
