/* Text to a file, and to a function of the caller. */
#include "base/output.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"

struct taken {
    int calls;
    bool refuses;
    char text[64];
};

static bool take_text(void *context, const char *text, size_t length)
{
    struct taken *taken = context;
    taken->calls++;
    strncat(taken->text, text, length);
    return !taken->refuses;
}

static void test_function(void **state)
{
    (void)state;
    struct taken taken = {0};
    sf_output output = {
        .size = sizeof output, .path = "/nonexistent/file", .write = take_text, .context = &taken};
    sf_buf text = {0};
    assert_int_equal(sf_output_write(&output, &text, NULL), SF_OK);
    assert_int_equal(taken.calls, 0);
    sf_buf_puts(&text, "two words");
    assert_int_equal(sf_output_write(&output, &text, NULL), SF_OK);
    assert_string_equal(taken.text, "two words");
    taken.refuses = true;
    assert_int_equal(sf_output_write(&output, &text, NULL), SF_EIO);
    sf_buf_free(&text);
}

static void test_file(void **state)
{
    (void)state;
    char path[] = "/tmp/sheaf-output-XXXXXX";
    sf_arena arena = {0};
    sf_buf text = {0};
    sf_str read;
    close(mkstemp(path));
    sf_buf_puts(&text, "two words");
    assert_int_equal(sf_output_write(&SF_OPTIONS(sf_output, .path = path), &text, NULL), SF_OK);
    assert_int_equal(sf_file_read(path, &arena, 0, &read, NULL), SF_OK);
    assert_string_equal(read.at, "two words");
    assert_int_equal(
        sf_output_write(&SF_OPTIONS(sf_output, .path = "/nonexistent/file"), &text, NULL), SF_EIO);
    unlink(path);
    sf_buf_free(&text);
    sf_arena_free(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_function),
        cmocka_unit_test(test_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
