#!/usr/bin/env bash
# Passes on real ranks: the losses of every step are those without passes, bit by bit, and verify is content.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
step=$SHEAF_SOURCE/examples/gpt-micro.stablehlo.mlir

losses() {
    "$SHEAF_BIN" run --plan "$1" --passes "$2" --steps 3 --check --threads 1 --json | grep '"loss"'
}

for turns in 1 2; do
    "$SHEAF_BIN" pin "$step" -r zero3 -n 2 --micro-batches $turns -o plan.json >/dev/null
    losses plan.json none >expected
    [ "$(grep -c loss expected)" -eq 3 ]
    for list in fullshard fullshard,zero3-prefetch:bucket=4K fullshard,prefetch \
        fullshard,prefetch:group=8K fullshard,unshard fullshard,prefetch,unshard,prefetch; do
        losses plan.json $list >found
        cmp expected found || { echo "FAILED: $turns turns, $list: other losses"; exit 1; }
    done
    "$SHEAF_BIN" verify --plan plan.json --passes fullshard,prefetch,unshard --steps 2 >out
done

# Passes stay in the plan, and it is the program after them that is simulated.
"$SHEAF_BIN" pin "$step" -r zero3 -n 4 --passes fullshard,prefetch -o plan.json >/dev/null
grep -q '"list": "fullshard,prefetch"' plan.json
"$SHEAF_BIN" sim plan.json --cluster 4xH100 2>/dev/null | grep -qE '^  prefetch .*gathers earlier'
"$SHEAF_BIN" sim plan.json --cluster 4xH100 --passes none 2>/dev/null | (! grep -q '^passes')
"$SHEAF_BIN" sim plan.json --cluster 4xH100 --json --passes fullshard 2>/dev/null | grep -q '"curve"'

# Less memory than the program takes by itself: nothing is gathered ahead that does not fit.
"$SHEAF_BIN" sim plan.json --cluster 4xH100 --memory 40K 2>/dev/null >/dev/null

for bad in 'prefetch' 'fullshard,nothing' 'fullshard,prefetch:group=x' 'fullshard,prefetch:size=1'; do
    if "$SHEAF_BIN" run --plan plan.json --passes "$bad" --steps 1 >out 2>&1; then
        echo "FAILED: --passes $bad is taken"
        exit 1
    fi
    grep -q 'pass' out
done
if "$SHEAF_BIN" run "$step" --passes fullshard --steps 1 >out 2>&1; then exit 1; fi
grep -q -- '--passes needs a --plan' out
sed 's/"list": "fullshard,prefetch"/"list": "wrong"/' plan.json >wrong.json
if "$SHEAF_BIN" run --plan wrong.json --steps 1 >out 2>&1; then exit 1; fi
grep -q 'there is no pass "wrong"' out
