/* The sidecar: JSON beside a step with the role of each argument, and the results that are outputs:
 * no argument's next value. It overrides only the names in it. */
#ifndef SF_FRONT_SIDECAR_H
#define SF_FRONT_SIDECAR_H

#include "base/diag.h"
#include "ir/graph.h"

/* Sets role and role_from of the arguments and is_output of results. `file` is for messages. */
sf_status sf_sidecar_read(const char *text, const char *file, sf_graph *graph, sf_diag *diag);

#endif
