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
warns "SHEAF_CUDA is an architecture such as sm_80, the path of a library that stands for a GPU, or PATH,sm_80, not 'gpu'"
SHEAF_CUDA=./none.so expect 2 "$step" --steps 1 --data "$io" --engine cuda
warns "SHEAF_CUDA: ./none.so: "

export SHEAF_CUDA=$emulator
sheaf=("$bin" verify)
expect 0 "$step" --against "$io" --engine cuda
says "verify: passed"
says "losses: 10 compared"

# Where there is a GPU, or the host in its place, it is taken unless something else is said.
auto() { env -u SHEAF_ENGINE "$@"; }
sheaf=(auto "$bin" train)
expect 0 "$step" --steps 1 --data "$io" --init "$io"
says "engine cuda"
expect 0 "$step" --steps 1 --data "$io" --init "$io" --engine cpu
says "engine cpu"
if ! nvidia-smi -L >/dev/null 2>&1; then
    SHEAF_CUDA='' expect 0 "$step" --steps 1 --data "$io" --init "$io" --engine auto
    says "engine cpu"
fi
sheaf=("$bin" train)
SHEAF_ENGINE=oracle expect 0 "$step" --steps 1 --data "$io" --init "$io"
says "engine oracle"
SHEAF_ENGINE=gpu expect 2 "$step" --steps 1 --data "$io" --init "$io"
warns "SHEAF_ENGINE in the environment is auto, cpu, cuda or oracle, not 'gpu'"

# A run repeats bit for bit, and goes on on another engine.
sheaf=("$bin" train)
for run in a b; do
    expect 0 "$step" --steps 2 --data "$io" --init "$io" --engine cuda --save "$work/$run"
    says "step 2/2  loss 3.80045"
done
cmp -s "$work/a/step-000002/state.safetensors" "$work/b/step-000002/state.safetensors" || fail "two runs differ"
expect 0 "$step" --steps 3 --data "$io" --resume="$work/a" --save "$work/a" --engine cpu
says "step 3/3  loss 3.8834"

# A fold whose rows are neighbours, with groups of them and what it stores; halves; windows that grow along a line; tensors that are turned;
# short rows, several to a block, and elements in words; long rows.
sheaf=("$bin" eval)
for text in turned groups halves growing crossed abreast long; do
    for engine in oracle cuda; do
        expect 0 "$SHEAF_SOURCE/test/data/$text.mlir" --engine $engine -o "$work/$text.$engine"
    done
    cmp -s "$work/$text.oracle" "$work/$text.cuda" || fail "$text differs"
done
sheaf=("$bin" train)

# Where the time went: by instruction, and as a timeline.
expect 0 "$step" --steps 2 --data "$io" --init "$io" --engine cuda --profile "$work/profile"
expect 0 "$step" --steps 1 --data "$io" --init "$io" --engine cuda --profile "$work/trace.json"
grep -q "^step .* ms" "$work/profile" && grep -q "^  dot  *[0-9.]* ms" "$work/profile" && grep -q "GB/s .* s0 " "$work/profile" ||
    fail "no profile"
grep -q '"cat": "dot"' "$work/trace.json" || fail "no timeline"

# Ranks exchange in memory of the device, stages too.
for recipe in dp megatron "dp --stages 2 --micro-batches 2"; do
    # shellcheck disable=SC2086 # options
    "$bin" pin "$step" --recipe $recipe -n 2 -o "$work/plan.json" >/dev/null || fail "no plan"
    expect 0 "$step" --plan "$work/plan.json" --steps 2 --data "$io" --init "$io" --engine cuda
    says "step 2/2  loss 3.80045"
done

# What does not fit waits on the host, and the losses are the same.
"$bin" pin "$step" --recipe dp -n 2 -o "$work/plan.json" >/dev/null || fail "no plan"
expect 1 "$step" --plan "$work/plan.json" --steps 1 --data "$io" --init "$io" --engine cuda --device-memory 132K
warns "of the device"
expect 0 "$step" --plan "$work/plan.json" --steps 2 --data "$io" --init "$io" --engine cuda --device-memory 132K --passes offload \
    --check --profile "$work/moved.json"
says "step 2/2  loss 3.80045"
grep -q '"cat": "copy"' "$work/moved.json" || fail "the timeline has no copies"

[ "$failures" -eq 0 ]
