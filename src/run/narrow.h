/* Mixed precision: a step of f32 whose products are of bf16. Factors are rounded on their way in, sums are taken in f32; weights,
 * state and all that is no product stay f32. Products of which the text asks more precision than usual stay as they are. */
#ifndef SF_RUN_NARROW_H
#define SF_RUN_NARROW_H

#include "ir/graph.h"

/* A copy; free it with sf_graph_free. */
sf_graph *sf_narrow_products(const sf_graph *graph);

#endif
