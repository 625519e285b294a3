/* The search for a plan, and what a search cannot see: the memory that a rank really takes. */
#include "search/search.h"

#include <inttypes.h>
#include <string.h>

#include "api/advice.h"
#include "api/guard.h"
#include "api/lowered.h"
#include "base/file.h"
#include "base/mem.h"
#include "local/check.h"

enum { MOST_TRIES = 4, CHECKED_RANKS = 4 };

struct job {
    const sf_graph *graph;
    const sf_plan_options *options;
    sf_threads *threads;
    sf_diag *diag;
    int64_t limit;
    int64_t
        lowered; /* the least that a plan takes, of those that were lowered and did not fit; or 0 */
    sf_plan *plan; /* the fastest so far that fits, or NULL */
};

/* A rank that is checked beside the first. */
typedef struct other_rank {
    const struct job *job;
    const sf_plan *plan;
    const sf_local *first;
    int rank;
    sf_diag *diag; /* or NULL */
    sf_status status;
} other_rank;

static sf_status check_rank(void *context)
{
    const other_rank *other = context;
    sf_local *local;
    SF_TRY(sf_local_new(other->job->graph, other->plan, other->rank, other->diag, &local));
    sf_status status = sf_check_local(local, other->diag);
    if (status == SF_OK)
        status = sf_check_match(other->first, local, other->diag);
    sf_local_free(local);
    return status;
}

static void check_some(void *context, int part, int64_t first, int64_t end)
{
    (void)part;
    for (int64_t i = first; i < end; i++) {
        other_rank *other = (other_rank *)context + i;
        other->status = sf_guarded(check_rank, other, NULL);
    }
}

/* Ranks from the second to the last, at equal distances, on all threads. What is wrong is said of the first that
 * has a fault, which is checked again for that. */
static sf_status check_others(const struct job *job, const sf_plan *plan, const sf_local *first)
{
    int ranks = sf_mesh_size(&plan->mesh), count = ranks < CHECKED_RANKS ? ranks : CHECKED_RANKS;
    other_rank others[CHECKED_RANKS];
    for (int i = 0; i < count - 1; i++)
        others[i] = (other_rank){.job = job,
                                 .plan = plan,
                                 .first = first,
                                 .rank = (int)((int64_t)(i + 1) * (ranks - 1) / (count - 1))};
    sf_threads_run(job->threads, count - 1, 1, check_some, others);
    for (int i = 0; i < count - 1; i++)
        if (others[i].status != SF_OK) {
            others[i].diag = job->diag;
            SF_TRY(check_rank(&others[i]));
        }
    return SF_OK;
}

/* Finds out what a rank takes, and checks some ranks of a plan that fits. */
static sf_status check_plan(const struct job *job, const sf_plan *plan, int64_t *bytes)
{
    sf_local *first;
    SF_TRY(sf_local_new(job->graph, plan, 0, job->diag, &first));
    sf_status status = sf_check_local(first, job->diag);
    if (status == SF_OK) {
        *bytes = sf_lowered_bytes(first);
        status = *bytes <= job->limit ? check_others(job, plan, first) : SF_OK;
    }
    sf_local_free(first);
    return status;
}

static const char *keep(sf_plan *plan, const char *text)
{
    return text ? sf_arena_string(&plan->arena, text, strlen(text)) : "";
}

/* Whether another candidate of the same name on the same mesh is better: searches that start differently end on
 * one mesh. One that fits is; else the earlier one is, they are sorted. */
static bool is_outdone(const sf_found_plans *found, size_t at)
{
    const sf_candidate *c = &found->candidates[at];
    for (size_t i = 0; i < found->count; i++) {
        const sf_candidate *other = &found->candidates[i];
        if (i != at && (other->at.fits != c->at.fits ? other->at.fits : i < at) &&
            strcmp(other->name, c->name) == 0 && strcmp(other->mesh, c->mesh) == 0)
            return true;
    }
    return false;
}

