/* The sidecar: JSON beside a step with the roles of arguments, the state links, and the results that are outputs: no
 * argument's next value. An argument whose entry has no role gets the role that data flow gives it. */
#ifndef SF_FRONT_SIDECAR_H
#define SF_FRONT_SIDECAR_H

#include "base/diag.h"
#include "ir/graph.h"

/* Sets role and role_from of the arguments and is_output of results. `file` is for messages. *state is the list of state
 * links, as of sf_load_options, in the arena of the graph; NULL: the sidecar has none. */
sf_status sf_sidecar_read(const char *text, const char *file, sf_graph *graph, const char **state,
                          sf_diag *diag);

#endif
