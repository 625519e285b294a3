#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/json.h"
#include "base/mem.h"
#include "support/json_tree.h"

static uint64_t random_state = 88172645463325252u;

static uint64_t next_random(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state;
}

/* A copy of just the text, with nothing behind it, so that the sanitizer sees a read past the end. */
static sf_status parse_exactly(sf_str text, sf_arena *arena, const sf_json **out, sf_diag *diag)
{
    char *copy = malloc(text.length ? text.length : 1);
    assert_non_null(copy);
    memcpy(copy, text.at, text.length);
    sf_status status = sf_json_parse((sf_str){copy, text.length}, "t.json", arena, out, diag);
    free(copy);
    return status;
}

static const sf_json *parse(const char *text, sf_arena *arena)
{
    const sf_json *value = NULL;
    sf_diag *diag = sf_diag_new();
    if (parse_exactly(sf_str_of(text), arena, &value, diag) != SF_OK)
        fail_msg("%s", sf_diag_text(diag, 0));
    sf_diag_free(diag);
    return value;
}

static void test_values(void **state)
{
    (void)state;
    sf_arena arena = {0};
    const sf_json *v =
        parse("\xef\xbb\xbf {\"a\": [1, -2.5, true, false, null], \"b\" : {} , \"c\":\"x\","
              "\"d\":[]}\r\n\t",
              &arena);
    int64_t integer;
    double number;
    bool truth;
    sf_str string;
    assert_int_equal(sf_json_count(v), 4);
    const sf_json *a = sf_json_get(v, "a");
    assert_int_equal(sf_json_count(a), 5);
    assert_true(sf_json_int(sf_json_item(a, 0), &integer) && integer == 1);
    assert_true(sf_json_number(sf_json_item(a, 0), &number) && number == 1);
    assert_false(sf_json_int(sf_json_item(a, 1), &integer));
    assert_true(sf_json_number(sf_json_item(a, 1), &number) && number == -2.5);
    assert_true(sf_json_bool(sf_json_item(a, 2), &truth) && truth);
    assert_true(sf_json_bool(sf_json_item(a, 3), &truth) && !truth);
    assert_int_equal(sf_json_kind_of(sf_json_item(a, 4)), SF_JSON_NULL);
    assert_int_equal(sf_json_kind_of(sf_json_get(v, "b")), SF_JSON_OBJECT);
    assert_int_equal(sf_json_kind_of(sf_json_get(v, "d")), SF_JSON_ARRAY);
    assert_true(sf_json_string(sf_json_get(v, "c"), &string) && sf_str_is(string, "x"));
    assert_true(sf_str_is(sf_json_key_at(v, 1), "b"));
    assert_ptr_equal(sf_json_value_at(v, 0), a);
    assert_null(sf_json_get(v, "e"));
    assert_null(sf_json_get(a, "a"));
    assert_null(sf_json_get(NULL, "a"));
    assert_false(sf_json_string(NULL, &string) || sf_json_bool(a, &truth) ||
                 sf_json_number(v, &number));
    assert_int_equal(sf_json_count(NULL), 0);
    sf_arena_free(&arena);
}

static void test_integers_are_exact(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool exact;
        int64_t integer;
        double number;
    } cases[] = {
        {"0", true, 0, 0},
        {"9223372036854775807", true, INT64_MAX, 0},
        {"-9223372036854775808", true, INT64_MIN, 0},
        {"999999999999999999", true, 999999999999999999, 0},
        {"-1000000000000000001", true, -1000000000000000001, 0},
        {"9223372036854775808", false, 0, 9223372036854775808.0},
        {"-9223372036854775809", false, 0, -9223372036854775808.0},
        {"-18446744073709551616", false, 0, -18446744073709551616.0},
        {"100000000000000000000000000000001", false, 0, 1e32},
        {"1.0", false, 0, 1},
        {"1e2", false, 0, 100},
        {"-0", false, 0, -0.0},
        {"5E-324", false, 0, 5e-324},
        {"1e-400", false, 0, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        sf_arena arena = {0};
        const sf_json *v = parse(cases[i].text, &arena);
        assert_int_equal(v->exact, cases[i].exact);
        if (v->exact)
            assert_true(v->integer == cases[i].integer);
        else
            assert_memory_equal(&v->number, &cases[i].number, sizeof v->number);
        sf_arena_free(&arena);
    }
}

