// Sums and maxima of many short rows, of which a block has several; elements that are moved in words, and some that cannot be. All numbers
// are small and whole.
module @abreast {
  func.func public @main() -> (tensor<4224xf32>, tensor<4224x100xf32>, tensor<6x7x12xf32>, tensor<5x9xbf16>, tensor<4x16xf32>, tensor<4x9xi8>) {
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %low = stablehlo.constant dense<-1.0e9> : tensor<f32>
    %a = stablehlo.iota dim = 0 : tensor<4224x100xf32>
    %b = stablehlo.iota dim = 1 : tensor<4224x100xf32>
    %ab = stablehlo.subtract %a, %b : tensor<4224x100xf32>
    %x = stablehlo.optimization_barrier %ab : tensor<4224x100xf32>
    %sum = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<4224x100xf32>, tensor<f32>) -> tensor<4224xf32>
    %most = stablehlo.reduce(%x init: %low) applies stablehlo.maximum across dimensions = [1] : (tensor<4224x100xf32>, tensor<f32>) -> tensor<4224xf32>
    %all = stablehlo.broadcast_in_dim %most, dims = [0] : (tensor<4224xf32>) -> tensor<4224x100xf32>
    %rest = stablehlo.subtract %all, %x : tensor<4224x100xf32>

    %c = stablehlo.iota dim = 2 : tensor<3x4x12xf32>
    %y = stablehlo.optimization_barrier %c : tensor<3x4x12xf32>
    %seven = stablehlo.constant dense<7.0> : tensor<f32>
    %wide = stablehlo.pad %y, %seven, low = [1, 0, 0], high = [0, 0, 0], interior = [1, 1, 0] : (tensor<3x4x12xf32>, tensor<f32>) -> tensor<6x7x12xf32>
    %d = stablehlo.iota dim = 1 : tensor<4x7xbf16>
    %z = stablehlo.optimization_barrier %d : tensor<4x7xbf16>
    %three = stablehlo.constant dense<3.0> : tensor<bf16>
    %odd = stablehlo.pad %z, %three, low = [0, 1], high = [1, 1], interior = [0, 0] : (tensor<4x7xbf16>, tensor<bf16>) -> tensor<5x9xbf16>

    %e = stablehlo.iota dim = 1 : tensor<4x6xf32>
    %f = stablehlo.iota dim = 0 : tensor<4x10xf32>
    %ee = stablehlo.optimization_barrier %e : tensor<4x6xf32>
    %ff = stablehlo.optimization_barrier %f : tensor<4x10xf32>
    %ef = stablehlo.concatenate %ee, %ff, dim = 1 : (tensor<4x6xf32>, tensor<4x10xf32>) -> tensor<4x16xf32>
    %g = stablehlo.iota dim = 1 : tensor<4x4xi8>
    %h = stablehlo.iota dim = 0 : tensor<4x5xi8>
    %gg = stablehlo.optimization_barrier %g : tensor<4x4xi8>
    %hh = stablehlo.optimization_barrier %h : tensor<4x5xi8>
    %gh = stablehlo.concatenate %gg, %hh, dim = 1 : (tensor<4x4xi8>, tensor<4x5xi8>) -> tensor<4x9xi8>
    return %sum, %rest, %wide, %odd, %ef, %gh : tensor<4224xf32>, tensor<4224x100xf32>, tensor<6x7x12xf32>, tensor<5x9xbf16>, tensor<4x16xf32>, tensor<4x9xi8>
  }
}
