/* The differences between two plans of one step. */
#include <string.h>

#include "api/api_options.h"
#include "base/guard.h"
#include "base/json.h"
#include "base/output.h"
#include "ir/name.h"
#include "ir/opdef.h"
#include "plan/json/prediction_json.h"
#include "plan/plan.h"
#include "report/report_time.h"
#include "report/table.h"
#include "run/runner.h"
#include "search/price/price.h"

enum { SIDES = 2, MOST_ROWS = 40 };

typedef struct differ {
    const sf_graph *graph;
    const sf_plan *plans[SIDES];
    const sf_cluster *cluster;            /* that both are simulated on; NULL: as they were made */
    const sf_prediction *expected[SIDES]; /* or NULL */
    const char *names[SIDES];
    sf_show_options options;
    sf_arena arena;
} differ;

static const char *keep_row_text(differ *d, sf_buf *text)
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
    return keep_row_text(d, &text);
}

/* The predicted costs of a plan. */
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
        p[s] = d->expected[s] ? d->expected[s] : &none;
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
            sf_table_add(table, "%s", d->expected[s] ? rows[r].text(rows[r].values[s]).at : "-");
    }
}

static const char *cluster_text(const differ *d, int side)
{
    const sf_prediction *own = d->expected[side];
    return own && *own->cluster ? own->cluster : "-";
}

/* Schedules in time of the plans, in one or both of them. */
static void add_in_time(differ *d, sf_table *table)
{
    sf_fact facts[SIDES][SF_IN_TIME_FACTS];
    for (int s = 0; s < SIDES; s++)
        sf_in_time_facts(d->plans[s], d->graph, &d->arena, facts[s]);
    for (int i = 0; i < SF_IN_TIME_FACTS; i++) {
        if (!facts[0][i].text && !facts[1][i].text)
            continue;
        sf_table_add(table, "%s", facts[0][i].label);
        for (int s = 0; s < SIDES; s++)
            sf_table_add(table, "%s", facts[s][i].text ? facts[s][i].text : "-");
    }
}

static void put_diff_head(differ *d, sf_style style, sf_buf *out)
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
    sf_table_add(&table, "cluster");
    for (int s = 0; s < SIDES; s++)
        sf_table_add(&table, "%s", cluster_text(d, s));
    add_in_time(d, &table);
    if (d->expected[0] || d->expected[1])
        add_expected(d, &table);
    sf_table_print(&table, style, out);
    if (!d->expected[0] || !d->expected[1])
        sf_remark(out, style, "a plan of pin has no times: --cluster CLUSTER simulates both");
}

/* Rows: names that differ in numbers alone, and have the same layouts on both sides, share one. */

typedef struct row {
    const char *name, *folded, *layouts[SIDES];
    const sf_node *node; /* NULL: an argument */
    int64_t count;
} row;

typedef struct rows {
    size_t count, capacity;
    row *at;
} rows;

static const char *fold_name(differ *d, const char *name)
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

