/* A bound for one problem, from scratch: message passing and multipliers alternate. */
#include <math.h>
#include <string.h>

#include "solve/dual/bundle.h"

enum { SWEEPS_AT_ONCE = 10 };

/* Passes over the problem at the present multipliers; the assignment that is read off is improved. */
static void sweep_dual(sf_dual *dual, int sweeps)
{
    for (int s = 0; s < sweeps; s++) {
        sf_dual_pass(dual, true);
        sf_dual_pass(dual, false);
    }
}

static void watch_start(sf_bundle *bundle, const double *multiplier)
{
    const sf_problem *problem = bundle->dual->tables->problem;
    for (uint32_t t = 0; multiplier && t < problem->ntimes; t++) {
        if (!(multiplier[t] > 0))
            continue;
        uint32_t before = bundle->dual->watch.count;
        sf_bundle_watch(bundle, t);
        if (bundle->dual->watch.count > before)
            bundle->center[before] = multiplier[t];
    }
    sf_bundle_return(bundle);
}

static void give_multipliers(const sf_bundle *bundle, double *multiplier)
{
    const sf_watch *watch = &bundle->dual->watch;
    memset(multiplier, 0, watch->problem->ntimes * sizeof *multiplier);
    for (uint32_t slot = 0; slot < watch->count; slot++)
        multiplier[watch->point[slot]] = bundle->center[slot];
}

int64_t sf_dual_bound(const sf_problem *problem, double *multiplier, int sweeps, int64_t upper,
                      int64_t *strategy_bound, int64_t *work, sf_arena *scratch)
{
    sf_mark mark = sf_arena_mark(scratch);
    sf_tables tables;
    sf_dual dual;
    sf_bundle bundle;
    sf_tables_init(&tables, problem, scratch);
    sf_dual_init(&dual, &tables, scratch);
    sf_bundle_init(&bundle, &dual, scratch);
    watch_start(&bundle, multiplier);
    uint32_t *choice = SF_ARRAY(scratch, problem->nnodes, uint32_t);
    for (int done = 0; done < sweeps; done += SWEEPS_AT_ONCE) {
        sweep_dual(&dual, SWEEPS_AT_ONCE);
        sf_bundle_judge(&bundle, sf_dual_estimate(&dual), true);
        memcpy(choice, dual.choice, problem->nnodes * sizeof *choice);
        sf_tables_descend(&tables, dual.unary, dual.scratch, choice);
        sf_verdict verdict = sf_problem_judge(problem, choice, scratch);
        if (verdict.over > 0 && problem->ntimes > 0)
            sf_bundle_watch(&bundle, verdict.worst);
        sf_bundle_add(&bundle, choice);
        if (bundle.bound >= (double)upper)
            break;
        sf_bundle_next(&bundle);
    }
    sf_bundle_return(&bundle);
    sweep_dual(&dual, SWEEPS_AT_ONCE);
    int64_t bound = sf_dual_prove(&dual, strategy_bound, scratch);
    if (work)
        *work = dual.work;
    if (multiplier)
        give_multipliers(&bundle, multiplier);
    sf_arena_reset(scratch, mark);
    return bound;
}
