/* The simulator: time and memory of a program on a cluster, without running it.
 *
 * The list is walked in order, with a clock for compute and one for each level of links
 * (sim/links.h): compute runs one instruction after the other, and collectives beside it, one after
 * the other on each link. An instruction begins when the one before it has ended and the events
 * that it waits for are there; a collective when the instruction before it in the list has ended,
 * its operands are there, and its links are free. Waits are exposed time; other communication is
 * hidden, and costs only the slowdown of concurrent compute (cluster/cluster.h).
 *
 * A body of a loop or branch is walked like a program of its own, once, and counts as often as it
 * runs; if that is not known, once. At its end, all its messages have arrived.
 *
 * Memory is that of all live buffers at a time. */
#ifndef SF_SIM_SIM_H
#define SF_SIM_SIM_H

#include "cluster/cost_model.h"
#include "prog/program.h"
#include "prog/timing.h"

typedef struct sf_simulation {
    double seconds;                  /* of a step: compute + exposed */
    double compute, exposed, hidden; /* hidden: time of collectives concurrent with compute */
    double traffic;                  /* bytes that a rank puts into, or gets out of, collectives */
    int ncollectives;
    double copied,
        copying; /* between device and host: bytes both ways, and seconds of the copies, */
    double copies_exposed; /* of which this much is waited for */
    int ncopies;
    sf_timing *insts; /* by instruction; in the arena, */
    struct sf_simulation *
        *bodies;         /* as are those of its bodies, one run of each; NULL: it has none */
    int64_t host_memory; /* the most memory of the host in use */
    int64_t
        memory; /* of the device at the peak: arguments, constants and live buffers of the arena */
    uint32_t peak; /* the instruction at which that is */
} sf_simulation;

/* Programs of groups that send each other messages (plan/pipeline/pipeline.h), one of each, in their order: a message begins when
 * who sends it and who receives it have both come to it. `costs` has one for each, of their mesh (sf_costs_at), or is NULL: nothing takes time, and it is found out whether they end; `out` has one for each. SF_EMISMATCH where
 * groups wait for each other, with the message, or come together to different collectives. */
sf_status sf_simulate_groups(int count, sf_program *const *programs, const sf_costs *const *costs,
                             sf_arena *arena, sf_diag *diag, sf_simulation *out);

/* One alone; messages then take no time. */
void sf_simulate(const sf_program *program, const sf_costs *costs, sf_arena *arena,
                 sf_simulation *out);

/* Shows every collective: those of the program, then of bodies, each with its time in one run, how often it runs, and the
 * instruction of the program that it is in, itself or by its body. */
typedef void sf_see_exchange(void *context, const sf_inst *exchange, const sf_timing *timing,
                             double times, uint32_t within);
void sf_see_exchanges(const sf_program *program, const sf_simulation *sim, sf_see_exchange *see,
                      void *context);

/* Bytes that kernels of the program work in, where it is known how many threads there are. */
int64_t sf_scratch_bytes(const sf_program *program, const sf_costs *costs);

#endif
