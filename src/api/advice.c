#include "api/advice.h"

#include <inttypes.h>
#include <stdio.h>

#include "plan/lives.h"

enum { MOST_TIMES = 64 };

const char *sf_bytes_text(int64_t bytes, char text[32])
{
    static const char *const units[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
    double value = (double)bytes;
    int unit = 0;
    for (; value >= 1024 && unit < 4; unit++)
        value /= 1024;
    snprintf(text, 32, "%.*f %s", unit > 0 && value < 100, value, units[unit]);
    return text;
}

/* The two kinds of which most is there at the peak. */
static void say_kinds(const sf_price *price, sf_buf *out)
{
    int first = 0, second = -1;
    char text[32];
    for (int k = 1; k < SF_MEMORY_KIND_COUNT; k++)
        if (price->by_kind[k] > price->by_kind[first])
            first = k;
    for (int k = 0; k < SF_MEMORY_KIND_COUNT; k++)
        if (k != first && (second < 0 || price->by_kind[k] > price->by_kind[second]))
            second = k;
    sf_buf_printf(out, "of it %s are %s", sf_bytes_text(price->by_kind[first], text),
                  sf_memory_kind_name((sf_memory_kind)first));
    sf_buf_printf(out, " and %s %s", sf_bytes_text(price->by_kind[second], text),
                  sf_memory_kind_name((sf_memory_kind)second));
}

/* The advice while it is written. */
typedef struct advisor {
    const sf_misfit *misfit;
    int devices; /* of the cluster */
    int most;    /* times as many devices: those that are known to do, or MOST_TIMES */
    int ways;    /* that were found */
    sf_buf *out;
} advisor;

/* Before each way out that there is. */
static void begin_way(advisor *a)
{
    sf_buf_printf(a->out, "%s ", a->ways++ == 0 ? "; it would fit" : ", or");
}

/* The least power of two that brings so many bytes below the limit; more than MOST_TIMES: none does. */
static int times_for(const advisor *a, int64_t bytes)
{
    int times = 1;
    while (times <= MOST_TIMES && bytes / times > a->misfit->limit)
        times *= 2;
    return times;
}

/* The cluster with so many times the nodes; false when that is too many. What is not counted is shared. */
static bool grow(const sf_cluster *cluster, int times, sf_arena *arena, sf_cluster *out)
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

/* Searches until something fits. */
static bool try_devices(advisor *a, const sf_cluster *cluster)
{
    sf_search_options options = *a->misfit->options;
    sf_found found;
    char text[32];
    options.cluster = cluster;
    options.mesh = NULL;
    options.memory = a->misfit->limit;
    options.level = 2;
    options.seconds = 1e-9;
    bool fits = sf_search_plans(a->misfit->graph, &options, NULL, &found) == SF_OK &&
                found.candidates[0].at.fits;
    if (fits) {
        const sf_candidate *c = &found.candidates[0];
        begin_way(a);
        sf_buf_printf(a->out, "on %d devices (%s on %s takes about %s)", cluster->ndevices, c->name,
                      c->mesh, sf_bytes_text(c->at.price.memory, text));
    }
    sf_found_free(&found);
    return fits;
}

static void say_devices(advisor *a)
{
    int first = times_for(a, a->misfit->smallest->at.price.memory);
    sf_arena arena = {0};
    sf_cluster cluster;
    first += first == 1; /* what a program takes beyond the price did not fit */
    for (int times = first; times <= 4 * first && times <= MOST_TIMES; times *= 4)
        if (grow(a->misfit->options->cluster, times, &arena, &cluster) &&
            try_devices(a, &cluster)) {
            a->most = times - 1;
            break;
        }
    sf_arena_free(&arena);
}

/* What is left of so many bytes on so many times the devices. */
static void say_left(advisor *a, int64_t bytes, int times)
{
    char text[32];
    if (times > 1)
        sf_buf_printf(a->out, " and %d devices, if all of it is cut further", a->devices * times);
    sf_buf_printf(a->out, " (about %s)", sf_bytes_text(bytes / times, text));
}

/* The size of the batch: the first dimension that all its tensors have; 0 where they differ. */
static int64_t batch_size(const sf_graph *graph)
{
    int64_t size = -1;
    for (uint32_t i = 0; i < graph->top->narguments; i++) {
        const sf_type *type = sf_type_of(graph, graph->top->arguments[i]);
        if (graph->arguments[i].role != SF_ROLE_BATCH || type->rank == 0)
            continue;
        size = size < 0 || size == type->dims[0] ? type->dims[0] : 0;
    }
    return size > 0 ? size : 0;
}

/* Half the batch, and so on: the fewest devices, and of those the largest batch. */
static void say_batch(advisor *a, const sf_relief *relief)
{
    int64_t size = batch_size(a->misfit->graph), best = 0;
    int fewest = a->most + 1;
    for (int64_t part = 2; part <= size && size % part == 0; part *= 2) {
        int times = times_for(a, relief->state + relief->batch / part);
        if (times < fewest) {
            fewest = times;
            best = part;
        }
    }
    if (best == 0)
        return;
    begin_way(a);
    sf_buf_printf(a->out, "with a batch of %" PRId64 " instead of %" PRId64, size / best, size);
    say_left(a, relief->state + relief->batch / best, fewest);
}

static void say_again(advisor *a, const sf_relief *relief)
{
    int times = times_for(a, relief->again);
    if (times > a->most)
        return;
    begin_way(a);
    sf_buf_printf(a->out, "with activations computed again in the backward pass");
    say_left(a, relief->again, times);
}

void sf_advise(const sf_misfit *misfit, sf_buf *out)
{
    sf_arena arena = {0};
    sf_relief relief;
    advisor a = {.misfit = misfit,
                 .devices = misfit->options->cluster->ndevices,
                 .most = MOST_TIMES,
                 .out = out};
    say_kinds(&misfit->smallest->at.price, out);
    say_devices(&a);
    if (sf_find_relief(sf_efforts_new(misfit->graph, &arena), misfit->smallest->at.plan, NULL,
                       &relief) == SF_OK) {
        say_batch(&a, &relief);
        say_again(&a, &relief);
    }
    if (a.ways == 0)
        sf_buf_printf(out,
                      "; not even %d devices, a smaller batch and computing activations again "
                      "would do",
                      MOST_TIMES * a.devices);
    sf_arena_free(&arena);
}
