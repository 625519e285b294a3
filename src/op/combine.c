/* Partial results put together: what a monoid does to two elements, and to two tensors. */
#include "op/pointwise.h"

double sf_combine_f64(sf_monoid monoid, double a, double b)
{
    switch (monoid) {
    case SF_MONOID_ADD:
        return a + b;
    case SF_MONOID_MUL:
        return a * b;
    case SF_MONOID_MIN:
        return sf_minimum(a, b);
    case SF_MONOID_MAX:
        return sf_maximum(a, b);
    case SF_MONOID_SECOND:
        return b;
    case SF_MONOID_AND:
    case SF_MONOID_OR:
    case SF_MONOID_XOR:
    case SF_MONOID_NONE:
    case SF_MONOID_COUNT:
        break;
    }
    SF_ASSERT(false); /* no body of floats is one of these */
    return b;
}

int64_t sf_combine_i64(sf_dtype dtype, sf_monoid monoid, int64_t a, int64_t b)
{
    bool less = sf_is_unsigned(dtype) ? (uint64_t)a < (uint64_t)b : a < b;
    switch (monoid) {
    case SF_MONOID_ADD:
        return sf_wrap(dtype, (int64_t)((uint64_t)a + (uint64_t)b));
    case SF_MONOID_MUL:
        return sf_wrap(dtype, (int64_t)((uint64_t)a * (uint64_t)b));
    case SF_MONOID_MIN:
        return less ? a : b;
    case SF_MONOID_MAX:
        return less ? b : a;
    case SF_MONOID_AND:
        return a & b;
    case SF_MONOID_OR:
        return a | b;
    case SF_MONOID_XOR:
        return a ^ b;
    case SF_MONOID_SECOND:
        return b;
    case SF_MONOID_NONE:
    case SF_MONOID_COUNT:
        break;
    }
    SF_ASSERT(false);
    return b;
}

enum { CHUNK = 512 };

void sf_combine(sf_monoid monoid, sf_tensor *accumulator, const sf_tensor *other)
{
    sf_dtype dtype = accumulator->type->dtype;
    union {
        double real[CHUNK];
        int64_t integer[CHUNK];
    } a, b;
    for (int64_t first = 0; first < accumulator->type->count; first += CHUNK) {
        int64_t left = accumulator->type->count - first, count = left < CHUNK ? left : CHUNK;
        if (sf_is_float(dtype)) {
            sf_load_f64s(dtype, accumulator->data, first, count, a.real);
            sf_load_f64s(dtype, other->data, first, count, b.real);
            for (int64_t i = 0; i < count; i++)
                a.real[i] = sf_combine_f64(monoid, a.real[i], b.real[i]);
            sf_store_f64s(dtype, accumulator->data, first, count, a.real);
        } else {
            sf_load_i64s(dtype, accumulator->data, first, count, a.integer);
            sf_load_i64s(dtype, other->data, first, count, b.integer);
            for (int64_t i = 0; i < count; i++)
                a.integer[i] = sf_combine_i64(dtype, monoid, a.integer[i], b.integer[i]);
            sf_store_i64s(dtype, accumulator->data, first, count, a.integer);
        }
    }
}
