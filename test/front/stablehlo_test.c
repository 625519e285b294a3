/* The reader of StableHLO text: pretty and generic forms give the same nodes, with their attributes, names and bytes. */
#include <math.h>
#include <stdio.h>

#define READER sf_stablehlo_read
#define FILE_NAME "t.mlir"
#include "front/read_module.h"
#include "ir/print_graph.h"
#include "op/op.h"

static void assert_ints(const sf_node *node, const char *name, int count, const int64_t *values)
{
    const sf_attr *attr = attr_of(node, name);
    assert_non_null(attr);
    assert_int_equal(attr->kind, SF_ATTR_INTS);
    assert_int_equal(attr->count, count);
    for (int i = 0; i < count; i++)
        assert_int_equal(attr->ints[i], values[i]);
}

/* Two spellings of one op, each the first op of a function with the given parameters. */
static const struct {
    const char *parameters, *pretty, *generic;
} spellings[] = {
    {"%a: tensor<2xf32>", "stablehlo.add %a, %a : tensor<2xf32>",
     "\"stablehlo.add\"(%a, %a) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>"},
    {"%a: tensor<2xf32>", "stablehlo.add %a, %a {mhlo.x = [1, {y = 2}]} : tensor<2xf32>",
     "\"stablehlo.add\"(%a, %a) {xla_y, jax.z = \"}\"} : (tensor<2xf32>, tensor<2xf32>) -> "
     "tensor<2xf32>"},
    {"%a: tensor<2xf32>", "chlo.erf %a : tensor<2xf32> -> tensor<2xf32>",
     "\"chlo.erf\"(%a) : (tensor<2xf32>) -> tensor<2xf32>"},
    {"%p: tensor<i1>, %a: tensor<2xf32>", "stablehlo.select %p, %a, %a : tensor<i1>, tensor<2xf32>",
     "\"stablehlo.select\"(%p, %a, %a) : (tensor<i1>, tensor<2xf32>, tensor<2xf32>) -> "
     "tensor<2xf32>"},
    {"%a: tensor<2xf32>", "stablehlo.convert %a : (tensor<2xf32>) -> tensor<2xi8>",
     "\"stablehlo.convert\"(%a) : (tensor<2xf32>) -> tensor<2xi8>"},
    {"", "stablehlo.iota dim = 1 : tensor<2x3xi32>",
     "\"stablehlo.iota\"() <{iota_dimension = 1 : i64}> : () -> tensor<2x3xi32>"},
    {"%a: tensor<3xf32>",
     "stablehlo.broadcast_in_dim %a, dims = [1] : (tensor<3xf32>) -> tensor<2x3xf32>",
     "\"stablehlo.broadcast_in_dim\"(%a) <{broadcast_dimensions = array<i64: 1>}> : "
     "(tensor<3xf32>) -> tensor<2x3xf32>"},
    {"%a: tensor<3xf32>",
     "stablehlo.broadcast_in_dim %a, dims = [0] : (tensor<3xf32>) -> tensor<3x3xf32>",
     "\"stablehlo.broadcast_in_dim\"(%a) {broadcast_dimensions = dense<0> : tensor<1xi64>} : "
     "(tensor<3xf32>) -> tensor<3x3xf32>"},
    {"%a: tensor<2x3xf32>",
     "stablehlo.transpose %a, dims = [1, 0] : (tensor<2x3xf32>) -> tensor<3x2xf32>",
     "\"stablehlo.transpose\"(%a) {permutation = dense<[1, 0]> : tensor<2xi64>} : "
     "(tensor<2x3xf32>) -> tensor<3x2xf32>"},
    {"%a: tensor<2x8xf32>",
     "stablehlo.slice %a [0:2, 1:8:2] : (tensor<2x8xf32>) -> tensor<2x4xf32>",
     "\"stablehlo.slice\"(%a) <{start_indices = array<i64: 0, 1>, limit_indices = array<i64: 2, "
     "8>, strides = array<i64: 1, 2>}> : (tensor<2x8xf32>) -> tensor<2x4xf32>"},
    {"%a: tensor<2xf32>, %z: tensor<f32>",
     "stablehlo.pad %a, %z, low = [1], high = [-1], interior = [0] : (tensor<2xf32>, tensor<f32>) "
     "-> tensor<2xf32>",
     "\"stablehlo.pad\"(%a, %z) <{edge_padding_low = array<i64: 1>, edge_padding_high = array<i64: "
     "-1>, interior_padding = array<i64: 0>}> : (tensor<2xf32>, tensor<f32>) -> tensor<2xf32>"},
    {"%a: tensor<2xf32>",
     "stablehlo.concatenate %a, %a, dim = 0 : (tensor<2xf32>, tensor<2xf32>) -> tensor<4xf32>",
     "\"stablehlo.concatenate\"(%a, %a) <{dimension = 0 : i64}> : (tensor<2xf32>, tensor<2xf32>) "
     "-> tensor<4xf32>"},
    {"%a: tensor<4xf32>, %i: tensor<i32>",
     "stablehlo.dynamic_slice %a, %i, sizes = [2] : (tensor<4xf32>, tensor<i32>) -> tensor<2xf32>",
     "\"stablehlo.dynamic_slice\"(%a, %i) <{slice_sizes = array<i64: 2>}> : (tensor<4xf32>, "
     "tensor<i32>) -> tensor<2xf32>"},
    {"%a: tensor<4xf32>", "stablehlo.reverse %a, dims = [0] : tensor<4xf32>",
     "\"stablehlo.reverse\"(%a) <{dimensions = array<i64: 0>}> : (tensor<4xf32>) -> "
     "tensor<4xf32>"},
    {"%a: tensor<4xf32>", "stablehlo.reduce_precision %a, format = e5m10 : tensor<4xf32>",
     "\"stablehlo.reduce_precision\"(%a) <{exponent_bits = 5 : i32, mantissa_bits = 10 : i32}> : "
     "(tensor<4xf32>) -> tensor<4xf32>"},
    {"", "stablehlo.constant dense<[1, 2]> : tensor<2xi32>",
     "\"stablehlo.constant\"() <{value = dense<\"0x0100000002000000\"> : tensor<2xi32>}> : () -> "
     "tensor<2xi32>"},
    {"%a: tensor<2xf32>",
     "stablehlo.compare  LT, %a, %a,  FLOAT : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xi1>",
     "\"stablehlo.compare\"(%a, %a) <{compare_type = #stablehlo<comparison_type FLOAT>, "
     "comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<2xf32>, "
     "tensor<2xf32>) -> tensor<2xi1>"},
    {"%a: tensor<2x3xf32>, %b: tensor<2x3xf32>",
     "stablehlo.dot_general %a, %b, batching_dims = [0] x [0], contracting_dims = [1] x [1], "
     "precision = [HIGH, DEFAULT] : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2xf32>",
     "\"stablehlo.dot_general\"(%a, %b) <{dot_dimension_numbers = "
     "#stablehlo.dot<lhs_batching_dimensions = [0], rhs_batching_dimensions = [0], "
     "lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [1]>, precision_config = "
     "[#stablehlo<precision HIGH>, #stablehlo<precision DEFAULT>]}> : (tensor<2x3xf32>, "
     "tensor<2x3xf32>) -> tensor<2xf32>"},
    {"%a: tensor<3xf32>",
     "stablehlo.dot_general %a, %a, contracting_dims = [0] x [0], precision = [DEFAULT, DEFAULT], "
     "algorithm = <lhs_precision_type = f32> : (tensor<3xf32>, tensor<3xf32>) -> tensor<f32>",
     "\"stablehlo.dot_general\"(%a, %a) <{dot_dimension_numbers = "
     "#stablehlo.dot<lhs_contracting_dimensions = [0], rhs_contracting_dimensions = [0]>, "
     "algorithm "
     "= #stablehlo.dot_algorithm<lhs_precision_type = f32>}> : (tensor<3xf32>, tensor<3xf32>) -> "
     "tensor<f32>"},
    {"%a: tensor<1x8x2xf32>, %b: tensor<3x2x4xf32>",
     "stablehlo.convolution(%a, %b) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {stride "
     "= [2], pad = [[1, 1]], lhs_dilate = [1], rhs_dilate = [1], reverse = [true]} "
     "{batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x8x2xf32>, "
     "tensor<3x2x4xf32>) -> tensor<1x4x4xf32>",
     "\"stablehlo.convolution\"(%a, %b) <{batch_group_count = 1 : i64, dimension_numbers = "
     "#stablehlo.conv<raw input_batch_dimension = 0, input_feature_dimension = 2, "
     "input_spatial_dimensions = [1], kernel_input_feature_dimension = 1, "
     "kernel_output_feature_dimension = 2, kernel_spatial_dimensions = [0], output_batch_dimension "
     "= 0, output_feature_dimension = 2, output_spatial_dimensions = [1]>, feature_group_count = 1 "
     ": i64, lhs_dilation = array<i64: 1>, padding = dense<1> : tensor<1x2xi64>, rhs_dilation = "
     "array<i64: 1>, window_reversal = array<i1: true>, window_strides = array<i64: 2>}> : "
     "(tensor<1x8x2xf32>, tensor<3x2x4xf32>) -> tensor<1x4x4xf32>"},
    {"%a: tensor<1x8x2xf32>, %b: tensor<3x2x4xf32>",
     "stablehlo.convolution(%a, %b) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f] "
     "{batch_group_count = 1 : i64, feature_group_count = 1 : i64, precision_config = "
     "[#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]} : (tensor<1x8x2xf32>, "
     "tensor<3x2x4xf32>) -> tensor<1x6x4xf32>",
     "\"stablehlo.convolution\"(%a, %b) <{batch_group_count = 1 : i64, dimension_numbers = "
     "#stablehlo.conv<[b, 0, f]x[0, i, o]->[b, 0, f]>, feature_group_count = 1 : i64}> : "
     "(tensor<1x8x2xf32>, tensor<3x2x4xf32>) -> tensor<1x6x4xf32>"},
    {"%a: tensor<4x5xf32>, %z: tensor<f32>",
     "stablehlo.reduce(%a init: %z) applies stablehlo.add across dimensions = [1] : "
     "(tensor<4x5xf32>, tensor<f32>) -> tensor<4xf32>",
     "\"stablehlo.reduce\"(%a, %z) <{dimensions = array<i64: 1>}> ({\n^bb0(%x: tensor<f32>, %y: "
     "tensor<f32>):\n %9 = stablehlo.add %x, %y : tensor<f32>\n stablehlo.return %9 : "
     "tensor<f32>\n}) : (tensor<4x5xf32>, tensor<f32>) -> tensor<4xf32>"},
    {"%a: tensor<4xf32>, %i: tensor<4xi32>, %z: tensor<f32>, %k: tensor<i32>",
     "stablehlo.reduce(%a init: %z), (%i init: %k) across dimensions = [0] : (tensor<4xf32>, "
     "tensor<4xi32>, tensor<f32>, tensor<i32>) -> (tensor<f32>, tensor<i32>)\n reducer(%x: "
     "tensor<f32>, %y: tensor<f32>) (%u: tensor<i32>, %v: tensor<i32>) {\n stablehlo.return %x, %v "
     ": tensor<f32>, tensor<i32>\n}",
     "\"stablehlo.reduce\"(%a, %i, %z, %k) <{dimensions = array<i64: 0>}> ({\n^bb0(%x: "
     "tensor<f32>, %u: tensor<i32>, %y: tensor<f32>, %v: tensor<i32>):\n stablehlo.return %x, %v : "
     "tensor<f32>, tensor<i32>\n}) : (tensor<4xf32>, tensor<4xi32>, tensor<f32>, tensor<i32>) -> "
     "(tensor<f32>, tensor<i32>)"},
    {"%a: tensor<i32>, %b: tensor<f32>",
     "stablehlo.while(%i = %a, %x = %b) : tensor<i32>, tensor<f32>\n cond {\n %8 = "
     "stablehlo.compare LT, %i, %a : (tensor<i32>, tensor<i32>) -> tensor<i1>\n stablehlo.return "
     "%8 : tensor<i1>\n} do {\n stablehlo.return %i, %x : tensor<i32>, tensor<f32>\n}",
     "\"stablehlo.while\"(%a, %b) ({\n^bb0(%i: tensor<i32>, %x: tensor<f32>):\n %8 = "
     "\"stablehlo.compare\"(%i, %a) {comparison_direction = #stablehlo<comparison_direction LT>} : "
     "(tensor<i32>, tensor<i32>) -> tensor<i1>\n \"stablehlo.return\"(%8) : (tensor<i1>) -> "
     "()\n}, {\n^bb0(%i: tensor<i32>, %x: tensor<f32>):\n stablehlo.return %i, %x : tensor<i32>, "
     "tensor<f32>\n}) : (tensor<i32>, tensor<f32>) -> (tensor<i32>, tensor<f32>)"},
    {"%a: tensor<f32>", "func.call @main(%a) : (tensor<f32>) -> ()",
     "\"func.call\"(%a) <{callee = @main}> : (tensor<f32>) -> ()"},
    {"%a: tensor<f32>",
     "stablehlo.custom_call @t(%a) {has_side_effect, mhlo.sharding = \"{x}\"} : (tensor<f32>) -> "
     "tensor<f32>",
     "\"stablehlo.custom_call\"(%a) <{call_target_name = \"t\", has_side_effect = true, "
     "result_layouts = [dense<> : tensor<0xindex>]}> {mhlo.sharding = \"{\\78}\"} : (tensor<f32>) "
     "-> tensor<f32>"},
    {"%a: tensor<5x3xi16>",
     "chlo.top_k(%a, k = 2) : tensor<5x3xi16> -> (tensor<5x2xi16>, tensor<5x2xi32>)",
     "\"chlo.top_k\"(%a) <{k = 2 : i64}> : (tensor<5x3xi16>) -> (tensor<5x2xi16>, "
     "tensor<5x2xi32>)"},
    {"%a: tensor<2xf32>, %b: tensor<i32>",
     "stablehlo.optimization_barrier %a, %b : tensor<2xf32>, tensor<i32>",
     "\"stablehlo.optimization_barrier\"(%a, %b) : (tensor<2xf32>, tensor<i32>) -> "
     "(tensor<2xf32>, tensor<i32>)"},
    {"%s: tensor<2xui64>",
     "stablehlo.rng_bit_generator %s, algorithm =  THREE_FRY : (tensor<2xui64>) -> "
     "(tensor<2xui64>, tensor<4xui32>)",
     "\"stablehlo.rng_bit_generator\"(%s) <{rng_algorithm = #stablehlo<rng_algorithm THREE_FRY>}> "
     ": (tensor<2xui64>) -> (tensor<2xui64>, tensor<4xui32>)"},
    {"%a: tensor<2x2xf32>", "stablehlo.cholesky %a, lower = true : tensor<2x2xf32>",
     "\"stablehlo.cholesky\"(%a) <{lower = true}> : (tensor<2x2xf32>) -> tensor<2x2xf32>"},
};

