#include "plan/search.h"

#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "plan/complete.h"
#include "plan/known.h"
#include "plan/meshes.h"
#include "plan/pin.h"
#include "plan/purpose.h"
#include "plan/recipe.h"
#include "solve/solve.h"

enum { MOST_JOBS = 8, MOST_SIZES = 64, MOST_MESHES = 6, GUESSES = 3 };

/* For the solver, each time: about half a second, after which it has the best that it will find and goes
 * on to prove it. */
#define SOLVER_WORK INT64_C(4000000)
#define SOLVER_GAP 2e-3

#define HANDICAP 1e-3

/* The name of a candidate that is no recipe. */
static const char searched[] = "search";

/* One thing to do: a space to make, a known plan to price, or a plan to refine. */
typedef struct job {
    enum { MAKE_SPACE, PRICE_KNOWN, REFINE } kind;
    const sf_known *known;
    sf_mesh mesh;
    const sf_plan *start; /* or NULL: cold */
    int lift;             /* the axis of `start` that the mesh cuts, or -1 */
    int guess, nguesses;
    int parts;
    sf_arena *arena; /* of a space */
    sf_axis_space *space;
    sf_priced found;
    sf_status status; /* a job that fails has no candidate; nobody asks why */
} job;

typedef struct search {
    const sf_graph *graph;
    const sf_search_options *options;
    sf_ground ground;
    sf_diag *diag;
    sf_found *found;
    sf_arena arena;
    size_t capacity; /* of candidates */

    const char *stage;
    job *jobs;
    size_t njobs, job_capacity;
    size_t first; /* of those that run */
    atomic_size_t next, done, end;

    sf_arena space_arenas[MOST_SIZES];
    const sf_axis_space *spaces[MOST_SIZES];
    double guesses[GUESSES];         /* of what is exposed (plan/axis.h), the likeliest first */
    sf_plan *pinned;                 /* what the user pinned, completed; or NULL */
    sf_priced best[SF_MAX_AXES + 1]; /* by number of axes; the plans are copies */
} search;

/* Jobs ------------------------------------------------------------------------------------------- */

static sf_status lay_costs(const search *s, const sf_mesh *mesh, sf_arena *arena, sf_diag *diag,
                           sf_costs **out)
{
    int sizes[SF_MAX_AXES];
    for (int a = 0; a < mesh->naxes; a++)
        sizes[a] = mesh->axes[a].size;
    return sf_costs_new(s->options->cluster, mesh->naxes, sizes, 0, arena, diag, out);
}

static sf_status price_known(const search *s, job *j, sf_arena *arena)
{
    sf_costs *costs;
    SF_TRY(lay_costs(s, &j->mesh, arena, NULL, &costs));
    return sf_known_plan(&s->ground, j->known, &j->mesh, costs, NULL, &j->found);
}

static sf_status refine_plan(const search *s, job *j)
{
    /* Of a plan that was the best before an axis was cut, the parts of that axis are what is new. */
    sf_refine_options options = {.cold = !j->start,
                                 .axes = j->lift >= 0 ? 3u << j->lift : 0,
                                 .nguesses = j->nguesses,
                                 .guesses = &s->guesses[j->guess],
                                 .threads = s->njobs == 1 ? s->options->threads : NULL};
    j->found.plan = !j->start      ? sf_plan_new(s->graph, &j->mesh)
                    : j->lift >= 0 ? sf_plan_lift(j->start, s->graph, &j->mesh, j->lift)
                                   : sf_plan_copy(j->start, s->graph);
    return sf_refine(&s->ground, &options, NULL, &j->found);
}

static sf_status do_job(const search *s, job *j)
{
    sf_arena arena = {0};
    sf_status status = SF_OK;
    switch (j->kind) {
    case MAKE_SPACE:
        j->space = sf_axis_space_new(s->graph, j->parts, j->arena);
        break;
    case PRICE_KNOWN:
        status = price_known(s, j, &arena);
        break;
    case REFINE:
        status = refine_plan(s, j);
        break;
    }
    sf_arena_free(&arena);
    if (status != SF_OK) {
        sf_plan_free(j->found.plan);
        j->found.plan = NULL;
    }
    return status;
}

