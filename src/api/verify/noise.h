/* A step with noise of the size of rounding, to find out how much rounding matters to it.
 *
 * A split step differs from the unsplit one where something is added up: sums of parts are rounded, and added in
 * another order. All else is done to the same numbers in the same way, and gives the same bits. So the noise is there:
 * every float that goes into such an op, and every one that comes out, is multiplied by 1 + a or 1 - a. That moves a sum by
 * about as much as rounding each of its terms does, also where the terms cancel, and it moves nothing where nothing is
 * rounded: zeros stay zeros, and small whole numbers, whose sums are exact (masks, counts), stay what they are.
 *
 * `a` is some times what rounding does (SF_NOISE_UNITS), so that the noise finds nearly all that rounding could do: an
 * element that is near enough to a jump to be pushed over it by rounding is pushed over it by one of two runs with
 * opposite noise, unless the noise there happens to be several dozen times smaller than it usually is. 16 bits are too
 * coarse for that: there it is about two units in the last place. */
#ifndef SF_API_NOISE_H
#define SF_API_NOISE_H

#include "ir/graph.h"

/* How many times the largest rounding error of one operation: of float32 and wider, of 16 bits, and of fewer. */
enum { SF_NOISE_UNITS = 64, SF_NOISE_UNITS_NARROW = 4, SF_NOISE_UNITS_NARROWEST = 1 };

/* What the noisy step takes behind the arguments of the step: which pattern of noise, u32, and its sign, f32: 1 or -1,
 * or 0 for none. */
enum { SF_NOISE_PATTERN, SF_NOISE_SIGN, SF_NOISE_ARGUMENTS };

/* The step with noise, in a pool derived from the step's; its results are those of the step. */
sf_graph *sf_noisy_graph(const sf_graph *graph);

#endif
