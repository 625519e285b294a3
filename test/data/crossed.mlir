// What is read along another dimension than it is written: in tiles, whose sizes do not divide those of the tensors; with a conversion, with
// an operand that is not turned, and of short last dimensions. All numbers are small and whole.
module @crossed {
  func.func public @main() -> (tensor<5x50x37xf32>, tensor<70x9x3xbf16>, tensor<2x3x45x33xf32>, tensor<40x64x8xi8>) {
    %a = stablehlo.iota dim = 1 : tensor<5x37x50xf32>
    %b = stablehlo.iota dim = 2 : tensor<5x37x50xf32>
    %c = stablehlo.iota dim = 0 : tensor<5x37x50xf32>
    %ab = stablehlo.multiply %a, %b : tensor<5x37x50xf32>
    %abc = stablehlo.add %ab, %c : tensor<5x37x50xf32>
    %x = stablehlo.optimization_barrier %abc : tensor<5x37x50xf32>
    %turned = stablehlo.transpose %x, dims = [0, 2, 1] : (tensor<5x37x50xf32>) -> tensor<5x50x37xf32>
    %straight = stablehlo.iota dim = 2 : tensor<5x50x37xf32>
    %other = stablehlo.optimization_barrier %straight : tensor<5x50x37xf32>
    %both = stablehlo.subtract %turned, %other : tensor<5x50x37xf32>

    %d = stablehlo.iota dim = 2 : tensor<3x9x70xf32>
    %e = stablehlo.iota dim = 1 : tensor<3x9x70xf32>
    %de = stablehlo.add %d, %e : tensor<3x9x70xf32>
    %y = stablehlo.optimization_barrier %de : tensor<3x9x70xf32>
    %last = stablehlo.transpose %y, dims = [2, 1, 0] : (tensor<3x9x70xf32>) -> tensor<70x9x3xf32>
    %narrow = stablehlo.convert %last : (tensor<70x9x3xf32>) -> tensor<70x9x3xbf16>

    %f = stablehlo.iota dim = 1 : tensor<2x33x3x45xf32>
    %g = stablehlo.iota dim = 3 : tensor<2x33x3x45xf32>
    %h = stablehlo.iota dim = 2 : tensor<2x33x3x45xf32>
    %fg = stablehlo.multiply %f, %g : tensor<2x33x3x45xf32>
    %fgh = stablehlo.subtract %fg, %h : tensor<2x33x3x45xf32>
    %z = stablehlo.optimization_barrier %fgh : tensor<2x33x3x45xf32>
    %far = stablehlo.transpose %z, dims = [0, 2, 3, 1] : (tensor<2x33x3x45xf32>) -> tensor<2x3x45x33xf32>

    %i = stablehlo.iota dim = 0 : tensor<8x40x64xi8>
    %j = stablehlo.iota dim = 2 : tensor<8x40x64xi8>
    %ij = stablehlo.add %i, %j : tensor<8x40x64xi8>
    %w = stablehlo.optimization_barrier %ij : tensor<8x40x64xi8>
    %bytes = stablehlo.transpose %w, dims = [1, 2, 0] : (tensor<8x40x64xi8>) -> tensor<40x64x8xi8>
    return %both, %narrow, %far, %bytes : tensor<5x50x37xf32>, tensor<70x9x3xbf16>, tensor<2x3x45x33xf32>, tensor<40x64x8xi8>
  }
}
