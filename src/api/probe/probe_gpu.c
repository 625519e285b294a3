#include "api/probe/probe_gpu.h"

#include <math.h>

#include "api/probe/probe_attention.h"
#include "api/probe/probe_text.h"
#include "cluster/cost_model.h"

/* A step is run so often, at least, until its time is known. */
enum { RUNS = 8 };

/* Tensors of a step take so much, where there are several of them: more than caches hold. */
#define FAR 268435456.0

typedef struct series {
    const sf_probe *probe;
    int count;
    double amounts[SF_CURVE_POINTS], seconds[SF_CURVE_POINTS];
    double last; /* seconds of the last step */
} series;

static void keep_point(series *p, double amount, const sf_probed *probed)
{
    p->amounts[p->count] = amount;
    p->seconds[p->count++] = probed->seconds;
    p->last = probed->all;
}

/* Whether there is time for a step that takes `growth` times as long as the last. One point there must be. */
static bool has_time(const series *p, double growth)
{
    return p->count < SF_CURVE_POINTS &&
           (p->count < 1 || growth * p->last * RUNS < p->probe->meter->seconds);
}

static sf_curve fit_points(const series *p)
{
    return sf_curve_fit(p->count, p->amounts, p->seconds, p->probe->meter->arena);
}

static int copies_of(double bytes, int most)
{
    double fit = FAR / bytes;
    return fit < 2 ? 2 : fit > most ? most : (int)fit;
}

static sf_status probe_text(const sf_probe *probe, sf_buf text, int count, sf_probed *out)
{
    sf_status status = sf_probe_text(probe, &text, count, out);
    sf_buf_free(&text);
    return status;
}

/* Products */

typedef struct product_type {
    sf_math math;
    const char *name;
    sf_dtype dtype;
    sf_precision precision;
    bool every_depth;
} product_type;

static const product_type types[] = {{SF_MATH_F64, "f64", SF_F64, SF_PRECISION_F32, false},
                                     {SF_MATH_F32, "f32", SF_F32, SF_PRECISION_F32, true},
                                     {SF_MATH_TF32, "f32", SF_F32, SF_PRECISION_TF32, true},
                                     {SF_MATH_BF16, "bf16", SF_BF16, SF_PRECISION_F32, true},
                                     {SF_MATH_F16, "f16", SF_F16, SF_PRECISION_F32, false}};
enum { TYPES = sizeof types / sizeof *types };

/* Of square results. */
static sf_status measure_depth(const sf_probe *probe, const product_type *type, int64_t depth,
                               series *p)
{
    enum { SMALLEST = 32, LARGEST = 8192, MOST_COPIES = 8 };
    const double most = 1 << 27; /* elements of a matrix */
    *p = (series){.probe = probe};
    for (int64_t n = SMALLEST; n <= LARGEST && (double)n * (double)depth <= most; n *= 2) {
        double bytes = (double)(2 * n * depth + n * n) * (double)sf_dtype_get(type->dtype)->bytes;
        int copies = copies_of(bytes, MOST_COPIES);
        sf_probed probed;
        SF_TRY(
            probe_text(probe, sf_text_products(type->name, n, n, depth, copies), copies, &probed));
        keep_point(p, probed.flops, &probed);
        if (!has_time(p, 4))
            break;
    }
    return SF_OK;
}

static double best_rate(const series *p)
{
    double best = 0;
    for (int i = 0; i < p->count; i++)
        best = fmax(best, p->amounts[i] / p->seconds[i]);
    return best;
}

