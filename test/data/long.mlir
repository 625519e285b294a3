// Long rows: their maximum, the sum of what is below it, and the sum of that over rows. All numbers are small and whole.
module @long {
  func.func public @main() -> (tensor<5xf32>, tensor<5xf32>, tensor<40008xf32>) {
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %low = stablehlo.constant dense<-1.0e9> : tensor<f32>
    %a = stablehlo.iota dim = 0 : tensor<5x40008xi32>
    %b = stablehlo.iota dim = 1 : tensor<5x40008xi32>
    %eleven = stablehlo.constant dense<11> : tensor<5x40008xi32>
    %ab = stablehlo.multiply %a, %b : tensor<5x40008xi32>
    %part = stablehlo.remainder %ab, %eleven : tensor<5x40008xi32>
    %real = stablehlo.convert %part : (tensor<5x40008xi32>) -> tensor<5x40008xf32>
    %x = stablehlo.optimization_barrier %real : tensor<5x40008xf32>
    %most = stablehlo.reduce(%x init: %low) applies stablehlo.maximum across dimensions = [1] : (tensor<5x40008xf32>, tensor<f32>) -> tensor<5xf32>
    %all = stablehlo.broadcast_in_dim %most, dims = [0] : (tensor<5xf32>) -> tensor<5x40008xf32>
    %below = stablehlo.subtract %all, %x : tensor<5x40008xf32>
    %sum = stablehlo.reduce(%below init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<5x40008xf32>, tensor<f32>) -> tensor<5xf32>
    %down = stablehlo.reduce(%below init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<5x40008xf32>, tensor<f32>) -> tensor<40008xf32>
    return %most, %sum, %down : tensor<5xf32>, tensor<5xf32>, tensor<40008xf32>
  }
}