static void assert_same_block(const fixture *f, const sf_block *x, const fixture *g,
                              const sf_block *y);

static void assert_same_node(const fixture *f, const sf_node *x, const fixture *g, const sf_node *y)
{
    assert_ptr_equal(x->def, y->def);
    assert_int_equal(x->noperands, y->noperands);
    assert_int_equal(x->nresults, y->nresults);
    assert_int_equal(x->nregions, y->nregions);
    for (uint32_t i = 0; i < x->noperands; i++)
        assert_int_equal(x->operands[i], y->operands[i]);
    for (uint32_t i = 0; i < x->nresults; i++)
        assert_ptr_equal(sf_type_of(f->module->graph, x->result + i),
                         sf_type_of(g->module->graph, y->result + i));
    for (int i = 0; i < x->def->nattrs; i++)
        if (x->attrs[i] != y->attrs[i])
            fail_msg("%s: attribute %s differs", x->def->name, x->def->attrs[i].name);
    for (uint32_t i = 0; i < x->nregions; i++)
        assert_same_block(f, x->regions[i], g, y->regions[i]);
}

static void assert_same_block(const fixture *f, const sf_block *x, const fixture *g,
                              const sf_block *y)
{
    assert_int_equal(x->narguments, y->narguments);
    assert_int_equal(x->nnodes, y->nnodes);
    assert_int_equal(x->nresults, y->nresults);
    for (uint32_t i = 0; i < x->narguments; i++)
        assert_ptr_equal(sf_type_of(f->module->graph, x->arguments[i]),
                         sf_type_of(g->module->graph, y->arguments[i]));
    for (uint32_t i = 0; i < x->nnodes; i++)
        assert_same_node(f, f->module->graph->nodes[x->nodes[i]], g,
                         g->module->graph->nodes[y->nodes[i]]);
    for (uint32_t i = 0; i < x->nresults; i++)
        assert_int_equal(x->results[i], y->results[i]);
}

