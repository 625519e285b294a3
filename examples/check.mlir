// A program that checks itself: `sheaf eval` exits with 0 when its check holds.
func.func @main() {
  %rows = stablehlo.constant dense<[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]> : tensor<2x3xf32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %sums = stablehlo.reduce(%rows init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<2x3xf32>, tensor<f32>) -> tensor<2xf32>
  %want = stablehlo.constant dense<[6.0, 15.0]> : tensor<2xf32>
  stablehlo.custom_call @check.expect_close(%sums, %want) {has_side_effect = true} : (tensor<2xf32>, tensor<2xf32>) -> ()
  return
}
