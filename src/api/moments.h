/* Which optimizer state belongs to which weight, and where it says that a gradient was zero.
 *
 * Adam divides a gradient by its own size. Where a gradient is zero in mathematics (the key biases
 * of attention, a bias in front of a normalisation), what the machine computes is rounding noise,
 * and the weight takes a step of up to the learning rate in an arbitrary direction. Two good runs
 * then differ in such weights, and the moments tell why: there they are tiny against the same
 * moment of other weights, and differ as well.
 *
 * A family is one moment of all weights. Its noise level is a small fraction of the largest element
 * in it; for a family without a negative element, that is one of squares, the square of that
 * fraction.
 */
#ifndef SF_API_MOMENTS_H
#define SF_API_MOMENTS_H

#include "ir/graph.h"
#include "ir/tensor.h"

typedef struct sf_moment {
    uint32_t weight, state; /* results of the step; of one type */
    uint32_t family;
} sf_moment;

typedef struct sf_moments {
    size_t count, capacity;
    sf_moment *at;
    size_t nfamilies, family_capacity;
    const char **families; /* what their names have in common */
    double *noise;         /* by family: elements of this size are zero up to rounding */
} sf_moments;

/* Pairs weights and states by their names (the longest common ending, in words: "opt[0].mu['w']"
 * goes with "params['w']"), or, where no name fits, by order: states whose types repeat those of
 * the weights. `results` are those of a good run; `noise` is the fraction. Everything lives in the
 * arena. */
void sf_moments_find(const sf_graph *graph, const sf_tensor *results, double noise, sf_arena *arena,
                     sf_moments *out);

#endif
