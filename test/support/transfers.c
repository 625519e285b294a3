#include "support/transfers.h"

#include <math.h>
#include <string.h>

uint64_t test_mix(uint64_t x)
{
    x += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

void test_put_element(const test_shape *s, int rank, int part, int64_t index, void *data,
                      int64_t at)
{
    uint64_t bits =
        test_mix(s->seed ^ test_mix((uint64_t)rank << 40 ^ (uint64_t)part << 32 ^ (uint64_t)index));
    sf_dtype number = sf_part_of(s->dtype);
    int parts = sf_parts_of(s->dtype);
    if (sf_is_float(number))
        for (int p = 0; p < parts; p++, bits = test_mix(bits))
            sf_store_f64(number, data, at * parts + p, (double)(bits >> 52) * 0.001 - 2);
    else
        sf_store_i64(s->dtype, data, at, (int64_t)bits);
}

static bool below(double a, double b)
{
    return a < b || (a == b && signbit(a) && !signbit(b));
}

/* In the arithmetic of the parts, step by step. */
static void multiply_complex(sf_dtype part, void *sum, const void *next)
{
    double a = sf_load_f64(part, sum, 0), b = sf_load_f64(part, sum, 1);
    double c = sf_load_f64(part, next, 0), d = sf_load_f64(part, next, 1);
    sf_store_f64(part, sum, 0, sf_round(part, a * c) - sf_round(part, b * d));
    sf_store_f64(part, sum, 1, sf_round(part, a * d) + sf_round(part, b * c));
}

static void combine_elements(const test_shape *s, void *sum, const void *next)
{
    if (sf_is_complex(s->dtype)) {
        multiply_complex(sf_part_of(s->dtype), sum, next);
        return;
    }
    if (sf_is_float(s->dtype)) {
        double a = sf_load_f64(s->dtype, sum, 0), b = sf_load_f64(s->dtype, next, 0), c = a;
        switch ((int)s->monoid) {
        case SF_MONOID_ADD:
            c = a + b;
            break;
        case SF_MONOID_MUL:
            c = a * b;
            break;
        case SF_MONOID_MIN:
            c = isnan(a) || below(a, b) ? a : b;
            break;
        case SF_MONOID_MAX:
            c = isnan(a) || below(b, a) ? a : b;
            break;
        default:
            break;
        }
        sf_store_f64(s->dtype, sum, 0, c);
        return;
    }
    int64_t a = sf_load_i64(s->dtype, sum, 0), b = sf_load_i64(s->dtype, next, 0), c = a;
    bool less = sf_is_unsigned(s->dtype) ? (uint64_t)a < (uint64_t)b : a < b;
    bool truth = s->dtype == SF_PRED;
    switch ((int)s->monoid) {
    case SF_MONOID_ADD:
        c = truth ? a | b : (int64_t)((uint64_t)a + (uint64_t)b);
        break;
    case SF_MONOID_MUL:
        c = (int64_t)((uint64_t)a * (uint64_t)b);
        break;
    case SF_MONOID_MIN:
        c = less ? a : b;
        break;
    case SF_MONOID_MAX:
        c = less ? b : a;
        break;
    case SF_MONOID_AND:
        c = a & b;
        break;
    case SF_MONOID_OR:
        c = a | b;
        break;
    case SF_MONOID_XOR:
        c = a ^ b;
        break;
    default:
        break;
    }
    sf_store_i64(s->dtype, sum, 0, c);
}

/* Segments are as long as each other, or one longer: the first ones are. */
static int segment_of(int64_t index, int64_t count, int members)
{
    int segment = 0;
    for (int64_t end = 0;; segment++) {
        end += count / members + (segment < count % members);
        if (index < end)
            return segment;
    }
}

static void fold_element(const test_shape *s, const int *ranks, int members, int segment, int part,
                         int64_t index, void *out)
{
    int64_t next[2];
    test_put_element(s, ranks[(segment + 1) % members], part, index, out, 0);
    for (int i = 2; i <= members; i++) {
        test_put_element(s, ranks[(segment + i) % members], part, index, next, 0);
        combine_elements(s, out, next);
    }
}

int test_chain_from(const test_shape *s, int place, int members)
{
    if (s->kind == SF_BROADCAST)
        return s->microbatch % members;
    if (s->microbatch == 0)
        return place - 1;
    return (place + members - s->microbatch % members) % members;
}

int test_chain_to(const test_shape *s, int place, int members)
{
    if (s->microbatch == 0)
        return place + 1 < members ? place + 1 : -1;
    return (place + s->microbatch) % members;
}

int64_t test_in_count(const test_shape *s, int part, int members)
{
    bool many = s->kind == SF_REDUCE_SCATTER || s->kind == SF_ALL_TO_ALL;
    return s->counts[part] * (many ? members : 1);
}

int64_t test_out_count(const test_shape *s, int part, int members)
{
    bool many = s->kind == SF_ALL_GATHER || s->kind == SF_ALL_TO_ALL;
    return s->counts[part] * (many ? members : 1);
}

bool test_want_element(const test_shape *s, const int *ranks, int members, int place, int part,
                       int64_t index, void *out)
{
    int64_t count = s->counts[part];
    int from;
    switch (s->kind) {
    case SF_ALL_REDUCE:
        fold_element(s, ranks, members, segment_of(index, count, members), part, index, out);
        return true;
    case SF_REDUCE_SCATTER:
        fold_element(s, ranks, members, place, part, place * count + index, out);
        return true;
    case SF_ALL_GATHER:
        test_put_element(s, ranks[index / count], part, index % count, out, 0);
        return true;
    case SF_ALL_TO_ALL:
        test_put_element(s, ranks[index / count], part, place * count + index % count, out, 0);
        return true;
    case SF_BROADCAST:
    case SF_PERMUTE:
        from = test_chain_from(s, place, members);
        if (from >= 0)
            test_put_element(s, ranks[from], part, index, out, 0);
        return from >= 0;
    case SF_COLLECTIVE_COUNT:
        break;
    }
    return false;
}
