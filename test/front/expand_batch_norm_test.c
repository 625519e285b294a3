/* Batch normalization: both texts give one graph, that computes the formulas; a step with it splits
 * by its batch, and its moments are those of the whole batch. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "op/eval.h"
#include "sheaf/sheaf.h"

enum { TRAINING, INFERENCE, GRAD, KINDS, MOST = 1000, TEXT = 4000 };

static const struct {
    const char *name;
    int noperands, nresults,
        full; /* full: the operand besides the first that has its type; 0: none */
} kinds[KINDS] = {
    {"training", 3, 3, 0},
    {"inference", 5, 1, 0},
    {"grad", 5, 3, 4},
};

static const struct shape {
    int rank;
    int64_t dims[5];
    int feature;
    sf_dtype dtype;
    const char *epsilon;
} shapes[] = {
    {4, {4, 3, 5, 2}, 3, SF_F32, "0.001"},  {4, {4, 2, 3, 5}, 1, SF_F32, "1e-05"},
    {2, {7, 3}, 1, SF_F32, "0.5"},          {2, {3, 7}, 0, SF_F64, "0.001"},
    {1, {6}, 0, SF_F32, "0.001"},           {3, {4, 6, 1}, 2, SF_F32, "0.001"},
    {5, {2, 3, 2, 5, 2}, 2, SF_F64, "0.0"}, {3, {10, 10, 4}, 2, SF_BF16, "0.001"},
    {3, {20, 20, 2}, 2, SF_F16, "0.001"},
};

enum { SHAPES = sizeof shapes / sizeof *shapes };

/* "4x3xf32" or, of HLO, "f32[4,3]". */
static void put_type(sf_buf *out, const struct shape *s, bool full, bool is_hlo)
{
    const sf_dtype_info *info = sf_dtype_get(s->dtype);
    sf_buf_printf(out, is_hlo ? "%s[" : "tensor<", info->hlo);
    for (int d = 0; d < (full ? s->rank : 1); d++)
        sf_buf_printf(out, is_hlo ? "%s%d" : "%s%dx", is_hlo && d ? "," : "",
                      (int)s->dims[full ? d : s->feature]);
    sf_buf_printf(out, is_hlo ? "]" : "%s>", info->name);
}

static void put_types(sf_buf *out, const struct shape *s, int kind, bool results, bool is_hlo)
{
    int count = results ? kinds[kind].nresults : kinds[kind].noperands;
    for (int i = 0; i < count; i++) {
        sf_buf_puts(out, i ? ", " : "");
        put_type(out, s, i == 0 || (!results && i == kinds[kind].full), is_hlo);
    }
}

static void put_hlo(sf_buf *out, const struct shape *s, int kind)
{
    bool is_tuple = kinds[kind].nresults > 1;
    sf_buf_puts(out, "HloModule m\nENTRY e {\n");
    for (int i = 0; i < kinds[kind].noperands; i++) {
        sf_buf_printf(out, "  a%d = ", i);
        put_type(out, s, i == 0 || i == kinds[kind].full, true);
        sf_buf_printf(out, " parameter(%d)\n", i);
    }
    sf_buf_puts(out, is_tuple ? "  ROOT r = (" : "  ROOT r = ");
    put_types(out, s, kind, true, true);
    sf_buf_printf(out, "%s batch-norm-%s(", is_tuple ? ")" : "", kinds[kind].name);
    for (int i = 0; i < kinds[kind].noperands; i++)
        sf_buf_printf(out, "%sa%d", i ? ", " : "", i);
    sf_buf_printf(out, "), epsilon=%s, feature_index=%d\n}\n", s->epsilon, s->feature);
}

static void put_stablehlo(sf_buf *out, const struct shape *s, int kind)
{
    int nresults = kinds[kind].nresults;
    sf_buf_puts(out, "func.func public @main(");
    for (int i = 0; i < kinds[kind].noperands; i++) {
        sf_buf_printf(out, "%s%%a%d: ", i ? ", " : "", i);
        put_type(out, s, i == 0 || i == kinds[kind].full, false);
    }
    sf_buf_puts(out, ") -> (");
    put_types(out, s, kind, true, false);
    sf_buf_printf(out, ") {\n  %%r:%d = \"stablehlo.batch_norm_%s\"(", nresults, kinds[kind].name);
    for (int i = 0; i < kinds[kind].noperands; i++)
        sf_buf_printf(out, "%s%%a%d", i ? ", " : "", i);
    sf_buf_printf(out, ") <{epsilon = %s : f32, feature_index = %d : i64}> : (", s->epsilon,
                  s->feature);
    put_types(out, s, kind, false, false);
    sf_buf_puts(out, ") -> (");
    put_types(out, s, kind, true, false);
    sf_buf_puts(out, ")\n  return ");
    for (int i = 0; i < nresults; i++)
        sf_buf_printf(out, "%s%%r#%d", i ? ", " : "", i);
    sf_buf_puts(out, " : ");
    put_types(out, s, kind, true, false);
    sf_buf_puts(out, "\n}\n");
}

