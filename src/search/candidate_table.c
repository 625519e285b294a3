#include "search/candidate_table.h"

#include <stdlib.h>
#include <string.h>

#include "local/rank.h"
#include "plan/pin.h"
#include "plan/propagate.h"
#include "plan/recipe/recipe.h"

/* As it is known best. */
static const sf_price *price_of_candidate(const sf_candidate *c)
{
    return c->is_lowered ? &c->lowered : &c->at.price;
}

/* Of the two, which are of one name and mesh: what fits, what is known from its program, and what is faster. */
static bool is_better_row(const sf_candidate *a, const sf_candidate *b)
{
    if (a->at.fits != b->at.fits)
        return a->at.fits;
    if (a->is_lowered != b->is_lowered)
        return a->is_lowered;
    return a->handicap * price_of_candidate(a)->seconds <
           b->handicap * price_of_candidate(b)->seconds;
}

/* Axes of one rank and a second unused axis say nothing: "unused=4", "unused=4,model=1" and "unused=2,unused2=2" are one mesh. */
static const char *essence_of(const char *text, sf_arena *arena)
{
    sf_mesh mesh, out = {.naxes = 1, .axes = {{SF_UNUSED_AXIS, 1}}};
    sf_buf written = {0};
    if (sf_mesh_parse(sf_str_of(text), arena, NULL, &mesh) != SF_OK)
        return text;
    for (int a = 0; a < mesh.naxes; a++)
        if (sf_axis_is_unused(&mesh.axes[a]))
            out.axes[0].size *= mesh.axes[a].size;
        else if (mesh.axes[a].size > 1 && out.naxes < SF_MAX_AXES)
            out.axes[out.naxes++] = mesh.axes[a];
    sf_mesh_print(&out, &written);
    const char *kept = sf_arena_string(arena, written.text, written.length);
    sf_buf_free(&written);
    return kept;
}

/* Whether another candidate of the same name on the same mesh is better: searches that start differently end on
 * one mesh. */
static bool is_outdone(const sf_found_plans *found, const char *const *meshes, size_t at)
{
    const sf_candidate *c = &found->candidates[at];
    for (size_t i = 0; i < found->count; i++) {
        const sf_candidate *other = &found->candidates[i];
        if (i == at || strcmp(other->name, c->name) != 0 || strcmp(meshes[i], meshes[at]) != 0)
            continue;
        if (is_better_row(other, c) || (i < at && !is_better_row(c, other)))
            return true;
    }
    return false;
}

static const char *keep_text(sf_plan *plan, const char *text)
{
    return sf_arena_string(&plan->arena, text, strlen(text));
}

static int by_seconds(const void *left, const void *right)
{
    const sf_alternative *a = left, *b = right;
    if (a->fits != b->fits)
        return a->fits ? -1 : 1;
    if (a->seconds != b->seconds)
        return a->seconds < b->seconds ? -1 : 1;
    int names = strcmp(a->name, b->name);
    return names ? names : strcmp(a->mesh, b->mesh);
}

static void sort_rows(sf_prediction *predicted)
{
    if (predicted->nalternatives > 1)
        qsort(predicted->alternatives, (size_t)predicted->nalternatives,
              sizeof *predicted->alternatives, by_seconds);
}

void sf_table_list(const sf_found_plans *found, sf_plan *plan, sf_prediction *out)
{
    sf_arena arena = {0};
    const char **meshes = SF_ARRAY(&arena, found->count, const char *);
    for (size_t i = 0; i < found->count; i++)
        meshes[i] = essence_of(found->candidates[i].mesh, &arena);
    out->alternatives = SF_ARRAY(&plan->arena, found->count, sf_alternative);
    for (size_t i = 0; i < found->count; i++) {
        const sf_candidate *c = &found->candidates[i];
        if (!is_outdone(found, meshes, i))
            out->alternatives[out->nalternatives++] =
                (sf_alternative){.name = keep_text(plan, c->name),
                                 .mesh = keep_text(plan, c->mesh),
                                 .seconds = price_of_candidate(c)->seconds,
                                 .memory = price_of_candidate(c)->memory,
                                 .fits = c->at.fits,
                                 .lowered = c->is_lowered};
    }
    sf_arena_free(&arena);
    sort_rows(out);
}

