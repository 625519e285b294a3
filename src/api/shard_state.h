/* How state is split, as options say it: "auto", or NULL, "full" or "between". */
#ifndef SF_API_SHARD_STATE_H
#define SF_API_SHARD_STATE_H

#include "base/diag.h"

enum { SF_RECIPE_TEXT = 64 };

typedef enum sf_state_split {
    SF_STATE_AS_RECIPE,
    SF_STATE_FULL,    /* all of it, gathered when it is needed */
    SF_STATE_BETWEEN, /* between steps: gathered once in each, and whole until the last who reads it */
} sf_state_split;

/* SF_EUSAGE for any other word. */
sf_status sf_read_shard_state(const char *text, sf_diag *diag, sf_state_split *out);

/* The recipe with state split so: in full, "2d" becomes "2d+zero3" and NULL "zero3"; between steps, NULL becomes
 * "zero1-between", as does zero1; and zero2, which has gradients in pieces as well, zero3. SF_EUSAGE where state is to be split in
 * full and the recipe says otherwise. */
sf_status sf_split_state_recipe(const char *recipe, sf_state_split split, sf_diag *diag,
                                char out[SF_RECIPE_TEXT]);

/* The passes that such state is gathered by, unless others are said. */
const char *sf_split_state_passes(sf_state_split split);

#endif
