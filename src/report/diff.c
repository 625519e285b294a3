/* In what two plans differ, read off their files. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "api/guard.h"
#include "base/file.h"
#include "base/json.h"
#include "report/table.h"
#include "sheaf/plan.h"

enum { SIDES = 2, MOST_ROWS = 40 };

typedef struct side {
    const char *path;
    const sf_json *root;
} side;

typedef struct differ {
    side sides[SIDES];
    sf_show_options options;
    sf_diag *diag;
    sf_arena arena;
} differ;

static sf_status read_side(differ *d, side *s)
{
    sf_str text, format;
    SF_TRY(sf_file_read(s->path, &d->arena, 0, &text, d->diag));
    SF_TRY(sf_json_parse(text, s->path, &d->arena, &s->root, d->diag));
    if (!sf_json_string(sf_json_get(s->root, "format"), &format) ||
        !sf_str_is(format, "sheaf plan"))
        return sf_fail(d->diag, SF_EINPUT, (sf_loc){.file = s->path}, "this is no plan");
    return SF_OK;
}

static const char *string_of(const sf_json *value, const char *otherwise)
{
    sf_str text;
    return sf_json_string(value, &text) ? text.at : otherwise;
}

static sf_status check_same_step(differ *d)
{
    const char *left = string_of(sf_json_get(d->sides[0].root, "step"), "");
    const char *right = string_of(sf_json_get(d->sides[1].root, "step"), "");
    return strcmp(left, right) == 0
               ? SF_OK
               : sf_fail(d->diag, SF_EUSAGE, SF_NOWHERE, "the plans are for two steps, %s and %s",
                         left, right);
}

/* Head ------------------------------------------------------------------------------------------- */

static const char *mesh_text(differ *d, const sf_json *root)
{
    const sf_json *mesh = sf_json_get(root, "mesh");
    sf_buf text = {0};
    sf_buf_printf(&text, "%s", "");
    for (size_t i = 0; sf_json_kind_of(mesh) == SF_JSON_OBJECT && i < sf_json_count(mesh); i++) {
        int64_t size = 0;
        sf_json_int(sf_json_value_at(mesh, i), &size);
        sf_buf_printf(&text, "%s%.*s=%" PRId64, i ? "," : "", SF_STR_ARGS(sf_json_key_at(mesh, i)),
                      size);
    }
    const char *kept = sf_arena_string(&d->arena, text.text, text.length);
    sf_buf_free(&text);
    return kept;
}

static double predicted(const sf_json *root, const char *key)
{
    double value = -1;
    sf_json_number(sf_json_get(sf_json_get(root, "predicted"), key), &value);
    return value;
}

static void add_number(differ *d, sf_table *table, const char *title, const char *key,
                       sf_text (*text)(double))
{
    sf_table_add(table, "%s", title);
    for (int s = 0; s < SIDES; s++) {
        double value = predicted(d->sides[s].root, key);
        sf_table_add(table, "%s", value < 0 ? "-" : text(value).at);
    }
}

static void put_head(differ *d, sf_style style, sf_buf *out)
{
    sf_column columns[] = {{"", false, SF_STAYS},
                           {d->sides[0].path, true, SF_STAYS},
                           {d->sides[1].path, true, SF_STAYS}};
    sf_heading(out, style, "plans");
    sf_table table = sf_table_new(&d->arena, 3, columns);
    sf_table_add(&table, "mesh");
    for (int s = 0; s < SIDES; s++)
        sf_table_add(&table, "%s", mesh_text(d, d->sides[s].root));
    sf_table_add(&table, "recipe");
    for (int s = 0; s < SIDES; s++) {
        const char *recipe = string_of(sf_json_get(d->sides[s].root, "recipe"), "");
        sf_table_add(&table, "%s", *recipe ? recipe : "-");
    }
    add_number(d, &table, "step", "seconds", sf_text_seconds);
    add_number(d, &table, "compute", "compute", sf_text_seconds);
    add_number(d, &table, "exposed", "exposed", sf_text_seconds);
    add_number(d, &table, "hidden", "hidden", sf_text_seconds);
    add_number(d, &table, "communication", "traffic", sf_text_bytes);
    add_number(d, &table, "memory", "memory", sf_text_bytes);
    sf_table_print(&table, style, out);
}

/* Arguments: names that differ in numbers alone, and stand alike on both sides, share a row. */

typedef struct row {
    const char *name, *folded, *layouts[SIDES];
    int64_t count;
} row;

typedef struct rows {
    size_t count, capacity;
    row *at;
} rows;

static const char *fold(differ *d, const char *name)
{
    char *folded = sf_arena_string(&d->arena, name, strlen(name)), *to = folded;
    for (const char *from = name; *from; from++) {
        bool digit = *from >= '0' && *from <= '9';
        if (!digit || to == folded || to[-1] != '*')
            *to++ = digit ? '*' : *from;
    }
    *to = 0;
    return folded;
}

static void add_row(differ *d, rows *all, const char *name, const char *left, const char *right)
{
    row new_row = {name, d->options.all ? name : fold(d, name), {left, right}, 1};
    for (size_t i = 0; i < all->count && !d->options.all; i++) {
        row *r = &all->at[i];
        if (strcmp(r->folded, new_row.folded) == 0 && strcmp(r->layouts[0], left) == 0 &&
            strcmp(r->layouts[1], right) == 0) {
            r->count++;
            return;
        }
    }
    SF_PUSH(&d->arena, all->at, all->count, all->capacity, new_row);
}

