func.func @main(%a: tensor<4x4xf32>, %i: tensor<i32>) -> tensor<4x4xf32> {
  %0 = stablehlo.dynamic_slice %a, %i, %i, sizes = [1, 4] : (tensor<4x4xf32>, tensor<i32>, tensor<i32>) -> tensor<1x4xf32>
  %1 = stablehlo.dynamic_update_slice %a, %0, %i, %i : (tensor<4x4xf32>, tensor<1x4xf32>, tensor<i32>, tensor<i32>) -> tensor<4x4xf32>
  return %1 : tensor<4x4xf32>
}
