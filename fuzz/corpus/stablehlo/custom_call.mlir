sdy.mesh @mesh = <["x"=2]>
func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.custom_call @Sharding(%a) {backend_config = "", mhlo.sharding = "{devices=[2]<=[2]}"} : (tensor<4xf32>) -> tensor<4xf32>
  stablehlo.custom_call @check.expect_close(%0, %a) {has_side_effect = true} : (tensor<4xf32>, tensor<4xf32>) -> ()
  %1 = stablehlo.custom_call @"a \22b\22"(%0) {api_version = 4 : i32, backend_config = {x = 1 : i32}, operand_layouts = [dense<0> : tensor<1xindex>], called_computations = [@f]} : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
