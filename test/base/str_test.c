#include <float.h>
#include <locale.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/number.h"
#include "base/str.h"

static void test_compare(void **state)
{
    (void)state;
    sf_str none = {0};
    assert_true(sf_str_is(none, ""));
    assert_true(sf_str_starts(none, ""));
    assert_false(sf_str_starts(none, "a"));
    assert_true(sf_str_is((sf_str){"abc", 2}, "ab"));
    assert_false(sf_str_is((sf_str){"abc", 2}, "abc"));
    assert_true(sf_str_starts(sf_str_of("abc"), "ab"));
    assert_false(sf_str_starts((sf_str){"abc", 1}, "ab"));
    assert_false(sf_str_equal((sf_str){"a\0b", 3}, (sf_str){"a\0c", 3}));
}

static void test_buffer_grows(void **state)
{
    (void)state;
    size_t before = sf_mem_live();
    sf_buf buf = {0};
    char expected[20000];
    size_t used = 0;
    for (int i = 0; i < 1500; i++) {
        sf_buf_printf(&buf, "%d,", i);
        sf_buf_putc(&buf, '.');
        sf_buf_puts(&buf, "xy");
        sf_buf_add(&buf, "zw", 1);
        used += (size_t)sprintf(expected + used, "%d,.xyz", i);
        assert_int_equal(buf.length, used);
    }
    assert_string_equal(buf.text, expected);
    sf_buf_free(&buf);
    assert_null(buf.text);
    assert_int_equal(sf_mem_live(), before);
}

/* All sequences of one to four bytes from a set that has each boundary of the table, against the
 * definition: decode, and see whether that is the shortest way to write a character. */
static int slow_utf8(const unsigned char *at, size_t length)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    int bytes = at[0] < 0x80       ? 1
                : at[0] >> 5 == 6  ? 2
                : at[0] >> 4 == 14 ? 3
                : at[0] >> 3 == 30 ? 4
                                   : 0;
    if (bytes < 2 || (size_t)bytes > length)
        return bytes == 1;
    uint32_t c = at[0] & (0x7fu >> bytes);
    for (int i = 1; i < bytes; i++) {
        if (at[i] >> 6 != 2)
            return 0;
        c = c << 6 | (at[i] & 0x3fu);
    }
    return c >= least[bytes] && c <= 0x10ffff && (c < 0xd800 || c > 0xdfff) ? bytes : 0;
}

static void test_utf8(void **state)
{
    (void)state;
    static const unsigned char set[] = {0x00, 0x7f, 0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xbf, 0xc0,
                                        0xc1, 0xc2, 0xdf, 0xe0, 0xe1, 0xec, 0xed, 0xee, 0xef,
                                        0xf0, 0xf1, 0xf3, 0xf4, 0xf5, 0xf8, 0xff};
    enum { N = sizeof set };
    for (int code = 0; code < N * N * N * N; code++) {
        unsigned char text[4] = {set[code % N], set[code / N % N], set[code / N / N % N],
                                 set[code / N / N / N]};
        for (size_t length = 1; length <= 4; length++) {
            int got = sf_utf8_length((sf_str){(const char *)text, length});
            if (got != slow_utf8(text, length))
                fail_msg("%02x %02x %02x %02x of %zu: %d", text[0], text[1], text[2], text[3],
                         length, got);
        }
    }
    assert_int_equal(sf_utf8_length((sf_str){0}), 0);
}

static uint64_t random_state = 88172645463325252u;

static uint64_t next_random(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state;
}

/* Without zeros in front and at the end. */
static int significant_digits(const char *text)
{
    int count = 0, zeros = 0;
    for (; *text && *text != 'e'; text++) {
        if (*text == '0')
            zeros += count > 0;
        else if (*text > '0' && *text <= '9') {
            count += zeros + 1;
            zeros = 0;
        }
    }
    return count;
}

static int fewest_digits(double value)
{
    for (int digits = 1; digits < 17; digits++) {
        char text[64];
        snprintf(text, sizeof text, "%.*e", digits - 1, value);
        if (strtod(text, NULL) == value)
            return digits;
    }
    return 17;
}

static void check_number(double value)
{
    sf_buf buf = {0};
    sf_number_add(&buf, value);
    double back = sf_number_double((sf_str){buf.text, buf.length});
    if (memcmp(&back, &value, sizeof back) != 0)
        fail_msg("%.17g was written as %s and read as %.17g", value, buf.text, back);
    assert_true(significant_digits(buf.text) <= fewest_digits(value));
    assert_non_null(strpbrk(buf.text, ".e"));
    sf_buf_free(&buf);
}

static void test_double_round_trip(void **state)
{
    (void)state;
    static const double special[] = {0.0,
                                     -0.0,
                                     1,
                                     -1,
                                     0.1,
                                     1e15,
                                     1e16,
                                     1e17,
                                     1e22,
                                     1e23,
                                     DBL_MAX,
                                     DBL_MIN,
                                     DBL_TRUE_MIN,
                                     1e-5,
                                     1e-6,
                                     123456.789,
                                     9007199254740993.0};
    for (size_t i = 0; i < sizeof special / sizeof *special; i++)
        check_number(special[i]);
    for (int i = 0; i < 20000; i++) {
        uint64_t bits = next_random();
        double value;
        memcpy(&value, &bits, sizeof value);
        if (isfinite(value))
            check_number(value);
        check_number((double)(int64_t)(next_random() >> (next_random() % 64)) / 1000);
    }
}