static void add_diff_row(differ *d, rows *all, const char *name, const sf_node *node,
                         const char *left, const char *right)
{
    row new_row = {name, d->options.all ? name : fold_name(d, name), {left, right}, node, 1};
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

static void diff_arguments(differ *d, rows *out)
{
    const char **names = sf_clean_names(d->graph, &d->arena);
    for (uint32_t i = 0; i < d->graph->top->narguments; i++) {
        const sf_type *type = sf_argument_type(d->graph, i);
        const char *layouts[SIDES];
        for (int s = 0; s < SIDES; s++) {
            const sf_layout *layout = &d->plans[s]->arguments[i];
            sf_buf text = {0};
            if (sf_layout_is_replicated(layout))
                sf_buf_puts(&text, "replicated");
            else
                add_layouts(d, s, 1, &type, layout, &text);
            layouts[s] = keep_row_text(d, &text);
        }
        if (strcmp(layouts[0], layouts[1]) != 0)
            add_diff_row(d, out, names[i], NULL, layouts[0], layouts[1]);
    }
}

/* "stage 1, recomputed: ", or nothing. */
static void add_place(const sf_plan *plan, const sf_node *node, sf_buf *out)
{
    bool staged = plan->pipeline && !plan->pipeline->stages.anywhere[node->id];
    bool recomputed = plan->recomputed && plan->recomputed[node->id];
    if (staged)
        sf_buf_printf(out, "stage %u", plan->pipeline->stages.of_node[node->id]);
    if (staged || recomputed)
        sf_buf_printf(out, "%s%s: ", staged && recomputed ? ", " : "",
                      recomputed ? "recomputed" : "");
}

/* "[S(0)] [R] -> [S(0)]": operands and results, after its stage and whether it is recomputed. */
static const char *node_layouts(differ *d, int side, const sf_node *node,
                                const sf_type *const *types)
{
    const sf_layout *layouts = d->plans[side]->nodes[node->id];
    sf_buf text = {0};
    add_place(d->plans[side], node, &text);
    if (sf_layouts_are_replicated(layouts, node->noperands + node->nresults)) {
        sf_buf_puts(&text, "replicated");
    } else {
        add_layouts(d, side, node->noperands, types, layouts, &text);
        sf_buf_puts(&text, " -> ");
        add_layouts(d, side, node->nresults, types + node->noperands, layouts + node->noperands,
                    &text);
    }
    return keep_row_text(d, &text);
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
        add_diff_row(d, out, keep_row_text(d, &name), node, left, right);
    }
}

/* JSON ------------------------------------------------------------------------------------------- */

static void put_json_plan(const differ *d, int side, sf_json_writer *json)
{
    const sf_plan *plan = d->plans[side];
    const sf_prediction *predicted = d->expected[side];
    sf_json_begin_object(json);
    sf_json_add_string(json, "name", d->names[side]);
    sf_json_add_int(json, "ranks", sf_mesh_size(&plan->mesh));
    sf_json_add_string(json, "recipe", plan->recipe);
    sf_json_key(json, "mesh");
    sf_mesh_put_json(&plan->mesh, json);
    sf_in_time_json(plan, d->graph, json);
    if (predicted) {
        sf_json_add_string(json, "cluster", predicted->cluster);
        sf_json_add_double(json, "seconds", predicted->seconds);
        sf_json_add_double(json, "compute", predicted->compute);
        sf_json_add_double(json, "exposed", predicted->exposed);
        sf_json_add_double(json, "hidden", predicted->hidden);
        sf_json_add_double(json, "traffic", predicted->traffic);
        sf_json_add_int(json, "memory", predicted->memory);
    }
    sf_json_end_object(json);
}

static void put_json_rows(const rows *all, const char *key, sf_json_writer *json)
{
    sf_json_key(json, key);
    sf_json_begin_array(json);
    for (size_t i = 0; i < all->count; i++) {
        const row *r = &all->at[i];
        sf_json_begin_object(json);
        if (r->node) {
            sf_json_add_int(json, "node", r->node->id);
            sf_json_add_string(json, "op", r->node->def->name);
            sf_json_add_string(json, "scope", r->node->scope->path);
        } else {
            sf_json_add_string(json, "name", r->name);
        }
        sf_json_key(json, "layouts");
        sf_json_begin_row(json);
        for (int s = 0; s < SIDES; s++)
            sf_json_put_string(json, r->layouts[s]);
        sf_json_end_array(json);
        sf_json_end_object(json);
    }
    sf_json_end_array(json);
}

static void put_diff_json(const differ *d, const rows *arguments, const rows *nodes, sf_buf *out)
{
    sf_json_writer json = {.buf = out, .indent = true};
    sf_json_begin_object(&json);
    sf_json_key(&json, "plans");
    sf_json_begin_array(&json);
    for (int s = 0; s < SIDES; s++)
        put_json_plan(d, s, &json);
    sf_json_end_array(&json);
    put_json_rows(arguments, "arguments", &json);
    put_json_rows(nodes, "nodes", &json);
    sf_json_end_object(&json);
    sf_buf_putc(out, '\n');
}

