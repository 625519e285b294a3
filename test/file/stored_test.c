/* Numbers of a file as numbers of another type: for every pair of types and many numbers, they are taken where the type
 * has that number, and refused where it has not. */
#include "file/stored.h"

#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "ir/attr.h"

static sf_pool *pool;

static int open_pool(void **state)
{
    (void)state;
    pool = sf_pool_new();
    return 0;
}

static int close_pool(void **state)
{
    (void)state;
    sf_pool_release(pool);
    return 0;
}

/* The number itself: a long double has the 64 bits that it takes. */
static long double number_at(sf_dtype dtype, const void *data, int64_t index)
{
    if (sf_is_float(dtype))
        return (long double)sf_load_f64(dtype, data, index);
    int64_t value = sf_load_i64(dtype, data, index);
    return dtype == SF_U64 ? (long double)(uint64_t)value : (long double)value;
}

static bool is_in_range(sf_dtype dtype, long double number)
{
    int bits = sf_dtype_get(dtype)->bits;
    bool is_unsigned = sf_is_unsigned(dtype) || dtype == SF_PRED;
    long double low = is_unsigned ? 0 : -ldexpl(1, bits - 1);
    return number >= low && number < ldexpl(1, is_unsigned ? bits : bits - 1);
}

/* Of a float type of up to 16 bits, by bits. */
static const double *all_numbers(sf_dtype dtype)
{
    static double *tables[SF_DTYPE_COUNT];
    if (tables[dtype])
        return tables[dtype];
    uint64_t count = UINT64_C(1) << sf_dtype_get(dtype)->bits;
    tables[dtype] = sf_arena_array(&pool->arena, (size_t)count, sizeof(double));
    for (uint64_t bits = 0; bits < count; bits++) {
        uint64_t storage = 0;
        sf_store_bits(dtype, &storage, 0, bits);
        tables[dtype][bits] = sf_load_f64(dtype, &storage, 0);
    }
    return tables[dtype];
}

/* Whether the type has it, by going through all that it has where they are few. */
static bool has_number(sf_dtype dtype, long double number)
{
    if (dtype == SF_F64)
        return isnan(number) || (long double)(double)number == number;
    if (dtype == SF_F32)
        return isnan(number) || (long double)(float)number == number;
    if (!sf_is_float(dtype))
        return !isnan(number) && truncl(number) == number && is_in_range(dtype, number);
    const double *all = all_numbers(dtype);
    for (uint64_t bits = 0; bits < UINT64_C(1) << sf_dtype_get(dtype)->bits; bits++)
        if (isnan(number) ? isnan(all[bits]) : (long double)all[bits] == number)
            return true;
    return false;
}

/* Those that are at some type's edge, as far as `dtype` has them. */
static int draw_numbers(sf_dtype dtype, void *data)
{
    static const double some[] = {
        0,
        1,
        -1,
        2,
        3,
        0.5,
        0.1,
        -0.0,
        7,
        8,
        15,
        16,
        127,
        128,
        -128,
        -129,
        255,
        256,
        448,
        464,
        32767,
        32768,
        -32768,
        -32769,
        57344,
        65504,
        65520,
        65535,
        65536,
        0x1p24,
        0x1p31,
        -0x1p31,
        0x1p32,
        0x1p53,
        0x1p62,
        0x1p63,
        1e30,
        1e300,
        (double)FLT_MAX,
        DBL_MAX,
        0x1p-149,
        0x1p-1074,
        (double)NAN,
        (double)INFINITY,
        -(double)INFINITY,
    };
    static const int64_t whole[] = {
        INT64_MAX, INT64_MIN,  (INT64_C(1) << 53) + 1, (INT64_C(1) << 24) + 1, -1,
        INT32_MAX, UINT32_MAX,
    };
    int count = 0;
    for (size_t i = 0; i < sizeof some / sizeof *some; i++)
        sf_store_f64(dtype, data, count++, some[i]);
    for (size_t i = 0; i < sizeof whole / sizeof *whole; i++)
        sf_store_i64(dtype, data, count++, whole[i]);
    return count;
}

static void check_pair(sf_dtype from, sf_dtype to, int *taken, int *refused)
{
    enum { MOST = 100 };
    uint64_t data[2 * MOST], out[2 * MOST]; /* an element has up to 16 bytes */
    int count = draw_numbers(from, data);
    sf_tensor tensor = {.type = sf_type_get(pool, from, 1, (int64_t[]){count}), .data = data};
    sf_stored stored = {.tensor = &tensor, .name = "x", .path = "file"};
    for (int i = 0; i < count; i++) {
        sf_diag *diag = sf_diag_new();
        long double number = number_at(from, data, i);
        sf_status status = sf_stored_take(&stored, i, 1, to, out, 5, diag);
        if ((status == SF_OK) != (from == to || has_number(to, number)))
            fail_msg("%Lg of %s as %s: %d", number, sf_dtype_get(from)->name,
                     sf_dtype_get(to)->name, status);
        if (status == SF_OK && !isnan(number))
            assert_true(number_at(to, out, 5) == number);
        if (status != SF_OK) {
            char said[40];
            snprintf(said, sizeof said, "element %d of x is ", i);
            assert_non_null(strstr(sf_diag_text(diag, 0), said));
        }
        ++*(status == SF_OK ? taken : refused);
        sf_diag_free(diag);
    }
}

