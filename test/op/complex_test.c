/* Functions of complex numbers against JAX's results on a CPU in double, corner cases, and the
 * transform against its definition. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "op/eval.h"
#include "op/node_builder.h"
#include "op/pointwise/complex_ops.h"

enum { POINTS = 5 };
static const double points[POINTS][2] = {
    {0.3, 0.4}, {-1.25, 0.5}, {2.0, -0.75}, {-0.6, -1.5}, {1e-9, 2e-9}};
static const double second[2] = {0.75, -1.5}; /* second operand of binary functions */

static const struct row {
    sf_opcode code;
    double expected[POINTS][2];
} rows[] = {
    {SF_OP_ACOS,
     {{1.2901667645030908, -0.40511233717803086},
      {2.6319820992636394, -0.8988936293694824},
      {0.3997338383465451, 1.410578897558334},
      {1.89692363287019, 1.2401866389304486},
      {1.5707963257948967, -2e-09}}},
    {SF_OP_ACOSH,
     {{0.40511233717803086, 1.2901667645030908},
      {0.8988936293694824, 2.6319820992636394},
      {1.410578897558334, -0.3997338383465451},
      {1.2401866389304486, -1.89692363287019},
      {2e-09, 1.5707963257948967}}},
    {SF_OP_ASIN,
     {{0.2806295622918058, 0.40511233717803086},
      {-1.0611857724687426, 0.8988936293694824},
      {1.1710624884483516, -1.410578897558334},
      {-0.3261273060752933, -1.2401866389304486},
      {1e-09, 2e-09}}},
    {SF_OP_ASINH,
     {{0.3189624333048184, 0.3903162045220237},
      {-1.0855765577207785, 0.30798137157211863},
      {1.4925210319880216, -0.32677040278232744},
      {-1.1055881902249487, -1.1083942800736613},
      {1e-09, 2.0000000000000005e-09}}},
    {SF_OP_ATAN,
     {{0.33737047111177637, 0.37908687234202215},
      {-0.9425141129396175, 0.1858945085467093},
      {1.1492038297107037, -0.13825013720417587},
      {-1.2505397918562315, -0.5957199939195937},
      {1.0000000000000003e-09, 2.0000000000000005e-09}}},
    {SF_OP_ATANH,
     {{0.2614921387956719, 0.4088225229163512},
      {-0.708303336014054, 1.1265564408348223},
      {0.4528905241310587, -1.3715351039616865},
      {-0.17276758415377655, -1.031672608004875},
      {9.999999999999999e-10, 2e-09}}},
    {SF_OP_COSINE,
     {{1.0327878842028413, -0.12138561220787389},
      {0.355565683247121, 0.4945114301319667},
      {-0.5387783532487324, 0.747730488384954},
      {1.9415274363162252, -1.2022816180739708},
      {1.0, -2.0000000000000005e-18}}},
    {SF_OP_COSH,
     {{0.9628205308930273, 0.11858578787353011},
      {1.6572478640539148, -0.7680009178735728},
      {2.752756709690945, -2.4722086311825655},
      {0.08385649221285074, 0.6350587563963832},
      {1.0, 2.00000009162741e-18}}},
    {SF_OP_EXPONENTIAL,
     {{1.2433022950695027, 0.5256597791969788},
      {0.2514316136224464, 0.1373577165473844},
      {5.4064900990717755, -5.036667037017943},
      {0.038821399379965135, -0.5474368555937602},
      {1.000000001, 2.0000000020000004e-09}}},
    {SF_OP_EXPONENTIAL_MINUS_ONE,
     {{0.2433022950695026, 0.5256597791969788},
      {-0.7485683863775535, 0.13735771654738443},
      {4.4064900990717755, -5.036667037017943},
      {-0.9611786006200349, -0.5474368555937602},
      {9.999999985e-10, 2.0000000020000004e-09}}},
    {SF_OP_LOG,
     {{-0.6931471805599452, 0.9272952180016123},
      {0.2973535538733464, 2.761086276477428},
      {0.7589353594543049, -0.35877067027057225},
      {0.479675110667301, -1.9513027039072615},
      {-19.918546880729362, 1.1071487177940904}}},
    {SF_OP_LOG_PLUS_ONE,
     {{0.30759281954511675, 0.2984989315861793},
      {-0.5815754049028404, 2.0344439357957027},
      {1.128924599576327, -0.24497866312686414},
      {0.4398133737512818, -1.3101939350475555},
      {1.0000000015e-09, 1.999999998e-09}}},
    {SF_OP_LOGISTIC,
     {{0.5774309320633587, 0.09901811424847044},
      {0.21042744917647238, 0.08666385078420562},
      {0.903532885575654, -0.07584070651225047},
      {0.24659594184117678, -0.3970279673062335},
      {0.50000000025, 5.000000000000001e-10}}},
    {SF_OP_RSQRT,
     {{1.2649110640673515, -0.6324555320336759},
      {0.16298187060899502, -0.846296793424742},
      {0.6732461485846332, 0.12208280878354785},
      {0.4410778860467324, 0.6514865762475224},
      {17989.074399478675, -11117.859405028423}}},
    {SF_OP_SIGN,
     {{0.6, 0.8},
      {-0.9284766908852594, 0.3713906763541037},
      {0.9363291775690445, -0.3511234415883917},
      {-0.3713906763541037, -0.9284766908852594},
      {0.447213595499958, 0.894427190999916}}},
    {SF_OP_SINE,
     {{0.31947873074156474, 0.3924066848326388},
      {-1.0700996973668526, 0.16431300276137262},
      {1.1772521793108766, 0.34220450663488017},
      {-1.3282703835892107, -1.7573701683852259},
      {1e-09, 2.0000000000000005e-09}}},
    {SF_OP_SINH,
     {{0.28048176417647547, 0.4070739913234487},
      {-1.4058162504314684, 0.9053586344209573},
      {2.6537333893808297, -2.5644584058353765},
      {-0.0450350928328856, -1.1824956119901433},
      {1.0000000272292198e-09, 2.0000000000000005e-09}}},
    {SF_OP_SQRT,
     {{0.6324555320336759, 0.31622776601683794},
      {0.21942105845112725, 1.139361927085425},
      {1.4380544037569272, -0.2607689938713792},
      {0.7125831327432439, -1.052508774818612},
      {4.022479320953552e-05, 2.486028939392892e-05}}},
    {SF_OP_TAN,
     {{0.26107368184166296, 0.4106334708425564},
      {-0.8066346988510735, 1.5839635482844239},
      {-0.4455013214367418, -1.2534271713346836},
      {-0.08936120048521379, -0.9604847514469488},
      {1e-09, 2.0000000000000005e-09}}},
    {SF_OP_TANH,
     {{0.3382547432654714, 0.38113207427244283},
      {-0.9067248043194311, 0.1261085664842344},
      {0.996747399904603, -0.036432889375718314},
      {-1.8393192154736968, -0.17195852121794808},
      {1.0000000000000003e-09, 2e-09}}},
    {SF_OP_NEGATE, {{-0.3, -0.4}, {1.25, -0.5}, {-2.0, 0.75}, {0.6, 1.5}, {-1e-09, -2e-09}}},
    {SF_OP_SQUARE,
     {{-0.07000000000000002, 0.24},
      {1.3125, -1.25},
      {3.4375, -3.0},
      {-1.8900000000000001, 1.7999999999999998},
      {-3.0000000000000006e-18, 4e-18}}},
    {SF_OP_ADD,
     {{1.05, -1.1},
      {-0.5, -1.0},
      {2.75, -2.25},
      {0.15000000000000002, -3.0},
      {0.750000001, -1.499999998}}},
    {SF_OP_SUBTRACT,
     {{-0.45, 1.9}, {-2.0, 2.0}, {1.25, 0.75}, {-1.35, 0.0}, {-0.749999999, 1.500000002}}},
    {SF_OP_MULTIPLY,
     {{0.8250000000000001, -0.14999999999999994},
      {-0.1875, 2.25},
      {0.375, -3.5625},
      {-2.7, -0.2250000000000001},
      {3.7500000000000005e-09, -1.0339757656912846e-25}}},
    {SF_OP_DIVIDE,
     {{-0.13333333333333333, 0.26666666666666666},
      {-0.6, -0.5333333333333333},
      {0.9333333333333333, 0.8666666666666667},
      {0.64, -0.7200000000000001},
      {-8.000000000000001e-10, 1.0666666666666667e-09}}},
    {SF_OP_POWER,
     {{-0.39105621760970544, 2.35727934296406},
      {-4.242557155741265, 78.50689983016096},
      {0.16771713454204495, -1.017806544818298},
      {-0.04410563590381286, -0.06281165898895666},
      {1.300388381146439e-06, -1.1126314313727169e-06}}},
};

