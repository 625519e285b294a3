/* State links: which result becomes which argument in the next step.
 *
 * The sources, best first: the user's word; names, where an argument of the user's function, or a
 * part of one, comes back as a whole; aliases in the text, which only say that two tensors may
 * share memory; position and type. Without the user's word, only a function whose new state derives
 * from the old, by elementwise ops, counts as a step: a function that returns gradients has results
 * of the same names and types. */
#ifndef SF_FRONT_STATE_LINKS_H
#define SF_FRONT_STATE_LINKS_H

#include "base/diag.h"
#include "ir/graph.h"

/* The user's word, or NULL: "ARGUMENT=RESULT,...", each a number or a name, or "none". Fills next
 * and next_from of all arguments; next initially has the text's aliases. */
sf_status sf_link_state(sf_graph *graph, const char *state, sf_diag *diag);

bool sf_any_link(const sf_graph *graph);

#endif
