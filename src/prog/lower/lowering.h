/* The state of a lowering, which the files of sf_lower share.
 *
 *     prepare_graph.c  other forms of the graph first: node_forms.c, unit_dimensions.c, and attention (prog/attention/)
 *     dimension_cuts.c     where dimensions are cut so that loops on both sides of a reshape have the same
 *     refine_dimensions.c    nodes with those dimensions
 *     fewer_passes.c    forms with which less is read or stored
 *     lower.c    node by node: which instruction it becomes
 *     value_places.c   where values are: buffers, views, copies
 *     loop_fusion.c  which element-wise ops and reductions run in one loop
 *     loop_recompute.c    values that loops recompute
 *     lower_dot.c      products: their operands and results as matrices
 *     vops.c     which vector op computes a node
 *     loop_domain.c     the domain of a loop
 *     fuse.c     from a cluster to the steps of its loop
 *     lower_regions.c     loops that stay and branches: their regions become programs
 *     instruction_order.c    the order of instructions, for a low peak of memory
 *     buffer_reuse.c    updates in place, and operands that are changed in place
 *     lower_epilogue.c which loops run after a product, block by block
 *     horizontal_fusion.c adjacent small loops, which are launched as one
 *     stream_events.c     events between streams
 *     buffer_lifetimes.c    the lives of buffers, and the memory in use at a time
 *     buffer_placement.c    the places of buffers in the arena
 *
 * Instructions are appended in an order that is valid, so the index of an instruction is its time:
 * a cluster of time t may take in an op only if all other operands of the op were made before t. No
 * cycle can arise.
 *
 * Two recursions are inherent: to be in memory, a value may need a loop, and a loop needs its
 * operands in memory (value_places.c and loop_fusion.c); a block may hold blocks (lower.c and
 * lower_regions.c). */
#ifndef SF_PROG_LOWER_LOWERING_H
#define SF_PROG_LOWER_LOWERING_H

#include "op/op.h"
#include "prog/program.h"
#include "prog/rewritten_graph.h"

typedef enum level {
    LEVEL_NONE,
    LEVEL_DEFERRED, /* of no loop yet: the first that needs it takes it in */
    LEVEL_FULL,     /* a register of the loop */
    LEVEL_ROW,      /* a row register */
    LEVEL_GATHERED, /* complete only after the loop */
} level;

enum { NO_CLUSTER = UINT32_MAX };

/* How many values in a row may be in no memory and no loop yet. */
enum { LONGEST_UNPLACED = 200 };

typedef struct cluster {
    uint32_t inst; /* its place among the instructions */
    int rank;
    int64_t dims[SF_MAX_RANK]; /* of its tensors, without dimensions of size 1 */
    int order[SF_MAX_RANK]; /* the domain's dimension i is dimension order[i] of the tensors: those
                                  that a fold keeps come first */
    int split;              /* -1 while nothing needs rows */
    bool whole_rows;
    sf_phase phase; /* of its first node: it takes in none of a later one */
    const sf_node **nodes;
    size_t nnodes, node_capacity;
    sf_value *outputs; /* that somebody outside needs */
    size_t noutputs, output_capacity;
} cluster;

/* Facts about a value during lowering. */
typedef struct lowered {
    sf_value same; /* an equal value that was lowered before, or itself */
    uint32_t cluster;
    level level;
    bool has_view;
    bool
        is_given; /* while a region is lowered: of an enclosing block, so how it is made is not seen */
    sf_view *view;
    uint32_t
        unplaced; /* length of the longest chain of values that it ends, in no memory and no loop */
    sf_view *transposed;   /* lower_dot.c: a copy in the order that a product wanted, or NULL */
    uint32_t stamp;        /* the cluster, plus one, that the registers below are of */
    uint16_t registers[2]; /* while a cluster is fused: that hold it, plus one; see fuse.c */
} lowered;

typedef struct lowering {
    const sf_graph *graph;
    const sf_target *target;
    sf_program *program;
    bool unplaced;
    bool rounds;     /* products of f32 may round their factors */
    lowered *values; /* by value of the whole graph; regions share it with enclosing blocks */
    uint32_t *marks; /* by value: the node, plus one, for whose regions it was found to be inside */
    uint32_t *readers; /* by value: the one node that reads it, or SF_NONE, or SEVERAL */
    cluster **clusters;
    size_t nclusters, cluster_capacity;
    uint32_t *made; /* by buffer: the instruction that fills it, or ALWAYS */
    size_t made_capacity;
    uint32_t *renamed; /* by buffer: its replacement, or itself: buffer_reuse.c */
    size_t nrenamed;
    uint32_t *now; /* by instruction before lower_epilogue.c: where it is since */
    size_t nnow;
    sf_value *inner; /* by value of the graph: its value in the program's inner graph */
    sf_arena scratch;
} lowering;

#define SEVERAL (SF_NONE - 1) /* readers; or it is a result */

/* value_places.c */
sf_value value_of(const lowering *l, sf_value value);
const sf_view *view_of(lowering *l, sf_value value); /* stores it in memory if it is not there */
bool peek_view(lowering *l, sf_value value,
               sf_view *out);                  /* the result of view_of, if that needs no copy */
uint32_t time_of(lowering *l, sf_value value); /* when it is made, or one of these: */
#define ALWAYS (SF_NONE - 1)                   /* an argument or a constant */
#define NEEDS_COPY SF_NONE                     /* only a copy that is not made yet */
uint32_t add_buffer(lowering *l, int64_t bytes, uint32_t inst, sf_value value);
uint32_t add_inst(lowering *l, sf_inst_kind kind, const sf_node *node);
void set_view(lowering *l, sf_value value, const sf_view *view);
bool is_transposed(const lowering *l,
                   sf_dtype dtype); /* by its target: the type that products want of factors */
