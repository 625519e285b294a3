#n = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>
#p = #stablehlo<precision HIGH>
#a = loc(fused[#b, #c])
#b = loc(callsite(#d at #a))
func.func @main(%x: tensor<2x2xf32> loc(#c)) -> tensor<2x2xf32> {
  %0 = "stablehlo.dot_general"(%x, %x) <{dot_dimension_numbers = #n, precision_config = [#p, #p]}> : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32> loc(#a)
  %1 = stablehlo.add %0, %x : tensor<2x2xf32> loc(fused<"x">["f":1:2, "n"("g":3:4)])
  return %1 : tensor<2x2xf32> loc(unknown)
}
#c = loc("name \22q\22\0A"(#d))
#d = loc("file.py":10:2 to 12:3)
