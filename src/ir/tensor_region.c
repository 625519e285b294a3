#include "ir/tensor_region.h"

int64_t sf_span_local(sf_span span, int64_t global)
{
    if (global < 0 || global >= span.whole)
        return -1;
    int64_t within = global % span.period - span.first;
    if (within < 0 || within >= span.length)
        return -1;
    return global / span.period * span.length + within;
}
