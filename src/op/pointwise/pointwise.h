/* Ops that compute each element of the result from the same element of every operand. One row says
 * all about such an op; these macros make its definition out of the row.
 *
 *     SF_UNARY(NEGATE, negate, "stablehlo", "negate", "negate", NUMBERS, sf_linear_first, -x, -x,
 *              0 - U(x), "The element with the opposite sign.")
 *
 * The formulas are over doubles, over complex doubles and over int64: x is the element, y that of the
 * second operand, `dtype` its type. Integers come in sign- or zero-extended and go out wrapped, so a
 * formula only has to get the low bits right; booleans are the integers 0 and 1, and all else is stored
 * as 1.
 */
#ifndef SF_OP_POINTWISE_H
#define SF_OP_POINTWISE_H

#include <math.h>

#include "op/pointwise/complex_ops.h"
#include "op/util.h"

/* Sets of sf_class. */
enum {
    SF_BOOLEANS = 1 << SF_BOOLEAN,
    SF_INTEGERS = 1 << SF_SIGNED | 1 << SF_UNSIGNED,
    SF_FLOATS = 1 << SF_FLOAT,
    SF_COMPLEXES = 1 << SF_COMPLEX,
    SF_FIELDS = SF_FLOATS | SF_COMPLEXES,
};

/* The element type of the result. */
typedef enum sf_outcome {
    SF_OUT_SAME,    /* that of the operands */
    SF_OUT_TRUTH,   /* i1 */
    SF_OUT_PART,    /* that of the parts of a complex number */
    SF_OUT_COMPLEX, /* the complex numbers whose parts are the operands */
} sf_outcome;

typedef void sf_real_loop(int64_t count, const double *a, const double *b, double *out);
typedef void sf_integer_loop(sf_dtype dtype, int64_t count, const int64_t *a, const int64_t *b,
                             int64_t *out);

/* A real result is the real part of the loop's result. */
typedef void sf_complex_loop(int64_t count, const sf_complex *a, const sf_complex *b,
                             sf_complex *out);

typedef struct sf_pointwise {
    unsigned classes; /* of the operands */
    sf_outcome outcome;
    sf_real_loop *real;
    sf_complex_loop *complex; /* where operands or result are complex */
    sf_integer_loop *integer; /* each for the classes that it serves; else NULL */
} sf_pointwise;

/* Checks that all operands have one type, of an allowed class. */
sf_status sf_pointwise_infer(const sf_pointwise *row, const sf_op *op, const sf_type **out,
                             sf_diag *diag);

sf_status sf_pointwise_eval(const sf_pointwise *row, const sf_op *op, const sf_tensor *in,
                            sf_tensor *out);

/* IEEE 754-2019 maximum and minimum: NaN if either is, and -0 is below +0. */
static inline double sf_maximum(double x, double y)
{
    if (isnan(x) || isnan(y))
        return x + y;
    if (x == y)
        return signbit(x) ? y : x;
    return x > y ? x : y;
}

static inline double sf_minimum(double x, double y)
{
    if (isnan(x) || isnan(y))
        return x + y;
    if (x == y)
        return signbit(x) ? x : y;
    return x < y ? x : y;
}

#define SF_REAL_LOOP(function, operands, formula)                                                  \
    static void function(int64_t count, const double *a, const double *b, double *out)             \
    {                                                                                              \
        (void)b;                                                                                   \
        for (int64_t i = 0; i < count; i++) {                                                      \
            operands(double) out[i] = (double)(formula);                                           \
        }                                                                                          \
    }

#define SF_COMPLEX_LOOP(function, operands, formula)                                               \
    static void function(int64_t count, const sf_complex *a, const sf_complex *b, sf_complex *out) \
    {                                                                                              \
        (void)b;                                                                                   \
        for (int64_t i = 0; i < count; i++) {                                                      \
            operands(sf_complex) out[i] = formula;                                                 \
        }                                                                                          \
    }

#define SF_INTEGER_LOOP(function, operands, formula)                                               \
    static void function(sf_dtype dtype, int64_t count, const int64_t *a, const int64_t *b,        \
                         int64_t *out)                                                             \
    {                                                                                              \
        (void)b, (void)dtype;                                                                      \
        for (int64_t i = 0; i < count; i++) {                                                      \
            operands(int64_t) out[i] = (int64_t)(formula);                                         \
        }                                                                                          \
    }

#define SF_ONE_OPERAND(number) number x = a[i];
#define SF_TWO_OPERANDS(number) number x = a[i], y = b[i];

#define SF_POINTWISE_DEF(ID, symbol, DIALECT, NAME, HLO, OPERANDS, COMMUTES, LINEAR, DOC, ...)     \
    static const sf_pointwise row_##symbol = {__VA_ARGS__};                                        \
    static sf_status infer_##symbol(const sf_op *op, const sf_type **out, sf_diag *diag)           \
    {                                                                                              \
        return sf_pointwise_infer(&row_##symbol, op, out, diag);                                   \
    }                                                                                              \
    static sf_status eval_##symbol(sf_eval *eval, const sf_op *op, const sf_tensor *in,            \
                                   sf_tensor *out)                                                 \
    {                                                                                              \
        (void)eval;                                                                                \
        return sf_pointwise_eval(&row_##symbol, op, in, out);                                      \
    }                                                                                              \
    const sf_opdef sf_op_##symbol = {                                                              \
        .name = NAME,                                                                              \
        .dialect = DIALECT,                                                                        \
        .hlo = HLO,                                                                                \
        .doc = DOC,                                                                                \
        .id = SF_OP_##ID,                                                                          \
        .form = SF_FORM_OPERANDS,                                                                  \
        .min_operands = OPERANDS,                                                                  \
        .max_operands = OPERANDS,                                                                  \
        .nresults = 1,                                                                             \
        .commutative = COMMUTES,                                                                   \
        .infer = infer_##symbol,                                                                   \
        .factors = sf_factors_pointwise,                                                           \
        .linear = LINEAR,                                                                          \
        .flops = sf_flops_pointwise,                                                               \
        .eval = eval_##symbol,                                                                     \
    };

