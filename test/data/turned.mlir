// Sums and a maximum over the pixels of images with channels last: rows of a fold are neighbours, its columns are not. All
// numbers are small and whole, so every order of adding them up gives the same bits.
module @turned {
  func.func public @main() -> (tensor<3x40xf32>, tensor<3x40xf32>) {
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %low = stablehlo.constant dense<-1.0e9> : tensor<f32>
    %h = stablehlo.iota dim = 1 : tensor<3x16x9x40xf32>
    %w = stablehlo.iota dim = 2 : tensor<3x16x9x40xf32>
    %c = stablehlo.iota dim = 3 : tensor<3x16x9x40xf32>
    %n = stablehlo.iota dim = 0 : tensor<3x16x9x40xf32>
    %hw = stablehlo.multiply %h, %w : tensor<3x16x9x40xf32>
    %nc = stablehlo.add %n, %c : tensor<3x16x9x40xf32>
    %x = stablehlo.subtract %hw, %nc : tensor<3x16x9x40xf32>
    %kept = stablehlo.optimization_barrier %x : tensor<3x16x9x40xf32>
    %sum = stablehlo.reduce(%kept init: %zero) applies stablehlo.add across dimensions = [1, 2] : (tensor<3x16x9x40xf32>, tensor<f32>) -> tensor<3x40xf32>
    %all = stablehlo.broadcast_in_dim %sum, dims = [0, 3] : (tensor<3x40xf32>) -> tensor<3x16x9x40xf32>
    %rest = stablehlo.subtract %kept, %all : tensor<3x16x9x40xf32>
    %most = stablehlo.reduce(%rest init: %low) applies stablehlo.maximum across dimensions = [1, 2] : (tensor<3x16x9x40xf32>, tensor<f32>) -> tensor<3x40xf32>
    return %sum, %most : tensor<3x40xf32>, tensor<3x40xf32>
  }
}
