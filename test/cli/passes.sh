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

# The short version of `make check`: with micro-batches alone.
batches=(2)
[ -z "${SHEAF_NIGHTLY:-}" ] || batches=(1 2)
for turns in "${batches[@]}"; do
    "$SHEAF_BIN" pin "$step" -r zero3 -n 2 --micro-batches "$turns" -o plan.json >/dev/null
    losses plan.json none >expected
    [ "$(grep -c loss expected)" -eq 3 ]
    for list in fsdp fsdp,prefetch \
        fsdp,prefetch:group=8K fsdp,unshard,defer-gradient-readers fsdp,prefetch,unshard,prefetch; do
        losses plan.json $list >found
        cmp expected found || { echo "FAILED: $turns turns, $list: other losses"; exit 1; }
    done
    "$SHEAF_BIN" verify --plan plan.json --passes fsdp,prefetch,unshard --steps 2 >out
done

# Links that take about as long as what is computed: products and their collectives run in chunks, bits are the same; and
# gradients as bf16 are an approximation that verify calls one.
cat >slow.json <<'END'
{"format": "sheaf cluster", "version": 1, "name": "slow", "devices": [{"name": "one", "memory": 1000000000,
 "flops": {"f32": 1e9}, "vector_flops": 1e10, "bandwidth": 1e11, "product_share": 1, "memory_share": 1, "ramp": 0,
 "launch": 1e-9}], "nodes": [{"count": 1, "devices": 2, "device": "one",
 "inside": {"latency": 1e-9, "bandwidth": 1e8, "lanes": 0}, "network": {"latency": 1e-9, "bandwidth": 1e8, "lanes": 0}}]}
END
"$SHEAF_BIN" pin "$step" -r megatron -n 2 --cluster slow.json --passes overlap -o plan.json >/dev/null
"$SHEAF_BIN" sim plan.json --cluster slow.json 2>/dev/null | grep -qE '^  overlap .* products in chunks'
losses plan.json none >expected
"$SHEAF_BIN" run --plan plan.json --steps 3 --check --threads 1 --json | grep '"loss"' >found
cmp expected found || { echo "FAILED: overlap: other losses"; exit 1; }
"$SHEAF_BIN" pin "$step" -r dp -n 2 --cluster slow.json --passes compress:min=1 -o plan.json >/dev/null
"$SHEAF_BIN" sim plan.json --cluster slow.json 2>/dev/null | grep -qE '^  compress .* sent as bf16'
"$SHEAF_BIN" verify --plan plan.json --steps 3 >out
grep -q 'are an approximation (compress)' out
"$SHEAF_BIN" verify --plan plan.json --steps 1 --passes none | (! grep -q approximation)

# Passes stay in the plan, and it is the program after them that is simulated.
"$SHEAF_BIN" pin "$step" -r zero3 -n 4 --passes fsdp,prefetch -o plan.json >/dev/null
grep -q '"list": "fsdp,prefetch"' plan.json
"$SHEAF_BIN" sim plan.json --cluster 4xH100 2>/dev/null | grep -qE '^  prefetch .*gathers earlier'
"$SHEAF_BIN" sim plan.json --cluster 4xH100 --passes none 2>/dev/null | (! grep -q '^passes')
"$SHEAF_BIN" sim plan.json --cluster 4xH100 --json --passes fsdp 2>/dev/null | grep -q '"curve"'

# Less memory than the program takes by itself: nothing is gathered ahead that does not fit.
"$SHEAF_BIN" sim plan.json --cluster 4xH100 --memory 40K 2>/dev/null >/dev/null

for bad in 'prefetch' 'fsdp,nothing' 'fsdp,prefetch:group=x' 'fsdp,prefetch:size=1'; do
    if "$SHEAF_BIN" run --plan plan.json --passes "$bad" --steps 1 >out 2>&1; then
        echo "FAILED: --passes $bad is taken"
        exit 1
    fi
    grep -q 'pass' out
done
if "$SHEAF_BIN" run "$step" --passes fsdp --steps 1 >out 2>&1; then exit 1; fi
grep -q -- '--passes needs a --plan' out
sed 's/"list": "fsdp,prefetch"/"list": "wrong"/' plan.json >wrong.json
if "$SHEAF_BIN" run --plan wrong.json --steps 1 >out 2>&1; then exit 1; fi
grep -q 'there is no pass "wrong"' out

