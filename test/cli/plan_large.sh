#!/usr/bin/env bash
# Plans that people found by hand, found by the search: steps that are too large to ship, looked for beside
# the source tree.
set -u
bin=$SHEAF_BIN
data=$SHEAF_SOURCE/../shared/data/jax/large
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0

if [ ! -d "$data" ]; then
    echo "not found: ../shared/data/jax/large"
    exit 77
fi
if ! "$bin" version | grep '^zlib: in' >/dev/null; then
    echo "zlib is not in this build, and the large steps are compressed with gzip"
    exit 77
fi
if [ -n "${SHEAF_SANITIZE:-}" ]; then
    echo "too slow with sanitizers"
    exit 77
fi

fail() {
    echo "FAILED: $*"
    failures=$((failures + 1))
}

# plan NAME CLUSTER [OPTION...]: the plan is in $work/plan.json, the summary in $work/out. No recipe that
# fits is faster.
plan() {
    local name=$1 cluster=$2
    shift 2
    if ! "$bin" plan "$data/$name.stablehlo.mlir.gz" -c "$cluster" -O2 "$@" --json -o "$work/plan.json" \
        >"$work/out" 2>"$work/err"; then
        fail "$name on $cluster: $(head -1 "$work/err")"
        return 1
    fi
    awk '/^  "seconds"/ { ours = $2 + 0 }
         /^      "name"/ { known = $2 !~ /search/ }
         /^      "seconds"/ { seconds = $2 + 0 }
         /^      "fits": true/ && known && seconds < ours * (1 - 1e-9) { exit 1 }' "$work/out" ||
        fail "$name on $cluster: a recipe is faster"
}

# split PATTERN: how many arguments whose names match are not whole.
split() { sed -n '/"arguments": {/,/^  }/p' "$work/plan.json" | grep -cE "^    \"$1"; }

# GPT with memory to spare: the batch is split, and no layer is.
if plan gpt-350m 1x8xV100; then
    [ "$(split 'batch/')" -gt 0 ] || fail "gpt-350m: the batch is whole"
    [ "$(split 'params/layer_')" -eq 0 ] || fail "gpt-350m: layers are split"
    loose=$(split '')
fi
# With less, what is split is more, and it fits.
if plan gpt-350m 1x8xV100 -m 7500M; then
    [ "$(split '')" -gt "${loose:-0}" ] || fail "gpt-350m: less memory, and no more is split"
    [ "$(sed -n 's/.*"lowered_memory": \([0-9]*\).*/\1/p' "$work/out")" -le $((7500 << 20)) ] ||
        fail "gpt-350m: it does not fit"
fi

# Experts: their weights are split, and tokens travel to them.
if plan moe-380m 1x8xV100; then
    [ "$(split 'params/layer_[0-9]+/moe/w[io]": "\[S\(0\)')" -eq 8 ] ||
        fail "moe-380m: experts are whole"
    grep -q '"kind": "exchange"' "$work/out" || fail "moe-380m: no all-to-all"
fi

# A million classes: the classifier is split by classes, the convolutions are whole.
if plan vgg19-4.2b 1x8xV100; then
    [ "$(split 'params/head/kernel": "\[S\(1\)')" -eq 1 ] || fail "vgg19-4.2b: the head is whole"
    [ "$(split 'params/conv')" -eq 0 ] || fail "vgg19-4.2b: convolutions are split"
    [ "$(split 'batch/x": "\[S\(0\)')" -eq 1 ] || fail "vgg19-4.2b: the images are whole"
fi

[ "$failures" -eq 0 ] || { echo "$failures failed"; exit 1; }
