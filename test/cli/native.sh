#!/usr/bin/env bash
# fuse(..., {compiler = "cc"}): loops as machine code. The same bits, kept between runs, in plans that are read back; what is not to be
# trusted is not loaded, and nothing but what is written here reaches the compiler.
set -u
. "$SHEAF_SOURCE/test/support/cli.sh"
step=$SHEAF_SOURCE/examples/gpt-micro.stablehlo.mlir
cd "$work" || exit 1
sheaf=(timeout 120 "$SHEAF_BIN")
if ! "$SHEAF_BIN" version | grep -q '^lua: in'; then
    echo "skipped: no Lua"
    exit 77
fi
compiler=${CC:-cc}
command -v "${compiler%% *}" >/dev/null || { echo "skipped: there is no C compiler"; exit 77; }
unset SHEAF_COMPILER
kept() { find cache -name '*.so' | wc -l; }
# What the compiler is called with, call by call.
printf '#!/bin/sh\necho "$@" >>"%s/calls"\nexec %s "$@"\n' "$work" "$compiler" >told
chmod +x told
export CC=$work/told

cat >fuse.lua <<'LUA'
local sch = sheaf.schedule()
sch:mesh{{"model", sheaf.ranks or 1}}
local mlp = sch["layer_?.mlp"]
mlp:trace{}
mlp:fuse(mlp:find(function(x, b) return gelu(x + b) end), {compiler = "cc"})
mlp:annotate("why", "; touch broken $(touch broken) -DBROKEN")
LUA

# The same bits as the built-in compiler, on one rank and, where sums are added up in another order anyway, on two.
expect 0 verify "$step" --schedule fuse.lua -n 1 --steps 2
says "all bits equal"
[ "$(kept)" -eq 1 ] || fail "$(kept) objects are kept, not one"
grep -q -- '-shared' calls || fail "nothing was compiled"
expect 0 verify "$step" --schedule fuse.lua -n 2 --steps 2
says "verify: passed"
# Words of a schedule do not reach the compiler.
grep -vE '^(--version|-std=gnu11 -w -O3 -ffp-contract=off -fno-math-errno -fno-trapping-math -fno-strict-aliasing -fPIC -shared( -m[a-z0-9=.+-]+)* -o [^ ]*/k\.so [^ ]*/k\.c -lm)$' calls &&
    fail "the compiler was told something else"
[ ! -e broken ] || fail "a schedule ran a program"

# A second run finds it.
: >calls
expect 0 verify "$step" --schedule fuse.lua -n 1 --steps 1
! grep -q -- '-shared' calls || fail "what is kept was compiled again"

# A plan says which, and runs so when it is read back; without what it says it does not.
expect 0 pin "$step" --schedule fuse.lua -n 2 -o fuse.json
grep -A3 '"compiled"' fuse.json | grep -q '"layer_0/mlp"' || fail "the plan does not say what is compiled"
expect 0 verify --plan fuse.json --steps 2
says "verify: passed"
rm -r cache/sheaf
: >calls
expect 0 run --plan fuse.json --steps 1 -n 2
[ "$(kept)" -ge 1 ] || fail "the plan that is read back is not compiled"
sed 's|"layer_0/mlp"|17|' fuse.json >wrong.json
expect 1 verify --plan wrong.json --steps 1
warns "expected a scope"

# What others could have written is not loaded: a folder that all may write to is not used, nor such a file.
: >calls
chmod 777 cache/sheaf
expect 0 run --plan fuse.json --steps 1 -n 2
grep -q -- '-shared' calls || fail "an object was loaded from a folder that all may write to"
chmod 700 cache/sheaf
: >calls
chmod 666 cache/sheaf/*.so
expect 0 run --plan fuse.json --steps 1 -n 2
grep -q -- '-shared' calls || fail "an object was loaded that all may write to"
# Nor is anything compiled where others could put an object in its place.
mkdir open
chmod 777 open
: >calls
chmod 777 cache/sheaf
TMPDIR=$work/open expect 0 run --plan fuse.json --steps 1 -n 2
warns "no folder can be made in $work/open that nobody else may write to"
! grep -q -- '-shared' calls || fail "something was compiled in a folder that all may write to"
chmod 700 cache/sheaf
# What is broken is made again.
for object in cache/sheaf/*.so; do
    rm "$object"
    echo "no object" >"$object"
    chmod 700 "$object"
done
expect 0 run --plan fuse.json --steps 1 -n 2
[ -z "$(find cache -name 'compiling-*')" ] || fail "something is left behind"

# Another compiler has objects of its own.
before=$(kept)
CC="$work/told -g0" expect 0 run --plan fuse.json --steps 1 -n 2
[ "$(kept)" -gt "$before" ] || fail "objects of another compiler were taken"

# Without a compiler loops run as they did, and that is said; the environment chooses for all loops.
rm -r cache/sheaf
CC=/nowhere/cc expect 0 verify --plan fuse.json --steps 1
warns "loops run by the built-in compiler, with the same results: the compiler /nowhere/cc cannot be run"
printf '#!/bin/sh\n[ "$1" = --version ] && exit 0\necho "out of order" >&2\nexit 1\n' >broken-cc
chmod +x broken-cc
CC=$work/broken-cc expect 0 verify --plan fuse.json --steps 1
warns "does not compile kernels: out of order"
: >calls
SHEAF_COMPILER=vm expect 0 verify --plan fuse.json --steps 1
[ ! -s calls ] || fail "something was compiled in spite of SHEAF_COMPILER=vm"
SHEAF_COMPILER=cc expect 0 verify "$step" --against "${step%.stablehlo.mlir}.io.safetensors" --steps 1
grep -q -- '-shared' calls || fail "nothing was compiled in spite of SHEAF_COMPILER=cc"
SHEAF_COMPILER=gcc expect 2 verify "$step" --against "${step%.stablehlo.mlir}.io.safetensors" --steps 1
warns 'SHEAF_COMPILER is "cc" or "vm", not "gcc"'
# A home that is no folder, and none.
HOME=/nowhere XDG_CACHE_HOME='' expect 0 verify --plan fuse.json --steps 1

sed 's/"cc"/"tcc"/' fuse.lua >tcc.lua
expect 1 pin "$step" --schedule tcc.lua -n 1
warns 'tcc.lua:5: error: compilers are "vm", the built-in one, and "cc", that of the system: none is called "tcc"'
[ "$failures" -eq 0 ] || { echo "$failures failed"; exit 1; }
