/* The vector kernels: every set of instructions against the oracle and against libm in double, and all
 * sets against each other, which must agree to the bit (any NaN is as good as another). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <math.h>
#include <stdalign.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "op/eval.h"
#include "op/util.h"
#include "run/vec/vec.h"
#include "support/sanitized.h"

enum { N = 4096, ROOM = N + 16 };
static alignas(64) char a[ROOM * 8], b[ROOM * 8], c[ROOM * 8];
static alignas(64) char out[ROOM * 8], other[ROOM * 8], want[ROOM * 8];

static const sf_dtype signed_type[SF_VCLASS_COUNT] = {SF_F32, SF_F64, SF_S32, SF_S64};
static const sf_dtype unsigned_type[SF_VCLASS_COUNT] = {SF_F32, SF_F64, SF_U32, SF_U64};
static const int class_bytes[SF_VCLASS_COUNT] = {4, 8, 4, 8};

static uint64_t seed = 1;

static uint64_t random_bits(void)
{
    seed += UINT64_C(0x9e3779b97f4a7c15);
    uint64_t z = (seed ^ seed >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

static double some_real(int64_t i)
{
    static const double special[] = {0,
                                     -0.0,
                                     1,
                                     -1,
                                     0.5,
                                     -0.5,
                                     1.5,
                                     2.5,
                                     -2.5,
                                     0.49999997,
                                     (double)INFINITY,
                                     -(double)INFINITY,
                                     (double)NAN,
                                     0x1p-149,
                                     -0x1p-149,
                                     0x1p-126,
                                     0x1.fffffep127,
                                     8388607.5,
                                     8388608,
                                     -8388609,
                                     0x1p31,
                                     -0x1p31,
                                     0x1p32,
                                     0x1p63,
                                     -0x1p63,
                                     0x1p64,
                                     3,
                                     -2};
    enum { SPECIAL = sizeof special / sizeof *special };
    uint64_t bits = random_bits();
    if (i < SPECIAL * SPECIAL)
        return special[i % SPECIAL];
    if (i % 3 == 0)
        return (double)(int64_t)(bits >> 40) / 65536 - 128; /* ordinary numbers */
    if (i % 3 == 1)
        return ldexp((double)(int64_t)bits, (int)(bits % 200) - 160);
    return (double)(int64_t)(bits % 41) / 2 - 10;
}

static int64_t some_integer(int64_t i)
{
    static const int64_t special[] = {
        0,
        1,
        -1,
        2,
        -2,
        3,
        7,
        31,
        32,
        33,
        63,
        64,
        65,
        100,
        -100,
        INT32_MAX,
        INT32_MIN,
        INT64_MAX,
        INT64_MIN,
        UINT32_MAX,
        INT32_MAX - 1,
        INT64_MIN + 1,
    };
    enum { SPECIAL = sizeof special / sizeof *special };
    uint64_t bits = random_bits();
    if (i < SPECIAL * SPECIAL)
        return special[i % SPECIAL];
    return (int64_t)bits >> (bits & 63);
}

/* Fills all operands; the first two meet in all pairs of special values. */
static void fill(sf_vclass class)
{
    for (int64_t i = 0; i < ROOM; i++) {
        int64_t j = i < 28 * 28 ? i / 28 : i, k = i < 22 * 22 ? i / 22 : i;
        if (class <= SF_VF64) {
            sf_store_f64(signed_type[class], a, i, some_real(i));
            sf_store_f64(signed_type[class], b, i, some_real(j));
            sf_store_f64(signed_type[class], c, i, some_real(i * 7 % N));
        } else {
            sf_store_i64(signed_type[class], a, i, some_integer(i));
            sf_store_i64(signed_type[class], b, i, some_integer(k));
            sf_store_i64(signed_type[class], c, i, some_integer(i * 7 % N));
        }
    }
}

/* Equal to the bit, or both NaN. */
static bool same_element(sf_dtype dtype, const void *x, const void *y, int64_t i)
{
    if (sf_is_float(dtype) && isnan(sf_load_f64(dtype, x, i)) && isnan(sf_load_f64(dtype, y, i)))
        return true;
    return sf_load_bits(dtype, x, i) == sf_load_bits(dtype, y, i);
}

static void expect_same(sf_dtype dtype, const void *x, const void *y, int64_t count,
                        const char *what, const char *set)
{
    for (int64_t i = 0; i < count; i++)
        if (!same_element(dtype, x, y, i))
            fail_msg("%s of %s in %s: element %d is %.17g, expected %.17g", what,
                     sf_dtype_get(dtype)->name, set, (int)i, sf_load_f64(dtype, x, i),
                     sf_load_f64(dtype, y, i));
}

