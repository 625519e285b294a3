#include "op/pointwise/pointwise.h"

sf_status sf_pointwise_infer(const sf_pointwise *row, const sf_op *op, const sf_type **out,
                             sf_diag *diag)
{
    const sf_type *type = op->in[0];
    char text[SF_TYPE_TEXT], other[SF_TYPE_TEXT];
    for (int i = 1; i < op->noperands; i++)
        if (op->in[i] != type)
            return SF_OP_FAIL(op, diag, "operands have different types, %s and %s",
                              sf_type_text(type, text), sf_type_text(op->in[i], other));
    if (!(row->classes & 1U << sf_dtype_get(type->dtype)->class))
        return SF_OP_FAIL(op, diag, "not defined on elements of type %s",
                          sf_dtype_get(type->dtype)->name);
    sf_dtype dtype = type->dtype;
    if (row->outcome == SF_OUT_TRUTH)
        dtype = SF_PRED;
    else if (row->outcome == SF_OUT_PART)
        dtype = sf_part_of(dtype);
    else if (row->outcome == SF_OUT_COMPLEX && !sf_complex_of(type->dtype, &dtype))
        return SF_OP_FAIL(op, diag, "there are no complex numbers with parts of type %s",
                          sf_dtype_get(type->dtype)->name);
    out[0] = sf_type_with(op->pool, type, dtype);
    return out[0] ? SF_OK : SF_OP_FAIL(op, diag, "the result is too large");
}

enum { CHUNK = 512 };

static void eval_real(const sf_pointwise *row, int noperands, const sf_tensor *in, sf_tensor *out)
{
    double a[CHUNK], b[CHUNK];
    for (int64_t first = 0; first < out->type->count; first += CHUNK) {
        int64_t left = out->type->count - first, count = left < CHUNK ? left : CHUNK;
        sf_load_f64s(in[0].type->dtype, in[0].data, first, count, a);
        if (noperands > 1)
            sf_load_f64s(in[1].type->dtype, in[1].data, first, count, b);
        row->real(count, a, b, a);
        sf_store_f64s(out->type->dtype, out->data, first, count, a);
    }
}

static void eval_complex(const sf_pointwise *row, int noperands, const sf_tensor *in,
                         sf_tensor *out)
{
    sf_complex a[CHUNK], b[CHUNK];
    for (int64_t first = 0; first < out->type->count; first += CHUNK) {
        int64_t left = out->type->count - first, count = left < CHUNK ? left : CHUNK;
        sf_complex_load(in[0].type->dtype, in[0].data, first, count, a);
        if (noperands > 1)
            sf_complex_load(in[1].type->dtype, in[1].data, first, count, b);
        row->complex(count, a, b, a);
        sf_complex_store(out->type->dtype, out->data, first, count, a);
    }
}

static void eval_integer(const sf_pointwise *row, int noperands, const sf_tensor *in,
                         sf_tensor *out)
{
    int64_t a[CHUNK], b[CHUNK];
    for (int64_t first = 0; first < out->type->count; first += CHUNK) {
        int64_t left = out->type->count - first, count = left < CHUNK ? left : CHUNK;
        sf_load_i64s(in[0].type->dtype, in[0].data, first, count, a);
        if (noperands > 1)
            sf_load_i64s(in[1].type->dtype, in[1].data, first, count, b);
        row->integer(in[0].type->dtype, count, a, b, a);
        sf_store_i64s(out->type->dtype, out->data, first, count, a);
    }
}

sf_status sf_pointwise_eval(const sf_pointwise *row, const sf_op *op, const sf_tensor *in,
                            sf_tensor *out)
{
    if (sf_is_complex(in[0].type->dtype) || sf_is_complex(out->type->dtype))
        eval_complex(row, op->noperands, in, out);
    else if (sf_is_float(in[0].type->dtype))
        eval_real(row, op->noperands, in, out);
    else
        eval_integer(row, op->noperands, in, out);
    return SF_OK;
}
