/* Factors in chunks inside of each rank (co-shard), as a person says them:
 *
 *     4                  what megatron splits over ranks otherwise, heads and features, in four chunks
 *     sequence:2         the same of another recipe of one axis
 *     4@layer_0,2        four chunks in that scope, two elsewhere: of several that match, the first holds
 */
#ifndef SF_PLAN_CO_SHARD_H
#define SF_PLAN_CO_SHARD_H

#include "plan/plan.h"

/* Has the plan do so. `by` is a recipe, NULL: megatron, or a choice of factors (plan/op_selector.h), all in so many chunks, 1: none; or
 * a list as above, with numbers of its own. */
void sf_plan_co_shard(sf_plan *plan, const char *by, int chunks);

/* By node of the top block: whether it is of that co-shard, by its scope. SF_EUSAGE where its pattern matches no op of the
 * forward pass. Lives in the arena. */
sf_status sf_co_shard_nodes(const sf_graph *graph, const sf_plan *plan, int index, sf_arena *arena,
                            sf_diag *diag, bool **out);

/* A key "co_shard" with all of them, where there are any; and as it is read. */
void sf_co_shards_put(const sf_plan *plan, sf_json_writer *json);
bool sf_co_shards_get(const sf_json *value, sf_plan *plan);

#endif
