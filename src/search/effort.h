/* What the nodes of a step do, for prices: flops, bytes, and which tensors stand in memory at all.
 *
 * Devices run chains of element-wise ops as one kernel, so a value that only such a kernel reads is never
 * written. A value is *stored* when it is an argument or a result of the step, when what makes it is no op
 * that fuses (products, gathers, sorts, folds, ...), when its readers are not all in one kernel, or when
 * one of them does not fuse. A node that fuses and stores nothing starts no kernel: it adds its flops, and
 * the stored values that it is the first to read there, to the one that does. Phases do not matter: what is
 * read in the backward pass alone is computed there (prog/cluster.c), and what it is made from waits.
 *
 * A stored value that only kernels read may be cheap to compute again from another. Then it takes no memory:
 * each of them reads, and keeps, that other one.
 *
 * Views (reshapes, broadcasts, transposes, slices) are free and stand where their operand stands; constants
 * of one number and positions (iota) stand nowhere. Moves between layouts stand only at stored values.
 */
#ifndef SF_SEARCH_EFFORT_H
#define SF_SEARCH_EFFORT_H

#include "cluster/cost.h"
#include "ir/graph.h"
#include "shard/layout.h"

typedef struct sf_node_effort {
    bool product; /* dot, convolution */
    bool starts;  /* it is a kernel of its own, with what fuses into it */
    bool whole;   /* every rank does all of it, however it is split: random bits know their place */
    sf_math math; /* of a product */
    uint32_t kernel; /* the node in whose kernel it runs: itself unless it fuses into another */
    double flops;    /* of the whole */
    /* Tensors (operands, then results; bit t) whose bytes it reads or writes; beyond 32 tensors all are
     * charged. */
    uint32_t charged;
} sf_node_effort;

typedef struct sf_efforts {
    const sf_graph *graph;
    sf_node_effort *nodes; /* by node id; those of the top block */
    bool *stored;          /* by value */
    /* By value: the one in whose memory it stands. Itself where it has memory of its own (if it is stored),
     * that of its operand for a view, SF_NONE where it has none. */
    sf_value *place;
    /* By value: a few element-wise ops away from this value alone (and from arguments), which is stored, or a
     * view of what is, and no larger than it; or SF_NONE. `again` where each reader computes it from that: all
     * of them fuse. */
    sf_value *source;
    bool *again;
    bool *gradient; /* by value: of a parameter, see plan/pin.h */
    bool *slack;    /* by value: made in the backward pass, and only the update waits for it */
} sf_efforts;

/* Lives in the arena. */
sf_efforts *sf_efforts_new(const sf_graph *graph, sf_arena *arena);

/* What a rank does for the node when its tensors have these layouts (operands, then results): an axis
 * that splits any of them cuts the flops by its size. */
sf_effort sf_effort_of(const sf_efforts *efforts, const sf_node *node, const sf_layout *layouts,
                       const sf_mesh *mesh);

/* What the node adds to the time of a step by itself: for one that starts a kernel the time of that, for
 * another what its effort is above nothing, 0 where it has none. The sum over the nodes of a kernel is
 * near the time of their joint effort, which sf_price_plan takes. */
double sf_effort_seconds(const sf_efforts *efforts, const sf_node *node, const sf_layout *layouts,
                         const sf_mesh *mesh, const sf_costs *costs);

#endif
