/* NCCL: what ranks bring each other from GPU to GPU, put on lanes beside the compute. Nothing here waits for a transfer; what waits for
 * another rank, while communicators are made or connected, does so within the limit of the sf_comm.
 *
 * Collectives of all groups are on one lane; messages of a pair in one direction have a lane of their own. In which order they are put there
 * is the caller's matter (nccl_order.h).
 *
 * SHEAF_NCCL in the environment is a list, with commas, of
 *     off        it is not used
 *     shared     it is used although ranks have a GPU together, which it refuses unless it is told otherwise
 *     a path     the library, instead of the one that the system finds; for kernels run by the host it is needed
 *
 * Sums are made in an order that depends on the ranks and on sizes, and so have the same bits in every run, but not those of an
 * sf_comm. Where switches add, that is not said to hold: they are not asked to, unless NCCL_NVLS_ENABLE says otherwise. */
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
    char *byte;   /* the caller's, of the device: what pairs connect by */
    sf_lane lane; /* of collectives; 0: there is none yet */
} sf_nccl;

/* Whether SHEAF_NCCL, and the device, let it be used. SF_EUSAGE for what is none of the words. */
sf_status sf_nccl_asked(const sf_device *device, sf_diag *diag, bool *asked, bool *shared);

/* Whether the library has what the transfer needs. The maximum of floats is not that of others here: it loses NaN. */
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
