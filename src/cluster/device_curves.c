#include "cluster/device_curves.h"

/* The least time, of a kernel without work, stays. */
static sf_curve scale_curve(const sf_curve *from, double factor, sf_arena *arena)
{
    sf_curve curve = {.count = from->count};
    double *seconds = SF_ARRAY(arena, from->count, double);
    for (int i = 0; i < from->count; i++)
        seconds[i] = from->seconds[0] + factor * (from->seconds[i] - from->seconds[0]);
    curve.amounts = sf_arena_copy(arena, from->amounts, (size_t)from->count * sizeof(double));
    curve.seconds = seconds;
    return curve;
}

static sf_depths scale_depths(const sf_depths *from, double factor, sf_arena *arena)
{
    sf_curve *curves = SF_ARRAY(arena, from->count, sf_curve);
    for (int i = 0; i < from->count; i++)
        curves[i] = scale_curve(&from->curves[i], factor, arena);
    return (sf_depths){from->count,
                       sf_arena_copy(arena, from->depths, (size_t)from->count * sizeof(double)),
                       curves};
}

/* Products of f16 are as fast as those of bf16, which were measured by shape. */
static sf_math measured_math(int math)
{
    return math == SF_MATH_F16 ? SF_MATH_BF16 : (sf_math)math;
}

static const sf_gpu *scale_gpu(const sf_gpu *from, const sf_device_kind *kind,
                               const sf_device_kind *h200, sf_arena *arena)
{
    sf_gpu *gpu = SF_NEW(arena, sf_gpu);
    for (int m = 0; m < SF_MATH_COUNT; m++) {
        sf_math math = measured_math(m);
        if (kind->flops[m] == 0)
            continue;
        double factor = h200->flops[m] / kind->flops[m];
        gpu->products[m] = scale_depths(&from->products[math], factor, arena);
        for (int u = 0; u < SF_UNIT_COUNT; u++)
            gpu->units[u][m] = scale_curve(&from->units[u][math], factor, arena);
    }
    for (int t = 0; t < SF_TOUCH_COUNT; t++)
        gpu->memory[t] = scale_curve(&from->memory[t], h200->bandwidth / kind->bandwidth, arena);
    return gpu;
}

static void add_curves(sf_device_kind *kind, const sf_device_kind *h200, const sf_device_kind *from,
                       sf_arena *arena)
{
    double vectors = h200->vector_flops / kind->vector_flops;
    kind->gpu = scale_gpu(from->gpu, kind, h200, arena);
    kind->loops = scale_curve(&from->loops, h200->bandwidth / kind->bandwidth, arena);
    kind->launch = from->launch;
    kind->ramp = from->ramp;
    kind->vector_flops = from->vector_flops / vectors;
    kind->divide = vectors * from->divide;
    kind->function = vectors * from->function;
    kind->fold = vectors * from->fold;
    kind->strided = vectors * from->strided;
    kind->transposed = vectors * from->transposed;
    kind->transposed_run = vectors * from->transposed_run;
    kind->window = vectors * from->window;
}

void sf_device_curves_add(sf_device_kind *kind, const sf_device_kind *h200, sf_arena *arena)
{
    sf_cluster *measured;
    sf_str text = {(const char *)sf_h200_curves.at, sf_h200_curves.length};
    if (sf_cluster_read(text, "h200.json", NULL, &measured) != SF_OK)
        return;
    add_curves(kind, h200, &measured->kinds[0], arena);
    sf_cluster_free(measured);
}
