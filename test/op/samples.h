/* Small instances of every op that is not plainly pointwise, as StableHLO text. Each line of a
 * sample is the body of a function whose arguments come before "|"; the last line of the body is
 * the op under test, its results are returned. */
#ifndef TEST_OP_SAMPLES_H
#define TEST_OP_SAMPLES_H

typedef struct sample {
    const char *arguments; /* "%a: tensor<2xf32>, %b: tensor<2xf32>" */
    const char *body;      /* statements; results are named %r or %r:N */
    const char *results;   /* "tensor<2xf32>" or "tensor<..>, tensor<..>" */
} sample;

/* clang-format off */
#define BODY(op, t) "({ ^bb0(%p: tensor<" t ">, %q: tensor<" t ">): %s = stablehlo." op \
    " %p, %q : tensor<" t "> stablehlo.return %s : tensor<" t "> })"
#define SECOND(t) "({ ^bb0(%p: tensor<" t ">, %q: tensor<" t ">): stablehlo.return %q : tensor<" t "> })"
#define COMPARE(direction, t) "{ ^bb0(%p: tensor<" t ">, %q: tensor<" t ">): %s = stablehlo.compare " direction \
    ", %p, %q : (tensor<" t ">, tensor<" t ">) -> tensor<i1> stablehlo.return %s : tensor<i1> }"

