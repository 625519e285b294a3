/* Resharding: from one layout of a tensor to another, by the cheapest way.
 *
 * A way is a sequence of reshards, each of which changes the shares of some axes:
 *
 *     slice     R -> S      nothing is sent: every rank keeps its part
 *     mask      R -> P      nothing is sent: the first rank keeps its value, others the identity
 *     gather    S -> R      all-gather
 *     reduce    P -> R      all-reduce
 *     scatter   P -> S      reduce-scatter
 *     exchange  S -> S      all-to-all, along one axis
 *     swap      the shares of two axes of one size change places: each rank sends its shard to one
 *
 * gather, reduce and scatter may take several axes at once: one collective in a larger group. In an
 * exchange the digits of the old and the new split do not overlap, so each rank has an equal part
 * for every other. After every reshard a rank rearranges the digits of sf_layout_joint.
 *
 * The search is Dijkstra's over layouts, guided (A*) by a lower bound of the cost. The caller gives
 * the cost of a reshard; of ways of equal cost the one of fewer reshards wins, then the order above
 * and the order of axes decide, so every rank finds the same way. Intermediate layouts have only
 * shares of the two layouts, and contiguous ones: no cheaper way is known to be missed if axes are
 * powers of two.
 *
 * A way may use axes whose shares do not change in the end: to reduce along the first axis, it may
 * pay to slice along the second, reduce a part, and gather. But never along one in front of all
 * that change: axes that come early have large strides (shard/mesh.h), and so, on a real machine,
 * the slower links. */
#ifndef SF_SHARD_RESHARD_H
#define SF_SHARD_RESHARD_H

#include "base/collective.h"
#include "ir/type.h"
#include "shard/layout.h"

typedef enum sf_reshard_kind {
    SF_RESHARD_SLICE,
    SF_RESHARD_MASK,
    SF_RESHARD_GATHER,
    SF_RESHARD_REDUCE,
    SF_RESHARD_SCATTER,
    SF_RESHARD_EXCHANGE,
    SF_RESHARD_SWAP,
    SF_RESHARD_KIND_COUNT
} sf_reshard_kind;
const char *sf_reshard_kind_name(sf_reshard_kind kind);

/* The collective that a move is; SF_COLLECTIVE_COUNT where nothing is sent. */
sf_collective sf_reshard_collective(sf_reshard_kind kind);
bool sf_move_reduces(sf_reshard_kind kind);

typedef struct sf_move {
    sf_reshard_kind kind;
    sf_axes axes;    /* whose shares change */
    sf_layout after; /* the whole layout after it */
} sf_move;

enum { SF_MAX_RESHARDS = 4 * SF_MAX_AXES };
typedef struct sf_path {
    int count;
    sf_move reshards[SF_MAX_RESHARDS];
    double cost;
} sf_path;

/* The cost of a reshard, in any unit, never negative: `bytes` is the size of a rank's shard
 * before it, or after it if that is larger. Depends only on its arguments. An infinity forbids a
 * reshard. */
typedef double sf_reshard_cost(void *context, const sf_mesh *mesh, sf_reshard_kind kind,
                               sf_axes axes, double bytes);

/* The bytes that a rank must send at least, and 32 KiB more for each collective, for its latency: a
 * cost without a model of the machine. A reshard without communication costs next to nothing. */
sf_reshard_cost sf_reshard_bytes;

/* Both layouts fit the type. Partials of two monoids never pass into each other directly: P(+) to
 * P(max) is reduce and mask, as S to P is gather and mask. False only when `cost` forbids every
 * way. */
bool sf_reshard(const sf_mesh *mesh, const sf_type *type, const sf_layout *from,
                const sf_layout *to, sf_reshard_cost *cost, void *context, sf_path *out);

#endif
