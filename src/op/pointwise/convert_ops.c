/* Ops that change the type of the elements, or their precision. */
#include <math.h>

#include "op/pointwise/complex_ops.h"
#include "op/slots.h"
#include "op/util.h"

/* The declared result, which is the only place that says the type of its elements. */
static sf_status declared_type(const sf_op *op, const sf_type **type, sf_diag *diag)
{
    if (op->out == NULL || op->out[0] == NULL)
        return SF_OP_FAIL(op, diag, "the type of the result must be declared");
    *type = op->out[0];
    return SF_OK;
}

static sf_status infer_convert(const sf_op *op, const sf_type **out, sf_diag *diag)
{
    const sf_type *type = NULL;
    SF_TRY(declared_type(op, &type, diag));
    char from[SF_TYPE_TEXT], to[SF_TYPE_TEXT];
    if (!sf_same_shape(op->in[0], type))
        return SF_OP_FAIL(op, diag, "the shape changes from %s to %s",
                          sf_type_text(op->in[0], from), sf_type_text(type, to));
    out[0] = type;
    return SF_OK;
}

static int linear_convert(const sf_op *op, uint32_t masks[])
{
    return sf_keeps_sums(op->in[0]->dtype, op->out[0]->dtype) ? sf_linear_first(op, masks) : 0;
}

/* A 64-bit integer as a double rounded to odd: towards zero, the last bit set when anything was lost.
 * Rounding that to a narrower float is as good as rounding the integer itself. */
static double odd_double(sf_dtype dtype, int64_t value)
{
    bool negative = value < 0 && !sf_is_unsigned(dtype);
    uint64_t size = negative ? 0 - (uint64_t)value : (uint64_t)value;
    int excess = size == 0 ? 0 : 64 - __builtin_clzll(size) - 53;
    if (excess > 0) {
        uint64_t lost = size & ((UINT64_C(1) << excess) - 1);
        size = (size >> excess | (lost != 0)) << excess;
    }
    return negative ? -(double)size : (double)size;
}

enum { CHUNK = 512 };

static void convert_from_float(const sf_tensor *in, sf_tensor *out)
{
    double values[CHUNK];
    for (int64_t first = 0; first < out->type->count; first += CHUNK) {
        int64_t left = out->type->count - first, count = left < CHUNK ? left : CHUNK;
        sf_load_f64s(in->type->dtype, in->data, first, count, values);
        sf_store_f64s(out->type->dtype, out->data, first, count, values);
    }
}

static void convert_from_integer(const sf_tensor *in, sf_tensor *out)
{
    sf_dtype from = in->type->dtype, to = out->type->dtype;
    bool to_float = sf_is_inexact(to);
    bool wide = sf_dtype_get(from)->bits > 32 && sf_part_of(to) != SF_F64;
    if (to_float && !wide) { /* every such integer is a double, or f64 rounds it only once */
        convert_from_float(in, out);
        return;
    }
    int64_t values[CHUNK];
    double reals[CHUNK];
    for (int64_t first = 0; first < out->type->count; first += CHUNK) {
        int64_t left = out->type->count - first, count = left < CHUNK ? left : CHUNK;
        sf_load_i64s(from, in->data, first, count, values);
        if (!to_float) {
            sf_store_i64s(to, out->data, first, count, values);
            continue;
        }
        for (int64_t i = 0; i < count; i++)
            reals[i] = odd_double(from, values[i]);
        sf_store_f64s(to, out->data, first, count, reals);
    }
}

static void convert_complex(const sf_tensor *in, sf_tensor *out)
{
    sf_complex values[CHUNK];
    for (int64_t first = 0; first < out->type->count; first += CHUNK) {
        int64_t left = out->type->count - first, count = left < CHUNK ? left : CHUNK;
        sf_complex_load(in->type->dtype, in->data, first, count, values);
        sf_complex_store(out->type->dtype, out->data, first, count, values);
    }
}

/* Floats become integers by truncation, within the range of the type; NaN becomes 0. Integers wrap.
 * Anything but zero is true. Of a complex number the real part is taken. */
static sf_status eval_convert(sf_eval *eval, const sf_op *op, const sf_tensor *in, sf_tensor *out)
{
    (void)eval, (void)op;
    if (sf_is_complex(in->type->dtype))
        convert_complex(in, out);
    else if (sf_is_float(in->type->dtype))
        convert_from_float(in, out);
    else
        convert_from_integer(in, out);
    return SF_OK;
}

