/* Collectives of a rank's program, by the communicator of the rank. */
#ifndef SF_RUN_COLLECTIVE_H
#define SF_RUN_COLLECTIVE_H

#include "ir/opdef.h"
#include "run/comm.h"
#include "shard/mesh.h"

/* The groups that a rank's collectives take place in, by the set of axes: made at the first use. A
 * zeroed one without a comm is for programs without collectives. */
typedef struct sf_collectives {
    sf_comm *comm;       /* borrowed */
    const sf_mesh *mesh; /* borrowed */
    sf_group *groups[1 << SF_MAX_AXES];
} sf_collectives;

/* Starts the collective that the node is, on tensors in memory; *out is to be waited for with
 * sf_comm_wait. In a group of one rank it is done at once, and *out is NULL. */
sf_status sf_collective_start(sf_collectives *collectives, const sf_graph *graph,
                              const sf_node *node, char *const *in, char *const *out, sf_diag *diag,
                              sf_request **request);

#endif
