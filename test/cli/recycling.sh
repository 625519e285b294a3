#!/usr/bin/env bash
# Three forward passes, one backward pass, as AlphaFold2 trains (nnScaler): 3f1b takes less time than 1f1b, and the order that the
# planner finds no more than 3f1b.
set -u
. "$SHEAF_SOURCE/test/support/cli.sh"
step=$SHEAF_SOURCE/test/data/plan/passes.stablehlo.mlir.xz
cd "$work" || exit 1

if ! "$SHEAF_BIN" version | grep '^lzma: in' >/dev/null; then
    echo "lzma is not in this build"
    exit 77
fi
if [ -n "${SHEAF_SANITIZE:-}" ]; then
    echo "too slow with sanitizers"
    exit 77
fi

# ends PLAN: microseconds until the last pipeline rank ends.
ends() {
    expect 0 sim "$1" --cluster 1x4xV100 --json
    sed -n 's/^ *"ends": \([0-9.e+-]*\),*$/\1/p' out | awk '$1 > most { most = $1 } END { printf "%d", 1e6 * most }'
}

# by STAGES SCHEDULE: the same of a plan with this schedule.
by() {
    expect 0 pin "$step" --stages "$1" --schedule "$2" --micro-batches 8 --recompute layer -o plan.json
    ends plan.json
}

recycled=$(by 12 3f1b)
plain=$(by 4 1f1b)
echo "3f1b $recycled us, 1f1b $plain us"
[ "$recycled" -gt 0 ] && [ $((recycled * 110)) -lt $((plain * 100)) ] || fail "3f1b is no faster"

# The planner finds passes that share pipeline ranks, and an order for them, by itself.
expect 0 plan "$step" --cluster 1x4xV100 --stages 12 --micro-batches 8 --recompute layer -o found.json
says_like '^  stages *12, by search:3'
found=$(ends found.json)
echo "found $found us"
[ "$found" -gt 0 ] && [ "$found" -le "$recycled" ] || fail "the order that is found is slower"
[ "$failures" -eq 0 ] || { echo "$failures failed"; exit 1; }
