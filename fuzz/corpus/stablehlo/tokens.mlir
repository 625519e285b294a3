func.func @main(%a: !stablehlo.token, %b: tensor<2x!quant.uniform<i8:f32, 0.1>>, %c: tuple<tensor<f32>>, %d: index) {
  return
}
