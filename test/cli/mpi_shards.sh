#!/usr/bin/env bash
# Shards of sessions whose ranks are processes of MPI: each process writes and reads those of its own rank (test/api/shards_test.c).
set -u
test=$SHEAF_BUILD/test/api_tests
for tool in mpirun timeout; do
    if ! command -v $tool >/dev/null; then
        echo "$tool is not installed: nothing over MPI is tested"
        exit 77
    fi
done
if [ ! -x "$test" ]; then
    echo "cmocka is not installed: tests written in C are not built"
    exit 77
fi
if ! "$SHEAF_BIN" version --json | grep -q '"mpi": *true'; then
    echo "this build has no MPI"
    exit 77
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_mpi_yield_when_idle=1
export ASAN_OPTIONS=${ASAN_OPTIONS:-}:detect_leaks=0

cd "$SHEAF_SOURCE" || exit 1
for ranks in 2 4; do
    timeout 250 mpirun -n $ranks "$test" shards mpi $ranks >"$work/out" 2>&1
    status=$?
    if [ $status -ne 0 ] || [ "$(grep -c 'PASSED  \] 1 test' "$work/out")" -ne $ranks ]; then
        echo "FAILED: with $ranks ranks: $status"
        sed 's/^/    /' "$work/out" | tail -n 40
        exit 1
    fi
done
echo "good"
