/* The element-wise ops of StableHLO. Corner cases that the specification leaves open follow XLA on
 * CPU: an integer divided by zero gives all ones and leaves itself as the remainder; a shift by the
 * width or more leaves only the sign. On booleans addition is "or", multiplication "and". */
#include "op/pointwise/pointwise.h"

#define NUMBERS (SF_FLOATS | SF_INTEGERS)
#define FIELDS (NUMBERS | SF_COMPLEXES)
#define ALL (NUMBERS | SF_BOOLEANS)
#define EVERY (ALL | SF_COMPLEXES)
#define LOGICAL (SF_INTEGERS | SF_BOOLEANS)

/* Whether the order of two operands matters. */
enum { ORDERED, COMMUTING };

/* Arithmetic modulo 2^64; a cast of int64 operands, which must not overflow. */
#define U(number) (uint64_t)(number)

static int width_of_type(sf_dtype dtype)
{
    return sf_dtype_get(dtype)->bits;
}

/* The bits of the number without its sign extension. */
static uint64_t low_bits(sf_dtype dtype, int64_t x)
{
    return U(x) & UINT64_MAX >> (64 - width_of_type(dtype));
}

static int64_t absolute(sf_dtype dtype, int64_t x)
{
    return x < 0 && !sf_is_unsigned(dtype) ? (int64_t)(0 - U(x)) : x;
}

static int64_t sign_of_int(sf_dtype dtype, int64_t x)
{
    return x < 0 && !sf_is_unsigned(dtype) ? -1 : x != 0;
}

static double sign_of(double x)
{
    if (x > 0)
        return 1;
    return x < 0 ? -1 : x;
}

static bool less_than(sf_dtype dtype, int64_t x, int64_t y)
{
    return sf_is_unsigned(dtype) ? U(x) < U(y) : x < y;
}

static int leading_zeros(sf_dtype dtype, int64_t x)
{
    uint64_t bits = low_bits(dtype, x);
    return bits == 0 ? width_of_type(dtype) : __builtin_clzll(bits) - (64 - width_of_type(dtype));
}

static int64_t quotient_of(sf_dtype dtype, int64_t x, int64_t y)
{
    if (y == 0)
        return -1;
    if (sf_is_unsigned(dtype))
        return (int64_t)(U(x) / U(y));
    return y == -1 ? (int64_t)(0 - U(x)) : x / y;
}

static int64_t remainder_of_ints(sf_dtype dtype, int64_t x, int64_t y)
{
    if (y == 0)
        return x;
    if (sf_is_unsigned(dtype))
        return (int64_t)(U(x) % U(y));
    return y == -1 ? 0 : x % y;
}

static int64_t power_of(sf_dtype dtype, int64_t x, int64_t y)
{
    if (y < 0 && !sf_is_unsigned(dtype)) {
        if (x == -1)
            return y % 2 == 0 ? 1 : -1;
        return x == 1;
    }
    uint64_t result = 1, base = U(x);
    for (uint64_t exponent = U(y); exponent > 0; exponent >>= 1) {
        if (exponent & 1)
            result *= base;
        base *= base;
    }
    return (int64_t)result;
}

static uint64_t shift_left(sf_dtype dtype, int64_t x, int64_t y)
{
    uint64_t distance = low_bits(dtype, y);
    return distance < U(width_of_type(dtype)) ? U(x) << distance : 0;
}

static uint64_t shift_right(sf_dtype dtype, int64_t x, int64_t y)
{
    uint64_t distance = low_bits(dtype, y);
    return distance < U(width_of_type(dtype)) ? low_bits(dtype, x) >> distance : 0;
}

/* The top bit is the sign, also in an unsigned number. */
static int64_t shift_right_signed(sf_dtype dtype, int64_t x, int64_t y)
{
    int unused = 64 - width_of_type(dtype);
    uint64_t distance = low_bits(dtype, y);
    int64_t extended = (int64_t)(U(x) << unused) >> unused;
    return extended >> (distance < 64 ? distance : 63);
}

/* Neither branch overflows, so small results keep their digits. */
static double logistic_of(double x)
{
    if (x >= 0)
        return 1 / (1 + exp(-x));
    double e = exp(x);
    return e / (1 + e);
}

/* A quotient of integers is not linear in the dividend. */
static int linear_divide(const sf_op *op, uint32_t masks[])
{
    return sf_is_inexact(op->in[0]->dtype) ? sf_linear_first(op, masks) : 0;
}

SF_REAL_LOOP(real_is_finite, SF_ONE_OPERAND, isfinite(x) != 0)
SF_POINTWISE_DEF(IS_FINITE, is_finite, "stablehlo", "is_finite", "is-finite", 1, false, NULL,
                 "Whether an element is neither infinite nor NaN.", SF_FLOATS, SF_OUT_TRUTH,
                 real_is_finite, NULL, NULL)

