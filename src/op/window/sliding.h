/* Windows that slide over one dimension of an operand: the arithmetic that convolution, reduce_window
 * and select_and_scatter share.
 *
 * The operand is dilated (by `base`), padded with `low` and `high` positions (negative: cut off),
 * and window number n looks at the positions
 *
 *     n * stride + w * dilation        for w = 0, 1, ... size - 1
 *
 * of that. A position that is no element of the operand is padding. */
#ifndef SF_OP_SLIDING_H
#define SF_OP_SLIDING_H

#include "ir/opdef.h"

typedef struct sf_sliding {
    int64_t operand; /* size of the dimension it slides over */
    int64_t size, stride, low, high, base, dilation;
} sf_sliding;

/* The attributes of an op that give its windows; each list is empty (all default) or has an entry
 * per dimension, padding two. */
typedef struct sf_sliding_lists {
    sf_ints strides, padding, base, dilation;
} sf_sliding_lists;

/* Checks the attributes of `count` dimensions and bounds them such that no arithmetic on positions
 * overflows. On input `windows` has `operand` and `size`; the other fields are filled in. `counts`
 * gets the number of windows of each dimension. */
sf_status sf_sliding_check(const sf_op *op, sf_sliding_lists lists, int count, sf_sliding *windows,
                           int64_t *counts, sf_diag *diag);

/* Fills in the other fields of one window from attributes that were checked. */
void sf_sliding_fill(sf_sliding_lists lists, int dim, sf_sliding *window);

/* The window of these ops along a dimension. */
sf_sliding sf_reduce_window_window(const sf_op *op, int dim);
sf_sliding sf_select_and_scatter_window(const sf_op *op, int dim);

/* True when window n is element n. */
static inline bool sf_sliding_trivial(const sf_sliding *window)
{
    return window->size == 1 && window->stride == 1 && window->low == 0 && window->high == 0 &&
           window->base == 1;
}

/* 1 if each window has all positions up to its own, as those of a cumulative sum do, -1 if it has
 * all from there on, else 0. Such a window folds the elements of its neighbour, and one more. */
static inline int sf_sliding_growth(const sf_sliding *window)
{
    int64_t size = window->size, before = size - 1;
    bool is_plain = window->stride == 1 && window->base == 1 && window->dilation == 1;
    if (!is_plain || size == 1 || size != window->operand)
        return 0;
    return window->low == before && window->high == 0   ? 1
           : window->high == before && window->low == 0 ? -1
                                                        : 0;
}

/* The element that window n sees at w, or -1 for padding. */
static inline int64_t sf_sliding_at(const sf_sliding *window, int64_t n, int64_t w)
{
    int64_t position = n * window->stride + w * window->dilation - window->low;
    if (position < 0 || position % window->base != 0)
        return -1;
    int64_t index = position / window->base;
    return index < window->operand ? index : -1;
}

/* The elements that a window sees: first, first + step, ... */
typedef struct sf_run {
    int64_t first, step, count;
} sf_run;

sf_run sf_sliding_run(const sf_sliding *window, int64_t n);

/* Converts indices of the whole dimension into those of a shard of it. False when the shard does
 * not hold all of them. */
bool sf_run_localize(sf_span span, sf_run *run);

/* The range of elements that windows [first, end) look at, clipped to the operand. */
void sf_sliding_need(const sf_sliding *window, int64_t first, int64_t end, int64_t *need_first,
                     int64_t *need_end);

#endif
