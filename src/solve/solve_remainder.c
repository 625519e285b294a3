#include "solve/solve_remainder.h"

#include <math.h>
#include <string.h>

#include "solve/branch.h"
#include "solve/reduce/reductions.h"
#include "solve/search/greedy.h"
#include "solve/search/local_search.h"
#include "solve/start.h"

enum {
    BRANCH_LIMIT = 300000, /* cells of edges: more is too much to branch on */
    GREEDY_SWEEPS = 10,    /* over all cells, for a first answer */
    START_SWEEPS = 400,    /* and this for those that are grown, */
};

#define START_SHARE 0.05 /* but no more than this share of the budget, */
#define WORK_IN_SECOND                                                                             \
    400e6 /* where it is one of time, at about so much; one of work it may have whole */

/* A gap at which the strategies that can still be in a better answer may be few. */
#define CLOSE_GAP 1e-4

/* Whether a proof may be in reach, and the budget has room for its first bound. */
static bool can_branch(const sf_problem *problem, const sf_budget *budget)
{
    return sf_problem_cells(problem) <= BRANCH_LIMIT &&
           budget->work_limit - budget->work > sf_branch_least_work(problem);
}

/* Subtracts the used part of a share from the whole. */
static void settle_share(sf_budget *budget, const sf_budget *share)
{
    budget->work = share->work;
    budget->asked = share->asked;
    budget->known = share->known;
    budget->known_cost = share->known_cost;
}

static void run_branch(const sf_problem *problem, sf_budget *budget, double share, sf_arena *arena,
                       sf_answer *known)
{
    sf_budget part = sf_budget_share(budget, share);
    sf_branch branch = {.budget = &part,
                        .cost = known->feasible ? known->cost : SF_FORBIDDEN,
                        .bound = known->bound};
    uint32_t *choice = SF_ARRAY(arena, problem->nnodes, uint32_t);
    sf_branch_solve(&branch, problem, choice, arena);
    settle_share(budget, &part);
    known->bound = branch.bound;
    if (branch.found) {
        memcpy(known->choice, choice, problem->nnodes * sizeof *choice);
        known->feasible = true;
        known->cost = branch.cost;
    }
}

/* Results of a search besides its answer. */
typedef struct hints {
    int64_t *strategy_bound; /* [strategies]: no assignment that takes it costs less */
    double *multiplier;      /* [ntimes] */
} hints;

/* Searches until the budget is spent, or the gap is so small that a proof may be in reach. */
static void run_search(const sf_problem *problem, sf_budget *budget, double share, double gap,
                       sf_answer *known, const hints *hint)
{
    sf_budget part = sf_budget_share(budget, share);
    sf_solve_options options = *budget->options;
    sf_solve_found found = {.feasible = known->feasible,
                            .cost = known->cost,
                            .bound = known->bound,
                            .strategy_bound = hint->strategy_bound,
                            .multiplier = hint->multiplier};
    options.gap = options.gap > gap ? options.gap : gap;
    part.options = &options;
    sf_search(problem, &part, &found, known->choice);
    settle_share(budget, &part);
    known->feasible = found.feasible;
    known->cost = found.feasible ? found.cost : SF_FORBIDDEN;
    known->bound = found.bound > known->bound ? found.bound : known->bound;
}

/* Multipliers at the points that a reduction left, which have kept their names and order. */
static double *pick_points(const sf_problem *whole, const sf_problem *rest, const double *from,
                           sf_arena *arena)
{
    double *out = SF_ARRAY(arena, rest->ntimes, double);
    for (uint32_t n = 0, t = 0; n < rest->ntimes; n++) {
        while (whole->time[t] != rest->time[n])
            t++;
        out[n] = from[t];
    }
    return out;
}

/* Strategies whose bound reaches the cost of the answer are in no better one. Without them the problem may
 * be small enough to branch on. */
static void run_close(const sf_problem *problem, sf_budget *budget, const hints *hint,
                      sf_arena *arena, sf_answer *known)
{
    uint32_t strategies = problem->first[problem->nnodes], *node_of;
    bool *keep = SF_ARRAY(arena, strategies, bool);
    sf_network net;
    sf_problem rest;
    for (uint32_t s = 0; s < strategies; s++)
        keep[s] = hint->strategy_bound[s] < known->cost;
    sf_network_init(&net, problem, arena);
    sf_net_keep_all(&net, problem, keep);
    sf_reduce(&net);
    budget->work += net.work;
    if (net.infeasible) {
        known->bound = known->cost;
        return;
    }
    sf_net_problem(&net, arena, &rest, &node_of);
    if (sf_problem_cells(&rest) > BRANCH_LIMIT)
        return;
    uint32_t *choice = SF_ARRAY(arena, rest.nnodes, uint32_t);
    sf_budget part = sf_budget_share(budget, 0.5);
    sf_branch branch = {.budget = &part,
                        .cost = known->cost,
                        .bound = known->bound,
                        .multiplier = pick_points(problem, &rest, hint->multiplier, arena)};
    sf_branch_solve(&branch, &rest, choice, arena);
    settle_share(budget, &part);
    known->bound = branch.bound;
    if (branch.found) {
        sf_net_lift(&net, node_of, rest.nnodes, choice, known->choice);
        known->cost = branch.cost;
    }
}

