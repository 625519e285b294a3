// Windows that see all up to their place: cumulative sums, with a start that changes nothing and with one that does, and the most
// so far; and all from there on: sums that are exact in any order, and the most to come.
func.func public @main() -> (tensor<3x40x5xf32>, tensor<3x40x5xf32>, tensor<6x37xi32>, tensor<3x40x5xf32>, tensor<6x37xi32>) {
  %i = stablehlo.iota dim = 1 : tensor<3x40x5xf32>
  %j = stablehlo.iota dim = 2 : tensor<3x40x5xf32>
  %third = stablehlo.constant dense<0.333> : tensor<3x40x5xf32>
  %s = stablehlo.multiply %i, %third : tensor<3x40x5xf32>
  %x = stablehlo.subtract %s, %j : tensor<3x40x5xf32>
  %k = stablehlo.iota dim = 1 : tensor<6x37xi32>
  %seven = stablehlo.constant dense<7> : tensor<6x37xi32>
  %y = stablehlo.remainder %k, %seven : tensor<6x37xi32>
  %nil = stablehlo.constant dense<0.0> : tensor<f32>
  %one = stablehlo.constant dense<1.0> : tensor<f32>
  %least = stablehlo.constant dense<-2147483648> : tensor<i32>
  %a = "stablehlo.reduce_window"(%x, %nil) <{padding = dense<[[0, 0], [39, 0], [0, 0]]> : tensor<3x2xi64>, window_dimensions = array<i64: 1, 40, 1>}> ({
  ^bb0(%p: tensor<f32>, %q: tensor<f32>):
    %r = stablehlo.add %p, %q : tensor<f32>
    stablehlo.return %r : tensor<f32>
  }) : (tensor<3x40x5xf32>, tensor<f32>) -> tensor<3x40x5xf32>
  %b = "stablehlo.reduce_window"(%x, %one) <{padding = dense<[[0, 0], [39, 0], [0, 0]]> : tensor<3x2xi64>, window_dimensions = array<i64: 1, 40, 1>}> ({
  ^bb0(%p: tensor<f32>, %q: tensor<f32>):
    %r = stablehlo.add %p, %q : tensor<f32>
    stablehlo.return %r : tensor<f32>
  }) : (tensor<3x40x5xf32>, tensor<f32>) -> tensor<3x40x5xf32>
  %c = "stablehlo.reduce_window"(%y, %least) <{padding = dense<[[0, 0], [36, 0]]> : tensor<2x2xi64>, window_dimensions = array<i64: 1, 37>}> ({
  ^bb0(%p: tensor<i32>, %q: tensor<i32>):
    %r = stablehlo.maximum %p, %q : tensor<i32>
    stablehlo.return %r : tensor<i32>
  }) : (tensor<6x37xi32>, tensor<i32>) -> tensor<6x37xi32>
  %z = stablehlo.subtract %i, %j : tensor<3x40x5xf32>
  %d = "stablehlo.reduce_window"(%z, %nil) <{padding = dense<[[0, 0], [0, 39], [0, 0]]> : tensor<3x2xi64>, window_dimensions = array<i64: 1, 40, 1>}> ({
  ^bb0(%p: tensor<f32>, %q: tensor<f32>):
    %r = stablehlo.add %p, %q : tensor<f32>
    stablehlo.return %r : tensor<f32>
  }) : (tensor<3x40x5xf32>, tensor<f32>) -> tensor<3x40x5xf32>
  %e = "stablehlo.reduce_window"(%y, %least) <{padding = dense<[[0, 0], [0, 36]]> : tensor<2x2xi64>, window_dimensions = array<i64: 1, 37>}> ({
  ^bb0(%p: tensor<i32>, %q: tensor<i32>):
    %r = stablehlo.maximum %p, %q : tensor<i32>
    stablehlo.return %r : tensor<i32>
  }) : (tensor<6x37xi32>, tensor<i32>) -> tensor<6x37xi32>
  return %a, %b, %c, %d, %e : tensor<3x40x5xf32>, tensor<3x40x5xf32>, tensor<6x37xi32>, tensor<3x40x5xf32>, tensor<6x37xi32>
}
