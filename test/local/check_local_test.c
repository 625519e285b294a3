/* The checker lets every good plan pass and no broken one: the local graphs of good plans are broken on
 * purpose, at every collective and every layout, and each mutant must be refused with a message that names
 * the tensor and its pin. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "ir/name.h"
#include "local/check_local.h"
#include "op/op.h"
#include "op/slots.h"
#include "sheaf/sheaf.h"
#include "support/plans.h"

enum { MOST_RANKS = 8 };

/* A step, its plan and the local graphs of all ranks. */
typedef struct split {
    const char *name;
    sf_graph *graph;
    sf_plan *plan;
    int ranks;
    sf_local *locals[MOST_RANKS];
    int mutants;
} split;

static void open_split(split *s, const char *step, const char *recipe, int ranks, const char *mesh,
                       const char *const *pins)
{
    *s = (split){.name = step, .graph = test_step(step)};
    s->plan = test_plan(s->graph, recipe, ranks, mesh, pins);
    s->ranks = sf_plan_ranks(s->plan);
    assert_true(s->ranks <= MOST_RANKS);
    for (int r = 0; r < s->ranks; r++)
        s->locals[r] = test_local(s->graph, s->plan, r);
}

static void close_split(split *s)
{
    for (int r = 0; r < s->ranks; r++)
        sf_local_free(s->locals[r]);
    sf_plan_free(s->plan);
    sf_graph_free(s->graph);
}

/* Good plans */

static void expect_good(const split *s)
{
    sf_diag *diag = sf_diag_new();
    for (int r = 0; r < s->ranks; r++)
        if (sf_check_local(s->locals[r], diag) != SF_OK ||
            sf_check_match(s->locals[0], s->locals[r], diag) != SF_OK)
            fail_msg("%s: %s", s->name, sf_diag_text(diag, 0));
    sf_diag_free(diag);
}

static void test_good_plans(void **state)
{
    (void)state;
    static const int ranks[] = {2, 4};
    int plans = 0;
    for (int i = 0; test_steps[i]; i++) {
        sf_graph *graph = test_step(test_steps[i]);
        sf_diag *diag = sf_diag_new();
        for (int k = 0; sf_recipe_name(k); k++)
            for (size_t n = 0; n < sizeof ranks / sizeof *ranks; n++) {
                test_refusal refusal;
                sf_plan *plan = test_pin(graph, sf_recipe_name(k), ranks[n], NULL, NULL, &refusal);
                if (!plan) {
                    assert_says(refusal, SF_EMISMATCH, "does not apply: ");
                    continue;
                }
                if (sf_plan_check(plan, graph, 0, diag) != SF_OK)
                    fail_msg("%s, %s: %s", test_steps[i], sf_recipe_name(k), sf_diag_text(diag, 0));
                sf_plan_free(plan);
                plans++;
            }
        sf_diag_free(diag);
        sf_graph_free(graph);
    }
    print_message("%d good plans\n", plans);
    assert_true(plans > 130);
}

/* Mutants of collectives */

/* The change of a mutation, to undo it. */
typedef struct undo {
    sf_value **places;
    size_t count, capacity;
    sf_value was;
    const sf_attr *const *attrs;
    const sf_opdef *def;
    const sf_type *type;
    sf_arena arena;
} undo;

static void replace_in(sf_graph *graph, sf_value from, sf_value to, undo *u)
{
    for (size_t i = 0; i < graph->nnodes; i++)
        for (uint32_t o = 0; o < graph->nodes[i]->noperands; o++)
            if (graph->nodes[i]->operands[o] == from)
                SF_PUSH(&u->arena, u->places, u->count, u->capacity, &graph->nodes[i]->operands[o]);
    for (uint32_t i = 0; i < graph->top->nresults; i++)
        if (graph->top->results[i] == from)
            SF_PUSH(&u->arena, u->places, u->count, u->capacity, &graph->top->results[i]);
    u->was = from;
    for (size_t i = 0; i < u->count; i++)
        *u->places[i] = to;
}

static void set_attr(sf_node *node, int slot, const sf_attr *attr, undo *u)
{
    const sf_attr **attrs =
        sf_arena_copy(&u->arena, node->attrs, (size_t)node->def->nattrs * sizeof *attrs);
    attrs[slot] = attr;
    node->attrs = attrs;
}

static void swap_nodes(sf_graph *graph, const sf_node *a, const sf_node *b)
{
    uint32_t at_a = 0, at_b = 0;
    for (uint32_t i = 0; i < graph->top->nnodes; i++) {
        at_a = graph->top->nodes[i] == a->id ? i : at_a;
        at_b = graph->top->nodes[i] == b->id ? i : at_b;
    }
    graph->top->nodes[at_a] = b->id;
    graph->top->nodes[at_b] = a->id;
}

