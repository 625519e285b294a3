#include "op/window/sliding.h"

#include "base/checked.h"
#include "op/util.h"

/* Far beyond any real window, and small enough that sums of a few such numbers cannot overflow. */
static const int64_t LIMIT = INT64_C(1) << 40;

static sf_status check_list(const sf_op *op, sf_ints list, int count, int64_t least,
                            const char *what, sf_diag *diag)
{
    if (list.count != 0 && list.count != count)
        return SF_OP_FAIL(op, diag, "%s has %d entries, expected %d", what, list.count, count);
    for (int i = 0; i < list.count; i++)
        if (list.at[i] < least || list.at[i] > LIMIT)
            return SF_OP_FAIL(op, diag, "%s has %" PRId64 ", which is out of range", what,
                              list.at[i]);
    return SF_OK;
}

void sf_sliding_fill(sf_sliding_lists lists, int dim, sf_sliding *window)
{
    window->stride = lists.strides.count ? lists.strides.at[dim] : 1;
    window->base = lists.base.count ? lists.base.at[dim] : 1;
    window->dilation = lists.dilation.count ? lists.dilation.at[dim] : 1;
    window->low = lists.padding.count ? lists.padding.at[2 * dim] : 0;
    window->high = lists.padding.count ? lists.padding.at[2 * dim + 1] : 0;
}

/* How far `size` things that are `apart` reach; false when that is past any real size. */
static bool spread_extent(int64_t size, int64_t apart, int64_t *out)
{
    *out = 0;
    if (size == 0)
        return true;
    return sf_mul(size - 1, apart, out) && *out < INT64_MAX / 4 && sf_add(*out, 1, out);
}

sf_status sf_sliding_check(const sf_op *op, sf_sliding_lists lists, int count, sf_sliding *windows,
                           int64_t *counts, sf_diag *diag)
{
    SF_TRY(check_list(op, lists.strides, count, 1, "window_strides", diag));
    SF_TRY(check_list(op, lists.base, count, 1, "the operand's dilation", diag));
    SF_TRY(check_list(op, lists.dilation, count, 1, "the window's dilation", diag));
    SF_TRY(check_list(op, lists.padding, 2 * count, -LIMIT, "padding", diag));
    for (int i = 0; i < count; i++) {
        sf_sliding *window = &windows[i];
        sf_sliding_fill(lists, i, window);
        if (window->size < 1 || window->size > LIMIT)
            return SF_OP_FAIL(op, diag, "a window of size %" PRId64 " in dimension %d",
                              window->size, i);
        int64_t spread, reach;
        if (!spread_extent(window->operand, window->base, &spread) ||
            !spread_extent(window->size, window->dilation, &reach))
            return SF_OP_FAIL(op, diag, "the window of dimension %d is too large", i);
        int64_t padded = window->low + spread + window->high;
        counts[i] = padded <= 0 || reach > padded ? 0 : (padded - reach) / window->stride + 1;
    }
    return SF_OK;
}

sf_run sf_sliding_run(const sf_sliding *window, int64_t n)
{
    int64_t start = n * window->stride - window->low;
    int64_t end = (window->operand - 1) * window->base; /* the last element's place */
    sf_run none = {0, 1, 0};
    int64_t w = start < 0 ? sf_ceil_div(-start, window->dilation) : 0;
    if (window->operand == 0 || start > end)
        return none;
    int64_t last = (end - start) / window->dilation;
    if (last > window->size - 1)
        last = window->size - 1;
    int64_t common = sf_gcd(window->dilation, window->base);
    if (start % common != 0)
        return none;
    /* Every `period`th position of the window is an element: find the first. */
    int64_t period = window->base / common;
    while (w <= last && (start + w * window->dilation) % window->base != 0)
        w++;
    if (w > last)
        return none;
    return (sf_run){(start + w * window->dilation) / window->base, window->dilation / common,
                    (last - w) / period + 1};
}

bool sf_run_localize(sf_span span, sf_run *run)
{
    if (run->count == 0)
        return true;
    int64_t distance = (run->count - 1) * run->step;
    int64_t first = sf_span_local(span, run->first);
    int64_t last = sf_span_local(span, run->first + distance);
    /* Equal distances mean that the shard has no gap in between. */
    if (first < 0 || last < 0 || last - first != distance)
        return false;
    run->first = first;
    return true;
}

void sf_sliding_need(const sf_sliding *window, int64_t first, int64_t end, int64_t *need_first,
                     int64_t *need_end)
{
    *need_first = *need_end = 0;
    if (first >= end)
        return;
    int64_t low = first * window->stride - window->low;
    int64_t high = (end - 1) * window->stride - window->low + (window->size - 1) * window->dilation;
    int64_t from = low <= 0 ? 0 : sf_ceil_div(low, window->base);
    int64_t to = high < 0 ? 0 : high / window->base + 1;
    if (to > window->operand)
        to = window->operand;
    if (from < to) {
        *need_first = from;
        *need_end = to;
    }
}
