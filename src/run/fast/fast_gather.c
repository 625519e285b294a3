/* gather: a copy of a box for each point. */
#include "op/indexing.h"
#include "op/slots.h"
#include "run/fast/box.h"
#include "run/fast/fast_kernels.h"
#include "run/fast/index_points.h"

typedef struct gathering {
    sf_points points;
    sf_box window;
    int64_t width, elements; /* of the window */
    char *to;
    const char *from;
} gathering;

/* A dimension without a place in the result has one element in the window. */
static int64_t choose_gather(const sf_op *op)
{
    sf_indexing maps = sf_indexing_get(op, op->in[0], op->in[1]);
    sf_ints sizes = sf_op_ints(op, SF_GATHER_SIZES);
    for (int d = 0; d < op->in[0]->rank; d++)
        if (maps.window_of[d] < 0 && sizes.at[d] != 1)
            return SF_FAST_NONE;
    return 0;
}

/* Where the window begins in the operand, moved inside. */
static int64_t window_begin(const sf_points *points, const sf_point *point)
{
    int64_t at = point->operand;
    for (int c = 0; c < points->ncomponents; c++) {
        int64_t start = sf_points_read(points, point, c), last = points->components[c].last;
        start = start < 0 ? 0 : start > last ? last : start;
        at += start * points->components[c].stride;
    }
    return at;
}

static void gather_part(void *context, int part, int64_t first, int64_t end)
{
    (void)part;
    const gathering *g = context;
    sf_point point = sf_points_at(&g->points, first);
    for (int64_t i = first; i < end; i++) {
        sf_box_copy(&g->window, g->width, g->to + point.windowed * g->width,
                    g->from + window_begin(&g->points, &point) * g->width, 0, g->elements);
        sf_points_next(&g->points, &point);
    }
}

static void run_gather(const sf_op *op, int64_t variant, const sf_tensor *in, sf_tensor *out,
                       void *scratch, sf_threads *threads)
{
    (void)variant, (void)scratch;
    if (out->type->count == 0)
        return;
    sf_indexing maps = sf_indexing_get(op, op->in[0], op->in[1]);
    gathering g = {.points = sf_points_of(op, op->in[0], &in[1], out->type),
                   .width = sf_dtype_get(out->type->dtype)->bytes,
                   .to = out->data,
                   .from = in[0].data};
    int64_t to[SF_MAX_RANK], from[SF_MAX_RANK];
    sf_strides(out->type->rank, out->type->dims, to);
    sf_strides(op->in[0]->rank, op->in[0]->dims, from);
    for (int d = 0; d < op->in[0]->rank; d++) {
        int p = maps.window_of[d], at = g.window.rank;
        if (p < 0)
            continue;
        g.window.dims[at] = out->type->dims[p];
        g.window.to[at] = to[p];
        g.window.from[at] = from[d];
        g.window.rank++;
    }
    sf_box_simplify(&g.window);
    g.elements = sf_box_count(&g.window);
    if (g.points.count >= 2 * sf_threads_count(threads)) {
        sf_threads_run(threads, g.points.count, 1 + sf_threads_grain(threads) / (4 * g.elements),
                       gather_part, &g);
        return;
    }
    sf_point point = sf_points_at(&g.points, 0);
    for (int64_t i = 0; i < g.points.count; i++) {
        sf_box_run(g.window, g.width, g.to + point.windowed * g.width,
                   g.from + window_begin(&g.points, &point) * g.width, threads);
        sf_points_next(&g.points, &point);
    }
}

const sf_fast sf_fast_gather = {.choose = choose_gather, .run = run_gather};
