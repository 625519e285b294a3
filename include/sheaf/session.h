/* Sessions: run a step call by call, on tensors in the memory of the caller.
 *
 * A session holds the arguments of a step. They are written and read as whole tensors, row-major,
 * each element in as many bytes as its sf_tensor_type has; with a plan, the session splits them
 * into the shards of the ranks and assembles them. Shards can be written and read by themselves.
 * Results of a step that become arguments of the next step replace them.
 *
 * The ranks of a plan are threads of this process or, under mpirun, processes: then all of them make the same calls in
 * the same order, with the same data. A session is used by one thread at a time, and its listener makes no calls with it:
 * they are SF_EUSAGE, and sf_session_close then does nothing.
 *
 * A call that fails leaves the session as it was, unless its message says otherwise. If ranks
 * failed while they waited for each other, or memory ran out in a step, the session can only be
 * closed: further calls are SF_EUSAGE. */
#ifndef SHEAF_SESSION_H
#define SHEAF_SESSION_H

#include "sheaf/plan.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sf_session sf_session;

typedef struct sf_session_options {
    size_t size;         /* sizeof this struct, see api.h */
    const sf_plan *plan; /* how the step is split; NULL: one device */
    const char *
        engine; /* "cpu", "cuda", "oracle"; NULL, "auto": "cuda" where there is a GPU, else "cpu" */
    int threads;             /* of all ranks of this process; 0: as many as it may use */
    int64_t memory;          /* most bytes of a rank; 0: the memory of the machine */
    double limit;            /* as of sf_train */
    bool check;              /* programs before they run, see docs/design/correctness.md */
    sf_listener *listener;   /* called after each step of sf_session_run; or NULL */
    void *context;           /* for the listener */
    sf_interrupt *interrupt; /* stops the call when it is raised; or NULL */
} sf_session_options;

/* Opens; all arguments are zero. The graph and the plan are borrowed and must outlive the session. *out is for
 * sf_session_close, NULL after a failure. */
SF_API sf_status sf_session_open(const sf_graph *graph, const sf_session_options *options,
                                 sf_diag *diag, sf_session **out);
SF_API void sf_session_close(sf_session *session);

/* Sets parameters, and all other state, to the values that training starts from: `init` as of
 * sf_train_options. Other arguments stay as they are. */
SF_API sf_status sf_session_init(sf_session *session, const char *init, uint64_t seed,
                                 sf_diag *diag);

/* Writes and reads an argument, by its number. `bytes` must be the size of the tensor. */
SF_API sf_status sf_session_write(sf_session *session, int argument, const void *data, size_t bytes,
                                  sf_diag *diag);
SF_API sf_status sf_session_read(sf_session *session, int argument, void *data, size_t bytes,
                                 sf_diag *diag);

/* Reads a result of the last step; of one that became an argument, that argument as it is now. SF_EUSAGE before the
 * first step. */
SF_API sf_status sf_session_read_result(sf_session *session, int result, void *data, size_t bytes,
                                        sf_diag *diag);

/* The same by name, as sf_graph_find_argument and sf_graph_find_result take it. */
SF_API sf_status sf_session_write_named(sf_session *session, const char *name, const void *data,
                                        size_t bytes, sf_diag *diag);
SF_API sf_status sf_session_read_named(sf_session *session, const char *name, void *data,
                                       size_t bytes, sf_diag *diag);
SF_API sf_status sf_session_read_result_named(sf_session *session, const char *name, void *data,
                                              size_t bytes, sf_diag *diag);

/* Shards: the part of an argument or a result that a rank has, without the whole tensor anywhere. A shard is row-major
 * and made of boxes of the tensor, as sf_plan_box and sf_plan_result_box describe them; without a plan it is the tensor.
 * `rank` is one of this process: under mpirun these functions are called by the process of that rank alone. Ranks that
 * hold the same part of a tensor must be given the same numbers. */

/* The ranks of this process, by number from 0 on; -1 past the last. */
SF_API int sf_session_rank(const sf_session *session, int index);

/* The bytes of a shard of an argument, or of a result; 0 for an empty one, and on a rank of a stage without it; -1 where
 * there is no such argument or result, or the rank is not of this process. */
SF_API int64_t sf_session_shard_bytes(const sf_session *session, int argument, int rank);
SF_API int64_t sf_session_result_shard_bytes(const sf_session *session, int result, int rank);

/* `bytes` must be sf_session_shard_bytes. */
SF_API sf_status sf_session_write_shard(sf_session *session, int argument, int rank,
                                        const void *data, size_t bytes, sf_diag *diag);
SF_API sf_status sf_session_read_shard(sf_session *session, int argument, int rank, void *data,
                                       size_t bytes, sf_diag *diag);

/* A rank's shard of a result, such as metrics or logits of the last step, as sf_session_read_result reads the whole; `bytes`
 * must be sf_session_result_shard_bytes. */
SF_API sf_status sf_session_read_result_shard(sf_session *session, int result, int rank, void *data,
                                              size_t bytes, sf_diag *diag);

/* Makes so many steps, or fewer when the listener or the interrupt stops it: each with the arguments as they then are. *loss, which may
 * be NULL, is that of the last of them; NaN when the step has none. */
SF_API sf_status sf_session_run(sf_session *session, int64_t steps, sf_diag *diag, double *loss);

/* Steps that were made, those before the checkpoint that was loaded among them. */
SF_API int64_t sf_session_steps(const sf_session *session);

/* Saves the state in a checkpoint of this directory, as training does; `keep` is the number of
 * checkpoints that stay, 0: 2, negative: all. The directory is locked until the session is closed
 * or saves to another one. It must not hold checkpoints already, unless the session has loaded one
 * of them. */
SF_API sf_status sf_session_save(sf_session *session, const char *directory, int64_t keep,
                                 sf_diag *diag);

/* Loads a checkpoint, however the run that saved it was split; of a directory of them, the latest. Where it fails
 * half-way, arguments may have been written. */
SF_API sf_status sf_session_load(sf_session *session, const char *path, sf_diag *diag);

#ifdef __cplusplus
}
#endif

#endif
