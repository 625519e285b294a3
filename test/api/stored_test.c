/* Values of other types than the step's: a file that a writer with wider types made does for verify, eval and train as
 * the exact one does; a number that does not fit is named. */
#include "sheaf/sheaf.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "file/safetensors.h"
#include "ir/graph.h"

static const char step_file[] = "examples/gpt-micro.hlo";
static const char values_file[] = "examples/gpt-micro.io.safetensors";
static char path[] = "/tmp/sheaf-stored-XXXXXX.safetensors";
static sf_graph *graph;

static int load(void **state)
{
    (void)state;
    int fd = mkstemps(path, (int)strlen(".safetensors"));
    if (fd < 0 || close(fd) != 0)
        return -1;
    return sf_load(step_file, NULL, NULL, &graph) == SF_OK ? 0 : -1;
}

static int unload(void **state)
{
    (void)state;
    sf_graph_free(graph);
    return unlink(path);
}

/* Writes the values with all integers as `whole` and all floats as `real`; tensor `name`, where there is one, with this
 * number as its element 3. */
static void write_as(sf_dtype whole, sf_dtype real, const char *name, double number)
{
    sf_safetensors file;
    assert_int_equal(sf_safetensors_read(values_file, NULL, &file), SF_OK);
    for (size_t i = 0; i < file.count; i++) {
        sf_tensor *tensor = &file.tensors[i].tensor;
        bool is_float = sf_is_float(tensor->type->dtype);
        const sf_type *type = sf_type_with(file.pool, tensor->type, is_float ? real : whole);
        void *data = sf_arena_array(&file.arena, (size_t)type->count + 1, 8);
        for (int64_t k = 0; k < type->count; k++)
            if (is_float)
                sf_store_f64(type->dtype, data, k, sf_get_f64(tensor, k));
            else
                sf_store_i64(type->dtype, data, k, sf_get_i64(tensor, k));
        *tensor = (sf_tensor){.type = type, .data = data};
        if (name && sf_str_is(file.tensors[i].name, name))
            sf_store_f64(type->dtype, data, 3, number);
    }
    assert_int_equal(sf_safetensors_write(path, file.count, file.tensors, NULL), SF_OK);
    sf_safetensors_close(&file);
}

static const struct {
    sf_dtype whole, real;
} kinds[] = {
    {SF_S64, SF_F32}, {SF_U32, SF_F64}, {SF_S16, SF_F32}, {SF_U64, SF_F64}, {SF_F32, SF_F32}};

enum { KINDS = sizeof kinds / sizeof *kinds };

static void test_verify(void **state)
{
    (void)state;
    for (int i = 0; i < KINDS; i++) {
        sf_verify_options options = {.size = sizeof options, .against = path, .steps = 3};
        sf_verify_report *report;
        write_as(kinds[i].whole, kinds[i].real, NULL, 0);
        assert_int_equal(sf_verify(graph, &options, NULL, &report), SF_OK);
        assert_true(report->passed);
        assert_int_equal(report->nlosses, 3);
        sf_verify_free(report);
    }
}

static double train(const char *file, sf_diag *diag, sf_status expected)
{
    sf_train_options options = {.size = sizeof options, .steps = 4, .data = file, .init = file};
    sf_train_report report = {.size = sizeof report};
    assert_int_equal(sf_train(graph, &options, diag, &report), expected);
    return report.loss;
}

static void test_train(void **state)
{
    (void)state;
    double expected = train(values_file, NULL, SF_OK);
    assert_true(expected > 1);
    for (int i = 0; i < KINDS; i++) {
        write_as(kinds[i].whole, kinds[i].real, NULL, 0);
        assert_true(train(path, NULL, SF_OK) == expected);
    }
}

