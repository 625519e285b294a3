/* How near what an instruction touches is: a processor's caches hold what was touched a while ago.
 *
 * Memory is cut into pages, and each has the time at which it was touched last, in bytes that instructions have touched
 * since the program began. The distance of a page is what was touched since; what two instructions touch counts twice, so
 * it is at least what a cache would have had to hold. A step is one of many: it finds the pages as the one before left
 * them, and so does a body.
 */
#ifndef SF_SIM_CACHE_MODEL_H
#define SF_SIM_CACHE_MODEL_H

#include "cluster/cost_model.h"
#include "prog/program.h"

/* By instruction: of what it reads and writes, the share at each distance (sf_effort.near), 0 to 1 and together at most
 * that; in the arena. Those of bodies are not among them. */
typedef struct sf_nearness {
    double share[SF_NEAR_STEPS];
} sf_nearness;
sf_nearness *sf_nearness_of(const sf_program *program, sf_arena *arena);

#endif