static void test_override(void **state)
{
    (void)state;
#if defined(__aarch64__)
    const char *plain = "neon";
#else
    const char *plain = "base";
#endif
    pid_t child = fork();
    if (child == 0) {
        setenv("SHEAF_VEC", plain, 1);
        _exit(strcmp(sf_vec_get()->name, plain) != 0);
    }
    int status = 1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    unsetenv("SHEAF_VEC");
    assert_ptr_equal(sf_vec_get(), sf_vec_nth(0));
    assert_null(sf_vec_nth(-1));
    assert_null(sf_vec_nth(9));
}

/* The functions of a float that are not exact. */
struct function {
    sf_vop op;
    double (*exact)(double);
    double most; /* ulp */
};

static double logistic(double x)
{
    double e = exp(-fabs(x));
    return (x >= 0 ? 1 : e) / (1 + e);
}

static double rsqrt(double x)
{
    return 1 / sqrt(x);
}

static const struct function functions[] = {
    {SF_VEXP, exp, 1.2},     {SF_VEXPM1, expm1, 1.7},       {SF_VLOG, log, 1.2},
    {SF_VLOG1P, log1p, 1.5}, {SF_VLOGISTIC, logistic, 2.0}, {SF_VTANH, tanh, 2.0},
    {SF_VERF, erf, 1.7},     {SF_VSIN, sin, 0.52},          {SF_VCOS, cos, 0.52},
    {SF_VTAN, tan, 0.52},    {SF_VCBRT, cbrt, 0.52},        {SF_VSQRT, sqrt, 0.5},
    {SF_VRSQRT, rsqrt, 1.6},
};

/* The distance in units of the last place of a float of the exact size. What rounds to infinity must
 * be infinity; what is zero or NaN must be that. */
static double ulps(float got, double exact)
{
    if (isnan(exact) || isinf((float)exact) || exact == 0)
        return (isnan(exact) && isnan(got)) ||
                       ((double)got == (double)(float)exact && !signbit(got) == !signbit(exact))
                   ? 0
                   : (double)INFINITY;
    int exponent;
    frexp(exact, &exponent);
    return fabs((double)got - exact) / ldexp(1, exponent < -125 ? -149 : exponent - 24);
}

static void expect_sets_agree(sf_vop op, int64_t count)
{
    for (int s = 1; sf_vec_nth(s); s++) {
        sf_vec_nth(s)->ops[op][SF_VF32](other, a, b, c, count);
        expect_same(SF_F32, other, out, count, sf_vop_name(op), sf_vec_nth(s)->name);
    }
}

/* Four million floats, from all the patterns, at equal distance; the step is odd, so that the low bits
 * vary. */
static void test_accuracy(void **state)
{
    (void)state;
    const uint32_t patterns = test_short() ? 1 << 20 : 1 << 22;
    const uint32_t stride = UINT32_MAX / patterns; /* odd */
    float *xs = (float *)(void *)a, *ys = (float *)(void *)out;
    printf("  %-9s %8s  at\n", "float", "ulp");
    for (size_t f = 0; f < sizeof functions / sizeof *functions; f++) {
        const struct function *function = &functions[f];
        double worst = 0, where = 0;
        for (uint32_t first = 0; first < patterns; first += N) {
            for (uint32_t i = 0; i < N; i++) {
                uint32_t bits = (first + i) * stride;
                memcpy(&xs[i], &bits, sizeof bits);
            }
            sf_vec_nth(0)->ops[function->op][SF_VF32](out, a, NULL, NULL, N);
            for (int64_t i = 0; i < N; i++) {
                double error = ulps(ys[i], function->exact((double)xs[i]));
                if (error > worst)
                    worst = error, where = (double)xs[i];
            }
            expect_sets_agree(function->op, N);
        }
        printf("  %-9s %8.4f  %a\n", sf_vop_name(function->op), worst, where);
        if (worst > function->most)
            fail_msg("%s is wrong by %g ulp at %a", sf_vop_name(function->op), worst, where);
    }
}

