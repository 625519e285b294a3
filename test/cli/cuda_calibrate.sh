#!/usr/bin/env bash
# sheaf calibrate --engine cuda, on kernels that the host runs: what it writes, and what steps are priced at with it.
set -u
. "$SHEAF_SOURCE/test/support/cli.sh"
bin=$SHEAF_BIN
step=$SHEAF_SOURCE/examples/gpt-micro.stablehlo.mlir
io=$SHEAF_SOURCE/examples/gpt-micro.io.safetensors
export SHEAF_CUDA=$emulator

# What a calibration says of a GPU: steps are priced as they are lowered for it, and their memory is what the engine takes,
# beside the room of a library that the host has none of.
sheaf=("$bin")
expect 0 calibrate --engine cuda --precision tf32 --seconds 0.0002 -o "$work/gpu.json"
says "products by kernels of a GPU"
for key in attention_gradients kernel_gradients strided_gradients transposed_convolutions repeats moves turned window host_bandwidth tf32 paces; do
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
warns "an engine is auto, cpu, cuda or oracle, not 'gpu'"
expect 2 calibrate --engine cuda --precision f8
warns "there is no precision 'f8'"
expect 2 calibrate --engine oracle
warns "engine oracle is not measured"

[ "$failures" -eq 0 ]
