/* Communicators: ranks that exchange tensors.
 *
 * A world has a number of ranks; each holds its own end, an sf_comm. Two kinds share one interface:
 * `threads`, ranks as threads of one process, and `mpi`, any MPI. Collectives are started and
 * waited for; in between they progress in the background, without help of the caller. All members
 * of a group start the same collectives of that group in the same order; collectives of different
 * groups may be in flight together, any number of them.
 *
 * The result of a reduction is the same, bit for bit, on every member, in every run, for either kind:
 * elements are combined in an order that depends on the size of the group and the number of elements
 * alone.
 *
 * No call waits for ever: a rank that waits longer than the time limit, or learns that another rank
 * has failed, gets SF_EPEER and a message that names the rank and the transfer. The same happens
 * when members start different transfers as the same one of their group. After that the world can
 * only be freed; memory of a transfer belongs to the caller once its wait has returned.
 *
 * An end, its groups and its requests are used by one thread at a time; only sf_comm_abort may be called
 * by any. */
#ifndef SF_RUN_COMM_COMM_H
#define SF_RUN_COMM_COMM_H

#include "base/collective.h"
#include "base/diag.h"
#include "ir/dtype.h"
#include "ir/factor.h"

typedef struct sf_comm sf_comm;
typedef struct sf_group sf_group;

typedef struct sf_comm_options {
    double limit; /* seconds that a rank may wait for another; 0: 300 */
} sf_comm_options;

/* A world of `size` ranks in this process; out[r] is for the thread that is rank r. */
sf_status sf_comm_threads_new(int size, const sf_comm_options *options, sf_diag *diag,
                              sf_comm **out);

/* This process's end of MPI_COMM_WORLD; starts MPI if it is not started, which waits, within the
 * limit, for all processes. SF_EUNSUPPORTED in a build without MPI; the message names the package
 * to install. */
sf_status sf_comm_mpi_new(const sf_comm_options *options, sf_diag *diag, sf_comm **out);

/* Sets the MPI parameters that transfers prefer, unless the environment sets them. For programs
 * that start MPI themselves, before they do. */
void sf_comm_mpi_prefer(void);

/* Whether this process was started by mpirun or the like, and with how many ranks (0: no). */
int sf_comm_mpi_size(void);

/* Whoever still wants something of this rank gets SF_EPEER. Over MPI it waits, within the limit, until the
 * others free theirs. */
void sf_comm_free(sf_comm *comm);
int sf_comm_rank(const sf_comm *comm);
int sf_comm_size(const sf_comm *comm);

/* Whether this rank speaks for its process: the first of ranks that are threads, each that is a process. A NULL comm
 * is a run of one rank. */
bool sf_comm_leads(const sf_comm *comm);
bool sf_comm_same_host(const sf_comm *comm, int rank, int other);
const char *sf_comm_kind(const sf_comm *comm);    /* "threads", "mpi" */
bool sf_comm_is_one_process(const sf_comm *comm); /* so that its ranks see each other's memory */

/* The group of these ranks, in this order, to which the caller belongs. Made once, then found by
 * later calls; owned by the comm. Making one sends nothing: members need not call at the same
 * time. */
sf_status sf_comm_group(sf_comm *comm, const int *ranks, int count, sf_diag *diag, sf_group **out);

/* A group of two for messages from the one to the other, with an order of their own: collectives of
 * the group of the two do not order with them. */
sf_status sf_comm_pair(sf_comm *comm, int from, int to, sf_diag *diag, sf_group **out);
int sf_comm_group_size(const sf_group *group);
int sf_comm_group_place(const sf_group *group);
const int *sf_comm_group_ranks(const sf_group *group);

/* Operand and result of each member, in elements of a group of `size`:
 *
 *     all_reduce      in: count, out: count
 *     all_gather      in: count, out: size * count, by place
 *     reduce_scatter  in: size * count, out: count
 *     all_to_all      in: size * count, out: size * count: part p of `in` goes to place p
 *     broadcast       from place `from`; in (there) and out: count
 *     permute         in goes to place `to`, out comes from place `from`: count; below 0: to or
 *                     from no place, and out is unchanged */

/* One range of memory that takes part. If there is a block for each place, `stride` elements lie
 * between the beginnings of two of them: so a collective can be split, some rows of each block at a
 * time, and elements are combined in the order in which a single collective would. An all_reduce
 * has such blocks, too: they are its segments, all of one size. */
typedef struct sf_transfer_part {
    const void *in;
    void *out; /* may be `in` for ALL_REDUCE and BROADCAST; else they do not overlap */
    int64_t count;
    int64_t stride; /* 0: blocks are contiguous */
} sf_transfer_part;

/* Memory that is not the host's: the functions that copy and combine elements there, of ranks of
 * one process. Any thread calls these, for the rank whose transfer has them; each returns when it
 * is done, false if it failed. */
typedef struct sf_transfer_memory {
    void *context;
    bool (*copy)(void *context, void *out, const void *in, int64_t bytes);
    /* As sf_comm_fold (run/comm/comm_backend.h). */
    bool (*fold)(void *context, const void *const *sources, int members, int segment, void *out,
                 int64_t count);
} sf_transfer_memory;

/* Several parts are one collective: as if each were done by itself, but with the messages of one (a
 * bucket of gradients). */
typedef struct sf_transfer {
    sf_collective kind;
    sf_dtype dtype;
    sf_monoid monoid; /* of reductions; bitwise ones not of floats, SECOND never */
    int to, from;
    int nparts;
    const sf_transfer_part *parts; /* may be dropped after the start; the memory in it may not */
    const char *what;              /* for messages: "gradient of layer_0/attn/q/kernel"; borrowed */
    const sf_transfer_memory *memory; /* borrowed until it is done; NULL: the host's */
} sf_transfer;

typedef struct sf_request sf_request;

/* Begins; never blocks on another rank. The caller waits for *out once. */
sf_status sf_comm_start(sf_group *group, const sf_transfer *transfer, sf_diag *diag,
                        sf_request **out);
sf_status sf_comm_wait(sf_request *request, sf_diag *diag);
/* The same; *ended is when it was done, of sf_now, which may be long before; 0: that is not known. */
sf_status sf_comm_wait_timed(sf_request *request, sf_diag *diag, double *ended);
bool sf_comm_done(const sf_request *request); /* then waiting returns at once */

/* Start and wait. */
sf_status sf_comm_run(sf_group *group, const sf_transfer *transfer, sf_diag *diag);

/* Waits, within the limit, for an operation that other ranks take part in but no communicator
 * manages: until `ended` returns true, which is polled. Its run time `alone`, in seconds, is added
 * to the limit. SF_EPEER, with `what`, when the time is over. */
sf_status sf_comm_watch(const sf_comm *comm, double alone, bool (*ended)(void *context),
                        void *context, const char *what, sf_diag *diag);

/* Informs all ranks that this one gives up; their waits end with SF_EPEER and this reason. */
void sf_comm_abort(sf_comm *comm, const char *why);

#endif
