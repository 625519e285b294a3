/* A cache of the results of shard/reshard.h, by type and pair of layouts.
 *
 * They are those that local/local.h uses, so they are the cheapest in bytes (sf_reshard_bytes),
 * whatever the cluster. Not thread-safe. */
#ifndef SF_SHARD_RESHARD_CACHE_H
#define SF_SHARD_RESHARD_CACHE_H

#include "base/intern.h"
#include "shard/reshard.h"

typedef struct sf_way {
    const sf_type *type;
    sf_layout from, to;
    bool exists;
    double cost; /* by sf_reshard_bytes */
    int count;
    sf_move *reshards;
} sf_way;

typedef struct sf_ways {
    const sf_mesh *mesh;
    sf_arena *arena;
    sf_interner table;
} sf_ways;

/* Lives in the arena of `ways`. */
const sf_way *sf_ways_find(sf_ways *ways, const sf_type *type, const sf_layout *from,
                           const sf_layout *to);

#endif
