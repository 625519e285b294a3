/* The functions of the CHLO dialect. At poles and outside of a function's domain, the result is
 * that of CHLO's own expansion. */
#include "op/pointwise/pointwise.h"

#define TABLE static const
#define LARGE static

static double log_gamma(double x)
{
    int sign;
    return lgamma_r(x, &sign);
}

#include "op/pointwise/special_math.h"

#define CHLO(ID, symbol, HLO, FORMULA, DOC)                                                        \
    SF_REAL_UNARY(ID, symbol, "chlo", #symbol, HLO, FORMULA, DOC)

/* On complex numbers, too. */
#define CHLO_FIELD(ID, symbol, HLO, FORMULA, DOC)                                                  \
    SF_FIELD_UNARY(ID, symbol, "chlo", #symbol, HLO, FORMULA, sf_complex_##FORMULA, DOC)

CHLO_FIELD(ACOS, acos, "acos", acos(x), "The inverse of the cosine.")
CHLO_FIELD(ACOSH, acosh, "acosh", acosh(x), "The inverse of the hyperbolic cosine.")
CHLO_FIELD(ASIN, asin, "asin", asin(x), "The inverse of the sine.")
CHLO_FIELD(ASINH, asinh, "asinh", asinh(x), "The inverse of the hyperbolic sine.")
CHLO_FIELD(ATAN, atan, NULL, atan(x), "The inverse of the tangent.")
CHLO_FIELD(ATANH, atanh, "atanh", atanh(x), "The inverse of the hyperbolic tangent.")
CHLO(BESSEL_I1E, bessel_i1e, NULL, bessel_i1e(x),
     "The modified Bessel function of the first kind and order one, times exp(-|x|).")
SF_FIELD_UNARY(CHLO_TAN, chlo_tan, "chlo", "tan", NULL, tan(x), sf_complex_tan(x), "The tangent.")
CHLO_FIELD(COSH, cosh, "cosh", cosh(x), "The hyperbolic cosine.")
CHLO(DIGAMMA, digamma, NULL, digamma(x), "The derivative of the logarithm of the gamma function.")
CHLO(ERF, erf, "erf", erf(x), "The error function.")
CHLO(ERF_INV, erf_inv, NULL, erf_inv(x), "The inverse of the error function.")
CHLO(ERFC, erfc, NULL, erfc(x), "One minus the error function.")
CHLO(LGAMMA, lgamma, NULL, log_gamma(x), "The logarithm of the absolute gamma function.")
SF_REAL_BINARY(POLYGAMMA, polygamma, "chlo", "polygamma", NULL, polygamma(x, y),
               "The derivative of digamma of the order that the first operand says.")
CHLO_FIELD(SINH, sinh, "sinh", sinh(x), "The hyperbolic sine.")
SF_UNARY(SQUARE, square, "chlo", "square", NULL, SF_FIELDS | SF_INTEGERS, NULL, (x * x),
         sf_complex_mul(x, x), (uint64_t)x *(uint64_t)x, "The element times itself.")
SF_REAL_BINARY(ZETA, zeta, "chlo", "zeta", NULL, zeta(x, y), "The Hurwitz zeta function.")

/* The next number of the type itself, so it works on bit patterns. They are sign and magnitude, and
 * the magnitudes of the numbers of a type are ordered as their values. */
static double next_after(sf_dtype dtype, double x, double y)
{
    if (isnan(x) || isnan(y))
        return (double)NAN;
    if (x == y)
        return y;
    uint64_t storage = 0;
    if (x == 0) {
        sf_store_bits(dtype, &storage, 0, 1);
        return copysign(sf_load_f64(dtype, &storage, 0), y);
    }
    sf_store_f64(dtype, &storage, 0, x);
    uint64_t bits = sf_load_bits(dtype, &storage, 0);
    bool away = (y > x) == (x > 0);
    sf_store_bits(dtype, &storage, 0, away ? bits + 1 : bits - 1);
    double next = sf_load_f64(dtype, &storage, 0);
    /* Minus zero is no number of some types. */
    return !away && !(fabs(next) > 0) ? copysign(0, x) : next;
}

static const sf_pointwise row_next_after = {.classes = SF_FLOATS};

static sf_status infer_next_after(const sf_op *op, const sf_type **out, sf_diag *diag)
{
    return sf_pointwise_infer(&row_next_after, op, out, diag);
}

static sf_status eval_next_after(sf_eval *eval, const sf_op *op, const sf_tensor *in,
                                 sf_tensor *out)
{
    (void)eval, (void)op;
    sf_dtype dtype = out->type->dtype;
    for (int64_t i = 0; i < out->type->count; i++) {
        double next = next_after(dtype, sf_get_f64(&in[0], i), sf_get_f64(&in[1], i));
        sf_store_f64(dtype, out->data, i, next);
    }
    return SF_OK;
}

const sf_opdef sf_op_next_after = {
    .name = "next_after",
    .dialect = "chlo",
    .doc = "The next representable number after the first operand, in the direction of the second.",
    .id = SF_OP_NEXT_AFTER,
    .form = SF_FORM_OPERANDS,
    .min_operands = 2,
    .max_operands = 2,
    .nresults = 1,
    .infer = infer_next_after,
    .factors = sf_factors_pointwise,
    .flops = sf_flops_pointwise,
    .eval = eval_next_after,
};
