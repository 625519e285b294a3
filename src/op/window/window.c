/* reduce_window: folds the elements of each window, from the initial value on; padding and the
 * holes of a dilated operand have the initial value too. */
#include <math.h>

#include "base/checked.h"
#include "op/body.h"
#include "op/slots.h"
#include "op/util.h"
#include "op/window/sliding.h"

enum { NATTRS = SF_REDUCE_WINDOW_BODY + 1 };

static const sf_attrdef attrs[NATTRS] = {
    [SF_REDUCE_WINDOW_SIZES] = {.name = "window_dimensions",
                                .kind = SF_ATTR_INTS,
                                .required = true},
    [SF_REDUCE_WINDOW_STRIDES] = {.name = "window_strides",
                                  .kind = SF_ATTR_INTS,
                                  .absent = SF_ABSENT_ONES},
    [SF_REDUCE_WINDOW_BASE_DILATIONS] = {.name = "base_dilations",
                                         .kind = SF_ATTR_INTS,
                                         .absent = SF_ABSENT_ONES},
    [SF_REDUCE_WINDOW_DILATIONS] = {.name = "window_dilations",
                                    .kind = SF_ATTR_INTS,
                                    .absent = SF_ABSENT_ONES},
    [SF_REDUCE_WINDOW_PADDING] = {.name = "padding",
                                  .kind = SF_ATTR_INTS,
                                  .text = SF_AS_PAIRS,
                                  .absent = SF_ABSENT_ZEROS},
    [SF_REDUCE_WINDOW_BODY] = {.name = "body", .kind = SF_ATTR_INT, .derived = true},
};

static sf_sliding_lists reduce_window_lists(const sf_op *op)
{
    return (sf_sliding_lists){.strides = sf_op_ints(op, SF_REDUCE_WINDOW_STRIDES),
                              .padding = sf_op_ints(op, SF_REDUCE_WINDOW_PADDING),
                              .base = sf_op_ints(op, SF_REDUCE_WINDOW_BASE_DILATIONS),
                              .dilation = sf_op_ints(op, SF_REDUCE_WINDOW_DILATIONS)};
}

sf_sliding sf_reduce_window_window(const sf_op *op, int dim)
{
    sf_sliding window = {.operand = op->in[0]->dims[dim],
                         .size = sf_op_ints(op, SF_REDUCE_WINDOW_SIZES).at[dim]};
    sf_sliding_fill(reduce_window_lists(op), dim, &window);
    return window;
}

static sf_status infer_window(const sf_op *op, const sf_type **out, sf_diag *diag)
{
    int count = op->noperands / 2, rank = op->in[0]->rank;
    sf_ints sizes = sf_op_ints(op, SF_REDUCE_WINDOW_SIZES);
    SF_TRY(sf_check_fold(op, count, diag));
    SF_TRY(sf_check_body(op, SF_REDUCE_WINDOW_BODY, 0, count, diag));
    if (sizes.count != rank)
        return SF_OP_FAIL(op, diag, "window_dimensions has %d entries, expected %d", sizes.count,
                          rank);
    sf_sliding windows[SF_MAX_RANK];
    int64_t dims[SF_MAX_RANK], total = 1;
    for (int d = 0; d < rank; d++) {
        windows[d].operand = op->in[0]->dims[d];
        windows[d].size = sizes.at[d];
    }
    SF_TRY(sf_sliding_check(op, reduce_window_lists(op), rank, windows, dims, diag));
    for (int d = 0; d < rank; d++)
        if (!sf_mul(total, sizes.at[d], &total))
            return SF_OP_FAIL(op, diag, "the window is too large");
    for (int i = 0; i < count; i++) {
        out[i] = sf_type_get(op->pool, op->in[i]->dtype, rank, dims);
        if (!out[i])
            return SF_OP_FAIL(op, diag, "the result is too large");
    }
    return SF_OK;
}

static void factors_window(const sf_op *op, sf_factoring *out)
{
    int count = op->nresults;
    for (int d = 0; d < op->in[0]->rank; d++) {
        sf_sliding window = sf_reduce_window_window(op, d);
        bool trivial = sf_sliding_trivial(&window);
        int factor =
            sf_factor_add(out, op->out[0]->dims[d], trivial ? SF_MAP : SF_WINDOW, SF_MONOID_NONE);
        for (int i = 0; i < count; i++) {
            sf_factor_walk(out, i, d, factor);
            out->walks[i][d].halo = !trivial;
            sf_factor_walk(out, 2 * count + i, d, factor);
        }
    }
}

static void halo_window(const sf_op *op, int factor, int tensor, int dim, int64_t first,
                        int64_t end, int64_t *need_first, int64_t *need_end)
{
    (void)factor, (void)tensor;
    sf_sliding window = sf_reduce_window_window(op, dim);
    sf_sliding_need(&window, first, end, need_first, need_end);
}

/* As for reduce: the initial value has to be partial along with the input. */
static int linear_window(const sf_op *op, uint32_t masks[])
{
    if (sf_op_monoid(op, SF_REDUCE_WINDOW_BODY) != SF_MONOID_ADD)
        return 0;
    masks[0] = 3;
    return 1;
}

