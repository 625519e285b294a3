#include "api/shard_state.h"

#include <stdio.h>
#include <string.h>

sf_status sf_read_shard_state(const char *text, sf_diag *diag, bool *is_full)
{
    *is_full = text && strcmp(text, "full") == 0;
    if (*is_full || !text || strcmp(text, "auto") == 0)
        return SF_OK;
    return sf_fail(diag, SF_EUSAGE, SF_NOWHERE, "state is split auto or full, not \"%s\"", text);
}

sf_status sf_full_state_recipe(const char *recipe, sf_diag *diag, char out[SF_RECIPE_TEXT])
{
    bool has_all = recipe && (strstr(recipe, "zero3") || strstr(recipe, "fsdp"));
    if (recipe && !has_all && strstr(recipe, "zero"))
        return sf_fail(diag, SF_EUSAGE, SF_NOWHERE,
                       "recipe %s splits some state, and it is to be split in full", recipe);
    snprintf(out, SF_RECIPE_TEXT, "%s%s%s", recipe ? recipe : "", recipe && !has_all ? "+" : "",
             has_all ? "" : "zero3");
    return SF_OK;
}
