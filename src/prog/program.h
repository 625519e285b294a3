/* The program: one rank's list of instructions, with every buffer assigned.
 *
 * A graph says what is computed; a program says how: which loops are fused, which library calls are
 * made, in which order, and where every byte stands. Nothing is decided when it runs. The executor
 * runs it, the simulator will price it, passes will rewrite it.
 *
 *     buffer ── a range of the arena, an argument, or a constant
 *       view ── a tensor in a buffer: offset and strides
 *         instruction ── LOOP, DOT, CONV, OP, reading and writing views
 *           body ── WHILE, CASE: a program whose arguments are views of this one, in an arena that is a
 *                   buffer of this one
 */
#ifndef SF_PROG_PROGRAM_H
#define SF_PROG_PROGRAM_H

#include "prog/loop.h"
#include "prog/view.h"

typedef enum sf_home { SF_HOME_ARENA, SF_HOME_ARGUMENT, SF_HOME_CONSTANT } sf_home;

typedef struct sf_buffer {
    sf_home home;
    int64_t bytes;
    int64_t offset;           /* in the arena, a multiple of 64 */
    uint32_t argument;        /* whose storage it is */
    const sf_dense *constant; /* whose elements it holds, expanded */
    uint32_t first, last;     /* instructions between which its contents matter */
    bool is_result;           /* its contents matter after the last instruction */
} sf_buffer;

typedef enum sf_inst_kind {
    SF_INST_LOOP, /* a fused nest of element-wise ops and reductions */
    SF_INST_DOT,  /* a batched matrix product */
    SF_INST_CONV, /* a convolution */
    SF_INST_OP,   /* any other op, by the kernel of the op table, on contiguous tensors */
    SF_INST_COMM, /* a collective, on contiguous tensors; goes on beside what follows */
    SF_INST_WHILE, /* copies its operands to its results, then runs bodies[1] as long as bodies[0] says so */
    SF_INST_CASE, /* runs the body whose number its operand says, or else the last */
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
} sf_dot;

/* Columns of C as it lies in memory, one row behind the other and batch behind batch; 0 where it has gaps. */
int64_t sf_dot_columns(const sf_dot *dot);

/* A DOT or CONV with a loop has it as an epilogue: rows and columns of the loop are those of the product,
 * batches among the rows, so the loop can run on any rows that are complete. in[0], in[1] and out[0]
 * are the product's, the others the loop's. The product stands in the place of a result of the loop,
 * so all that the loop reads and writes in the buffer of out[0] is element by element. */
typedef struct sf_inst {
    sf_inst_kind kind;
    const sf_node *node; /* what it is for; of a loop, the last of its nodes */
    uint32_t nin, nout;
    sf_view *in, *out;
    sf_loop *loop; /* of LOOP; of DOT and CONV, the epilogue or NULL */
    sf_dot *dot;
    uint32_t ncaptured; /* OP with regions: values of the enclosing block that they use */
    sf_value *captured; /* their views follow the operands in `in` */
    uint32_t nbodies;   /* WHILE, CASE; then `out` ends with the arena that the bodies share */
    struct sf_program **bodies;
    bool *is_fixed; /* WHILE, by operand: the body hands it on, so it is its result as it stands,
                           and `out` has an empty buffer there */
    uint32_t until; /* COMM: the first later instruction that touches what it writes or writes
                           what it reads, before which it must be done; SF_NONE: the end */
} sf_inst;

/* Argument i of a body stands where this view of the instruction says: first what the block takes, which
 * are the results of a WHILE, then what it captures, then where its results go. Of a captured value the
 * body knows offset and strides, so only the buffer matters. */
const sf_view *sf_body_argument(const sf_inst *inst, uint32_t index);

typedef struct sf_program {
    sf_arena arena;
    const sf_graph *graph; /* borrowed */
    uint32_t narguments, nresults;
    uint32_t *next; /* by argument: the result that stands there after the run, or SF_NONE */
    sf_buffer *buffers;
    size_t nbuffers, buffer_capacity;
    sf_inst *insts;
    size_t ninsts, inst_capacity;
    sf_view *results;    /* of the block; one that becomes an argument stands there after the run */
    int64_t arena_bytes; /* peak of the arena, known before any run */
    int64_t state_bytes; /* of arguments */
    int64_t constant_bytes; /* with those of bodies */
} sf_program;

/* The graph must outlive the program. */
sf_program *sf_lower(const sf_graph *graph);
void sf_program_free(sf_program *program);

/* Gives every arena buffer its place: by liveness, largest first; and says until when collectives may go
 * on. Part of sf_lower, and of every pass that changes buffers. */
void sf_program_place(sf_program *program);

/* A line per instruction: number, kind, shapes, bytes, buffers, scope. */
void sf_program_print(const sf_program *program, sf_buf *out);

/* The instructions with the time they took (seconds over `steps` steps), the slowest first, and the sums
 * by kind. */
void sf_program_profile(const sf_program *program, const double *seconds, int64_t steps,
                        sf_buf *out);

#endif
