/* Fused loops.
 *
 * A loop runs over a domain of rows x columns: the leading dimensions are rows, the trailing ones
 * columns. It works on tiles of some rows, and takes every step on a whole tile while it is in cache:
 *
 *     load   memory -> register          fold    each row of a register -> row register
 *     op     registers -> register       expand  row register -> register
 *     store  register -> memory          gather  rows or everything, summed over tiles -> memory
 *
 * A register holds the tile, a row register one element per row. Softmax is one loop: load, fold by
 * max, expand, subtract, exp, fold by sum, expand, divide, store.
 */
#ifndef SF_PROG_LOOP_H
#define SF_PROG_LOOP_H

#include "ir/type.h"
#include "prog/vop.h"

/* Of a load, along a dimension of the domain: index i is at element (i - low) / step of the tensor, where that is one of its
 * `count` elements. Everywhere else the load gives the constant of its step. */
typedef struct sf_window {
    int64_t low, count;
    int64_t step; /* 0: index i is at element i */
} sf_window;

/* How a view is walked by the domain. */
typedef struct sf_access {
    uint32_t view; /* index into the instruction's `in` or, for writes, `out`; of INDEX, 0 */
    sf_dtype dtype;
    bool is_row;                  /* one element per row */
    int64_t strides[SF_MAX_RANK]; /* by dimension of the domain */
    sf_window *windows;           /* likewise, of a load of a padded tensor; NULL: there are none */
} sf_access;

typedef enum sf_step_kind {
    SF_STEP_LOAD,
    SF_STEP_STORE,
    SF_STEP_CONSTANT,
    SF_STEP_INDEX, /* where `access` would be, in elements: counters along dimensions */
    SF_STEP_OP,
    SF_STEP_ROUND,   /* to `dtype` */
    SF_STEP_CONVERT, /* from `dtype`'s class to `class` */
    SF_STEP_FOLD,    /* rows of a into row register dst, starting from `constant` */
    SF_STEP_EXPAND,  /* row register a into register dst */
    SF_STEP_GATHER,  /* a, combined over all rows (and, where the result is a scalar, columns) */
} sf_step_kind;

typedef struct sf_loop_step {
    sf_step_kind kind;
    sf_vclass class; /* of dst, or of the stored value */
    bool is_row;     /* works on row registers */
    sf_vop op;
    sf_vfold fold;
    sf_dtype dtype;
    uint16_t dst, a, b, c; /* registers */
    uint32_t access;       /* of LOAD, STORE, GATHER; of INDEX, of no view */
    bool is_scalar;        /* GATHER: everything becomes one element */
    union {
        double real;
        int64_t integer;
    } constant;
} sf_loop_step;

typedef struct sf_loop {
    int rank, split; /* dimensions before `split` are rows */
    int64_t dims[SF_MAX_RANK];
    int64_t rows, columns;
    bool whole_rows; /* a fold needs the whole row in a tile */
    bool compiled;   /* somebody wants it as machine code (sf_graph.compiled) */
    uint32_t nsteps, nregisters;
    sf_loop_step *steps;
    bool *is_wide; /* by register: 8 bytes an element */
    uint32_t naccesses;
    sf_access *accesses;
} sf_loop;

static inline bool sf_access_has_window(const sf_access *access, int dim)
{
    return access->windows && access->windows[dim].step > 0;
}

/* Elements of the tensor along a dimension of the domain. */
static inline int64_t sf_access_size(const sf_loop *loop, const sf_access *access, int dim)
{
    bool fewer = sf_access_has_window(access, dim) && access->windows[dim].count < loop->dims[dim];
    return fewer ? access->windows[dim].count : loop->dims[dim];
}

/* Rows cannot be cut: a fold sees all of them, or their columns are not one dimension. */
static inline bool sf_loop_wants_rows(const sf_loop *loop)
{
    return loop->whole_rows || loop->rank - loop->split > 1;
}

#endif