static void test_spellings(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof spellings / sizeof *spellings; i++) {
        sf_pool *pool = sf_pool_new();
        char text[2][4096];
        const char *ops[2] = {spellings[i].pretty, spellings[i].generic};
        fixture f[2];
        for (int k = 0; k < 2; k++) {
            int length =
                snprintf(text[k], sizeof text[k], "func.func @main(%s) {\n  %s\n  return\n}",
                         spellings[i].parameters, ops[k]);
            f[k] = read_part(pool, text[k], (size_t)length);
            if (f[k].status != SF_OK)
                fail_msg("%s\n%s", sf_diag_text(f[k].diag, 0), text[k]);
        }
        assert_int_equal(f[0].module->entry->block->nnodes, 1);
        assert_same_block(&f[0], f[0].module->entry->block, &f[1], f[1].module->entry->block);
        drop(&f[0]);
        drop(&f[1]);
        sf_pool_release(pool);
    }
}

static void test_attributes_of_pretty_forms(void **state)
{
    (void)state;
    fixture f = read_good(
        "func.func @main(%a: tensor<1x8x8x2xf32>, %b: tensor<3x3x2x4xf32>) {\n"
        "  %0 = stablehlo.convolution(%a, %b) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, "
        "f],"
        " window = {stride = [2, 1], pad = [[1, 1], [0, 2]]} {batch_group_count = 1 : i64, "
        "feature_group_count = 1 : i64} : (tensor<1x8x8x2xf32>, tensor<3x3x2x4xf32>) -> "
        "tensor<1x4x8x4xf32>\n"
        "  %1 = stablehlo.slice %0 [0:1, 1:4:2, 0:8, 3:4] : (tensor<1x4x8x4xf32>) -> "
        "tensor<1x2x8x1xf32>\n  return\n}\n");
    const sf_node *conv = node_at(&f, 0), *slice = node_at(&f, 1);
    assert_ints(conv, "padding", 4, (int64_t[]){1, 1, 0, 2});
    assert_ints(conv, "window_strides", 2, (int64_t[]){2, 1});
    assert_ints(conv, "kernel_spatial_dimensions", 2, (int64_t[]){0, 1});
    assert_int_equal(attr_of(conv, "kernel_output_feature_dimension")->integer, 3);
    assert_null(attr_of(conv, "precision_config"));
    assert_ints(slice, "start_indices", 4, (int64_t[]){0, 1, 0, 3});
    assert_ints(slice, "limit_indices", 4, (int64_t[]){1, 4, 8, 4});
    assert_ints(slice, "strides", 4, (int64_t[]){1, 2, 1, 1});
    assert_int_equal(slice->loc.line, 3);
    assert_int_equal(slice->loc.column, 8);
    drop(&f);
}

