module {
  func.func @main(%a: tensor<?xf32>, %b: tensor<2xcomplex<f32>>, %c: tensor<2xf32>) -> tensor<2xf32> {
    %0 = stablehlo.ad %c, %c : tensor<2xf32>
    %1 = stablehlo.add %c, %missing : tensor<2xf32>
    %2 = stablehlo.add %c : tensor<2xf32>
    %3 = stablehlo.transpose %c, dims = [0 : (tensor<2xf32>) -> tensor<2xf32>
    %4 = stablehlo.add %c, %3 : tensor<3xf32>
    %5 = stablehlo.constant dense_resource<x> : tensor<2xf32>
    return %4 : tensor<2xf32>
  }
}
{-#
  dialect_resources: { builtin: { x: "0x00" } }
#-}
