/* The nodes that are recomputed, by kind (plan/spec.h):
 *
 *     none       nothing
 *     text       nodes that the text recomputes (front/remat.h), as with jax.checkpoint; the
 *                default
 *     layer      all of a layer but its outputs. Layers are scopes that are counted, layer_0 and
 *                layer_1; if the text has no names, the nodes between the places where the forward
 *                pass is narrowest
 *     cheap      values that take little time for their memory: all but large products,
 *                convolutions and lookups. Attention scores are cheap, and chains of element-wise
 *                ops
 *     full       within layers as by layer, elsewhere as by cheap
 *     parts      as full, but of each layer one part after the other (plan/layer_parts.h): the
 *                outputs of parts are recomputed for all of the layer, its other nodes once more
 *                when the backward pass goes through that part. Memory at a time is that of a part
 *                and not of a layer, for nearly one more forward pass
 *     layer:N    as layer, full:N as full, but of N layers together: less is kept, and more is
 *                recomputed at a time
 *     #N+N,...   ops by their numbers, those that are joined by + like a scope
 *     SCOPE,...  all in the scopes that these match, as the patterns of pins do, but their outputs
 *
 * Values that would need communication once more are kept in any case: partial sums that a plan
 * reduces. So are stacked outputs of a loop that is not unrolled: another loop reads them, and the
 * two loops are unrelated nodes. */
#ifndef SF_PLAN_RECOMPUTE_POLICY_H
#define SF_PLAN_RECOMPUTE_POLICY_H

#include "plan/recompute_clone.h"
#include "plan/spec.h"

/* Fills plan->recomputed: each node that is marked has a clone. SF_EMISMATCH if there are no
 * layers, SF_EUSAGE if a scope has no match. */
sf_status sf_plan_recompute(const sf_graph *graph, sf_plan *plan, const sf_recompute_spec *how,
                            sf_diag *diag);

/* The same including nodes that no later phase needs: for estimates, in which a copy in memory may
 * serve one that a later phase needs. */
sf_status sf_plan_spare(const sf_graph *graph, sf_plan *plan, const sf_recompute_spec *how,
                        sf_diag *diag);

/* By node: the nodes of the kind in a step that is not split; NULL: none, as when the kind does not
 * apply. In the arena. */
const bool *sf_recomputed_by(const sf_graph *graph, const sf_recompute_spec *how, sf_arena *arena);

/* Whether the text recomputes any node, and the step on one device if it does. */
bool sf_text_has_recompute(const sf_graph *graph);
sf_recomputed_step sf_recompute_as_text(const sf_graph *graph);

/* The number of layers of a step: the largest useful N of "full:N". */
uint32_t sf_count_layers(const sf_graph *graph);

/* Warns if a kind that the user chose cannot affect values that a loop keeps for the backward
 * pass. */
void sf_warn_kept_by_loops(const sf_graph *graph, const sf_plan *plan, sf_diag *diag);

/* How many nodes are recomputed. */
uint32_t sf_count_recomputed(const sf_graph *graph, const sf_plan *plan);

#endif
