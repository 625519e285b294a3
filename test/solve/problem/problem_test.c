/* Building, reading and judging problems; what is wrong is said with its place. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "solve/problem/problem.h"

static const char good[] =
    "{\"problem\": {\"name\": \"small\",\n"
    " \"nodes\": {\"intervals\": [[0, 4], [2, 6], [9, 9]],\n"
    "           \"costs\": [[1, 2], [3, 1000000000000000000, 5], [0]],\n"
    "           \"usages\": [[10, 7], [4, 5, 6], [100]]},\n"
    " \"edges\": {\"nodes\": [[0, 1], [2, 0]], \"costs\": [[1, 2, 3, 4, 5, 6], [7, 8]]},\n"
    " \"usage_limit\": 13}}\n";

static void test_read(void **state)
{
    (void)state;
    sf_arena arena = {0};
    sf_problem p;
    assert_int_equal(sf_problem_parse(sf_str_of(good), "p.json", &arena, &p, NULL), SF_OK);
    assert_int_equal(p.nnodes, 3);
    assert_int_equal(p.nedges, 2);
    assert_int_equal(p.nuses, 2);
    assert_int_equal(p.ntimes, 2);
    assert_int_equal(p.time[1], 2);
    sf_verdict v = sf_problem_judge(&p, (uint32_t[]){0, 2, 0}, &arena);
    assert_int_equal(v.cost, 1 + 5 + 0 + 3 + 7);
    assert_true(v.allowed);
    assert_false(v.feasible);
    assert_int_equal(v.first, 1);
    assert_int_equal(v.over, 3);
    v = sf_problem_judge(&p, (uint32_t[]){1, 2, 0}, &arena);
    assert_true(v.feasible);
    assert_int_equal(v.over, 0);
    assert_int_equal(v.cost, 2 + 5 + 0 + 6 + 8);
    v = sf_problem_judge(&p, (uint32_t[]){1, 1, 0}, &arena);
    assert_false(v.allowed);
    assert_int_equal(v.cost, SF_FORBIDDEN);
    sf_arena_free(&arena);
}

/* Replaces the first occurrence of a piece of the good text, and expects a message that begins so. */
static const struct {
    const char *from, *to, *message;
} wrong[] = {
    {"\"costs\": [[1, 2],", "\"costs\": [[],", "p.json:3:"},
    {"[0, 4]", "[4, 0]", "p.json:2:27: error: node 0: the interval begins at 4 and ends at 0"},
    {"[0, 4]", "[0]", "p.json:2:27: error: the interval of node 0: 1 numbers where 2 are needed"},
    {"[0, 4], ", "", "p.json:2:27: error: \"intervals\" has 2 items where 3 are needed"},
    {"[10, 7]", "[10]", "p.json:4:"},
    {"[10, 7]", "[10, -7]", "p.json:4:"},
    {"[10, 7]", "[10, 7.5]", "p.json:4:"},
    {"[10, 7]", "[9223372036854775807, 1]", "p.json:4:"},
    {"[[1, 2],", "[[1, \"2\"],", "p.json:3:"},
    {"[[1, 2],", "[[1, -1000000000000000000],", "p.json:3:"},
    {"[[1, 2],", "[[1, 999999999999999999],", "p.json:3:"},
    {"[0, 1]", "[0, 3]", "p.json:5:23: error: edge 0 goes to node 3, and there are 3 nodes"},
    {"[0, 1]", "[0, -1]", "p.json:5:23: error: edge 0 goes to node -1, and there are 3 nodes"},
    {"5, 6], [7", "5], [7", "p.json:5:"},
    {"[7, 8]", "[7, 8, 9]", "p.json:5:"},
    {"[7, 8]", "[7, 500000000000000000], [500000000000000000, 0]", "p.json:5:"},
    {"13}", "-13}", "p.json:6:17: error: \"usage_limit\" must be"},
    {"13}", "\"13\"}", "p.json:6:"},
    {"\"nodes\": {", "\"nods\": {", "p.json:1:"},
    {"\"usages\"", "\"usage\"", "p.json:2:"},
    {"\"edges\": {", "\"edges\": 3, \"e\": {", "p.json:5:"},
    {"\"usage_limit\": 13}}", "\"usage_limit\": 13}", "p.json:7:1: error:"},
};

static void test_wrong(void **state)
{
    (void)state;
    for (size_t w = 0; w < sizeof wrong / sizeof *wrong; w++) {
        char text[2048];
        const char *at = strstr(good, wrong[w].from);
        assert_non_null(at);
        snprintf(text, sizeof text, "%.*s%s%s", (int)(at - good), good, wrong[w].to,
                 at + strlen(wrong[w].from));
        sf_arena arena = {0};
        sf_problem p;
        sf_diag *diag = sf_diag_new();
        if (sf_problem_parse(sf_str_of(text), "p.json", &arena, &p, diag) != SF_EINPUT)
            fail_msg("accepted: %s for %s", wrong[w].to, wrong[w].from);
        const char *message = sf_diag_text(diag, 0);
        if (strncmp(message, wrong[w].message, strlen(wrong[w].message)) != 0)
            fail_msg("%s for %s: %s, not %s", wrong[w].to, wrong[w].from, message,
                     wrong[w].message);
        sf_diag_free(diag);
        sf_arena_free(&arena);
    }
}

/* Uses do not matter without a limit, and may be left out. */
static void test_unlimited(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "{\"nodes\": {\"costs\": [[1, 2]]}}",
        "{\"problem\": {\"nodes\": {\"costs\": [[1, 2]]}, \"usage_limit\": null}}",
    };
    for (size_t i = 0; i < 2; i++) {
        sf_arena arena = {0};
        sf_problem p;
        assert_int_equal(sf_problem_parse(sf_str_of(texts[i]), "p", &arena, &p, NULL), SF_OK);
        assert_int_equal(p.ntimes, 0);
        assert_int_equal(sf_problem_judge(&p, (uint32_t[]){1}, &arena).cost, 2);
        sf_arena_free(&arena);
    }
}

/* An edge from a node to itself is its diagonal. */
static void test_loop(void **state)
{
    (void)state;
    sf_arena arena = {0};
    sf_problem_builder builder = {.arena = &arena};
    sf_problem p;
    sf_problem_add_node(&builder, 2, (int64_t[]){1, 2}, NULL);
    assert_int_equal(sf_problem_add_edge(&builder, 0, 0, (int64_t[]){10, 99, 99, 20}, NULL), SF_OK);
    assert_int_equal(sf_problem_finish(&builder, &p, NULL), SF_OK);
    assert_int_equal(p.nedges, 0);
    assert_int_equal(sf_problem_judge(&p, (uint32_t[]){0}, &arena).cost, 11);
    assert_int_equal(sf_problem_judge(&p, (uint32_t[]){1}, &arena).cost, 22);
    sf_arena_free(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_read),
        cmocka_unit_test(test_wrong),
        cmocka_unit_test(test_unlimited),
        cmocka_unit_test(test_loop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