/* Where rounding could break a promise that others build on. */
static void test_bounds(void **state)
{
    (void)state;
    float *xs = (float *)(void *)a, *ys = (float *)(void *)out;
    for (int64_t i = 0; i < N; i++)
        xs[i] = (float)(i - N / 2) / 64;
    const sf_vec *set = sf_vec_nth(0);
    set->ops[SF_VTANH][SF_VF32](out, a, NULL, NULL, N);
    for (int64_t i = 0; i < N; i++)
        assert_true(ys[i] >= -1 && ys[i] <= 1 && (i == 0 || ys[i] >= ys[i - 1]));
    set->ops[SF_VLOGISTIC][SF_VF32](out, a, NULL, NULL, N);
    for (int64_t i = 0; i < N; i++)
        assert_true(ys[i] >= 0 && ys[i] <= 1 && (i == 0 || ys[i] >= ys[i - 1]));
    set->ops[SF_VEXP][SF_VF32](out, a, NULL, NULL, N);
    for (int64_t i = 0; i < N; i++)
        assert_true(i == 0 || ys[i] >= ys[i - 1]);
}

/* Specials in all pairs, then many pairs whose power is a float. */
static void test_power(void **state)
{
    (void)state;
    float *xs = (float *)(void *)a, *ys = (float *)(void *)b, *zs = (float *)(void *)out;
    double worst = 0;
    for (int round = 0; round < 200; round++) {
        fill(SF_VF32);
        for (int64_t i = 0; i < N && round > 0; i++) {
            xs[i] = (float)ldexp((double)(random_bits() >> 40), (int)(random_bits() % 100) - 74);
            ys[i] = (float)((double)(int64_t)random_bits() / 0x1p57);
        }
        sf_vec_nth(0)->ops[SF_VPOW][SF_VF32](out, a, b, NULL, N);
        for (int64_t i = 0; i < N; i++) {
            double error = ulps(zs[i], pow((double)xs[i], (double)ys[i]));
            worst = error > worst ? error : worst;
            if (error > 0.52)
                fail_msg("%a to the power of %a is wrong by %g ulp: %a", (double)xs[i],
                         (double)ys[i], error, (double)zs[i]);
        }
        expect_sets_agree(SF_VPOW, N);
    }
    printf("  %-9s %8.4f\n", "POW", worst);
}

/* The op of the oracle that a kernel is to equal; those without are spelled out in `expected`. */
static const struct {
    sf_vop vop;
    sf_opcode op;
    bool is_unsigned;
} oracle[] = {
    {SF_VNEG, SF_OP_NEGATE, false},
    {SF_VABS, SF_OP_ABS, false},
    {SF_VSIGN, SF_OP_SIGN, false},
    {SF_VSQRT, SF_OP_SQRT, false},
    {SF_VRSQRT, SF_OP_RSQRT, false},
    {SF_VCBRT, SF_OP_CBRT, false},
    {SF_VEXP, SF_OP_EXPONENTIAL, false},
    {SF_VEXPM1, SF_OP_EXPONENTIAL_MINUS_ONE, false},
    {SF_VLOG, SF_OP_LOG, false},
    {SF_VLOG1P, SF_OP_LOG_PLUS_ONE, false},
    {SF_VLOGISTIC, SF_OP_LOGISTIC, false},
    {SF_VTANH, SF_OP_TANH, false},
    {SF_VSIN, SF_OP_SINE, false},
    {SF_VCOS, SF_OP_COSINE, false},
    {SF_VTAN, SF_OP_TAN, false},
    {SF_VERF, SF_OP_ERF, false},
    {SF_VFLOOR, SF_OP_FLOOR, false},
    {SF_VCEIL, SF_OP_CEIL, false},
    {SF_VROUND_AFZ, SF_OP_ROUND_NEAREST_AFZ, false},
    {SF_VROUND_EVEN, SF_OP_ROUND_NEAREST_EVEN, false},
    {SF_VNOT, SF_OP_NOT, false},
    {SF_VADD, SF_OP_ADD, false},
    {SF_VSUB, SF_OP_SUBTRACT, false},
    {SF_VMUL, SF_OP_MULTIPLY, false},
    {SF_VDIV, SF_OP_DIVIDE, false},
    {SF_VUDIV, SF_OP_DIVIDE, true},
    {SF_VREM, SF_OP_REMAINDER, false},
    {SF_VUREM, SF_OP_REMAINDER, true},
    {SF_VMAX, SF_OP_MAXIMUM, false},
    {SF_VMIN, SF_OP_MINIMUM, false},
    {SF_VUMAX, SF_OP_MAXIMUM, true},
    {SF_VUMIN, SF_OP_MINIMUM, true},
    {SF_VPOW, SF_OP_POWER, false},
    {SF_VATAN2, SF_OP_ATAN2, false},
    {SF_VAND, SF_OP_AND, false},
    {SF_VOR, SF_OP_OR, false},
    {SF_VXOR, SF_OP_XOR, false},
    {SF_VSHL, SF_OP_SHIFT_LEFT, false},
    {SF_VSHR, SF_OP_SHIFT_RIGHT_ARITHMETIC, false},
    {SF_VUSHR, SF_OP_SHIFT_RIGHT_LOGICAL, false},
};

