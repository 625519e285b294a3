/* The reader of StableHLO text: every kind of mistake gives a message at its place, and no text makes it fail in any other way. */
#include <stdio.h>

#define READER sf_stablehlo_read
#define FILE_NAME "t.mlir"
#include "front/read_module.h"

/* Ops for a function whose parameters are %a: tensor<2xf32> and %i: tensor<i32>, on its second line
 * and indented by two; and the first message. */
static const struct {
    const char *op;
    sf_status status;
    const char *message;
} mistakes[] = {
    {"%0 = stablehlo.addd %a, %a : tensor<2xf32>", SF_EUNSUPPORTED,
     "t.mlir:2:8: error: unknown op stablehlo.addd\n  hint: did you mean stablehlo.add?"},
    {"%0 = mhlo.add %a, %a : tensor<2xf32>", SF_EINPUT,
     "t.mlir: error: this is MLIR of dialect mhlo, without StableHLO: a step is StableHLO or HLO "
     "text\n  hint: stablehlo-opt --vhlo-legalize-to-stablehlo and mlir-hlo-opt "
     "--hlo-legalize-to-stablehlo turn it into StableHLO"},
    {"%0 = stablehlo.abs %a : tensor<2xf32>\n  %1 = mhlo.add %a, %a : tensor<2xf32>",
     SF_EUNSUPPORTED,
     "t.mlir:3:8: error: unknown op mhlo.add\n  hint: convert the program to StableHLO first"},
    {"%0 = stablehlo.add %a, %x : tensor<2xf32>", SF_EINPUT,
     "t.mlir:2:26: error: %x is not defined"},
    {"%0 = stablehlo.add %a, %a#1 : tensor<2xf32>", SF_EINPUT,
     "t.mlir:2:26: error: %a has 1 results, there is no #1"},
    {"%0 = stablehlo.add %a, %a : tensor<3xf32>", SF_EINPUT,
     "t.mlir:2:31: error: operand 0 of add is a tensor<2xf32>, not a tensor<3xf32>"},
    {"%0 = stablehlo.add %a, %a", SF_EINPUT, "t.mlir:3:3: error: expected ':', found 'return'"},
    {"%0 = stablehlo.add %a, %i : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>", SF_EINPUT,
     "t.mlir:2:47: error: operand 1 of add is a tensor<i32>, not a tensor<2xf32>"},
    {"%0 = stablehlo.add %a, %a : (tensor<2xf32>) -> tensor<2xf32>", SF_EINPUT,
     "t.mlir:2:32: error: 1 types for the 2 operands of add"},
    {"%0:2 = stablehlo.add %a, %a : tensor<2xf32>", SF_EINPUT,
     "t.mlir:2:3: error: 2 names for the 1 results of add"},
    {"%a = stablehlo.add %a, %a : tensor<2xf32>", SF_EINPUT,
     "t.mlir:2:3: error: %a is defined a second time"},
    {"%0 = stablehlo.negate %a {speed = 3 : i64} : tensor<2xf32>", SF_EINPUT,
     "t.mlir:2:29: error: stablehlo.negate has no attribute 'speed'"},
    {"%0 = \"stablehlo.iota\"() {dim = 0 : i64} : () -> tensor<2xi32>", SF_EINPUT,
     "t.mlir:2:28: error: stablehlo.iota has no attribute 'dim'\n  hint: known are: "
     "iota_dimension"},
    {"%0 = stablehlo.reverse %a, dimz = [0] : tensor<2xf32>", SF_EINPUT,
     "t.mlir:2:30: error: stablehlo.reverse has no attribute 'dimz'\n  hint: did you mean dims?"},
    {"%0 = stablehlo.reverse %a, dims = [0 : tensor<2xf32>", SF_EINPUT,
     "t.mlir:2:48: error: expected ']', found '<'"},
    {"%0 = stablehlo.reverse %a, dims = [x] : tensor<2xf32>", SF_EINPUT,
     "t.mlir:2:38: error: expected an integer or a boolean, found 'x'"},
    {"%0 = stablehlo.gather %a, %i : tensor<2xf32>", SF_EINPUT,
     "t.mlir:2:8: error: stablehlo.gather is only read in the form \"stablehlo.gather\"(...)"},
    {"%0 = stablehlo.convert %i : (tensor<i32>) -> tensor<2xcomplex<f16>>", SF_EUNSUPPORTED,
     "t.mlir:2:48: error: the type tensor<2xcomplex<f16>> is not supported\n  hint: complex "
     "numbers "
     "have parts of f32 or f64"},
    {"%0 = stablehlo.convert %i : (tensor<i32>) -> tensor<2xindex>", SF_EUNSUPPORTED,
     "t.mlir:2:48: error: the type tensor<2xindex> is not supported\n  hint: use i32 or i64"},
    {"%0 = stablehlo.convert %i : (tensor<i32>) -> tensor<2xf33>", SF_EINPUT,
     "t.mlir:2:48: error: tensor<2xf33> is not a type of tensors"},
    {"%0 = stablehlo.convert %i : (tensor<i32>) -> tensor<4294967296x4294967296xf32>",
     SF_EUNSUPPORTED,
     "t.mlir:2:48: error: tensor<4294967296x4294967296xf32> is too large: a tensor has at most 16 "
     "dimensions and 2^63 bytes"},
    {"%0 = stablehlo.constant dense<[1, 2]> : tensor<3xi32>", SF_EINPUT,
     "t.mlir:2:33: error: 2 elements in a list for dimension 0 of tensor<3xi32>"},
    {"%0 = stablehlo.constant dense<[1, 2]> : tensor<1xi32>", SF_EINPUT,
     "t.mlir:2:37: error: the literal has more elements than its type"},
    {"%0 = stablehlo.constant dense<300> : tensor<i8>", SF_EINPUT,
     "t.mlir:2:33: error: the number does not fit in i8"},
    {"%0 = stablehlo.constant dense<-1> : tensor<ui8>", SF_EINPUT,
     "t.mlir:2:33: error: the number does not fit in ui8"},
    {"%0 = stablehlo.constant dense<1.5> : tensor<i8>", SF_EINPUT,
     "t.mlir:2:34: error: expected '>', found '.5'"},
    {"%0 = stablehlo.constant dense<\"0x00\"> : tensor<2xi32>", SF_EINPUT,
     "t.mlir:2:33: error: a tensor<2xi32> is not made of 1 byte of data"},
    {"%0 = stablehlo.constant dense_resource<w> : tensor<2xf32>", SF_EUNSUPPORTED,
     "t.mlir:2:27: error: constants in resources are not supported\n  hint: export with the "
     "constants "
     "in the text, or pass them as arguments"},
    {"%0 = call @nowhere(%a) : (tensor<2xf32>) -> tensor<2xf32>", SF_EINPUT,
     "t.mlir:2:8: error: there is no function @nowhere"},
    {"call @main(%a) : (tensor<2xf32>) -> ()", SF_EINPUT,
     "t.mlir:2:3: error: @main takes 2 arguments and has 0 results, not 1 and 0"},
    {"return %a : tensor<2xf32>", SF_EINPUT,
     "t.mlir:2:3: error: returns 1 values, the function has 0 results"},
    {"cf.br ^bb1\n^bb1:", SF_EUNSUPPORTED,
     "t.mlir:2:3: error: unknown op cf.br\n  hint: control flow is written with stablehlo.while, "
     "case "
     "and if"},
    {"%0 = \"stablehlo.broadcast_in_dim\"(%i) {broadcast_dimensions = dense<0> : "
     "tensor<100000000xi64>} : (tensor<i32>) -> tensor<2xi32>",
     SF_EUNSUPPORTED, "t.mlir:2:65: error: a list in an attribute has more than 65536 numbers"},
    {"\001", SF_EINPUT, "t.mlir:2:3: error: expected an op, found the byte 0x01"},
    {"%0 = \"stablehlo.add", SF_EINPUT,
     "t.mlir:2:8: error: expected a string that ends on its line, found '\"stablehlo.add'"},
};