static bool rest_is_done(const sf_answer *known, const sf_budget *budget)
{
    if (known->bound >= known->cost || sf_budget_spent(budget))
        return true;
    double gap = (double)(known->cost - known->bound);
    return known->feasible && gap <= budget->options->gap * fabs((double)known->cost);
}

/* A first answer, rough. Under limits it is kept aside: search and branching do better to start from
 * nothing there. */
static sf_answer run_greedy(const sf_problem *problem, sf_budget *budget, sf_arena *arena)
{
    sf_answer rough = {.choice = SF_ARRAY(arena, problem->nnodes, uint32_t), .cost = SF_FORBIDDEN};
    int64_t limit =
        GREEDY_SWEEPS * (int64_t)(sf_problem_cells(problem) + problem->first[problem->nnodes]);
    rough.feasible = sf_greedy(problem, rough.choice, limit, arena, &budget->work);
    if (rough.feasible)
        rough.cost = sf_problem_judge(problem, rough.choice, arena).cost;
    sf_budget_report(budget, rough.feasible, rough.cost, problem->base);
    return rough;
}

/* Another one, grown from seeds. A budget of next to nothing has it all the same. */
static sf_answer run_start(const sf_problem *problem, sf_budget *budget, sf_arena *arena)
{
    sf_answer grown = {.choice = SF_ARRAY(arena, problem->nnodes, uint32_t), .cost = SF_FORBIDDEN};
    double limit =
        START_SWEEPS * (double)(sf_problem_cells(problem) + problem->first[problem->nnodes]);
    double left = (budget->deadline - sf_now()) * WORK_IN_SECOND;
    if (budget->deadline < HUGE_VAL && START_SHARE * left < limit)
        limit = fmax(START_SHARE * left, 1);
    if (budget->work_limit < INT64_MAX)
        limit = fmin(limit, (double)budget->work_limit);
    sf_start start = sf_start_find(problem, (int64_t)limit, grown.choice);
    budget->work += start.work;
    grown.feasible = start.feasible;
    grown.cost = start.feasible ? start.cost : SF_FORBIDDEN;
    sf_budget_report(budget, grown.feasible, grown.cost, problem->base);
    return grown;
}

/* Search until a proof may be in reach, and at it; if it is not, search on. */
static void search_and_close(const sf_problem *problem, sf_budget *budget, double share,
                             sf_arena *arena, sf_answer *out)
{
    hints found = {SF_ARRAY(arena, problem->first[problem->nnodes], int64_t),
                   SF_ARRAY(arena, problem->ntimes, double)};
    for (uint32_t s = 0; s < problem->first[problem->nnodes]; s++)
        found.strategy_bound[s] = problem->base;
    run_search(problem, budget, share, CLOSE_GAP, out, &found);
    if (out->feasible && !rest_is_done(out, budget))
        run_close(problem, budget, &found, arena, out);
    if (!rest_is_done(out, budget))
        run_search(problem, budget, share, 0, out, &found);
}

void sf_solve_rest(const sf_problem *problem, sf_budget *budget, sf_arena *arena, sf_answer *out)
{
    bool small = can_branch(problem, budget);
    sf_answer rough = run_greedy(problem, budget, arena);
    sf_answer grown = run_start(problem, budget, arena);
    if (grown.cost < rough.cost)
        rough = grown;
    out->bound = problem->base;
    out->cost = SF_FORBIDDEN;
    if (problem->ntimes == 0 && rough.feasible) {
        memcpy(out->choice, rough.choice, problem->nnodes * sizeof *out->choice);
        out->feasible = true;
        out->cost = rough.cost;
    }
    if (small && !rest_is_done(out, budget))
        run_branch(problem, budget, 0.25, arena, out);
    if (!rest_is_done(out, budget))
        search_and_close(problem, budget, small ? 0.5 : 1, arena, out);
    if (small && !rest_is_done(out, budget))
        run_branch(problem, budget, 1, arena, out);
    if (rough.cost < out->cost) {
        rough.bound = out->bound;
        *out = rough;
    }
}
