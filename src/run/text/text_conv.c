#include "run/text/text_conv.h"

#include <inttypes.h>

#include "base/checked.h"

enum { TILE = 32, TILE_ROWS = 8, THREADS = TILE * TILE_ROWS };

/* Kinds */

/* A dimension of an operand as the library sees it: `size` places, of which place p is element p - low, or, turned, the last
 * less that. */
typedef struct seen {
    int64_t size, low, extent, stride;
    bool transposed;
} seen;

static seen all_of(int64_t extent, int64_t stride)
{
    return (seen){.size = extent, .extent = extent, .stride = stride};
}

/* Dimensions in the order of memory: outer, space, inner. */
static void see_image(sf_image *image, int spatial, bool is_result, const seen *outer,
                      const seen *space, const seen *inner, int64_t width)
{
    sf_move *m = &image->move;
    int64_t packed = 1;
    m->rank = spatial + 2;
    for (int d = m->rank - 1; d >= 0; d--) {
        const seen *s = d == 0 ? outer : d <= spatial ? &space[d - 1] : inner;
        int64_t from = s->stride, to = packed;
        bool plain = s->size == s->extent && s->low == 0 && !s->transposed;
        image->is_moved = image->is_moved || !plain || (s->size != 1 && from != to);
        m->dims[d] = (sf_move_dim){.size = s->size,
                                   .extent = s->extent,
                                   .first = s->transposed ? s->extent - 1 + s->low : -s->low,
                                   .transposed = s->transposed,
                                   .from = from,
                                   .to = to};
        if (is_result)
            m->dims[d] = (sf_move_dim){.size = s->extent,
                                       .extent = s->size,
                                       .first = s->transposed ? s->extent - 1 + s->low : s->low,
                                       .transposed = s->transposed,
                                       .from = to,
                                       .to = from};
        if (d > 0 && d <= spatial)
            image->sizes[d - 1] = s->size;
        packed *= s->size;
    }
    image->bytes = packed * width;
}

/* The padding that x needs for a border of `low`, windows that reach over `reach` places, and so
 * many of them, `stride` apart: itself with `pad` on both sides if that gives as many windows, else
 * with the border around it. */
static seen bordered(int64_t extent, int64_t stride_in, int64_t low, int64_t reach, int64_t stride,
                     int64_t windows, int64_t *pad)
{
    int64_t free = extent + 2 * low - reach;
    *pad = low;
    if (low >= 0 && free >= 0 && free / stride + 1 == windows)
        return all_of(extent, stride_in);
    *pad = 0;
    return (seen){
        .size = (windows - 1) * stride + reach, .low = low, .extent = extent, .stride = stride_in};
}

/* Channels in groups of 16 bytes, unless they are of groups. */
static seen channels(const sf_convolve *c, int64_t extent, int64_t stride)
{
    int64_t each = 16 / sf_dtype_get(c->dtype)->bytes;
    seen s = all_of(extent, stride);
    if (c->groups == 1)
        s.size = (extent + each - 1) / each * each;
    return s;
}

typedef struct spaces {
    seen x[SF_MAX_RANK], w[SF_MAX_RANK], y[SF_MAX_RANK];
} spaces;

static void see_all(sf_convolve *c, const sf_param *given, const seen *batches, const seen *in,
                    const seen *out, const spaces *s)
{
    int64_t width = sf_dtype_get(c->dtype)->bytes;
    int result = sf_convolve_result(c);
    c->n = batches[0].size;
    c->c = in[0].size;
    c->k = out[1].size;
    for (int i = 0; i < 3; i++)
        c->images[i].given = given[i];
    see_image(&c->images[SF_IMAGE_X], c->spatial, result == SF_IMAGE_X, &batches[0], s->x, &in[0],
              width);
    see_image(&c->images[SF_IMAGE_W], c->spatial, result == SF_IMAGE_W, &out[0], s->w, &in[1],
              width);
    see_image(&c->images[SF_IMAGE_Y], c->spatial, result == SF_IMAGE_Y, &batches[1], s->y, &out[1],
              width);
}

static const sf_param lhs = {.kind = SF_PARAM_IN, .index = 0};
static const sf_param rhs = {.kind = SF_PARAM_IN, .index = 1};
static const sf_param out = {.kind = SF_PARAM_OUT, .index = 0};

