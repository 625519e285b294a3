/* How fast matrix products and convolutions are.
 *
 *     gemm_bench [--threads N] [--blas LIBRARY] [--only bf16]
 *
 * GFLOP/s of sf_gemm_run with one thread and with N, and of cblas_sgemm of a library that is opened
 * for comparison (libopenblas.so.0, libblis.so.4, or a path), one thread. The best of several runs.
 * With one thread the time is that of the processor, so a busy machine disturbs it little.
 *
 * A second table compares, on one thread and in turns, products of f32 and of bf16: converted to float,
 * and with each set of 16-bit instructions that the processor has.
 */
#include <dlfcn.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/mem.h"
#include "run/conv/conv.h"
#include "run/gemm/gemm.h"
#include "run/gemm/gemm_kernel.h"

typedef void cblas(int order, int transpose_a, int transpose_b, int m, int n, int k, float alpha,
                   const float *a, int lda, const float *b, int ldb, float beta, float *c, int ldc);

static cblas *library;
static sf_threads *one, *many;

static double now(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void open_library(const char *name)
{
    void *handle = dlopen(name, RTLD_NOW | RTLD_GLOBAL);
    if (!handle) {
        fprintf(stderr, "gemm_bench: %s\n", dlerror());
        return;
    }
    void *found = dlsym(handle, "cblas_sgemm");
    memcpy(&library, &found, sizeof library);
    void (*set)(int);
    static const char *const setters[] = {"openblas_set_num_threads", "bli_thread_set_num_threads"};
    for (int i = 0; i < 2; i++)
        if ((found = dlsym(handle, setters[i]))) {
            memcpy(&set, &found, sizeof set);
            set(1);
        }
}

/* Something to measure. */
typedef struct job {
    const char *name;
    double flops;
    sf_gemm gemm;
    sf_conv_job conv;
    bool convolves;
} job;

static void run_job(const job *j, sf_threads *threads, bool by_library)
{
    const sf_gemm *g = &j->gemm;
    if (j->convolves) {
        sf_conv_run(&j->conv, threads);
    } else if (!by_library) {
        sf_gemm_run(g, threads);
    } else {
        for (int64_t b = 0; b < g->batches; b++)
            library(101, g->a.column == 1 ? 111 : 112, g->b.column == 1 ? 111 : 112, (int)g->m,
                    (int)g->n, (int)g->k, 1, (float *)g->a.data + b * g->a.batch,
                    (int)(g->a.column == 1 ? g->a.row : g->a.column),
                    (float *)g->b.data + b * g->b.batch,
                    (int)(g->b.column == 1 ? g->b.row : g->b.column), 0,
                    (float *)g->c.data + b * g->c.batch, (int)g->c.row);
    }
}

static double measure(const job *j, sf_threads *threads, bool by_library)
{
    clockid_t clock = threads == one ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC;
    int repeats = (int)(1e7 / j->flops) + 1;
    double best = 1e9, start = now(CLOCK_MONOTONIC);
    for (int run = 0; run < 3 || (now(CLOCK_MONOTONIC) - start < 0.3 && run < 200); run++) {
        double begin = now(clock);
        for (int i = 0; i < repeats; i++)
            run_job(j, threads, by_library);
        double seconds = (now(clock) - begin) / repeats;
        best = seconds < best ? seconds : best;
    }
    return j->flops / best * 1e-9;
}

static void report(const job *j)
{
    printf("%-34s %9.1f %9.1f", j->name, measure(j, one, false), measure(j, many, false));
    if (library && !j->convolves && j->gemm.a.dtype == SF_F32)
        printf(" %9.1f", measure(j, one, true));
    printf("\n");
    fflush(stdout);
}

static void *numbers(int64_t count, sf_dtype dtype)
{
    int64_t size = sf_dtype_get(dtype)->bytes;
    char *data = sf_alloc((size_t)(count * size));
    for (int64_t i = 0; i < count; i++)
        sf_store_f64(dtype, data, i, (double)(i % 31 - 15) / 16);
    return data;
}

/* A product: what is a transpose in memory is 't', else 'n'. */
typedef struct shape {
    int64_t batches, m, n, k;
    char a, b;
} shape;

/* Without scratch. */
static job new_gemm(sf_dtype dtype, shape s)
{
    job j = {.flops = 2 * (double)s.batches * (double)s.m * (double)s.n * (double)s.k};
    j.gemm = (sf_gemm){.batches = s.batches, .m = s.m, .n = s.n, .k = s.k};
    j.gemm.a = (sf_matrix){numbers(s.batches * s.m * s.k, dtype), dtype, s.m * s.k,
                           s.a == 'n' ? s.k : 1, s.a == 'n' ? 1 : s.m};
    j.gemm.b = (sf_matrix){numbers(s.batches * s.n * s.k, dtype), dtype, s.n * s.k,
                           s.b == 'n' ? s.n : 1, s.b == 'n' ? 1 : s.k};
    j.gemm.c = (sf_matrix){numbers(s.batches * s.m * s.n, dtype), dtype, s.m * s.n, s.n, 1};
    return j;
}

static void free_gemm(job *j)
{
    sf_free(j->gemm.a.data);
    sf_free(j->gemm.b.data);
    sf_free(j->gemm.c.data);
}

static void bench_gemm(sf_dtype dtype, shape s)
{
    char name[80];
    snprintf(name, sizeof name, "%s %c%c %" PRId64 "*(%" PRId64 "x%" PRId64 "x%" PRId64 ")",
             sf_dtype_get(dtype)->name, s.a, s.b, s.batches, s.m, s.n, s.k);
    job j = new_gemm(dtype, s);
    j.name = name;
    j.gemm.scratch = sf_alloc((size_t)sf_gemm_scratch(&j.gemm, sf_threads_count(many)));
    report(&j);
    sf_free(j.gemm.scratch);
    free_gemm(&j);
}

/* A layer on images: batch, height and width, input and output features, window, stride. */
typedef struct layer {
    int64_t batch, size, in, out, window, stride;
} layer;

static void set_space(sf_conv *c, int64_t lhs, int64_t out, int64_t window, int64_t stride,
                      int64_t dilation, int64_t base, int64_t low)
{
    for (int d = 0; d < 2; d++)
        c->space[d] = (sf_conv_dim){.lhs = lhs,
                                    .window = window,
                                    .out = out,
                                    .stride = stride,
                                    .low = low,
                                    .base = base,
                                    .dilation = dilation};
}

static void set_strides(sf_conv *c, int64_t lhs_pixel, int64_t lhs_row, int64_t rhs_pixel,
                        int64_t rhs_row, int64_t out_pixel, int64_t out_row)
{
    c->space[0].lhs_stride = lhs_row, c->space[1].lhs_stride = lhs_pixel;
    c->space[0].rhs_stride = rhs_row, c->space[1].rhs_stride = rhs_pixel;
    c->space[0].out_stride = out_row, c->space[1].out_stride = out_pixel;
}

/* kind: forward, gradient of the input, gradient of the kernel; as JAX writes them, features last. */
static job new_conv(sf_dtype dtype, layer l, char kind)
{
    int64_t after = (l.size - 1) / l.stride + 1, low = (l.window - 1) / 2;
    int64_t images = l.batch * l.size * l.size * l.in, maps = l.batch * after * after * l.out;
    int64_t kernel = l.window * l.window * l.in * l.out;
    job j = {.convolves = true};
    j.flops = 2 * (double)maps * (double)(l.window * l.window * l.in);
    sf_conv *c = &j.conv.g;
    *c = (sf_conv){.spatial = 2, .feature_groups = 1, .batch_groups = 1};
    c->lhs_dtype = c->rhs_dtype = c->out_dtype = dtype;
    void *x = numbers(images, dtype), *y = numbers(maps, dtype), *w = numbers(kernel, dtype);
    if (kind == 'f') {
        j.conv.lhs = x, j.conv.rhs = w, j.conv.out = y;
        c->batch = l.batch, c->channels = l.in, c->features = l.out;
        c->lhs_batch = l.size * l.size * l.in, c->lhs_feature = 1;
        c->rhs_input = l.out, c->rhs_output = 1;
        c->out_batch = after * after * l.out, c->out_feature = 1;
        set_space(c, l.size, after, l.window, l.stride, 1, 1, low);
        set_strides(c, l.in, l.in * l.size, l.in * l.out, l.in * l.out * l.window, l.out,
                    l.out * after);
    } else if (kind == 'i') {
        j.conv.lhs = y, j.conv.rhs = w, j.conv.out = x;
        c->batch = l.batch, c->channels = l.out, c->features = l.in;
        c->lhs_batch = after * after * l.out, c->lhs_feature = 1;
        c->rhs_input = 1, c->rhs_output = l.out;
        c->out_batch = l.size * l.size * l.in, c->out_feature = 1;
        set_space(c, after, l.size, l.window, 1, 1, l.stride, l.window - 1 - low);
        set_strides(c, l.out, l.out * after, l.in * l.out, l.in * l.out * l.window, l.in,
                    l.in * l.size);
        c->space[0].reversed = c->space[1].reversed = true;
    } else {
        j.conv.lhs = x, j.conv.rhs = y, j.conv.out = w;
        c->batch = l.in, c->channels = l.batch, c->features = l.out;
        c->lhs_batch = 1, c->lhs_feature = l.size * l.size * l.in;
        c->rhs_input = after * after * l.out, c->rhs_output = 1;
        c->out_batch = l.out, c->out_feature = 1;
        set_space(c, l.size, l.window, after, 1, l.stride, 1, low);
        set_strides(c, l.in, l.in * l.size, l.out, l.out * after, l.in * l.out,
                    l.in * l.out * l.window);
    }
    return j;
}

static void free_conv(job *j)
{
    sf_free((void *)(uintptr_t)j->conv.lhs);
    sf_free((void *)(uintptr_t)j->conv.rhs);
    sf_free(j->conv.out);
}

static void name_conv(layer l, char kind, char *name, size_t size)
{
    snprintf(name, size,
             "conv %c %" PRId64 "x%" PRId64 "^2x%" PRId64 "->%" PRId64 " w%" PRId64 " s%" PRId64,
             kind, l.batch, l.size, l.in, l.out, l.window, l.stride);
}

static void bench_conv(sf_dtype dtype, layer l, char kind)
{
    char name[80], full[96];
    name_conv(l, kind, name, sizeof name);
    snprintf(full, sizeof full, "%s %s", sf_dtype_get(dtype)->name, name);
    job j = new_conv(dtype, l, kind);
    j.name = full;
    j.conv.scratch = sf_alloc((size_t)sf_conv_scratch(&j.conv, sf_threads_count(many)));
    report(&j);
    sf_free(j.conv.scratch);
    free_conv(&j);
}

/* The sets of kernels for bf16: conversion to float, then 16-bit instructions. */
enum { MOST_SETS = 8 };
static const sf_gemm_set *narrow_sets[MOST_SETS];
static int nsets;

static void list_sets(void)
{
    const sf_gemm_set *set;
    while ((set = sf_gemm_set_nth(nsets++)) && set->bf16)
        ;
    for (int i = 0; i < nsets; i++)
        narrow_sets[i] = sf_gemm_set_nth(nsets - 1 - i);
}

static double measure_with(job *j, const sf_gemm_set *set)
{
    setenv("SHEAF_VEC", sf_isa_name(set->isa), 1);
    int64_t bytes = j->convolves ? sf_conv_scratch(&j->conv, 1) : sf_gemm_scratch(&j->gemm, 1);
    j->gemm.scratch = j->conv.scratch = sf_alloc((size_t)bytes);
    double speed = measure(j, one, false);
    sf_free(j->gemm.scratch);
    return speed;
}

/* `f32` and `bf16` are the same job in both types. */
static void report_narrow(job *f32, job *bf16, const char *name)
{
    double best[MOST_SETS + 1] = {0};
    for (int microbatch = 0; microbatch < 2; microbatch++)
        for (int i = 0; i <= nsets; i++) {
            double speed = i ? measure_with(bf16, narrow_sets[i - 1])
                             : measure_with(f32, narrow_sets[nsets - 1]);
            best[i] = speed > best[i] ? speed : best[i];
        }
    printf("%-34s", name);
    for (int i = 0; i <= nsets; i++)
        printf(" %11.1f", best[i]);
    printf(" %9.2f %9.2f\n", best[nsets] / best[1], best[nsets] / best[0]);
    fflush(stdout);
}

static void bench_narrow(void)
{
    static const shape shapes[] = {
        {1, 256, 256, 256, 'n', 'n'},    {1, 1024, 1024, 1024, 'n', 'n'},
        {1, 1024, 1024, 1024, 'n', 't'}, {1, 1024, 1024, 1024, 't', 'n'},
        {1, 2048, 4096, 1024, 'n', 'n'}, {1, 1023, 1023, 1023, 'n', 'n'},
        {64, 128, 128, 64, 'n', 't'},    {64, 64, 64, 64, 'n', 'n'},
        {256, 16, 16, 16, 'n', 'n'},     {1, 8, 1024, 1024, 'n', 'n'},
        {1, 1, 1024, 1024, 'n', 'n'},    {1, 1, 1024, 1024, 'n', 't'},
    };
    static const layer layers[] = {
        {32, 32, 3, 64, 3, 1}, {16, 32, 64, 64, 3, 1}, {16, 16, 128, 128, 3, 1}};
    char name[80];
    list_sets();
    printf("\n%-34s %11s", "GFLOP/s, 1 thread", "f32");
    for (int i = 0; i < nsets; i++)
        printf(" %11s", i ? sf_isa_name(narrow_sets[i]->isa) : "converted");
    printf(" %9s %9s\n", "/ conv.", "/ f32");
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        shape s = shapes[i];
        snprintf(name, sizeof name, "%c%c %" PRId64 "*(%" PRId64 "x%" PRId64 "x%" PRId64 ")", s.a,
                 s.b, s.batches, s.m, s.n, s.k);
        job f32 = new_gemm(SF_F32, s), bf16 = new_gemm(SF_BF16, s);
        report_narrow(&f32, &bf16, name);
        free_gemm(&f32);
        free_gemm(&bf16);
    }
    for (size_t i = 0; i < 3 * sizeof layers / sizeof *layers; i++) {
        name_conv(layers[i / 3], "fiw"[i % 3], name, sizeof name);
        job f32 = new_conv(SF_F32, layers[i / 3], "fiw"[i % 3]);
        job bf16 = new_conv(SF_BF16, layers[i / 3], "fiw"[i % 3]);
        report_narrow(&f32, &bf16, name);
        free_conv(&f32);
        free_conv(&bf16);
    }
}

