/* Growth: which results of a function are made from which of its arguments by ops on single elements or by writing into a
 * part, as new state is from the old: p - r * m from p and from m, but not the gradient of p from p. What is known of each sample, such as
 * (y - f(x))^2 of one target y, grows from the batch in the same way; but it, or what it grows from, is on the way to the
 * loss, which new state is not.
 */
#ifndef SF_FRONT_ELEMENTWISE_STATE_H
#define SF_FRONT_ELEMENTWISE_STATE_H

#include "ir/graph.h"

/* How the result has the argument: in a sum, or written into; as a multiple that is not negative; in other ways;
 * or not at all. */
typedef enum sf_growing {
    SF_GROWS_KEPT,
    SF_GROWS_SCALED,
    SF_GROWS_ANYHOW,
    SF_GROWS_NOT
} sf_growing;

typedef struct sf_growth {
    uint32_t *arguments; /* those of result r: arguments[first[r]] .. arguments[first[r + 1]] */
    size_t *first;
    unsigned char *how; /* sf_growing, beside `arguments` */
    /* By result: it is on the way to the loss, or grows from what is and is no mere copy of arguments. */
    bool *forward;
} sf_growth;

/* Lives in the arena. `needed`, by value: what the loss needs; NULL: nothing is forward. */
sf_growth sf_growth_of(const sf_graph *graph, const bool *needed, sf_arena *arena);

sf_growing sf_how_it_grows(const sf_growth *growth, uint32_t result, uint32_t argument);

static inline bool sf_grows_from(const sf_growth *growth, uint32_t result, uint32_t argument)
{
    return sf_how_it_grows(growth, result, argument) != SF_GROWS_NOT;
}

/* The result is an argument, or one of a sum, into a part of which the step writes: a queue, a table. */
bool sf_is_written(const sf_graph *graph, uint32_t result);

/* From how many arguments the result grows. */
static inline size_t sf_growth_count(const sf_growth *growth, uint32_t result)
{
    return growth->first[result + 1] - growth->first[result];
}

/* By value of the top block: the one tensor among the arguments that it is made from, plus one; more than all if several;
 * or 0, as of constants and of what only single numbers go into. Lives in the arena. */
uint32_t *sf_tensor_origins(const sf_graph *graph, sf_arena *arena);

#endif
