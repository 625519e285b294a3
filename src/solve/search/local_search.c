#include "solve/search/local_search.h"

#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "solve/dual/ramp.h"
#include "solve/search/greedy.h"
#include "solve/search/trial.h"

enum {
    STREAMS = 3,
    BOUND_UNITS = 3,      /* the work on the bound, in units of that of a stream */
    SWEEPS_A_UNIT = 12,   /* at most: visits of each cell, forth and back */
    LEAST_UNIT = 1 << 18, /* cells: less is not worth a barrier */
    FIRST_SWEEPS = 36,    /* at most, before there are multipliers */
    RAMP_SWEEPS = 150,    /* at most */
    FIRST_EPOCH = 4,      /* rounds */
};

typedef struct search {
    const sf_problem *problem;
    sf_budget *budget;
    sf_solve_found *found;
    uint32_t *choice;
    sf_arena arena;
    sf_tables tables;
    sf_trial trial;
    sf_stream streams[STREAMS];
    double sweep_seconds; /* of one sweep, measured; only under a deadline */
    int64_t unit;         /* cells of work */
    int64_t rounds;
    double started; /* of the first round, on the clock and in work */
    int64_t started_work;
    int64_t epoch, left;          /* rounds of the present epoch, and of the remaining ones */
    double hot, cold;             /* temperatures of the epoch, */
    double round_hot, round_cold; /* and of the round */
} search;

/* The first stream stays with the best answer, colder than the others; the second is hotter. */
static void run_stream(const search *s, sf_stream *stream)
{
    double hot = s->round_hot, cold = s->round_cold;
    if (stream == &s->streams[0] && s->found->feasible) {
        hot = s->hot / 30;
        cold = s->cold / 30;
    } else if (stream == &s->streams[1]) {
        hot *= 6;
        cold *= 6;
    }
    sf_stream_run(stream, s->unit, s->budget->deadline, hot, cold);
}

/* Units are divided evenly, and the first of the bound's units does the work of all of them: so two
 * threads share a round in halves. */
static void run_units(void *context, int part, int64_t first, int64_t end)
{
    search *s = context;
    (void)part;
    for (int64_t unit = first; unit < end; unit++) {
        if (unit == 0)
            sf_trial_run(&s->trial, BOUND_UNITS * s->unit, s->budget->deadline);
        else if (unit >= BOUND_UNITS)
            run_stream(s, &s->streams[unit - BOUND_UNITS]);
    }
}

static int64_t work_done(const search *s)
{
    int64_t work = s->trial.dual.work;
    for (int k = 0; k < STREAMS; k++)
        work += s->streams[k].work;
    return work;
}

/* Rounds that the remaining budget allows, by the work of earlier ones. */
static double rounds_to_come(const search *s)
{
    const sf_budget *budget = s->budget;
    double by_work = HUGE_VAL, by_time = HUGE_VAL, done = (double)s->rounds;
    if (s->rounds == 0)
        return HUGE_VAL;
    if (budget->work_limit < INT64_MAX)
        by_work = (double)(budget->work_limit - budget->work) * done /
                  (double)(budget->work - s->started_work);
    if (budget->deadline < HUGE_VAL) {
        double now = sf_now();
        by_time = (budget->deadline - now) * done / (now - s->started);
    }
    return fmin(by_work, by_time);
}

/* The current gap to the lower bound. */
static double gap_now(const search *s)
{
    double bound = fmax(s->trial.bundle.bound, (double)s->found->bound);
    if (s->found->feasible)
        return fmax((double)s->found->cost - bound, 1);
    return fmax(s->trial.read_value - bound, 1e-3 * fabs(s->trial.read_value));
}

/* An epoch is one annealing. They become longer, and the last one takes all that is left. The temperature
 * of a move is some nodes' part of the gap. */
static void start_epoch(search *s)
{
    double rounds = rounds_to_come(s);
    s->epoch = s->epoch == 0 ? FIRST_EPOCH : s->epoch + s->epoch / 2;
    if ((double)s->epoch > 0.6 * rounds)
        s->epoch = rounds < 1 ? 1 : (int64_t)rounds;
    s->left = s->epoch;
    s->hot = fmin(s->hot, 10 * gap_now(s) / (double)s->problem->nnodes);
    s->cold = s->hot / 300;
    const sf_trial *t = &s->trial;
    bool keep = s->found->feasible && sf_dual_value(&t->dual, s->choice) <= t->read_value;
    for (int k = 0; k < STREAMS; k++)
        sf_stream_start(&s->streams[k], keep && k != 1 ? s->choice : t->read, &t->dual.watch,
                        t->bundle.center);
}

