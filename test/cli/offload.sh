#!/usr/bin/env bash
# A limit that only fits with offload: refused without, the same losses with, kept over a checkpoint; and adaptive offload
# is at least twice as fast as moving all state and waiting for it, and moves less.
set -euo pipefail

step=$SHEAF_SOURCE/examples/gpt-micro.stablehlo.mlir
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
plan=$dir/plan.json
limit=136K
link=2M

fail() {
    echo "FAILED: $*"
    exit 1
}

number() { # of a key of JSON on standard input, the first
    grep -oE "\"$1\": [0-9.e+-]+" | head -1 | grep -oE '[0-9.e+-]+$'
}

"$SHEAF_BIN" pin "$step" -r dp -n 2 -o "$plan" >/dev/null
run() { "$SHEAF_BIN" run "$step" --plan "$plan" --threads 1 --steps 6 "$@"; }
losses() { awk '$1 ~ /^[0-9]+$/ && NF == 3 {print $3}' "$1"; }

run >"$dir/plain"
if run --device-memory $limit >"$dir/refused" 2>&1; then
    fail "$limit is enough without a pass"
fi
grep -q 'of the device' "$dir/refused" && grep -q 'at instruction' "$dir/refused" ||
    fail "the refusal does not say what is where"
for pass in offload offload-all; do
    run --device-memory $limit --host-link $link --passes $pass --check >"$dir/$pass"
    diff <(losses "$dir/plain") <(losses "$dir/$pass") || fail "$pass changes losses"
    "$SHEAF_BIN" sim "$plan" --step "$step" --cluster 1x2xCPU --memory $limit --passes $pass --json \
        >"$dir/$pass.json"
done

# Steps of the middle: the first meets its memory for the first time.
median() { awk '$1 ~ /^[0-9]+$/ && NF == 3 && $1 > 1 {print $2}' "$1" | sort -g | sed -n 3p; }
adaptive=$(median "$dir/offload") all=$(median "$dir/offload-all")
echo "a step takes $adaptive ms, with all state moved $all ms"
awk "BEGIN {exit !($all >= 2 * $adaptive)}" || fail "adaptive offload is not twice as fast"
moved=$(grep -A2 '"copies"' "$dir/offload.json" | number bytes)
moved_all=$(grep -A2 '"copies"' "$dir/offload-all.json" | number bytes)
echo "it moves $moved bytes, all state is $moved_all"
awk "BEGIN {exit !($moved < $moved_all)}" || fail "adaptive offload moves more"

"$SHEAF_BIN" verify "$step" --plan "$plan" --device-memory $limit --passes offload --steps 3 >/dev/null ||
    fail "verify"

# A run that is stopped and goes on is the run that was not.
train() { "$SHEAF_BIN" train "$step" --plan "$plan" --data synthetic --threads 1 "$@" >/dev/null; }
train --steps 4 --save "$dir/plainly"
train --steps 2 --save "$dir/moved" --device-memory $limit --passes offload
train --steps 4 --save "$dir/moved" --resume --device-memory $limit --passes offload
latest() { ls -d "$1"/*/ | sort | tail -1; }
for file in "$(latest "$dir/plainly")"*.safetensors; do
    cmp "$file" "$(latest "$dir/moved")$(basename "$file")" || fail "checkpoints differ"
done