typedef enum mutation {
    FORGET,       /* readers of the result use the operand */
    OTHER_AXES,   /* another set of axes */
    OTHER_GROUP,  /* another set of axes, with the size of its groups */
    OTHER_SIZE,   /* another size of the group */
    OTHER_MONOID, /* another reduction */
    OTHER_KIND,   /* all-to-all instead of permute, and back */
    OTHER_ORDER,  /* after the next collective, on one rank */
    OTHER_TYPE,   /* another number of elements */
    OTHER_PART,   /* the operand of the next part of a bucket, and the other way round */
    MUTATIONS
} mutation;
static const char *const mutation_names[] = {
    "a forgotten collective", "another set of axes", "another group",
    "another size",           "another reduction",   "another kind",
    "another order",          "another type",        "another part"};
static int made[MUTATIONS];

static sf_axes next_axes(const split *s, const sf_node *node)
{
    sf_axes axes = (sf_axes)node->attrs[SF_COLLECTIVE_AXES]->integer;
    return axes % ((1u << (s->plan->mesh.naxes + 1)) - 1) + 1;
}

static bool set_group(const split *s, sf_node *node, sf_graph *graph, bool with_size, undo *u)
{
    sf_axes axes = next_axes(s, node);
    int size = sf_group_size(&s->plan->mesh, axes & ((1u << s->plan->mesh.naxes) - 1));
    set_attr(node, SF_COLLECTIVE_AXES, sf_attr_int(graph->pool, axes), u);
    if (with_size)
        set_attr(node, SF_COLLECTIVE_SIZE, sf_attr_int(graph->pool, size), u);
    return true;
}

static bool set_kind(sf_node *node)
{
    if (!sf_is(node, SF_OP_ALL_TO_ALL) && !sf_is(node, SF_OP_PERMUTE))
        return false;
    node->def = sf_opdef_get(sf_is(node, SF_OP_PERMUTE) ? SF_OP_ALL_TO_ALL : SF_OP_PERMUTE);
    return true;
}

static const sf_type *longer(sf_graph *graph, const sf_type *type)
{
    int64_t dims[SF_MAX_RANK] = {2};
    if (type->rank == 0)
        return sf_type_get(graph->pool, type->dtype, 1, dims);
    memcpy(dims, type->dims, (size_t)type->rank * sizeof *dims);
    dims[0] *= 2;
    return sf_type_get(graph->pool, type->dtype, type->rank, dims);
}

static void swap_operands(sf_node *node, uint32_t part)
{
    sf_value operand = node->operands[part];
    node->operands[part] = node->operands[part + 1];
    node->operands[part + 1] = operand;
}

/* Only these differ from part to part of a bucket. */
static bool is_of_part(mutation m)
{
    return m == FORGET || m == OTHER_TYPE || m == OTHER_PART;
}

/* False where it makes no sense. */
static bool mutate(const split *s, sf_local *local, int at, uint32_t part, mutation m, undo *u)
{
    sf_node *node = test_collective(local, at), *next = test_collective(local, at + 1);
    sf_graph *graph = local->graph;
    bool reduces = sf_is(node, SF_OP_ALL_REDUCE) || sf_is(node, SF_OP_REDUCE_SCATTER);
    *u = (undo){
        .attrs = node->attrs, .def = node->def, .type = sf_type_of(graph, node->result + part)};
    if (part > 0 && !is_of_part(m))
        return false;
    switch (m) {
    case FORGET:
        replace_in(graph, node->result + part, node->operands[part], u);
        return true;
    case OTHER_AXES:
    case OTHER_GROUP:
        return set_group(s, node, graph, m == OTHER_GROUP, u);
    case OTHER_SIZE:
        set_attr(node, SF_COLLECTIVE_SIZE,
                 sf_attr_int(graph->pool, 2 * node->attrs[SF_COLLECTIVE_SIZE]->integer), u);
        return true;
    case OTHER_MONOID:
        if (reduces)
            set_attr(node, SF_COLLECTIVE_BODY, sf_attr_int(graph->pool, SF_MONOID_MIN), u);
        return reduces;
    case OTHER_KIND:
        return set_kind(node);
    case OTHER_ORDER:
        if (next)
            swap_nodes(graph, node, next);
        return next != NULL;
    case OTHER_TYPE:
        graph->values[node->result + part].type = longer(graph, u->type);
        return true;
    case OTHER_PART:
        if (part + 1 < node->noperands)
            swap_operands(node, part);
        return part + 1 < node->noperands;
    case MUTATIONS:
        break;
    }
    return false;
}

