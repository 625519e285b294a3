#!/usr/bin/env bash
# Ranks of engine cuda that exchange by NCCL: kernels run by the host, and a library that stands in for the real one
# (test/support/fake/nccl.c) and counts what it is asked for. Recipes and stages train as the unsplit step, on processes and threads;
# a rank that hangs is named; a library that refuses, or is not there, is done without.
set -u
. "$SHEAF_SOURCE/test/support/cli.sh"
bin=$SHEAF_BIN
step=$SHEAF_SOURCE/examples/gpt-micro.stablehlo.mlir
io=$SHEAF_SOURCE/examples/gpt-micro.io.safetensors
fake=$SHEAF_BUILD/test/support/libfake_nccl.so
if [ ! -e "$fake" ]; then
    echo "FAILED: $fake, the library in the place of NCCL, is not built"
    exit 1
fi
export SHEAF_CUDA=$emulator FAKE_NCCL_LOG=$work/log
export ASAN_OPTIONS=${ASAN_OPTIONS:-}:detect_leaks=0 # MPI leaks
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_mpi_yield_when_idle=1
has_mpi=false
if command -v mpirun >/dev/null && "$bin" version | grep -q '^mpi: in'; then
    has_mpi=true
fi

pin() {
    local how="--recipe $1 -n $2"
    case $1 in --mesh*) how=$1 ;; esac
    # shellcheck disable=SC2086 # options
    "$bin" pin "$step" $how -o "$work/plan.json" >"$work/out" 2>"$work/err" || fail "no plan for $1"
}
train=(train "$step" --plan "$work/plan.json" --data "$io" --init "$io" --engine cuda)

# counts KIND: how often the library was asked for it, by all ranks.
counts() { awk -v kind="$1" '/^destroyed/ { for (i = 6; i < NF; i += 2) if ($i == kind) n += $(i + 1) } END { print n + 0 }' "$work/log"; }

# trains RECIPE RANKS KIND...: the losses are those of the unsplit step, each of these was asked for, more than to connect, and a graph
# runs them again without asking.
trains() {
    local recipe=$1 kind least
    pin "$recipe" "$2"
    shift 2
    : >"$work/log"
    expect 0 "${train[@]}" --steps 4
    says "step 2/4  loss 3.80045"
    says "step 3/4  loss 3.8834"
    says "step 4/4  loss 3.66"
    [ "$(counts runs)" -gt "$(counts groups)" ] || fail "$recipe: no graph"
    for kind in "$@"; do
        case $kind in send | receive) least=5 ;; *) least=1 ;; esac
        [ "$(counts "$kind")" -ge $least ] || fail "$recipe: no $kind by NCCL"
    done
    if grep -q "^aborted" "$work/log"; then fail "$recipe: a communicator was aborted"; fi
}

# Ranks that are threads.
export SHEAF_NCCL=$fake
if nightly; then trains megatron 2 all_reduce; fi
trains "--mesh model=2 --pin */wte/embedding=S(0)@model" 2 all_reduce all_gather # the maximum over a vocabulary
trains "zero3 --stages 2 --micro-batches 2 --schedule 1f1b" 4 send receive all_gather reduce_scatter
# The last of these is the plan of what follows.
expect 0 "${train[@]}" --steps 3 --check --passes overlap
says "step 3/3  loss 3.8834"
sheaf=("$bin" verify)
expect 0 "$step" --plan "$work/plan.json" --engine cuda --steps 3
says "verify: passed"
sheaf=("$bin")

# A GPU that does one thing after the other, whatever lanes they are on: nobody waits for what comes after it.
export CUDA_DEVICE_MAX_CONNECTIONS=1
trains "zero3 --stages 2 --micro-batches 2 --schedule zb-h1" 4 send receive all_gather reduce_scatter
if nightly; then
    trains "dp --stages 2 --micro-batches 2 --schedule 1f1b" 2 send receive
    trains "dp --stages 4 --micro-batches 4 --schedule gpipe" 4 send receive
fi
trains "dp --stages 2 --micro-batches 2 --schedule interlaced" 2 send receive all_reduce # two groups of the same two ranks
unset CUDA_DEVICE_MAX_CONNECTIONS

