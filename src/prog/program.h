/* The program: one rank's list of instructions, with every byte in its place.
 *
 * A graph determines the values; a program determines how they are computed: fused loops, library
 * calls, their order and stream, and the place of every buffer. It is self-contained: the engines,
 * the simulator, the passes and the checker read the program alone. No decision is left to run
 * time.
 *
 *     buffer           a range of the arena of a memory space, an argument, or a constant
 *       view           a tensor in a buffer: offset and strides
 *         instruction  reads and writes views, on a stream
 *           body       of WHILE and CASE: a program whose arguments are views of this one, in an arena that is a
 *                      buffer of this one
 *
 * STREAMS. Instructions of a stream begin in the order of the list. On the compute stream, the
 * first, each ends before the next begins. On the others several may be in flight, so an
 * instruction that needs one of those to have ended waits for the event that it raises at its end,
 * on the same stream, too. The list as a whole is an order in which all of it can run one by one.
 * prog/sync.c says how events are set, prog/check_program.h when they suffice.
 *
 * SPACES. Instructions compute on the device. COPY moves bytes to memory of the host and back,
 * asynchronously, on a stream for each direction. A buffer that was copied to the host need not be
 * on the device until it is copied back: in that gap its memory is free for other buffers. JOIN
 * waits for copies, so that the gap begins.
 *
 *     a3 ----- copy a3 -> b9 ----- join b9      copy b9 -> a3 ----- reads a3
 *     in memory                    |--- gap ---|              in memory */
#ifndef SF_PROG_PROGRAM_H
#define SF_PROG_PROGRAM_H

#include "base/collective.h"
#include "prog/conv_geometry.h"
#include "prog/loop.h"
#include "prog/target.h"
#include "prog/view.h"
#include "shard/mesh.h"

typedef enum sf_space_kind {
    SF_SPACE_DEVICE, /* memory that instructions compute in */
    SF_SPACE_HOST,   /* memory of the host, for copies */
    SF_SPACE_COUNT
} sf_space_kind;

/* From one instruction to another, both included. */
typedef struct sf_gap {
    uint32_t first, last;
} sf_gap;

typedef enum sf_home {
    SF_HOME_ARENA,
    SF_HOME_ARGUMENT,
    SF_HOME_CONSTANT,
    SF_HOME_KEPT, /* the program's own, which stays from run to run; zeros before the first */
} sf_home;

typedef struct sf_buffer {
    sf_home home;
    sf_space_kind space;
    int64_t bytes;
    int64_t offset;           /* in the arena of its space */
    uint32_t argument;        /* whose storage it is */
    const sf_dense *constant; /* whose elements it holds, expanded */
    sf_value value;           /* of the graph, that it was made for; or SF_NONE. For reports */
    uint32_t first,
        last;       /* instructions between which its contents matter; SF_NONE: it is unused */
    bool is_result; /* its contents matter after the last instruction */
    /* of an argument on the device: it is in the arena, and other buffers may use its gaps */
    bool is_lent;
    uint32_t ngaps;
    sf_gap *gaps; /* in which its contents do not matter, because a copy brings them back */
} sf_buffer;

typedef enum sf_stream_kind {
    SF_STREAM_COMPUTE,
    SF_STREAM_COMM,
    SF_STREAM_COPY, /* between memory spaces */
    SF_STREAM_KIND_COUNT
} sf_stream_kind;

typedef struct sf_stream {
    sf_stream_kind kind;
    sf_axes axes;     /* COMM: of its groups */
    sf_space_kind to; /* COPY: where it brings things */
} sf_stream;

