/* Within api/: a step with parts of it replaced.
 *
 * What a part makes is made by what comes in its place. Values inside of the part that something else reads, as the backward pass
 * does, stay: the ops that make them are dropped only where nobody reads them any more, and are one with those of the
 * replacement where that computes the same. So gradients are those of the step as it was, of values that are as they were.
 */
#ifndef SF_API_PRIMITIVE_REWRITE_STEP_H
#define SF_API_PRIMITIVE_REWRITE_STEP_H

#include "front/normal.h"

/* A part: what comes into it, what it makes, and what to make that by. */
typedef struct sf_part {
    int ninputs, noutputs;
    const sf_value *inputs, *outputs;
    /* By output: the one node that reads what comes in its place, where others still read what it was; SF_NONE: all do. NULL: all
     * do, of all. */
    const uint32_t *readers;
    const sf_scope *scope; /* of the replacement, in the pool of the step; */
    const char *name;      /* below which it is called so, or NULL */
    sf_phase phase;
    sf_loc loc;
    /* Adds the replacement where the emitter stands. */
    sf_status (*build)(const void *context, sf_emitter *emitter, const sf_value *inputs,
                       sf_diag *diag, sf_value *outputs);
    const void *context;
} sf_part;

/* *out is a graph of its own, arranged as import does. SF_EMISMATCH, at the part, where types differ, or where what a part makes
 * goes into it again. */
sf_status sf_rewrite(const sf_graph *graph, int nparts, const sf_part *parts, sf_diag *diag,
                     sf_graph **out);

#endif
