#include "search/search.h"

#include <math.h>
#include <string.h>

#include "base/machine.h"
#include "plan/recipe/recipe.h"
#include "plan/recompute_policy.h"
#include "search/price/estimate.h"
#include "search/price/spare.h"
#include "search/search_run.h"
#include "sim/step_bound.h"

/* Of each number of axes; and where recipes alone are to tell how many groups there should be. */
enum { MOST_MESHES = 6, FEW_MESHES = 2 };

/* More than so many times the memory that there is: no search among layouts gets that down. */
#define NO_ROOM 1.5

/* For the solver, each time: about half a second, after which it has the best that it will find and goes
 * on to prove it. */
#define SOLVER_WORK INT64_C(4000000)
/* Of small steps, more is soon done. */
#define SMALL_WORK (4 * SOLVER_WORK)
/* Under a limit what it finds at first is far off. */
#define LIMITED_WORK INT64_C(18750000)
#define SOLVER_GAP 2e-3

/* How much of the reductions of gradients is exposed: before any plan tells; nearly nothing, where the best one tells
 * too much, for that one reduces more than it can hide, and a better one may not; and all. */
#define FIRST_GUESS 0.3
#define TOO_MUCH 0.5
#define HIDDEN_GUESS 0.1
#define EXPOSED_GUESS 1

/* A known plan is worth refining where it takes at most so many times the best one. */
#define PROMISING 1.3

/* Rounds of a search; those that do not help end it. */
enum { FEW_ROUNDS = 2, MANY_ROUNDS = 5, MOST_ROUNDS = 8 };

/* Of a large step, nothing is searched for where the first plan is no further from what none can take less than so many times the margin. */
#define NEAR_BOUND 2.5

/* A plan that still gets better is worth going on with where it takes at most so many times the best one. */
#define HOPEFUL 1.1

/* Where groups of devices that do the same make recipes so much faster, nothing else is tried. */
#define HOPELESS 2

/* Recipes ---------------------------------------------------------------------------------------- */

/* On a mesh of the search: axes that the mesh does not have by name take the place of free ones, in every
 * way, so that none is left. */
static void place_known(search *s, const sf_known *known, const char *const *axes, sf_mesh mesh)
{
    int nfree = 0;
    for (int a = 0; a < mesh.naxes; a++)
        nfree += sf_axis_is_free(&mesh.axes[a]);
    if (!*axes) {
        if (nfree == 0)
            search_add_known(s, known, &mesh);
        return;
    }
    if (sf_mesh_axis(&mesh, sf_str_of(*axes)) >= 0) {
        place_known(s, known, axes + 1, mesh);
        return;
    }
    for (int a = 0; a < mesh.naxes; a++) {
        sf_mesh placed = mesh;
        if (!sf_axis_is_free(&mesh.axes[a]))
            continue;
        placed.axes[a].name = *axes;
        place_known(s, known, axes + 1, placed);
    }
}

/* A mesh of the user has names already. */
static void add_known(search *s, const sf_known *known, const sf_mesh *mesh)
{
    if (s->options->mesh)
        search_add_known(s, known, mesh);
    else
        place_known(s, known, sf_recipe_axes(known->recipe), *mesh);
}

static bool is_wanted(const search *s, const sf_known *known)
{
    const sf_recipe *of_state = sf_recipe_of_state(known->name);
    bool has_parameters = of_state && of_state->parameters;
    bool is_between = has_parameters && !of_state->gradients;
    if (!s->options->full_state)
        return !is_between;
    return has_parameters && (!is_between || s->options->between);
}

static void add_recipes(search *s, const sf_mesh *mesh)
{
    const sf_known *known;
    for (int k = 0; (known = sf_known_nth(k)); k++)
        if (!known->state && !known->spares && is_wanted(s, known))
            add_known(s, known, mesh);
    /* Pins by themselves do nothing along axes that they do not name; where they name none, one will do. */
    bool is_least = mesh->naxes == search_fewest_axes(s) + (s->unused > 1);
    if (s->ground.npins > 0 && (s->options->mesh || is_least))
        search_add_known(s, sf_known_pins(), mesh);
}

/* Those that leave whole what there is room for: where there is room. */
static void add_sparing(search *s, const sf_mesh *mesh)
{
    const sf_priced *best = search_best_on(s, mesh);
    const sf_known *known;
    for (int k = 0; best && best->fits && (known = sf_known_nth(k)); k++)
        if (known->spares && is_wanted(s, known))
            add_known(s, known, mesh);
}