static void take_back(sf_local *local, sf_node *node, uint32_t part, sf_node *next, mutation m,
                      undo *u)
{
    for (size_t i = 0; i < u->count; i++)
        *u->places[i] = u->was;
    node->attrs = u->attrs;
    node->def = u->def;
    local->graph->values[node->result + part].type = u->type;
    if (m == OTHER_PART && part + 1 < node->noperands)
        swap_operands(node, part);
    if (m == OTHER_ORDER && part == 0 && next)
        swap_nodes(local->graph, node, next);
    sf_arena_free(&u->arena);
}

/* The value of the step that a part of a collective moves. */
static sf_value moved_value(const sf_local *local, const sf_node *node, uint32_t part)
{
    sf_value value = node->operands[part];
    while (local->pieces[value].whole == SF_NONE)
        value = sf_maker(local->graph, value)->operands[0];
    return local->pieces[value].whole;
}

/* Whether the message names the tensor, and the pin that decided it. */
static bool is_about(const split *s, const char *text, sf_value value)
{
    int pin = s->plan->pinned[value];
    sf_buf name = {0};
    bool found = strstr(text, sf_value_name(s->graph, value, &name)) != NULL;
    sf_buf_free(&name);
    return found && (pin < 0 || strstr(text, s->plan->pins[pin].text));
}

static bool is_about_any(const split *s, const sf_local *local, const sf_node *node,
                         const char *text)
{
    for (uint32_t part = 0; part < node->noperands; part++)
        if (is_about(s, text, moved_value(local, node, part)))
            return true;
    return false;
}

static void try_mutant(split *s, int rank, int at, uint32_t part, mutation m)
{
    sf_local *local = s->locals[rank];
    sf_node *node = test_collective(local, at), *next = test_collective(local, at + 1);
    sf_value value = moved_value(local, node, part);
    sf_diag *diag = sf_diag_new();
    undo u;
    if (mutate(s, local, at, part, m, &u)) {
        sf_status status = sf_check_local(local, diag);
        if (status == SF_OK && m == OTHER_ORDER)
            status = sf_check_match(s->locals[rank == 0], local, diag);
        if (status == SF_OK)
            fail_msg("%s: %s of %s, collective %d, passed", s->name, mutation_names[m],
                     node->attrs[SF_COLLECTIVE_WHAT]->text, at);
        /* Where two are in one another's place the message is about either. */
        const char *text = sf_diag_text(diag, 0);
        bool good = is_about(s, text, value);
        if (m == OTHER_ORDER || m == OTHER_PART)
            good = good || is_about_any(s, local, node, text) ||
                   (next && is_about_any(s, local, next, text));
        if (!good)
            fail_msg("%s, %s: the message does not name the tensor and its pin: %s", s->name,
                     mutation_names[m], text);
        s->mutants++;
        made[m]++;
    }
    take_back(local, node, part, next, m, &u);
    sf_diag_free(diag);
}

static void break_collectives(split *s)
{
    int rank = s->ranks - 1;
    const sf_node *node;
    for (int at = 0; (node = test_collective(s->locals[rank], at)) != NULL; at++)
        for (uint32_t part = 0; part < node->noperands; part++)
            for (int m = 0; m < MUTATIONS; m++)
                try_mutant(s, rank, at, part, (mutation)m);
}

/* Mutants of nodes beside the collective in a reshard: shapes and types stay, elements do not. */

static bool swap_dims(sf_graph *graph, sf_node *node, undo *u)
{
    const sf_attr *order = node->attrs[SF_TRANSPOSE_PERMUTATION];
    const sf_type *type = sf_type_of(graph, node->result);
    int64_t changed[SF_MAX_RANK];
    for (int a = 0; a < type->rank; a++)
        for (int b = a + 1; b < type->rank; b++) {
            if (type->dims[a] != type->dims[b] || type->dims[a] == 1)
                continue;
            memcpy(changed, order->ints, (size_t)type->rank * sizeof *changed);
            changed[a] = order->ints[b];
            changed[b] = order->ints[a];
            set_attr(node, SF_TRANSPOSE_PERMUTATION, sf_attr_ints(graph->pool, type->rank, changed),
                     u);
            return true;
        }
    return false;
}