static void test_strings(void **state)
{
    (void)state;
    sf_arena arena = {0};
    sf_str s;
    assert_true(sf_json_string(
        parse("\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u0041\\u00e9\\u20AC\\uD83d\\uDe00\"", &arena), &s));
    assert_true(sf_str_is(s, "\"\\/\b\f\n\r\tA\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80"));
    assert_true(sf_json_string(parse("\"a\\u0000b\"", &arena), &s));
    assert_int_equal(s.length, 3);
    assert_memory_equal(s.at, "a\0b", 4);
    assert_true(sf_json_string(parse("\"\xf4\x8f\xbf\xbf\"", &arena), &s));
    assert_int_equal(s.length, 4);
    sf_arena_free(&arena);
}

static void test_errors_say_where_and_what(void **state)
{
    (void)state;
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"", "1:1: error: expected a value, but the text ends here"},
        {" ", "1:2: error: expected a value, but the text ends here"},
        {"[1,\n 2,]", "2:4: error: expected a value, found ']'"},
        {"[1 2]", "1:4: error: expected ',' or ']', found '2'"},
        {"[1", "1:3: error: expected ',' or ']', but the text ends here"},
        {"{\"a\":1 \"b\":2}", "1:8: error: expected ',' or '}', found '\"'"},
        {"{\"a\" 1}", "1:6: error: expected ':' after the key, found '1'"},
        {"{1:2}", "1:2: error: expected a key in quotes, found '1'"},
        {"{\"a\":1,}", "1:8: error: expected a key in quotes, found '}'"},
        {"{\"a\":1,\n\"b\":2,\n \"a\":3}", "3:2: error: the key \"a\" comes twice in one object"},
        {"1 2", "1:3: error: expected the end of the text, found '2'"},
        {"01", "1:1: error: a number does not begin with zeros"},
        {"-", "1:2: error: expected a digit, but the text ends here"},
        {"+1", "1:1: error: expected a value, found '+'"},
        {".5", "1:1: error: expected a value, found '.'"},
        {"1.", "1:3: error: expected a digit after the point, but the text ends here"},
        {"1.e5", "1:3: error: expected a digit after the point, found 'e'"},
        {"1e+", "1:4: error: expected a digit of the exponent, but the text ends here"},
        {"1e400", "1:1: error: the number is too large for a double"},
        {"[nul]",
         "1:2: error: expected a value (null, true and false are the only words), found 'n'"},
        {"NaN", "1:1: error: expected a value, found 'N'"},
        {"\"abc", "1:1: error: the string has no closing quote"},
        {"\"abc\\", "1:1: error: the string has no closing quote"},
        {"\"abc\\\"", "1:1: error: the string has no closing quote"},
        {"\"a\nb\"", "1:3: error: a control character in a string must be escaped"},
        {"\"\\x\"", "1:2: error: expected one of \\\" \\\\ \\/ \\b \\f \\n \\r \\t \\u"},
        {"\"\\u12g4\"", "1:2: error: expected four hexadecimal digits after \\u"},
        {"\"\\u12\"", "1:2: error: expected four hexadecimal digits after \\u"},
        {"\"\\ud800\"", "1:2: error: half of a surrogate pair is no character"},
        {"\"\\ud800\\u0041\"", "1:2: error: half of a surrogate pair is no character"},
        {"\"\\udc00\\ud800\"", "1:2: error: half of a surrogate pair is no character"},
        {"\"\xff\"", "1:2: error: the string is not valid UTF-8"},
        {"\"\xc3\"", "1:2: error: the string is not valid UTF-8"},
        {"\"\xed\xa0\x80\"", "1:2: error: the string is not valid UTF-8"},
        {"\xc3", "1:1: error: expected a value, found byte 0xc3"},
        {"[1, // no\n2]", "1:5: error: expected a value, found '/'"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        sf_arena arena = {0};
        const sf_json *value = NULL;
        sf_diag *diag = sf_diag_new();
        assert_int_equal(parse_exactly(sf_str_of(cases[i].text), &arena, &value, diag), SF_EINPUT);
        assert_null(value);
        assert_int_equal(sf_diag_count(diag), 1);
        char expected[200];
        snprintf(expected, sizeof expected, "t.json:%s", cases[i].message);
        assert_string_equal(sf_diag_text(diag, 0), expected);
        sf_diag_free(diag);
        sf_arena_free(&arena);
    }
}