static double flops_window(const sf_op *op)
{
    double count = (double)op->out[0]->count * op->nresults;
    for (int i = 0; i < op->in[0]->rank; i++) {
        sf_sliding window = sf_reduce_window_window(op, i);
        count *= sf_sliding_growth(&window) != 0 ? 1 : (double)window.size;
    }
    return count;
}

static sf_status fail_window_halo(sf_eval *eval, const sf_op *op)
{
    return sf_fail(eval->diag, SF_EINPUT, op->loc,
                   "stablehlo.reduce_window: halo missing: the shard of the operand does not hold "
                   "what the shard of the result needs");
}

/* Folding with a monoid: padding is counted, not visited. */
typedef struct job {
    sf_monoid monoid;
    sf_dtype dtype;
    int rank;
    int64_t strides[SF_MAX_RANK]; /* of the operand */
    sf_run *runs[SF_MAX_RANK];    /* [result position]: the elements of its window, in the shard */
    int64_t window;               /* positions in a window */
    const sf_word *words;         /* of the operand */
    const sf_word *init;
} job;

/* The initial value of a window with that many padded positions: the initial value, combined with
 * itself once for each of them. For the other monoids that changes nothing. */
static sf_word pad_word(const job *j, sf_word start, int64_t padded)
{
    bool real = sf_is_inexact(j->dtype);
    if (padded == 0)
        return start;
    if (j->monoid == SF_MONOID_ADD && real && start.real != 0)
        start.real += start.real * (double)padded;
    else if (j->monoid == SF_MONOID_ADD && !real)
        start.integer += start.integer * (uint64_t)padded;
    else if (j->monoid == SF_MONOID_MUL && real && start.real != 1)
        start.real = pow(start.real, (double)padded + 1);
    else if (j->monoid == SF_MONOID_XOR && padded % 2 == 1)
        start.integer = 0;
    else if (j->monoid == SF_MONOID_MUL && !real)
        for (uint64_t base = start.integer, n = (uint64_t)padded; n > 0; n >>= 1, base *= base)
            start.integer *= n & 1 ? base : 1;
    return start;
}

static void fold_padding(const job *j, int64_t padded, sf_word *sum)
{
    int parts = sf_parts_of(j->dtype);
    if (parts == 1 || j->monoid == SF_MONOID_ADD) {
        for (int p = 0; p < parts; p++)
            sum[p] = pad_word(j, j->init[p], padded);
        return;
    }
    sf_word base[2] = {j->init[0], j->init[1]};
    sum[0] = base[0];
    sum[1] = base[1];
    for (; padded > 0; padded >>= 1) {
        if (padded & 1)
            sf_words_multiply(j->dtype, sum, base, sum);
        sf_words_multiply(j->dtype, base, base, base);
    }
}

static void fold_window_row(const job *j, sf_word *sum, const sf_word *row, int64_t count,
                            int64_t step)
{
    int parts = sf_parts_of(j->dtype);
    if (j->monoid != SF_MONOID_ADD || (sf_is_inexact(j->dtype) && j->dtype != SF_F64)) {
        for (int64_t i = 0; i < count; i++)
            sf_words_combine(j->monoid, j->dtype, sum, row + i * step * parts);
    } else if (sf_is_float(j->dtype)) {
        for (int64_t i = 0; i < count; i++)
            sum->real += row[i * step].real;
    } else {
        for (int64_t i = 0; i < count; i++)
            sum->integer += row[i * step].integer;
    }
}

/* Folds the window of result position `at`. Only dimensions in which it sees several elements are
 * looped over, so that the innermost loop is a long one. */
static void fold_window(const job *j, const int64_t *at, sf_word *sum)
{
    int64_t counts[SF_MAX_RANK], steps[SF_MAX_RANK], index[SF_MAX_RANK] = {0};
    int64_t seen = 1, start = 0, parts = sf_parts_of(j->dtype);
    int rank = 0;
    for (int d = 0; d < j->rank; d++) {
        sf_run run = j->runs[d][at[d]];
        seen *= run.count;
        start += run.first * j->strides[d];
        if (run.count > 1) {
            counts[rank] = run.count;
            steps[rank++] = run.step * j->strides[d];
        }
    }
    fold_padding(j, j->window - seen, sum);
    if (seen == 0)
        return;
    if (rank == 0) {
        fold_window_row(j, sum, j->words + start * parts, 1, 0);
        return;
    }
    do {
        int64_t offset = start;
        for (int d = 0; d < rank - 1; d++)
            offset += index[d] * steps[d];
        fold_window_row(j, sum, j->words + offset * parts, counts[rank - 1], steps[rank - 1]);
    } while (sf_next_index(rank - 1, counts, index));
}

