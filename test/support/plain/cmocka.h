/* What test/run/cpu/device_test.c wants of cmocka, for machines that have none: scripts/gpu-check. A test that fails ends
 * the program. */
#ifndef TEST_SUPPORT_PLAIN_CMOCKA_H
#define TEST_SUPPORT_PLAIN_CMOCKA_H

#include <stdio.h>
#include <stdlib.h>

struct CMUnitTest {
    const char *name;
    void (*run)(void **state);
};

#define cmocka_unit_test(function)                                                                 \
    {                                                                                              \
#function, function                                                                        \
    }
#define print_error(...) fprintf(stderr, __VA_ARGS__)
#define print_message(...) printf(__VA_ARGS__)
/* In place of cmocka's jump back: what cannot be tested ends the program as well, and nobody takes that for a pass. */
#define skip() (print_error("%s:%d: skipped\n", __FILE__, __LINE__), exit(77))
#define fail() fail_msg("%s:%d: failed", __FILE__, __LINE__)
#define fail_msg(...) (print_error(__VA_ARGS__), print_error("\n"), exit(1))
#define assert_true(condition)                                                                     \
    ((condition) ? (void)0 : fail_msg("%s:%d: %s", __FILE__, __LINE__, #condition))
#define assert_false(condition) assert_true(!(condition))
#define assert_int_equal(a, b) assert_true((a) == (b))
#define assert_non_null(pointer) assert_true((pointer) != NULL)
#define assert_null(pointer) assert_true((pointer) == NULL)
#define cmocka_run_group_tests(tests, open, close)                                                 \
    plain_run(tests, sizeof(tests) / sizeof *(tests), open, close)

static inline int plain_run(const struct CMUnitTest *tests, size_t count, int (*open)(void **),
                            int (*close)(void **))
{
    void *state = NULL;
    if (open)
        open(&state);
    for (size_t i = 0; i < count; i++) {
        printf("%s\n", tests[i].name);
        fflush(stdout);
        tests[i].run(&state);
    }
    if (close)
        close(&state);
    return 0;
}

#endif
