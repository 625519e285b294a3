/* Lost state: results that look like new state, and arguments that are named as state, of a step
 * that links other results to arguments, but not those. Training without these links would be a
 * different one.
 *
 * A result looks like new state when it is derived from an argument of its type that has no link
 * (elementwise_state.h), and has a type that other state has, or counts; so does a key for the next
 * step if the key of this one has no source. Gradients are not derived from parameters element by
 * element, and values made from the batch have other types. The user decides: --state, or "outputs"
 * in the sidecar. */
#ifndef SF_FRONT_LOST_STATE_H
#define SF_FRONT_LOST_STATE_H

#include "base/diag.h"
#include "ir/graph.h"

/* Sets is_loose of arguments and results. Links and roles are known. `complete`: the user gave all links, so that only
 * arguments that are state by the sidecar can be without one. */
void sf_find_loose(sf_graph *graph, bool complete);

/* Lists missing links, if there are any: as a warning, or as an error. */
void sf_warn_loose(const sf_graph *graph, sf_diag *diag);
sf_status sf_refuse_loose(const sf_graph *graph, sf_diag *diag);

#endif
