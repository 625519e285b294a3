/* Roles: the role of each argument of a step, by its next value and by the operands of the loss.
 * Names break ties, and decide alone for functions that are no steps. */
#ifndef SF_FRONT_ROLE_H
#define SF_FRONT_ROLE_H

#include "ir/graph.h"

/* Sets role and role_from of all arguments but those in the sidecar. `needed`, by value:
 * predecessors of the loss; NULL: there is none. State links are known. */
void sf_find_roles(sf_graph *graph, const bool *needed, bool is_step);

/* Whether one of the words of the name, in letters of either case, is in the list, which NULL ends. */
bool sf_name_has_word(const char *name, const char *const *words);

/* Whether the argument of the user's function that it is in is called what batches are called. */
bool sf_is_called_batch(const char *name);

/* Whether tensors of that type may be keys of a random generator. */
bool sf_may_be_key(const sf_type *type);

#endif
