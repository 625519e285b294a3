#!/usr/bin/env bash
# The time of a step is that of the step: what its data take is said apart, whether they are drawn before the step or beside it.
set -u
. "$SHEAF_SOURCE/test/support/cli.sh"
bin=$SHEAF_BIN
step=$SHEAF_SOURCE/test/data/large_batch.mlir
unset SHEAF_ENGINE

# The least of a key of the steps from the fourth on: by then an engine has made what it starts at once.
least() { sed -n "s/.*\"$1\": *\([0-9.e+-]*\).*/\1/p" | tail -n 3 | sort -g | head -n 1; }

# ENGINE: of six steps the program takes a small part of what drawing the batch takes.
check() {
    local engine=$1 seconds waited
    expect 0 "$step" --state 0=0 --steps 6 --engine "$engine" --json
    seconds=$(sed -n '/"steps"/,$p' "$work/out" | grep -v data_seconds | least seconds)
    waited=$(sed -n '/"steps"/,$p' "$work/out" | least data_seconds)
    awk -v s="$seconds" -v w="$waited" 'BEGIN { exit !(s > 0 && w > 0.02 && s < w / 2) }' ||
        fail "$engine: a step of $seconds s, $waited s of data"
    expect 0 "$step" --state 0=0 --steps 6 --engine "$engine"
    says "a step, which do not count, to wait for its data"
}

sheaf=("$bin" run)
check cpu
export SHEAF_CUDA=$emulator
check cuda

# The log has both, and their sum.
sheaf=("$bin" train)
expect 0 "$step" --state 0=0 --steps 6 --data synthetic --engine cuda --log "$work/log"
seconds=$(least step_seconds <"$work/log")
waited=$(least data_seconds <"$work/log")
awk -v s="$seconds" -v w="$waited" 'BEGIN { exit !(s > 0 && s < w / 2) }' || fail "the log: $seconds s, $waited s of data"
awk '{
    for (key in at) delete at[key]
    while (match($0, /"[a-z_]*":[0-9.e+-]+/)) {
        split(substr($0, RSTART, RLENGTH), part, ":"); at[part[1]] = part[2]; $0 = substr($0, RSTART + RLENGTH)
    }
    if (at["\"step_seconds\""] + at["\"data_seconds\""] > at["\"seconds\""] * 1.001) exit 1
}' "$work/log" || fail "the parts are more than the step"
[ "$failures" -eq 0 ]
