/* Options of callers that were compiled with other headers. */
#include "base/boundary.h"

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
    assert_int_equal(SF_TAKE(struct ours, NULL, &got, NULL), SF_OK);
    assert_int_equal(got.size, sizeof got);
    assert_int_equal(got.first, 0);
    assert_int_equal(got.second, 0);
}

static void test_equal(void **state)
{
    struct ours got, given = {sizeof given, 2, 3};
    (void)state;
    memset(&got, 0xff, sizeof got);
    assert_int_equal(SF_TAKE(struct ours, &given, &got, NULL), SF_OK);
    assert_int_equal(got.size, sizeof got);
    assert_int_equal(got.first, 2);
    assert_int_equal(got.second, 3);
}

/* Memory after the caller's struct is not read. */
static void test_smaller(void **state)
{
    struct ours got;
    struct {
        struct older options;
        int64_t behind;
    } given = {{sizeof given.options, 2}, 7};
    (void)state;
    memset(&got, 0xff, sizeof got);
    assert_int_equal(SF_TAKE(struct ours, &given.options, &got, NULL), SF_OK);
    assert_int_equal(got.size, sizeof got);
    assert_int_equal(got.first, 2);
    assert_int_equal(got.second, 0);
}

static void test_larger(void **state)
{
    struct ours got;
    struct newer given = {sizeof given, 2, 3, 0};
    (void)state;
    assert_int_equal(SF_TAKE(struct ours, &given, &got, NULL), SF_OK);
    assert_int_equal(got.size, sizeof got);
    assert_int_equal(got.second, 3);
}

static void test_unknown(void **state)
{
    struct ours got;
    struct newer given = {sizeof given, 2, 3, 4};
    sf_diag *diag = sf_diag_new();
    (void)state;
    assert_int_equal(SF_TAKE(struct ours, &given, &got, diag), SF_EUSAGE);
    assert_int_equal(sf_diag_count(diag), 1);
    given.third = 0;
    ((unsigned char *)&given.third)[sizeof given.third - 1] = 1;
    assert_int_equal(SF_TAKE(struct ours, &given, &got, diag), SF_EUSAGE);
    sf_diag_free(diag);
}

/* Filling ends where the caller's struct ends; fields of a newer struct become zero. */
static void test_give(void **state)
{
    struct {
        struct older struct_;
        int64_t after;
    } older = {{sizeof older.struct_, 1}, 7};
    struct newer newer = {sizeof newer, 1, 2, 3};
    struct ours ours = {sizeof ours, 4, 5};
    (void)state;
    assert_int_equal(SF_GIVE(struct ours, &older.struct_, &ours, NULL), SF_OK);
    assert_int_equal(older.struct_.size, sizeof older.struct_);
    assert_int_equal(older.struct_.first, 4);
    assert_int_equal(older.after, 7);
    assert_int_equal(SF_GIVE(struct ours, &newer, &ours, NULL), SF_OK);
    assert_int_equal(newer.size, sizeof newer);
    assert_int_equal(newer.second, 5);
    assert_int_equal(newer.third, 0);
    assert_int_equal(SF_GIVE(struct ours, NULL, &ours, NULL), SF_OK);
}

static sf_status need_three(const void *first, const void *second, const void *third, sf_diag *diag)
{
    SF_NEED(diag, first, second, third);
    return SF_OK;
}

static void test_need(void **state)
{
    static const char *const named[] = {"'first'", "'second'", "'third'"};
    (void)state;
    assert_int_equal(need_three("", "", "", NULL), SF_OK);
    for (int i = 0; i < 3; i++) {
        sf_diag *diag = sf_diag_new();
        assert_int_equal(
            need_three(i == 0 ? NULL : "", i == 1 ? NULL : "", i == 2 ? NULL : "", diag),
            SF_EUSAGE);
        assert_non_null(strstr(sf_diag_text(diag, 0), "need_three"));
        assert_non_null(strstr(sf_diag_text(diag, 0), named[i]));
        sf_diag_free(diag);
    }
}

static void test_no_size(void **state)
{
    static const size_t sizes[] = {0, 1, sizeof(size_t) - 1, (size_t)-1};
    struct ours got, given = {0, 2, 3};
    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        sf_diag *diag = sf_diag_new();
        given.size = sizes[i];
        assert_int_equal(SF_TAKE(struct ours, &given, &got, diag), SF_EUSAGE);
        assert_non_null(strstr(sf_diag_text(diag, 0), "struct ours"));
        assert_int_equal(SF_CHECK_SIZE(struct ours, &given, NULL), SF_EUSAGE);
        assert_int_equal(SF_GIVE(struct ours, &given, &got, NULL), SF_EUSAGE);
        sf_diag_free(diag);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_none),    cmocka_unit_test(test_equal),
        cmocka_unit_test(test_smaller), cmocka_unit_test(test_larger),
        cmocka_unit_test(test_unknown), cmocka_unit_test(test_no_size),
        cmocka_unit_test(test_give),    cmocka_unit_test(test_need),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
