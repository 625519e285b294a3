#include "op/body.h"

#include <math.h>

#include "op/util.h"

sf_status sf_check_fold(const sf_op *op, int count, sf_diag *diag)
{
    if (op->noperands != 2 * count || op->nresults != count)
        return SF_OP_FAIL(op, diag, "has %d operands and %d results, expected 2N and N",
                          op->noperands, op->nresults);
    for (int i = 0; i < count; i++) {
        const sf_type *input = op->in[i], *init = op->in[count + i];
        if (!sf_same_shape(input, op->in[0]))
            return SF_OP_FAIL(op, diag, "input %d has another shape than input 0", i);
        if (init->rank != 0 || init->dtype != input->dtype)
            return SF_OP_FAIL(op, diag, "initial value %d is no scalar of input %d's type %s", i, i,
                              sf_dtype_get(input->dtype)->name);
    }
    return SF_OK;
}

static sf_status check_scalars(const sf_op *op, int count, uint32_t nvalues, const sf_value *values,
                               sf_dtype dtype, const char *what, sf_diag *diag)
{
    for (uint32_t i = 0; i < nvalues; i++) {
        const sf_type *type = sf_type_of(op->graph, values[i]);
        sf_dtype want = dtype == SF_DTYPE_COUNT ? op->in[i % (uint32_t)count]->dtype : dtype;
        char text[SF_TYPE_TEXT];
        if (type->rank != 0 || type->dtype != want)
            return SF_OP_FAIL(op, diag, "%s %" PRIu32 " of the body is %s, expected tensor<%s>",
                              what, i, sf_type_text(type, text), sf_dtype_get(want)->name);
    }
    return SF_OK;
}

sf_status sf_check_scalar_block(const sf_op *op, int region, int count, int nresults,
                                sf_dtype dtype, sf_diag *diag)
{
    if (region >= op->nregions)
        return SF_OP_FAIL(op, diag, "the body is missing");
    const sf_block *block = op->regions[region];
    if (block->narguments != 2 * (uint32_t)count || block->nresults != (uint32_t)nresults)
        return SF_OP_FAIL(op, diag,
                          "the body has %" PRIu32 " arguments and %" PRIu32
                          " results, expected %d and %d",
                          block->narguments, block->nresults, 2 * count, nresults);
    SF_TRY(check_scalars(op, count, block->narguments, block->arguments, SF_DTYPE_COUNT, "argument",
                         diag));
    return check_scalars(op, count, block->nresults, block->results, dtype, "result", diag);
}

bool sf_monoid_takes(sf_monoid monoid, sf_dtype dtype)
{
    bool bitwise = monoid == SF_MONOID_AND || monoid == SF_MONOID_OR || monoid == SF_MONOID_XOR;
    bool orders = monoid == SF_MONOID_MIN || monoid == SF_MONOID_MAX;
    return !(bitwise && sf_is_inexact(dtype)) && !(orders && sf_is_complex(dtype));
}

sf_status sf_check_body(const sf_op *op, int slot, int region, int count, sf_diag *diag)
{
    if (!op->attrs[slot])
        return sf_check_scalar_block(op, region, count, count, SF_DTYPE_COUNT, diag);
    int64_t monoid = op->attrs[slot]->integer;
    if (monoid <= SF_MONOID_NONE || monoid >= SF_MONOID_SECOND)
        return SF_OP_FAIL(op, diag, "the body is no known monoid");
    if (count != 1)
        return SF_OP_FAIL(op, diag, "a monoid folds one operand, not %d", count);
    if (!sf_monoid_takes((sf_monoid)monoid, op->in[0]->dtype))
        return SF_OP_FAIL(op, diag, "the body %s does not take %s",
                          sf_monoid_name((sf_monoid)monoid), sf_dtype_get(op->in[0]->dtype)->name);
    return SF_OK;
}

static sf_status check_values(const sf_op *op, int count, const sf_value *values,
                              const sf_type *const *types, int region, const char *what,
                              sf_diag *diag)
{
    for (int i = 0; i < count; i++) {
        const sf_type *type = sf_type_of(op->graph, values[i]);
        char text[SF_TYPE_TEXT], want[SF_TYPE_TEXT];
        if (type->dtype != types[i]->dtype || !sf_same_shape(type, types[i]))
            return SF_OP_FAIL(op, diag, "%s %d of region %d is %s, expected %s", what, i, region,
                              sf_type_text(type, text), sf_type_text(types[i], want));
    }
    return SF_OK;
}

sf_status sf_check_block(const sf_op *op, int region, int narguments,
                         const sf_type *const *arguments, int nresults,
                         const sf_type *const *results, sf_diag *diag)
{
    const sf_block *block = op->regions[region];
    if (block->narguments != (uint32_t)narguments || block->nresults != (uint32_t)nresults)
        return SF_OP_FAIL(op, diag,
                          "region %d has %" PRIu32 " arguments and %" PRIu32
                          " results, expected %d and %d",
                          region, block->narguments, block->nresults, narguments, nresults);
    SF_TRY(check_values(op, narguments, block->arguments, arguments, region, "argument", diag));
    return check_values(op, nresults, block->results, results, region, "result", diag);
}