SF_REAL_LOOP(real_real, SF_ONE_OPERAND, x)
SF_COMPLEX_LOOP(complex_real, SF_ONE_OPERAND, x)
SF_POINTWISE_DEF(REAL, real, "stablehlo", "real", "real", 1, false, sf_linear_first,
                 "The real part.", SF_FIELDS, SF_OUT_PART, real_real, complex_real, NULL)

SF_REAL_LOOP(real_imag, SF_ONE_OPERAND, ((void)x, 0))
SF_COMPLEX_LOOP(complex_imag, SF_ONE_OPERAND, sf_complex_make(sf_complex_imag(x), 0))
SF_POINTWISE_DEF(IMAG, imag, "stablehlo", "imag", "imag", 1, false, sf_linear_first,
                 "The imaginary part.", SF_FIELDS, SF_OUT_PART, real_imag, complex_imag, NULL)

SF_COMPLEX_LOOP(complex_complex, SF_TWO_OPERANDS,
                sf_complex_make(sf_complex_real(x), sf_complex_real(y)))
SF_POINTWISE_DEF(COMPLEX, complex, "stablehlo", "complex", "complex", 2, false, sf_linear_all,
                 "The complex number with these parts, the real one first.", SF_FLOATS,
                 SF_OUT_COMPLEX, NULL, complex_complex, NULL)

SF_REAL_LOOP(real_abs, SF_ONE_OPERAND, fabs(x))
SF_COMPLEX_LOOP(complex_abs, SF_ONE_OPERAND, sf_complex_abs(x))
SF_INTEGER_LOOP(integer_abs, SF_ONE_OPERAND, absolute(dtype, x))
SF_POINTWISE_DEF(ABS, abs, "stablehlo", "abs", "abs", 1, false, NULL,
                 "The absolute value; that of a complex number is real.", FIELDS, SF_OUT_PART,
                 real_abs, complex_abs, integer_abs)
SF_FIELD_UNARY(CBRT, cbrt, "stablehlo", "cbrt", "cbrt", cbrt(x), sf_complex_pow(x, 1.0 / 3),
               "The cube root.")
SF_REAL_UNARY(CEIL, ceil, "stablehlo", "ceil", "ceil", ceil(x), "The nearest integer above.")
SF_FIELD_UNARY(COSINE, cosine, "stablehlo", "cosine", "cosine", cos(x), sf_complex_cos(x),
               "The cosine.")
SF_BITS_UNARY(COUNT_LEADING_ZEROS, count_leading_zeros, "stablehlo", "count_leading_zeros",
              "count-leading-zeros", SF_INTEGERS, leading_zeros(dtype, x),
              "The number of zero bits above the highest one bit.")
SF_FIELD_UNARY(EXPONENTIAL, exponential, "stablehlo", "exponential", "exponential", exp(x),
               sf_complex_exp(x), "The exponential function.")
SF_FIELD_UNARY(EXPONENTIAL_MINUS_ONE, exponential_minus_one, "stablehlo", "exponential_minus_one",
               "exponential-minus-one", expm1(x), sf_complex_expm1(x),
               "The exponential function minus one.")
SF_REAL_UNARY(FLOOR, floor, "stablehlo", "floor", "floor", floor(x), "The nearest integer below.")
SF_FIELD_UNARY(LOG, log, "stablehlo", "log", "log", log(x), sf_complex_log(x),
               "The natural logarithm.")
SF_FIELD_UNARY(LOG_PLUS_ONE, log_plus_one, "stablehlo", "log_plus_one", "log-plus-one", log1p(x),
               sf_complex_log1p(x), "The natural logarithm of one plus the element.")
SF_FIELD_UNARY(LOGISTIC, logistic, "stablehlo", "logistic", "logistic", logistic_of(x),
               sf_complex_logistic(x), "The logistic function, 1 / (1 + exp(-x)).")
SF_UNARY(NEGATE, negate, "stablehlo", "negate", "negate", FIELDS, sf_linear_first, -x, -x, 0 - U(x),
         "The element with the opposite sign.")
SF_BITS_UNARY(NOT, not, "stablehlo", "not", "not", LOGICAL, dtype == SF_PRED ? !x : ~x,
              "The complement, bit by bit.")
SF_BITS_UNARY(POPCNT, popcnt, "stablehlo", "popcnt", "popcnt", SF_INTEGERS,
              __builtin_popcountll(low_bits(dtype, x)), "The number of one bits.")
SF_REAL_UNARY(ROUND_NEAREST_AFZ, round_nearest_afz, "stablehlo", "round_nearest_afz",
              "round-nearest-afz", round(x), "The nearest integer, halves away from zero.")
