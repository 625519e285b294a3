#!/usr/bin/env bash
# Kernels that stand for several ops: what a schedule says of them is done, and what is not there is refused.
set -u
. "$SHEAF_SOURCE/test/support/cli.sh"
step=$SHEAF_SOURCE/examples/gpt-micro.stablehlo.mlir
cd "$work" || exit 1
sheaf=(timeout 120 "$SHEAF_BIN")
if ! "$SHEAF_BIN" version | grep -q '^lua: in'; then
    echo "skipped: no Lua"
    exit 77
fi
head='local sch = sheaf.schedule() sch:mesh{{"data", sheaf.ranks or 1}} '

# The step as it was has no kernel; with one, it is the same up to rounding, and not to the bit.
echo "$head sch:kernels('all') sch['layer_?.attn']:replace('attention')" >all.lua
echo "$head sch:kernels('none')" >none.lua
for ranks in 1 2; do
    expect 0 verify "$step" --schedule all.lua -n $ranks --steps 2 --check
    says "verify: passed"
    ! grep -q "all bits equal" out || fail "no kernel was used on $ranks ranks"
done
expect 0 verify "$step" --schedule none.lua -n 1 --steps 2
says "all bits equal"

# A plan keeps it, and memory is what the plan says.
expect 0 pin "$step" --schedule all.lua -n 2 -o all.json
grep -q '"kernels": "all"' all.json || fail "the plan does not say which kernels"
expect 0 pin "$step" --schedule none.lua -n 2 -o none.json
expect 0 verify --plan all.json --steps 2
! grep -q "all bits equal" out || fail "the plan has no kernel"
sed 's/"kernels": "all"/"kernels": "some"/' all.json >some.json
expect 1 verify --plan some.json --steps 1
warns 'expected "none", "best" or "all" kernels'

# Those that are loops: bias and GELU, softmax, and bias, dropout, residual and layer norm, forward and backward.
cat >loops.lua <<LUA
$head
sch["layer_?.mlp"]:replace("bias_gelu")
sch["layer_?.attn"]:replace("softmax")
sch["*norm*"]:replace("layer_norm")
sch["layer_?.norm2"]:replace("bias_dropout_residual_layer_norm")
LUA
echo "$head sch:kernels('all') sch:replace('cross_entropy')" >entropy.lua
if command -v xz >/dev/null; then
    for name in gpt-dropout gpt-bf16 bert; do
        xz -dc "$SHEAF_SOURCE/test/data/micro/$name-micro.stablehlo.mlir.xz" >$name.mlir
        expect 0 pin $name.mlir --schedule loops.lua -n 2
        expect 0 pin $name.mlir --schedule entropy.lua -n 2
    done
fi
for schedule in loops entropy; do
    expect 0 verify "$step" --schedule $schedule.lua -n 2 --steps 2
    says "verify: passed"
done

# Rules.
while IFS='|' read -r code text; do
    echo "$head $code" >wrong.lua
    expect 1 pin "$step" --schedule wrong.lua -n 1
    warns "$text"
done <<'LIST'
sch['layer_0.attn']:replace('attention')|layer_0/attn has no attention that a kernel stands for
sch['layer_0.attn']:replace('attention')|has kernels stand for what they can
sch:kernels('all') sch['layer_0.mlp']:replace('attention')|layer_0/mlp has no attention that a kernel stands for
sch:kernels('none') sch['layer_0.attn']:replace('attention')|no kernels are wanted
sch['layer_0.attn']:replace('tension')|there is no kernel "tension": there are attention, bias_gelu, softmax
sch['layer_0.mlp']:replace('layer_norm')|layer_0/mlp has no layer_norm that is one loop in the forward pass
sch.norm_f:replace('bias_gelu')|norm_f has no bias_gelu that is one loop in the forward pass
sch.norm_f:replace('softmax')|norm_f has no softmax that is one loop
sch['layer_0.attn']:replace('bias_gelu')|layer_0/attn has no bias_gelu
sch:replace('cross_entropy')|the step has no cross_entropy that is one loop in the backward pass; sch:kernels("all"), before this
sch['layer_0.attn']:replace('cross_entropy')|layer_0/attn has no cross_entropy that is one loop in the forward pass
sch:replace('attention')|the step has no attention that a kernel stands for
sch:replace('gelu')|there is no kernel "gelu"
sch:kernels('some')|"some": expected best, none or all
LIST
[ "$failures" -eq 0 ] || { echo "$failures failed"; exit 1; }
