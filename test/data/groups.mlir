// Sums over pixels of images with channels last, of numbers that have one for each group of channels in them, and are stored
// beside that. All numbers are small and whole, so every order of adding them up gives the same bits.
module @groups {
  func.func public @main() -> (tensor<3x16x18x40xf32>, tensor<40xf32>, tensor<3x40xf32>) {
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %h = stablehlo.iota dim = 1 : tensor<3x16x18x40xf32>
    %w = stablehlo.iota dim = 2 : tensor<3x16x18x40xf32>
    %c = stablehlo.iota dim = 3 : tensor<3x16x18x40xf32>
    %n = stablehlo.iota dim = 0 : tensor<3x16x18x40xf32>
    %hw = stablehlo.multiply %h, %w : tensor<3x16x18x40xf32>
    %nc = stablehlo.add %n, %c : tensor<3x16x18x40xf32>
    %all = stablehlo.subtract %hw, %nc : tensor<3x16x18x40xf32>
    %x = stablehlo.optimization_barrier %all : tensor<3x16x18x40xf32>
    %i = stablehlo.iota dim = 0 : tensor<10xf32>
    %j = stablehlo.broadcast_in_dim %i, dims = [1] : (tensor<10xf32>) -> tensor<3x10xf32>
    %g = stablehlo.optimization_barrier %j : tensor<3x10xf32>
    %a = stablehlo.broadcast_in_dim %g, dims = [0, 1] : (tensor<3x10xf32>) -> tensor<3x10x4xf32>
    %b = stablehlo.reshape %a : (tensor<3x10x4xf32>) -> tensor<3x40xf32>
    %d = stablehlo.broadcast_in_dim %b, dims = [0, 3] : (tensor<3x40xf32>) -> tensor<3x16x18x40xf32>
    %y = stablehlo.subtract %x, %d : tensor<3x16x18x40xf32>
    %sum = stablehlo.reduce(%y init: %zero) applies stablehlo.add across dimensions = [0, 1, 2] : (tensor<3x16x18x40xf32>, tensor<f32>) -> tensor<40xf32>
    %yg = stablehlo.multiply %y, %d : tensor<3x16x18x40xf32>
    %part = stablehlo.reduce(%yg init: %zero) applies stablehlo.add across dimensions = [1, 2] : (tensor<3x16x18x40xf32>, tensor<f32>) -> tensor<3x40xf32>
    return %y, %sum, %part : tensor<3x16x18x40xf32>, tensor<40xf32>, tensor<3x40xf32>
  }
}