SF_REAL_UNARY(ROUND_NEAREST_EVEN, round_nearest_even, "stablehlo", "round_nearest_even",
              "round-nearest-even", rint(x), "The nearest integer, halves to the even one.")
SF_FIELD_UNARY(RSQRT, rsqrt, "stablehlo", "rsqrt", "rsqrt", 1 / sqrt(x), sf_complex_rsqrt(x),
               "The reciprocal of the square root.")
SF_UNARY(
    SIGN, sign, "stablehlo", "sign", "sign", FIELDS, NULL, sign_of(x), sf_complex_sign(x),
    sign_of_int(dtype, x),
    "Minus one, zero or one by the sign of the element; NaN and zeros stay as they are. A complex "
    "number divided by its absolute value.")
SF_FIELD_UNARY(SINE, sine, "stablehlo", "sine", "sine", sin(x), sf_complex_sin(x), "The sine.")
SF_FIELD_UNARY(SQRT, sqrt, "stablehlo", "sqrt", "sqrt", sqrt(x), sf_complex_sqrt(x),
               "The square root.")
SF_FIELD_UNARY(TAN, tan, "stablehlo", "tan", "tan", tan(x), sf_complex_tan(x), "The tangent.")
SF_FIELD_UNARY(TANH, tanh, "stablehlo", "tanh", "tanh", tanh(x), sf_complex_tanh(x),
               "The hyperbolic tangent.")

SF_BINARY(ADD, add, "stablehlo", "add", "add", EVERY, COMMUTING, sf_linear_all, x + y, x + y,
          U(x) + U(y), "The sum.")
SF_BITS_BINARY(AND, and, "stablehlo", "and", "and", LOGICAL, COMMUTING, (x & y),
               "The conjunction, bit by bit.")
SF_REAL_BINARY(ATAN2, atan2, "stablehlo", "atan2", "atan2", atan2(x, y),
               "The angle of the point (y, x) with the first axis.")
SF_BINARY(DIVIDE, divide, "stablehlo", "divide", "divide", FIELDS, ORDERED, linear_divide, x / y,
          sf_complex_div(x, y), quotient_of(dtype, x, y),
          "The quotient; that of integers is rounded towards zero.")
SF_ORDERED_BINARY(MAXIMUM, maximum, "stablehlo", "maximum", "maximum", ALL, COMMUTING,
                  sf_maximum(x, y), less_than(dtype, x, y) ? y : x,
                  "The larger one; NaN if either is.")
SF_ORDERED_BINARY(MINIMUM, minimum, "stablehlo", "minimum", "minimum", ALL, COMMUTING,
                  sf_minimum(x, y), less_than(dtype, x, y) ? x : y,
                  "The smaller one; NaN if either is.")
SF_BINARY(MULTIPLY, multiply, "stablehlo", "multiply", "multiply", EVERY, COMMUTING, sf_linear_each,
          (x * y), sf_complex_mul(x, y), U(x) * U(y), "The product.")
SF_BITS_BINARY(OR, or, "stablehlo", "or", "or", LOGICAL, COMMUTING, x | y,
               "The disjunction, bit by bit.")
SF_BINARY(POWER, power, "stablehlo", "power", "power", FIELDS, ORDERED, NULL, pow(x, y),
          sf_complex_pow(x, y), power_of(dtype, x, y),
          "The first operand raised to the power of the second.")
SF_ORDERED_BINARY(REMAINDER, remainder, "stablehlo", "remainder", "remainder", NUMBERS, ORDERED,
                  fmod(x, y), remainder_of_ints(dtype, x, y),
                  "The remainder of the division; it has the sign of the dividend.")
SF_BITS_BINARY(SHIFT_LEFT, shift_left, "stablehlo", "shift_left", "shift-left", SF_INTEGERS,
               ORDERED, shift_left(dtype, x, y), "The bits moved up by the second operand.")
SF_BITS_BINARY(SHIFT_RIGHT_ARITHMETIC, shift_right_arithmetic, "stablehlo",
               "shift_right_arithmetic", "shift-right-arithmetic", SF_INTEGERS, ORDERED,
               shift_right_signed(dtype, x, y),
               "The bits moved down by the second operand, copies of the top bit above them.")
SF_BITS_BINARY(SHIFT_RIGHT_LOGICAL, shift_right_logical, "stablehlo", "shift_right_logical",
               "shift-right-logical", SF_INTEGERS, ORDERED, shift_right(dtype, x, y),
               "The bits moved down by the second operand, zeros above them.")
SF_BINARY(SUBTRACT, subtract, "stablehlo", "subtract", "subtract", FIELDS, ORDERED, sf_linear_all,
          x - y, x - y, U(x) - U(y), "The difference.")
SF_BITS_BINARY(XOR, xor, "stablehlo", "xor", "xor", LOGICAL, COMMUTING, x ^ y,
               "The exclusive or, bit by bit.")
