#!/usr/bin/env bash
# Kills one of the processes of a run over MPI at random moments, again and again, for 8 seconds by
# night and 2 in the short version (SHEAF_KILL_SECONDS): the run ends, the last checkpoint is whole, and in the end the run equals one that
# nobody killed. Then stops one of them: the others end within the time that they may wait, and say for
# which rank and which tensor they waited.
set -u
bin=$SHEAF_BIN
step=$SHEAF_SOURCE/examples/gpt-micro.stablehlo.mlir
io=$SHEAF_SOURCE/examples/gpt-micro.io.safetensors
hanging=(1 0) hanging_stages=(3 2 0) limit=3
if [ -z "${SHEAF_NIGHTLY:-}" ]; then
    SHEAF_KILL_SECONDS=${SHEAF_KILL_SECONDS:-2} hanging=(1) hanging_stages=(2)
fi
seconds=${SHEAF_KILL_SECONDS:-8}
ranks=${SHEAF_KILL_RANKS:-2}
RANDOM=${SHEAF_KILL_SEED:-1}
for tool in mpirun timeout pgrep; do
    if ! command -v $tool >/dev/null; then
        echo "$tool is not installed: nothing over MPI is tested"
        exit 77
    fi
done
if ! "$bin" version | grep -q '^mpi: in'; then
    echo "a build without MPI"
    exit 77
fi
work=$(mktemp -d)
launcher=
finish() {
    [ -z "$launcher" ] || kill -KILL "$launcher" 2>/dev/null
    rm -rf "$work"
}
trap finish EXIT
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_mpi_yield_when_idle=1
export ASAN_OPTIONS=${ASAN_OPTIONS:-}:detect_leaks=0

give_up() {
    echo "FAILED: $*"
    sed 's/^/    /' "$work/out" | tail -n 20
    exit 1
}

losses() { sed -n 's/.*"event":"step","step":\([0-9]*\),"loss":\([^,]*\),.*/\1 \2/p' "$1"; }

"$bin" pin "$step" --recipe zero3 -n "$ranks" -o "$work/plan.json" >"$work/out" 2>&1 || give_up "pin"
common=("$bin" train "$step" --plan "$work/plan.json" --data "$io" --init "$io" --threads 1 --quiet)
killed=(mpirun -n "$ranks" "${common[@]}" --save "$work/killed" --save-every 2 --resume
    --log "$work/killed.jsonl")

# start ARGUMENT...: in the background; `launcher` is mpirun.
start() {
    "$@" >"$work/out" 2>&1 </dev/null &
    launcher=$!
}

# Waits until the launcher has ended, at most so many seconds; sets `status`.
await() {
    local deadline=$((SECONDS + $1))
    while kill -0 "$launcher" 2>/dev/null; do
        [ $SECONDS -lt $deadline ] || give_up "$2: still there after $1 s"
        sleep 0.1
    done
    status=0
    wait "$launcher" 2>/dev/null || status=$?
    launcher=
}

# The process of rank $1, or nothing.
process() {
    local pid
    for pid in $(pgrep -P "$launcher"); do
        if tr '\0' '\n' <"/proc/$pid/environ" 2>/dev/null | grep -qx "OMPI_COMM_WORLD_RANK=$1"; then
            echo "$pid"
        fi
    done
}

kills=0 steps=0 began=$SECONDS
while [ $((SECONDS - began)) -lt "$seconds" ] || [ "$steps" -eq 0 ]; do
    [ $((SECONDS - began)) -lt $((seconds + 120)) ] || give_up "no checkpoint after $kills kills"
    before=$(losses "$work/killed.jsonl" 2>/dev/null | wc -l)
    start "${killed[@]}" --steps 1000000
    # Some before the first step, most later.
    if [ $((RANDOM % 4)) -gt 0 ]; then
        for _ in $(seq 300); do
            [ "$(losses "$work/killed.jsonl" 2>/dev/null | wc -l)" -gt "$before" ] && break
            sleep 0.1
        done
    fi
    sleep "0.$(printf '%03d' $((RANDOM % 1000)))"
    pid=$(process $((RANDOM % ranks)))
    if [ -z "$pid" ]; then
        kill -KILL "$launcher" # the ranks are not there yet
    else
        kill -KILL "$pid" 2>/dev/null || give_up "it ended by itself"
    fi
    await 60 "killed"
    [ $status -ne 0 ] || give_up "a killed rank is taken for success"
    kills=$((kills + 1))
    if [ -e "$work/killed/latest" ]; then
        now=$(sed 's/step-0*//' "$work/killed/latest")
        [ "${now:-0}" -ge "$steps" ] || give_up "went back from step $steps to $now"
        steps=${now:-0}
        [ -s "$work/killed/$(cat "$work/killed/latest")/checkpoint.json" ] ||
            give_up "latest names no checkpoint"
    fi