static int64_t lowest_integer(sf_dtype dtype)
{
    const sf_dtype_info *info = sf_dtype_get(dtype);
    return info->class == SF_SIGNED ? (int64_t)(UINT64_MAX << (info->bits - 1)) : 0;
}

static int64_t highest_integer(sf_dtype dtype)
{
    const sf_dtype_info *info = sf_dtype_get(dtype);
    return info->class == SF_SIGNED ? (int64_t)((UINT64_C(1) << (info->bits - 1)) - 1)
                                    : sf_wrap(dtype, -1);
}

sf_word sf_monoid_identity(sf_monoid monoid, sf_dtype dtype)
{
    bool real = sf_is_float(dtype);
    switch (monoid) {
    case SF_MONOID_MUL:
        return real ? (sf_word){.real = 1.0} : (sf_word){.integer = 1};
    case SF_MONOID_MIN:
        return real ? (sf_word){.real = (double)INFINITY}
                    : (sf_word){.integer = (uint64_t)highest_integer(dtype)};
    case SF_MONOID_MAX:
        return real ? (sf_word){.real = -(double)INFINITY}
                    : (sf_word){.integer = (uint64_t)lowest_integer(dtype)};
    case SF_MONOID_AND:
        return (sf_word){.integer = (uint64_t)sf_wrap(dtype, -1)};
    case SF_MONOID_ADD:
    case SF_MONOID_OR:
    case SF_MONOID_XOR:
    case SF_MONOID_SECOND:
    case SF_MONOID_NONE:
    case SF_MONOID_COUNT:
        break;
    }
    return real ? (sf_word){.real = -0.0} : (sf_word){.integer = 0};
}

void sf_words_identity(sf_monoid monoid, sf_dtype dtype, sf_word *out)
{
    out[0] = sf_monoid_identity(monoid, sf_part_of(dtype));
    if (sf_is_complex(dtype))
        out[1].real = monoid == SF_MONOID_MUL ? 0 : out[0].real;
}

void sf_words_combine(sf_monoid monoid, sf_dtype dtype, sf_word *a, const sf_word *b)
{
    sf_dtype part = sf_part_of(dtype);
    if (sf_is_complex(dtype) && monoid == SF_MONOID_MUL)
        sf_words_multiply(dtype, a, b, a);
    else if (sf_is_inexact(dtype))
        for (int i = 0; i < sf_parts_of(dtype); i++)
            a[i].real = sf_round(part, sf_combine_f64(monoid, a[i].real, b[i].real));
    else
        a->integer =
            (uint64_t)sf_combine_i64(dtype, monoid, (int64_t)a->integer, (int64_t)b->integer);
}

sf_body sf_body_new(sf_eval *eval, const sf_op *op, int region, int count, int nresults)
{
    sf_arena *arena = &eval->scratch;
    sf_body body = {.eval = eval, .block = op->regions[region], .count = count};
    body.values = SF_ARRAY(arena, 2 * count, sf_tensor);
    body.results = SF_ARRAY(arena, nresults, sf_tensor);
    for (int i = 0; i < 2 * count; i++) {
        body.values[i].type = sf_type_of(op->graph, body.block->arguments[i]);
        body.values[i].data = sf_arena_alloc(arena, SF_ELEMENT_BYTES);
    }
    for (int i = 0; i < nresults; i++) {
        body.results[i].type = sf_type_of(op->graph, body.block->results[i]);
        body.results[i].data = sf_arena_alloc(arena, SF_ELEMENT_BYTES);
    }
    return body;
}

static void copy_body_element(sf_tensor *to, int64_t at, const sf_tensor *from, int64_t index)
{
    size_t bytes = sf_dtype_get(from->type->dtype)->bytes;
    memcpy((char *)to->data + (size_t)at * bytes, (const char *)from->data + (size_t)index * bytes,
           bytes);
}

void sf_body_set(sf_body *body, int slot, const sf_tensor *tensor, int64_t index)
{
    copy_body_element(&body->values[slot], 0, tensor, index);
}

sf_status sf_body_run(sf_body *body)
{
    return sf_eval_block(body->eval, body->block, body->values, body->results);
}

sf_status sf_body_step(sf_body *body)
{
    SF_TRY(sf_body_run(body));
    for (int i = 0; i < body->count; i++)
        copy_body_element(&body->values[i], 0, &body->results[i], 0);
    return SF_OK;
}

void sf_body_get(const sf_body *body, int slot, sf_tensor *tensor, int64_t index)
{
    copy_body_element(tensor, index, &body->values[slot], 0);
}
