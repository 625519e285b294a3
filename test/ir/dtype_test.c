/* The number formats, checked against their definition: every pattern of the narrow types, and
 * rounding against a search over all numbers of the type. */
#include "ir/dtype.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <math.h>
#include <string.h>

static double number(sf_dtype dtype, uint64_t bits)
{
    uint64_t storage = 0;
    sf_store_bits(dtype, &storage, 0, bits);
    return sf_load_f64(dtype, &storage, 0);
}

static uint64_t pattern(sf_dtype dtype, double value)
{
    uint64_t storage = 0;
    sf_store_f64(dtype, &storage, 0, value);
    return sf_load_bits(dtype, &storage, 0);
}

static bool narrow_float(sf_dtype dtype)
{
    return sf_is_float(dtype) && sf_dtype_get(dtype)->bits <= 16;
}

/* splitmix64 */
static uint64_t next_random(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

static void test_names(void **state)
{
    (void)state;
    for (int i = 0; i < SF_DTYPE_COUNT; i++) {
        const sf_dtype_info *info = sf_dtype_get((sf_dtype)i);
        sf_dtype found;
        assert_true(sf_dtype_find(SF_SPELL_STABLEHLO, sf_str_of(info->name), &found));
        assert_int_equal(found, i);
        assert_true(sf_dtype_find(SF_SPELL_HLO, sf_str_of(info->hlo), &found));
        assert_int_equal(found, i);
        assert_true(sf_dtype_find(SF_SPELL_SAFETENSORS, sf_str_of(info->safetensors), &found));
        assert_int_equal(found, i);
        assert_true(info->bytes * 8 >= info->bits);
    }
    sf_dtype found;
    assert_false(sf_dtype_find(SF_SPELL_STABLEHLO, sf_str_of("f31"), &found));
    assert_false(sf_dtype_find(SF_SPELL_STABLEHLO, sf_str_of(""), &found));
}

static void test_every_pattern_survives(void **state)
{
    (void)state;
    for (int i = 0; i < SF_DTYPE_COUNT; i++) {
        sf_dtype dtype = (sf_dtype)i;
        if (!narrow_float(dtype))
            continue;
        for (uint64_t bits = 0; bits < UINT64_C(1) << sf_dtype_get(dtype)->bits; bits++) {
            double value = number(dtype, bits);
            if (isnan(value)) {
                double recomputed = number(dtype, pattern(dtype, value));
                assert_true(isnan(recomputed));
                assert_int_equal(signbit(recomputed) != 0, signbit(value) != 0);
            } else {
                assert_int_equal(pattern(dtype, value), bits);
            }
        }
    }
}

static void test_every_integer_survives(void **state)
{
    (void)state;
    for (int i = 0; i < SF_DTYPE_COUNT; i++) {
        sf_dtype dtype = (sf_dtype)i;
        if (sf_is_float(dtype) || sf_dtype_get(dtype)->bits > 16)
            continue;
        for (uint64_t bits = 0; bits < UINT64_C(1) << sf_dtype_get(dtype)->bits; bits++) {
            uint64_t storage = 0;
            sf_store_bits(dtype, &storage, 0, bits);
            int64_t value = sf_load_i64(dtype, &storage, 0);
            assert_int_equal(sf_wrap(dtype, (int64_t)bits), value);
            assert_true(sf_load_f64(dtype, &storage, 0) == (double)value);
            assert_int_equal(pattern(dtype, (double)value), bits);
            sf_store_i64(dtype, &storage, 0, value);
            assert_int_equal(sf_load_bits(dtype, &storage, 0), bits);
        }
    }
}

/* The nearest number of the type by brute force: over all of them, the last bit deciding a tie. */
static double nearest(sf_dtype dtype, const double *numbers, uint64_t count, double value)
{
    double best = (double)NAN;
    bool best_even = false;
    for (uint64_t bits = 0; bits < count; bits++) {
        double candidate = numbers[bits];
        if (isnan(candidate) ||
            (value != 0 && (signbit(candidate) != 0) != (signbit(value) != 0) && candidate != 0))
            continue;
        double distance = fabs(candidate - value), other = fabs(best - value);
        /* The significand of a power of two is odd, so its ties go up. */
        bool even = dtype == SF_F8E8M0FNU ? candidate > value : (bits & 1) == 0;
        if (isnan(best) || distance < other || (distance == other && even && !best_even)) {
            best = candidate;
            best_even = even;
        }
    }
    return best;
}

static double largest(const double *numbers, uint64_t count)
{
    double most = 0;
    for (uint64_t i = 0; i < count; i++)
        if (isfinite(numbers[i]) && numbers[i] > most)
            most = numbers[i];
    return most;
}

/* Doubles near the range of the type, among them exact midpoints and their neighbours. */
static double sample(const double *numbers, uint64_t count, uint64_t *random)
{
    double a = numbers[next_random(random) % count], b = numbers[next_random(random) % count];
    switch (next_random(random) % 4) {
    case 0:
        return a / 2 + b / 2;
    case 1:
        return nextafter(a / 2 + b / 2, 0);
    case 2:
        return nextafter(a / 2 + b / 2, 1e300);
    default:
        return a * (1 + ldexp((double)(next_random(random) >> 40), -30));
    }
}

static void test_rounding_is_nearest(void **state)
{
    (void)state;
    static double numbers[256];
    uint64_t random = 1;
    for (int i = 0; i < SF_DTYPE_COUNT; i++) {
        sf_dtype dtype = (sf_dtype)i;
        if (!sf_is_float(dtype) || sf_dtype_get(dtype)->bits > 8)
            continue;
        uint64_t count = UINT64_C(1) << sf_dtype_get(dtype)->bits;
        for (uint64_t bits = 0; bits < count; bits++)
            numbers[bits] = number(dtype, bits);
        double most = largest(numbers, count);
        for (int trial = 0; trial < 20000; trial++) {
            double value = sample(numbers, count, &random);
            if (!isfinite(value) || fabs(value) > most ||
                (dtype == SF_F8E8M0FNU && value <= numbers[1]))
                continue;
            double expected = nearest(dtype, numbers, count, value), got = sf_round(dtype, value);
            assert_true(got == expected);
        }
    }
}

/* For the wider types the neighbours by bit pattern are the only rivals. */
static void check_neighbours(sf_dtype dtype, double value)
{
    uint64_t bits = pattern(dtype, value);
    double got = number(dtype, bits);
    assert_true(signbit(got) == signbit(value));
    double distance = fabs(got - value);
    for (int step = -1; step <= 1; step += 2) {
        uint64_t magnitude_mask = (UINT64_C(1) << (sf_dtype_get(dtype)->bits - 1)) - 1;
        if (step < 0 && (bits & magnitude_mask) == 0)
            continue;
        double rival = number(dtype, bits + (uint64_t)step);
        if (!isfinite(rival))
            continue;
        assert_true(distance <= fabs(rival - value));
        if (distance == fabs(rival - value))
            assert_true((bits & 1) == 0);
    }
}

static void test_wide_rounding(void **state)
{
    (void)state;
    static const sf_dtype dtypes[] = {SF_F16, SF_BF16, SF_F32};
    static const int exponents[] = {14, 126, 126};
    uint64_t random = 7;
    for (int i = 0; i < 3; i++)
        for (int trial = 0; trial < 300000; trial++) {
            int range = exponents[i] + 26;
            int exponent = (int)(next_random(&random) % (uint64_t)(2 * range)) - range;
            if (exponent >= exponents[i])
                exponent = exponents[i] - 1;
            double value = ldexp(1 + ldexp((double)(next_random(&random) >> 12), -52), exponent);
            if (trial & 1)
                value = -value;
            /* Double rounding shows at the midpoints and right next to them. */
            if (trial % 3 != 0) {
                uint64_t bits = pattern(dtypes[i], value);
                value = (number(dtypes[i], bits) + number(dtypes[i], bits + 1)) / 2;
                if (trial % 3 == 2)
                    value = nextafter(value, trial & 4 ? 0 : value * 2);
            }
            if (isfinite(value))
                check_neighbours(dtypes[i], value);
        }
}

static void test_limits(void **state)
{
    (void)state;
    assert_true(sf_round(SF_F16, 65519.999) == 65504);
    assert_true(sf_round(SF_F16, 65520) == (double)INFINITY);
    assert_true(sf_round(SF_F16, ldexp(1, -25)) == 0);
    assert_true(sf_round(SF_F16, nextafter(ldexp(1, -25), 1)) == ldexp(1, -24));
    assert_true(sf_round(SF_BF16, 3.3962e38) == (double)INFINITY);
    assert_true(sf_round(SF_BF16, 1e300) == (double)INFINITY);
    assert_true(sf_round(SF_BF16, -1e300) == -(double)INFINITY);
    assert_true(sf_round(SF_BF16, 1e-300) == 0);
    assert_true(sf_round(SF_F8E5M2, 57344) == 57344);
    assert_true(sf_round(SF_F8E5M2, 61440) == (double)INFINITY);
    assert_true(sf_round(SF_F8E4M3, 240) == 240);
    assert_true(sf_round(SF_F8E3M4, 15.5) == 15.5);
    assert_true(sf_round(SF_F8E4M3FN, 448) == 448);
    assert_true(sf_round(SF_F8E4M3FN, 464) == 448);
    assert_true(isnan(sf_round(SF_F8E4M3FN, 465)));
    assert_true(isnan(sf_round(SF_F8E4M3FN, (double)INFINITY)));
    assert_true(sf_round(SF_F8E4M3FNUZ, 240) == 240);
    assert_true(isnan(sf_round(SF_F8E4M3FNUZ, 250)));
    assert_true(sf_round(SF_F8E4M3B11FNUZ, 30) == 30);
    assert_true(isnan(sf_round(SF_F8E4M3B11FNUZ, -33)));
    assert_int_equal(pattern(SF_F8E5M2FNUZ, -0.0), 0);
    assert_int_equal(pattern(SF_F8E5M2FNUZ, -1e-30), 0);
    assert_true(sf_round(SF_F8E5M2FNUZ, 57344) == 57344);
    assert_true(sf_round(SF_F4E2M1FN, 100) == 6);
    assert_true(sf_round(SF_F4E2M1FN, -(double)INFINITY) == -6);
    assert_int_equal(pattern(SF_F4E2M1FN, (double)NAN), 8);
    assert_true(sf_round(SF_F6E2M3FN, 8) == 7.5);
    assert_true(sf_round(SF_F6E3M2FN, 30) == 28);
    assert_true(sf_round(SF_F8E8M0FNU, 3) == 4);
    assert_true(sf_round(SF_F8E8M0FNU, 2.9) == 2);
    assert_true(sf_round(SF_F8E8M0FNU, 1e-300) == ldexp(1, -127));
    assert_true(sf_round(SF_F8E8M0FNU, ldexp(1, 127)) == ldexp(1, 127));
    assert_true(isnan(sf_round(SF_F8E8M0FNU, ldexp(1.5, 127))));
    assert_true(isnan(sf_round(SF_F8E8M0FNU, 0)));
    assert_true(isnan(sf_round(SF_F8E8M0FNU, -1)));
}

static void test_to_integers(void **state)
{
    (void)state;
    const struct {
        sf_dtype dtype;
        double value;
        int64_t expected;
    } cases[] = {
        {SF_S32, 2.9, 2},
        {SF_S32, -2.9, -2},
        {SF_S32, 1e20, INT32_MAX},
        {SF_S32, -1e20, INT32_MIN},
        {SF_S32, (double)NAN, 0},
        {SF_S8, -128.5, -128},
        {SF_S8, 127.5, 127},
        {SF_S8, -(double)INFINITY, -128},
        {SF_U8, 300, 255},
        {SF_U8, -3, 0},
        {SF_U8, (double)NAN, 0},
        {SF_S64, 9.3e18, INT64_MAX},
        {SF_S64, -9.3e18, INT64_MIN},
        {SF_U64, 1e30, -1},
        {SF_U64, ldexp(1, 63), INT64_MIN},
        {SF_S4, 9, 7},
        {SF_S4, -9, -8},
        {SF_U2, 9, 3},
        {SF_PRED, 0.25, 1},
        {SF_PRED, -0.0, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint64_t storage = 0;
        sf_store_f64(cases[i].dtype, &storage, 0, cases[i].value);
        assert_int_equal(sf_load_i64(cases[i].dtype, &storage, 0), cases[i].expected);
    }
    uint64_t storage;
    sf_store_i64(SF_U64, &storage, 0, -1);
    assert_true(sf_load_f64(SF_U64, &storage, 0) == ldexp(1, 64));
    assert_int_equal(sf_wrap(SF_S8, 128), -128);
    assert_int_equal(sf_wrap(SF_U16, -1), 65535);
    assert_int_equal(sf_wrap(SF_U64, -1), -1);
    assert_int_equal(sf_wrap(SF_PRED, 2), 1);
}

/* Loading and storing many is loading and storing each, from any byte on. */
static void test_bulk(void **state)
{
    (void)state;
    enum { COUNT = 37 };
    char from[SF_ELEMENT_BYTES * COUNT + 1], to[SF_ELEMENT_BYTES * COUNT + 1];
    char one[SF_ELEMENT_BYTES * COUNT + 1];
    uint64_t random = 3;
    for (int i = 0; i < SF_DTYPE_COUNT; i++) {
        sf_dtype dtype = (sf_dtype)i;
        for (size_t byte = 0; byte < sizeof from; byte++)
            from[byte] = (char)next_random(&random);
        memset(to, 0, sizeof to);
        memset(one, 0, sizeof one);
        double reals[COUNT];
        int64_t integers[COUNT];
        sf_load_f64s(dtype, from + 1, 2, COUNT - 2, reals);
        sf_load_i64s(dtype, from + 1, 2, COUNT - 2, integers);
        for (int k = 0; k < COUNT - 2; k++) {
            double real = sf_load_f64(dtype, from + 1, k + 2);
            assert_memory_equal(&real, &reals[k], sizeof real);
            assert_int_equal(sf_load_i64(dtype, from + 1, k + 2), integers[k]);
            sf_store_f64(dtype, one + 1, k + 1, real);
        }
        sf_store_f64s(dtype, to + 1, 1, COUNT - 2, reals);
        assert_memory_equal(to, one, sizeof to);
    }
}

/* A complex number is its two parts. */
static void test_complex(void **state)
{
    (void)state;
    static const sf_dtype types[] = {SF_C64, SF_C128}, parts[] = {SF_F32, SF_F64};
    for (int i = 0; i < 2; i++) {
        sf_dtype made;
        assert_true(sf_is_complex(types[i]) && sf_is_inexact(types[i]) && !sf_is_float(types[i]));
        assert_int_equal(sf_part_of(types[i]), parts[i]);
        assert_int_equal(sf_parts_of(types[i]), 2);
        assert_true(sf_complex_of(parts[i], &made));
        assert_int_equal(made, types[i]);
        assert_int_equal(sf_dtype_get(types[i])->bytes, 2 * sf_dtype_get(parts[i])->bytes);
        double storage[4] = {7, 7, 7, 7};
        sf_store_f64(types[i], storage, 1, 2.5);
        assert_true(sf_load_f64(parts[i], storage, 2) == 2.5);
        assert_true(sf_load_f64(parts[i], storage, 3) == 0);
        sf_store_f64(parts[i], storage, 3, -4);
        assert_true(sf_load_f64(types[i], storage, 1) == 2.5);
        assert_int_equal(sf_load_i64(types[i], storage, 1), 2);
    }
    for (int i = 0; i < SF_DTYPE_COUNT; i++)
        assert_true(sf_dtype_get((sf_dtype)i)->bytes <= SF_ELEMENT_BYTES);
    sf_dtype made;
    assert_false(sf_complex_of(SF_BF16, &made));
    assert_int_equal(sf_part_of(SF_S8), SF_S8);
    assert_int_equal(sf_parts_of(SF_S8), 1);
}

static void test_reduced_formats(void **state)
{
    (void)state;
    assert_true(sf_round_format(1.3, 11, 52) == 1.3);
    assert_true(sf_round_format(65520, 5, 10) == (double)INFINITY);
    assert_true(sf_round_format(-65519, 5, 10) == -65504);
    /* Below the normal range is zero: reduce_precision has no denormals. */
    assert_true(sf_round_format(ldexp(1, -14), 5, 10) == ldexp(1, -14));
    double flushed = sf_round_format(-ldexp(1, -15), 5, 10);
    assert_true(flushed == 0 && signbit(flushed));
    assert_true(sf_round_format(2.5, 8, 1) == 2);
    assert_true(sf_round_format(3.5, 8, 1) == 4);
    assert_true(isnan(sf_round_format((double)NAN, 2, 1)));
    uint64_t random = 11;
    for (int trial = 0; trial < 10000; trial++) {
        double value = ldexp((double)(next_random(&random) >> 11), (int)(trial % 28) - 66);
        if (value >= ldexp(1, -14))
            assert_true(sf_round_format(value, 5, 10) == sf_round(SF_F16, value));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_every_pattern_survives),
        cmocka_unit_test(test_every_integer_survives),
        cmocka_unit_test(test_rounding_is_nearest),
        cmocka_unit_test(test_wide_rounding),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_to_integers),
        cmocka_unit_test(test_bulk),
        cmocka_unit_test(test_complex),
        cmocka_unit_test(test_reduced_formats),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
