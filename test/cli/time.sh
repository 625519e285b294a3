#!/usr/bin/env bash
# Recompute and micro-batches: pinned, planned, verified, refused.
set -u
. "$SHEAF_SOURCE/test/support/cli.sh"
step=$SHEAF_SOURCE/examples/gpt-micro.stablehlo.mlir
cd "$work" || exit 1

# memory PLAN: bytes of a rank at its peak.
memory() {
    "$SHEAF_BIN" sim "$1" -c 1x1xCPU --json | sed -n 's/.*"memory": \([0-9]*\).*/\1/p' | head -n 1
}

# Every recipe with every word and two turns is still the step; a plan says what it does in time.
recipes=(zero3) co_sharded=(dp)
if nightly; then
    recipes=(dp zero1 zero2 zero3 megatron sequence)
    co_sharded=(dp zero1 zero3 megatron sequence 2d)
fi
for recipe in "${recipes[@]}"; do
    for how in none layer cheap full; do
        expect 0 pin "$step" -r "$recipe" -n 2 --recompute $how --micro-batches 2 -o plan.json
        says_like "^  micro-batches +2,"
        [ $how = none ] || says_like "^  recompute +[0-9]+ ops of the forward pass, by $how"
        expect 0 verify --plan plan.json --steps 3
    done
done
expect 0 pin "$step" -r dp -n 2 --recompute full --micro-batches 2 -o plan.json --json
says '"micro_batches": 2'
says '"by": "full"'
expect 0 explain plan.json -c 1x2xCPU
says_like "^  micro-batches +2,"
says_like "^  recompute .*by full"
expect 0 explain plan.json -c 1x2xCPU --json
says '"micro_batches": 2'
expect 0 sim plan.json -c 1x2xCPU
says_like "^  while "
expect 0 run --plan plan.json --steps 3 --check
expect 0 verify --plan plan.json --shrink --steps 2

# Heads and features in turns, with every recipe and with recompute.
for recipe in "${co_sharded[@]}"; do
    n=2
    [ "$recipe" != 2d ] || n=4
    expect 0 pin "$step" -r "$recipe" -n $n --co-shard 2 -o plan.json
    says_like "^  co-shard +2, of what megatron splits"
    expect 0 verify --plan plan.json --steps 3
done
expect 0 pin "$step" -r dp -n 2 --co-shard sequence:2 --recompute layer:2 -o plan.json --json
says '"by": "sequence"'
says '"by": "layer:2"'
expect 0 verify --plan plan.json --steps 3
expect 0 explain plan.json -c 1x2xCPU
expect 2 pin "$step" -r dp -n 2 --co-shard 0
expect 2 pin "$step" -r dp -n 2 --co-shard foo:2
warns '"foo" is no recipe of one axis'
expect 2 pin "$step" -r dp -n 2 --co-shard 2d:2
expect 1 pin "$step" -r dp -n 2 --co-shard 7
expect 2 pin "$step" -r dp -n 2 --recompute layer:0

