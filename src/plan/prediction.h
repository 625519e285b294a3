/* What a search expects of a plan, in the plan's file. */
#ifndef SF_PLAN_PREDICTION_H
#define SF_PLAN_PREDICTION_H

#include "base/json.h"
#include "plan/plan.h"

/* The value of the key "predicted"; `file` as of sf_plan_write. */
void sf_prediction_put(const sf_prediction *predicted, const char *file, sf_json_writer *json);

/* Lives in the arena. SF_EINPUT at the place of what is missing or no number; `text` and `file` are what
 * `value` was parsed from. */
sf_status sf_prediction_get(const sf_json *value, sf_str text, const char *file, sf_arena *arena,
                            sf_diag *diag, sf_prediction **out);

#endif
