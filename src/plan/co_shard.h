/* Factors in chunks inside of each rank (co-shard): of several entries whose scope matches a node, the first counts. Their text
 * form is that of plan/spec.h. */
#ifndef SF_PLAN_CO_SHARD_H
#define SF_PLAN_CO_SHARD_H

#include "plan/plan.h"

/* Sets these entries in place of those of the plan; they are copied. An entry of one chunk leaves its scope whole; without an
 * entry of more there are none. */
void sf_plan_co_shard(sf_plan *plan, size_t count, const sf_co_shard *said);

/* By node of the top block: whether it is of that co-shard, by its scope. SF_EUSAGE where its pattern matches no op of the
 * forward pass. Lives in the arena. */
sf_status sf_co_shard_nodes(const sf_graph *graph, const sf_plan *plan, int index, sf_arena *arena,
                            sf_diag *diag, bool **out);

/* A key "co_shard" with all of them, where there are any; and as it is read. */
void sf_co_shards_put(const sf_plan *plan, sf_json_writer *json);
bool sf_co_shards_get(const sf_json *value, sf_plan *plan);

#endif
