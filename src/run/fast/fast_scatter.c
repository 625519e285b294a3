/* scatter with a monoid, or one that overwrites. Of several operands, each has its own.
 *
 * The operand is cut along one dimension, and each thread has a range of it to itself: it copies
 * that range, and then walks through all points in order and applies the part of their windows
 * in it. So every element sees its updates in the order of the points, whatever the number of
 * threads. */
#include <string.h>

#include "op/indexing.h"
#include "op/node_builder.h"
#include "op/slots.h"
#include "op/util.h"
#include "run/fast/box.h"
#include "run/fast/fast_fold.h"
#include "run/fast/fast_kernels.h"
#include "run/fast/index_points.h"

typedef struct scattering {
    sf_points points;
    sf_box window;          /* to the operand, from the updates; a dimension per window dim */
    int cut;                /* dimension of the operand */
    int cut_window;         /* of the window, or -1 */
    int cut_component;      /* that moves the window along it, or -1 */
    int cut_point;          /* of the points, when batched, or -1 */
    bool overwrite, native; /* accumulators are in the result */
    sf_folding folding;
    const sf_type *type;        /* of the operand */
    int64_t outer, size, inner; /* its dimensions before, at and after the cut */
    const char *operand, *updates;
    char *out, *sums; /* sums: the accumulators */
    int64_t width, sum_width;
} scattering;

static int input_count(const sf_op *op)
{
    return (op->noperands - 1) / 2;
}

/* How operand i is combined: by the body as a whole, or by its result for the two values of operand
 * i, if that reads no others. */
static sf_monoid monoid_of_variant(const sf_op *op, int i)
{
    if (op->nregions == 0)
        return sf_op_monoid(op, SF_SCATTER_BODY);
    const sf_block *all = op->regions[0];
    sf_value pair[] = {all->arguments[i], all->arguments[input_count(op) + i]};
    sf_block own = {.narguments = 2, .nresults = 1, .arguments = pair, .results = &all->results[i]};
    return sf_monoid_of_block(op->graph, &own);
}

/* The variant is the monoids of the operands, four bits each, the first one lowest. */
enum { MONOID_BITS = 4, MOST_INPUTS = 15 };
_Static_assert(SF_MONOID_COUNT <= 1 << MONOID_BITS, "a monoid fits into its bits");

static int64_t choose_scatter(const sf_op *op)
{
    int64_t variant = 0;
    if (input_count(op) > MOST_INPUTS)
        return SF_FAST_NONE;
    for (int i = input_count(op) - 1; i >= 0; i--) {
        sf_monoid monoid = monoid_of_variant(op, i);
        bool is_sum = monoid != SF_MONOID_SECOND;
        if (monoid == SF_MONOID_NONE || (is_sum && sf_is_complex(op->in[i]->dtype)))
            return SF_FAST_NONE;
        variant = variant << MONOID_BITS | monoid;
    }
    return variant;
}

static sf_monoid monoid_in(int64_t variant, int i)
{
    return (sf_monoid)(variant >> i * MONOID_BITS & ((1 << MONOID_BITS) - 1));
}

static bool is_native(const sf_op *op, int64_t variant, int i)
{
    return monoid_in(variant, i) == SF_MONOID_SECOND || sf_dtype_get(op->in[i]->dtype)->bits >= 32;
}

static int64_t scatter_scratch(const sf_op *op, int64_t variant, int threads)
{
    (void)threads;
    int64_t bytes = 0;
    for (int i = 0; i < input_count(op); i++)
        bytes = is_native(op, variant, i) ? bytes : op->in[i]->count * 4;
    return bytes;
}

static void combine_box_row(const scattering *s, char *to, int64_t to_stride, const char *from,
                            int64_t from_stride, int64_t count)
{
    const sf_folding *f = &s->folding;
    sf_register a, b;
    if (count < 8) {
        for (int64_t i = 0; i < count; i++) {
            f->vec->loads[f->dtype](&b, from + i * from_stride * s->width, 1, 1);
            sf_folding_one(f, to + i * to_stride * s->sum_width, &b);
        }
        return;
    }
    for (int64_t at = 0; at < count; at += SF_FAST_REGISTER) {
        int64_t n = count - at < SF_FAST_REGISTER ? count - at : SF_FAST_REGISTER;
        char *sums = to + at * to_stride * s->sum_width;
        f->vec->loads[f->memory](&a, sums, to_stride, n);
        f->vec->loads[f->dtype](&b, from + at * from_stride * s->width, from_stride, n);
        f->combine(&a, &a, &b, NULL, n);
        f->vec->stores[f->memory](sums, to_stride, &a, n);
    }
}

