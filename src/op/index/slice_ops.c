/* Ops that cut a tensor up or put it together. All are moves; they differ in which index of the
 * operand an index of the result comes from. */
#include "base/checked.h"
#include "op/data_movement.h"
#include "op/slots.h"
#include "op/util.h"

/* Dimension `dim` of every operand in [0, count) and of the result is one map factor. */
static int map_dim(const sf_op *op, sf_factoring *out, int count, int dim)
{
    int factor = sf_factor_add(out, op->out[0]->dims[dim], SF_MAP, SF_MONOID_NONE);
    for (int t = 0; t < count; t++)
        sf_factor_walk(out, t, dim, factor);
    sf_factor_walk(out, op->noperands, dim, factor);
    return factor;
}

/* The same with a window: a shard of the result needs a range of each operand. */
static void window_dim(const sf_op *op, sf_factoring *out, int count, int dim)
{
    int factor = map_dim(op, out, count, dim);
    out->factors[factor].role = SF_WINDOW;
    for (int t = 0; t < count; t++)
        out->walks[t][dim].halo = true;
}

static int64_t clamp_start(int64_t value, int64_t low, int64_t high)
{
    return value < low ? low : value > high ? high : value;
}

/* Copies operand 0 through one line per dimension of the result. */
static void move_lines(sf_eval *eval, const sf_tensor *in, sf_tensor *out, const sf_line *lines)
{
    if (out->type->count == 0 || in->type->count == 0)
        return;
    sf_mark mark = sf_arena_mark(&eval->scratch);
    sf_copying move;
    int64_t most[SF_MAX_RANK];
    for (int d = 0; d < out->type->rank; d++)
        most[d] = sf_copying_most(out->type->dims[d], in->type->dims[d], lines[d]);
    sf_copying_init(&move, &eval->scratch, out->type->rank, most);
    for (int d = 0; d < out->type->rank; d++)
        sf_copying_along(&move, d, sf_tensor_side_of(out, d), sf_tensor_side_of(in, d), lines[d]);
    sf_copying_copy(&move, in, out);
    sf_arena_reset(&eval->scratch, mark);
}

static sf_status check_slice_size(const sf_op *op, const sf_type *type, sf_diag *diag)
{
    return type ? SF_OK : SF_OP_FAIL(op, diag, "the result is too large");
}

static sf_status check_per_dim(const sf_op *op, int slot, sf_diag *diag)
{
    int count = sf_op_ints(op, slot).count;
    if (count == op->in[0]->rank)
        return SF_OK;
    return SF_OP_FAIL(op, diag, "%s has %d entries for an operand of rank %d",
                      op->def->attrs[slot].name, count, op->in[0]->rank);
}

/* concatenate */

static const sf_attrdef concatenate_attrs[] = {
    [SF_CONCATENATE_DIMENSION] = {.name = "dimension",
                                  .key = "dim",
                                  .hlo = "dimensions",
                                  .kind = SF_ATTR_INT,
                                  .required = true},
};

static sf_status concatenate_infer(const sf_op *op, const sf_type **out, sf_diag *diag)
{
    const sf_type *first = op->in[0];
    int64_t dim = sf_op_int(op, SF_CONCATENATE_DIMENSION, 0);
    if (dim < 0 || dim >= first->rank)
        return SF_OP_FAIL(op, diag, "dimension %" PRId64 " of operands of rank %d", dim,
                          first->rank);
    int64_t sizes[SF_MAX_RANK], total = 0;
    for (int t = 0; t < op->noperands; t++) {
        const sf_type *type = op->in[t];
        bool fits = type->rank == first->rank && type->dtype == first->dtype;
        for (int d = 0; fits && d < first->rank; d++)
            fits = d == dim || type->dims[d] == first->dims[d];
        char a[SF_TYPE_TEXT], b[SF_TYPE_TEXT];
        if (!fits)
            return SF_OP_FAIL(op, diag, "%s does not go with %s along dimension %" PRId64,
                              sf_type_text(type, b), sf_type_text(first, a), dim);
        if (!sf_add(total, type->dims[dim], &total))
            return check_slice_size(op, NULL, diag);
    }
    for (int d = 0; d < first->rank; d++)
        sizes[d] = d == dim ? total : first->dims[d];
    out[0] = sf_type_get(op->pool, first->dtype, first->rank, sizes);
    return check_slice_size(op, out[0], diag);
}