static void test_mistakes(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof mistakes / sizeof *mistakes; i++) {
        char text[512];
        snprintf(text, sizeof text,
                 "func.func @main(%%a: tensor<2xf32>, %%i: tensor<i32>) {\n  %s\n  return\n}\n",
                 mistakes[i].op);
        fixture f = read_text(text);
        assert_string_equal(sf_diag_text(f.diag, 0), mistakes[i].message);
        assert_int_equal(f.status, mistakes[i].status);
        drop(&f);
    }
}

static void test_several_mistakes(void **state)
{
    (void)state;
    fixture f = read_text(
        "func.func @main(%a: tensor<2xf32>, %z: tensor<2xcomplex<f16>>) -> tensor<2xf32> {\n"
        "  %0 = stablehlo.bad %a : tensor<2xf32>\n"
        "  %1 = stablehlo.add %0, %0 : tensor<2xf32>\n"          /* poison: silent */
        "  %2 = stablehlo.add %z, %z : tensor<2xcomplex<f16>>\n" /* said before */
        "  %3 = stablehlo.reduce(%a init: %a) across dimensions = [0 : (tensor<2xf32>\n"
        "   reducer(%x: tensor<f32>, %y: tensor<f32>) {\n"
        "    stablehlo.return %x : tensor<f32>\n"
        "  }\n"
        "  %4 = \"stablehlo.while\"(%a) ({\n"
        "  ^bb0(%x: tensor<2xf32>):\n"
        "    %5 = stablehlo.nothing : tensor<i1>\n"
        "    stablehlo.return %5 : tensor<i1>\n"
        "  }, {\n"
        "  ^bb0(%x: tensor<2xf32>):\n"
        "    stablehlo.return %x, %w : tensor<2xf32>\n"
        "  }) : (tensor<2xf32>) -> tensor<2xf32>\n"
        "  return %4 : tensor<2xf32>\n"
        "}\n"
        "func.func @g( {\n  return\n}\n"
        "func.func @h(%a: tensor<f32>) -> tensor<f32> {\n  return %b : tensor<f32>\n}\n");
    static const char *const expected[] = {
        "t.mlir:1:40: error: the type tensor<2xcomplex<f16>> is not supported",
        "t.mlir:2:8: error: unknown op stablehlo.bad",
        "t.mlir:5:61: error: expected ']', found ':'",
        "t.mlir:11:10: error: unknown op stablehlo.nothing",
        "t.mlir:15:26: error: %w is not defined",
        "t.mlir:19:15: error: expected a type such as tensor<2x3xf32>, found '{'",
        "t.mlir:23:10: error: %b is not defined",
    };
    int count = sizeof expected / sizeof *expected;
    assert_int_equal(f.status, SF_EUNSUPPORTED);
    for (int i = 0; i < count; i++) {
        const char *text = sf_diag_text(f.diag, i);
        assert_non_null(text);
        assert_int_equal(strncmp(text, expected[i], strlen(expected[i])), 0);
    }
    assert_int_equal(sf_diag_count(f.diag), count);
    drop(&f);
}

