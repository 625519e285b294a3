/* Ops that make or rearrange a tensor without looking at its elements. */
#include "base/checked.h"
#include "op/data_movement.h"
#include "op/slots.h"
#include "op/util.h"

/* The declared shape: these ops cannot infer their result without it. */
static sf_status infer_declared_shape(const sf_op *op, const sf_type **out, sf_diag *diag)
{
    if (!op->out || !op->out[0])
        return SF_OP_FAIL(op, diag, "the type of the result is not given");
    *out = op->out[0];
    return SF_OK;
}

static sf_status declared_like_operand(const sf_op *op, const sf_type **out, sf_diag *diag)
{
    SF_TRY(infer_declared_shape(op, out, diag));
    if ((*out)->dtype != op->in[0]->dtype)
        return SF_OP_FAIL(op, diag, "the operand has elements of %s, the result of %s",
                          sf_dtype_get(op->in[0]->dtype)->name, sf_dtype_get((*out)->dtype)->name);
    return SF_OK;
}

/* A result without operands: any shard can be made anywhere. */
static void factors_free(const sf_op *op, sf_factoring *out)
{
    for (int d = 0; d < op->out[0]->rank; d++)
        sf_factor_walk(out, 0, d, sf_factor_add(out, op->out[0]->dims[d], SF_MAP, SF_MONOID_NONE));
}

/* broadcast_in_dim */

static const sf_attrdef broadcast_attrs[] = {
    [SF_BROADCAST_DIMENSIONS] = {.name = "broadcast_dimensions",
                                 .key = "dims",
                                 .hlo = "dimensions",
                                 .kind = SF_ATTR_INTS,
                                 .required = true},
};

static sf_status broadcast_infer(const sf_op *op, const sf_type **out, sf_diag *diag)
{
    const sf_type *in = op->in[0], *result = NULL;
    sf_ints dims = sf_op_ints(op, SF_BROADCAST_DIMENSIONS);
    SF_TRY(declared_like_operand(op, &result, diag));
    if (dims.count != in->rank)
        return SF_OP_FAIL(op, diag, "%d broadcast dimensions for an operand of rank %d", dims.count,
                          in->rank);
    SF_TRY(sf_check_dims(op, dims, result->rank, "broadcast_dimensions", diag));
    for (int d = 0; d < in->rank; d++) {
        int64_t size = result->dims[dims.at[d]];
        if (in->dims[d] != 1 && in->dims[d] != size)
            return SF_OP_FAIL(op, diag,
                              "dimension %d of the operand has size %" PRId64
                              " and cannot become dimension %" PRId64 " of size %" PRId64,
                              d, in->dims[d], dims.at[d], size);
    }
    out[0] = result;
    return SF_OK;
}

static void broadcast_factors(const sf_op *op, sf_factoring *out)
{
    sf_ints dims = sf_op_ints(op, SF_BROADCAST_DIMENSIONS);
    int factors[SF_MAX_RANK];
    for (int d = 0; d < op->out[0]->rank; d++) {
        factors[d] = sf_factor_add(out, op->out[0]->dims[d], SF_MAP, SF_MONOID_NONE);
        sf_factor_walk(out, 1, d, factors[d]);
    }
    for (int d = 0; d < op->in[0]->rank; d++) {
        if (op->in[0]->dims[d] == op->out[0]->dims[dims.at[d]])
            sf_factor_walk(out, 0, d, factors[dims.at[d]]);
        else
            sf_factor_whole(out, 0, d, 1);
    }
}