static const sample samples[] = {
    /* complex */
    {"%a: tensor<4x6xf32>, %b: tensor<4x6xf32>", "%r = stablehlo.complex %a, %b : tensor<4x6xcomplex<f32>>", "tensor<4x6xcomplex<f32>>"},
    {"%a: tensor<4x6xcomplex<f64>>", "%r = stablehlo.real %a : (tensor<4x6xcomplex<f64>>) -> tensor<4x6xf64>", "tensor<4x6xf64>"},
    {"%a: tensor<4x6xcomplex<f32>>", "%r = stablehlo.imag %a : (tensor<4x6xcomplex<f32>>) -> tensor<4x6xf32>", "tensor<4x6xf32>"},
    {"%a: tensor<4x6xf32>", "%r = stablehlo.imag %a : tensor<4x6xf32>", "tensor<4x6xf32>"},
    {"%a: tensor<4x6xcomplex<f32>>", "%r = stablehlo.abs %a : (tensor<4x6xcomplex<f32>>) -> tensor<4x6xf32>", "tensor<4x6xf32>"},
    {"%a: tensor<4x6xcomplex<f32>>, %b: tensor<4x6xcomplex<f32>>",
     "%r = stablehlo.compare NE, %a, %b, FLOAT : (tensor<4x6xcomplex<f32>>, tensor<4x6xcomplex<f32>>) -> tensor<4x6xi1>", "tensor<4x6xi1>"},
    {"%a: tensor<4x6xcomplex<f32>>", "%r = stablehlo.convert %a : (tensor<4x6xcomplex<f32>>) -> tensor<4x6xbf16>", "tensor<4x6xbf16>"},
    {"%a: tensor<9xi64>", "%r = stablehlo.convert %a : (tensor<9xi64>) -> tensor<9xcomplex<f32>>", "tensor<9xcomplex<f32>>"},
    {"%a: tensor<9xcomplex<f64>>", "%r = stablehlo.bitcast_convert %a : (tensor<9xcomplex<f64>>) -> tensor<9x2xcomplex<f32>>", "tensor<9x2xcomplex<f32>>"},
    {"%a: tensor<9x16xi4>", "%r = stablehlo.bitcast_convert %a : (tensor<9x16xi4>) -> tensor<9xcomplex<f32>>", "tensor<9xcomplex<f32>>"},
    {"", "%r = stablehlo.constant dense<[[(1.0, 2.0), (0x7F800000, -0.0)], [(3.5, 4.0), (5.0, 6.0)]]> : tensor<2x2xcomplex<f32>>", "tensor<2x2xcomplex<f32>>"},
    {"", "%r = stablehlo.constant dense<(1.5, -2.5)> : tensor<6x4xcomplex<f64>>", "tensor<6x4xcomplex<f64>>"},
    {"", "%r = stablehlo.constant dense<\"0x0000803F000000400000404000008040\"> : tensor<2xcomplex<f32>>", "tensor<2xcomplex<f32>>"},
    {"", "%r = stablehlo.iota dim = 1 : tensor<4x6xcomplex<f32>>", "tensor<4x6xcomplex<f32>>"},
    {"%a: tensor<4x6xcomplex<f32>>, %b: tensor<6x5xcomplex<f32>>",
     "%r = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<4x6xcomplex<f32>>, tensor<6x5xcomplex<f32>>) -> tensor<4x5xcomplex<f32>>", "tensor<4x5xcomplex<f32>>"},
    {"%a: tensor<4x6xf32>, %b: tensor<6x5xcomplex<f32>>",
     "%r = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<4x6xf32>, tensor<6x5xcomplex<f32>>) -> tensor<4x5xcomplex<f32>>", "tensor<4x5xcomplex<f32>>"},
    {"%a: tensor<4x6xcomplex<f32>>, %b: tensor<complex<f32>>",
     "%r = stablehlo.reduce(%a init: %b) applies stablehlo.add across dimensions = [1] : (tensor<4x6xcomplex<f32>>, tensor<complex<f32>>) -> tensor<4xcomplex<f32>>", "tensor<4xcomplex<f32>>"},
    {"%a: tensor<4x6xcomplex<f64>>, %b: tensor<complex<f64>>",
     "%r = stablehlo.reduce(%a init: %b) applies stablehlo.multiply across dimensions = [0] : (tensor<4x6xcomplex<f64>>, tensor<complex<f64>>) -> tensor<6xcomplex<f64>>", "tensor<6xcomplex<f64>>"},
    {"%a: tensor<6x2x8xcomplex<f32>>", "%r = stablehlo.fft %a, type = FFT, length = [8] : (tensor<6x2x8xcomplex<f32>>) -> tensor<6x2x8xcomplex<f32>>", "tensor<6x2x8xcomplex<f32>>"},
    {"%a: tensor<6x5xf64>", "%r = stablehlo.fft %a, type = RFFT, length = [5] : (tensor<6x5xf64>) -> tensor<6x3xcomplex<f64>>", "tensor<6x3xcomplex<f64>>"},
    /* choose */
    {"%a: tensor<f32>, %b: tensor<4x6xf32>, %c: tensor<f32>",
     "%r = stablehlo.clamp %a, %b, %c : (tensor<f32>, tensor<4x6xf32>, tensor<f32>) -> tensor<4x6xf32>", "tensor<4x6xf32>"},
    {"%a: tensor<5xi32>, %b: tensor<5xi32>, %c: tensor<5xi32>", "%r = stablehlo.clamp %a, %b, %c : tensor<5xi32>", "tensor<5xi32>"},
    {"%a: tensor<4x6xf32>, %b: tensor<4x6xf32>",
     "%r = stablehlo.compare LT, %a, %b, FLOAT : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x6xi1>", "tensor<4x6xi1>"},
    {"%a: tensor<7xui8>, %b: tensor<7xui8>",
     "%r = stablehlo.compare GE, %a, %b, UNSIGNED : (tensor<7xui8>, tensor<7xui8>) -> tensor<7xi1>", "tensor<7xi1>"},
    {"%a: tensor<7xbf16>, %b: tensor<7xbf16>",
     "%r = stablehlo.compare NE, %a, %b, TOTALORDER : (tensor<7xbf16>, tensor<7xbf16>) -> tensor<7xi1>", "tensor<7xi1>"},
    {"%p: tensor<4x6xi1>, %a: tensor<4x6xf32>, %b: tensor<4x6xf32>",
     "%r = stablehlo.select %p, %a, %b : tensor<4x6xi1>, tensor<4x6xf32>", "tensor<4x6xf32>"},
    {"%p: tensor<i1>, %a: tensor<4x6xi8>, %b: tensor<4x6xi8>",
     "%r = stablehlo.select %p, %a, %b : (tensor<i1>, tensor<4x6xi8>, tensor<4x6xi8>) -> tensor<4x6xi8>", "tensor<4x6xi8>"},
    /* convert */
    {"%a: tensor<4x6xf32>", "%r = stablehlo.convert %a : (tensor<4x6xf32>) -> tensor<4x6xbf16>", "tensor<4x6xbf16>"},
    {"%a: tensor<9xf16>", "%r = stablehlo.convert %a : (tensor<9xf16>) -> tensor<9xi4>", "tensor<9xi4>"},
    {"%a: tensor<9xi1>", "%r = stablehlo.convert %a : (tensor<9xi1>) -> tensor<9xf64>", "tensor<9xf64>"},
    {"%a: tensor<9xf32>", "%r = stablehlo.convert %a : (tensor<9xf32>) -> tensor<9xf8E4M3FN>", "tensor<9xf8E4M3FN>"},
    {"%a: tensor<4x6xf32>", "%r = stablehlo.bitcast_convert %a : (tensor<4x6xf32>) -> tensor<4x6xui32>", "tensor<4x6xui32>"},
    {"%a: tensor<4x6xf32>", "%r = stablehlo.bitcast_convert %a : (tensor<4x6xf32>) -> tensor<4x6x2xui16>", "tensor<4x6x2xui16>"},
    {"%a: tensor<4x8xui8>", "%r = stablehlo.bitcast_convert %a : (tensor<4x8xui8>) -> tensor<4xui64>", "tensor<4xui64>"},
    {"%a: tensor<4x6xf32>", "%r = stablehlo.reduce_precision %a, format = e5m2 : tensor<4x6xf32>", "tensor<4x6xf32>"},
    /* shape */
    {"", "%r = stablehlo.constant dense<[[1, 2, 3], [4, 5, 6]]> : tensor<2x3xi32>", "tensor<2x3xi32>"},
    {"", "%r = stablehlo.constant dense<1.5> : tensor<6x4xbf16>", "tensor<6x4xbf16>"},
    {"", "%r = stablehlo.iota dim = 1 : tensor<4x6xi32>", "tensor<4x6xi32>"},
    {"", "%r = stablehlo.iota dim = 0 : tensor<6xf32>", "tensor<6xf32>"},
    {"%a: tensor<4x6xf32>", "%r = stablehlo.broadcast_in_dim %a, dims = [2, 0] : (tensor<4x6xf32>) -> tensor<6x3x4xf32>", "tensor<6x3x4xf32>"},
    {"%a: tensor<1x6xf32>", "%r = stablehlo.broadcast_in_dim %a, dims = [0, 1] : (tensor<1x6xf32>) -> tensor<4x6xf32>", "tensor<4x6xf32>"},
    {"%a: tensor<f32>", "%r = stablehlo.broadcast_in_dim %a, dims = [] : (tensor<f32>) -> tensor<4x6xf32>", "tensor<4x6xf32>"},
    {"%a: tensor<8x4xf32>", "%r = stablehlo.reshape %a : (tensor<8x4xf32>) -> tensor<2x16xf32>", "tensor<2x16xf32>"},
    {"%a: tensor<6x4xi8>", "%r = stablehlo.reshape %a : (tensor<6x4xi8>) -> tensor<4x6xi8>", "tensor<4x6xi8>"},
    {"%a: tensor<2x3x4xf32>", "%r = stablehlo.reshape %a : (tensor<2x3x4xf32>) -> tensor<6x1x2x2xf32>", "tensor<6x1x2x2xf32>"},
    {"%a: tensor<0x4xf32>", "%r = stablehlo.reshape %a : (tensor<0x4xf32>) -> tensor<2x0xf32>", "tensor<2x0xf32>"},
    {"%a: tensor<4x3x6xf32>", "%r = stablehlo.transpose %a, dims = [2, 0, 1] : (tensor<4x3x6xf32>) -> tensor<6x4x3xf32>", "tensor<6x4x3xf32>"},
    /* slice */
    {"%a: tensor<2x6xf32>, %b: tensor<3x6xf32>, %c: tensor<1x6xf32>",
     "%r = stablehlo.concatenate %a, %b, %c, dim = 0 : (tensor<2x6xf32>, tensor<3x6xf32>, tensor<1x6xf32>) -> tensor<6x6xf32>", "tensor<6x6xf32>"},
    {"%a: tensor<4x6xf32>, %i: tensor<i32>, %j: tensor<i32>",
     "%r = stablehlo.dynamic_slice %a, %i, %j, sizes = [4, 2] : (tensor<4x6xf32>, tensor<i32>, tensor<i32>) -> tensor<4x2xf32>", "tensor<4x2xf32>"},
    {"%a: tensor<4x6xf32>, %u: tensor<4x3xf32>, %i: tensor<i32>, %j: tensor<i32>",
     "%r = stablehlo.dynamic_update_slice %a, %u, %i, %j : (tensor<4x6xf32>, tensor<4x3xf32>, tensor<i32>, tensor<i32>) -> tensor<4x6xf32>", "tensor<4x6xf32>"},
    {"%a: tensor<4x6xf32>, %v: tensor<f32>",
     "%r = stablehlo.pad %a, %v, low = [0, 2], high = [0, -1], interior = [0, 1] : (tensor<4x6xf32>, tensor<f32>) -> tensor<4x12xf32>", "tensor<4x12xf32>"},
    {"%a: tensor<5xi32>, %v: tensor<i32>",
     "%r = stablehlo.pad %a, %v, low = [-2], high = [3], interior = [0] : (tensor<5xi32>, tensor<i32>) -> tensor<6xi32>", "tensor<6xi32>"},
    {"%a: tensor<4x6xf32>", "%r = stablehlo.reverse %a, dims = [1] : tensor<4x6xf32>", "tensor<4x6xf32>"},
    {"%a: tensor<4x9xf32>", "%r = stablehlo.slice %a [0:4, 1:9:2] : (tensor<4x9xf32>) -> tensor<4x4xf32>", "tensor<4x4xf32>"},
    /* dot, convolution */
    {"%a: tensor<4x6xf32>, %b: tensor<6x5xf32>",
     "%r = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<4x6xf32>, tensor<6x5xf32>) -> tensor<4x5xf32>", "tensor<4x5xf32>"},
    {"%a: tensor<2x4x3x6xbf16>, %b: tensor<6x2x3x5xbf16>",
     "%r = stablehlo.dot_general %a, %b, batching_dims = [0, 2] x [1, 2], contracting_dims = [3] x [0], precision = [HIGHEST, DEFAULT] : (tensor<2x4x3x6xbf16>, tensor<6x2x3x5xbf16>) -> tensor<2x3x4x5xbf16>", "tensor<2x3x4x5xbf16>"},
    {"%a: tensor<4x6xi32>, %b: tensor<4x6xi32>",
     "%r = stablehlo.dot_general %a, %b, contracting_dims = [0, 1] x [0, 1] : (tensor<4x6xi32>, tensor<4x6xi32>) -> tensor<i32>", "tensor<i32>"},
    {"%a: tensor<2x8x7x3xf32>, %b: tensor<3x2x3x4xf32>",
     "%r = stablehlo.convolution(%a, %b) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [2, 1], pad = [[1, 1], [0, 2]], rhs_dilate = [1, 2]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<2x8x7x3xf32>, tensor<3x2x3x4xf32>) -> tensor<2x4x7x4xf32>", "tensor<2x4x7x4xf32>"},
    {"%a: tensor<2x6x5xf32>, %b: tensor<3x2x6xf32>",
     "%r = stablehlo.convolution(%a, %b) dim_numbers = [b, f, 0]x[0, i, o]->[b, f, 0], window = {lhs_dilate = [2], pad = [[2, 1]], reverse = [true]} {batch_group_count = 1 : i64, feature_group_count = 3 : i64} : (tensor<2x6x5xf32>, tensor<3x2x6xf32>) -> tensor<2x6x10xf32>", "tensor<2x6x10xf32>"},
    {"%a: tensor<4x5x3xf32>, %b: tensor<2x3x6xf32>",
     "%r = stablehlo.convolution(%a, %b) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {} {batch_group_count = 2 : i64, feature_group_count = 1 : i64} : (tensor<4x5x3xf32>, tensor<2x3x6xf32>) -> tensor<2x4x6xf32>", "tensor<2x4x6xf32>"},
    /* reduce, windows */
    {"%a: tensor<4x6x3xf32>, %i: tensor<f32>",
     "%r = stablehlo.reduce(%a init: %i) applies stablehlo.add across dimensions = [1] : (tensor<4x6x3xf32>, tensor<f32>) -> tensor<4x3xf32>", "tensor<4x3xf32>"},
    {"%a: tensor<4x6xi32>, %i: tensor<i32>",
     "%r = stablehlo.reduce(%a init: %i) applies stablehlo.maximum across dimensions = [0, 1] : (tensor<4x6xi32>, tensor<i32>) -> tensor<i32>", "tensor<i32>"},
    {"%a: tensor<4x6xi1>, %i: tensor<i1>",
     "%r = stablehlo.reduce(%a init: %i) applies stablehlo.and across dimensions = [0] : (tensor<4x6xi1>, tensor<i1>) -> tensor<6xi1>", "tensor<6xi1>"},
    {"%a: tensor<4x5xf32>, %i: tensor<f32>",
     "%r = stablehlo.reduce(%a init: %i) applies stablehlo.multiply across dimensions = [1] : (tensor<4x5xf32>, tensor<f32>) -> tensor<4xf32>", "tensor<4xf32>"},
    {"%a: tensor<4x6xf32>, %b: tensor<4x6xi32>, %i: tensor<f32>, %j: tensor<i32>",
     "%r:2 = stablehlo.reduce(%a init: %i), (%b init: %j) across dimensions = [1] : (tensor<4x6xf32>, tensor<4x6xi32>, tensor<f32>, tensor<i32>) -> (tensor<4xf32>, tensor<4xi32>) "
     "reducer(%p: tensor<f32>, %q: tensor<f32>) (%s: tensor<i32>, %t: tensor<i32>) { %u = stablehlo.maximum %p, %q : tensor<f32> %v = stablehlo.add %s, %t : tensor<i32> stablehlo.return %u, %v : tensor<f32>, tensor<i32> }",
     "tensor<4xf32>, tensor<4xi32>"},
    {"%a: tensor<4x9xf32>, %i: tensor<f32>",
     "%r = \"stablehlo.reduce_window\"(%a, %i) <{window_dimensions = array<i64: 1, 3>, window_strides = array<i64: 1, 2>, padding = dense<[[0, 0], [1, 1]]> : tensor<2x2xi64>}> " BODY("maximum", "f32") " : (tensor<4x9xf32>, tensor<f32>) -> tensor<4x5xf32>", "tensor<4x5xf32>"},
    {"%a: tensor<8x3xf32>, %i: tensor<f32>",
     "%r = \"stablehlo.reduce_window\"(%a, %i) <{window_dimensions = array<i64: 8, 1>, padding = dense<[[7, 0], [0, 0]]> : tensor<2x2xi64>}> " BODY("add", "f32") " : (tensor<8x3xf32>, tensor<f32>) -> tensor<8x3xf32>", "tensor<8x3xf32>"},
    {"%a: tensor<7xi32>, %i: tensor<i32>",
     "%r = \"stablehlo.reduce_window\"(%a, %i) <{window_dimensions = array<i64: 2>, base_dilations = array<i64: 2>, window_dilations = array<i64: 3>}> " BODY("add", "i32") " : (tensor<7xi32>, tensor<i32>) -> tensor<10xi32>", "tensor<10xi32>"},
    {"%a: tensor<3x9xf32>, %b: tensor<3x4xf32>, %i: tensor<f32>",
     "%r = \"stablehlo.select_and_scatter\"(%a, %b, %i) <{window_dimensions = array<i64: 1, 3>, window_strides = array<i64: 1, 2>}> (" COMPARE("GE", "f32") ", { ^bb0(%p: tensor<f32>, %q: tensor<f32>): %s = stablehlo.add %p, %q : tensor<f32> stablehlo.return %s : tensor<f32> }) : (tensor<3x9xf32>, tensor<3x4xf32>, tensor<f32>) -> tensor<3x9xf32>", "tensor<3x9xf32>"},
    {"%a: tensor<8x6xf32>, %b: tensor<4x4xf32>, %i: tensor<f32>",
     "%r = \"stablehlo.select_and_scatter\"(%a, %b, %i) <{window_dimensions = array<i64: 2, 2>, window_strides = array<i64: 2, 2>, padding = dense<[[0, 0], [1, 1]]> : tensor<2x2xi64>}> (" COMPARE("LE", "f32") ", { ^bb0(%p: tensor<f32>, %q: tensor<f32>): %s = stablehlo.add %p, %q : tensor<f32> stablehlo.return %s : tensor<f32> }) : (tensor<8x6xf32>, tensor<4x4xf32>, tensor<f32>) -> tensor<8x6xf32>", "tensor<8x6xf32>"},
    /* gather, scatter */
    {"%a: tensor<8x6xf32>, %i: tensor<4x3x1xi32>",
     "%r = \"stablehlo.gather\"(%a, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [2], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 2>, slice_sizes = array<i64: 1, 6>}> : (tensor<8x6xf32>, tensor<4x3x1xi32>) -> tensor<4x3x6xf32>", "tensor<4x3x6xf32>"},
    {"%a: tensor<4x5xf32>, %i: tensor<4x1x1xi32>",
     "%r = \"stablehlo.gather\"(%a, %i) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [1], operand_batching_dims = [0], start_indices_batching_dims = [0], start_index_map = [1], index_vector_dim = 2>, slice_sizes = array<i64: 1, 1>}> : (tensor<4x5xf32>, tensor<4x1x1xi32>) -> tensor<4x1xf32>", "tensor<4x1xf32>"},
    {"%a: tensor<6x5xi1>, %i: tensor<4x2xi64>",
     "%r = \"stablehlo.gather\"(%a, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0, 1], index_vector_dim = 1>, slice_sizes = array<i64: 1, 2>}> : (tensor<6x5xi1>, tensor<4x2xi64>) -> tensor<4x2xi1>", "tensor<4x2xi1>"},
    {"%a: tensor<8x6xf32>, %i: tensor<4x1xi32>, %u: tensor<4x6xf32>",
     "%r = \"stablehlo.scatter\"(%a, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> " BODY("add", "f32") " : (tensor<8x6xf32>, tensor<4x1xi32>, tensor<4x6xf32>) -> tensor<8x6xf32>", "tensor<8x6xf32>"},
    {"%a: tensor<8x6xi32>, %i: tensor<4x1xi32>, %u: tensor<4x3xi32>",
     "%r = \"stablehlo.scatter\"(%a, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> " BODY("maximum", "i32") " : (tensor<8x6xi32>, tensor<4x1xi32>, tensor<4x3xi32>) -> tensor<8x6xi32>", "tensor<8x6xi32>"},
    {"%a: tensor<4x6xf32>, %i: tensor<4x2x1xi32>, %u: tensor<4x2xf32>",
     "%r = \"stablehlo.scatter\"(%a, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [1], input_batching_dims = [0], scatter_indices_batching_dims = [0], scatter_dims_to_operand_dims = [1], index_vector_dim = 2>}> " SECOND("f32") " : (tensor<4x6xf32>, tensor<4x2x1xi32>, tensor<4x2xf32>) -> tensor<4x6xf32>", "tensor<4x6xf32>"},
    /* sort */
    {"%a: tensor<4x7xf32>, %b: tensor<4x7xi32>",
     "%r:2 = \"stablehlo.sort\"(%a, %b) <{dimension = 1 : i64, is_stable = true}> ({ ^bb0(%p: tensor<f32>, %q: tensor<f32>, %s: tensor<i32>, %t: tensor<i32>): %u = stablehlo.compare LT, %p, %q : (tensor<f32>, tensor<f32>) -> tensor<i1> stablehlo.return %u : tensor<i1> }) : (tensor<4x7xf32>, tensor<4x7xi32>) -> (tensor<4x7xf32>, tensor<4x7xi32>)", "tensor<4x7xf32>, tensor<4x7xi32>"},
    {"%a: tensor<4x7xf32>", "%r:2 = chlo.top_k(%a, k = 3) : tensor<4x7xf32> -> (tensor<4x3xf32>, tensor<4x3xi32>)", "tensor<4x3xf32>, tensor<4x3xi32>"},
    /* linear algebra */
    {"%a: tensor<3x4x4xf32>", "%r = \"stablehlo.cholesky\"(%a) <{lower = true}> : (tensor<3x4x4xf32>) -> tensor<3x4x4xf32>", "tensor<3x4x4xf32>"},
    {"%a: tensor<3x4x4xf32>, %b: tensor<3x4x5xf32>",
     "%r = \"stablehlo.triangular_solve\"(%a, %b) <{left_side = true, lower = true, unit_diagonal = true, transpose_a = #stablehlo<transpose NO_TRANSPOSE>}> : (tensor<3x4x4xf32>, tensor<3x4x5xf32>) -> tensor<3x4x5xf32>", "tensor<3x4x5xf32>"},
    {"%a: tensor<4x4xf32>, %b: tensor<5x4xf32>",
     "%r = \"stablehlo.triangular_solve\"(%a, %b) <{left_side = false, lower = false, unit_diagonal = true, transpose_a = #stablehlo<transpose TRANSPOSE>}> : (tensor<4x4xf32>, tensor<5x4xf32>) -> tensor<5x4xf32>", "tensor<5x4xf32>"},
    /* random */
    {"%s: tensor<2xui64>", "%r:2 = stablehlo.rng_bit_generator %s, algorithm = THREE_FRY : (tensor<2xui64>) -> (tensor<2xui64>, tensor<4x6xui32>)", "tensor<2xui64>, tensor<4x6xui32>"},
    {"%s: tensor<3xui64>", "%r:2 = stablehlo.rng_bit_generator %s, algorithm = PHILOX : (tensor<3xui64>) -> (tensor<3xui64>, tensor<5x3xui64>)", "tensor<3xui64>, tensor<5x3xui64>"},
    /* control */
    {"%i: tensor<i32>",
     "%r = \"stablehlo.case\"(%i) ({ %s = stablehlo.iota dim = 0 : tensor<3xf32> stablehlo.return %s : tensor<3xf32> }, { %t = stablehlo.constant dense<2.0> : tensor<3xf32> stablehlo.return %t : tensor<3xf32> }) : (tensor<i32>) -> tensor<3xf32>", "tensor<3xf32>"},
    {"%n: tensor<i32>, %a: tensor<3xf32>",
     "%r:2 = stablehlo.while(%i = %n, %x = %a) : tensor<i32>, tensor<3xf32> cond { %l = stablehlo.constant dense<5> : tensor<i32> %p = stablehlo.compare LT, %i, %l : (tensor<i32>, tensor<i32>) -> tensor<i1> stablehlo.return %p : tensor<i1> } do { %o = stablehlo.constant dense<1> : tensor<i32> %j = stablehlo.add %i, %o : tensor<i32> %y = stablehlo.add %x, %x : tensor<3xf32> stablehlo.return %j, %y : tensor<i32>, tensor<3xf32> }", "tensor<i32>, tensor<3xf32>"},
    {"%a: tensor<4x6xf32>, %b: tensor<3xi32>",
     "%r:2 = stablehlo.optimization_barrier %a, %b : tensor<4x6xf32>, tensor<3xi32>", "tensor<4x6xf32>, tensor<3xi32>"},
    {"%a: tensor<4x6xf32>",
     "%r = stablehlo.custom_call @Sharding(%a) {mhlo.sharding = \"{devices=[2,1]<=[2]}\"} : (tensor<4x6xf32>) -> tensor<4x6xf32>", "tensor<4x6xf32>"},
    /* collectives: only in local graphs; on one device a group has one rank */
    {"%a: tensor<4x6xf32>, %b: tensor<3xf32>",
     "%r:2 = \"sheaf.all_reduce\"(%a, %b) <{axes = 1 : i64, size = 1 : i64, number = 0 : i64}> " BODY("add", "f32") " : (tensor<4x6xf32>, tensor<3xf32>) -> (tensor<4x6xf32>, tensor<3xf32>)", "tensor<4x6xf32>, tensor<3xf32>"},
    {"%a: tensor<4x6xbf16>",
     "%r = \"sheaf.all_gather\"(%a) <{axes = 2 : i64, size = 1 : i64, number = 0 : i64}> : (tensor<4x6xbf16>) -> tensor<1x4x6xbf16>", "tensor<1x4x6xbf16>"},
    {"%a: tensor<1x4x6xi32>",
     "%r = \"sheaf.reduce_scatter\"(%a) <{axes = 3 : i64, size = 1 : i64, number = 5 : i64}> " BODY("maximum", "i32") " : (tensor<1x4x6xi32>) -> tensor<4x6xi32>", "tensor<4x6xi32>"},
    {"%a: tensor<1x24xf32>",
     "%r = \"sheaf.all_to_all\"(%a) <{axes = 1 : i64, size = 1 : i64, number = 0 : i64}> : (tensor<1x24xf32>) -> tensor<1x24xf32>", "tensor<1x24xf32>"},
    {"%a: tensor<f32>",
     "%r = \"sheaf.permute\"(%a) <{axes = 3 : i64, size = 1 : i64, number = 0 : i64}> : (tensor<f32>) -> tensor<f32>", "tensor<f32>"},
    {"%a: tensor<4x6xf32>",
     "\"sheaf.send\"(%a) <{axes = 1 : i64, size = 1 : i64, number = 0 : i64, peer = 0 : i64}> : (tensor<4x6xf32>) -> () %r = stablehlo.negate %a : tensor<4x6xf32>", "tensor<4x6xf32>"},
    {"%a: tensor<f32>",
     "%r = \"sheaf.receive\"() <{axes = 1 : i64, size = 1 : i64, number = 0 : i64, peer = 0 : i64, arrived = 0 : i64}> : () -> tensor<4x6xf32>", "tensor<4x6xf32>"},
};
/* clang-format on */

#endif
