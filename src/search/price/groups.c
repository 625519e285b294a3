#include "search/price/groups.h"

#include "local/rank.h"
#include "pass/planned.h"

int64_t sf_scratch_bytes(const sf_program *program, const sf_costs *costs)
{
    int threads = sf_costs_threads(costs);
    return threads > 0 || sf_costs_on_gpu(costs) ? program->target->scratch(program, threads) : 0;
}

/* Whether the group, which waits for no other here, takes too much as it is. */
static bool is_beyond(const sf_rank_run *run, const sf_group_limits *limits, sf_group_runs *runs)
{
    int64_t most = limits->memory > 0 ? limits->memory : sf_costs_memory(run->costs);
    int64_t bytes = sf_program_bytes(run->program) + sf_scratch_bytes(run->program, run->costs);
    if (!sf_rank_fits(bytes, most))
        return true;
    sf_arena arena = {0};
    sf_simulation alone;
    sf_simulate(run->program, run->costs, &arena, &alone);
    sf_arena_free(&arena);
    runs->seconds = alone.seconds;
    return alone.seconds >= limits->seconds;
}

typedef struct lowering_groups {
    const sf_graph *graph;
    const sf_plan *plan;
    const sf_target *target;
    const sf_costs *costs;
    const sf_group_limits *limits; /* or NULL */
    sf_diag *diag;
} lowering_groups;

static sf_status lower_group(const lowering_groups *l, int group, sf_group_runs *out)
{
    const sf_plan *plan = l->plan;
    sf_rank_run *run = &out->at[group];
    run->rank = sf_plan_group_rank(plan, group);
    run->costs = l->costs && plan->pipeline
                     ? sf_costs_at(l->costs, plan->pipeline->axis, group, &out->arena)
                     : l->costs;
    SF_TRY(sf_local_new(l->graph, plan, run->rank, l->diag, &run->local));
    sf_lower_options options = {
        .target = l->target, .mesh = &run->local->plan->mesh, .rank = run->rank};
    run->program = sf_lower(run->local->graph, &options, NULL);
    if (!l->costs)
        return SF_OK;
    return sf_plan_rewrite(plan, run->costs, false, run->program, &out->arena, l->diag,
                           &run->outcomes, &run->noutcomes);
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
    int count = sf_plan_groups(l->plan);
    *out = (sf_group_runs){0};
    out->at = SF_ARRAY(&out->arena, count, sf_rank_run);
    while (out->count < count && !out->is_beyond) {
        int group = out->count++;
        SF_TRY(lower_group(l, group, out));
        out->is_beyond = l->limits && is_beyond(&out->at[group], l->limits, out);
    }
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
    for (int g = 0; g < runs->count; g++) {
        sf_program_free(runs->at[g].program);
        sf_local_free(runs->at[g].local);
    }
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
