/* A convolution seen as a product: which dimension is where in the rows of A and C. */
#ifndef SF_RUN_CONV_CONV_AS_GEMM_H
#define SF_RUN_CONV_CONV_AS_GEMM_H

#include "run/conv/conv.h"
#include "run/gemm/gemm_block.h"

/* A dimension of the result's places: a spatial one, or the batch (space -1). */
typedef struct sf_conv_place {
    int space;
    int64_t size, lhs_stride, out_stride;
} sf_conv_place;

/* Steps p of the product are (window position, channel), channels fastest; rows are the places of the
 * result, the last fastest. Batches are groups. */
typedef struct sf_conv_plan {
    const sf_conv_job *conv;
    const sf_gemm_type *type;
    int nplaces;
    sf_conv_place places[SF_MAX_RANK];
    int64_t groups, features; /* features of one group */
    int64_t rows, steps;
    int64_t lhs_group, rhs_group, out_group; /* strides */
    bool along_rows;   /* neighbours in memory are neighbouring rows of A, not steps */
    bool plain_kernel; /* rhs is a matrix: the distance of steps is everywhere rhs_input */
    int64_t c_row;     /* distance of rows of C where that is one number, else -1 */
} sf_conv_plan;

/* conv_pack.c: index of row `row` in every place, and the next row; the last place runs fastest. */
void sf_conv_row(const sf_conv_plan *plan, int64_t row, int64_t *at);
void sf_conv_next_row(const sf_conv_plan *plan, int64_t *at);

void sf_conv_pack_lhs(const void *context, int64_t group, int64_t first, int64_t count, int64_t p,
                      int64_t k, void *panels);
void sf_conv_pack_rhs(const void *context, int64_t group, int64_t first, int64_t count, int64_t p,
                      int64_t k, void *panels);

/* conv_phase.c: convolution `number` of those that `whole` is made of; false past the last. */
bool sf_conv_phase(const sf_conv_job *whole, int64_t number, sf_conv_job *out);

/* The element at a position of one dimension, or -1. */
static inline int64_t sf_conv_element(const sf_conv_dim *dim, int64_t position)
{
    if (dim->base != 1) {
        if (position < 0 || position % dim->base != 0)
            return -1;
        position /= dim->base;
    }
    return position >= 0 && position < dim->lhs ? position : -1;
}

/* conv_direct.c: the same without a product of matrices, for groups of so few features that its kernels
 * would mostly multiply zeros. */
bool sf_conv_direct_can(const sf_conv_plan *plan);
int64_t sf_conv_direct_scratch(const sf_conv_plan *plan, int threads);
void sf_conv_direct(const sf_conv_plan *plan, sf_threads *threads);

#endif
