#!/usr/bin/env bash
# Primitives of users in C: built, loaded by a schedule that may, checked, applied, verified, tuned and undone like those that are
# built in; refused where they say no, fail half way, are of another version or none.
set -u
. "$SHEAF_SOURCE/test/support/cli.sh"
if [ -n "${SHEAF_SANITIZE:-}" ]; then
    echo "a program with sanitizers does not load what has none"
    exit 77
fi
compiler=${CC:-cc}
command -v "${compiler%% *}" >/dev/null || { echo "there is no C compiler"; exit 77; }
"$SHEAF_BIN" version | grep -q '^lua: in' || { echo "skipped: no Lua"; exit 77; }
step=$SHEAF_SOURCE/examples/gpt-micro.stablehlo.mlir
examples=$SHEAF_SOURCE/examples/c
sheaf=(timeout 120 "$SHEAF_BIN")
cd "$work" || exit 1
export CFLAGS="-I$SHEAF_SOURCE/include"
build() { # NAME SOURCE
    $compiler -std=c17 -Wall -Wextra -Werror -shared -fPIC -I "$SHEAF_SOURCE/include" -o "$1" "$2" || fail "$2 does not compile"
}
schedule() { # TEXT: what is said behind the head
    printf 'local sch = sheaf.schedule() sch:mesh{{"data", sheaf.ranks or 2}} sch:recipe("dp")\nsheaf.plugin("./bind.so")\n%s\n' "$1" >s.lua
}
build bind.so "$examples/bind.c"
cp "$examples/norm_kernel.c" .
[ "$(grep -vcE '^ *(/?\*.*)?$' "$examples/bind.c")" -le 95 ] || fail "bind is longer than Slapo's"

# The kernel computes the same, on whole tensors and on pieces of the batch.
schedule 'local p = sch["layer_?.norm1"]:bind("norm_kernel.c")
assert(#sch["layer_?.norm1.norm"] == 2 and #sch:primitives() == 4, #sch:primitives())'
for ranks in 1 2 4; do
    expect 0 verify "$step" --unsafe --schedule s.lua -n $ranks --steps 2
    says "verify: passed"
done
# Runs and training use it as well.
loss() { grep -oE '"loss": [0-9.]+' out | cut -d' ' -f2 | tail -1; }
expect 0 run "$step" --steps 3 --threads 1 --json
plain=$(loss)
expect 0 run "$step" --unsafe --schedule s.lua -n 2 --steps 3 --threads 1 --json
awk -v a="$plain" -v b="$(loss)" 'BEGIN { exit !(a > 0 && (a - b) ^ 2 < 1e-10) }' || fail "other losses: $plain, $(loss)"
expect 0 train "$step" --unsafe --schedule s.lua -n 2 --data synthetic --steps 2 --threads 1
# One that is wrong is found out and named.
sed 's/ + bias\[i\]/ + 2 * bias[i] + 0.01f/; s/"norm"/"wrong"/' norm_kernel.c >wrong.c
schedule 'sch["layer_0.norm1"]:bind("wrong.c")'
expect 1 verify "$step" --unsafe --schedule s.lua -n 2 --steps 2
warns "s.lua:3: error: from this primitive on the step differs from the unsplit one: layer_0/norm1: replace 1 subgraph"
# The tuner tries it like anything else.
schedule 'local which = tune.choice("which", {"plain", "bound"})
if which == "bound" then sch["layer_?.norm1"]:bind("norm_kernel.c") end'
expect 0 tune s.lua "$step" --unsafe --by run -n 2 --steps 2 --threads 1
says "2 of 2 settings"
# What is undone is as it was.
schedule 'local p = sch["layer_?.norm1"]:bind("norm_kernel.c") p:undo() assert(#sch:primitives() == 2)'
expect 0 pin "$step" --unsafe --schedule s.lua

refuse() { # TEXT MESSAGE
    schedule "$1"
    expect 1 verify "$step" --unsafe --schedule s.lua -n 2
    warns "$2"
}
refuse 'sch.layer_0.norm1:bind()' 's.lua:3: error: bind: say the file of the kernel'
refuse 'sch.layer_0.norm1:bind("nowhere.c")' "s.lua:3: error: bind: there is no such file: nowhere.c"
refuse 'sch.layer_0.norm1:bind({})' "s.lua:3: error: bad argument"
echo 'int x;' >none.c
refuse 'sch.layer_0.norm1:bind("none.c")' "s.lua:3: error: bind: it does not compile to a kernel: none.c"
refuse 'sheaf.plugin("./bind.so")' 's.lua:3: error: there is a primitive "bind" already'
refuse 'sheaf.plugin("./nowhere.so")' "s.lua:3: error: this is no primitive: "
# What fails half way leaves nothing behind.
sed 's/return failed;/return refuse(call, "after all, ", "no");/' "$examples/bind.c" >half.c
build half.so half.c
printf 'local sch = sheaf.schedule() sch:mesh("data=2")\nsheaf.plugin("./half.so")
local fine, why = pcall(sch.layer_0.norm1.bind, sch.layer_0.norm1, "norm_kernel.c")
assert(not fine and why:find("after all, no") and #sch:primitives() == 1, why)\n' >s.lua
expect 0 pin "$step" --unsafe --schedule s.lua
sed 's/SF_PLUGIN_VERSION, "bind"/99, "bind"/' "$examples/bind.c" >newer.c
build newer.so newer.c
refuse 'sheaf.plugin("./newer.so")' "s.lua:3: error: this primitive is of version 99, and version 1 is known"
# Only a schedule that may use files loads one.
schedule ''
expect 1 pin "$step" --schedule s.lua
warns "s.lua:2: error: a schedule loads no files, unless it is run with --unsafe"
[ "$failures" -eq 0 ] || { echo "$failures failed"; exit 1; }
