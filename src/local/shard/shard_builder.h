/* The state of a builder of local graphs, which the files of this folder share with those of local/time.
 *
 *     shard_walk.c     the walk over the reshards and nodes of the plan (plan/plan_reshards.h)
 *     op_signature.c    the common part of nodes that differ only in their place
 *     check_layouts.c  whether the layouts of a node follow from its factors
 *     shard_op.c       the shard of an op as nodes
 *     shard_index.c    indices of the whole from those of a shard, and back
 *     shard_same.c     the op itself, on shards
 *     shard_region.c   loops and branches
 *     shard_value.c    versions of values, and the collectives that make them
 *     shard_reshard.c     resharding as nodes
 *     shard_emit.c     single nodes */
#ifndef SF_LOCAL_SHARD_SHARD_BUILDER_H
#define SF_LOCAL_SHARD_SHARD_BUILDER_H

#include "local/shard/shard_graph.h"
#include "op/op.h"
#include "op/words.h"
#include "plan/plan_reshards.h"
#include "shard/reshard_cache.h"
#include "shard/reshard_items.h"
#include "shard/strategy.h"

/* A version of a value (plan/plan_reshards.h) in the local graph. The raw result of a collective is
 * reshaped when it is first read: until then no node waits for it. */
typedef struct local_version {
    sf_value value; /* or SF_NONE: not yet */
    sf_value raw;   /* the result of the collective, or SF_NONE */
} local_version;

/* Collectives that go together, while they come. */
typedef struct local_bucket {
    uint32_t count;
    uint32_t *reshards;
    sf_value *operands;
    const sf_type **types;
} local_bucket;

/* Exchanges are between pipeline ranks (local/time/stage_groups.h): these, along an axis of the
 * mesh of ranks. */
typedef struct local_between {
    int axis;
    uint64_t groups;
} local_between;

typedef struct local_builder {
    sf_local *local;
    const sf_graph *whole;
    const sf_plan *plan;
    const sf_mesh *mesh;
    int rank;
    sf_value
        microbatch; /* the coordinate along the mesh's one axis, where that is temporal; else SF_NONE */
    sf_diag *diag;
    sf_arena arena, scratch;          /* for the walk, for one node */
    sf_interner shapes;               /* of local_shape */
    struct local_shape **node_shapes; /* by node */
    const sf_reshards *reshards;
    local_version *versions;        /* by version */
    local_bucket *buckets;          /* by bucket */
    sf_value *inner;                /* by value of the step: its value inside regions */
    sf_ways ways;                   /* from whole to shard, of random bits that are drawn whole */
    size_t npieces, piece_capacity; /* of the local graph's shards */
    int64_t collectives;            /* so far */
    const local_between *between;   /* or NULL: ranks of the mesh exchange it, in buckets */

    /* Attributes of new nodes. */
    sf_graph *graph;
    sf_block *block;
    const sf_scope *scope;
    sf_phase phase,
        least; /* of new nodes; no node is of an earlier one than `least`: in a loop of a pass */
    sf_loc loc;
} local_builder;

/* Facts that follow from op, types, attributes and layouts alone: found, and checked, once for all
 * nodes that share them. A network has few of them, however deep it is. */
typedef struct local_shape {
    const sf_node *node; /* the first of them, */
    const sf_layout *layouts;
    sf_factoring factoring;
    sf_strategy strategies[SF_MAX_AXES]; /* by axis of the mesh */
    const sf_type **types;               /* of the shards: operands, then results */
    const sf_attr **attrs;               /* of the op on shards */
    bool is_built; /* the op on shards of these types gives shards of the right types */
} local_shape;

/* A node of the step with the inputs of its sharding. */
typedef struct local_node {
    const sf_node *node;
    sf_op op;                 /* whole */
    const sf_layout *layouts; /* operands, then results */
    local_shape *shape;
    sf_value *in;          /* shards, in those layouts */
    const sf_type **types; /* of the shards: operands, then results */
    sf_value *out;         /* for local_op to fill in */
} local_node;

/* shard_value.c: the value of the version, brought into shape if need be. */
sf_value local_value(local_builder *b, uint32_t version);

/* The value of a version, which is a shard of a value of the step; and the value of which a local
 * value is a shard. */
void local_set(local_builder *b, uint32_t version, sf_value value);
void local_record(local_builder *b, sf_value value, sf_value whole, const sf_layout *layout);

/* Handles a reshard: emits it, or as much of it as can precede the other reshards of its bucket. */
void local_make_reshard(local_builder *b, uint32_t reshard);

/* check_layouts.c: finds the factoring and fills in the strategies. */
sf_status local_check(local_builder *b, const local_node *n, local_shape *shape);

/* op_signature.c: finds the node's common part. */
sf_status local_find_shape(local_builder *b, local_node *n);

/* shard_reshard.c. A reshard of a tensor of the whole type: without communication it is emitted
 * at once; others are a collective, nodes that reshape its operand, and nodes that reshape its
 * result. */