static sf_status measure_products(const sf_probe *probe, const product_type *type, bool is_rare,
                                  sf_depths *out, double *flops)
{
    static const int64_t all[] = {64, 256, 1024, 4096, 16384}, one[] = {1024};
    const int64_t *list = is_rare ? one : all;
    int count = is_rare ? 1 : (int)(sizeof all / sizeof *all);
    double *depths = SF_ARRAY(probe->meter->arena, count, double);
    sf_curve *curves = SF_ARRAY(probe->meter->arena, count, sf_curve);
    sf_probe with = *probe;
    double first = 0;
    with.precision = type->precision;
    *flops = 0;
    for (int i = 0; i < count; i++) {
        series p;
        if (i > 0 && first * (double)list[i] * RUNS > probe->meter->seconds)
            break;
        SF_TRY(measure_depth(&with, type, list[i], &p));
        first = p.seconds[0] / (double)list[i];
        depths[i] = (double)list[i];
        curves[i] = fit_points(&p);
        *flops = fmax(*flops, best_rate(&p));
        *out = (sf_depths){i + 1, depths, curves};
    }
    return SF_OK;
}

/* Memory */

static sf_status measure_sums(const sf_probe *probe, sf_curve *out)
{
    enum { SMALLEST = 1 << 10, LARGEST = 1 << 27, MOST_COPIES = 8 };
    series p = {.probe = probe};
    for (int64_t n = SMALLEST; n <= LARGEST; n *= 4) {
        int copies = copies_of(3.0 * sizeof(float) * (double)n, MOST_COPIES);
        sf_probed probed;
        SF_TRY(probe_text(probe, sf_text_sums(n, copies), 0, &probed));
        keep_point(&p, probed.bytes, &probed);
        if (!has_time(&p, 4))
            break;
    }
    *out = fit_points(&p);
    return SF_OK;
}

static sf_status measure_repeats(const sf_probe *probe, sf_curve *out)
{
    enum { COLUMNS = 768, SMALLEST = 8, LARGEST = 1 << 17, MOST_COPIES = 8 };
    series p = {.probe = probe};
    for (int64_t rows = SMALLEST; rows <= LARGEST; rows *= 8) {
        int copies = copies_of(3.0 * sizeof(float) * (double)(rows * COLUMNS), MOST_COPIES);
        sf_probed probed;
        SF_TRY(probe_text(probe, sf_text_repeats(rows, COLUMNS, copies), 0, &probed));
        keep_point(&p, probed.bytes, &probed);
        if (!has_time(&p, 8))
            break;
    }
    *out = fit_points(&p);
    return SF_OK;
}

static sf_status measure_moves(const sf_probe *probe, sf_curve *out)
{
    enum { SMALLEST = 32, LARGEST = 1 << 13 };
    series p = {.probe = probe};
    for (int64_t side = SMALLEST; side <= LARGEST; side *= 4) {
        sf_probed probed;
        SF_TRY(probe_text(probe, sf_text_border(side), 1, &probed));
        keep_point(&p, probed.bytes, &probed);
        if (!has_time(&p, 16))
            break;
    }
    *out = fit_points(&p);
    return SF_OK;
}

/* The same tensors repeatedly. */
static sf_status measure_paces(const sf_probe *probe, sf_curve *out)
{
    series p = {.probe = probe};
    for (int step = 0; step < SF_NEAR_STEPS; step++) {
        double bytes = sf_near_distance(step);
        sf_probed probed;
        SF_TRY(probe_text(probe, sf_text_sums((int64_t)bytes / 12, 1), 1, &probed));
        probed.seconds /= probed.bytes;
        keep_point(&p, bytes, &probed);
        if (!has_time(&p, 2))
            break;
    }
    *out = fit_points(&p);
    return SF_OK;
}

/* Passes: elements enough to keep all units busy, where there is time for them */

static int64_t element_count(const sf_probe *probe, double seconds)
{
    const double most = 1 << 24, least = 1 << 10;
    return (int64_t)fmin(most, fmax(least, probe->meter->seconds / RUNS / seconds));
}

/* Seconds for one op on an element, of a loop that has little else to do. */
static sf_status measure_chain(const sf_probe *probe, int64_t count, const char *one,
                               const char *other, int times, double *out)
{
    sf_probed probed;
    SF_TRY(probe_text(probe, sf_text_chain(count, one, other, times), 0, &probed));
    *out = probed.all / (2.0 * times * (double)count);
    return SF_OK;
}

/* Folds along a dimension that is not the last: long ones measure the time of an element, short
 * ones that of a row; and windows, by their size. */
