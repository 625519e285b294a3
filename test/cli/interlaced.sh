#!/usr/bin/env bash
# T5 with a large vocabulary, as in nnScaler's section 8, on V100s: interlaced takes less time than 1f1b, and less memory.
set -u
. "$SHEAF_SOURCE/test/support/cli.sh"
step=$SHEAF_SOURCE/test/data/turns/t5-vocabulary.stablehlo.mlir.xz
cd "$work" || exit 1
if ! "$SHEAF_BIN" version | grep '^lzma: in' >/dev/null; then
    echo "lzma is not in this build"
    exit 77
fi
if [ -n "${SHEAF_SANITIZE:-}" ]; then
    echo "too slow with sanitizers"
    exit 77
fi

# take SCHEDULE: milliseconds of a step, and MiB of a rank.
take() {
    expect 0 plan "$step" --cluster 1x4xV100 --stages 4 --schedule "$1" --micro-batches 16 --recompute layer -o "$1.json"
    expect 0 sim "$1.json" --json
    tr ',' '\n' <"$work/out" | sed -n 's/^ *"seconds": *//p;s/^ *"memory": *//p' | awk 'NR == 1 { printf "%d ", $1 * 1000 } NR > 1 && $1 > most { most = $1 } END { printf "%d\n", most / 1048576 }'
}
read -r plain plain_memory <<<"$(take 1f1b)"
read -r interlaced interlaced_memory <<<"$(take interlaced)"
echo "1f1b $plain ms, $plain_memory MiB; interlaced $interlaced ms, $interlaced_memory MiB"
[ "$interlaced" -gt 0 ] && [ $((interlaced * 105)) -lt $((plain * 100)) ] || fail "interlaced is no faster than 1f1b"
[ $((interlaced_memory * 3)) -lt $((plain_memory * 2)) ] || fail "interlaced takes as much memory as 1f1b"

# The planner finds it by itself.
expect 0 plan "$step" --cluster 1x4xV100 --stages 4 --micro-batches 16 --recompute layer -o found.json
says_like "^  stages +6, by interlaced"

# Tables with long lines, as the plan keeps them.
expect 0 pin "$step" --stages 4 --schedule interlaced --micro-batches 32 -o long.json
expect 0 sim long.json -c 1x4xV100
[ "$failures" -eq 0 ] || { echo "$failures failed"; exit 1; }