# Less is kept.
for what in none:1 layer:1 full:1 none:2 full:2; do
    expect 0 pin "$step" --mesh data=1 --recompute ${what%:*} --micro-batches ${what#*:} -o "$what.json"
done
[ "$(memory layer:1.json)" -lt "$(memory none:1.json)" ] || fail "layer takes no less"
[ "$(memory none:2.json)" -lt "$(memory none:1.json)" ] || fail "turns take no less"
expect 0 pin "$step" --mesh data=1 --co-shard 2 -o shards.json
[ "$(memory shards.json)" -lt "$(memory none:1.json)" ] || fail "heads and features in chunks take no less"
[ "$(memory full:2.json)" -lt "$(memory none:2.json)" ] || fail "turns and recompute take no less than turns"

# A scope; and losses as they were.
expect 0 pin "$step" --mesh data=1 --recompute layer_0 -o scope.json
says_like "^  recompute .*by layer_0"
expect 0 run "$step" --steps 3 --json
grep '"loss"' out >whole
expect 0 run --plan full:1.json --steps 3 --json
grep '"loss"' out | cmp -s - whole || fail "losses differ where all is computed again"

# A limit that nothing fits in as it is: the plan says what it does about it, and keeps to it.
least=$(memory none:1.json)
limit=$((least * 85 / 100))
expect 0 plan "$step" -c 1x1xCPU --memory $limit --micro-batches 1 -o fits.json
says_like "^  recompute .*by auto"
[ "$(memory fits.json)" -le "$limit" ] || fail "a plan that should fit takes more"
expect 0 verify --plan fits.json --steps 2
expect 0 plan "$step" -c 1x1xCPU --memory $limit --recompute none --co-shard none -o fits.json
says_like "^  micro-batches "
[ "$(memory fits.json)" -le "$limit" ] || fail "a plan in turns that should fit takes more"
expect 1 plan "$step" -c 1x1xCPU --memory $limit --recompute none --micro-batches 1 --co-shard none --passes none
warns "no plan was found that fits"
grep -q "in micro-batches" err && fail "turns are said to have been tried"

# Heads and features in turns: where nothing else may be done, as asked, and refused.
shards=$(memory shards.json)
expect 0 plan "$step" -c 1x1xCPU --memory $shards --recompute none --micro-batches 1 -o fits.json
says_like "^  co-shard +2, of what megatron splits"
[ "$(memory fits.json)" -le "$shards" ] || fail "a plan with heads in turns that should fit takes more"
expect 0 verify --plan fits.json --steps 2
expect 0 plan "$step" -c 1x2xCPU --co-shard sequence:2
says_like "^  co-shard +2, of what sequence splits"
expect 2 plan "$step" -c 1x2xCPU --co-shard foo:2
warns '"foo" is no recipe of one axis'
expect 1 plan "$step" -c 1x2xCPU --co-shard 7
for wrong in 0 x : :2 megatron: megatron:auto 2@ @layer_0; do
    expect 2 plan "$step" -c 1x2xCPU --co-shard $wrong
done
expect 2 pin "$step" -r dp -n 2 --co-shard auto
expect 0 plan "$step" -c 1x2xCPU --co-shard 2 --micro-batches 2 -o both.json
says_like "^  co-shard +2"
says_like "^  micro-batches +2"
expect 0 verify --plan both.json --steps 2
expect 1 plan "$step" -c 1x1xCPU --memory 1K
warns "not with everything recomputed that can be, nor with the batch in micro-batches, nor with heads and features in chunks, nor with both"

expect 0 plan "$step" -c 1x2xCPU
expect 0 plan "$step" -c 1x2xCPU --micro-batches 2 --recompute layer -o said.json
says_like "^  micro-batches +2"
says_like "^  recompute .*by layer"

# Wrong input.
expect 2 pin "$step" -r dp -n 2 --micro-batches none
expect 2 pin "$step" -r dp -n 2 --micro-batches 0
expect 2 pin "$step" -r dp -n 2 --micro-batches auto
expect 2 plan "$step" -c 1x2xCPU --micro-batches 2.5
expect 2 pin "$step" -r dp -n 2 --recompute layr
warns '"layr"'
expect 1 pin "$step" -r dp -n 2 --micro-batches 3
warns "does not split into 3 equal parts"
expect 1 pin "$step" -r dp -n 2 --micro-batches 4
warns "use fewer micro-batches, or fewer ranks along the batch"
expect 1 pin "$step" -r dp -n 2 --micro-batches 1000000007
spoil() {
    sed "$1" full:2.json >spoilt.json
    cmp -s full:2.json spoilt.json && fail "nothing was spoilt by $1"
    expect 1 verify --plan spoilt.json "$step"
    warns "$2"
}
spoil 's/"micro_batches": 2/"micro_batches": -2/' "a number of micro-batches"
spoil 's/"micro_batches": 2/"micro_batches": "many"/' "a number of micro-batches"
spoil 's/"by": "full"/"by": 3/' "expected"
# The first run of nodes becomes one that is too far, or goes backwards, or all of the step.
first=$(grep -n '"recompute"' full:2.json | cut -d: -f1)
spoil "$first,\$s/\\[[0-9]*, [0-9]*\\]/[0, 99999999]/" "two nodes of the step"
spoil "$first,\$s/\\[[0-9]*, [0-9]*\\]/[7, 3]/" "two nodes of the step"
spoil "$first,\$s/\\[[0-9]*, [0-9]*\\]/[0, 1600]/" "cannot be recomputed"
[ "$failures" -eq 0 ]
