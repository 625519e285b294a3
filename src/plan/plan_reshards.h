/* The reshards of a plan: which values go from one layout into another, where, and in which
 * collectives. The local graph of a rank (local/local.h) is made from them, and estimates count
 * them; there is no other place where resharding is decided.
 *
 * A value that several nodes want in another layout is resharded once, or, if it then is larger
 * than it was made (a gathered parameter), once for each phase, so that it need not be kept.
 * Reductions, and gathers of results of the step, start early: right after their operand's maker,
 * in the phase of that, so that they overlap with later nodes. All other reshards come before their
 * first reader. Collectives of a kind between which no result is read are combined in buckets: a
 * message for each bias would cost little but its latency.
 *
 *     value ── versions: as made, then resharded
 *       version ── layout; the reshard that makes it
 *     steps ── nodes of the top block and reshards, in a rank's order */
#ifndef SF_PLAN_PLAN_RESHARDS_H
#define SF_PLAN_PLAN_RESHARDS_H

#include "plan/plan.h"
#include "shard/reshard_cache.h"

/* Collectives of a kind go together up to so many bytes: long enough for latency not to count, short enough for the
 * last one, beside which nothing is left to compute, to be soon over. */
enum { SF_BUCKET_BYTES = 8 << 20 };

typedef struct sf_value_version {
    sf_value value;
    const sf_layout *layout; /* in the plan, or with the reshards */
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
    double before, after; /* bytes of a rank's shard */
} sf_resharding;

typedef struct sf_bucket {
    uint32_t count, last; /* reshards, and the last of them */
    double bytes;
} sf_bucket;

/* A node, or a reshard. */
typedef struct sf_step_item {
    bool is_reshard;
    uint32_t index; /* node id, or reshard */
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
    /* Operands of nodes: versions reads[first_read[id]] and on, the operands, then the values that
     * their regions read; nreads[id] of them. */
    uint32_t *reads, *first_read, *nreads;
    size_t read_count, read_capacity;
    uint32_t *results; /* by result of the step: version */
    sf_step_item *steps;
    size_t nsteps, step_capacity;
} sf_reshards;

/* Lives in the arena, and no longer than the plan. SF_EINPUT where a layout cannot become another. */
sf_status sf_reshards_of(const sf_graph *graph, const sf_plan *plan, sf_arena *arena, sf_diag *diag,
                         sf_reshards **out);

/* It comes after its operand's maker, else before its first reader. */
static inline bool sf_starts_early(const sf_resharding *reshard)
{
    return sf_move_reduces(reshard->kind) ||
           (reshard->kind == SF_RESHARD_GATHER && reshard->wanted == SF_NONE);
}

/* Bytes of a rank's shard before it or after it, whichever are more. */
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