static void ask_oracle(sf_opcode code, sf_dtype dtype)
{
    const sf_type type = {.dtype = dtype, .count = N};
    const sf_type *types[] = {&type, &type};
    const sf_opdef *def = sf_opdef_get(code);
    sf_op op = {
        .def = def, .noperands = def->min_operands, .nresults = 1, .in = types, .out = types};
    sf_tensor in[] = {{&type, a, NULL}, {&type, b, NULL}};
    sf_tensor result = {&type, want, NULL};
    assert_int_equal(def->eval(NULL, &op, in, &result), SF_OK);
}

/* Floats are not exact for the functions, which other tests hold to their bounds. */
static bool is_approximate(sf_vop op, sf_vclass class)
{
    for (size_t f = 0; f < sizeof functions / sizeof *functions; f++)
        if (functions[f].op == op && op != SF_VSQRT)
            return class == SF_VF32;
    return op == SF_VPOW && class == SF_VF32;
}

static void test_against_oracle(void **state)
{
    (void)state;
    for (int class = 0; class < SF_VCLASS_COUNT; class ++) {
        fill((sf_vclass) class);
        for (size_t i = 0; i < sizeof oracle / sizeof *oracle; i++) {
            sf_vop op = oracle[i].vop;
            bool exists = sf_vec_nth(0)->ops[op][class] != NULL;
            sf_dtype dtype = (oracle[i].is_unsigned ? unsigned_type : signed_type)[class];
            if (!exists || is_approximate(op, (sf_vclass) class))
                continue;
            ask_oracle(oracle[i].op, dtype);
            for (int s = 0; sf_vec_nth(s); s++) {
                sf_vec_nth(s)->ops[op][class](out, a, b, c, N);
                expect_same(dtype, out, want, N, sf_vop_name(op), sf_vec_nth(s)->name);
            }
        }
    }
}

/* A comparison of what is there by `order`: -1, 0, 1, or 2 when NaN makes it false. */
static int order(sf_dtype dtype, int64_t i)
{
    if (sf_is_float(dtype)) {
        double x = sf_load_f64(dtype, a, i), y = sf_load_f64(dtype, b, i);
        return isnan(x) || isnan(y) ? 2 : (x > y) - (x < y);
    }
    int64_t x = sf_load_i64(dtype, a, i), y = sf_load_i64(dtype, b, i);
    if (sf_is_unsigned(dtype))
        return ((uint64_t)x > (uint64_t)y) - ((uint64_t)x < (uint64_t)y);
    return (x > y) - (x < y);
}

static int compared(sf_vop op, int r)
{
    switch ((int)op) {
    case SF_VEQ:
        return r == 0;
    case SF_VNE:
        return r != 0;
    case SF_VLT:
    case SF_VULT:
        return r == -1;
    case SF_VLE:
    case SF_VULE:
        return r == -1 || r == 0;
    case SF_VGT:
    case SF_VUGT:
        return r == 1;
    default:
        return r == 1 || r == 0;
    }
}

static void test_comparisons(void **state)
{
    (void)state;
    for (int class = 0; class < SF_VCLASS_COUNT; class ++) {
        fill((sf_vclass) class);
        for (sf_vop op = SF_VEQ; op <= SF_VUGE; op++) {
            bool is_unsigned = op >= SF_VULT;
            assert_true((sf_vec_nth(0)->ops[op][class] != NULL) ==
                        (!is_unsigned || class >= SF_VI32));
            if (is_unsigned && class < SF_VI32)
                continue;
            sf_dtype dtype = (is_unsigned ? unsigned_type : signed_type)[class];
            for (int s = 0; sf_vec_nth(s); s++) {
                sf_vec_nth(s)->ops[op][class](out, a, b, NULL, N);
                for (int64_t i = 0; i < N; i++)
                    assert_int_equal(((int32_t *)(void *)out)[i], compared(op, order(dtype, i)));
            }
        }
    }
}

static void fill_choice(void)
{
    int32_t *choice = (int32_t *)(void *)a;
    for (int64_t i = 0; i < ROOM; i++)
        choice[i] = (int32_t)(random_bits() & 1);
}