typedef enum sf_inst_kind {
    SF_INST_LOOP, /* a fused nest of element-wise ops and reductions */
    SF_INST_DOT,  /* a batched matrix product */
    SF_INST_CONV, /* a convolution */
    SF_INST_CALL, /* any other op, on contiguous tensors */
    SF_INST_COMM, /* a collective, on contiguous tensors; asynchronous */
    SF_INST_WHILE, /* copies its operands to its results, then runs bodies[1] as long as bodies[0] says so */
    SF_INST_CASE, /* runs the body whose number its operand says, or else the last */
    SF_INST_COPY, /* part i from in[i] to out[i], in another space; asynchronous */
    SF_INST_JOIN, /* waits for the copies that fill its operands, and does nothing */
    SF_INST_KIND_COUNT
} sf_inst_kind;
const char *sf_inst_kind_name(sf_inst_kind kind);

/* C = A * B for every combination of the batch indices; A is m x k, B is k x n. Strides in elements. */
typedef struct sf_dot {
    int nbatch;
    int64_t batch[SF_MAX_RANK];
    int64_t a_batch[SF_MAX_RANK], b_batch[SF_MAX_RANK], c_batch[SF_MAX_RANK];
    int64_t m, n, k;
    int64_t a_row, a_column, b_row, b_column, c_row, c_column;
    bool exact; /* the text wants more precision than products of the device have */
} sf_dot;

/* From which dimension of the batch on all three matrices have one stride, so that a library takes these as one batch, of
 * *count; those before are walked. */
int sf_dot_inner_batches(const sf_dot *dot, int64_t *count);

/* Columns of C as it lies in memory, rows and batches contiguous; 0 if it has gaps. */
int64_t sf_dot_columns(const sf_dot *dot);

/* Multiplications and additions. */
double sf_dot_flops(const sf_dot *dot);

/* CALL. The types of the op are those of the views, its attributes and regions live in the program. */
typedef struct sf_call {
    sf_op op;
    const void *kernel; /* of the target, with its variant; NULL: that of the op table */
    int64_t variant;
    uint32_t
        ncaptured; /* values of enclosing blocks that its regions use, as values of op.graph; */
    sf_value *captured; /* their views follow the operands in `in` */
} sf_call;

/* Where a part of a collective comes from: the collective of the local graph by its number, and the part of that. */
typedef struct sf_part_origin {
    int64_t number;
    uint32_t part;
} sf_part_origin;

/* COMM. Part i goes from in[i] to out[i]. */
typedef struct sf_exchange {
    sf_collective kind;
    sf_axes axes; /* of the mesh: the group */
    int size;     /* of the group */
    uint64_t
        groups; /* between groups of a pipeline: those along the one axis that take part; else 0 */
    sf_monoid monoid;
    int to,
        from; /* PERMUTE: the places in the group that it goes to, and comes from; -1: nowhere */
    int64_t number;   /* the same on all ranks, and rising */
    int64_t arrived;  /* of a receive: how many messages to its sender have arrived there by then */
    const char *what; /* for messages: "gradient of layer_0/attn/q/kernel" */
    const sf_part_origin *
        parts; /* by part, since a pass joined, parted or numbered it; NULL: its own number, in order */
} sf_exchange;

sf_part_origin sf_exchange_part(const sf_exchange *exchange, uint32_t part);

struct sf_inst;

/* Of a part of a collective whose blocks, one for each rank of the group, are not contiguous:
 * elements from one to the next. 0: they are. */
int64_t sf_exchange_stride(const struct sf_inst *inst, uint32_t part);

/* A message: one sends, one receives, and it is no matter of the others of the group. Those of a pair, in one direction,
 * are numbered for themselves. */
static inline bool sf_is_one_way(const sf_exchange *exchange)
{
    return exchange->kind == SF_PERMUTE && (exchange->to < 0 || exchange->from < 0);
}

/* "all_reduce", "send", ... */
const char *sf_exchange_name(const sf_exchange *exchange);

/* The attributes of a collective or a message of a graph, for a rank of the mesh. `what` lives as
 * long as the graph's pool. */
sf_exchange sf_exchange_of(const sf_node *node, const sf_mesh *mesh, int rank);

/* WHILE, CASE. `out` ends with the arena that the bodies share; in a WHILE the result of the
 * condition comes before that. */