/* A guard for each job: memory that runs out in a thread is a status too. What a job allocated belongs to
 * nobody's guard afterwards, or to that of the caller; it is freed by the caller's thread. */
static void guard_job(const search *s, job *j)
{
    sf_guard guard;
    sf_guard_enter(&guard);
    if (setjmp(guard.target) != 0) {
        j->found.plan = NULL;
        if (j->arena)
            *j->arena = (sf_arena){0};
        j->status = SF_ENOMEM;
        return;
    }
    j->status = do_job(s, j);
    sf_guard_leave(&guard);
}

static void say(const search *s)
{
    char text[96];
    if (!s->options->progress)
        return;
    snprintf(text, sizeof text, "%s: %zu of %zu", s->stage, s->first + atomic_load(&s->done),
             s->njobs);
    s->options->progress(s->options->context, text);
}

static void work(void *context, int part, int64_t first, int64_t end)
{
    search *s = context;
    (void)first;
    (void)end;
    for (;;) {
        size_t at = atomic_fetch_add(&s->next, 1);
        if (at >= atomic_load(&s->end))
            return;
        guard_job(s, &s->jobs[at]);
        atomic_fetch_add(&s->done, 1);
        if (part == 0)
            say(s);
    }
}

static job *add_job(search *s)
{
    SF_PUSH(&s->arena, s->jobs, s->njobs, s->job_capacity, ((job){.lift = -1}));
    return &s->jobs[s->njobs - 1];
}

/* Candidates ------------------------------------------------------------------------------------- */

/* A plan with more axes must be worth it: one that was searched counts as a little slower for each. So a
 * recipe is never passed over for a plan that is slower. */
static sf_priced with_handicap(const sf_candidate *candidate)
{
    sf_priced at = candidate->at;
    if (strcmp(candidate->name, searched) == 0)
        at.price.seconds *= 1 + HANDICAP * candidate->naxes;
    return at;
}

static int by_price(const void *left, const void *right)
{
    sf_priced a = with_handicap(left), b = with_handicap(right);
    const sf_candidate *first = left, *second = right;
    if (sf_priced_better(&a, &b))
        return -1;
    if (sf_priced_better(&b, &a))
        return 1;
    int names = strcmp(first->name, second->name);
    return names ? names : strcmp(first->mesh, second->mesh);
}

/* Sorts, and lets go of the plans of all but the finalists. */
static void rank_candidates(search *s)
{
    sf_found *found = s->found;
    if (found->count > 1)
        qsort(found->candidates, found->count, sizeof *found->candidates, by_price);
    for (size_t i = SF_FINALISTS; i < found->count; i++) {
        sf_plan_free(found->candidates[i].at.plan);
        found->candidates[i].at.plan = NULL;
    }
}

static const char *mesh_text(const sf_mesh *mesh, sf_arena *arena)
{
    sf_buf text = {0};
    sf_mesh_print(mesh, &text);
    const char *kept = sf_arena_string(arena, text.text, text.length);
    sf_buf_free(&text);
    return kept;
}

/* Later stages go on from the best plan of so many axes. */
static void keep_best(search *s, const sf_priced *found)
{
    sf_priced *best = &s->best[found->plan->mesh.naxes];
    if (best->plan && !sf_priced_better(found, best))
        return;
    sf_plan_free(best->plan);
    *best = *found;
    best->plan = sf_plan_copy(found->plan, s->graph);
}

static void add_candidate(search *s, const char *name, const sf_priced *at)
{
    sf_found *found = s->found;
    sf_candidate candidate = {.name = name,
                              .naxes = at->plan->mesh.naxes,
                              .mesh = mesh_text(&at->plan->mesh, &found->arena),
                              .at = *at};
    SF_PUSH(&found->arena, found->candidates, found->count, s->capacity, candidate);
    keep_best(s, at);
}

static sf_status check_memory(search *s, size_t end)
{
    bool enough = true;
    for (size_t i = s->first; i < end; i++)
        enough = enough && s->jobs[i].status != SF_ENOMEM;
    for (size_t i = s->first; i < end && !enough; i++)
        sf_plan_free(s->jobs[i].found.plan);
    return enough ? SF_OK : sf_fail(s->diag, SF_ENOMEM, SF_NOWHERE, "out of memory");
}