static void test_other_ops(void **state)
{
    (void)state;
    for (int s = 0; sf_vec_nth(s); s++) {
        const sf_vec *set = sf_vec_nth(s);
        for (int class = 0; class < SF_VCLASS_COUNT; class ++) {
            sf_dtype dtype = signed_type[class];
            int64_t bytes = class_bytes[class];
            fill((sf_vclass) class);
            set->ops[SF_VCOPY][class](out, a, NULL, NULL, N);
            expect_same(dtype, out, a, N, "COPY", set->name);
            set->ops[SF_VMUL][class](other, a, b, NULL, N);
            set->ops[SF_VADD][class](other, other, c, NULL, N);
            set->ops[SF_VFMA][class](out, a, b, c, N);
            expect_same(dtype, out, other, N, "FMA", set->name);
            if (class <= SF_VF64) {
                set->ops[SF_VIS_FINITE][class](out, a, NULL, NULL, N);
                for (int64_t i = 0; i < N; i++)
                    assert_int_equal(((int32_t *)(void *)out)[i],
                                     isfinite(sf_load_f64(dtype, a, i)) != 0);
            }
            fill_choice();
            set->ops[SF_VSELECT][class](out, a, b, c, N);
            for (int64_t i = 0; i < N; i++)
                assert_memory_equal(out + i * bytes,
                                    (((int32_t *)(void *)a)[i] ? b : c) + i * bytes, (size_t)bytes);
        }
        fill_choice();
        set->ops[SF_VNOT_BOOL][SF_VI32](out, a, NULL, NULL, N);
        for (int64_t i = 0; i < N; i++)
            assert_int_equal(((int32_t *)(void *)out)[i], !((int32_t *)(void *)a)[i]);
    }
}

/* Every op on every short count, also in place, writes what the long run has there, and nothing past
 * the next multiple of 16. */
static void test_counts(void **state)
{
    (void)state;
    for (int s = 0; sf_vec_nth(s); s++)
        for (int op = 0; op < SF_VOP_COUNT; op++)
            for (int class = 0; class < SF_VCLASS_COUNT; class ++) {
                sf_vkernel *kernel = sf_vec_nth(s)->ops[op][class];
                if (kernel == NULL)
                    continue;
                bool truth = op == SF_VIS_FINITE || (op >= SF_VEQ && op <= SF_VUGE);
                sf_dtype dtype = truth ? SF_S32 : signed_type[class];
                int64_t size = sf_dtype_get(dtype)->bytes;
                fill((sf_vclass) class);
                if (op == SF_VSELECT)
                    fill_choice();
                kernel(want, a, b, c, 80);
                for (int64_t count = 0; count <= 70; count++) {
                    int64_t end = (count + 15) / 16 * 16 * size;
                    memset(out, 0x5a, sizeof out);
                    kernel(out, a, b, c, count);
                    expect_same(dtype, out, want, count, sf_vop_name((sf_vop)op), "short");
                    for (int64_t i = end; i < end + 64; i++)
                        assert_int_equal(out[i], 0x5a);
                    if (size != class_bytes[class])
                        continue;
                    memcpy(out, b, sizeof out);
                    kernel(out, a, out, c, count);
                    expect_same(dtype, out, want, count, sf_vop_name((sf_vop)op), "in place");
                    if (op == SF_VSELECT)
                        continue;
                    memcpy(out, a, sizeof out);
                    kernel(out, out, b, c, count);
                    expect_same(dtype, out, want, count, sf_vop_name((sf_vop)op), "in place");
                }
            }
}

/* Register element i as the oracle's number for `dtype` has it. */
static void expect_loaded(sf_dtype dtype, const void *got, int64_t i, const char *at)
{
    sf_vclass class = sf_vclass_of(dtype);
    if (class <= SF_VF64) {
        double x = sf_load_f64(signed_type[class], got, i), y = sf_load_f64(dtype, at, 0);
        assert_true((isnan(x) && isnan(y)) || (x == y && !signbit(x) == !signbit(y)));
    } else {
        int64_t x = sf_load_i64(signed_type[class], got, i), y = sf_load_i64(dtype, at, 0);
        assert_int_equal(x, class == SF_VI32 ? (int32_t)y : y);
    }
}

