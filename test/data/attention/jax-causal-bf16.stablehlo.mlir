module @jit_f attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<64x64xbf16>, %arg1: tensor<64x192xbf16>, %arg2: tensor<2x33x64xbf16>) -> (tensor<64x64xbf16> {jax.result_info = "result[0]['o']"}, tensor<64x192xbf16> {jax.result_info = "result[0]['qkv']"}, tensor<f32> {jax.result_info = "result[1]"}) {
    %0 = stablehlo.dot_general %arg2, %arg1, contracting_dims = [2] x [0], precision = [DEFAULT, DEFAULT] : (tensor<2x33x64xbf16>, tensor<64x192xbf16>) -> tensor<2x33x192xbf16>
    %1 = stablehlo.reshape %0 : (tensor<2x33x192xbf16>) -> tensor<2x33x3x4x16xbf16>
    %2 = stablehlo.slice %1 [0:2, 0:33, 0:1, 0:4, 0:16] : (tensor<2x33x3x4x16xbf16>) -> tensor<2x33x1x4x16xbf16>
    %3 = stablehlo.reshape %2 : (tensor<2x33x1x4x16xbf16>) -> tensor<2x33x4x16xbf16>
    %4 = stablehlo.slice %1 [0:2, 0:33, 1:2, 0:4, 0:16] : (tensor<2x33x3x4x16xbf16>) -> tensor<2x33x1x4x16xbf16>
    %5 = stablehlo.reshape %4 : (tensor<2x33x1x4x16xbf16>) -> tensor<2x33x4x16xbf16>
    %6 = stablehlo.slice %1 [0:2, 0:33, 2:3, 0:4, 0:16] : (tensor<2x33x3x4x16xbf16>) -> tensor<2x33x1x4x16xbf16>
    %7 = stablehlo.reshape %6 : (tensor<2x33x1x4x16xbf16>) -> tensor<2x33x4x16xbf16>
    %8 = stablehlo.reshape %3 : (tensor<2x33x4x16xbf16>) -> tensor<2x33x4x1x16xbf16>
    %9 = stablehlo.dot_general %8, %5, batching_dims = [0, 2] x [0, 2], contracting_dims = [4] x [3], precision = [DEFAULT, DEFAULT], algorithm = <lhs_precision_type = bf16, rhs_precision_type = bf16, accumulation_type = f32, lhs_component_count = 1, rhs_component_count = 1, num_primitive_operations = 1, allow_imprecise_accumulation = false> : (tensor<2x33x4x1x16xbf16>, tensor<2x33x4x16xbf16>) -> tensor<2x4x33x1x33xf32>
    %cst = stablehlo.constant dense<2.500000e-01> : tensor<f32>
    %10 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<2x4x33x1x33xf32>
    %11 = stablehlo.multiply %9, %10 : tensor<2x4x33x1x33xf32>
    %c = stablehlo.constant dense<true> : tensor<i1>
    %12 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i1>) -> tensor<2x4x33x33xi1>
    %c_0 = stablehlo.constant dense<true> : tensor<i1>
    %13 = stablehlo.broadcast_in_dim %c_0, dims = [] : (tensor<i1>) -> tensor<33x33xi1>
    %14 = call @tril(%13) : (tensor<33x33xi1>) -> tensor<33x33xi1>
    %15 = stablehlo.broadcast_in_dim %14, dims = [2, 3] : (tensor<33x33xi1>) -> tensor<1x1x33x33xi1>
    %16 = stablehlo.broadcast_in_dim %15, dims = [0, 1, 2, 3] : (tensor<1x1x33x33xi1>) -> tensor<2x4x33x33xi1>
    %17 = stablehlo.and %12, %16 : tensor<2x4x33x33xi1>
    %cst_1 = stablehlo.constant dense<-2.38197633E+38> : tensor<f32>
    %18:2 = call @_where(%17, %11, %cst_1) : (tensor<2x4x33x33xi1>, tensor<2x4x33x1x33xf32>, tensor<f32>) -> (tensor<1x2x4x33x33xf32>, tensor<1x2x4x33x33xi1>)
    %cst_2 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %19 = stablehlo.reduce(%18#0 init: %cst_2) applies stablehlo.maximum across dimensions = [4] : (tensor<1x2x4x33x33xf32>, tensor<f32>) -> tensor<1x2x4x33xf32>
    %cst_3 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %20 = stablehlo.broadcast_in_dim %cst_3, dims = [] : (tensor<f32>) -> tensor<1x2x4x33xf32>
    %21 = stablehlo.maximum %20, %19 : tensor<1x2x4x33xf32>
    %22 = stablehlo.broadcast_in_dim %21, dims = [0, 1, 2, 3] : (tensor<1x2x4x33xf32>) -> tensor<1x2x4x33x1xf32>
    %23 = stablehlo.broadcast_in_dim %22, dims = [0, 1, 2, 3, 4] : (tensor<1x2x4x33x1xf32>) -> tensor<1x2x4x33x33xf32>
    %24 = stablehlo.subtract %18#0, %23 : tensor<1x2x4x33x33xf32>
    %25 = stablehlo.exponential %24 : tensor<1x2x4x33x33xf32>
    %cst_4 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %26 = stablehlo.reduce(%25 init: %cst_4) applies stablehlo.add across dimensions = [4] : (tensor<1x2x4x33x33xf32>, tensor<f32>) -> tensor<1x2x4x33xf32>
    %27 = stablehlo.broadcast_in_dim %26, dims = [0, 1, 2, 3] : (tensor<1x2x4x33xf32>) -> tensor<1x2x4x33x1xf32>
    %28 = stablehlo.broadcast_in_dim %27, dims = [0, 1, 2, 3, 4] : (tensor<1x2x4x33x1xf32>) -> tensor<1x2x4x33x33xf32>
    %29 = stablehlo.divide %25, %28 : tensor<1x2x4x33x33xf32>
    %30 = stablehlo.multiply %27, %27 : tensor<1x2x4x33x1xf32>
    %cst_5 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %31 = stablehlo.broadcast_in_dim %cst_5, dims = [] : (tensor<f32>) -> tensor<1x2x4x33x1xf32>
    %32 = stablehlo.divide %31, %30 : tensor<1x2x4x33x1xf32>
    %33 = stablehlo.convert %29 : (tensor<1x2x4x33x33xf32>) -> tensor<1x2x4x33x33xbf16>
    %34 = stablehlo.dot_general %7, %33, batching_dims = [0, 2] x [1, 2], contracting_dims = [1] x [4], precision = [DEFAULT, DEFAULT] : (tensor<2x33x4x16xbf16>, tensor<1x2x4x33x33xbf16>) -> tensor<2x4x16x1x33xbf16>
    %35 = stablehlo.transpose %34, dims = [3, 0, 4, 1, 2] : (tensor<2x4x16x1x33xbf16>) -> tensor<1x2x33x4x16xbf16>
    %36 = stablehlo.transpose %35, dims = [1, 2, 3, 0, 4] : (tensor<1x2x33x4x16xbf16>) -> tensor<2x33x4x1x16xbf16>
    %37 = stablehlo.reshape %36 : (tensor<2x33x4x1x16xbf16>) -> tensor<2x33x4x16xbf16>
    %38 = stablehlo.reshape %37 : (tensor<2x33x4x16xbf16>) -> tensor<2x33x64xbf16>
    %39 = stablehlo.dot_general %38, %arg0, contracting_dims = [2] x [0], precision = [DEFAULT, DEFAULT] : (tensor<2x33x64xbf16>, tensor<64x64xbf16>) -> tensor<2x33x64xbf16>
    %40 = stablehlo.convert %39 : (tensor<2x33x64xbf16>) -> tensor<2x33x64xf32>
    %41 = chlo.square %40 : tensor<2x33x64xf32> -> tensor<2x33x64xf32>
    %cst_6 = stablehlo.constant dense<2.000000e+00> : tensor<f32>
    %42 = stablehlo.broadcast_in_dim %cst_6, dims = [] : (tensor<f32>) -> tensor<2x33x64xf32>
    %43 = stablehlo.multiply %42, %40 : tensor<2x33x64xf32>
    %cst_7 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %44 = stablehlo.reduce(%41 init: %cst_7) applies stablehlo.add across dimensions = [0, 1, 2] : (tensor<2x33x64xf32>, tensor<f32>) -> tensor<f32>
    %cst_8 = stablehlo.constant dense<4.224000e+03> : tensor<f32>
    %45 = stablehlo.divide %44, %cst_8 : tensor<f32>
    %cst_9 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %cst_10 = stablehlo.constant dense<4.224000e+03> : tensor<f32>
    %46 = stablehlo.divide %cst_9, %cst_10 : tensor<f32>
    %47 = stablehlo.broadcast_in_dim %46, dims = [] : (tensor<f32>) -> tensor<2x33x64xf32>
    %48 = stablehlo.multiply %47, %43 : tensor<2x33x64xf32>
    %49 = stablehlo.convert %48 : (tensor<2x33x64xf32>) -> tensor<2x33x64xbf16>
    %50 = stablehlo.dot_general %49, %38, contracting_dims = [0, 1] x [0, 1], precision = [DEFAULT, DEFAULT] : (tensor<2x33x64xbf16>, tensor<2x33x64xbf16>) -> tensor<64x64xbf16>
    %51 = stablehlo.transpose %50, dims = [1, 0] : (tensor<64x64xbf16>) -> tensor<64x64xbf16>
    %52 = stablehlo.dot_general %49, %arg0, contracting_dims = [2] x [1], precision = [DEFAULT, DEFAULT] : (tensor<2x33x64xbf16>, tensor<64x64xbf16>) -> tensor<2x33x64xbf16>
    %53 = stablehlo.reshape %52 : (tensor<2x33x64xbf16>) -> tensor<2x33x4x16xbf16>
    %54 = stablehlo.reshape %53 : (tensor<2x33x4x16xbf16>) -> tensor<2x33x4x1x16xbf16>
    %55 = stablehlo.transpose %54, dims = [3, 0, 1, 2, 4] : (tensor<2x33x4x1x16xbf16>) -> tensor<1x2x33x4x16xbf16>
    %56 = stablehlo.transpose %55, dims = [1, 3, 4, 0, 2] : (tensor<1x2x33x4x16xbf16>) -> tensor<2x4x16x1x33xbf16>
    %57 = stablehlo.dot_general %56, %7, batching_dims = [0, 1] x [0, 2], contracting_dims = [2] x [3], precision = [DEFAULT, DEFAULT] : (tensor<2x4x16x1x33xbf16>, tensor<2x33x4x16xbf16>) -> tensor<2x4x1x33x33xbf16>
    %58 = stablehlo.transpose %57, dims = [2, 0, 1, 3, 4] : (tensor<2x4x1x33x33xbf16>) -> tensor<1x2x4x33x33xbf16>
    %59 = stablehlo.dot_general %56, %33, batching_dims = [0, 1] x [1, 2], contracting_dims = [3, 4] x [0, 3], precision = [DEFAULT, DEFAULT] : (tensor<2x4x16x1x33xbf16>, tensor<1x2x4x33x33xbf16>) -> tensor<2x4x16x33xbf16>
    %60 = stablehlo.transpose %59, dims = [0, 3, 1, 2] : (tensor<2x4x16x33xbf16>) -> tensor<2x33x4x16xbf16>
    %61 = stablehlo.convert %58 : (tensor<1x2x4x33x33xbf16>) -> tensor<1x2x4x33x33xf32>
    %62 = stablehlo.broadcast_in_dim %32, dims = [0, 1, 2, 3, 4] : (tensor<1x2x4x33x1xf32>) -> tensor<1x2x4x33x33xf32>
    %63 = stablehlo.multiply %61, %62 : tensor<1x2x4x33x33xf32>
    %64 = stablehlo.multiply %63, %25 : tensor<1x2x4x33x33xf32>
    %cst_11 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %65 = stablehlo.reduce(%64 init: %cst_11) applies stablehlo.add across dimensions = [4] : (tensor<1x2x4x33x33xf32>, tensor<f32>) -> tensor<1x2x4x33xf32>
    %66 = stablehlo.reshape %65 : (tensor<1x2x4x33xf32>) -> tensor<1x2x4x33x1xf32>
    %67 = stablehlo.negate %66 : tensor<1x2x4x33x1xf32>
    %68 = stablehlo.broadcast_in_dim %27, dims = [0, 1, 2, 3, 4] : (tensor<1x2x4x33x1xf32>) -> tensor<1x2x4x33x33xf32>
    %69 = stablehlo.divide %61, %68 : tensor<1x2x4x33x33xf32>
    %cst_12 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %70 = stablehlo.reduce(%67 init: %cst_12) applies stablehlo.add across dimensions = [0, 4] : (tensor<1x2x4x33x1xf32>, tensor<f32>) -> tensor<2x4x33xf32>
    %71 = stablehlo.broadcast_in_dim %70, dims = [1, 2, 3] : (tensor<2x4x33xf32>) -> tensor<1x2x4x33xf32>
    %72 = stablehlo.broadcast_in_dim %71, dims = [0, 1, 2, 3] : (tensor<1x2x4x33xf32>) -> tensor<1x2x4x33x33xf32>
    %73 = stablehlo.add %69, %72 : tensor<1x2x4x33x33xf32>
    %74 = stablehlo.multiply %73, %25 : tensor<1x2x4x33x33xf32>
    %75 = call @_where_0(%18#1, %74) : (tensor<1x2x4x33x33xi1>, tensor<1x2x4x33x33xf32>) -> tensor<2x4x33x1x33xf32>
    %cst_13 = stablehlo.constant dense<2.500000e-01> : tensor<f32>
    %76 = stablehlo.broadcast_in_dim %cst_13, dims = [] : (tensor<f32>) -> tensor<2x4x33x1x33xf32>
    %77 = stablehlo.multiply %75, %76 : tensor<2x4x33x1x33xf32>
    %78 = stablehlo.dot_general %77, %8, batching_dims = [0, 1] x [0, 2], contracting_dims = [2, 3] x [1, 3], precision = [DEFAULT, DEFAULT], algorithm = <lhs_precision_type = bf16, rhs_precision_type = bf16, accumulation_type = f32, lhs_component_count = 1, rhs_component_count = 1, num_primitive_operations = 1, allow_imprecise_accumulation = false> : (tensor<2x4x33x1x33xf32>, tensor<2x33x4x1x16xbf16>) -> tensor<2x4x33x16xf32>
    %79 = stablehlo.transpose %78, dims = [0, 2, 1, 3] : (tensor<2x4x33x16xf32>) -> tensor<2x33x4x16xf32>
    %80 = stablehlo.convert %79 : (tensor<2x33x4x16xf32>) -> tensor<2x33x4x16xbf16>
    %81 = stablehlo.dot_general %77, %5, batching_dims = [0, 1] x [0, 2], contracting_dims = [4] x [1], precision = [DEFAULT, DEFAULT], algorithm = <lhs_precision_type = bf16, rhs_precision_type = bf16, accumulation_type = f32, lhs_component_count = 1, rhs_component_count = 1, num_primitive_operations = 1, allow_imprecise_accumulation = false> : (tensor<2x4x33x1x33xf32>, tensor<2x33x4x16xbf16>) -> tensor<2x4x33x1x16xf32>
    %82 = stablehlo.transpose %81, dims = [0, 2, 1, 3, 4] : (tensor<2x4x33x1x16xf32>) -> tensor<2x33x4x1x16xf32>
    %83 = stablehlo.convert %82 : (tensor<2x33x4x1x16xf32>) -> tensor<2x33x4x1x16xbf16>
    %84 = stablehlo.reshape %83 : (tensor<2x33x4x1x16xbf16>) -> tensor<2x33x4x16xbf16>
    %85 = stablehlo.broadcast_in_dim %60, dims = [0, 1, 3, 4] : (tensor<2x33x4x16xbf16>) -> tensor<2x33x1x4x16xbf16>
    %cst_14 = stablehlo.constant dense<0.000000e+00> : tensor<bf16>
    %86 = stablehlo.pad %85, %cst_14, low = [0, 0, 2, 0, 0], high = [0, 0, 0, 0, 0], interior = [0, 0, 0, 0, 0] : (tensor<2x33x1x4x16xbf16>, tensor<bf16>) -> tensor<2x33x3x4x16xbf16>
    %87 = stablehlo.broadcast_in_dim %80, dims = [0, 1, 3, 4] : (tensor<2x33x4x16xbf16>) -> tensor<2x33x1x4x16xbf16>
    %cst_15 = stablehlo.constant dense<0.000000e+00> : tensor<bf16>
    %88 = stablehlo.pad %87, %cst_15, low = [0, 0, 1, 0, 0], high = [0, 0, 1, 0, 0], interior = [0, 0, 0, 0, 0] : (tensor<2x33x1x4x16xbf16>, tensor<bf16>) -> tensor<2x33x3x4x16xbf16>
    %89 = stablehlo.add %86, %88 : tensor<2x33x3x4x16xbf16>
    %90 = stablehlo.broadcast_in_dim %84, dims = [0, 1, 3, 4] : (tensor<2x33x4x16xbf16>) -> tensor<2x33x1x4x16xbf16>
    %cst_16 = stablehlo.constant dense<0.000000e+00> : tensor<bf16>
    %91 = stablehlo.pad %90, %cst_16, low = [0, 0, 0, 0, 0], high = [0, 0, 2, 0, 0], interior = [0, 0, 0, 0, 0] : (tensor<2x33x1x4x16xbf16>, tensor<bf16>) -> tensor<2x33x3x4x16xbf16>
    %92 = stablehlo.add %89, %91 : tensor<2x33x3x4x16xbf16>
    %93 = stablehlo.reshape %92 : (tensor<2x33x3x4x16xbf16>) -> tensor<2x33x192xbf16>
    %94 = stablehlo.dot_general %93, %arg2, contracting_dims = [0, 1] x [0, 1], precision = [DEFAULT, DEFAULT] : (tensor<2x33x192xbf16>, tensor<2x33x64xbf16>) -> tensor<192x64xbf16>
    %95 = stablehlo.transpose %94, dims = [1, 0] : (tensor<192x64xbf16>) -> tensor<64x192xbf16>
    %cst_17 = stablehlo.constant dense<1.000980e-01> : tensor<bf16>
    %96 = stablehlo.broadcast_in_dim %cst_17, dims = [] : (tensor<bf16>) -> tensor<64x64xbf16>
    %97 = stablehlo.multiply %96, %51 : tensor<64x64xbf16>
    %98 = stablehlo.subtract %arg0, %97 : tensor<64x64xbf16>
    %cst_18 = stablehlo.constant dense<1.000980e-01> : tensor<bf16>
    %99 = stablehlo.broadcast_in_dim %cst_18, dims = [] : (tensor<bf16>) -> tensor<64x192xbf16>
    %100 = stablehlo.multiply %99, %95 : tensor<64x192xbf16>
    %101 = stablehlo.subtract %arg1, %100 : tensor<64x192xbf16>
    return %98, %101, %45 : tensor<64x64xbf16>, tensor<64x192xbf16>, tensor<f32>
  }
  func.func private @tril(%arg0: tensor<33x33xi1>) -> tensor<33x33xi1> {
    %0 = stablehlo.iota dim = 0 : tensor<33x33xi32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %1 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i32>) -> tensor<33x33xi32>
    %2 = stablehlo.add %0, %1 : tensor<33x33xi32>
    %3 = stablehlo.iota dim = 1 : tensor<33x33xi32>
    %4 = stablehlo.compare GE, %2, %3, SIGNED : (tensor<33x33xi32>, tensor<33x33xi32>) -> tensor<33x33xi1>
    %c_0 = stablehlo.constant dense<false> : tensor<i1>
    %5 = stablehlo.broadcast_in_dim %c_0, dims = [] : (tensor<i1>) -> tensor<33x33xi1>
    %6 = stablehlo.select %4, %arg0, %5 : tensor<33x33xi1>, tensor<33x33xi1>
    return %6 : tensor<33x33xi1>
  }
  func.func private @_where(%arg0: tensor<2x4x33x33xi1>, %arg1: tensor<2x4x33x1x33xf32>, %arg2: tensor<f32>) -> (tensor<1x2x4x33x33xf32>, tensor<1x2x4x33x33xi1>) {
    %0 = stablehlo.broadcast_in_dim %arg2, dims = [] : (tensor<f32>) -> tensor<2x4x33x33xf32>
    %1 = stablehlo.broadcast_in_dim %arg0, dims = [1, 2, 3, 4] : (tensor<2x4x33x33xi1>) -> tensor<1x2x4x33x33xi1>
    %2 = stablehlo.broadcast_in_dim %0, dims = [1, 2, 3, 4] : (tensor<2x4x33x33xf32>) -> tensor<1x2x4x33x33xf32>
    %3 = stablehlo.transpose %arg1, dims = [3, 0, 1, 2, 4] : (tensor<2x4x33x1x33xf32>) -> tensor<1x2x4x33x33xf32>
    %4 = stablehlo.select %1, %3, %2 : tensor<1x2x4x33x33xi1>, tensor<1x2x4x33x33xf32>
    return %4, %1 : tensor<1x2x4x33x33xf32>, tensor<1x2x4x33x33xi1>
  }
  func.func private @_where_0(%arg0: tensor<1x2x4x33x33xi1>, %arg1: tensor<1x2x4x33x33xf32>) -> tensor<2x4x33x1x33xf32> {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<1x2x4x33x33xf32>
    %1 = stablehlo.select %arg0, %arg1, %0 : tensor<1x2x4x33x33xi1>, tensor<1x2x4x33x33xf32>
    %2 = stablehlo.transpose %1, dims = [1, 2, 3, 0, 4] : (tensor<1x2x4x33x33xf32>) -> tensor<2x4x33x1x33xf32>
    return %2 : tensor<2x4x33x1x33xf32>
  }
}