/* Writes into the plan what is expected of it. */
static void predict(const struct job *job, const sf_found_plans *found, const sf_candidate *chosen,
                    int64_t memory)
{
    sf_plan *plan = chosen->at.plan;
    const sf_price *price = &chosen->at.price;
    sf_prediction *predicted = SF_NEW(&plan->arena, sf_prediction);
    *predicted =
        (sf_prediction){.step = keep(plan, job->options->step_file),
                        .cluster = keep(plan, job->options->cluster_name),
                        .cluster_hash = sf_cluster_hash(job->options->cluster),
                        .seconds = price->seconds,
                        .compute = price->compute,
                        .exposed = price->exposed,
                        .hidden = price->hidden,
                        .traffic = price->traffic,
                        .bound = found->bound < price->seconds ? found->bound : price->seconds,
                        .memory = memory,
                        .limit = job->limit,
                        .margin = job->options->margin};
    predicted->alternatives = SF_ARRAY(&plan->arena, found->count, sf_alternative);
    for (size_t i = 0; i < found->count; i++) {
        const sf_candidate *c = &found->candidates[i];
        if (is_outdone(found, i))
            continue;
        predicted->alternatives[predicted->nalternatives++] =
            (sf_alternative){.name = keep(plan, c->name),
                             .mesh = keep(plan, c->mesh),
                             .seconds = c->at.price.seconds,
                             .memory = c->at.price.memory,
                             .fits = c->at.fits};
    }
    plan->predicted = predicted;
}

/* The plan of the candidate, which fits, becomes the answer if it is the fastest so far. */
static void take(struct job *job, const sf_found_plans *found, sf_candidate *c, int64_t bytes)
{
    if (job->plan && job->plan->predicted->seconds <= c->at.price.seconds)
        return;
    predict(job, found, c, bytes);
    sf_plan_free(job->plan);
    job->plan = c->at.plan;
    c->at.plan = NULL;
}

static double ranked_seconds(const sf_candidate *c)
{
    return c->handicap * c->at.price.seconds;
}

/* Lowers the candidate: *out is it where it really fits, and *bytes what it takes. */
static sf_status try_candidate(struct job *job, sf_candidate *c, sf_candidate **out, int64_t *bytes)
{
    int64_t taken = 0;
    SF_TRY(check_plan(job, c->at.plan, &taken));
    c->at.fits = taken <= job->limit;
    if (!c->at.fits) {
        job->lowered = job->lowered == 0 || taken < job->lowered ? taken : job->lowered;
        return SF_OK;
    }
    *out = c;
    *bytes = taken;
    return SF_OK;
}

/* Finds the best finalist that really fits: *out, or NULL, and what it takes. First of those that fit by their
 * prices, or of all where none does; then those that would be faster. */
static sf_status choose(struct job *job, sf_found_plans *found, sf_candidate **out, int64_t *bytes)
{
    bool fits = found->candidates[0].at.fits;
    size_t at = 0;
    *out = NULL;
    for (; at < found->count && at < SF_FINALISTS && !*out; at++) {
        if (found->candidates[at].at.fits != fits)
            break;
        SF_TRY(try_candidate(job, &found->candidates[at], out, bytes));
    }
    for (; at < found->count; at++) {
        sf_candidate *c = &found->candidates[at];
        if (c->at.plan && !c->at.fits && (!*out || ranked_seconds(c) < ranked_seconds(*out)))
            SF_TRY(try_candidate(job, c, out, bytes));
    }
    return SF_OK;
}

/* The finalist that takes the least when it is lowered, and what that is. */
static sf_status find_smallest(const struct job *job, const sf_found_plans *found,
                               const sf_candidate **out, int64_t *least)
{
    *out = NULL;
    for (size_t i = 0; i < found->count; i++) {
        const sf_candidate *c = &found->candidates[i];
        int64_t bytes;
        if (!c->at.plan)
            continue;
        SF_TRY(sf_plan_bytes(job->graph, c->at.plan, job->diag, &bytes));
        if (!*out || bytes < *least) {
            *out = c;
            *least = bytes;
        }
    }
    return SF_OK;
}

/* Says what would do: as a hint and, where that is asked for, as JSON. */
static sf_status advise(const struct job *job, const sf_misfit *misfit)
{
    sf_arena arena = {0};
    sf_advice advice;
    sf_buf text = {0}, json = {0};
    sf_advise(misfit, &arena, &advice);
    sf_advice_text(misfit, &advice, &text);
    sf_status status = sf_hint(job->diag, "%s", text.text);
    if (job->options->misfit) {
        sf_advice_json(misfit, &advice, &json);
        sf_status written = sf_file_write(job->options->misfit, json.text, json.length, job->diag);
        status = written == SF_OK ? status : written;
    }
    sf_buf_free(&text);
    sf_buf_free(&json);
    sf_arena_free(&arena);
    return status;
}

static sf_status fail_memory(const struct job *job, const sf_search_options *options,
                             const sf_found_plans *found)
{
    sf_misfit misfit = {.graph = job->graph, .options = options, .limit = job->limit};
    SF_TRY(find_smallest(job, found, &misfit.smallest, &misfit.least));
    const sf_candidate *smallest = misfit.smallest;
    const sf_node *node = job->graph->nodes[smallest->at.price.peak];
    char limit_text[32], least_text[32];
    sf_fail(
        job->diag, SF_EWRONG, node->loc,
        "no plan was found that fits in %s: the least that a rank takes is %s, by %s on %s, with "
        "its peak at %s in %s",
        sf_bytes_text(job->limit, limit_text), sf_bytes_text(misfit.least, least_text),
        smallest->name, smallest->mesh, node->def->name,
        *node->scope->path ? node->scope->path : "no scope");
    return advise(job, &misfit);
}