static sf_status price_recipes(search *s, const sf_meshes *meshes)
{
    search_begin(s);
    for (int i = 0; i < meshes->count; i++)
        add_recipes(s, &meshes->at[i]);
    SF_TRY(search_run(s, "recipes", true));
    search_begin(s);
    for (int i = 0; i < meshes->count; i++)
        add_sparing(s, &meshes->at[i]);
    return search_run(s, "recipes", true);
}

/* With state in pieces in every way, or so that optimizer state and gradients are. */
static void add_combined(search *s, const sf_mesh *mesh, bool in_every_way)
{
    const sf_known *known;
    for (int k = 0; (known = sf_known_nth(k)); k++) {
        const sf_recipe *state = sf_recipe_of_state(known->state);
        bool suits = state && (in_every_way || (state->gradients && !state->parameters));
        if (suits && is_wanted(s, known))
            add_known(s, known, mesh);
    }
}

/* Of the first candidate, which is the smallest where none fits: what may become of it in time. */
static double first_seconds(const search *s)
{
    return s->found->count > 0 ? s->found->candidates[0].at.price.seconds : HUGE_VAL;
}

/* Whether, of a large step, what is known on the mesh is far slower than the best, or, where nothing fits, than the smallest, and
 * larger by its activations: state in pieces does not help it. */
static bool is_far_behind(const search *s, const sf_mesh *mesh)
{
    const sf_priced *known = search_best_on(s, mesh);
    bool is_slow = !s->thorough && known && known->price.seconds > PROMISING * first_seconds(s);
    return is_slow && (search_best_seconds(s) < HUGE_VAL ||
                       known->price.memory > s->found->candidates[0].at.price.memory);
}

/* What recipes can be combined to: everything when no recipe fits; or else, because state in pieces saves time,
 * too, with optimizer state and gradients in pieces. */
static sf_status price_combined(search *s, const sf_meshes *meshes)
{
    bool fits = search_best_seconds(s) < HUGE_VAL && !s->options->full_state;
    search_begin(s);
    for (int i = 0; i < meshes->count; i++)
        if (!is_far_behind(s, &meshes->at[i]))
            add_combined(s, &meshes->at[i], !fits);
    return search_run(s, "recipes combined", false);
}

/* Groups that do the same ------------------------------------------------------------------------ */

/* Of all devices, without a word on how they stand. */
static sf_status find_costs(search *s, sf_costs **out)
{
    sf_mesh all = {.naxes = 1, .axes = {{"all", s->ground.cluster->ndevices}}};
    return sf_mesh_costs(s->ground.cluster, &all, &s->arena, s->diag, out);
}

/* The most groups that do the same for which it is not clear that a plan that is known is faster; a power of
 * two. They hold more, so of a large step, which may go on in time, that need not fit. */
static sf_status most_idle(search *s, int *out)
{
    int devices = s->ground.cluster->ndevices;
    sf_costs *costs;
    SF_TRY(find_costs(s, &costs));
    double known = s->thorough ? search_best_seconds(s) : first_seconds(s);
    for (*out = 1; sf_meshes_can_idle(s->ground.cluster, 2 * *out); *out *= 2)
        if (known <= sf_least_unstaged_estimate(s->ground.efforts, costs, devices / (2 * *out)))
            break;
    return SF_OK;
}

/* How many groups that all do the same make the fastest recipe: 1 unless a step is too small for all devices. From
 * the most on, because small groups send little, until fewer no longer help. */
static sf_status choose_idle(search *s, int *out)
{
    int unused, failures = 0;
    SF_TRY(most_idle(s, &unused));
    for (*out = 1; failures < 2 && unused > 1; unused /= 2) {
        double before = search_best_seconds(s);
        s->unused = unused;
        search_meshes meshes = search_list_meshes(s, FEW_MESHES);
        SF_TRY(price_recipes(s, &meshes.all));
        failures = search_best_seconds(s) < before ? 0 : failures + 1;
        if (failures == 0)
            *out = unused;
    }
    return SF_OK;
}

/* Solving ---------------------------------------------------------------------------------------- */

