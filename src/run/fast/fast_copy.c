/* Ops that move elements or make them from nothing. All moves are copies of boxes. */
#include <string.h>

#include "base/checked.h"
#include "base/rng.h"
#include "op/data_movement.h"
#include "op/slots.h"
#include "op/util.h"
#include "run/fast/box.h"
#include "run/fast/fast_kernels.h"

static int64_t width_of_dtype(const sf_tensor *tensor)
{
    return sf_dtype_get(tensor->type->dtype)->bytes;
}

static char *bits_at(const sf_tensor *tensor, int64_t index)
{
    return (char *)tensor->data + index * width_of_dtype(tensor);
}

/* The box of `dims` with the strides of both tensors. */
static sf_box box_of(const int64_t *dims, const sf_tensor *to, const sf_tensor *from)
{
    sf_box box = {.rank = to->type->rank};
    sf_strides(box.rank, to->type->dims, box.to);
    sf_strides(box.rank, from->type->dims, box.from);
    memcpy(box.dims, dims, (size_t)box.rank * sizeof *dims);
    return box;
}

/* All elements as they lie. */
static void copy_whole(const sf_tensor *from, const sf_tensor *to, sf_threads *threads)
{
    sf_box box = {.rank = 1, .dims = {to->type->count}, .to = {1}, .from = {1}};
    if (from->data != to->data)
        sf_box_run(box, width_of_dtype(to), to->data, from->data, threads);
}

static int64_t choose_bitcast(const sf_op *op)
{
    const sf_dtype_info *a = sf_dtype_get(op->in[0]->dtype), *b = sf_dtype_get(op->out[0]->dtype);
    return a->bits == b->bits && a->bytes == b->bytes ? 0 : SF_FAST_NONE;
}

static void run_same(const sf_op *op, int64_t variant, const sf_tensor *in, sf_tensor *out,
                     void *scratch, sf_threads *threads)
{
    (void)op, (void)variant, (void)scratch;
    copy_whole(in, out, threads);
}

const sf_fast sf_fast_bitcast_convert = {.choose = choose_bitcast, .run = run_same};
const sf_fast sf_fast_reshape = {.run = run_same};

static void run_broadcast(const sf_op *op, int64_t variant, const sf_tensor *in, sf_tensor *out,
                          void *scratch, sf_threads *threads)
{
    (void)variant, (void)scratch;
    sf_ints dims = sf_op_ints(op, SF_BROADCAST_DIMENSIONS);
    int64_t strides[SF_MAX_RANK];
    sf_box box = {.rank = out->type->rank};
    memcpy(box.dims, out->type->dims, (size_t)box.rank * sizeof *box.dims);
    sf_strides(box.rank, box.dims, box.to);
    sf_strides(in->type->rank, in->type->dims, strides);
    for (int k = 0; k < dims.count; k++)
        if (in->type->dims[k] != 1)
            box.from[dims.at[k]] = strides[k];
    sf_box_run(box, width_of_dtype(out), out->data, in->data, threads);
}

const sf_fast sf_fast_broadcast_in_dim = {.run = run_broadcast};

static void run_transpose(const sf_op *op, int64_t variant, const sf_tensor *in, sf_tensor *out,
                          void *scratch, sf_threads *threads)
{
    (void)variant, (void)scratch;
    sf_ints order = sf_op_ints(op, SF_TRANSPOSE_PERMUTATION);
    int64_t strides[SF_MAX_RANK];
    sf_strides(in->type->rank, in->type->dims, strides);
    sf_box box = box_of(out->type->dims, out, out);
    for (int d = 0; d < order.count; d++)
        box.from[d] = strides[order.at[d]];
    sf_box_run(box, width_of_dtype(out), out->data, in->data, threads);
}

const sf_fast sf_fast_transpose = {.run = run_transpose};

static void run_slice(const sf_op *op, int64_t variant, const sf_tensor *in, sf_tensor *out,
                      void *scratch, sf_threads *threads)
{
    (void)variant, (void)scratch;
    sf_box box = box_of(out->type->dims, out, in);
    int64_t first = 0;
    for (int d = 0; d < box.rank; d++) {
        first += sf_op_ints(op, SF_SLICE_STARTS).at[d] * box.from[d];
        box.from[d] *= sf_op_ints(op, SF_SLICE_STRIDES).at[d];
    }
    if (out->type->count > 0)
        sf_box_run(box, width_of_dtype(out), out->data, bits_at(in, first), threads);
}

