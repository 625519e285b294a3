#!/usr/bin/env bash
# sheaf repl: lines that are applied, names that are completed, and lines that fail and leave the rest alone.
set -u
. "$SHEAF_SOURCE/test/support/cli.sh"
if ! "$SHEAF_BIN" version | grep -q '^lua: in'; then
    echo "skipped: no Lua"
    exit 77
fi
step=$SHEAF_SOURCE/examples/gpt-micro.stablehlo.mlir
try() { # CODE LINES: what is typed
    local code=$1 got=0
    printf "$2" | timeout 60 "$SHEAF_BIN" repl "$step" -n 2 >"$work/out" 2>"$work/err" || got=$?
    [ "$got" -eq "$code" ] || fail "$2: exit code $got, expected $code"
}
try 0 ''
silent out
try 0 'sch = sheaf.schedule()\nsch:mesh{{"model", sheaf.ranks}}\nsch["wte"]:shard("embedding", 0)\n#sch:primitives()\n'
says "mesh model=2"
says "wte: shard embedding, dim 0 over model"
warns "2"
try 0 'layer_0.attn.q\t\n'
[ "$(cat "$work/out")" = "layer_0/attn/q" ] || fail "one name is completed"
try 0 'x = sch["layer_1.m\t\n'
says "layer_1/mlp/up"
# What fails is said, and what comes behind it goes on where the rest was.
try 1 'x = 1\nx = = 2\nerror("of mine")\nwhile true do end\nlocal s = "x" while true do s = s .. s end\nprint(x + 41)\n'
warns "line:1: error: unexpected symbol"
warns "of mine"
warns "the schedule takes too long"
warns "the schedule takes too much memory"
warns "42"
try 1 'os.execute("true")\n'
warns "attempt to index a nil value (global 'os')"
expect 2 repl -
expect 1 repl nowhere.mlir
[ "$failures" -eq 0 ] || { echo "$failures failed"; exit 1; }
