#!/usr/bin/env bash
# Ops that a schedule finds and replaces: what is found, what comes of it, and what is refused.
set -u
. "$SHEAF_SOURCE/test/support/cli.sh"
step=$SHEAF_SOURCE/examples/gpt-micro.stablehlo.mlir
cd "$work" || exit 1
sheaf=(timeout 120 "$SHEAF_BIN")
if ! "$SHEAF_BIN" version | grep -q '^lua: in'; then
    echo "skipped: no Lua"
    exit 77
fi
head='local sch = sheaf.schedule() sch:mesh{{"model", sheaf.ranks or 2}}
local mlp, attn = sch["layer_?.mlp"], sch["layer_?.attn"]
mlp:trace{flatten = true} attn:trace{}'

# Vertical: another way to say GELU. Horizontal: one product for queries, keys and values. Both at once, and split.
cat >fused.lua <<LUA
$head
local subs = mlp:find(function(x, b) return gelu(x + b) end)
assert(#subs == 2 and #subs[1] == 10)
mlp:replace(function(x, b)
    local y = b + x
    return y * op.logistic(y * (y * y * 0.044715 + 1) * 1.5957691216057308)
end, subs, {name = "gelu"})
local qkv = attn:find(function(x, a, b, c) return dot(x, a), dot(x, b), dot(x, c) end)
assert(#qkv == 2)
attn:replace(function(x, a, b, c)
    local n, all = a.shape[2], dot(x, op.concatenate(a, b, c, {dimension = 1}))
    local function part(i)
        return op.slice(all, {start_indices = {0, 0, i * n},
            limit_indices = {x.shape[1], x.shape[2], (i + 1) * n}, strides = {1, 1, 1}})
    end
    return part(0), part(1), part(2)
end, qkv, {name = "qkv"})
assert(#sch["layer_?.attn.qkv"] == 2 and #sch["layer_?.mlp.gelu"] == 2)
mlp.up:shard("kernel", 1)
mlp.down:shard("kernel", 0)
mlp:sync("forward")
LUA
for ranks in 1 2 4; do
    expect 0 verify "$step" --schedule fused.lua -n $ranks --steps 2
    says "verify: passed"
done
# The step that comes of it is a step like any other: six products of the forward pass have become two.
expect 0 convert "$step" --schedule fused.lua -n 2 -o fused.mlir
expect 0 convert "$step" -o plain.mlir
[ $(($(grep -c dot_general plain.mlir) - $(grep -c dot_general fused.mlir))) -eq 4 ] || fail "products were not fused"
expect 0 verify fused.mlir --against "$SHEAF_SOURCE/examples/gpt-micro.io.safetensors"
expect 0 pin fused.mlir -r megatron -n 2 -o fused.json
expect 0 verify --plan fused.json --steps 2
expect 2 pin "$step" --schedule fused.lua -n 2 -o never.json
warns "write it first, sheaf convert STEP --schedule LUA -o FILE"
expect 0 pin "$step" --schedule fused.lua -n 2
expect 0 plan "$step" --schedule fused.lua --cluster 1x2xCPU

# The one that is shipped.
for ranks in 1 2 4; do
    expect 0 verify "$step" --schedule "$SHEAF_SOURCE/examples/schedules/fused.lua" -n $ranks --steps 2
    says "verify: passed"
done

# Operands of commutative ops in any order, and constants in the roundings that they have.
cat >order.lua <<LUA
$head
local function count(f) return #mlp:find(f) end
assert(count(function(x, b) return gelu(b + x) end) == 2)
assert(count(function(x) return x * (0.5 * (1 + tanh(0.7978845608028654 * (0.044715 * ((x * x) * x) + x)))) end) == 2)
assert(count(function(x) return x * (0.6 * (1 + tanh(x))) end) == 0)
assert(count(function(x) return x * x end) == 2)
assert(count(function(x, y) return x * (x * y) end) == 2)
assert(count(function(x, w) return op.dot_general(x, w, {lhs_contracting_dimensions = {2}}) end) == 4)
assert(count(function(x, w) return op.dot_general(x, w, {lhs_contracting_dimensions = {1}}) end) == 0)
assert(#mlp:find("/tanh\$") == 2 and #mlp:find("(tanh|nothing)") == 2 and #mlp:find("nothing") == 0)
local pairs_of = mlp:find{where = function(o) return o.op == "tanh" or (o.op == "add" and o.scope:find("mlp\$")) end}
assert(#pairs_of == 4 and #pairs_of[1] + #pairs_of[2] == 3, #pairs_of)
assert(#attn.q:find(function(x, w) return dot(x, w) end) == 2)
LUA
expect 0 pin "$step" --schedule order.lua -n 2

# Leaves are not looked into.
cat >leaves.lua <<LUA
local sch = sheaf.schedule() sch:mesh("model=2")
sch.layer_0.attn:trace{leaves = {"q", "k"}}
assert(#sch.layer_0.attn:find("dot_general") == 4)
LUA
expect 0 pin "$step" --schedule leaves.lua

# Computing again only what a pattern finds: less memory, the same numbers.
cat >again.lua <<LUA
$head
mlp:checkpoint(mlp:find(function(x, b) return gelu(x + b) end))
LUA
expect 0 pin "$step" --schedule again.lua -n 2 -o again.json
says_like "recompute +[1-9][0-9]* ops"
expect 0 verify --plan again.json --steps 2
# Fusing says what loops do anyway, and checks that they can.
printf '%s\nmlp:fuse(mlp:find(function(x, b) return gelu(x + b) end), {compiler = "vm"})\n' "$head" >s.lua
expect 0 verify "$step" --schedule s.lua -n 2 --steps 1

# What changes the numbers is found out, and named.
printf '%s\nmlp:replace(function(x, b) return tanh(x + b) end, mlp:find(function(x, b) return gelu(x + b) end))\n' "$head" >s.lua
expect 1 verify "$step" --schedule s.lua -n 2 --steps 1
warns "s.lua:4: error: from this primitive on the step differs from the unsplit one: layer_?.mlp: replace 2 subgraphs"

# A fragment out of a file.
cat >gelu.mlir <<'MLIR'
func.func @main(%arg0: tensor<4x8x64xf32>, %arg1: tensor<4x8x64xf32>) -> tensor<4x8x64xf32> {
  %0 = stablehlo.add %arg0, %arg1 : tensor<4x8x64xf32>
  %1 = stablehlo.multiply %0, %0 : tensor<4x8x64xf32>
  %c = stablehlo.constant dense<4.471500e-02> : tensor<4x8x64xf32>
  %2 = stablehlo.multiply %1, %c : tensor<4x8x64xf32>
  %one = stablehlo.constant dense<1.0> : tensor<4x8x64xf32>
  %3 = stablehlo.add %2, %one : tensor<4x8x64xf32>
  %4 = stablehlo.multiply %0, %3 : tensor<4x8x64xf32>
  %k = stablehlo.constant dense<1.59576912> : tensor<4x8x64xf32>
  %5 = stablehlo.multiply %4, %k : tensor<4x8x64xf32>
  %6 = stablehlo.logistic %5 : tensor<4x8x64xf32>
  %7 = stablehlo.multiply %0, %6 : tensor<4x8x64xf32>
  return %7 : tensor<4x8x64xf32>
}
MLIR
printf '%s\nmlp:replace("gelu.mlir", mlp:find(function(x, b) return gelu(x + b) end))\n' "$head" >s.lua
expect 0 verify "$step" --schedule s.lua -n 2 --steps 2 --unsafe
says "verify: passed"
expect 1 verify "$step" --schedule s.lua -n 2 --steps 2
warns "s.lua:4: error: a schedule reads no files, unless it is run with --unsafe"
sed -i 's/gelu(x + b) end/gelu(x + b), x + b end/' s.lua
expect 1 verify "$step" --schedule s.lua -n 2 --unsafe
warns "it makes 1 results, and the subgraph 2"

# A whole module: what it reads, then its parameters; a file has that signature as well.
cat >whole.lua <<'LUA'
local sch = sheaf.schedule() sch:mesh{{"model", sheaf.ranks or 1}}
sch["layer_?.mlp"]:replace(function(x, down_bias, down, up_bias, up)
    return dot(gelu(dot(x, up) + up_bias), down) + down_bias
end, nil, {name = "mine"})
assert(#sch["layer_?.mlp.mine"] == 2)
sch["layer_?.mlp"]:shard("up/kernel", 1) -- its parameters are there as before
sch["layer_?.mlp"]:shard("down/kernel", 0)
LUA
for ranks in 1 2; do
    expect 0 verify "$step" --schedule whole.lua -n $ranks --steps 2
    says "verify: passed"
done
sed -i 's/gelu/tanh/' whole.lua
expect 1 verify "$step" --schedule whole.lua -n 2 --steps 2
warns "whole.lua:2: error: from this primitive on the step differs from the unsplit one: layer_?.mlp: replace 2 subgraphs"
cat >add.mlir <<'MLIR'
func.func @main(%x: tensor<4x8x16xf32>, %y: tensor<8x16xf32>) -> tensor<4x8x16xf32> {
  return %x : tensor<4x8x16xf32>
}
MLIR
printf '%s\nsch.norm_f:replace("add.mlir")\n' "$head" >s.lua
expect 1 verify "$step" --schedule s.lua -n 2 --unsafe
warns "s.lua:4: error: it takes 2 arguments, and the subgraph has 3 inputs; what is replaced is (tensor<4x8x16xf32>, params['params']['norm_f']['bias'] tensor<16xf32>,"
printf '%s\nsch.wte:replace(function(ids, w) return ids end)\n' "$head" >s.lua
expect 1 verify "$step" --schedule s.lua -n 2
warns "s.lua:4: error:"

# A module with gradients of its own. They are right, or verify says that they are not; one that is shipped, and files.
gradients=$SHEAF_SOURCE/examples/schedules/gradients.lua
for ranks in 1 2 4; do
    expect 0 verify "$step" --schedule "$gradients" -n $ranks --steps 2
    says "verify: passed"
done
expect 0 convert "$step" --schedule "$gradients" -n 1 -o gradients.mlir
! grep -q tanh gradients.mlir || fail "gradients of what was replaced are still there"
sed 's/0.134145/0.13/' "$gradients" >off.lua
expect 1 verify "$step" --schedule off.lua -n 1 --steps 2
warns "off.lua:12: error: from this primitive on the step differs from the unsplit one: layer_?.mlp: replace 2 subgraphs, with gradients of their own"
cat >forward.mlir <<'MLIR'
func.func @main(%a: tensor<4x8x64xf32>, %b: tensor<16xf32>, %w: tensor<64x16xf32>) -> tensor<4x8x16xf32> {
  %0 = stablehlo.dot_general %a, %w, contracting_dims = [2] x [0] : (tensor<4x8x64xf32>, tensor<64x16xf32>) -> tensor<4x8x16xf32>
  %1 = stablehlo.broadcast_in_dim %b, dims = [2] : (tensor<16xf32>) -> tensor<4x8x16xf32>
  %2 = stablehlo.add %1, %0 : tensor<4x8x16xf32>
  return %2 : tensor<4x8x16xf32>
}
MLIR
cat >backward.mlir <<'MLIR'
func.func @main(%a: tensor<4x8x64xf32>, %b: tensor<16xf32>, %w: tensor<64x16xf32>, %dy: tensor<4x8x16xf32>) -> (tensor<4x8x64xf32>, tensor<16xf32>, tensor<64x16xf32>) {
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.dot_general %dy, %w, contracting_dims = [2] x [1] : (tensor<4x8x16xf32>, tensor<64x16xf32>) -> tensor<4x8x64xf32>
  %1 = stablehlo.reduce(%dy init: %z) applies stablehlo.add across dimensions = [0, 1] : (tensor<4x8x16xf32>, tensor<f32>) -> tensor<16xf32>
  %2 = stablehlo.dot_general %a, %dy, contracting_dims = [0, 1] x [0, 1] : (tensor<4x8x64xf32>, tensor<4x8x16xf32>) -> tensor<64x16xf32>
  return %0, %1, %2 : tensor<4x8x64xf32>, tensor<16xf32>, tensor<64x16xf32>
}
MLIR
cat >files.lua <<LUA
$head
sch["layer_?.mlp.down"]:replace("forward.mlir", nil, {backward = "backward.mlir", name = "file"})
assert(#sch["layer_?.mlp.down.file"] == 2)
sch:verify()
LUA
for ranks in 1 2; do
    expect 0 verify "$step" --schedule files.lua -n $ranks --steps 2 --unsafe
    says "verify: passed"
done
expect 1 verify "$step" --schedule files.lua -n 1
warns "files.lua:4: error: a schedule reads no files, unless it is run with --unsafe"
sed -i 's/contracting_dims = \[0, 1\] x \[0, 1\]/contracting_dims = [1, 0] x [1, 0]/; s/return %0, %1, %2 : tensor<4x8x64xf32>, tensor<16xf32>, tensor/%3 = stablehlo.add %2, %w : tensor<64x16xf32>\n return %0, %1, %3 : tensor<4x8x64xf32>, tensor<16xf32>, tensor/' backward.mlir
expect 1 pin "$step" --schedule files.lua -n 2 --unsafe
warns "files.lua:6: error: from this primitive on the step differs from the unsplit one: layer_?.mlp.down: replace 2 subgraphs by forward.mlir"
sed -i 's/return %0, %1, %3 : .*/return %0, %1 : tensor<4x8x64xf32>, tensor<16xf32>/; s/ -> (tensor<4x8x64xf32>, tensor<16xf32>, tensor<64x16xf32>) {/ -> (tensor<4x8x64xf32>, tensor<16xf32>) {/' backward.mlir
expect 1 pin "$step" --schedule files.lua -n 2 --unsafe
warns "it makes 2 results, and the backward pass 3"
refuse_gradients() { # MODULE FORWARD BACKWARD TEXT
    printf '%s\nsch["%s"]:replace(%s, nil, {backward = %s})\n' "$head" "$1" "$2" "$3" >s.lua
    expect 1 pin "$step" --schedule s.lua -n 2
    warns "s.lua:4: error: $4"
}
# What others add to a gradient stays, and so does what a gradient comes together from: residuals around a norm, queries, keys and values.
cat >norms.lua <<LUA
$head
local last = {2}
local function normal(x)
    local n = 1 / x.shape[3]
    local function mean(y) return op.reshape(op.sum(y, last) * n, {shape = {x.shape[1], x.shape[2], 1}}) end
    local centre = x - mean(x)
    local inverse = rsqrt(mean(centre * centre) + 1e-6)
    return centre * inverse, inverse, mean
end
sch["*norm*"]:replace(function(x, bias, scale) return normal(x) * scale + bias end, nil,
    {backward = function(x, bias, scale, dy)
        local y, inverse, mean = normal(x)
        local g = dy * scale
        return (g - mean(g) - y * mean(g * y)) * inverse, op.sum(dy, {0, 1}), op.sum(dy * y, {0, 1})
    end})
local rows = {0, 1}
sch["layer_?.attn.?"]:replace(function(x, b, w) return dot(x, w) + b end, nil, {backward = function(x, b, w, dy)
    return dot(dy, w, {lhs_contracting_dimensions = {2}, rhs_contracting_dimensions = {1}}), op.sum(dy, rows),
        dot(x, dy, {lhs_contracting_dimensions = rows, rhs_contracting_dimensions = rows})
end})
LUA
for ranks in 1 2; do
    expect 0 verify "$step" --schedule norms.lua -n $ranks --steps 2
    says "verify: passed"
done
# Gradients of subgraphs: products, a sum of what was spread and what was not, and an op between others in the same scope.
cat >parts.lua <<LUA
$head
local mlp, rows = sch["layer_?.mlp"], {0, 1}
mlp:trace{}
mlp:replace(function(x, w) return dot(x, w) end, mlp:find(function(x, w) return dot(x, w) end), {backward = function(x, w, dy)
    return dot(dy, w, {lhs_contracting_dimensions = {2}, rhs_contracting_dimensions = {1}}) * 1,
        dot(x, dy, {lhs_contracting_dimensions = rows, rhs_contracting_dimensions = rows})
end})
mlp:replace(function(x) return tanh(x) end, mlp:find(function(x) return tanh(x) end), {backward = function(x, dy)
    local t = tanh(x)
    return dy * (1 - t * t)
end})
LUA
cat >gelu.lua <<LUA
$head
local mlp = sch["layer_?.mlp"]
mlp:trace{}
local function parts(x, b)
    local h = x + b
    local s = op.logistic(h * (h * h * 0.044715 + 1) * 1.5957691216057308)
    return h, s, h * s
end
mlp:replace(function(x, b) local _, _, a = parts(x, b) return a end, mlp:find(function(x, b) return gelu(x + b) end), {
    name = "mine", backward = function(x, b, dy)
        local h, s, a = parts(x, b)
        local dh = dy * (s + a * (1 - s) * (h * h * 0.134145 + 1) * 1.5957691216057308)
        return dh, dh
    end})
LUA
for schedule in parts gelu; do
    expect 0 verify "$step" --schedule $schedule.lua -n 2 --steps 2
    says "verify: passed"
done
# They are taken: others give other parameters, and each of the two gradients of a sum only its own.
for wrong in 's/}) \* 1,/}) * 1.2,/' 's/dot(x, dy/1.2 * dot(x, dy/' 's/(1 - t \* t)/(1.2 - t * t)/'; do
    sed "$wrong" parts.lua >wrong.lua
    expect 1 verify "$step" --schedule wrong.lua -n 2 --steps 2
    says "verify: FAILED"
done
sed 's/return dh, dh/return dh * 1.2, dh/' gelu.lua >wrong.lua
expect 1 verify "$step" --schedule wrong.lua -n 2 --steps 1
says_like "WRONG"
[ "$(grep WRONG "$work/out" | grep -vc "'up'.*'bias'")" -eq 0 ] || fail "a gradient is that of another"
linear='function(a, b, w) return dot(a, w) + b end'
refuse_gradients layer_0.mlp.down "$linear" 'function(a, b, w, dy) return dy end' \
    "the replacement has 4 inputs and 1 results, and the backward pass 4 and 3"
refuse_gradients layer_0.mlp.down "$linear" 'function(a, b, w, dy) return a, w, b end' \
    "gradient 2 of the replacement is tensor<64x16xf32>, and what it is of tensor<16xf32>"
refuse_gradients layer_0.mlp.down "$linear" '7' "bad argument #3 to 'replace' (backward is a function, or a file)"
refuse_gradients layer_0.mlp.down "$linear" 'function(a, b, w, dy) while true do end end' "the schedule takes too long"

# What is undone is as it was.
cat >undo.lua <<LUA
$head
local subs = mlp:find(function(x, b) return gelu(x + b) end)
local p = mlp:replace(function(x, b) return tanh(x + b) end, subs)
mlp:annotate("why", "to undo it")
p:undo()
assert(#mlp:find(function(x, b) return gelu(x + b) end) == 2)
LUA
expect 0 verify "$step" --schedule undo.lua -n 2 --steps 1
says "verify: passed"

refuse() { # CODE TEXT: what is wrong is said at its line
    printf '%s\n%s\n' "$head" "$1" >s.lua
    expect 1 pin "$step" --schedule s.lua -n 2
    warns "$2"
}
refuse 'sch.layer_0:find("tanh")' "s.lua:4: error: layer_0 is not traced"
refuse 'mlp:find(function(x, y) return tanh(x) end)' "input 2 of the pattern is not read"
refuse 'mlp:find(function(x, y) return tanh(x), exp(y) end)' "the sketch is not connected"
refuse 'mlp:find(function(x) return x end)' "a pattern makes something by an op"
refuse 'mlp:find(function(x) return op.tanhh(x) end)' 'did you mean "tanh"?'
refuse 'mlp:find(function(x) return op.tanh(x, {dimension = 1}) end)' 'tanh has no attribute "dimension"'
refuse 'mlp:find(function(x) error("of mine") end)' "of mine"
refuse 'mlp:find{where = function(o) error("of mine") end}' "of mine"
refuse 'mlp:find{where = function(o) while true do end end}' "takes too long"
refuse 'mlp:find("a{2}")' "counts are not known here"
refuse 'tanh(1)' "ops are for functions that are traced"
refuse 'local kept mlp:find(function(x) kept = x return tanh(x) end) mlp:find(function(x) return x + kept end)' "traced before"
refuse 'mlp:replace(function(x) return op.sum(x, {0}) end, mlp:find(function(x) return tanh(x) end))' \
    "s.lua:4: error: the replacement makes tensor<8x64xf32> as its result 1, in place of tensor<4x8x64xf32>"
refuse 'mlp:replace(function(x) return x, x end, mlp:find(function(x) return tanh(x) end))' \
    "the replacement has 1 inputs and 2 results, and the subgraph 1 and 1"
refuse 'local a = mlp:find(function(x) return tanh(x) end) mlp:replace(function(x) return tanh(x) end, a)
mlp:fuse(a)' "s.lua:5: error: the subgraph was found before the step was changed"
refuse 'mlp:fuse(mlp:find("dot_general"))' "dot_general in layer_0/mlp/up does not go into a loop over elements"
refuse 'mlp:fuse(mlp:find("tanh"), {compiler = "tcc"})' 'none is called "tcc"'
refuse 'mlp:fuse(mlp:find("tanh"), {compiler = 7})' "s.lua:4: error: compiler is a text"
refuse 'mlp:fuse(mlp:find("tanh"), {compile = "cc"})' 's.lua:4: error: there is no option "compile"'
refuse 'mlp:fuse(mlp:find("tanh"), {"cc"})' "s.lua:4: error: there is no option"
refuse 'mlp:fuse(mlp:find("tanh"), "cc")' "s.lua:4: error: bad argument #2 to 'fuse' (table expected, got string)"
refuse 'mlp:fuse()' "s.lua:4: error:"
refuse 'sch.norm_f:replace(function(x, b, s) return x end, nil, {backward = function() return ("x"):rep(1 << 30) end})' "s.lua:4: error:"
refuse 'mlp:replace(function(x) return tanh(x) end, {})' "there is no subgraph in the list"
# Gradients of what has several meanings: of a sum, and of what others read too.
refuse 'mlp:replace(function(x, y) return x + y end, mlp:find(function(x, y) return x + y * 0.044715 end), {backward = function(x, y, dy) return dy, dy end})' \
    "which is which cannot be told"
refuse 'mlp:replace(function(x, b) return x end, mlp:find(function(x, b) local h = x + b return h * h end), {backward = function(x, b, dy) return dy, dy end})' \
    "is read by others, and is no result of the subgraph: its gradients cannot be replaced"
# Ends that depend on each other cannot be made together.
refuse 'mlp:replace(function(x, y) return x * x, x * y end, mlp:find(function(x, y) return x * x, x * y end))' \
    "what the subgraph makes goes back into it"
# The example is as short as Slapo's.
[ "$(sed -n '/^sheaf.primitive/,/^}/p' "$SHEAF_SOURCE/examples/schedules/quantize.lua" | wc -l)" -le 11 ] || fail "quantize is longer than Slapo's"
# The same primitive, of other bits, and taken back.
sed '$d' "$SHEAF_SOURCE/examples/schedules/quantize.lua" >own.lua
cat >>own.lua <<'LUA'
local p = sch["layer_?.mlp"]:quantize(BITS)
assert(#sch["layer_?.mlp.*.quantized"] == 4)
if UNDO then p:undo() assert(#sch:primitives() == 1, #sch:primitives()) end
LUA
sed 's/BITS/25/; s/UNDO/false/' own.lua >s.lua
expect 0 verify "$step" --schedule s.lua -n 2 --steps 2
says "verify: passed"
sed 's/BITS/3/; s/UNDO/false/' own.lua >s.lua
expect 1 verify "$step" --schedule s.lua -n 2 --steps 2
warns "s.lua:10: error: from this primitive on the step differs from the unsplit one: layer_?.mlp: replace 4 subgraphs"
sed 's/BITS/1/; s/UNDO/false/' own.lua >s.lua
expect 1 verify "$step" --schedule s.lua -n 2
warns "quantize: weights of less than two bits"
sed 's/BITS/3/; s/UNDO/true/' own.lua >s.lua
expect 0 verify "$step" --schedule s.lua -n 2 --steps 1
# What fails half way leaves nothing behind.
cat >half.lua <<LUA
$head
sheaf.primitive{name = "half", apply = function(m) m.up:shard("kernel", 1) m.up:shard("kernel", 7) end}
local before = #sch:primitives()
assert(not pcall(mlp.half, mlp) and #sch:primitives() == before)
LUA
expect 0 pin "$step" --schedule half.lua -n 2
# The tuner sees it as any other: how many bits are as fast.
sed 's/BITS/tune.int("bits", 2, 4)/; s/UNDO/false/' own.lua >s.lua
expect 0 tune s.lua "$step" --cluster 1x2xCPU
says "of 3 settings"
refuse 'sheaf.primitive{name = "shard", apply = print}' 'there is a primitive "shard" already'
refuse 'sheaf.primitive{name = "x"}' "apply is a function"
[ "$failures" -eq 0 ] || { echo "$failures failed"; exit 1; }