const sf_fast sf_fast_slice = {.run = run_slice};

static void run_reverse(const sf_op *op, int64_t variant, const sf_tensor *in, sf_tensor *out,
                        void *scratch, sf_threads *threads)
{
    (void)variant, (void)scratch;
    sf_box box = box_of(out->type->dims, out, in);
    int64_t first = 0;
    for (int d = 0; d < box.rank; d++)
        if (sf_has(sf_op_ints(op, SF_REVERSE_DIMENSIONS), d)) {
            first += (box.dims[d] - 1) * box.from[d];
            box.from[d] = -box.from[d];
        }
    if (out->type->count > 0)
        sf_box_run(box, width_of_dtype(out), out->data, bits_at(in, first), threads);
}

const sf_fast sf_fast_reverse = {.run = run_reverse};

static void run_concatenate(const sf_op *op, int64_t variant, const sf_tensor *in, sf_tensor *out,
                            void *scratch, sf_threads *threads)
{
    (void)variant, (void)scratch;
    int dim = (int)sf_op_int(op, SF_CONCATENATE_DIMENSION, 0);
    int64_t at = 0;
    for (int t = 0; t < op->noperands; t++) {
        sf_box box = box_of(in[t].type->dims, out, &in[t]);
        if (in[t].type->count > 0)
            sf_box_run(box, width_of_dtype(out), bits_at(out, at * box.to[dim]), in[t].data,
                       threads);
        at += in[t].type->dims[dim];
    }
}

const sf_fast sf_fast_concatenate = {.run = run_concatenate};

/* Where a box of the shape `inner` begins in `outer`, moved inside; as an element. */
static int64_t box_corner(const sf_type *outer, const sf_type *inner, const sf_tensor *starts)
{
    int64_t strides[SF_MAX_RANK], first = 0;
    sf_strides(outer->rank, outer->dims, strides);
    for (int d = 0; d < outer->rank; d++) {
        int64_t last = outer->dims[d] - inner->dims[d], start = sf_index_at(&starts[d], 0);
        start = start < 0 ? 0 : start > last ? last : start;
        first += start * strides[d];
    }
    return first;
}

static void run_dynamic_slice(const sf_op *op, int64_t variant, const sf_tensor *in, sf_tensor *out,
                              void *scratch, sf_threads *threads)
{
    (void)op, (void)variant, (void)scratch;
    sf_box box = box_of(out->type->dims, out, in);
    int64_t first = box_corner(in->type, out->type, &in[1]);
    if (out->type->count > 0)
        sf_box_run(box, width_of_dtype(out), out->data, bits_at(in, first), threads);
}

const sf_fast sf_fast_dynamic_slice = {.run = run_dynamic_slice};

static void run_dynamic_update(const sf_op *op, int64_t variant, const sf_tensor *in,
                               sf_tensor *out, void *scratch, sf_threads *threads)
{
    (void)op, (void)variant, (void)scratch;
    if (in[0].data != out->data)
        copy_whole(&in[0], out, threads);
    sf_box box = box_of(in[1].type->dims, out, &in[1]);
    int64_t first = box_corner(out->type, in[1].type, &in[2]);
    if (in[1].type->count > 0)
        sf_box_run(box, width_of_dtype(out), bits_at(out, first), in[1].data, threads);
}

const sf_fast sf_fast_dynamic_update_slice = {.run = run_dynamic_update};