const sf_opdef sf_op_convert = {
    .name = "convert",
    .dialect = "stablehlo",
    .hlo = "convert",
    .doc = "The same numbers in another element type.",
    .id = SF_OP_CONVERT,
    .form = SF_FORM_OPERANDS,
    .min_operands = 1,
    .max_operands = 1,
    .nresults = 1,
    .declared = true,
    .infer = infer_convert,
    .factors = sf_factors_pointwise,
    .linear = linear_convert,
    .flops = sf_flops_pointwise,
    .eval = eval_convert,
    .sample = {.arguments = "%a: tensor<3x4xf32>",
               .use = "%r = stablehlo.convert %a : (tensor<3x4xf32>) -> tensor<3x4xbf16>",
               .results = "%r",
               .types = "tensor<3x4xbf16>"},
};

/* How many elements of the narrow type make one of the wide one; 0 when the widths do not fit. */
static int64_t bitcast_ratio(const sf_type *a, const sf_type *b)
{
    int x = sf_dtype_get(a->dtype)->bits, y = sf_dtype_get(b->dtype)->bits;
    int wide = x > y ? x : y, narrow = x > y ? y : x;
    return wide % narrow == 0 ? wide / narrow : 0;
}

/* The tensor of the narrower elements has one dimension more, the last one, unless the widths are
 * equal. */
static bool bitcast_fits(const sf_type *in, const sf_type *out)
{
    int64_t ratio = bitcast_ratio(in, out);
    if (ratio <= 1)
        return ratio == 1 && sf_same_shape(in, out);
    bool narrows = sf_dtype_get(in->dtype)->bits > sf_dtype_get(out->dtype)->bits;
    const sf_type *few = narrows ? in : out, *many = narrows ? out : in;
    if (many->rank != few->rank + 1 || many->dims[few->rank] != ratio)
        return false;
    for (int d = 0; d < few->rank; d++)
        if (few->dims[d] != many->dims[d])
            return false;
    return true;
}

static sf_status infer_bitcast_convert(const sf_op *op, const sf_type **out, sf_diag *diag)
{
    const sf_type *type = NULL;
    SF_TRY(declared_type(op, &type, diag));
    char from[SF_TYPE_TEXT], to[SF_TYPE_TEXT];
    if (!bitcast_fits(op->in[0], type))
        return SF_OP_FAIL(op, diag, "the bits of %s do not make up %s",
                          sf_type_text(op->in[0], from), sf_type_text(type, to));
    out[0] = type;
    return SF_OK;
}

/* The dimension inside an element cannot be split, all others pass. */
static void factors_bitcast_convert(const sf_op *op, sf_factoring *out)
{
    const sf_type *types[2] = {op->in[0], op->out[0]};
    int shared = types[0]->rank < types[1]->rank ? types[0]->rank : types[1]->rank;
    for (int d = 0; d < shared; d++) {
        int factor = sf_factor_add(out, types[0]->dims[d], SF_MAP, SF_MONOID_NONE);
        sf_factor_walk(out, 0, d, factor);
        sf_factor_walk(out, 1, d, factor);
    }
    for (int tensor = 0; tensor < 2; tensor++)
        if (types[tensor]->rank > shared)
            sf_factor_whole(out, tensor, shared, types[tensor]->dims[shared]);
}

/* The first of the narrow elements has the lowest bits of the wide one, as in XLA. So the bits of a
 * complex number are those of its parts, one after the other. */
static sf_status eval_bitcast_convert(sf_eval *eval, const sf_op *op, const sf_tensor *in,
                                      sf_tensor *out)
{
    (void)eval, (void)op;
    sf_dtype from = sf_part_of(in->type->dtype), to = sf_part_of(out->type->dtype);
    int from_bits = sf_dtype_get(from)->bits, to_bits = sf_dtype_get(to)->bits;
    int64_t count = out->type->count * sf_parts_of(out->type->dtype);
    if (from_bits > to_bits) {
        int64_t ratio = from_bits / to_bits;
        for (int64_t i = 0; i < count; i++) {
            uint64_t bits = sf_load_bits(from, in->data, i / ratio);
            sf_store_bits(to, out->data, i, bits >> (i % ratio * to_bits));
        }
        return SF_OK;
    }
    int64_t ratio = to_bits / from_bits;
    for (int64_t i = 0; i < count; i++) {
        uint64_t bits = 0;
        for (int64_t k = 0; k < ratio; k++)
            bits |= sf_load_bits(from, in->data, i * ratio + k) << (k * from_bits);
        sf_store_bits(to, out->data, i, bits);
    }
    return SF_OK;
}

