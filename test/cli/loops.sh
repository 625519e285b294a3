#!/usr/bin/env bash
# Loops that stay, and branches, are split like everything else: on several ranks they are the same step, repeat
# little, and send what the step with its loops unrolled does.
set -u
. "$SHEAF_SOURCE/test/support/cli.sh"
bin=$SHEAF_BIN
data=$SHEAF_SOURCE/test/data/loops
"$bin" version --json | grep -q '"lzma": true' || {
    echo "skipped: no lzma"
    exit 77
}

# field NAME: the number of that name in the summary.
field() {
    sed -n "s/^ *\"$1\": \([0-9.e+-]*\),*$/\1/p" "$work/summary" | head -1
}

# bytes: what all collectives of the summary send.
bytes() {
    sed -n '/"collectives"/,$ s/^ *"bytes_of_a_rank": \([0-9.e+-]*\),*$/\1/p' "$work/summary" |
        awk '{ sum += $1 } END { print sum + 0 }'
}

# below A B: A is not above B.
below() {
    awk -v a="$1" -v b="$2" 'BEGIN { exit !(a != "" && b != "" && a + 0 <= b + 0) }' || fail "'$1' is above '$2'"
}

# split STEP RECIPE RANKS REPEATED: rolled, it is split, and it is the same step; at most so much is repeated.
split() {
    local step=$data/$1.stablehlo.mlir.xz recipe=$2 ranks=$3
    "$bin" pin "$step" --unroll 0 --recipe "$recipe" -n "$ranks" -o "$work/plan.json" --json >"$work/summary" ||
        fail "$1: $recipe does not apply"
    below "$(field repeated)" "$4"
    expect 0 verify "$step" --unroll 0 --plan "$work/plan.json" -n "$ranks" --steps 2 --check
    says "verify: passed"
}

# as_unrolled STEP RECIPE RANKS FACTOR: it sends at most FACTOR times what it does unrolled.
as_unrolled() {
    local step=$data/$1.stablehlo.mlir.xz sent
    split "$1" "$2" "$3" "$5"
    sent=$(bytes)
    below 1 "$sent"
    "$bin" pin "$step" --recipe "$2" -n "$3" --json >"$work/summary" || fail "$1: $2 does not apply"
    below "$sent" "$(awk -v a="$(bytes)" -v f="$4" 'BEGIN { print f * a }')"
}

for ranks in 2 4; do
    for recipe in dp zero1 zero2 zero3; do
        as_unrolled loop-lstm-40 $recipe $ranks 1.01 0.1
        as_unrolled loop-layers $recipe $ranks 1.05 0.06
        split opt-apply-if-finite $recipe $ranks 0.36
        split loop-newton $recipe $ranks 0.32
    done
    as_unrolled loop-layers megatron $ranks 1.01 0.12
    as_unrolled loop-layers sequence $ranks 1.01 0.06
done
as_unrolled loop-layers 2d 4 1.01 0.06
# State in pieces is updated in pieces, behind a condition too.
for recipe in zero1 zero2 zero3; do
    split opt-apply-if-finite $recipe 4 0.1
done
# Gradients that a loop adds up are reduced once, behind it.
as_unrolled accum-scan-m2 dp 2 1.01 0.1

# How often a loop turns is said, where it is known.
expect 0 show "$data/loop-newton.stablehlo.mlir.xz"
says "trip count is not known"
expect 0 show "$data/loop-lstm-40.stablehlo.mlir.xz" --unroll 0
says "counted once per iteration"
# Where it is not, the user can say it, and what is counted grows with it.
newton=$data/loop-newton.stablehlo.mlir.xz
expect 0 plan "$newton" -c 1x2xCPU -o "$work/plan.json"
warns "the trip count of this loop is not known"
warns "--assume-trip-count says how often"
flops() {
    "$bin" show "$newton" "$@" --json | sed -n 's/^ *"flops": \([0-9.e+-]*\),*$/\1/p' | head -1
}
expect 0 plan "$newton" -c 1x2xCPU --assume-trip-count 1000 -o "$work/plan.json"
silent err
below "$(awk -v a="$(flops)" 'BEGIN { print 1.5 * a }')" "$(flops --assume-trip-count 1000)"

[ "$failures" -eq 0 ]
