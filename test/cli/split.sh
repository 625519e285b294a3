#!/usr/bin/env bash
# Splitting by hand: recipes and pins on the shipped steps give what the step gives unsplit, on several
# ranks; what does not fit is refused with a reason.
set -u
. "$SHEAF_SOURCE/test/support/cli.sh"
bin=$SHEAF_BIN
examples=$SHEAF_SOURCE/examples
data=$SHEAF_SOURCE/test/data/micro

# same STEP RECIPE RANKS STEPS [OPTION...]: split as the recipe says, it is the same step.
same() {
    local step=$1 recipe=$2 ranks=$3 steps=$4
    shift 4
    expect 0 pin "$step" --recipe "$recipe" -n "$ranks" -o "$work/plan.json"
    expect 0 verify "$step" --plan "$work/plan.json" -n "$ranks" --steps "$steps" --check "$@"
    says "on $ranks ranks"
    says "verify: passed"
}

# No error is said of equal bits alone.
cat >"$work/exact.mlir" <<'END'
func.func public @main(%p: tensor<8xf32> loc("params"), %x: tensor<8xf32> loc("batch")) -> (tensor<8xf32> {jax.result_info = "params"}, tensor<f32> {jax.result_info = "loss"}) {
  %h = stablehlo.constant dense<5.0e-01> : tensor<8xf32>
  %z = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %y = stablehlo.multiply %p, %x : tensor<8xf32>
  %q = stablehlo.multiply %y, %h : tensor<8xf32>
  %l = stablehlo.reduce(%y init: %z) applies stablehlo.maximum across dimensions = [0] : (tensor<8xf32>, tensor<f32>) -> tensor<f32>
  return %q, %l : tensor<8xf32>, tensor<f32>
}
END
expect 0 pin "$work/exact.mlir" --mesh data=2 --pin 'params=S(0)@data' -o "$work/plan.json"
expect 0 verify "$work/exact.mlir" --plan "$work/plan.json" --steps 2 --init normal:1
says "verify: passed, all bits equal"

gpt=$examples/gpt-micro.stablehlo.mlir
io=$examples/gpt-micro.io.safetensors
for ranks in 2 4; do
    for recipe in dp zero1 zero2 zero3 megatron sequence; do
        same "$gpt" $recipe $ranks 3 --against "$io"
    done
done
same "$gpt" 2d 4 10 --against "$io"
says "losses: 10 compared"
same "$gpt" 2d 4 2
same "$gpt" megatron 2 1 --engine oracle
same "$gpt" megatron 4 2 --shrink
says "shrunk: "
says "parameters"
if command -v xz >/dev/null && "$bin" version --json | grep -q '"lzma": true'; then
    same "$data/moe-micro.stablehlo.mlir.xz" expert 2 3 --against "$data/moe-micro.io.safetensors"
    same "$data/mlp-micro.stablehlo.mlir.xz" dp 4 3 --against "$data/mlp-micro.io.safetensors"
    same "$data/gpt-bf16-micro.hlo.xz" zero3 2 3 --against "$data/gpt-bf16-micro.io.safetensors"
    expect 1 verify "$data/mlp-micro.stablehlo.mlir.xz" --plan "$work/plan.json"
    warns "another step"
    # An update by sign, of gradients that are rounding: counted and named, for people and for machines.
    lion=$SHEAF_SOURCE/test/data/jump/lion.stablehlo.mlir.xz
    same "$lion" dp 2 2 --seed 3
    says "unstable: "
    says "['attn']['k']['bias']"
    expect 0 verify "$lion" --plan "$work/plan.json" --steps 2 --json
    says '"unstable": {'
    says '"noisy_runs": 4'
    expect 1 verify "$lion" --plan "$work/plan.json" --steps 2 --tolerance 1e-4
    says "verify: FAILED"
fi

# Pins by hand.
expect 0 pin "$gpt" --mesh data=2,model=2 --pin 'batch/*=S(0)@data' \
    --pin 'layer_*/mlp/up/kernel=S(1)@model' -o "$work/plan.json"
expect 0 verify "$gpt" --plan "$work/plan.json" -n 4 --steps 2 --json
says '"passed": true'
says '"ranks": 4'
says '"rank": '

# Tolerances that nothing meets: the tensor, its rank and its step are named.
expect 1 verify "$gpt" --plan "$work/plan.json" --steps 2 --tolerance 1e-12
says "verify: FAILED"
warns "results differ; most of all"
warns "on rank"

# What does not fit.
expect 2 verify "$gpt" --plan "$work/plan.json" -n 2
warns "the plan is for 4 ranks, not for 2"
expect 2 verify "$gpt"
warns "--against FILE, --plan PLAN or --schedule LUA"
expect 2 verify "$gpt" --against "$io" -n 4
warns "--ranks needs a --plan"
expect 2 verify "$gpt" --plan "$work/plan.json" --against "$io" --shrink
expect 2 verify "$gpt" --plan "$work/plan.json" --steps 0
expect 1 verify "$gpt" --plan "$work/plan.json" --against "$io" --steps 11
warns "there are batches for 10"
expect 1 pin "$gpt" --recipe dp -n 3 -o "$work/none.json"
warns "does not split into 3 equal parts"
expect 2 pin "$gpt" --mesh model=5 --pin 'layer_0/mlp/up/kernel=S(1)@model' -o "$work/none.json"
warns "does not split into 5 equal parts"
[ ! -e "$work/none.json" ] || fail "a plan was written all the same"
expect 1 pin "$gpt" --recipe expert -n 2
warns "does not apply"
echo '{' >"$work/broken.json"
expect 1 verify "$gpt" --plan "$work/broken.json"
warns "broken.json"
expect 1 verify "$examples/check.mlir" --plan "$work/plan.json"

# sheaf run tries a plan at once.
expect 0 run "$gpt" --steps 3
says_like "[mu]s a step"
expect 0 run "$gpt" --plan "$work/plan.json" -n 4 --steps 2
says "on each of 4 ranks"
says "a rank"
expect 2 run "$gpt" -n 4
warns "--ranks needs a --plan"
expect 2 run "$gpt" --plan "$work/plan.json" -n 3
expect 2 run "$gpt" --steps 0

[ "$failures" -eq 0 ]
