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
        fullshard,prefetch:group=8K fullshard,unshard,linger fullshard,prefetch,unshard,prefetch; do
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

# All state in pieces: by pin with a recipe or without one, by plan whatever else is faster.
"$SHEAF_BIN" pin "$step" --shard-state full -n 2 --cluster 2xH100 --memory 1G -o full.json >out
grep -q 'passes  fullshard,prefetch,unshard' out
grep -q 'recipe  zero3' out
grep -q '"memory": 1073741824' full.json
"$SHEAF_BIN" pin "$step" --shard-state full -r megatron -n 4 --passes fullshard -o full.json >out
grep -q 'recipe  megatron+zero3' out
grep -q 'passes  fullshard$' out
"$SHEAF_BIN" plan "$step" --cluster 2xH100 --shard-state full -o full.json >out
grep -q 'recipe   zero3' out
grep -q 'mesh     data=2' out
"$SHEAF_BIN" verify --plan full.json --steps 1 >out
for bad in 'full -r zero1' 'some -r dp'; do
    status=0
    "$SHEAF_BIN" pin "$step" -n 2 --shard-state $bad >out 2>&1 || status=$?
    [ $status -eq 2 ] || { echo "FAILED: --shard-state $bad: exit $status"; exit 1; }
    grep -q 'state' out
done

# Nothing fits: tensors go to the host, unless that is ruled out, and it is said.
"$SHEAF_BIN" plan "$step" --cluster 2xH100 --memory 60K -o host.json >out 2>err
grep -q 'warning: no plan was found that fits in 60.0 KiB: .* host .* offload' err
grep -q 'passes   offload' out
"$SHEAF_BIN" run --plan host.json --device-memory 60K --steps 3 --check --threads 1 --json | grep '"loss"' >found
"$SHEAF_BIN" run --plan host.json --passes none --steps 3 --check --threads 1 --json | grep '"loss"' >expected
cmp expected found
if "$SHEAF_BIN" plan "$step" --cluster 2xH100 --memory 60K --passes none >out 2>&1; then exit 1; fi
grep -q 'no plan was found that fits' out
