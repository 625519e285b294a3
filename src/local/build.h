/* The local graph while it is made: what the files behind local/local.h share.
 *
 *     local.c        the walk over the step
 *     local_check.c  whether the layouts of a node follow from its factors
 *     local_op.c     the piece of an op as nodes
 *     local_index.c  indices of the whole from those of a piece, and back
 *     local_same.c   the op itself, on pieces
 *     local_value.c  the versions of values
 *     local_move.c   moves between layouts as nodes
 *     local_emit.c   single nodes
 *     local_early.c  collectives start early, and in buckets
 */
#ifndef SF_LOCAL_BUILD_H
#define SF_LOCAL_BUILD_H

#include "local/local.h"
#include "op/op.h"
#include "op/words.h"
#include "shard/strategy.h"
#include "shard/ways.h"

/* A value of the step in one of the layouts that it was wanted in. */
typedef struct local_version {
    sf_layout layout;
    int phase; /* the only one that may use it, or ANY_PHASE */
    sf_value value;
    struct local_version *next;
} local_version;
enum { ANY_PHASE = -1 };

typedef struct local_builder {
    sf_local *local;
    const sf_graph *whole;
    const sf_plan *plan;
    const sf_mesh *mesh;
    int rank;
    sf_diag *diag;
    sf_arena arena, scratch; /* for the walk, for one node */
    local_version *
        *versions;      /* by value of the step, those of its top block: as made, then moved */
    sf_value *inner;    /* by value of the step: what stands for it inside of regions */
    sf_ways ways;       /* between layouts */
    sf_interner shapes; /* of local_shape */
    size_t npieces, piece_capacity; /* of local->pieces */
    int64_t collectives;            /* so far */
    uint32_t first_for_results;     /* the first node that only a result of the step wants */

    /* What new nodes get. */
    sf_graph *graph;
    sf_block *block;
    const sf_scope *scope;
    sf_phase phase;
    sf_loc loc;
    const char *what; /* the tensor that is moved */
} local_builder;

/* What follows from op, types, attributes and layouts alone: found, and checked, once for all nodes that have them
 * in common. A network has few of them, however deep it is. */
typedef struct local_shape {
    const sf_node *node; /* the first of them, */
    const sf_layout *layouts;
    sf_factoring factoring;
    sf_strategy strategies[SF_MAX_AXES]; /* by axis of the mesh */
    const sf_type **types;               /* of the pieces: operands, then results */
    const sf_attr **attrs;               /* of the op on pieces */
    bool is_built;                       /* the op on pieces of these types gives what it should */
} local_shape;

/* A node of the step with all that its piece is made from. */
typedef struct local_node {
    const sf_node *node;
    sf_op op;                 /* whole */
    const sf_layout *layouts; /* operands, then results */
    local_shape *shape;
    sf_value *in;          /* pieces, in those layouts */
    const sf_type **types; /* of the pieces: operands, then results */
    sf_value *out;         /* for local_op to fill in */
} local_node;

/* value.c: the value in that layout, moved if need be. */
sf_status local_value(local_builder *b, sf_value value, const sf_layout *layout, sf_value *out);

/* A version of a value, for one phase or ANY_PHASE; and what a value of the local graph is a piece of. */
void local_add(local_builder *b, sf_value whole, const sf_layout *layout, int phase,
               sf_value value);
void local_record(local_builder *b, sf_value value, sf_value whole, const sf_layout *layout);

/* layouts.c: finds the factoring and fills in the strategies. */
sf_status local_check(local_builder *b, const local_node *n, local_shape *shape);

/* shape.c: what the node has in common with others. */
sf_status local_find_shape(local_builder *b, local_node *n);

/* move.c: x, a piece of a tensor of the whole type in layout `before`, after the move. */
sf_value local_move(local_builder *b, sf_value x, const sf_type *whole, const sf_layout *before,
                    const sf_move *move);

/* x where the coordinates along all axes are 0, the identity elsewhere; a constant stays one. */
sf_value local_mask(local_builder *b, sf_value x, sf_axes axes, sf_monoid monoid);

/* x with zeros around it, so that the axes no longer split it: its place in the whole is kept. */
sf_value local_embed(local_builder *b, sf_value x, const sf_type *whole, const sf_layout *layout,
                     sf_axes axes);

/* op.c */
sf_status local_op(local_builder *b, local_node *n);

/* same.c: the node on other operands, with these types, operands first; and with those of its
 * pieces. */
sf_status local_op_as(local_builder *b, const local_node *n, const sf_value *operands,
                      const sf_type *const *types, sf_value *out);
sf_status local_same_op(local_builder *b, local_node *n, const sf_value *operands);

/* index.c: the indices of the whole that the piece has along a dimension of `size`: [its size]. */
sf_value local_positions(local_builder *b, const sf_layout *layout, int dim, int64_t size,
                         sf_dtype dtype);
sf_status local_gather(local_builder *b, local_node *n);
sf_status local_scatter(local_builder *b, local_node *n);
sf_status local_update(local_builder *b, local_node *n);

/* early.c: changes the order of the finished graph, and makes one collective of several. */
void local_early(local_builder *b);

/* emit.c: the type of a piece. */
const sf_type *local_type(const local_builder *b, const sf_type *whole, const sf_layout *layout);

/* One node each, or none where it would change nothing. */
sf_value emit(local_builder *b, sf_opcode code, uint32_t noperands, const sf_value *operands,
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
sf_value emit_collective(local_builder *b, sf_opcode code, sf_value x, sf_axes axes,
                         sf_monoid monoid, const sf_type *type);

#endif
