/* Each line sets a field of a plan specification from its text, "FIELD=VALUE", as a caller does; what is refused changes nothing
 * and has a message. The specification is then parsed and printed, and the print parsed and printed again: the same. */
#include <string.h>

#include "guarded.h"
#include "plan/spec.h"

static void set_field(sf_plan_spec *spec, const char *field, const char *value, sf_diag *diag)
{
    sf_plan_spec before = *spec;
    sf_status status = sf_plan_spec_set(spec, field, value, diag);
    SF_ASSERT((status == SF_OK) == (sf_diag_count(diag) == 0));
    SF_ASSERT(status == SF_OK || memcmp(&before, spec, sizeof before) == 0);
    sf_diag_clear(diag);
}

static void set_lines(char *text, sf_plan_spec *spec, sf_diag *diag)
{
    for (char *line = text; line;) {
        char *next = strchr(line, '\n'), *value;
        if (next)
            *next++ = '\0';
        value = strchr(line, '=');
        if (value)
            *value++ = '\0';
        /* A schedule may be the file of a table: none of this machine's are read. */
        if (value && !strchr(value, '/'))
            set_field(spec, line, value, diag);
        line = next;
    }
}

static void check_same(const char *a, const char *b)
{
    SF_ASSERT((a == NULL) == (b == NULL) && (!a || strcmp(a, b) == 0));
}

static void set_and_print(sf_str text, sf_arena *arena, sf_diag *diag)
{
    sf_plan_spec spec = {.size = sizeof spec}, first, second;
    sf_spec read;
    set_lines((char *)(uintptr_t)sf_arena_string(arena, text.at, text.length), &spec, diag);
    /* Each field was taken by itself, and no two of them speak of each other here. */
    SF_ASSERT(sf_spec_read(&spec, arena, diag, &read) == SF_OK);
    sf_spec_print(&read, arena, &first);
    SF_ASSERT(sf_spec_read(&first, arena, diag, &read) == SF_OK);
    sf_spec_print(&read, arena, &second);
    check_same(first.mesh, second.mesh);
    check_same(first.stages, second.stages);
    check_same(first.schedule, second.schedule);
    check_same(first.recompute, second.recompute);
    check_same(first.co_shard, second.co_shard);
    check_same(first.shard_state, second.shard_state);
    check_same(first.kernels, second.kernels);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return fuzz_guarded(set_and_print, data, size);
}