/* For every axis but the idle one. */
static sf_status make_spaces(search *s, const sf_meshes *meshes)
{
    search_begin(s);
    for (int i = 0; i < meshes->count; i++)
        for (int a = s->unused > 1; a < meshes->at[i].naxes; a++)
            search_add_space(s, meshes->at[i].axes[a].size);
    return search_run(s, "ways to split", false);
}

/* A stage that refines, and knows what the best plan says. */
static void begin_refining(search *s, int rounds)
{
    double exposed = s->found->count > 0 ? s->found->candidates[0].at.exposed : -1;
    search_begin(s);
    s->ground.rounds = rounds;
    s->ground.known = search_best_seconds(s);
    if (s->options->known > 0)
        s->ground.known = fmin(s->ground.known, s->found->near * s->options->known);
    if (exposed >= 0)
        s->guess = exposed;
}

/* From nothing. Where pins wish for a split along any axis, each in turn is asked first. */
static void add_cold_for(search *s, const sf_mesh *mesh, double guess)
{
    for (int grant = 0; grant < (s->has_wishes ? mesh->naxes : 1); grant++)
        search_add_cold(s, mesh, grant, guess);
}

static void add_cold(search *s, const sf_mesh *mesh)
{
    add_cold_for(s, mesh, s->guess > TOO_MUCH ? HIDDEN_GUESS : s->guess);
    if (s->thorough)
        add_cold_for(s, mesh, EXPOSED_GUESS);
}

/* From the best known plan on the mesh, if that is good. */
static void add_promising(search *s, const sf_mesh *mesh)
{
    const sf_priced *start = search_best_on(s, mesh), *best = search_best_of(s, mesh->naxes);
    if (start && (start == best || start->price.seconds <= PROMISING * best->price.seconds))
        search_add_refined(s, start->plan, 0);
}

/* From the best plan of one axis less, wherever this mesh cuts one of its axes. */
static void add_lifted(search *s, const sf_mesh *mesh)
{
    const sf_priced *start = search_best_of(s, mesh->naxes - 1);
    for (int axis = 0; start && axis < start->plan->mesh.naxes; axis++)
        if (sf_mesh_cuts(mesh, &start->plan->mesh, axis) &&
            search_keeps_names(s, mesh, &start->plan->mesh, axis))
            search_add_lifted(s, mesh, start->plan, axis);
}

/* Meshes of so many axes, beside the idle one. */
static sf_status solve_meshes(search *s, int naxes, const sf_meshes *meshes)
{
    static const char *const names[] = {"", "one axis", "two axes", "three axes"};
    SF_TRY(make_spaces(s, meshes));
    bool none_fits = search_best_seconds(s) == HUGE_VAL;
    begin_refining(s, naxes == 3                                      ? 1
                      : (none_fits && !s->cold_rounds) || s->thorough ? MANY_ROUNDS
                                                                      : FEW_ROUNDS);
    for (int i = 0; i < meshes->count; i++) {
        if (naxes < 3)
            add_promising(s, &meshes->at[i]);
        if (naxes == 3 || (naxes == 2 && none_fits))
            add_lifted(s, &meshes->at[i]);
        if (naxes == search_fewest_axes(s) || naxes == 2)
            add_cold(s, &meshes->at[i]);
    }
    return search_run(s, names[naxes], false);
}

/* Goes on with plans that still got better when their rounds were over, and may become the best. */
static sf_status settle_guess(search *s)
{
    begin_refining(s, MOST_ROUNDS);
    for (size_t i = 0; i < s->nbest; i++) {
        const sf_priced *at = &s->best[i].at;
        bool hopeful = at->fits && at->price.seconds <= HOPEFUL * search_best_seconds(s);
        if (at->unsettled && hopeful && s->best[i].unused == s->unused)
            search_add_refined(s, at->plan, ~at->unsettled);
    }
    return search_run(s, "what improves", false);
}

/* Whether a plan that does not fit is faster than all that do. */
static bool memory_binds(const search *s)
{
    double best = search_best_seconds(s);
    bool binds = false;
    for (size_t i = 0; i < s->found->count; i++) {
        const sf_priced *at = &s->found->candidates[i].at;
        binds = binds || (!at->fits && at->price.seconds < best);
    }
    return binds && best < HUGE_VAL;
}

/* The best plan once more, with every layer free to choose for itself: state in pieces in some layers, and whole
 * in others. Where there is memory for all, layers that repeat have no reason to differ. */
