#include "solve/dual/ramp.h"

#include <math.h>
#include <string.h>

#include "solve/problem/budget.h"

typedef struct ramp {
    sf_bundle *bundle;
    double first;     /* step */
    double *step;     /* [watch.capacity] */
    double *sum;      /* [watch.capacity]: of multipliers, for the average */
    int *sign;        /* [watch.capacity]: of the last correction */
    uint32_t *choice; /* [nnodes] */
    int64_t *profile; /* [ntimes] */
} ramp;

/* Watches the point that is furthest over its limit. */
static void watch_worst(ramp *r)
{
    sf_dual *dual = r->bundle->dual;
    const sf_problem *problem = dual->tables->problem;
    uint32_t worst = problem->ntimes;
    int64_t most = 0;
    memcpy(r->choice, dual->choice, problem->nnodes * sizeof *r->choice);
    dual->work += sf_tables_descend(dual->tables, dual->unary, dual->scratch, r->choice);
    sf_problem_usage(problem, r->choice, r->profile);
    for (uint32_t t = 0; t < problem->ntimes; t++)
        if (r->profile[t] - problem->limit[t] > most) {
            most = r->profile[t] - problem->limit[t];
            worst = t;
        }
    uint32_t before = dual->watch.count;
    if (worst < problem->ntimes)
        sf_bundle_watch(r->bundle, worst);
    if (dual->watch.count > before)
        r->step[before] = r->first;
    dual->work += problem->nuses + problem->ntimes;
}

static void correct_ramp(ramp *r)
{
    static const double longer = 1.3, shorter = 0.5;
    sf_dual *dual = r->bundle->dual;
    for (uint32_t slot = 0; slot < dual->watch.count; slot++) {
        int64_t over = r->profile[dual->watch.point[slot]] - sf_watch_limit(&dual->watch, slot);
        int sign = over > 0 ? 1 : -1;
        if (r->sign[slot] != 0)
            r->step[slot] *= sign == r->sign[slot] ? longer : shorter;
        r->sign[slot] = sign;
        dual->multiplier[slot] = fmax(0, dual->multiplier[slot] + sign * r->step[slot]);
        if (dual->multiplier[slot] == 0)
            r->step[slot] = fmax(r->step[slot] * shorter, r->first * 1e-3);
    }
    sf_dual_price(dual);
}

void sf_dual_ramp(sf_bundle *bundle, int sweeps, double step, double deadline, sf_arena *scratch)
{
    sf_dual *dual = bundle->dual;
    uint32_t capacity = dual->watch.capacity;
    sf_mark mark = sf_arena_mark(scratch);
    ramp r = {.bundle = bundle,
              .first = step,
              .step = SF_ARRAY(scratch, capacity, double),
              .sum = SF_ARRAY(scratch, capacity, double),
              .sign = SF_ARRAY(scratch, capacity, int),
              .choice = SF_ARRAY(scratch, dual->tables->problem->nnodes, uint32_t),
              .profile = SF_ARRAY(scratch, dual->tables->problem->ntimes, int64_t)};
    int samples = 0;
    for (int s = 0; s < sweeps && (deadline == HUGE_VAL || sf_now() < deadline); s++) {
        sf_dual_pass(dual, true);
        sf_dual_pass(dual, false);
        watch_worst(&r);
        correct_ramp(&r);
        if (s < sweeps * 2 / 3)
            continue;
        samples++;
        for (uint32_t slot = 0; slot < dual->watch.count; slot++)
            r.sum[slot] += dual->multiplier[slot];
    }
    for (uint32_t slot = 0; samples > 0 && slot < dual->watch.count; slot++)
        dual->multiplier[slot] = r.sum[slot] / samples;
    sf_dual_price(dual);
    sf_arena_reset(scratch, mark);
}