static void concatenate_factors(const sf_op *op, sf_factoring *out)
{
    int dim = (int)sf_op_int(op, SF_CONCATENATE_DIMENSION, 0);
    for (int d = 0; d < op->out[0]->rank; d++) {
        if (d == dim)
            window_dim(op, out, op->noperands, d);
        else
            map_dim(op, out, op->noperands, d);
    }
}

static void concatenate_halo(const sf_op *op, int factor, int tensor, int dim, int64_t first,
                             int64_t end, int64_t *need_first, int64_t *need_end)
{
    (void)factor;
    int64_t place = 0, size = op->in[tensor]->dims[dim];
    for (int t = 0; t < tensor; t++)
        place += op->in[t]->dims[dim];
    *need_first = clamp_start(first - place, 0, size);
    *need_end = clamp_start(end - place, 0, size);
}

static sf_status concatenate_eval(sf_eval *eval, const sf_op *op, const sf_tensor *in,
                                  sf_tensor *out)
{
    int dim = (int)sf_op_int(op, SF_CONCATENATE_DIMENSION, 0);
    sf_line lines[SF_MAX_RANK];
    for (int d = 0; d < SF_MAX_RANK; d++)
        lines[d] = (sf_line){1, 0, 1};
    for (int t = 0; t < op->noperands; t++) {
        move_lines(eval, &in[t], out, lines);
        lines[dim].shift -= op->in[t]->dims[dim];
    }
    return SF_OK;
}

const sf_opdef sf_op_concatenate = {
    .name = "concatenate",
    .dialect = "stablehlo",
    .hlo = "concatenate",
    .doc = "The operands joined along one dimension.",
    .id = SF_OP_CONCATENATE,
    .form = SF_FORM_OPERANDS,
    .min_operands = 1,
    .max_operands = -1,
    .nresults = 1,
    .attrs = concatenate_attrs,
    .nattrs = 1,
    .infer = concatenate_infer,
    .factors = concatenate_factors,
    .halo = concatenate_halo,
    .linear = sf_linear_all,
    .eval = concatenate_eval,
    .sample =
        {.arguments = "%a: tensor<3x4xf32>, %b: tensor<3x2xf32>",
         .use =
             "%r = stablehlo.concatenate %a, %b, dim = 1 : (tensor<3x4xf32>, tensor<3x2xf32>) -> "
             "tensor<3x6xf32>",
         .results = "%r",
         .types = "tensor<3x6xf32>"},
};

/* dynamic_slice and dynamic_update_slice */

/* The scalars that say where the slice starts: one per dimension, from operand `first` on. */
static sf_status check_starts(const sf_op *op, int first, sf_diag *diag)
{
    int rank = op->in[0]->rank;
    if (op->noperands != first + rank)
        return SF_OP_FAIL(op, diag, "%d start indices for an operand of rank %d",
                          op->noperands - first, rank);
    for (int t = first; t < op->noperands; t++) {
        sf_class class = sf_dtype_get(op->in[t]->dtype)->class;
        char text[SF_TYPE_TEXT];
        if (op->in[t]->rank != 0 || (class != SF_SIGNED && class != SF_UNSIGNED))
            return SF_OP_FAIL(op, diag, "start index %d is %s, expected a scalar integer",
                              t - first, sf_type_text(op->in[t], text));
        if (op->in[t]->dtype != op->in[first]->dtype)
            return SF_OP_FAIL(op, diag, "start indices of different types");
    }
    return SF_OK;
}

enum { DYNAMIC_SIZES };

static const sf_attrdef dynamic_slice_attrs[] = {
    [DYNAMIC_SIZES] = {.name = "slice_sizes",
                       .key = "sizes",
                       .hlo = "dynamic_slice_sizes",
                       .kind = SF_ATTR_INTS,
                       .required = true},
};