/* Whether a search whose prices are held to `memory` instead of `held` may find what is faster than the one
 * that was taken: that one itself, or a faster one, fits by its price only now. */
static bool is_promising(const sf_found_plans *found, const sf_candidate *taken, int64_t held,
                         int64_t memory)
{
    for (size_t i = 0; i < found->count && memory > held; i++) {
        const sf_price *price = &found->candidates[i].at.price;
        if (price->memory > held && price->memory <= memory &&
            price->seconds <= taken->at.price.seconds)
            return true;
    }
    return false;
}

/* Takes the best of what was found. Prices were held to *memory, but what a rank takes when it is lowered is
 * another number. Where it is too much for all, or so much less that faster plans were left out, *again is
 * set and *memory becomes what the prices of the next search are to be held to. */
static sf_status judge(struct job *job, sf_found_plans *found, int64_t *memory, bool *again)
{
    bool fitted = found->candidates[0].at.fits;
    double held = (double)*memory, limit = (double)job->limit;
    sf_candidate *taken;
    int64_t bytes = 0;
    SF_TRY(choose(job, found, &taken, &bytes));
    if (!taken) {
        *again = fitted && !job->plan;
        *memory = *again ? (int64_t)(0.99 * held * limit / (double)job->lowered) : *memory;
        return SF_OK;
    }
    *memory = (int64_t)(0.99 * (double)taken->at.price.memory * limit / (double)bytes);
    *again = !job->plan && is_promising(found, taken, (int64_t)held, *memory);
    take(job, found, taken, bytes);
    return SF_OK;
}

static sf_status search(struct job *job, const sf_mesh *mesh)
{
    const sf_plan_options *options = job->options;
    sf_search_options inner = {.cluster = options->cluster,
                               .mesh = mesh,
                               .npins = options->npins,
                               .pins = options->pins,
                               .memory = job->limit,
                               .margin = options->margin,
                               .level = options->level ? options->level : 3,
                               .seconds = options->seconds,
                               .recipes_only = options->recipes,
                               .threads = job->threads,
                               .progress = options->progress,
                               .context = options->context};
    for (int tries = 1;; tries++) {
        sf_found_plans found;
        bool again = false;
        sf_status status = sf_search_plans(job->graph, &inner, job->diag, &found);
        if (status == SF_OK)
            status = judge(job, &found, &inner.memory, &again);
        again = again && tries < MOST_TRIES;
        if (status == SF_OK && !job->plan && !again)
            status = fail_memory(job, &inner, &found);
        sf_found_plans_free(&found);
        if (!again)
            return status;
    }
}

static sf_status find_limit(struct job *job, sf_arena *arena)
{
    sf_costs *costs;
    int devices = job->options->cluster->ndevices;
    SF_TRY(sf_costs_new(job->options->cluster, 1, &devices, 0, arena, job->diag, &costs));
    job->limit = sf_costs_memory(costs);
    if (job->options->memory > 0)
        job->limit = job->options->memory;
    return SF_OK;
}

static sf_status work(void *context)
{
    struct job *job = context;
    const char *text = job->options->mesh;
    sf_arena arena = {0};
    sf_mesh mesh;
    sf_status status = find_limit(job, &arena);
    if (status == SF_OK && text)
        status =
            sf_mesh_parse(sf_str_of(text), &arena, job->diag, &mesh) == SF_OK ? SF_OK : SF_EUSAGE;
    if (status == SF_OK)
        status = search(job, text ? &mesh : NULL);
    sf_arena_free(&arena);
    return status;
}

sf_status sf_plan_search(const sf_graph *graph, const sf_plan_options *options, sf_diag *diag,
                         sf_plan **out)
{
    struct job job = {.graph = graph, .options = options, .diag = diag};
    *out = NULL;
    if (options->level != 0 && options->level != 2 && options->level != 3)
        return sf_fail(diag, SF_EUSAGE, SF_NOWHERE, "the level of a search is 2 or 3");
    SF_TRY(sf_open_threads(options->threads, diag, &job.threads));
    sf_status status = sf_guarded(work, &job, diag);
    sf_threads_free(job.threads);
    *out = status == SF_OK ? job.plan : NULL;
    return status;
}
