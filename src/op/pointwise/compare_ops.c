/* Ops that compare elements and choose between them. */
#include "op/pointwise/pointwise.h"
#include "op/slots.h"

/* A scalar operand is broadcast. */
static bool scalar_or_like(const sf_type *operand, const sf_type *type)
{
    return operand->rank == 0 || sf_same_shape(operand, type);
}

static int64_t index_at(const sf_tensor *operand, int64_t index)
{
    return operand->type->rank == 0 ? 0 : index;
}

static sf_status infer_clamp(const sf_op *op, const sf_type **out, sf_diag *diag)
{
    const sf_type *type = op->in[1];
    char bound[SF_TYPE_TEXT], text[SF_TYPE_TEXT];
    for (int i = 0; i < 3; i += 2)
        if (op->in[i]->dtype != type->dtype || !scalar_or_like(op->in[i], type))
            return SF_OP_FAIL(op, diag, "a bound of type %s does not fit the operand, %s",
                              sf_type_text(op->in[i], bound), sf_type_text(type, text));
    if (sf_is_complex(type->dtype))
        return SF_OP_FAIL(op, diag, "not defined on elements of type %s",
                          sf_dtype_get(type->dtype)->name);
    out[0] = type;
    return SF_OK;
}

static int64_t clamp_integer(sf_dtype dtype, int64_t low, int64_t x, int64_t high)
{
    return sf_combine_i64(dtype, SF_MONOID_MIN, sf_combine_i64(dtype, SF_MONOID_MAX, x, low), high);
}

static sf_status eval_clamp(sf_eval *eval, const sf_op *op, const sf_tensor *in, sf_tensor *out)
{
    (void)eval, (void)op;
    sf_dtype dtype = out->type->dtype;
    const sf_tensor *low = &in[0], *x = &in[1], *high = &in[2];
    if (sf_is_float(dtype)) {
        for (int64_t i = 0; i < out->type->count; i++) {
            double raised = sf_maximum(sf_get_f64(x, i), sf_get_f64(low, index_at(low, i)));
            double value = sf_minimum(raised, sf_get_f64(high, index_at(high, i)));
            sf_store_f64(dtype, out->data, i, value);
        }
        return SF_OK;
    }
    for (int64_t i = 0; i < out->type->count; i++) {
        int64_t value = clamp_integer(dtype, sf_get_i64(low, index_at(low, i)), sf_get_i64(x, i),
                                      sf_get_i64(high, index_at(high, i)));
        sf_store_i64(dtype, out->data, i, value);
    }
    return SF_OK;
}

const sf_opdef sf_op_clamp = {
    .name = "clamp",
    .dialect = "stablehlo",
    .hlo = "clamp",
    .doc = "The second operand, limited to the range from the first to the third.",
    .id = SF_OP_CLAMP,
    .form = SF_FORM_OPERANDS,
    .min_operands = 3,
    .max_operands = 3,
    .nresults = 1,
    .infer = infer_clamp,
    .factors = sf_factors_pointwise,
    .flops = sf_flops_pointwise,
    .eval = eval_clamp,
    .sample =
        {.arguments = "%a: tensor<f32>, %b: tensor<3x4xf32>, %c: tensor<f32>",
         .use = "%r = stablehlo.clamp %a, %b, %c : (tensor<f32>, tensor<3x4xf32>, tensor<f32>) -> "
                "tensor<3x4xf32>",
         .results = "%r",
         .types = "tensor<3x4xf32>"},
};

enum { COMPARE_ATTRS = SF_COMPARE_TYPE + 1 };
static const sf_attrdef compare_attrs[COMPARE_ATTRS] = {
    [SF_COMPARE_DIRECTION] = {.name = "comparison_direction",
                              .hlo = "direction",
                              .kind = SF_ATTR_TEXT,
                              .prefix = "#stablehlo<comparison_direction ",
                              .required = true},
    [SF_COMPARE_TYPE] = {.name = "compare_type",
                         .hlo = "type",
                         .kind = SF_ATTR_TEXT,
                         .prefix = "#stablehlo<comparison_type "},
};

