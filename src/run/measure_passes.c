/* Passes over elements, and convolutions, as the CPU engine does them. */
#include <math.h>
#include <string.h>

#include "base/gemm_split.h"
#include "base/mem.h"
#include "run/conv/conv.h"
#include "run/cpu/run_loop.h"
#include "run/measure.h"
#include "run/vec/vec.h"

enum { SHARES = 8 }; /* a number gets such a part of the time of a curve */

/* Tiles */

enum { TILE = 4096, TILES = 4, TIMES = 64 };

/* Kernels on tiles that stay in a near cache: of each part, one that is read and one that is written. */
typedef struct tiles {
    sf_threads *threads;
    sf_vkernel *op; /* or */
    sf_vreduce *fold[2];
    float *memory;
} tiles;

static void pass_over(void *context, int part, int64_t first, int64_t end)
{
    const tiles *t = context;
    float *at = t->memory + (int64_t)part * 2 * TILES * TILE, sum = 0;
    for (int64_t i = first; i < end; i++) {
        const float *from = at + i % TILES * TILE;
        float *to = at + (TILES + i % TILES) * TILE;
        if (t->op)
            t->op(to, from, from, NULL, TILE);
        else
            t->fold[i % 2](&sum, from, TILE);
    }
}

static sf_status run_passes(void *context)
{
    tiles *t = context;
    sf_threads_run(t->threads, (int64_t)sf_threads_count(t->threads) * TIMES, TIMES, pass_over, t);
    return SF_OK;
}

/* Seconds for an element. */
static sf_status measure_tiles(const sf_meter *meter, tiles *t, double *out)
{
    double seconds;
    int64_t parts = sf_threads_count(meter->threads);
    SF_TRY(sf_measure(meter, meter->seconds / SHARES, run_passes, t, &seconds, NULL));
    *out = seconds / ((double)parts * TIMES * TILE);
    return SF_OK;
}

static sf_status measure_kernels(const sf_meter *meter, sf_pass_costs *out)
{
    const sf_vec *vec = sf_vec_get();
    int64_t room = (int64_t)sf_threads_count(meter->threads) * 2 * TILES * TILE;
    tiles t = {.threads = meter->threads, .memory = sf_alloc((size_t)room * sizeof(float))};
    double divide = 0, root = 0;
    for (int64_t i = 0; i < room; i++)
        t.memory[i] = 1;
    t.op = vec->ops[SF_VDIV][SF_VF32];
    sf_status status = measure_tiles(meter, &t, &divide);
    t.op = vec->ops[SF_VSQRT][SF_VF32];
    if (status == SF_OK)
        status = measure_tiles(meter, &t, &root);
    out->divide = (divide + root) / 2;
    t.op = vec->ops[SF_VEXP][SF_VF32];
    if (status == SF_OK)
        status = measure_tiles(meter, &t, &out->function);
    t.op = NULL;
    t.fold[0] = vec->folds[SF_VFOLD_SUM][SF_VF32];
    t.fold[1] = vec->folds[SF_VFOLD_MAX][SF_VF32];
    if (status == SF_OK)
        status = measure_tiles(meter, &t, &out->fold);
    sf_free(t.memory);
    return status;
}

/* Runs: a loop that copies rows, of a tensor that lies in memory in another order */

enum { COPIED = 1 << 18, SHORT_ROW = 8, GAP = 8 };

typedef struct copying {
    sf_threads *threads;
    sf_loop loop;
    sf_loop_step steps[2];
    sf_access accesses[2];
    bool is_wide[1];
    char *from, *to;
    void *scratch;
} copying;

static sf_status run_copying(void *context)
{
    copying *c = context;
    sf_loop_run(&c->loop, NULL, (sf_pointers){&c->from, &c->to}, c->scratch, c->threads);
    return SF_OK;
}

/* Seconds of a copy of rows x columns, with these distances where it is read. */
static sf_status measure_copy(const sf_meter *meter, int64_t columns, int64_t row, int64_t column,
                              double *out)
{
    int64_t rows = COPIED / columns;
    copying c = {.threads = meter->threads};
    c.steps[0] = (sf_loop_step){.kind = SF_STEP_LOAD, .class = SF_VF32, .dtype = SF_F32};
    c.steps[1] =
        (sf_loop_step){.kind = SF_STEP_STORE, .class = SF_VF32, .dtype = SF_F32, .access = 1};
    c.accesses[0] = (sf_access){.dtype = SF_F32, .strides = {row, column}};
    c.accesses[1] = (sf_access){.dtype = SF_F32, .strides = {columns, 1}};
    c.loop = (sf_loop){.rank = 2,
                       .split = 1,
                       .dims = {rows, columns},
                       .rows = rows,
                       .columns = columns,
                       .nsteps = 2,
                       .nregisters = 1,
                       .steps = c.steps,
                       .is_wide = c.is_wide,
                       .naccesses = 2,
                       .accesses = c.accesses};
    size_t room = (size_t)((rows - 1) * row + (columns - 1) * column + 1) * sizeof(float);
    c.from = sf_alloc(room);
    c.to = sf_alloc(COPIED * sizeof(float));
    c.scratch = sf_alloc((size_t)sf_loop_scratch(&c.loop, sf_threads_count(meter->threads)) + 1);
    memset(c.from, 0, room);
    sf_status status = sf_measure(meter, meter->seconds / SHARES, run_copying, &c, out, NULL);
    sf_free(c.scratch);
    sf_free(c.to);
    sf_free(c.from);
    return status;
}