static void check_memory(const sf_vec *set, sf_dtype dtype, int64_t stride, int64_t count, int skew)
{
    enum { MIDDLE = 2048 };
    static char from[3 * MIDDLE], to[3 * MIDDLE], expected[3 * MIDDLE];
    int64_t bytes = sf_dtype_get(dtype)->bytes;
    sf_vclass class = sf_vclass_of(dtype);
    char *first = from + (stride < 0 ? 2 * MIDDLE : 0) + skew;
    for (size_t i = 0; i < sizeof from; i++)
        from[i] = (char)random_bits();
    if (dtype == SF_PRED)
        for (size_t i = 0; i < sizeof from; i++)
            from[i] &= 1;
    set->loads[dtype](out, first, stride, count);
    for (int64_t i = 0; i < count; i++)
        expect_loaded(dtype, out, i, first + i * stride * bytes);

    fill(class);
    memset(to, 0x5a, sizeof to);
    memset(expected, 0x5a, sizeof expected);
    int64_t start = first - from;
    set->stores[dtype](to + start, stride, a, count);
    for (int64_t i = 0; i < count; i++) {
        char *at = expected + start + i * stride * bytes;
        if (class <= SF_VF64)
            sf_store_f64(dtype, at, 0, sf_load_f64(signed_type[class], a, i));
        else
            sf_store_i64(dtype, at, 0, sf_load_i64(signed_type[class], a, i));
    }
    assert_memory_equal(to, expected, sizeof to);
}

static void test_memory(void **state)
{
    (void)state;
    static const int64_t strides[] = {1, 0, 2, 3, -1};
    for (int s = 0; sf_vec_nth(s); s++)
        for (int dtype = 0; dtype < SF_DTYPE_COUNT && !sf_is_complex((sf_dtype)dtype); dtype++)
            for (int k = 0; k < 5; k++)
                for (int64_t count = 0; count <= 70; count++)
                    check_memory(sf_vec_nth(s), (sf_dtype)dtype, strides[k], count,
                                 (int)(count % 4));
}

/* Every half float, there and back, and every float near them. */
static void test_halves(void **state)
{
    (void)state;
    static const sf_dtype halves[] = {SF_F16, SF_BF16};
    static uint16_t raw[N], back[N], expected[N];
    float *xs = (float *)(void *)a;
    for (int s = 0; sf_vec_nth(s); s++)
        for (int h = 0; h < 2; h++)
            for (uint32_t first = 0; first < 1 << 16; first += N) {
                for (uint32_t i = 0; i < N; i++)
                    raw[i] = (uint16_t)(first + i);
                sf_vec_nth(s)->loads[halves[h]](a, raw, 1, N);
                for (int64_t i = 0; i < N; i++)
                    expect_loaded(halves[h], a, i, (char *)&raw[i]);
                for (int step = -2; step <= 2; step++) { /* half way, and a bit above and below */
                    for (int64_t i = 0; i < N; i++) {
                        float x = (float)sf_load_f64(halves[h], raw, i);
                        uint32_t bits;
                        memcpy(&bits, &x, sizeof x);
                        bits += step == -2 ? 0 : (h ? 0x8000U : 0x1000U) + (uint32_t)step;
                        memcpy(&xs[i], &bits, sizeof x);
                        sf_store_f64(halves[h], expected, i, (double)xs[i]);
                    }
                    sf_vec_nth(s)->stores[halves[h]](back, 1, a, N);
                    expect_same(halves[h], back, expected, N, "store", sf_vec_nth(s)->name);
                    sf_vec_nth(s)->round[halves[h]](out, a, NULL, NULL, N);
                    for (int64_t i = 0; i < N; i++)
                        expect_loaded(halves[h], out, i, (char *)&expected[i]);
                }
            }
}

static void test_round(void **state)
{
    (void)state;
    for (int s = 0; sf_vec_nth(s); s++)
        for (int d = 0; d < SF_DTYPE_COUNT && !sf_is_complex((sf_dtype)d); d++) {
            sf_dtype dtype = (sf_dtype)d;
            sf_vclass class = sf_vclass_of(dtype);
            sf_vkernel *kernel = sf_vec_nth(s)->round[dtype];
            bool whole = sf_dtype_get(dtype)->bits >= 32 || dtype == SF_PRED;
            assert_true((kernel == NULL) == whole);
            if (whole)
                continue;
            fill(class);
            kernel(out, a, NULL, NULL, N);
            for (int64_t i = 0; i < N; i++) {
                uint64_t stored;
                if (class == SF_VF32)
                    sf_store_f64(dtype, &stored, 0, sf_load_f64(SF_F32, a, i));
                else
                    sf_store_i64(dtype, &stored, 0, sf_load_i64(SF_S32, a, i));
                expect_loaded(dtype, out, i, (char *)&stored);
            }
        }
}

/* What the oracle's convert would give; a 64-bit integer goes to float in one rounding. */
static void convert_one(sf_dtype from, sf_dtype to, int64_t i)
{
    if (sf_is_float(from))
        sf_store_f64(to, want, i, sf_load_f64(from, a, i));
    else if (!sf_is_float(to))
        sf_store_i64(to, want, i, sf_load_i64(from, a, i));
    else if (to == SF_F64)
        sf_store_f64(to, want, i, sf_load_f64(from, a, i));
    else {
        int64_t x = sf_load_i64(from, a, i);
        ((float *)(void *)want)[i] = from == SF_U64 ? (float)(uint64_t)x : (float)x;
    }
}

