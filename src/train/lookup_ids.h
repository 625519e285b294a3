/* Ids of a batch that no table has: a step that looks such an id up gets NaN, as JAX defines it, and so a loss that is none. */
#ifndef SF_TRAIN_LOOKUP_IDS_H
#define SF_TRAIN_LOOKUP_IDS_H

#include "ir/graph.h"
#include "ir/tensor.h"

typedef struct sf_lookup_id {
    uint32_t argument;
    int64_t id;   /* the first that is out of range */
    int64_t rows; /* of the table: ids are -rows to rows - 1 */
} sf_lookup_id;

/* Finds an id out of range among arguments that have data. Tables count whose rows are chosen by ids of one argument alone, as they are
 * or shifted by a constant. */
bool sf_find_lookup_id(const sf_graph *graph, const sf_tensor *arguments, sf_lookup_id *out);

#endif