/* Rows with gaps are a run each; a matrix that is read by columns has its elements apart. */
static sf_status measure_runs(const sf_meter *meter, sf_pass_costs *out)
{
    double plain, gaps, across;
    const int64_t side = 512;
    SF_TRY(measure_copy(meter, SHORT_ROW, SHORT_ROW, 1, &plain));
    SF_TRY(measure_copy(meter, SHORT_ROW, SHORT_ROW + GAP, 1, &gaps));
    SF_TRY(measure_copy(meter, COPIED / side, 1, side, &across));
    out->run = fmax(0, gaps - plain) / (COPIED / SHORT_ROW);
    out->strided = fmax(0, across - plain - (double)side * out->run) / COPIED;
    return SF_OK;
}

sf_status sf_measure_passes(const sf_meter *meter, sf_pass_costs *out)
{
    SF_TRY(measure_kernels(meter, out));
    return measure_runs(meter, out);
}

/* Convolutions */

enum { CONV_ROOM = 16 << 20 }; /* bytes of an operand, and of those that alternate with it */

typedef struct convolving {
    sf_conv_job job;
    sf_threads *threads;
    char *lhs, *rhs, *out; /* `copies` of each */
    int64_t lhs_bytes, rhs_bytes, out_bytes;
    int64_t copies, turn;
    bool gradient;
} convolving;

/* Each time on others: as products. */
static sf_status run_conv(void *context)
{
    convolving *c = context;
    char *lhs = c->lhs + c->turn * c->lhs_bytes, *rhs = c->rhs + c->turn * c->rhs_bytes;
    char *out = c->out + c->turn * c->out_bytes;
    c->turn = (c->turn + 1) % c->copies;
    c->job.lhs = lhs;
    c->job.rhs = c->gradient ? out : rhs;
    c->job.out = c->gradient ? rhs : out;
    sf_conv_run(&c->job, c->threads);
    return SF_OK;
}

/* A square window over square images, as large as they are, channels last. */
typedef struct images {
    int64_t count, side, channels, features, window;
} images;

static sf_conv conv_of(const images *i)
{
    sf_conv conv = {.spatial = 2,
                    .batch = i->count,
                    .channels = i->channels,
                    .features = i->features,
                    .feature_groups = 1,
                    .batch_groups = 1,
                    .lhs_dtype = SF_F32,
                    .rhs_dtype = SF_F32,
                    .out_dtype = SF_F32,
                    .lhs_batch = i->side * i->side * i->channels,
                    .lhs_feature = 1,
                    .rhs_input = i->features,
                    .rhs_output = 1,
                    .out_batch = i->side * i->side * i->features,
                    .out_feature = 1};
    for (int d = 0; d < 2; d++)
        conv.space[d] = (sf_conv_dim){.lhs = i->side,
                                      .window = i->window,
                                      .out = i->side,
                                      .stride = 1,
                                      .low = i->window / 2,
                                      .base = 1,
                                      .dilation = 1,
                                      .lhs_stride = (d ? 1 : i->side) * i->channels,
                                      .rhs_stride = (d ? 1 : i->window) * i->channels * i->features,
                                      .out_stride = (d ? 1 : i->side) * i->features};
    return conv;
}

/* The gradient of its kernel: images are its channels, and their gradients the windows. */
static sf_conv gradient_of(const images *i)
{
    sf_conv conv = conv_of(i);
    conv.batch = i->channels;
    conv.channels = i->count;
    conv.lhs_feature = conv.lhs_batch;
    conv.lhs_batch = 1;
    conv.rhs_input = conv.out_batch;
    conv.out_batch = i->features;
    for (int d = 0; d < 2; d++) {
        sf_conv_dim *dim = &conv.space[d];
        int64_t kernel = dim->rhs_stride;
        dim->window = i->side;
        dim->out = i->window;
        dim->rhs_stride = dim->out_stride;
        dim->out_stride = kernel;
    }
    return conv;
}

