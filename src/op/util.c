#include "op/util.h"

#include <math.h>
#include <stdarg.h>

#include "op/slots.h"

void sf_factors_pointwise(const sf_op *op, sf_factoring *out)
{
    const sf_type *result = op->out[0];
    for (int d = 0; d < result->rank; d++) {
        int factor = sf_factor_add(out, result->dims[d], SF_MAP, SF_MONOID_NONE);
        for (int i = 0; i < op->noperands; i++)
            if (op->in[i]->rank > 0)
                sf_factor_walk(out, i, d, factor);
        for (int i = 0; i < op->nresults; i++)
            sf_factor_walk(out, op->noperands + i, d, factor);
    }
}

void sf_factors_whole(const sf_op *op, sf_factoring *out)
{
    for (int i = 0; i < op->noperands + op->nresults; i++) {
        const sf_type *type = i < op->noperands ? op->in[i] : op->out[i - op->noperands];
        for (int d = 0; d < type->rank; d++)
            sf_factor_whole(out, i, d, type->dims[d]);
    }
}

int sf_linear_first(const sf_op *op, uint32_t masks[])
{
    (void)op;
    masks[0] = 1;
    return 1;
}

int sf_linear_all(const sf_op *op, uint32_t masks[])
{
    if (op->noperands < 1 || op->noperands > 32)
        return 0;
    masks[0] = UINT32_MAX >> (32 - op->noperands);
    return 1;
}

bool sf_keeps_sums(sf_dtype from, sf_dtype to)
{
    const sf_dtype_info *a = sf_dtype_get(from), *b = sf_dtype_get(to);
    if (from == to)
        return true;
    if (a->class == SF_BOOLEAN || b->class == SF_BOOLEAN)
        return false;
    bool floats = sf_is_inexact(from) && sf_is_inexact(to);
    bool integers = !sf_is_inexact(from) && !sf_is_inexact(to);
    return floats || (integers && b->bits <= a->bits);
}

int sf_linear_each(const sf_op *op, uint32_t masks[])
{
    int count = 0;
    for (int i = 0; i < 2; i++)
        if (sf_keeps_sums(op->in[i]->dtype, op->out[0]->dtype))
            masks[count++] = UINT32_C(1) << i;
    return count;
}

sf_status sf_check_product(const sf_op *op, sf_dtype dtype, sf_diag *diag)
{
    for (int i = 0; i < 2; i++) {
        sf_dtype operand = op->in[i]->dtype;
        if (sf_is_complex(operand) && !sf_is_complex(dtype))
            return SF_OP_FAIL(op, diag, "a product of complex numbers cannot be %s",
                              sf_dtype_get(dtype)->name);
        if (sf_is_float(operand) && !sf_is_inexact(dtype))
            return SF_OP_FAIL(op, diag, "a product of floats cannot be %s",
                              sf_dtype_get(dtype)->name);
    }
    return SF_OK;
}

double sf_flops_product(const sf_op *op)
{
    return sf_is_complex(op->out[0]->dtype) ? 8 : 2;
}

double sf_flops_pointwise(const sf_op *op)
{
    return (double)op->out[0]->count;
}

sf_status sf_check_same_shape(const sf_op *op, int a, int b, sf_diag *diag)
{
    if (sf_same_shape(op->in[a], op->in[b]))
        return SF_OK;
    char left[SF_TYPE_TEXT], right[SF_TYPE_TEXT];
    return SF_OP_FAIL(op, diag, "operands %d and %d have different shapes, %s and %s", a, b,
                      sf_type_text(op->in[a], left), sf_type_text(op->in[b], right));
}

sf_status sf_op_fail(const sf_op *op, sf_diag *diag, const char *format, ...)
{
    char text[2 * SF_TYPE_TEXT + 200]; /* two types and a sentence */
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return sf_fail(diag, SF_EINPUT, op->loc, "%s.%s: %s", op->def->dialect, op->def->name, text);
}

sf_status sf_check_dims(const sf_op *op, sf_ints dims, int rank, const char *what, sf_diag *diag)
{
    uint32_t seen = 0;
    for (int i = 0; i < dims.count; i++) {
        int64_t dim = dims.at[i];
        if (dim < 0 || dim >= rank)
            return SF_OP_FAIL(op, diag, "%s names dimension %" PRId64 " of a tensor of rank %d",
                              what, dim, rank);
        if (seen & UINT32_C(1) << dim)
            return SF_OP_FAIL(op, diag, "%s names dimension %" PRId64 " twice", what, dim);
        seen |= UINT32_C(1) << dim;
    }
    return SF_OK;
}

bool sf_has(sf_ints list, int64_t value)
{
    for (int i = 0; i < list.count; i++)
        if (list.at[i] == value)
            return true;
    return false;
}

sf_monoid sf_op_monoid(const sf_op *op, int slot)
{
    int64_t monoid = sf_op_int(op, slot, SF_MONOID_NONE);
    return monoid > SF_MONOID_NONE && monoid < SF_MONOID_COUNT ? (sf_monoid)monoid : SF_MONOID_NONE;
}

bool sf_op_is_exact(const sf_op *op)
{
    return op->def->precision && strstr(sf_op_text(op, op->def->precision - 1), "HIGH") != NULL;
}

sf_dtype sf_asked_dtype(const sf_node *node, int operand, sf_dtype has)
{
    static const char *const keys[] = {"lhs_precision_type = ", "rhs_precision_type = "};
    const sf_attr *algorithm =
        sf_is(node, SF_OP_DOT_GENERAL) ? node->attrs[SF_DOT_ALGORITHM] : NULL;
    const char *at = algorithm ? strstr(algorithm->text, keys[operand]) : NULL;
    sf_dtype asked;
    /* More than one product of parts makes up for their type. */
    if (!at || !strstr(algorithm->text, "num_primitive_operations = 1,"))
        return has;
    at += strlen(keys[operand]);
    sf_str name = {at, strcspn(at, " ,>")};
    bool is_known = sf_dtype_find(SF_SPELL_STABLEHLO, name, &asked) && sf_is_float(asked);
    return is_known && sf_dtype_get(asked)->bits < sf_dtype_get(has)->bits ? asked : has;
}

int64_t sf_total_order(const sf_tensor *tensor, int64_t index)
{
    sf_dtype dtype = tensor->type->dtype;
    const sf_dtype_info *info = sf_dtype_get(dtype);
    if (info->class == SF_UNSIGNED)
        return (int64_t)((uint64_t)sf_get_i64(tensor, index) ^ UINT64_C(1) << 63);
    if (info->class != SF_FLOAT)
        return sf_get_i64(tensor, index);
    uint64_t bits = sf_load_bits(dtype, tensor->data, index);
    if (info->bits == info->exponent + info->mantissa)
        return (int64_t)bits;
    uint64_t sign = UINT64_C(1) << (info->bits - 1), magnitude = bits & (sign - 1);
    if (!(bits & sign))
        return (int64_t)magnitude;
    /* Types without a negative zero keep their only NaN there. */
    if (magnitude == 0 && isnan(sf_load_f64(dtype, tensor->data, index)))
        return INT64_MAX;
    return -(int64_t)magnitude - 1;
}
