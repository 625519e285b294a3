/* Packing the windows and the kernel of a convolution.
 *
 * The steps of a block are cut into segments, one per window position: its channels. The offset of
 * a window position from the window's start is computed once for the block. */
#include <string.h>

#include "run/conv/conv_as_gemm.h"

void sf_conv_row(const sf_conv_plan *plan, int64_t row, int64_t *at)
{
    for (int i = plan->nplaces - 1; i >= 0; i--) {
        at[i] = row % plan->places[i].size;
        row /= plan->places[i].size;
    }
}

void sf_conv_next_row(const sf_conv_plan *plan, int64_t *at)
{
    for (int i = plan->nplaces - 1; i >= 0 && ++at[i] == plan->places[i].size; i--)
        at[i] = 0;
}

typedef struct segments {
    int count;
    int64_t first[SF_GEMM_MOST_K], length[SF_GEMM_MOST_K]; /* of channels */
    int64_t at[SF_GEMM_MOST_K][SF_MAX_RANK];               /* window position */
} segments;

static void cut_steps(const sf_conv_job *c, int64_t p, int64_t k, segments *out)
{
    int64_t position = p / c->g.channels, channel = p % c->g.channels, w[SF_MAX_RANK];
    for (int d = c->g.spatial - 1; d >= 0; d--) {
        w[d] = position % c->g.space[d].window;
        position /= c->g.space[d].window;
    }
    out->count = 0;
    while (k > 0) {
        int64_t length = c->g.channels - channel < k ? c->g.channels - channel : k;
        out->first[out->count] = channel;
        out->length[out->count] = length;
        memcpy(out->at[out->count], w, (size_t)c->g.spatial * sizeof *w);
        out->count++;
        k -= length;
        channel = 0;
        for (int d = c->g.spatial - 1; d >= 0 && ++w[d] == c->g.space[d].window; d--)
            w[d] = 0;
    }
}

/* Converts window positions into distances from the start of the window. */
static void spread_positions(const sf_conv_job *c, segments *s)
{
    for (int n = 0; n < s->count; n++)
        for (int d = 0; d < c->g.spatial; d++) {
            const sf_conv_dim *dim = &c->g.space[d];
            int64_t w = s->at[n][d];
            s->at[n][d] = (dim->reversed ? dim->window - 1 - w : w) * dim->dilation;
        }
}

/* Where the windows of a row start, and the offset of its batch element. */
typedef struct row {
    int64_t start[SF_MAX_RANK];
    int64_t offset;
} row;

static row row_at(const sf_conv_plan *plan, const int64_t *at)
{
    row r = {0};
    for (int i = 0; i < plan->nplaces; i++) {
        int d = plan->places[i].space;
        if (d < 0)
            r.offset = at[i] * plan->places[i].lhs_stride;
        else
            r.start[d] = at[i] * plan->conv->g.space[d].stride - plan->conv->g.space[d].low;
    }
    return r;
}

/* No offset; strides may be negative, and so may offsets. */
static const int64_t NOTHING = INT64_MIN;

/* The offset of a row's element in segment n; NOTHING for zeros. Dimension `except` is left out. */
static inline int64_t seen_offset(const sf_conv_job *c, const row *r, const segments *s, int n,
                                  int except)
{
    int64_t offset = r->offset;
    for (int d = 0; d < c->g.spatial; d++) {
        if (d == except)
            continue;
        int64_t element = sf_conv_element(&c->g.space[d], r->start[d] + s->at[n][d]);
        if (element < 0)
            return NOTHING;
        offset += element * c->g.space[d].lhs_stride;
    }
    return offset;
}

static inline void copy_run(char *to, const char *from, int64_t bytes)
{
    if (bytes == 48) /* a panel's row in the widest kernels */
        memcpy(to, from, 48);
    else
        memcpy(to, from, (size_t)bytes);
}

