/* Random dimension numbers of gather and scatter, and the index arithmetic of the StableHLO
 * specification, written down plainly. */
#ifndef TEST_SUPPORT_INDEXING_H
#define TEST_SUPPORT_INDEXING_H

#include "base/rng.h"
#include "op/eval.h"
#include "op/node_builder.h"

/* Deterministic random numbers. */
typedef struct test_random {
    uint32_t key, count;
} test_random;

/* Uniform in [low, high]. */
int64_t test_draw(test_random *random, int64_t low, int64_t high);

/* Names as in gather; in brackets what scatter calls it. */
typedef struct test_numbers {
    int noffset, ncollapsed, nbatching, nmap;
    int64_t offset[SF_MAX_RANK];           /* [update_window_dims] */
    int64_t collapsed[SF_MAX_RANK];        /* [inserted_window_dims] */
    int64_t operand_batching[SF_MAX_RANK]; /* [input_batching_dims] */
    int64_t indices_batching[SF_MAX_RANK]; /* [scatter_indices_batching_dims] */
    int64_t map[SF_MAX_RANK];              /* [scatter_dims_to_operand_dims] */
    int64_t vector_dim;
    const sf_type *operand, *indices, *windowed; /* [updates] */
    int64_t sizes[SF_MAX_RANK];                  /* of the window, per operand dim */
} test_numbers;

/* Draws everything; the operand and the windowed tensor have elements of `dtype`. */
test_numbers test_draw_numbers(test_random *random, sf_pool *pool, sf_dtype dtype);

/* The six attributes that gather and scatter share, in the order of their slots. */
void test_number_attrs(const test_numbers *numbers, sf_pool *pool, const sf_attr **attrs);

/* A whole tensor with small random elements. Memory is from the arena. */
sf_tensor test_draw_tensor(test_random *random, sf_arena *arena, const sf_type *type, int64_t low,
                           int64_t high);

/* For a global index of the windowed tensor: where its window begins in the operand, batching
 * included and nothing clamped, and its place within the window. */
void test_window(const test_numbers *numbers, const sf_tensor *indices, const int64_t *at,
                 int64_t *start, int64_t *within);

/* Cuts every factor that may be cut in two at a random place, evaluates the pieces, joins or
 * combines them and compares with `whole`, the results of the op on `in`. */
void test_split(test_random *random, const sf_op *op, const sf_tensor *in, const sf_tensor *whole);

#endif
