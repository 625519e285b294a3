/* Roles and state: what each argument is for, and which result becomes it in the next step.
 *
 * The sources, best first: the user's word, the sidecar JSON, aliasing in the text, names of arguments
 * and results, position and type. Each finding keeps its source, so that it can be shown. Position is
 * believed only of a step that reports a loss, and roles follow from the flow of data only where there
 * is state: of any other function nothing is guessed.
 *
 * The user's word is "ARGUMENT=RESULT,...", each a number or a name, or "none".
 */
#ifndef SF_FRONT_STATE_H
#define SF_FRONT_STATE_H

#include "front/import.h"

/* Fills role, role_from, next and next_from of the graph's arguments and is_loss of its results. */
sf_status sf_state_infer(sf_graph *graph, const sf_import_options *options, sf_diag *diag);

#endif
