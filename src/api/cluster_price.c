#include "api/cluster_price.h"

#include "plan/json/prediction_json.h"
#include "run/runner.h"

sf_status sf_cluster_price(const sf_graph *graph, const sf_plan *plan, const sf_cluster *cluster,
                           sf_diag *diag, sf_price *out)
{
    sf_arena arena = {0};
    sf_costs *costs;
    sf_status status = sf_plan_cluster(plan, cluster, &arena, diag, &cluster);
    if (status == SF_OK)
        status = sf_mesh_costs(cluster, &plan->mesh, &arena, diag, &costs);
    if (status == SF_OK)
        status =
            sf_price_plan(graph, plan, sf_cluster_target(cluster), costs, NULL, NULL, diag, out);
    sf_arena_free(&arena);
    return status;
}
