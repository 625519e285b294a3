#!/usr/bin/env bash
# A search with nothing fixed is not beaten by what it could have found: its own answers where something is fixed, or
# plans by hand. And no plan is below its bound.
set -u
. "$SHEAF_SOURCE/test/support/cli.sh"
margin=0.014 # of --margin, and what axes count for

clusters=(1x4xCPU 4xH100)
nightly || clusters=(1x4xCPU)
micro=$SHEAF_SOURCE/test/data/micro

number() { sed -n "s/^  \"$1\": \([0-9.e+-]*\),*\$/\1/p" "$work/out"; }

# at_most A B SHARE WHAT: A is no more than B and that share of it.
at_most() {
    awk -v a="$1" -v b="$2" -v share="$3" 'BEGIN { exit !(a <= b * (1 + share)) }' ||
        fail "$4: $1, and that is $2"
}

# check_bounds WHAT: of the plan that $work/out tells of.
check_bounds() {
    at_most "$(number bound)" "$(number seconds)" 1e-9 "$1: the bound is above the step"
    grep -q '"pipeline"' "$work/out" ||
        at_most "$(number unstaged_bound)" "$(number seconds)" 1e-9 "$1: the bound without stages is above the step"
}

# What is fixed for a search, and plans by hand.
fixed=("--stages 1" "--stages 2" "--stages 4" "--stages 4 --schedule zb-v" "--stages 2 --micro-batches 1"
    "--micro-batches 1" "--micro-batches 2" "--micro-batches 4" "--schedule zb-h1" "--recipes"
    "--recipes -M data=2,model=2" "-M data=4" "-O2")
nightly || fixed=("--stages 1" "--stages 2" "--stages 2 --micro-batches 1" "--micro-batches 2" "--recipes" "-O2")
by_hand=("-r dp -n 4" "-r zero1 -n 4" "-r zero1 -M data=2,model=2" "-r megatron -n 4"
    "-M pipe=4 --stages 4 --micro-batches 1" "-M pipe=4 --stages 4 --micro-batches 2"
    "-M pipe=2,data=2 -r dp --stages 2 --micro-batches 1" "-M pipe=2,data=2 -r zero1 --stages 4 --schedule zb-v --micro-batches 1")

# beat STEP CLUSTER: the free plan is as good as all of these that there are.
beat() {
    local name free options count=0
    name="$(basename "$1" .stablehlo.mlir) on $2"
    expect 0 plan "$1" -c "$2" --json
    free=$(number seconds)
    check_bounds "$name"
    for options in "${fixed[@]}"; do
        # shellcheck disable=SC2086
        "$SHEAF_BIN" plan "$1" -c "$2" $options --json >"$work/out" 2>"$work/err" || continue
        check_bounds "$name, $options"
        at_most "$free" "$(number seconds)" $margin "$name: the free plan is slower than with $options"
        count=$((count + 1))
    done
    for options in "${by_hand[@]}"; do
        # shellcheck disable=SC2086
        "$SHEAF_BIN" pin "$1" $options -o "$work/plan.json" >"$work/out" 2>"$work/err" || continue
        expect 0 explain "$work/plan.json" --step "$1" -c "$2" --json
        at_most "$free" "$(number seconds)" $margin "$name: the free plan is slower than pin $options"
        count=$((count + 1))
    done
    [ $count -gt 8 ] || fail "$name: only $count plans to compare with"
}

for cluster in "${clusters[@]}"; do
    beat "$SHEAF_SOURCE/examples/gpt-micro.stablehlo.mlir" "$cluster"
done
# Other steps, each on one of the clusters.
if nightly && "$SHEAF_BIN" version | grep '^lzma: in' >/dev/null; then
    beat "$micro/mlp-micro.stablehlo.mlir.xz" "${clusters[0]}"
    beat "$micro/llama-micro.stablehlo.mlir.xz" "${clusters[1]}"
    beat "$micro/gpt-bf16-micro.stablehlo.mlir.xz" "${clusters[1]}"
fi

[ "$failures" -eq 0 ]
