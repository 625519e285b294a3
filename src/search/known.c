#include "search/known.h"

#include <string.h>

#include "plan/pin.h"
#include "plan/propagate.h"
#include "plan/recipe/recipe.h"
#include "search/search.h"

static const sf_known rows[] = {
    {"dp", "dp", NULL, false},
    {"zero1", "zero1", NULL, false},
    {"zero1", "zero1", NULL, true},
    {"zero2", "zero2", NULL, false},
    {"zero3", "zero3", NULL, false},
    {"zero1-between", "zero1-between", NULL, false},
    {"megatron", "megatron", NULL, false},
    {"sequence", "sequence", NULL, false},
    {"expert", "expert", NULL, false},
    {"2d", "2d", NULL, false},
    {"2d+zero1", "2d", "zero1", false},
    {"2d+zero2", "2d", "zero2", false},
    {"2d+zero3", "2d", "zero3", false},
    {"2d+zero1-between", "2d", "zero1-between", false},
};
enum { NROWS = sizeof rows / sizeof *rows };

const sf_known *sf_known_nth(int index)
{
    return index >= 0 && index < NROWS ? &rows[index] : NULL;
}

const sf_known *sf_known_pins(void)
{
    static const sf_known pins = {"pins", NULL, NULL, false};
    return &pins;
}

typedef struct cook {
    const sf_ground *ground;
    const sf_known *known;
    const sf_mesh *mesh;
    const sf_costs *costs;
    sf_diag *diag;
    sf_arena arena;
    sf_names names;
    sf_rules rules;
} cook;

static sf_status start_known_plan(const cook *k, sf_plan **out)
{
    const sf_graph *graph = k->ground->graph;
    if (k->known->recipe)
        return sf_recipe_plan(graph, k->known->name, 0, k->mesh, k->diag, out);
    *out = sf_plan_new(graph, k->mesh);
    return SF_OK;
}

/* Bytes of what a recipe of ZeRO splits by this pin: a gradient, a parameter or its state; 0 for others. */
static int64_t state_bytes(cook *k, const sf_pin *pin)
{
    const sf_graph *graph = k->ground->graph;
    size_t count;
    const sf_named **found = sf_names_match(&k->names, pin->pattern, &k->arena, &count);
    if (count == 0 || pin->share.kind != SF_SPLIT || pin->axis == SF_ANY_AXIS ||
        strcmp(k->mesh->axes[pin->axis].name, "data") != 0)
        return 0;
    const sf_value_info *info = &graph->values[found[0]->first];
    if (info->node == SF_NONE && graph->arguments[info->index].role == SF_ROLE_BATCH)
        return 0;
    return sf_type_bytes(info->type);
}

/* Pins of what is smaller than `least` stay whole. */
static sf_status spare_small(cook *k, int64_t least, sf_priced *out)
{
    sf_plan *plan = out->plan;
    for (int p = 0; p < plan->npins; p++) {
        sf_pin *pin = &plan->pins[p];
        int64_t bytes = state_bytes(k, pin);
        if (bytes == 0 || bytes >= least)
            continue;
        sf_buf text = {0};
        sf_buf_printf(&text, "%s=R@%s", pin->pattern, k->mesh->axes[pin->axis].name);
        sf_status status = sf_pin_parse(text.text, &plan->mesh, &plan->arena, k->diag, pin);
        sf_buf_free(&text);
        SF_TRY(status);
        out->spares = true;
    }
    return SF_OK;
}

static sf_status finish_known_plan(cook *k, int64_t least, sf_priced *out)
{
    const sf_ground *ground = k->ground;
    if (least > 0)
        SF_TRY(spare_small(k, least, out));
    SF_TRY(sf_plan_add_pins(out->plan, ground->npins, ground->pins, k->diag));
    SF_TRY(sf_plan_propagate(ground->graph, out->plan, k->diag));
    return sf_price_on(ground, &k->rules, k->costs, k->diag, out);
}

/* What is split is at least so large; 0: all that the recipe splits. */
static sf_status make_known_plan(cook *k, int64_t least, sf_priced *out)
{
    *out = (sf_priced){0};
    sf_status status = start_known_plan(k, &out->plan);
    if (status == SF_OK)
        status = finish_known_plan(k, least, out);
    if (status != SF_OK) {
        sf_plan_free(out->plan);
        out->plan = NULL;
    }
    return status;
}

