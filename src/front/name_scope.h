/* From the name path of an op to its scope.
 *
 * JAX writes the origin of an op as a path:
 * "jit(step)/transpose(jvp(LM))/layer_0/attn/q/dot_general". The last part is the primitive. Of the
 * others, program transformations, control flow and nested jits are dropped; the remaining parts
 * are the user's module path: "layer_0/attn/q". */
#ifndef SF_FRONT_NAME_SCOPE_H
#define SF_FRONT_NAME_SCOPE_H

#include "ir/attr.h"

/* `iterations` numbers the unrolled loops around the op, outermost first: the module name that
 * follows the Nth "while/body" gets "_<iteration>" appended, so that the layers of a scan read
 * layers_0, layers_1, ... `path` may be NULL. */
const sf_scope *sf_scope_of_path(sf_pool *pool, const char *path, int nloops,
                                 const int64_t *iterations);

#endif
