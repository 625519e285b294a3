#include "op/pointwise.h"

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
    out[0] = row->predicate ? sf_type_with(op->pool, type, SF_PRED) : type;
    return SF_OK;
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
    if (sf_is_float(in[0].type->dtype))
        eval_real(row, op->noperands, in, out);
    else
        eval_integer(row, op->noperands, in, out);
    return SF_OK;
}