typedef struct sf_nest {
    uint32_t noperands, nresults,
        ncaptured; /* the views of captured values follow the operands in `in` */
    uint32_t nbodies;
    struct sf_program **bodies;
    /* WHILE, by operand: the body passes it on unchanged, so it is its own result, and `out` has
     * an empty buffer there */
    bool *is_fixed;
    double *runs; /* by body: how often it runs when the instruction runs once (op/flops.h) */
    /* WHILE: how often bodies[1] runs, if that is known and bodies[0] computes only the
     * condition, so that it need not run; else -1 */
    int64_t trips;
} sf_nest;

/* The origin of an instruction, as text: for messages and reports. Of a loop, that of its last
 * node. */
typedef struct sf_origin {
    uint32_t node; /* of the graph, or SF_NONE */
    const char *op, *scope;
    sf_phase phase;
    sf_loc loc;
} sf_origin;
#define SF_NO_ORIGIN ((sf_origin){.node = SF_NONE, .op = "", .scope = ""})

/* A DOT or CONV with a loop has it as an epilogue: rows and columns of the loop are those of the
 * product, batches among the rows, so the loop can run on any rows that are complete. in[0], in[1]
 * and out[0] are the product's, the others the loop's. The product is stored in the buffer of a
 * result of the loop, so all that the loop reads and writes in the buffer of out[0] is element by
 * element. */
typedef struct sf_inst {
    sf_inst_kind kind;
    uint32_t stream;
    uint32_t raises; /* the event at its end, or SF_NONE */
    uint32_t nwaits;
    uint32_t *waits; /* events that have been raised before it begins */
    uint32_t nin, nout;
    sf_view *in, *out;
    sf_loop *loop; /* of LOOP; of DOT and CONV, the epilogue or NULL */
    union {
        sf_dot *dot;
        sf_conv *conv;
        sf_call *call;
        sf_exchange *exchange;
        sf_nest *nest;
    };
    /* the whole of which a pass made this split (prog/split_instruction.h); NULL: it is whole */
    const struct sf_inst_piece *piece;
    sf_origin origin;
} sf_inst;

/* Whether it is asynchronous, on a stream of its own: collectives and copies are. */
static inline bool sf_goes_beside(const sf_inst *inst)
{
    return inst->kind == SF_INST_COMM || inst->kind == SF_INST_COPY;
}

/* Bytes that it reads and writes: each element of a view once, however often it is repeated. */
double sf_inst_touched(const sf_inst *inst);

/* How many results start as their operands: instructions that change a tensor rather than make one.
 * If result i is in the buffer of operand i, no copy is made. */
uint32_t sf_inst_changed(const sf_inst *inst);

/* How many bodies it has: none, but for WHILE and CASE. */
uint32_t sf_body_count(const sf_inst *inst);

/* Argument i of a body is this view of the instruction: first the operands of the block, which are
 * the results of a WHILE, then the captured values, then the destinations of its results. The body
 * has the offset and strides of a captured value, so only the buffer matters. */
const sf_view *sf_body_argument(const sf_inst *inst, uint32_t index);

typedef struct sf_program {
    sf_arena arena;
    sf_pool *pool;    /* of types, attributes and names; its own */
    sf_graph *inner;  /* the regions of calls, or NULL */
    bool offloads;    /* the pass offload has moved what it can */
    bool is_unplaced; /* sf_lower_options.unplaced */
    const sf_target *target;
    sf_mesh mesh; /* of the ranks; no axes for one */
    int rank;
    uint32_t narguments, nresults;
    const sf_type **argument_types, **result_types;
    uint32_t *next; /* by argument: the result that is in its buffer after the run, or SF_NONE */
    sf_stream *streams;
    size_t nstreams, stream_capacity;
    uint32_t nevents;
    sf_buffer *buffers; /* those of arguments first, in order */
    size_t nbuffers, buffer_capacity;
    sf_inst *insts;
    size_t ninsts, inst_capacity;
    /* of the block; one that becomes an argument is in its buffer after the run */
    sf_view *results;
    int64_t arena_bytes[SF_SPACE_COUNT]; /* peaks, known before any run */
    int64_t state_bytes;                 /* of arguments on the device that are not lent */
    int64_t host_state_bytes;            /* of arguments whose home is the host */
    int64_t constant_bytes; /* of constants and of kept buffers, with those of bodies */
} sf_program;

