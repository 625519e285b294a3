#include "run/measure.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/machine.h"
#include "base/mem.h"
#include "run/curve_samples.h"
#include "run/gemm/gemm.h"

enum { MOST_SAMPLES = 25 };

/* A sample is at least this long, if the budget allows several: longer than a time slice of the
 * system, because ranks that share a processor each have only a part of it. */
#define SAMPLE 0.02

/* The largest of all ranks; when it returns, all have come. */
static sf_status agree_on_value(const sf_meter *meter, double *value)
{
    sf_transfer_part part = {.in = value, .out = value, .count = 1};
    sf_transfer transfer = {.kind = SF_ALL_REDUCE,
                            .dtype = SF_F64,
                            .monoid = SF_MONOID_MAX,
                            .nparts = 1,
                            .parts = &part,
                            .what = "a measurement"};
    return sf_comm_run(meter->world, &transfer, meter->diag);
}

static sf_status sample_calls(const sf_meter *meter, sf_measured_work *work, void *context,
                              int calls, double *out)
{
    double meet = 0;
    SF_TRY(agree_on_value(meter, &meet));
    double began = sf_now();
    for (int i = 0; i < calls; i++)
        SF_TRY(work(context));
    *out = (sf_now() - began) / calls;
    return SF_OK;
}

