#!/usr/bin/env bash
# Schedules in Lua: what they say, the rules they are held to, and scripts that mean harm.
set -u
. "$SHEAF_SOURCE/test/support/cli.sh"
step=$SHEAF_SOURCE/examples/gpt-micro.stablehlo.mlir
cd "$work" || exit 1
sheaf=(timeout 60 "$SHEAF_BIN")
head='local sch = sheaf.schedule() '

if ! "$SHEAF_BIN" version | grep -q '^lua: in'; then
    echo 'x=1' >s.lua
    expect 1 pin "$step" --schedule s.lua
    warns "this build has no Lua"
    exit $((failures > 0))
fi

# says_of CODE TEXT: the schedule is refused, at its line, with this reason.
refuse() {
    printf '%s\n' "$1" >s.lua
    expect 1 pin "$step" --schedule s.lua -n 2 -o refused.json
    warns "$2"
    [ ! -e refused.json ] || fail "a plan is left behind by: $1"
}

# Rules.
mesh="$head sch:mesh('data=1,model=2')"
refuse "$mesh
sch['layer_0.attn.o']:sync('forward')" \
    "s.lua:2: error: layer_0/attn/o has no parameter that is sharded over model"
refuse "$mesh
sch['wte']:shard('embedding', 0, 'tensor')" 's.lua:2: error: the mesh data=1,model=2 has no axis "tensor"'
refuse "$head sch:mesh('model=3')
sch['layer_0.attn.q']:shard('kernel', 1)" \
    "s.lua:2: error: layer_0/attn/q/kernel, tensor<16x16xf32>: dimension 1, of 16, does not divide into 3 equal parts"
refuse "$mesh
sch['wte']:shard('embedding', 0)
sch['wte.attend']:shard('embedding', 1)" \
    "s.lua:3: error: wte/embedding is sharded along dimension 0 over model at s.lua:2, by wte, and cannot be along 1, too"
refuse "$mesh
sch['wte']:shard('embedding', 2)" "s.lua:2: error: wte/embedding, tensor<32x16xf32>, has no dimension 2"
refuse "$mesh
sch['wte']:shard('kernel', 0)" 's.lua:2: error: wte has no parameter "kernel"; it has wte/embedding'
refuse "$mesh
sch['layer_0.atn']:checkpoint()" 's.lua:2: error: the step has no module "layer_0.atn"; did you mean "layer_0/attn"?'
refuse "$mesh
sch:mesh('model=2')" "s.lua:2: error: mesh is said at s.lua:1: undo that first"
refuse "$mesh
sch['wte']:shard('embedding', 0)
sch['wte']:sync('sideways')" 's.lua:3: error: a sync is "forward" or "backward", not "sideways"'
refuse "$mesh
local s = sch['wte']:shard('embedding', 0)
sch['wte']:sync()
s:undo()" "s.lua:4: error: wte has no parameter that is sharded over model"
refuse "$mesh
sch:recompute('layer')
sch['layer_0']:checkpoint()" "s.lua:3: error: recompute is said at s.lua:2"
refuse "$head
sch:micro_batches('some')" 's.lua:2: error: --micro-batches "some": expected a number of at least 1, or auto'
refuse "$head sch:mesh('model=')" "s.lua:1: error:"
refuse "$head sch:mesh{{'model'}}" "s.lua:1: error: bad argument #1 to 'mesh'"
refuse "$mesh
sch['wte']:shard({}, 0)" "s.lua:2: error: bad argument #1 to 'shard' (name some parameters)"
refuse "$mesh
sch['wte']:shard('embedding')" "s.lua:2: error: bad argument #2 to 'shard'"
refuse "$mesh
sch.mesh('wte')" "s.lua:2: error: bad argument #1 to 'mesh'"

refuse "$mesh
sch['layer_0']:trace{leaves = {'attn'}}
sch['layer_0.attn.q']:pipeline_split()" \
    "s.lua:3: error: layer_0/attn/q is in layer_0/attn, a leaf of the trace of layer_0 at s.lua:2: no stage begins inside"
refuse "$mesh
sch['layer_0.mlp']:fork_rng()" "s.lua:2: error: layer_0/mlp draws no random numbers: there is nothing to fork"
refuse "$mesh
sch:strict()
sch['layer_?.mlp.up']:shard('kernel', 1)
sch['layer_?.mlp.down']:shard('kernel', 0)" \
    "s.lua:4: error: layer_0/mlp/down is sharded over what its product adds up: each rank along model has a part of the sum"

# Errors of the language.
refuse "x = = 1" "s.lua:1: error: unexpected symbol near '='"
refuse "
error('of my own')" "s.lua:2: error: of my own"
refuse "
error({})" "s.lua:2: error: an error that is no text, but a table"
refuse "
error()" "s.lua:2: error: an error that is no text, but a nil"
refuse "
error(setmetatable({}, {__tostring = function() while true do end end}))" "s.lua:2: error: a schedule has no metatables"
printf '\033Lua' >s.lua
expect 1 pin "$step" --schedule s.lua
warns "s.lua"
expect 1 pin "$step" --schedule nowhere.lua
warns "nowhere.lua"

