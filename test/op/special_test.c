/* The functions of the CHLO dialect against tables, identities and, if there are any, the exact
 * values at special points. Each is evaluated through its definition. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <math.h>

#include "op/eval.h"

static const double pi = 3.14159265358979323846, euler = 0.57721566490153286061;

static double apply(sf_opcode code, sf_dtype dtype, double x, double y)
{
    const sf_type type = {.dtype = dtype, .count = 1};
    const sf_type *types[] = {&type, &type, &type};
    uint64_t data[3] = {0};
    const sf_opdef *def = sf_opdef_get(code);
    sf_op op = {
        .def = def, .noperands = def->min_operands, .nresults = 1, .in = types, .out = types};
    sf_tensor in[] = {{&type, &data[0], NULL}, {&type, &data[1], NULL}};
    sf_tensor out = {&type, &data[2], NULL};
    sf_store_f64(dtype, &data[0], 0, x);
    sf_store_f64(dtype, &data[1], 0, y);
    assert_int_equal(def->eval(NULL, &op, in, &out), SF_OK);
    return sf_load_f64(dtype, &data[2], 0);
}

static double of(sf_opcode code, double x)
{
    return apply(code, SF_F64, x, 0);
}

static double of2(sf_opcode code, double x, double y)
{
    return apply(code, SF_F64, x, y);
}

static void check_near(double got, double expected, double tolerance, const char *what, double x)
{
    double scale = fabs(expected) > 0 ? fabs(expected) : 1;
    if (got == expected || fabs(got - expected) <= tolerance * scale)
        return;
    fail_msg("%s at %.17g: %.17g instead of %.17g", what, x, got, expected);
}

static void test_table(void **state)
{
    (void)state;
    static const struct {
        sf_opcode code;
        double x, expected;
    } cases[] = {
        {SF_OP_ACOS, 0.5, 1.0471975511965976},
        {SF_OP_ACOSH, 2, 1.3169578969248166},
        {SF_OP_ASIN, 0.5, 0.52359877559829893},
        {SF_OP_ASINH, 1, 0.88137358701954305},
        {SF_OP_ATAN, 1, 0.78539816339744828},
        {SF_OP_ATANH, 0.5, 0.54930614433405489},
        {SF_OP_CHLO_TAN, 1, 1.5574077246549023},
        {SF_OP_COSH, 1, 1.5430806348152437},
        {SF_OP_SINH, 1, 1.1752011936438014},
        {SF_OP_SQUARE, -3, 9},
        {SF_OP_ERF, 0.5, 0.52049987781304652},
        {SF_OP_ERFC, 0.5, 0.47950012218695348},
        {SF_OP_ERFC, 10, 2.0884875837625448e-45},
        {SF_OP_ERF_INV, 0.5, 0.47693627620446987},
        {SF_OP_ERF_INV, -0.999, -2.3267537655135245},
        {SF_OP_LGAMMA, 0.5, 0.57236494292470008},
        {SF_OP_LGAMMA, 10, 12.801827480081469},
        {SF_OP_LGAMMA, -0.5, 1.2655121234846454},
        {SF_OP_BESSEL_I1E, 0, 0},
        {SF_OP_BESSEL_I1E, 1, 0.20791041534970845},
        {SF_OP_BESSEL_I1E, -1, -0.20791041534970845},
        {SF_OP_BESSEL_I1E, 10, 0.12126268138445552},
        {SF_OP_BESSEL_I1E, 100, 0.039744153025130253},
        {SF_OP_BESSEL_I1E, 1e-10, 4.9999999995e-11},
        {SF_OP_DIGAMMA, 10, 2.2517525890667211},
        {SF_OP_DIGAMMA, 0.1, -10.423754940411076},
        {SF_OP_DIGAMMA, -1.5, 0.70315664064524319},
        {SF_OP_DIGAMMA, 1e10, 23.025850929890457},
        {SF_OP_DIGAMMA, 1.4616321449683622, -9.2412655217294274e-17},
        {SF_OP_DIGAMMA, 1.5, 0.036489973978576521},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check_near(of(cases[i].code, cases[i].x), cases[i].expected, 1e-15,
                   sf_opdef_get(cases[i].code)->name, cases[i].x);
}

static void test_digamma(void **state)
{
    (void)state;
    check_near(of(SF_OP_DIGAMMA, 1), -euler, 1e-15, "digamma", 1);
    check_near(of(SF_OP_DIGAMMA, 0.5), -euler - 2 * log(2), 1e-15, "digamma", 0.5);
    for (double x = 0.05; x < 60; x *= 1.07) {
        double here = of(SF_OP_DIGAMMA, x), next = of(SF_OP_DIGAMMA, x + 1);
        double scale = fabs(here) + fabs(next) + 1 / x;
        assert_true(fabs(next - here - 1 / x) <= 4e-16 * scale);
        double reflected = of(SF_OP_DIGAMMA, -x);
        if (fabs(x - rint(x)) > 0.01)
            check_near(reflected, next + pi / tan(pi * (x - rint(x))), 1e-12, "digamma", -x);
    }
    assert_true(isnan(of(SF_OP_DIGAMMA, 0)));
    assert_true(isnan(of(SF_OP_DIGAMMA, -3)));
    assert_true(isnan(of(SF_OP_DIGAMMA, (double)NAN)));
    assert_true(isinf(of(SF_OP_DIGAMMA, (double)INFINITY)));
}

static void test_zeta(void **state)
{
    (void)state;
    check_near(of2(SF_OP_ZETA, 2, 1), pi * pi / 6, 1e-15, "zeta", 2);
    check_near(of2(SF_OP_ZETA, 4, 1), pow(pi, 4) / 90, 1e-15, "zeta", 4);
    check_near(of2(SF_OP_ZETA, 3, 1), 1.2020569031595943, 1e-15, "zeta", 3);
    check_near(of2(SF_OP_ZETA, 1.5, 1), 2.6123753486854883, 1e-15, "zeta", 1.5);
    check_near(of2(SF_OP_ZETA, 2, 0.5), pi * pi / 2, 1e-15, "zeta", 2);
    check_near(of2(SF_OP_ZETA, 100, 50), 1.4721503331251701e-170, 1e-13, "zeta", 100);
    for (double s = 1.1; s < 40; s *= 1.2)
        for (double q = 0.1; q < 100; q *= 1.5) {
            double here = of2(SF_OP_ZETA, s, q), next = of2(SF_OP_ZETA, s, q + 1);
            assert_true(fabs(here - next - pow(q, -s)) <= 4e-15 * here);
        }
    /* Integer s reaches below zero. */
    for (double q = -0.3; q > -20; q -= 1.37) {
        double here = of2(SF_OP_ZETA, 3, q), next = of2(SF_OP_ZETA, 3, q + 1);
        assert_true(fabs(here - next - pow(q, -3)) <= 1e-13 * (fabs(here) + fabs(next)));
    }
    assert_true(of2(SF_OP_ZETA, 1, 2) == (double)INFINITY);
    assert_true(isnan(of2(SF_OP_ZETA, 0.5, 2)));
    assert_true(isnan(of2(SF_OP_ZETA, 2.5, -0.5)));
    assert_true(of2(SF_OP_ZETA, 2, -3) == (double)INFINITY);
    assert_true(isnan(of2(SF_OP_ZETA, 3, -3)));
    assert_true(of2(SF_OP_ZETA, 1e300, 1) == 1);
    assert_true(of2(SF_OP_ZETA, 1e300, 1e299) == 0);
    assert_true(of2(SF_OP_ZETA, 2, (double)INFINITY) == 0);
}