/* x is lhs, w rhs, and y the result. */
static bool as_forward(const sf_conv *g, sf_convolve *c)
{
    spaces s = {0};
    if (g->batch_groups > 1)
        return false;
    c->kind = SF_CONVOLVE_FORWARD;
    c->groups = g->feature_groups;
    for (int d = 0; d < g->spatial; d++) {
        const sf_conv_dim *p = &g->space[d];
        if (p->base != 1)
            return false;
        c->stride[d] = p->stride;
        c->dilation[d] = p->dilation;
        s.x[d] = bordered(p->lhs, p->lhs_stride, p->low, (p->window - 1) * p->dilation + 1,
                          p->stride, p->out, &c->pad[d]);
        s.w[d] = all_of(p->window, p->rhs_stride);
        s.w[d].transposed = p->reversed;
        s.y[d] = all_of(p->out, p->out_stride);
    }
    seen batches[2] = {all_of(g->batch, g->lhs_batch), all_of(g->batch, g->out_batch)};
    seen in[2] = {channels(c, g->channels * g->feature_groups, g->lhs_feature),
                  channels(c, g->channels, g->rhs_input)};
    seen features[2] = {channels(c, g->features, g->rhs_output),
                        channels(c, g->features, g->out_feature)};
    sf_param given[3] = {lhs, rhs, out};
    see_all(c, given, batches, in, features, &s);
    return true;
}

/* y is lhs, which is dilated, w is rhs, transposed, and x the result. If the library does not have
 * the border of the result, all of x is computed, and a part of it taken. */
static bool as_data(const sf_conv *g, sf_convolve *c)
{
    spaces s = {0};
    if (g->batch_groups > 1 || g->feature_groups > 1)
        return false;
    c->kind = SF_CONVOLVE_DATA;
    c->groups = 1;
    for (int d = 0; d < g->spatial; d++) {
        const sf_conv_dim *p = &g->space[d];
        int64_t reach = (p->window - 1) * p->dilation + 1, low = reach - 1 - p->low;
        if (p->stride != 1)
            return false;
        c->stride[d] = p->base;
        c->dilation[d] = p->dilation;
        s.x[d] = bordered(p->out, p->out_stride, low, reach, p->base, p->lhs, &c->pad[d]);
        s.w[d] = all_of(p->window, p->rhs_stride);
        s.w[d].transposed = !p->reversed;
        s.y[d] = all_of(p->lhs, p->lhs_stride);
    }
    seen batches[2] = {all_of(g->batch, g->out_batch), all_of(g->batch, g->lhs_batch)};
    seen in[2] = {channels(c, g->features, g->out_feature),
                  channels(c, g->features, g->rhs_output)};
    seen features[2] = {channels(c, g->channels, g->rhs_input),
                        channels(c, g->channels, g->lhs_feature)};
    sf_param given[3] = {out, rhs, lhs};
    see_all(c, given, batches, in, features, &s);
    return true;
}

/* x is lhs with its batch as channels, y rhs, and w the result. */
static bool as_filter(const sf_conv *g, sf_convolve *c)
{
    spaces s = {0};
    if (g->feature_groups > 1)
        return false;
    c->kind = SF_CONVOLVE_FILTER;
    c->groups = g->batch_groups;
    for (int d = 0; d < g->spatial; d++) {
        const sf_conv_dim *p = &g->space[d];
        if (p->base != 1)
            return false;
        c->stride[d] = p->dilation;
        c->dilation[d] = p->stride;
        s.x[d] = bordered(p->lhs, p->lhs_stride, p->low, (p->out - 1) * p->stride + 1, p->dilation,
                          p->window, &c->pad[d]);
        s.y[d] = all_of(p->window, p->rhs_stride);
        s.y[d].transposed = p->reversed;
        s.w[d] = all_of(p->out, p->out_stride);
    }
    seen batches[2] = {all_of(g->channels, g->lhs_feature), all_of(g->channels, g->rhs_input)};
    seen in[2] = {channels(c, g->batch * g->batch_groups, g->lhs_batch),
                  channels(c, g->batch, g->out_batch)};
    seen features[2] = {channels(c, g->features, g->out_feature),
                        channels(c, g->features, g->rhs_output)};
    sf_param given[3] = {lhs, out, rhs};
    see_all(c, given, batches, in, features, &s);
    return true;
}

