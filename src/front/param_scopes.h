/* Scopes where the text has none: modules from the paths of parameters, as in params/layer_0/attn/q/kernel, and from which
 * nodes use them.
 *
 *     forward    what reads a parameter is in its module; what lies between two modules is in the deepest that has both or,
 *                between layer_0 and layer_1, in the first of them
 *     backward   where the parameters and values of the forward pass are that it reads; a gradient where its parameter is
 *     update     where the parameter and its state are
 *
 * These are guesses: the graph says so, and its text does not name them.
 */
#ifndef SF_FRONT_PARAM_SCOPES_H
#define SF_FRONT_PARAM_SCOPES_H

#include "ir/graph.h"

/* Only where all nodes are in the outermost scope. Roles, links, phases and gradients are known. */
void sf_find_param_scopes(sf_graph *graph);

#endif