static void test_refusals(void **state)
{
    (void)state;
    static const struct {
        sf_dtype whole, real;
        const char *name;
        double number;
        const char *verify, *train; /* the expected messages; NULL: no error */
    } cases[] = {
        {SF_S64, SF_F32, "in.109", 5e9, "element 3 of in.109 is 5000000000, which as i32", NULL},
        {SF_U32, SF_F32, "batch.0.ids", 4e9, "element 3 of batch.0.ids is 4000000000, which as i32",
         "element 3 of batch.0.ids is 4000000000, which as i32"},
        {SF_F64, SF_F32, "batch.0.ids", 2.5, "element 3 of batch.0.ids is 2.5, which as i32",
         "element 3 of batch.0.ids is 2.5, which as i32"},
        {SF_S64, SF_F64, "in.1", 0.1, "element 3 of in.1 is 0.10000000000000001, which as f32",
         NULL /* weights are rounded */},
        {SF_S64, SF_F64, "in.1", 1e300,
         "element 3 of in.1 is 1.0000000000000001e+300, which as f32",
         "is 1.0000000000000001e+300, which as f32"},
        {SF_S64, SF_F64, "out.1", 1e300, "element 3 of out.1 is", NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        sf_verify_options options = {.size = sizeof options, .against = path, .steps = 1};
        sf_verify_report *report;
        sf_diag *diag = sf_diag_new();
        write_as(cases[i].whole, cases[i].real, cases[i].name, cases[i].number);
        assert_int_equal(sf_verify(graph, &options, diag, &report), SF_EINPUT);
        if (!strstr(sf_diag_text(diag, 0), cases[i].verify))
            fail_msg("'%s' lacks '%s'", sf_diag_text(diag, 0), cases[i].verify);
        sf_diag_free(diag);
        diag = sf_diag_new();
        train(path, diag, cases[i].train ? SF_EINPUT : SF_OK);
        if (cases[i].train && !strstr(sf_diag_text(diag, 0), cases[i].train))
            fail_msg("'%s' lacks '%s'", sf_diag_text(diag, 0), cases[i].train);
        sf_diag_free(diag);
    }
}

/* Inputs of a step that lost one of several arguments of one type as it was lowered: its next value
 * determines which. */
static void test_dropped_argument(void **state)
{
    (void)state;
    static const char text[] =
        "func.func public @main(%w: tensor<2xf32> loc(\"s['w']\"), %a: tensor<f32> loc(\"s['a']\"),"
        " %c: tensor<f32> loc(\"s['c']\"), %x: tensor<2xf32> loc(\"x\")) -> (tensor<2xf32>"
        " {jax.result_info = \"result[0]['w']\"}, tensor<f32> {jax.result_info = "
        "\"result[0]['a']\"}, tensor<f32> {jax.result_info = \"result[0]['b']\"}, tensor<f32> "
        "{jax.result_info = \"result[0]['c']\"}, tensor<f32> {jax.result_info = \"result[1]\"}) {\n"
        "  %b = stablehlo.constant dense<7.0> : tensor<f32>\n"
        "  %z = stablehlo.constant dense<0.0> : tensor<f32>\n"
        "  %g = stablehlo.multiply %x, %w : tensor<2xf32>\n"
        "  %w1 = stablehlo.subtract %w, %g : tensor<2xf32>\n"
        "  %a1 = stablehlo.add %a, %b : tensor<f32>\n"
        "  %c1 = stablehlo.multiply %c, %b : tensor<f32>\n"
        "  %loss = stablehlo.reduce(%g init: %z) applies stablehlo.add across dimensions = [0] : "
        "(tensor<2xf32>, tensor<f32>) -> tensor<f32>\n"
        "  return %w1, %a1, %b, %c1, %loss : tensor<2xf32>, tensor<f32>, tensor<f32>, tensor<f32>, "
        "tensor<f32>\n}\n";
    float w[] = {1, 2}, a = 3, b = 4, c = 5, x[] = {0.5f, 0.25f};
    float w1[] = {0.5f, 1.5f}, a1 = 10, b1 = 7, c1 = 35, loss = 1;
    sf_pool *pool = sf_pool_new();
    const sf_type *scalar = sf_type_scalar(pool, SF_F32);
    const sf_type *pair = sf_type_get(pool, SF_F32, 1, (int64_t[]){2});
    sf_named_tensor tensors[] = {
        {sf_str_of("in.0"), {.type = pair, .data = w}},
        {sf_str_of("in.1"), {.type = scalar, .data = &a}},
        {sf_str_of("in.2"), {.type = scalar, .data = &b}},
        {sf_str_of("in.3"), {.type = scalar, .data = &c}},
        {sf_str_of("in.4"), {.type = pair, .data = x}},
        {sf_str_of("out.0"), {.type = pair, .data = w1}},
        {sf_str_of("out.1"), {.type = scalar, .data = &a1}},
        {sf_str_of("out.2"), {.type = scalar, .data = &b1}},
        {sf_str_of("out.3"), {.type = scalar, .data = &c1}},
        {sf_str_of("out.4"), {.type = scalar, .data = &loss}},
    };
    assert_int_equal(sf_safetensors_write(path, sizeof tensors / sizeof *tensors, tensors, NULL),
                     SF_OK);
    sf_graph *step;
    assert_int_equal(sf_load_text(text, strlen(text), "t", NULL, NULL, &step), SF_OK);
    sf_verify_options options = {.size = sizeof options, .against = path, .steps = -1};
    sf_verify_report *report;
    assert_int_equal(sf_verify(step, &options, NULL, &report), SF_OK);
    assert_true(report->passed);
    sf_verify_free(report);
    sf_graph_free(step);
    /* Without its state it is not clear. */
    sf_load_options none = {.size = sizeof none, .state = "none"};
    assert_int_equal(sf_load_text(text, strlen(text), "t", &none, NULL, &step), SF_OK);
    assert_int_equal(sf_verify(step, &options, NULL, &report), SF_EINPUT);
    sf_graph_free(step);
    sf_pool_release(pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_verify),
        cmocka_unit_test(test_train),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_dropped_argument),
    };
    return cmocka_run_group_tests(tests, load, unload);
}