/* lhs is dilated: it is y, rhs is x, and the result is transposed. */
static bool as_transposed_filter(const sf_conv *g, sf_convolve *c)
{
    spaces s = {0};
    if (g->feature_groups > 1 || g->batch_groups > 1)
        return false;
    c->kind = SF_CONVOLVE_FILTER;
    c->groups = 1;
    for (int d = 0; d < g->spatial; d++) {
        const sf_conv_dim *p = &g->space[d];
        int64_t reach = (p->out - 1) * p->stride + 1;
        if (p->dilation != 1 || p->reversed)
            return false;
        c->stride[d] = p->base;
        c->dilation[d] = p->stride;
        s.x[d] = bordered(p->window, p->rhs_stride, reach - 1 - p->low, reach, p->base, p->lhs,
                          &c->pad[d]);
        s.y[d] = all_of(p->lhs, p->lhs_stride);
        s.w[d] = all_of(p->out, p->out_stride);
        s.w[d].transposed = true;
    }
    seen batches[2] = {all_of(g->channels, g->rhs_input), all_of(g->channels, g->lhs_feature)};
    seen in[2] = {channels(c, g->features, g->rhs_output),
                  channels(c, g->features, g->out_feature)};
    seen features[2] = {channels(c, g->batch, g->out_batch), channels(c, g->batch, g->lhs_batch)};
    sf_param given[3] = {rhs, out, lhs};
    see_all(c, given, batches, in, features, &s);
    return true;
}

/* Windows of one place make a product of matrices: pixels by channels. */
static bool as_product(const sf_conv *g, sf_dot *dot)
{
    int64_t pixels = 1, lhs_packed = g->lhs_feature == 1, out_packed = g->out_feature == 1;
    int64_t stride = g->channels, out_stride = g->features;
    if (g->feature_groups > 1 || g->batch_groups > 1)
        return false;
    for (int d = g->spatial - 1; d >= 0; d--) {
        const sf_conv_dim *p = &g->space[d];
        if (p->window != 1 || p->stride != 1 || p->base != 1 || p->low != 0 || p->out != p->lhs)
            return false;
        lhs_packed = lhs_packed && (p->lhs == 1 || p->lhs_stride == stride);
        out_packed = out_packed && (p->out == 1 || p->out_stride == out_stride);
        pixels *= p->out;
        stride *= p->out;
        out_stride *= p->out;
    }
    *dot = (sf_dot){.m = g->batch * pixels,
                    .n = g->features,
                    .k = g->channels,
                    .a_row = g->channels,
                    .a_column = 1,
                    .b_row = g->rhs_input,
                    .b_column = g->rhs_output,
                    .c_row = g->features,
                    .c_column = 1,
                    .exact = g->exact};
    return lhs_packed && out_packed && (g->batch == 1 || g->lhs_batch == stride) &&
           (g->batch == 1 || g->out_batch == out_stride);
}

/* And so do windows over all there is, whose pixels are summed up. */
static bool as_filter_product(const sf_conv *g, sf_dot *dot)
{
    int64_t stride = g->batch, rhs_stride = g->features;
    bool packed = g->lhs_batch == 1 && g->rhs_output == 1;
    if (g->feature_groups > 1 || g->batch_groups > 1)
        return false;
    for (int d = g->spatial - 1; d >= 0; d--) {
        const sf_conv_dim *p = &g->space[d];
        if (p->out != 1 || p->dilation != 1 || p->base != 1 || p->low != 0 || p->reversed ||
            p->window != p->lhs)
            return false;
        packed =
            packed && (p->lhs == 1 || (p->lhs_stride == stride && p->rhs_stride == rhs_stride));
        stride *= p->lhs;
        rhs_stride *= p->lhs;
    }
    *dot = (sf_dot){.m = g->batch,
                    .n = g->features,
                    .k = g->batch > 0 ? stride / g->batch * g->channels : 0,
                    .a_row = 1,
                    .a_column = g->batch,
                    .b_row = g->features,
                    .b_column = 1,
                    .c_row = g->out_batch,
                    .c_column = g->out_feature,
                    .exact = g->exact};
    return packed && (g->channels == 1 || (g->lhs_feature == stride && g->rhs_input == rhs_stride));
}