static void test_polygamma(void **state)
{
    (void)state;
    check_near(of2(SF_OP_POLYGAMMA, 0, 3.5), of(SF_OP_DIGAMMA, 3.5), 0, "polygamma", 3.5);
    check_near(of2(SF_OP_POLYGAMMA, 1, 1), pi * pi / 6, 1e-15, "polygamma", 1);
    check_near(of2(SF_OP_POLYGAMMA, 2, 1), -2.4041138063191886, 1e-15, "polygamma", 1);
    check_near(of2(SF_OP_POLYGAMMA, 3, 0.5), pow(pi, 4), 2e-15, "polygamma", 0.5);
    check_near(of2(SF_OP_POLYGAMMA, 1, -0.5), pi * pi / 2 + 4, 2e-15, "polygamma", -0.5);
    check_near(of2(SF_OP_POLYGAMMA, 180, 40), -2.1633313004819621e+39, 1e-11, "polygamma", 40);
    assert_true(isnan(of2(SF_OP_POLYGAMMA, 1.5, 1)));
    assert_true(isnan(of2(SF_OP_POLYGAMMA, -1, 1)));
}

static void test_erf_inv(void **state)
{
    (void)state;
    for (double x = 1e-12; x < 5.5; x *= 1.1) {
        double y = erf(x);
        /* Where erf is flat a rounding error of y moves x a long way. */
        double tolerance = 4e-16 + 1.2e-16 * exp(x * x) / x;
        check_near(of(SF_OP_ERF_INV, y), x, tolerance, "erf_inv", y);
        assert_true(of(SF_OP_ERF_INV, -y) == -of(SF_OP_ERF_INV, y));
    }
    assert_true(of(SF_OP_ERF_INV, 1) == (double)INFINITY);
    assert_true(of(SF_OP_ERF_INV, -1) == -(double)INFINITY);
    assert_true(isnan(of(SF_OP_ERF_INV, 1.001)));
    assert_true(of(SF_OP_ERF_INV, 0) == 0);
    check_near(of(SF_OP_ERF_INV, 1 - ldexp(1, -53)), 5.8635847487551678, 1e-15, "erf_inv", 1);
}

