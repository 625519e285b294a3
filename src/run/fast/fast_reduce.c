/* reduce: with a monoid, in registers; of (value, index) pairs, by a table (pick.h). */
#include <math.h>
#include <string.h>

#include "op/slots.h"
#include "op/util.h"
#include "run/fast/fast_fold.h"
#include "run/fast/fast_kernels.h"
#include "run/fast/pick.h"

/* The input's dimensions, apart: those that stay and those that go, neighbours of one kind merged. */
typedef struct shape {
    int kept, gone;
    int64_t kept_dims[SF_MAX_RANK], kept_strides[SF_MAX_RANK];
    int64_t gone_dims[SF_MAX_RANK], gone_strides[SF_MAX_RANK];
} shape;

static void add_dim(int64_t size, int64_t stride, int *rank, int64_t *dims, int64_t *strides)
{
    if (*rank > 0 && strides[*rank - 1] == size * stride) {
        dims[*rank - 1] *= size;
        strides[*rank - 1] = stride;
        return;
    }
    dims[*rank] = size;
    strides[(*rank)++] = stride;
}

static shape shape_of(const sf_op *op)
{
    const sf_type *type = op->in[0];
    sf_ints reduced = sf_op_ints(op, SF_REDUCE_DIMENSIONS);
    int64_t strides[SF_MAX_RANK];
    shape s = {0};
    sf_strides(type->rank, type->dims, strides);
    for (int d = 0; d < type->rank; d++) {
        if (type->dims[d] == 1)
            continue;
        if (sf_has(reduced, d))
            add_dim(type->dims[d], strides[d], &s.gone, s.gone_dims, s.gone_strides);
        else
            add_dim(type->dims[d], strides[d], &s.kept, s.kept_dims, s.kept_strides);
    }
    return s;
}

static int64_t count_of_dims(int rank, const int64_t *dims)
{
    int64_t count = 1;
    for (int d = 0; d < rank; d++)
        count *= dims[d];
    return count;
}

/* Where element `number` of the dimensions, in row-major order, lies. */
static int64_t offset_of_index(int rank, const int64_t *dims, const int64_t *strides,
                               int64_t number)
{
    int64_t at = 0;
    for (int d = rank - 1; d >= 0; d--) {
        at += number % dims[d] * strides[d];
        number /= dims[d];
    }
    return at;
}

/* Where the element with this index lies. */
static int64_t offset_at(int rank, const int64_t *index, const int64_t *strides)
{
    int64_t at = 0;
    for (int d = 0; d < rank; d++)
        at += index[d] * strides[d];
    return at;
}

typedef struct reducing {
    shape shape;
    sf_folding folding;
    sf_pick pick;
    const sf_tensor *in;
    sf_tensor *out;
    int64_t width;
    int64_t row, row_stride; /* of the last dimension that goes */
} reducing;

/* Results that lie side by side in the input: `count` of them, from result `first` on. */
static void reduce_side(const reducing *r, int64_t first, int64_t count)
{
    const sf_folding *f = &r->folding;
    const shape *s = &r->shape;
    const char *in = r->in[0].data;
    int last = s->kept - 1;
    int64_t stride = s->kept > 0 ? s->kept_strides[last] : 1, index[SF_MAX_RANK] = {0};
    int64_t base = offset_of_index(s->kept, s->kept_dims, s->kept_strides, first);
    sf_register sum, row;
    f->vec->loads[f->dtype](&sum, r->in[1].data, 0, count);
    do {
        int64_t at = base + offset_at(s->gone, index, s->gone_strides);
        f->vec->loads[f->dtype](&row, in + at * r->width, stride, count);
        f->combine(&sum, &sum, &row, NULL, count);
    } while (sf_next_index(s->gone, s->gone_dims, index));
    f->vec->stores[f->dtype]((char *)r->out->data + first * r->width, 1, &sum, count);
}