static void test_if_becomes_case(void **state)
{
    (void)state;
    fixture f = read_good("func.func @main(%p: tensor<i1>, %x: tensor<f32>) -> tensor<f32> {\n"
                          "  %0 = \"stablehlo.if\"(%p) ({\n    stablehlo.return %x : tensor<f32>\n"
                          "  }, {\n    %1 = stablehlo.negate %x : tensor<f32>\n"
                          "    stablehlo.return %1 : tensor<f32>\n"
                          "  }) : (tensor<i1>) -> tensor<f32> loc(\"here\")\n"
                          "  return %0 : tensor<f32>\n}\n");
    const sf_node *convert = node_at(&f, 0), *choice = node_at(&f, 1);
    assert_true(sf_is(convert, SF_OP_CONVERT));
    assert_true(sf_is(choice, SF_OP_CASE));
    assert_int_equal(choice->operands[0], convert->result);
    assert_int_equal(choice->regions[0]->nnodes, 1); /* 0 is false: the second branch */
    assert_int_equal(choice->regions[1]->nnodes, 0);
    assert_string_equal(f.module->paths[convert->id], "here");
    assert_string_equal(f.module->paths[choice->id], "here");
    drop(&f);
}

static void test_function_header(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "module @m {\n"
        "func.func private @f(%a: tensor<2xf32>) -> tensor<2xf32> {\n return %a : "
        "tensor<2xf32>\n}\n"
        "func.func public @main(%a: tensor<2xf32> {tf.aliasing_output = 1 : i32} loc(\"p['w']\"), "
        "%b: tensor<i32> {mhlo.sharding = \"{replicated}\", jax.buffer_donor = true} loc(#b)) -> "
        "(tensor<i32> {jax.result_info = \"[0]\"}, tensor<2xf32> {mhlo.sharding = \"{x}\"}) {\n"
        " return %b, %a : tensor<i32>, tensor<2xf32>\n}\n}\n#b = loc(\"step\")\n",
        "\"builtin.module\"() <{sym_name = \"m\"}> ({\n"
        "\"func.func\"() <{arg_attrs = [{tf.aliasing_output = 1 : i32}, {mhlo.sharding = "
        "\"{replicated}\", jax.buffer_donor = true}], function_type = (tensor<2xf32>, tensor<i32>) "
        "-> "
        "(tensor<i32>, tensor<2xf32>), res_attrs = [{jax.result_info = \"[0]\"}, {mhlo.sharding = "
        "\"{x}\"}], sym_name = \"main\"}> ({\n"
        "^bb0(%a: tensor<2xf32> loc(\"p['w']\"), %b: tensor<i32> loc(#b)):\n"
        " \"func.return\"(%b, %a) : (tensor<i32>, tensor<2xf32>) -> ()\n}) : () -> ()\n"
        "\"func.func\"() <{function_type = (tensor<f32>) -> tensor<f32>, sym_name = \"f\", "
        "sym_visibility = \"private\"}> ({\n^bb0(%a: tensor<f32>):\n"
        " \"func.return\"(%a) : (tensor<f32>) -> ()\n}) : () -> ()\n"
        "}) {mhlo.x = 1 : i32} : () -> ()\n#b = loc(\"step\")\n",
    };
    for (int i = 0; i < 2; i++) {
        fixture f = read_good(texts[i]);
        const sf_func *entry = f.module->entry;
        assert_string_equal(entry->name, "main");
        assert_int_equal(f.module->nfuncs, 2);
        assert_int_equal(entry->block->narguments, 2);
        assert_string_equal(entry->arguments[0].name, "p['w']");
        assert_int_equal(entry->arguments[0].next, 1);
        assert_int_equal(entry->arguments[0].next_from, SF_FROM_ALIAS);
        assert_null(entry->arguments[0].sharding);
        assert_string_equal(entry->arguments[1].name, "step");
        assert_int_equal(entry->arguments[1].next, SF_NONE);
        assert_string_equal(entry->arguments[1].sharding, "{replicated}");
        assert_string_equal(entry->results[0].name, "[0]");
        assert_null(entry->results[1].name);
        assert_string_equal(entry->results[1].sharding, "{x}");
        drop(&f);
    }
}

