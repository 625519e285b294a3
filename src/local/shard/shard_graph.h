/* A rank's graph: shards of the values of a step, by a plan in space.
 *
 * Every node of the step becomes the same op on the rank's shards. If a value does not have the
 * layout that a node wants, the reshards of shard/reshard.h come between them as nodes: collectives
 * (op/collective_ops.c), reshapes, transposes and slices. The result is an ordinary graph, which
 * sf_lower makes a program of. Its size does not depend on the number of ranks. */
#ifndef SF_LOCAL_SHARD_SHARD_GRAPH_H
#define SF_LOCAL_SHARD_SHARD_GRAPH_H

#include "plan/region_plan.h"
#include "shard/reshard.h"

/* The value of which a local value is a shard. */
typedef struct sf_local_shard {
    sf_value whole; /* of the step, or SF_NONE for a value inside a reshard */
    sf_layout layout;
    bool moved; /* not as it was made, or inside of a reshard */
} sf_local_shard;

/* The tensors of a collective: `count` tensors of the step, from one layout into another; none for
 * one in a region, whose own local graph has it. */
typedef struct sf_sent {
    sf_reshard_kind kind;
    uint32_t count;
    struct {
        sf_value value;
        sf_layout before, after;
    } * parts;
} sf_sent;

/* A region of a loop or a branch: a step of its own, and the rank's part of it. */
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
    sf_graph *graph;        /* arguments and results are shards of those of the step */
    sf_local_shard *pieces; /* by value of `graph` */
    sf_sent *sent;          /* collectives, by their number */
    size_t nsent, sent_capacity;
    sf_inner *inner; /* in the order of their nodes */
    size_t ninner, inner_capacity;
} sf_local;

/* The value of `whole` for one of the region's own step. */
sf_value sf_inner_value(const sf_local *local, const sf_inner *inner, sf_value value);

#endif
