#!/usr/bin/env bash
# --precision: products of a step of f32 in bf16, held against the results of f32, on one device, in loops, on ranks, and by the
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
expect 0 "$step" --against "$io" --precision f32
says "(tolerance 0.0001)"
# What is rounded is not what f32 gives.
expect 1 "$step" --against "$io" --precision bf16 --tolerance 1e-6 --loss-tolerance 1e-6
says "verify: FAILED"
expect 2 "$step" --against "$io" --precision f8
warns "there is no precision 'f8': it is f32, tf32 or bf16"

"$bin" pin "$step" --recipe dp -n 2 -o "$work/plan.json" >/dev/null || fail "no plan"
expect 0 "$step" --plan "$work/plan.json" --steps 2 --precision bf16
says "verify: passed"

sheaf=("$bin" train)
expect 0 "$step" --steps 2 --data "$io" --init "$io" --precision bf16
says "step 2/2  loss 3.80042"
SHEAF_CUDA=host expect 0 "$step" --steps 2 --data "$io" --init "$io" --precision bf16 --engine cuda
says "step 2/2  loss 3.8004"

[ "$failures" -eq 0 ]
