/* Primitives: decisions about a step, applied one after another, and the plan that they make. Schedules in Lua
 * are made of them (sheaf/script.h); docs/reference/schedules.md describes each. */
#ifndef SHEAF_PRIMITIVE_H
#define SHEAF_PRIMITIVE_H

#include "sheaf/eval.h"
#include "sheaf/sketch.h"
#include "sheaf/space.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A list of primitives, in the order in which they were applied. One thread uses it at a time; the graph outlives it. */
typedef struct sf_primitives sf_primitives;

SF_API sf_status sf_primitives_new(const sf_graph *graph, sf_diag *diag, sf_primitives **out);
SF_API void sf_primitives_free(sf_primitives *list);

/* Modules are the scopes of the forward pass, and the prefixes of parameter names:
 * "layer_0/attn/q". A pattern has * and ?, begins at the top, and may have dots for slashes. Writes
 * up to `capacity` matching paths (NULL: all) to `out`, which live as long as the list, and returns
 * the number of matches; -1 without memory. */
SF_API int sf_primitives_modules(const sf_primitives *list, const char *pattern, int capacity,
                                 const char **out);

/* The same for parameters of the modules whose last parts match `param` (NULL: all): those that are named in the
 * modules, or else those that ops of the modules read. Names are those of arguments. */
SF_API int sf_primitives_params(const sf_primitives *list, const char *modules, const char *param,
                                int capacity, const char **out);

typedef enum sf_primitive_kind {
    SF_PRIMITIVE_SET = 0,   /* something of the whole step: `name` and `value` */
    SF_PRIMITIVE_SHARD = 1, /* parameters are sharded: `param`, `dim`, `axis` */
    SF_PRIMITIVE_SYNC =
        2, /* where shards or partial sums are gathered or reduced: `mode`, `op`, `axis` */
    SF_PRIMITIVE_CHECKPOINT = 3,     /* a module is recomputed for the backward pass */
    SF_PRIMITIVE_PIPELINE_SPLIT = 4, /* a stage begins with the module */
    SF_PRIMITIVE_DECOMPOSE = 5,      /* products and sums apart, which they are in our graphs */
    SF_PRIMITIVE_ANNOTATE = 6,       /* words, `name` and `value`, that are kept in the plan */
    SF_PRIMITIVE_TRACE =
        7, /* ops of the module can be found, but those in the modules `name` below it */
    SF_PRIMITIVE_REPLACE =
        8, /* other ops for subgraphs: `sketches` or `fragment`; `name`; or `kernel` */
    SF_PRIMITIVE_FUSE =
        9, /* subgraphs run as one loop each; `value`: by which compiler, "vm" or "cc" */
    /* Those of a space (sheaf/space.h), whose `devices` are SET: the plan is then made by them. `module` is a list of ops. */
    SF_PRIMITIVE_TRANS = 10,  /* `name`: how; `parts`; `mode`: "space" or "time", NULL: space */
    SF_PRIMITIVE_ASSIGN = 11, /* `devices`, `turn` */
    SF_PRIMITIVE_ORDER = 12,  /* `before`, `after` */
    SF_PRIMITIVE_FORK_RNG =
        13, /* ranks draw random numbers of their own in the module, which they do */
} sf_primitive_kind;

typedef struct sf_primitive {
    size_t size; /* sizeof this struct, see api.h */
    sf_primitive_kind kind;
    const char *module; /* a pattern; SET has none */
    const char *param;  /* SHARD: a pattern of its last parts */
    int dim; /* SHARD, and SYNC by reduce_scatter: the dimension, from 0 on, or from the end: -1 is the last */
    const char
        *axis; /* of the mesh. NULL: its only one, else "model"; of a SYNC: that of the SHARD */
    const char *mode; /* SYNC: "forward" or "backward"; NULL: forward */
    const char *op;   /* SYNC: "all_reduce", "all_gather" or "reduce_scatter"; NULL: all_reduce */
    /* SET: a field of sf_plan_spec and its text, as sf_plan_spec_set takes them ("recompute", "layer"); "devices", those of a
     * space; "strict", "sync": a sum in parts that no SYNC puts together is SF_EMISMATCH, and not a warning */
    const char *name, *value;
    const char *file; /* where it is applied, for messages and for the plan; or NULL */
    int line;
    /* REPLACE, FUSE and CHECKPOINT, which may have none: numbers of sf_primitives_find */
    const int *subgraphs;
    int nsubgraphs;
    /* REPLACE: the replacement of each subgraph. Its inputs and results are those of the pattern */
    const sf_sketch *const *sketches;
    const char *fragment; /* or of all: a file in StableHLO, whose arguments and results they are */
    int parts;            /* TRANS */
    int microbatch;       /* ASSIGN: a micro-batch, or SF_EVERY */
    const int *devices;
    int ndevices;
    const sf_task *before, *after; /* ORDER */
    /* REPLACE, without subgraphs: the kernel of that name, "attention", "bias_gelu", "softmax",
     * "layer_norm", "bias_dropout_residual_layer_norm" or "cross_entropy", replaces its
     * subgraphs in the modules; of module "": in the step */
    const char *kernel;
    /* REPLACE: the replacement of the backward pass of the subgraphs or modules, or NULL: it stays
     * as it is. Inputs are those of the subgraph, then the gradients of its results; results are
     * the gradients of its inputs; only floats, in both. Results that the step does not need are
     * dropped. */
    const sf_sketch *const *backwards;
    const char *backward; /* or a file, as `fragment` */
} sf_primitive;

