#include "api/shard_state.h"

#include <stdio.h>
#include <string.h>

#include "sheaf/pass.h"

/* The ZeRO of a recipe that leaves parameters whole, or NULL. */
static const char *find_whole(const char *recipe)
{
    const char *at = recipe ? strstr(recipe, "zero") : NULL;
    return at && strncmp(at, "zero3", 5) != 0 && strncmp(at, "zero1-", 6) != 0 ? at : NULL;
}

sf_status sf_split_state_recipe(const char *recipe, sf_state_split split, sf_diag *diag,
                                char out[SF_RECIPE_TEXT])
{
    bool is_full = split == SF_STATE_FULL;
    const char *whole = find_whole(recipe), *zero = is_full ? "zero3" : "zero1-between";
    bool has_all = recipe && !whole && (strstr(recipe, "zero") || strstr(recipe, "fsdp"));
    if (is_full && (whole || (has_all && strstr(recipe, "between"))))
        return sf_fail(diag, SF_EUSAGE, SF_NOWHERE,
                       "recipe %s splits some state, and it is to be split in full", recipe);
    if (whole)
        snprintf(out, SF_RECIPE_TEXT, "%.*s%s%s", (int)(whole - recipe), recipe,
                 whole[4] == '2' ? "zero3" : zero, whole + 5);
    else
        snprintf(out, SF_RECIPE_TEXT, "%s%s%s", recipe ? recipe : "", recipe && !has_all ? "+" : "",
                 has_all ? "" : zero);
    return SF_OK;
}

const char *sf_split_state_passes(sf_state_split split)
{
    return split == SF_STATE_FULL      ? SF_FULL_STATE_PASSES
           : split == SF_STATE_BETWEEN ? SF_BETWEEN_PASSES
                                       : NULL;
}
