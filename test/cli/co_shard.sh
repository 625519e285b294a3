#!/usr/bin/env bash
# Heads, features and tokens in turns (co-shard) together with turns of the batch, stages and recompute: pinned,
# shown, simulated, verified. Each plan computes what the step does; bench/verify_sweep --part shards has all of them.
set -u
. "$SHEAF_SOURCE/test/support/cli.sh"
data=$SHEAF_SOURCE/test/data/micro
gpt=$SHEAF_SOURCE/examples/gpt-micro.stablehlo.mlir
cd "$work" || exit 1

# model  what it is split by  turns of the batch  co-shard  more
# In the short version every second of them.
row=0
while read -r model space turns shards more; do
    row=$((row + 1))
    nightly || [ $((row % 2)) -eq 0 ] || continue
    # shellcheck disable=SC2086
    expect 0 pin "$data/$model.stablehlo.mlir.xz" ${space//,/ } --micro-batches "$turns" --co-shard "$shards" $more -o plan.json
    expect 0 verify "$data/$model.stablehlo.mlir.xz" --plan plan.json --steps 2
done <<'ROWS'
gpt-micro -r,dp,-n,2 2 2
gpt-micro -r,megatron,-n,2 4 2 --recompute layer
gpt-micro -r,zero3,-n,2 2 sequence:2
gpt-micro -r,dp,-n,4 2 2 --stages 2
gpt-micro -n,4 4 2 --stages 4 --recompute layer
gpt-micro -r,zero1,-n,4 2 4@layer_0,2 --stages 2 --schedule zb-h1
t5-micro -r,dp,-n,2 2 2
t5-micro -n,2 2 2 --stages 2 --recompute full
swin-micro -r,megatron,-n,2 2 2
moe-micro -r,expert,-n,2 2 2
gpt-scan-micro -n,2 2 2 --stages 2
gpt-bf16-micro -r,megatron,-n,4 4 2 --stages 2
ROWS

# An item that has nothing left to it is refused, and not for what its scope has.
for items in 2@layer_0,4@layer_0 2,4@layer_0; do
    expect 2 pin "$gpt" -r dp -n 2 --co-shard $items
    warns "the items before 4@layer_0 decide about all that it matches"
done
expect 0 pin "$gpt" -r dp -n 2 --co-shard 2@layer_0/attn,4@layer_0

# One chunk leaves its scope whole, and what comes after it does not cut it either.
expect 0 pin "$gpt" -r dp -n 2 --co-shard 1@layer_0,2@layer_?/attn -o some.json
expect 0 verify "$gpt" --plan some.json --steps 2
expect 0 sim some.json -c 1x2xCPU --json
grep -v '"plan"' out >some.out
expect 0 pin "$gpt" -r dp -n 2 --co-shard 2@layer_1/attn -o same.json
expect 0 sim same.json -c 1x2xCPU --json
grep -v '"plan"' out | cmp -s some.out - || fail "an item of one chunk does not leave its scope whole"

# A plan says what it does, and is the same when it is read.
expect 0 pin "$gpt" -r dp -n 4 --stages 2 --micro-batches 2 --co-shard 4@layer_0,sequence:2@layer_1 -o plan.json
says "4, of what megatron splits in layer_0; 2, of what sequence splits in layer_1, one after another in each rank"
grep -q '"in": "layer_0"' plan.json || fail "the plan file does not say where"
expect 0 explain plan.json -c 1x4xCPU
says "4, of what megatron splits in layer_0"
expect 0 explain plan.json -c 1x4xCPU --json
says '"in": "layer_1"'
expect 0 sim plan.json -c 1x4xCPU
expect 0 report plan.json -c 1x4xCPU -o page.html
grep -q 'co-shard megatron 4 in layer_0' page.html || fail "the page does not say it"
expect 0 pin "$gpt" -r dp -n 4 --stages 2 --micro-batches 2 --co-shard 4@layer_0 -o other.json
expect 0 diff plan.json other.json
says "sequence"
expect 0 run --plan plan.json --steps 2 --check

# Less is kept than with either alone, where what is kept is most of it.
memory() {
    "$SHEAF_BIN" pin "$SHEAF_SOURCE/test/data/plan/gpt-batch.stablehlo.mlir.xz" --mesh data=1 "$@" -o batch.json >/dev/null
    "$SHEAF_BIN" sim batch.json -c 1x1xCPU --json | sed -n 's/.*"memory": \([0-9]*\).*/\1/p' | head -n 1
}
both=$(memory --co-shard 2 --micro-batches 2)
for alone in "--co-shard 2" "--micro-batches 2"; do
    # shellcheck disable=SC2086
    [ "$both" -lt "$(memory $alone)" ] || fail "both take no less than $alone"
done
limit=$((both + 1024))
expect 0 plan "$data/swin-micro.stablehlo.mlir.xz" -c 1x1xCPU --memory $limit --recompute none -o fits.json
expect 0 verify "$data/swin-micro.stablehlo.mlir.xz" --plan fits.json --steps 2

# Refused, with the reason.
expect 2 pin "$gpt" -r dp -n 2 --co-shard 2@layer_9
warns '"layer_9" matches no op'
expect 2 pin "$gpt" -r dp -n 2 --co-shard 2@
warns "4@layer_0,2"
expect 1 pin "$gpt" -r dp -n 2 --co-shard 2@wte
warns "splits nothing in wte"
sed 's/"in": "layer_0"/"in": 3/' plan.json >spoilt.json
expect 1 verify --plan spoilt.json "$gpt"
warns "or a list"
[ "$failures" -eq 0 ]