static sf_complex apply(sf_opcode code, sf_complex x, sf_complex y)
{
    const sf_type type = {.dtype = SF_C128, .count = 1};
    const sf_type *types[] = {&type, &type, &type};
    sf_complex data[3] = {x, y, 0};
    const sf_opdef *def = sf_opdef_get(code);
    sf_op op = {
        .def = def, .noperands = def->min_operands, .nresults = 1, .in = types, .out = types};
    sf_tensor in[] = {{&type, &data[0], NULL}, {&type, &data[1], NULL}};
    sf_tensor out = {&type, &data[2], NULL};
    assert_int_equal(def->eval(NULL, &op, in, &out), SF_OK);
    return data[2];
}

static void test_functions(void **state)
{
    (void)state;
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++)
        for (int i = 0; i < POINTS; i++) {
            sf_complex x = sf_complex_make(points[i][0], points[i][1]);
            sf_complex expected = sf_complex_make(rows[r].expected[i][0], rows[r].expected[i][1]);
            sf_complex got = apply(rows[r].code, x, sf_complex_make(second[0], second[1]));
            /* Near zero JAX's sinh cancels. */
            if (!(cabs(got - expected) <= 4e-15 * cabs(expected) + 5e-17))
                fail_msg("%s of point %d is (%.17g, %.17g), expected (%.17g, %.17g)",
                         sf_opdef_get(rows[r].code)->name, i, creal(got), cimag(got),
                         creal(expected), cimag(expected));
        }
}