static void reduce_sides(void *context, int part, int64_t first, int64_t end)
{
    (void)part;
    const reducing *r = context;
    int64_t row = r->shape.kept > 0 ? r->shape.kept_dims[r->shape.kept - 1] : 1;
    while (first < end) {
        int64_t count = row - first % row;
        count = count < end - first ? count : end - first;
        count = count < SF_FAST_REGISTER ? count : SF_FAST_REGISTER;
        reduce_side(r, first, count);
        first += count;
    }
}

/* One result after the other, each the fold of rows. */
static void reduce_rows(void *context, int part, int64_t first, int64_t end)
{
    (void)part;
    const reducing *r = context;
    const sf_folding *f = &r->folding;
    const shape *s = &r->shape;
    sf_register sum, row;
    for (int64_t i = first; i < end; i++) {
        int64_t base = offset_of_index(s->kept, s->kept_dims, s->kept_strides, i);
        int64_t index[SF_MAX_RANK] = {0};
        f->vec->loads[f->dtype](&sum, r->in[1].data, 1, 1);
        do {
            const char *in = (const char *)r->in[0].data +
                             (base + offset_at(s->gone - 1, index, s->gone_strides)) * r->width;
            for (int64_t at = 0; at < r->row; at += SF_FAST_REGISTER) {
                int64_t n = r->row - at < SF_FAST_REGISTER ? r->row - at : SF_FAST_REGISTER;
                f->vec->loads[f->dtype](&row, in + at * r->row_stride * r->width, r->row_stride, n);
                f->fold(&sum, &row, n);
            }
        } while (sf_next_index(s->gone - 1, s->gone_dims, index));
        f->vec->stores[f->dtype]((char *)r->out->data + i * r->width, 1, &sum, 1);
    }
}

/* Picking. Values are compared as doubles, or as int64 with the order of the type. */

typedef struct picked {
    double real;
    int64_t integer, index;
} picked;

static int64_t ordered_value(sf_dtype dtype, int64_t value)
{
    return dtype == SF_U64 ? (int64_t)((uint64_t)value ^ UINT64_C(1) << 63) : value;
}

static sf_relation relate_real(double a, double b)
{
    if (a > b)
        return SF_GREATER;
    if (a < b)
        return SF_LESS;
    if (a == b)
        return SF_EQUAL;
    return !isnan(b) ? SF_NAN_FIRST : !isnan(a) ? SF_NAN_SECOND : SF_NAN_BOTH;
}

static sf_relation relate_integer(int64_t a, int64_t b)
{
    return a < b ? SF_LESS : a > b ? SF_GREATER : SF_EQUAL;
}

enum { PICK_CHUNK = 256 };

static void pick_row(const reducing *r, int64_t at, int64_t count, picked *best)
{
    sf_dtype dtype = r->in[0].type->dtype, indices = r->in[1].type->dtype;
    bool real = sf_is_float(dtype);
    union {
        double real[PICK_CHUNK];
        int64_t integer[PICK_CHUNK];
    } x;
    const sf_pick *pick = &r->pick;
    bool quiet[3]; /* relations of values that keep all, whatever the indices */
    for (int v = 0; v < 3; v++) {
        quiet[v] = true;
        for (int i = 0; i < 3; i++)
            quiet[v] = quiet[v] && !pick->value[v][i] && !pick->index[v][i];
    }
    if (real && r->row_stride == 1)
        sf_load_f64s(dtype, r->in[0].data, at, count, x.real);
    for (int64_t k = 0; k < count; k++) {
        int64_t from = at + k * r->row_stride;
        if (!real)
            x.integer[k] = ordered_value(dtype, sf_load_i64(dtype, r->in[0].data, from));
        else if (r->row_stride != 1)
            x.real[k] = sf_load_f64(dtype, r->in[0].data, from);
        sf_relation v =
            real ? relate_real(best->real, x.real[k]) : relate_integer(best->integer, x.integer[k]);
        if (v <= SF_GREATER && quiet[v])
            continue;
        int64_t index = ordered_value(indices, sf_load_i64(indices, r->in[1].data, from));
        sf_relation i = relate_integer(best->index, index);
        if (pick->value[v][i] && real)
            best->real = x.real[k];
        else if (pick->value[v][i])
            best->integer = x.integer[k];
        if (pick->index[v][i])
            best->index = index;
    }
}

