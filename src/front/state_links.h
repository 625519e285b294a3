/* State links: which result becomes which argument in the next step.
 *
 * The sources, best first: the user's word; aliases in the text; names, where an argument of the user's function, or a part
 * of one, comes back as a whole; position and type. The first two are known and bind, but for aliases that the text itself
 * shows to be of memory only. The others are guesses: none makes state of what the sidecar says is fed, nor of a tensor
 * into which the step puts what it knows of each sample. Only what has new state that grows from the old, by ops on single
 * elements, is believed to be a step: a function that returns gradients has results of the same names and types.
 */
#ifndef SF_FRONT_STATE_LINKS_H
#define SF_FRONT_STATE_LINKS_H

#include "base/diag.h"
#include "ir/graph.h"

/* What is said, by `from`, or NULL: "ARGUMENT=RESULT,...", each a number or a name, or "none". Fills next and next_from of all
 * arguments; of aliases, next holds what the text said. Roles that the sidecar gives are set. What contradicts something
 * known is a warning or, with `strict`, SF_EINPUT. */
sf_status sf_link_state(sf_graph *graph, const char *state, sf_source from, bool strict,
                        sf_diag *diag);

bool sf_any_link(const sf_graph *graph);

#endif
