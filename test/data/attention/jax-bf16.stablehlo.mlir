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
    %cst_0 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %12 = stablehlo.reduce(%11 init: %cst_0) applies stablehlo.maximum across dimensions = [4] : (tensor<2x4x33x1x33xf32>, tensor<f32>) -> tensor<2x4x33x1xf32>
    %cst_1 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %13 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f32>) -> tensor<2x4x33x1xf32>
    %14 = stablehlo.maximum %13, %12 : tensor<2x4x33x1xf32>
    %15 = stablehlo.transpose %14, dims = [3, 0, 1, 2] : (tensor<2x4x33x1xf32>) -> tensor<1x2x4x33xf32>
    %16 = stablehlo.broadcast_in_dim %15, dims = [0, 1, 2, 3] : (tensor<1x2x4x33xf32>) -> tensor<1x2x4x33x1xf32>
    %17 = stablehlo.transpose %11, dims = [3, 0, 1, 2, 4] : (tensor<2x4x33x1x33xf32>) -> tensor<1x2x4x33x33xf32>
    %18 = stablehlo.broadcast_in_dim %16, dims = [0, 1, 2, 3, 4] : (tensor<1x2x4x33x1xf32>) -> tensor<1x2x4x33x33xf32>
    %19 = stablehlo.subtract %17, %18 : tensor<1x2x4x33x33xf32>
    %20 = stablehlo.exponential %19 : tensor<1x2x4x33x33xf32>
    %cst_2 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %21 = stablehlo.reduce(%20 init: %cst_2) applies stablehlo.add across dimensions = [4] : (tensor<1x2x4x33x33xf32>, tensor<f32>) -> tensor<1x2x4x33xf32>
    %22 = stablehlo.broadcast_in_dim %21, dims = [0, 1, 2, 3] : (tensor<1x2x4x33xf32>) -> tensor<1x2x4x33x1xf32>
    %23 = stablehlo.broadcast_in_dim %22, dims = [0, 1, 2, 3, 4] : (tensor<1x2x4x33x1xf32>) -> tensor<1x2x4x33x33xf32>
    %24 = stablehlo.divide %20, %23 : tensor<1x2x4x33x33xf32>
    %25 = stablehlo.multiply %22, %22 : tensor<1x2x4x33x1xf32>
    %cst_3 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %26 = stablehlo.broadcast_in_dim %cst_3, dims = [] : (tensor<f32>) -> tensor<1x2x4x33x1xf32>
    %27 = stablehlo.divide %26, %25 : tensor<1x2x4x33x1xf32>
    %28 = stablehlo.convert %24 : (tensor<1x2x4x33x33xf32>) -> tensor<1x2x4x33x33xbf16>
    %29 = stablehlo.dot_general %7, %28, batching_dims = [0, 2] x [1, 2], contracting_dims = [1] x [4], precision = [DEFAULT, DEFAULT] : (tensor<2x33x4x16xbf16>, tensor<1x2x4x33x33xbf16>) -> tensor<2x4x16x1x33xbf16>
    %30 = stablehlo.transpose %29, dims = [3, 0, 4, 1, 2] : (tensor<2x4x16x1x33xbf16>) -> tensor<1x2x33x4x16xbf16>
    %31 = stablehlo.transpose %30, dims = [1, 2, 3, 0, 4] : (tensor<1x2x33x4x16xbf16>) -> tensor<2x33x4x1x16xbf16>
    %32 = stablehlo.reshape %31 : (tensor<2x33x4x1x16xbf16>) -> tensor<2x33x4x16xbf16>
    %33 = stablehlo.reshape %32 : (tensor<2x33x4x16xbf16>) -> tensor<2x33x64xbf16>
    %34 = stablehlo.dot_general %33, %arg0, contracting_dims = [2] x [0], precision = [DEFAULT, DEFAULT] : (tensor<2x33x64xbf16>, tensor<64x64xbf16>) -> tensor<2x33x64xbf16>
    %35 = stablehlo.convert %34 : (tensor<2x33x64xbf16>) -> tensor<2x33x64xf32>
    %36 = chlo.square %35 : tensor<2x33x64xf32> -> tensor<2x33x64xf32>
    %cst_4 = stablehlo.constant dense<2.000000e+00> : tensor<f32>
    %37 = stablehlo.broadcast_in_dim %cst_4, dims = [] : (tensor<f32>) -> tensor<2x33x64xf32>
    %38 = stablehlo.multiply %37, %35 : tensor<2x33x64xf32>
    %cst_5 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %39 = stablehlo.reduce(%36 init: %cst_5) applies stablehlo.add across dimensions = [0, 1, 2] : (tensor<2x33x64xf32>, tensor<f32>) -> tensor<f32>
    %cst_6 = stablehlo.constant dense<4.224000e+03> : tensor<f32>
    %40 = stablehlo.divide %39, %cst_6 : tensor<f32>
    %cst_7 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %cst_8 = stablehlo.constant dense<4.224000e+03> : tensor<f32>
    %41 = stablehlo.divide %cst_7, %cst_8 : tensor<f32>
    %42 = stablehlo.broadcast_in_dim %41, dims = [] : (tensor<f32>) -> tensor<2x33x64xf32>
    %43 = stablehlo.multiply %42, %38 : tensor<2x33x64xf32>
    %44 = stablehlo.convert %43 : (tensor<2x33x64xf32>) -> tensor<2x33x64xbf16>
    %45 = stablehlo.dot_general %44, %33, contracting_dims = [0, 1] x [0, 1], precision = [DEFAULT, DEFAULT] : (tensor<2x33x64xbf16>, tensor<2x33x64xbf16>) -> tensor<64x64xbf16>
    %46 = stablehlo.transpose %45, dims = [1, 0] : (tensor<64x64xbf16>) -> tensor<64x64xbf16>
    %47 = stablehlo.dot_general %44, %arg0, contracting_dims = [2] x [1], precision = [DEFAULT, DEFAULT] : (tensor<2x33x64xbf16>, tensor<64x64xbf16>) -> tensor<2x33x64xbf16>
    %48 = stablehlo.reshape %47 : (tensor<2x33x64xbf16>) -> tensor<2x33x4x16xbf16>
    %49 = stablehlo.reshape %48 : (tensor<2x33x4x16xbf16>) -> tensor<2x33x4x1x16xbf16>
    %50 = stablehlo.transpose %49, dims = [3, 0, 1, 2, 4] : (tensor<2x33x4x1x16xbf16>) -> tensor<1x2x33x4x16xbf16>
    %51 = stablehlo.transpose %50, dims = [1, 3, 4, 0, 2] : (tensor<1x2x33x4x16xbf16>) -> tensor<2x4x16x1x33xbf16>
    %52 = stablehlo.dot_general %51, %7, batching_dims = [0, 1] x [0, 2], contracting_dims = [2] x [3], precision = [DEFAULT, DEFAULT] : (tensor<2x4x16x1x33xbf16>, tensor<2x33x4x16xbf16>) -> tensor<2x4x1x33x33xbf16>
    %53 = stablehlo.transpose %52, dims = [2, 0, 1, 3, 4] : (tensor<2x4x1x33x33xbf16>) -> tensor<1x2x4x33x33xbf16>
    %54 = stablehlo.dot_general %51, %28, batching_dims = [0, 1] x [1, 2], contracting_dims = [3, 4] x [0, 3], precision = [DEFAULT, DEFAULT] : (tensor<2x4x16x1x33xbf16>, tensor<1x2x4x33x33xbf16>) -> tensor<2x4x16x33xbf16>
    %55 = stablehlo.transpose %54, dims = [0, 3, 1, 2] : (tensor<2x4x16x33xbf16>) -> tensor<2x33x4x16xbf16>
    %56 = stablehlo.convert %53 : (tensor<1x2x4x33x33xbf16>) -> tensor<1x2x4x33x33xf32>
    %57 = stablehlo.broadcast_in_dim %27, dims = [0, 1, 2, 3, 4] : (tensor<1x2x4x33x1xf32>) -> tensor<1x2x4x33x33xf32>
    %58 = stablehlo.multiply %56, %57 : tensor<1x2x4x33x33xf32>
    %59 = stablehlo.multiply %58, %20 : tensor<1x2x4x33x33xf32>
    %cst_9 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %60 = stablehlo.reduce(%59 init: %cst_9) applies stablehlo.add across dimensions = [4] : (tensor<1x2x4x33x33xf32>, tensor<f32>) -> tensor<1x2x4x33xf32>
    %61 = stablehlo.reshape %60 : (tensor<1x2x4x33xf32>) -> tensor<1x2x4x33x1xf32>
    %62 = stablehlo.negate %61 : tensor<1x2x4x33x1xf32>
    %63 = stablehlo.broadcast_in_dim %22, dims = [0, 1, 2, 3, 4] : (tensor<1x2x4x33x1xf32>) -> tensor<1x2x4x33x33xf32>
    %64 = stablehlo.divide %56, %63 : tensor<1x2x4x33x33xf32>
    %cst_10 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %65 = stablehlo.reduce(%62 init: %cst_10) applies stablehlo.add across dimensions = [0, 4] : (tensor<1x2x4x33x1xf32>, tensor<f32>) -> tensor<2x4x33xf32>
    %66 = stablehlo.broadcast_in_dim %65, dims = [1, 2, 3] : (tensor<2x4x33xf32>) -> tensor<1x2x4x33xf32>
    %67 = stablehlo.broadcast_in_dim %66, dims = [0, 1, 2, 3] : (tensor<1x2x4x33xf32>) -> tensor<1x2x4x33x33xf32>
    %68 = stablehlo.add %64, %67 : tensor<1x2x4x33x33xf32>
    %69 = stablehlo.multiply %68, %20 : tensor<1x2x4x33x33xf32>
    %70 = stablehlo.transpose %69, dims = [1, 2, 3, 0, 4] : (tensor<1x2x4x33x33xf32>) -> tensor<2x4x33x1x33xf32>
    %cst_11 = stablehlo.constant dense<2.500000e-01> : tensor<f32>
    %71 = stablehlo.broadcast_in_dim %cst_11, dims = [] : (tensor<f32>) -> tensor<2x4x33x1x33xf32>
    %72 = stablehlo.multiply %70, %71 : tensor<2x4x33x1x33xf32>
    %73 = stablehlo.dot_general %72, %8, batching_dims = [0, 1] x [0, 2], contracting_dims = [2, 3] x [1, 3], precision = [DEFAULT, DEFAULT], algorithm = <lhs_precision_type = bf16, rhs_precision_type = bf16, accumulation_type = f32, lhs_component_count = 1, rhs_component_count = 1, num_primitive_operations = 1, allow_imprecise_accumulation = false> : (tensor<2x4x33x1x33xf32>, tensor<2x33x4x1x16xbf16>) -> tensor<2x4x33x16xf32>
    %74 = stablehlo.transpose %73, dims = [0, 2, 1, 3] : (tensor<2x4x33x16xf32>) -> tensor<2x33x4x16xf32>
    %75 = stablehlo.convert %74 : (tensor<2x33x4x16xf32>) -> tensor<2x33x4x16xbf16>
    %76 = stablehlo.dot_general %72, %5, batching_dims = [0, 1] x [0, 2], contracting_dims = [4] x [1], precision = [DEFAULT, DEFAULT], algorithm = <lhs_precision_type = bf16, rhs_precision_type = bf16, accumulation_type = f32, lhs_component_count = 1, rhs_component_count = 1, num_primitive_operations = 1, allow_imprecise_accumulation = false> : (tensor<2x4x33x1x33xf32>, tensor<2x33x4x16xbf16>) -> tensor<2x4x33x1x16xf32>
    %77 = stablehlo.transpose %76, dims = [0, 2, 1, 3, 4] : (tensor<2x4x33x1x16xf32>) -> tensor<2x33x4x1x16xf32>
    %78 = stablehlo.convert %77 : (tensor<2x33x4x1x16xf32>) -> tensor<2x33x4x1x16xbf16>
    %79 = stablehlo.reshape %78 : (tensor<2x33x4x1x16xbf16>) -> tensor<2x33x4x16xbf16>
    %80 = stablehlo.broadcast_in_dim %55, dims = [0, 1, 3, 4] : (tensor<2x33x4x16xbf16>) -> tensor<2x33x1x4x16xbf16>
    %cst_12 = stablehlo.constant dense<0.000000e+00> : tensor<bf16>
    %81 = stablehlo.pad %80, %cst_12, low = [0, 0, 2, 0, 0], high = [0, 0, 0, 0, 0], interior = [0, 0, 0, 0, 0] : (tensor<2x33x1x4x16xbf16>, tensor<bf16>) -> tensor<2x33x3x4x16xbf16>
    %82 = stablehlo.broadcast_in_dim %75, dims = [0, 1, 3, 4] : (tensor<2x33x4x16xbf16>) -> tensor<2x33x1x4x16xbf16>
    %cst_13 = stablehlo.constant dense<0.000000e+00> : tensor<bf16>
    %83 = stablehlo.pad %82, %cst_13, low = [0, 0, 1, 0, 0], high = [0, 0, 1, 0, 0], interior = [0, 0, 0, 0, 0] : (tensor<2x33x1x4x16xbf16>, tensor<bf16>) -> tensor<2x33x3x4x16xbf16>
    %84 = stablehlo.add %81, %83 : tensor<2x33x3x4x16xbf16>
    %85 = stablehlo.broadcast_in_dim %79, dims = [0, 1, 3, 4] : (tensor<2x33x4x16xbf16>) -> tensor<2x33x1x4x16xbf16>
    %cst_14 = stablehlo.constant dense<0.000000e+00> : tensor<bf16>
    %86 = stablehlo.pad %85, %cst_14, low = [0, 0, 0, 0, 0], high = [0, 0, 2, 0, 0], interior = [0, 0, 0, 0, 0] : (tensor<2x33x1x4x16xbf16>, tensor<bf16>) -> tensor<2x33x3x4x16xbf16>
    %87 = stablehlo.add %84, %86 : tensor<2x33x3x4x16xbf16>
    %88 = stablehlo.reshape %87 : (tensor<2x33x3x4x16xbf16>) -> tensor<2x33x192xbf16>
    %89 = stablehlo.dot_general %88, %arg2, contracting_dims = [0, 1] x [0, 1], precision = [DEFAULT, DEFAULT] : (tensor<2x33x192xbf16>, tensor<2x33x64xbf16>) -> tensor<192x64xbf16>
    %90 = stablehlo.transpose %89, dims = [1, 0] : (tensor<192x64xbf16>) -> tensor<64x192xbf16>
    %cst_15 = stablehlo.constant dense<1.000980e-01> : tensor<bf16>
    %91 = stablehlo.broadcast_in_dim %cst_15, dims = [] : (tensor<bf16>) -> tensor<64x64xbf16>
    %92 = stablehlo.multiply %91, %46 : tensor<64x64xbf16>
    %93 = stablehlo.subtract %arg0, %92 : tensor<64x64xbf16>
    %cst_16 = stablehlo.constant dense<1.000980e-01> : tensor<bf16>
    %94 = stablehlo.broadcast_in_dim %cst_16, dims = [] : (tensor<bf16>) -> tensor<64x192xbf16>
    %95 = stablehlo.multiply %94, %90 : tensor<64x192xbf16>
    %96 = stablehlo.subtract %arg1, %95 : tensor<64x192xbf16>
    return %93, %96, %40 : tensor<64x64xbf16>, tensor<64x192xbf16>, tensor<f32>
  }
}