static void test_double_forms(void **state)
{
    (void)state;
    static const struct {
        double value;
        const char *text;
    } cases[] = {{1, "1.0"},
                 {-0.0, "-0.0"},
                 {0.1, "0.1"},
                 {100, "100.0"},
                 {12.5, "12.5"},
                 {1e22, "1e+22"},
                 {1.5e-7, "1.5e-07"},
                 {0.00012, "0.00012"},
                 {1.0 / 3, "0.3333333333333333"},
                 {(double)INFINITY, "inf"},
                 {-(double)INFINITY, "-inf"},
                 {(double)NAN, "nan"},
                 {-1e300, "-1e+300"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        sf_buf buf = {0};
        sf_number_add(&buf, cases[i].value);
        assert_string_equal(buf.text, cases[i].text);
        sf_buf_free(&buf);
    }
}

/* Random decimal texts against strtod, which is right in the C locale. */
static void test_read_against_strtod(void **state)
{
    (void)state;
    for (int i = 0; i < 50000; i++) {
        char text[400];
        size_t used = 0;
        if (next_random() % 2)
            text[used++] = "-+"[next_random() % 2];
        size_t whole = next_random() % (next_random() % 10 == 0 ? 150 : 20) + 1;
        for (size_t k = 0; k < whole; k++)
            text[used++] = (char)('0' + next_random() % 10);
        if (next_random() % 2) {
            text[used++] = '.';
            size_t part = next_random() % (next_random() % 10 == 0 ? 150 : 20);
            for (size_t k = 0; k < part; k++)
                text[used++] = (char)('0' + next_random() % 10);
        }
        text[used] = 0;
        if (next_random() % 2)
            sprintf(text + used, "e%d", (int)(next_random() % 700) - 350);
        double want = strtod(text, NULL), got = sf_number_double(sf_str_of(text));
        if (memcmp(&want, &got, sizeof got) != 0)
            fail_msg("%s: %.17g, should be %.17g", text, got, want);
    }
    assert_true(isinf(sf_number_double(sf_str_of("1e99999999999999999999"))));
    assert_true(sf_number_double(sf_str_of("1e-99999999999999999999")) == 0);
    assert_true(sf_number_double(sf_str_of("0e99999999999999999999")) == 0);
}

static void test_locale_does_not_matter(void **state)
{
    (void)state;
    static const char *const names[] = {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8", "fr_FR.utf8"};
    const char *set = NULL;
    for (size_t i = 0; i < sizeof names / sizeof *names && !set; i++)
        set = setlocale(LC_NUMERIC, names[i]);
    if (!set)
        skip(); /* no locale with a comma is installed */
    sf_buf buf = {0};
    sf_number_add(&buf, 1234.5678901234567);
    double back = sf_number_double((sf_str){buf.text, buf.length});
    setlocale(LC_NUMERIC, "C");
    assert_string_equal(buf.text, "1234.5678901234567");
    assert_true(back == 1234.5678901234567);
    sf_buf_free(&buf);
}

static void test_int(void **state)
{
    (void)state;
    int64_t value;
    assert_true(sf_number_int(sf_str_of("9223372036854775807"), &value));
    assert_true(value == INT64_MAX);
    assert_true(sf_number_int(sf_str_of("-9223372036854775808"), &value));
    assert_true(value == INT64_MIN);
    assert_true(sf_number_int(sf_str_of("-0"), &value));
    assert_true(value == 0);
    static const char *const bad[] = {
        "",   "-",  "9223372036854775808",  "-9223372036854775809",   "1a",
        "+1", " 1", "18446744073709551616", "99999999999999999999999"};
    value = 7;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(sf_number_int(sf_str_of(bad[i]), &value));
    assert_true(value == 7);
}

/* Characters that move a cursor, hide or reverse text are shown by their bytes; all others stay. */
static void test_shown(void **state)
{
    (void)state;
    static const struct {
        const char *text, *shown;
    } cases[] = {
        {"", ""},
        {"layer_0/w", "layer_0/w"},
        {"caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x8e\x89", "caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x8e\x89"},
        {"\033[2J\a\n\r\t", "\\x1b[2J\\x07\\x0a\\x0d\\x09"},
        {"\x7f", "\\x7f"},
        {"\xc2\x9b"
         "31m",
         "\\xc2\\x9b"
         "31m"},
        {"a\xe2\x80\xae"
         "b\xe2\x81\xa6",
         "a\\xe2\\x80\\xae"
         "b\\xe2\\x81\\xa6"},
        {"\xff\xc3", "\\xff\\xc3"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        sf_buf buf = {0};
        char cut[5];
        sf_buf_puts(&buf, "<");
        sf_buf_show(&buf, sf_str_of(cases[i].text));
        assert_string_equal(buf.text + 1, cases[i].shown);
        size_t length = sf_show_text(sf_str_of(cases[i].text), cut, sizeof cut);
        assert_int_equal(length, strlen(cases[i].shown));
        assert_true(strlen(cut) < sizeof cut);
        sf_buf_free(&buf);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_compare),
        cmocka_unit_test(test_buffer_grows),
        cmocka_unit_test(test_utf8),
        cmocka_unit_test(test_double_round_trip),
        cmocka_unit_test(test_double_forms),
        cmocka_unit_test(test_read_against_strtod),
        cmocka_unit_test(test_locale_does_not_matter),
        cmocka_unit_test(test_int),
        cmocka_unit_test(test_shown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