static sf_graph *load_kind(const struct shape *s, int kind, bool is_hlo)
{
    sf_buf text = {0};
    (is_hlo ? put_hlo : put_stablehlo)(&text, s, kind);
    sf_diag *diag = sf_diag_new();
    sf_graph *graph;
    if (sf_load_text(text.text, text.length, "t", NULL, diag, &graph) != SF_OK)
        fail_msg("%s\n%s", text.text, sf_diag_text(diag, 0));
    sf_diag_free(diag);
    sf_buf_free(&text);
    return graph;
}

/* The independent result, in double: arrays of the operands, in memory order. */
typedef struct judge {
    const struct shape *s;
    int64_t count, features, inner; /* elements; features; elements after the feature dimension */
    double in[5][MOST], out[3][MOST];
} judge;

static int64_t feature_of(const judge *j, int64_t element)
{
    return element / j->inner % j->features;
}

/* Per feature: the mean of a * b, or of a where b is NULL. */
static void average(const judge *j, const double *a, const double *b, double *out)
{
    memset(out, 0, (size_t)j->features * sizeof *out);
    for (int64_t i = 0; i < j->count; i++)
        out[feature_of(j, i)] += a[i] * (b ? b[i] : 1) * (double)j->features / (double)j->count;
}

static void judge_norm(judge *j, const double *mean, const double *variance, double epsilon)
{
    for (int64_t i = 0; i < j->count; i++) {
        int64_t f = feature_of(j, i);
        j->out[0][i] =
            j->in[2][f] + j->in[1][f] * (j->in[0][i] - mean[f]) / sqrt(variance[f] + epsilon);
    }
}

static void judge_grad(judge *j, double epsilon)
{
    double of_mean[MOST], along[MOST], normal[MOST] = {0}, each = (double)(j->count / j->features);
    for (int64_t i = 0; i < j->count; i++) {
        int64_t f = feature_of(j, i);
        normal[i] = (j->in[0][i] - j->in[2][f]) / sqrt(j->in[3][f] + epsilon);
    }
    average(j, j->in[4], NULL, of_mean);
    average(j, j->in[4], normal, along);
    for (int64_t i = 0; i < j->count; i++) {
        int64_t f = feature_of(j, i);
        j->out[0][i] = j->in[1][f] / sqrt(j->in[3][f] + epsilon) *
                       (j->in[4][i] - of_mean[f] - normal[i] * along[f]);
    }
    for (int64_t f = 0; f < j->features; f++) {
        j->out[1][f] = along[f] * each;
        j->out[2][f] = of_mean[f] * each;
    }
}

static void judge_all(judge *j, int kind, double epsilon)
{
    if (kind == TRAINING) {
        double centered[MOST] = {0};
        average(j, j->in[0], NULL, j->out[1]);
        for (int64_t i = 0; i < j->count; i++)
            centered[i] = j->in[0][i] - j->out[1][feature_of(j, i)];
        average(j, centered, centered, j->out[2]);
        judge_norm(j, j->out[1], j->out[2], epsilon);
    } else if (kind == INFERENCE) {
        judge_norm(j, j->in[3], j->in[4], epsilon);
    } else {
        judge_grad(j, epsilon);
    }
}

/* All numbers are positive, as a variance must be. */
static void draw(judge *j, const sf_graph *graph, sf_tensor *arguments, uint64_t seed)
{
    for (uint32_t a = 0; a < graph->top->narguments; a++) {
        const sf_type *type = sf_argument_type(graph, a);
        arguments[a] = (sf_tensor){.type = type, .data = sf_alloc((size_t)sf_type_bytes(type))};
        for (int64_t i = 0; i < type->count; i++) {
            uint64_t bits = (seed * 1000003 + a * 7919 + (uint64_t)i) * 0x9E3779B97F4A7C15u;
            double value = 0.25 + (double)(bits >> 40) / (double)(1 << 24) * 3;
            sf_store_f64(type->dtype, arguments[a].data, i, value);
            j->in[a][i] = sf_load_f64(type->dtype, arguments[a].data, i);
        }
    }
}