static void test_converts(void **state)
{
    (void)state;
    for (int s = 0; sf_vec_nth(s); s++)
        for (int from = 0; from < SF_VCLASS_COUNT; from++)
            for (int to = 0; to < SF_VCLASS_COUNT; to++)
                for (int u = 0; u < 2; u++) {
                    const sf_dtype *types = u ? unsigned_type : signed_type;
                    const sf_vec *set = sf_vec_nth(s);
                    fill((sf_vclass)from);
                    (u ? set->uconverts : set->converts)[from][to](out, a, NULL, NULL, N);
                    for (int64_t i = 0; i < N; i++)
                        convert_one(types[from], types[to], i);
                    expect_same(types[to], out, want, N, sf_dtype_get(types[from])->name,
                                set->name);
                }
}

static int64_t fold_integers(sf_vfold fold, sf_dtype dtype, int64_t x, int64_t y)
{
    bool less = sf_is_unsigned(dtype) ? (uint64_t)x < (uint64_t)y : x < y;
    switch (fold) {
    case SF_VFOLD_SUM:
        return (int64_t)((uint64_t)x + (uint64_t)y);
    case SF_VFOLD_PROD:
        return (int64_t)((uint64_t)x * (uint64_t)y);
    case SF_VFOLD_MAX:
    case SF_VFOLD_UMAX:
        return less ? y : x;
    case SF_VFOLD_MIN:
    case SF_VFOLD_UMIN:
        return less ? x : y;
    case SF_VFOLD_AND:
        return x & y;
    case SF_VFOLD_OR:
        return x | y;
    case SF_VFOLD_XOR:
        return x ^ y;
    case SF_VFOLD_COUNT:
        break;
    }
    return 0;
}

static void test_integer_folds(void **state)
{
    (void)state;
    for (int s = 0; sf_vec_nth(s); s++)
        for (int fold = 0; fold < SF_VFOLD_COUNT; fold++)
            for (int class = SF_VI32; class <= SF_VI64; class ++) {
                bool u = fold == SF_VFOLD_UMAX || fold == SF_VFOLD_UMIN;
                sf_dtype dtype = (u ? unsigned_type : signed_type)[class];
                fill((sf_vclass) class);
                for (int64_t count = 0; count <= 70; count++) {
                    int64_t total = sf_load_i64(dtype, b, 600), got = 0;
                    sf_store_i64(dtype, &got, 0, total);
                    sf_vec_nth(s)->folds[fold][class](&got, a + 512 * 8, count);
                    for (int64_t i = 0; i < count; i++)
                        total = fold_integers((sf_vfold)fold, dtype, total,
                                              sf_load_i64(dtype, a + 512 * 8, i));
                    assert_int_equal(sf_load_i64(dtype, &got, 0), sf_wrap(dtype, total));
                }
            }
}

static const int64_t lengths[] = {0,  1,  2,   15,  16,  31,  32,   33, 63,
                                  64, 65, 100, 511, 512, 513, 2000, N};

/* Sums of numbers of one sign, and of both: the error in units of the roundoff of a float, of the sum of
 * the magnitudes; a plain loop over 4096 floats is wrong by tens of them. */
static void test_sums(void **state)
{
    (void)state;
    double worst = 0, naive_worst = 0;
    float *xs = (float *)(void *)a;
    for (int sign = 0; sign < 2; sign++)
        for (size_t k = 0; k < sizeof lengths / sizeof *lengths; k++)
            for (int round = 0; round < 50; round++) {
                double exact = 0.25, size = 0.25;
                float naive = 0.25f, first = 0;
                for (int64_t i = 0; i < lengths[k]; i++) {
                    xs[i] = (float)((double)(random_bits() >> 40) / 0x1p24 - 0.5 * sign);
                    exact += (double)xs[i];
                    size += fabs((double)xs[i]);
                    naive += xs[i];
                }
                for (int s = 0; sf_vec_nth(s); s++) {
                    float got = 0.25f;
                    sf_vec_nth(s)->folds[SF_VFOLD_SUM][SF_VF32](&got, a, lengths[k]);
                    first = s == 0 ? got : first;
                    assert_true(got == first);
                }
                double error = fabs((double)first - exact) / size * 0x1p24;
                double naive_error = fabs((double)naive - exact) / size * 0x1p24;
                worst = error > worst ? error : worst;
                naive_worst = naive_error > naive_worst ? naive_error : naive_worst;
            }
    printf("  sum: %.2f roundoffs, a plain loop %.2f\n", worst, naive_worst);
    assert_true(worst <= 1.5);
}