static void put_diff_text(differ *d, const rows *arguments, const rows *nodes, sf_buf *out)
{
    sf_style style = {.width = d->options.width, .colour = d->options.colour};
    put_diff_head(d, style, out);
    put_rows(d, arguments, "arguments with other layouts", "argument", style, out);
    put_rows(d, nodes, "ops with other layouts", "scope and op", style, out);
}

/* The call --------------------------------------------------------------------------------------- */

struct job {
    differ d;
    const sf_output *output;
    sf_diag *diag;
};

static sf_status simulate_side(differ *d, int side, sf_diag *diag)
{
    const sf_plan *plan = d->plans[side];
    const sf_cluster *cluster;
    sf_costs *costs;
    sf_price price;
    d->expected[side] = plan->predicted;
    if (!d->cluster)
        return SF_OK;
    SF_TRY(sf_plan_cluster(plan, d->cluster, &d->arena, diag, &cluster));
    SF_TRY(sf_mesh_costs(cluster, &plan->mesh, &d->arena, diag, &costs));
    SF_TRY(
        sf_price_plan(d->graph, plan, sf_cluster_target(cluster), costs, NULL, NULL, diag, &price));
    sf_prediction *own = SF_NEW(&d->arena, sf_prediction);
    *own = (sf_prediction){.cluster = cluster->name,
                           .seconds = price.seconds,
                           .compute = price.compute,
                           .exposed = price.exposed,
                           .hidden = price.hidden,
                           .traffic = price.traffic,
                           .memory = price.memory};
    d->expected[side] = own;
    return SF_OK;
}

static sf_status write_diff(void *context)
{
    struct job *job = context;
    differ *d = &job->d;
    rows arguments = {0}, nodes = {0};
    sf_buf out = {0};
    for (int i = 0; i < 2; i++)
        SF_TRY(sf_plan_expect(d->plans[i], d->graph, job->diag));
    for (int i = 0; i < SIDES; i++)
        SF_TRY(simulate_side(d, i, job->diag));
    diff_arguments(d, &arguments);
    compare_nodes(d, &nodes);
    if (d->options.json)
        put_diff_json(d, &arguments, &nodes, &out);
    else
        put_diff_text(d, &arguments, &nodes, &out);
    sf_status status = sf_output_report(job->output, &out, job->diag);
    sf_buf_free(&out);
    sf_arena_free(&d->arena);
    return status;
}

static sf_status run_diff(struct job *job, const sf_show_options *options)
{
    SF_TRY(SF_TAKE(sf_show_options, options, &job->d.options, job->diag));
    job->d.options.all = job->d.options.all || job->d.options.json;
    return sf_guarded(write_diff, job, job->diag);
}

sf_status sf_plan_diff(const sf_graph *graph, const sf_plan *left, const sf_plan *right,
                       const char *left_name, const char *right_name,
                       const sf_show_options *options, const sf_output *output, sf_diag *diag)
{
    SF_NEED(diag, graph, left, right, left_name, right_name);
    struct job job = {.output = output, .diag = diag};
    job.d = (differ){.graph = graph, .plans = {left, right}, .names = {left_name, right_name}};
    return run_diff(&job, options);
}

sf_status sf_plan_diff_on(const sf_graph *graph, const sf_plan *left, const sf_plan *right,
                          const char *left_name, const char *right_name, const sf_cluster *cluster,
                          const sf_show_options *options, const sf_output *output, sf_diag *diag)
{
    SF_NEED(diag, graph, left, right, left_name, right_name, cluster);
    struct job job = {.output = output, .diag = diag};
    job.d = (differ){.graph = graph,
                     .plans = {left, right},
                     .names = {left_name, right_name},
                     .cluster = cluster};
    return run_diff(&job, options);
}
