#include "plan/recipe/recipe.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/nearest.h"
#include "ir/clone.h"
#include "ir/name.h"
#include "ir/opdef.h"
#include "plan/pin.h"
#include "plan/recipe/batch_dimension.h"
#include "plan/recipe/batch_rows.h"
#include "plan/recipe/parameter_pairs.h"

/* ZeRO leaves the smallest tensors whole that together are less than this part of parameters and
 * state: norms and biases, of which shards save nothing. */
#define NEGLIGIBLE 0.01

typedef struct applying {
    const sf_graph *step;
    const sf_graph *graph; /* the step, or, if it has a loop over micro-batches, one iteration */
    const sf_recipe *recipe;
    const char **names; /* clean, by argument */
    sf_uses uses;
    sf_arena arena;
    sf_plan *plan;
    size_t capacity; /* of the pins */
    sf_diag *diag;
    int64_t least;         /* smallest tensor that recipes of ZeRO split, in bytes */
    char why[SF_WHY_TEXT]; /* it does not apply */
} applying;

typedef bool apply_fn(applying *k, int axis);

static const sf_type *type_of_weight(const applying *k, uint32_t index)
{
    return sf_argument_type(k->graph, index);
}

/* A pin for exactly the tensor of that name. */
static void add_pin_text(applying *k, const char *name, const char *share, int axis)
{
    sf_buf text = {0};
    sf_buf_printf(&text, "/%s=%s@%s", name, share, k->plan->mesh.axes[axis].name);
    sf_pin pin;
    sf_status status = sf_pin_parse(text.text, &k->plan->mesh, &k->plan->arena, k->diag, &pin);
    sf_buf_free(&text);
    size_t count = (size_t)k->plan->npins;
    if (status == SF_OK)
        SF_PUSH(&k->plan->arena, k->plan->pins, count, k->capacity, pin);
    k->plan->npins = (int)count;
}

/* dim < 0: replicated. */
static void add_pin(applying *k, const char *name, int dim, int axis)
{
    char share[32] = "R";
    if (dim >= 0)
        snprintf(share, sizeof share, "S(%d)", dim);
    add_pin_text(k, name, share, axis);
}

static bool refuse_recipe(applying *k, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(k->why, sizeof k->why, format, args);
    va_end(args);
    return false;
}

static bool pin_batch(applying *k, uint32_t index, int dim, int axis)
{
    char text[64];
    int parts = k->plan->mesh.axes[axis].size;
    sf_share share = sf_batch_share(k->graph, &k->uses, index, dim, parts);
    if (share.kind != SF_SPLIT)
        return refuse_recipe(
            k, "dimension %d of %.60s, of size %" PRId64 ", does not split into %d equal parts",
            dim, k->names[index], type_of_weight(k, index)->dims[dim], parts);
    if (share.period == type_of_weight(k, index)->dims[share.dim])
        snprintf(text, sizeof text, "S(%d)", share.dim);
    else
        snprintf(text, sizeof text, "S(%d,%" PRId64 ")", share.dim, share.period);
    add_pin_text(k, k->names[index], text, axis);
    return true;
}

/* Every batch tensor that has the dimension, along it or its equivalent. */
static bool split_batch(applying *k, int axis, int dim)
{
    int found = 0;
    for (uint32_t i = 0; i < k->graph->top->narguments; i++) {
        if (!sf_has_rows(k->graph, i) || type_of_weight(k, i)->rank <= dim)
            continue;
        if (!pin_batch(k, i, dim, axis))
            return false;
        found++;
    }
    return found > 0 ? true : refuse_recipe(k, "no argument of the step is a batch");
}

static bool apply_dp(applying *k, int axis)
{
    return split_batch(k, axis, 0);
}

