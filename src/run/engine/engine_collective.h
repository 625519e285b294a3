/* Collectives of a rank, by its communicator. */
#ifndef SF_RUN_ENGINE_ENGINE_COLLECTIVE_H
#define SF_RUN_ENGINE_ENGINE_COLLECTIVE_H

#include "prog/program.h"
#include "run/comm/comm.h"

/* The groups that a rank's collectives take place in, by the set of axes, made at the first use. A zeroed one
 * without a comm is for programs whose groups are all of one rank. */
typedef struct sf_collectives {
    sf_comm *comm;       /* borrowed */
    const sf_mesh *mesh; /* borrowed */
    sf_group *groups[1 << SF_MAX_AXES];
} sf_collectives;

/* The memory of a collective: part i goes from in[i] to out[i]. */
typedef struct sf_collective_memory {
    sf_dtype dtype;
    uint32_t nparts;
    const int64_t *counts; /* elements of the results; of the operands, if there are none */
    const int64_t *
        strides; /* elements from one block to the next (sf_exchange_stride); 0, or NULL: they lie together */
    char *const *in, *const *out;
    const sf_transfer_memory *where; /* NULL: all of it is the host's */
} sf_collective_memory;

/* The group of a collective of several ranks, and its transfer; `parts` of it are in the arena. */
sf_status sf_collective_prepare(sf_collectives *collectives, const sf_exchange *exchange,
                                const sf_collective_memory *memory, sf_loc loc, sf_arena *arena,
                                sf_diag *diag, sf_group **group, sf_transfer *out);

/* Starts the collective; the caller waits for *request with sf_comm_wait, and until then the memory
 * is the communicator's. In a group of one rank it is done immediately, on the host, and *request
 * is NULL. */
sf_status sf_collective_start(sf_collectives *collectives, const sf_exchange *exchange,
                              const sf_collective_memory *memory, sf_loc loc, sf_diag *diag,
                              sf_request **request);

#endif
