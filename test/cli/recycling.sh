#!/usr/bin/env bash
# Three forward passes, one backward pass: nnScaler's AlphaFold2, on its test bed, which is too large to ship and is looked for
# beside the source tree. 3f1b takes less time than 1f1b, and the order that is found for them no more than 3f1b.
set -u
bin=$SHEAF_BIN
step=$SHEAF_SOURCE/../shared/data/jax/large/evoformer-87m.stablehlo.mlir.gz
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

if [ ! -e "$step" ]; then
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

# ends STAGES SCHEDULE: milliseconds until the last group ends.
ends() {
    "$bin" pin "$step" --stages "$1" --schedule "$2" --micro-batches 8 --recompute layer \
        -o "$work/plan.json" >"$work/out" 2>&1 || { cat "$work/out" >&2; return 1; }
    "$bin" sim "$work/plan.json" --cluster 1x4xV100 >"$work/sim" || return 1
    awk '/^ +group /{ on = 1; next } on && NF < 5 { exit }
        on { for (i = 4; i < NF; i++)
                 if ($i == "s" || $i == "ms") { t[++n] = $(i - 1) * ($i == "s" ? 1000 : 1) } 
             if (t[n] > most) most = t[n] }
        END { printf "%d\n", most }' "$work/sim"
}

recycled=$(ends 12 3f1b) || exit 1
plain=$(ends 4 1f1b) || exit 1
echo "3f1b $recycled ms, 1f1b $plain ms"
[ "$recycled" -gt 0 ] && [ $((recycled * 110)) -lt $((plain * 100)) ] || exit 1

# The planner finds passes that share groups, and an order for them, by itself.
"$bin" plan "$step" --cluster 1x4xV100 --stages 12 --micro-batches 8 --recompute layer -o "$work/found.json" \
    >"$work/out" || exit 1
grep '^  stages *12, by search:3' "$work/out" || exit 1
found=$("$bin" sim "$work/found.json" --json | awk -F '[:,]' '/"seconds"/ { printf "%d\n", 1000 * $2; exit }')
echo "found $found ms"
[ "$found" -gt 0 ] && [ "$found" -le "$recycled" ]
