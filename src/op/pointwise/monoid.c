/* Combining partial results: a monoid on two elements, and on two tensors. */
#include "op/pointwise/pointwise.h"

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

static void combine_parts(sf_monoid monoid, sf_dtype dtype, int64_t total, void *into,
                          const void *other)
{
    union {
        double real[CHUNK];
        int64_t integer[CHUNK];
    } a, b;
    for (int64_t first = 0; first < total; first += CHUNK) {
        int64_t left = total - first, count = left < CHUNK ? left : CHUNK;
        if (sf_is_float(dtype)) {
            sf_load_f64s(dtype, into, first, count, a.real);
            sf_load_f64s(dtype, other, first, count, b.real);
            for (int64_t i = 0; i < count; i++)
                a.real[i] = sf_combine_f64(monoid, a.real[i], b.real[i]);
            sf_store_f64s(dtype, into, first, count, a.real);
        } else {
            sf_load_i64s(dtype, into, first, count, a.integer);
            sf_load_i64s(dtype, other, first, count, b.integer);
            for (int64_t i = 0; i < count; i++)
                a.integer[i] = sf_combine_i64(dtype, monoid, a.integer[i], b.integer[i]);
            sf_store_i64s(dtype, into, first, count, a.integer);
        }
    }
}

static void multiply_complex(sf_dtype dtype, int64_t count, void *into, const void *other)
{
    for (int64_t i = 0; i < count; i++) {
        sf_complex a, b;
        sf_complex_load(dtype, into, i, 1, &a);
        sf_complex_load(dtype, other, i, 1, &b);
        a = sf_complex_mul(a, b);
        sf_complex_store(dtype, into, i, 1, &a);
    }
}

/* The parts of complex numbers are added one by one. */
void sf_combine(sf_monoid monoid, sf_tensor *accumulator, const sf_tensor *other)
{
    sf_dtype dtype = accumulator->type->dtype;
    int64_t count = accumulator->type->count;
    if (sf_is_complex(dtype) && monoid == SF_MONOID_MUL)
        multiply_complex(dtype, count, accumulator->data, other->data);
    else
        combine_parts(monoid, sf_part_of(dtype), count * sf_parts_of(dtype), accumulator->data,
                      other->data);
}
