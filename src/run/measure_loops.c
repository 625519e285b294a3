/* Sums of tensors, far and near, and arithmetic on tiles. */
#include <string.h>

#include "base/mem.h"
#include "run/curve_samples.h"
#include "run/vec/vec.h"

enum { SMALLEST_LOOP = 256, LARGEST_LOOP = 8 << 20, LOOPS = 8, TILE = 4096, REGISTERS = 12 };

typedef struct loop {
    const sf_vec *vec;
    sf_threads *threads;
    const float *a, *b;
    float *sum;
    int64_t first, count;
} loop;

static void add_tiles(void *context, int part, int64_t first, int64_t end)
{
    (void)part;
    const loop *l = context;
    _Alignas(64) float x[TILE], y[TILE];
    for (int64_t at = l->first + first; at < l->first + end; at += TILE) {
        int64_t count = l->first + end - at < TILE ? l->first + end - at : TILE;
        l->vec->loads[SF_F32](x, l->a + at, 1, count);
        l->vec->loads[SF_F32](y, l->b + at, 1, count);
        l->vec->ops[SF_VADD][SF_VF32](x, x, y, NULL, count);
        l->vec->stores[SF_F32](l->sum + at, 1, x, count);
    }
}

static sf_status add_all(void *context)
{
    loop *l = context;
    sf_threads_run(l->threads, l->count, sf_threads_grain(l->threads), add_tiles, l);
    return SF_OK;
}

/* As products, on the next operand. */
static sf_status run_loop(void *context)
{
    loop *l = context;
    l->first = l->first + 2 * l->count <= LARGEST_LOOP ? l->first + l->count : 0;
    return add_all(l);
}

sf_status sf_measure_loops(const sf_meter *meter, sf_curve *out)
{
    sf_series s = {.meter = meter, .expected = LOOPS};
    sf_arena scratch = {0};
    bool more = true;
    sf_status status = SF_OK;
    loop l = {.vec = sf_vec_get(), .threads = meter->threads};
    l.a = SF_ARRAY(&scratch, LARGEST_LOOP, float);
    l.b = SF_ARRAY(&scratch, LARGEST_LOOP, float);
    l.sum = SF_ARRAY(&scratch, LARGEST_LOOP, float);
    for (l.count = SMALLEST_LOOP; l.count <= LARGEST_LOOP && more && status == SF_OK; l.count *= 4)
        status =
            sf_series_measure(&s, 3.0 * sizeof(float) * (double)l.count, run_loop, &l, 4, &more);
    sf_arena_free(&scratch);
    if (status == SF_OK)
        *out = sf_series_fit(&s);
    return status;
}

/* The last is larger than caches are. */
enum { NEAREST = 64 << 10, PACES = 12 };

sf_status sf_measure_paces(const sf_meter *meter, sf_curve *out)
{
    const int64_t room = (int64_t)NEAREST << (PACES - 1), element = 3 * (int64_t)sizeof(float);
    double amounts[PACES], paces[PACES];
    float *memory = sf_alloc((size_t)room);
    memset(memory, 0, (size_t)room);
    sf_status status = SF_OK;
    for (int i = 0; i < PACES && status == SF_OK; i++) {
        int64_t bytes = (int64_t)NEAREST << i, count = bytes / element;
        loop l = {.vec = sf_vec_get(), .threads = meter->threads, .count = count};
        l.a = memory;
        l.b = memory + count;
        l.sum = memory + 2 * count;
        status = sf_measure(meter, meter->seconds / PACES, add_all, &l, &paces[i], NULL);
        amounts[i] = (double)bytes;
        paces[i] /= (double)(count * element);
    }
    sf_free(memory);
    if (status == SF_OK)
        *out = sf_curve_fit(PACES, amounts, paces, meter->arena);
    return status;
}

/* The arithmetic of a fused loop: tiles that together fill a near cache, but not the nearest, and
 * one op after the other on all of a tile. */
static void compute_tiles(void *context, int part, int64_t first, int64_t end)
{
    static const sf_vop ops[] = {SF_VMUL, SF_VADD, SF_VMUL, SF_VSUB,
                                 SF_VMUL, SF_VADD, SF_VMUL, SF_VDIV};
    const loop *l = context;
    float *registers = l->sum + (int64_t)part * REGISTERS * TILE;
    for (int64_t at = first; at < end; at++)
        l->vec->ops[ops[at % 8]][SF_VF32](registers + at % REGISTERS * TILE,
                                          registers + (at + 1) % REGISTERS * TILE,
                                          registers + (at + 2) % REGISTERS * TILE, NULL, TILE);
}

static sf_status run_compute(void *context)
{
    loop *l = context;
    sf_threads_run(l->threads, l->count, 1, compute_tiles, l);
    return SF_OK;
}

sf_status sf_measure_vector(const sf_meter *meter, double *out)
{
    enum { TIMES = 64 * REGISTERS };
    int threads = sf_threads_count(meter->threads);
    int64_t room = (int64_t)threads * REGISTERS * TILE;
    sf_arena scratch = {0};
    loop l = {.vec = sf_vec_get(), .threads = meter->threads, .count = (int64_t)threads * TIMES};
    double seconds;
    l.sum = SF_ARRAY(&scratch, room, float);
    for (int64_t i = 0; i < room; i++)
        l.sum[i] = 1;
    sf_status status = sf_measure(meter, meter->seconds / LOOPS, run_compute, &l, &seconds, NULL);
    if (status == SF_OK)
        *out = (double)(l.count * TILE) / seconds;
    sf_arena_free(&scratch);
    return status;
}
