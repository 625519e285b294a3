sdy.mesh @mesh = <["x"=2]>
func.func @main(%a: tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<4xf32> {
  %0 = sdy.sharding_constraint %a <@mesh, [{"x"}]> : tensor<4xf32>
  %1 = "sdy.sharding_constraint"(%0) <{sharding = #sdy.sharding<@mesh, [{}]>}> : (tensor<4xf32>) -> tensor<4xf32>
  %2 = stablehlo.custom_call @f(%1) {backend_config = "", mhlo.backend_config = {uplo = 76 : ui8, s = "}", l = [1, 2]}} : (tensor<4xf32>) -> tensor<4xf32>
  return %2 : tensor<4xf32>
}
