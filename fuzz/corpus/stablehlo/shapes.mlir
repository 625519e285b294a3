func.func @main(%a: tensor<2x3xf32>, %z: tensor<f32>) -> tensor<2x3xf32> {
  %0 = stablehlo.broadcast_in_dim %z, dims = [] : (tensor<f32>) -> tensor<2x3xf32>
  %1 = stablehlo.iota dim = 1 : tensor<2x3xi32>
  %2 = stablehlo.transpose %a, dims = [1, 0] : (tensor<2x3xf32>) -> tensor<3x2xf32>
  %3 = stablehlo.reshape %2 : (tensor<3x2xf32>) -> tensor<6xf32>
  %4 = stablehlo.concatenate %3, %3, dim = 0 : (tensor<6xf32>, tensor<6xf32>) -> tensor<12xf32>
  %5 = stablehlo.slice %4 [0:12:2] : (tensor<12xf32>) -> tensor<6xf32>
  %6 = stablehlo.pad %5, %z, low = [1], high = [-1], interior = [0] : (tensor<6xf32>, tensor<f32>) -> tensor<6xf32>
  %7 = stablehlo.reverse %6, dims = [0] : tensor<6xf32>
  %8 = "stablehlo.slice"(%a) <{limit_indices = array<i64: 2, 3>, start_indices = array<i64: 0, 0>, strides = array<i64: 1, 1>}> : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return %8 : tensor<2x3xf32>
}