/* Where the nodes and values of the top block of a graph went. */
typedef struct sf_trace {
    uint32_t *insts; /* by node: the instruction that computes it, or SF_NONE: a view, a constant */
    uint32_t *buffers; /* by value: its buffer, or SF_NONE: only registers of a loop */
    bool *in_order;    /* by value: it is, or would be, stored row by row */
} sf_trace;

typedef struct sf_lower_options {
    const sf_target *target;
    const sf_mesh *mesh; /* that collectives of the graph are along; NULL: there are none */
    int rank;
    sf_arena *trace_arena; /* arena of `trace`; NULL: no trace */
    bool rounds;   /* products of f32 may round their factors to TF32, where the target can */
    bool narrows;  /* f32 results of products of narrower types may be rounded to these */
    bool plain;    /* attention is left to products and loops (prog/attention/find_attention.h) */
    bool unplaced; /* buffers get no places: the program cannot be run, but its memory is known */
} sf_lower_options;

/* The graph is only read, and not needed afterwards: any number of threads may lower one graph at
 * the same time. Fills in `trace`, unless it is NULL. */
sf_program *sf_lower(const sf_graph *graph, const sf_lower_options *options, sf_trace *trace);
void sf_program_free(sf_program *program);

/* Sets events and lives, and gives every buffer of an arena its place, unless the program was lowered without: the end of lowering,
 * and of every pass that changes instructions or buffers. */
void sf_program_settle(sf_program *program);

/* The same without places, which take longest: the program cannot be run, but simulated. Its arena
 * is as large as the buffers that live at a time. */
void sf_program_settle_lives(sf_program *program);

/* Whether the buffer has a place in the arena of its space. */
static inline bool sf_in_arena(const sf_buffer *buffer)
{
    return buffer->home == SF_HOME_ARENA || buffer->is_lent;
}

/* Whether it has memory of its own from the first run to the last, beside arguments. */
static inline bool sf_is_fixed(const sf_buffer *buffer)
{
    return buffer->home == SF_HOME_CONSTANT || buffer->home == SF_HOME_KEPT;
}

/* Whether its contents matter when the instruction runs; valid after sf_program_settle. */
bool sf_buffer_lives(const sf_program *program, uint32_t buffer, uint32_t inst);

/* Whether the view is all of its buffer, contiguous. */
bool sf_view_fills(const sf_program *program, const sf_view *view);

/* Device memory of a run: arguments, arena and constants. */
int64_t sf_program_bytes(const sf_program *program);

/* Host memory of a run: arguments on the host, and copies there. */
int64_t sf_program_host_bytes(const sf_program *program);

/* By instruction, the bytes of buffers in the arena of the space that live then, each rounded up as it is placed; in the
 * arena. `live` may be NULL. Returns the peak, *at is where. */
int64_t sf_live_bytes_in(const sf_program *program, sf_space_kind space, sf_arena *arena,
                         int64_t **live, uint32_t *at);
int64_t sf_live_bytes(const sf_program *program, sf_arena *arena, int64_t **live, uint32_t *at);

/* A line per instruction: number, stream, kind, shapes, bytes, buffers, scope. */
void sf_program_print(const sf_program *program, sf_buf *out);

/* The instructions with the time they took (seconds over `steps` steps), the bytes and operations a second, the slowest
 * first, and the sums by kind. */
void sf_program_profile(const sf_program *program, const double *seconds, int64_t steps,
                        sf_buf *out);

#endif
