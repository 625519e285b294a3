#include "search/price/groups.h"

#include "pass/planned.h"

static sf_status run_groups(const sf_graph *graph, const sf_plan *plan, const sf_target *target,
                            const sf_costs *costs, sf_diag *diag, sf_group_runs *out)
{
    sf_program **programs = SF_ARRAY(&out->arena, out->count, sf_program *);
    const sf_costs **own = SF_ARRAY(&out->arena, out->count, const sf_costs *);
    sf_simulation *sims = SF_ARRAY(&out->arena, out->count, sf_simulation);
    for (int g = 0; g < out->count; g++) {
        sf_rank_run *run = &out->at[g];
        run->rank = sf_plan_group_rank(plan, g);
        own[g] = run->costs = costs && plan->pipeline
                                  ? sf_costs_at(costs, plan->pipeline->axis, g, &out->arena)
                                  : costs;
        SF_TRY(sf_local_new(graph, plan, run->rank, diag, &run->local));
        sf_lower_options options = {
            .target = target, .mesh = &run->local->plan->mesh, .rank = run->rank};
        programs[g] = run->program = sf_lower(run->local->graph, &options, NULL);
        if (costs)
            SF_TRY(sf_plan_rewrite(plan, run->costs, false, run->program, &out->arena, diag,
                                   &run->outcomes, &run->noutcomes));
    }
    SF_TRY(sf_simulate_groups(out->count, programs, costs ? own : NULL, &out->arena, diag, sims));
    for (int g = 0; g < out->count; g++) {
        out->at[g].sim = sims[g];
        if (sims[g].compute > sims[out->busiest].compute)
            out->busiest = g;
        if (sims[g].seconds > out->seconds)
            out->seconds = sims[g].seconds;
    }
    return SF_OK;
}

sf_status sf_group_runs_new(const sf_graph *graph, const sf_plan *plan, const sf_target *target,
                            const sf_costs *costs, sf_diag *diag, sf_group_runs *out)
{
    *out = (sf_group_runs){.count = sf_plan_groups(plan)};
    out->at = SF_ARRAY(&out->arena, out->count, sf_rank_run);
    return run_groups(graph, plan, target, costs, diag, out);
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

int sf_group_of_rank(const sf_plan *plan, int rank)
{
    return plan->pipeline ? sf_mesh_coordinate(&plan->mesh, rank, plan->pipeline->axis) : 0;
}