static char *new_operands(int64_t bytes, int64_t copies)
{
    char *memory = sf_alloc((size_t)(bytes * copies));
    memset(memory, 0x3c, (size_t)(bytes * copies)); /* a normal number */
    return memory;
}

static sf_status measure_images(const sf_meter *meter, const images *i, bool gradient,
                                double *seconds)
{
    const int64_t width = sizeof(float);
    int64_t places = i->count * i->side * i->side, seen = i->window * i->window * i->channels;
    convolving c = {.job = {.g = gradient ? gradient_of(i) : conv_of(i)},
                    .threads = meter->threads,
                    .lhs_bytes = places * i->channels * width,
                    .rhs_bytes = seen * i->features * width,
                    .out_bytes = places * i->features * width,
                    .gradient = gradient};
    int64_t largest = c.lhs_bytes > c.out_bytes ? c.lhs_bytes : c.out_bytes;
    c.copies = 1 + CONV_ROOM / (largest > c.rhs_bytes ? largest : c.rhs_bytes);
    c.lhs = new_operands(c.lhs_bytes, c.copies);
    c.rhs = new_operands(c.rhs_bytes, c.copies);
    c.out = new_operands(c.out_bytes, c.copies);
    c.job.scratch = sf_alloc((size_t)sf_conv_scratch(&c.job, sf_threads_count(meter->threads)) + 1);
    sf_status status = sf_measure(meter, meter->seconds / SHARES, run_conv, &c, seconds, NULL);
    sf_free(c.job.scratch);
    sf_free(c.out);
    sf_free(c.rhs);
    sf_free(c.lhs);
    return status;
}

static double windows_of(const images *i)
{
    return (double)(i->count * i->side * i->side * i->window * i->window * i->channels);
}

/* The elements of windows and kernel, as often as threads pack them. */
static double packed_by(const sf_meter *meter, const images *i)
{
    int64_t steps = i->window * i->window * i->channels;
    sf_cut cut = sf_cut_make(1, i->count * i->side * i->side, i->features, steps, SF_CUT_ROWS,
                             SF_CUT_COLUMNS, sf_threads_count(meter->threads));
    return windows_of(i) * (double)cut.columns + (double)(steps * i->features * cut.rows);
}

static double flops_of(const images *i)
{
    return 2 * windows_of(i) * (double)i->features;
}

/* The time that more features add is arithmetic; the remaining time of a convolution of few is
 * packing, in long runs if it has many channels and in short ones if it has few; gradients pack
 * across. */
static sf_status measure_packing(const sf_meter *meter, sf_conv_costs *out)
{
    static const images many = {1, 32, 64, 64, 3}, few = {1, 32, 64, 16, 3},
                        shallow = {1, 32, 3, 16, 7}, several = {4, 16, 64, 16, 3};
    double with_many, with_few, with_short, gradient;
    SF_TRY(measure_images(meter, &many, false, &with_many));
    SF_TRY(measure_images(meter, &few, false, &with_few));
    SF_TRY(measure_images(meter, &shallow, false, &with_short));
    SF_TRY(measure_images(meter, &several, true, &gradient));
    double flop = fmax(0, with_many - with_few) / (flops_of(&many) - flops_of(&few));
    double packing = fmax(0, with_few - flop * flops_of(&few));
    out->pack = packing / (packed_by(meter, &few) + windows_of(&few) / (double)few.channels);
    out->pack_across = fmax(0, gradient - flop * flops_of(&several)) / windows_of(&several);
    double rest = with_short - flop * flops_of(&shallow) - out->pack * packed_by(meter, &shallow);
    out->pack_run = fmax(0, rest) / (windows_of(&shallow) / (double)shallow.channels);
    return SF_OK;
}

sf_status sf_measure_convolutions(const sf_meter *meter, sf_conv_costs *out)
{
    static const images sizes[] = {{1, 8, 16, 16, 3},  {1, 8, 32, 32, 3},  {1, 8, 64, 64, 3},
                                   {1, 16, 64, 64, 3}, {1, 32, 64, 64, 3}, {4, 32, 64, 64, 3}};
    enum { SIZES = sizeof sizes / sizeof *sizes };
    double flops[SIZES], seconds[SIZES];
    SF_TRY(measure_packing(meter, out));
    for (int i = 0; i < SIZES; i++) {
        double all;
        SF_TRY(measure_images(meter, &sizes[i], false, &all));
        double packing = out->pack * packed_by(meter, &sizes[i]) +
                         out->pack_run * windows_of(&sizes[i]) / (double)sizes[i].channels;
        flops[i] = flops_of(&sizes[i]);
        seconds[i] = fmax(all - packing, all / 2);
    }
    out->curve = sf_curve_fit(SIZES, flops, seconds, meter->arena);
    return SF_OK;
}
