#!/usr/bin/env bash
# Parameters in pieces between steps: what an update makes is gathered in the next step's forward pass. Losses are those of zero1 and
# zero2, bit by bit, over several steps, and whoever goes on from a checkpoint, so or so, makes the same.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
step=$SHEAF_SOURCE/examples/gpt-micro.stablehlo.mlir

pin() { # OUTPUT OPTION...
    local output=$1
    shift
    "$SHEAF_BIN" pin "$step" "$@" -o "$output" >out
}

losses() { "$SHEAF_BIN" run --plan "$1" --steps 4 --check --threads 1 --json | grep '"loss"'; }

for setting in 'zero1 -n 2' 'zero1 -n 4' 'zero2 -n 2' 'zero1 -n 2 --micro-batches 2' 'zero2 -n 2 --micro-batches 2'; do
    pin whole.json -r $setting
    grep -q 'all_gather .* update' out
    pin pieces.json --shard-state between -r $setting
    (! grep 'all_gather .* update' out)
    losses whole.json >expected
    losses pieces.json >found
    [ "$(grep -c loss found)" -eq 4 ]
    cmp expected found || { echo "FAILED: $setting: other losses"; exit 1; }
done
pin pieces.json --shard-state between -r 2d+zero1 -n 4
grep -q 'recipe  2d+zero1-between' out
"$SHEAF_BIN" verify --plan pieces.json --steps 2 >out

# Gathers once a step, none of them behind the forward pass.
pin pieces.json --shard-state between -r zero1 -n 2 --cluster 2xH100
"$SHEAF_BIN" sim pieces.json --cluster 2xH100 | grep -qE '^  unshard .* kept for the backward pass'
[ "$("$SHEAF_BIN" explain pieces.json 'params/*' --all --cluster 2xH100 | grep -c 'gather .* update')" -eq 0 ]

# Checkpoints: stopped and gone on, from pieces to pieces, to whole parameters, and back.
train() { # PLAN FOLDER STEPS OPTION...
    local plan=$1 folder=$2 steps=$3
    shift 3
    "$SHEAF_BIN" train "$step" --threads 1 --seed 5 --plan "$plan" --data synthetic --steps "$steps" --save "$folder" \
        --log "$folder.log" --quiet "$@"
}
last() { sed -n 's/.*"event":"step","step":\([345]\),"loss":\([^,]*\),.*/\1 \2/p' "$1.log" | tail -n 3; }

pin whole.json -r zero1 -n 2
pin pieces.json --shard-state between -r zero1 -n 2
train pieces.json all 5
[ "$(last all | wc -l)" -eq 3 ]
for plans in 'pieces pieces' 'pieces whole' 'whole pieces'; do
    set -- $plans
    rm -rf some some.log
    train "$1.json" some 2
    train "$2.json" some 5 --resume
    [ "$(last some)" = "$(last all)" ] || { echo "FAILED: $1, then $2: other losses"; last some; last all; exit 1; }
    [ "$2" = whole ] || diff -r all/step-000005 some/step-000005 || { echo "FAILED: $1, then $2: another state"; exit 1; }
done

# The planner: recipes that keep state so; and what is said wrongly.
"$SHEAF_BIN" plan "$step" --cluster 2xH100 --shard-state between --compare >out
grep -qE 'recipe +zero(3|1-between)' out
grep -q 'zero1-between' out
status=0
"$SHEAF_BIN" pin "$step" -n 2 --shard-state betwen >out 2>&1 || status=$?
[ $status -eq 2 ]
grep -q 'auto, full or between' out
status=0
"$SHEAF_BIN" pin "$step" -n 2 -r zero1-between --shard-state full >out 2>&1 || status=$?
[ $status -eq 2 ]
grep -q 'to be split in full' out
