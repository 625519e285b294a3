/* The jobs of a search, on the threads, and what they find: candidates, and the best plan on each mesh. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/guard.h"
#include "base/machine.h"
#include "plan/pin.h"
#include "search/price/estimate.h"
#include "search/purpose.h"
#include "search/search_run.h"

/* That run before their plans are collected: not all stand in memory at once. */
enum { MOST_JOBS = 8, FEW_AXES = 2 };

/* How much slower a searched plan counts for each of its axes, where there is a margin. */
#define HANDICAP 1e-3

/* A plan on another mesh is looked at where it takes at most so many times the best one. */
#define NOT_FAR 1.1

/* Groups of devices that do the same are not worth it where they save less. */
#define IDLE_GAIN 0.02

/* One thing to do: a space to make, a known plan to price, or a plan to refine. */
typedef struct search_job {
    enum { MAKE_SPACE, PRICE_KNOWN, REFINE } kind;
    int parts;       /* of a space, */
    sf_arena *arena; /* where it lives */
    sf_axis_space *space;
    const sf_known *known;
    sf_mesh mesh;
    const sf_plan *start; /* or NULL: cold */
    int lift;             /* the axis of `start` that the mesh cuts, or -1 */
    /* See sf_refine_options. */
    sf_axes axes, settled;
    int grant;
    double guess;
    sf_priced found;
    sf_status status; /* a job that fails has no candidate; nobody asks why */
} job;

/* Jobs ------------------------------------------------------------------------------------------- */

void search_begin(search *s)
{
    s->njobs = 0;
    for (size_t i = 0; i < s->nold; i++)
        sf_plan_free(s->old[i]);
    s->nold = 0;
}

static void add_job(search *s, const job *added)
{
    SF_PUSH(&s->arena, s->jobs, s->njobs, s->job_capacity, *added);
}

void search_add_space(search *s, int parts)
{
    size_t at = (size_t)s->ground.nspaces + s->njobs;
    for (int i = 0; i < s->ground.nspaces; i++)
        if (s->spaces[i]->parts == parts)
            return;
    for (size_t i = 0; i < s->njobs; i++)
        if (s->jobs[i].parts == parts)
            return;
    SF_ASSERT(at < SEARCH_MOST_SIZES);
    add_job(s, &(job){.kind = MAKE_SPACE, .parts = parts, .arena = &s->space_arenas[at]});
}

void search_add_known(search *s, const sf_known *known, const sf_mesh *mesh)
{
    add_job(s, &(job){.kind = PRICE_KNOWN, .known = known, .mesh = *mesh});
}

/* The axes to solve: nothing is split along an idle one, which is in front. */
static sf_axes busy_axes(const search *s, const sf_mesh *mesh)
{
    return s->unused > 1 ? (1u << mesh->naxes) - 2 : 0;
}

void search_add_cold(search *s, const sf_mesh *mesh, int grant, double guess)
{
    add_job(s, &(job){.kind = REFINE,
                      .mesh = *mesh,
                      .lift = -1,
                      .axes = busy_axes(s, mesh),
                      .grant = grant,
                      .guess = guess});
}

void search_add_refined(search *s, const sf_plan *start, sf_axes settled)
{
    add_job(s, &(job){.kind = REFINE,
                      .mesh = start->mesh,
                      .start = start,
                      .lift = -1,
                      .axes = busy_axes(s, &start->mesh),
                      .settled = settled,
                      .guess = s->guess});
}

/* The plan was the best before its axis was cut: the parts of that are what is new. */
void search_add_lifted(search *s, const sf_mesh *mesh, const sf_plan *start, int axis)
{
    add_job(s, &(job){.kind = REFINE,
                      .mesh = *mesh,
                      .start = start,
                      .lift = axis,
                      .axes = 3u << axis,
                      .guess = s->guess});
}

static sf_status price_known(const search *s, job *j, sf_arena *arena)
{
    sf_costs *costs;
    SF_TRY(sf_mesh_costs(s->ground.cluster, &j->mesh, arena, NULL, &costs));
    return sf_known_plan(&s->ground, j->known, &j->mesh, costs, NULL, &j->found);
}

