/* The text form of a plan specification: the parser, and the printer. */
#include <inttypes.h>
#include <limits.h>
#include <string.h>

#include "base/file.h"
#include "ir/graph.h"
#include "plan/pipeline/schedules.h"
#include "plan/spec.h"

/* A field while it is read; `at` goes through its text. */
typedef struct reader {
    const char *field, *text, *at;
    sf_arena *arena;
    sf_diag *diag;
} reader;

static sf_status fail_at(const reader *r, const char *expected)
{
    if (*r->at)
        return sf_fail(r->diag, SF_EUSAGE, SF_NOWHERE,
                       "option %s \"%.100s\": expected %s at character %zu, not \"%.40s\"",
                       r->field, r->text, expected, (size_t)(r->at - r->text) + 1, r->at);
    return sf_fail(r->diag, SF_EUSAGE, SF_NOWHERE, "option %s \"%.100s\": expected %s at its end",
                   r->field, r->text, expected);
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* A number of at most `most`, if there is one. */
static bool take_number(reader *r, uint32_t most, uint32_t *out)
{
    uint64_t value = 0;
    const char *at = r->at;
    for (; is_digit(*at); at++) {
        value = value * 10 + (uint64_t)(*at - '0');
        if (value > most)
            return false;
    }
    if (at == r->at)
        return false;
    *out = (uint32_t)value;
    r->at = at;
    return true;
}

static bool take_char(reader *r, char c)
{
    if (*r->at != c)
        return false;
    r->at++;
    return true;
}

/* Up to the end of the item, or its last `stop`. Empty where it begins so. */
static const char *take_pattern(reader *r, char stop)
{
    size_t length = strcspn(r->at, ",");
    const char *end = stop ? memrchr(r->at, stop, length) : NULL;
    const char *pattern = sf_arena_string(r->arena, r->at, end ? (size_t)(end - r->at) : length);
    r->at += strlen(pattern);
    return pattern;
}

/* Of items with commas between, whether another follows. */
static sf_status end_item(reader *r, bool *more)
{
    *more = take_char(r, ',');
    return *more || !*r->at ? SF_OK : fail_at(r, "a comma or the end");
}

static size_t count_items(const char *text)
{
    size_t count = 1;
    for (; *text; text++)
        count += *text == ',';
    return count;
}

/* Stages */

static sf_status fail_stages(const reader *r, const char *expected)
{
    fail_at(r, expected);
    return sf_hint(
        r->diag, "stages are a number, as in 4; the scopes that begin all but the first, as in "
                 "layer_3,layer_6; or with pipeline ranks, as in @all,layer_0@0,layer_2@1,head@all "
                 "or @0-1,@2");
}

/* GROUPS; of "all" nothing is known until all have been read: UINT64_MAX. */
static sf_status read_groups(reader *r, uint32_t *ngroups, uint64_t *out)
{
    size_t length = strcspn(r->at, ",");
    *out = UINT64_MAX;
    if (length == 3 && memcmp(r->at, "all", 3) == 0) {
        r->at += 3;
        return SF_OK;
    }
    *out = 0;
    do {
        uint32_t first, last;
        if (!take_number(r, SF_MOST_GROUPS - 1, &first))
            return fail_stages(r, "a pipeline rank, 0 to 63, or all");
        last = first;
        const char *dash = r->at;
        if (take_char(r, '-') && (!take_number(r, SF_MOST_GROUPS - 1, &last) || last < first)) {
            r->at = dash + 1;
            return fail_stages(r, "the last pipeline rank of a range, 63 at most");
        }
        for (uint32_t g = first; g <= last; g++)
            *out |= UINT64_C(1) << g;
        *ngroups = last + 1 > *ngroups ? last + 1 : *ngroups;
    } while (take_char(r, '+'));
    return SF_OK;
}

/* One stage; `placed`: with its groups. Either all stages but the first have a scope, or none. */
static sf_status read_stage(reader *r, bool placed, sf_stages_spec *out, const char **scopes,
                            uint64_t *groups)
{
    const char *begun = r->at, *scope = take_pattern(r, placed ? '@' : '\0');
    uint32_t s = out->count++;
    bool has_scope = *scope != '\0';
    const char *expected = NULL;
    if (s == 0 && has_scope)
        expected = "@ and the pipeline ranks of the first stage, which begins with the step";
    else if (!placed && !has_scope)
        expected = "a scope";
    else if (s > 1 && has_scope != (out->scopes != NULL))
        expected = has_scope ? "@, as no other stage has a scope" : "a scope, as other stages have";
    if (expected) {
        r->at = begun;
        return fail_stages(r, expected);
    }
    scopes[s] = has_scope ? scope : NULL;
    out->scopes = has_scope ? scopes : NULL;
    if (!placed)
        return SF_OK;
    if (!take_char(r, '@'))
        return fail_stages(r, "@ and the pipeline ranks of the stage");
    out->groups = groups;
    return read_groups(r, &out->ngroups, &groups[s]);
}

static sf_status read_list(reader *r, sf_stages_spec *out)
{
    bool placed = strchr(r->text, '@') != NULL, more = true;
    size_t most = count_items(r->text) + 1;
    const char **scopes = SF_ARRAY(r->arena, most, const char *);
    uint64_t *groups = SF_ARRAY(r->arena, most, uint64_t);
    *out = (sf_stages_spec){.kind = SF_STAGES_LIST, .count = placed ? 0 : 1};
    while (more) {
        SF_TRY(read_stage(r, placed, out, scopes, groups));
        SF_TRY(end_item(r, &more));
    }
    if (placed && out->ngroups == 0)
        return fail_stages(r, "a stage that says how many pipeline ranks there are");
    for (uint32_t s = 0; placed && s < out->count; s++)
        if (groups[s] == UINT64_MAX)
            groups[s] = sf_all_groups(out->ngroups);
    return SF_OK;
}

static sf_status read_stages(reader *r, sf_stages_spec *out)
{
    if (strcmp(r->text, "auto") == 0) {
        out->kind = SF_STAGES_AUTO;
        return SF_OK;
    }
    if (*r->text && r->text[strspn(r->text, "0123456789")] == '\0') {
        out->kind = SF_STAGES_COUNT;
        if (take_number(r, SF_MOST_GROUPS, &out->count) && out->count > 0)
            return SF_OK;
        r->at = r->text;
        return fail_stages(r, "1 to 64 stages");
    }
    return read_list(r, out);
}

static void print_groups(uint64_t groups, sf_buf *out)
{
    const char *between = "@";
    for (uint32_t g = 0; g < SF_MOST_GROUPS; g++) {
        uint32_t last = g;
        if (!(groups >> g & 1))
            continue;
        while (last + 1 < SF_MOST_GROUPS && groups >> (last + 1) & 1)
            last++;
        sf_buf_printf(out, last > g ? "%s%" PRIu32 "-%" PRIu32 : "%s%" PRIu32, between, g, last);
        between = "+";
        g = last;
    }
}

static void print_stages(const sf_stages_spec *stages, sf_buf *out)
{
    if (stages->kind == SF_STAGES_AUTO)
        sf_buf_puts(out, "auto");
    if (stages->kind == SF_STAGES_COUNT)
        sf_buf_printf(out, "%" PRIu32, stages->count);
    if (stages->kind != SF_STAGES_LIST)
        return;
    for (uint32_t s = stages->groups ? 0 : 1; s < stages->count; s++) {
        sf_buf_puts(out, out->length > 0 ? "," : "");
        sf_buf_puts(out, stages->scopes && stages->scopes[s] ? stages->scopes[s] : "");
        if (stages->groups)
            print_groups(stages->groups[s], out);
    }
}

/* Recompute */

static const char *const ways[] = {
    [SF_RECOMPUTE_AUTO] = "auto",   [SF_RECOMPUTE_NONE] = "none",   [SF_RECOMPUTE_TEXT] = "text",
    [SF_RECOMPUTE_PARTS] = "parts", [SF_RECOMPUTE_CHEAP] = "cheap", [SF_RECOMPUTE_LAYER] = "layer",
    [SF_RECOMPUTE_FULL] = "full"};

static sf_status read_ops(reader *r, sf_recompute_scope *out)
{
    uint32_t *ops = SF_ARRAY(r->arena, strlen(r->at), uint32_t);
    do {
        if (!take_number(r, UINT32_MAX - 1, &ops[out->nops++]))
            return fail_at(r, "the number of an op");
    } while (take_char(r, '+'));
    out->ops = ops;
    return SF_OK;
}

static sf_status read_scopes(reader *r, sf_recompute_spec *out)
{
    sf_recompute_scope *scopes = SF_ARRAY(r->arena, count_items(r->text), sf_recompute_scope);
    bool more = true;
    out->kind = SF_RECOMPUTE_SCOPES;
    for (; more; out->nscopes++) {
        sf_recompute_scope *scope = &scopes[out->nscopes];
        const char *before = r->at;
        if (take_char(r, '#'))
            SF_TRY(read_ops(r, scope));
        else
            scope->pattern = take_pattern(r, '\0');
        if (r->at == before)
            return fail_at(r, "none, text, layer, parts, cheap, full, or a scope of the step");
        SF_TRY(end_item(r, &more));
    }
    out->scopes = scopes;
    return SF_OK;
}

static sf_status read_recompute(reader *r, sf_recompute_spec *out)
{
    size_t length = strcspn(r->text, ":");
    for (int k = SF_RECOMPUTE_AUTO; k <= SF_RECOMPUTE_FULL; k++) {
        bool counts = k == SF_RECOMPUTE_LAYER || k == SF_RECOMPUTE_FULL;
        if (!sf_str_is((sf_str){r->text, length}, ways[k]) || (!counts && r->text[length]))
            continue;
        *out = (sf_recompute_spec){.kind = (sf_recompute_kind)k, .layers = 1};
        r->at += length;
        if (take_char(r, ':') &&
            (!take_number(r, UINT32_MAX - 1, &out->layers) || out->layers == 0 || *r->at != '\0')) {
            r->at = r->text + length + 1;
            return fail_at(r, "how many layers are recomputed together, 1 or more,");
        }
        return SF_OK;
    }
    return read_scopes(r, out);
}

static void print_recompute(const sf_recompute_spec *recompute, sf_buf *out)
{
    if (recompute->kind == SF_RECOMPUTE_UNSAID)
        return;
    if (recompute->kind != SF_RECOMPUTE_SCOPES)
        sf_buf_puts(out, ways[recompute->kind]);
    if (recompute->layers > 1)
        sf_buf_printf(out, ":%" PRIu32, recompute->layers);
    for (size_t s = 0; s < recompute->nscopes; s++) {
        const sf_recompute_scope *scope = &recompute->scopes[s];
        sf_buf_printf(out, "%s%s", s > 0 ? "," : "", scope->pattern ? scope->pattern : "");
        for (size_t n = 0; n < scope->nops; n++)
            sf_buf_printf(out, "%c%" PRIu32, n == 0 ? '#' : '+', scope->ops[n]);
    }
}

/* Co-shard */

static const char *const usual = "megatron";

static sf_status fail_co_shard(const reader *r, const char *expected)
{
    fail_at(r, expected);
    return sf_hint(r->diag, "chunks are a number, as in 4; of a recipe, as in sequence:2; in a "
                            "scope, as in 4@layer_0,2");
}

static sf_status read_chunks(reader *r, sf_co_shard *out)
{
    size_t length = strcspn(r->at, ",@");
    const char *colon = memchr(r->at, ':', length);
    uint32_t chunks;
    *out = (sf_co_shard){usual, "", 0};
    if (colon && colon > r->at) {
        out->by = sf_arena_string(r->arena, r->at, (size_t)(colon - r->at));
        r->at = colon + 1;
    }
    if (*r->at == '0' || !take_number(r, INT_MAX, &chunks))
        return fail_co_shard(r, "a number of chunks, 1 or more");
    out->chunks = (int)chunks;
    if (!take_char(r, '@'))
        return SF_OK;
    out->in = take_pattern(r, '\0');
    return *out->in ? SF_OK : fail_co_shard(r, "a scope");
}

/* One chunk leaves its scope whole; without an item of more there is none. */
static sf_status read_co_shard(reader *r, sf_co_shard_spec *out)
{
    sf_co_shard *all = SF_ARRAY(r->arena, count_items(r->text), sf_co_shard);
    size_t count = 0;
    bool more = true, any = false;
    out->is_said = strcmp(r->text, "auto") != 0;
    if (!out->is_said || strcmp(r->text, "none") == 0)
        return SF_OK;
    while (more) {
        SF_TRY(read_chunks(r, &all[count]));
        any = any || all[count].chunks > 1;
        count++;
        if (*r->at && *r->at != ',')
            return fail_co_shard(r, "@, a comma or the end");
        SF_TRY(end_item(r, &more));
    }
    out->at = all;
    out->count = any ? count : 0;
    return SF_OK;
}

static void print_co_shard(const sf_co_shard_spec *said, sf_buf *out)
{
    if (said->is_said && said->count == 0)
        sf_buf_puts(out, "none");
    for (size_t i = 0; i < said->count; i++) {
        const sf_co_shard *c = &said->at[i];
        bool is_usual = strcmp(c->by, usual) == 0;
        sf_buf_printf(out, "%s%s%s%d%s%s", i > 0 ? "," : "", is_usual ? "" : c->by,
                      is_usual ? "" : ":", c->chunks, *c->in ? "@" : "", c->in);
    }
}

/* Other fields */

static const char *const splits[] = {
    [SF_STATE_AS_RECIPE] = "auto", [SF_STATE_FULL] = "full", [SF_STATE_BETWEEN] = "between"};

static sf_status read_shard_state(reader *r, sf_state_split *out)
{
    for (int s = SF_STATE_AS_RECIPE; s <= SF_STATE_BETWEEN; s++)
        if (strcmp(r->text, splits[s]) == 0) {
            *out = (sf_state_split)s;
            return SF_OK;
        }
    return fail_at(r, "auto, full or between");
}

static sf_status read_kernels(reader *r, sf_spec *out)
{
    out->has_kernels = sf_kernel_choice_read(sf_str_of(r->text), &out->kernels);
    return out->has_kernels ? SF_OK : fail_at(r, "best, none or all");
}

static sf_status read_schedule(reader *r, sf_spec *out)
{
    sf_schedule_kind kind;
    sf_str text;
    if (!sf_file_is_same(r->text, r->text)) {
        out->schedule = r->text;
        return sf_schedule_parse(r->text, &kind, r->diag);
    }
    sf_schedule *table = SF_NEW(r->arena, sf_schedule);
    SF_TRY(sf_file_read(r->text, r->arena, 0, &text, r->diag));
    SF_TRY(sf_schedule_read(text, r->text, r->arena, table, r->diag));
    out->table = table;
    return SF_OK;
}

static sf_status read_mesh(reader *r, sf_spec *out)
{
    sf_mesh *mesh = SF_NEW(r->arena, sf_mesh);
    out->mesh = mesh;
    return sf_mesh_parse(sf_str_of(r->text), r->arena, r->diag, mesh) == SF_OK ? SF_OK : SF_EUSAGE;
}

static reader begin(const char *field, const char *text, sf_arena *arena, sf_diag *diag)
{
    return (reader){field, text, text, arena, diag};
}

sf_status sf_recompute_read(const char *text, sf_arena *arena, sf_diag *diag,
                            sf_recompute_spec *out)
{
    reader r = begin("recompute", text, arena, diag);
    *out = (sf_recompute_spec){0};
    return text ? read_recompute(&r, out) : SF_OK;
}

sf_recompute_spec sf_recompute_of(const char *text, sf_arena *arena)
{
    sf_recompute_spec out;
    SF_ASSERT(sf_recompute_read(text, arena, NULL, &out) == SF_OK);
    return out;
}

sf_status sf_spec_read(const sf_plan_spec *text, sf_arena *arena, sf_diag *diag, sf_spec *out)
{
    *out = (sf_spec){.npins = text->npins,
                     .pins = text->pins,
                     .ranks = text->ranks,
                     .recipe = text->recipe,
                     .micro_batches = text->micro_batches,
                     .passes = text->passes,
                     .memory = text->memory};
    reader mesh = begin("mesh", text->mesh, arena, diag),
           stages = begin("stages", text->stages, arena, diag),
           schedule = begin("schedule", text->schedule, arena, diag),
           co_shard = begin("co_shard", text->co_shard, arena, diag),
           state = begin("shard_state", text->shard_state, arena, diag),
           kernels = begin("kernels", text->kernels, arena, diag);
    if (text->mesh)
        SF_TRY(read_mesh(&mesh, out));
    if (text->stages)
        SF_TRY(read_stages(&stages, &out->stages));
    if (text->schedule)
        SF_TRY(read_schedule(&schedule, out));
    SF_TRY(sf_recompute_read(text->recompute, arena, diag, &out->recompute));
    if (text->co_shard)
        SF_TRY(read_co_shard(&co_shard, &out->co_shard));
    if (text->shard_state)
        SF_TRY(read_shard_state(&state, &out->shard_state));
    return text->kernels ? read_kernels(&kernels, out) : SF_OK;
}

static const char *keep(sf_buf *buf, sf_arena *arena)
{
    const char *text = buf->length > 0 ? sf_arena_string(arena, buf->text, buf->length) : NULL;
    sf_buf_free(buf);
    return text;
}

const char *sf_recompute_text(const sf_recompute_spec *recompute, sf_arena *arena)
{
    sf_buf out = {0};
    print_recompute(recompute, &out);
    return keep(&out, arena);
}

void sf_spec_print(const sf_spec *spec, sf_arena *arena, sf_plan_spec *out)
{
    sf_buf mesh = {0}, stages = {0}, co_shard = {0};
    *out = (sf_plan_spec){.size = sizeof(sf_plan_spec),
                          .npins = spec->npins,
                          .pins = spec->pins,
                          .ranks = spec->ranks,
                          .recipe = spec->recipe,
                          .schedule = spec->schedule,
                          .micro_batches = spec->micro_batches,
                          .recompute = sf_recompute_text(&spec->recompute, arena),
                          .passes = spec->passes,
                          .memory = spec->memory};
    if (spec->mesh)
        sf_mesh_print(spec->mesh, &mesh);
    print_stages(&spec->stages, &stages);
    print_co_shard(&spec->co_shard, &co_shard);
    out->mesh = keep(&mesh, arena);
    out->stages = keep(&stages, arena);
    out->co_shard = keep(&co_shard, arena);
    if (spec->shard_state != SF_STATE_AS_RECIPE)
        out->shard_state = splits[spec->shard_state];
    if (spec->has_kernels)
        out->kernels = sf_kernel_choice_name(spec->kernels);
}