static sf_status parse_nested(int depth, const char *open, const char *close)
{
    sf_buf buf = {0};
    for (int i = 0; i < depth; i++)
        sf_buf_puts(&buf, open);
    for (int i = 0; i < depth; i++)
        sf_buf_puts(&buf, close);
    sf_arena arena = {0};
    const sf_json *value;
    sf_status status = sf_json_parse((sf_str){buf.text, buf.length}, NULL, &arena, &value, NULL);
    sf_arena_free(&arena);
    sf_buf_free(&buf);
    return status;
}

static void test_depth(void **state)
{
    (void)state;
    assert_int_equal(parse_nested(SF_JSON_DEPTH, "[", "]"), SF_OK);
    assert_int_equal(parse_nested(SF_JSON_DEPTH + 1, "[", "]"), SF_EINPUT);
    assert_int_equal(parse_nested(100000, "[", ""), SF_EINPUT);
    assert_int_equal(parse_nested(SF_JSON_DEPTH + 1, "{\"a\":[", "]}"), SF_EINPUT);
}

/* With and without an index; each duplicate is found wherever it stands. */
static void test_large_objects(void **state)
{
    (void)state;
    for (int count = 1; count <= 300; count = count * 3 / 2 + 1) {
        for (int twin = 0; twin <= count; twin += 1 + count / 7) {
            sf_buf buf = {0};
            for (int i = 0; i < count; i++)
                sf_buf_printf(&buf, "%c\"key%d\":%d", i ? ',' : '{', i, i);
            if (twin < count)
                sf_buf_printf(&buf, ",\"key%d\":0", twin);
            sf_buf_puts(&buf, "}");
            sf_arena arena = {0};
            const sf_json *object;
            sf_status status = parse_exactly((sf_str){buf.text, buf.length}, &arena, &object, NULL);
            assert_int_equal(status, twin < count ? SF_EINPUT : SF_OK);
            for (int i = 0; status == SF_OK && i < count; i++) {
                char key[32];
                int64_t value;
                snprintf(key, sizeof key, "key%d", i);
                assert_true(sf_json_int(sf_json_get(object, key), &value) && value == i);
                assert_null(sf_json_get(object, key + 1));
            }
            sf_arena_free(&arena);
            sf_buf_free(&buf);
        }
    }
}

/* Long arrays of numbers take their own way through the parser; so do their errors. */
static void test_long_arrays(void **state)
{
    (void)state;
    for (int broken = 0; broken < 5; broken++) {
        static const char *const last[] = {"7", "7,", "[7]", "\"7\"", "7 7"};
        sf_buf buf = {0};
        sf_buf_puts(&buf, "[[ ");
        for (int i = 0; i < 5000; i++)
            sf_buf_printf(&buf, "%d%s , ", i, i % 3 ? ".5" : "");
        sf_buf_printf(&buf, "%s ] ]", last[broken]);
        sf_arena arena = {0};
        const sf_json *value;
        sf_status status = parse_exactly((sf_str){buf.text, buf.length}, &arena, &value, NULL);
        assert_int_equal(status, broken == 1 || broken == 4 ? SF_EINPUT : SF_OK);
        if (status == SF_OK) {
            const sf_json *array = sf_json_item(value, 0);
            assert_int_equal(sf_json_count(array), 5001);
            double number;
            for (size_t i = 0; i < 5000; i++)
                assert_true(sf_json_number(sf_json_item(array, i), &number) &&
                            number == (double)i + (i % 3 ? 0.5 : 0));
        }
        sf_arena_free(&arena);
        sf_buf_free(&buf);
    }
}

static void test_locations(void **state)
{
    (void)state;
    static const char text[] =
        "{\"a\": 1,\n \"bb\": \"x\",\n  \"c\": [],\n\"d\": [ 5, 6],\n\"e\": {\"f\":null}}";
    static const struct {
        const char *key;
        uint32_t line, column;
    } cases[] = {{"a", 1, 7}, {"bb", 2, 8}, {"c", 3, 8}, {"d", 4, 8}, {"e", 5, 7}};
    sf_arena arena = {0};
    const sf_json *object = parse(text, &arena);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        sf_loc loc = sf_json_loc(sf_json_get(object, cases[i].key), sf_str_of(text), "f");
        assert_int_equal(loc.line, cases[i].line);
        assert_int_equal(loc.column, cases[i].column);
        assert_string_equal(loc.file, "f");
    }
    sf_arena_free(&arena);
}