/* Moves bits and computes nothing: no operations are counted. */
const sf_opdef sf_op_bitcast_convert = {
    .name = "bitcast_convert",
    .dialect = "stablehlo",
    .hlo = "bitcast-convert",
    .doc = "The same bits, read as another element type.",
    .id = SF_OP_BITCAST_CONVERT,
    .form = SF_FORM_OPERANDS,
    .min_operands = 1,
    .max_operands = 1,
    .nresults = 1,
    .declared = true,
    .infer = infer_bitcast_convert,
    .factors = factors_bitcast_convert,
    .eval = eval_bitcast_convert,
    .sample = {.arguments = "%a: tensor<3x4xf32>",
               .use = "%r = stablehlo.bitcast_convert %a : (tensor<3x4xf32>) -> tensor<3x4x2xbf16>",
               .results = "%r",
               .types = "tensor<3x4x2xbf16>"},
};

static const sf_attrdef reduce_precision_attrs[SF_PRECISION_SLOTS] = {
    [SF_PRECISION_EXPONENT] = {.name = "exponent_bits",
                               .kind = SF_ATTR_INT,
                               .text = SF_AS_I32,
                               .required = true},
    [SF_PRECISION_MANTISSA] = {.name = "mantissa_bits",
                               .kind = SF_ATTR_INT,
                               .text = SF_AS_I32,
                               .required = true},
};

static sf_status infer_reduce_precision(const sf_op *op, const sf_type **out, sf_diag *diag)
{
    int64_t exponent = sf_op_int(op, SF_PRECISION_EXPONENT, 0),
            mantissa = sf_op_int(op, SF_PRECISION_MANTISSA, 0);
    if (!sf_is_float(op->in[0]->dtype))
        return SF_OP_FAIL(op, diag, "not defined on elements of type %s",
                          sf_dtype_get(op->in[0]->dtype)->name);
    if (exponent < 1 || exponent > INT32_MAX || mantissa < 0 || mantissa > INT32_MAX)
        return SF_OP_FAIL(op, diag, "there is no format e%" PRId64 "m%" PRId64, exponent, mantissa);
    out[0] = op->in[0];
    return SF_OK;
}

/* As many exponent bits as the type has leave its range alone. Then a number below its normal range
 * stays one, and loses the digits that lie below those of the smallest normal number. */
static double reduce_one(const sf_dtype_info *info, double value, int exponent, int mantissa)
{
    if (exponent >= info->exponent && mantissa >= info->mantissa)
        return value;
    if (exponent < info->exponent)
        return sf_round_format(value, exponent, mantissa);
    int lowest = 2 - (1 << (info->exponent - 1));
    if (info->exponent < 11 && fabs(value) < ldexp(1, lowest)) {
        return ldexp(rint(ldexp(value, mantissa - lowest)), lowest - mantissa);
    }
    return sf_round_format(value, 11, mantissa);
}

static sf_status eval_reduce_precision(sf_eval *eval, const sf_op *op, const sf_tensor *in,
                                       sf_tensor *out)
{
    (void)eval;
    sf_dtype dtype = out->type->dtype;
    int exponent = (int)sf_op_int(op, SF_PRECISION_EXPONENT, 0);
    int mantissa = (int)sf_op_int(op, SF_PRECISION_MANTISSA, 0);
    for (int64_t i = 0; i < out->type->count; i++) {
        double value = reduce_one(sf_dtype_get(dtype), sf_get_f64(in, i), exponent, mantissa);
        sf_store_f64(dtype, out->data, i, value);
    }
    return SF_OK;
}

const sf_opdef sf_op_reduce_precision = {
    .name = "reduce_precision",
    .dialect = "stablehlo",
    .hlo = "reduce-precision",
    .doc = "The numbers rounded to a narrower float format, in the operand's type.",
    .id = SF_OP_REDUCE_PRECISION,
    .form = SF_FORM_OPERANDS,
    .min_operands = 1,
    .max_operands = 1,
    .nresults = 1,
    .attrs = reduce_precision_attrs,
    .nattrs = SF_PRECISION_SLOTS,
    .infer = infer_reduce_precision,
    .factors = sf_factors_pointwise,
    .flops = sf_flops_pointwise,
    .eval = eval_reduce_precision,
    .sample = {.arguments = "%a: tensor<3x4xf32>",
               .use = "%r = stablehlo.reduce_precision %a, format = e5m10 : tensor<3x4xf32>",
               .results = "%r",
               .types = "tensor<3x4xf32>"},
};
