#include "search/specs/queue_answer.h"

#include "sim/step_bound.h"

static void predict(const sf_queue_options *options, const sf_full_price *full, double bound,
                    sf_plan *plan)
{
    const sf_price *price = &full->price;
    plan->predicted = SF_NEW(&plan->arena, sf_prediction);
    *plan->predicted = (sf_prediction){.step = "",
                                       .cluster = "",
                                       .nodes = "",
                                       .cluster_hash = sf_cluster_hash(options->cluster),
                                       .seconds = price->seconds,
                                       .compute = price->compute,
                                       .exposed = price->exposed,
                                       .hidden = price->hidden,
                                       .traffic = price->traffic,
                                       .bound = bound,
                                       .memory = price->memory,
                                       .limit = options->memory > 0 ? options->memory : price->room,
                                       .simulated = full};
}

sf_status sf_answer_by_queue(const sf_graph *graph, const sf_queue_options *options, sf_diag *diag,
                             sf_plan **out)
{
    sf_arena arena = {0};
    sf_queue_found found;
    sf_costs *costs;
    sf_group_runs runs = {0};
    *out = NULL;
    SF_TRY(sf_search_queue(graph, options, &found));
    if (!found.plan)
        return SF_OK;
    sf_status status = sf_mesh_costs(options->cluster, &found.plan->mesh, &arena, diag, &costs);
    if (status == SF_OK)
        status = sf_group_runs_new(graph, found.plan, options->target, costs, diag, &runs);
    if (status == SF_OK)
        status = sf_group_runs_check(&runs, options->threads, diag);
    if (status == SF_OK)
        predict(options, sf_tell_groups(&runs, costs, &found.plan->arena),
                sf_step_bound_of(graph, options->target, costs).seconds, found.plan);
    sf_group_runs_free(&runs);
    sf_arena_free(&arena);
    if (status != SF_OK)
        sf_plan_free(found.plan);
    *out = status == SF_OK ? found.plan : NULL;
    return status;
}
