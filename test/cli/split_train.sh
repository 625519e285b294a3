#!/usr/bin/env bash
# Split runs of sheaf train: ranks as threads and over MPI make the same losses as one device; any run
# goes on from any checkpoint; what goes wrong is said once, by the rank that knows.
set -u
bin=$SHEAF_BIN
step=$SHEAF_SOURCE/examples/gpt-micro.stablehlo.mlir
io=$SHEAF_SOURCE/examples/gpt-micro.io.safetensors
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_mpi_yield_when_idle=1
# MPI leaks.
export ASAN_OPTIONS=${ASAN_OPTIONS:-}:detect_leaks=0

mpi=
command -v mpirun >/dev/null && "$bin" version | grep -q '^mpi: in' && mpi=yes
[ -n "$mpi" ] || echo "no mpirun, or a build without MPI: only threads are tested"

# The short version of `make check`: one in four of what is said to be the same for all ranks.
nightly() { [ -n "${SHEAF_NIGHTLY:-}" ] && [ -z "${SHEAF_SANITIZE:-}" ]; }

fail() {
    echo "FAILED: $*"
    sed 's/^/    /' "$work/out" | tail -n 20
    failures=$((failures + 1))
}

# train KIND ARGUMENT...: KIND is one, threads or mpi:N; sets `status`, the output is in $work/out.
train() {
    local kind=$1 launcher=()
    shift
    [ "${kind%%:*}" != mpi ] || launcher=(mpirun -n "${kind#mpi:}")
    status=0
    timeout 200 "${launcher[@]}" "$bin" train "$step" --threads 1 --seed 5 "$@" \
        >"$work/out" 2>&1 </dev/null || status=$?
    [ $status -ne 124 ] || fail "hangs: $kind $*"
}

good() {
    train "$@"
    [ $status -eq 0 ] || fail "exit code $status: $*"
}

says() { [ "$(grep -cF -e "$1" "$work/out")" -eq 1 ] || fail "'$1' is not said once"; }

losses() { sed -n 's/.*"event":"step","step":\([0-9]*\),"loss":\([^,]*\),.*/\1 \2/p' "$1"; }

# close LOG LOG: the same steps, and losses within 1e-5.
close() {
    paste -d ' ' <(losses "$1") <(losses "$2") | awk '
        function abs(x) { return x < 0 ? -x : x }
        $1 != $3 || abs($2 - $4) > 1e-5 * abs($2) { bad = 1 }
        END { exit bad || NR == 0 }' || fail "losses differ: $1 $2"
}

same_losses() { [ "$(losses "$1")" = "$(losses "$2")" ] || fail "losses differ in bits: $1 $2"; }
same_state() { diff -r "$1" "$2" >>"$work/out" 2>&1 || fail "states differ: $1 $2"; }

for recipe in "dp 2" "zero3 2" "2d 4"; do
    set -- $recipe
    "$bin" pin "$step" --recipe "$1" -n "$2" -o "$work/$1.json" >"$work/out" 2>&1 || fail "pin $1"
done

# The same losses, from the same checkpoints.
data=(--data "$io" --init "$io")
good one --steps 8 "${data[@]}" --save "$work/one" --save-every 4 --keep 0 --log "$work/one.jsonl"
kinds=(threads)
[ -z "$mpi" ] || kinds+=(mpi:4)
for kind in "${kinds[@]}"; do
    name=${kind%%:*}
    good "$kind" --plan "$work/2d.json" --steps 8 "${data[@]}" --save "$work/$name" --save-every 4 \
        --keep 0 --log "$work/$name.jsonl"
    says "step 8/8"
    says "done after 8 steps"
    [ "$(wc -l <"$work/$name.jsonl")" -eq 12 ] || fail "$name: more than one rank logs, or none"
    close "$work/one.jsonl" "$work/$name.jsonl"
done
if [ -n "$mpi" ]; then
    same_losses "$work/threads.jsonl" "$work/mpi.jsonl"
    same_state "$work/threads/step-000008" "$work/mpi/step-000008"
fi

# So do the reference kernels.
good threads --plan "$work/2d.json" --steps 8 "${data[@]}" --engine oracle --log "$work/oracle.jsonl"
close "$work/one.jsonl" "$work/oracle.jsonl"

