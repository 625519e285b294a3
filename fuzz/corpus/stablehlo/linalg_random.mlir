func.func @main(%a: tensor<4x4xf32>, %s: tensor<2xui64>) -> tensor<4x4xf32> {
  %state, %bits = stablehlo.rng_bit_generator %s, algorithm =  THREE_FRY : (tensor<2xui64>) -> (tensor<2xui64>, tensor<4xui32>)
  %0 = stablehlo.cholesky %a, lower = true : tensor<4x4xf32>
  %1 = "stablehlo.triangular_solve"(%0, %a) <{left_side = true, lower = true, transpose_a = #stablehlo<transpose NO_TRANSPOSE>, unit_diagonal = false}> : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  return %1 : tensor<4x4xf32>
}