static void gather_elements(char *to, const char *from, int64_t stride, int64_t count, int64_t size)
{
    if (stride == 1) {
        memcpy(to, from, (size_t)(count * size));
        return;
    }
    for (int64_t i = 0; i < count; i++)
        if (size == 4)
            memcpy(to + i * 4, from + i * stride * 4, 4);
        else if (size == 2)
            memcpy(to + i * 2, from + i * stride * 2, 2);
        else
            memcpy(to + i * 8, from + i * stride * 8, 8);
}

/* One panel, a row at a time: channels lie side by side. */
static void pack_by_rows(const sf_conv_plan *plan, const segments *s, const char *lhs, int64_t *at,
                         int64_t rows, int64_t k, void *panel)
{
    const sf_conv_job *c = plan->conv;
    int64_t size = sf_dtype_get(c->g.lhs_dtype)->bytes;
    _Alignas(64) char lines[SF_GEMM_MOST_STEP * SF_GEMM_MOST_K];
    for (int64_t i = 0; i < rows; i++, sf_conv_next_row(plan, at)) {
        row r = row_at(plan, at);
        char *to = lines + i * k * size;
        for (int n = 0; n < s->count; n++) {
            int64_t offset = seen_offset(c, &r, s, n, -1), length = s->length[n];
            if (offset == NOTHING)
                memset(to, 0, (size_t)(length * size));
            else
                gather_elements(to, lhs + (offset + s->first[n] * c->g.lhs_feature) * size,
                                c->g.lhs_feature, length, size);
            to += length * size;
        }
    }
    plan->type->pack_a(panel, rows, k, lines, c->g.lhs_dtype, k, 1);
}

/* Which of `count` windows from `start` on, one position apart, see an element. */
static void clip_windows(const sf_conv_dim *dim, int64_t start, int64_t count, int64_t *first,
                         int64_t *end)
{
    *first = start < 0 ? -start : 0;
    *end = dim->lhs - start < count ? dim->lhs - start : count;
}

/* Rows [i, i + count) of a panel that differ in the last place only, one element apart. */
static void pack_run(const sf_conv_plan *plan, const segments *s, const char *lhs, const row *r,
                     int64_t i, int64_t count, char *panel, int64_t size)
{
    const sf_conv_job *c = plan->conv;
    int space = plan->places[plan->nplaces - 1].space;
    int64_t mr = plan->type->mr;
    char *to = panel + i * size;
    for (int n = 0; n < s->count; n++) {
        int64_t offset = seen_offset(c, r, s, n, space), first = 0, end = count;
        bool none = offset == NOTHING;
        if (!none && space >= 0) {
            int64_t start = r->start[space] + s->at[n][space];
            clip_windows(&c->g.space[space], start, count, &first, &end);
            offset += start * c->g.space[space].lhs_stride;
        }
        none = none || first >= end;
        const char *from =
            none ? lhs : lhs + (offset + first + s->first[n] * c->g.lhs_feature) * size;
        for (int64_t p = 0; p < s->length[n]; p++, to += mr * size) {
            if (none || end - first < count)
                memset(to, 0, (size_t)(count * size));
            if (!none)
                copy_run(to + first * size, from + p * c->g.lhs_feature * size,
                         (end - first) * size);
        }
    }
}

/* One panel, a step at a time: rows lie side by side. */
static void pack_by_steps(const sf_conv_plan *plan, const segments *s, const char *lhs, int64_t *at,
                          int64_t rows, int64_t k, void *panel)
{
    const sf_conv_job *c = plan->conv;
    const sf_conv_place *last = &plan->places[plan->nplaces - 1];
    int64_t size = sf_dtype_get(c->g.lhs_dtype)->bytes, mr = plan->type->mr;
    bool native = c->g.lhs_dtype == plan->type->dtype && plan->type->unit == 1;
    char other[SF_GEMM_MOST_STEP * SF_GEMM_MOST_K], *to = native ? panel : other;
    for (int64_t i = 0; i < rows;) {
        int64_t *index = &at[plan->nplaces - 1];
        int64_t count = last->size - *index < rows - i ? last->size - *index : rows - i;
        row r = row_at(plan, at);
        pack_run(plan, s, lhs, &r, i, count, to, size);
        i += count;
        *index += count - 1;
        sf_conv_next_row(plan, at);
    }
    if (!native)
        plan->type->pack_a(panel, rows, k, to, c->g.lhs_dtype, 1, mr);
    else if (rows < mr)
        for (int64_t p = 0; p < k; p++)
            memset((char *)panel + (p * mr + rows) * size, 0, (size_t)((mr - rows) * size));
}

