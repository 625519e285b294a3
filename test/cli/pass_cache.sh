#!/usr/bin/env bash
# What passes decided is kept on disk: the second time it is found, the outcome is the same, and an entry that was spoilt is as
# good as none. `no-cache` in a list neither takes nor leaves anything.
set -u
. "$(dirname "$0")/../support/cli.sh"
step=$SHEAF_SOURCE/bench/steps/gpt-mini-64.stablehlo.mlir.xz
passes=fsdp,prefetch,balance
simulate() { expect 0 sim "$work/plan.json" --cluster 4xH100 --memory 150M --passes "$1" --json; }
entries() { find "$XDG_CACHE_HOME" -name '*.passes' 2>/dev/null | wc -l; }

expect 0 pin "$step" -r zero3 -n 4 --micro-batches 4 -o "$work/plan.json"
simulate $passes,no-cache
[ "$(entries)" -eq 0 ] || fail "fresh leaves something on disk"
simulate $passes
mv "$work/out" "$work/first"
[ "$(entries)" -eq 1 ] || fail "$(entries) entries, not 1"
simulate $passes
cmp "$work/first" "$work/out" || fail "the second time is not as the first"
[ "$(entries)" -eq 1 ] || fail "what was found is kept again"
entry=$(find "$XDG_CACHE_HOME" -name '*.passes')
sed -i '2s/^/1/' "$entry"
simulate $passes
cmp "$work/first" "$work/out" || fail "a spoilt entry is believed"
simulate fsdp,prefetch,unshard
cmp -s "$work/first" "$work/out" && fail "another list is taken for the same"
expect 0 passes
says fresh
[ $failures -eq 0 ]