static void test_writer(void **state)
{
    (void)state;
    for (int indent = 0; indent < 2; indent++) {
        sf_buf buf = {0};
        sf_json_writer w = {.buf = &buf, .indent = indent};
        sf_json_begin_object(&w);
        sf_json_key(&w, "list");
        sf_json_begin_array(&w);
        sf_json_put_int(&w, INT64_MIN);
        sf_json_put_double(&w, 0.1);
        sf_json_put_double(&w, (double)NAN);
        sf_json_put_double(&w, -(double)INFINITY);
        sf_json_end_array(&w);
        sf_json_key(&w, "none");
        sf_json_begin_object(&w);
        sf_json_end_object(&w);
        sf_json_key(&w, "row");
        sf_json_begin_row(&w);
        sf_json_put_bool(&w, true);
        sf_json_begin_object(&w);
        sf_json_key(&w, "x");
        sf_json_put_null(&w);
        sf_json_key(&w, "y");
        sf_json_begin_array(&w);
        sf_json_end_array(&w);
        sf_json_end_object(&w);
        sf_json_end_array(&w);
        sf_json_key(&w, "\n\"\\\x01");
        sf_json_put_string(&w, "\xc3\xa9\xff");
        sf_json_end_object(&w);
        assert_string_equal(
            buf.text, indent ? "{\n  \"list\": [\n    -9223372036854775808,\n    0.1,\n    null,\n "
                               "   null\n  ],\n"
                               "  \"none\": {},\n  \"row\": [true, {\"x\": null, \"y\": []}],\n"
                               "  \"\\n\\\"\\\\\\u0001\": \"\xc3\xa9\xef\xbf\xbd\"\n}"
                             : "{\"list\":[-9223372036854775808,0.1,null,null],\"none\":{},"
                               "\"row\":[true,{\"x\":null,\"y\":[]}],"
                               "\"\\n\\\"\\\\\\u0001\":\"\xc3\xa9\xef\xbf\xbd\"}");
        sf_buf_free(&buf);
    }
}

static void test_pairs(void **state)
{
    (void)state;
    sf_buf buf = {0};
    sf_json_writer w = {.buf = &buf};
    sf_json_begin_object(&w);
    sf_json_add_bool(&w, "bool", false);
    sf_json_add_int(&w, "int", -3);
    sf_json_add_hex(&w, "hex", 0xab);
    sf_json_add_double(&w, "double", 2);
    sf_json_add_string(&w, "string", "a\"b");
    sf_json_add_string(&w, "none", NULL);
    sf_json_end_object(&w);
    assert_string_equal(buf.text,
                        "{\"bool\":false,\"int\":-3,\"hex\":\"00000000000000ab\",\"double\":2.0,"
                        "\"string\":\"a\\\"b\",\"none\":null}");
    sf_buf_free(&buf);
}

/* A random value, through the writer; the same random_state gives the same value again. */
static void put_random(sf_json_writer *w, int depth)
{
    static const char *const pieces[] = {
        "a", "\"", "\\", "\n", "\x01", "\xc3\xa9", "\xf0\x9f\x98\x80", "/", "\x7f"};
    uint64_t kind = next_random() % (depth > 5 ? 5 : 7);
    uint64_t bits = next_random();
    double number;
    memcpy(&number, &bits, sizeof number);
    char text[64] = "";
    switch (kind) {
    case 0:
        sf_json_put_null(w);
        break;
    case 1:
        sf_json_put_bool(w, bits & 1);
        break;
    case 2:
        sf_json_put_int(w, (int64_t)(bits >> bits % 64));
        break;
    case 3:
        sf_json_put_double(w, isfinite(number) ? number : 0.25);
        break;
    case 4:
        for (uint64_t i = bits % 10; i > 0; i--)
            strcat(text, pieces[next_random() % (sizeof pieces / sizeof *pieces)]);
        sf_json_put_str(w, (sf_str){text, strlen(text)});
        break;
    case 5:
        sf_json_begin_array(w);
        for (uint64_t i = bits % 12; i > 0; i--)
            put_random(w, depth + 1);
        sf_json_end_array(w);
        break;
    default:
        sf_json_begin_object(w);
        for (uint64_t i = bits % 12; i > 0; i--) {
            snprintf(text, sizeof text, "%s%d", pieces[i % 9], (int)i);
            sf_json_key(w, text);
            put_random(w, depth + 1);
        }
        sf_json_end_object(w);
    }
}

