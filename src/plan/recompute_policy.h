/* What is computed again, by a word of the user:
 *
 *     none       nothing
 *     text       what the text computes again (front/remat.h), as jax.checkpoint has it; it is what NULL means
 *     layer      all of a layer but what leaves it. Layers are scopes that are counted, layer_0 and layer_1; where the
 *                text has no names, what lies between the places where the forward pass is narrowest
 *     cheap      what takes little time for the memory that it would hold: all but large products, convolutions and
 *                what looks things up. Attention scores are cheap, and chains of element-wise ops
 *     full       within layers as by layer, elsewhere as by cheap
 *     parts      as full, but of each layer one part after the other (plan/layer_parts.h): what leaves a part is computed again for
 *                all of the layer, the rest of it once more when the backward pass goes through that part. What stands at once is
 *                that of a part and not of a layer, for nearly one more forward pass
 *     layer:N    as layer, full:N as full, but of N layers together: less is kept, and more at once computed again
 *     #N+N,...   ops by their numbers, those that are joined by + like a scope
 *     SCOPE,...  all in the scopes that these match, as the patterns of pins do, but what leaves them
 *
 * What would have to be sent again is kept in any case: what a plan makes in parts, and reduces. So is what a loop that stays
 * puts aside, turn by turn: another loop reads it, and nothing in one of them says what the other computes.
 */
#ifndef SF_PLAN_RECOMPUTE_POLICY_H
#define SF_PLAN_RECOMPUTE_POLICY_H

#include "plan/recompute_clone.h"

/* Fills plan->again: each node that is marked has a twin. SF_EMISMATCH where there are no layers, SF_EUSAGE where a scope matches nothing. */
sf_status sf_plan_recompute(const sf_graph *graph, sf_plan *plan, const char *how, sf_diag *diag);

/* The same with what no later phase asks for, too: for estimates, where it may stand in memory for what one does ask for. */
sf_status sf_plan_spare(const sf_graph *graph, sf_plan *plan, const char *how, sf_diag *diag);

/* By node: what the word means in a step that nothing splits; NULL: nothing, as where it means nothing there. In the arena. */
const bool *sf_recomputed_by(const sf_graph *graph, const char *how, sf_arena *arena);

/* Whether the text computes anything again, and the step on one device where it does. */
bool sf_text_has_recompute(const sf_graph *graph);
sf_recomputed_step sf_recompute_as_text(const sf_graph *graph);

/* Layers that it sees in a step: what N of "full:N" may usefully be up to. */
uint32_t sf_count_layers(const sf_graph *graph);

/* A warning where a word of the user cannot act on what a loop that stays keeps for the backward pass. */
void sf_warn_kept_by_loops(const sf_graph *graph, const sf_plan *plan, sf_diag *diag);

/* How many nodes are computed again. */
uint32_t sf_count_recomputed(const sf_graph *graph, const sf_plan *plan);

#endif
