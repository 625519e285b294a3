/* The scope tree as rows. A row is one scope, or several equal ones that are folded: "layer_0 ..
 * layer_23 (24x)". It has their sum, so that a column adds up. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/report_show.h"

enum { MOST_ROWS = 16, MOST_COMPARED = 64, DEEPEST_FOLDED = 64, WIDEST_INDENT = 64 };

struct rows {
    const sf_summary *summary;
    sf_table *table;
    sf_arena arena;
    uint32_t depth;
};

/* Scopes of one row: entries of summary->scopes, whose subtrees are equal. */
struct instances {
    uint32_t count;
    uint32_t *at;
};

static void add_scope_row(const sf_summary *summary, sf_table *table, int indent, const char *name,
                          const sf_scope_cost *cost)
{
    const sf_cost *total = &summary->total;
    sf_table_add(table, "%*s%s%s", indent, "", name, cost->all.unknown_trips ? " x ?" : "");
    sf_table_add(table, "%s", sf_text_count(cost->all.nodes).at);
    sf_table_add(table, "%s", sf_text_flops(cost->all.flops).at);
    sf_table_add(table, "%s", sf_text_share(cost->all.flops, total->flops).at);
    sf_table_add(table, "%s", sf_text_bytes(cost->all.bytes).at);
    sf_table_add(table, "%s", sf_text_share(cost->all.bytes, total->bytes).at);
    sf_table_add(table, "%s", cost->parameters ? sf_text_count(cost->parameters).at : "-");
}

static sf_scope_cost sum_of_instances(const sf_summary *summary, struct instances instances)
{
    sf_scope_cost total = summary->scopes[instances.at[0]];
    for (uint32_t i = 1; i < instances.count; i++) {
        const sf_scope_cost *more = &summary->scopes[instances.at[i]];
        sf_cost_add(&total.all, &more->all);
        sf_add_limited(&total.parameters, more->parameters);
    }
    return total;
}

/* The same scopes below, with the same flops and parameters. Bytes and nodes may differ a little: a
 * constant that layers share counts in the first of them. */
static bool are_equal(const sf_scope_cost *scopes, uint32_t a, uint32_t b)
{
    if (scopes[a].end - a != scopes[b].end - b)
        return false;
    for (uint32_t i = 0; i < scopes[a].end - a; i++) {
        const sf_scope_cost *x = &scopes[a + i], *y = &scopes[b + i];
        if (x->end - a != y->end - b || x->all.flops != y->all.flops ||
            x->parameters != y->parameters || x->all.unknown_trips != y->all.unknown_trips)
            return false;
        if (i > 0 && strcmp(x->scope->name, y->scope->name) != 0)
            return false;
    }
    return true;
}

/* Names that differ in their numbers only. */
static bool are_family(const sf_scope_cost *a, const sf_scope_cost *b)
{
    return sf_compare_names(a->scope->name, b->scope->name, false) == 0;
}

/* Siblings that are equal and of one family, below the first of the instances above. */
struct run {
    uint32_t *members; /* entries of summary->scopes */
    size_t count, capacity;
    double flops; /* of all of it, in one instance above */
    bool shown;
};

static void list_below(struct rows *rows, struct instances above, uint32_t level);

static struct instances instances_of(struct rows *rows, struct instances above,
                                     const struct run *run)
{
    struct instances all = {0};
    all.at = SF_ARRAY(&rows->arena, run->count * above.count, uint32_t);
    for (size_t i = 0; i < run->count; i++)
        for (uint32_t j = 0; j < above.count; j++)
            all.at[all.count++] = above.at[j] + (run->members[i] - above.at[0]);
    return all;
}

static void list_run(struct rows *rows, struct instances above, const struct run *run,
                     uint32_t level)
{
    const sf_scope_cost *scopes = rows->summary->scopes;
    struct instances all = instances_of(rows, above, run);
    sf_scope_cost cost = sum_of_instances(rows->summary, all);
    sf_buf name = {0};
    sf_buf_puts(&name, scopes[run->members[0]].scope->name);
    if (run->count > 1)
        sf_buf_printf(&name, " .. %s (%zux)", scopes[run->members[run->count - 1]].scope->name,
                      run->count);
    add_scope_row(rows->summary, rows->table, (int)(2 * level), name.text, &cost);
    sf_buf_free(&name);
    if (level < rows->depth)
        list_below(rows, all, level + 1);
}