static void run_pad(const sf_op *op, int64_t variant, const sf_tensor *in, sf_tensor *out,
                    void *scratch, sf_threads *threads)
{
    (void)variant, (void)scratch;
    sf_ints low = sf_op_ints(op, SF_PAD_LOW);
    sf_ints interior = sf_op_ints(op, SF_PAD_INTERIOR);
    sf_box box = box_of(in->type->dims, out, in);
    int64_t to = 0, from = 0;
    for (int d = 0; d < box.rank; d++) {
        int64_t step = interior.at[d] + 1, size = box.dims[d];
        int64_t first = low.at[d] < 0 ? sf_ceil_div(-low.at[d], step) : 0;
        int64_t end = sf_ceil_div(out->type->dims[d] - low.at[d], step);
        end = end > size ? size : end;
        box.dims[d] = end > first ? end - first : 0;
        if (box.dims[d] > 0) {
            to += (low.at[d] + first * step) * box.to[d];
            from += first * box.from[d];
            box.to[d] *= box.dims[d] > 1 ? step : 1;
        }
    }
    int64_t count = sf_box_count(&box);
    if (count != out->type->count)
        sf_fill_run(out->data, width_of_dtype(out), in[1].data, out->type->count, threads);
    if (count > 0)
        sf_box_run(box, width_of_dtype(out), bits_at(out, to), bits_at(in, from), threads);
}

const sf_fast sf_fast_pad = {.run = run_pad};

/* Rows of `inner` equal elements; `size` rows count up, repeatedly. */
typedef struct counting {
    const sf_tensor *out;
    int64_t size, inner;
} counting;

static void count_part(void *context, int part, int64_t first, int64_t end)
{
    (void)part;
    const counting *c = context;
    sf_dtype dtype = c->out->type->dtype;
    for (int64_t row = first; row < end; row++) {
        int64_t number = row % c->size, at = row * c->inner;
        if (sf_is_inexact(dtype))
            sf_store_f64(dtype, c->out->data, at, (double)number);
        else
            sf_store_i64(dtype, c->out->data, at, number);
        if (c->inner > 1)
            sf_fill(bits_at(c->out, at + 1), width_of_dtype(c->out), bits_at(c->out, at),
                    c->inner - 1);
    }
}

static void run_iota(const sf_op *op, int64_t variant, const sf_tensor *in, sf_tensor *out,
                     void *scratch, sf_threads *threads)
{
    (void)in, (void)variant, (void)scratch;
    int dim = (int)sf_op_int(op, SF_IOTA_DIMENSION, 0);
    counting c = {out, out->type->dims[dim], 1};
    for (int d = dim + 1; d < out->type->rank; d++)
        c.inner *= out->type->dims[d];
    if (out->type->count > 0)
        sf_threads_run(threads, out->type->count / c.inner, 1 + sf_threads_grain(threads) / c.inner,
                       count_part, &c);
}

const sf_fast sf_fast_iota = {.run = run_iota};

typedef struct drawing {
    sf_rng rng;
    const sf_tensor *out;
} drawing;

static void draw_part(void *context, int part, int64_t first, int64_t end)
{
    (void)part;
    const drawing *d = context;
    sf_rng_bits(&d->rng, first, end - first, bits_at(d->out, first));
}

/* The variant is the algorithm. */
static int64_t choose_rng(const sf_op *op)
{
    const char *name = sf_op_text(op, SF_RNG_BIT_GENERATOR_ALGORITHM);
    return strcmp(name, "THREE_FRY") == 0 ? SF_RNG_THREEFRY : SF_RNG_PHILOX;
}

static void run_rng(const sf_op *op, int64_t variant, const sf_tensor *in, sf_tensor *out,
                    void *scratch, sf_threads *threads)
{
    (void)scratch;
    const sf_type *type = out[1].type;
    drawing d = {.out = &out[1]};
    uint64_t state[8];
    int words = (int)in->type->dims[0];
    for (int i = 0; i < words; i++)
        state[i] = (uint64_t)sf_get_i64(in, i);
    sf_status status =
        sf_rng_init(&d.rng, (sf_rng_algorithm)variant, state, words, (int)width_of_dtype(&out[1]),
                    type->dims, type->rank, op->loc, NULL);
    SF_ASSERT(status == SF_OK); /* inference has tried the same */
    if (type->count > 0)
        sf_threads_run(threads, type->count, 1 + sf_threads_grain(threads) / 8, draw_part, &d);
    sf_rng_next_state(&d.rng, state);
    for (int i = 0; i < words; i++)
        sf_store_i64(SF_U64, out[0].data, i, (int64_t)state[i]);
}

const sf_fast sf_fast_rng_bit_generator = {.choose = choose_rng, .run = run_rng};
