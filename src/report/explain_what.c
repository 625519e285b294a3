/* What a plan does with some tensors: how they stand, where they are moved, what else could be done. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "plan/axis.h"
#include "report/explain.h"

enum { MOST_ROWS = 40, MOST_ARGUMENTS = 4 };

#define SOLVER_WORK INT64_C(100000000)

typedef struct matches {
    size_t count, capacity;
    sf_value *values;
    bool *is_match; /* by value */
} matches;

static matches find_matches(sf_explanation *e, const sf_names *names, const char *what)
{
    matches m = {.is_match = SF_ARRAY(&e->arena, e->graph->nvalues, bool)};
    size_t count;
    const sf_named **found = sf_names_match(names, what, &e->arena, &count);
    for (size_t i = 0; i < count; i++)
        for (sf_value v = found[i]->first; v != SF_NONE; v = names->same[v])
            m.is_match[v] = true;
    for (sf_value v = 0; v < e->graph->nvalues; v++) {
        /* Values inside of loops have no layout of their own. */
        uint32_t node = e->graph->values[v].node;
        if (m.is_match[v] && (node == SF_NONE || e->plan->nodes[node]))
            SF_PUSH(&e->arena, m.values, m.count, m.capacity, v);
    }
    return m;
}

static const char *layout_text(sf_explanation *e, sf_value value, const sf_layout *layout)
{
    const sf_type *type = sf_type_of(e->graph, value);
    sf_buf text = {0};
    sf_layout_print(layout, &e->plan->mesh, type->rank, type->dims, &text);
    const char *kept = sf_arena_string(&e->arena, text.text, text.length);
    sf_buf_free(&text);
    return kept;
}

