#!/usr/bin/env bash
# A pass of a user, built and loaded: kept where it is faster, with the same losses; refused where it breaks the order, fails,
# is of another version or is none; and never loaded because a plan or a schedule names it.
set -euo pipefail
if [ -n "${SHEAF_SANITIZE:-}" ]; then
    echo "a program with sanitizers does not load what has none"
    exit 77
fi
compiler=${CC:-cc}
command -v "${compiler%% *}" >/dev/null || { echo "there is no C compiler"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
step=$SHEAF_SOURCE/examples/gpt-micro.stablehlo.mlir
example=$SHEAF_SOURCE/examples/c/early_pass.c

fail() {
    echo "FAILED: $*"
    cat out 2>/dev/null
    exit 1
}
build() { # NAME SOURCE
    $compiler -std=c17 -Wall -Wextra -Werror -shared -fPIC -I "$SHEAF_SOURCE/include" -o "$1" "$2"
}
refused() { # CODE TEXT ARGUMENT...
    local code=$1 text=$2 status=0
    shift 2
    "$SHEAF_BIN" "$@" >out 2>&1 || status=$?
    [ $status -eq "$code" ] || fail "exit $status, not $code: $*"
    grep -q -- "$text" out || fail "no word of \"$text\": $*"
}
losses() { "$SHEAF_BIN" run --plan "$1" --passes "$2" --steps 3 --check --threads 1 --json | grep '"loss"'; }

build early.so "$example"
for turns in 1 2; do
    "$SHEAF_BIN" pin "$step" -r zero3 -n 2 --micro-batches $turns -o plan.json >/dev/null
    losses plan.json none >expected
    losses plan.json fsdp,./early.so >found
    cmp expected found || fail "other losses"
done
"$SHEAF_BIN" sim plan.json --cluster 2xH100 --passes fsdp,./early.so >out
grep -qE '^  \./early.so .*gathers as early as can be' out || fail "it did nothing"
"$SHEAF_BIN" pin "$step" -r zero3 -n 2 -o plan.json >/dev/null
"$SHEAF_BIN" sim plan.json --cluster 2xH100 --passes fsdp,./early.so,prefetch >out
grep -qE '^  prefetch ' out || fail "nothing may follow it"

# What it must not do.
sed 's/    free(done);/    passing->order[0] = passing->order[passing->count - 1];\n&/' "$example" >wrong.c
build wrong.so wrong.c
refused 1 'pass early: its order leaves out' sim plan.json --cluster 2xH100 --passes ./wrong.so
sed 's/    free(done);/    for (uint32_t i = 0; i < passing->count; i++) passing->order[i] = passing->count - 1 - i;\n&/' \
    "$example" >turned.c
build turned.so turned.c
refused 1 'pass early: its order' sim plan.json --cluster 2xH100 --passes ./turned.so
sed 's/    return 0;/    return 3;/' "$example" >fails.c
build fails.so fails.c
refused 1 'pass early: ' sim plan.json --cluster 2xH100 --passes fsdp,./fails.so
sed 's/SF_USER_PASS_VERSION,/99,/' "$example" >newer.c
build newer.so newer.c
refused 2 'version 99' sim plan.json --cluster 2xH100 --passes ./newer.so
echo 'int x;' >none.c
build none.so none.c
refused 2 'this is no pass' sim plan.json --cluster 2xH100 --passes ./none.so
refused 2 'this is no pass' run --plan plan.json --passes ./missing.so --steps 1
refused 2 'there is no pass "early.so"' run --plan plan.json --passes early.so --steps 1

# Only the command line names files.
"$SHEAF_BIN" pin "$step" -r zero3 -n 2 --passes fsdp,./early.so -o named.json >/dev/null
refused 2 'only --passes on the command line' run --plan named.json --steps 1
losses named.json fsdp,./early.so >found
cmp expected found || fail "other losses"
if "$SHEAF_BIN" version | grep -q '^lua: in'; then
    printf 'local sch = sheaf.schedule()\nsch:recipe("zero3")\nsch:passes("./early.so")\n' >named.lua
    refused 1 'is a file, which is not loaded' pin "$step" --schedule named.lua -n 2
fi
echo "good"
