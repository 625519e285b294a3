/* Train: run a step repeatedly on batches of data, and keep its state in checkpoints. */
#ifndef SHEAF_TRAIN_H
#define SHEAF_TRAIN_H

#include "sheaf/plan.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum sf_train_order {
    SF_ORDER_DEFAULT = 0, /* windows of tokens are shuffled, batches in files are not */
    SF_ORDER_SEQUENTIAL = 1,
    SF_ORDER_SHUFFLED = 2, /* another permutation in every epoch, by the seed */
} sf_train_order;

/* What a listener of training receives besides the step and its loss. */
typedef struct sf_train_progress {
    size_t size;    /* of this struct, as the library has it */
    double seconds; /* of the last step */
    double rate;    /* tokens or samples in a second, smoothed over the last steps */
    bool counts_tokens;
    double flops;       /* operations in a second, smoothed */
    double left;        /* seconds until the end, by the same */
    int64_t memory;     /* bytes, of the rank that takes most */
    int64_t parameters; /* elements */
    int threads;        /* of a rank */
    int ranks;
    const char *engine, *data; /* names, as text */
    double
        computed; /* of the seconds of the last step, those of its program: without reading data */
    double
        waited; /* and those in which it waited for its data, which are drawn beside the step before */
} sf_train_progress;

/* Formats, rules and the promise of resuming are described in docs/guides/train.md. */
typedef struct sf_train_options {
    size_t size;             /* sizeof this struct, see api.h */
    int64_t steps;           /* in all, with those of the run that is resumed */
    const char *data;        /* path, "synthetic" or "synthetic:N"; NULL: the step takes no batch */
    const char *tokens_type; /* "u8", "u16", "u32"; NULL: by the name of the file */
    sf_train_order order;
    const char *init;   /* rules, or a path of a safetensors file or checkpoint; NULL: defaults */
    const char *set;    /* "NAME=NUMBER,...": arguments that are the same for all steps, or NULL */
    uint64_t seed;      /* of initialisation, order and keys */
    bool has_seed;      /* `seed` is meant; else it is 0, or that of the run that is resumed */
    const char *save;   /* directory for checkpoints; NULL: none are written */
    int64_t save_every; /* steps; 0: 100. The last step is saved always */
    int64_t keep;       /* checkpoints; 0: 2, negative: all */
    bool resume;        /* go on from the latest checkpoint; where there is none, start */
    const char *resume_from;  /* directory or checkpoint; NULL: that of `save` */
    const char *log;          /* file to append a line of JSON per event to, or NULL */
    const sf_output *profile; /* for where the time went; NULL: it is not written */
    const char *
        engine; /* "cpu", "cuda", "oracle"; NULL, "auto": "cuda" where there is a GPU, else "cpu" */
    int threads;         /* 0: as many as the process may use */
    int64_t memory;      /* most bytes; 0: the memory of the machine */
    const sf_plan *plan; /* how the step is split; NULL: one device. Its ranks are threads of this
                                process, or, under mpirun, processes, which all call this */
    double limit;    /* seconds that a rank may wait for another; 0: 300. A rank that is a thread
                            and stays away for as long after another has failed cannot be
                            abandoned: it is named on standard error, and the process ends */
    bool check;      /* programs before they run, see docs/design/correctness.md */
    bool ignore_nan; /* go on when the loss is no finite number; else that is SF_EMISMATCH */
    sf_listener *listener; /* or NULL. Called after every step; false: save and return */
    void *context;         /* for the listener */
    /* For the timeline of the last step, of all ranks, as that of sf_plan_simulate; NULL: it is not written. */
    const sf_output *trace;
    /* most bytes of a device, for arguments and temporaries, without tensors on the host
     * (docs/guides/micro-batches-and-recompute.md). 0: no limit of its own */
    int64_t device_memory;
    int64_t
        host_link; /* bytes a second that copies between device and host go at, each way; 0: as fast as they do */
    /* the type in which products of f32 are computed: "f32", "tf32", "bf16", "f16" or "fp8";
     * NULL: "f32" (docs/design/gpu.md) */
    const char *precision;
    sf_interrupt *interrupt; /* stops the call when it is raised; or NULL */
} sf_train_options;

typedef struct sf_train_report {
    size_t size;         /* sizeof this struct, see api.h */
    int64_t first, step; /* steps that were made before this run, and after it */
    double loss;         /* of the last step of this run; NaN when it made none or has none */
    double seconds;
    bool interrupted; /* the listener or the interrupt stopped it */
} sf_train_report;

/* Trains. `report` may be NULL. On failure the last checkpoint on disk is whole. */
SF_API sf_status sf_train(const sf_graph *graph, const sf_train_options *options, sf_diag *diag,
                          sf_train_report *report);

#ifdef __cplusplus
}
#endif

#endif