# Two runs give the same bits.
pin zero1 4
for run in a b; do
    expect 0 "${train[@]}" --steps 3 --save "$work/$run"
done
diff -r "$work/a/step-000003" "$work/b/step-000003" >"$work/out" || fail "two runs differ"

# Refused, switched off, not there, misspelt.
pin dp 2
: >"$work/log"
FAKE_NCCL_REFUSE=1 expect 0 "${train[@]}" --steps 2
says "step 2/2  loss 3.80045"
warns "ranks exchange without NCCL: NCCL fails to start with 2 ranks: invalid usage"
: >"$work/log"
SHEAF_NCCL=off,$fake expect 0 "${train[@]}" --steps 2
[ ! -s "$work/log" ] || fail "NCCL is used although it is off"
SHEAF_NCCL=$work/none.so expect 0 "${train[@]}" --steps 2
warns "ranks exchange through memory of the host: engine cuda needs NCCL: $work/none.so is not there"
SHEAF_NCCL=on expect 2 "${train[@]}" --steps 2
warns "SHEAF_NCCL has off, shared or the path of a library, not 'on'"

# What does not end although all ranks have come is given up, and everything closes.
pin "zero3 --stages 2 --micro-batches 2 --schedule 1f1b" 4 # compiled before
FAKE_NCCL_STALL=2 expect 1 "${train[@]}" --steps 9 --wait 12
warns " s for what ranks exchange by NCCL"
says "step 1/9"
FAKE_NCCL_STALL=130 expect 1 "${train[@]}" --steps 9 --wait 12 # in the graph
warns " s for what ranks exchange by NCCL"
warns "gave up what ranks exchange by NCCL"
says "step 2/9"

if ! $has_mpi; then
    echo "no MPI: ranks that are processes are not tested"
    [ "$failures" -eq 0 ]
    exit
fi

# Ranks that are processes.
sheaf=(timeout 100 mpirun -n 2 "$bin")
trains dp 2 all_reduce
if nightly; then trains "dp --stages 2 --micro-batches 2 --schedule zb-h1" 2 send receive; fi
sheaf=(timeout 100 mpirun -n 4 "$bin")
trains zero3 4 all_gather reduce_scatter
if nightly; then
    trains 2d 4 all_reduce
    trains sequence 4 send all_gather reduce_scatter
fi

# hangs RECIPE RANKS: rank 1, in a step that is a graph, is waited for as long as it may be, and named.
hangs() {
    local limit=3 launcher victim='' pid
    pin "$1" "$2"
    rm -f "$work/hang.jsonl"
    mpirun -n "$2" "$bin" "${train[@]}" --steps 100000 --quiet --wait $limit --log "$work/hang.jsonl" \
        >"$work/out" 2>"$work/err" </dev/null &
    launcher=$!
    for _ in $(seq 300); do
        [ "$(grep -c '"event":"step"' "$work/hang.jsonl" 2>/dev/null)" -ge 4 ] 2>/dev/null && break
        sleep 0.1
    done
    for pid in $(pgrep -P $launcher); do
        if tr '\0' '\n' <"/proc/$pid/environ" 2>/dev/null | grep -qx OMPI_COMM_WORLD_RANK=1; then victim=$pid; fi
    done
    kill -STOP "$victim" || fail "$1: no rank to stop"
    for _ in $(seq 300); do
        kill -0 $launcher 2>/dev/null || break
        sleep 0.1
    done
    kill -0 $launcher 2>/dev/null && kill -KILL $launcher "$victim" && fail "$1: a rank that hangs is waited for without end"
    wait $launcher && fail "$1: a rank that hangs is taken for success"
    grep -q "waited $limit s for rank 1 in " "$work/err" "$work/out" || fail "$1: nobody says who was waited for"
}
if nightly; then hangs dp 2; fi
hangs "zero3 --stages 2 --micro-batches 2 --schedule 1f1b" 4 # others come to the end of the step, or wait for those that wait

[ "$failures" -eq 0 ]