static void set_temperature(search *s)
{
    double from = (double)s->left / (double)s->epoch;
    double to = (double)(s->left - 1) / (double)s->epoch;
    s->round_hot = s->cold + (s->hot - s->cold) * from * from * from;
    s->round_cold = s->cold + (s->hot - s->cold) * to * to * to;
}

static void adopt_choice(search *s, const uint32_t *choice, int64_t cost)
{
    if (s->found->feasible && s->found->cost <= cost)
        return;
    s->found->feasible = true;
    s->found->cost = cost;
    memcpy(s->choice, choice, s->problem->nnodes * sizeof *choice);
}

/* An assignment that was read off, made to keep to the limit. */
static void adopt_read(search *s)
{
    sf_trial *t = &s->trial;
    if (!t->read_is_new)
        return;
    t->read_is_new = false;
    sf_verdict verdict = sf_problem_judge(s->problem, t->read, &s->arena);
    if (verdict.over > 0)
        sf_bundle_watch(&t->bundle, verdict.worst);
    sf_bundle_add(&t->bundle, t->read);
    if (!verdict.feasible && verdict.allowed) {
        memcpy(t->scratch, t->read, s->problem->nnodes * sizeof *t->read);
        sf_repair(s->problem, t->scratch, s->unit, &s->arena, &s->budget->work);
        verdict = sf_problem_judge(s->problem, t->scratch, &s->arena);
        if (verdict.feasible)
            adopt_choice(s, t->scratch, verdict.cost);
    } else if (verdict.feasible) {
        adopt_choice(s, t->read, verdict.cost);
    }
}

/* Combines the results of a round's units: answers for all, planes and points for the bundle. */
static void gather_streams(search *s)
{
    sf_bundle *bundle = &s->trial.bundle;
    for (int k = 0; k < STREAMS; k++)
        if (s->streams[k].found)
            adopt_choice(s, s->streams[k].best, s->streams[k].best_cost);
    if (s->found->feasible && sf_budget_spent(s->budget))
        return;
    adopt_read(s);
    for (int k = 0; k < STREAMS; k++) {
        const sf_watch *watch = &s->streams[k].watch;
        for (uint32_t slot = 0; slot < watch->count; slot++)
            sf_bundle_watch(bundle, watch->point[slot]);
        sf_bundle_add(bundle, s->streams[k].choice);
        if (s->found->feasible)
            sf_stream_know(&s->streams[k], s->choice, s->found->cost);
    }
}

/* The bound in integers, where the estimate says that it is a better one. */
static void prove_best(search *s)
{
    if (s->trial.estimate <= (double)s->found->bound)
        return;
    int64_t bound = sf_dual_prove(&s->trial.dual, NULL, &s->arena);
    s->found->bound = bound > s->found->bound ? bound : s->found->bound;
    s->budget->work += sf_tables_cells(&s->tables);
}

static bool search_is_done(const search *s)
{
    const sf_solve_found *found = s->found;
    if (found->bound >= SF_FORBIDDEN || sf_budget_spent(s->budget))
        return true;
    double gap = (double)found->cost - (double)found->bound;
    return found->feasible && (found->bound >= found->cost ||
                               gap <= s->budget->options->gap * fabs((double)found->cost));
}

static void run_search_round(search *s)
{
    int64_t before = work_done(s);
    if (s->left == 0)
        start_epoch(s);
    if (s->found->feasible && s->streams[0].cost > s->found->cost)
        sf_stream_start(&s->streams[0], s->choice, &s->trial.dual.watch, s->trial.bundle.center);
    set_temperature(s);
    sf_threads_run(s->budget->threads, BOUND_UNITS + STREAMS, 1, run_units, s);
    s->budget->work += work_done(s) - before;
    s->rounds++;
    s->left--;
    gather_streams(s);
    prove_best(s);
    sf_trial_next(&s->trial, s->streams, STREAMS, 0.01 * gap_now(s));
    sf_budget_report(s->budget, s->found->feasible, s->found->cost, s->found->bound);
}