static void test_sums_of_doubles(void **state)
{
    (void)state;
    double *xs = (double *)(void *)a;
    for (size_t k = 0; k < sizeof lengths / sizeof *lengths; k++) {
        long double exact = 0.25L, size = 0.25L;
        for (int64_t i = 0; i < lengths[k]; i++) {
            xs[i] = (double)(int64_t)random_bits() / 0x1p63;
            exact += (long double)xs[i];
            size += fabsl((long double)xs[i]);
        }
        double first = 0;
        for (int s = 0; sf_vec_nth(s); s++) {
            double got = 0.25;
            sf_vec_nth(s)->folds[SF_VFOLD_SUM][SF_VF64](&got, a, lengths[k]);
            first = s == 0 ? got : first;
            assert_true(got == first);
        }
        assert_true(fabsl((long double)first - exact) <= 16 * 0x1p-53L * size);
    }
}

/* A sum of nothing leaves what was there, also minus zero. */
static void test_empty_sums(void **state)
{
    (void)state;
    for (int s = 0; sf_vec_nth(s); s++) {
        float x = -0.0f;
        double y = -0.0;
        sf_vec_nth(s)->folds[SF_VFOLD_SUM][SF_VF32](&x, a, 0);
        sf_vec_nth(s)->folds[SF_VFOLD_SUM][SF_VF64](&y, a, 0);
        assert_true(signbit(x) && signbit(y));
    }
}

static void check_product(const sf_vec *set, sf_vclass class, int64_t count)
{
    sf_dtype dtype = signed_type[class];
    double exact = 1.5, got = 0;
    for (int64_t i = 0; i < count; i++) {
        sf_store_f64(dtype, a, i, 0.5 + (double)(random_bits() >> 40) / 0x1p24);
        exact *= sf_load_f64(dtype, a, i);
    }
    sf_store_f64(dtype, &got, 0, 1.5);
    set->folds[SF_VFOLD_PROD][class](&got, a, count);
    assert_true(fabs(sf_load_f64(dtype, &got, 0) / exact - 1) < (class == SF_VF32 ? 1e-7 : 1e-12));
}

static void check_extremes(const sf_vec *set, sf_vclass class, int64_t first, int64_t count)
{
    sf_dtype dtype = signed_type[class];
    for (int min = 0; min < 2; min++) {
        double got = 0, best = -0.0;
        sf_store_f64(dtype, &got, 0, best);
        char *from = a + first * 16 * class_bytes[class];
        set->folds[min ? SF_VFOLD_MIN : SF_VFOLD_MAX][class](&got, from, count);
        for (int64_t i = 0; i < count; i++) {
            double x = sf_load_f64(dtype, from, i);
            if (isnan(best) || isnan(x))
                best = (double)NAN;
            else if (min ? x < best || (x == best && signbit(x))
                         : x > best || (x == best && !signbit(x)))
                best = x;
        }
        double value = sf_load_f64(dtype, &got, 0);
        assert_true((isnan(value) && isnan(best)) ||
                    (value == best && !signbit(value) == !signbit(best)));
    }
}

static void test_float_folds(void **state)
{
    (void)state;
    for (int s = 0; sf_vec_nth(s); s++)
        for (int class = SF_VF32; class <= SF_VF64; class ++) {
            for (int64_t count = 0; count <= 70; count++)
                check_product(sf_vec_nth(s), (sf_vclass) class, count);
            fill((sf_vclass) class);
            for (int64_t count = 0; count <= 70; count++)
                for (int64_t first = 0; first < 150; first++)
                    check_extremes(sf_vec_nth(s), (sf_vclass) class, first, count);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_override),        cmocka_unit_test(test_accuracy),
        cmocka_unit_test(test_bounds),          cmocka_unit_test(test_power),
        cmocka_unit_test(test_against_oracle),  cmocka_unit_test(test_comparisons),
        cmocka_unit_test(test_other_ops),       cmocka_unit_test(test_counts),
        cmocka_unit_test(test_memory),          cmocka_unit_test(test_halves),
        cmocka_unit_test(test_round),           cmocka_unit_test(test_converts),
        cmocka_unit_test(test_integer_folds),   cmocka_unit_test(test_sums),
        cmocka_unit_test(test_sums_of_doubles), cmocka_unit_test(test_empty_sums),
        cmocka_unit_test(test_float_folds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
