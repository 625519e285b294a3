#include "report/samples.h"

#include <string.h>

struct sample {
    sf_opcode op;
    const char *arguments;
    const char *use;
    const char *results; /* values */
    const char *types;   /* of them */
};

#define BODY(op)                                                                                   \
    "  ^bb0(%x: tensor<f32>, %y: tensor<f32>):\n"                                                  \
    "    %z = stablehlo." op " %x, %y : tensor<f32>\n"                                             \
    "    stablehlo.return %z : tensor<f32>\n"

static const struct sample samples[] = {
    {SF_OP_COMPARE, "%a: tensor<3x4xf32>, %b: tensor<3x4xf32>",
     "%r = stablehlo.compare LT, %a, %b, FLOAT : (tensor<3x4xf32>, tensor<3x4xf32>) -> "
     "tensor<3x4xi1>",
     "%r", "tensor<3x4xi1>"},
    {SF_OP_CLAMP, "%a: tensor<f32>, %b: tensor<3x4xf32>, %c: tensor<f32>",
     "%r = stablehlo.clamp %a, %b, %c : (tensor<f32>, tensor<3x4xf32>, tensor<f32>) -> "
     "tensor<3x4xf32>",
     "%r", "tensor<3x4xf32>"},
    {SF_OP_SELECT, "%p: tensor<3x4xi1>, %a: tensor<3x4xf32>, %b: tensor<3x4xf32>",
     "%r = stablehlo.select %p, %a, %b : tensor<3x4xi1>, tensor<3x4xf32>", "%r", "tensor<3x4xf32>"},
    {SF_OP_BITCAST_CONVERT, "%a: tensor<3x4xf32>",
     "%r = stablehlo.bitcast_convert %a : (tensor<3x4xf32>) -> tensor<3x4x2xbf16>", "%r",
     "tensor<3x4x2xbf16>"},
    {SF_OP_CONVERT, "%a: tensor<3x4xf32>",
     "%r = stablehlo.convert %a : (tensor<3x4xf32>) -> tensor<3x4xbf16>", "%r", "tensor<3x4xbf16>"},
    {SF_OP_REDUCE_PRECISION, "%a: tensor<3x4xf32>",
     "%r = stablehlo.reduce_precision %a, format = e5m10 : tensor<3x4xf32>", "%r",
     "tensor<3x4xf32>"},
    {SF_OP_BROADCAST_IN_DIM, "%a: tensor<4xf32>",
     "%r = stablehlo.broadcast_in_dim %a, dims = [1] : (tensor<4xf32>) -> tensor<3x4xf32>", "%r",
     "tensor<3x4xf32>"},
    {SF_OP_CONSTANT, "", "%r = stablehlo.constant dense<1.5> : tensor<3x4xf32>", "%r",
     "tensor<3x4xf32>"},
    {SF_OP_IOTA, "", "%r = stablehlo.iota dim = 1 : tensor<3x4xi32>", "%r", "tensor<3x4xi32>"},
    {SF_OP_FFT, "%a: tensor<3x4x8xcomplex<f32>>",
     "%r = stablehlo.fft %a, type = FFT, length = [8] : (tensor<3x4x8xcomplex<f32>>) -> "
     "tensor<3x4x8xcomplex<f32>>",
     "%r", "tensor<3x4x8xcomplex<f32>>"},
    {SF_OP_RESHAPE, "%a: tensor<8x4xf32>",
     "%r = stablehlo.reshape %a : (tensor<8x4xf32>) -> tensor<2x16xf32>", "%r", "tensor<2x16xf32>"},
    {SF_OP_TRANSPOSE, "%a: tensor<3x4xf32>",
     "%r = stablehlo.transpose %a, dims = [1, 0] : (tensor<3x4xf32>) -> tensor<4x3xf32>", "%r",
     "tensor<4x3xf32>"},
    {SF_OP_CONCATENATE, "%a: tensor<3x4xf32>, %b: tensor<3x2xf32>",
     "%r = stablehlo.concatenate %a, %b, dim = 1 : (tensor<3x4xf32>, tensor<3x2xf32>) -> "
     "tensor<3x6xf32>",
     "%r", "tensor<3x6xf32>"},
    {SF_OP_DYNAMIC_SLICE, "%a: tensor<3x8xf32>, %i: tensor<i32>, %j: tensor<i32>",
     "%r = stablehlo.dynamic_slice %a, %i, %j, sizes = [3, 2] : (tensor<3x8xf32>, tensor<i32>, "
     "tensor<i32>) -> tensor<3x2xf32>",
     "%r", "tensor<3x2xf32>"},
    {SF_OP_DYNAMIC_UPDATE_SLICE,
     "%a: tensor<3x8xf32>, %b: tensor<3x2xf32>, %i: tensor<i32>, %j: tensor<i32>",
     "%r = stablehlo.dynamic_update_slice %a, %b, %i, %j : (tensor<3x8xf32>, tensor<3x2xf32>, "
     "tensor<i32>, tensor<i32>) -> tensor<3x8xf32>",
     "%r", "tensor<3x8xf32>"},
    {SF_OP_PAD, "%a: tensor<3x4xf32>, %b: tensor<f32>",
     "%r = stablehlo.pad %a, %b, low = [0, 1], high = [0, 1], interior = [0, 0] : "
     "(tensor<3x4xf32>, tensor<f32>) -> tensor<3x6xf32>",
     "%r", "tensor<3x6xf32>"},
    {SF_OP_REVERSE, "%a: tensor<3x4xf32>",
     "%r = stablehlo.reverse %a, dims = [1] : tensor<3x4xf32>", "%r", "tensor<3x4xf32>"},
    {SF_OP_SLICE, "%a: tensor<3x8xf32>",
     "%r = stablehlo.slice %a [0:3, 2:6] : (tensor<3x8xf32>) -> tensor<3x4xf32>", "%r",
     "tensor<3x4xf32>"},
    {SF_OP_DOT_GENERAL, "%a: tensor<2x3x4xf32>, %b: tensor<2x4x5xf32>",
     "%r = stablehlo.dot_general %a, %b, batching_dims = [0] x [0], contracting_dims = [2] x [1] "
     ": (tensor<2x3x4xf32>, tensor<2x4x5xf32>) -> tensor<2x3x5xf32>",
     "%r", "tensor<2x3x5xf32>"},
    {SF_OP_CONVOLUTION, "%a: tensor<2x8x3xf32>, %b: tensor<3x3x4xf32>",
     "%r = stablehlo.convolution(%a, %b) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = "
     "{pad = [[1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : "
     "(tensor<2x8x3xf32>, tensor<3x3x4xf32>) -> tensor<2x8x4xf32>",
     "%r", "tensor<2x8x4xf32>"},
    {SF_OP_REDUCE, "%a: tensor<3x4xf32>, %b: tensor<f32>",
     "%r = stablehlo.reduce(%a init: %b) applies stablehlo.add across dimensions = [1] : "
     "(tensor<3x4xf32>, tensor<f32>) -> tensor<3xf32>",
     "%r", "tensor<3xf32>"},
    {SF_OP_REDUCE_WINDOW, "%a: tensor<3x8xf32>, %b: tensor<f32>",
     "%r = \"stablehlo.reduce_window\"(%a, %b) <{window_dimensions = array<i64: 1, 2>, "
     "window_strides = array<i64: 1, 2>}> ({\n" BODY("add") "  }) : (tensor<3x8xf32>, "
                                                            "tensor<f32>) -> tensor<3x4xf32>",
     "%r", "tensor<3x4xf32>"},
    {SF_OP_SELECT_AND_SCATTER, "%a: tensor<3x8xf32>, %b: tensor<3x4xf32>, %c: tensor<f32>",
     "%r = \"stablehlo.select_and_scatter\"(%a, %b, %c) <{window_dimensions = array<i64: 1, 2>, "
     "window_strides = array<i64: 1, 2>}> ({\n"
     "  ^bb0(%x: tensor<f32>, %y: tensor<f32>):\n"
     "    %z = stablehlo.compare GE, %x, %y, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>\n"
     "    stablehlo.return %z : tensor<i1>\n"
     "  }, {\n" BODY("add") "  }) : (tensor<3x8xf32>, tensor<3x4xf32>, tensor<f32>) -> "
                            "tensor<3x8xf32>",
     "%r", "tensor<3x8xf32>"},
    {SF_OP_GATHER, "%a: tensor<10x4xf32>, %i: tensor<3x1xi32>",
     "%r = \"stablehlo.gather\"(%a, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], "
     "collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, "
     "indices_are_sorted = false, slice_sizes = array<i64: 1, 4>}> : (tensor<10x4xf32>, "
     "tensor<3x1xi32>) -> tensor<3x4xf32>",
     "%r", "tensor<3x4xf32>"},
    {SF_OP_SCATTER, "%a: tensor<10x4xf32>, %i: tensor<3x1xi32>, %u: tensor<3x4xf32>",
     "%r = \"stablehlo.scatter\"(%a, %i, %u) <{indices_are_sorted = false, "
     "scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], "
     "inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, "
     "unique_indices = false}> ({\n" BODY("add") "  }) : (tensor<10x4xf32>, tensor<3x1xi32>, "
                                                 "tensor<3x4xf32>) -> tensor<10x4xf32>",
     "%r", "tensor<10x4xf32>"},
    {SF_OP_SORT, "%a: tensor<3x4xf32>",
     "%r = \"stablehlo.sort\"(%a) <{dimension = 1 : i64, is_stable = true}> ({\n"
     "  ^bb0(%x: tensor<f32>, %y: tensor<f32>):\n"
     "    %z = stablehlo.compare LT, %x, %y, TOTALORDER : (tensor<f32>, tensor<f32>) -> "
     "tensor<i1>\n"
     "    stablehlo.return %z : tensor<i1>\n"
     "  }) : (tensor<3x4xf32>) -> tensor<3x4xf32>",
     "%r", "tensor<3x4xf32>"},
    {SF_OP_TOP_K, "%a: tensor<3x8xf32>",
     "%r:2 = chlo.top_k(%a, k = 2) : tensor<3x8xf32> -> (tensor<3x2xf32>, tensor<3x2xi32>)",
     "%r#0, %r#1", "tensor<3x2xf32>, tensor<3x2xi32>"},
    {SF_OP_CHOLESKY, "%a: tensor<2x3x3xf32>",
     "%r = stablehlo.cholesky %a, lower = true : tensor<2x3x3xf32>", "%r", "tensor<2x3x3xf32>"},
    {SF_OP_TRIANGULAR_SOLVE, "%a: tensor<2x3x3xf32>, %b: tensor<2x3x4xf32>",
     "%r = \"stablehlo.triangular_solve\"(%a, %b) <{left_side = true, lower = true, transpose_a = "
     "#stablehlo<transpose NO_TRANSPOSE>, unit_diagonal = false}> : (tensor<2x3x3xf32>, "
     "tensor<2x3x4xf32>) -> tensor<2x3x4xf32>",
     "%r", "tensor<2x3x4xf32>"},
    {SF_OP_RNG_BIT_GENERATOR, "%a: tensor<2xui64>",
     "%r:2 = stablehlo.rng_bit_generator %a, algorithm = THREE_FRY : (tensor<2xui64>) -> "
     "(tensor<2xui64>, tensor<3x4xui32>)",
     "%r#0, %r#1", "tensor<2xui64>, tensor<3x4xui32>"},
    {SF_OP_OPTIMIZATION_BARRIER, "%a: tensor<3x4xf32>",
     "%r = stablehlo.optimization_barrier %a : tensor<3x4xf32>", "%r", "tensor<3x4xf32>"},
    {SF_OP_ALL_GATHER, "%a: tensor<3x4xf32>",
     "%r = \"sheaf.all_gather\"(%a) <{axes = 1 : i64, size = 2 : i64, number = 0 : i64}> : "
     "(tensor<3x4xf32>) -> tensor<2x3x4xf32>",
     "%r", "tensor<2x3x4xf32>"},
    {SF_OP_ALL_REDUCE, "%a: tensor<3x4xf32>",
     "%r = \"sheaf.all_reduce\"(%a) <{axes = 1 : i64, size = 2 : i64, number = 0 : i64}> "
     "({\n" BODY("add") "  }) : (tensor<3x4xf32>) -> tensor<3x4xf32>",
     "%r", "tensor<3x4xf32>"},
    {SF_OP_ALL_TO_ALL, "%a: tensor<2x3x4xf32>",
     "%r = \"sheaf.all_to_all\"(%a) <{axes = 1 : i64, size = 2 : i64, number = 0 : i64}> : "
     "(tensor<2x3x4xf32>) -> tensor<2x3x4xf32>",
     "%r", "tensor<2x3x4xf32>"},
    {SF_OP_PERMUTE, "%a: tensor<3x4xf32>",
     "%r = \"sheaf.permute\"(%a) <{axes = 3 : i64, size = 4 : i64, number = 0 : i64}> : "
     "(tensor<3x4xf32>) -> tensor<3x4xf32>",
     "%r", "tensor<3x4xf32>"},
    {SF_OP_REDUCE_SCATTER, "%a: tensor<2x3x4xf32>",
     "%r = \"sheaf.reduce_scatter\"(%a) <{axes = 1 : i64, size = 2 : i64, number = 0 : i64}> "
     "({\n" BODY("add") "  }) : (tensor<2x3x4xf32>) -> tensor<3x4xf32>",
     "%r", "tensor<3x4xf32>"},
    {SF_OP_SEND, "%a: tensor<3x4xf32>",
     "\"sheaf.send\"(%a) <{axes = 1 : i64, size = 2 : i64, number = 0 : i64, peer = 1 : i64}> : "
     "(tensor<3x4xf32>) -> ()",
     "%a", "tensor<3x4xf32>"},
    {SF_OP_RECEIVE, "",
     "%r = \"sheaf.receive\"() <{axes = 1 : i64, size = 2 : i64, number = 0 : i64, peer = 0 : "
     "i64, arrived = 0 : i64}> : () -> tensor<3x4xf32>",
     "%r", "tensor<3x4xf32>"},
};