sf_view copy_of(lowering *l, const sf_view *view, const sf_node *node); /* a contiguous copy */
sf_view contiguous(lowering *l, sf_value value, const sf_node *node);   /* a copy if need be */
sf_op op_of(lowering *l, const sf_node *node);
void set_results(lowering *l, const sf_node *node, uint32_t inst); /* each in a buffer of its own */

/* The node that makes the value, or NULL for a value from outside the block. */
const sf_node *maker_of(const lowering *l, sf_value value);

/* Barriers and annotations pass their operands on. */
bool passes_on(const sf_node *node);

/* The dimensions that are not 1. */
int squeezed(const sf_type *type, int64_t *dims);

/* lower.c: lowers a block whose arguments have buffers, up to the places of buffers. */
void lower_block(lowering *l, const sf_block *block);

/* lower_dot.c */
void lower_dot(lowering *l, const sf_node *node);

/* lower_regions.c: the values of enclosing blocks that the regions of a node use, in the program's arena. */
uint32_t find_captured(lowering *l, const sf_node *node, sf_value **list);
void lower_control(lowering *l, const sf_node *node);

/* loop_fusion.c: true when the node is one that loops compute. It then is part of a cluster, or deferred
 * until somebody needs it. cluster_now gives a deferred value a cluster of its own. */
bool cluster_pointwise(lowering *l, const sf_node *node);
bool cluster_reduce(lowering *l, const sf_node *node);
void cluster_now(lowering *l, sf_value value);

bool has_squeezed_shape(const sf_type *type, int rank, const int64_t *dims);

/* loop_recompute.c. To recompute a value, in the loop that needs it, is faster than storing and
 * loading it if it is a few ops away from values that are in memory in any case. */
typedef struct recomputed {
    lowering *l;
    uint32_t inst; /* of the loop that would compute it: its operands must be made before */
    int rank;
    const int64_t *dims;
    sf_value made[SF_MOST_RECOMPUTED]; /* intermediate values in the loop, once each */
    int ops, functions;                /* that it takes */
    int64_t bytes;                     /* of operands that it alone reads, and would keep alive */
    sf_value leaves[8];
    int nleaves;
    const sf_value *read; /* operands that it reads in any case */
    size_t nread;
} recomputed;

/* Whether a loop over this domain should recompute the value of another loop. */
bool recomputes(recomputed *a, sf_value value);

/* An operand from elsewhere: recomputed from values in memory, or read from memory. */
void reach_operand(recomputed *a, sf_value operand);

/* How a value reaches a cluster: as one of its registers (level FULL or ROW; `expand`: a row register
 * that is broadcast), or, LEVEL_NONE, from outside. */
typedef struct relation {
    level level;
    bool expand;
    sf_value base; /* the value whose register it is */
} relation;
relation relate(const lowering *l, uint32_t cluster, sf_value value);

/* Follows reshapes that only add or drop dimensions of size 1. */
sf_value behind_reshapes(const lowering *l, sf_value value);

/* vops.c: the vector op of a node; false when loops have none for it. */
bool vop_of(const sf_graph *graph, const sf_node *node, sf_vop *op);
bool is_counter(const sf_graph *graph, const sf_node *node);
bool is_padding(const lowering *l, const sf_node *node);
bool fold_of(const sf_graph *graph, const sf_node *node, sf_vfold *fold);

/* fuse.c */
void fuse_clusters(lowering *l);

/* loop_domain.c. Merges the dimensions of a loop and counts its rows and columns. Without `has_split`, the last merged
 * dimension is the columns. */
void count_domain(sf_loop *loop, bool has_split);

/* instruction_order.c, buffer_reuse.c, lower_epilogue.c, horizontal_fusion.c */
void order_insts(lowering *l);
void update_in_place(lowering *l);
void reuse_operands(lowering *l);
void reuse_in_loops(lowering *l); /* after epilogues, which place products in results of loops */
void fuse_epilogues(lowering *l);
void bring_together(lowering *l);

/* stream_events.c: events, and streams for those that have none. buffer_lifetimes.c: first, last, is_result and gaps of every buffer, for
 * which events must be set. buffer_placement.c: their places. */
void sync_insts(sf_program *program);
void find_lives(sf_program *program);
void place_buffers(sf_program *program);

/* The first later instruction of the compute stream that waits for the instruction, which is of another; SF_NONE:
 * the end of the program. In the arena, by instruction; valid after sync_insts. */
uint32_t *find_waiters(const sf_program *program, sf_arena *arena);

/* node_forms.c: nodes in forms that loops do better with. */
sf_regraph find_forms(const sf_graph *graph, const sf_target *target);

/* unit_dimensions.c: nodes around large products, without dimensions of 1. */
sf_regraph find_squeezed(const sf_graph *graph);

/* refine_dimensions.c: nodes with dimensions that both sides of a reshape have, for a target that wants few passes. */
sf_regraph find_finer(const sf_graph *graph);

/* fewer_passes.c: nodes in forms with which less is read or stored, for such a target. */
sf_regraph find_fewer(const sf_graph *graph);

/* lower.c: the graph as it is. */
sf_program *lower_graph(const sf_graph *graph, const sf_lower_options *options, sf_trace *trace);

#endif