static bool is_multiplied(sf_dtype dtype)
{
    return dtype == SF_F32 || dtype == SF_F64 || dtype == SF_F16 || dtype == SF_BF16;
}

/* Places of a line that are a dilation apart are a column of an image of so many columns: windows in these are not dilated, which a
 * library is faster with. */
static void fold_line(sf_convolve *c)
{
    int64_t apart = c->dilation[0], *x = c->images[SF_IMAGE_X].sizes,
            *w = c->images[SF_IMAGE_W].sizes, *y = c->images[SF_IMAGE_Y].sizes;
    if (c->spatial != 1 || apart == 1 || c->stride[0] != 1 || c->pad[0] % apart != 0 ||
        x[0] % apart != 0 || y[0] % apart != 0)
        return;
    c->spatial = 2;
    x[0] /= apart;
    y[0] /= apart;
    x[1] = y[1] = apart;
    w[1] = 1;
    c->pad[0] /= apart;
    c->pad[1] = 0;
    c->stride[1] = c->dilation[0] = c->dilation[1] = 1;
}

static bool find_kind(const sf_conv *g, int64_t window, int64_t result, bool apart, sf_convolve *c)
{
    if (window > result)
        return apart ? as_transposed_filter(g, c) : as_filter(g, c);
    return apart ? as_data(g, c) : as_forward(g, c);
}

bool sf_convolve_of(const sf_conv *g, sf_convolve *c)
{
    int64_t window = 1, result = 1;
    bool apart = false;
    *c = (sf_convolve){.spatial = g->spatial, .dtype = g->lhs_dtype, .exact = g->exact};
    if (g->lhs_dtype != g->rhs_dtype || g->lhs_dtype != g->out_dtype ||
        !is_multiplied(g->lhs_dtype) || g->spatial < 1 || g->batch * g->channels * g->features == 0)
        return false;
    for (int d = 0; d < g->spatial; d++) {
        const sf_conv_dim *p = &g->space[d];
        window *= p->window;
        result *= p->out;
        apart = apart || p->base != 1;
        if (p->lhs == 0 || p->window == 0 || p->out == 0)
            return false;
    }
    c->is_product = as_product(g, &c->dot) || as_filter_product(g, &c->dot);
    if (c->is_product)
        return true;
    if (!find_kind(g, window, result, apart, c))
        return false;
    fold_line(c);
    return true;
}

int sf_convolve_result(const sf_convolve *c)
{
    return c->kind == SF_CONVOLVE_FORWARD ? SF_IMAGE_Y
           : c->kind == SF_CONVOLVE_DATA  ? SF_IMAGE_X
                                          : SF_IMAGE_W;
}

/* Moves */

#define PUT(...) sf_buf_printf(&w->body, __VA_ARGS__)

/* Declares `from`, where the element at i0, i1, ... comes from, and whether it is `inside`. */
static void put_source(sf_writer *w, const sf_move *m)
{
    PUT("int inside = 1;\ns64 from = 0;\n");
    for (int d = 0; d < m->rank; d++) {
        const sf_move_dim *p = &m->dims[d];
        PUT("{ s64 s = %" PRId64 "ll %c i%d; inside = inside && s >= 0 && s < %" PRId64
            "; from += s * (%" PRId64 "ll); }\n",
            p->first, p->transposed ? '-' : '+', d, p->extent, p->from);
    }
}

static void put_target(sf_writer *w, const sf_move *m)
{
    PUT("s64 to = 0");
    for (int d = 0; d < m->rank; d++)
        PUT(" + i%d * (%" PRId64 "ll)", d, m->dims[d].to);
    PUT(";\n");
}

/* i0, i1, ... of `rest`, but for two dimensions. */
static void put_others(sf_writer *w, const sf_move *m, int one, int other, const char *index)
{
    for (int d = m->rank - 1; d >= 0; d--)
        if (d != one && d != other)
            PUT("s64 i%d = rest %% (%s)%" PRId64 "; rest /= (%s)%" PRId64 ";\n", d, index,
                m->dims[d].size, index, m->dims[d].size);
}