static sf_status measure_transposed(const sf_probe *probe, int64_t count, sf_device_kind *kind)
{
    enum { CHANNELS = 128, IMAGES = 64, SHORT = 49, SIDE = 32 };
    int64_t rows = count / CHANNELS, images = rows >= SHORT * IMAGES ? IMAGES : 2;
    sf_probed probed;
    SF_TRY(probe_text(probe, sf_text_transposed(images, rows / images, CHANNELS), 0, &probed));
    kind->transposed = probed.folds > 0 ? probed.all / probed.folds : 0;
    images = rows > 2 * SHORT ? rows / SHORT : 2;
    SF_TRY(probe_text(probe, sf_text_transposed(images, SHORT, CHANNELS), 0, &probed));
    double rest = fmax(0, probed.all - kind->transposed * probed.folds);
    kind->transposed_run = probed.runs > 0 ? rest / probed.runs : 0;
    images = rows / (SIDE * SIDE);
    SF_TRY(probe_text(probe,
                      images > 0 ? sf_text_windows(images, SIDE, CHANNELS)
                                 : sf_text_windows(1, 2, CHANNELS),
                      0, &probed));
    kind->window = probed.flops > 0 ? probed.seconds / probed.flops : 0;
    return SF_OK;
}

static sf_status measure_passes(const sf_probe *probe, sf_device_kind *kind)
{
    enum { MANY = 40, SOME = 12, FEW = 6, LONG_ROW = 1024, SHORT_ROW = 8 };
    double light, rough;
    sf_probed probed;
    SF_TRY(measure_chain(probe, 1 << 10, "multiply", "add", MANY, &rough));
    int64_t count = element_count(probe, 2 * MANY * rough);
    SF_TRY(measure_chain(probe, count, "multiply", "add", MANY, &light));
    SF_TRY(measure_chain(probe, count, "divide", "sqrt", SOME, &kind->divide));
    SF_TRY(measure_chain(probe, count, "exponential", "tanh", FEW, &kind->function));
    kind->vector_flops = 1 / light;
    int64_t rows = count / LONG_ROW; /* at least one */
    SF_TRY(probe_text(probe, sf_text_folds(rows, LONG_ROW), 0, &probed));
    kind->fold = probed.all / (SF_TEXT_FOLDS * (double)(rows * LONG_ROW));
    rows = count / SHORT_ROW;
    SF_TRY(probe_text(probe, sf_text_folds(rows, SHORT_ROW), 0, &probed));
    kind->run =
        fmax(0, probed.all / (SF_TEXT_FOLDS * (double)rows) - kind->fold * (double)SHORT_ROW);
    int64_t side = (int64_t)sqrt((double)count);
    SF_TRY(probe_text(probe, sf_text_transpose(side), 1, &probed));
    kind->strided = probed.all / (double)(side * side);
    return measure_transposed(probe, count, kind);
}

/* Units */

static sf_status measure_convolutions(const sf_probe *probe, const product_type *type,
                                      sf_text_kind kind, sf_curve *out)
{
    static const sf_text_images sizes[] = {
        {1, 8, 16, 16},     {8, 16, 32, 32},    {16, 16, 64, 64},    {32, 32, 64, 64},
        {32, 32, 128, 128}, {64, 32, 256, 256}, {128, 32, 256, 256}, {128, 32, 512, 512}};
    series p = {.probe = probe};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        sf_probed probed;
        SF_TRY(probe_text(probe, sf_text_convolutions(type->name, &sizes[i], kind, 2), 2, &probed));
        keep_point(&p, probed.flops, &probed);
        if (!has_time(&p, 16))
            break;
    }
    *out = fit_points(&p);
    return SF_OK;
}

