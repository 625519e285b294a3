/* Layers of a step: similar consecutive parts of its forward pass.
 *
 * They are numbered scopes, layer_0 and layer_1, the outermost of those. If most of one such scope
 * is in inner numbered scopes that have several products each and follow each other, as in
 * stage_2/layer_0 and stage_2/layer_1, the inner ones are the layers; heads and experts are
 * parallel, so they are not. If the text has no names, layers are the nodes between the places
 * where the forward pass is narrowest, at least one product in each. Nodes between layers, such as
 * the sums of a residual stream, belong to the last layer that they read. */
#ifndef SF_PLAN_LAYERS_H
#define SF_PLAN_LAYERS_H

#include "ir/uses.h"

enum { SF_NO_LAYER = 0 };

typedef struct sf_layers {
    uint32_t count; /* before any were taken together */
    uint32_t *of;   /* by node: its layer, from 1 on, or SF_NO_LAYER */
} sf_layers;

/* `group` of them count as one. is_free is by node: it depends on constants alone and belongs to no
 * layer. Lives in the arena. */
sf_layers sf_find_layers(const sf_graph *graph, const sf_uses *uses, const bool *is_free,
                         uint32_t group, sf_arena *arena);

/* Of places first ... end - 1 of the top block: the least bytes that cross one of them, between the
 * first product and the last; and the cuts, after each place that at most `most` bytes cross and
 * that has a product since the last cut. `counts`, by node, marks the nodes that matter. Layers of
 * the graph are cut so, and parts of one (plan/layer_parts.h). */
double sf_least_width(const sf_graph *graph, const bool *counts, const double *widths,
                      uint32_t first, uint32_t end);
void sf_cut_narrow(const sf_graph *graph, const bool *counts, const double *widths, double most,
                   uint32_t first, uint32_t end, sf_layers *out);

#endif
