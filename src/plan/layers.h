/* Layers of a step: parts of its forward pass, one behind the other, that are much alike.
 *
 * They are scopes that are counted, layer_0 and layer_1, the outermost of those; but where most of one of these is in others that are
 * counted, have several products each and go on from each other, as in stage_2/layer_0 and stage_2/layer_1, it is those: heads and
 * experts stand beside each other. Where the text has no names, what lies
 * between the places where the forward pass is narrowest, one product at least in each. What stands between layers, such
 * as the sums of a residual stream, belongs to the last of those that it reads.
 */
#ifndef SF_PLAN_LAYERS_H
#define SF_PLAN_LAYERS_H

#include "ir/uses.h"

enum { SF_NO_LAYER = 0 };

typedef struct sf_layers {
    uint32_t count; /* before any were taken together */
    uint32_t *of;   /* by node: its layer, from 1 on, or SF_NO_LAYER */
} sf_layers;

/* `group` of them are taken together as one. is_free says, by node, what depends on constants alone and belongs nowhere.
 * Lives in the arena. */
sf_layers sf_find_layers(const sf_graph *graph, const sf_uses *uses, const bool *is_free,
                         uint32_t group, sf_arena *arena);

/* Of places first ... end - 1 of the top block: the least bytes that are handed over one, between the first product and the last;
 * and cutting there, behind each that hands over no more than `most` and has a product before it since the last cut. `counts`, by
 * node, says which have a part in it. Layers of the graph are cut so, and parts of one (plan/layer_parts.h). */
double sf_least_width(const sf_graph *graph, const bool *counts, const double *widths,
                      uint32_t first, uint32_t end);
void sf_cut_narrow(const sf_graph *graph, const bool *counts, const double *widths, double most,
                   uint32_t first, uint32_t end, sf_layers *out);

#endif