/* What the jobs found becomes candidates, in the order of jobs. */
static sf_status collect(search *s, size_t end)
{
    SF_TRY(check_memory(s, end));
    for (size_t i = s->first; i < end; i++) {
        job *j = &s->jobs[i];
        if (j->status != SF_OK || j->kind == MAKE_SPACE)
            continue;
        if (j->kind == REFINE && !s->options->mesh)
            sf_plan_name_axes(s->ground.efforts, j->found.plan);
        add_candidate(s, j->kind == REFINE ? searched : j->known->name, &j->found);
    }
    rank_candidates(s);
    return SF_OK;
}

/* Runs the jobs, some at a time, so that not all their plans stand in memory at once. */
static sf_status run_jobs(search *s, const char *stage)
{
    int threads = sf_threads_count(s->options->threads);
    s->stage = stage;
    for (s->first = 0; s->first < s->njobs; s->first += MOST_JOBS) {
        size_t end = s->first + MOST_JOBS < s->njobs ? s->first + MOST_JOBS : s->njobs;
        atomic_store(&s->next, s->first);
        atomic_store(&s->done, 0);
        atomic_store(&s->end, end);
        if (s->njobs == 1)
            work(s, 0, 0, 1); /* so that the job may use the threads itself */
        else
            sf_threads_run(s->options->threads, threads, 1, work, s);
        SF_TRY(collect(s, end));
    }
    return SF_OK;
}

/* Stages ----------------------------------------------------------------------------------------- */

static void begin_stage(search *s)
{
    s->njobs = 0;
}

/* A space for every size of an axis, once. */
static void add_spaces(search *s, const sf_mesh *mesh)
{
    for (int a = 0; a < mesh->naxes; a++) {
        int parts = mesh->axes[a].size;
        bool known = s->ground.nspaces + (int)s->njobs >= MOST_SIZES;
        for (int i = 0; i < s->ground.nspaces; i++)
            known = known || s->spaces[i]->parts == parts;
        for (size_t i = 0; i < s->njobs; i++)
            known = known || s->jobs[i].parts == parts;
        if (known)
            continue;
        job *j = add_job(s);
        j->kind = MAKE_SPACE;
        j->parts = parts;
        j->arena = &s->space_arenas[s->ground.nspaces + (int)s->njobs - 1];
    }
}

static sf_status make_spaces(search *s, int count, const sf_mesh *meshes)
{
    begin_stage(s);
    for (int i = 0; i < count; i++)
        add_spaces(s, &meshes[i]);
    SF_TRY(run_jobs(s, "ways to split"));
    for (size_t i = 0; i < s->njobs; i++)
        s->spaces[s->ground.nspaces++] = s->jobs[i].space;
    return SF_OK;
}

/* On a mesh of the search: with the names of the recipe, in both orders where it has two axes. */
static void add_known(search *s, const sf_known *known, const sf_mesh *mesh)
{
    const char *const *axes = sf_recipe_axes(known->recipe);
    int naxes = axes[1] ? 2 : 1;
    for (int swap = 0; swap < naxes && mesh->naxes == naxes; swap++) {
        job *j = add_job(s);
        *j = (job){.kind = PRICE_KNOWN, .known = known, .mesh = *mesh, .lift = -1};
        for (int a = 0; a < naxes; a++)
            j->mesh.axes[a].name = axes[(a + swap) % naxes];
    }
}

static void add_all_known(search *s, const sf_mesh *mesh, bool combined)
{
    for (int k = 0; sf_known_nth(k); k++) {
        const sf_known *known = sf_known_nth(k);
        if ((known->state != NULL) != combined)
            continue;
        if (!s->options->mesh) {
            add_known(s, known, mesh);
            continue;
        }
        job *j = add_job(s);
        *j = (job){.kind = PRICE_KNOWN, .known = known, .mesh = *mesh, .lift = -1};
    }
}

/* Of the meshes on which the recipe of two axes was priced, the one where it was best. */
static const job *best_pair(const search *s)
{
    const job *best = NULL;
    for (size_t i = 0; i < s->njobs; i++) {
        const job *j = &s->jobs[i];
        bool pair = j->status == SF_OK && sf_recipe_axes(j->known->recipe)[1];
        if (pair && (!best || sf_priced_better(&j->found, &best->found)))
            best = j;
    }
    return best;
}