static sf_status measure_attention(const sf_probe *probe, const product_type *type, bool gradient,
                                   sf_curve *out)
{
    static const struct {
        int64_t batch, places, heads;
    } sizes[] = {{1, 64, 1}, {1, 128, 2}, {2, 256, 4}, {4, 512, 8}, {16, 1024, 8}, {16, 2048, 16}};
    series p = {.probe = probe};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        sf_attend_size size = {type->dtype, sizes[i].batch, sizes[i].places, sizes[i].heads, 64};
        sf_graph *graph = sf_attend_step(&size, gradient, 2);
        sf_probed probed;
        sf_status status = sf_probe_graph(probe, graph, 2, &probed);
        sf_graph_free(graph);
        SF_TRY(status);
        keep_point(&p, probed.flops, &probed);
        if (!has_time(&p, 16))
            break;
    }
    *out = fit_points(&p);
    return SF_OK;
}

/* Convolutions and attention of f32 are done as its products are. */
static sf_status measure_units(const sf_probe *probe, const product_type *type, sf_gpu *gpu)
{
    static const struct {
        sf_text_kind kind;
        sf_unit unit;
    } kinds[] = {{SF_TEXT_FORWARD, SF_UNIT_CONVOLUTION},
                 {SF_TEXT_SKIPPING, SF_UNIT_STRIDED},
                 {SF_TEXT_TRANSPOSED, SF_UNIT_TRANSPOSED},
                 {SF_TEXT_GRADIENT, SF_UNIT_KERNEL_GRADIENT},
                 {SF_TEXT_STRIDED, SF_UNIT_STRIDED_GRADIENT}};
    bool attends = type->math == SF_MATH_BF16 || type->math == SF_MATH_TF32;
    sf_probe with = *probe;
    with.precision = type->precision;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        SF_TRY(measure_convolutions(&with, type, kinds[i].kind,
                                    &gpu->units[kinds[i].unit][type->math]));
    if (!attends)
        return SF_OK;
    SF_TRY(measure_attention(&with, type, false, &gpu->units[SF_UNIT_ATTENTION][type->math]));
    return measure_attention(&with, type, true,
                             &gpu->units[SF_UNIT_ATTENTION_GRADIENT][type->math]);
}

static sf_status measure_types(const sf_probe *probe, sf_announce *announce, void *context,
                               sf_device_kind *kind, sf_gpu *gpu)
{
    bool has_tf32 =
        /* then texts with the highest precision need f32: products */
        probe->precision == SF_PRECISION_TF32;
    for (int i = 0; i < TYPES; i++) {
        const product_type *type = &types[i];
        if (type->math == SF_MATH_TF32 && !has_tf32)
            continue;
        SF_TRY(announce(context, sf_math_name(type->math)));
        bool is_rare = !type->every_depth || (type->math == SF_MATH_F32 && has_tf32);
        SF_TRY(measure_products(probe, type, is_rare, &gpu->products[type->math],
                                &kind->flops[type->math]));
        if (!is_rare)
            SF_TRY(measure_units(probe, type, gpu));
    }
    return SF_OK;
}

sf_status sf_measure_gpu(sf_probe *probe, sf_announce *announce, void *context,
                         sf_device_kind *kind)
{
    sf_gpu *gpu = SF_NEW(probe->meter->arena, sf_gpu);
    SF_TRY(announce(context, "steps"));
    SF_TRY(sf_measure_base(probe, &probe->base));
    SF_TRY(sf_measure_launch(probe, &kind->launch));
    SF_TRY(announce(context, "memory"));
    SF_TRY(measure_sums(probe, &kind->loops));
    SF_TRY(measure_paces(probe, &kind->paces));
    SF_TRY(measure_repeats(probe, &gpu->memory[SF_TOUCH_REPEATS]));
    SF_TRY(measure_moves(probe, &gpu->memory[SF_TOUCH_MOVES]));
    kind->launch = fmin(kind->launch, kind->loops.seconds[0]);
    kind->bandwidth =
        kind->loops.amounts[kind->loops.count - 1] / kind->loops.seconds[kind->loops.count - 1];
    SF_TRY(announce(context, "passes over elements"));
    SF_TRY(measure_passes(probe, kind));
    SF_TRY(measure_types(probe, announce, context, kind, gpu));
    kind->gpu = gpu;
    return SF_OK;
}
