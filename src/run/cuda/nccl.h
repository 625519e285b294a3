/* NCCL: exchanges from GPU to GPU, put on lanes concurrent with compute. No call waits for a
 * transfer; waits for other ranks, while communicators are made or connected, end within the limit
 * of the sf_comm.
 *
 * Collectives of all groups are on one lane; messages of a pair in one direction have a lane of
 * their own. The caller determines the order in which they are put there (nccl_order.h).
 *
 * SHEAF_NCCL in the environment is a list, with commas, of
 *     off        it is not used
 *     shared     it is used although ranks share a GPU, which it refuses by default
 *     a path     the library, instead of the one that the system finds; needed for the emulator
 *
 * Sums are made in an order that depends on the ranks and on sizes, and so have the same bits in
 * every run, but not those of an sf_comm. NCCL does not guarantee this for switches that add: they
 * are disabled, unless NCCL_NVLS_ENABLE is set. */
#ifndef SF_RUN_CUDA_NCCL_H
#define SF_RUN_CUDA_NCCL_H

#include "run/comm/comm.h"
#include "run/cuda/cuda_device.h"
#include "run/cuda/cuda_libraries.h"

/* A group of ranks and its communicator. */
typedef struct sf_nccl_group {
    sf_group *group; /* borrowed */
    bool is_pair;
    bool is_open;       /* transfers go by it */
    uint64_t signature; /* of all transfers that shall, in their order */
    sf_lane lane;
    void *stream;
    nccl_comm handle; /* or NULL */
} sf_nccl_group;

typedef struct sf_nccl {
    const sf_cuda_exchanges *library; /* NULL: not in use */
    sf_device *device;                /* borrowed, like the next */
    sf_comm *comm;
    sf_nccl_group *
        groups; /* the caller's; in an order that all ranks agree on, so that nobody waits in a circle */
    int ngroups;
    char *byte;   /* the caller's, of the device: used to connect pairs */
    sf_lane lane; /* of collectives; 0: there is none yet */
} sf_nccl;

/* Whether SHEAF_NCCL, and the device, allow it. SF_EUSAGE for an unknown word. */
sf_status sf_nccl_asked(const sf_device *device, sf_diag *diag, bool *asked, bool *shared);

/* Whether the library supports the transfer. Its maximum of floats differs from others here: it
 * loses NaN. */
bool sf_nccl_can(const sf_transfer *transfer);

/* Opens the library; groups are joined then. Where there is none, the message says so. */
sf_status sf_nccl_load(sf_nccl *nccl, sf_diag *diag);

/* Makes communicators of all groups; every member must. Refuses, on all ranks, where members have different signatures. Where
 * the library does not make one, all are given back on all ranks, nccl->library becomes NULL, and a warning says why. */
sf_status sf_nccl_join(sf_nccl *nccl, sf_diag *diag);

/* Puts a transfer, whose memory is of the device, on the lane of its group. */
sf_status sf_nccl_put(const sf_nccl *nccl, const sf_nccl_group *group, const sf_transfer *transfer,
                      sf_diag *diag);

/* SF_EPEER, with a message, when a communicator has failed. */
sf_status sf_nccl_check(const sf_nccl *nccl, sf_diag *diag);

/* Ends whatever is under way, and closes; after that nothing is put. And closing when all is done. */
void sf_nccl_abort(sf_nccl *nccl);
void sf_nccl_close(sf_nccl *nccl);

#endif