static const char *kind_of(const sf_explanation *e, sf_value value)
{
    const sf_node *node = sf_maker(e->graph, value);
    return node ? node->def->name
                : sf_role_name(e->graph->arguments[e->graph->values[value].index].role);
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

static void put_layouts(sf_explanation *e, const sf_names *names, const matches *m, sf_buf *out)
{
    static const sf_column columns[] = {{"name", false, SF_SHRINKS}, {"made by", false, SF_STAYS},
                                        {"type", false, SF_STAYS},   {"layout", false, SF_STAYS},
                                        {"a rank", true, SF_STAYS},  {"pin", false, SF_STAYS}};
    sf_style style = {.width = e->options.width, .colour = e->options.colour};
    sf_heading(out, style, "layouts, by axis of the mesh");
    sf_table table = sf_table_new(&e->arena, 6, columns);
    for (size_t i = 0; i < m->count && !cut_short(e, i); i++) {
        sf_value v = m->values[i];
        const sf_layout *layout = sf_plan_layout(e->plan, e->graph, v);
        const sf_type *type = sf_type_of(e->graph, v);
        int pin = e->plan->pinned[v];
        char text[SF_TYPE_TEXT];
        sf_table_add(&table, "%s", names->values[v]);
        sf_table_add(&table, "%s", kind_of(e, v));
        sf_table_add(&table, "%s", sf_type_text(type, text));
        sf_table_add(&table, "%s", layout_text(e, v, layout));
        sf_table_add(&table, "%s", sf_text_bytes(sf_piece_bytes(type, layout, &e->plan->mesh)).at);
        sf_table_add(&table, "%s", pin >= 0 ? e->plan->pins[pin].text : "");
    }
    sf_table_print(&table, style, out);
    put_rest(e, style, m->count, out);
}

static void put_moves(sf_explanation *e, const sf_names *names, const matches *m, sf_buf *out)
{
    static const sf_column columns[] = {
        {"name", false, SF_SHRINKS}, {"collective", false, SF_STAYS}, {"axes", false, SF_STAYS},
        {"phase", false, SF_STAYS},  {"from", false, SF_STAYS},       {"to", false, SF_STAYS},
        {"bytes", true, SF_STAYS},   {"time", true, SF_STAYS},        {"exposed", true, SF_STAYS}};
    sf_style style = {.width = e->options.width, .colour = e->options.colour};
    size_t count = 0;
    sf_heading(out, style, "collectives");
    sf_table table = sf_table_new(&e->arena, 9, columns);
    for (size_t i = 0; i < e->nmoves; i++) {
        const sf_priced_move *move = &e->moves[i];
        char axes[SF_AXES_TEXT];
        if (!m->is_match[move->value] || cut_short(e, count++))
            continue;
        sf_table_add(&table, "%s", names->values[move->value]);
        sf_table_add(&table, "%s", sf_move_kind_name(move->kind));
        sf_table_add(&table, "%s", sf_axes_text(&e->plan->mesh, move->axes, axes));
        sf_table_add(&table, "%s", sf_phase_name(move->phase));
        sf_table_add(&table, "%s", layout_text(e, move->value, &move->before));
        sf_table_add(&table, "%s", layout_text(e, move->value, &move->after));
        sf_table_add(&table, "%s", sf_text_bytes(move->bytes).at);
        sf_table_add(&table, "%s", sf_text_seconds(move->seconds).at);
        sf_table_add(&table, "%s", sf_text_seconds(move->exposed).at);
    }
    if (count == 0)
        sf_remark(out, style, "none");
    else
        sf_table_print(&table, style, out);
    if (count > 0)
        put_rest(e, style, count, out);
}

/* Alternatives: the argument, and those of its class, pinned to another share along one axis; the rest is
 * solved again along that axis. */
typedef struct trial {
    sf_explanation *e;
    const sf_classes *classes;
    const sf_axis_space *space;
    uint32_t argument;
    int axis;
    sf_table *table;
    const sf_names *names;
    int rows;
} trial;

static sf_status try_share(const trial *t, sf_share share, sf_plan *plan, sf_price *price,
                           bool *feasible)
{
    sf_explanation *e = t->e;
    const sf_block *top = e->graph->top;
    sf_mark mark = sf_arena_mark(&e->arena);
    bool *has = SF_ARRAY(&e->arena, e->graph->nvalues, bool);
    sf_share *shares = SF_ARRAY(&e->arena, e->graph->nvalues, sf_share);
    for (uint32_t i = 0; i < top->narguments; i++)
        if (t->classes->arguments[i] == t->classes->arguments[t->argument]) {
            has[top->arguments[i]] = true;
            shares[top->arguments[i]] = share;
        }
    sf_axis_options options = {.axis = t->axis,
                               .exposed = 0.3,
                               .memory = e->plan->predicted ? e->plan->predicted->limit : 0,
                               .folded = true,
                               .work = SOLVER_WORK,
                               .has_pin = has,
                               .pins = shares};
    sf_axis_result result;
    sf_status status =
        sf_axis_solve(e->efforts, t->space, t->classes, e->costs, &options, plan, e->diag, &result);
    sf_arena_reset(&e->arena, mark);
    *feasible = status == SF_OK && result.feasible;
    if (status == SF_OK)
        status = sf_price_plan(e->efforts, plan, e->costs, NULL, NULL, e->diag, price);
    return status;
}

static sf_status add_trial(trial *t, sf_share share)
{
    sf_explanation *e = t->e;
    sf_value value = e->graph->top->arguments[t->argument];
    sf_plan *plan = sf_plan_copy(e->plan, e->graph);
    sf_price price;
    bool feasible;
    sf_status status = try_share(t, share, plan, &price, &feasible);
    if (status == SF_OK && feasible) {
        sf_table_add(t->table, "%s", t->names->values[value]);
        sf_table_add(t->table, "%s", layout_text(e, value, &plan->arguments[t->argument]));
        sf_table_add(t->table, "%s", sf_text_seconds(price.seconds).at);
        sf_table_add(t->table, "%+.2f%%", 100 * (price.seconds / e->price.seconds - 1));
        sf_table_add(t->table, "%s", sf_text_bytes((double)price.memory).at);
        t->rows++;
    }
    sf_plan_free(plan);
    return status;
}

static sf_status try_argument(trial *t)
{
    sf_explanation *e = t->e;
    const sf_mesh *mesh = &e->plan->mesh;
    const sf_layout *layout = &e->plan->arguments[t->argument];
    for (t->axis = 0; t->axis < mesh->naxes; t->axis++) {
        t->space = sf_axis_space_new(e->graph, mesh->axes[t->axis].size, &e->arena);
        const sf_share_space *shares = &t->space->arguments[t->argument];
        for (uint32_t s = 0; s < shares->nshares; s++)
            if (!sf_share_equal(shares->shares[s], layout->axes[t->axis]))
                SF_TRY(add_trial(t, shares->shares[s]));
    }
    return SF_OK;
}

static sf_status put_trials(sf_explanation *e, const sf_names *names, const matches *m, sf_buf *out)
{
    static const sf_column columns[] = {{"name", false, SF_SHRINKS},
                                        {"layout", false, SF_STAYS},
                                        {"step", true, SF_STAYS},
                                        {"slower by", true, SF_STAYS},
                                        {"memory", true, SF_STAYS}};
    sf_style style = {.width = e->options.width, .colour = e->options.colour};
    sf_classes classes = sf_classes_of(e->graph, &e->arena);
    sf_table table = sf_table_new(&e->arena, 5, columns);
    trial t = {.e = e, .classes = &classes, .table = &table, .names = names};
    int tried = 0;
    for (size_t i = 0; i < m->count && tried < MOST_ARGUMENTS; i++) {
        const sf_value_info *info = &e->graph->values[m->values[i]];
        if (info->node != SF_NONE)
            continue;
        t.argument = info->index;
        tried++;
        SF_TRY(try_argument(&t));
    }
    if (t.rows == 0)
        return SF_OK;
    sf_heading(out, style, "other layouts of it and of its like, the rest chosen again");
    sf_table_print(&table, style, out);
    return SF_OK;
}

sf_status sf_explain_what(sf_explanation *e, const char *what, sf_buf *out)
{
    sf_names names = sf_names_of(e->graph, &e->arena);
    matches m = find_matches(e, &names, what);
    if (m.count == 0)
        return sf_fail(e->diag, SF_EUSAGE, SF_NOWHERE,
                       "\"%s\" matches no argument, gradient or scope", what);
    put_layouts(e, &names, &m, out);
    put_moves(e, &names, &m, out);
    return put_trials(e, &names, &m, out);
}