static void test_entry(void **state)
{
    (void)state;
    static const struct {
        const char *text, *entry;
    } cases[] = {
        {"func.func private @a() {\n return\n}\nfunc.func private @b() {\n return\n}", "a"},
        {"func.func private @main() {\n return\n}\nfunc.func @b() {\n return\n}", "b"},
        {"func.func @a() {\n return\n}\nfunc.func public @main() {\n return\n}", "main"},
        {"func.func private @d(tensor<f32>) -> tensor<f32>\nfunc.func @a() {\n return\n}", "a"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        fixture f = read_good(cases[i].text);
        assert_string_equal(f.module->entry->name, cases[i].entry);
        drop(&f);
    }
}

/* A location at the end of an op, the text after the function, and the path that follows. */
static const struct {
    const char *location, *definitions, *path;
} locations[] = {
    {"", "", NULL},
    {"loc(unknown)", "", NULL},
    {"loc(\"f.py\":1:2)", "", NULL},
    {"loc(\"f.py\":1:2 to 3:4)", "", NULL},
    {"loc(\"f.py\":1:2 to :4)", "", NULL},
    {"loc(\"a/b\")", "", "a/b"},
    {"loc(\"a/b\"(\"f.py\":1:2))", "", "a/b"},
    {"loc(\"a/b\"(\"inner\"))", "", "a/b"},
    {"loc(\"a \\22b\\22 \\\\\")", "", "a \"b\" \\"},
    {"loc(#l)", "#l = loc(\"late\"(#m))\n#m = loc(unknown)\n", "late"},
    {"loc(#l)", "", NULL},
    {"loc(#l)", "#l = loc(#m)\n#m = loc(#n)\n#n = loc(\"deep\")\n", "deep"},
    {"loc(callsite(\"f\":1:2 at \"caller\"))", "", "caller"},
    {"loc(callsite(\"callee\" at \"caller\"))", "", "callee"},
    {"loc(callsite(#l at #m))", "#m = loc(callsite(#l at \"x\"))\n#l = loc(\"f\":1:2)\n", "x"},
    {"loc(fused[\"f\":1:2, \"second\", \"third\"])", "", "second"},
    {"loc(fused<\"data\">[#l, #m])", "#l = loc(unknown)\n#m = loc(\"m\")\n", "m"},
    {"loc(fused[])", "", NULL},
    {"loc(#l)", "#l = loc(#l)\n", NULL},
    {"loc(#l)", "#l = loc(callsite(#m at #l))\n#m = loc(fused[#l, #m])\n", NULL},
    {"loc(#l)", "#l = loc(fused[#m, \"x\"])\n#m = loc(callsite(#l at #l))\n", "x"},
};

static void test_locations(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof locations / sizeof *locations; i++) {
        char text[512];
        snprintf(text, sizeof text,
                 "func.func @main(%%a: tensor<f32>) {\n  %%0 = stablehlo.negate %%a : tensor<f32> "
                 "%s\n  return\n}\n%s",
                 locations[i].location, locations[i].definitions);
        fixture f = read_good(text);
        const char *path = f.module->paths[node_at(&f, 0)->id];
        if (locations[i].path)
            assert_string_equal(path, locations[i].path);
        else
            assert_null(path);
        drop(&f);
    }
}