static void put_step(sf_buf *step, const char *arguments, const char *use, const char *results,
                     const char *types)
{
    sf_buf_printf(step,
                  "func.func @main(%s) -> (%s) {\n"
                  "  %s\n"
                  "  return %s : %s\n"
                  "}\n",
                  arguments, types, use, results, types);
}

bool sf_sample(const sf_opdef *def, sf_buf *step)
{
    for (size_t i = 0; i < sizeof samples / sizeof *samples; i++)
        if (def->id == (int)samples[i].op) {
            put_step(step, samples[i].arguments, samples[i].use, samples[i].results,
                     samples[i].types);
            return true;
        }
    return false;
}

void sf_sample_pointwise(const sf_opdef *def, sf_dtype dtype, sf_buf *step)
{
    const char *type = sf_dtype_get(dtype)->name;
    const char *made = def->id == SF_OP_IS_FINITE ? "i1" : type;
    sf_dtype complex;
    if (def->id == SF_OP_COMPLEX && sf_complex_of(dtype, &complex))
        made = sf_dtype_get(complex)->name;
    sf_buf arguments = {0}, use = {0}, operands = {0}, types = {0}, result = {0};
    for (int i = 0; i < def->min_operands; i++) {
        const char *comma = i ? ", " : "";
        sf_buf_printf(&arguments, "%s%%a%d: tensor<3x4x%s>", comma, i, type);
        sf_buf_printf(&operands, "%s%%a%d", comma, i);
        sf_buf_printf(&types, "%stensor<3x4x%s>", comma, type);
    }
    sf_buf_printf(&result, "tensor<3x4x%s>", made);
    sf_buf_printf(&use, "%%r = \"%s.%s\"(%s) : (%s) -> %s", def->dialect, def->name, operands.text,
                  types.text, result.text);
    put_step(step, arguments.text, use.text, "%r", result.text);
    sf_buf_free(&arguments);
    sf_buf_free(&use);
    sf_buf_free(&operands);
    sf_buf_free(&types);
    sf_buf_free(&result);
}
