/* Within api/: simulated step time and memory of a plan on a cluster, by its programs. */
#ifndef SF_API_CLUSTER_PRICE_H
#define SF_API_CLUSTER_PRICE_H

#include "search/price/price.h"

/* SF_EUSAGE where the cluster has another number of devices than the plan has ranks. */
sf_status sf_cluster_price(const sf_graph *graph, const sf_plan *plan, const sf_cluster *cluster,
                           sf_diag *diag, sf_price *out);

#endif
