#include "search/advice.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/units.h"
#include "local/rank.h"
#include "search/fit.h"

/* How many times the devices are thought of. */
enum { MOST_TIMES = 64 };

/* The advice while it is found. */
typedef struct advisor {
    const sf_misfit *misfit;
    int devices; /* of the cluster */
    int most;    /* times as many devices: those that are known to do, or MOST_TIMES */
    sf_arena *arena;
    sf_advice *out;
} advisor;

static void add_remedy(advisor *a, sf_remedy r)
{
    a->out->remedies[a->out->count++] = r;
}

/* What a rank takes on so many times the devices, of bytes that are shared among them: kernels work in as much on each. */
static int64_t bytes_on(const advisor *a, int64_t shared, int times)
{
    return shared / times + a->misfit->smallest->lowered.by_kind[SF_MEMORY_SCRATCH];
}

/* The least power of two that brings so many bytes below the limit; more than MOST_TIMES: none does. */
static int times_for(const advisor *a, int64_t shared)
{
    int times = 1;
    while (times <= MOST_TIMES &&
           !sf_rank_fits(bytes_on(a, shared, times), a->misfit->options->memory))
        times *= 2;
    return times;
}

/* The cluster with so many times the nodes; false when that is too many. What is not counted is shared. */
static bool grow_cluster(const sf_cluster *cluster, int times, sf_arena *arena, sf_cluster *out)
{
    *out = *cluster;
    out->nodes =
        sf_arena_copy(arena, cluster->nodes, (size_t)cluster->nruns * sizeof *cluster->nodes);
    if ((int64_t)times * cluster->ndevices > SF_MAX_DEVICES)
        return false;
    for (int r = 0; r < out->nruns; r++)
        out->nodes[r].count *= times;
    return sf_cluster_finish(out, SF_NOWHERE, NULL) == SF_OK;
}

/* The first finalist that fits, with micro-batches and recompute as they are asked for, or NULL, and what it takes. */
static const sf_candidate *find_fitting(const advisor *a, const sf_search_options *options,
                                        const sf_found_plans *found, int64_t *bytes)
{
    sf_fit_known known = {.worth = HUGE_VAL};
    for (size_t i = 0; i < found->count; i++) {
        const sf_candidate *c = &found->candidates[i];
        sf_group_runs runs = {0};
        sf_price price;
        sf_costs *costs;
        if (!c->at.plan ||
            sf_mesh_costs(options->cluster, &c->at.plan->mesh, a->arena, NULL, &costs) != SF_OK)
            continue;
        sf_status status = sf_fit_in_time(a->misfit->graph, options, costs, &known, c->at.plan,
                                          NULL, &price, &runs);
        sf_group_runs_free(&runs);
        if (status != SF_OK)
            continue;
        *bytes = price.memory;
        if (sf_rank_fits(*bytes, a->misfit->options->memory))
            return c;
    }
    return NULL;
}

/* Searches until something fits. */
static bool try_devices(advisor *a, const sf_cluster *cluster)
{
    sf_search_options options = *a->misfit->options;
    const sf_candidate *fitting = NULL;
    sf_found_plans found;
    int64_t bytes;
    options.cluster = cluster;
    options.mesh = NULL;
    options.level = 2;
    options.deadline = 1e-9; /* long past */
    if (sf_search_plans(a->misfit->graph, &options, NULL, &found) == SF_OK)
        fitting = find_fitting(a, &options, &found, &bytes);
    if (fitting)
        add_remedy(
            a, (sf_remedy){.kind = SF_MORE_DEVICES,
                           .devices = cluster->ndevices,
                           .name = sf_arena_string(a->arena, fitting->name, strlen(fitting->name)),
                           .mesh = sf_arena_string(a->arena, fitting->mesh, strlen(fitting->mesh)),
                           .memory = bytes});
    sf_found_plans_free(&found);
    return fitting;
}

static void find_devices(advisor *a)
{
    const sf_price *smallest = &a->misfit->smallest->lowered;
    int first = times_for(a, smallest->memory - smallest->by_kind[SF_MEMORY_SCRATCH]);
    sf_cluster cluster;
    for (int times = first; times <= 4 * first && times <= MOST_TIMES; times *= 2)
        if (grow_cluster(a->misfit->options->cluster, times, a->arena, &cluster) &&
            try_devices(a, &cluster)) {
            a->most = times - 1;
            break;
        }
}

/* The size of the batch: the first dimension that all its tensors have; 0 where they differ. */
static int64_t size_of_batch(const sf_graph *graph)
{
    int64_t size = -1;
    for (uint32_t i = 0; i < graph->top->narguments; i++) {
        const sf_type *type = sf_argument_type(graph, i);
        if (graph->arguments[i].role != SF_ROLE_BATCH || type->rank == 0)
            continue;
        size = size < 0 || size == type->dims[0] ? type->dims[0] : 0;
    }
    return size > 0 ? size : 0;
}

/* Half the batch, and so on: the fewest devices, and of those the largest batch. */
static void find_batch_dim(advisor *a, const sf_relief *relief)
{
    int64_t size = size_of_batch(a->misfit->graph), best = 0;
    int fewest = a->most + 1;
    for (int64_t part = 2; part <= size && size % part == 0; part *= 2) {
        int times = times_for(a, relief->state + relief->batch / part);
        if (times < fewest) {
            fewest = times;
            best = part;
        }
    }
    if (best > 0)
        add_remedy(
            a, (sf_remedy){.kind = SF_SMALLER_BATCH,
                           .devices = a->devices * fewest,
                           .batch = size / best,
                           .whole_batch = size,
                           .memory = bytes_on(a, relief->state + relief->batch / best, fewest)});
}

