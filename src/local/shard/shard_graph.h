/* A rank's graph: pieces of the values of a step, by a plan in space.
 *
 * Every node of the step becomes the same op on the rank's pieces; where a value does not have the
 * layout that a node wants, the moves of shard/reshard.h stand between them as nodes: collectives
 * (op/collective_ops.c), reshapes, transposes and slices. What comes out is an ordinary graph, which
 * sf_lower makes a program of. Nothing in it grows with the number of ranks.
 */
#ifndef SF_LOCAL_SHARD_SHARD_GRAPH_H
#define SF_LOCAL_SHARD_SHARD_GRAPH_H

#include "plan/region_plan.h"
#include "shard/reshard.h"

/* What a value of the local graph is a piece of. */
typedef struct sf_local_shard {
    sf_value whole; /* of the step, or SF_NONE for what stands inside of a move */
    sf_layout layout;
    bool moved; /* not as it was made, or inside of a move */
} sf_local_shard;

/* What a collective moves: `count` tensors of the step, from one layout into another; none where it stands in a
 * region, whose own local graph has it. */
typedef struct sf_sent {
    sf_reshard_kind kind;
    uint32_t count;
    struct {
        sf_value value;
        sf_layout before, after;
    } * parts;
} sf_sent;

/* A region of a loop or a branch: a step of its own, and what the rank computes of it. */
typedef struct sf_inner {
    const sf_node *node; /* of the step */
    uint32_t region;
    sf_region_plan plan;
    struct sf_local *local;
    int64_t first; /* number of its first collective */
} sf_inner;

typedef struct sf_local {
    sf_arena arena;
    const sf_graph *step; /* that was given, borrowed, */
    /* and the step that it is a part of, with its plan: the one that was given, or as that goes on in time. */
    const sf_graph *whole;
    const sf_plan *plan;
    struct sf_timed *
        timed; /* the owner of that (local/time/schedule_step.h); NULL where it is the one that was given */
    int rank;
    sf_graph *graph;        /* arguments and results are those of the step, in pieces */
    sf_local_shard *pieces; /* by value of `graph` */
    sf_sent *sent;          /* collectives, by their number */
    size_t nsent, sent_capacity;
    sf_inner *inner; /* in the order of their nodes */
    size_t ninner, inner_capacity;
} sf_local;

/* The value of `whole` for one of the region's own step. */
sf_value sf_inner_value(const sf_local *local, const sf_inner *inner, sf_value value);

#endif
