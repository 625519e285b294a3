/* Cache model: the distance of the data of an instruction, because a processor's caches hold
 * recently touched data.
 *
 * Memory is cut into pages, and each has the time at which it was touched last, in bytes that
 * instructions have touched since the program began. The distance of a page is the bytes touched
 * since; bytes touched by two instructions count twice, so it is at least the size of a cache that
 * would hold the page. A step is one of many: it finds the pages as the previous one left them, and
 * so does a body. */
#ifndef SF_SIM_CACHE_MODEL_H
#define SF_SIM_CACHE_MODEL_H

#include "cluster/cost_model.h"
#include "prog/program.h"

/* By instruction: of its reads and writes, the share at each distance (sf_effort.near), 0 to 1 and
 * together at most that; in the arena. Those of bodies are not among them. */
typedef struct sf_nearness {
    double share[SF_NEAR_STEPS];
} sf_nearness;
sf_nearness *sf_nearness_of(const sf_program *program, sf_arena *arena);

#endif