static sf_status dynamic_slice_infer(const sf_op *op, const sf_type **out, sf_diag *diag)
{
    const sf_type *in = op->in[0];
    sf_ints sizes = sf_op_ints(op, DYNAMIC_SIZES);
    SF_TRY(check_starts(op, 1, diag));
    SF_TRY(check_per_dim(op, DYNAMIC_SIZES, diag));
    for (int d = 0; d < in->rank; d++)
        if (sizes.at[d] < 0 || sizes.at[d] > in->dims[d])
            return SF_OP_FAIL(op, diag,
                              "a slice of size %" PRId64 " from dimension %d of size %" PRId64,
                              sizes.at[d], d, in->dims[d]);
    out[0] = sf_type_get(op->pool, in->dtype, in->rank, sizes.at);
    return check_slice_size(op, out[0], diag);
}

static void dynamic_slice_factors(const sf_op *op, sf_factoring *out)
{
    for (int d = 0; d < op->in[0]->rank; d++) {
        if (op->in[0]->dims[d] == op->out[0]->dims[d]) {
            map_dim(op, out, 1, d);
            continue;
        }
        sf_factor_whole(out, 0, d, op->in[0]->dims[d]);
        sf_factor_whole(out, op->noperands, d, op->out[0]->dims[d]);
    }
}

static void dynamic_slice_local(const sf_op *op, const sf_type *const *pieces,
                                const sf_attr **attrs)
{
    attrs[DYNAMIC_SIZES] = sf_attr_ints(op->pool, op->in[0]->rank, pieces[op->noperands]->dims);
}

/* Only the slice is read. */
static double dynamic_slice_bytes(const sf_op *op)
{
    return 2 * (double)sf_type_bytes(op->out[0]);
}

static sf_status dynamic_slice_eval(sf_eval *eval, const sf_op *op, const sf_tensor *in,
                                    sf_tensor *out)
{
    sf_line lines[SF_MAX_RANK];
    for (int d = 0; d < op->in[0]->rank; d++) {
        int64_t last = op->in[0]->dims[d] - op->out[0]->dims[d];
        lines[d] = (sf_line){1, clamp_start(sf_index_at(&in[1 + d], 0), 0, last), 1};
    }
    move_lines(eval, &in[0], out, lines);
    return SF_OK;
}

const sf_opdef sf_op_dynamic_slice = {
    .name = "dynamic_slice",
    .dialect = "stablehlo",
    .hlo = "dynamic-slice",
    .doc = "A box of fixed size at computed indices, clamped to the operand's bounds.",
    .id = SF_OP_DYNAMIC_SLICE,
    .form = SF_FORM_OPERANDS,
    .min_operands = 1,
    .max_operands = -1,
    .nresults = 1,
    .attrs = dynamic_slice_attrs,
    .nattrs = 1,
    .infer = dynamic_slice_infer,
    .factors = dynamic_slice_factors,
    .linear = sf_linear_first,
    .local = dynamic_slice_local,
    .bytes = dynamic_slice_bytes,
    .eval = dynamic_slice_eval,
    .positional = true,
    .looks_up = true,
    .sample = {.arguments = "%a: tensor<3x8xf32>, %i: tensor<i32>, %j: tensor<i32>",
               .use = "%r = stablehlo.dynamic_slice %a, %i, %j, sizes = [3, 2] : (tensor<3x8xf32>, "
                      "tensor<i32>, "
                      "tensor<i32>) -> tensor<3x2xf32>",
               .results = "%r",
               .types = "tensor<3x2xf32>"},
};

static sf_status dynamic_update_infer(const sf_op *op, const sf_type **out, sf_diag *diag)
{
    const sf_type *in = op->in[0], *update = op->in[1];
    SF_TRY(check_starts(op, 2, diag));
    bool fits = update->rank == in->rank && update->dtype == in->dtype;
    for (int d = 0; fits && d < in->rank; d++)
        fits = update->dims[d] <= in->dims[d];
    char a[SF_TYPE_TEXT], b[SF_TYPE_TEXT];
    if (!fits)
        return SF_OP_FAIL(op, diag, "an update of %s does not fit into %s", sf_type_text(update, a),
                          sf_type_text(in, b));
    out[0] = in;
    return SF_OK;
}