/* Applies a simplified box. */
static void apply_box(const scattering *s, const sf_box *box, int64_t to, int64_t from)
{
    char *sums = s->sums + to * s->sum_width;
    const char *updates = s->updates + from * s->width;
    if (s->overwrite) {
        sf_box_copy(box, s->width, sums, updates, 0, sf_box_count(box));
        return;
    }
    if (box->rank == 0) {
        combine_box_row(s, sums, 1, updates, 1, 1);
        return;
    }
    int last = box->rank - 1;
    int64_t index[SF_MAX_RANK] = {0};
    do {
        int64_t to_row = 0, from_row = 0;
        for (int d = 0; d < last; d++) {
            to_row += index[d] * box->to[d];
            from_row += index[d] * box->from[d];
        }
        combine_box_row(s, sums + to_row * s->sum_width, box->to[last],
                        updates + from_row * s->width, box->from[last], box->dims[last]);
    } while (sf_next_index(last, box->dims, index));
}

/* Elements whose type in memory differs from the register's are converted in one. */
static void convert_range(const scattering *s, int64_t at, int64_t count, bool load)
{
    const sf_folding *f = &s->folding;
    sf_register row;
    for (int64_t end = at + count; at < end; at += SF_FAST_REGISTER) {
        int64_t n = end - at < SF_FAST_REGISTER ? end - at : SF_FAST_REGISTER;
        size_t bytes = (size_t)(n * s->sum_width);
        if (load) {
            f->vec->loads[f->dtype](&row, s->operand + at * s->width, 1, n);
            memcpy(s->sums + at * s->sum_width, &row, bytes);
        } else {
            memcpy(&row, s->sums + at * s->sum_width, bytes);
            f->vec->stores[f->dtype](s->out + at * s->width, 1, &row, n);
        }
    }
}

/* The operand's range becomes the accumulators (`load`), and these the result's. */
static void move_range(const scattering *s, int64_t first, int64_t end, bool load)
{
    for (int64_t o = 0; o < s->outer; o++) {
        int64_t at = (o * s->size + first) * s->inner, count = (end - first) * s->inner;
        if (s->native)
            memcpy(s->out + at * s->width, s->operand + at * s->width, (size_t)(count * s->width));
        else
            convert_range(s, at, count, load);
    }
}

/* Where the window begins, along the cut and as an element. False when it does not fit. */
static bool find_window(const scattering *s, const sf_point *point, int64_t *along, int64_t *at)
{
    *along = s->cut_point >= 0 ? point->index[s->cut_point] : 0;
    *at = point->operand;
    for (int c = 0; c < s->points.ncomponents; c++) {
        const sf_component *component = &s->points.components[c];
        int64_t start = sf_points_read(&s->points, point, c);
        if (start < 0 || start > component->last)
            return false;
        if (c == s->cut_component)
            *along = start;
        *at += start * component->stride;
    }
    return true;
}

/* The part of a window at `along` that lies in [first, end) of the cut; `skip` is how much of the window
 * comes before it. */
static bool clip_window(const scattering *s, int64_t along, int64_t first, int64_t end, sf_box *box,
                        int64_t *skip)
{
    int64_t size = s->window.dims[s->cut_window];
    int64_t from = along > first ? along : first, to = along + size < end ? along + size : end;
    if (from >= to)
        return false;
    *skip = from - along;
    *box = s->window;
    box->dims[s->cut_window] = to - from;
    sf_box_simplify(box);
    return true;
}

/* Points whose windows extend along the cut. */
static void scatter_clipped(const scattering *s, int64_t first, int64_t end)
{
    int64_t along, at, skip = 0, known = -1;
    sf_box box = {0};
    bool inside = false;
    sf_point point = sf_points_at(&s->points, 0);
    for (int64_t i = 0; i < s->points.count; i++, sf_points_next(&s->points, &point)) {
        if (!find_window(s, &point, &along, &at))
            continue;
        if (along != known)
            inside = clip_window(s, along, first, end, &box, &skip);
        known = along;
        if (inside)
            apply_box(s, &box, at + skip * s->window.to[s->cut_window],
                      point.windowed + skip * s->window.from[s->cut_window]);
    }
}

