/* Parse; what parses is written and parsed again, and must come out the same. */

#include "base/json.h"
#include "guarded.h"
#include "support/json_tree.h"

static void parse_write_parse(sf_str text, sf_arena *arena, sf_diag *diag)
{
    const sf_json *first, *second;
    if (sf_json_parse(text, "fuzz", arena, &first, diag) != SF_OK) {
        SF_ASSERT(sf_diag_count(diag) == 1);
        return;
    }
    sf_buf buf = {0};
    sf_json_writer writer = {.buf = &buf, .indent = text.length % 2};
    test_json_put(&writer, first);
    sf_status status = sf_json_parse((sf_str){buf.text, buf.length}, "again", arena, &second, diag);
    SF_ASSERT(status == SF_OK);
    SF_ASSERT(test_json_equal(first, second));
    sf_loc loc = sf_json_loc(first, text, "fuzz");
    SF_ASSERT(loc.line >= 1 && loc.column >= 1);
    sf_buf_free(&buf);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return fuzz_guarded(parse_write_parse, data, size);
}