/* Recipes. Then what they can be combined to: everything when no recipe fits, or else, where state in pieces
 * may still save time, the cheapest combination on one mesh. */
static sf_status price_all_known(search *s, int count, const sf_mesh *meshes)
{
    begin_stage(s);
    for (int i = 0; i < count; i++)
        add_all_known(s, &meshes[i], false);
    SF_TRY(run_jobs(s, "recipes"));
    const job *pair = best_pair(s);
    job one = {.kind = PRICE_KNOWN, .known = sf_known_first_combined(), .lift = -1};
    if (pair)
        one.mesh = pair->mesh;
    begin_stage(s);
    if (s->found->count > 0 && s->found->candidates[0].at.fits) {
        if (pair)
            *add_job(s) = one;
    } else {
        for (int i = 0; i < count; i++)
            add_all_known(s, &meshes[i], true);
    }
    return run_jobs(s, "recipes");
}

/* With one guess, of number `guess`, or with all where that is negative. */
static void add_refinement(search *s, const sf_mesh *mesh, const sf_plan *start, int lift,
                           int guess)
{
    job *j = add_job(s);
    *j = (job){.kind = REFINE,
               .mesh = *mesh,
               .start = start,
               .lift = lift,
               .guess = guess < 0 ? 0 : guess,
               .nguesses = guess < 0 ? GUESSES : 1};
}

/* From the best plan of one axis less, wherever this mesh cuts one of its axes. */
static void add_lifted(search *s, const sf_mesh *mesh)
{
    const sf_plan *start = s->best[mesh->naxes - 1].plan;
    for (int axis = 0; start && axis < start->mesh.naxes; axis++)
        if (sf_mesh_cuts(mesh, &start->mesh, axis))
            add_refinement(s, mesh, start, axis, 0);
}

/* The guess of the best plan that was solved for one. */
static double best_guess(const search *s)
{
    for (size_t i = 0; i < s->found->count; i++)
        if (strcmp(s->found->candidates[i].name, searched) == 0)
            return s->found->candidates[i].at.exposed;
    return s->guesses[0];
}

static sf_status search_meshes(search *s, int naxes, const sf_meshes *meshes)
{
    static const char *const names[] = {"", "one axis", "two axes", "three axes"};
    if (sf_now() > s->ground.deadline)
        return SF_OK;
    SF_TRY(make_spaces(s, meshes->count, meshes->at));
    begin_stage(s);
    s->ground.rounds = naxes < 3 ? 2 : 1;
    /* The first, so that it is done before a better plan takes the place of the one it starts from. */
    if (naxes == 2 && s->best[2].plan)
        add_refinement(s, &s->best[2].plan->mesh, s->best[2].plan, -1, 0);
    for (int i = 0; i < meshes->count; i++) {
        if (naxes > 1)
            add_lifted(s, &meshes->at[i]);
        if (naxes == 2 && (i == 0 || !(s->best[1].plan && s->best[1].fits)))
            add_refinement(s, &meshes->at[i], NULL, -1, 0);
        for (int g = 0; naxes == 1 && g < (s->options->level >= 3 ? GUESSES : 1); g++)
            add_refinement(s, &meshes->at[i], NULL, -1, g);
    }
    SF_TRY(run_jobs(s, names[naxes]));
    if (naxes == 1)
        s->guesses[0] = best_guess(s);
    return SF_OK;
}

static sf_status search_cluster(search *s)
{
    int most_axes = s->options->level >= 3 ? 3 : 2, count = 0;
    sf_meshes meshes[4];
    sf_mesh all[4 * MOST_MESHES];
    for (int naxes = 1; naxes <= most_axes; naxes++) {
        meshes[naxes] = sf_meshes_of(s->options->cluster, naxes,
                                     naxes == 3 ? MOST_MESHES / 2 : MOST_MESHES, &s->arena);
        for (int i = 0; i < meshes[naxes].count; i++)
            all[count++] = meshes[naxes].at[i];
    }
    SF_TRY(price_all_known(s, count, all));
    for (int naxes = 1; naxes <= most_axes && !s->options->recipes_only; naxes++)
        SF_TRY(search_meshes(s, naxes, &meshes[naxes]));
    return SF_OK;
}