static void dynamic_update_factors(const sf_op *op, sf_factoring *out)
{
    for (int d = 0; d < op->in[0]->rank; d++) {
        bool untouched = op->in[0]->dims[d] == op->in[1]->dims[d];
        map_dim(op, out, untouched ? 2 : 1, d);
        if (!untouched)
            sf_factor_whole(out, 1, d, op->in[1]->dims[d]);
    }
}

static int dynamic_update_linear(const sf_op *op, uint32_t masks[])
{
    (void)op;
    masks[0] = 3;
    return 1;
}

/* In place: the update is read and written, other elements of the operand are not touched. */
static double dynamic_update_bytes(const sf_op *op)
{
    return 2 * (double)sf_type_bytes(op->in[1]);
}

static sf_status dynamic_update_eval(sf_eval *eval, const sf_op *op, const sf_tensor *in,
                                     sf_tensor *out)
{
    if (out->type->count == 0)
        return SF_OK;
    memcpy(out->data, in[0].data, (size_t)sf_type_bytes(out->type));
    sf_line lines[SF_MAX_RANK];
    for (int d = 0; d < op->in[0]->rank; d++) {
        int64_t last = op->in[0]->dims[d] - op->in[1]->dims[d];
        lines[d] = (sf_line){1, -clamp_start(sf_index_at(&in[2 + d], 0), 0, last), 1};
    }
    move_lines(eval, &in[1], out, lines);
    return SF_OK;
}

const sf_opdef sf_op_dynamic_update_slice = {
    .name = "dynamic_update_slice",
    .dialect = "stablehlo",
    .hlo = "dynamic-update-slice",
    .doc = "The first operand with a box at computed indices, clamped to its bounds, overwritten.",
    .id = SF_OP_DYNAMIC_UPDATE_SLICE,
    .form = SF_FORM_OPERANDS,
    .min_operands = 2,
    .max_operands = -1,
    .nresults = 1,
    .infer = dynamic_update_infer,
    .factors = dynamic_update_factors,
    .linear = dynamic_update_linear,
    .bytes = dynamic_update_bytes,
    .eval = dynamic_update_eval,
    .positional = true,
    .updates = true,
    .sample = {.arguments =
                   "%a: tensor<3x8xf32>, %b: tensor<3x2xf32>, %i: tensor<i32>, %j: tensor<i32>",
               .use = "%r = stablehlo.dynamic_update_slice %a, %b, %i, %j : (tensor<3x8xf32>, "
                      "tensor<3x2xf32>, "
                      "tensor<i32>, tensor<i32>) -> tensor<3x8xf32>",
               .results = "%r",
               .types = "tensor<3x8xf32>"},
};

/* pad */

static const sf_attrdef pad_attrs[] = {
    [SF_PAD_LOW] = {.name = "edge_padding_low",
                    .key = "low",
                    .kind = SF_ATTR_INTS,
                    .required = true},
    [SF_PAD_HIGH] = {.name = "edge_padding_high",
                     .key = "high",
                     .kind = SF_ATTR_INTS,
                     .required = true},
    [SF_PAD_INTERIOR] = {.name = "interior_padding",
                         .key = "interior",
                         .kind = SF_ATTR_INTS,
                         .required = true},
};

static bool is_moderate_padding(int64_t padding)
{
    return padding >= -(INT64_C(1) << 60) && padding <= INT64_C(1) << 60;
}

/* False when the size is negative, or so large that positions around it would overflow. */
static bool padded_size(int64_t size, int64_t low, int64_t high, int64_t interior, int64_t *out)
{
    int64_t gaps = 0, spare;
    if (!is_moderate_padding(low) || !is_moderate_padding(high) || !is_moderate_padding(interior))
        return false;
    if (size > 0 && !sf_mul(size - 1, interior, &gaps))
        return false;
    return sf_add(size, gaps, out) && sf_add(*out, low, out) && sf_add(*out, high, out) &&
           *out >= 0 && sf_add(*out, -low, &spare);
}

