/* Parts of layers: the nodes between the places inside a layer where the forward pass is narrowest,
 * at least one product in each, such as attention and the feed-forward net after it; cheap values
 * (plan/cheap_recompute.h) do not count as width. A layer that several passes go through has parts
 * in each of them. */
#ifndef SF_PLAN_LAYER_PARTS_H
#define SF_PLAN_LAYER_PARTS_H

#include "plan/cheap_recompute.h"
#include "plan/layers.h"

/* By node: its part, from 1 on, or SF_NO_LAYER where it is in no layer. Lives in the arena. */
sf_layers sf_find_layer_parts(const sf_graph *graph, const bool *is_free, const sf_light *light,
                              const sf_layers *layers, sf_arena *arena);

#endif
