/* Convolutions in groups of few features, tap by tap.
 *
 * A tap is a channel of a place in the window. If the groups are contiguous (features last, one per
 * group) a place of the result is a row of groups, and the sum over taps of a row of lhs times a
 * row of the kernel. Where a spatial dimension does (features first), neighbours along it are such
 * a row, and a tap of the kernel is a number. A row takes part of its taps, those that see an
 * element; between the edges of the image all do, so the list of taps is made once for a line of
 * places and moved along.
 *
 * Groups of more features, but too few for a product, are taken one by one: what is multiplied then is a
 * row of features of the kernel by a number of lhs, for several places at once.
 *
 * The gradient of the kernel has few places and very many taps. These are taken in chunks, each for all
 * places while it is in cache, by threads that have a range of groups to themselves. */
#include <string.h>

#include "ir/tensor.h"
#include "run/conv/conv_as_gemm.h"
#include "run/vec/vec.h"

enum {
    MOST_TAPS = 512,    /* in a list */
    MOST_PLACES = 4096, /* whose sums are kept from chunk to chunk */
    FEW = 4,            /* features of a group */
    LEAST_GROUPS = 8,
    BLOCK = 64,      /* elements of a row that are converted at a time */
    CONVERTED = 16,  /* taps converted at a time */
    GRAIN = 1 << 14, /* products that are worth a thread */
};

typedef struct direct {
    const sf_conv_plan *plan;
    const sf_conv_job *conv;
    const sf_vec *vec;
    sf_vtaps *taps;
    sf_dtype sums;    /* type of the sums */
    bool by_features; /* rows are the features of a group, out of a kernel that is packed */
    bool by_groups;   /* rows are groups, else places along `x` */
    bool native;      /* elements of a row are contiguous and of the type of the sums */
    int x;            /* the dimension that lines of places run along */
    int64_t length;   /* of a row of groups */
    int64_t lines;    /* of places, for all that is no row */
    int64_t lhs_step, rhs_step, out_step; /* between elements of a row */
    int64_t inside, outside; /* places of a line from, to which all taps see an element */
    char *scratch;
    int64_t block; /* groups of a part of the work, when there are many taps */
} direct;

typedef struct list {
    int64_t count, lhs[MOST_TAPS], rhs[MOST_TAPS];
} list;

/* One line of places. */
typedef struct line {
    int64_t start[SF_MAX_RANK]; /* of windows */
    int64_t lhs, rhs, out;      /* offsets, at place 0 */
} line;

