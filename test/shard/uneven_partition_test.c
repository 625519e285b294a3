/* Uneven partitions: printed text reads back, and each row has one owner. */
#include "shard/uneven_partition.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void texts_come_back(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t count;
        const char *to; /* a digit a row */
        int64_t most;
        uint64_t hands;
    } cases[] = {
        {"0:0-3,1:4-7", 8, "00001111", 4, 3},
        {"0:0-1+4-5,1:2-3+6", 7, "0011001", 4, 3},
        {"0:1,3:0+2", 3, "303", 2, 9},
        {"2:0", 1, "2", 1, 4},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        sf_arena arena = {0};
        sf_str rest = sf_str_of(cases[i].text);
        const sf_row_partition *partition = sf_row_partition_parse(&rest, cases[i].count, &arena);
        assert_non_null(partition);
        assert_int_equal(rest.length, 0);
        int64_t rows = 0;
        for (int64_t row = 0; row < partition->count; row++)
            assert_int_equal(partition->to[row], cases[i].to[row] - '0');
        for (int hand = 0; hand < 64; hand++)
            rows += sf_row_partition_rows(partition, hand);
        assert_int_equal(rows, cases[i].count);
        assert_int_equal(sf_row_partition_most(partition), cases[i].most);
        assert_int_equal(sf_row_partition_owners(partition), cases[i].hands);
        sf_buf text = {0};
        sf_row_partition_print(partition, &text);
        assert_string_equal(text.text, cases[i].text);
        sf_buf_free(&text);
        const sf_row_partition *same =
            sf_row_partition_new(partition->count, partition->to, &arena);
        assert_true(sf_row_partition_equal(partition, same));
        assert_int_equal(sf_row_partition_hash(partition), sf_row_partition_hash(same));
        assert_false(sf_row_partition_equal(partition, NULL));
        sf_arena_free(&arena);
    }
}

static void other_texts_are_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "0:0-2",       /* row 3 is nobody's */
        "0:0-3,1:3",   /* row 3 has two owners */
        "0:0-4",       /* there is no row 4 */
        "64:0-3",      /* nor a hand 64 */
        "0:3-0,1:0-3", /* backwards is nothing */
        "0:",          "0", "", ":0-3", "0:0-3,", "0:0-1+", "0:99999999999999999999",
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        sf_arena arena = {0};
        sf_str rest = sf_str_of(bad[i]);
        if (sf_row_partition_parse(&rest, 4, &arena))
            fail_msg("\"%s\" was taken", bad[i]);
        sf_arena_free(&arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_come_back),
        cmocka_unit_test(other_texts_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
