/* Some tensors of a plan: their layouts, their resharding, and alternatives. */
#include <inttypes.h>
#include <string.h>

#include "base/json.h"
#include "ir/name.h"
#include "ir/opdef.h"
#include "report/report_explain.h"

enum { MOST_ROWS = 40 };

typedef struct matches {
    size_t count, capacity;
    sf_value *values;
    bool *is_match; /* by value */
} matches;

/* Named tensors; and by scope the values computed there, in any phase. */
static matches find_matches(sf_explanation *e, const sf_names *names, const char *what)
{
    matches m = {.is_match = SF_ARRAY(&e->arena, e->graph->nvalues, bool)};
    for (sf_value v = 0; v < e->graph->nvalues; v++) {
        const sf_node *node = sf_maker(e->graph, v);
        const char *scope = node ? node->scope->path : "";
        /* Values inside of loops have no layout of their own. */
        if (node && !e->plan->nodes[node->id])
            continue;
        m.is_match[v] = sf_name_is_in(what, names->values[v]) || sf_name_is_in(what, scope);
        if (m.is_match[v])
            SF_PUSH(&e->arena, m.values, m.count, m.capacity, v);
    }
    return m;
}

static const char *name_of_value(const sf_explanation *e, const sf_names *names, sf_value value)
{
    return *names->values[value] ? names->values[value] : sf_maker(e->graph, value)->scope->path;
}

static const char *maker_text(const sf_explanation *e, sf_value value)
{
    const sf_node *node = sf_maker(e->graph, value);
    return node ? node->def->name
                : sf_role_name(e->graph->arguments[e->graph->values[value].index].role);
}

static const char *phase_of(const sf_explanation *e, sf_value value)
{
    const sf_node *node = sf_maker(e->graph, value);
    return node ? sf_phase_name(node->phase) : "";
}

static bool cut_short(const sf_explanation *e, size_t row)
{
    return !e->options.all && row >= MOST_ROWS;
}

static void put_rest(const sf_explanation *e, sf_style style, size_t count, sf_buf *out)
{
    if (cut_short(e, count - 1) && count > MOST_ROWS)
        sf_remark(out, style, "and %zu more: --all lists them", count - MOST_ROWS);
}

/* Similar tensors share a row. */
typedef struct row {
    const char *name, *made, *phase, *layout, *pin;
    const sf_type *type;
    int64_t count;
    double bytes, held; /* of one, by its layout; of all, at the peak */
} row;

typedef struct rows {
    row *at;
    size_t count, capacity;
} rows;

static row row_of_value(sf_explanation *e, const sf_names *names, sf_value value)
{
    const sf_layout *layout = sf_plan_layout(e->plan, e->graph, value);
    int pin = e->plan->pinned[value];
    return (row){.name = name_of_value(e, names, value),
                 .made = maker_text(e, value),
                 .phase = phase_of(e, value),
                 .layout = sf_explain_layout(e, value, layout),
                 .pin = pin >= 0 ? e->plan->pins[pin].text : "",
                 .type = sf_type_of(e->graph, value),
                 .count = 1,
                 .bytes = sf_shard_bytes(sf_type_of(e->graph, value), layout, &e->plan->mesh)};
}

static bool is_same_row(const row *a, const row *b)
{
    return a->type == b->type && a->pin == b->pin && strcmp(a->name, b->name) == 0 &&
           strcmp(a->made, b->made) == 0 && strcmp(a->phase, b->phase) == 0 &&
           strcmp(a->layout, b->layout) == 0;
}

static rows find_rows(sf_explanation *e, const sf_names *names, const matches *m,
                      const double *held)
{
    rows all = {0};
    for (size_t i = 0; i < m->count; i++) {
        row new_row = row_of_value(e, names, m->values[i]);
        size_t at = 0;
        while (at < all.count && !is_same_row(&all.at[at], &new_row))
            at++;
        if (at == all.count)
            SF_PUSH(&e->arena, all.at, all.count, all.capacity, new_row);
        else
            all.at[at].count++;
        all.at[at].held += held[m->values[i]];
    }
    return all;
}

