/* Options of callers that were compiled with other headers. */
#include "api/api_options.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <string.h>

/* The same struct as an older, our own and a newer header have it. */
struct older {
    size_t size;
    int64_t first;
};
struct ours {
    size_t size;
    int64_t first, second;
};
struct newer {
    size_t size;
    int64_t first, second, third;
};

static void test_none(void **state)
{
    struct ours got = {1, 2, 3};
    (void)state;
    assert_int_equal(sf_options_take(NULL, &got, sizeof got, NULL), SF_OK);
    assert_int_equal(got.size, sizeof got);
    assert_int_equal(got.first, 0);
    assert_int_equal(got.second, 0);
}

static void test_equal(void **state)
{
    struct ours got, given = {0, 2, 3};
    (void)state;
    for (int i = 0; i < 2; i++) {
        memset(&got, 0xff, sizeof got);
        given.size = i == 0 ? 0 : sizeof given;
        assert_int_equal(sf_options_take(&given, &got, sizeof got, NULL), SF_OK);
        assert_int_equal(got.size, sizeof got);
        assert_int_equal(got.first, 2);
        assert_int_equal(got.second, 3);
    }
}

/* What lies behind the struct of the caller is not read. */
static void test_smaller(void **state)
{
    struct ours got;
    struct {
        struct older options;
        int64_t after;
    } given = {{sizeof given.options, 2}, 7};
    (void)state;
    memset(&got, 0xff, sizeof got);
    assert_int_equal(sf_options_take(&given.options, &got, sizeof got, NULL), SF_OK);
    assert_int_equal(got.size, sizeof got);
    assert_int_equal(got.first, 2);
    assert_int_equal(got.second, 0);
}

static void test_larger(void **state)
{
    struct ours got;
    struct newer given = {sizeof given, 2, 3, 0};
    (void)state;
    assert_int_equal(sf_options_take(&given, &got, sizeof got, NULL), SF_OK);
    assert_int_equal(got.size, sizeof got);
    assert_int_equal(got.second, 3);
}

static void test_unknown(void **state)
{
    struct ours got;
    struct newer given = {sizeof given, 2, 3, 4};
    sf_diag *diag = sf_diag_new();
    (void)state;
    assert_int_equal(sf_options_take(&given, &got, sizeof got, diag), SF_EUSAGE);
    assert_int_equal(sf_diag_count(diag), 1);
    given.third = 0;
    ((unsigned char *)&given.third)[sizeof given.third - 1] = 1;
    assert_int_equal(sf_options_take(&given, &got, sizeof got, diag), SF_EUSAGE);
    sf_diag_free(diag);
}

static void test_no_size(void **state)
{
    struct ours got, given = {1, 2, 3};
    (void)state;
    assert_int_equal(sf_options_take(&given, &got, sizeof got, NULL), SF_EUSAGE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_none),    cmocka_unit_test(test_equal),
        cmocka_unit_test(test_smaller), cmocka_unit_test(test_larger),
        cmocka_unit_test(test_unknown), cmocka_unit_test(test_no_size),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