static sf_status fold_window_monoid(sf_eval *eval, const sf_op *op, const sf_tensor *in,
                                    sf_tensor *out)
{
    sf_arena *arena = &eval->scratch;
    const sf_type *type = out->type;
    job j = {.monoid = sf_op_monoid(op, SF_REDUCE_WINDOW_BODY),
             .dtype = sf_sum_dtype(eval, type->dtype),
             .rank = type->rank};
    j.window = 1;
    sf_strides(type->rank, in[0].type->dims, j.strides);
    for (int d = 0; d < type->rank; d++) {
        sf_sliding window = sf_reduce_window_window(op, d);
        sf_span from = sf_tensor_span(&in[0], d), to = sf_tensor_span(out, d);
        j.window *= window.size;
        j.runs[d] = SF_ARRAY(arena, type->dims[d], sf_run);
        for (int64_t i = 0; i < type->dims[d]; i++) {
            j.runs[d][i] = sf_sliding_run(&window, sf_span_global(to, i));
            if (!sf_run_localize(from, &j.runs[d][i]))
                return fail_window_halo(eval, op);
        }
    }
    int parts = sf_parts_of(type->dtype); /* words of an element */
    j.words = sf_words_load(arena, &in[0], type->dtype);
    j.init = sf_words_load(arena, &in[1], type->dtype);
    sf_word *results = SF_ARRAY(arena, type->count * parts, sf_word);
    int64_t at[SF_MAX_RANK] = {0};
    for (int64_t i = 0; i < type->count; i++) {
        fold_window(&j, at, results + i * parts);
        sf_next_index(type->rank, type->dims, at);
    }
    sf_words_store(out, results);
    return SF_OK;
}

/* The flat index in the operand's shard of element `w` of the window at `at`: -1 for padding, -2
 * for an element that the shard does not hold. */
static int64_t element_in_window(const sf_op *op, const sf_tensor *input, const sf_tensor *out,
                                 const int64_t *at, const int64_t *w)
{
    int64_t flat = 0;
    bool held = true;
    for (int d = 0; d < input->type->rank; d++) {
        sf_sliding window = sf_reduce_window_window(op, d);
        int64_t element =
            sf_sliding_at(&window, sf_span_global(sf_tensor_span(out, d), at[d]), w[d]);
        if (element < 0)
            return -1;
        int64_t local = sf_span_local(sf_tensor_span(input, d), element);
        held = held && local >= 0;
        flat = flat * input->type->dims[d] + local;
    }
    return held ? flat : -2;
}

static sf_status fold_window_region(sf_eval *eval, const sf_op *op, const sf_tensor *in,
                                    sf_tensor *out)
{
    int count = op->nresults, rank = out[0].type->rank;
    const int64_t *sizes = sf_op_ints(op, SF_REDUCE_WINDOW_SIZES).at;
    int64_t at[SF_MAX_RANK] = {0};
    sf_body body = sf_body_new(eval, op, 0, count, count);
    for (int64_t to = 0; to < out[0].type->count; to++) {
        int64_t w[SF_MAX_RANK] = {0};
        for (int i = 0; i < count; i++)
            sf_body_set(&body, i, &in[count + i], 0);
        do {
            int64_t element = element_in_window(op, &in[0], &out[0], at, w);
            if (element == -2)
                return fail_window_halo(eval, op);
            for (int i = 0; i < count; i++) {
                const sf_tensor *from = element < 0 ? &in[count + i] : &in[i];
                sf_body_set(&body, count + i, from, element < 0 ? 0 : element);
            }
            SF_TRY(sf_body_step(&body));
        } while (sf_next_index(rank, sizes, w));
        for (int i = 0; i < count; i++)
            sf_body_get(&body, i, &out[i], to);
        sf_next_index(rank, out[0].type->dims, at);
    }
    return SF_OK;
}

static sf_status eval_window(sf_eval *eval, const sf_op *op, const sf_tensor *in, sf_tensor *out)
{
    sf_mark mark = sf_arena_mark(&eval->scratch);
    bool known = sf_op_monoid(op, SF_REDUCE_WINDOW_BODY) != SF_MONOID_NONE;
    sf_status status =
        known ? fold_window_monoid(eval, op, in, out) : fold_window_region(eval, op, in, out);
    sf_arena_reset(&eval->scratch, mark);
    return status;
}

const sf_opdef sf_op_reduce_window = {
    .name = "reduce_window",
    .dialect = "stablehlo",
    .hlo = "reduce-window",
    .doc = "Reduces each window of the operand with a region.",
    .id = SF_OP_REDUCE_WINDOW,
    .form = SF_FORM_GENERIC,
    .min_operands = 2,
    .max_operands = -1,
    .nresults = -1,
    .nregions = 1,
    .attrs = attrs,
    .nattrs = NATTRS,
    .infer = infer_window,
    .factors = factors_window,
    .halo = halo_window,
    .linear = linear_window,
    .flops = flops_window,
    .eval = eval_window,
    .scratch = sf_scratch_words_and_places,
    .sample =
        {.arguments = "%a: tensor<3x8xf32>, %b: tensor<f32>",
         .use = "%r = \"stablehlo.reduce_window\"(%a, %b) <{window_dimensions = array<i64: 1, 2>, "
                "window_strides = array<i64: 1, 2>}> ({\n" SF_SAMPLE_BODY(
                    "add") "  }) : (tensor<3x8xf32>, "
                           "tensor<f32>) -> tensor<3x4xf32>",
         .results = "%r",
         .types = "tensor<3x4xf32>"},
};
