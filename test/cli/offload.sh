#!/usr/bin/env bash
# A limit that only fits with offload: refused without, the same losses with, kept over a checkpoint; and no more is moved than all
# that can go.
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
run --device-memory $limit --host-link $link --passes offload --check >"$dir/offload"
diff <(losses "$dir/plain") <(losses "$dir/offload") || fail "offload changes losses"

moved() { # with so much memory
    "$SHEAF_BIN" sim "$plan" --step "$step" --cluster 1x2xCPU --memory "$1" --passes offload,force --json |
        grep -A2 '"copies"' | number bytes
}
some=$(moved $limit) all=$(moved 1)
echo "it moves $some bytes, all that can go is $all"
awk "BEGIN {exit !($some > 0 && $some < $all)}" || fail "offload does not move what is needed"

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
