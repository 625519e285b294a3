/* Spaces: a plan that is built step by step, by the three primitives of nnScaler (Lin et al., OSDI 2024, section 3):
 *
 *     sf_trans     cuts ops into parts along a factor, in space or in time; or has them recomputed
 *     sf_assign    places ops on devices
 *     sf_order     one task before another
 *
 * The planner finds all else: ops go with their neighbours, splits propagate, gradients follow
 * their forward ops, and a search completes the order. The result is a plan like any other.
 * docs/guides/pipelines.md describes it.
 *
 * Ops are named by patterns, separated by commas: "layer_0,layer_1", "layer_?/mlp/up/dot_general".
 * A pattern matches ops of the forward pass as that of a pin does: their scope followed by the name
 * of the op, or an outer scope. NULL, "": all ops. */
#ifndef SHEAF_SPACE_H
#define SHEAF_SPACE_H

#include "sheaf/plan.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sf_space sf_space;

/* An empty space. Devices are those of the plan, numbered as its ranks are. The graph outlives the space, which belongs to
 * one thread at a time. *out is for sf_space_free. */
SF_API sf_status sf_space_new(const sf_graph *graph, int devices, sf_diag *diag, sf_space **out);
SF_API void sf_space_free(sf_space *space);

/* Writes a line for each of the ops: its name, and the letters of the factors along which it can be
 * split, with their sizes. docs/reference/ops.md lists the letters of each kind of op. */
SF_API sf_status sf_space_factors(const sf_graph *graph, const char *ops, const sf_output *output,
                                  sf_diag *diag);

typedef enum sf_where {
    SF_IN_SPACE = 0, /* each part on other devices */
    SF_IN_TIME = 1,  /* one part after the other */
} sf_where;

/* Transforms ops into `parts` parts each:
 *
 *     "i", "j", ...    along the factor of that letter. Of several ops, those that have it and can be cut evenly; where there is
 *                      none, SF_EUSAGE says why. In time, heads or features then come one after the other on the same devices
 *     "batch"          along the examples: in space data parallel, in time micro-batches. All ops, so `ops` is NULL
 *     "recompute"      the ops are not kept for the backward pass, but recomputed; `parts` is 1. All ops: in each layer
 *
 * Splits in space of as many parts are along one axis of the mesh. */
SF_API sf_status sf_trans(sf_space *space, const char *ops, const char *how, int parts,
                          sf_where where, sf_diag *diag);

/* The names of transformations that are no factors, by number; NULL past the last. */
SF_API const char *sf_trans_name(int index);

/* Every micro-batch, or all of them. */
enum { SF_EVERY = -1 };

/* Places ops on devices, in all micro-batches (SF_EVERY) or in one. Ops on the same devices are one stage of a pipeline, or
 * several where data goes back and forth; devices of two are the same, or others, or, where one is on the devices of
 * several others, all of theirs. SF_EUSAGE for devices that do not exist, and for ops that have others already. */
SF_API sf_status sf_assign(sf_space *space, const char *ops, int microbatch, const int *devices,
                           int ndevices, sf_diag *diag);

typedef enum sf_pass {
    SF_PASS_FORWARD = 0,
    SF_PASS_BACKWARD =
        1, /* all gradients; those of inputs alone where a task has those of weights */
    SF_PASS_WEIGHTS = 2, /* gradients of weights */
} sf_pass;

/* A task: the nodes of one pass over some ops, on their devices, in one micro-batch. */
typedef struct sf_task {
    size_t size; /* sizeof this struct, see api.h */
    const char *ops;
    sf_pass pass;
    int microbatch; /* the micro-batch, from 0 on; SF_EVERY: each */
    int round; /* where several forward passes go through the ops, one after the other: 1 is the first; 0: all */
} sf_task;

/* One task before another, on the devices that both are on. Where both are of every micro-batch, micro-batch by micro-batch. Orders that
 * follow from data need not be given. */
SF_API sf_status sf_order(sf_space *space, const sf_task *before, const sf_task *after,
                          sf_diag *diag);

/* Makes the plan. From the specification, which may be NULL, it takes the mesh of the devices of a
 * group (splits are along its axes; other axes that they need are added to it), pins on it, the
 * recipe for devices that splits leave over, the order of tasks where the space gives none, scopes
 * to recompute, passes, kernels and memory; other fields follow from the space, and are SF_EUSAGE.
 * *out is for sf_plan_free; the space may be changed, and planned once more. SF_EUSAGE, with the
 * reason, for contradictions: a cycle of orders is reported with its tasks. */
SF_API sf_status sf_space_plan(const sf_space *space, const sf_plan_spec *spec, sf_diag *diag,
                               sf_plan **out);

#ifdef __cplusplus
}
#endif

#endif