static int compare_seconds(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static int clamp_calls(double value, int least, int most)
{
    return value < least ? least : value > most ? most : (int)value;
}

/* A first call warms up, a second one says how often to call. */
sf_status sf_measure(const sf_meter *meter, double budget, sf_measured_work *work, void *context,
                     double *seconds, double *spent)
{
    double samples[MOST_SAMPLES], once;
    SF_TRY(work(context));
    SF_TRY(sample_calls(meter, work, context, 1, &once));
    SF_TRY(agree_on_value(meter, &once));
    double length =
        budget / (2 * SF_LEAST_SAMPLES) < SAMPLE ? budget / (2 * SF_LEAST_SAMPLES) : SAMPLE;
    int calls = clamp_calls(length / once, 1, 1 << 20);
    int count = clamp_calls(budget / (once * calls), SF_LEAST_SAMPLES, MOST_SAMPLES);
    for (int i = 0; i < count; i++)
        SF_TRY(sample_calls(meter, work, context, calls, &samples[i]));
    qsort(samples, (size_t)count, sizeof *samples, compare_seconds);
    double median = samples[count / 2];
    SF_TRY(agree_on_value(meter, &median));
    *seconds = median;
    if (spent)
        *spent = median * count * calls;
    return SF_OK;
}

sf_status sf_series_measure(sf_series *s, double amount, sf_measured_work *work, void *context,
                            double growth, bool *more)
{
    double seconds, spent;
    SF_TRY(sf_measure(s->meter, s->meter->seconds / s->expected, work, context, &seconds, &spent));
    sf_series_keep(s, amount, seconds, spent, growth, more);
    return SF_OK;
}

/* Products */

enum { SMALLEST_PRODUCT = 8, LARGEST_PRODUCT = 1024, PRODUCTS = 8 };
enum { ROOM = 4 << 20 }; /* elements of a matrix, and of those that alternate with it */

typedef struct product {
    sf_gemm gemm;
    sf_threads *threads;
    char *a, *b, *c;  /* `room` elements each */
    int64_t room, at; /* at: the first that were used last */
} product;

/* Each time on the next operand: in a step, an op's operands were written a while ago, and are in
 * no near cache. */
static sf_status measure_product(void *context)
{
    product *p = context;
    int64_t count = p->gemm.batches * p->gemm.m * p->gemm.m;
    int64_t bytes = sf_dtype_get(p->gemm.a.dtype)->bytes;
    p->at = p->at + 2 * count <= p->room ? p->at + count : 0;
    p->gemm.a.data = p->a + p->at * bytes;
    p->gemm.b.data = p->b + p->at * bytes;
    p->gemm.c.data = p->c + p->at * bytes;
    sf_gemm_run(&p->gemm, p->threads);
    return SF_OK;
}

static product new_product(const sf_meter *meter, sf_dtype dtype, int64_t room, sf_arena *scratch)
{
    size_t bytes = (size_t)room * (size_t)sf_dtype_get(dtype)->bytes;
    sf_matrix m = {.dtype = dtype, .column = 1};
    product p = {.threads = meter->threads, .room = room};
    p.gemm = (sf_gemm){.batches = 1, .a = m, .b = m, .c = m};
    p.a = sf_arena_alloc(scratch, bytes);
    p.b = sf_arena_alloc(scratch, bytes);
    p.c = sf_arena_alloc(scratch, bytes);
    memset(p.a, 0x3c, bytes); /* a normal number in each type */
    memset(p.b, 0x3c, bytes);
    memset(p.c, 0, bytes);
    return p;
}

/* So many matrices of n x n; sf_free(gemm.scratch). */
static void set_size(product *p, int64_t batches, int64_t n)
{
    sf_gemm *g = &p->gemm;
    g->batches = batches;
    g->m = g->n = g->k = g->a.row = g->b.row = g->c.row = n;
    g->a.batch = g->b.batch = g->c.batch = n * n;
    g->scratch = sf_alloc((size_t)sf_gemm_scratch(g, sf_threads_count(p->threads)) + 1);
}

/* Seconds of one of `batches` products, as long as these have room. */
static sf_status measure_batches(const sf_meter *meter, sf_dtype dtype, int64_t batches,
                                 sf_curve *out)
{
    sf_series s = {.meter = meter, .expected = PRODUCTS};
    sf_arena scratch = {0};
    product p = new_product(meter, dtype, ROOM, &scratch);
    bool more = true;
    sf_status status = SF_OK;
    for (int64_t n = SMALLEST_PRODUCT;
         n <= LARGEST_PRODUCT && batches * n * n <= ROOM && more && status == SF_OK; n *= 2) {
        double flops = 2.0 * (double)(n * n * n);
        set_size(&p, batches, n);
        status = sf_series_measure(&s, flops, measure_product, &p, 8, &more);
        sf_free(p.gemm.scratch);
    }
    sf_arena_free(&scratch);
    for (int i = 0; i < s.count; i++)
        s.seconds[i] /= (double)batches;
    if (status == SF_OK)
        *out = sf_series_fit(&s);
    return status;
}

sf_status sf_measure_products(const sf_meter *meter, sf_dtype dtype, sf_curve *out)
{
    return measure_batches(meter, dtype, 1, out);
}

sf_status sf_measure_batched(const sf_meter *meter, sf_dtype dtype, sf_curve *out)
{
    enum { ROUNDS = 4, MOST_BATCHES = 1 << 10 };
    int threads = sf_threads_count(meter->threads);
    *out = (sf_curve){0};
    if (threads == 1)
        return SF_OK;
    return measure_batches(meter, dtype, clamp_calls(ROUNDS * (double)threads, 1, MOST_BATCHES),
                           out);
}

/* Collectives */

enum { SMALLEST_COLLECTIVE = 1024, COLLECTIVES = 9 };

typedef struct exchange {
    const sf_meter *meter;
    sf_group *group;
    sf_transfer transfer;
    sf_transfer_part part;
    int calls;
} exchange;

static sf_status run_exchange(void *context)
{
    exchange *e = context;
    e->transfer.parts = &e->part;
    /* Who sends next must have received: else it would send all of them before anybody has one. */
    if (sf_collective_get(e->transfer.kind)->route == SF_ROUTE_CHAIN)
        e->transfer.from = e->calls++ % sf_comm_group_size(e->group);
    return sf_comm_run(e->group, &e->transfer, e->meter->diag);
}

static sf_transfer ring_transfer(const sf_group *group, sf_collective kind)
{
    int place = sf_comm_group_place(group), size = sf_comm_group_size(group);
    bool permutes = sf_collective_get(kind)->route == SF_ROUTE_PEER;
    return (sf_transfer){.kind = kind,
                         .dtype = SF_F32,
                         .monoid = SF_MONOID_ADD,
                         .to = permutes ? (place + 1) % size : 0,
                         .from = permutes ? (place + size - 1) % size : 0,
                         .nparts = 1,
                         .what = "a measured collective"};
}

/* Kernels and collectives, in alternation */

enum {
    ALTERNATION_PRODUCT = 128,
    ALTERNATION_ROOM = 16 * ALTERNATION_PRODUCT * ALTERNATION_PRODUCT
};
enum { LEAST_PAIRS = 5, MOST_PAIRS = 51 };
#define STRETCH                                                                                    \
    2e-3 /* seconds of kernels from one collective to the next: as in a step of training */

typedef struct alternation {
    int count;
    product product;
    double product_seconds;
    int64_t products; /* in each iteration */
    exchange exchange;
    bool beside; /* the collective goes on beside the products, else it comes after them */
} alternation;

static sf_status run_products(void *context)
{
    alternation *t = context;
    for (int64_t i = 0; i < t->count * t->products; i++)
        SF_TRY(measure_product(&t->product));
    return SF_OK;
}

static sf_status run_one(alternation *t)
{
    exchange *e = &t->exchange;
    sf_request *request;
    e->transfer.parts = &e->part;
    if (t->beside)
        SF_TRY(sf_comm_start(e->group, &e->transfer, e->meter->diag, &request));
    for (int64_t i = 0; i < t->products; i++)
        SF_TRY(measure_product(&t->product));
    return t->beside ? sf_comm_wait(request, e->meter->diag) : run_exchange(e);
}

static sf_status run_alternation(void *context)
{
    alternation *t = context;
    for (int i = 0; i < t->count; i++)
        SF_TRY(run_one(t));
    return SF_OK;
}

/* How much longer an iteration takes than its products alone. These are measured in pairs: a
 * machine that is faster at one time than at another is so for both. */
static sf_status measure_alternation(alternation *t, double budget, double *out, double *spent)
{
    const sf_meter *meter = t->exchange.meter;
    double differences[MOST_PAIRS];
    int count = 0;
    *spent = 0;
    while (count < LEAST_PAIRS || (count < MOST_PAIRS && *spent < budget)) {
        double alone, both;
        SF_TRY(sample_calls(meter, run_products, t, 1, &alone));
        SF_TRY(sample_calls(meter, run_alternation, t, 1, &both));
        differences[count++] = (both - alone) / t->count;
        *spent += alone + both;
        SF_TRY(agree_on_value(meter, spent));
    }
    qsort(differences, (size_t)count, sizeof *differences, compare_seconds);
    *out = differences[count / 2];
    return agree_on_value(meter, out);
}

static sf_status open_alternation(const sf_meter *meter, sf_group *group, sf_collective kind,
                                  int64_t largest, sf_arena *scratch, alternation *t)
{
    *t = (alternation){
        .product = new_product(meter, SF_F32, ALTERNATION_ROOM, scratch),
        .exchange = {.meter = meter, .group = group, .transfer = ring_transfer(group, kind)}};
    set_size(&t->product, 1, ALTERNATION_PRODUCT);
    t->exchange.part.in = sf_arena_alloc(scratch, (size_t)largest);
    t->exchange.part.out = sf_arena_alloc(scratch, (size_t)largest);
    return sf_measure(meter, meter->seconds / COLLECTIVES, measure_product, &t->product,
                      &t->product_seconds, NULL);
}

static void set_stretch(alternation *t, double seconds)
{
    t->products = clamp_calls(seconds / t->product_seconds, 1, 1 << 20);
}

/* If a collective is long, only its own time counts; if it is short, the alternation counts, too.
 * For ranks that share processors an iteration measures how long one waits for others to be
 * scheduled, and a step loses no time by that. Iterations stay within the budget: time spent on
 * small collectives is missing for the large ones, which dominate a step. */
static sf_status measure_exchange(alternation *t, double budget, double *seconds, double *spent)
{
    enum { LONG = 10, MOST_ALTERNATIONS = 8 };
    double in_turns, shortest = 2 * LEAST_PAIRS * STRETCH;
    SF_TRY(sf_measure(t->exchange.meter, budget / 2, run_exchange, &t->exchange, seconds, spent));
    if (*seconds > LONG * STRETCH || t->exchange.meter->sharing)
        return SF_OK;
    t->count = clamp_calls(budget / 2 / shortest, 1, MOST_ALTERNATIONS);
    set_stretch(t, fmin(STRETCH, budget / (4 * LEAST_PAIRS)));
    SF_TRY(measure_alternation(t, budget / 2, &in_turns, &budget));
    *spent += budget;
    *seconds = fmax(*seconds, in_turns);
    return SF_OK;
}

sf_status sf_measure_collective(const sf_meter *meter, sf_group *group, sf_collective kind,
                                int64_t largest, sf_curve *out)
{
    int size = sf_comm_group_size(group);
    const sf_collective_info *info = sf_collective_get(kind);
    int64_t blocks = info->in_blocks || info->out_blocks ? size : 1;
    sf_series s = {.meter = meter, .expected = COLLECTIVES};
    sf_arena scratch = {0};
    bool more = true;
    alternation t;
    sf_status status = open_alternation(meter, group, kind, largest, &scratch, &t);
    for (int64_t bytes = SMALLEST_COLLECTIVE; bytes <= largest && more && status == SF_OK;
         bytes *= 4) {
        sf_transfer_part *part = &t.exchange.part;
        double seconds, spent;
        part->count = bytes / (int64_t)sizeof(float) / blocks;
        double amount = (double)(part->count * blocks) * sizeof(float);
        if (part->count > 0)
            status = measure_exchange(&t, meter->seconds / COLLECTIVES, &seconds, &spent);
        if (part->count > 0 && status == SF_OK)
            sf_series_keep(&s, amount, seconds, spent, 4, &more);
    }
    sf_free(t.product.gemm.scratch);
    sf_arena_free(&scratch);
    if (status == SF_OK)
        *out = sf_series_fit(&s);
    return status;
}

enum { DRAG_BYTES = 4 << 20 };

sf_status sf_measure_drag(const sf_meter *meter, double *out)
{
    sf_arena scratch = {0};
    alternation t;
    double alone, more, spent;
    *out = 0;
    if (sf_comm_group_size(meter->world) == 1)
        return SF_OK;
    sf_status status =
        open_alternation(meter, meter->world, SF_ALL_REDUCE, DRAG_BYTES, &scratch, &t);
    t.exchange.part.count = DRAG_BYTES / (int64_t)sizeof(float);
    if (status == SF_OK)
        status = sf_measure(meter, meter->seconds, run_exchange, &t.exchange, &alone, NULL);
    if (status == SF_OK) {
        t.count = 1;
        t.beside = true;
        set_stretch(&t, 2 * alone);
        status = measure_alternation(&t, 8 * meter->seconds, &more, &spent);
    }
    if (status == SF_OK)
        *out = fmin(1, fmax(0, more / alone));
    sf_free(t.product.gemm.scratch);
    sf_arena_free(&scratch);
    return status;
}
