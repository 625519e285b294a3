#loc = loc(unknown)
!t = tensor<2x3xf32>
module @jit_step attributes {mhlo.num_partitions = 1 : i32} {
  // a comment
  func.func public @main(%arg0: !t {tf.aliasing_output = 0 : i32, mhlo.sharding = "{replicated}"} loc("w"), %arg1: tensor<2x3xf32> {jax.buffer_donor = true}) -> (tensor<2x3xf32> {jax.result_info = "[0]"}) {
    %0 = call @twice(%arg0) : (tensor<2x3xf32>) -> tensor<2x3xf32> loc(#loc1)
    return %0 : tensor<2x3xf32> loc(#loc)
  } loc(#loc)
  func.func private @twice(%arg0: tensor<2x3xf32>) -> tensor<2x3xf32> {
    %0 = stablehlo.add %arg0, %arg0 : tensor<2x3xf32> loc("a/b/add"(#loc))
    return %0 : tensor<2x3xf32>
  }
} loc(#loc)
#loc1 = loc("jit(step)/call"(#loc2))
#loc2 = loc(callsite("f.py":1:2 to :4 at "g.py":3:4))
