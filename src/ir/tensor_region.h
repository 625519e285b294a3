/* Regions: which part of a logical tensor a piece holds.
 *
 * Per dimension a piece holds a span: the indices
 *
 *     (l / length) * period + first + l % length        for l = 0, 1, ... while below `whole`
 *
 * A contiguous range has period == whole. A period below that is a strided piece: every `period`
 * indices, `length` of them. This is what splitting a minor factor under a whole major one gives.
 */
#ifndef SF_IR_TENSOR_REGION_H
#define SF_IR_TENSOR_REGION_H

#include "ir/type.h"

typedef struct sf_span {
    int64_t whole, period, first, length;
} sf_span;

static inline sf_span sf_span_whole(int64_t size)
{
    return (sf_span){size, size, 0, size};
}

static inline sf_span sf_span_range(int64_t whole, int64_t first, int64_t length)
{
    return (sf_span){whole, whole, first, length};
}

/* The index in the logical tensor of local index `local`. */
static inline int64_t sf_span_global(sf_span span, int64_t local)
{
    return span.length == 0 ? 0
                            : local / span.length * span.period + span.first + local % span.length;
}

/* The local index of a logical one, or -1 when the span does not hold it. */
int64_t sf_span_local(sf_span span, int64_t global);

#endif
