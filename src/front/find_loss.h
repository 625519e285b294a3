/* The loss: of the numbers that a step reports, the one that most state is trained by. What the sidecar calls the loss is
 * the loss.
 */
#ifndef SF_FRONT_FIND_LOSS_H
#define SF_FRONT_FIND_LOSS_H

#include "ir/graph.h"

/* By value: the argument that it becomes, plus one; 0 for all but new state. For sf_free. */
uint32_t *sf_find_new_state(const sf_graph *graph);

/* The result, or SF_NONE. `kept`, by argument: it is state. Without `linked` no state links are known yet: `becomes` is zero,
 * and `kept` is what may be state. */
uint32_t sf_guess_loss(const sf_graph *graph, const uint32_t *becomes, const bool *kept,
                       bool linked);

/* By value: what the result needs; NULL for SF_NONE. For sf_free. */
bool *sf_needed_by(const sf_graph *graph, const uint32_t *becomes, uint32_t result);

#endif
