#!/usr/bin/env bash
# sheaf cluster and sheaf calibrate: names, shorthands and files; what was measured is read back; over a
# network of known speed, that is what is measured.
set -u
. "$SHEAF_SOURCE/test/support/cli.sh"
bin=$SHEAF_BIN

# The library; every name that is listed is known.
expect 0 cluster
cp "$work/out" "$work/list"
expect 0 cluster list
cmp -s "$work/out" "$work/list" || fail "list and nothing differ"
says "rhino-m8"
says "V100-16GB-PCIe"
silent err
expect 0 cluster list --json
names=$(sed -n '/"clusters"/,/]/s/^    "\(.*\)",*$/\1/p' "$work/out")
kinds=$(sed -n '/"devices"/,/]/s/^    "\(.*\)",*$/\1/p' "$work/out")
[ "$(wc -w <<<"$names")" -ge 5 ] || fail "few clusters: $names"
for kind in $kinds; do
    names+=" 2x4x$kind"
done

# A cluster, as text and as JSON, which is read back as the same.
for name in $names; do
    expect 0 cluster "$name"
    says "name     $name"
    says "all_reduce"
    silent err
    cp "$work/out" "$work/text"
    expect 0 cluster "$name" --json
    cp "$work/out" "$work/a.json"
    expect 0 cluster "$work/a.json" --json
    cmp -s "$work/out" "$work/a.json" || fail "$name is not read back as it was"
    expect 0 cluster "$work/a.json"
    cmp -s "$work/out" "$work/text" || fail "$name from a file looks different"
done
expect 0 cluster 4x8xH100@2x100G
says "32 in 4 nodes"
says "source   DGX H100: NVSwitch, 2 x 100 Gb/s"
gzip -k "$work/a.json" && expect 0 cluster "$work/a.json.gz"
"$bin" cluster - <"$work/a.json" >"$work/out" 2>"$work/err" || fail "not from standard input"

# Wrong ones.
expect 2 cluster 2x8
warns "is no cluster of the library, nor of the form"
expect 2 cluster 2x8xK80
warns '"K80" is no kind of device'
warns "there are V100-32GB-SXM2"
silent out
expect 2 cluster 2x8xV100 more
expect 1 cluster "$work/none.json"
warns "none.json"
sed 's/"memory": [0-9]*/"memory": -1/' "$work/a.json" >"$work/bad.json"
expect 1 cluster "$work/bad.json"
warns 'bad.json:10:17: error: "memory" is an integer'

# Measured, and read back.
quick=(--seconds 0.001 --largest 64K)
expect 0 calibrate -n 2 "${quick[@]}" -o "$work/two.json" --name two
says "2 in 1 node"
says "measured"
silent err
cp "$work/out" "$work/text"
expect 0 cluster "$work/two.json"
cmp -s "$work/out" "$work/text" || fail "what was measured is not what was written"
expect 0 calibrate "${quick[@]}" -t 1 -o -
grep -q '"format": "sheaf cluster"' "$work/out" || fail "no JSON on standard output"
expect 0 calibrate "${quick[@]}" --json
grep -q '"format": "sheaf cluster"' "$work/out" || fail "no JSON"
expect 2 calibrate -n 2 --largest 100
warns "the largest collective"
expect 2 calibrate -n 0
warns "--ranks is at least 1"
expect 2 calibrate -n 99999999999
expect 2 calibrate more
expect 1 calibrate "${quick[@]}" -o "$work/none/file.json"

# Two hosts of one rank, joined by 80 Mbit/s: 10 MB/s, a little more while buckets are full.
export ASAN_OPTIONS=${ASAN_OPTIONS:-}:detect_leaks=0 # MPI's own
status=77
"$bin" version | grep -q '^mpi: in' && status=0
[ $status -eq 77 ] || timeout 100 "$SHEAF_SOURCE/scripts/two-hosts" -r 80mbit -- "$bin" calibrate --seconds 0.3 \
    --largest 4M -o "$work/hosts.json" >"$work/out" 2>"$work/err" || status=$?
if [ $status -eq 77 ]; then
    echo "two hosts: skipped"
elif [ $status -ne 0 ]; then
    fail "calibrate on two hosts: exit code $status"
else
    says "2 in 2 nodes"
    rate=$(sed -n '/"network"/,/}/s/.*"bandwidth": \([^,]*\),.*/\1/p' "$work/hosts.json")
    awk -v rate="$rate" 'BEGIN { exit !(rate > 3e6 && rate < 14e6) }' ||
        fail "a link of 10 MB/s is measured as $rate"
fi

[ "$failures" -eq 0 ]
