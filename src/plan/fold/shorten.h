/* The same step with fewer layers.
 *
 * The cost of a plan is, but for the ends, proportional to the number of layers. A step of four
 * layers and one of five therefore predict the cost of one of eighty, at a twentieth of the work
 * (estimates; a final plan is lowered whole). Shortening removes layers from the middle of each
 * stack (plan/fold/repeats.h) and joins the rest:
 *
 *     0 -> 1 -> 2 -> ... -> 78 -> 79         keep 4:       0 -> 77 -> 78 -> 79
 *
 * The result is the step that the framework would have written with so many layers, except where a tensor holds all
 * layers at once (weights of a scan): such tensors keep their size. */
#ifndef SF_PLAN_FOLD_SHORTEN_H
#define SF_PLAN_FOLD_SHORTEN_H

#include "plan/fold/repeats.h"

enum { SF_FEWEST_KEPT = 3 };

typedef struct sf_short_step {
    sf_graph *graph;  /* for sf_graph_free */
    sf_item *item_of; /* by node of the short step: the node of the long one that it is a copy of */
    uint32_t *argument_of, *result_of; /* likewise */
} sf_short_step;

/* Keeps keep[s] layers of stack s, at least SF_FEWEST_KEPT, or all if it has no more. False if the
 * others cannot be joined without a cycle. Arrays live in the arena. */
bool sf_shorten_step(const sf_graph *graph, const sf_repeats *repeats, const uint32_t *keep,
                     sf_arena *arena, sf_short_step *out);

#endif
