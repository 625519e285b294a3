#!/usr/bin/env bash
# What no step can have is refused by every command alike, first thing: one sentence, a hint, exit code 1, and nothing
# is written. State that would be lost is refused by train.
set -u
. "$SHEAF_SOURCE/test/support/cli.sh"

stablehlo() {
    echo "func.func public @main(%w: tensor<4xf32>, %x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {"
    echo "  $1"
    echo "  return %y, %nothing : tensor<4xf32>, tensor<4xf32>"
    echo "}"
}
stablehlo '%y = stablehlo.custom_call @SPMDFullToShardShape(%x) : (tensor<4xf32>) -> tensor<4xf32>' >"$work/split.mlir"
stablehlo '%y = stablehlo.custom_call @xla_ffi_python_cpu_callback(%x) : (tensor<4xf32>) -> tensor<4xf32>' >"$work/host.mlir"
stablehlo '%y = stablehlo.convert %x : (tensor<4xf32>) -> tensor<?xf32>' >"$work/dynamic.mlir"
printf 'HloModule m\nENTRY e {\n  x = f32[<=4] parameter(0)\n  ROOT y = f32[4] negate(z)\n}\n' >"$work/dynamic.hlo"
echo '{}' >"$work/plan.json"

for step in split.mlir host.mlir dynamic.mlir dynamic.hlo; do
    while read -r -a command; do
        expect 1 "${command[0]}" "$work/$step" "${command[@]:1}"
        case $step in
        split.*) warns "@SPMDFullToShardShape says how the step is split" ;;
        host.*) warns "@xla_ffi_python_cpu_callback reaches outside of the step" ;;
        dynamic.*) warns "has a size that is not known" ;;
        esac
        silent out
        [ "$(wc -l <"$work/err")" -eq 2 ] || fail "$step, ${command[*]}: more than a sentence and a hint"
        grep -q "^$work/$step:[0-9]*:[0-9]*: error: " "$work/err" || fail "$step: no place"
    done <<END
show
convert
eval
plan --cluster 1x2xV100
pin --recipe dp -n 2 -o $work/out.json
run
train --steps 1 --data synthetic
verify --against $work/plan.json
END
done
[ ! -e "$work/out.json" ] || fail "a plan was written"

# State that would be lost: planned with a warning, which --strict makes a failure, but not trained.
cat >"$work/lost.mlir" <<'END'
func.func public @main(%w: tensor<4xf32> {tf.aliasing_output = 0 : i32}, %m: tensor<4xf32>, %x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<f32>) {
  %g = stablehlo.multiply %x, %w : tensor<4xf32>
  %m0 = stablehlo.add %m, %g : tensor<4xf32>
  %m1 = stablehlo.tanh %m0 : tensor<4xf32>
  %w1 = stablehlo.subtract %w, %m1 : tensor<4xf32>
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %loss = stablehlo.reduce(%g init: %z) applies stablehlo.add across dimensions = [0] : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
  return %w1, %m1, %loss : tensor<4xf32>, tensor<4xf32>, tensor<f32>
}
END
# An alias against the sidecar: the text binds, with a warning, which --strict makes an error before anything runs.
sed 's/%m: tensor<4xf32>/& {tf.aliasing_output = 1 : i32}/' "$work/lost.mlir" >"$work/fed.mlir"
echo '{"args": [{"role": "param", "shape": [4]}, {"role": "batch", "shape": [4]}, {"role": "batch", "shape": [4]}]}' >"$work/fed.json"
fed="the argument m is batch by the sidecar, but the text aliases it to result 1"
while read -r -a command; do
    expect 0 "${command[0]}" "$work/fed.mlir" "${command[@]:1}"
    warns "warning: $fed"
    expect 1 "${command[0]}" "$work/fed.mlir" "${command[@]:1}" --strict
    warns "error: $fed"
done <<END
show
convert
eval
plan --cluster 1x2xV100
pin --mesh data=2
run
train --steps 1 --data synthetic
END
lost="result 1 looks like what becomes of the argument m, but is not linked to it"
expect 0 show "$work/lost.mlir"
warns "warning: $lost"
expect 0 pin "$work/lost.mlir" --mesh data=2
warns "warning: $lost"
expect 1 pin "$work/lost.mlir" --mesh data=2 --strict
warns "warning: $lost"
expect 0 plan "$work/lost.mlir" --cluster 1x2xV100
warns "warning: $lost"
expect 1 train "$work/lost.mlir" --steps 1 --data synthetic
warns "error: $lost"
expect 0 train "$work/lost.mlir" --steps 1 --data synthetic --state 0=0,1=1
echo '{"outputs": [1]}' >"$work/outputs.json"
expect 0 train "$work/lost.mlir" --steps 1 --data synthetic --sidecar "$work/outputs.json"
expect 0 show "$work/lost.mlir" --sidecar "$work/outputs.json"
silent err

# A string as Python prints it, in one line; and a plan of a recipe that there is not.
step=$SHEAF_SOURCE/examples/gpt-micro.stablehlo.mlir
sed ':a;N;$!ba;s/\n/\\n/g' "$step" >"$work/repr.mlir"
expect 1 show "$work/repr.mlir"
warns "it is a string as Python's repr writes it"
expect 0 pin "$step" -r dp -n 2 -o "$work/dp.json"
sed 's/"recipe": "dp"/"recipe": "nosuch"/' "$work/dp.json" >"$work/nosuch.json"
expect 0 sim "$work/nosuch.json" -c 1x2xCPU
warns 'there is no recipe "nosuch"; the layouts of the plan count'
[ "$failures" -eq 0 ] || { echo "$failures failed"; exit 1; }