done

end=$((steps + 3))
timeout 200 "${killed[@]}" --steps $end >"$work/out" 2>&1 || give_up "cannot go on after $kills kills"
[ -z "$(find "$work/killed" -mindepth 1 -name '.*')" ] || give_up "leftovers stay"
timeout 200 "${common[@]}" --save "$work/whole" --save-every 1000000 --steps $end \
    --log "$work/whole.jsonl" >"$work/out" 2>&1 || give_up "the run that nobody killed"
name=$(printf 'step-%06d' $end)
diff -r "$work/killed/$name" "$work/whole/$name" >"$work/out" || give_up "the states differ"
losses "$work/whole.jsonl" >"$work/expected"
losses "$work/killed.jsonl" | awk -v end=$end '$1 <= end' | sort -n -u >"$work/got"
cmp "$work/expected" "$work/got" || give_up "the losses differ"
echo "$kills kills, $end steps"

# A rank that hangs.
for victim in "${hanging[@]}"; do
    rm -rf "$work/hang" "$work/hang.jsonl"
    start mpirun -n "$ranks" "${common[@]}" --save "$work/hang" --save-every 5 --steps 1000000 \
        --log "$work/hang.jsonl" --wait $limit
    for _ in $(seq 600); do
        grep -q '"event":"saved"' "$work/hang.jsonl" 2>/dev/null && break
        sleep 0.1
    done
    pid=$(process $victim)
    [ -n "$pid" ] || give_up "no process of rank $victim"
    kill -STOP "$pid"
    before=$SECONDS
    await $((limit + 30)) "rank $victim hangs"
    took=$((SECONDS - before))
    [ $status -ne 0 ] || give_up "a rank that hangs is taken for success"
    grep -q "waited $limit s for rank $victim in .*(.*)" "$work/out" ||
        give_up "nobody says that rank $victim was waited for, and in what"
    [ "$(grep -c error: "$work/out")" -lt "$ranks" ] || give_up "said too often"
    latest=$(cat "$work/hang/latest")
    timeout 200 "${common[@]}" --resume="$work/hang/$latest" --steps 1 >"$work/resumed" 2>&1 ||
        give_up "$latest does not load"
    echo "rank $victim stopped: over after $took s: $(grep -m 1 error: "$work/out")"
done

# A rank that hangs in a pipeline: the others wait for their neighbours, and yet it is the one that is named.
stages=4
"$bin" pin "$step" --stages $stages --micro-batches 4 -o "$work/pipe.json" >"$work/out" 2>&1 || give_up "pin --stages"
for victim in "${hanging_stages[@]}"; do
    rm -f "$work/pipe.jsonl"
    start mpirun -n $stages "$bin" train "$step" --plan "$work/pipe.json" --data "$io" --init "$io" --threads 1 \
        --quiet --steps 1000000 --log "$work/pipe.jsonl" --wait $limit
    for _ in $(seq 600); do
        [ "$(losses "$work/pipe.jsonl" 2>/dev/null | wc -l)" -ge 5 ] && break
        sleep 0.1
    done
    pid=$(process $victim)
    [ -n "$pid" ] || give_up "no process of rank $victim"
    kill -STOP "$pid"
    await $((limit + 30)) "rank $victim of a pipeline hangs"
    [ $status -ne 0 ] || give_up "a rank of a pipeline that hangs is taken for success"
    grep -q "waited $limit s for rank $victim in .*(.*)" "$work/out" ||
        give_up "nobody says that rank $victim of a pipeline was waited for: $(grep -m 1 error: "$work/out")"
    echo "rank $victim of a pipeline stopped: $(grep -m 1 error: "$work/out")"
done
