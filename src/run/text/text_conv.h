/* Convolutions as a library has them: of images channels last, in three kinds,
 *
 *     forward   y[n, q, k]  = sum over r, c of  x[n, q * stride + r * dilation - pad, c] * w[k, r,
 *               c]
 *     data      x[n, p, c] = the same sums the other way: the gradient of x from y
 *     filter    w[k, r, c] = the gradient of w from x and y
 *
 * A convolution of the text may be any of them: gradients are written as convolutions with
 * dilations and with their dimensions transposed. Operands in another layout, with uneven borders,
 * or with numbers of channels that libraries are slow with, are copied to scratch memory first, and
 * the result from there. */
#ifndef SF_RUN_TEXT_TEXT_CONV_H
#define SF_RUN_TEXT_TEXT_CONV_H

#include "run/text/kernel_text.h"

typedef enum sf_convolve_kind {
    SF_CONVOLVE_FORWARD,
    SF_CONVOLVE_DATA,
    SF_CONVOLVE_FILTER
} sf_convolve_kind;

/* Elements from one array to another: for each index i of the one that is written, in each dimension,
 *
 *     to[i] = from[turned ? first - i : first + i], or zero where that is not within 0 .. extent - 1 */
typedef struct sf_move_dim {
    int64_t size, extent, first;
    bool transposed;
    int64_t from, to; /* strides in elements */
} sf_move_dim;

typedef struct sf_move {
    int rank;
    sf_move_dim dims[SF_MAX_RANK];
} sf_move;

/* x, w or y. */
typedef struct sf_image {
    sf_param given; /* the view of the instruction */
    bool is_moved;
    sf_move move;               /* to scratch memory; of the result: from there */
    int64_t sizes[SF_MAX_RANK]; /* in space, as the library sees it */
    int64_t bytes;              /* of it, packed */
} sf_image;

enum { SF_IMAGE_X, SF_IMAGE_W, SF_IMAGE_Y };

typedef struct sf_convolve {
    sf_convolve_kind kind;
    int spatial;
    int64_t n, c, k, groups; /* w has c / groups channels */
    int64_t pad[SF_MAX_RANK], stride[SF_MAX_RANK], dilation[SF_MAX_RANK];
    sf_dtype dtype;
    bool exact;
    sf_image images[3];
    bool is_product; /* windows of one place: */
    sf_dot dot;
} sf_convolve;

/* False where it is none of the kinds. */
bool sf_convolve_of(const sf_conv *conv, sf_convolve *out);

/* Which image is the result. */
int sf_convolve_result(const sf_convolve *c);

/* The launches around the call of the library, and the addresses of the three images then. */
void sf_write_convolve(sf_writer *w, const sf_convolve *c);

#endif
