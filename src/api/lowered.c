#include "api/lowered.h"

#include "run/runner.h"

int64_t sf_lowered_bytes(const sf_local *local)
{
    sf_lower_options options = {.target = sf_engine_target(NULL), .mesh = &local->plan->mesh};
    sf_program *program = sf_lower(local->graph, &options, NULL);
    int64_t bytes = sf_program_bytes(program);
    sf_program_free(program);
    return bytes;
}

sf_status sf_plan_bytes(const sf_graph *graph, const sf_plan *plan, sf_diag *diag, int64_t *out)
{
    sf_local *local;
    SF_TRY(sf_local_new(graph, plan, 0, diag, &local));
    *out = sf_lowered_bytes(local);
    sf_local_free(local);
    return SF_OK;
}