static void assert_judged(const judge *j, const sf_tensor *results, int kind)
{
    double unit = ldexp(1, -sf_dtype_get(j->s->dtype)->mantissa), tolerance = 64 * unit;
    if (sf_dtype_get(j->s->dtype)->bits < 32)
        tolerance = 2 * unit;
    for (int r = 0; r < kinds[kind].nresults; r++) {
        double largest = 0;
        for (int64_t i = 0; i < results[r].type->count; i++)
            largest = fmax(largest, fabs(j->out[r][i]));
        for (int64_t i = 0; i < results[r].type->count; i++) {
            double found = sf_get_f64(&results[r], i);
            if (!(fabs(found - j->out[r][i]) <= tolerance * largest))
                fail_msg("%s, result %d, element %d: %.9g, not %.9g", kinds[kind].name, r, (int)i,
                         found, j->out[r][i]);
        }
    }
}

static void test_computes_the_formulas(void **state)
{
    (void)state;
    for (int n = 0; n < SHAPES * KINDS * 2; n++) {
        const struct shape *s = &shapes[n / 2 / KINDS];
        int kind = n / 2 % KINDS;
        sf_graph *graph = load_kind(s, kind, n % 2);
        static judge j;
        j = (judge){.s = s, .count = 1, .features = s->dims[s->feature], .inner = 1};
        for (int d = 0; d < s->rank; d++) {
            j.count *= s->dims[d];
            j.inner *= d > s->feature ? s->dims[d] : 1;
        }
        sf_tensor arguments[5], results[3];
        float epsilon = 0;
        sscanf(s->epsilon, "%f", &epsilon);
        draw(&j, graph, arguments, (uint64_t)n);
        assert_int_equal(sf_eval_graph(graph, arguments, results, 0, NULL), SF_OK);
        judge_all(&j, kind, (double)epsilon);
        assert_judged(&j, results, kind);
        for (int i = 0; i < kinds[kind].noperands; i++)
            sf_free(arguments[i].data);
        for (int i = 0; i < kinds[kind].nresults; i++)
            sf_free(results[i].data);
        sf_graph_free(graph);
    }
}

static void test_texts_give_one_graph(void **state)
{
    (void)state;
    for (int n = 0; n < SHAPES * KINDS; n++) {
        sf_graph *one = load_kind(&shapes[n / KINDS], n % KINDS, false);
        sf_graph *other = load_kind(&shapes[n / KINDS], n % KINDS, true);
        assert_true(sf_graph_hash(one) == sf_graph_hash(other));
        sf_graph_free(one);
        sf_graph_free(other);
    }
}

