// Halves that are turned against each other, one behind the other, and the same backwards, with halves that take turns. All
// numbers are small and whole.
module @halves {
  func.func public @main() -> (tensor<2x3x5x16xf32>, tensor<2x3x5x16xf32>) {
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %t = stablehlo.iota dim = 1 : tensor<2x3x5x16xf32>
    %h = stablehlo.iota dim = 2 : tensor<2x3x5x16xf32>
    %d = stablehlo.iota dim = 3 : tensor<2x3x5x16xf32>
    %th = stablehlo.multiply %t, %h : tensor<2x3x5x16xf32>
    %all = stablehlo.subtract %th, %d : tensor<2x3x5x16xf32>
    %x = stablehlo.optimization_barrier %all : tensor<2x3x5x16xf32>
    %p = stablehlo.iota dim = 0 : tensor<8xf32>
    %cos = stablehlo.broadcast_in_dim %p, dims = [3] : (tensor<8xf32>) -> tensor<2x3x5x8xf32>
    %sin = stablehlo.negate %cos : tensor<2x3x5x8xf32>
    %a = stablehlo.slice %x [0:2, 0:3, 0:5, 0:16:2] : (tensor<2x3x5x16xf32>) -> tensor<2x3x5x8xf32>
    %b = stablehlo.slice %x [0:2, 0:3, 0:5, 1:16:2] : (tensor<2x3x5x16xf32>) -> tensor<2x3x5x8xf32>
    %ac = stablehlo.multiply %a, %cos : tensor<2x3x5x8xf32>
    %bs = stablehlo.multiply %b, %sin : tensor<2x3x5x8xf32>
    %as = stablehlo.multiply %a, %sin : tensor<2x3x5x8xf32>
    %bc = stablehlo.multiply %b, %cos : tensor<2x3x5x8xf32>
    %first = stablehlo.subtract %ac, %bs : tensor<2x3x5x8xf32>
    %second = stablehlo.add %as, %bc : tensor<2x3x5x8xf32>
    %turned = stablehlo.concatenate %first, %second, dim = 3 : (tensor<2x3x5x8xf32>, tensor<2x3x5x8xf32>) -> tensor<2x3x5x16xf32>
    %e = stablehlo.slice %x [0:2, 0:3, 0:5, 0:8] : (tensor<2x3x5x16xf32>) -> tensor<2x3x5x8xf32>
    %f = stablehlo.slice %x [0:2, 0:3, 0:5, 8:16] : (tensor<2x3x5x16xf32>) -> tensor<2x3x5x8xf32>
    %ec = stablehlo.multiply %e, %cos : tensor<2x3x5x8xf32>
    %fs = stablehlo.multiply %f, %sin : tensor<2x3x5x8xf32>
    %even = stablehlo.pad %ec, %zero, low = [0, 0, 0, 0], high = [0, 0, 0, 1], interior = [0, 0, 0, 1] : (tensor<2x3x5x8xf32>, tensor<f32>) -> tensor<2x3x5x16xf32>
    %odd = stablehlo.pad %fs, %zero, low = [0, 0, 0, 1], high = [0, 0, 0, 0], interior = [0, 0, 0, 1] : (tensor<2x3x5x8xf32>, tensor<f32>) -> tensor<2x3x5x16xf32>
    %low = stablehlo.pad %fs, %zero, low = [0, 0, 0, 0], high = [0, 0, 0, 8], interior = [0, 0, 0, 0] : (tensor<2x3x5x8xf32>, tensor<f32>) -> tensor<2x3x5x16xf32>
    %two = stablehlo.add %even, %odd : tensor<2x3x5x16xf32>
    %back = stablehlo.add %two, %low : tensor<2x3x5x16xf32>
    return %turned, %back : tensor<2x3x5x16xf32>, tensor<2x3x5x16xf32>
  }
}
