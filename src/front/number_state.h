/* Single floating-point numbers that a step carries, such as a running loss, a temperature or a difficulty. All ops on
 * numbers are ops on single elements, so growth says little of them. But a number among the results is new state if it is
 * the old one with something added, or scaled by what no tensor goes into, and if another number, which can be the loss,
 * is not. A coefficient of the loss is multiplied with what is made from tensors.
 */
#ifndef SF_FRONT_NUMBER_STATE_H
#define SF_FRONT_NUMBER_STATE_H

#include "ir/graph.h"

typedef struct sf_number_state {
    uint32_t *of; /* by result: the argument whose new value it seems to be, or SF_NONE */
    bool *
        sure; /* by result: it comes before a number that can be the loss, or is a result of its own by its name */
} sf_number_state;

/* Lives in the arena. */
sf_number_state sf_find_number_state(const sf_graph *graph, sf_arena *arena);

/* By result: it lies beside the loss among what the step reports, by its name; with `trees`, or deeper there. Lives in the
 * arena. */
bool *sf_find_reported(const sf_graph *graph, bool trees, sf_arena *arena);

/* In a path that is not empty. */
bool sf_name_ends_in(const char *name, const char *path);

/* Whether the result's name ends in the argument's, without what that begins with. */
bool sf_has_path_of(const sf_graph *graph, uint32_t result, uint32_t argument);

bool sf_is_called_loss(const char *name);

#endif