static void test_corners(void **state)
{
    (void)state;
    double inf = (double)INFINITY;
    assert_true(apply(SF_OP_POWER, 0, 0) == 1);
    assert_true(apply(SF_OP_POWER, 0, sf_complex_make(2, 1)) == 0);
    assert_true(isnan(creal(apply(SF_OP_POWER, 0, sf_complex_make(-1, 0)))));
    assert_true(apply(SF_OP_SIGN, 0, 0) == 0);
    assert_true(apply(SF_OP_SQRT, -4, 0) == sf_complex_make(0, 2));
    assert_true(apply(SF_OP_SQRT, sf_complex_make(-4, -0.0), 0) == sf_complex_make(0, -2));
    assert_true(cabs(apply(SF_OP_CBRT, -8, 0) - sf_complex_make(1, sqrt(3))) < 1e-15);
    /* The plain formula: no search for infinities. */
    assert_true(
        isnan(creal(apply(SF_OP_MULTIPLY, sf_complex_make(inf, 1), sf_complex_make(0, 1)))));
    assert_true(isinf(creal(apply(SF_OP_LOG, 0, 0))));
}

/* The transform of one line, by its definition. */
static void transform_slowly(int64_t n, const sf_complex *x, bool inverse, sf_complex *out)
{
    static const double pi = 3.14159265358979323846;
    for (int64_t k = 0; k < n; k++) {
        out[k] = 0;
        for (int64_t i = 0; i < n; i++) {
            double angle = (inverse ? 2 : -2) * pi * (double)(k * i % n) / (double)n;
            out[k] += x[i] * sf_complex_make(cos(angle), sin(angle));
        }
        out[k] /= inverse ? (double)n : 1;
    }
}

static void run_fft(sf_pool *pool, const char *kind, int64_t length, sf_dtype from, int64_t size,
                    void *in, sf_tensor *out)
{
    const sf_type *type = sf_type_get(pool, from, 1, &size), *result = NULL;
    const sf_attr *attrs[] = {sf_attr_text(pool, sf_str_of(kind)), sf_attr_ints(pool, 1, &length)};
    sf_op op = {.def = sf_opdef_get(SF_OP_FFT),
                .noperands = 1,
                .nresults = 1,
                .in = &type,
                .attrs = attrs,
                .pool = pool};
    assert_int_equal(sf_infer(&op, &result, NULL), SF_OK);
    op.out = &result;
    *out = (sf_tensor){.type = result};
    assert_int_equal(sf_eval_op(&op, &(sf_tensor){type, in, NULL}, out, NULL), SF_OK);
}

