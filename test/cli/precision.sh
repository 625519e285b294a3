#!/usr/bin/env bash
# --precision: products of a step of f32 in bf16, f16 and fp8, held against the results of f32, on one device, in loops, on ranks, and by the
# text of kernels; another type is refused.
set -u
. "$SHEAF_SOURCE/test/support/cli.sh"
bin=$SHEAF_BIN
step=$SHEAF_SOURCE/examples/gpt-micro.stablehlo.mlir
io=$SHEAF_SOURCE/examples/gpt-micro.io.safetensors

sheaf=("$bin" verify)
for engine in cpu oracle; do
    expect 0 "$step" --against "$io" --engine $engine --precision bf16
    says "verify: passed"
    says "(tolerance 0.05)"
done
for engine in cpu oracle; do
    expect 0 "$step" --against "$io" --engine $engine --precision f16
    says "(tolerance 0.05)"
    expect 0 "$step" --against "$io" --engine $engine --precision fp8
    says "(tolerance 0.5)"
done
# A GPU without tensor cores of fp8 multiplies its numbers as bf16.
devices=("$emulator,sm_80")
if nightly; then devices+=("$emulator"); fi
for device in "${devices[@]}"; do
    SHEAF_CUDA=$device expect 0 "$step" --against "$io" --engine cuda --precision fp8 --steps 0
    says "(tolerance 0.5)"
done
# 8 bits are fewer than 16.
expect 1 "$step" --against "$io" --precision fp8 --tolerance 0.05
says "verify: FAILED"
expect 0 "$step" --against "$io" --precision f32
says "(tolerance 0.0001)"
# What is rounded is not what f32 gives.
expect 1 "$step" --against "$io" --precision bf16 --tolerance 1e-6 --loss-tolerance 1e-6
says "verify: FAILED"
expect 2 "$step" --against "$io" --precision f8
warns "there is no precision 'f8': it is f32, tf32, bf16, f16 or fp8"

"$bin" pin "$step" --recipe dp -n 2 -o "$work/plan.json" >/dev/null || fail "no plan"
for precision in bf16 f16 fp8; do
    expect 0 "$step" --plan "$work/plan.json" --steps 2 --precision $precision
    says "verify: passed"
done

sheaf=("$bin" train)
expect 0 "$step" --steps 2 --data "$io" --init "$io" --precision bf16
says "step 2/2  loss 3.80042"
SHEAF_CUDA=$emulator expect 0 "$step" --steps 2 --data "$io" --init "$io" --precision bf16 --engine cuda
says "step 2/2  loss 3.8004"

[ "$failures" -eq 0 ]
