#!/usr/bin/env bash
# A part of bench/plan_sweep: two steps that are too large to ship, looked for beside the source tree.
set -u
data=${SHEAF_DATA:-$SHEAF_SOURCE/../shared/data}

if [ ! -d "$data/jax/large" ]; then
    echo "not found: ../shared/data/jax/large"
    exit 77
fi
if ! command -v python3 >/dev/null; then
    echo "no python3"
    exit 77
fi
if ! "$SHEAF_BIN" version | grep '^zlib: in' >/dev/null; then
    echo "zlib is not in this build, and the large steps are compressed with gzip"
    exit 77
fi
if [ -n "${SHEAF_SANITIZE:-}" ]; then
    echo "too slow with sanitizers"
    exit 77
fi
SHEAF_DATA=$data exec "$SHEAF_SOURCE/bench/plan_sweep" -O2 vgg19-4.2b wresnet-1.3b
