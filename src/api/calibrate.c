/* Measures the machine and makes a cluster of it, whose curves count instead of formulas. */
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "api/api_options.h"
#include "api/probe/probe_gpu.h"
#include "api/run_ranks.h"
#include "base/guard.h"
#include "base/listen.h"
#include "base/machine.h"
#include "cluster/cluster.h"
#include "run/comm/rank_agreement.h"
#include "run/cuda/cuda_device.h"
#include "run/gemm/gemm.h"
#include "run/measure.h"

enum { HOST_NAME = 256, DEFAULT_LARGEST = 64 << 20, LEAST_LARGEST = 4096 };

/* Seconds for each curve, once the listener wants to stop. */
#define HURRY 1e-3

struct job {
    sf_calibrate_options options;
    sf_cluster *cluster; /* of rank 0 */
};

struct rank {
    const sf_calibrate_options *options;
    sf_comm *comm;
    sf_diag *diag;
    sf_threads *threads;
    sf_meter meter;
    sf_arena scratch;
    sf_cluster *cluster;
    char host[HOST_NAME];
    int nodes, devices; /* hosts, and ranks on each */
    const char *engine;
    sf_precision precision;
};

static bool is_gpu(const struct rank *r)
{
    return strcmp(r->engine, "cuda") == 0;
}

