/* The oracle: evaluates a graph node by node with the plain kernels of the op table. It is the
 * judge of everything faster, so it is exact (float arithmetic in double, rounded once to the type)
 * and simple; tensors are freed after their last use. */
#ifndef SF_OP_EVAL_H
#define SF_OP_EVAL_H

#include "op/op.h"

/* Does a collective of a rank's graph, on tensors in memory, with the other ranks of its group. */
typedef sf_status sf_eval_collective(void *context, const sf_node *node, const sf_tensor *in,
                                     sf_tensor *out, sf_diag *diag);

typedef struct sf_eval_setup {
    int64_t limit;                  /* bytes of live tensors; 0: none */
    sf_eval_collective *collective; /* NULL: all groups are of one rank */
    void *context;                  /* of it */
} sf_eval_setup;

struct sf_eval {
    const sf_graph *graph;
    sf_diag *diag;
    sf_eval_setup setup;
    sf_arena scratch; /* for kernels: mark on entry, reset on exit */
    bool literal; /* round sums after every step, as the definitions of the ops read; else once */
    sf_tensor *values;  /* indexed by value id; data NULL when not live */
    int64_t live, peak; /* bytes */
};

/* The type that a running sum of such elements is kept in. */
static inline sf_dtype sf_sum_dtype(const sf_eval *eval, sf_dtype dtype)
{
    if (eval->literal || !sf_is_inexact(dtype))
        return dtype;
    return sf_is_complex(dtype) ? SF_C128 : SF_F64;
}

/* The same for sums of products, which hardware keeps in 32 bits at least. */
static inline sf_dtype sf_product_dtype(const sf_eval *eval, sf_dtype dtype)
{
    sf_dtype sum = sf_sum_dtype(eval, dtype);
    return sf_is_float(sum) && sf_dtype_get(sum)->bits < 32 ? SF_F32 : sum;
}

/* Evaluates the step. `arguments` are whole tensors of the argument types; `results` get data from
 * sf_alloc, which the caller frees. `limit` bounds the bytes of live tensors (0: no bound); going
 * past it is SF_ENOMEM with a message. A check.expect_* that does not hold is SF_EMISMATCH.
 *
 * Sums are exact: kept in double and rounded once. In a program that checks itself they are rounded
 * after every step, in the order of the indices, because so were the values it expects. */
sf_status sf_eval_graph(const sf_graph *graph, const sf_tensor *arguments, sf_tensor *results,
                        int64_t limit, sf_diag *diag);

/* The same; *peak, when not NULL, gets the most bytes of tensors that were live at a time. */
sf_status sf_eval_measured(const sf_graph *graph, const sf_tensor *arguments, sf_tensor *results,
                           const sf_eval_setup *setup, int64_t *peak, sf_diag *diag);

/* Frees the tensors that the evaluation still holds, and its scratch memory. */
void sf_eval_close(sf_eval *eval);

/* For kernels with regions: binds the block's arguments, evaluates it and copies its results into
 * `results`, whose data the caller provides. Values of enclosing blocks are visible. */
sf_status sf_eval_block(sf_eval *eval, const sf_block *block, const sf_tensor *arguments,
                        sf_tensor *results);

/* One op on tensors, outside of an evaluation: results get data from sf_alloc, which the caller
 * frees. out[i].type and out[i].spans give the requested region; a NULL type requests the whole. */
sf_status sf_eval_op(const sf_op *op, const sf_tensor *in, sf_tensor *out, sf_diag *diag);

/* The most resources that evaluating an op on whole tensors takes besides operands and results. */
typedef struct sf_eval_need {
    int64_t scratch; /* bytes of eval->scratch, while it is evaluated */
    int64_t values;  /* bytes of tensors in its regions, which stay until sf_eval_close */
} sf_eval_need;
sf_eval_need sf_eval_needs(const sf_op *op);

/* Combines two elements by a monoid, in the arithmetic of the type. */
double sf_combine_f64(sf_monoid monoid, double a, double b);
int64_t sf_combine_i64(sf_dtype dtype, sf_monoid monoid, int64_t a, int64_t b);

/* accumulator[i] = monoid(accumulator[i], other[i]) for tensors of one type. */
void sf_combine(sf_monoid monoid, sf_tensor *accumulator, const sf_tensor *other);

#endif
