#!/usr/bin/env bash
# The schedules of examples/: short, and right on 1, 2, 4 and 8 ranks; and what others got wrong.
set -u
. "$SHEAF_SOURCE/test/support/cli.sh"
if ! "$SHEAF_BIN" version | grep -q '^lua: in'; then
    echo "skipped: no Lua"
    exit 77
fi
sheaf=(timeout 120 "$SHEAF_BIN")
schedules=$SHEAF_SOURCE/examples/schedules
examples=$SHEAF_SOURCE/examples
cd "$work" || exit 1
mkdir micro
if command -v xz >/dev/null; then
    for step in "$SHEAF_SOURCE"/test/data/micro/*.stablehlo.mlir.xz; do
        xz -dc "$step" >"micro/$(basename "$step" .xz)"
    done
else
    echo "no xz: only GPT is verified"
    cp "$examples"/gpt-micro.stablehlo.mlir micro/
fi

for schedule in "$schedules"/*.lua; do
    [ "$(grep -vc '^ *--' "$schedule")" -le 20 ] || fail "$schedule is long"
done
for pair in bert:bert roberta:bert gpt:gpt opt:gpt t5:t5 llama:llama wresnet:wresnet moe:moe; do
    step=micro/${pair#*:}-micro.stablehlo.mlir
    [ -e "$step" ] || continue
    for ranks in 1 2 4 8; do
        expect 0 verify "$step" --schedule "$schedules/${pair%:*}.lua" -n $ranks --steps 2
        says "verify: passed"
    done
done

head='local sch = sheaf.schedule() sch:mesh("model=2")'
gpt=micro/gpt-micro.stablehlo.mlir

# Tied weights stay tied: one name of the embedding is enough, and the other sees the same pieces.
echo "$head sch['wte.attend']:shard('embedding', 0)" >tied.lua
expect 0 pin $gpt --schedule tied.lua -o tied.json
grep -q '"params/wte/embedding": "\[S(0)\]"' tied.json || fail "the tied embedding is not split"
expect 0 verify --plan tied.json --steps 2
# Also where the stages that read them are two.
echo "local sch = sheaf.schedule() sch['layer_1']:pipeline_split() sch:micro_batches(2)" >cut.lua
expect 0 verify $gpt --schedule cut.lua -n 2 --steps 2
says "verify: passed"

# A product by rows with a bias: the sum is made before the bias is added, once.
echo "$head sch['layer_?.mlp.down']:shard('kernel', 0) sch['layer_?.mlp.down']:sync('forward')" >bias.lua
expect 0 pin $gpt --schedule bias.lua
says_like "all_reduce +model +forward +2 "
expect 0 verify $gpt --schedule bias.lua --steps 2
says "verify: passed"

# A sync that is missing is made where it must be.
echo "$head sch['layer_?.mlp.up']:shard('kernel', 1) sch['layer_?.mlp.down']:shard('kernel', 0)" >missing.lua
expect 0 pin $gpt --schedule missing.lua
says_like "all_reduce +model +forward +2 "
expect 0 verify $gpt --schedule missing.lua --steps 2

# Dropout draws what the whole tensor would have drawn, in pieces and whole.
if [ -e micro/gpt-dropout-micro.stablehlo.mlir ]; then
    for ranks in 2 4; do
        expect 0 verify micro/gpt-dropout-micro.stablehlo.mlir --schedule "$schedules/gpt.lua" -n $ranks --steps 2
    done
    # T5 in four stages: the decoder reads what the encoder made two stages before.
    printf "local sch = sheaf.schedule() sch:micro_batches(2)
for _, name in ipairs{'enc_0.mlp', 'dec_0.norm1', 'dec_0.mlp'} do sch[name]:pipeline_split() end\n" >t5.lua
    expect 0 verify micro/t5-micro.stablehlo.mlir --schedule t5.lua -n 4 --steps 2
    says "verify: passed"
fi

# The vocabularies meet: stages, tensor and data parallelism, turns, recompute in half of the layers, state in pieces.
cat >all.lua <<'LUA'
local sch = sheaf.schedule()
sch:mesh("pipe=2,data=2,model=2")
sch:recipe("zero1")
sch:micro_batches(2)
sch["layer_1"]:pipeline_split()
sch["layer_?.mlp.up"]:shard("kernel", 1, "model")
sch["layer_?.mlp.down"]:shard("kernel", 0, "model")
sch["layer_?.mlp"]:sync("forward", "all_reduce")
sch["layer_0"]:checkpoint()
LUA
cat >passes.lua <<'LUA'
local sch = sheaf.schedule()
sch:mesh("data=2")
sch:recipe("zero3")
sch:passes("fullshard,prefetch")
LUA
expect 0 pin $gpt --schedule passes.lua -o passes.json
grep -q '"passes"' passes.json || fail "no passes in the plan"
expect 0 verify --plan passes.json --steps 2
echo "$head sch:passes('fullshrd')" >passes.lua
expect 2 pin $gpt --schedule passes.lua
warns "fullshrd"
expect 0 pin $gpt --schedule all.lua -o all.json
says "pipe=2,data=2,model=2, 8 ranks"
expect 0 verify --plan all.json --steps 2
says "verify: passed"
[ "$failures" -eq 0 ] || { echo "$failures failed"; exit 1; }