static bool shift_slice(sf_graph *graph, sf_node *node, undo *u)
{
    const sf_type *whole = sf_type_of(graph, node->operands[0]);
    const sf_type *type = sf_type_of(graph, node->result);
    int64_t starts[SF_MAX_RANK], limits[SF_MAX_RANK];
    bool changed = false;
    for (int d = 0; d < type->rank; d++) {
        bool cut = !changed && type->dims[d] < whole->dims[d];
        int64_t was = node->attrs[SF_SLICE_STARTS]->ints[d];
        starts[d] = cut ? (was + type->dims[d]) % whole->dims[d] : was;
        limits[d] = starts[d] + type->dims[d];
        changed = changed || cut;
    }
    set_attr(node, SF_SLICE_STARTS, sf_attr_ints(graph->pool, type->rank, starts), u);
    const sf_attr **attrs = (const sf_attr **)node->attrs;
    attrs[SF_SLICE_LIMITS] = sf_attr_ints(graph->pool, type->rank, limits);
    return changed;
}

/* The node of a move that brings the value there, nearest to it, that is a transpose or a slice. */
static sf_node *find_view(const sf_local *local, sf_value value)
{
    for (sf_value at = value;;) {
        sf_node *node = sf_maker(local->graph, at);
        if (!node || node->noperands != 1)
            return NULL;
        if (sf_is(node, SF_OP_TRANSPOSE) || sf_is(node, SF_OP_SLICE)) {
            sf_value from = node->operands[0];
            while (local->pieces[from].whole == SF_NONE && sf_maker(local->graph, from) &&
                   sf_maker(local->graph, from)->noperands == 1)
                from = sf_maker(local->graph, from)->operands[0];
            return local->pieces[from].whole == local->pieces[value].whole ? node : NULL;
        }
        at = node->operands[0];
        if (local->pieces[at].whole != SF_NONE)
            return NULL;
    }
}

static int rearranged[2]; /* transposes, slices */

static void break_views(split *s)
{
    sf_local *local = s->locals[s->ranks - 1];
    for (sf_value v = 0; v < local->graph->nvalues; v++) {
        sf_node *node = local->pieces[v].whole == SF_NONE ? NULL : find_view(local, v);
        if (!node)
            continue;
        bool is_slice = sf_is(node, SF_OP_SLICE);
        undo u = {.attrs = node->attrs};
        sf_diag *diag = sf_diag_new();
        if ((is_slice ? shift_slice : swap_dims)(local->graph, node, &u)) {
            if (sf_check_local(local, diag) == SF_OK)
                fail_msg("%s: another %s passed", s->name, node->def->name);
            if (!is_about(s, sf_diag_text(diag, 0), local->pieces[v].whole))
                fail_msg("%s: the message does not name the tensor and its pin: %s", s->name,
                         sf_diag_text(diag, 0));
            rearranged[is_slice]++;
            s->mutants++;
        }
        node->attrs = u.attrs;
        sf_arena_free(&u.arena);
        sf_diag_free(diag);
    }
}

/* Mutants of layouts: the local graph is that of the good plan, the plan says something else. */

static bool change_layout(sf_layout *layout, const sf_mesh *mesh, int how)
{
    sf_layout was = *layout;
    if (how == 0) /* another axis */
        for (int a = 0; a < mesh->naxes; a++)
            layout->axes[a] = was.axes[(a + 1) % mesh->naxes];
    if (how == 1) /* whole */
        *layout = (sf_layout){0};
    return !sf_layout_equal(layout, &was);
}

static void try_layout(split *s, sf_layout *layout, const char *what)
{
    for (int how = 0; how < 2; how++) {
        sf_layout was = *layout;
        sf_diag *diag = sf_diag_new();
        if (change_layout(layout, &s->plan->mesh, how)) {
            if (sf_check_local(s->locals[s->ranks - 1], diag) == SF_OK)
                fail_msg("%s: %s in another layout passed", s->name, what);
            s->mutants++;
        }
        *layout = was;
        sf_diag_free(diag);
    }
}

static void break_layouts(split *s)
{
    const sf_block *top = s->graph->top;
    for (uint32_t i = 0; i < top->narguments; i++)
        try_layout(s, &s->plan->arguments[i], s->graph->arguments[i].name);
    for (uint32_t i = 0; i < top->nresults; i++)
        try_layout(s, &s->plan->results[i], "a result");
    for (uint32_t i = 0; i < top->nnodes; i++) {
        const sf_node *node = s->graph->nodes[top->nodes[i]];
        for (uint32_t t = 0; t < node->noperands + node->nresults; t++)
            try_layout(s, &s->plan->nodes[node->id][t], node->def->name);
    }
}

