#!/usr/bin/env bash
# sheaf solve: the summary line, the solution file, compressed input, budgets, and what is refused.
set -u
. "$SHEAF_SOURCE/test/support/cli.sh"
bin=$SHEAF_BIN
sheaf=("$bin" solve)
problem=$SHEAF_SOURCE/examples/choices.json

last() { tail -n 1 "$work/out" | grep -qE -e "$1" || fail "the last line is not '$1'"; }

expect 0 "$problem" -o "$work/chosen.json"
says_like "^optimal, proven$"
last '^cost 13 bound 13 gap 0\.0000% nodes 5 seconds [0-9.]+$'
silent err
[ "$(cat "$work/chosen.json")" = "[1,1,1,1,1]" ] || fail "other choices: $(cat "$work/chosen.json")"

# Compressed, and from standard input.
for pair in gzip:zlib xz:lzma; do
    tool=${pair%:*}
    command -v "$tool" >/dev/null && "$bin" version | grep -q "^${pair#*:}: in" || continue
    "$tool" -c "$problem" >"$work/p.$tool"
    expect 0 "$work/p.$tool"
    last '^cost 13 '
done
"$bin" solve - <"$problem" >"$work/out" 2>"$work/err" || fail "standard input"
last '^cost 13 '

expect 0 "$problem" --json
says_like '"stop": "optimal".*"cost": 13'
expect 0 "$problem" --seconds 5 --threads 2 --seed 3 --gap 1
expect 0 "$problem" --work 10000000
last '^cost 13 '

# Too little room: when, and by how much.
sed 's/"usage_limit": 16/"usage_limit": 8/' "$problem" >"$work/tight.json"
expect 1 "$work/tight.json" -o "$work/none.json"
says_like '^infeasible: at time 2 the usage passes the limit by 1 at least$'
last '^cost - bound - gap -% nodes 5 '
[ ! -e "$work/none.json" ] || fail "a solution was written"
expect 1 "$work/tight.json" --json
says_like '"stop": "infeasible".*"time": 2, "over": 1'

# What is wrong is said with its place.
sed 's/\[2, 5\]/[5, 2]/' "$problem" >"$work/wrong.json"
expect 1 "$work/wrong.json"
warns "wrong.json:3:36: error: node 2: the interval begins at 5 and ends at 2"
silent out
expect 1 "$work/missing.json"
warns "missing.json"
expect 2
warns "PROBLEM is missing"
expect 2 "$problem" --seconds -1
expect 2 "$problem" --work x

[ "$failures" -eq 0 ]