static void test_long_chain_of_locations(void **state)
{
    (void)state;
    enum { LENGTH = 20000 };
    sf_buf text = {0};
    sf_buf_puts(&text, "func.func @main(%a: tensor<f32>) {\n");
    sf_buf_puts(&text, "  %0 = stablehlo.negate %a : tensor<f32> loc(#l0)\n  return\n}\n");
    for (int i = 0; i < LENGTH; i++)
        sf_buf_printf(&text, "#l%d = loc(callsite(\"f\":1:2 at #l%d))\n", i, i + 1);
    sf_buf_printf(&text, "#l%d = loc(\"end\")\n", LENGTH);
    fixture f = read_good(text.text);
    assert_string_equal(f.module->paths[0], "end");
    drop(&f);
    sf_buf_free(&text);
}

static void test_literals(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t index;
        double value;
    } cases[] = {
        {"dense<1.5> : tensor<1000000000xf32>", 999999999, 1.5},
        {"dense<[[1, 2, 3], [4, 5, 6]]> : tensor<2x3xi32>", 5, 6},
        {"dense<[[1, 2, 3],\n [4, 5, 6]]> : tensor<2x3xf32>", 3, 4},
        {"dense<-1> : tensor<i8>", 0, -1},
        {"dense<255> : tensor<i8>", 0, -1},
        {"dense<255> : tensor<ui8>", 0, 255},
        {"dense<true> : tensor<4xi1>", 3, 1},
        {"dense<[false, true]> : tensor<2xi1>", 1, 1},
        {"dense<\"0x05\"> : tensor<3xi1>", 2, 1},
        {"dense<\"0x05\"> : tensor<3xi1>", 1, 0},
        {"dense<\"0x000100\"> : tensor<3xi1>", 1, 1},
        {"dense<\"0xFF\"> : tensor<20xi1>", 19, 1},
        {"dense<\"0x0000803F0000C03F\"> : tensor<2xf32>", 1, 1.5},
        {"dense<\"0x0000C03F\"> : tensor<7xf32>", 6, 1.5},
        {"dense<\"0x0F01\"> : tensor<2xi4>", 0, -1},
        {"dense<\"0x803FC03F\"> : tensor<2xbf16>", 1, 1.5},
        {"dense<0x7FC00000> : tensor<f32>", 0, (double)NAN},
        {"dense<0xFF800000> : tensor<f32>", 0, -(double)INFINITY},
        {"dense<0x3FC0> : tensor<bf16>", 0, 1.5},
        {"dense<3.40282347E+38> : tensor<f32>", 0, 0x1.fffffep127},
        {"dense<1.17549435E-38> : tensor<f32>", 0, 0x1p-126},
        {"dense<1.401298464324817e-45> : tensor<f32>", 0, 0x1p-149},
        {"dense<0.1> : tensor<f32>", 0, (double)0.1f},
        {"dense<1.00000005960464477539062501> : tensor<f32>", 0, 0x1.000002p0},
        {"dense<1.000000059604644775390625> : tensor<f32>", 0, 1.0},
        {"dense<0.1> : tensor<f64>", 0, 0.1},
        {"dense<1.7976931348623157e+308> : tensor<f64>", 0, 0x1.fffffffffffffp1023},
        {"dense<123456789012345678> : tensor<f64>", 0, 123456789012345678.0},
        {"dense<-0.0> : tensor<f32>", 0, -0.0},
        {"dense<1.0e+400> : tensor<f64>", 0, (double)INFINITY},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[256];
        snprintf(text, sizeof text,
                 "func.func @main() {\n  %%0 = stablehlo.constant %s\n  return\n}\n",
                 cases[i].text);
        fixture f = read_good(text);
        const sf_dense *dense = &attr_of(node_at(&f, 0), "value")->dense;
        double value =
            sf_load_f64(dense->type->dtype, dense->data, sf_dense_at(dense, cases[i].index));
        bool same = value == cases[i].value || (value != value && cases[i].value != cases[i].value);
        if (!same || (value == 0 && 1 / value != 1 / cases[i].value))
            fail_msg("%s gives %.17g", cases[i].text, value);
        drop(&f);
    }
}

