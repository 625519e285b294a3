/* What a program takes on a cluster, without running it.
 *
 * The list is walked in order, with a clock for what is computed and one for each level of links (sim/links.h): what is
 * computed goes one after the other, and collectives beside it, one after the other on each link. An instruction begins
 * when the one before it has ended and the events that it waits for are there; a collective when the instruction before it
 * in the list has ended, what it reads is there, and its links are free. What is waited for is exposed; the rest is
 * hidden, and costs no more than what it drags on what is computed beside it (cluster/cluster.h).
 *
 * Memory is what stands at a time, from the lives of buffers.
 */
#ifndef SF_SIM_SIM_H
#define SF_SIM_SIM_H

#include "cluster/cost.h"
#include "prog/program.h"
#include "prog/timing.h"

typedef struct sf_simulation {
    double seconds;                  /* of a step: compute + exposed */
    double compute, exposed, hidden; /* hidden: time of collectives beside what is computed */
    double traffic;                  /* bytes that a rank puts into, or gets out of, collectives */
    int ncollectives;
    sf_timing *insts; /* by instruction; in the arena */
    int64_t
        memory; /* of the device at the peak: arguments, constants and what stands in the arena */
    uint32_t peak; /* the instruction at which that is */
} sf_simulation;

/* `costs` is of the program's mesh. */
void sf_simulate(const sf_program *program, const sf_costs *costs, sf_arena *arena,
                 sf_simulation *out);

/* Only the memory: by instruction, the bytes of arena buffers that live then, each rounded up as it is placed; in
 * the arena. Returns the peak, *at is where. */
int64_t sf_live_bytes(const sf_program *program, sf_arena *arena, int64_t **live, uint32_t *at);

#endif