static void test_refusals(void **state)
{
    (void)state;
    static const struct {
        const char *op, *said;
    } cases[] = {
        {"(f32[4,3], f32[3], f32[3]) batch-norm-training(x, v, v), epsilon=0.1, feature_index=2",
         "feature_index is 2, but the operand has 2 dimensions"},
        {"(f32[4,3], f32[3], f32[3]) batch-norm-training(x, v, v), epsilon=0.1, feature_index=-1",
         "feature_index is -1"},
        {"(f32[4,3], f32[3], f32[3]) batch-norm-training(x, v, v), epsilon=0.1, feature_index=0",
         "operand 1 is tensor<3xf32>, but must be tensor<4xf32>"},
        {"(f32[4,3], f32[3], f32[3]) batch-norm-training(x, v, v), feature_index=1",
         "needs the attribute epsilon"},
        {"(f32[4,3], f32[3], f32[3]) batch-norm-training(x, v, v), epsilon=0.1",
         "needs the attribute feature_index"},
        {"(f32[4,3], f32[3], f32[3]) batch-norm-training(x, v, v), epsilon={...}, feature_index=1",
         "leaves epsilon out"},
        {"(f32[4,3], f32[3], f32[3]) batch-norm-training(x, v, v), epsilon=big, feature_index=1",
         "expected a number"},
        {"(f32[4,3], f32[3], f32[3]) batch-norm-training(x, v), epsilon=0.1, feature_index=1",
         "takes 3 operands, not 2"},
        {"f32[4,3] batch-norm-training(x, v, v), epsilon=0.1, feature_index=1",
         "has 3 results, not 1"},
        {"(f32[4,3], f32[4], f32[3]) batch-norm-training(x, v, v), epsilon=0.1, feature_index=1",
         "result 1 is declared as tensor<4xf32>, but is tensor<3xf32>"},
        {"s32[4,3] batch-norm-inference(i, v, v, v, v), epsilon=0.1, feature_index=1",
         "normalizes floats, not i32"},
        {"(f32[4,3], f32[3], f32[3]) batch-norm-grad(x, v, v, v, v), epsilon=0.1, feature_index=1",
         "operand 4 is tensor<3xf32>, but must be tensor<4x3xf32>"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[TEXT];
        int length = snprintf(text, sizeof text,
                              "HloModule m\nENTRY e {\n  x = f32[4,3] parameter(0)\n"
                              "  v = f32[3] parameter(1)\n  i = s32[4,3] parameter(2)\n"
                              "  ROOT r = %s\n}\n",
                              cases[i].op);
        sf_diag *diag = sf_diag_new();
        sf_graph *graph;
        assert_int_equal(sf_load_text(text, (size_t)length, "t", NULL, diag, &graph), SF_EINPUT);
        if (!strstr(sf_diag_text(diag, 0), cases[i].said))
            fail_msg("'%s' lacks '%s'", sf_diag_text(diag, 0), cases[i].said);
        sf_diag_free(diag);
    }
}

/* A linear layer, normalized, and gradient descent on it; the running mean is carried, too. */
static const char step[] =
    "func.func public @main(%w: tensor<6x4xf32> {tf.aliasing_output = 0 : i32},"
    " %scale: tensor<4xf32> {tf.aliasing_output = 1 : i32},"
    " %offset: tensor<4xf32> {tf.aliasing_output = 2 : i32},"
    " %mean: tensor<4xf32> {tf.aliasing_output = 3 : i32}, %x: tensor<16x6xf32>,"
    " %y: tensor<16x4xf32>) -> (tensor<6x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>,"
    " tensor<f32>) {\n"
    "  %h = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] :"
    " (tensor<16x6xf32>, tensor<6x4xf32>) -> tensor<16x4xf32>\n"
    "  %n:3 = \"stablehlo.batch_norm_training\"(%h, %scale, %offset)"
    " {epsilon = 1.000000e-03 : f32, feature_index = 1 : i64} :"
    " (tensor<16x4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<16x4xf32>, tensor<4xf32>,"
    " tensor<4xf32>)\n"
    "  %d = stablehlo.subtract %n#0, %y : tensor<16x4xf32>\n"
    "  %dd = stablehlo.multiply %d, %d : tensor<16x4xf32>\n"
    "  %zero = stablehlo.constant dense<0.0> : tensor<f32>\n"
    "  %loss = stablehlo.reduce(%dd init: %zero) applies stablehlo.add across dimensions = [0, 1] :"
    " (tensor<16x4xf32>, tensor<f32>) -> tensor<f32>\n"
    "  %g = stablehlo.add %d, %d : tensor<16x4xf32>\n"
    "  %b:3 = \"stablehlo.batch_norm_grad\"(%h, %scale, %n#1, %n#2, %g)"
    " {epsilon = 1.000000e-03 : f32, feature_index = 1 : i64} :"
    " (tensor<16x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<16x4xf32>) ->"
    " (tensor<16x4xf32>, tensor<4xf32>, tensor<4xf32>)\n"
    "  %gw = stablehlo.dot_general %x, %b#0, contracting_dims = [0] x [0] :"
    " (tensor<16x6xf32>, tensor<16x4xf32>) -> tensor<6x4xf32>\n"
    "  %rw = stablehlo.constant dense<0.01> : tensor<6x4xf32>\n"
    "  %r = stablehlo.constant dense<0.01> : tensor<4xf32>\n"
    "  %uw = stablehlo.multiply %gw, %rw : tensor<6x4xf32>\n"
    "  %w1 = stablehlo.subtract %w, %uw : tensor<6x4xf32>\n"
    "  %us = stablehlo.multiply %b#1, %r : tensor<4xf32>\n"
    "  %s1 = stablehlo.subtract %scale, %us : tensor<4xf32>\n"
    "  %uo = stablehlo.multiply %b#2, %r : tensor<4xf32>\n"
    "  %o1 = stablehlo.subtract %offset, %uo : tensor<4xf32>\n"
    "  %new = stablehlo.multiply %n#1, %r : tensor<4xf32>\n"
    "  %m1 = stablehlo.add %mean, %new : tensor<4xf32>\n"
    "  return %w1, %s1, %o1, %m1, %loss : tensor<6x4xf32>, tensor<4xf32>, tensor<4xf32>,"
    " tensor<4xf32>, tensor<f32>\n}\n";

static void test_batch_splits(void **state)
{
    (void)state;
    sf_graph *graph;
    assert_int_equal(sf_load_text(step, sizeof step - 1, "step", NULL, NULL, &graph), SF_OK);
    for (int ranks = 2; ranks <= 4; ranks *= 2) {
        sf_plan_spec options = {.size = sizeof options, .recipe = "dp", .ranks = ranks};
        sf_verify_options verify = {.size = sizeof verify, .steps = 4};
        sf_verify_report *report;
        sf_plan *plan;
        assert_int_equal(sf_pin_step(graph, &options, NULL, &plan), SF_OK);
        assert_int_equal(sf_verify_plan(graph, plan, &verify, NULL, &report), SF_OK);
        assert_true(report->passed);
        assert_int_equal(report->ranks, ranks);
        assert_true(report->loss_error < 1e-6);
        sf_verify_free(report);
        sf_plan_free(plan);
    }
    sf_graph_free(graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_computes_the_formulas),
        cmocka_unit_test(test_texts_give_one_graph),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_batch_splits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
