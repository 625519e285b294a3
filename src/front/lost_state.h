/* State that got lost: results that look like new state, and arguments that are called state, of a step that links other
 * results to arguments, but not those. To go on without them would train something else.
 *
 * A result looks like new state when it grows from an argument of its type that nothing becomes (elementwise_state.h), and that is
 * of a type that other state has, or counts; so does a key for the next step where the key of this one comes from
 * nowhere. Gradients do not grow from parameters, and what is made from the batch has other types. The user's word
 * settles it: --state, or "outputs" in the sidecar.
 */
#ifndef SF_FRONT_LOST_STATE_H
#define SF_FRONT_LOST_STATE_H

#include "base/diag.h"
#include "ir/graph.h"

/* Sets is_loose of arguments and results. Links and roles are known, by other words than --state. */
void sf_find_loose(sf_graph *graph);

/* Says what is loose, if anything is: as a warning, or as an error. */
void sf_warn_loose(const sf_graph *graph, sf_diag *diag);
sf_status sf_refuse_loose(const sf_graph *graph, sf_diag *diag);

#endif
