/* How state is split, as options say it: "auto", or NULL, or "full". */
#ifndef SF_API_SHARD_STATE_H
#define SF_API_SHARD_STATE_H

#include "base/diag.h"

enum { SF_RECIPE_TEXT = 64 };

/* SF_EUSAGE for any other word. */
sf_status sf_read_shard_state(const char *text, sf_diag *diag, bool *is_full);

/* The recipe with all state in pieces: "2d" becomes "2d+zero3", NULL "zero3"; one that has a ZeRO stays. SF_EUSAGE where
 * that is another than the third. */
sf_status sf_full_state_recipe(const char *recipe, sf_diag *diag, char out[SF_RECIPE_TEXT]);

#endif