static void put_layouts(sf_explanation *e, const rows *all, sf_buf *out)
{
    static const sf_column columns[] = {
        {"name", false, SF_SHRINKS}, {"made by", false, SF_STAYS}, {"phase", false, SF_STAYS},
        {"count", true, SF_STAYS},   {"type", false, SF_STAYS},    {"layout", false, SF_STAYS},
        {"a rank", true, SF_STAYS},  {"at peak", true, SF_STAYS},  {"pin", false, SF_STAYS}};
    sf_style style = {.width = e->options.width, .colour = e->options.colour};
    sf_heading(out, style, "layouts, by axis of the mesh");
    sf_table table = sf_table_new(&e->arena, 9, columns);
    for (size_t i = 0; i < all->count && !cut_short(e, i); i++) {
        const row *r = &all->at[i];
        char text[SF_TYPE_TEXT];
        sf_table_add(&table, "%s", r->name);
        sf_table_add(&table, "%s", r->made);
        sf_table_add(&table, "%s", r->phase);
        sf_table_add(&table, "%s", sf_text_count(r->count).at);
        sf_table_add(&table, "%s", sf_type_text(r->type, text));
        sf_table_add(&table, "%s", r->layout);
        sf_table_add(&table, "%s", sf_text_bytes(r->bytes).at);
        sf_table_add(&table, "%s", sf_text_bytes(r->held).at);
        sf_table_add(&table, "%s", r->pin);
    }
    sf_table_print(&table, style, out);
    put_rest(e, style, all->count, out);
}

/* Where the peak is, and how much of it is of these. */
static void put_peak(sf_explanation *e, const rows *all, sf_buf *out)
{
    sf_style style = {.width = e->options.width, .colour = e->options.colour};
    double held = 0;
    for (size_t i = 0; i < all->count; i++)
        held += all->at[i].held;
    sf_remark(out, style, "at its peak a rank holds %s, of these %s: %s",
              sf_text_bytes((double)e->simulated->price.memory).at, sf_text_bytes(held).at,
              sf_explain_peak(e));
}

/* Tensors inside of a loop have no layout in the step. */
static const char *layout_of_reshard(sf_explanation *e, const sf_simulated_reshard *reshard,
                                     const sf_layout *layout)
{
    return reshard->inner ? "inside" : sf_explain_layout(e, reshard->value, layout);
}

static void put_reshards(sf_explanation *e, const sf_names *names, const matches *m, sf_buf *out)
{
    static const sf_column columns[] = {
        {"name", false, SF_SHRINKS}, {"collective", false, SF_STAYS}, {"axes", false, SF_STAYS},
        {"phase", false, SF_STAYS},  {"from", false, SF_STAYS},       {"to", false, SF_STAYS},
        {"bytes", true, SF_STAYS},   {"time", true, SF_STAYS},        {"exposed", true, SF_STAYS}};
    sf_style style = {.width = e->options.width, .colour = e->options.colour};
    size_t count = 0;
    sf_heading(out, style, "collectives");
    sf_table table = sf_table_new(&e->arena, 9, columns);
    for (size_t i = 0; i < e->simulated->nreshards; i++) {
        const sf_simulated_reshard *reshard = &e->simulated->reshards[i];
        char axes[SF_AXES_TEXT];
        if (reshard->value == SF_NONE || !m->is_match[reshard->value] || cut_short(e, count++))
            continue;
        sf_table_add(&table, "%s", name_of_value(e, names, reshard->value));
        sf_table_add(&table, "%s", sf_reshard_kind_name(reshard->kind));
        sf_table_add(&table, "%s", sf_axes_text(&e->plan->mesh, reshard->axes, axes));
        sf_table_add(&table, "%s", sf_phase_name(reshard->phase));
        sf_table_add(&table, "%s", layout_of_reshard(e, reshard, &reshard->before));
        sf_table_add(&table, "%s", layout_of_reshard(e, reshard, &reshard->after));
        sf_table_add(&table, "%s", sf_text_bytes(reshard->bytes).at);
        sf_table_add(&table, "%s", sf_text_seconds(reshard->seconds).at);
        sf_table_add(&table, "%s", sf_text_seconds(reshard->exposed).at);
    }
    if (count == 0)
        sf_remark(out, style, "none");
    else
        sf_table_print(&table, style, out);
    if (count > 0)
        put_rest(e, style, count, out);
}

typedef struct others {
    size_t count;
    sf_other_layout *at;
} others;