typedef struct local_resharding {
    const sf_type *whole;
    const sf_layout *before, *after;
    sf_reshard_kind kind;
    sf_axes axes;
} local_resharding;
sf_value local_reshard_alone(local_builder *b, sf_value x, const local_resharding *m);
sf_value local_reshard_before(local_builder *b, sf_value x, const local_resharding *m);
const sf_type *local_reshard_type(local_builder *b, sf_value operand,
                                  const local_resharding *m); /* of the result */
sf_value local_reshard_after(local_builder *b, sf_value x, const local_resharding *m);
sf_monoid local_reshard_monoid(const local_resharding *m);
const sf_type *local_rows(const local_builder *b, int64_t size,
                          const sf_type *shard); /* [size, shard] */

/* x where the coordinates along all axes are 0, the identity elsewhere; a constant stays one. */
sf_value local_mask(local_builder *b, sf_value x, sf_axes axes, sf_monoid monoid);

/* x with zeros around it, so that the axes no longer split it: its place in the whole is kept. */
sf_value local_embed(local_builder *b, sf_value x, const sf_type *whole, const sf_layout *layout,
                     sf_axes axes);

/* shard_op.c */
sf_status local_op(local_builder *b, local_node *n);

/* shard_region.c */
sf_status local_control(local_builder *b, local_node *n);

/* shard_walk.c: a builder that makes `local`; reads the plan and its reshards; then part by
 * part. */
void local_open(local_builder *b, sf_local *local, const sf_graph *whole, const sf_plan *plan,
                int rank, sf_pool *pool, int64_t first);
sf_status local_prepare(local_builder *b);
void local_add_arguments(local_builder *b);
sf_status local_add_node(local_builder *b, const sf_node *node);
void local_add_results(local_builder *b);
void local_close(local_builder *b);

/* The shards of a rank, made in this pool, with collectives numbered from `first` on; `takes_turn`:
 * with the micro-batch as one more argument. */
sf_status local_new_within(const sf_graph *whole, const sf_plan *plan, int rank, sf_pool *pool,
                           int64_t first, bool takes_turn, sf_diag *diag, sf_local **out);
void local_free(sf_local *local);

/* shard_same.c: the node on other operands, with these types, operands first; and with those of its
 * shards. */
sf_status local_op_as(local_builder *b, const local_node *n, const sf_value *operands,
                      const sf_type *const *types, sf_value *out);
sf_status local_same_op(local_builder *b, local_node *n, const sf_value *operands);

/* shard_index.c: the indices of the whole in the shard along a dimension of `size`: [its size]. */
sf_value local_positions(local_builder *b, const sf_layout *layout, int dim, int64_t size,
                         sf_dtype dtype);
sf_status local_gather(local_builder *b, local_node *n);
sf_status local_scatter(local_builder *b, local_node *n);
sf_status local_update(local_builder *b, local_node *n);

/* shard_emit.c: the type of a shard. */
const sf_type *local_type(const local_builder *b, const sf_type *whole, const sf_layout *layout);

/* New nodes have the place of that node, or none, in this phase. */
void local_note_place(local_builder *b, const sf_node *node, sf_phase phase);

/* The number of the micro-batch as a scalar of the type; whether it is the first. */
sf_value local_microbatch(local_builder *b, sf_dtype dtype);
sf_value local_is_first_microbatch(local_builder *b);

/* One node each, or none where it would change nothing. */
sf_value emit_op(local_builder *b, sf_opcode code, uint32_t noperands, const sf_value *operands,
                 const sf_attr *const *attrs, const sf_type *type);
sf_value emit_binary(local_builder *b, sf_opcode code, sf_value x, sf_value y);
sf_value emit_compare(local_builder *b, const char *direction, sf_value x, sf_value y);
sf_value emit_select(local_builder *b, sf_value predicate, sf_value x, sf_value y);
sf_value emit_convert(local_builder *b, sf_value x, sf_dtype dtype);
sf_value emit_reshape(local_builder *b, sf_value x, int rank, const int64_t *dims);
sf_value emit_transpose(local_builder *b, sf_value x, const int *order);
sf_value emit_slice(local_builder *b, sf_value x, const int64_t *starts, const int64_t *limits);
sf_value emit_broadcast(local_builder *b, sf_value x, const sf_type *type, const int *dims);
sf_value emit_number(local_builder *b, const sf_type *type, int64_t number); /* a splat */
sf_value emit_like(local_builder *b, sf_value x, int64_t number); /* a splat of the type of x */
sf_value emit_identity(local_builder *b, sf_monoid monoid, const sf_type *type);

/* One collective of `count` tensors; its results follow each other. */
sf_value emit_collective(local_builder *b, sf_collective kind, uint32_t count,
                         const sf_value *operands, const sf_type *const *types, sf_axes axes,
                         sf_monoid monoid, const char *what);

#endif
