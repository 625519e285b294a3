/* Parse; what parses is written and parsed again, and must come out the same. */
#include <setjmp.h>
#include <stdint.h>

#include "base/json.h"
#include "base/mem.h"
#include "support/json_tree.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void parse_write_parse(sf_str text, sf_diag *diag, sf_arena *arena, sf_buf *buf, bool indent)
{
    const sf_json *first, *second;
    if (sf_json_parse(text, "fuzz", arena, &first, diag) != SF_OK) {
        SF_ASSERT(sf_diag_count(diag) == 1);
        return;
    }
    sf_json_writer writer = {.buf = buf, .indent = indent};
    test_json_put(&writer, first);
    sf_status status =
        sf_json_parse((sf_str){buf->text, buf->length}, "again", arena, &second, diag);
    SF_ASSERT(status == SF_OK);
    SF_ASSERT(test_json_equal(first, second));
    sf_loc loc = sf_json_loc(first, text, "fuzz");
    SF_ASSERT(loc.line >= 1 && loc.column >= 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const sf_str text = {(const char *)data, size};
    sf_diag *diag = sf_diag_new();
    sf_arena arena = {0};
    sf_buf buf = {0};
    sf_guard guard;
    sf_guard_enter(&guard);
    if (setjmp(guard.target) == 0) {
        parse_write_parse(text, diag, &arena, &buf, size % 2);
        sf_guard_leave(&guard);
        sf_arena_free(&arena);
        sf_buf_free(&buf);
    }
    sf_diag_free(diag);
    return 0;
}
