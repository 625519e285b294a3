func.func @main(%a: tensor<4x5xf32>, %i: tensor<4x5xi32>, %z: tensor<f32>, %k: tensor<i32>) -> tensor<4xf32> {
  %0 = stablehlo.reduce(%a init: %z) applies stablehlo.add across dimensions = [1] : (tensor<4x5xf32>, tensor<f32>) -> tensor<4xf32>
  %1:2 = stablehlo.reduce(%a init: %z), (%i init: %k) across dimensions = [1] : (tensor<4x5xf32>, tensor<4x5xi32>, tensor<f32>, tensor<i32>) -> (tensor<4xf32>, tensor<4xi32>)
   reducer(%x: tensor<f32> loc(unknown), %y: tensor<f32>) (%u: tensor<i32>, %v: tensor<i32>) {
    %2 = stablehlo.maximum %x, %y : tensor<f32>
    stablehlo.return %2, %u : tensor<f32>, tensor<i32>
  } loc(unknown)
  return %1#0 : tensor<4xf32>
}
