/* A step, folded: a few short steps (plan/fold/shorten.h) that stand for it.
 *
 * With the same plan specification, time and memory of a step are affine in the number of its equal layers. So they are a weighted
 * sum over short steps: one with the fewest layers of every stack, and for each number of layers that stacks have, one with a layer
 * more in these. A step that does not repeat is its own, with weight 1. Time is exact but for the ends; the peak of memory may be
 * elsewhere in a long step than in a short one. test/search/specs/folded_test.c measures both errors. */
#ifndef SF_SEARCH_SPECS_FOLDED_H
#define SF_SEARCH_SPECS_FOLDED_H

#include "ir/graph.h"

enum { SF_MOST_SHORT_STEPS = 6 };

/* What folding may be off by, as parts of time and memory. */
#define SF_FOLD_TIME_ERROR 0.01
#define SF_FOLD_MEMORY_ERROR 0.1

typedef struct sf_folded {
    const sf_graph *whole;
    int count;
    const sf_graph *steps[SF_MOST_SHORT_STEPS];
    double weight[SF_MOST_SHORT_STEPS];
} sf_folded;

void sf_fold_step(const sf_graph *whole, sf_folded *out);
void sf_folded_free(sf_folded *folded);

#endif