static void test_mutants(void **state)
{
    (void)state;
    static const struct {
        const char *step, *recipe;
        int ranks;
        bool layouts;
    } splits[] = {
        {"mlp-micro", "dp", 2, true},        {"mlp-micro", "zero3", 4, true},
        {"mlp-micro", "2d", 4, true},        {"gpt-micro", "dp", 4, false},
        {"gpt-micro", "zero1", 4, false},    {"gpt-micro", "zero3", 2, false},
        {"gpt-micro", "megatron", 2, false}, {"gpt-micro", "2d", 4, false},
        {"gpt-micro", "sequence", 4, false}, {"moe-micro", "expert", 4, false},
        {"swin-micro", "2d", 4, false},
    };
    int mutants = 0;
    for (size_t i = 0; i < sizeof splits / sizeof *splits; i++) {
        split s;
        open_split(&s, splits[i].step, splits[i].recipe, splits[i].ranks, NULL, NULL);
        expect_good(&s);
        break_collectives(&s);
        break_views(&s);
        if (splits[i].layouts)
            break_layouts(&s);
        expect_good(&s);
        print_message("%s %s on %d: %d mutants\n", s.name, splits[i].recipe, s.ranks, s.mutants);
        mutants += s.mutants;
        close_split(&s);
    }
    for (int m = 0; m < MUTATIONS; m++)
        print_message("%s: %d\n", mutation_names[m], made[m]);
    print_message("another transpose: %d, another slice: %d\n", rearranged[0], rearranged[1]);
    assert_true(rearranged[0] > 10 && rearranged[1] > 10);
    assert_true(mutants > 2000);
}

/* Layouts of no recipe: shards that change places, and change their dimension. */
static const char exchanged[] =
    "func.func public @main(%x: tensor<8x8xf32> loc(\"batch/x\"), %y: tensor<8x8xf32> "
    "loc(\"batch/y\")) -> (tensor<8x8xf32>, tensor<8x8xf32>) {\n"
    "%a = stablehlo.tanh %x : tensor<8x8xf32>\n"
    "%b = stablehlo.sine %y : tensor<8x8xf32>\n"
    "return %a, %b : tensor<8x8xf32>, tensor<8x8xf32>\n}\n";

static void test_exchanges(void **state)
{
    (void)state;
    split s = {.name = "exchanges", .ranks = 4};
    sf_mesh mesh = {.naxes = 2, .axes = {{"a", 2}, {"b", 2}}};
    const sf_share rows = {.kind = SF_SPLIT, .dim = 0, .period = 8};
    const sf_share columns = {.kind = SF_SPLIT, .dim = 1, .period = 8};
    assert_int_equal(sf_load_text(exchanged, strlen(exchanged), "text", NULL, NULL, &s.graph),
                     SF_OK);
    s.plan = sf_plan_new(s.graph, &mesh);
    sf_layout *first = s.plan->nodes[s.graph->top->nodes[0]];
    sf_layout *second = s.plan->nodes[s.graph->top->nodes[1]];
    s.plan->arguments[0].axes[0] = s.plan->results[0].axes[0] = rows;
    first[0].axes[1] = first[1].axes[1] = rows;
    s.plan->arguments[1].axes[0] = s.plan->results[1].axes[0] = rows;
    second[0].axes[0] = second[1].axes[0] = columns;
    for (int r = 0; r < s.ranks; r++)
        s.locals[r] = test_local(s.graph, s.plan, r);
    assert_true(sf_is(test_collective(s.locals[0], 0), SF_OP_PERMUTE));
    assert_true(sf_is(test_collective(s.locals[0], 1), SF_OP_ALL_TO_ALL));
    expect_good(&s);
    break_collectives(&s);
    break_views(&s);
    break_layouts(&s);
    expect_good(&s);
    assert_true(s.mutants > 30);
    close_split(&s);
}

/* Memory */

static void test_memory(void **state)
{
    (void)state;
    split s;
    open_split(&s, "mlp-micro", "dp", 2, NULL, NULL);
    sf_diag *diag = sf_diag_new();
    assert_int_equal(sf_plan_check(s.plan, s.graph, INT64_C(1) << 30, diag), SF_OK);
    assert_int_equal(sf_plan_check(s.plan, s.graph, 1000, diag), SF_EMISMATCH);
    assert_non_null(strstr(sf_diag_text(diag, 0), "and the limit is 1000 B"));
    sf_diag_free(diag);
    close_split(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mutants),
        cmocka_unit_test(test_exchanges),
        cmocka_unit_test(test_good_plans),
        cmocka_unit_test(test_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