/* The sizes of what the pins split, each once, in order; returns how many. */
static size_t find_sizes(cook *k, const sf_plan *plan, int64_t **out)
{
    size_t count = 0, capacity = 0;
    int64_t *sizes = NULL;
    for (int p = 0; p < plan->npins; p++) {
        int64_t bytes = state_bytes(k, &plan->pins[p]);
        size_t at = 0;
        while (at < count && sizes[at] < bytes)
            at++;
        if (bytes == 0 || (at < count && sizes[at] == bytes))
            continue;
        SF_PUSH(&k->arena, sizes, count, capacity, bytes);
        memmove(sizes + at + 1, sizes + at, (count - 1 - at) * sizeof *sizes);
        sizes[at] = bytes;
    }
    *out = sizes;
    return count;
}

static void keep_better_plan(sf_priced *best, sf_priced *found)
{
    if (sf_priced_better(found, best)) {
        sf_priced worse = *best;
        *best = *found;
        *found = worse;
    }
    sf_plan_free(found->plan);
}

/* By size: bytes that a rank has more where what is smaller is not split along axis data; the last is of all. In the arena. */
static double *find_saved(cook *k, const sf_plan *plan, size_t nsizes, const int64_t *sizes)
{
    double *saved = SF_ARRAY(&k->arena, nsizes + 1, double);
    for (int p = 0; p < plan->npins; p++) {
        size_t count = 0, at = 0;
        int64_t bytes = state_bytes(k, &plan->pins[p]);
        if (bytes > 0)
            sf_names_match(&k->names, plan->pins[p].pattern, &k->arena, &count);
        while (at < nsizes && sizes[at] < bytes)
            at++;
        saved[at < nsizes ? at + 1 : nsizes] += (double)bytes * (double)count;
    }
    for (size_t i = 1; i <= nsizes; i++)
        saved[i] += saved[i - 1];
    return saved;
}

/* The largest size from which on splitting is enough: what is smaller stays whole. `all`, which splits
 * everything, fits. Of a large step, whose plans take long to make, what bytes say is right where that fits. */
static sf_status spare_what_fits(cook *k, sf_priced *all)
{
    int64_t *sizes;
    size_t count = find_sizes(k, all->plan, &sizes), low = 0, high = count, guess = 0;
    const double *saved = find_saved(k, all->plan, count, sizes);
    double room = (double)k->ground->memory - (double)all->price.memory;
    bool is_large = k->ground->graph->nnodes > SF_SMALL_STEP;
    if (saved[count] <= room && !k->known->spares)
        return SF_OK;
    while (guess + 1 < count && saved[guess + 1] <= room)
        guess++;
    while (low + 1 < high && !(is_large && low == guess)) {
        size_t middle = is_large && high == count ? guess : (low + high) / 2;
        sf_priced found;
        SF_TRY(make_known_plan(k, sizes[middle], &found));
        if (found.fits)
            low = middle;
        else
            high = middle;
        keep_better_plan(all, &found);
    }
    return SF_OK;
}

static bool splits_state(const sf_known *known)
{
    return sf_recipe_of_state(known->name) != NULL;
}

static sf_status cook_plan(cook *k, sf_priced *out)
{
    SF_TRY(make_known_plan(k, 0, out));
    if (!splits_state(k->known) || !out->fits || k->ground->full_state)
        return SF_OK;
    k->names = sf_names_of(k->ground->graph, &k->arena);
    sf_status status = spare_what_fits(k, out);
    if (status != SF_OK) {
        sf_plan_free(out->plan);
        out->plan = NULL;
    }
    return status;
}

sf_status sf_known_plan(const sf_ground *ground, const sf_known *known, const sf_mesh *mesh,
                        const sf_costs *costs, sf_diag *diag, sf_priced *out)
{
    cook k = {.ground = ground, .known = known, .mesh = mesh, .costs = costs, .diag = diag};
    sf_status status = sf_ground_rules(ground, mesh, &k.arena, diag, &k.rules);
    if (status == SF_OK)
        status = cook_plan(&k, out);
    sf_arena_free(&k.arena);
    return status;
}
