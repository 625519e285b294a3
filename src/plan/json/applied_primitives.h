/* The primitives of a schedule that made a plan, in order. They are kept for people. */
#ifndef SF_PLAN_JSON_APPLIED_PRIMITIVES_H
#define SF_PLAN_JSON_APPLIED_PRIMITIVES_H

#include "plan/plan.h"

void sf_plan_add_said(sf_plan *plan, const char *text);

/* The value of "schedule" in a plan file: a list of strings, left out where there are none. */
void sf_said_put(const sf_plan *plan, sf_json_writer *json);
bool sf_said_get(const sf_json *value, sf_plan *plan);

#endif
