#!/usr/bin/env bash
# A part of bench/plan_sweep: a GPT, experts, and a classifier of a million classes.
set -u
. "$SHEAF_SOURCE/test/support/cli.sh"

if ! command -v python3 >/dev/null; then
    echo "no python3"
    exit 77
fi
if ! "$SHEAF_BIN" version | grep '^lzma: in' >/dev/null; then
    echo "lzma is not in this build, and steps are compressed with it"
    exit 77
fi
if [ -n "${SHEAF_SANITIZE:-}" ]; then
    echo "too slow with sanitizers"
    exit 77
fi
"$SHEAF_SOURCE/bench/plan_sweep" -d "$SHEAF_SOURCE/test/data/plan" -O2 gpt-batch moe classes