static sf_status unfold_best(search *s)
{
    if (s->options->level < 3 || s->options->recipes_only || !memory_binds(s))
        return SF_OK;
    begin_refining(s, 1);
    s->ground.folded = false;
    search_add_refined(s, s->found->candidates[0].at.plan, 0);
    return search_run(s, "every layer", false);
}

/* All stages ------------------------------------------------------------------------------------- */

/* Whether no layouts are worth being searched for: the first plan, but for recompute, is hardly slower than what few plans
 * are faster than. */
static bool is_near_bound(const search *s)
{
    if (s->thorough || s->found->count == 0)
        return false;
    const sf_price *first = &s->found->candidates[0].at.price;
    return first->seconds - first->recomputed <= (1 + NEAR_BOUND * s->options->margin) * s->least;
}

/* With so many groups that do the same, all that follows the recipes. */
static sf_status try_groups(search *s, int unused)
{
    s->unused = unused;
    search_meshes meshes = search_list_meshes(s, MOST_MESHES);
    SF_TRY(price_combined(s, &meshes.all));
    if (is_near_bound(s))
        return SF_OK;
    for (int naxes = 1; naxes <= SEARCH_MOST_AXES && !s->options->recipes_only; naxes++)
        SF_TRY(solve_meshes(s, naxes, &meshes.of[naxes]));
    return settle_guess(s);
}

/* Whether to look no further: recipes were found, and all of them take far more than there is. */
static bool has_no_room(search *s)
{
    bool any = !s->options->impatient || s->found->count == 0;
    for (size_t i = 0; i < s->found->count; i++)
        any = any ||
              (double)s->found->candidates[i].at.price.memory <= NO_ROOM * (double)s->ground.memory;
    s->found->has_no_room = !any && !s->thorough;
    return !any;
}

/* The same before any recipe is priced, by what no plan can take less than: groups that are asked for do the same. */
static bool can_have_no_room(search *s)
{
    int groups = s->options->groups > 1 ? s->options->groups : 1;
    int devices = s->ground.cluster->ndevices / groups;
    s->found->has_no_room =
        s->options->impatient && !s->thorough && !s->ground.efforts->spare &&
        sf_memory_bound(s->ground.efforts, devices) > NO_ROOM * (double)s->ground.memory;
    return s->found->has_no_room;
}

/* With the groups that are asked for. */
static sf_status try_asked_groups(search *s)
{
    s->unused = s->options->groups;
    search_meshes meshes = search_list_meshes(s, FEW_MESHES);
    SF_TRY(price_recipes(s, &meshes.all));
    return has_no_room(s) ? SF_OK : try_groups(s, s->unused);
}

static sf_status try_cluster(search *s)
{
    int unused = 1;
    if (s->options->groups > 1)
        return try_asked_groups(s);
    search_meshes meshes = search_list_meshes(s, MOST_MESHES);
    if (meshes.all.count == 0)
        return search_fail_meshes(s);
    SF_TRY(price_recipes(s, &meshes.all));
    if (has_no_room(s))
        return SF_OK;
    if (s->nnames == 0 && !s->options->full_state && !sf_ground_is_over(&s->ground))
        SF_TRY(choose_idle(s, &unused)); /* axes that pins name are there to be used */
    if (unused == 1 || !(s->busy > HOPELESS * search_best_seconds(s)))
        SF_TRY(try_groups(s, 1));
    return unused > 1 ? try_groups(s, unused) : SF_OK;
}

/* On the mesh of the user alone, from nothing too, however many axes it has. */
static sf_status try_searched_mesh(search *s)
{
    sf_mesh mesh = *s->options->mesh;
    sf_meshes only = {1, &mesh};
    if (sf_mesh_size(&mesh) != s->ground.cluster->ndevices)
        return sf_fail(s->diag, SF_EUSAGE, SF_NOWHERE,
                       "the mesh has %d ranks and the cluster %d devices", sf_mesh_size(&mesh),
                       s->ground.cluster->ndevices);
    SF_TRY(search_check_pins(s, &mesh, s->diag));
    SF_TRY(price_recipes(s, &only));
    SF_TRY(price_combined(s, &only));
    if (s->options->recipes_only || has_no_room(s))
        return SF_OK;
    SF_TRY(make_spaces(s, &only));
    begin_refining(s, MANY_ROUNDS);
    add_cold(s, &mesh);
    add_promising(s, &mesh);
    SF_TRY(search_run(s, "the mesh", false));
    return settle_guess(s);
}

