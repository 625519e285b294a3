/* The predicted costs of a plan, in the plan's file. */
#ifndef SF_PLAN_JSON_PREDICTION_JSON_H
#define SF_PLAN_JSON_PREDICTION_JSON_H

#include "base/json.h"
#include "cluster/cluster.h"
#include "plan/plan.h"

/* The value of the key "predicted"; `file` as of sf_plan_write. */
void sf_prediction_put(const sf_prediction *predicted, const char *file, sf_json_writer *json);

/* Adds the key "unused_devices", with [NODES, DEVICES, WHY] of each that is left out. */
void sf_unused_devices_put(const sf_prediction *predicted, sf_json_writer *json);

/* Lives in the arena. SF_EINPUT at the place of a missing or malformed number; `text` and `file`
 * are the source of `value`. */
sf_status sf_prediction_get(const sf_json *value, sf_str text, const char *file, sf_arena *arena,
                            sf_diag *diag, sf_prediction **out);

/* Whether the plan was made for this cluster, or for one of which this is a part. */
bool sf_plan_is_for(const sf_plan *plan, const sf_cluster *cluster);

/* The nodes of the cluster that ranks of the plan are on: all of it, unless the plan was made for it and says otherwise. In
 * the arena. SF_EUSAGE where that has not as many devices as the plan has ranks. */
sf_status sf_plan_cluster(const sf_plan *plan, const sf_cluster *cluster, sf_arena *arena,
                          sf_diag *diag, const sf_cluster **out);

#endif