static void write_each(sf_writer *w, const sf_move *m, int width, int64_t count)
{
    const char *index = sf_index_type(count);
    PUT("{\nfor (%s at = BLOCK * THREADS + THREAD; at < %" PRId64
        "; at += BLOCKS * THREADS) {\n%s rest = at;\n",
        index, count, index);
    put_others(w, m, -1, -1, index);
    put_source(w, m);
    put_target(w, m);
    PUT("AT(moved_%d, p1, to) = inside ? AT(const moved_%d, p0, from) : (moved_%d)0;\n}\n}\n",
        width, width, width);
    sf_write_launch(w, sf_blocks_for(count, THREADS), THREADS, true);
}

/* Along `a` elements are contiguous in the source, along `b` in the destination: a block transposes
 * a tile of both. */
static void write_tiles(sf_writer *w, const sf_move *m, int width, int a, int b, int64_t count)
{
    int64_t a_tiles = (m->dims[a].size + TILE - 1) / TILE,
            b_tiles = (m->dims[b].size + TILE - 1) / TILE;
    int64_t tiles = count / (m->dims[a].size * m->dims[b].size) * a_tiles * b_tiles;
    PUT("{\nSHARED moved_%d tile[%d][%d];\nint x = THREAD %% %d, y = THREAD / %d;\n", width, TILE,
        TILE + 1, TILE, TILE);
    PUT("for (s64 at = BLOCK; at < %" PRId64 "; at += BLOCKS) {\ns64 rest = at;\n", tiles);
    PUT("s64 first_a = rest %% %" PRId64 " * %d; rest /= %" PRId64 ";\n", a_tiles, TILE, a_tiles);
    PUT("s64 first_b = rest %% %" PRId64 " * %d; rest /= %" PRId64 ";\n", b_tiles, TILE, b_tiles);
    put_others(w, m, a, b, "s64");
    PUT("for (int row = y; row < %d; row += %d) {\ns64 i%d = first_a + x, i%d = first_b + row;\n",
        TILE, TILE_ROWS, a, b);
    PUT("if (i%d >= %" PRId64 " || i%d >= %" PRId64 ") continue;\n", a, m->dims[a].size, b,
        m->dims[b].size);
    put_source(w, m);
    PUT("tile[row][x] = inside ? AT(const moved_%d, p0, from) : (moved_%d)0;\n}\nBARRIER();\n",
        width, width);
    PUT("for (int row = y; row < %d; row += %d) {\ns64 i%d = first_a + row, i%d = first_b + x;\n",
        TILE, TILE_ROWS, a, b);
    PUT("if (i%d >= %" PRId64 " || i%d >= %" PRId64 ") continue;\n", a, m->dims[a].size, b,
        m->dims[b].size);
    put_target(w, m);
    PUT("AT(moved_%d, p1, to) = tile[x][row];\n}\nBARRIER();\n}\n}\n", width);
    sf_write_launch(w, sf_blocks_for(tiles, 1), THREADS, true);
}

static int fastest(const sf_move *m, bool to)
{
    int best = m->rank - 1;
    int64_t least = INT64_MAX;
    for (int d = 0; d < m->rank; d++) {
        int64_t stride = to ? m->dims[d].to : m->dims[d].from;
        stride = stride < 0 ? -stride : stride;
        if (m->dims[d].size > 1 && stride < least) {
            least = stride;
            best = d;
        }
    }
    return best;
}

/* Elements that the view of a parameter begins after its memory. */
static int64_t begin_of(const sf_writer *w, const sf_param *param)
{
    if (!w->inst || param->kind == SF_PARAM_SCRATCH)
        return 0;
    return param->kind == SF_PARAM_IN ? w->inst->in[param->index].offset : w->inst->out[0].offset;
}