static sf_status broadcast_eval(sf_eval *eval, const sf_op *op, const sf_tensor *in, sf_tensor *out)
{
    if (out->type->count == 0)
        return SF_OK;
    sf_ints dims = sf_op_ints(op, SF_BROADCAST_DIMENSIONS);
    sf_mark mark = sf_arena_mark(&eval->scratch);
    sf_copying move;
    sf_copying_init(&move, &eval->scratch, out->type->rank, out->type->dims);
    for (int d = 0; d < out->type->rank; d++) {
        sf_tensor_side from = {sf_span_whole(1), 1, 0};
        bool mapped = false;
        for (int k = 0; k < dims.count; k++)
            if (dims.at[k] == d) {
                from = sf_tensor_side_of(&in[0], k);
                mapped = op->in[0]->dims[k] == op->out[0]->dims[d];
            }
        sf_copying_along(&move, d, sf_tensor_side_of(out, d), from, (sf_line){mapped, 0, 1});
    }
    sf_copying_copy(&move, &in[0], out);
    sf_arena_reset(&eval->scratch, mark);
    return SF_OK;
}

const sf_opdef sf_op_broadcast_in_dim = {
    .name = "broadcast_in_dim",
    .dialect = "stablehlo",
    .hlo = "broadcast",
    .doc = "The operand, repeated along new dimensions and dimensions of size 1.",
    .id = SF_OP_BROADCAST_IN_DIM,
    .form = SF_FORM_OPERANDS,
    .min_operands = 1,
    .max_operands = 1,
    .nresults = 1,
    .attrs = broadcast_attrs,
    .nattrs = 1,
    .infer = broadcast_infer,
    .factors = broadcast_factors,
    .linear = sf_linear_first,
    .eval = broadcast_eval,
    .sample =
        {.arguments = "%a: tensor<4xf32>",
         .use =
             "%r = stablehlo.broadcast_in_dim %a, dims = [1] : (tensor<4xf32>) -> tensor<3x4xf32>",
         .results = "%r",
         .types = "tensor<3x4xf32>"},
};

/* constant */

static const sf_attrdef constant_attrs[] = {
    [SF_CONSTANT_VALUE] = {.name = "value", .kind = SF_ATTR_DENSE, .required = true},
};

static sf_status constant_infer(const sf_op *op, const sf_type **out, sf_diag *diag)
{
    (void)diag;
    out[0] = op->attrs[SF_CONSTANT_VALUE]->dense.type;
    return SF_OK;
}

static sf_status constant_eval(sf_eval *eval, const sf_op *op, const sf_tensor *in, sf_tensor *out)
{
    (void)in;
    const sf_dense *dense = &op->attrs[SF_CONSTANT_VALUE]->dense;
    if (out->type->count == 0)
        return SF_OK;
    if (!dense->data) {
        SF_OP_FAIL(op, eval->diag, "its elements were left out of the text");
        return sf_hint(eval->diag, "print the step with its large constants");
    }
    if (dense->splat) {
        sf_copying_fill(dense->data, out);
        return SF_OK;
    }
    const sf_tensor whole = {.type = dense->type, .data = (void *)dense->data};
    if (out->spans)
        sf_tensor_cut(&whole, out);
    else
        memcpy(out->data, dense->data, (size_t)sf_type_bytes(out->type));
    return SF_OK;
}

const sf_opdef sf_op_constant = {
    .name = "constant",
    .dialect = "stablehlo",
    .hlo = "constant",
    .doc = "A tensor whose elements are in the text.",
    .id = SF_OP_CONSTANT,
    .form = SF_FORM_CONSTANT,
    .nresults = 1,
    .attrs = constant_attrs,
    .nattrs = 1,
    .infer = constant_infer,
    .factors = factors_free,
    .eval = constant_eval,
    .sample = {.arguments = "",
               .use = "%r = stablehlo.constant dense<1.5> : tensor<3x4xf32>",
               .results = "%r",
               .types = "tensor<3x4xf32>"},
};

/* iota */

static const sf_attrdef iota_attrs[] = {
    [SF_IOTA_DIMENSION] = {.name = "iota_dimension",
                           .key = "dim",
                           .kind = SF_ATTR_INT,
                           .required = true},
};

