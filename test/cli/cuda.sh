#!/usr/bin/env bash
# --engine cuda: its kernels, run by the host, give JAX's results, also on two ranks; without a GPU a line says what is
# missing.
set -u
. "$SHEAF_SOURCE/test/support/cli.sh"
bin=$SHEAF_BIN
step=$SHEAF_SOURCE/examples/gpt-micro.stablehlo.mlir
io=$SHEAF_SOURCE/examples/gpt-micro.io.safetensors

if ! nvidia-smi -L >/dev/null 2>&1; then
    sheaf=("$bin" verify)
    expect 1 "$step" --against "$io" --engine cuda
    warns "engine cuda needs "
    warns "--engine cpu runs the step without"
fi
sheaf=("$bin" train)
SHEAF_CUDA=gpu expect 2 "$step" --steps 1 --data "$io" --engine cuda
warns "SHEAF_CUDA is host or nothing, not 'gpu'"

export SHEAF_CUDA=host
sheaf=("$bin" verify)
expect 0 "$step" --against "$io" --engine cuda
says "verify: passed"
says "losses: 10 compared"

# A run repeats bit for bit, and goes on on another engine.
sheaf=("$bin" train)
for run in a b; do
    expect 0 "$step" --steps 2 --data "$io" --init "$io" --engine cuda --save "$work/$run"
    says "step 2/2  loss 3.80045"
done
cmp -s "$work/a/step-000002/state.safetensors" "$work/b/step-000002/state.safetensors" || fail "two runs differ"
expect 0 "$step" --steps 3 --data "$io" --resume="$work/a" --save "$work/a" --engine cpu
says "step 3/3  loss 3.8834"

# A fold whose rows are neighbours.
sheaf=("$bin" eval)
for engine in oracle cuda; do
    expect 0 "$SHEAF_SOURCE/test/data/turned.mlir" --engine $engine -o "$work/turned.$engine"
done
cmp -s "$work/turned.oracle" "$work/turned.cuda" || fail "a turned fold differs"
sheaf=("$bin" train)

# Where the time went: by instruction, and as a timeline.
expect 0 "$step" --steps 2 --data "$io" --init "$io" --engine cuda --profile "$work/profile"
expect 0 "$step" --steps 1 --data "$io" --init "$io" --engine cuda --profile "$work/trace.json"
grep -q "^step .* ms" "$work/profile" && grep -q "TFLOP/s.* dot " "$work/profile" || fail "no profile"
grep -q '"cat": "dot"' "$work/trace.json" || fail "no timeline"

# Ranks exchange through the host.
for recipe in dp megatron; do
    "$bin" pin "$step" --recipe $recipe -n 2 -o "$work/plan.json" >/dev/null || fail "no plan"
    expect 0 "$step" --plan "$work/plan.json" --steps 2 --data "$io" --init "$io" --engine cuda
    says "step 2/2  loss 3.80045"
done

# What a calibration says of a GPU: steps are priced as they are lowered for it, and their memory is what the engine takes,
# beside the room of a library that the host has none of.
sheaf=("$bin")
expect 0 calibrate --engine cuda --precision tf32 --seconds 0.0002 -o "$work/gpu.json"
says "products by kernels of a GPU"
for key in attention_gradients kernel_gradients tf32 paces; do
    grep -q "\"$key\"" "$work/gpu.json" || fail "the calibration has no $key"
done
"$bin" pin "$step" --recipe dp -n 1 -o "$work/plan.json" >/dev/null || fail "no plan"
expect 0 sim "$work/plan.json" --cluster "$work/gpu.json" --json
predicted=$(sed -n 's/.*"memory": \([0-9]*\).*/\1/p' "$work/out" | head -n 1)
expect 0 train "$step" --steps 1 --data "$io" --init "$io" --engine cuda --precision tf32 --log "$work/log"
taken=$(sed -n 's/.*"memory":\([0-9]*\).*/\1/p' "$work/log" | head -n 1)
[ "$predicted" -eq $((taken + (32 << 20))) ] || fail "predicted $predicted bytes, taken $taken"
expect 0 calibrate --help
says "--engine"
expect 2 calibrate --engine gpu
warns "an engine is cpu, cuda or oracle, not 'gpu'"
expect 2 calibrate --engine cuda --precision f8
warns "there is no precision 'f8'"
expect 2 calibrate --engine oracle
warns "engine oracle is not measured"

[ "$failures" -eq 0 ]
