/* The sidecar: JSON beside a step that tells the role of each argument, and which results are outputs: nobody's next
 * state. It overrides what it names and nothing else.
 */
#ifndef SF_FRONT_SIDECAR_H
#define SF_FRONT_SIDECAR_H

#include "base/diag.h"
#include "ir/graph.h"

/* Sets role and role_from of the arguments and is_output of results. `file` is for messages. */
sf_status sf_sidecar_read(const char *text, const char *file, sf_graph *graph, sf_diag *diag);

#endif