static sf_plan *starting_plan(const search *s, const job *j)
{
    const sf_graph *graph = s->ground.graph;
    if (!j->start)
        return sf_plan_new(graph, &j->mesh);
    return j->lift >= 0 ? sf_plan_lift(j->start, graph, &j->mesh, j->lift)
                        : sf_plan_copy(j->start, graph);
}

static sf_status refine_plan(const search *s, job *j)
{
    sf_refine_options options = {.cold = !j->start,
                                 .grant = j->grant,
                                 .axes = j->axes,
                                 .settled = j->settled,
                                 .rounds = j->start ? 0 : s->cold_rounds,
                                 .guess = j->guess,
                                 .threads = s->njobs == 1 ? s->options->threads : NULL};
    j->found.plan = starting_plan(s, j);
    return sf_refine(&s->ground, &options, NULL, &j->found);
}

static sf_status do_job(const search *s, job *j)
{
    sf_arena arena = {0};
    sf_status status = SF_OK;
    switch (j->kind) {
    case MAKE_SPACE:
        j->space = sf_axis_space_new(s->ground.graph, j->parts, j->arena);
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

/* Candidates ------------------------------------------------------------------------------------- */

static sf_priced with_handicap(const sf_candidate *candidate)
{
    sf_priced at = candidate->at;
    at.price.seconds *= candidate->handicap;
    at.price.memory = (int64_t)((double)at.price.memory * candidate->handicap);
    return at;
}

bool sf_candidate_is_searched(const sf_candidate *candidate)
{
    return strcmp(candidate->name, "search") == 0;
}

static int axes_of(const sf_candidate *candidate)
{
    int count = 0;
    for (const char *at = candidate->mesh; *at; at++)
        count += *at == '=';
    return count;
}

/* Of equals, what is known comes before what was searched, and fewer axes before more. */
static int by_price(const void *left, const void *right)
{
    const sf_candidate *first = left, *second = right;
    sf_priced a = with_handicap(first), b = with_handicap(second);
    if (sf_priced_better(&a, &b))
        return -1;
    if (sf_priced_better(&b, &a))
        return 1;
    if (sf_candidate_is_searched(first) != sf_candidate_is_searched(second))
        return sf_candidate_is_searched(first) ? 1 : -1;
    if (axes_of(first) != axes_of(second))
        return axes_of(first) - axes_of(second);
    int names = strcmp(first->name, second->name);
    return names ? names : strcmp(first->mesh, second->mesh);
}

/* Whether the candidate is faster than the best, and only its price keeps it from being that. */
static bool may_be_best(const search *s, const sf_candidate *candidate)
{
    sf_priced at = with_handicap(candidate), best = with_handicap(&s->found->candidates[0]);
    return !at.fits && at.price.seconds < best.price.seconds &&
           (double)candidate->at.price.memory <= SF_ESTIMATE_OFF * (double)s->ground.memory;
}

/* Whether a recipe may turn out to be the best when it is lowered. */
static bool may_win(const search *s, const sf_candidate *candidate)
{
    double best = with_handicap(&s->found->candidates[0]).price.seconds;
    return !sf_candidate_is_searched(candidate) && candidate->at.fits &&
           candidate->at.price.seconds <= s->found->near * best;
}

/* Whether it is the best on its mesh, and not far slower than the first: where programs are to tell what makes plans fit, what they take
 * then goes by how much of the batch a rank has. */
static bool may_fit_better(const search *s, size_t at)
{
    const sf_candidate *candidates = s->found->candidates;
    double best = with_handicap(&candidates[0]).price.seconds;
    bool may = s->options->spares && candidates[at].at.fits &&
               with_handicap(&candidates[at]).price.seconds <= NOT_FAR * best;
    for (size_t i = 0; i < at; i++)
        may = may && strcmp(candidates[i].mesh, candidates[at].mesh) != 0;
    return may;
}

/* Whether a candidate before it, which is no worse, is the same plan. */
static bool is_repeated(const sf_found_plans *found, size_t at)
{
    for (size_t i = 0; i < at; i++)
        if (sf_candidates_are_same(&found->candidates[i], &found->candidates[at]))
            return true;
    return false;
}

/* Sorts, and lets go of the plans of all but the finalists. Plans of more axes do not take the place of others: estimates may
 * be wrong, and more effort is not to end in a slower plan. */
static void rank_candidates(search *s)
{
    sf_found_plans *found = s->found;
    size_t finalists = s->thorough ? SF_SMALL_FINALISTS : SF_FINALISTS;
    bool has_recipe = false;
    size_t hopefuls = 0, first[2] = {0}; /* of those of two axes at most, and of more */
    if (found->count > 1)
        qsort(found->candidates, found->count, sizeof *found->candidates, by_price);
    for (size_t i = 0; i < found->count; i++) {
        sf_candidate *candidate = &found->candidates[i];
        bool is_best_recipe =
            !has_recipe && !sf_candidate_is_searched(candidate) && candidate->at.fits;
        bool is_hopeful = candidate->at.plan && hopefuls < finalists && may_be_best(s, candidate);
        has_recipe = has_recipe || is_best_recipe;
        hopefuls += is_hopeful;
        size_t *more = &first[axes_of(candidate) > FEW_AXES];
        bool is_first = *more < finalists && !is_repeated(found, i);
        *more += is_first;
        if (is_first || is_best_recipe || is_hopeful || may_win(s, candidate) ||
            may_fit_better(s, i))
            continue;
        sf_plan_free(candidate->at.plan);
        candidate->at.plan = NULL;
    }
}

bool sf_candidates_are_same(const sf_candidate *a, const sf_candidate *b)
{
    const sf_price *x = &a->at.price, *y = &b->at.price;
    return x->seconds == y->seconds && x->memory == y->memory && x->traffic == y->traffic &&
           strcmp(a->mesh, b->mesh) == 0;
}

double search_best_seconds(const search *s)
{
    bool fits = s->found->count > 0 && s->found->candidates[0].at.fits;
    return fits ? s->found->candidates[0].at.price.seconds : HUGE_VAL;
}

static search_best *find_best_on(const search *s, const sf_mesh *mesh)
{
    for (size_t i = 0; i < s->nbest; i++)
        if (s->best[i].unused == s->unused &&
            search_is_same_mesh(s, &s->best[i].at.plan->mesh, mesh))
            return &s->best[i];
    return NULL;
}

const sf_priced *search_best_on(const search *s, const sf_mesh *mesh)
{
    const search_best *best = find_best_on(s, mesh);
    return best ? &best->at : NULL;
}

const sf_priced *search_best_of(const search *s, int naxes)
{
    const sf_priced *best = NULL;
    for (size_t i = 0; i < s->nbest; i++) {
        const sf_priced *at = &s->best[i].at;
        bool counts = s->best[i].unused == s->unused && at->plan->mesh.naxes == naxes;
        if (counts && (!best || sf_priced_better(at, best)))
            best = at;
    }
    return best;
}

/* Later stages go on from the best plan on a mesh. */
static void keep_best(search *s, const sf_priced *found)
{
    search_best *best = find_best_on(s, &found->plan->mesh);
    if (best && !sf_priced_better(found, &best->at))
        return;
    search_best copy = {*found, s->unused};
    copy.at.plan = sf_plan_copy(found->plan, s->ground.graph);
    if (best) {
        SF_PUSH(&s->arena, s->old, s->nold, s->old_capacity, best->at.plan);
        *best = copy;
    } else {
        SF_PUSH(&s->arena, s->best, s->nbest, s->best_capacity, copy);
    }
}

/* With a margin, a plan that was searched must be worth it, and more so with more axes: it counts as a little
 * slower, and larger, than it is. A recipe counts as what it is, so none is passed over for a plan that is slower. */
static double handicap_of(const search *s, const job *j)
{
    double margin = s->options->margin;
    return j->kind == REFINE && margin > 0 ? 1 + margin + HANDICAP * j->found.plan->mesh.naxes : 1;
}

/* A recipe that leaves small tensors whole is not the one that a person gets by its name. */
static const char *name_of(const job *j, sf_arena *arena)
{
    char text[64];
    if (j->kind == REFINE)
        return "search";
    snprintf(text, sizeof text, "%s (large)", j->known->name);
    return j->found.spares ? sf_arena_string(arena, text, strlen(text)) : j->known->name;
}

static void add_candidate(search *s, const job *j)
{
    sf_found_plans *found = s->found;
    sf_candidate candidate = {.name = name_of(j, &found->arena),
                              .mesh = search_mesh_text(&j->found.plan->mesh, &found->arena),
                              .at = j->found,
                              .handicap = handicap_of(s, j)};
    SF_PUSH(&found->arena, found->candidates, found->count, s->candidate_capacity, candidate);
}

/* Whether a plan is worth that devices do the same, if they do; of a small step, its program is to tell. */
static bool is_worth_adding(const search *s, const sf_priced *found)
{
    double near = s->thorough ? s->found->near : 1;
    return s->unused == 1 || s->busy == HUGE_VAL ||
           found->price.seconds < near * (1 - IDLE_GAIN) * s->busy;
}

/* Axes get names, but for those that pins or a recipe name; what was solved gets the pins that it keeps to. */
static sf_status finish_plan(const search *s, job *j)
{
    sf_plan *plan = j->found.plan;
    sf_axes keep = 0;
    for (int a = 0; a < plan->mesh.naxes; a++) {
        const sf_axis *axis = &plan->mesh.axes[a];
        if (s->options->mesh ||
            (j->kind == REFINE ? search_is_named(s, axis->name) : !sf_axis_is_free(axis)))
            keep |= 1u << a;
    }
    sf_plan_name_axes(s->ground.efforts, keep, plan);
    if (s->ground.npins == 0 || j->kind != REFINE)
        return SF_OK;
    SF_TRY(sf_plan_add_pins(plan, s->ground.npins, s->ground.pins, s->diag));
    sf_plan_mark_pins(plan, &s->step_names);
    return SF_OK;
}

static sf_status collect_plan(search *s, job *j)
{
    const sf_priced *found = &j->found;
    if (found->breaks)
        s->broken = found->breaks;
    if (found->breaks || !is_worth_adding(s, found)) {
        sf_plan_free(found->plan);
        return SF_OK;
    }
    if (s->unused == 1 && found->fits)
        s->busy = fmin(s->busy, found->price.seconds);
    SF_TRY(finish_plan(s, j));
    add_candidate(s, j);
    keep_best(s, found);
    return SF_OK;
}

/* Running ---------------------------------------------------------------------------------------- */

static void say_progress(search *s)
{
    char text[96];
    if (!sf_is_heard(&s->options->audience) || atomic_load(&s->asked))
        return;
    snprintf(text, sizeof text, "%s: %zu of %zu", s->stage, s->first + atomic_load(&s->done),
             s->njobs);
    sf_event event = {.size = sizeof event, .kind = SF_EVENT_STAGE, .text = text};
    if (!sf_tell(&s->options->audience, &event))
        atomic_store(&s->asked, true);
}

static void work_on_job(void *context, int64_t i, int part)
{
    search *s = context;
    job *j = &s->jobs[s->first + (size_t)i];
    j->status = do_job(s, j);
    atomic_fetch_add(&s->done, 1);
    if (part == 0)
        say_progress(s);
}

static sf_status collect_jobs(search *s)
{
    for (size_t i = s->first; i < s->end; i++) {
        job *j = &s->jobs[i];
        if (j->kind == MAKE_SPACE)
            s->spaces[s->ground.nspaces++] = j->space;
        else if (j->status == SF_OK)
            SF_TRY(collect_plan(s, j));
    }
    rank_candidates(s);
    return SF_OK;
}

/* Whether the time is up and there is an answer. */
static bool is_enough(const search *s)
{
    return search_best_seconds(s) < HUGE_VAL && sf_ground_is_over(&s->ground);
}

sf_status search_run(search *s, const char *stage, bool must)
{
    s->stage = stage;
    if (s->options->spent)
        s->options->spent->jobs += (int)s->njobs;
    for (s->first = 0; s->first < s->njobs; s->first += MOST_JOBS) {
        if (!must && is_enough(s))
            return SF_OK;
        s->end = s->first + MOST_JOBS < s->njobs ? s->first + MOST_JOBS : s->njobs;
        atomic_store(&s->done, 0);
        sf_guarded_each(s->options->threads, (int64_t)(s->end - s->first), work_on_job, s);
        SF_TRY(collect_jobs(s));
    }
    return SF_OK;
}

void search_free(search *s)
{
    search_begin(s);
    for (int i = 0; i < SEARCH_MOST_SIZES; i++)
        sf_arena_free(&s->space_arenas[i]);
    for (size_t i = 0; i < s->nbest; i++)
        sf_plan_free(s->best[i].at.plan);
    sf_arena_free(&s->arena);
}