/* What the user pinned, completed: wrong pins are found here, before they fail in every job. */
static sf_status complete_pins(search *s)
{
    const sf_search_options *options = s->options;
    sf_costs *costs;
    sf_priced at = {.plan = sf_plan_new(s->graph, options->mesh)};
    sf_status status = sf_plan_add_pins(at.plan, options->npins, options->pins, s->diag);
    if (status == SF_OK)
        status = sf_plan_complete(s->graph, at.plan, s->diag);
    if (status == SF_OK)
        status = lay_costs(s, options->mesh, &s->arena, s->diag, &costs);
    if (status == SF_OK)
        status = sf_price_on(&s->ground, costs, s->diag, &at);
    if (status != SF_OK) {
        sf_plan_free(at.plan);
        return status;
    }
    s->pinned = sf_plan_copy(at.plan, s->graph);
    add_candidate(s, "pins", &at);
    return SF_OK;
}

static sf_status search_mesh(search *s)
{
    const sf_mesh *mesh = s->options->mesh;
    if (sf_mesh_size(mesh) != s->options->cluster->ndevices)
        return sf_fail(s->diag, SF_EUSAGE, SF_NOWHERE,
                       "the mesh has %d ranks and the cluster %d devices", sf_mesh_size(mesh),
                       s->options->cluster->ndevices);
    if (s->options->npins > 0)
        SF_TRY(complete_pins(s));
    SF_TRY(price_all_known(s, 1, mesh));
    if (s->options->recipes_only)
        return SF_OK;
    SF_TRY(make_spaces(s, 1, mesh));
    begin_stage(s);
    add_refinement(s, mesh, s->pinned, -1, -1);
    if (s->best[mesh->naxes].plan)
        add_refinement(s, mesh, s->best[mesh->naxes].plan, -1, -1);
    return run_jobs(s, "the mesh");
}

static sf_status find_bound(search *s)
{
    sf_costs *costs;
    sf_mesh all = {.naxes = 1, .axes = {{"all", s->options->cluster->ndevices}}};
    SF_TRY(lay_costs(s, &all, &s->arena, s->diag, &costs));
    s->found->bound = sf_search_bound(s->ground.efforts, costs, all.axes[0].size);
    return SF_OK;
}

static sf_status search_all(search *s)
{
    SF_TRY(find_bound(s));
    SF_TRY(s->options->mesh ? search_mesh(s) : search_cluster(s));
    if (s->found->count == 0)
        return sf_fail(s->diag, SF_EWRONG, SF_NOWHERE, "no plan was found");
    return SF_OK;
}

static void free_search(search *s)
{
    for (int i = 0; i < MOST_SIZES; i++)
        sf_arena_free(&s->space_arenas[i]);
    for (int i = 0; i <= SF_MAX_AXES; i++)
        sf_plan_free(s->best[i].plan);
    sf_plan_free(s->pinned);
    sf_arena_free(&s->arena);
}

sf_status sf_search_plans(const sf_graph *graph, const sf_search_options *options, sf_diag *diag,
                          sf_found *out)
{
    search s = {
        .graph = graph, .options = options, .diag = diag, .found = out, .guesses = {0.3, 1, 0}};
    sf_classes classes = sf_classes_of(graph, &s.arena);
    *out = (sf_found){0};
    s.ground =
        (sf_ground){.graph = graph,
                    .efforts = sf_efforts_new(graph, &s.arena),
                    .classes = &classes,
                    .cluster = options->cluster,
                    .memory = options->memory,
                    .folded = true,
                    .rounds = options->level >= 3 ? 3 : 2,
                    .work = SOLVER_WORK,
                    .gap = SOLVER_GAP,
                    .deadline = options->seconds > 0 ? sf_now() + options->seconds : HUGE_VAL,
                    .spaces = s.spaces,
                    .npins = options->npins,
                    .pins = options->pins};
    sf_status status = search_all(&s);
    free_search(&s);
    return status;
}

void sf_found_free(sf_found *found)
{
    for (size_t i = 0; i < found->count; i++)
        sf_plan_free(found->candidates[i].at.plan);
    sf_arena_free(&found->arena);
}