# Limits; test/script/sandbox_test.c has scripts that mean harm by the dozen.
refuse "
while true do end" "s.lua:2: error: the schedule takes too long: more than 100000000 instructions"
refuse "local s = 'x'
while true do s = s .. s end" "s.lua:2: error: the schedule takes too much memory"
refuse "x = $(printf '(%.0s' {1..5000})1$(printf ')%.0s' {1..5000})" "s.lua: error: C stack overflow"
refuse "local a = ('('):rep(1e6) sheaf.schedule()[a]:checkpoint()" "s.lua:1: error: a name has more than 4000 characters"
refuse "os.execute('touch harm')" "s.lua:1: error: attempt to index a nil value (global 'os')"
refuse "io.open('harm', 'w')" "s.lua:1: error: attempt to index a nil value (global 'io')"
[ ! -e harm ] || fail "a script in the sandbox wrote a file"
printf '%s sch:mesh("model=2") os.execute("touch harm")\n' "$head" >s.lua
expect 0 pin "$step" --schedule s.lua --unsafe
[ -e harm ] || fail "--unsafe keeps os.execute away"
expect 2 pin "$step" --recipe dp -n 2 --unsafe
warns "--unsafe is for a --schedule in Lua"

# What is good: primitives are applied in their order, kept in the plan, and may be undone.
cat >good.lua <<'LUA'
local sch = sheaf.schedule()
sch:mesh{{"data", 1}, {"model", sheaf.ranks}}
sch:micro_batches(2)
for _, layer in ipairs(sch["layer_?"]:each()) do
    for _, name in ipairs{"q", "k", "v"} do
        layer.attn[name]:shard("kernel", 1)
    end
    layer["attn.o"]:shard("kernel", 0)
    layer.attn:sync("forward", "all_reduce")
    layer.attn:sync("backward")
    layer:checkpoint()