static void test_all_pairs(void **state)
{
    (void)state;
    int taken = 0, refused = 0;
    for (int from = 0; from < SF_DTYPE_COUNT; from++)
        for (int to = 0; to < SF_DTYPE_COUNT; to++)
            if (sf_stored_converts((sf_dtype)from, (sf_dtype)to))
                check_pair((sf_dtype)from, (sf_dtype)to, &taken, &refused);
    assert_true(taken > 5000 && refused > 5000);
}

/* In a long tensor the first is named, and what stands before it was taken. */
static void test_names_the_first(void **state)
{
    (void)state;
    enum { COUNT = 1000 };
    int64_t data[COUNT];
    int32_t out[COUNT];
    const sf_type *type = sf_type_get(pool, SF_S64, 2, (int64_t[]){10, 100});
    sf_tensor tensor = {.type = type, .data = data};
    sf_stored stored = {.tensor = &tensor, .name = "batch.ids", .path = "run.safetensors"};
    for (int bad = 0; bad < COUNT; bad += 37) {
        for (int i = 0; i < COUNT; i++)
            data[i] = i >= bad ? 5000000000 + i : i;
        sf_arena arena = {0};
        sf_diag *diag = sf_diag_new();
        char said[200];
        sf_tensor view;
        assert_int_equal(sf_stored_take(&stored, 0, COUNT, SF_S32, out, 0, diag), SF_EINPUT);
        snprintf(said, sizeof said,
                 "run.safetensors: error: element %d of batch.ids is %lld, which as i32 would be "
                 "another number: the file has i64, the step i32",
                 bad, 5000000000LL + bad);
        assert_non_null(strstr(sf_diag_text(diag, 0), said));
        for (int i = 0; i < bad; i++)
            assert_int_equal(out[i], i);
        if (bad > 0)
            assert_int_equal(sf_stored_take(&stored, 0, bad, SF_S32, out, 0, diag), SF_OK);
        assert_int_equal(
            sf_stored_view(&stored, sf_type_with(pool, type, SF_U16), &arena, diag, &view),
            SF_EINPUT);
        sf_diag_free(diag);
        sf_arena_free(&arena);
    }
}

/* Weights are rounded, but no number becomes infinite by that, and integers are never rounded. */
static void test_rounds(void **state)
{
    (void)state;
    double data[] = {0.1, 1e300, (double)INFINITY, (double)NAN};
    float out[4];
    sf_tensor tensor = {.type = sf_type_get(pool, SF_F64, 1, (int64_t[]){4}), .data = data};
    sf_stored stored = {.tensor = &tensor, .name = "w", .path = "f", .rounds = true};
    assert_int_equal(sf_stored_take(&stored, 0, 1, SF_F32, out, 0, NULL), SF_OK);
    assert_true(out[0] == 0.1f);
    assert_int_equal(sf_stored_take(&stored, 1, 1, SF_F32, out, 0, NULL), SF_EINPUT);
    assert_int_equal(sf_stored_take(&stored, 2, 2, SF_F32, out, 2, NULL), SF_OK);
    assert_true(isinf(out[2]) && isnan(out[3]));
    assert_int_equal(sf_stored_take(&stored, 0, 1, SF_S32, out, 0, NULL), SF_EINPUT);
    int64_t whole = (1 << 24) + 1;
    tensor = (sf_tensor){.type = sf_type_scalar(pool, SF_S64), .data = &whole};
    assert_int_equal(sf_stored_take(&stored, 0, 1, SF_F32, out, 0, NULL), SF_EINPUT);
}

static void test_shapes(void **state)
{
    (void)state;
    const sf_type *scalar = sf_type_scalar(pool, SF_S32);
    const sf_type *one = sf_type_get(pool, SF_S64, 1, (int64_t[]){1});
    const sf_type *two = sf_type_get(pool, SF_S64, 1, (int64_t[]){2});
    assert_true(sf_stored_shape_fits(one, scalar) && !sf_stored_shape_fits(two, scalar));
    assert_false(sf_stored_shape_fits(scalar, one));
    assert_true(sf_stored_is_akin(SF_S64, SF_PRED) && !sf_stored_is_akin(SF_S64, SF_F32));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_pairs),
        cmocka_unit_test(test_names_the_first),
        cmocka_unit_test(test_rounds),
        cmocka_unit_test(test_shapes),
    };
    return cmocka_run_group_tests(tests, open_pool, close_pool);
}
