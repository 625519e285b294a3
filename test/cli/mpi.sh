#!/usr/bin/env bash
# Ranks over MPI: the conformance suite of communicators with several numbers of ranks, and what happens
# when one of them is late, gives up, leaves, starts something else, ends or is killed.
set -u
test=$SHEAF_BUILD/test/run_tests
for tool in mpirun timeout; do
    if ! command -v $tool >/dev/null; then
        echo "$tool is not installed: nothing over MPI is tested"
        exit 77
    fi
done
if [ ! -x "$test" ]; then
    if [ -e "$test.c" ]; then
        echo "FAILED: $test is not built"
        exit 1
    fi
    echo "cmocka is not installed: tests written in C are not built"
    exit 77
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_mpi_yield_when_idle=1
# MPI leaks, and unloads what did before anybody can tell; our own memory the test counts itself.
export ASAN_OPTIONS=${ASAN_OPTIONS:-}:detect_leaks=0

# The short version of `make check`: one number of ranks for each.
all=(2 3 6) failing=(2 4)
[ -n "${SHEAF_NIGHTLY:-}" ] || all=(3) failing=(2)

give_up() {
    echo "FAILED: $*"
    sed 's/^/    /' "$work/out" | tail -n 40
    exit 1
}

# run_once N CASE [OPTION...] [: MORE PROCESSES]: sets `status` and `took`; the output is in $work/out
run_once() {
    local ranks=$1 name=$2 began=$SECONDS options=()
    shift 2
    while [ $# -gt 0 ] && [ "$1" != : ]; do
        options+=("$1")
        shift
    done
    status=0
    timeout 250 mpirun -n "$ranks" "${options[@]}" "$test" comm/comm mpi "$name" "$@" >"$work/out" 2>&1 ||
        status=$?
    took=$((SECONDS - began))
    [ $status -ne 124 ] || give_up "$name with $ranks ranks hangs"
}

# run N CASE...: as run_once, and nothing may have failed.
run() {
    run_once "$@"
    if grep -q FAILED "$work/out"; then
        give_up "$2 with $1 ranks"
    fi
}

good() {
    grep -c ': good$' "$work/out"
}

run 1 all
if [ $status -eq 77 ]; then
    grep -m 1 error "$work/out" || true
    exit 77
fi
[ $status -eq 0 ] || give_up "one rank ends with $status"
for ranks in "${all[@]}"; do
    run "$ranks" all
    [ $status -eq 0 ] && [ "$(good)" -eq "$ranks" ] || give_up "$ranks ranks end with $status"
done
if [ -n "${SHEAF_NIGHTLY:-}" ]; then
    SHEAF_MPI_LINK=2:100000000 run 3 all
    [ $status -eq 0 ] && [ "$(good)" -eq 3 ] || give_up "over slow lines, 3 ranks end with $status"
fi
SHEAF_MPI_LINK=2:20000000 run 4 line
[ $status -eq 0 ] && [ "$(good)" -eq 4 ] || give_up "a slow line: $status"
# A machine that is busy may hold up the first: that is no order, and does not happen again and again.
for _ in 1 2 3; do
    SHEAF_MPI_LINK=2:20000000 run_once 3 order
    [ $status -ne 0 ] || break
done
[ $status -eq 0 ] && [ "$(good)" -eq 3 ] || give_up "what was started later is there before: $status"
SHEAF_MPI_LINK=2:fast run 2 start
[ $status -ne 0 ] || give_up "a line of no speed is taken"
grep -q 'SHEAF_MPI_LINK is HOSTS:BYTES' "$work/out" || give_up "nobody says what a line is"
run 4 again
[ $status -eq 0 ] && [ "$(good)" -eq 4 ] || give_up "two worlds end with $status"

# The world fails: whoever is still there says why, and nothing hangs. The launcher ends the slower ones.
for name in timeout abort leave mismatch drop exit memory; do
    for ranks in "${failing[@]}"; do
        run "$ranks" $name
        [ $status -ne 0 ] || give_up "$name with $ranks ranks is taken for success"
        [ "$(good)" -gt 0 ] || give_up "$name with $ranks ranks: nobody says why"
    done
done

# A rank is killed. As it is, the launcher ends the others at once and names it; told to leave that to
# them, they say what they waited for.
run 2 kill
[ $status -ne 0 ] || give_up "a killed rank is taken for success"
if mpirun --version 2>/dev/null | grep -q 'Open MPI'; then
    run 4 kill --enable-recovery
    [ "$(good)" -gt 0 ] || give_up "a rank is killed, and nobody says so"
fi

# A process that is no rank, and a rank that does not end: MPI waits for them for ever, and we do not.
run 1 start : -n 1 sleep 60
[ $status -ne 0 ] || give_up "a rank that does not start is taken for success"
grep -q 'waited 2 s for the other ranks to start' "$work/out" || give_up "nobody misses the rank"
[ $took -lt 30 ] || give_up "a rank that does not start is waited for $took s"
run 3 end
[ $status -ne 0 ] || give_up "a rank that does not end is taken for success"
grep -q 'waited 2 s for the other ranks to end' "$work/out" || give_up "nobody waits for the rank"
[ $took -lt 30 ] || give_up "a rank that does not end is waited for $took s"
echo "good"
