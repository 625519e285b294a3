/* From the name path of an op to its scope and phase.
 *
 * JAX writes where an op comes from as a path: "jit(step)/transpose(jvp(LM))/layer_0/attn/q/dot_general".
 * The last part is the primitive. Of the rest, program transformations tell the phase, control flow
 * and nested jits are left out, and what remains is the user's module path: "layer_0/attn/q", backward.
 */
#ifndef SF_FRONT_SCOPE_H
#define SF_FRONT_SCOPE_H

#include "ir/graph.h"

typedef struct sf_place {
    const sf_scope *scope;
    sf_phase phase;
    bool has_phase; /* the path told the phase */
} sf_place;

/* `iterations` numbers the unrolled loops around the op, outermost first: the module name that
 * follows the Nth "while/body" gets "_<iteration>" appended, so that the layers of a scan read
 * layers_0, layers_1, ... `path` may be NULL. */
sf_place sf_place_of(sf_pool *pool, const char *path, int nloops, const int64_t *iterations);

/* Phases for the nodes that no path told: by the flow of data. `told` is indexed by node id. */
void sf_phases_from_flow(sf_graph *graph, const bool *told);

#endif