static int64_t smaller_size(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* The dimension whose elements are nearest to each other. */
static int nearest_dim(const sf_conv_job *c)
{
    int best = 0;
    for (int d = 1; d < c->g.spatial; d++)
        if (c->g.space[d].out > 1 &&
            (c->g.space[best].out == 1 || c->g.space[d].lhs_stride < c->g.space[best].lhs_stride))
            best = d;
    return best;
}

static bool rows_are_places(const sf_conv_job *c, int x)
{
    enum { SHORT = 8 };
    const sf_conv_dim *dim = &c->g.space[x];
    return dim->lhs_stride == 1 && dim->stride == 1 && dim->base == 1 && dim->out_stride == 1 &&
           dim->out >= SHORT;
}

static bool rows_are_features(const sf_conv_plan *plan)
{
    enum { MOST = 32, STEP = 4 };
    const sf_conv_job *c = plan->conv;
    return plan->groups > 1 && plan->features <= MOST && plan->features % STEP == 0 &&
           plan->steps <= MOST_TAPS && c->g.spatial > 0 && c->g.out_feature == 1 &&
           c->g.lhs_dtype == plan->type->sums && c->g.out_dtype == plan->type->sums;
}

bool sf_conv_direct_can(const sf_conv_plan *plan)
{
    const sf_conv_job *c = plan->conv;
    if (rows_are_features(plan))
        return true;
    if (plan->groups < LEAST_GROUPS || plan->features > FEW || c->g.spatial == 0)
        return false;
    if (c->g.feature_groups > 1 && c->g.channels > FEW)
        return false;
    int64_t places = plan->rows * plan->features;
    bool by_places = rows_are_places(c, nearest_dim(c)) && plan->lhs_group != 1;
    bool few = plan->features * c->g.batch <= FEW && places <= MOST_PLACES;
    return plan->steps <= MOST_TAPS || (!by_places && few);
}

static int64_t floor_div(int64_t a, int64_t b)
{
    return a >= 0 ? a / b : -((b - 1 - a) / b);
}

static void find_inside(direct *d)
{
    const sf_conv_dim *dim = &d->conv->g.space[d->x];
    if (dim->base != 1)
        return;
    int64_t last = dim->lhs - 1 + dim->low - (dim->window - 1) * dim->dilation;
    d->inside = dim->low > 0 ? (dim->low + dim->stride - 1) / dim->stride : 0;
    d->outside = smaller_size(floor_div(last, dim->stride) + 1, dim->out);
    if (d->outside <= d->inside)
        d->inside = d->outside = 0;
}

/* The kernel as it is packed: by group, channel, place in the window and feature. */
static sf_conv_job packed_of(const sf_conv_plan *plan)
{
    sf_conv_job c = *plan->conv;
    int64_t next = plan->features;
    c.g.rhs_dtype = plan->type->sums;
    c.g.rhs_output = 1;
    for (int i = c.g.spatial - 1; i >= 0; i--) {
        c.g.space[i].rhs_stride = next;
        next *= c.g.space[i].window;
    }
    c.g.rhs_input = next;
    c.rhs = c.scratch;
    return c;
}

static void pack_direct_kernel(const direct *d, const sf_conv_job *from)
{
    const sf_conv_plan *plan = d->plan;
    int64_t size = sf_dtype_get(from->g.rhs_dtype)->bytes, dims[SF_MAX_RANK] = {from->g.channels};
    char *to = d->scratch;
    for (int i = 0; i < from->g.spatial; i++)
        dims[1 + i] = from->g.space[i].window;
    for (int64_t g = 0; g < plan->groups && plan->steps > 0; g++) {
        int64_t at[SF_MAX_RANK] = {0};
        do {
            int64_t offset = g * plan->rhs_group + at[0] * from->g.rhs_input;
            for (int i = 0; i < from->g.spatial; i++)
                offset += at[1 + i] * from->g.space[i].rhs_stride;
            d->vec->loads[from->g.rhs_dtype](to, (const char *)from->rhs + offset * size,
                                             from->g.rhs_output, plan->features);
            to += plan->features * sf_dtype_get(d->sums)->bytes;
        } while (sf_next_index(1 + from->g.spatial, dims, at));
    }
}

static direct direct_of(const sf_conv_plan *plan, const sf_conv_job *c, int threads)
{
    direct d = {.plan = plan, .conv = c, .vec = sf_vec_get(), .sums = plan->type->sums};
    d.taps = d.vec->taps[d.sums == SF_F64 ? SF_VF64 : SF_VF32];
    d.x = nearest_dim(c);
    d.by_features = rows_are_features(plan);
    d.by_groups = plan->lhs_group == 1 || plan->steps > MOST_TAPS || !rows_are_places(c, d.x);
    d.length = d.by_groups ? plan->groups : 1;
    d.lines = plan->rows / c->g.space[d.x].out * plan->features * (plan->groups / d.length);
    d.lhs_step = d.by_groups ? plan->lhs_group : 1;
    d.rhs_step = d.by_groups ? plan->rhs_group : 0;
    d.out_step = d.by_groups ? plan->out_group : 1;
    d.native = c->g.lhs_dtype == d.sums && c->g.rhs_dtype == d.sums && c->g.out_dtype == d.sums &&
               d.lhs_step == 1 && d.rhs_step == d.by_groups && d.out_step == 1;
    if (d.by_features)
        d.lines = plan->rows / c->g.space[d.x].out;
    int64_t each = (plan->groups + threads - 1) / threads;
    d.block = smaller_size((each + 15) / 16 * 16, 4 * BLOCK);
    d.scratch = c->scratch;
    find_inside(&d);
    return d;
}

static line line_at(const direct *d, int64_t number)
{
    const sf_conv_job *c = d->conv;
    line l = {0};
    for (int i = 0; i < c->g.spatial; i++) {
        const sf_conv_dim *dim = &c->g.space[i];
        if (i == d->x)
            continue;
        int64_t at = number % dim->out;
        number /= dim->out;
        l.start[i] = at * dim->stride - dim->low;
        l.out += at * dim->out_stride;
    }
    int64_t batch = number % c->g.batch, rest = number / c->g.batch;
    int64_t feature = rest % d->plan->features, group = rest / d->plan->features;
    l.lhs = batch * c->g.lhs_batch + group * d->plan->lhs_group;
    l.rhs = feature * c->g.rhs_output + group * d->plan->rhs_group;
    l.out += batch * c->g.out_batch + feature * c->g.out_feature + group * d->plan->out_group;
    return l;
}

/* The offsets of one line of the window, and of a channel, in dimensions other than x; false when it sees
 * nothing. */
static bool window_line(const direct *d, const line *l, const int64_t *w, int64_t *lhs,
                        int64_t *rhs)
{
    const sf_conv_job *c = d->conv;
    for (int i = 0; i < c->g.spatial; i++) {
        const sf_conv_dim *dim = &c->g.space[i];
        if (i == d->x)
            continue;
        int64_t far = (dim->reversed ? dim->window - 1 - w[i] : w[i]) * dim->dilation;
        int64_t element = sf_conv_element(dim, l->start[i] + far);
        if (element < 0)
            return false;
        *lhs += element * dim->lhs_stride;
        *rhs += w[i] * dim->rhs_stride;
    }
    return true;
}

/* The next line of the window; after the last, that of the next channel. */
static void next_window_line(const direct *d, int64_t *w, int64_t *channel)
{
    for (int i = d->conv->g.spatial - 1; i >= 0; i--) {
        if (i == d->x)
            continue;
        if (++w[i] < d->conv->g.space[i].window)
            return;
        w[i] = 0;
    }
    ++*channel;
}

/* Those of the taps [first, end) that see an element at place `at` of the line. Taps are numbered with
 * those along x fastest, channels slowest. */
static void list_taps(const direct *d, const line *l, int64_t at, int64_t first, int64_t end,
                      list *out)
{
    const sf_conv_job *c = d->conv;
    const sf_conv_dim *x = &c->g.space[d->x];
    out->count = 0;
    if (first == end)
        return;
    int64_t w[SF_MAX_RANK] = {0}, number = first / x->window, from = first % x->window;
    for (int i = c->g.spatial - 1; i >= 0; i--)
        if (i != d->x) {
            w[i] = number % c->g.space[i].window;
            number /= c->g.space[i].window;
        }
    int64_t channel = number, start = at * x->stride - x->low;
    while (first < end) {
        int64_t to = smaller_size(x->window, from + end - first);
        int64_t lhs = channel * c->g.lhs_feature, rhs = channel * c->g.rhs_input;
        bool sees = window_line(d, l, w, &lhs, &rhs);
        for (int64_t k = from; sees && k < to; k++) {
            int64_t far = (x->reversed ? x->window - 1 - k : k) * x->dilation;
            int64_t element = sf_conv_element(x, start + far);
            if (element < 0)
                continue;
            out->lhs[out->count] = lhs + element * x->lhs_stride;
            out->rhs[out->count++] = rhs + k * x->rhs_stride;
        }
        first += to - from;
        from = 0;
        next_window_line(d, w, &channel);
    }
}

static const char *address_of(const void *data, int64_t at, sf_dtype dtype)
{
    return (const char *)data + at * sf_dtype_get(dtype)->bytes;
}

/* Rows that do not lie as sums do are brought into that form, some taps at a time. */
static void add_converted(const direct *d, const list *taps, int64_t lhs, int64_t rhs,
                          int64_t count, void *sums)
{
    const sf_conv_job *c = d->conv;
    _Alignas(64) double a[CONVERTED * BLOCK], b[CONVERTED * BLOCK];
    int64_t at[CONVERTED], width = sf_dtype_get(d->sums)->bytes;
    int64_t row = d->rhs_step ? count : 1;
    for (int64_t n = 0; n < taps->count; n += CONVERTED) {
        int64_t some = smaller_size(CONVERTED, taps->count - n);
        for (int64_t i = 0; i < some; i++) {
            at[i] = i * BLOCK;
            d->vec->loads[c->g.lhs_dtype](
                (char *)a + i * BLOCK * width,
                address_of(c->lhs, lhs + taps->lhs[n + i], c->g.lhs_dtype), d->lhs_step, count);
            d->vec->loads[c->g.rhs_dtype](
                (char *)b + i * BLOCK * width,
                address_of(c->rhs, rhs + taps->rhs[n + i], c->g.rhs_dtype), d->rhs_step, row);
        }
        sf_taps t = {some, a, b, at, at, d->rhs_step == 0};
        d->taps(sums, count, &t, true);
    }
}

/* Sums over a list of taps for `count` elements of a row from element `first` on, from zero or
 * added to the old values. Offsets are those of element 0. */
static void add_taps(const direct *d, const list *taps, int64_t lhs, int64_t rhs, int64_t first,
                     int64_t count, bool accumulate, char *sums)
{
    const sf_conv_job *c = d->conv;
    lhs += first * d->lhs_step;
    rhs += first * d->rhs_step;
    int64_t width = sf_dtype_get(d->sums)->bytes;
    if (d->native) {
        sf_taps t = {taps->count,
                     address_of(c->lhs, lhs, d->sums),
                     address_of(c->rhs, rhs, d->sums),
                     taps->lhs,
                     taps->rhs,
                     d->rhs_step == 0};
        d->taps(sums, count, &t, accumulate);
        return;
    }
    if (!accumulate)
        memset(sums, 0, (size_t)(count * width));
    for (int64_t i = 0; i < count; i += BLOCK)
        add_converted(d, taps, lhs + i * d->lhs_step, rhs + i * d->rhs_step,
                      smaller_size(BLOCK, count - i), sums + i * width);
}

static char *result_at(const direct *d, int64_t out, int64_t first)
{
    return (char *)d->conv->out +
           (out + first * d->out_step) * sf_dtype_get(d->conv->g.out_dtype)->bytes;
}

/* A row of the result, from one list of taps. */
static void make_row(const direct *d, const list *taps, int64_t lhs, int64_t rhs, int64_t out,
                     int64_t count)
{
    _Alignas(64) double sums[BLOCK];
    if (d->native) {
        add_taps(d, taps, lhs, rhs, 0, count, false, result_at(d, out, 0));
        return;
    }
    for (int64_t i = 0; i < count; i += BLOCK) {
        int64_t some = smaller_size(BLOCK, count - i);
        add_taps(d, taps, lhs, rhs, i, some, false, (char *)sums);
        d->vec->stores[d->conv->g.out_dtype](result_at(d, out, i), d->out_step, sums, some);
    }
}

/* Several places that see the same taps, group by group. */
static void make_places(const direct *d, const list *taps, int64_t lhs, int64_t out, int64_t count)
{
    const sf_conv_job *c = d->conv;
    const sf_conv_dim *x = &c->g.space[d->x];
    sf_vtaprows *run = d->vec->taprows[d->sums == SF_F64 ? SF_VF64 : SF_VF32];
    int64_t kernel = d->plan->steps * d->plan->features;
    for (int64_t g = 0; g < d->plan->groups; g++) {
        sf_taps t = {.count = taps->count,
                     .a = address_of(c->rhs, g * kernel, d->sums),
                     .b = address_of(c->lhs, lhs + g * d->plan->lhs_group, d->sums),
                     .a_at = taps->rhs,
                     .b_at = taps->lhs,
                     .repeat = true};
        run(result_at(d, out + g * d->plan->out_group, 0), x->out_stride, count, d->plan->features,
            &t, x->stride * x->lhs_stride);
    }
}

/* Places [from, to) of a line. */
static void make_line(const direct *d, int64_t number, int64_t from, int64_t to)
{
    const sf_conv_dim *x = &d->conv->g.space[d->x];
    line l = line_at(d, number);
    list taps;
    int64_t listed = -1, step = x->stride * x->lhs_stride;
    for (int64_t at = from; at < to;) {
        bool inside = at >= d->inside && at < d->outside;
        if (!inside || listed < 0) {
            list_taps(d, &l, at, 0, d->plan->steps, &taps);
            listed = inside ? at : -1;
        }
        int64_t moved = listed < 0 ? 0 : (at - listed) * step;
        bool one = !inside || (d->by_groups && !d->by_features);
        int64_t count = one ? 1 : smaller_size(d->outside, to) - at;
        int64_t lhs = l.lhs + moved, out = l.out + at * x->out_stride;
        if (d->by_features)
            make_places(d, &taps, lhs, out, count);
        else
            make_row(d, &taps, lhs, l.rhs, out, d->by_groups ? d->length : count);
        at += count;
    }
}

static void run_places(void *context, int part, int64_t first, int64_t end)
{
    (void)part;
    const direct *d = context;
    int64_t length = d->conv->g.space[d->x].out;
    for (int64_t at = first; at < end;) {
        int64_t from = at % length, to = smaller_size(length, from + end - at);
        make_line(d, at / length, from, to);
        at += to - from;
    }
}

/* All places for a range of groups: chunks of taps, each for all places, in sums; then the result. */
static void run_range(const direct *d, int64_t first, int64_t count, char *sums)
{
    const sf_conv_dim *x = &d->conv->g.space[d->x];
    int64_t steps = d->plan->steps, row = d->block * sf_dtype_get(d->sums)->bytes;
    list taps;
    for (int64_t t = 0; t < steps; t += MOST_TAPS)
        for (int64_t n = 0; n < d->lines; n++) {
            line l = line_at(d, n);
            for (int64_t at = 0; at < x->out; at++) {
                list_taps(d, &l, at, t, smaller_size(steps, t + MOST_TAPS), &taps);
                add_taps(d, &taps, l.lhs, l.rhs, first, count, t > 0,
                         sums + (n * x->out + at) * row);
            }
        }
    for (int64_t n = 0; n < d->lines; n++) {
        line l = line_at(d, n);
        for (int64_t at = 0; at < x->out; at++)
            d->vec->stores[d->conv->g.out_dtype](result_at(d, l.out + at * x->out_stride, first),
                                                 d->out_step, sums + (n * x->out + at) * row,
                                                 count);
    }
}

static int64_t sums_bytes(const direct *d)
{
    return d->lines * d->conv->g.space[d->x].out * d->block * sf_dtype_get(d->sums)->bytes;
}

static void run_blocks(void *context, int part, int64_t first, int64_t end)
{
    const direct *d = context;
    for (int64_t i = first; i < end; i++)
        run_range(d, i * d->block, smaller_size(d->block, d->length - i * d->block),
                  d->scratch + part * sums_bytes(d));
}

int64_t sf_conv_direct_scratch(const sf_conv_plan *plan, int threads)
{
    direct d = direct_of(plan, plan->conv, threads);
    if (d.by_features)
        return plan->groups * plan->steps * plan->features * sf_dtype_get(d.sums)->bytes;
    return plan->steps <= MOST_TAPS ? 0 : threads * sums_bytes(&d);
}

void sf_conv_direct(const sf_conv_plan *plan, sf_threads *threads)
{
    sf_conv_job packed = packed_of(plan);
    bool packs = rows_are_features(plan);
    direct d = direct_of(plan, packs ? &packed : plan->conv, sf_threads_count(threads));
    int64_t products = (plan->steps + 1) * (packs ? d.conv->g.features : d.length);
    if (packs)
        pack_direct_kernel(&d, plan->conv);
    if (plan->steps <= MOST_TAPS)
        sf_threads_run(threads, d.lines * d.conv->g.space[d.x].out, 1 + GRAIN / products,
                       run_places, &d);
    else
        sf_threads_run(threads, (d.length + d.block - 1) / d.block, 1, run_blocks, &d);
}
