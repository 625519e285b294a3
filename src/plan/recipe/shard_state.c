#include "plan/recipe/shard_state.h"

#include <stdio.h>
#include <string.h>

#include "plan/recipe/recipe.h"
#include "sheaf/pass.h"

sf_status sf_split_state_recipe(const char *recipe, sf_state_split split, sf_diag *diag,
                                char out[SF_RECIPE_TEXT])
{
    bool is_full = split == SF_STATE_FULL;
    const sf_recipe *own = sf_recipe_of_state(recipe);
    if (is_full && own && !(own->gradients && own->parameters))
        return sf_fail(diag, SF_EUSAGE, SF_NOWHERE,
                       "recipe %s splits some state, and it is to be split in full", recipe);
    const char *zero = sf_recipe_of_parameters(is_full || (own && own->gradients))->name;
    if (!own) {
        snprintf(out, SF_RECIPE_TEXT, "%s%s%s", recipe ? recipe : "", recipe ? "+" : "", zero);
    } else if (own->parameters) {
        snprintf(out, SF_RECIPE_TEXT, "%s", recipe);
    } else {
        const char *at = strstr(recipe, own->name);
        snprintf(out, SF_RECIPE_TEXT, "%.*s%s%s", (int)(at - recipe), recipe, zero,
                 at + strlen(own->name));
    }
    return SF_OK;
}

const char *sf_split_state_passes(sf_state_split split)
{
    return split == SF_STATE_FULL      ? SF_FULL_STATE_PASSES
           : split == SF_STATE_BETWEEN ? SF_BETWEEN_PASSES
                                       : NULL;
}