/* Which outcomes of x against y make the comparison true. NaN is against everything unordered. */
enum { LESS = 1, EQUAL = 2, GREATER = 4, UNORDERED = 8 };
static const struct direction {
    const char *name;
    int outcomes;
} directions[] = {
    {"EQ", EQUAL},           {"NE", LESS | GREATER | UNORDERED},
    {"GE", GREATER | EQUAL}, {"GT", GREATER},
    {"LE", LESS | EQUAL},    {"LT", LESS},
};
enum { NDIRECTIONS = sizeof directions / sizeof *directions };

/* 0 when there is no such direction. */
static int outcomes_of(const char *name)
{
    for (int i = 0; i < NDIRECTIONS; i++)
        if (strcmp(directions[i].name, name) == 0)
            return directions[i].outcomes;
    return 0;
}

/* Absent (or NOTYPE, as older versions write that) is the default of the type. */
static bool comparison_fits(const char *type, sf_class class)
{
    if (*type == '\0' || strcmp(type, "NOTYPE") == 0)
        return true;
    if (strcmp(type, "FLOAT") == 0)
        return class == SF_FLOAT || class == SF_COMPLEX;
    if (strcmp(type, "TOTALORDER") == 0)
        return class == SF_FLOAT;
    if (strcmp(type, "SIGNED") == 0)
        return class == SF_SIGNED;
    return strcmp(type, "UNSIGNED") == 0 && (class == SF_UNSIGNED || class == SF_BOOLEAN);
}

static sf_status infer_compare(const sf_op *op, const sf_type **out, sf_diag *diag)
{
    const sf_type *type = op->in[0];
    char left[SF_TYPE_TEXT], right[SF_TYPE_TEXT];
    if (op->in[1] != type)
        return SF_OP_FAIL(op, diag, "operands have different types, %s and %s",
                          sf_type_text(type, left), sf_type_text(op->in[1], right));
    if (!outcomes_of(sf_op_text(op, SF_COMPARE_DIRECTION)))
        return SF_OP_FAIL(op, diag, "the direction is EQ, NE, GE, GT, LE or LT, not '%.40s'",
                          sf_op_text(op, SF_COMPARE_DIRECTION));
    const sf_dtype_info *info = sf_dtype_get(type->dtype);
    if (!comparison_fits(sf_op_text(op, SF_COMPARE_TYPE), info->class))
        return SF_OP_FAIL(op, diag, "elements of type %s have no comparison of type '%.40s'",
                          info->name, sf_op_text(op, SF_COMPARE_TYPE));
    if (info->class == SF_COMPLEX && strcmp(sf_op_text(op, SF_COMPARE_DIRECTION), "EQ") != 0 &&
        strcmp(sf_op_text(op, SF_COMPARE_DIRECTION), "NE") != 0)
        return SF_OP_FAIL(op, diag, "complex numbers have no order: they are compared by EQ or NE");
    out[0] = sf_type_with(op->pool, type, SF_PRED);
    return SF_OK;
}

static int compare_real(double x, double y)
{
    if (isnan(x) || isnan(y))
        return UNORDERED;
    return x < y ? LESS : x > y ? GREATER : EQUAL;
}

static int compare_integer(int64_t x, int64_t y)
{
    return x < y ? LESS : x > y ? GREATER : EQUAL;
}

static int compare_complex(const sf_tensor *in, int64_t i)
{
    sf_complex x, y;
    sf_complex_load(in->type->dtype, in[0].data, i, 1, &x);
    sf_complex_load(in->type->dtype, in[1].data, i, 1, &y);
    return x == y ? EQUAL : UNORDERED;
}

static int compare_at(const sf_tensor *in, bool total, int64_t i)
{
    sf_dtype dtype = in->type->dtype;
    if (sf_is_complex(dtype))
        return compare_complex(in, i);
    if (sf_is_float(dtype) && !total)
        return compare_real(sf_get_f64(&in[0], i), sf_get_f64(&in[1], i));
    return compare_integer(sf_total_order(&in[0], i), sf_total_order(&in[1], i));
}