/* The integral (1 / pi) int_0^pi exp(|x| (cos t - 1)) cos t dt; the trapezoidal rule is exact on it
 * but for rounding. */
static void test_bessel(void **state)
{
    (void)state;
    enum { STEPS = 400 };
    for (double x = 0.01; x < 700; x *= 1.3) {
        double sum = 0;
        for (int k = 0; k <= STEPS; k++) {
            double t = pi * k / STEPS, value = exp(-2 * x * pow(sin(t / 2), 2)) * cos(t);
            sum += k == 0 || k == STEPS ? value / 2 : value;
        }
        double tolerance = x < 1 ? 4e-15 / x : 1e-14;
        check_near(of(SF_OP_BESSEL_I1E, x), sum / STEPS, tolerance, "bessel_i1e", x);
    }
    /* The two series meet. */
    double below = of(SF_OP_BESSEL_I1E, 25), above = of(SF_OP_BESSEL_I1E, nextafter(25, 26));
    check_near(above, below, 1e-14, "bessel_i1e", 25);
    assert_true(of(SF_OP_BESSEL_I1E, (double)INFINITY) == 0);
}

static void test_next_after(void **state)
{
    (void)state;
    static const sf_dtype dtypes[] = {SF_F16, SF_BF16, SF_F32, SF_F64, SF_F8E4M3FNUZ, SF_F8E5M2};
    assert_true(of2(SF_OP_NEXT_AFTER, 1, 2) == nextafter(1, 2));
    assert_true(of2(SF_OP_NEXT_AFTER, -1, 2) == nextafter(-1, 2));
    assert_true(of2(SF_OP_NEXT_AFTER, 0, -1) == -ldexp(1, -1074));
    assert_true(apply(SF_OP_NEXT_AFTER, SF_F32, 1, 0) == 1 - ldexp(1, -24));
    assert_true(apply(SF_OP_NEXT_AFTER, SF_BF16, 1, 2) == 1 + ldexp(1, -7));
    assert_true(apply(SF_OP_NEXT_AFTER, SF_F16, 65504, (double)INFINITY) == (double)INFINITY);
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++) {
        double smallest = apply(SF_OP_NEXT_AFTER, dtypes[i], 0, 1);
        assert_true(smallest > 0);
        assert_true(apply(SF_OP_NEXT_AFTER, dtypes[i], smallest, 0) == 0);
        assert_true(apply(SF_OP_NEXT_AFTER, dtypes[i], -smallest, 0) == 0);
        assert_true(apply(SF_OP_NEXT_AFTER, dtypes[i], 3, 3) == 3);
        assert_true(isnan(apply(SF_OP_NEXT_AFTER, dtypes[i], (double)NAN, 3)));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_table),      cmocka_unit_test(test_digamma),
        cmocka_unit_test(test_zeta),       cmocka_unit_test(test_polygamma),
        cmocka_unit_test(test_erf_inv),    cmocka_unit_test(test_bessel),
        cmocka_unit_test(test_next_after),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
