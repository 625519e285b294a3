func.func @main(%a: tensor<4xf32>, %b: tensor<i32>) -> (tensor<4xf32>, tensor<i32>) {
  %0:2 = stablehlo.optimization_barrier %a, %b : tensor<4xf32>, tensor<i32>
  stablehlo.optimization_barrier ()
  %1 = stablehlo.optimization_barrier %0#0 : tensor<4xf32>
  return %1, %0#1 : tensor<4xf32>, tensor<i32>
}
