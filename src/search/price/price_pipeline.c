#include "search/price/price_pipeline.h"

#include <math.h>

#include "base/guard.h"
#include "local/rank.h"
#include "pass/plan_passes.h"

typedef struct lowering_groups {
    const sf_graph *graph;
    const sf_plan *plan;
    const sf_target *target;
    const sf_costs *costs;
    const sf_group_limits *limits; /* or NULL */
    sf_diag *diag;
} lowering_groups;

/* A group, on its way to be lowered. */
typedef struct lowered_group {
    const lowering_groups *l;
    sf_diag *diag; /* or NULL */
    int group;
    sf_rank_run *run;
    bool is_beyond;
    double seconds; /* of it alone, where there are limits */
    sf_status status;
} lowered_group;

/* Whether the group, which waits for no other here, takes too much as it is. */
static bool is_beyond(const sf_rank_run *run, const sf_group_limits *limits, double *seconds)
{
    int64_t most = limits->memory > 0 ? limits->memory : sf_costs_memory(run->costs);
    int64_t bytes = sf_program_bytes(run->program) + sf_scratch_bytes(run->program, run->costs);
    sf_arena arena = {0};
    sf_simulation alone;
    if (limits->seconds == HUGE_VAL && sf_rank_fits(bytes, most))
        return false;
    sf_simulate(run->program, run->costs, &arena, &alone);
    sf_arena_free(&arena);
    *seconds = alone.seconds;
    return !sf_rank_fits(bytes, most) || alone.seconds >= limits->seconds;
}

static sf_status lower_group(lowered_group *at)
{
    const lowering_groups *l = at->l;
    const sf_plan *plan = l->plan;
    sf_rank_run *run = at->run;
    run->rank = sf_plan_group_rank(plan, at->group);
    run->costs = l->costs && plan->pipeline
                     ? sf_costs_at(l->costs, plan->pipeline->axis, at->group, &run->arena)
                     : l->costs;
    bool unplaced = l->limits && l->limits->unplaced;
    SF_TRY(sf_local_new(l->graph, plan, run->rank, at->diag, &run->local));
    sf_lower_options options = {.target = l->target,
                                .mesh = &run->local->plan->mesh,
                                .rank = run->rank,
                                .unplaced = unplaced};
    run->program = sf_lower(run->local->graph, &options, NULL);
    SF_TRY(sf_plan_rewrite(plan, run->costs, run->program, &run->arena, at->diag,
                           unplaced ? NULL : &run->outcomes, &run->noutcomes));
    at->is_beyond = l->limits && is_beyond(run, l->limits, &at->seconds);
    return SF_OK;
}

static void free_run(sf_rank_run *run)
{
    sf_program_free(run->program);
    sf_local_free(run->local);
    sf_arena_free(&run->arena);
    *run = (sf_rank_run){0};
}

static void lower_one(void *context, int64_t i, int part)
{
    lowered_group *at = (lowered_group *)context + i;
    (void)part;
    at->status = lower_group(at);
}

/* Why the first that cannot be lowered cannot is said when it is lowered once more. */
static sf_status lower_on_threads(const lowering_groups *l, int first, int count,
                                  sf_group_runs *out)
{
    sf_arena arena = {0};
    lowered_group *all = SF_ARRAY(&arena, count, lowered_group);
    sf_status status = SF_OK;
    for (int i = 0; i < count; i++)
        all[i] = (lowered_group){.l = l, .group = first + i, .run = &out->at[first + i]};
    sf_guarded_each(l->limits ? l->limits->threads : NULL, count, lower_one, all);
    for (int i = 0; i < count; i++) {
        bool counts = status == SF_OK && !out->is_beyond;
        if (counts && all[i].status != SF_OK) {
            free_run(all[i].run);
            all[i].diag = l->diag;
            status = lower_group(&all[i]);
        }
        if (counts) {
            out->count++;
            out->is_beyond = all[i].is_beyond;
            out->seconds = all[i].seconds;
        } else {
            free_run(all[i].run);
        }
    }
    sf_arena_free(&arena);
    return status;
}

static sf_status run_together(const lowering_groups *l, sf_group_runs *out)
{
    sf_program **programs = SF_ARRAY(&out->arena, out->count, sf_program *);
    const sf_costs **own = SF_ARRAY(&out->arena, out->count, const sf_costs *);
    sf_simulation *sims = SF_ARRAY(&out->arena, out->count, sf_simulation);
    for (int g = 0; g < out->count; g++) {
        programs[g] = out->at[g].program;
        own[g] = out->at[g].costs;
    }
    SF_TRY(sf_simulate_groups(out->count, programs, l->costs ? own : NULL, &out->arena, l->diag,
                              sims));
    out->seconds = 0;
    for (int g = 0; g < out->count; g++) {
        out->at[g].sim = sims[g];
        if (sims[g].compute > sims[out->busiest].compute)
            out->busiest = g;
        if (sims[g].seconds > out->seconds)
            out->seconds = sims[g].seconds;
    }
    return SF_OK;
}

static sf_status run_groups(const lowering_groups *l, sf_group_runs *out)
{
    int count = sf_plan_groups(l->plan),
        threads = sf_threads_count(l->limits ? l->limits->threads : NULL);
    int first = threads > count ? count : 1; /* others may turn out not to be wanted */
    *out = (sf_group_runs){0};
    out->at = SF_ARRAY(&out->arena, count, sf_rank_run);
    SF_TRY(lower_on_threads(l, 0, first, out));
    if (!out->is_beyond)
        SF_TRY(lower_on_threads(l, first, count - first, out));
    return out->is_beyond ? SF_OK : run_together(l, out);
}

sf_status sf_group_runs_new(const sf_graph *graph, const sf_plan *plan, const sf_target *target,
                            const sf_costs *costs, sf_diag *diag, sf_group_runs *out)
{
    return run_groups(&(lowering_groups){graph, plan, target, costs, NULL, diag}, out);
}

sf_status sf_group_runs_within(const sf_graph *graph, const sf_plan *plan, const sf_target *target,
                               const sf_costs *costs, const sf_group_limits *limits, sf_diag *diag,
                               sf_group_runs *out)
{
    return run_groups(&(lowering_groups){graph, plan, target, costs, limits, diag}, out);
}

void sf_group_runs_free(sf_group_runs *runs)
{
    for (int g = 0; g < runs->count; g++)
        free_run(&runs->at[g]);
    sf_arena_free(&runs->arena);
    *runs = (sf_group_runs){0};
}

sf_status sf_group_runs_check(const sf_group_runs *runs, sf_threads *threads, sf_diag *diag)
{
    sf_arena arena = {0};
    sf_local **locals = SF_ARRAY(&arena, runs->count, sf_local *);
    for (int g = 0; g < runs->count; g++)
        locals[g] = runs->at[g].local;
    sf_status status = sf_check_groups(runs->count, locals, threads, diag);
    sf_arena_free(&arena);
    return status;
}

int sf_group_of_rank(const sf_plan *plan, int rank)
{
    return plan->pipeline ? sf_mesh_coordinate(&plan->mesh, rank, plan->pipeline->axis) : 0;
}