/* Points whose windows have one index along the cut: they are in the range or not. */
static void scatter_whole(const scattering *s, int64_t first, int64_t end)
{
    sf_box box = s->window;
    sf_box_simplify(&box);
    int64_t along, at, from = 0, to = s->points.count;
    if (s->cut_point == 0) {
        int64_t each = to / s->points.dims[0];
        from = first * each;
        to = end * each;
    }
    sf_point point = sf_points_at(&s->points, from);
    for (int64_t i = from; i < to; i++, sf_points_next(&s->points, &point))
        if (find_window(s, &point, &along, &at) && along >= first && along < end)
            apply_box(s, &box, at, point.windowed);
}

static void scatter_part(void *context, int part, int64_t first, int64_t end)
{
    (void)part;
    const scattering *s = context;
    if (s->operand != s->out || !s->native)
        move_range(s, first, end, true);
    if (s->points.count > 0 && s->cut_window >= 0)
        scatter_clipped(s, first, end);
    else if (s->points.count > 0)
        scatter_whole(s, first, end);
    if (!s->native)
        move_range(s, first, end, false);
}

/* The outermost dimension that gives every thread a few indices, or else the largest. */
static int choose_cut(const sf_type *type, int threads)
{
    int best = 0;
    for (int d = 0; d < type->rank; d++) {
        if (type->dims[d] >= 4 * threads)
            return d;
        if (type->dims[d] > type->dims[best])
            best = d;
    }
    return best;
}

static void set_cut(scattering *s, const sf_indexing *maps, int threads)
{
    s->cut = s->type->rank > 0 ? choose_cut(s->type, threads) : -1;
    s->cut_window = s->cut_component = s->cut_point = -1;
    s->outer = s->size = s->inner = 1;
    for (int d = 0, window = 0; d < s->type->rank; d++) {
        int64_t size = s->type->dims[d];
        if (d < s->cut)
            s->outer *= size;
        else if (d == s->cut)
            s->size = size;
        else
            s->inner *= size;
        if (maps->window_of[d] >= 0) {
            if (d == s->cut)
                s->cut_window = window;
            window++;
        }
    }
    for (int c = 0; c < s->points.ncomponents; c++)
        if (s->points.components[c].dim == s->cut)
            s->cut_component = c;
    for (int p = 0; p < s->points.rank; p++)
        if (s->cut >= 0 && s->points.batch[p] == s->cut)
            s->cut_point = p;
}

static void run_operand(const sf_op *op, int64_t variant, int i, const sf_tensor *in,
                        sf_tensor *out, void *scratch, sf_threads *threads)
{
    int n = input_count(op);
    const sf_type *updates = in[n + 1 + i].type;
    sf_indexing maps = sf_indexing_get(op, op->in[i], op->in[n]);
    sf_monoid monoid = monoid_in(variant, i);
    scattering s = {.points = sf_points_of(op, op->in[i], &in[n], updates),
                    .overwrite = monoid == SF_MONOID_SECOND,
                    .native = is_native(op, variant, i),
                    .type = op->in[i],
                    .operand = in[i].data,
                    .updates = in[n + 1 + i].data,
                    .out = out->data,
                    .width = sf_dtype_get(out->type->dtype)->bytes};
    s.sums = s.native ? s.out : scratch;
    s.sum_width = s.native ? s.width : 4;
    if (!s.overwrite)
        s.folding = sf_folding_of(monoid, out->type->dtype);
    int64_t to[SF_MAX_RANK], from[SF_MAX_RANK];
    sf_strides(s.type->rank, s.type->dims, to);
    sf_strides(updates->rank, updates->dims, from);
    for (int d = 0; d < s.type->rank; d++) {
        int p = maps.window_of[d], at = s.window.rank;
        if (p < 0)
            continue;
        s.window.dims[at] = updates->dims[p];
        s.window.to[at] = to[d];
        s.window.from[at] = from[p];
        s.window.rank++;
    }
    if (updates->count == 0)
        s.points.count = 0;
    set_cut(&s, &maps, sf_threads_count(threads));
    int64_t each = out->type->count / s.size;
    sf_threads_run(threads, s.size, 1 + sf_threads_grain(threads) / each, scatter_part, &s);
}

static void run_scatter(const sf_op *op, int64_t variant, const sf_tensor *in, sf_tensor *out,
                        void *scratch, sf_threads *threads)
{
    for (int i = 0; i < op->nresults && out[i].type->count > 0; i++)
        run_operand(op, variant, i, in, &out[i], scratch, threads);
}

const sf_fast sf_fast_scatter = {
    .choose = choose_scatter, .scratch = scatter_scratch, .run = run_scatter};