static sf_status fail_to_find(search *s)
{
    sf_fail(s->diag, SF_EMISMATCH, SF_NOWHERE, "no plan was found: %s %s",
            s->options->recipes_only ? "no recipe applies to this step on"
                                     : "nothing splits it over",
            s->options->mesh ? "this mesh" : "so many devices");
    return sf_hint(s->diag,
                   s->options->recipes_only
                       ? "a plan that is pinned by one says why; without option recipes the "
                         "search looks at more than them"
                       : "another number of devices may divide what the step has");
}

static sf_status run_stages(search *s)
{
    sf_costs *costs;
    SF_TRY(search_read_pins(s));
    SF_TRY(find_costs(s, &costs));
    s->found->bound = sf_step_bound_of(s->ground.graph, s->options->target, costs).seconds;
    s->least = sf_least_estimate(s->ground.efforts, costs);
    if (can_have_no_room(s))
        return SF_OK;
    SF_TRY(s->options->mesh ? try_searched_mesh(s) : try_cluster(s));
    SF_TRY(unfold_best(s));
    if (s->found->count == 0 && s->broken)
        return sf_fail(s->diag, SF_EUSAGE, SF_NOWHERE,
                       "no plan was found that keeps to all pins; \"%s\" is one that was broken",
                       s->ground.pins[s->broken - 1]);
    if (s->found->count == 0)
        return fail_to_find(s);
    return SF_OK;
}

static const sf_efforts *find_efforts(const sf_graph *graph, const sf_search_options *options,
                                      sf_arena *arena)
{
    const sf_efforts *efforts =
        options->efforts ? options->efforts : sf_efforts_new(graph, options->target, arena);
    if (options->spares) {
        sf_plan *plan = sf_plan_of(graph, &(sf_mesh){0}, 0);
        const char *how = options->recompute; /* as it is known to be; else all may be */
        bool known = how && strcmp(how, "none") != 0;
        sf_recompute_spec recompute = sf_recompute_of(known ? how : "full", arena);
        if (sf_plan_spare(graph, plan, &recompute, NULL) == SF_OK && plan->recomputed)
            efforts = sf_efforts_spare(efforts, plan->recomputed, options->memory, arena);
        sf_plan_free(plan);
    }
    return efforts;
}

sf_status sf_search_plans(const sf_graph *graph, const sf_search_options *options, sf_diag *diag,
                          sf_found_plans *out)
{
    search s = {.options = options,
                .diag = diag,
                .found = out,
                .guess = FIRST_GUESS,
                .thorough = graph->nnodes <= SF_SMALL_STEP || options->mesh,
                .unused = 1,
                .busy = HUGE_VAL};
    sf_classes classes = sf_classes_of(graph, &s.arena);
    *out = (sf_found_plans){.near = s.thorough        ? SF_ESTIMATE_NEAR_SMALL
                                    : options->spares ? SF_ESTIMATE_NEAR_SPARED
                                                      : SF_ESTIMATE_NEAR};
    s.ground = (sf_ground){.graph = graph,
                           .full_state = options->full_state,
                           .efforts = find_efforts(graph, options, &s.arena),
                           .classes = &classes,
                           .cluster = options->cluster,
                           .memory = options->memory,
                           .folded = true,
                           .work = s.thorough ? SMALL_WORK : SOLVER_WORK,
                           .limited_work = LIMITED_WORK,
                           .known = HUGE_VAL,
                           .gap = SOLVER_GAP,
                           .deadline = options->deadline > 0 ? options->deadline : HUGE_VAL,
                           .asked = &s.asked,
                           .interrupt = options->audience.interrupt,
                           .spaces = s.spaces,
                           .npins = options->npins,
                           .pins = options->pins};
    if (options->spares && !s.thorough) /* the first tells which are worth going on with */
        s.cold_rounds = 1;
    sf_status status = run_stages(&s);
    search_free(&s);
    return status;
}

void sf_found_plans_free(sf_found_plans *found)
{
    for (size_t i = 0; i < found->count; i++)
        sf_plan_free(found->candidates[i].at.plan);
    sf_arena_free(&found->arena);
}
