/* Spaces: a plan that is said piece by piece, by the three primitives of nnScaler (Lin et al., OSDI 2024, section 3):
 *
 *     sf_trans     cuts ops into parts along a factor, in space or in time; or has them computed again
 *     sf_assign    places ops on devices
 *     sf_order     one task before another
 *
 * What is not said is found: ops go with their neighbours, splits spread, gradients follow the ops that they are of, and a search
 * completes the order. What comes out is a plan like any other. docs/pipelines.md describes it.
 *
 * Ops are named by patterns, separated by commas: "layer_0,layer_1", "layer_?/mlp/up/dot_general". A pattern matches ops of the
 * forward pass as that of a pin does: their scope with the name of the op behind it, or what that is in. NULL, "": all ops.
 */
#ifndef SHEAF_SPACE_H
#define SHEAF_SPACE_H

#include "sheaf/plan.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sf_space sf_space;

/* Nothing is said yet. Devices are those of the plan, numbered as its ranks are. The graph outlives the space, which belongs to
 * one thread at a time. *out is for sf_space_free. */
SF_API sf_status sf_space_new(const sf_graph *graph, int devices, sf_diag *diag, sf_space **out);
SF_API void sf_space_free(sf_space *space);

/* Writes a line for each of the ops: its name, and the letters of the factors that it can be cut along, with their sizes.
 * docs/ops.md has what the letters of each kind of op are. */
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
 *     "recompute"      the ops are not kept for the backward pass, but computed again; `parts` is 1. All ops: in each layer
 *
 * Splits in space of as many parts are along one axis of the mesh. */
SF_API sf_status sf_trans(sf_space *space, const char *ops, const char *how, int parts,
                          sf_where where, sf_diag *diag);

/* The names of transformations that are no factors, by number; NULL past the last. */
SF_API const char *sf_trans_name(int index);

/* Every turn, or all turns. */
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

/* A task: what a pass computes of some ops, on the devices that they are assigned to, in one turn. This struct will not grow. */
typedef struct sf_task {
    const char *ops;
    sf_pass pass;
    int microbatch; /* the micro-batch, from 0 on; SF_EVERY: each */
    int round; /* where several forward passes go through the ops, one after the other: 1 is the first; 0: all */
} sf_task;

/* One task before another, on the devices that both are on. Where both are of every turn, turn by turn. What data says anyway
 * need not be said. */
SF_API sf_status sf_order(sf_space *space, sf_task before, sf_task after, sf_diag *diag);

typedef struct sf_space_options {
    size_t size; /* of this struct, or 0: see sheaf.h */
    /* For the devices that splits leave over, and for what they leave whole: "dp", "megatron", ...; NULL: none. */
    const char *recipe;
    /* The order of tasks, by name or as a file, where none is said: as of sf_pin_options. NULL: the search finds one. */
    const char *schedule;
    /* How the devices that ops are assigned to stand, "data=2,model=2": splits are along these axes, and others that they need come
     * beside them; NULL: as splits need it. Pins hold there, and scopes are computed again, as of sf_pin_options. */
    const char *mesh;
    const char *const *pins;
    int npins;
    const char *recompute; /* or NULL */
} sf_space_options;

/* Makes the plan. *out is for sf_plan_free; the space may be changed, and asked again. SF_EUSAGE, with the reason, where what was
 * said cannot be: orders that go in a circle are told with their tasks. `options` may be NULL. */
SF_API sf_status sf_space_plan(const sf_space *space, const sf_space_options *options,
                               sf_diag *diag, sf_plan **out);

#ifdef __cplusplus
}
#endif

#endif