static sf_status pad_infer(const sf_op *op, const sf_type **out, sf_diag *diag)
{
    const sf_type *in = op->in[0];
    if (op->in[1]->rank != 0 || op->in[1]->dtype != in->dtype)
        return SF_OP_FAIL(op, diag, "the padding value must be a scalar of %s",
                          sf_dtype_get(in->dtype)->name);
    for (int slot = SF_PAD_LOW; slot <= SF_PAD_INTERIOR; slot++)
        SF_TRY(check_per_dim(op, slot, diag));
    int64_t sizes[SF_MAX_RANK];
    for (int d = 0; d < in->rank; d++) {
        int64_t low = sf_op_ints(op, SF_PAD_LOW).at[d], high = sf_op_ints(op, SF_PAD_HIGH).at[d];
        int64_t interior = sf_op_ints(op, SF_PAD_INTERIOR).at[d];
        if (interior < 0)
            return SF_OP_FAIL(op, diag, "the interior padding of dimension %d is negative", d);
        if (!padded_size(in->dims[d], low, high, interior, &sizes[d]))
            return SF_OP_FAIL(op, diag,
                              "dimension %d of size %" PRId64 " cannot be padded by %" PRId64
                              ", %" PRId64 " and %" PRId64 " between elements",
                              d, in->dims[d], low, high, interior);
    }
    out[0] = sf_type_get(op->pool, in->dtype, in->rank, sizes);
    return check_slice_size(op, out[0], diag);
}

static void pad_factors(const sf_op *op, sf_factoring *out)
{
    for (int d = 0; d < op->in[0]->rank; d++) {
        if (sf_op_ints(op, SF_PAD_LOW).at[d] == 0 && sf_op_ints(op, SF_PAD_HIGH).at[d] == 0 &&
            sf_op_ints(op, SF_PAD_INTERIOR).at[d] == 0)
            map_dim(op, out, 1, d);
        else
            window_dim(op, out, 1, d);
    }
}

static void pad_halo(const sf_op *op, int factor, int tensor, int dim, int64_t first, int64_t end,
                     int64_t *need_first, int64_t *need_end)
{
    (void)factor, (void)tensor;
    int64_t low = sf_op_ints(op, SF_PAD_LOW).at[dim], size = op->in[0]->dims[dim];
    int64_t step = sf_op_ints(op, SF_PAD_INTERIOR).at[dim] + 1;
    *need_first = clamp_start(sf_ceil_div(first - low, step), 0, size);
    *need_end = clamp_start(sf_ceil_div(end - low, step), 0, size);
}

static int pad_linear(const sf_op *op, uint32_t masks[])
{
    (void)op;
    masks[0] = 3;
    return 1;
}

static sf_status pad_eval(sf_eval *eval, const sf_op *op, const sf_tensor *in, sf_tensor *out)
{
    sf_line lines[SF_MAX_RANK];
    for (int d = 0; d < op->in[0]->rank; d++)
        lines[d] = (sf_line){1, -sf_op_ints(op, SF_PAD_LOW).at[d],
                             sf_op_ints(op, SF_PAD_INTERIOR).at[d] + 1};
    sf_copying_fill(in[1].data, out);
    move_lines(eval, &in[0], out, lines);
    return SF_OK;
}

const sf_opdef sf_op_pad = {
    .name = "pad",
    .dialect = "stablehlo",
    .hlo = "pad",
    .doc = "The operand with a value before, after and between its elements; negative padding "
           "removes elements.",
    .id = SF_OP_PAD,
    .form = SF_FORM_OPERANDS,
    .min_operands = 2,
    .max_operands = 2,
    .nresults = 1,
    .attrs = pad_attrs,
    .nattrs = 3,
    .infer = pad_infer,
    .factors = pad_factors,
    .halo = pad_halo,
    .linear = pad_linear,
    .eval = pad_eval,
    .sample = {.arguments = "%a: tensor<3x4xf32>, %b: tensor<f32>",
               .use = "%r = stablehlo.pad %a, %b, low = [0, 1], high = [0, 1], interior = [0, 0] : "
                      "(tensor<3x4xf32>, tensor<f32>) -> tensor<3x6xf32>",
               .results = "%r",
               .types = "tensor<3x6xf32>"},
};

/* reverse */

static const sf_attrdef reverse_attrs[] = {
    [SF_REVERSE_DIMENSIONS] = {.name = "dimensions",
                               .key = "dims",
                               .kind = SF_ATTR_INTS,
                               .required = true},
};