static void test_empty_literal(void **state)
{
    (void)state;
    fixture f =
        read_good("func.func @main() {\n  %0 = stablehlo.constant dense<> : tensor<0x3xf32>\n"
                  "  %1 = stablehlo.constant dense<[]> : tensor<0xf32>\n"
                  "  %2 = stablehlo.constant dense<1.0> : tensor<0xf32>\n  return\n}\n");
    assert_int_equal(attr_of(node_at(&f, 0), "value")->dense.type->count, 0);
    drop(&f);
}

/* A custom call whose target, configuration and sharding are these bytes, as a string of MLIR has them: all in hexadecimal, or
 * only those that must be. The configuration alone may have a zero byte: in others 1 is in its place. */
static void put_call(const unsigned char *bytes, size_t count, bool all, sf_buf *out)
{
    static const char *const before[] = {("func.func @main(%a: tensor<f32>) -> tensor<f32> {\n"
                                          "%0 = stablehlo.custom_call @"),
                                         "(%a) {backend_config = ", ", mhlo.sharding = "};
    for (int part = 0; part < 3; part++) {
        sf_buf_puts(out, before[part]);
        sf_buf_putc(out, '"');
        for (size_t i = 0; i < count; i++) {
            unsigned char c = bytes[i];
            if (c == 0 && part != 1)
                sf_buf_puts(out, "\\01");
            else if (all || c == '\n' || c == 0)
                sf_buf_printf(out, i % 2 ? "\\%02X" : "\\%02x", c);
            else if (c == '"' || c == '\\')
                sf_buf_printf(out, "\\%c", c);
            else
                sf_buf_putc(out, (char)c);
        }
        sf_buf_putc(out, '"');
    }
    sf_buf_puts(out, "} : (tensor<f32>) -> tensor<f32>\nreturn %0 : tensor<f32>\n}\n");
}

