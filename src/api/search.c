/* The search for a plan, and what a search cannot see: the memory that a rank really takes. */
#include "plan/search.h"

#include <inttypes.h>
#include <string.h>

#include "api/guard.h"
#include "base/mem.h"
#include "prog/check.h"
#include "prog/program.h"

enum { MOST_TRIES = 4, CHECKED_RANKS = 4 };

struct job {
    const sf_graph *graph;
    const sf_plan_options *options;
    sf_threads *threads;
    sf_diag *diag;
    int64_t limit;
    int64_t
        lowered; /* the least that a plan takes, of those that were lowered and did not fit; or 0 */
    sf_plan *plan;
};

static int64_t program_bytes(const sf_local *local)
{
    sf_program *program = sf_lower(local->graph);
    int64_t bytes = program->arena_bytes + program->state_bytes + program->constant_bytes;
    sf_program_free(program);
    return bytes;
}

/* Checks some ranks of a plan, and finds out what one takes. */
static sf_status check_plan(const struct job *job, const sf_plan *plan, int64_t *bytes)
{
    int ranks = sf_mesh_size(&plan->mesh), count = ranks < CHECKED_RANKS ? ranks : CHECKED_RANKS;
    sf_local *first;
    SF_TRY(sf_local_new(job->graph, plan, 0, job->diag, &first));
    sf_status status = sf_check_local(first, job->diag);
    for (int at = 1; at < count && status == SF_OK; at++) {
        sf_local *local;
        int rank = (int)((int64_t)at * (ranks - 1) / (count - 1));
        status = sf_local_new(job->graph, plan, rank, job->diag, &local);
        if (status != SF_OK)
            break;
        status = sf_check_local(local, job->diag);
        if (status == SF_OK)
            status = sf_check_match(first, local, job->diag);
        sf_local_free(local);
    }
    if (status == SF_OK)
        *bytes = program_bytes(first);
    sf_local_free(first);
    return status;
}

static const char *keep(sf_plan *plan, const char *text)
{
    return text ? sf_arena_string(&plan->arena, text, strlen(text)) : "";
}

/* Writes into the plan what is expected of it. */
static void predict(const struct job *job, const sf_found *found, const sf_candidate *chosen,
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
                        .nalternatives = (int)found->count};
    predicted->alternatives = SF_ARRAY(&plan->arena, found->count, sf_alternative);
    for (size_t i = 0; i < found->count; i++) {
        const sf_candidate *c = &found->candidates[i];
        predicted->alternatives[i] = (sf_alternative){.name = keep(plan, c->name),
                                                      .mesh = keep(plan, c->mesh),
                                                      .seconds = c->at.price.seconds,
                                                      .memory = c->at.price.memory,
                                                      .fits = c->at.fits};
    }
    plan->predicted = predicted;
}

/* Takes the best finalist that really fits. */
static sf_status choose(struct job *job, sf_found *found)
{
    for (size_t i = 0; i < found->count && i < SF_FINALISTS; i++) {
        sf_candidate *c = &found->candidates[i];
        int64_t bytes = 0;
        if (!c->at.fits)
            break;
        SF_TRY(check_plan(job, c->at.plan, &bytes));
        if (bytes <= job->limit) {
            predict(job, found, c, bytes);
            job->plan = c->at.plan;
            c->at.plan = NULL;
            return SF_OK;
        }
        if (job->lowered == 0 || bytes < job->lowered)
            job->lowered = bytes;
    }
    return SF_OK;
}

static const char *cure_for(const sf_price *price)
{
    double state = (double)(price->by_kind[SF_MEMORY_PARAM] + price->by_kind[SF_MEMORY_STATE] +
                            price->by_kind[SF_MEMORY_GRADIENT]);
    return state > 0.5 * (double)price->memory
               ? "most of it is parameters, gradients and optimizer state: more devices, or ones "
                 "with more memory, would make it fit"
               : "most of it is activations: a smaller batch, recomputing them in the backward "
                 "pass, or more devices would make it fit";
}

/* "1.5 GiB" */
static const char *bytes_text(int64_t bytes, char text[32])
{
    static const char *const units[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
    double value = (double)bytes;
    int unit = 0;
    for (; value >= 1024 && unit < 4; unit++)
        value /= 1024;
    snprintf(text, 32, "%.*f %s", unit > 0 && value < 100, value, units[unit]);
    return text;
}

static sf_status fail_memory(const struct job *job, const sf_found *found)
{
    const sf_candidate *smallest = &found->candidates[0];
    for (size_t i = 1; i < found->count; i++)
        if (found->candidates[i].at.price.memory < smallest->at.price.memory)
            smallest = &found->candidates[i];
    const sf_price *price = &smallest->at.price;
    const sf_node *node = job->graph->nodes[price->peak];
    int64_t least = job->lowered ? job->lowered : price->memory;
    char limit_text[32], least_text[32];
    sf_fail(
        job->diag, SF_EWRONG, node->loc,
        "no plan was found that fits in %s: the least that a rank takes is %s, by %s on %s, with "
        "its peak at %s in %s",
        bytes_text(job->limit, limit_text), bytes_text(least, least_text), smallest->name,
        smallest->mesh, node->def->name, *node->scope->path ? node->scope->path : "no scope");
    return sf_hint(job->diag, "%s", cure_for(price));
}

static sf_status search(struct job *job, const sf_mesh *mesh)
{
    const sf_plan_options *options = job->options;
    sf_search_options inner = {.cluster = options->cluster,
                               .mesh = mesh,
                               .npins = options->npins,
                               .pins = options->pins,
                               .memory = job->limit,
                               .level = options->level ? options->level : 3,
                               .seconds = options->seconds,
                               .recipes_only = options->recipes,
                               .threads = job->threads,
                               .progress = options->progress,
                               .context = options->context};
    for (int tries = 0;; tries++) {
        sf_found found;
        sf_status status = sf_search_plans(job->graph, &inner, job->diag, &found);
        if (status == SF_OK)
            status = choose(job, &found);
        bool fitted = found.count > 0 && found.candidates[0].at.fits;
        bool again = status == SF_OK && !job->plan && fitted && tries + 1 < MOST_TRIES;
        if (status == SF_OK && !job->plan && !again)
            status = fail_memory(job, &found);
        sf_found_free(&found);
        if (!again)
            return status;
        inner.memory =
            (int64_t)(0.99 * (double)inner.memory * (double)job->limit / (double)job->lowered);
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
        status = sf_mesh_parse(sf_str_of(text), &arena, job->diag, &mesh);
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
    if (options->npins > 0 && !options->mesh)
        return sf_fail(diag, SF_EUSAGE, SF_NOWHERE, "pins name axes, so they need a mesh");
    if (options->level != 0 && options->level != 2 && options->level != 3)
        return sf_fail(diag, SF_EUSAGE, SF_NOWHERE, "the level of a search is 2 or 3");
    SF_TRY(sf_open_threads(options->threads, diag, &job.threads));
    sf_status status = sf_guarded(work, &job, diag);
    sf_threads_free(job.threads);
    *out = status == SF_OK ? job.plan : NULL;
    return status;
}