static sf_status reverse_infer(const sf_op *op, const sf_type **out, sf_diag *diag)
{
    out[0] = op->in[0];
    return sf_check_dims(op, sf_op_ints(op, SF_REVERSE_DIMENSIONS), op->in[0]->rank, "dimensions",
                         diag);
}

static void reverse_factors(const sf_op *op, sf_factoring *out)
{
    for (int d = 0; d < op->in[0]->rank; d++) {
        if (sf_has(sf_op_ints(op, SF_REVERSE_DIMENSIONS), d))
            window_dim(op, out, 1, d);
        else
            map_dim(op, out, 1, d);
    }
}

static void reverse_halo(const sf_op *op, int factor, int tensor, int dim, int64_t first,
                         int64_t end, int64_t *need_first, int64_t *need_end)
{
    (void)factor, (void)tensor;
    *need_first = op->in[0]->dims[dim] - end;
    *need_end = op->in[0]->dims[dim] - first;
}

static sf_status reverse_eval(sf_eval *eval, const sf_op *op, const sf_tensor *in, sf_tensor *out)
{
    sf_line lines[SF_MAX_RANK];
    for (int d = 0; d < op->in[0]->rank; d++) {
        bool reversed = sf_has(sf_op_ints(op, SF_REVERSE_DIMENSIONS), d);
        lines[d] = reversed ? (sf_line){-1, op->in[0]->dims[d] - 1, 1} : (sf_line){1, 0, 1};
    }
    move_lines(eval, &in[0], out, lines);
    return SF_OK;
}

const sf_opdef sf_op_reverse = {
    .name = "reverse",
    .dialect = "stablehlo",
    .hlo = "reverse",
    .doc = "The operand with the elements along some dimensions in reverse order.",
    .id = SF_OP_REVERSE,
    .form = SF_FORM_OPERANDS,
    .min_operands = 1,
    .max_operands = 1,
    .nresults = 1,
    .attrs = reverse_attrs,
    .nattrs = 1,
    .infer = reverse_infer,
    .factors = reverse_factors,
    .halo = reverse_halo,
    .linear = sf_linear_first,
    .eval = reverse_eval,
    .sample = {.arguments = "%a: tensor<3x4xf32>",
               .use = "%r = stablehlo.reverse %a, dims = [1] : tensor<3x4xf32>",
               .results = "%r",
               .types = "tensor<3x4xf32>"},
};

/* slice */

static const sf_attrdef slice_attrs[] = {
    [SF_SLICE_STARTS] = {.name = "start_indices", .kind = SF_ATTR_INTS, .required = true},
    [SF_SLICE_LIMITS] = {.name = "limit_indices", .kind = SF_ATTR_INTS, .required = true},
    [SF_SLICE_STRIDES] = {.name = "strides", .kind = SF_ATTR_INTS, .required = true},
};

static sf_status slice_infer(const sf_op *op, const sf_type **out, sf_diag *diag)
{
    const sf_type *in = op->in[0];
    for (int slot = SF_SLICE_STARTS; slot <= SF_SLICE_STRIDES; slot++)
        SF_TRY(check_per_dim(op, slot, diag));
    int64_t sizes[SF_MAX_RANK];
    for (int d = 0; d < in->rank; d++) {
        int64_t start = sf_op_ints(op, SF_SLICE_STARTS).at[d];
        int64_t limit = sf_op_ints(op, SF_SLICE_LIMITS).at[d];
        int64_t stride = sf_op_ints(op, SF_SLICE_STRIDES).at[d];
        if (start < 0 || start > limit || limit > in->dims[d] || stride <= 0)
            return SF_OP_FAIL(op, diag,
                              "%" PRId64 ":%" PRId64 ":%" PRId64
                              " is no slice of dimension %d of size %" PRId64,
                              start, limit, stride, d, in->dims[d]);
        sizes[d] = sf_ceil_div(limit - start, stride);
    }
    out[0] = sf_type_get(op->pool, in->dtype, in->rank, sizes);
    return check_slice_size(op, out[0], diag);
}