/* Applies one more primitive; *number (or NULL) is for undoing it. A violated rule is SF_EMISMATCH,
 * a pattern without matches SF_EUSAGE: the message is about its file and line, and the list is
 * unchanged. */
SF_API sf_status sf_primitives_add(sf_primitives *list, const sf_primitive *primitive,
                                   sf_diag *diag, int *number);

/* Takes one back, -1: the last one. SF_EMISMATCH where another needs it. */
SF_API sf_status sf_primitives_undo(sf_primitives *list, int number, sf_diag *diag);

/* Looks for a sketch among the ops of the forward pass in modules that are traced. Matches, none of which has an op of
 * another, go by the numbers *first, *first + 1, ...; *count of them. They are of the step as it is now: a REPLACE makes another. */
SF_API sf_status sf_primitives_find(sf_primitives *list, const char *module,
                                    const sf_sketch *pattern, sf_diag *diag, int *first,
                                    int *count);

/* An op, as a function that chooses among ops sees it. The strings live as long as the list. */
typedef struct sf_op_view {
    size_t size;            /* sizeof this struct, see api.h */
    const char *op, *scope; /* "tanh", "layer_0/mlp" */
    const sf_tensor_type
        *type; /* of its first result, during the call of an sf_take_op; else NULL */
} sf_op_view;

/* The same by a function that is called for each op: the ops for which it returns true and that are
 * connected are one subgraph. The function does not change the list: that is SF_EUSAGE, and sf_primitives_free does nothing. */
typedef bool sf_take_op(void *context, const sf_op_view *op);
SF_API sf_status sf_primitives_find_where(sf_primitives *list, const char *module, sf_take_op *take,
                                          void *context, sf_diag *diag, int *first, int *count);

/* The same for whole modules, one subgraph each, which need not be traced: all that the module
 * computes in the forward pass. Its inputs are the tensors of other modules that it reads, in the
 * order of the reads, then its parameters in the order of the step's arguments; its results are the
 * tensors that other modules of the forward pass read. */
SF_API sf_status sf_primitives_find_modules(sf_primitives *list, const char *module, sf_diag *diag,
                                            int *first, int *count);

/* A subgraph: how many ops, inputs and results it has. The caller sets `size`. */
typedef struct sf_subgraph_view {
    size_t size; /* sizeof this struct, see api.h */
    int ops, inputs, results;
} sf_subgraph_view;
/* False, and all counts 0, where there is no subgraph, op, input or result of that number. */
SF_API bool sf_primitives_subgraph(const sf_primitives *list, int number, sf_subgraph_view *out);
SF_API bool sf_primitives_subgraph_op(const sf_primitives *list, int number, int index,
                                      sf_op_view *out);
SF_API bool sf_primitives_subgraph_op_type(const sf_primitives *list, int number, int index,
                                           sf_tensor_type *out);
SF_API bool sf_primitives_subgraph_input(const sf_primitives *list, int number, int index,
                                         sf_tensor_type *out);
SF_API bool sf_primitives_subgraph_result(const sf_primitives *list, int number, int index,
                                          sf_tensor_type *out);

/* The step as REPLACE has made it: the one that the list is of where there was none. It lives until that is undone, or the list freed;
 * plans that the list makes are of it. */
SF_API const sf_graph *sf_primitives_graph(const sf_primitives *list);

/* The same as a graph of its own, which is for sf_graph_free. */
SF_API sf_status sf_primitives_copy_graph(const sf_primitives *list, sf_diag *diag, sf_graph **out);

/* How many there are, and the text of each, "layer_0/attn/q: shard kernel, dim 1 over model"; NULL past the last. */
SF_API int sf_primitives_count(const sf_primitives *list);
SF_API const char *sf_primitives_text(const sf_primitives *list, int index);

/* The plan that the primitives pin, as by sf_pin_step, and the plan that is searched with the
 * primitives fixed, as by sf_plan_search. `spec` gives all other fields, or is NULL; a field in
 * both is SF_EUSAGE. The plan keeps the applied primitives. */
SF_API sf_status sf_primitives_pin(const sf_primitives *list, const sf_plan_spec *spec,
                                   sf_diag *diag, sf_plan **out);
SF_API sf_status sf_primitives_search(const sf_primitives *list, const sf_plan_spec *spec,
                                      const sf_plan_options *options, sf_diag *diag, sf_plan **out);

/* Runs the step as the plan of sf_primitives_pin splits it, next to the unsplit, original step, as sf_verify_plan does. Where they
 * differ, SF_EMISMATCH, and *culprit is the first primitive with which they do, found by bisection, which the message
 * names; else -1. The report is for sf_verify_free. */
SF_API sf_status sf_primitives_verify(const sf_primitives *list, const sf_plan_spec *spec,
                                      const sf_verify_options *verify, sf_diag *diag,
                                      sf_verify_report **out, int *culprit);

#ifdef __cplusplus
}
#endif

#endif
