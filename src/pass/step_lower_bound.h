/* What a step takes at least, however early its gathers begin and however they are joined. */
#ifndef SF_PASS_STEP_LOWER_BOUND_H
#define SF_PASS_STEP_LOWER_BOUND_H

#include "pass/pass.h"

/* Seconds, by the profile: what the program takes beyond that is what moving its gathers could hide or save, at most. */
double sf_least_seconds(const sf_passing *passing);

#endif