/* How many elements of a contiguous last dimension one store of up to 16 bytes takes. */
static int64_t stored_together(const sf_writer *w, const sf_move *m, int width, const sf_param *to)
{
    const sf_move_dim *last = &m->dims[m->rank - 1];
    int64_t together = sf_gcd(16 / width, sf_gcd(last->size, begin_of(w, to)));
    for (int d = 0; d < m->rank - 1; d++)
        together = sf_gcd(together, m->dims[d].size > 1 ? m->dims[d].to : 0);
    bool are_beside = last->to == 1 && last->from == 1 && !last->transposed;
    return are_beside ? together : 1;
}

/* Whether these have one place in the source, too: all are inside, or none. */
static bool are_read_together(const sf_writer *w, const sf_move *m, int64_t together,
                              const sf_param *from)
{
    const sf_move_dim *last = &m->dims[m->rank - 1];
    bool are = last->first % together == 0 && last->extent % together == 0 &&
               begin_of(w, from) % together == 0;
    for (int d = 0; d < m->rank - 1; d++)
        are = are && (m->dims[d].extent == 1 || m->dims[d].from % together == 0);
    return are;
}

/* Some elements of the last dimension at a time. */
static void write_runs(sf_writer *w, const sf_move *m, int width, int64_t count, int64_t n,
                       bool are_together)
{
    int last = m->rank - 1;
    sf_move runs = *m, others = *m;
    runs.dims[last].size /= n;
    others.rank--;
    const char *index = sf_index_type(count);
    PUT("{\nfor (%s at = BLOCK * THREADS + THREAD; at < %" PRId64
        "; at += BLOCKS * THREADS) {\n%s rest = at;\n",
        index, count / n, index);
    put_others(w, &runs, -1, -1, index);
    PUT("s64 first = %" PRId64 "ll + i%d * %" PRId64 ";\n", m->dims[last].first, last, n);
    put_source(w, &others);
    put_target(w, &others);
    PUT("ALIGNED(16) moved_%d m[%" PRId64 "];\nUNROLL for (int k = 0; k < %" PRId64
        "; k++) m[k] = 0;\n",
        width, n, n);
    if (are_together)
        PUT("if (inside && first >= 0 && first < %" PRId64
            ") move_elements(m, SOME(const moved_%d, p0, from + first, %" PRId64 "), %" PRId64
            ");\n",
            m->dims[last].extent, width, n, n * width);
    else
        PUT("UNROLL for (int k = 0; k < %" PRId64
            "; k++) if (inside && first + k >= 0 && first + k < %" PRId64
            ") m[k] = AT(const moved_%d, p0, from + first + k);\n",
            n, m->dims[last].extent, width);
    PUT("move_elements(SOME(moved_%d, p1, to + i%d * %" PRId64 ", %" PRId64 "), m, %" PRId64
        ");\n}\n}\n",
        width, last, n, n, n * width);
    sf_write_launch(w, sf_blocks_for(count / n, THREADS), THREADS, true);
}

static void write_move(sf_writer *w, const sf_move *m, int width, sf_param from, sf_param to)
{
    int64_t count = 1, together = stored_together(w, m, width, &to);
    for (int d = 0; d < m->rank; d++)
        count *= m->dims[d].size;
    int a = fastest(m, false), b = fastest(m, true);
    sf_write_param(w, from);
    sf_write_param(w, to);
    if (a != b && m->dims[a].size >= TILE / 4 && m->dims[b].size >= TILE / 4)
        write_tiles(w, m, width, a, b, count);
    else if (together > 1)
        write_runs(w, m, width, count, together, are_read_together(w, m, together, &from));
    else
        write_each(w, m, width, count);
}

void sf_write_convolve(sf_writer *w, const sf_convolve *c)
{
    int result = sf_convolve_result(c), width = sf_dtype_get(c->dtype)->bytes;
    for (int i = 0; i < 3; i++) {
        const sf_image *image = &c->images[i];
        w->code->product[i] = image->given;
        if (!image->is_moved)
            continue;
        w->code->product[i] =
            (sf_param){.kind = SF_PARAM_SCRATCH, .value = sf_write_scratch(w, image->bytes)};
        if (i != result)
            write_move(w, &image->move, width, image->given, w->code->product[i]);
    }
    w->code->before = w->code->nlaunches;
    if (c->images[result].is_moved)
        write_move(w, &c->images[result].move, width, w->code->product[result],
                   c->images[result].given);
}
