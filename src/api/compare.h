/* Comparing the results of a step with known ones. */
#ifndef SF_API_COMPARE_H
#define SF_API_COMPARE_H

#include "api/moments.h"
#include "sheaf/eval.h"

typedef struct sf_comparison {
    const sf_graph *graph;
    const sf_tensor *arguments;     /* of the step */
    const sf_tensor *ours, *theirs; /* results of it */
    double tolerance;
    double noise;    /* see moments.h */
    bool on_average; /* judge tensors by quadratic means, single elements less strictly */
} sf_comparison;

/* How many times more an element may differ than its tensor on average. */
enum { SF_LARGEST_TO_MEAN = 5 };

/* Fills one difference for each result, as include/sheaf/eval.h describes them; names live in the
 * arena. Returns the worst one, -1 when there are no results. */
int sf_compare(const sf_comparison *comparison, sf_arena *arena, sf_difference *out);

/* Whether a difference is within its tolerance. */
bool sf_difference_holds(const sf_difference *difference);

/* |ours - theirs| / max(|theirs|, scale); 0 when both are the same infinity or both NaN, an
 * infinity when only one is. */
double sf_relative_error(double ours, double theirs, double scale);

#endif