static void test_round_trip(void **state)
{
    (void)state;
    for (int round = 0; round < 500; round++) {
        sf_arena arena = {0};
        sf_buf plain = {0}, pretty = {0}, again = {0};
        uint64_t seed = random_state;
        put_random(&(sf_json_writer){.buf = &plain}, 0);
        random_state = seed;
        put_random(&(sf_json_writer){.buf = &pretty, .indent = true}, 0);
        const sf_json *a, *b;
        assert_int_equal(parse_exactly((sf_str){plain.text, plain.length}, &arena, &a, NULL),
                         SF_OK);
        assert_int_equal(parse_exactly((sf_str){pretty.text, pretty.length}, &arena, &b, NULL),
                         SF_OK);
        assert_true(test_json_equal(a, b));
        test_json_put(&(sf_json_writer){.buf = &again}, b);
        assert_string_equal(again.text, plain.text);
        sf_buf_free(&plain);
        sf_buf_free(&pretty);
        sf_buf_free(&again);
        sf_arena_free(&arena);
    }
}

/* Cut off anywhere, or with any byte changed, a text is refused or read, never worse. */
static void test_damaged_texts(void **state)
{
    (void)state;
    static const char text[] =
        "{\"a\":[1,-2.5e3,\"x\\u00e9\\ud83d\\ude00\"],\"b\":{\"c\":null,\"d\":true}}";
    for (size_t length = 0; length < sizeof text - 1; length++) {
        sf_arena arena = {0};
        const sf_json *value;
        assert_int_equal(parse_exactly((sf_str){text, length}, &arena, &value, NULL), SF_EINPUT);
        sf_arena_free(&arena);
    }
    for (size_t at = 0; at < sizeof text - 1; at++) {
        for (int c = 0; c < 256; c++) {
            char changed[sizeof text];
            memcpy(changed, text, sizeof text);
            changed[at] = (char)c;
            sf_arena arena = {0};
            const sf_json *value;
            parse_exactly((sf_str){changed, sizeof text - 1}, &arena, &value, NULL);
            sf_arena_free(&arena);
        }
    }
}

static void test_unequal(void **state)
{
    (void)state;
    static const char *const texts[] = {"null",
                                        "true",
                                        "false",
                                        "1",
                                        "2",
                                        "1.0",
                                        "-0",
                                        "0",
                                        "\"1\"",
                                        "\"\"",
                                        "[]",
                                        "{}",
                                        "[1]",
                                        "[1,1]",
                                        "[2]",
                                        "{\"a\":1}",
                                        "{\"b\":1}",
                                        "{\"a\":2}",
                                        "{\"a\":1,\"b\":2}",
                                        "{\"b\":2,\"a\":1}",
                                        "[[]]",
                                        "[{}]"};
    sf_arena arena = {0};
    enum { N = sizeof texts / sizeof *texts };
    for (int i = 0; i < N; i++)
        for (int k = 0; k < N; k++)
            assert_int_equal(test_json_equal(parse(texts[i], &arena), parse(texts[k], &arena)),
                             i == k);
    sf_arena_free(&arena);
}

static bool parses_with(sf_str text, long successes)
{
    sf_guard guard;
    sf_arena arena = {0};
    sf_guard_enter(&guard);
    if (setjmp(guard.target) != 0) {
        sf_mem_fail_after(-1);
        return false;
    }
    const sf_json *value;
    sf_mem_fail_after(successes);
    assert_int_equal(sf_json_parse(text, "f", &arena, &value, NULL), SF_OK);
    sf_mem_fail_after(-1);
    sf_guard_leave(&guard);
    sf_arena_free(&arena);
    return true;
}

/* Out of memory at any point frees everything. */
static void test_no_memory(void **state)
{
    (void)state;
    sf_buf text = {0};
    sf_buf_puts(&text, "[0");
    for (int i = 1; i < 3000; i++)
        sf_buf_printf(&text, ",{\"k\":[%d,\"s%d\"]}", i, i);
    sf_buf_puts(&text, "]");
    size_t before = sf_mem_live();
    long failures = 0;
    while (!parses_with((sf_str){text.text, text.length}, failures)) {
        assert_int_equal(sf_mem_live(), before);
        failures++;
    }
    assert_int_equal(sf_mem_live(), before);
    assert_true(failures > 10);
    sf_buf_free(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values),      cmocka_unit_test(test_integers_are_exact),
        cmocka_unit_test(test_strings),     cmocka_unit_test(test_errors_say_where_and_what),
        cmocka_unit_test(test_depth),       cmocka_unit_test(test_large_objects),
        cmocka_unit_test(test_long_arrays), cmocka_unit_test(test_locations),
        cmocka_unit_test(test_writer),      cmocka_unit_test(test_pairs),
        cmocka_unit_test(test_round_trip),  cmocka_unit_test(test_damaged_texts),
        cmocka_unit_test(test_unequal),     cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
