/* The recipe and the passes of a way to shard state. */
#ifndef SF_PLAN_RECIPE_SHARD_STATE_H
#define SF_PLAN_RECIPE_SHARD_STATE_H

#include "plan/spec.h"

enum { SF_RECIPE_TEXT = 64 };

/* The recipe with state split so: in full, "2d" becomes "2d+zero3" and NULL "zero3"; between steps,
 * NULL becomes "zero1-between", as does zero1; and zero2, which shards gradients as well, zero3.
 * SF_EUSAGE if state should be split in full and the recipe contradicts that. */
sf_status sf_split_state_recipe(const char *recipe, sf_state_split split, sf_diag *diag,
                                char out[SF_RECIPE_TEXT]);

/* The passes that such state is gathered by, unless others are said. */
const char *sf_split_state_passes(sf_state_split split);

#endif
