/* Roles and state: the role of each argument, and the result that replaces it in the next step.
 *
 *     sidecar.h   roles from a file beside the step
 *     state_links.h      which result becomes which argument
 *     elementwise_state.h    which results are made from which arguments element by element, as new
 *                            state is from the old
 *     role.h      parameters, optimizer state, batch and keys
 *     lost_state.h     values that look like state, but would be lost
 *
 * Each finding keeps its source, so that it can be shown. */
#ifndef SF_FRONT_ROLES_AND_STATE_H
#define SF_FRONT_ROLES_AND_STATE_H

#include "front/import.h"

/* Fills role, role_from, next, next_from and is_loose of the graph's arguments and is_loss and is_loose of its results. */
sf_status sf_state_infer(sf_graph *graph, const sf_import_options *options, sf_diag *diag);

#endif
