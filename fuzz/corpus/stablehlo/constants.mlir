func.func @main() -> tensor<2x2xf32> {
  %0 = stablehlo.constant dense<[[1.0, -2.5e-3], [0xFF800000, 3]]> : tensor<2x2xf32>
  %1 = stablehlo.constant dense<"0x0000803F000000400000404000008040"> : tensor<2x2xf32>
  %2 = stablehlo.constant dense<> : tensor<0x3xi32>
  %3 = stablehlo.constant dense<[true, false]> : tensor<2xi1>
  %4 = stablehlo.constant dense<"0x05"> : tensor<3xi1>
  %5 = stablehlo.constant dense<1.17549435E-38> : tensor<1000000000xf32>
  %6 = stablehlo.constant {a.b = 1} dense<-128> : tensor<i8>
  %7 = "stablehlo.constant"() <{value = dense<18446744073709551615> : tensor<ui64>}> : () -> tensor<ui64>
  return %0 : tensor<2x2xf32>
}