/* Whether the slice is one of equal blocks that the dimension falls into: a part of a batch, queries out of queries,
 * keys and values. */
static bool is_block(const sf_op *op, int dim)
{
    int64_t size = op->out[0]->dims[dim];
    return sf_op_ints(op, SF_SLICE_STRIDES).at[dim] == 1 && size > 1 &&
           op->in[0]->dims[dim] % size == 0 && sf_op_ints(op, SF_SLICE_STARTS).at[dim] % size == 0;
}

/* The place in a block is a factor, which block it is, is not to be split. */
static void block_dim(const sf_op *op, sf_factoring *out, int dim)
{
    int64_t size = op->out[0]->dims[dim];
    sf_factor_whole(out, 0, dim, op->in[0]->dims[dim] / size);
    map_dim(op, out, 1, dim);
}

static void slice_factors(const sf_op *op, sf_factoring *out)
{
    for (int d = 0; d < op->in[0]->rank; d++) {
        if (op->in[0]->dims[d] == op->out[0]->dims[d])
            map_dim(op, out, 1, d);
        else if (is_block(op, d))
            block_dim(op, out, d);
        else
            window_dim(op, out, 1, d);
    }
}

static void slice_halo(const sf_op *op, int factor, int tensor, int dim, int64_t first, int64_t end,
                       int64_t *need_first, int64_t *need_end)
{
    (void)factor, (void)tensor;
    int64_t start = sf_op_ints(op, SF_SLICE_STARTS).at[dim];
    int64_t stride = sf_op_ints(op, SF_SLICE_STRIDES).at[dim];
    if (first >= end) {
        *need_first = *need_end = 0;
        return;
    }
    *need_first = start + first * stride;
    *need_end = start + (end - 1) * stride + 1;
}

/* Of a dimension that is split, all is kept, or a block, the same on all shards. */
static void slice_local(const sf_op *op, const sf_type *const *pieces, const sf_attr **attrs)
{
    int64_t starts[SF_MAX_RANK], limits[SF_MAX_RANK];
    for (int d = 0; d < op->in[0]->rank; d++) {
        bool split = pieces[0]->dims[d] != op->in[0]->dims[d];
        starts[d] = sf_op_ints(op, SF_SLICE_STARTS).at[d];
        limits[d] = sf_op_ints(op, SF_SLICE_LIMITS).at[d];
        if (split) {
            starts[d] = starts[d] / op->out[0]->dims[d] * pieces[1]->dims[d];
            limits[d] = starts[d] + pieces[1]->dims[d];
        }
    }
    attrs[SF_SLICE_STARTS] = sf_attr_ints(op->pool, op->in[0]->rank, starts);
    attrs[SF_SLICE_LIMITS] = sf_attr_ints(op->pool, op->in[0]->rank, limits);
}

static sf_status slice_eval(sf_eval *eval, const sf_op *op, const sf_tensor *in, sf_tensor *out)
{
    sf_line lines[SF_MAX_RANK];
    for (int d = 0; d < op->in[0]->rank; d++)
        lines[d] = (sf_line){sf_op_ints(op, SF_SLICE_STRIDES).at[d],
                             sf_op_ints(op, SF_SLICE_STARTS).at[d], 1};
    move_lines(eval, &in[0], out, lines);
    return SF_OK;
}

const sf_opdef sf_op_slice = {
    .name = "slice",
    .dialect = "stablehlo",
    .hlo = "slice",
    .doc = "Every stride-th element of a box at fixed indices.",
    .id = SF_OP_SLICE,
    .form = SF_FORM_SLICE,
    .min_operands = 1,
    .max_operands = 1,
    .nresults = 1,
    .attrs = slice_attrs,
    .nattrs = 3,
    .infer = slice_infer,
    .factors = slice_factors,
    .halo = slice_halo,
    .linear = sf_linear_first,
    .local = slice_local,
    .eval = slice_eval,
    .sample = {.arguments = "%a: tensor<3x8xf32>",
               .use = "%r = stablehlo.slice %a [0:3, 2:6] : (tensor<3x8xf32>) -> tensor<3x4xf32>",
               .results = "%r",
               .types = "tensor<3x4xf32>"},
};
