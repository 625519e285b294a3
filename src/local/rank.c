#include "local/rank.h"

sf_status sf_rank_lower(const sf_graph *graph, const sf_plan *plan, int rank,
                        const sf_target *target, sf_diag *diag, sf_local **local, sf_program **out)
{
    sf_local *made;
    SF_TRY(sf_local_new(graph, plan, rank, diag, &made));
    sf_lower_options options = {.target = target, .mesh = &plan->mesh, .rank = rank};
    *out = sf_lower(made->graph, &options, NULL);
    if (local)
        *local = made;
    else
        sf_local_free(made);
    return SF_OK;
}

sf_status sf_rank_bytes(const sf_graph *graph, const sf_plan *plan, const sf_target *target,
                        sf_diag *diag, int64_t *out)
{
    sf_program *program;
    SF_TRY(sf_rank_lower(graph, plan, 0, target, diag, NULL, &program));
    *out = sf_program_bytes(program);
    sf_program_free(program);
    return SF_OK;
}