static sf_status announce_curve(struct rank *r, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Reports the next measurement. If the listener stops, the remaining ones are shortened. */
static sf_status announce_curve(struct rank *r, const char *format, ...)
{
    char text[160];
    va_list args;
    bool stop;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    sf_event event = {
        .size = sizeof event, .kind = SF_EVENT_STAGE, .rank = sf_comm_rank(r->comm), .text = text};
    sf_audience audience = {r->options->listener, r->options->context, r->options->interrupt};
    stop = sf_comm_leads(r->comm) && !sf_tell(&audience, &event);
    SF_TRY(sf_agree_any(r->comm, SF_OK, "whether to stop", r->diag, &stop));
    if (stop)
        r->meter.seconds = fmin(r->meter.seconds, HURRY);
    return SF_OK;
}

static sf_status find_nodes(struct rank *r)
{
    int size = sf_comm_size(r->comm);
    if (gethostname(r->host, sizeof r->host - 1) != 0)
        strcpy(r->host, "host");
    r->nodes = 1;
    for (int i = 1; i < size; i++)
        r->nodes += !sf_comm_same_host(r->comm, i, i - 1);
    r->devices = size / r->nodes;
    for (int i = 0; i < size; i++)
        for (int j = 0; j < i; j++)
            if (sf_comm_same_host(r->comm, i, j) != (i / r->devices == j / r->devices))
                return sf_fail(r->diag, SF_EUSAGE, SF_NOWHERE,
                               "every host needs as many ranks, numbered one after the other");
    return SF_OK;
}

static sf_status open_world(struct rank *r)
{
    int size = sf_comm_size(r->comm), *ranks = SF_ARRAY(&r->scratch, size, int);
    for (int i = 0; i < size; i++)
        ranks[i] = i;
    r->cluster = sf_cluster_new();
    r->meter = (sf_meter){.comm = r->comm,
                          .threads = r->threads,
                          .arena = &r->cluster->arena,
                          .seconds = r->options->seconds,
                          .sharing = sf_ranks_share(sf_threads_count(r->threads), r->comm),
                          .diag = r->diag};
    return sf_comm_group(r->comm, ranks, size, r->diag, &r->meter.world);
}

static double best_rate(const sf_curve *curve)
{
    double best = 0;
    for (int i = 0; i < curve->count; i++) {
        double rate = curve->amounts[i] / curve->seconds[i];
        best = rate > best ? rate : best;
    }
    return best;
}

static double last_rate(const sf_curve *curve)
{
    return curve->amounts[curve->count - 1] / curve->seconds[curve->count - 1];
}

static sf_status measure_passes(struct rank *r, sf_device_kind *kind)
{
    sf_pass_costs costs;
    SF_TRY(sf_measure_passes(&r->meter, &costs));
    kind->divide = costs.divide;
    kind->function = costs.function;
    kind->fold = costs.fold;
    kind->strided = costs.strided;
    kind->run = costs.run;
    return SF_OK;
}

static sf_status measure_convolutions(struct rank *r, sf_device_kind *kind)
{
    sf_conv_costs costs;
    SF_TRY(sf_measure_convolutions(&r->meter, &costs));
    kind->convolutions = costs.curve;
    kind->pack = costs.pack;
    kind->pack_across = costs.pack_across;
    kind->pack_run = costs.pack_run;
    return SF_OK;
}

static sf_status announce_steps(void *context, const char *what)
{
    return announce_curve(context, "the GPU, %s", what);
}

static sf_probe probe_of(const struct rank *r, double share)
{
    return (sf_probe){
        .meter = &r->meter, .engine = r->engine, .precision = r->precision, .share = share};
}

/* Between the device and its host: a short copy measures the latency, a long one the bandwidth. All
 * ranks use the slowest. */
static sf_status measure_copies(struct rank *r, sf_device_kind *kind)
{
    enum { SHORT_COPY = 4 << 10, LONG_COPY = 64 << 20 };
    double seconds[2];
    SF_TRY(announce_curve(r, "copies to the host"));
    SF_TRY(sf_device_copy_seconds(SHORT_COPY, r->diag, &seconds[0]));
    SF_TRY(sf_device_copy_seconds(LONG_COPY, r->diag, &seconds[1]));
    sf_transfer_part part = {.in = seconds, .out = seconds, .count = 2};
    sf_transfer transfer = {.kind = SF_ALL_REDUCE,
                            .dtype = SF_F64,
                            .monoid = SF_MONOID_MAX,
                            .nparts = 1,
                            .parts = &part,
                            .what = "copies"};
    SF_TRY(sf_comm_run(r->meter.world, &transfer, r->diag));
    kind->host_latency = seconds[0];
    kind->host_bandwidth = (LONG_COPY - SHORT_COPY) / fmax(seconds[1] - seconds[0], 1e-9);
    return SF_OK;
}

static sf_status measure_gpu(struct rank *r, sf_device_kind *kind)
{
    enum { NUMBERS = 8 }; /* of a curve */
    sf_probe probe = probe_of(r, 1.0 / NUMBERS);
    SF_TRY(measure_copies(r, kind));
    return sf_measure_gpu(&probe, announce_steps, r, kind);
}

static sf_status measure_processor(struct rank *r, sf_device_kind *kind)
{
    static const struct {
        sf_math math;
        sf_dtype dtype;
    } types[] = {{SF_MATH_F64, SF_F64},
                 {SF_MATH_F32, SF_F32},
                 {SF_MATH_BF16, SF_BF16},
                 {SF_MATH_F16, SF_F16}};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        sf_curve *curve = &kind->products[types[i].math];
        SF_TRY(announce_curve(r, "products of %s", sf_math_name(types[i].math)));
        SF_TRY(sf_measure_products(&r->meter, types[i].dtype, curve));
        SF_TRY(sf_measure_batched(&r->meter, types[i].dtype, &kind->batched[types[i].math]));
        kind->flops[types[i].math] = best_rate(curve);
    }
    SF_TRY(announce_curve(r, "loops over elements"));
    SF_TRY(sf_measure_loops(&r->meter, &kind->loops));
    SF_TRY(sf_measure_paces(&r->meter, &kind->paces));
    SF_TRY(sf_measure_vector(&r->meter, &kind->vector_flops));
    kind->bandwidth = last_rate(&kind->loops);
    sf_probe probe = probe_of(r, 1.0 / 8);
    SF_TRY(sf_measure_launch(&probe, &kind->launch));
    SF_TRY(announce_curve(r, "passes over elements"));
    SF_TRY(measure_passes(r, kind));
    SF_TRY(announce_curve(r, "convolutions"));
    SF_TRY(measure_convolutions(r, kind));
    SF_TRY(announce_curve(r, "kernels beside collectives"));
    return sf_measure_drag(&r->meter, &kind->drag);
}

/* The same number on all ranks: the least memory that one of them has. */
static sf_status find_memory(struct rank *r, int64_t *out)
{
    int64_t bytes = 0;
    if (is_gpu(r))
        SF_TRY(sf_device_memory(r->diag, &bytes));
    if (bytes <= 0)
        bytes = sf_machine_memory();
    bytes /= r->devices;
    if (bytes <= 0)
        bytes = INT64_C(1) << 30;
    sf_transfer_part part = {.in = &bytes, .out = &bytes, .count = 1};
    sf_transfer transfer = {.kind = SF_ALL_REDUCE,
                            .dtype = SF_S64,
                            .monoid = SF_MONOID_MIN,
                            .nparts = 1,
                            .parts = &part,
                            .what = "memory"};
    SF_TRY(sf_comm_run(r->meter.world, &transfer, r->diag));
    *out = bytes;
    return SF_OK;
}

