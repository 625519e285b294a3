/* In what two plans of one step differ. */
#include <string.h>

#include "api/guard.h"
#include "base/file.h"
#include "ir/name.h"
#include "ir/opdef.h"
#include "plan/plan.h"
#include "report/table.h"

enum { SIDES = 2, MOST_ROWS = 40 };

typedef struct differ {
    const sf_graph *graph;
    const sf_plan *plans[SIDES];
    const char *names[SIDES];
    sf_show_options options;
    sf_arena arena;
} differ;

static const char *keep(differ *d, sf_buf *text)
{
    const char *kept = sf_arena_string(&d->arena, text->text, text->length);
    sf_buf_free(text);
    return kept;
}

/* Head ------------------------------------------------------------------------------------------- */

static const char *mesh_text(differ *d, int side)
{
    sf_buf text = {0};
    sf_mesh_print(&d->plans[side]->mesh, &text);
    return keep(d, &text);
}

/* What is expected of a plan. */
typedef struct expected {
    const char *title;
    sf_text (*text)(double);
    double values[SIDES];
} expected;

static void add_expected(differ *d, sf_table *table)
{
    static const sf_prediction none;
    const sf_prediction *p[SIDES];
    for (int s = 0; s < SIDES; s++)
        p[s] = d->plans[s]->predicted ? d->plans[s]->predicted : &none;
    const expected rows[] = {
        {"step", sf_text_seconds, {p[0]->seconds, p[1]->seconds}},
        {"compute", sf_text_seconds, {p[0]->compute, p[1]->compute}},
        {"exposed", sf_text_seconds, {p[0]->exposed, p[1]->exposed}},
        {"hidden", sf_text_seconds, {p[0]->hidden, p[1]->hidden}},
        {"communication", sf_text_bytes, {p[0]->traffic, p[1]->traffic}},
        {"memory", sf_text_bytes, {(double)p[0]->memory, (double)p[1]->memory}},
    };
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        sf_table_add(table, "%s", rows[r].title);
        for (int s = 0; s < SIDES; s++)
            sf_table_add(table, "%s",
                         d->plans[s]->predicted ? rows[r].text(rows[r].values[s]).at : "-");
    }
}

static void put_head(differ *d, sf_style style, sf_buf *out)
{
    sf_column columns[] = {
        {"", false, SF_STAYS}, {d->names[0], true, SF_STAYS}, {d->names[1], true, SF_STAYS}};
    sf_heading(out, style, "plans");
    sf_table table = sf_table_new(&d->arena, 3, columns);
    sf_table_add(&table, "mesh");
    for (int s = 0; s < SIDES; s++)
        sf_table_add(&table, "%s", mesh_text(d, s));
    sf_table_add(&table, "recipe");
    for (int s = 0; s < SIDES; s++)
        sf_table_add(&table, "%s", *d->plans[s]->recipe ? d->plans[s]->recipe : "-");
    add_expected(d, &table);
    sf_table_print(&table, style, out);
}

/* Rows: names that differ in numbers alone, and stand alike on both sides, share one. */

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
                           {d->names[0], false, SF_STAYS},
                           {d->names[1], false, SF_STAYS}};
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

/* The layouts of tensors of one plan. */
static void add_layouts(const differ *d, int side, uint32_t count, const sf_type *const *types,
                        const sf_layout *layouts, sf_buf *out)
{
    for (uint32_t i = 0; i < count; i++) {
        sf_buf_puts(out, i > 0 ? " " : "");
        sf_layout_print(&layouts[i], &d->plans[side]->mesh, types[i]->rank, types[i]->dims, out);
    }
}

static bool is_replicated(uint32_t count, const sf_layout *layouts)
{
    for (uint32_t i = 0; i < count; i++)
        if (!sf_layout_is_replicated(&layouts[i]))
            return false;
    return true;
}

static void compare_arguments(differ *d, rows *out)
{
    const char **names = sf_clean_names(d->graph, &d->arena);
    for (uint32_t i = 0; i < d->graph->top->narguments; i++) {
        const sf_type *type = sf_type_of(d->graph, d->graph->top->arguments[i]);
        const char *layouts[SIDES];
        for (int s = 0; s < SIDES; s++) {
            const sf_layout *layout = &d->plans[s]->arguments[i];
            sf_buf text = {0};
            if (sf_layout_is_replicated(layout))
                sf_buf_puts(&text, "replicated");
            else
                add_layouts(d, s, 1, &type, layout, &text);
            layouts[s] = keep(d, &text);
        }
        if (strcmp(layouts[0], layouts[1]) != 0)
            add_row(d, out, names[i], layouts[0], layouts[1]);
    }
}

/* "[S(0)] [R] -> [S(0)]": operands and results. */
static const char *node_layouts(differ *d, int side, const sf_node *node,
                                const sf_type *const *types)
{
    const sf_layout *layouts = d->plans[side]->nodes[node->id];
    sf_buf text = {0};
    if (is_replicated(node->noperands + node->nresults, layouts)) {
        sf_buf_puts(&text, "replicated");
    } else {
        add_layouts(d, side, node->noperands, types, layouts, &text);
        sf_buf_puts(&text, " -> ");
        add_layouts(d, side, node->nresults, types + node->noperands, layouts + node->noperands,
                    &text);
    }
    return keep(d, &text);
}

static void compare_nodes(differ *d, rows *out)
{
    for (uint32_t i = 0; i < d->graph->top->nnodes; i++) {
        const sf_node *node = d->graph->nodes[d->graph->top->nodes[i]];
        const sf_type **types =
            SF_ARRAY(&d->arena, node->noperands + node->nresults, const sf_type *);
        for (uint32_t t = 0; t < node->noperands; t++)
            types[t] = sf_type_of(d->graph, node->operands[t]);
        for (uint32_t t = 0; t < node->nresults; t++)
            types[node->noperands + t] = sf_type_of(d->graph, node->result + t);
        const char *left = node_layouts(d, 0, node, types),
                   *right = node_layouts(d, 1, node, types);
        if (strcmp(left, right) == 0)
            continue;
        sf_buf name = {0};
        sf_buf_printf(&name, "%s %s", node->scope->path, node->def->name);
        add_row(d, out, keep(d, &name), left, right);
    }
}

struct job {
    differ d;
    const char *path;
    sf_diag *diag;
};

static sf_status work(void *context)
{
    struct job *job = context;
    differ *d = &job->d;
    sf_style style = {.width = d->options.width, .colour = d->options.colour};
    rows arguments = {0}, nodes = {0};
    sf_buf out = {0};
    compare_arguments(d, &arguments);
    compare_nodes(d, &nodes);
    put_head(d, style, &out);
    put_rows(d, &arguments, "arguments that stand differently", "argument", style, &out);
    put_rows(d, &nodes, "ops that run differently", "scope and op", style, &out);
    sf_status status = sf_file_write(job->path, out.text, out.length, job->diag);
    sf_buf_free(&out);
    sf_arena_free(&d->arena);
    return status;
}

sf_status sf_plan_diff(const sf_graph *graph, const sf_plan *left, const sf_plan *right,
                       const char *left_name, const char *right_name,
                       const sf_show_options *options, const char *path, sf_diag *diag)
{
    struct job job = {.path = path, .diag = diag};
    job.d = (differ){.graph = graph, .plans = {left, right}, .names = {left_name, right_name}};
    if (options)
        job.d.options = *options;
    return sf_guarded(work, &job, diag);
}
