#!/usr/bin/env bash
# Loops that stay, and branches, are split like everything else: on several ranks they are the same step, repeat
# little, and send what the step with its loops unrolled does.
set -u
. "$SHEAF_SOURCE/test/support/cli.sh"
bin=$SHEAF_BIN
data=$SHEAF_SOURCE/test/data/loops
"$bin" version --json | grep -q '"lzma": true' || {
    echo "skipped: no lzma"
    exit 77
}

# field NAME: the number of that name in the summary.
field() {
    sed -n "s/^ *\"$1\": \([0-9.e+-]*\),*$/\1/p" "$work/summary" | head -1
}

# bytes: what all collectives of the summary send.
bytes() {
    sed -n '/"collectives"/,$ s/^ *"bytes_of_a_rank": \([0-9.e+-]*\),*$/\1/p' "$work/summary" |
        awk '{ sum += $1 } END { print sum + 0 }'
}

# below A B: A is not above B.
below() {
    awk -v a="$1" -v b="$2" 'BEGIN { exit !(a != "" && b != "" && a + 0 <= b + 0) }' || fail "'$1' is above '$2'"
}

# split STEP RECIPE RANKS REPEATED: rolled, it is split, and it is the same step; at most so much is repeated.
split() {
    local step=$data/$1.stablehlo.mlir.xz recipe=$2 ranks=$3
    "$bin" pin "$step" --unroll 0 --recipe "$recipe" -n "$ranks" -o "$work/plan.json" --json >"$work/summary" ||
        fail "$1: $recipe does not apply"
    below "$(field repeated)" "$4"
    expect 0 verify "$step" --unroll 0 --plan "$work/plan.json" -n "$ranks" --steps 2 --check
    says "verify: passed"
}

# as_unrolled STEP RECIPE RANKS FACTOR: it sends at most FACTOR times what it does unrolled.
as_unrolled() {
    local step=$data/$1.stablehlo.mlir.xz sent
    split "$1" "$2" "$3" "$5"
    sent=$(bytes)
    below 1 "$sent"
    "$bin" pin "$step" --recipe "$2" -n "$3" --json >"$work/summary" || fail "$1: $2 does not apply"
    below "$sent" "$(awk -v a="$(bytes)" -v f="$4" 'BEGIN { print f * a }')"
}

for ranks in 2 4; do
    for recipe in dp zero1 zero2 zero3; do
        as_unrolled loop-lstm-40 $recipe $ranks 1.01 0.1
        as_unrolled loop-layers $recipe $ranks 1.05 0.06
        split opt-apply-if-finite $recipe $ranks 0.36
        split loop-newton $recipe $ranks 0.32
    done
    as_unrolled loop-layers megatron $ranks 1.01 0.12
    as_unrolled loop-layers sequence $ranks 1.01 0.06
done
as_unrolled loop-layers 2d 4 1.01 0.06
# State in pieces is updated in pieces, behind a condition too.
for recipe in zero1 zero2 zero3; do
    split opt-apply-if-finite $recipe 4 0.1
done
# Gradients that a loop adds up are reduced once, behind it.
as_unrolled accum-scan-m2 dp 2 1.01 0.1

# How often a loop turns is said, where it is known.
expect 0 show "$data/loop-newton.stablehlo.mlir.xz"
says "trip count is not known"
expect 0 show "$data/loop-lstm-40.stablehlo.mlir.xz" --unroll 0
says "counted once per iteration"
# Where it is not, the user can say it, and what is counted grows with it.
newton=$data/loop-newton.stablehlo.mlir.xz
expect 0 plan "$newton" -c 1x2xCPU -o "$work/plan.json"
warns "the trip count of this loop is not known"
warns "--assume-trip-count says how often"
flops() {
    "$bin" show "$newton" "$@" --json | sed -n 's/^ *"flops": \([0-9.e+-]*\),*$/\1/p' | head -1
}
expect 0 plan "$newton" -c 1x2xCPU --assume-trip-count 1000 -o "$work/plan.json"
silent err
below "$(awk -v a="$(flops)" 'BEGIN { print 1.5 * a }')" "$(flops --assume-trip-count 1000)"

# One constant that a branch returns twice: another branch has a shard in one place and a whole tensor in the other.
cat >"$work/case.mlir" <<'END'
#w = loc("w")
#x = loc("x")
func.func public @main(%w: tensor<8x8xf32> loc(#w), %x: tensor<8x8xf32> loc(#x)) -> (tensor<f32>, tensor<8x8xf32>, tensor<8x8xf32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %corner = stablehlo.slice %x [0:1, 0:1] : (tensor<8x8xf32>) -> tensor<1x1xf32>
  %number = stablehlo.reshape %corner : (tensor<1x1xf32>) -> tensor<f32>
  %above = stablehlo.compare GT, %number, %zero, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
  %branch = stablehlo.convert %above : (tensor<i1>) -> tensor<i32>
  %y:3 = "stablehlo.case"(%branch) ({
    %p = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
    %s = stablehlo.reduce(%p init: %zero) applies stablehlo.add across dimensions = [0, 1] : (tensor<8x8xf32>, tensor<f32>) -> tensor<f32>
    %z = stablehlo.broadcast_in_dim %zero, dims = [] : (tensor<f32>) -> tensor<8x8xf32>
    stablehlo.return %s, %z, %z : tensor<f32>, tensor<8x8xf32>, tensor<8x8xf32>
  }, {
    %p = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
    %t = stablehlo.tanh %p : tensor<8x8xf32>
    %s = stablehlo.reduce(%t init: %zero) applies stablehlo.add across dimensions = [0, 1] : (tensor<8x8xf32>, tensor<f32>) -> tensor<f32>
    stablehlo.return %s, %t, %w : tensor<f32>, tensor<8x8xf32>, tensor<8x8xf32>
  }) : (tensor<i32>) -> (tensor<f32>, tensor<8x8xf32>, tensor<8x8xf32>)
  return %y#0, %y#1, %y#2 : tensor<f32>, tensor<8x8xf32>, tensor<8x8xf32>
}
END
expect 0 pin "$work/case.mlir" --mesh data=2 --pin 'x=S(0)@data' -o "$work/case.json"
grep -qF '"case", ["[R]", "[S(0)]", "[R]"], ["[P(+)]", "[S(0)]", "[R]"]' "$work/case.json" ||
    fail "a choice that shares a constant is not split"
expect 0 verify --plan "$work/case.json" --steps 1

[ "$failures" -eq 0 ]
