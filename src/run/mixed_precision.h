/* Mixed precision: a step of f32 whose products are of fewer bits. Factors are rounded on their way
 * in, sums are taken in f32; weights, state and all other ops stay f32. Products that the text
 * wants more precise than usual stay as they are.
 *
 * bf16 has the range of f32. f16 and fp8 have not: a gradient would become zeros. So each factor is
 * multiplied by a power of two that
 * brings its largest magnitude next to the largest of the type, and the product divided by both:
 *
 *     p = the power of two next to max |x|         x' = round(x * 2^top / p)         x y = (x' y')
 *                                                  * (p / 2^top) (q / 2^top)
 *
 * Powers of two change no bits of a number, so such a product loses only rounding errors, and
 * elements that are smaller than the largest of their tensor by more than the type's range. There
 * is no state, no adaptation, and no skipped step. Products with batches, those of attention, and
 * convolutions are of bf16 then; so are, for fp8, those with a size that is no multiple of 16. */
#ifndef SF_RUN_MIXED_PRECISION_H
#define SF_RUN_MIXED_PRECISION_H

#include "ir/graph.h"
#include "run/engine/engine.h"

bool sf_narrows(sf_precision precision);

/* A copy; free it with sf_graph_free. `has_fp8`: who runs it multiplies fp8; else its numbers are, as bf16, which has all of them. */
sf_graph *sf_narrow_products(const sf_graph *graph, sf_precision precision, bool has_fp8);

#endif
