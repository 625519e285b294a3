#!/usr/bin/env bash
# sheaf pin: meshes, pins and recipes from the command line, the plan file, and what is refused.
set -u
. "$SHEAF_SOURCE/test/support/cli.sh"
bin=$SHEAF_BIN
sheaf=("$bin" pin)
step=$SHEAF_SOURCE/examples/gpt-micro.stablehlo.mlir

# Recipes and meshes; the summary goes to standard output, the plan to its file.
expect 0 "$step" --recipe dp -n 4 -o "$work/dp.json"
says "data=4, 4 ranks"
says "recipe  dp"
says "all_reduce"
silent err
[ "$(cd "$work" && echo *.json*)" = dp.json ] || fail "something is left beside the plan"
grep -q '"format": "sheaf plan"' "$work/dp.json" || fail "no plan in dp.json"

for recipe in dp zero1 zero2 zero3 megatron sequence 2d; do
    expect 0 "$step" -r "$recipe" -n 4
    says "recipe  $recipe"
done

# Ranks are the devices of the cluster, where no number is given.
expect 0 "$step" -r dp -c 1x4xCPU
says "data=4, 4 ranks"
expect 0 "$step" -r dp -c 1x4xCPU -n 2
says "data=2, 2 ranks"

# The same command, the same bytes.
expect 0 "$step" -r 2d -n 4 -o "$work/a.json"
expect 0 "$step" -r 2d -n 4 -o "$work/b.json"
cmp -s "$work/a.json" "$work/b.json" || fail "two plans of one command differ"
expect 0 "$step" -r 2d -M data=2,model=2 -o "$work/b.json"
cmp -s "$work/a.json" "$work/b.json" || fail "the mesh of -n 4 is not data=2,model=2"

# Pins by hand.
expect 0 "$step" --mesh data=2,model=2 --pin 'batch/*=S(0)@data' \
    --pin 'layer_*/mlp/up/kernel=S(1)@model' --pin 'layer_*/mlp/down/kernel=S(0)@model' \
    -o "$work/hand.json"
says "data=2,model=2, 4 ranks"
grep -qF '"layer_*/mlp/up/kernel=S(1)@model"' "$work/hand.json" || fail "the plan lacks its pins"
grep -qF '"params/layer_1/mlp/up/kernel": "[R, S(1)]"' "$work/hand.json" || fail "up/kernel"
expect 0 "$step" -M data=2
says "none"

# For machines; to standard output.
expect 0 "$step" -r dp -n 2 --json
says '"ranks": 2'
says '"kind": "all_reduce"'
expect 0 "$step" -r dp -n 2 -o -
says '"format": "sheaf plan"'
grep -q "collectives of a step" "$work/out" && fail "the summary is mixed with the plan"

# A plan is written whole or not at all.
cp "$work/dp.json" "$work/kept.json"
expect 1 "$step" -r expert -n 4 -o "$work/kept.json"
cmp -s "$work/dp.json" "$work/kept.json" || fail "a plan that failed was written"
expect 1 "$step" -r dp -n 2 -o "$work/no/such/folder/plan.json"
warns "plan.json"
expect 1 "$work/no-such-step.mlir" -r dp -n 2
warns "no-such-step.mlir"

# Misuse.
expect 2 "$step"
warns "give --recipe and --ranks, --mesh and --pin, --stages, or --schedule"
expect 2 "$step" -r dp
warns "a recipe needs a mesh or a number of ranks"
warns "--ranks 4"
for with in --json "-o $work/names.json"; do
    expect 2 "$step" --names $with
    warns "--names goes with neither --json nor --output"
done
expect 2 "$step" -M model=2 -P 'mlp/up/kernel=S(-3)@model'
warns "no dimension so far from the end in a tensor of rank 2"
expect 2 "$step" -r dp -n 4 -M data=2
warns "the mesh data=2 has 2 ranks, not 4"
expect 2 "$step" -r dp -n 99999999999
expect 2 "$step" -r dp -n -1
expect 2 "$step" -r dp -n x
expect 2 "$step" -r zero4 -n 2
warns "there is no recipe \"zero4\""
warns "dp, zero1, zero2, zero3, zero1-between, megatron, sequence, expert, 2d"
expect 1 "$step" -r expert -n 2
warns "recipe expert does not apply: "
expect 1 "$step" -r dp -n 3
warns "does not split into 3 equal parts"
expect 2 "$step" -M data=two
expect 2 "$step" -M data=2,data=2
warns "two axes"
expect 2 "$step" -M data=2 -P 'batch/ids=S(0)@model'
warns "the mesh data=2 has no axis \"model\""
expect 2 "$step" -M data=2 -P 'batch/nothing=S(0)@data'
warns "matches no argument, gradient or scope"
expect 2 "$step" -M data=2 -P 'batch/ids=T(0)@data'
warns "T(0)"
expect 2 "$step" -M data=2 -P 'batch/ids=P(+)@data'
warns "partial values come by themselves"
expect 2 "$step" -M data=8 -P 'batch/ids=S(0)@data'
warns "batch/ids, tensor<4x"
silent out

# A plan is for its step, its number of ranks, and whole.
"$bin" train "$step" --plan "$work/dp.json" -n 2 --steps 1 --data synthetic >"$work/out" 2>"$work/err"
[ $? -eq 2 ] || fail "a plan for 4 ranks on 2"
warns "the plan is for 4 ranks, not for 2"
head -c 500 "$work/dp.json" >"$work/cut.json"
"$bin" train "$step" --plan "$work/cut.json" --steps 1 --data synthetic >"$work/out" 2>"$work/err"
[ $? -eq 1 ] || fail "half a plan"
warns "cut.json:"

[ "$failures" -eq 0 ] || { echo "$failures failed"; exit 1; }
