/* A step with noise of the size of rounding, to measure the effect of rounding on it.
 *
 * A split step differs from the unsplit one in sums: partial sums are rounded, and added in another
 * order. All other ops compute the same bits from the same numbers. So the noise is in sums: every
 * float that goes into such an op, and every one that comes out, is multiplied by 1 + a or 1 - a.
 * That moves a sum by about as much as rounding each of its terms does, also if the terms cancel,
 * and it has no effect where there is no rounding: zeros stay zeros, and small whole numbers, whose
 * sums are exact (masks, counts), stay unchanged.
 *
 * A product whose algorithm asks for a narrower type may round its operands to that, and a kernel that goes on with its result that
 * one, too: there `a` is of that type.
 *
 * `a` is some times the rounding error (SF_NOISE_UNITS), so that the noise finds nearly all effects
 * of rounding: an element that rounding could push over a discontinuity is pushed over it by one of
 * two runs with opposite noise, unless the noise there happens to be several dozen times smaller
 * than usual. 16 bits are too coarse for that: there it is about two units in the last place. */
#ifndef SF_API_NOISE_H
#define SF_API_NOISE_H

#include "ir/graph.h"

/* How many times the largest rounding error of one operation: of float32 and wider, of 16 bits, and of fewer. */
enum { SF_NOISE_UNITS = 64, SF_NOISE_UNITS_NARROW = 4, SF_NOISE_UNITS_NARROWEST = 1 };

/* The arguments of the noisy step after those of the step: the pattern of noise, u32, and its sign,
 * f32: 1 or -1, or 0 for none. */
enum { SF_NOISE_PATTERN, SF_NOISE_SIGN, SF_NOISE_ARGUMENTS };

/* The step with noise, in a pool derived from the step's; its results are those of the step. */
sf_graph *sf_noisy_graph(const sf_graph *graph);

#endif