static sf_status iota_infer(const sf_op *op, const sf_type **out, sf_diag *diag)
{
    SF_TRY(infer_declared_shape(op, out, diag));
    int64_t dim = sf_op_int(op, SF_IOTA_DIMENSION, 0);
    if (dim < 0 || dim >= out[0]->rank)
        return SF_OP_FAIL(op, diag, "dimension %" PRId64 " of a result of rank %d", dim,
                          out[0]->rank);
    if (out[0]->dtype == SF_PRED)
        return SF_OP_FAIL(op, diag, "the result must be of numbers, not of i1");
    return SF_OK;
}

static sf_status iota_eval(sf_eval *eval, const sf_op *op, const sf_tensor *in, sf_tensor *out)
{
    (void)in;
    const sf_type *type = out->type;
    if (type->count == 0)
        return SF_OK;
    int dim = (int)sf_op_int(op, SF_IOTA_DIMENSION, 0);
    sf_mark mark = sf_arena_mark(&eval->scratch);
    /* The numbers once, then a move that repeats them along the other dimensions. */
    size_t bytes = sf_dtype_get(type->dtype)->bytes;
    sf_tensor numbers = {.data = sf_arena_array(&eval->scratch, (size_t)type->dims[dim], bytes)};
    sf_span span = sf_tensor_span(out, dim);
    for (int64_t i = 0; i < type->dims[dim]; i++) {
        int64_t number = sf_span_global(span, i);
        if (sf_is_inexact(type->dtype))
            sf_store_f64(type->dtype, numbers.data, i, (double)number);
        else
            sf_store_i64(type->dtype, numbers.data, i, number);
    }
    sf_copying move;
    sf_copying_init(&move, &eval->scratch, type->rank, type->dims);
    for (int d = 0; d < type->rank; d++) {
        sf_tensor_side to = sf_tensor_side_of(out, d);
        sf_tensor_side from = {to.span, to.size, 1};
        if (d != dim)
            from = (sf_tensor_side){sf_span_whole(1), 1, 0};
        sf_copying_along(&move, d, to, from, (sf_line){d == dim, 0, 1});
    }
    sf_copying_copy(&move, &numbers, out);
    sf_arena_reset(&eval->scratch, mark);
    return SF_OK;
}

const sf_opdef sf_op_iota = {
    .name = "iota",
    .dialect = "stablehlo",
    .hlo = "iota",
    .doc = "Every element is its own index along one dimension.",
    .id = SF_OP_IOTA,
    .form = SF_FORM_OPERANDS,
    .nresults = 1,
    .attrs = iota_attrs,
    .nattrs = 1,
    .infer = iota_infer,
    .factors = factors_free,
    .eval = iota_eval,
    .positional = true,
    .sample = {.arguments = "",
               .use = "%r = stablehlo.iota dim = 1 : tensor<3x4xi32>",
               .results = "%r",
               .types = "tensor<3x4xi32>"},
};

/* reshape */

static sf_status reshape_infer(const sf_op *op, const sf_type **out, sf_diag *diag)
{
    SF_TRY(declared_like_operand(op, out, diag));
    if (op->in[0]->count != out[0]->count)
        return SF_OP_FAIL(op, diag, "%" PRId64 " elements cannot be reshaped to %" PRId64,
                          op->in[0]->count, out[0]->count);
    return SF_OK;
}

/* A walk through a shape, major to minor: `left` is the uncovered part of dimension `dim`. */
typedef struct cursor {
    sf_factoring *out;
    int tensor;
    const sf_type *type;
    int dim;
    int64_t left;
    bool full; /* a chain had no room for a factor */
} cursor;

static bool advance_cursor(cursor *at)
{
    while (at->dim < at->type->rank && at->left == 1)
        at->left = ++at->dim < at->type->rank ? at->type->dims[at->dim] : 1;
    return at->dim < at->type->rank;
}

static cursor start_cursor(sf_factoring *out, int tensor, const sf_type *type)
{
    return (cursor){out, tensor, type, 0, type->rank > 0 ? type->dims[0] : 1, false};
}

