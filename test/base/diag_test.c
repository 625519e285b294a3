#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/diag.h"
#include "base/mem.h"

static void test_texts(void **state)
{
    (void)state;
    size_t before = sf_mem_live();
    sf_diag *diag = sf_diag_new();
    char name[] = "step.mlir";
    sf_loc loc = {name, 3, 14};
    assert_int_equal(sf_fail(diag, SF_EINPUT, loc, "dot contracts %d with %d", 3, 4), SF_EINPUT);
    name[0] = 'X'; /* the name was copied */
    assert_int_equal(sf_fail(diag, SF_EIO, (sf_loc){"a", 0, 0}, "cannot open"), SF_EIO);
    assert_int_equal(sf_hint(diag, "try %s", "b"), SF_EIO);
    sf_fail(diag, SF_EUSAGE, SF_NOWHERE, "nothing to do");
    assert_int_equal(sf_diag_count(diag), 3);
    assert_string_equal(sf_diag_text(diag, 0), "step.mlir:3:14: error: dot contracts 3 with 4");
    assert_string_equal(sf_diag_text(diag, 1), "a: error: cannot open\n  hint: try b");
    assert_string_equal(sf_diag_text(diag, 2), "error: nothing to do");
    assert_ptr_equal(sf_diag_text(diag, 1), sf_diag_text(diag, 1));
    sf_hint(diag, "do this");
    assert_string_equal(sf_diag_text(diag, 2), "error: nothing to do\n  hint: do this");
    assert_null(sf_diag_text(diag, 3));
    assert_null(sf_diag_text(diag, -1));
    sf_diag_clear(diag);
    assert_int_equal(sf_diag_count(diag), 0);
    assert_null(sf_diag_text(diag, 0));
    sf_diag_free(diag);
    sf_diag_free(NULL);
    assert_int_equal(sf_mem_live(), before);
}

static void test_without_diag(void **state)
{
    (void)state;
    assert_int_equal(sf_fail(NULL, SF_EMISMATCH, SF_NOWHERE, "lost"), SF_EMISMATCH);
    sf_hint(NULL, "lost too");
}

static void test_counts_past_the_kept(void **state)
{
    (void)state;
    sf_diag *diag = sf_diag_new();
    for (int i = 0; i < SF_DIAG_KEPT + 5; i++)
        sf_fail(diag, i < SF_DIAG_KEPT ? SF_EINPUT : SF_EMISMATCH, SF_NOWHERE, "number %d", i);
    assert_int_equal(sf_hint(diag, "of a message that is not kept"), SF_EMISMATCH);
    assert_int_equal(sf_diag_count(diag), SF_DIAG_KEPT + 5);
    assert_string_equal(sf_diag_text(diag, SF_DIAG_KEPT - 1), "error: number 19");
    assert_null(sf_diag_text(diag, SF_DIAG_KEPT));
    sf_diag_free(diag);
}

static void test_long_text_is_cut(void **state)
{
    (void)state;
    char text[5000];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = 0;
    sf_diag *diag = sf_diag_new();
    sf_fail(diag, SF_EINPUT, (sf_loc){text, 1, 1}, "%s", text);
    size_t length = strlen(sf_diag_text(diag, 0));
    assert_true(length > 4999 + 2000 && length < 4999 + 2100);
    sf_diag_free(diag);
}

/* A message is for after the failure: the guard that frees everything else must leave it. */
static void test_outlives_the_guard(void **state)
{
    (void)state;
    size_t before = sf_mem_live();
    sf_diag *diag = sf_diag_new();
    static const sf_loc loc = {"big.mlir", 0, 0};
    sf_guard guard;
    sf_guard_enter(&guard);
    if (setjmp(guard.target) == 0) {
        sf_fail(diag, SF_ENOMEM, loc, "too big");
        sf_hint(diag, "buy memory");
        sf_mem_fail_after(0);
        sf_alloc(1);
    }
    sf_mem_fail_after(-1);
    assert_string_equal(sf_diag_text(diag, 0), "big.mlir: error: too big\n  hint: buy memory");
    sf_diag_free(diag);
    assert_int_equal(sf_mem_live(), before);
}

/* Without memory the status remains, and something to print. */
static void test_no_memory_at_all(void **state)
{
    (void)state;
    for (long successes = 0; successes < 5; successes++) {
        sf_diag *diag = sf_diag_new();
        sf_mem_fail_after(successes);
        sf_fail(diag, SF_EIO, (sf_loc){"f", 1, 2}, "text");
        sf_hint(diag, "hint");
        const char *text = sf_diag_text(diag, 0);
        sf_mem_fail_after(-1);
        assert_non_null(strstr(text, "error: "));
        if (successes == 4)
            assert_string_equal(text, "f:1:2: error: text\n  hint: hint");
        assert_int_equal(sf_diag_count(diag), 1);
        sf_diag_free(diag);
    }
}

static void test_status_names(void **state)
{
    (void)state;
    for (int a = SF_OK; a <= SF_EPEER; a++)
        for (int b = SF_OK; b < a; b++)
            assert_string_not_equal(sf_status_name((sf_status)a), sf_status_name((sf_status)b));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_texts),
        cmocka_unit_test(test_without_diag),
        cmocka_unit_test(test_counts_past_the_kept),
        cmocka_unit_test(test_long_text_is_cut),
        cmocka_unit_test(test_outlives_the_guard),
        cmocka_unit_test(test_no_memory_at_all),
        cmocka_unit_test(test_status_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
