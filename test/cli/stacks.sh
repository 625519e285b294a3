#!/usr/bin/env bash
# Steps whose layers are stacked, in pipelines: each group has the rows of its layers, and all computes what the step does.
set -u
. "$SHEAF_SOURCE/test/support/cli.sh"
"$SHEAF_BIN" version --json | grep -q '"lzma": true' || {
    echo "skipped: no lzma"
    exit 77
}
cd "$work" || exit 1

# verified STEP STAGES SCHEDULE [RECIPE RANKS]
verified() {
    local step=$SHEAF_SOURCE/test/data/$1.stablehlo.mlir.xz
    expect 0 pin "$step" --stages "$2" --schedule "$3" --micro-batches 4 ${4:+--recipe "$4" --ranks "$5"} -o plan.json
    warns_not "stacks of layers"
    grep -q 'At([0-9]*:' plan.json || fail "$*: no rows are dealt out"
    expect 0 verify "$step" --plan plan.json --steps 2
}

verified loops/stack-two 2 gpipe
verified loops/stack-two 4 1f1b
verified loops/stack-two 4 interleaved:2 zero1 4
verified loops/stack-llama-bf16 3 zb-h1
verified loops/stack-llama-bf16 2 chimera dp 4
verified loops/stack-llama-bf16 4 zb-v megatron 4

# A rank says that it has rows, and how many bytes that are.
expect 0 explain plan.json -c 1x4xCPU params/layers/gate
says_like '\[At\(0:[0-9+-]+,1:[0-9+-]+\), S\('
[ "$failures" -eq 0 ]
