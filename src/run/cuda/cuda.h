/* The internals of the CUDA engine: a program in memory of a device, and the launches of its
 * instructions. */
#ifndef SF_RUN_CUDA_CUDA_H
#define SF_RUN_CUDA_CUDA_H

#include "prog/timing.h"
#include "run/cuda/cuda_device.h"
#include "run/cuda/nccl.h"
#include "run/engine/engine_collective.h"

/* A launch with its parameters in place. */
typedef struct ready {
    void *function;
    int64_t blocks;
    int threads;
    void **params;
} ready;

/* A collective, from run to run. */
typedef struct exchange {
    struct cuda *engine;
    int64_t *counts, *strides; /* by part: elements, and those from one block to the next */
    const ready *fold;         /* the kernel that adds, of one that reduces; or NULL */
    sf_transfer_memory where;
    sf_request *request; /* under way, or NULL */
    bool staged;         /* through memory of the host: */
    sf_arena staging;
    char **in, **out;
    sf_group *group; /* the exchange, and its number among all exchanges: */
    sf_transfer transfer;
    uint64_t key;
    sf_nccl_group *nccl; /* that it goes in by NCCL; NULL: it does not */
    bool may_go;         /* by NCCL */
    bool is_put_later;   /* not where the rank comes to it, which this event says (nccl_order.h) */
    size_t begun;
    bool is_last; /* of its lane, in the frame */
    ready *folds; /* launches after it (nccl_small_reduce.h) */
    int nfolds;
} exchange;

typedef struct made {
    sf_code code;
    const sf_fused_launch *fused; /* of the first of one, which launches for all of them */
    ready *launches;
    void *plan;       /* of a library, for a product, */
    char *product[4]; /* and its arguments, with the row that is added to all of a product */
    char **in, **out;
    exchange *exchange; /* of COMM */
    size_t marks; /* of a COPY or COMM of the step: the numbers of its two marks, from this on */
    struct frame *bodies;
} made;

/* A program in memory: that of the step, or a body of one of its instructions. */
typedef struct frame {
    const sf_program *program;
    char **buffers;
    made *insts;
    uint32_t *raisers; /* by event */
    uint32_t
        *puts; /* exchanges in the order in which they are put on lanes, or NULL (nccl_order.h); */
    uint32_t *first_put; /* by instruction, and at the end: the first that is before it */
    size_t first_event;  /* the number on the device of its first */
    bool has_beside;     /* something goes on beside the compute: */
    bool copies[SF_LANE_COUNT];
} frame;

/* A tensor of the device that the host has a copy of. */
typedef struct mirror {
    char *data;
    bool writes;
    bool is_pinned; /* memory that is pinned: slow to allocate, so only for buffers that stay */
    bool is_same;   /* as on the device, since no step changes it */
    bool is_zero;   /* the content on the device, before the first step */
} mirror;

typedef struct cuda {
    const sf_program *program;
    sf_device *device;
    sf_threads *threads;
    bool owns_threads;
    sf_kernels module;
    void **functions; /* by kernel */
    frame top;
    sf_arena memory;
    char **owned; /* memory of the device */
    size_t nowned, owned_capacity;
    char **kept; /* and of the host */
    size_t nkept, kept_capacity;
    char *scratch;
    int64_t scratch_bytes;
    char *faults; /* what kernels that check found, in memory of the host; or NULL */
    mirror *arguments, *results;
    sf_collectives collectives;
    sf_nccl nccl;
    sf_group *world;
    sf_request *note; /* that this rank has come to the end of the step, and others, or NULL */
    char *notes;
    bool can_draw;  /* the step is a graph from some run on (cuda_graph.h) */
    size_t nevents; /* of all frames */
    size_t nmarks;
    bool is_timed;    /* events are recorded in the current step */
    bool is_drawn;    /* the current step becomes a graph: */
    sf_lane last_put; /* the lane of the last exchange by NCCL, or SF_LANE_COMPUTE */
    void *graph;
    int64_t steps;
    double slowest;     /* seconds of a step so far that was no graph */
    sf_timing *timings; /* by instruction, of the last step that was no graph */
    double *seconds;    /* likewise, their times */
} cuda;

static inline const sf_device_table *table_of(const cuda *c)
{
    return c->device->table;
}

static inline int64_t view_bytes(const sf_view *view)
{
    return sf_view_count(view) * sf_dtype_get(view->dtype)->bytes;
}

static inline char *view_pointer(const frame *f, const sf_view *view)
{
    return f->buffers[view->buffer] + view->offset * sf_dtype_get(view->dtype)->bytes;
}

/* The lane that a COPY is on. */
static inline sf_lane sf_copy_lane(const sf_program *p, const sf_inst *inst)
{
    return p->streams[inst->stream].to == SF_SPACE_HOST ? SF_LANE_TO_HOST : SF_LANE_FROM_HOST;
}

/* A check of a program that tests itself. */
static inline bool is_check(const sf_inst *inst)
{
    return inst->kind == SF_INST_CALL && inst->nout == 0;
}

/* Among those of the engine. */
size_t sf_cuda_number_of(const cuda *c, const sf_kernel *kernel);

/* Runs the instructions of a frame, in order. */
sf_status sf_cuda_run(cuda *c, const frame *f, sf_diag *diag);

/* The same for the whole step, with marks between instructions, and waits for it: sets c->timings and c->seconds. */
sf_status sf_cuda_run_timed(cuda *c, sf_diag *diag);

#endif