static void take_factor(cursor *at, int factor, int64_t size)
{
    if (at->out->walks[at->tensor][at->dim].count == SF_MAX_CHAIN)
        at->full = true;
    else
        sf_factor_walk(at->out, at->tensor, at->dim, factor);
    at->left /= size;
}

/* The remaining part of the current dimension becomes a factor of its own; returns its size. */
static int64_t take_whole(cursor *at)
{
    int64_t size = at->left;
    take_factor(at, sf_factor_add(at->out, size, SF_WHOLE, SF_MONOID_NONE), size);
    return size;
}

/* Neither shape divides the other here: private factors until the products meet again. */
static void stretch_walk(cursor *in, cursor *result)
{
    int64_t a = take_whole(in), b = take_whole(result);
    while (a != b) {
        if (a < b && advance_cursor(in))
            a *= take_whole(in);
        else if (advance_cursor(result))
            b *= take_whole(result);
    }
}

static void all_whole(const sf_op *op, sf_factoring *out)
{
    const sf_type *types[] = {op->in[0], op->out[0]};
    out->nfactors = 0;
    for (int t = 0; t < 2; t++)
        for (int d = 0; d < types[t]->rank; d++) {
            out->walks[t][d].count = 0;
            sf_factor_whole(out, t, d, types[t]->dims[d]);
        }
}

static void reshape_factors(const sf_op *op, sf_factoring *out)
{
    if (op->in[0]->count == 0) {
        all_whole(op, out);
        return;
    }
    cursor in = start_cursor(out, 0, op->in[0]), result = start_cursor(out, 1, op->out[0]);
    while (advance_cursor(&in) && advance_cursor(&result)) {
        int64_t shared = sf_gcd(in.left, result.left);
        if (shared == 1) {
            stretch_walk(&in, &result);
            continue;
        }
        int factor = sf_factor_add(out, shared, SF_MAP, SF_MONOID_NONE);
        take_factor(&in, factor, shared);
        take_factor(&result, factor, shared);
    }
    if (in.full || result.full)
        all_whole(op, out);
}

/* The place of a global flat index of a shape in a shard, or -1. */
static int64_t place_in_list(const sf_tensor *piece, const sf_type *whole, int64_t flat)
{
    int64_t place = 0, stride = 1;
    for (int d = whole->rank - 1; d >= 0; d--) {
        int64_t local = sf_span_local(sf_tensor_span(piece, d), flat % whole->dims[d]);
        if (local < 0)
            return -1;
        place += local * stride;
        stride *= piece->type->dims[d];
        flat /= whole->dims[d];
    }
    return place;
}

static sf_status reshape_eval(sf_eval *eval, const sf_op *op, const sf_tensor *in, sf_tensor *out)
{
    (void)eval;
    const sf_type *piece = out->type, *whole = op->out[0];
    if (piece->count == 0)
        return SF_OK;
    if (!in[0].spans && !out->spans) {
        memcpy(out->data, in[0].data, (size_t)sf_type_bytes(piece));
        return SF_OK;
    }
    int64_t index[SF_MAX_RANK] = {0}, flat = 0, bytes = sf_dtype_get(piece->dtype)->bytes;
    do {
        int64_t global = 0;
        for (int d = 0; d < piece->rank; d++)
            global = global * whole->dims[d] + sf_span_global(sf_tensor_span(out, d), index[d]);
        int64_t place = place_in_list(&in[0], op->in[0], global);
        if (place >= 0)
            memcpy((char *)out->data + flat * bytes, (const char *)in[0].data + place * bytes,
                   (size_t)bytes);
        flat++;
    } while (sf_next_index(piece->rank, piece->dims, index));
    return SF_OK;
}