static void put_others(sf_explanation *e, const sf_names *names, const others *all, sf_buf *out)
{
    static const sf_column columns[] = {{"name", false, SF_SHRINKS}, {"made by", false, SF_STAYS},
                                        {"phase", false, SF_STAYS},  {"layout", false, SF_STAYS},
                                        {"step", true, SF_STAYS},    {"slower by", true, SF_STAYS},
                                        {"memory", true, SF_STAYS}};
    sf_style style = {.width = e->options.width, .colour = e->options.colour};
    if (all->count == 0)
        return;
    sf_heading(out, style, "other layouts of it and of its like, the rest chosen again");
    sf_table table = sf_table_new(&e->arena, 7, columns);
    for (size_t i = 0; i < all->count; i++) {
        const sf_other_layout *o = &all->at[i];
        sf_table_add(&table, "%s", name_of_value(e, names, o->value));
        sf_table_add(&table, "%s", maker_text(e, o->value));
        sf_table_add(&table, "%s", phase_of(e, o->value));
        sf_table_add(&table, "%s", o->layout);
        sf_table_add(&table, "%s", sf_text_seconds(o->seconds).at);
        sf_table_add(&table, "%+.2f%%", 100 * (o->seconds / e->simulated->price.seconds - 1));
        sf_table_add(&table, "%s", sf_text_bytes((double)o->memory).at);
    }
    sf_table_print(&table, style, out);
}

typedef struct gathers {
    size_t count;
    sf_explained_gather *at;
} gathers;

static sf_status find_gathers(sf_explanation *e, const matches *m, gathers *out)
{
    const sf_block *top = e->graph->top;
    bool *is_wanted = SF_ARRAY(&e->arena, top->narguments, bool);
    for (uint32_t i = 0; i < top->narguments; i++)
        is_wanted[i] = m->is_match[top->arguments[i]];
    return sf_explain_gathers(e, is_wanted, &out->count, &out->at);
}

static const char *gathered_name(sf_explanation *e, const sf_names *names,
                                 const sf_explained_gather *g)
{
    return name_of_value(e, names, e->graph->top->arguments[g->argument]);
}

static void put_gathers(sf_explanation *e, const sf_names *names, const gathers *all, sf_buf *out)
{
    static const sf_column columns[] = {{"name", false, SF_SHRINKS},   {"at", true, SF_STAYS},
                                        {"for", true, SF_STAYS},       {"in", false, SF_SHRINKS},
                                        {"time", true, SF_STAYS},      {"exposed", true, SF_STAYS},
                                        {"why there", false, SF_STAYS}};
    sf_style style = {.width = e->options.width, .colour = e->options.colour};
    if (all->count == 0)
        return;
    sf_heading(out, style,
               "gathers, after the plan's passes: instructions, and those that use them");
    sf_table table = sf_table_new(&e->arena, 7, columns);
    for (size_t i = 0; i < all->count && !cut_short(e, i); i++) {
        const sf_explained_gather *g = &all->at[i];
        sf_table_add(&table, "%s", gathered_name(e, names, g));
        sf_table_add(&table, "%s%u", g->in_loop ? "loop " : "", g->inst);
        if (g->reader == SF_NONE)
            sf_table_add(&table, "-");
        else
            sf_table_add(&table, "%u", g->reader);
        sf_table_add(&table, "%s", g->read_by);
        sf_table_add(&table, "%s", sf_text_seconds(g->seconds).at);
        sf_table_add(&table, "%s", sf_text_seconds(g->exposed).at);
        sf_table_add(&table, "%s", g->why);
    }
    sf_table_print(&table, style, out);
    put_rest(e, style, all->count, out);
}

static void put_json_gathers(sf_explanation *e, const sf_names *names, const gathers *all,
                             sf_json_writer *json)
{
    if (all->count == 0)
        return;
    sf_json_key(json, "gathers");
    sf_json_begin_array(json);
    for (size_t i = 0; i < all->count; i++) {
        const sf_explained_gather *g = &all->at[i];
        sf_json_begin_object(json);
        sf_json_add_string(json, "name", gathered_name(e, names, g));
        sf_json_add_bool(json, "in_loop", g->in_loop);
        sf_json_add_int(json, "at", g->inst);
        if (g->reader != SF_NONE)
            sf_json_add_int(json, "for", g->reader);
        sf_json_add_string(json, "scope", g->read_by);
        sf_json_add_double(json, "seconds", g->seconds);
        sf_json_add_double(json, "exposed", g->exposed);
        sf_json_add_string(json, "why", g->why);
        sf_json_end_object(json);
    }
    sf_json_end_array(json);
}

static void put_made_for(const sf_explanation *e, sf_buf *out)
{
    sf_style style = {.width = e->options.width, .colour = e->options.colour};
    if (sf_explain_made_for(e))
        sf_remark(out, style, "on %s; the plan was made for another cluster, %s", e->cluster->name,
                  sf_explain_made_for(e));
}

/* JSON */

