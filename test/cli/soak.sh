#!/usr/bin/env bash
# scripts/soak for 10 seconds (SHEAF_SOAK_SECONDS): training that is killed, stopped and corrupted at random.
set -u
if ! command -v python3 >/dev/null; then
    echo "python3 is not installed"
    exit 77
fi
export ASAN_OPTIONS=${ASAN_OPTIONS:-}:detect_leaks=0 # MPI leaks
"$SHEAF_SOURCE/scripts/soak" "${SHEAF_SOAK_SECONDS:-10}" --build "$SHEAF_BUILD"