/* A first price of a unit of usage: the ratio of an answer's cost to the limit. */
static double first_price(const search *s)
{
    double limit = 1, cost = fabs(s->trial.read_value);
    for (uint32_t t = 0; t < s->problem->ntimes; t++)
        limit = fmax(limit, (double)s->problem->limit[t]);
    return 3e-4 * (cost > 1 ? cost : 1) / limit;
}

/* Sweeps that a share of the remaining budget pays for: at least one, at most so many. */
static int affordable_streams(const search *s, double share, int most)
{
    const sf_budget *budget = s->budget;
    double sweeps = most;
    if (budget->work_limit < INT64_MAX)
        sweeps = fmin(sweeps, share * (double)(budget->work_limit - budget->work) /
                                  (2.0 * (double)sf_tables_cells(&s->tables)));
    if (budget->deadline < HUGE_VAL)
        sweeps = fmin(sweeps, share * (budget->deadline - sf_now()) / s->sweep_seconds);
    return sweeps > 1 ? (int)sweeps : 1;
}

/* Message passing without the limit, then the ramp, which finds multipliers for it. */
static void start_bound(search *s)
{
    sf_trial *t = &s->trial;
    int64_t sweep = 2 * sf_tables_cells(&s->tables);
    double deadline = s->budget->deadline, before = sf_now();
    sf_trial_run(t, 1, deadline);
    s->sweep_seconds = 2 * (sf_now() - before) + 1e-9;
    sf_trial_run(t, affordable_streams(s, 0.05, FIRST_SWEEPS) * sweep, deadline);
    sf_trial_judge(t);
    if (s->problem->ntimes > 0) {
        int sweeps = affordable_streams(s, 0.2, RAMP_SWEEPS);
        sf_dual_ramp(&t->bundle, sweeps, first_price(s), deadline, &s->arena);
        t->read_value = HUGE_VAL;
        sf_trial_run(t, affordable_streams(s, 0.05, FIRST_SWEEPS) * sweep, deadline);
        sf_trial_judge(t);
    }
    s->budget->work += t->dual.work;
    sf_trial_restart(t);
    adopt_read(s);
    prove_best(s);
}

static void start_streams(search *s)
{
    for (int k = 0; k < STREAMS; k++) {
        uint64_t seed = s->budget->options->seed * 1000003u + (uint64_t)k;
        sf_stream_init(&s->streams[k], &s->tables, seed, &s->arena);
        s->streams[k].least_price = first_price(s);
        if (s->found->feasible)
            sf_stream_know(&s->streams[k], s->choice, s->found->cost);
    }
    s->unit = 2 * sf_tables_cells(&s->tables) * affordable_streams(s, 0.01, SWEEPS_A_UNIT);
    s->unit = s->unit < LEAST_UNIT ? LEAST_UNIT : s->unit;
    s->started = sf_now();
    s->started_work = s->budget->work;
}

/* The center's results, for a caller who goes on from here. */
static void tell_center(search *s)
{
    sf_dual *dual = &s->trial.dual;
    sf_bundle_return(&s->trial.bundle);
    memcpy(dual->messages, s->trial.messages, sf_dual_messages(dual) * sizeof *dual->messages);
    if (s->found->multiplier) {
        memset(s->found->multiplier, 0, s->problem->ntimes * sizeof *s->found->multiplier);
        for (uint32_t slot = 0; slot < dual->watch.count; slot++)
            s->found->multiplier[dual->watch.point[slot]] = dual->multiplier[slot];
    }
    if (s->found->strategy_bound) {
        int64_t bound = sf_dual_prove(dual, s->found->strategy_bound, &s->arena);
        s->found->bound = bound > s->found->bound ? bound : s->found->bound;
    }
}

void sf_search(const sf_problem *problem, sf_budget *budget, sf_solve_found *found,
               uint32_t *choice)
{
    search *s = sf_alloc(sizeof *s);
    *s = (search){
        .problem = problem, .budget = budget, .found = found, .choice = choice, .hot = HUGE_VAL};
    sf_tables_init(&s->tables, problem, &s->arena);
    sf_trial_init(&s->trial, &s->tables, &s->arena);
    s->unit = sf_tables_cells(&s->tables);
    start_bound(s);
    start_streams(s);
    while (!search_is_done(s))
        run_search_round(s);
    if (!found->feasible)
        memcpy(choice, s->trial.read, problem->nnodes * sizeof *choice);
    tell_center(s);
    sf_arena_free(&s->arena);
    sf_free(s);
}
