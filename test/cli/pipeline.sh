#!/usr/bin/env bash
# Pipelines from the command line: one micro-batch or many, optimizers that compute numbers of their own, and what is
# refused; each plan that is made computes what the step does.
set -u
. "$SHEAF_SOURCE/test/support/cli.sh"
bin=$SHEAF_BIN
step=$SHEAF_SOURCE/examples/gpt-micro.stablehlo.mlir
data=$SHEAF_SOURCE/test/data

# holds STEP OPTION...: such a pipeline is made, and is right.
holds() {
    sheaf=("$bin" pin)
    expect 0 "$@" -o "$work/plan.json"
    sheaf=("$bin" verify)
    expect 0 "$1" --plan "$work/plan.json" --steps 3 --wait 60
}

# One micro-batch, where all is the same in all turns.
holds "$step" --stages 1
holds "$step" --stages 2
holds "$step" --stages layer_1 --schedule gpipe
holds "$step" --stages 4 --micro-batches 2 --schedule interleaved

# Small numbers that follow from large ones of the update: norms and means of weights.
for micro in 1 2; do
    holds "$data/jump/adafactor.stablehlo.mlir.xz" --stages 2 --micro-batches $micro
done

# Turns in any order.
printf '0: F0.1 F0.0 B0.1 B0.0\n1: F1.1 B1.1 F1.0 B1.0\n' >"$work/table"
holds "$step" --stages 2 --micro-batches 2 --schedule "$work/table"

# Where the backward pass is not known as such.
holds "$data/loops/opt-apply-if-finite.stablehlo.mlir.xz" --stages 2 --micro-batches 2

# What a search for stages does not go with is said.
sheaf=("$bin" plan)
expect 2 "$step" --cluster 4xCPU --stages 2 --mesh pipe=2,data=2
warns "the mesh is given"
expect 2 "$step" --cluster 4xCPU --stages 2 --pin 'batch/*=S(0)@data'
warns "there are pins"
expect 2 "$step" --cluster 1xCPU --stages 2
warns "the cluster has one device"
expect 2 "$step" --cluster 4xCPU --stages 2 --co-shard 2
warns "--co-shard"

[ "$failures" -eq 0 ] || { echo "$failures failed"; exit 1; }