static sf_status make_device(struct rank *r)
{
    sf_cluster *cluster = r->cluster;
    sf_device_kind *kind = SF_NEW(&cluster->arena, sf_device_kind);
    cluster->kinds = kind;
    cluster->nkinds = 1;
    kind->name = is_gpu(r) ? "GPU" : "CPU";
    kind->is_gpu = is_gpu(r);
    kind->source = cluster->source;
    kind->product_share = kind->memory_share = 1;
    kind->threads = is_gpu(r) ? 0 : sf_threads_count(r->threads);
    SF_TRY(find_memory(r, &kind->memory));
    return is_gpu(r) ? measure_gpu(r, kind) : measure_processor(r, kind);
}

/* The group of `inside` neighbours on each of `across` neighbouring nodes to which this rank belongs. */
static sf_status find_group(struct rank *r, int inside, int across, sf_group **out)
{
    int rank = sf_comm_rank(r->comm), count = 0;
    int *ranks = SF_ARRAY(&r->scratch, inside * across, int);
    int node = rank / r->devices / across * across;
    int device = rank % r->devices / inside * inside;
    for (int n = 0; n < across; n++)
        for (int d = 0; d < inside; d++)
            ranks[count++] = (node + n) * r->devices + device + d;
    return sf_comm_group(r->comm, ranks, count, r->diag, out);
}

static sf_status measure_shape(struct rank *r, int inside, int across)
{
    sf_cluster *cluster = r->cluster;
    sf_group *group;
    SF_TRY(find_group(r, inside, across, &group));
    for (int k = 0; k < SF_COLLECTIVE_COUNT && cluster->nmeasured < SF_MAX_MEASURED; k++) {
        sf_measured *measured = &cluster->measured[cluster->nmeasured];
        *measured = (sf_measured){.kind = (sf_collective)k, .shape = {inside, across, 1}};
        SF_TRY(announce_curve(r, "%s in groups of %d on %d node%s",
                              sf_collective_name((sf_collective)k), inside, across,
                              across == 1 ? "" : "s"));
        SF_TRY(sf_measure_collective(&r->meter, group, (sf_collective)k, r->options->largest,
                                     &measured->curve));
        cluster->nmeasured++;
    }
    return SF_OK;
}

static sf_status measure_collectives(struct rank *r)
{
    r->cluster->measured = SF_ARRAY(&r->cluster->arena, SF_MAX_MEASURED, sf_measured);
    for (int across = 1; across <= r->nodes; across++)
        for (int inside = 1; inside <= r->devices; inside++)
            if (r->nodes % across == 0 && r->devices % inside == 0 && across * inside > 1)
                SF_TRY(measure_shape(r, inside, across));
    return SF_OK;
}

/* For groups of other shapes: a straight line through a permutation among all that the level joins, which
 * was measured with all of them at work, so that no lanes are left to be shared. */
static bool fit_link(const sf_cluster *cluster, int inside, int across, sf_link *out)
{
    for (int i = 0; i < cluster->nmeasured; i++) {
        const sf_measured *m = &cluster->measured[i];
        if (m->kind != SF_PERMUTE || m->shape[0] != inside || m->shape[1] != across)
            continue;
        const sf_curve *c = &m->curve;
        int last = c->count - 1;
        double seconds = c->seconds[last] - c->seconds[0];
        *out = (sf_link){.latency = c->seconds[0], .bandwidth = last_rate(c)};
        if (seconds > 0)
            out->bandwidth = (c->amounts[last] - c->amounts[0]) / seconds;
        return true;
    }
    return false;
}

/* A level that joins nothing is never used; it gets the values of memory. */
static sf_status make_nodes(struct rank *r)
{
    sf_cluster *cluster = r->cluster;
    const sf_device_kind *kind = &cluster->kinds[0];
    sf_link memory = {.latency = kind->launch, .bandwidth = kind->bandwidth};
    sf_nodes *run = SF_NEW(&cluster->arena, sf_nodes);
    *run =
        (sf_nodes){.count = r->nodes, .devices = r->devices, .inside = memory, .network = memory};
    fit_link(cluster, r->devices, 1, &run->inside);
    if (!fit_link(cluster, 1, r->nodes, &run->network))
        run->network = run->inside;
    cluster->nodes = run;
    cluster->nruns = 1;
    return sf_cluster_finish(cluster, SF_NOWHERE, r->diag);
}

