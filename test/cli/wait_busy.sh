#!/usr/bin/env bash
# Waiting for a rank on a core that others keep busy: one that is stopped is named in time, and one that is merely slow,
# or was stopped together with those who wait for it, is not.
set -u
bin=$SHEAF_BIN
step=$SHEAF_SOURCE/examples/gpt-micro.stablehlo.mlir
io=$SHEAF_SOURCE/examples/gpt-micro.io.safetensors
limit=3
margin=${SHEAF_WAIT_MARGIN:-5} # seconds: asking around, telling the others, and the load of other tests
for tool in mpirun taskset timeout pgrep; do
    if ! command -v $tool >/dev/null; then
        echo "$tool is not installed"
        exit 77
    fi
done
if ! "$bin" version | grep -q '^mpi: in'; then
    echo "a build without MPI"
    exit 77
fi
work=$(mktemp -d)
started=()
finish() {
    for pid in "${started[@]}"; do kill -KILL "$pid"; done 2>/dev/null
    wait 2>/dev/null
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

core=$(taskset -cp $$ | sed 's/.*[:,-] *//')
busy=()
for _ in 1 2; do
    taskset -c "$core" yes >/dev/null &
    busy+=($!)
done
started+=("${busy[@]}")

# start RANKS LAUNCHER...: in the background, on that core, until the first steps are made.
start() {
    local ranks=$1
    shift
    rm -f "$work/log"
    "$bin" pin "$step" --recipe zero3 -n "$ranks" -o "$work/plan.json" >"$work/out" 2>&1 || give_up "pin"
    taskset -c "$core" "$@" "$bin" train "$step" --plan "$work/plan.json" --data "$io" --init "$io" --threads 1 \
        --quiet --wait $limit --steps "$steps" --log "$work/log" >"$work/out" 2>&1 </dev/null &
    launcher=$!
    started+=($!)
    for _ in $(seq 300); do
        [ "$(grep -c '"event":"step"' "$work/log" 2>/dev/null)" -gt 5 ] 2>/dev/null && return
        sleep 0.1
    done
    give_up "no steps"
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
}

over_mpi() { echo mpirun --bind-to none -n "$1"; }

# A rank that is stopped.
steps=100000000
for ranks in 2 4; do
    # shellcheck disable=SC2046
    start $ranks $(over_mpi $ranks)
    victim=
    for pid in $(pgrep -P "$launcher"); do
        if tr '\0' '\n' <"/proc/$pid/environ" | grep -qx "OMPI_COMM_WORLD_RANK=$((ranks - 1))"; then
            victim=$pid
        fi
    done
    [ -n "$victim" ] || give_up "no process of the last rank"
    started+=("$victim")
    kill -STOP "$victim"
    before=$SECONDS
    until grep -q "waited $limit s for rank $((ranks - 1)) in" "$work/out"; do
        [ $((SECONDS - before)) -le $((limit + margin)) ] || give_up "not named in time, of $ranks ranks"
        sleep 0.1
    done
    echo "$ranks ranks, one stopped: named after $((SECONDS - before)) s"
    kill -KILL "$victim"
    await 60 "after that"
    if grep "waited" "$work/out" | grep -vq "for rank $((ranks - 1)) in"; then give_up "another rank is accused"; fi
done

# All are stopped for longer than they wait, and go on.
steps=30
for ranks in 2 4; do
    for launch in "$(over_mpi $ranks)" env; do
        # shellcheck disable=SC2086
        start $ranks $launch
        pids=$launcher
        if [ "$launch" != env ]; then pids=$(pgrep -P "$launcher"); fi
        # Nobody needs a busy core meanwhile.
        # shellcheck disable=SC2086
        kill -STOP $pids "${busy[@]}"
        sleep $((limit + 2))
        # shellcheck disable=SC2086
        kill -CONT "${busy[@]}" $pids
        await 100 "stopped and continued, ${launch%% *}"
        [ $status -eq 0 ] || give_up "$ranks ranks, all stopped for a while (${launch%% *}): exit code $status"
    done
done