static void test_stops_after_twenty(void **state)
{
    (void)state;
    sf_buf text = {0};
    sf_buf_puts(&text, "func.func @main() {\n");
    for (int i = 0; i < 100; i++)
        sf_buf_printf(&text, "  %%%d = stablehlo.nothing%d\n", i, i);
    sf_buf_puts(&text, "  return\n}\n");
    fixture f = read_text(text.text);
    assert_int_equal(f.status, SF_EUNSUPPORTED);
    assert_int_equal(sf_diag_count(f.diag), 20);
    drop(&f);
    sf_buf_free(&text);
}

static void test_no_function(void **state)
{
    (void)state;
    static const char *const texts[] = {"module {\n}\n", "// nothing\n"};
    for (int i = 0; i < 2; i++) {
        fixture f = read_text(texts[i]);
        assert_int_equal(f.status, SF_EINPUT);
        assert_string_equal(sf_diag_text(f.diag, 0),
                            "t.mlir:1:1: error: there is no function in the text");
        drop(&f);
    }
}

/* Brackets of every kind, nested far deeper than is followed. */
static void test_deep_nesting(void **state)
{
    (void)state;
    static const char *const units[] = {
        "module {\n",
        "\"stablehlo.case\"(%a) ({\n",
        "loc(callsite(\"x\" at ",
        "[",
        "{",
        "tensor<",
        "#a<",
        "\"builtin.module\"() ({\n",
        "fused[",
    };
    static const char *const starts[] = {
        "",
        "func.func @main(%a: tensor<i32>) {\n",
        "func.func @main(%a: tensor<i32>) {\n %0 = stablehlo.negate %a : tensor<i32> ",
        "func.func @main(%a: tensor<i32>) {\n %0 = stablehlo.reverse %a, dims = ",
        "func.func @main(%a: tensor<i32>) {\n %0 = stablehlo.negate %a {x.y = ",
        "func.func @main(%a: ",
        "#x = ",
    };
    for (size_t s = 0; s < sizeof starts / sizeof *starts; s++) {
        for (size_t u = 0; u < sizeof units / sizeof *units; u++) {
            sf_buf text = {0};
            sf_buf_puts(&text, starts[s]);
            for (int i = 0; i < 20000; i++)
                sf_buf_puts(&text, units[u]);
            fixture f = read_text(text.text);
            assert_int_not_equal(f.status, SF_OK);
            assert_true(sf_diag_count(f.diag) > 0);
            drop(&f);
            sf_buf_free(&text);
        }
    }
}