/* On floats, complex numbers and other classes. */
#define SF_UNARY(ID, symbol, DIALECT, NAME, HLO, CLASSES, LINEAR, REAL, COMPLEX, INTEGER, DOC)     \
    SF_REAL_LOOP(real_##symbol, SF_ONE_OPERAND, REAL)                                              \
    SF_COMPLEX_LOOP(complex_##symbol, SF_ONE_OPERAND, COMPLEX)                                     \
    SF_INTEGER_LOOP(integer_##symbol, SF_ONE_OPERAND, INTEGER)                                     \
    SF_POINTWISE_DEF(ID, symbol, DIALECT, NAME, HLO, 1, false, LINEAR, DOC, CLASSES, SF_OUT_SAME,  \
                     real_##symbol, complex_##symbol, integer_##symbol)

#define SF_BINARY(ID, symbol, DIALECT, NAME, HLO, CLASSES, COMMUTES, LINEAR, REAL, COMPLEX,        \
                  INTEGER, DOC)                                                                    \
    SF_REAL_LOOP(real_##symbol, SF_TWO_OPERANDS, REAL)                                             \
    SF_COMPLEX_LOOP(complex_##symbol, SF_TWO_OPERANDS, COMPLEX)                                    \
    SF_INTEGER_LOOP(integer_##symbol, SF_TWO_OPERANDS, INTEGER)                                    \
    SF_POINTWISE_DEF(ID, symbol, DIALECT, NAME, HLO, 2, COMMUTES, LINEAR, DOC, CLASSES,            \
                     SF_OUT_SAME, real_##symbol, complex_##symbol, integer_##symbol)

/* On floats and integers, and booleans where the classes say so. */
#define SF_ORDERED_BINARY(ID, symbol, DIALECT, NAME, HLO, CLASSES, COMMUTES, REAL, INTEGER, DOC)   \
    SF_REAL_LOOP(real_##symbol, SF_TWO_OPERANDS, REAL)                                             \
    SF_INTEGER_LOOP(integer_##symbol, SF_TWO_OPERANDS, INTEGER)                                    \
    SF_POINTWISE_DEF(ID, symbol, DIALECT, NAME, HLO, 2, COMMUTES, NULL, DOC, CLASSES, SF_OUT_SAME, \
                     real_##symbol, NULL, integer_##symbol)

/* On floats and complex numbers. */
#define SF_FIELD_UNARY(ID, symbol, DIALECT, NAME, HLO, REAL, COMPLEX, DOC)                         \
    SF_REAL_LOOP(real_##symbol, SF_ONE_OPERAND, REAL)                                              \
    SF_COMPLEX_LOOP(complex_##symbol, SF_ONE_OPERAND, COMPLEX)                                     \
    SF_POINTWISE_DEF(ID, symbol, DIALECT, NAME, HLO, 1, false, NULL, DOC, SF_FIELDS, SF_OUT_SAME,  \
                     real_##symbol, complex_##symbol, NULL)

/* On floats only. */
#define SF_REAL_UNARY(ID, symbol, DIALECT, NAME, HLO, REAL, DOC)                                   \
    SF_REAL_LOOP(real_##symbol, SF_ONE_OPERAND, REAL)                                              \
    SF_POINTWISE_DEF(ID, symbol, DIALECT, NAME, HLO, 1, false, NULL, DOC, SF_FLOATS, SF_OUT_SAME,  \
                     real_##symbol, NULL, NULL)

#define SF_REAL_BINARY(ID, symbol, DIALECT, NAME, HLO, REAL, DOC)                                  \
    SF_REAL_LOOP(real_##symbol, SF_TWO_OPERANDS, REAL)                                             \
    SF_POINTWISE_DEF(ID, symbol, DIALECT, NAME, HLO, 2, false, NULL, DOC, SF_FLOATS, SF_OUT_SAME,  \
                     real_##symbol, NULL, NULL)

/* On bits: integers, and booleans where the classes say so. */
#define SF_BITS_UNARY(ID, symbol, DIALECT, NAME, HLO, CLASSES, INTEGER, DOC)                       \
    SF_INTEGER_LOOP(integer_##symbol, SF_ONE_OPERAND, INTEGER)                                     \
    SF_POINTWISE_DEF(ID, symbol, DIALECT, NAME, HLO, 1, false, NULL, DOC, CLASSES, SF_OUT_SAME,    \
                     NULL, NULL, integer_##symbol)

#define SF_BITS_BINARY(ID, symbol, DIALECT, NAME, HLO, CLASSES, COMMUTES, INTEGER, DOC)            \
    SF_INTEGER_LOOP(integer_##symbol, SF_TWO_OPERANDS, INTEGER)                                    \
    SF_POINTWISE_DEF(ID, symbol, DIALECT, NAME, HLO, 2, COMMUTES, NULL, DOC, CLASSES, SF_OUT_SAME, \
                     NULL, NULL, integer_##symbol)

#endif
