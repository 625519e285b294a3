/* Primitives: what a person says about a step, one thing after another, and the plan that comes of it. It is what
 * schedules in Lua are made of (sheaf/script.h); docs/schedules.md describes each. */
#ifndef SHEAF_PRIMITIVE_H
#define SHEAF_PRIMITIVE_H

#include "sheaf/eval.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A list of primitives, in the order in which they were applied. One thread uses it at a time; the graph outlives it. */
typedef struct sf_primitives sf_primitives;

SF_API sf_status sf_primitives_new(const sf_graph *graph, sf_diag *diag, sf_primitives **out);
SF_API void sf_primitives_free(sf_primitives *list);

/* Modules are the scopes of the forward pass, and what the names of parameters stand in: "layer_0/attn/q". A pattern
 * has * and ?, begins at the top, and may have dots for slashes. Writes up to `capacity` paths that it matches (NULL: all) to
 * `out`, which live as long as the list, and returns how many there are; -1 without memory. */
SF_API int sf_primitives_modules(const sf_primitives *list, const char *pattern, int capacity,
                                 const char **out);

/* The same for parameters of the modules whose last parts match `param` (NULL: all): those that are named in the
 * modules, or else those that ops of the modules read. Names are those of arguments. */
SF_API int sf_primitives_params(const sf_primitives *list, const char *modules, const char *param,
                                int capacity, const char **out);

typedef enum sf_primitive_kind {
    SF_PRIMITIVE_SET = 0,        /* something of the whole step: `name` and `value` */
    SF_PRIMITIVE_SHARD = 1,      /* parameters in pieces: `param`, `dim`, `axis` */
    SF_PRIMITIVE_SYNC = 2,       /* where what is in pieces is put together: `mode`, `op`, `axis` */
    SF_PRIMITIVE_CHECKPOINT = 3, /* a module is computed again for the backward pass */
    SF_PRIMITIVE_PIPELINE_SPLIT = 4, /* a stage begins with the module */
    SF_PRIMITIVE_DECOMPOSE = 5,      /* products and sums apart, which they are in our graphs */
    SF_PRIMITIVE_ANNOTATE = 6,       /* words, `name` and `value`, that are kept in the plan */
} sf_primitive_kind;

typedef struct sf_primitive {
    size_t size; /* of this struct, or 0: see sheaf.h */
    sf_primitive_kind kind;
    const char *module; /* a pattern; SET has none */
    const char *param;  /* SHARD: a pattern of its last parts */
    int dim;            /* SHARD, and SYNC by reduce_scatter: the dimension, from 0 on */
    const char
        *axis; /* of the mesh. NULL: its only one, else "model"; of a SYNC: that of the SHARD */
    const char *mode; /* SYNC: "forward" or "backward"; NULL: forward */
    const char *op;   /* SYNC: "all_reduce", "all_gather" or "reduce_scatter"; NULL: all_reduce */
    /* SET: "mesh", "recipe", "micro_batches", "recompute", "stages", "order", which is that of a pipeline, or "co_shard",
     * each as in sf_pin_options; "passes", as of sf_plan_use_passes */
    const char *name, *value;
    const char *file; /* where it is said, for messages and for the plan; or NULL */
    int line;
} sf_primitive;

/* Applies one more; *number (or NULL) is what it can be undone by. What is against a rule is SF_EWRONG, and what names
 * nothing SF_EUSAGE: the message is about its file and line, and the list is as it was. */
SF_API sf_status sf_primitives_add(sf_primitives *list, const sf_primitive *primitive,
                                   sf_diag *diag, int *number);

/* Takes one back, -1: the last one. SF_EWRONG where another needs it. */
SF_API sf_status sf_primitives_undo(sf_primitives *list, int number, sf_diag *diag);

/* How many there are, and what each says, "layer_0/attn/q: shard kernel, dim 1 over model"; NULL past the last. */
SF_API int sf_primitives_count(const sf_primitives *list);
SF_API const char *sf_primitives_text(const sf_primitives *list, int index);

/* The plan that is pinned by them, as by sf_pin_step, and the one that is searched with what they say fixed, as by
 * sf_plan_search. `options` say the rest, or are NULL; what both say is SF_EUSAGE. The plan keeps what was applied. */
SF_API sf_status sf_primitives_pin(const sf_primitives *list, const sf_pin_options *options,
                                   sf_diag *diag, sf_plan **out);
SF_API sf_status sf_primitives_search(const sf_primitives *list, const sf_plan_options *options,
                                      sf_diag *diag, sf_plan **out);

/* Runs the step as the plan of sf_primitives_pin splits it, beside the step unsplit, as sf_verify_plan does. Where they
 * differ, SF_EWRONG, and *culprit is the first primitive with which they do, found by bisection, which the message
 * names; else -1. The report is for sf_verify_free. */
SF_API sf_status sf_primitives_verify(const sf_primitives *list, const sf_pin_options *options,
                                      const sf_verify_options *verify, sf_diag *diag,
                                      sf_verify_report **out, int *culprit);

#ifdef __cplusplus
}
#endif

#endif
