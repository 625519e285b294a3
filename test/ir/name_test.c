/* Names, and the patterns that match them. */
#include "ir/name.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

static const char *const names[] = {"",
                                    "attn",
                                    "layer_0/attn",
                                    "layer_0/attn/dot_general",
                                    "layer_0/attn/softmax/exp",
                                    "layer_10/mlp/up",
                                    "model/layer_1/mlp",
                                    "attn/attn/attn"};
static const char *const patterns[] = {
    "attn",  "*",    "layer_?",      "layer_*", "layer_?/attn", "/attn", "/layer_0",      "att",
    "*/mlp", "*ttn", "attn/softmax", "/*/attn", "layer_1/mlp",  "?",     "layer_0/*/exp", "l*0"};

/* A name is inside another if it has that in front, and more after a slash. */
static void test_what_is_in_something(void **state)
{
    (void)state;
    int found = 0;
    for (size_t p = 0; p < sizeof patterns / sizeof *patterns; p++)
        for (size_t n = 0; n < sizeof names / sizeof *names; n++) {
            char inside[64];
            snprintf(inside, sizeof inside, "%s/*", patterns[p]);
            bool expected = *names[n] && (sf_name_matches(patterns[p], names[n]) ||
                                          sf_name_matches(inside, names[n]));
            if (sf_name_is_in(patterns[p], names[n]) != expected)
                fail_msg("%s in %s", names[n], patterns[p]);
            found += expected;
        }
    assert_in_range(found, 30, 90);
    assert_true(sf_name_is_in("attn", "layer_0/attn/softmax/exp"));
    assert_false(sf_name_is_in("att", "layer_0/attn/softmax/exp"));
    assert_false(sf_name_is_in("/attn", "layer_0/attn/softmax/exp"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_what_is_in_something)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