static void name_cluster(struct rank *r)
{
    sf_cluster *cluster = r->cluster;
    const char *name = r->options->name ? r->options->name : r->host;
    char text[160];
    snprintf(text, sizeof text,
             "sheaf calibrate: %d rank%s by %s, %d thread%s each, products by %.60s",
             sf_comm_size(r->comm), sf_comm_size(r->comm) == 1 ? "" : "s", sf_comm_kind(r->comm),
             sf_threads_count(r->threads), sf_threads_count(r->threads) == 1 ? "" : "s",
             is_gpu(r) ? sf_device_name() : sf_gemm_library());
    cluster->source = sf_arena_string(&cluster->arena, text, strlen(text));
    cluster->name = sf_arena_string(&cluster->arena, name, strlen(name));
}

static sf_status measure_cluster(struct rank *r)
{
    SF_TRY(open_world(r));
    SF_TRY(find_nodes(r));
    name_cluster(r);
    SF_TRY(make_device(r));
    SF_TRY(measure_collectives(r));
    return make_nodes(r);
}

static sf_status measure_guarded(void *context)
{
    struct rank *r = context;
    sf_status status = measure_cluster(r);
    sf_arena_free(&r->scratch);
    if (status == SF_OK && sf_comm_rank(r->comm) == 0)
        return SF_OK;
    sf_cluster_free(r->cluster);
    r->cluster = NULL;
    return status;
}

static sf_status calibrate_rank(void *context, sf_comm *comm, sf_diag *diag)
{
    struct job *job = context;
    struct rank r = {.options = &job->options, .comm = comm, .diag = diag};
    SF_TRY(sf_engine_find(job->options.engine, diag, &r.engine));
    SF_TRY(sf_precision_find(job->options.precision, diag, &r.precision));
    SF_TRY(sf_threads_open(sf_rank_threads(job->options.threads, comm), diag, &r.threads));
    sf_status status = sf_guarded(measure_guarded, &r, diag);
    sf_threads_free(r.threads);
    if (status == SF_OK && r.cluster)
        job->cluster = r.cluster;
    return status;
}

static sf_status check_options(sf_calibrate_options *options, sf_diag *diag)
{
    int started = sf_comm_mpi_size();
    SF_CHECK_OPTIONS(diag, {"ranks", options->ranks}, {"threads", options->threads});
    if (started > 0 && options->ranks > 0 && options->ranks != started)
        return sf_fail(diag, SF_EUSAGE, SF_NOWHERE, "%d ranks are wanted, and mpirun started %d",
                       options->ranks, started);
    options->ranks = started > 0 ? started : options->ranks > 0 ? options->ranks : 1;
    if (options->ranks > SF_MAX_DEVICES)
        return sf_fail(diag, SF_EUSAGE, SF_NOWHERE, "a cluster has at most %d devices",
                       SF_MAX_DEVICES);
    const char *engine;
    sf_precision precision;
    SF_TRY(sf_engine_find(options->engine, diag, &engine));
    SF_TRY(sf_precision_find(options->precision, diag, &precision));
    if (!sf_engine_target(engine))
        return sf_fail(diag, SF_EUSAGE, SF_NOWHERE, "engine %s is not measured: cpu or cuda is",
                       engine);
    options->seconds = options->seconds > 0 ? options->seconds : 1;
    options->largest = options->largest > 0 ? options->largest : DEFAULT_LARGEST;
    if (options->largest < LEAST_LARGEST || options->largest < 4 * (int64_t)options->ranks)
        return sf_fail(diag, SF_EUSAGE, SF_NOWHERE,
                       "the largest collective has %d bytes or more, and 4 for each rank",
                       LEAST_LARGEST);
    return SF_OK;
}

sf_status sf_calibrate(const sf_calibrate_options *options, sf_diag *diag, sf_cluster **out)
{
    SF_CLEAR(out);
    SF_NEED(diag, out);
    struct job job = {0};
    SF_TRY(SF_TAKE(sf_calibrate_options, options, &job.options, diag));
    SF_TRY(check_options(&job.options, diag));
    sf_world world = {.ranks = job.options.ranks, .work = calibrate_rank, .context = &job};
    sf_status status = sf_world_run(&world, diag);
    if (status == SF_OK)
        *out = job.cluster;
    else
        sf_cluster_free(job.cluster);
    return status;
}
