/* Runs work on several ranks: as threads of this process, or, under mpirun, as processes. */
#ifndef SF_API_RUN_RANKS_H
#define SF_API_RUN_RANKS_H

#include <stdatomic.h>

#include "run/comm/comm.h"

/* The work of one rank. Nothing jumps out of it: it guards itself (base/guard.h). */
typedef sf_status sf_rank_work(void *context, sf_comm *comm, sf_diag *diag);

typedef struct sf_world {
    int ranks;
    double limit; /* seconds that a rank may wait for another; 0: the default */
    sf_rank_work *work;
    void *context; /* shared by the ranks that are threads */
    /* or NULL. The work sets it when it fails and all ranks know: then the world ends in good
     * order, and exit codes are kept */
    atomic_bool *settled;
} sf_world;

/* The ends of the ranks of this process: of all, where they are threads, or the one that is this process. Zeroed,
 * there are none. */
typedef struct sf_ends {
    int count;
    sf_comm **comms;
} sf_ends;

/* For `ranks` ranks; `limit` as below. Under mpirun the number of processes must be that of ranks. */
sf_status sf_ends_open(int ranks, double limit, sf_diag *diag, sf_ends *out);
void sf_ends_close(sf_ends *ends);

/* Runs it to the end on every rank of this process. A rank that fails makes the others stop; the
 * messages of `diag` are those of the ranks that failed by themselves, or lost another one, with
 * their numbers. So over MPI a process may fail without a message: another one has it.
 *
 * A rank that is a thread and reaches no transfer any more, because it hangs in a file system, say,
 * never learns that another one has failed. After the limit it is named on standard error, and the
 * process ends: such a thread cannot be ended, nor its memory freed. */
sf_status sf_world_run(const sf_world *world, sf_diag *diag);

/* The same on ends that stay, so that several works may follow each other. After a failure that was
 * not settled they can only be closed. */
sf_status sf_world_run_on(const sf_world *world, const sf_ends *ends, sf_diag *diag);

/* How many threads a rank may use, if all have `threads` (0: as many as there are) together: ranks
 * share the processors of this process, unless their launcher has given each its own. */
int sf_rank_threads(int threads, const sf_comm *comm);

/* Whether ranks of so many threads have fewer processors than threads. */
bool sf_ranks_share(int threads, const sf_comm *comm);

/* How many bytes a rank may use: as given, or (0) its share of the memory of this machine, of
 * which `ranks` ranks use as much, as threads of this process; as processes, as many as are on
 * this host. */
int64_t sf_rank_memory(int64_t memory, int ranks);

#endif
