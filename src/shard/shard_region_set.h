/* Regions: the part of a logical tensor in a shard, as a set (nnScaler's vTensor of a pTensor).
 *
 * A region is a product: for each dimension of the tensor a set of indices, and for each axis of
 * the mesh a set of contributions. A value that is partial over an axis of n ranks has n
 * contributions there, of which a rank holds one; a value that is not partial has all n of them in
 * it. So a shard is identified by its contributions:
 *
 *     tensor<8xf32>, [S(0), P(+)] on data=2,model=2, rank 3      {4..7} data {0 1} model {1}
 *
 * and copies and sums are judged alike. A gather joins sets of indices and a reduce sets of
 * contributions; a slice and a mask take part of them. Regions that are joined by copying must
 * cover the wanted region; regions that are combined by a monoid must cover it exactly once.
 *
 * This is an independent check of layouts, reshards and plans, so it uses only the definition of
 * layouts: which coordinate an index belongs to. Memory is from the given arena. */
#ifndef SF_SHARD_SHARD_REGION_SET_H
#define SF_SHARD_SHARD_REGION_SET_H

#include "ir/type.h"
#include "shard/layout.h"

typedef struct sf_interval {
    int64_t from, to; /* from <= index < to; never empty */
} sf_interval;

/* Ascending; no two overlap or touch, so equal sets have equal lists. */
typedef struct sf_intervals {
    size_t count;
    const sf_interval *at;
} sf_intervals;

enum { SF_MAX_SIDES = SF_MAX_RANK + SF_MAX_AXES };

typedef struct sf_region {
    int rank;   /* of the tensor */
    int nsides; /* dimensions, then axes */
    sf_intervals sides[SF_MAX_SIDES];
} sf_region;

/* The part of a tensor on `rank`; the layout fits the type. */
sf_region sf_region_of(const sf_layout *layout, const sf_mesh *mesh, int rank, const sf_type *type,
                       sf_arena *arena);

bool sf_region_is_empty(const sf_region *region);

/* The regions that functions of two of them take are of one tensor on one mesh. */
bool sf_region_equal(const sf_region *a, const sf_region *b);

/* How many pairs of an index and a contribution it holds; INT64_MAX when there are more than
 * that. */
int64_t sf_region_count(const sf_region *region);

sf_region sf_region_intersect(const sf_region *a, const sf_region *b, sf_arena *arena);

/* The part of `a` that is not in `b`: at most as many regions as there are sides, no two of which
 * overlap. Returns how many. */
int sf_region_subtract(const sf_region *a, const sf_region *b, sf_arena *arena,
                       sf_region out[SF_MAX_SIDES]);

/* Whether everything in `wanted` is in one of the regions; if not, *gap (may be NULL) is a part of
 * it that is not. The regions may overlap, and may be larger than `wanted`. */
bool sf_region_covered(const sf_region *wanted, size_t count, const sf_region *regions,
                       sf_arena *arena, sf_region *gap);

/* Whether everything in `wanted` is in exactly one of the regions, and can be counted. */
bool sf_region_covered_once(const sf_region *wanted, size_t count, const sf_region *regions,
                            sf_arena *arena);

#endif