static void bench_all(void)
{
    static const int64_t shapes[][4] = {
        {1, 256, 256, 256},    {1, 512, 512, 512},    {1, 1024, 1024, 1024}, {1, 2048, 2048, 2048},
        {1, 512, 1024, 256},   {1, 512, 256, 1024},   {1, 1024, 2048, 512},  {1, 2048, 1024, 1024},
        {1, 2048, 4096, 1024}, {1, 2048, 1024, 4096}, {64, 64, 64, 64},      {64, 128, 128, 64},
        {64, 128, 64, 128},    {256, 16, 16, 16},     {1, 1, 1024, 1024},    {1, 8, 1024, 1024},
        {1, 1023, 1023, 1023},
    };
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        bench_gemm(SF_F32,
                   (shape){shapes[i][0], shapes[i][1], shapes[i][2], shapes[i][3], 'n', 'n'});
    for (int i = 0; i < 3; i++) {
        bench_gemm(SF_F32, (shape){1, 1024, 1024, 1024, "ntt"[i], "tnt"[i]});
        bench_gemm(SF_F32, (shape){64, 64, 64, 64, "ntt"[i], "tnt"[i]});
    }
    for (int64_t size = 256; size <= 1024; size *= 2) {
        bench_gemm(SF_F64, (shape){1, size, size, size, 'n', 'n'});
        bench_gemm(SF_BF16, (shape){1, size, size, size, 'n', 'n'});
    }
    bench_gemm(SF_BF16, (shape){64, 64, 64, 64, 'n', 't'});
    static const layer layers[] = {
        {32, 32, 3, 64, 3, 1},    {16, 32, 64, 64, 3, 1},  {16, 32, 64, 128, 3, 2},
        {16, 16, 128, 128, 3, 1}, {16, 8, 256, 256, 3, 1}, {16, 16, 256, 256, 1, 1},
    };
    for (size_t i = 0; i < sizeof layers / sizeof *layers; i++)
        for (int kind = 0; kind < 3; kind++)
            bench_conv(SF_F32, layers[i], "fiw"[kind]);
    bench_conv(SF_BF16, layers[1], 'f');
}

int main(int argc, char **argv)
{
    int threads = 0;
    bool all = true;
    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--threads") == 0)
            threads = atoi(argv[i + 1]);
        else if (strcmp(argv[i], "--blas") == 0)
            open_library(argv[i + 1]);
        else if (strcmp(argv[i], "--only") == 0)
            all = false;
    }
    one = sf_threads_new(1);
    many = sf_threads_new(threads);
    if (!one || !many)
        return 1;
    printf("library: %s\n", sf_gemm_library());
    if (all) {
        printf("%-34s %9s %8dt %9s\n", "GFLOP/s", "1 thread", sf_threads_count(many),
               library ? "cblas" : "");
        bench_all();
    }
    bench_narrow();
    sf_threads_free(one);
    sf_threads_free(many);
    return 0;
}
