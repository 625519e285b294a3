/* Collectives of a rank's program, by the communicator of the rank. */
#ifndef SF_RUN_COLLECTIVE_H
#define SF_RUN_COLLECTIVE_H

#include "ir/opdef.h"
#include "run/comm/comm.h"
#include "shard/mesh.h"

/* A collective on its way. */
typedef struct sf_flight {
    uint32_t inst;  /* who started it */
    uint32_t until; /* it must be done before this instruction */
    sf_request *request;
} sf_flight;

/* The collectives of one rank: the groups that they take place in, by the set of axes, made at the first
 * use, and those that are on their way. A zeroed one without a comm is for programs without
 * collectives. */
typedef struct sf_collectives {
    sf_comm *comm;       /* borrowed */
    const sf_mesh *mesh; /* borrowed */
    sf_group *groups[1 << SF_MAX_AXES];
    sf_flight *flights; /* room for one for each instruction */
    uint32_t nflights;
} sf_collectives;

/* Starts the collective that the node is, on tensors in memory; *request is to be waited for with
 * sf_comm_wait, and until then the tensors are the communicator's. In a group of one rank it is done at
 * once, and *request is NULL. */
sf_status sf_collective_start(sf_collectives *collectives, const sf_graph *graph,
                              const sf_node *node, char *const *in, char *const *out, sf_diag *diag,
                              sf_request **request);

/* Leaves the waiting to the functions below. */
void sf_collectives_add(sf_collectives *collectives, sf_flight flight);

/* Waits for those that must be done before the instruction; SF_NONE: for all. The time that it waited for
 * each is added to seconds[its inst]. */
sf_status sf_collectives_wait(sf_collectives *collectives, uint32_t before, double *seconds,
                              sf_diag *diag);

/* After a failure: tells the other ranks, so that nobody waits long, and takes the memory back. */
void sf_collectives_drop(sf_collectives *collectives, sf_diag *diag);

#endif