# All state in pieces: by pin with a recipe or without one, by plan whatever else is faster.
"$SHEAF_BIN" pin "$step" --shard-state full -n 2 --cluster 2xH100 --memory 1G -o full.json >out
grep -q 'passes  fsdp,prefetch,unshard' out
grep -q 'recipe  zero3' out
grep -q '"memory": 1073741824' full.json
"$SHEAF_BIN" pin "$step" --shard-state full -r megatron -n 4 --passes fsdp -o full.json >out
grep -q 'recipe  megatron+zero3' out
grep -q 'passes  fsdp$' out
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
"$SHEAF_BIN" plan "$step" --cluster 2xA100 --memory 60K -o host.json >out 2>err
grep -q 'warning: no plan was found that fits in 60.0 KiB: .* host .* offload' err
grep -q 'passes   offload' out
"$SHEAF_BIN" run --plan host.json --device-memory 60K --steps 3 --check --threads 1 --json | grep '"loss"' >found
"$SHEAF_BIN" run --plan host.json --passes none --steps 3 --check --threads 1 --json | grep '"loss"' >expected
cmp expected found
if "$SHEAF_BIN" plan "$step" --cluster 2xA100 --memory 60K --passes none >out 2>&1; then exit 1; fi
grep -q 'no plan was found that fits' out

# Why gathers are where they are, and the memory curve before and after each pass.
"$SHEAF_BIN" pin "$step" -r zero3 -n 2 --cluster 1x2xCPU --passes fsdp,prefetch,unshard -o plan.json >/dev/null
"$SHEAF_BIN" explain plan.json 'params/layer_1/mlp/up/kernel' --cluster 1x2xCPU >out
grep -qE '^  params/layer_1/mlp/up/kernel .*hidden from here on' out
least=$("$SHEAF_BIN" sim plan.json --cluster 1x2xCPU --passes fsdp,force --json | grep '"memory"' | tail -n 1 | tr -dc 0-9)
"$SHEAF_BIN" pin "$step" -r zero3 -n 2 --cluster 1x2xCPU --memory $((least + 1024)) --passes fsdp,prefetch,force -o plan.json >/dev/null
"$SHEAF_BIN" explain plan.json 'params/layer_*/mlp/*' --cluster 1x2xCPU --all >out
grep -qE 'no room (earlier|to stand longer): ' out
"$SHEAF_BIN" explain plan.json 'params/layer_1/mlp/up/kernel' --cluster 1x2xCPU --json | grep -q '"why"'
"$SHEAF_BIN" report plan.json --cluster 1x2xCPU -o page.html
"$SHEAF_BIN" report plan.json --cluster 1x2xCPU --json >page.json
[ "$(grep -o '"curve"' page.json | wc -l)" -eq 4 ] # before the first pass, and after each
grep -q '"limit"' page.json
grep -q '"pass_memory"' page.html

# A profile of a few real steps in place of the model's: of a loop's turns, too, and the same as option and as a cluster.
"$SHEAF_BIN" pin "$step" -r zero3 -n 2 --micro-batches 2 -o plan.json >/dev/null
"$SHEAF_BIN" run --plan plan.json --passes fsdp,force --steps 3 --threads 1 --profile run.json >/dev/null
grep -q '"within"' run.json
grep -q '"mean_us"' run.json
"$SHEAF_BIN" cluster 1x2xCPU --measured run.json --json >machine.json
grep -q '"seen"' machine.json
seconds() { "$SHEAF_BIN" sim plan.json --json "$@" 2>/dev/null | grep -m 1 '"seconds"'; }
[ "$(seconds --cluster 1x2xCPU --measured run.json)" = "$(seconds --cluster machine.json)" ]
[ "$(seconds --cluster 1x2xCPU)" != "$(seconds --cluster machine.json)" ]
"$SHEAF_BIN" pin "$step" -r zero3 -n 2 --micro-batches 2 --passes fsdp,prefetch,unshard --cluster 1x2xCPU --measured run.json \
    -o measured.json >/dev/null
grep -q 'seen' measured.json
losses plan.json none >expected
"$SHEAF_BIN" run --plan measured.json --steps 3 --check --threads 1 --json | grep '"loss"' >found
cmp expected found
for bad in "2 pin $step -r dp -n 2 --measured run.json" '2 cluster --measured run.json' \
    '1 sim plan.json --measured plan.json' '2 sim plan.json --cluster 1xCPU --measured run.json'; do
    set -- $bad
    expected=$1 status=0
    shift
    "$SHEAF_BIN" "$@" >out 2>&1 || status=$?
    [ $status -eq "$expected" ] || { echo "FAILED: $*: exit $status"; exit 1; }
done

# Memory that was predicted and is not there all the same: the message has the prediction. Sanitizers need more than any limit.
if (ulimit -v 2500000 && "$SHEAF_BIN" version) >/dev/null 2>&1; then
    cat >large.mlir <<'END'
func.func public @main(%w: tensor<400000000xf32> {tf.aliasing_output = 0 : i32}, %x: tensor<400000000xf32>) -> tensor<400000000xf32> {
%n = stablehlo.add %w, %x : tensor<400000000xf32>
return %n : tensor<400000000xf32>
}
END
    if (ulimit -v 2500000 && "$SHEAF_BIN" run large.mlir --steps 1 --device-memory 8G --memory 8G) >out 2>&1; then exit 1; fi
    grep -q 'gives no more memory, not these 1.49 GiB; predicted were 2.98 GiB of the device' out
fi