static sf_status eval_compare(sf_eval *eval, const sf_op *op, const sf_tensor *in, sf_tensor *out)
{
    (void)eval;
    int outcomes = outcomes_of(sf_op_text(op, SF_COMPARE_DIRECTION));
    bool total = strcmp(sf_op_text(op, SF_COMPARE_TYPE), "TOTALORDER") == 0;
    uint8_t *result = out->data;
    for (int64_t i = 0; i < out->type->count; i++)
        result[i] = (outcomes & compare_at(in, total, i)) != 0;
    return SF_OK;
}

const sf_opdef sf_op_compare = {
    .name = "compare",
    .dialect = "stablehlo",
    .hlo = "compare",
    .doc = "Whether the comparison of the first operand with the second holds.",
    .id = SF_OP_COMPARE,
    .form = SF_FORM_COMPARE,
    .min_operands = 2,
    .max_operands = 2,
    .nresults = 1,
    .attrs = compare_attrs,
    .nattrs = COMPARE_ATTRS,
    .infer = infer_compare,
    .factors = sf_factors_pointwise,
    .flops = sf_flops_pointwise,
    .eval = eval_compare,
    .sample =
        {.arguments = "%a: tensor<3x4xf32>, %b: tensor<3x4xf32>",
         .use = "%r = stablehlo.compare LT, %a, %b, FLOAT : (tensor<3x4xf32>, tensor<3x4xf32>) -> "
                "tensor<3x4xi1>",
         .results = "%r",
         .types = "tensor<3x4xi1>"},
};

static sf_status infer_select(const sf_op *op, const sf_type **out, sf_diag *diag)
{
    const sf_type *predicate = op->in[0], *type = op->in[1];
    char left[SF_TYPE_TEXT], right[SF_TYPE_TEXT];
    if (op->in[2] != type)
        return SF_OP_FAIL(op, diag, "the choices have different types, %s and %s",
                          sf_type_text(type, left), sf_type_text(op->in[2], right));
    if (predicate->dtype != SF_PRED || !scalar_or_like(predicate, type))
        return SF_OP_FAIL(op, diag, "a predicate of type %s does not fit the choices, %s",
                          sf_type_text(predicate, left), sf_type_text(type, right));
    out[0] = type;
    return SF_OK;
}

/* The choices together: a sum of partial results is selected part by part. */
static int linear_select(const sf_op *op, uint32_t masks[])
{
    (void)op;
    masks[0] = 1U << 1 | 1U << 2;
    return 1;
}

static sf_status eval_select(sf_eval *eval, const sf_op *op, const sf_tensor *in, sf_tensor *out)
{
    (void)eval, (void)op;
    size_t size = sf_dtype_get(out->type->dtype)->bytes;
    const uint8_t *predicate = in[0].data;
    const char *on_true = in[1].data, *on_false = in[2].data;
    char *result = out->data;
    for (int64_t i = 0; i < out->type->count; i++) {
        const char *chosen = predicate[index_at(&in[0], i)] ? on_true : on_false;
        memcpy(result + (size_t)i * size, chosen + (size_t)i * size, size);
    }
    return SF_OK;
}

const sf_opdef sf_op_select = {
    .name = "select",
    .dialect = "stablehlo",
    .hlo = "select",
    .doc = "The second operand where the first is true, elsewhere the third.",
    .id = SF_OP_SELECT,
    .form = SF_FORM_OPERANDS,
    .min_operands = 3,
    .max_operands = 3,
    .nresults = 1,
    .infer = infer_select,
    .factors = sf_factors_pointwise,
    .linear = linear_select,
    .flops = sf_flops_pointwise,
    .eval = eval_select,
    .sample = {.arguments = "%p: tensor<3x4xi1>, %a: tensor<3x4xf32>, %b: tensor<3x4xf32>",
               .use = "%r = stablehlo.select %p, %a, %b : tensor<3x4xi1>, tensor<3x4xf32>",
               .results = "%r",
               .types = "tensor<3x4xf32>"},
};