static int compare_sizes(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static bool is_state(sf_role role)
{
    return role == SF_ROLE_PARAM || role == SF_ROLE_STATE;
}

static int64_t least_size(applying *k)
{
    uint32_t count = 0;
    int64_t *sizes = SF_ARRAY(&k->arena, k->graph->top->narguments, int64_t);
    double all = 0, small = 0;
    for (uint32_t i = 0; i < k->graph->top->narguments; i++)
        if (is_state(k->graph->arguments[i].role)) {
            sizes[count] = sf_type_bytes(type_of_weight(k, i));
            all += (double)sizes[count++];
        }
    qsort(sizes, count, sizeof *sizes, compare_sizes);
    for (uint32_t i = 0; i < count; i++) {
        small += (double)sizes[i];
        if (small > NEGLIGIBLE * all)
            return sizes[i];
    }
    return 0;
}

/* The largest dimension that splits, the first of several; -1 when none does. */
static int dim_to_split(const applying *k, const sf_type *type, int parts)
{
    int best = -1;
    for (int d = 0; d < type->rank && sf_type_bytes(type) >= k->least; d++)
        if (type->dims[d] > 0 && type->dims[d] % parts == 0 &&
            (best < 0 || type->dims[d] > type->dims[best]))
            best = d;
    return best;
}

static int pin_role(applying *k, int axis, sf_role role, bool split)
{
    int parts = k->plan->mesh.axes[axis].size, found = 0;
    for (uint32_t i = 0; i < k->graph->top->narguments; i++) {
        if (k->graph->arguments[i].role != role)
            continue;
        int dim = split ? dim_to_split(k, type_of_weight(k, i), parts) : -1;
        add_pin(k, k->names[i], dim, axis);
        found += dim >= 0;
    }
    return found;
}

static void pin_gradients(applying *k, int axis, bool split)
{
    int parts = k->plan->mesh.axes[axis].size;
    for (uint32_t i = 0; i < k->graph->top->narguments; i++)
        if (k->graph->arguments[i].gradient != SF_NONE)
            add_pin(k, sf_gradient_name(k->names[i], &k->arena),
                    split ? dim_to_split(k, type_of_weight(k, i), parts) : -1, axis);
}

/* Parameters that are sharded when a step begins are gathered by it; those that it makes whole, by
 * the previous step. */
static bool apply_zero(applying *k, int axis)
{
    if (!apply_dp(k, axis))
        return false;
    k->least = least_size(k);
    pin_gradients(k, axis, k->recipe->gradients);
    pin_role(k, axis, SF_ROLE_PARAM, k->recipe->parameters);
    if (pin_role(k, axis, SF_ROLE_STATE, true) == 0)
        return refuse_recipe(k, "no optimizer state of the step splits into %d equal parts",
                             k->plan->mesh.axes[axis].size);
    return true;
}

static bool apply_megatron(applying *k, int axis)
{
    int parts = k->plan->mesh.axes[axis].size, found = 0;
    int *dims = sf_pair_dims(k->graph, parts, &k->arena);
    for (uint32_t i = 0; i < k->graph->top->narguments; i++)
        if (dims[i] >= 0) {
            add_pin(k, k->names[i], dims[i], axis);
            found++;
        }
    return found > 0 ? true
                     : refuse_recipe(
                           k,
                           "no two products with parameters follow each other so that the columns "
                           "of one are the rows of the other and split into %d equal parts",
                           parts);
}

/* Batch arguments with a second dimension have tokens there, all as many: features or pixels would be another number. */
static bool apply_sequence(applying *k, int axis)
{
    uint32_t tokens = SF_NONE;
    for (uint32_t i = k->graph->top->narguments; i-- > 0;)
        if (k->graph->arguments[i].role == SF_ROLE_BATCH && type_of_weight(k, i)->rank >= 2 &&
            !sf_is_inexact(type_of_weight(k, i)->dtype))
            tokens = i;
    if (tokens == SF_NONE)
        return refuse_recipe(k, "no batch argument holds tokens, integers of shape [batch, token]");
    int64_t count = type_of_weight(k, tokens)->dims[1];
    for (uint32_t i = 0; i < k->graph->top->narguments; i++)
        if (k->graph->arguments[i].role == SF_ROLE_BATCH && type_of_weight(k, i)->rank >= 2 &&
            type_of_weight(k, i)->dims[1] != count)
            return refuse_recipe(
                k,
                "the second dimension of %.60s is %" PRId64 " and that of %.60s %" PRId64
                ": they are not the tokens of one sequence",
                k->names[tokens], count, k->names[i], type_of_weight(k, i)->dims[1]);
    return split_batch(k, axis, 1);
}

static bool apply_expert(applying *k, int axis)
{
    int parts = k->plan->mesh.axes[axis].size, found = 0;
    int *dims = sf_expert_dims(k->graph, parts, &k->arena);
    if (!split_batch(k, axis, 0))
        return false;
    for (uint32_t i = 0; i < k->graph->top->narguments; i++)
        if (dims[i] >= 0) {
            add_pin(k, k->names[i], dims[i], axis);
            add_pin(k, sf_gradient_name(k->names[i], &k->arena), dims[i], axis);
            found++;
        }
    return found > 0
               ? true
               : refuse_recipe(k,
                               "no parameter holds the weights of experts, in a number that splits "
                               "into %d equal parts",
                               parts);
}

/* A recipe applies rules, each along an axis, one after the other. */
enum { MOST_COOKS = 2 };
static const struct row {
    sf_recipe recipe;
    const char *axes[MOST_COOKS + 1]; /* one for each rule, and then NULL */
    apply_fn *applying[MOST_COOKS];
} rows[] = {
    {{.name = "dp", .about = "the batch over axis data", .alias = "ddp"}, {"data"}, {apply_dp}},
    {{.name = "zero1", .about = "dp, with sharded optimizer state", .state = true},
     {"data"},
     {apply_zero}},
    {{.name = "zero2", .about = "zero1, with sharded gradients", .state = true, .gradients = true},
     {"data"},
     {apply_zero}},
    {{.name = "zero3",
      .about = "zero2, with sharded parameters",
      .alias = "fsdp",
      .state = true,
      .gradients = true,
      .parameters = true},
     {"data"},
     {apply_zero}},
    {{.name = "zero1-between",
      .about = "zero1, with parameters sharded between steps",
      .state = true,
      .parameters = true},
     {"data"},
     {apply_zero}},
    {{.name = "megatron",
      .about = "pairs of products by columns and rows over axis model",
      .alias = "tp"},
     {"model"},
     {apply_megatron}},
    {{.name = "sequence", .about = "the tokens of the batch over axis seq", .alias = "sp"},
     {"seq"},
     {apply_sequence}},
    {{.name = "expert",
      .about = "the batch and the weights of experts over axis expert",
      .alias = "ep"},
     {"expert"},
     {apply_expert}},
    {{.name = "2d", .about = "dp over axis data and megatron over axis model"},
     {"data", "model"},
     {apply_dp, apply_megatron}},
    {{.name = "replicas", .about = "the batch over axis replica"}, {"replica"}, {apply_dp}},
};
/* The last is not listed: with a recipe of ZeRO it is hybrid sharding, which the search over specifications alone considers. */
enum { ALL_ROWS = sizeof rows / sizeof *rows, NROWS = ALL_ROWS - 1 };

const sf_recipe *sf_recipe_nth(int index)
{
    return index >= 0 && index < NROWS ? &rows[index].recipe : NULL;
}

static const struct row *find_row(sf_str name)
{
    for (int i = 0; i < ALL_ROWS; i++) {
        const sf_recipe *recipe = &rows[i].recipe;
        if (sf_str_is(name, recipe->name) || (recipe->alias && sf_str_is(name, recipe->alias)))
            return &rows[i];
    }
    return NULL;
}

const sf_recipe *sf_recipe_of_state(const char *names)
{
    for (const char *at = names; at; at = strchr(at, '+') ? strchr(at, '+') + 1 : NULL) {
        const struct row *row = find_row((sf_str){at, strcspn(at, "+")});
        if (row && row->recipe.state)
            return &row->recipe;
    }
    return NULL;
}

const sf_recipe *sf_recipe_of_parameters(bool gradients)
{
    const sf_recipe *recipe = &rows[0].recipe;
    for (int i = 0; !recipe->parameters || recipe->gradients != gradients; i++)
        recipe = &rows[i].recipe;
    return recipe;
}

const char *const *sf_recipe_axes(const char *name)
{
    const struct row *row = find_row(sf_str_of(name));
    return row ? row->axes : NULL;
}

/* Recipes that are done together, the first the strongest: "2d+zero1". */
enum { MOST_ROWS = 4 };
typedef struct combination {
    int nrows, naxes;
    const struct row *rows[MOST_ROWS];
    const char *axes[MOST_ROWS * MOST_COOKS]; /* all that they need */
    char name[MOST_ROWS * 16];
} combination;

static void add_axis(combination *m, const char *axis)
{
    for (int a = 0; a < m->naxes; a++)
        if (strcmp(m->axes[a], axis) == 0)
            return;
    m->axes[m->naxes++] = axis;
}

static void add_row(combination *m, const struct row *row)
{
    size_t length = strlen(m->name);
    snprintf(m->name + length, sizeof m->name - length, "%s%s", m->nrows ? "+" : "",
             row->recipe.name);
    m->rows[m->nrows++] = row;
    for (int a = 0; row->axes[a]; a++)
        add_axis(m, row->axes[a]);
}

static sf_status fail_unknown(sf_str name, sf_diag *diag)
{
    sf_buf list = {0};
    sf_nearest nearest = {.text = name};
    for (int i = 0; i < NROWS; i++) {
        sf_buf_printf(&list, "%s%s", i ? ", " : "", rows[i].recipe.name);
        sf_nearest_try(&nearest, rows[i].recipe.name);
    }
    for (int i = 0; i < NROWS; i++)
        if (rows[i].recipe.alias)
            sf_nearest_try(&nearest, rows[i].recipe.alias);
    if (nearest.best)
        sf_fail(diag, SF_EUSAGE, SF_NOWHERE, "there is no recipe \"%.*s\"; did you mean \"%s\"?",
                SF_STR_ARGS(name), nearest.best);
    else
        sf_fail(diag, SF_EUSAGE, SF_NOWHERE, "there is no recipe \"%.*s\"", SF_STR_ARGS(name));
    sf_status status =
        sf_str_is(name, "search") || sf_str_is(name, "pins")
            ? sf_hint(diag,
                      "that is a plan of a search, which no recipe makes: search for it again")
            : sf_hint(diag, "the recipes are %s, and several of them joined by +", list.text);
    sf_buf_free(&list);
    return status;
}

static sf_status read_combination(const char *name, sf_diag *diag, combination *out)
{
    *out = (combination){0};
    for (const char *at = name;; at++) {
        sf_str one = {at, strcspn(at, "+")};
        const struct row *row = find_row(one);
        if (!row)
            return fail_unknown(one, diag);
        if (out->nrows == MOST_ROWS)
            return sf_fail(diag, SF_EUSAGE, SF_NOWHERE, "more than %d recipes are joined in \"%s\"",
                           MOST_ROWS, name);
        add_row(out, row);
        at += one.length;
        if (!*at)
            return SF_OK;
    }
}

bool sf_recipe_exists(const char *names)
{
    combination m;
    return read_combination(names, NULL, &m) == SF_OK;
}

/* Tries one mesh; k->why is the reason against it. */
static bool try_recipe_mesh(applying *k, const combination *m, const sf_mesh *mesh)
{
    sf_plan_free(k->plan);
    k->plan = sf_plan_new(k->step, mesh);
    k->plan->recipe = sf_arena_string(&k->plan->arena, m->name, strlen(m->name));
    k->capacity = 0;
    for (int r = 0; r < m->nrows; r++) {
        k->recipe = &m->rows[r]->recipe;
        for (int a = 0; m->rows[r]->axes[a]; a++)
            if (!m->rows[r]->applying[a](k, sf_mesh_axis(mesh, sf_str_of(m->rows[r]->axes[a]))))
                return false;
    }
    return true;
}

/* Shares ranks out to the axes up to `axis`, in every way that has two or more along each: the fewer on the last ones
 * the better. */
static bool try_shares(applying *k, const combination *m, sf_mesh *mesh, int axis, int ranks)
{
    if (axis == 0) {
        mesh->axes[0].size = ranks;
        return try_recipe_mesh(k, m, mesh);
    }
    for (int size = 2; size <= ranks / 2; size++) {
        mesh->axes[axis].size = size;
        if (ranks % size == 0 && try_shares(k, m, mesh, axis - 1, ranks / size))
            return true;
    }
    return false;
}

static bool try_ranks(applying *k, const combination *m, int ranks)
{
    sf_mesh mesh = {.naxes = m->naxes};
    static const char *const numbers[] = {"no", "one number", "two numbers", "three numbers",
                                          "four numbers"};
    for (int a = 0; a < m->naxes; a++)
        mesh.axes[a].name = m->axes[a];
    refuse_recipe(k, "%d ranks are no product of %s above 1", ranks, numbers[m->naxes]);
    return try_shares(k, m, &mesh, m->naxes - 1, ranks);
}

/* A mesh that was given must have the axes; how many ranks are along them is as it is. */
static sf_status check_axes(const combination *m, const sf_mesh *mesh, sf_diag *diag)
{
    if (m->naxes > SF_MAX_AXES)
        return sf_fail(diag, SF_EUSAGE, SF_NOWHERE, "recipe %s needs %d axes, and a mesh has %d",
                       m->name, m->naxes, SF_MAX_AXES);
    for (int a = 0; mesh && a < m->naxes; a++) {
        sf_buf text = {0};
        if (sf_mesh_axis(mesh, sf_str_of(m->axes[a])) >= 0)
            continue;
        sf_mesh_print(mesh, &text);
        sf_status status =
            sf_fail(diag, SF_EUSAGE, SF_NOWHERE,
                    "recipe %s is about axis \"%s\", which the mesh %s does not have", m->name,
                    m->axes[a], text.text);
        sf_buf_free(&text);
        return status;
    }
    return SF_OK;
}

static bool has_regions(const sf_graph *graph)
{
    for (uint32_t i = 0; i < graph->top->nnodes; i++)
        if (sf_top_node(graph, i)->def->control != SF_CONTROL_NONE)
            return true;
    return false;
}

sf_status sf_recipe_plan(const sf_graph *graph, const char *name, int ranks, const sf_mesh *mesh,
                         sf_diag *diag, sf_plan **out)
{
    combination m;
    SF_TRY(read_combination(name, diag, &m));
    SF_TRY(check_axes(&m, mesh, diag));
    sf_graph *microbatch = has_regions(graph) ? sf_graph_clone_iteration(graph) : NULL;
    applying k = {.step = graph, .graph = microbatch ? microbatch : graph, .diag = diag};
    k.names = sf_clean_names(k.graph, &k.arena);
    k.uses = sf_uses_of(k.graph, &k.arena);
    bool applies = mesh ? try_recipe_mesh(&k, &m, mesh) : try_ranks(&k, &m, ranks);
    sf_arena_free(&k.arena);
    sf_graph_free(microbatch);
    if (applies) {
        *out = k.plan;
        return SF_OK;
    }
    sf_plan_free(k.plan);
    return sf_fail(diag, SF_EMISMATCH, SF_NOWHERE, "recipe %s does not apply: %s", m.name, k.why);
}