static void pick_rows(void *context, int part, int64_t first, int64_t end)
{
    (void)part;
    const reducing *r = context;
    const shape *s = &r->shape;
    sf_dtype dtype = r->in[0].type->dtype, indices = r->in[1].type->dtype;
    bool real = sf_is_float(dtype);
    for (int64_t i = first; i < end; i++) {
        picked best = {.index = ordered_value(indices, sf_get_i64(&r->in[3], 0))};
        if (real)
            best.real = sf_get_f64(&r->in[2], 0);
        else
            best.integer = ordered_value(dtype, sf_get_i64(&r->in[2], 0));
        int64_t base = offset_of_index(s->kept, s->kept_dims, s->kept_strides, i);
        int64_t index[SF_MAX_RANK] = {0};
        do {
            int64_t at = base + offset_at(s->gone - 1, index, s->gone_strides);
            for (int64_t k = 0; k < r->row; k += PICK_CHUNK)
                pick_row(r, at + k * r->row_stride,
                         r->row - k < PICK_CHUNK ? r->row - k : PICK_CHUNK, &best);
        } while (sf_next_index(s->gone - 1, s->gone_dims, index));
        if (real)
            sf_store_f64(dtype, r->out[0].data, i, best.real);
        else
            sf_store_i64(dtype, r->out[0].data, i, ordered_value(dtype, best.integer));
        sf_store_i64(indices, r->out[1].data, i, ordered_value(indices, best.index));
    }
}

/* The variant is the monoid; bodies that pick come after all of these. */
enum { PICKS = SF_MONOID_COUNT };

static int64_t choose_reduce(const sf_op *op)
{
    sf_pick pick;
    sf_monoid monoid = sf_op_monoid(op, SF_REDUCE_BODY);
    if (op->in[0]->count == 0 || monoid == SF_MONOID_SECOND || sf_is_complex(op->in[0]->dtype))
        return SF_FAST_NONE;
    if (monoid != SF_MONOID_NONE)
        return monoid;
    return sf_pick_of(op, &pick) ? PICKS + sf_pick_number(&pick) : SF_FAST_NONE;
}

static void run_reduce(const sf_op *op, int64_t variant, const sf_tensor *in, sf_tensor *out,
                       void *scratch, sf_threads *threads)
{
    (void)scratch;
    bool picks = variant >= PICKS;
    reducing r = {.shape = shape_of(op), .in = in, .out = out};
    shape *s = &r.shape;
    r.width = sf_dtype_get(out->type->dtype)->bytes;
    int64_t each = count_of_dims(s->gone, s->gone_dims);
    int64_t grain = 1 + sf_threads_grain(threads) / each;
    if (picks)
        r.pick = sf_pick_of_number(variant - PICKS);
    else
        r.folding = sf_folding_of((sf_monoid)variant, out->type->dtype);
    bool side = s->gone == 0 ||
                (s->kept > 0 && s->kept_strides[s->kept - 1] < s->gone_strides[s->gone - 1]);
    if (s->gone == 0)
        add_dim(1, 0, &s->gone, s->gone_dims, s->gone_strides);
    r.row = s->gone_dims[s->gone - 1];
    r.row_stride = s->gone_strides[s->gone - 1];
    if (picks)
        sf_threads_run(threads, out->type->count, grain, pick_rows, &r);
    else
        sf_threads_run(threads, out->type->count, grain, side ? reduce_sides : reduce_rows, &r);
}

const sf_fast sf_fast_reduce = {.choose = choose_reduce, .run = run_reduce};