static int by_flops(const void *left, const void *right)
{
    const struct run *a = *(struct run *const *)left, *b = *(struct run *const *)right;
    if (a->flops != b->flops)
        return a->flops > b->flops ? -1 : 1;
    return a->members[0] < b->members[0] ? -1 : 1;
}

/* Of many runs, those with the most flops are shown; the others share a row. */
static void choose_shown(struct rows *rows, struct run *runs, size_t count)
{
    struct run **order = SF_ARRAY(&rows->arena, count, struct run *);
    for (size_t i = 0; i < count; i++)
        order[i] = &runs[i];
    if (count > MOST_ROWS)
        qsort(order, count, sizeof *order, by_flops);
    for (size_t i = 0; i < count; i++)
        order[i]->shown = count <= MOST_ROWS || i < MOST_ROWS - 1;
}

static void list_hidden(struct rows *rows, struct instances above, const struct run *runs,
                        size_t count, uint32_t level)
{
    sf_scope_cost rest = {0};
    size_t hidden = 0;
    for (size_t i = 0; i < count; i++) {
        if (runs[i].shown)
            continue;
        sf_scope_cost cost = sum_of_instances(rows->summary, instances_of(rows, above, &runs[i]));
        sf_cost_add(&rest.all, &cost.all);
        sf_add_limited(&rest.parameters, cost.parameters);
        hidden += runs[i].count;
    }
    char name[32];
    snprintf(name, sizeof name, "%zu others", hidden);
    if (hidden)
        add_scope_row(rows->summary, rows->table, (int)(2 * level), name, &rest);
}

/* The run that a scope belongs to, among the last ones; they are of its family first. NULL: none. */
static struct run *find_run(const sf_scope_cost *scopes, struct run *runs, size_t count,
                            uint32_t at)
{
    for (size_t i = count; i-- > 0 && count - i <= MOST_COMPARED;) {
        if (!are_family(&scopes[runs[i].members[0]], &scopes[at]))
            return NULL;
        if (are_equal(scopes, runs[i].members[0], at))
            return &runs[i];
    }
    return NULL;
}

static void list_below(struct rows *rows, struct instances above, uint32_t level)
{
    const sf_scope_cost *scopes = rows->summary->scopes;
    struct run *runs = NULL;
    size_t count = 0, capacity = 0;
    uint32_t end = scopes[above.at[0]].end;
    for (uint32_t at = above.at[0] + 1; at < end; at = scopes[at].end) {
        struct run *run = find_run(scopes, runs, count, at);
        if (!run) {
            SF_PUSH(&rows->arena, runs, count, capacity, (struct run){0});
            run = &runs[count - 1];
        }
        SF_PUSH(&rows->arena, run->members, run->count, run->capacity, at);
        run->flops += scopes[at].all.flops;
    }
    choose_shown(rows, runs, count);
    for (size_t i = 0; i < count; i++)
        if (runs[i].shown)
            list_run(rows, above, &runs[i], level);
    list_hidden(rows, above, runs, count, level);
}

void sf_scope_rows(const sf_summary *summary, bool all, int depth, sf_table *table)
{
    add_scope_row(summary, table, 0, "all", &summary->scopes[0]);
    if (all) {
        for (uint32_t i = 1; i < summary->nscopes; i++) {
            const sf_scope *scope = summary->scopes[i].scope;
            uint32_t indent = 2 * scope->depth < WIDEST_INDENT ? 2 * scope->depth : WIDEST_INDENT;
            add_scope_row(summary, table, (int)indent, scope->name, &summary->scopes[i]);
        }
        return;
    }
    struct rows rows = {.summary = summary, .table = table};
    rows.depth = (uint32_t)(depth < DEEPEST_FOLDED ? depth : DEEPEST_FOLDED);
    uint32_t root = 0;
    list_below(&rows, (struct instances){1, &root}, 1);
    sf_arena_free(&rows.arena);
}