static void find_again(advisor *a, const sf_relief *relief)
{
    int times = times_for(a, relief->recomputed);
    if (times <= a->most)
        add_remedy(a, (sf_remedy){.kind = SF_COMPUTE_AGAIN,
                                  .devices = a->devices * times,
                                  .memory = bytes_on(a, relief->recomputed, times)});
}

void sf_advise(const sf_misfit *misfit, sf_arena *arena, sf_advice *out)
{
    sf_relief relief;
    int devices = misfit->options->cluster->ndevices;
    advisor a = {misfit, devices, MOST_TIMES, arena, out};
    *out = (sf_advice){.devices = devices, .most_devices = MOST_TIMES * devices};
    find_devices(&a);
    if (sf_find_relief(misfit->graph, misfit->smallest->at.plan, misfit->options->target, NULL,
                       &relief) == SF_OK) {
        find_batch_dim(&a, &relief);
        if (misfit->options->recompute) /* else it was tried */
            find_again(&a, &relief);
    }
}

/* Text ------------------------------------------------------------------------------------------- */

/* The two kinds of which most is there at the peak. */
static void say_kinds(const sf_price *price, sf_buf *out)
{
    int first = 0, second = -1;
    for (int k = 1; k < SF_MEMORY_KIND_COUNT; k++)
        if (price->by_kind[k] > price->by_kind[first])
            first = k;
    for (int k = 0; k < SF_MEMORY_KIND_COUNT; k++)
        if (k != first && (second < 0 || price->by_kind[k] > price->by_kind[second]))
            second = k;
    sf_buf_printf(out, "of it %s are %s", sf_text_bytes((double)price->by_kind[first]).at,
                  sf_memory_kind_name((sf_memory_kind)first));
    sf_buf_printf(out, " and %s %s", sf_text_bytes((double)price->by_kind[second]).at,
                  sf_memory_kind_name((sf_memory_kind)second));
}

static void say_remedy(const sf_advice *advice, const sf_remedy *r, sf_buf *out)
{
    sf_text memory = sf_text_bytes((double)r->memory);
    switch (r->kind) {
    case SF_MORE_DEVICES:
        sf_buf_printf(out, "on %d devices (%s on %s takes %s), perhaps on fewer", r->devices,
                      r->name, r->mesh, memory.at);
        return;
    case SF_SMALLER_BATCH:
        sf_buf_printf(out, "with a batch of %" PRId64 " instead of %" PRId64, r->batch,
                      r->whole_batch);
        break;
    case SF_COMPUTE_AGAIN:
        sf_buf_puts(out, "with recomputed activations");
        break;
    }
    if (r->devices > advice->devices)
        sf_buf_printf(out, " and %d devices, if all of it is cut further", r->devices);
    sf_buf_printf(out, " (about %s)", memory.at);
}

void sf_advice_text(const sf_misfit *misfit, const sf_advice *advice, sf_buf *out)
{
    say_kinds(&misfit->smallest->lowered, out);
    for (int i = 0; i < advice->count; i++) {
        sf_buf_printf(out, "%s ", i == 0 ? "; it would fit" : ", or");
        say_remedy(advice, &advice->remedies[i], out);
    }
    if (advice->count == 0)
        sf_buf_printf(out,
                      "; not even %d devices, a smaller batch and recomputing activations "
                      "would do",
                      advice->most_devices);
}

/* JSON ------------------------------------------------------------------------------------------- */

static void put_remedy(const sf_remedy *r, sf_json_writer *json)
{
    static const char *const kinds[] = {"devices", "batch", "recomputation"};
    sf_json_begin_object(json);
    sf_json_add_string(json, "by", kinds[r->kind]);
    sf_json_add_int(json, "devices", r->devices);
    if (r->kind == SF_MORE_DEVICES) {
        sf_json_add_string(json, "name", r->name);
        sf_json_add_string(json, "mesh", r->mesh);
    }
    if (r->kind == SF_SMALLER_BATCH) {
        sf_json_add_int(json, "batch", r->batch);
        sf_json_add_int(json, "whole_batch", r->whole_batch);
    }
    sf_json_add_int(json, "memory", r->memory);
    sf_json_end_object(json);
}

void sf_advice_json(const sf_misfit *misfit, const sf_advice *advice, sf_buf *out)
{
    const sf_price *price = &misfit->smallest->lowered;
    sf_json_writer json = {.buf = out, .indent = true};
    sf_json_begin_object(&json);
    sf_json_add_bool(&json, "fits", false);
    sf_json_add_int(&json, "memory_limit", misfit->options->memory);
    sf_json_add_int(&json, "memory", misfit->smallest->lowered.memory);
    sf_json_add_string(&json, "name", misfit->smallest->name);
    sf_json_add_string(&json, "mesh", misfit->smallest->mesh);
    sf_json_key(&json, "memory_by_kind");
    sf_json_begin_object(&json);
    for (int k = 0; k < SF_MEMORY_KIND_COUNT; k++)
        sf_json_add_int(&json, sf_memory_kind_name((sf_memory_kind)k), price->by_kind[k]);
    sf_json_end_object(&json);
    sf_json_key(&json, "peak");
    sf_json_begin_object(&json);
    sf_peak_put(&price->peak, &json);
    sf_json_end_object(&json);
    sf_json_key(&json, "would_fit");
    sf_json_begin_array(&json);
    for (int i = 0; i < advice->count; i++)
        put_remedy(&advice->remedies[i], &json);
    sf_json_end_array(&json);
    sf_json_end_object(&json);
    sf_buf_putc(out, '\n');
}