static void assert_bytes(const sf_graph *graph, const unsigned char *bytes, size_t count)
{
    static const char *const names[] = {"call_target_name", "backend_config", "mhlo.sharding"};
    for (int i = 0; i < 3; i++) {
        const sf_attr *attr = attr_of(graph->nodes[graph->top->nodes[0]], names[i]);
        assert_int_equal(attr->count, count);
        for (size_t b = 0; b < count; b++)
            assert_int_equal((unsigned char)attr->text[b], bytes[b] || i == 1 ? bytes[b] : 1);
    }
}

static void test_zero_bytes_of_words(void **state)
{
    static const char *const calls[] = {"@\"Sharding\\00\"(%a)",
                                        "@t(%a) {mhlo.sharding = \"{replicated}\\00\"}"};
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        char text[300];
        snprintf(
            text, sizeof text,
            "func.func @main(%%a: tensor<f32>) -> tensor<f32> {\n%%0 = stablehlo.custom_call %s : "
            "(tensor<f32>) -> tensor<f32>\nreturn %%0 : tensor<f32>\n}\n",
            calls[i]);
        fixture f = read_text(text);
        assert_int_equal(f.status, SF_EINPUT);
        assert_non_null(strstr(sf_diag_text(f.diag, 0), "has a zero byte"));
        drop(&f);
    }
}

/* Strings of attributes are bytes: all 256 of them, in any order, are printed as they were read. */
static void test_bytes_of_strings(void **state)
{
    (void)state;
    unsigned char bytes[256];
    for (unsigned first = 0; first < 256; first++) {
        for (unsigned i = 0; i < 256; i++)
            bytes[i] = (unsigned char)(first + i * (2 * (first % 64) + 1));
        size_t count = first % 3 ? 256 : 1;
        sf_buf text = {0};
        put_call(bytes, count, first % 2, &text);
        uint64_t hash = 0;
        for (int time = 0; time < 2; time++) {
            sf_pool *pool = sf_pool_new();
            fixture f = read_part(pool, text.text, text.length);
            assert_good(&f);
            sf_graph *graph;
            assert_int_equal(
                sf_import(f.module, &(sf_import_options){.most_nodes = 10}, f.diag, &graph), SF_OK);
            assert_bytes(graph, bytes, count);
            assert_true(time == 0 || hash == sf_graph_hash(graph));
            hash = sf_graph_hash(graph);
            text.length = 0;
            sf_print_stablehlo(graph, &text);
            sf_graph_free(graph);
            drop(&f);
            sf_pool_release(pool);
        }
        sf_buf_free(&text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_spellings),
        cmocka_unit_test(test_bytes_of_strings),
        cmocka_unit_test(test_zero_bytes_of_words),
        cmocka_unit_test(test_attributes_of_pretty_forms),
        cmocka_unit_test(test_if_becomes_case),
        cmocka_unit_test(test_function_header),
        cmocka_unit_test(test_entry),
        cmocka_unit_test(test_locations),
        cmocka_unit_test(test_long_chain_of_locations),
        cmocka_unit_test(test_literals),
        cmocka_unit_test(test_empty_literal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