# resume FROM KIND PLAN: goes on from the middle of another run.
count=0
resume() {
    local from=$1 kind=$2 plan=$3 options=()
    count=$((count + 1))
    [ "$plan" = none ] || options=(--plan "$work/$plan.json")
    good "$kind" "${options[@]}" --resume="$work/$from/step-000004" --data "$io" --steps 8 \
        --save "$work/r$count" --log "$work/r$count.jsonl"
    says "resumed from $work/$from/step-000004"
    losses "$work/one.jsonl" | tail -n 4 | sed 's/\(.*\) \(.*\)/"event":"step","step":\1,"loss":\2,/' \
        >"$work/rest.jsonl"
    close "$work/rest.jsonl" "$work/r$count.jsonl"
}
same_as() { same_state "$work/r$count/step-000008" "$work/$1/step-000008"; }

resume threads one none
resume threads threads dp
resume threads threads 2d
same_as threads
resume one threads 2d
if [ -n "$mpi" ]; then
    resume mpi one none
    resume mpi threads 2d
    same_as threads
    resume threads mpi:4 2d
    same_as threads
    resume mpi mpi:2 zero3
    resume one mpi:2 dp
fi

# Back to one device after having been split: the checkpoint of a resumed run is as good.
good one --resume="$work/r2" --data "$io" --steps 9 --save "$work/back"
says "resumed from $work/r2/step-000008"

# What goes wrong is said once.
refused() {
    local code=$1 text=$2
    shift 2
    train "$@"
    [ $status -eq "$code" ] || fail "exit code $status, not $code: $*"
    says "$text"
    [ "$(grep -c error: "$work/out")" -eq 1 ] || fail "more than one error"
}
refused 2 "the plan is for 4 ranks, not for 2" threads --plan "$work/2d.json" -n 2 --steps 1 "${data[@]}"
refused 1 "cannot open" threads --plan "$work/2d.json" --steps 1 --data "$work/none"
refused 2 "there are checkpoints of another run in it" threads --plan "$work/2d.json" --steps 1 \
    "${data[@]}" --save "$work/one"
refused 1 "the loss of step" threads --plan "$work/2d.json" --steps 3 --data "$io" \
    --init '*=constant:1e38'
