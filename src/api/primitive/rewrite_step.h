/* Within api/: a step with parts of it replaced.
 *
 * The replacement computes the outputs of a part. Inner values that another node reads, as the
 * backward pass does, stay: the ops that make them are dropped only if they have no reader left,
 * and are merged with equal ops of the replacement. So gradients are those of the original step, of
 * unchanged values. */
#ifndef SF_API_PRIMITIVE_REWRITE_STEP_H
#define SF_API_PRIMITIVE_REWRITE_STEP_H

#include "front/normal.h"

/* A part: its inputs, its outputs, and the function that builds its replacement. */
typedef struct sf_part {
    int ninputs, noutputs;
    const sf_value *inputs, *outputs;
    /* By output: the one node that reads the replacement, if others still read the original;
     * SF_NONE: all do. NULL: all do, of all. */
    const uint32_t *readers;
    const sf_scope *scope; /* of the replacement, in the pool of the step; */
    const char *name;      /* below which it is called so, or NULL */
    sf_phase phase;
    sf_loc loc;
    /* Adds the replacement at the emitter's place. */
    sf_status (*build)(const void *context, sf_emitter *emitter, const sf_value *inputs,
                       sf_diag *diag, sf_value *outputs);
    const void *context;
} sf_part;

/* *out is a graph of its own, arranged as import does. SF_EMISMATCH, at the part, if types differ,
 * or if an output of a part leads to its input. */
sf_status sf_rewrite(const sf_graph *graph, int nparts, const sf_part *parts, sf_diag *diag,
                     sf_graph **out);

#endif
