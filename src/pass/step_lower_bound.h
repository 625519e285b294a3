/* A lower bound of a step's time, however early its gathers begin and however they are joined. */
#ifndef SF_PASS_STEP_LOWER_BOUND_H
#define SF_PASS_STEP_LOWER_BOUND_H

#include "pass/pass.h"

/* Seconds, by the profile: the program's time beyond that is the most that moving its gathers could
 * hide or save. */
double sf_least_seconds(const sf_passing *passing);

#endif