end
sch["layer_1"]:annotate("why", "to see it kept")
local tried = sch["wte"]:shard("embedding", 1)
tried:undo()
sch["wte"]:shard("embedding", 0)
assert(#sch["layer_?.attn.?"] == 8 and #sch:children() == 6)
assert(tostring(sch["layer_0"].attn) == "layer_0/attn")
assert(tostring(sch["layer_0.attn"]["bqhd,bkhd->bhqk"]) == "layer_0/attn/bqhd,bkhd->bhqk")
assert(#sch["layer_?.attn"]["?"] == 8)
assert(sch["wte.attend"]:params()[1] == "params/wte/embedding")
LUA
expect 0 pin "$step" --schedule good.lua -n 2 -o good.json
warns "schedule: good.lua, in Lua, 18 primitives"
grep -q '"good.lua:14: layer_1: annotate why = to see it kept"' good.json && fail "lines are counted from 0"
grep -q '"good.lua:13: layer_1: annotate why = to see it kept"' good.json || fail "no note in the plan"
grep -c '"good.lua:16: wte: shard embedding, dim 0 over model"' good.json >/dev/null || fail "no shard in the plan"
grep -q 'dim 1 over model"' <(grep wte good.json) && fail "what is undone is in the plan"
expect 0 verify --plan good.json --steps 2
for ranks in 1 2 4; do
    expect 0 verify "$step" --schedule good.lua -n $ranks --steps 2
    says "passed"
done

# A shard and its sync are the collectives that they say.
cat >rs.lua <<'LUA'
local sch = sheaf.schedule()
sch:mesh("model=2")
sch["layer_?.mlp.up"]:shard("kernel", 1)
sch["layer_?.mlp.down"]:shard("kernel", 0)
sch["layer_?.mlp"]:sync("forward", "reduce_scatter", 1)
LUA
expect 0 pin "$step" --schedule rs.lua
says_like "reduce_scatter +model +forward +2 "
expect 0 verify "$step" --schedule rs.lua --steps 2

# Who is to blame: with no room for rounding, the first primitive that changes the order of sums.
expect 1 verify "$step" --schedule rs.lua --steps 1 --tolerance 1e-12
warns "error: from this primitive on the step differs from the unsplit one: "
warns "rs.lua:"
printf '%s sch:mesh("model=2")\nsch["wte"]:shard("embedding", 0)\nsch:verify(1)\nprint("verified")\n' "$head" >s.lua
expect 0 pin "$step" --schedule s.lua
warns "verified"

# A search leaves the rest to itself, and says what the schedule costs.
printf '%s sch["wte"]:shard("embedding", 0, "model")\n' "$head" >pin.lua
expect 0 plan "$step" --cluster 1x2xCPU --schedule pin.lua -o searched.json
warns "as planned without it: it costs"
grep -q '"pin.lua:1: wte: shard embedding, dim 0 over model"' searched.json || fail "no primitive in a searched plan"
expect 0 verify --plan searched.json --steps 2
printf '%s sch:mesh("model=2")\n' "$head" >s.lua
expect 2 pin "$step" --schedule s.lua --mesh model=2
warns "both the schedule and the command line give mesh"
printf '%s sch["layer_1"]:pipeline_split() sch:micro_batches(2) sch:schedule("gpipe")\n' "$head" >pipe.lua
expect 0 pin "$step" --schedule pipe.lua -n 2 -o pipe.json
expect 0 verify --plan pipe.json --steps 2
# A search takes stages that a schedule says, and their order, and finds the rest: here recipes inside of groups, and what is left to
# pins and to passes.
expect 0 plan "$step" --cluster 1x4xCPU --schedule pipe.lua -o piped.json
says_like "stages +2, by gpipe"
grep -q '"micro_batches": 2' piped.json || fail "the micro-batches of the schedule are not those of the plan"
expect 0 verify --plan piped.json --steps 2
printf '%s sch["layer_1"]:pipeline_split() sch["layer_?.mlp.up"]:shard("kernel", 1, "model")\n' "$head" >pipe.lua
expect 0 plan "$step" --cluster 1x4xCPU --schedule pipe.lua -o piped.json
says_like "stages +2, "
says_like "mesh +pipe=2,model=2, 4 ranks"
warns "as planned without it: it costs"
expect 0 explain piped.json layer_0/mlp/up/kernel
says "S(1)"
expect 0 verify --plan piped.json --steps 2
printf '%s sch:mesh("pipe=2,data=2") sch["layer_0"]:checkpoint()\n' "$head" >pipe.lua
expect 0 plan "$step" --cluster 1x4xCPU --schedule pipe.lua -o piped.json
says_like "mesh +pipe=2,data=2, 4 ranks"
says_like "recompute +[1-9].* by /layer_0"
expect 0 verify --plan piped.json --steps 2
printf '%s sch:passes("fsdp,prefetch") sch:recipe("zero3") sch:mesh("data=2")\n' "$head" >passes.lua
expect 0 plan "$step" --cluster 2xH100 --schedule passes.lua -o passes.json
grep -q '"fsdp,prefetch"' passes.json || fail "a search drops the passes of a schedule"
printf '%s sch:stages("0")\n' "$head" >s.lua
expect 1 plan "$step" --cluster 1x2xCPU --schedule s.lua
warns 's.lua:1: error: --stages "0": expected 1 to 64 stages'

# What comes after a replacement can be undone, and the replacement where nothing is about what was found after it.
cat >behind.lua <<'LUA'
local sch = sheaf.schedule()
local mlp = sch["layer_?.mlp"]
local gelu = function(x, b) return op.gelu(x + b) end
mlp:trace{}
local first = mlp:replace(gelu, mlp:find(gelu), {name = "a"})
local kept = sch["layer_?.mlp.up"]:shard("kernel", -1)
sch["wte"]:shard("embedding", -2):undo()
local second = mlp:replace(gelu, mlp:find(gelu), {name = "b"})
local fine, why = pcall(first.undo, first)
assert(not fine and why:find("found after the replacement: undo it first", 1, true), why)
sch["layer_0"]:checkpoint():undo()
second:undo()
sch:undo()
first:undo()
assert(#sch:primitives() == 1)
sch["layer_?.mlp.up"]:shard("kernel", -1)
sch["layer_?.mlp.down"]:shard("kernel", -2)
LUA
expect 0 pin "$step" --schedule behind.lua -n 2 -o behind.json
says_like "mesh +model=2, 2 ranks"
expect 0 explain behind.json layer_0/mlp/up/kernel
says "S(1)"
expect 0 verify --plan behind.json --steps 2

# All ranks along the only axis, and dimensions from the end, also in pins.
printf '%s sch["wte"]:shard("embedding", 0, "tensor")\n' "$head" >s.lua
expect 0 pin "$step" --schedule s.lua -n 2
says_like "mesh +tensor=2, 2 ranks"
printf '%s sch["wte"]:shard("embedding", 0, "a") sch["layer_0.mlp.up"]:shard("kernel", 1, "b")\n' "$head" >s.lua
expect 2 pin "$step" --schedule s.lua -n 2
warns "pins need a mesh: they are along a and b"
expect 0 pin "$step" --pin 'layer_?/mlp/up/kernel=S(-1)@model' --pin 'layer_?/mlp/down/kernel=S(-2)@model' -n 2 -o ends.json
expect 0 explain ends.json layer_0/mlp/up/kernel
says "S(1)"
expect 0 explain ends.json layer_0/mlp/down/kernel
says "S(0)"
expect 0 verify --plan ends.json --steps 2
expect 2 pin "$step" --pin 'wte/embedding=S(-3)@model' -n 2
warns 'pin "wte/embedding=S(-3)@model": '
expect 2 pin "$step" --pin 'wte/embedding=S(-0)@model' -n 2
warns "or from the end: -1 is the last"
expect 2 pin "$step" --pin 'wte/embedding=!S(-1)@*' --pin 'wte/embedding=S(1)@model' -n 2
exit $((failures > 0))