void sf_table_copy(const sf_prediction *from, sf_plan *plan, sf_prediction *out)
{
    out->nalternatives = from->nalternatives;
    out->alternatives = sf_arena_copy(&plan->arena, from->alternatives,
                                      (size_t)from->nalternatives * sizeof *from->alternatives);
    for (int i = 0; i < out->nalternatives; i++) {
        sf_alternative *to = &out->alternatives[i];
        to->name = keep_text(plan, to->name);
        to->mesh = keep_text(plan, to->mesh);
    }
}

int sf_table_claim(const sf_prediction *predicted, double seconds)
{
    int most = -1;
    for (int i = 0; i < predicted->nalternatives; i++) {
        const sf_alternative *a = &predicted->alternatives[i];
        if (a->fits && !a->lowered && a->seconds < seconds &&
            (most < 0 || a->seconds < predicted->alternatives[most].seconds))
            most = i;
    }
    return most;
}

static sf_status make_plan(const sf_graph *graph, const sf_search_options *options,
                           const sf_alternative *row, sf_plan **out)
{
    sf_arena arena = {0};
    sf_mesh mesh;
    sf_status status = sf_mesh_parse(sf_str_of(row->mesh), &arena, NULL, &mesh);
    if (status == SF_OK)
        status = sf_recipe_plan(graph, row->name, 0, &mesh, NULL, out);
    if (status == SF_OK)
        status = sf_plan_add_pins(*out, options->npins, options->pins, NULL);
    if (status == SF_OK)
        status = sf_plan_propagate(graph, *out, NULL);
    sf_arena_free(&arena);
    return status;
}

sf_status sf_table_simulate(const sf_graph *graph, const sf_search_options *options,
                            sf_fit_known *known, sf_alternative *row, sf_plan **out,
                            sf_price *price, sf_group_runs *runs)
{
    sf_arena arena = {0};
    sf_costs *costs;
    *out = NULL;
    *runs = (sf_group_runs){0};
    sf_status status = make_plan(graph, options, row, out);
    if (status == SF_OK)
        status = sf_mesh_costs(options->cluster, &(*out)->mesh, &arena, NULL, &costs);
    if (status == SF_OK)
        status = sf_fit_in_time(graph, options, costs, known, *out, NULL, price, runs);
    sf_arena_free(&arena);
    if (status != SF_OK) {
        sf_group_runs_free(runs);
        sf_plan_free(*out);
        *out = NULL;
        return status;
    }
    row->seconds = price->seconds;
    row->memory = price->memory;
    row->fits = sf_rank_fits(price->memory, options->memory);
    row->lowered = true;
    return SF_OK;
}

void sf_table_drop(sf_prediction *predicted, int row)
{
    predicted->nalternatives--;
    memmove(predicted->alternatives + row, predicted->alternatives + row + 1,
            (size_t)(predicted->nalternatives - row) * sizeof *predicted->alternatives);
}

/* Stages are searched for apart from what is listed, and so is what is brought to the host. */
static bool is_listed(const sf_prediction *predicted)
{
    for (int i = 0; i < predicted->nalternatives; i++) {
        const sf_alternative *a = &predicted->alternatives[i];
        if (a->lowered && a->seconds == predicted->seconds && a->memory == predicted->memory)
            return true;
    }
    return false;
}

/* What was changed beside layouts makes it another row than the recipe's. */
static const char *name_plan(sf_plan *plan, bool is_tuned)
{
    if (plan->pipeline)
        return "pipeline";
    const char *name = *plan->recipe ? plan->recipe : "search";
    if (!is_tuned)
        return name;
    sf_buf text = {0};
    sf_buf_printf(&text, "%s, tuned", name);
    name = keep_text(plan, text.text);
    sf_buf_free(&text);
    return name;
}

void sf_table_finish(sf_plan *plan, bool is_tuned)
{
    sf_prediction *predicted = plan->predicted;
    sf_buf mesh = {0};
    if (predicted->nalternatives > 0 && !is_listed(predicted)) {
        size_t count = (size_t)predicted->nalternatives;
        sf_alternative *rows = SF_ARRAY(&plan->arena, count + 1, sf_alternative);
        memcpy(rows, predicted->alternatives, count * sizeof *rows);
        sf_mesh_print(&plan->mesh, &mesh);
        rows[count] = (sf_alternative){.name = name_plan(plan, is_tuned),
                                       .mesh = keep_text(plan, mesh.text),
                                       .seconds = predicted->seconds,
                                       .memory = predicted->memory,
                                       .fits = true,
                                       .lowered = true};
        predicted->alternatives = rows;
        predicted->nalternatives++;
        sf_buf_free(&mesh);
    }
    sort_rows(predicted);
}