static void put_json_layouts(const rows *all, sf_json_writer *json)
{
    sf_json_key(json, "tensors");
    sf_json_begin_array(json);
    for (size_t i = 0; i < all->count; i++) {
        const row *r = &all->at[i];
        char text[SF_TYPE_TEXT];
        sf_json_begin_object(json);
        sf_json_add_string(json, "name", r->name);
        sf_json_add_string(json, "made_by", r->made);
        sf_json_add_string(json, "phase", r->phase);
        sf_json_add_int(json, "count", r->count);
        sf_json_add_string(json, "type", sf_type_text(r->type, text));
        sf_json_add_string(json, "layout", r->layout);
        sf_json_add_double(json, "bytes", r->bytes);
        sf_json_add_double(json, "at_peak", r->held);
        sf_json_add_string(json, "pin", r->pin);
        sf_json_end_object(json);
    }
    sf_json_end_array(json);
}

static void put_json_reshards(sf_explanation *e, const sf_names *names, const matches *m,
                              sf_json_writer *json)
{
    sf_json_key(json, "collectives");
    sf_json_begin_array(json);
    for (size_t i = 0; i < e->simulated->nreshards; i++) {
        const sf_simulated_reshard *reshard = &e->simulated->reshards[i];
        char axes[SF_AXES_TEXT];
        if (reshard->value == SF_NONE || !m->is_match[reshard->value])
            continue;
        sf_json_begin_object(json);
        sf_json_add_string(json, "name", name_of_value(e, names, reshard->value));
        sf_json_add_string(json, "kind", sf_reshard_kind_name(reshard->kind));
        sf_json_add_string(json, "axes", sf_axes_text(&e->plan->mesh, reshard->axes, axes));
        sf_json_add_string(json, "phase", sf_phase_name(reshard->phase));
        sf_json_add_string(json, "from", layout_of_reshard(e, reshard, &reshard->before));
        sf_json_add_string(json, "to", layout_of_reshard(e, reshard, &reshard->after));
        sf_json_add_double(json, "bytes", reshard->bytes);
        sf_json_add_double(json, "seconds", reshard->seconds);
        sf_json_add_double(json, "exposed", reshard->exposed);
        sf_json_end_object(json);
    }
    sf_json_end_array(json);
}

static void put_json_others(sf_explanation *e, const sf_names *names, const others *all,
                            sf_json_writer *json)
{
    sf_json_key(json, "other_layouts");
    sf_json_begin_array(json);
    for (size_t i = 0; i < all->count; i++) {
        const sf_other_layout *o = &all->at[i];
        sf_json_begin_object(json);
        sf_json_add_string(json, "name", name_of_value(e, names, o->value));
        sf_json_add_string(json, "made_by", maker_text(e, o->value));
        sf_json_add_string(json, "phase", phase_of(e, o->value));
        sf_json_add_string(json, "layout", o->layout);
        sf_json_add_double(json, "seconds", o->seconds);
        sf_json_add_int(json, "memory", o->memory);
        sf_json_end_object(json);
    }
    sf_json_end_array(json);
}

sf_status sf_explain_what(sf_explanation *e, const char *what, sf_buf *out)
{
    sf_names names = sf_names_of(e->graph, &e->arena);
    matches m = find_matches(e, &names, what);
    others other;
    double *held;
    if (m.count == 0) {
        const char *nearest = sf_names_nearest(&names, what, &e->arena);
        sf_status status = sf_fail(e->diag, SF_EUSAGE, SF_NOWHERE,
                                   "\"%s\" matches no argument, gradient or scope", what);
        return nearest ? sf_hint(e->diag, "did you mean \"%s\"?", nearest) : status;
    }
    SF_TRY(sf_find_held(e->graph, e->plan, e->target, &e->arena, e->diag, &held));
    SF_TRY(sf_explain_others(e, m.count, m.values, &other.count, &other.at));
    gathers gathered = {0};
    SF_TRY(find_gathers(e, &m, &gathered));
    rows all = find_rows(e, &names, &m, held);
    if (!e->options.json) {
        put_layouts(e, &all, out);
        put_peak(e, &all, out);
        put_reshards(e, &names, &m, out);
        put_gathers(e, &names, &gathered, out);
        put_others(e, &names, &other, out);
        put_made_for(e, out);
        return SF_OK;
    }
    sf_json_writer json = {.buf = out, .indent = true};
    sf_json_begin_object(&json);
    sf_json_add_double(&json, "seconds", e->simulated->price.seconds);
    if (sf_explain_made_for(e))
        sf_json_add_string(&json, "made_for", sf_explain_made_for(e));
    put_json_layouts(&all, &json);
    put_json_reshards(e, &names, &m, &json);
    put_json_gathers(e, &names, &gathered, &json);
    put_json_others(e, &names, &other, &json);
    sf_json_end_object(&json);
    sf_buf_putc(out, '\n');
    return SF_OK;
}