static const char program[] =
    "#loc = loc(unknown)\n"
    "module @m attributes {mhlo.num_partitions = 1 : i32} {\n"
    "  func.func public @main(%arg0: tensor<2x3xf32> {tf.aliasing_output = 0 : i32} loc(\"w\"), "
    "%arg1: tensor<3x2xf32>) -> (tensor<2x2xf32> {jax.result_info = \"x\"}) {\n"
    "    %cst = stablehlo.constant dense<[0.0, 0xFF800000]> : tensor<2xf32> loc(#loc1)\n"
    "    %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0], precision = "
    "[DEFAULT, DEFAULT] : (tensor<2x3xf32>, tensor<3x2xf32>) -> tensor<2x2xf32> loc(#loc1)\n"
    "    %c = stablehlo.constant dense<\"0x00000000\"> : tensor<i32>\n"
    "    %1:2 = stablehlo.while(%i = %c, %x = %0) : tensor<i32>, tensor<2x2xf32>\n"
    "     cond {\n"
    "      %3 = stablehlo.compare LT, %i, %c, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>\n"
    "      stablehlo.return %3 : tensor<i1>\n"
    "    } do {\n"
    "      stablehlo.return %i, %x : tensor<i32>, tensor<2x2xf32>\n"
    "    } loc(callsite(#loc1 at fused<\"a\">[\"f\":1:2, #loc]))\n"
    "    %2 = \"stablehlo.slice\"(%1#1) <{start_indices = array<i64: 0, 0>, limit_indices = "
    "array<i64: "
    "2, 2>, strides = dense<1> : tensor<2xi64>}> : (tensor<2x2xf32>) -> tensor<2x2xf32>\n"
    "    return %2 : tensor<2x2xf32> loc(#loc)\n"
    "  } loc(#loc)\n"
    "} loc(#loc)\n"
    "#loc1 = loc(\"jit(step)/dot\"(#loc))\n";

static void test_truncated(void **state)
{
    (void)state;
    size_t before = sf_mem_live();
    size_t length = strlen(program);
    sf_pool *pool = sf_pool_new();
    fixture whole = read_part(pool, program, length);
    assert_good(&whole);
    drop(&whole);
    sf_pool_release(pool);
    for (size_t i = 0; i < length; i++) {
        pool = sf_pool_new();
        fixture f = read_part(pool, program, i);
        assert_true(f.status == SF_OK || sf_diag_count(f.diag) > 0);
        drop(&f);
        sf_pool_release(pool);
    }
    assert_int_equal(sf_mem_live(), before);
}

/* Every byte changed to something that means something. */
static void test_mutated(void **state)
{
    (void)state;
    static const char bytes[] = "\"<>{}[]():,%#@!^=-0x\n\0";
    char text[sizeof program];
    for (size_t i = 0; i < sizeof program - 1; i++) {
        memcpy(text, program, sizeof program);
        text[i] = bytes[i % sizeof bytes];
        sf_pool *pool = sf_pool_new();
        fixture f = read_part(pool, text, sizeof program - 1);
        assert_true(f.status == SF_OK || sf_diag_count(f.diag) > 0);
        drop(&f);
        sf_pool_release(pool);
    }
}

/* True when that many allocations were enough. */
static bool read_with(long allowed)
{
    volatile bool finished = false;
    sf_diag *diag = sf_diag_new();
    sf_guard guard;
    sf_guard_enter(&guard);
    if (setjmp(guard.target) == 0) {
        sf_mem_fail_after(allowed);
        sf_pool *pool = sf_pool_new();
        sf_module *module = sf_module_new(pool);
        sf_str text = {program, strlen(program)};
        finished = sf_stablehlo_read(text, "t.mlir", module, diag) == SF_OK;
        sf_mem_fail_after(-1);
        sf_module_free(module);
        sf_pool_release(pool);
        sf_guard_leave(&guard);
    }
    sf_mem_fail_after(-1);
    sf_diag_free(diag);
    return finished;
}

static void test_out_of_memory(void **state)
{
    (void)state;
    size_t before = sf_mem_live();
    for (long allowed = 0; !read_with(allowed); allowed++)
        assert_int_equal(sf_mem_live(), before);
    assert_int_equal(sf_mem_live(), before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mistakes),
        cmocka_unit_test(test_several_mistakes),
        cmocka_unit_test(test_stops_after_twenty),
        cmocka_unit_test(test_no_function),
        cmocka_unit_test(test_deep_nesting),
        cmocka_unit_test(test_truncated),
        cmocka_unit_test(test_mutated),
        cmocka_unit_test(test_out_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