const sf_opdef sf_op_reshape = {
    .name = "reshape",
    .dialect = "stablehlo",
    .hlo = "reshape",
    .doc = "The same elements in row-major order under another shape.",
    .id = SF_OP_RESHAPE,
    .form = SF_FORM_OPERANDS,
    .min_operands = 1,
    .max_operands = 1,
    .nresults = 1,
    .declared = true,
    .infer = reshape_infer,
    .factors = reshape_factors,
    .linear = sf_linear_first,
    .eval = reshape_eval,
    .sample = {.arguments = "%a: tensor<8x4xf32>",
               .use = "%r = stablehlo.reshape %a : (tensor<8x4xf32>) -> tensor<2x16xf32>",
               .results = "%r",
               .types = "tensor<2x16xf32>"},
};

/* transpose */

static const sf_attrdef transpose_attrs[] = {
    [SF_TRANSPOSE_PERMUTATION] = {.name = "permutation",
                                  .key = "dims",
                                  .hlo = "dimensions",
                                  .kind = SF_ATTR_INTS,
                                  .required = true},
};

static sf_status transpose_infer(const sf_op *op, const sf_type **out, sf_diag *diag)
{
    const sf_type *in = op->in[0];
    sf_ints dims = sf_op_ints(op, SF_TRANSPOSE_PERMUTATION);
    if (dims.count != in->rank)
        return SF_OP_FAIL(op, diag, "a permutation of %d dimensions for an operand of rank %d",
                          dims.count, in->rank);
    SF_TRY(sf_check_dims(op, dims, in->rank, "permutation", diag));
    int64_t sizes[SF_MAX_RANK];
    for (int d = 0; d < in->rank; d++)
        sizes[d] = in->dims[dims.at[d]];
    out[0] = sf_type_get(op->pool, in->dtype, in->rank, sizes);
    return SF_OK;
}

static void transpose_factors(const sf_op *op, sf_factoring *out)
{
    sf_ints dims = sf_op_ints(op, SF_TRANSPOSE_PERMUTATION);
    for (int d = 0; d < dims.count; d++) {
        int factor = sf_factor_add(out, op->out[0]->dims[d], SF_MAP, SF_MONOID_NONE);
        sf_factor_walk(out, 0, (int)dims.at[d], factor);
        sf_factor_walk(out, 1, d, factor);
    }
}

static sf_status transpose_eval(sf_eval *eval, const sf_op *op, const sf_tensor *in, sf_tensor *out)
{
    if (out->type->count == 0)
        return SF_OK;
    sf_ints dims = sf_op_ints(op, SF_TRANSPOSE_PERMUTATION);
    sf_mark mark = sf_arena_mark(&eval->scratch);
    sf_copying move;
    sf_copying_init(&move, &eval->scratch, out->type->rank, out->type->dims);
    for (int d = 0; d < dims.count; d++)
        sf_copying_along(&move, d, sf_tensor_side_of(out, d),
                         sf_tensor_side_of(&in[0], (int)dims.at[d]), (sf_line){1, 0, 1});
    sf_copying_copy(&move, &in[0], out);
    sf_arena_reset(&eval->scratch, mark);
    return SF_OK;
}

const sf_opdef sf_op_transpose = {
    .name = "transpose",
    .dialect = "stablehlo",
    .hlo = "transpose",
    .doc = "The operand with its dimensions permuted.",
    .id = SF_OP_TRANSPOSE,
    .form = SF_FORM_OPERANDS,
    .min_operands = 1,
    .max_operands = 1,
    .nresults = 1,
    .attrs = transpose_attrs,
    .nattrs = 1,
    .infer = transpose_infer,
    .factors = transpose_factors,
    .linear = sf_linear_first,
    .eval = transpose_eval,
    .sample =
        {.arguments = "%a: tensor<3x4xf32>",
         .use = "%r = stablehlo.transpose %a, dims = [1, 0] : (tensor<3x4xf32>) -> tensor<4x3xf32>",
         .results = "%r",
         .types = "tensor<4x3xf32>"},
};
