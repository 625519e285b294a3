#include "plan/json/applied_primitives.h"

#include <string.h>

void sf_plan_add_said(sf_plan *plan, const char *text)
{
    SF_PUSH(&plan->arena, plan->said, plan->nsaid, plan->said_capacity,
            sf_arena_string(&plan->arena, text, strlen(text)));
}

void sf_said_put(const sf_plan *plan, sf_json_writer *json)
{
    if (plan->nsaid == 0)
        return;
    sf_json_key(json, "schedule");
    sf_json_begin_array(json);
    for (size_t i = 0; i < plan->nsaid; i++)
        sf_json_put_string(json, plan->said[i]);
    sf_json_end_array(json);
}

bool sf_said_get(const sf_json *value, sf_plan *plan)
{
    sf_str text;
    if (!value)
        return true;
    if (sf_json_kind_of(value) != SF_JSON_ARRAY)
        return false;
    for (size_t i = 0; i < sf_json_count(value); i++) {
        if (!sf_json_string(sf_json_item(value, i), &text) || strlen(text.at) != text.length)
            return false;
        sf_plan_add_said(plan, text.at);
    }
    return true;
}
