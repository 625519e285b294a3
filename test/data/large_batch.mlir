// A step that reads one element of a large batch: drawing the batch takes far longer than the step.
module @large_batch {
  func.func public @main(%w: tensor<f32> {jax.buffer_donor = true}, %x: tensor<1024x2048xf32>) -> (tensor<f32> {jax.result_info = "w"}, tensor<f32> {jax.result_info = "loss"}) {
    %0 = stablehlo.slice %x [0:1, 0:1] : (tensor<1024x2048xf32>) -> tensor<1x1xf32>
    %1 = stablehlo.reshape %0 : (tensor<1x1xf32>) -> tensor<f32>
    %2 = stablehlo.subtract %w, %1 : tensor<f32>
    %3 = stablehlo.multiply %2, %2 : tensor<f32>
    %c = stablehlo.constant dense<1.000000e-01> : tensor<f32>
    %4 = stablehlo.multiply %2, %c : tensor<f32>
    %5 = stablehlo.subtract %w, %4 : tensor<f32>
    return %5, %3 : tensor<f32>, tensor<f32>
  }
}
