/* Roles and state: the role of each argument, and the result that replaces it in the next step.
 *
 *     sidecar.h   what a file beside the step says of roles
 *     state_links.h      which result becomes which argument: flow_links.c, alias_links.c, name_links.c, tree_links.c, order_links.c
 *     find_loss.h        which result is the loss
 *     elementwise_state.h    which results are made from which arguments element by element, as new state is from the old
 *     role.h      parameters, optimizer state, batch and keys
 *     lost_state.h     values that look like state, but would be lost
 *
 * Each finding keeps its source, so that it can be shown. */
#ifndef SF_FRONT_ROLES_AND_STATE_H
#define SF_FRONT_ROLES_AND_STATE_H

#include "front/import.h"

/* Fills role, role_from, next, next_from and is_loose of the graph's arguments and is_loss, loss_from and is_loose of its
 * results. What is said binds, on the command line or in the sidecar. With `strict`, guesses against it are errors. */
sf_status sf_state_infer(sf_graph *graph, const sf_import_options *options, sf_diag *diag);

#endif