void sf_conv_pack_lhs(const void *context, int64_t group, int64_t first, int64_t count, int64_t p,
                      int64_t k, void *panels)
{
    const sf_conv_plan *plan = context;
    const sf_conv_job *c = plan->conv;
    int64_t mr = plan->type->mr, panel = mr * sf_gemm_row_bytes(plan->type, k);
    int64_t at[SF_MAX_RANK];
    const char *lhs =
        (const char *)c->lhs + group * plan->lhs_group * sf_dtype_get(c->g.lhs_dtype)->bytes;
    segments s;
    cut_steps(c, p, k, &s);
    spread_positions(c, &s);
    sf_conv_row(plan, first, at);
    for (int64_t i = 0; i < count; i += mr) {
        int64_t rows = count - i < mr ? count - i : mr;
        (plan->along_rows ? pack_by_steps : pack_by_rows)(plan, &s, lhs, at, rows, k,
                                                          (char *)panels + i / mr * panel);
    }
}

/* Steps [0, k) of one panel of the kernel, segment by segment; where the panel has not one step after
 * the other, by way of one that has. */
static void pack_kernel_panel(const sf_conv_plan *plan, const segments *s, const char *rhs,
                              int64_t valid, int64_t k, char *panel)
{
    const sf_conv_job *c = plan->conv;
    int64_t size = sf_dtype_get(c->g.rhs_dtype)->bytes;
    int64_t nr = plan->type->nr, step = nr * sf_dtype_get(plan->type->dtype)->bytes;
    char steps[SF_GEMM_MOST_STEP * SF_GEMM_MOST_K], *to = plan->type->unit == 1 ? panel : steps;
    for (int n = 0; n < s->count; n++) {
        int64_t offset = s->first[n] * c->g.rhs_input;
        for (int d = 0; d < c->g.spatial; d++)
            offset += s->at[n][d] * c->g.space[d].rhs_stride;
        if (plan->type->unit == 1)
            plan->type->pack_b(to, valid, s->length[n], rhs + offset * size, c->g.rhs_dtype,
                               c->g.rhs_output, c->g.rhs_input);
        else
            for (int64_t p = 0; p < s->length[n]; p++)
                gather_elements(to + p * step, rhs + (offset + p * c->g.rhs_input) * size,
                                c->g.rhs_output, valid, size);
        to += s->length[n] * step;
    }
    if (plan->type->unit != 1)
        plan->type->pack_b(panel, valid, k, steps, c->g.rhs_dtype, 1, nr);
}

void sf_conv_pack_rhs(const void *context, int64_t group, int64_t first, int64_t count, int64_t p,
                      int64_t k, void *panels)
{
    const sf_conv_plan *plan = context;
    const sf_conv_job *c = plan->conv;
    int64_t nr = plan->type->nr, panel = nr * sf_gemm_row_bytes(plan->type, k);
    int64_t size = sf_dtype_get(c->g.rhs_dtype)->bytes;
    segments s;
    if (!plan->plain_kernel)
        cut_steps(c, p, k, &s);
    for (int64_t j = 0; j < count; j += nr) {
        int64_t valid = count - j < nr ? count - j : nr;
        const char *rhs =
            (const char *)c->rhs + (group * plan->rhs_group + (first + j) * c->g.rhs_output) * size;
        char *to = (char *)panels + j / nr * panel;
        if (plan->plain_kernel)
            plan->type->pack_b(to, valid, k, rhs + p * c->g.rhs_input * size, c->g.rhs_dtype,
                               c->g.rhs_output, c->g.rhs_input);
        else
            pack_kernel_panel(plan, &s, rhs, valid, k, to);
    }
}
