/* State links: which result becomes which argument in the next step.
 *
 * A link is judged by its evidence, best first: the user's word; the flow of data, where there is one way alone to give each
 * argument a result that grows from it, by ops on single elements or by writing into a part (flow_links.c); aliases in the
 * text, which pair by type (alias_links.c); names, where an argument of the user's function, or a part of one, comes back as
 * a whole; position and type. The first binds. Sheaf warns of an alias that the flow of data contradicts. No guess makes state of
 * what is said to be fed, nor of a tensor into which the step puts what it knows of each sample. Only what has new state that
 * grows from the old is believed to be a step: a function that returns gradients has results of the same names and types.
 */
#ifndef SF_FRONT_STATE_LINKS_H
#define SF_FRONT_STATE_LINKS_H

#include "base/diag.h"
#include "ir/graph.h"

/* `user` and `sidecar`: what is said on the command line and beside the step, or NULL: "ARGUMENT=RESULT,...", each a number or
 * a name, the result none where there is none, or "none" for no links. The user's links are added to what is found; those
 * of the sidecar are all that there are. Fills next and next_from of all arguments; of aliases, next holds what the text
 * said. Roles that the sidecar gives are set. What contradicts something known is a warning or, with `strict`, SF_EINPUT. */
sf_status sf_link_state(sf_graph *graph, const char *user, const char *sidecar, bool strict,
                        sf_diag *diag);

bool sf_any_link(const sf_graph *graph);

#endif
