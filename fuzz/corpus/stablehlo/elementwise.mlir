func.func @main(%a: tensor<4xf32>, %p: tensor<4xi1>) -> tensor<4xf32> {
  %0 = stablehlo.exponential %a {result_accuracy = #stablehlo.result_accuracy<mode = #stablehlo.result_accuracy_mode<DEFAULT>>} : tensor<4xf32>
  %1 = chlo.erf %0 : tensor<4xf32> -> tensor<4xf32>
  %2 = chlo.next_after %0, %1 : tensor<4xf32>, tensor<4xf32> -> tensor<4xf32>
  %3 = stablehlo.select %p, %1, %2 : tensor<4xi1>, tensor<4xf32>
  %4 = stablehlo.clamp %a, %3, %1 : tensor<4xf32>
  %5 = stablehlo.convert %4 : (tensor<4xf32>) -> tensor<4xbf16>
  %6 = stablehlo.convert %5 : (tensor<4xbf16>) -> tensor<4xf32>
  %7 = stablehlo.reduce_precision %6, format = e5m10 : tensor<4xf32>
  %8 = stablehlo.is_finite %7 : (tensor<4xf32>) -> tensor<4xi1>
  return %7 : tensor<4xf32>
}
