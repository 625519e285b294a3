/* Constants that count the elements of dimensions: the divisors of means.
 *
 *     divide(reduce(x, dimension 2), 1024)                the mean over a dimension of 1024
 *     broadcast(divide(g, 1024)) into a new dimension     and its gradient */
#ifndef SF_PLAN_SHRINK_MEAN_COUNTS_H
#define SF_PLAN_SHRINK_MEAN_COUNTS_H

#include "ir/graph.h"

typedef struct sf_counted {
    sf_value value; /* whose dimensions are counted, or SF_NONE */
    uint32_t dims;  /* which: bit d is dimension d */
} sf_counted;

/* By node: of constants of the top block that do nothing else. */
sf_counted *sf_find_counted(const sf_graph *graph, sf_arena *arena);

/* The product of the dimensions in the set. */
int64_t sf_count_dims(const sf_type *type, uint32_t dims);

#endif
