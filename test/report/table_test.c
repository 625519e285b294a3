#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "report/table.h"

static void test_counts(void **state)
{
    (void)state;
    static const struct {
        int64_t value;
        const char *text;
    } cases[] = {{0, "0"},
                 {999, "999"},
                 {1000, "1,000"},
                 {-1234567, "-1,234,567"},
                 {INT64_MAX, "9,223,372,036,854,775,807"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_string_equal(sf_text_count(cases[i].value).at, cases[i].text);
}

static void test_units(void **state)
{
    (void)state;
    static const struct {
        double value;
        const char *flops, *bytes;
    } cases[] = {
        {0, "0", "0 B"},
        {1, "1", "1 B"},
        {999, "999", "999 B"},
        {1000, "1.00 k", "1000 B"},
        {1024, "1.02 k", "1.00 KiB"},
        {9994, "9.99 k", "9.76 KiB"},
        {9999, "10.0 k", "9.76 KiB"},
        {99960, "100 k", "97.6 KiB"},
        {999999, "1.00 M", "977 KiB"},
        {1.5e12, "1.50 T", "1.36 TiB"},
        {1e18, "1.00 E", "888 PiB"},
        {1e22, "10000 E", "8674 EiB"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_string_equal(sf_text_flops(cases[i].value).at, cases[i].flops);
        assert_string_equal(sf_text_bytes(cases[i].value).at, cases[i].bytes);
    }
    assert_string_equal(sf_text_flops(1e308 * 10).at, "inf");
    assert_string_equal(sf_text_share(1, 3).at, "33.3%");
    assert_string_equal(sf_text_share(3, 3).at, "100.0%");
    assert_string_equal(sf_text_share(0, 0).at, "-");
}

static const sf_column COLUMNS[] = {{"name", false, SF_SHRINKS}, {"size", true, SF_STAYS}};

static void check_table(int width, const char *expected)
{
    sf_arena arena = {0};
    sf_buf out = {0};
    sf_table table = sf_table_new(&arena, 2, COLUMNS);
    sf_table_add(&table, "a very long name indeed");
    sf_table_add(&table, "%d", 12345);
    sf_table_add(&table, "caf\xc3\xa9 \033[1m\n");
    sf_table_add(&table, "%d", 7);
    sf_table_print(&table, (sf_style){width, false}, &out);
    assert_string_equal(out.text, expected);
    sf_buf_free(&out);
    sf_arena_free(&arena);
}

static void test_table(void **state)
{
    (void)state;
    check_table(0, "  name                      size\n"
                   "  a very long name indeed  12345\n"
                   "  caf\xc3\xa9 \\x1b[1m\\x0a             7\n");
    check_table(25, "  name               size\n"
                    "  a v..name indeed  12345\n"
                    "  caf\xc3\xa9 \\x1b[1m\\x0a      7\n");
}

/* Columns go, in their order, before the name is cut beyond reading. */
static void test_narrow_table(void **state)
{
    (void)state;
    static const sf_column columns[] = {{"name", false, SF_SHRINKS},
                                        {"first", true, SF_GOES_FIRST},
                                        {"second", true, SF_GOES_SECOND},
                                        {"stays", true, SF_STAYS}};
    static const struct {
        int width;
        const char *text;
    } cases[] = {
        {71, "  name                                             first  second  stays\n"
             "  params['layer_0']['attention']['mlp']['kernel']      1       2      3\n"},
        {60, "  name                                  first  second  stays\n"
             "  params['..tention']['mlp']['kernel']      1       2      3\n"},
        {59, "  name                                        second  stays\n"
             "  params['la..['attention']['mlp']['kernel']       2      3\n"},
        {52, "  name                                         stays\n"
             "  params['la..]['attention']['mlp']['kernel']      3\n"},
        {29, "  name                  stays\n"
             "  para..lp']['kernel']      3\n"},
        {3, "  name          stays\n"
            "  pa..kernel']      3\n"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        sf_arena arena = {0};
        sf_buf out = {0};
        sf_table table = sf_table_new(&arena, 4, columns);
        sf_table_add(&table, "params['layer_0']['attention']['mlp']['kernel']");
        for (int k = 1; k <= 3; k++)
            sf_table_add(&table, "%d", k);
        sf_table_print(&table, (sf_style){cases[i].width, false}, &out);
        assert_string_equal(out.text, cases[i].text);
        sf_buf_free(&out);
        sf_arena_free(&arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_counts),
        cmocka_unit_test(test_units),
        cmocka_unit_test(test_table),
        cmocka_unit_test(test_narrow_table),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