static void put_rows(differ *d, const rows *all, const char *title, const char *what,
                     sf_style style, sf_buf *out)
{
    sf_column columns[] = {{what, false, SF_SHRINKS},
                           {"count", true, SF_STAYS},
                           {d->sides[0].path, false, SF_STAYS},
                           {d->sides[1].path, false, SF_STAYS}};
    sf_heading(out, style, "%s", title);
    if (all->count == 0) {
        sf_remark(out, style, "none");
        return;
    }
    sf_table table = sf_table_new(&d->arena, 4, columns);
    for (size_t i = 0; i < all->count && (d->options.all || i < MOST_ROWS); i++) {
        const row *r = &all->at[i];
        sf_table_add(&table, "%s", r->count > 1 ? r->folded : r->name);
        sf_table_add(&table, "%s", sf_text_count(r->count).at);
        for (int s = 0; s < SIDES; s++)
            sf_table_add(&table, "%s", r->layouts[s]);
    }
    sf_table_print(&table, style, out);
    if (!d->options.all && all->count > MOST_ROWS)
        sf_remark(out, style, "and %zu more: --all lists them", all->count - MOST_ROWS);
}

/* What is left out of a plan is replicated. */
static void compare_arguments(differ *d, int from, rows *out)
{
    const sf_json *mine = sf_json_get(d->sides[from].root, "arguments");
    const sf_json *theirs = sf_json_get(d->sides[1 - from].root, "arguments");
    for (size_t i = 0; sf_json_kind_of(mine) == SF_JSON_OBJECT && i < sf_json_count(mine); i++) {
        const char *name = sf_json_key_at(mine, i).at;
        const sf_json *other = sf_json_get(theirs, name);
        const char *layouts[SIDES];
        layouts[from] = string_of(sf_json_value_at(mine, i), "?");
        layouts[1 - from] = string_of(other, "replicated");
        if (strcmp(layouts[0], layouts[1]) != 0 && (from == 0 || !other))
            add_row(d, out, name, layouts[0], layouts[1]);
    }
}

/* Nodes: [NODE, OP, SCOPE, [LAYOUT...], [LAYOUT...]], sorted by number. */

static int64_t node_number(const sf_json *nodes, size_t at)
{
    int64_t id = INT64_MAX;
    if (at < sf_json_count(nodes) && sf_json_count(sf_json_item(nodes, at)) == 5)
        sf_json_int(sf_json_item(sf_json_item(nodes, at), 0), &id);
    return id;
}

static const char *node_layouts(differ *d, const sf_json *node)
{
    sf_buf text = {0};
    for (size_t list = 3; list < 5; list++) {
        const sf_json *layouts = sf_json_item(node, list);
        sf_buf_printf(&text, "%s", list == 4 ? " -> " : "");
        for (size_t i = 0; i < sf_json_count(layouts); i++)
            sf_buf_printf(&text, "%s%s", i ? " " : "", string_of(sf_json_item(layouts, i), "?"));
    }
    const char *kept = sf_arena_string(&d->arena, text.text, text.length);
    sf_buf_free(&text);
    return kept;
}

static const char *node_name(differ *d, const sf_json *node)
{
    sf_buf text = {0};
    sf_buf_printf(&text, "%s %s", string_of(sf_json_item(node, 2), ""),
                  string_of(sf_json_item(node, 1), ""));
    const char *kept = sf_arena_string(&d->arena, text.text, text.length);
    sf_buf_free(&text);
    return kept;
}

static void compare_nodes(differ *d, rows *out)
{
    const sf_json *nodes[SIDES];
    size_t at[SIDES] = {0};
    for (int s = 0; s < SIDES; s++)
        nodes[s] = sf_json_get(d->sides[s].root, "nodes");
    for (;;) {
        int64_t ids[SIDES] = {node_number(nodes[0], at[0]), node_number(nodes[1], at[1])};
        int64_t id = ids[0] < ids[1] ? ids[0] : ids[1];
        const char *layouts[SIDES] = {"replicated", "replicated"};
        const sf_json *node = NULL;
        if (id == INT64_MAX)
            return;
        for (int s = 0; s < SIDES; s++)
            if (ids[s] == id) {
                node = sf_json_item(nodes[s], at[s]++);
                layouts[s] = node_layouts(d, node);
            }
        if (strcmp(layouts[0], layouts[1]) != 0)
            add_row(d, out, node_name(d, node), layouts[0], layouts[1]);
    }
}

static sf_status diff(differ *d, sf_buf *out)
{
    sf_style style = {.width = d->options.width, .colour = d->options.colour};
    rows arguments = {0}, nodes = {0};
    for (int s = 0; s < SIDES; s++)
        SF_TRY(read_side(d, &d->sides[s]));
    SF_TRY(check_same_step(d));
    put_head(d, style, out);
    compare_arguments(d, 0, &arguments);
    compare_arguments(d, 1, &arguments);
    put_rows(d, &arguments, "arguments that stand differently", "argument", style, out);
    compare_nodes(d, &nodes);
    put_rows(d, &nodes, "ops that run differently", "scope and op", style, out);
    return SF_OK;
}

struct job {
    differ d;
    const char *path;
};

static sf_status work(void *context)
{
    struct job *job = context;
    sf_buf out = {0};
    sf_status status = diff(&job->d, &out);
    if (status == SF_OK)
        status = sf_file_write(job->path, out.text, out.length, job->d.diag);
    sf_buf_free(&out);
    sf_arena_free(&job->d.arena);
    return status;
}

sf_status sf_plan_diff(const char *left, const char *right, const sf_show_options *options,
                       const char *path, sf_diag *diag)
{
    struct job job = {.path = path};
    job.d.sides[0].path = left;
    job.d.sides[1].path = right;
    job.d.diag = diag;
    if (options)
        job.d.options = *options;
    return sf_guarded(work, &job, diag);
}
