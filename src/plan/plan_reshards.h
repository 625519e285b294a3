/* The moves of a plan: which values go from one layout into another, where, and in which collectives. The local
 * graph of a rank (local/local.h) is made from them, and estimates count them; nobody else decides what is moved.
 *
 * A value that several nodes want in another layout is moved once, or, where it then is larger than as it was made,
 * a gathered parameter, once for each phase, so that it need not be kept. Reductions, and what gathers a result of
 * the step, start early: right behind what makes their operand, in the phase of that, so that they go on beside what
 * follows. All other moves stand before who wants them first. Collectives of a kind that nothing reads in between go
 * together, in buckets: a message for each bias would cost little but its latency.
 *
 *     value ── versions: as made, then moved
 *       version ── layout; the move that makes it
 *     steps ── nodes of the top block and moves, in the order in which a rank comes to them
 */
#ifndef SF_PLAN_PLAN_RESHARDS_H
#define SF_PLAN_PLAN_RESHARDS_H

#include "plan/plan.h"
#include "shard/reshard_cache.h"

/* Collectives of a kind go together up to so many bytes: long enough for latency not to count, short enough for the
 * last one, beside which nothing is left to compute, to be soon over. */
enum { SF_BUCKET_BYTES = 8 << 20 };

typedef struct sf_value_version {
    sf_value value;
    const sf_layout *layout; /* in the plan, or with the moves */
    int phase;               /* the only one that may use it, or -1 */
    uint32_t reshard;        /* that makes it; SF_NONE: as made */
    uint32_t same; /* the version that it is, where only axes of one rank differ; else itself */
    uint32_t next; /* of the value, or SF_NONE */
} sf_value_version;

typedef struct sf_resharding {
    sf_value value;
    sf_reshard_kind kind;
    sf_axes axes;
    sf_phase phase;
    uint32_t from, to; /* versions */
    uint32_t wanted;   /* the node that first wants it; SF_NONE: it is for a result of the step */
    uint32_t bucket;   /* of a reduction or a gather, else SF_NONE */
    double before, after; /* bytes of a rank's piece */
} sf_resharding;

typedef struct sf_bucket {
    uint32_t count, last; /* moves, and the last of them */
    double bytes;
} sf_bucket;

/* A node, or a move. */
typedef struct sf_step_item {
    bool is_reshard;
    uint32_t index; /* node id, or move */
} sf_step_item;

typedef struct sf_reshards {
    const sf_graph *graph;
    const sf_plan *plan;
    sf_value_version *versions;
    size_t nversions, version_capacity;
    uint32_t *made; /* by value of the top block: the version as made */
    sf_resharding *reshards;
    size_t nreshards, move_capacity;
    sf_bucket *buckets;
    size_t nbuckets, bucket_capacity;
    /* What nodes read: versions reads[first_read[id]] and on, the operands, then what their regions see;
     * nreads[id] of them. */
    uint32_t *reads, *first_read, *nreads;
    size_t read_count, read_capacity;
    uint32_t *results; /* by result of the step: version */
    sf_step_item *steps;
    size_t nsteps, step_capacity;
} sf_reshards;

/* Lives in the arena, and no longer than the plan. SF_EINPUT where a layout cannot become another. */
sf_status sf_reshards_of(const sf_graph *graph, const sf_plan *plan, sf_arena *arena, sf_diag *diag,
                         sf_reshards **out);

static inline bool sf_is_reduction(sf_reshard_kind kind)
{
    return kind == SF_RESHARD_REDUCE || kind == SF_RESHARD_SCATTER;
}

/* It comes after what makes its operand, else before who wants it. */
static inline bool sf_starts_early(const sf_resharding *reshard)
{
    return sf_is_reduction(reshard->kind) ||
           (reshard->kind == SF_RESHARD_GATHER && reshard->wanted == SF_NONE);
}

/* Bytes of a rank's piece before it or after it, whichever are more. */
static inline double sf_larger_shard(const sf_resharding *reshard)
{
    return reshard->before > reshard->after ? reshard->before : reshard->after;
}

/* Nothing is sent. */
static inline bool sf_is_local_reshard(sf_reshard_kind kind)
{
    return kind == SF_RESHARD_SLICE || kind == SF_RESHARD_MASK;
}

#endif