static void check_line(const char *what, int64_t length, int64_t count, const sf_complex *got,
                       const sf_complex *expected)
{
    for (int64_t i = 0; i < count; i++)
        if (!(cabs(got[i] - expected[i]) <= 1e-13 * (double)(length + 1)))
            fail_msg("%s of length %d: element %d", what, (int)length, (int)i);
}

static void test_transforms(void **state)
{
    (void)state;
    enum { MOST = 70 };
    sf_complex x[MOST], expected[MOST], real_part[MOST];
    double reals[MOST];
    sf_pool *pool = sf_pool_new();
    for (int64_t n = 1; n <= MOST; n++) {
        sf_tensor out;
        for (int64_t i = 0; i < n; i++) {
            x[i] = sf_complex_make(sin(3.0 * (double)i + 1), cos(1.7 * (double)(i * i)));
            real_part[i] = reals[i] = creal(x[i]);
        }
        for (int inverse = 0; inverse < 2; inverse++) {
            transform_slowly(n, x, inverse, expected);
            run_fft(pool, inverse ? "IFFT" : "FFT", n, SF_C128, n, x, &out);
            check_line(inverse ? "IFFT" : "FFT", n, n, out.data, expected);
            sf_free(out.data);
        }
        transform_slowly(n, real_part, false, expected);
        run_fft(pool, "RFFT", n, SF_F64, n, reals, &out);
        assert_int_equal(out.type->count, n / 2 + 1);
        check_line("RFFT", n, n / 2 + 1, out.data, expected);
        sf_tensor back;
        run_fft(pool, "IRFFT", n, SF_C128, n / 2 + 1, out.data, &back);
        for (int64_t i = 0; i < n; i++)
            assert_true(fabs(((double *)back.data)[i] - reals[i]) < 1e-13);
        sf_free(out.data);
        sf_free(back.data);
    }
    sf_pool_release(pool);
}

/* Errors, as text. */
static void test_refused(void **state)
{
    (void)state;
    static const struct {
        sf_opcode code;
        sf_dtype dtype;
    } cases[] = {{SF_OP_MAXIMUM, SF_C64},  {SF_OP_REMAINDER, SF_C64}, {SF_OP_ATAN2, SF_C128},
                 {SF_OP_FLOOR, SF_C64},    {SF_OP_ERF, SF_C64},       {SF_OP_AND, SF_C64},
                 {SF_OP_COMPLEX, SF_BF16}, {SF_OP_COMPLEX, SF_C64},   {SF_OP_REAL, SF_S32},
                 {SF_OP_CLAMP, SF_C64},    {SF_OP_IS_FINITE, SF_C64}};
    sf_pool *pool = sf_pool_new();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const sf_type *type = sf_type_scalar(pool, cases[i].dtype), *out;
        const sf_type *in[] = {type, type, type};
        const sf_opdef *def = sf_opdef_get(cases[i].code);
        sf_op op = {
            .def = def, .noperands = def->min_operands, .nresults = 1, .in = in, .pool = pool};
        sf_diag *diag = sf_diag_new();
        assert_int_equal(sf_infer(&op, &out, diag), SF_EINPUT);
        assert_non_null(strstr(sf_diag_text(diag, 0), sf_dtype_get(cases[i].dtype)->name));
        sf_diag_free(diag);
    }
    /* The parts are a dimension of floats: one less is left. */
    int64_t ones[SF_MAX_RANK];
    for (int i = 0; i < SF_MAX_RANK; i++)
        ones[i] = 1;
    assert_null(sf_type_get(pool, SF_C64, SF_MAX_RANK, ones));
    assert_non_null(sf_type_get(pool, SF_C64, SF_MAX_RANK - 1, ones));
    sf_pool_release(pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_functions),
        cmocka_unit_test(test_corners),
        cmocka_unit_test(test_transforms),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