if [ -n "$mpi" ]; then
    refused 2 "the plan is for 4 ranks, and mpirun started 2" mpi:2 --plan "$work/2d.json" --steps 1 \
        "${data[@]}"
    refused 2 "no --plan says how to split" mpi:2 --steps 1 "${data[@]}"
    refused 1 "cannot open" mpi:2 --plan "$work/none.json" --steps 1 "${data[@]}"
    refused 1 "cannot open" mpi:2 --plan "$work/dp.json" --steps 1 --data "$work/none"
    refused 2 "there are checkpoints of another run in it" mpi:2 --plan "$work/dp.json" --steps 1 \
        "${data[@]}" --save "$work/one"
    refused 1 "the loss of step" mpi:2 --plan "$work/dp.json" --steps 3 --data "$io" \
        --init '*=constant:1e38'
    # Command lines that are wrong, of all processes or of one.
    misused() {
        local text=$1
        shift
        status=0
        timeout 100 mpirun -n 3 "$bin" "$@" >"$work/out" 2>&1 </dev/null || status=$?
        [ $status -eq 2 ] || fail "exit code $status, not 2: $*"
        says "$text"
    }
    misused "usage: sheaf COMMAND"
    misused "no --plan says how to split" run "$step"
    if nightly; then
        misused "did you mean 'train'?" trian
        misused "unknown option: --no-such" train "$step" --no-such
        misused "--steps N is missing" train "$step"
        misused "no --plan says how to split" verify "$step" --against "$io"
    fi
    misused "unknown option: --no-such" run "$step" --plan "$work/2d.json" \
        : -n 1 "$bin" run "$step" --plan "$work/2d.json" --no-such
    # One rank has no data, or other data.
    head -c 4096 "$SHEAF_SOURCE/examples/char-gpt/text.txt" >"$work/a.u16"
    tail -c 4096 "$SHEAF_SOURCE/examples/char-gpt/text.txt" >"$work/b.u16"
    refused 1 "rank 1: cannot open" mpi:1 --plan "$work/dp.json" --steps 1 --data "$work/a.u16" \
        : -n 1 "$bin" train "$step" --plan "$work/dp.json" --steps 1 --data "$work/none"
    refused 1 "rank 0: not all ranks have the same" mpi:1 --plan "$work/dp.json" --steps 1 \
        --data "$work/a.u16" \
        : -n 1 "$bin" train "$step" --seed 5 --plan "$work/dp.json" --steps 1 --data "$work/b.u16"
    # Options of one rank: MESSAGE|OPTIONS OF RANK 0|OPTIONS OF RANK 1.
    rows=0
    for row in "save directory (--save): rank 0 has $work/s0, rank 1 has $work/s1|--save $work/s0|--save $work/s1" \
        "save directory (--save): rank 0 has $work/s0, rank 1 has none|--save $work/s0|" \
        "steps between checkpoints (--save-every): rank 0 has 2, rank 1 has 3|--save-every 2|--save-every 3" \
        "number of checkpoints (--keep): rank 0 has 4, rank 1 has 5|--keep 4|--keep 5" \
        "seed: rank 0 has 5, rank 1 has 2||--seed 2" \
        "number of steps: rank 0 has 1, rank 1 has 4||--steps 4" \
        "start of the weights (--init): rank 0 has *=zeros, rank 1 has none|--init *=zeros|" \
        "engine: rank 0 has cpu, rank 1 has oracle||--engine oracle"; do
        rows=$((rows + 1))
        nightly || [ $((rows % 4)) -eq 1 ] || continue
        IFS='|' read -r text first second <<<"$row"
        set -f
        # shellcheck disable=SC2086
        refused 1 "not all ranks have the same $text" mpi:1 --plan "$work/dp.json" --steps 1 --data synthetic $first \
            : -n 1 "$bin" train "$step" --plan "$work/dp.json" --steps 1 --data synthetic --seed 5 $second
        set +f
    done
    sets=$(SHEAF_VEC=none "$bin" run "$step" --steps 1 2>&1 | sed -n 's/.*this processor has //p' | tr -d ',')
    set -- $sets
    if [ $# -gt 1 ]; then
        refused 1 "not all ranks have the same vector set (SHEAF_VEC) and library: rank 0 has" mpi:1 \
            --plan "$work/dp.json" --steps 1 --data synthetic \
            : -n 1 env SHEAF_VEC="$1" "$bin" train "$step" --plan "$work/dp.json" --steps 1 --data synthetic --seed 5
    fi
fi

# Asked to stop, all ranks end the step and save. mpirun passes SIGUSR1 on; interrupted itself, it gives
# the ranks the time that it is told to.
stop() {
    local signal=$1 name=$2 got=0 last
    shift 2
    : >"$work/out"
    "$@" "$bin" train "$step" --plan "$work/dp.json" --steps 1000000 "${data[@]}" \
        --save "$work/$name" --log "$work/$name.jsonl" >"$work/out" 2>&1 </dev/null &
    local pid=$!
    for _ in $(seq 600); do
        grep -q '^step 3/' "$work/out" && break
        sleep 0.1
    done
    kill -"$signal" $pid
    wait $pid || got=$?
    [ $got -ne 0 ] || fail "$name: exit code 0"
    tail -n 1 "$work/$name.jsonl" | grep -q '"event":"end".*"interrupted":true' ||
        fail "$name: it did not stop by itself"
    last=$(losses "$work/$name.jsonl" | tail -n 1 | sed 's/ .*//')
    [ "$(cat "$work/$name/latest")" = "$(printf 'step-%06d' "$last")" ] || fail "$name: saved at $last"
    echo "$name: exit code $got after $last steps"
}
stop INT int-threads
if [ -n "$mpi" ]; then
    export OMPI_MCA_odls_base_sigkill_timeout=5
    stop USR1 usr1-mpi mpirun -n 2
    if nightly; then stop INT int-mpi mpirun -n 2; fi
fi

# What does not belong together is refused: every file of one checkpoint in the place of its like, of another step of
# the run and of the same step of another run.
for run in a b; do
    good threads --plan "$work/zero3.json" --steps 4 --data "$io" --init "normal:0.0$([ $run = a ] && echo 1 || echo 2)" \
        --save "$work/mix-$run" --save-every 2 --keep 0
done
froms=(mix-b/step-000004)
if nightly; then froms=(mix-a/step-000002 mix-b/step-000004); fi
for from in "${froms[@]}"; do
    for file in "$work/mix-a/step-000004"/*; do
        rm -rf "$work/mixed"
        cp -r "$work/mix-a" "$work/mixed"
        cp "$work/$from/${file##*/}" "$work/mixed/step-000004/"
        train threads --plan "$work/zero3.json" --steps 6 --data "$io" --save "$work/mixed" --resume
        [ $status -eq 1 ] || fail "${file##*/} of $from is taken: exit code $status"
    done
done

[ $failures -eq 0 ] || exit 1
echo "good"
