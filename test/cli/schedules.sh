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
counts=(2)
if nightly; then counts=(1 2 4 8); fi
for pair in bert:bert roberta:bert gpt:gpt opt:gpt t5:t5 llama:llama wresnet:wresnet moe:moe; do
    step=micro/${pair#*:}-micro.stablehlo.mlir
    [ -e "$step" ] || continue
    for ranks in "${counts[@]}"; do
        expect 0 verify "$step" --schedule "$schedules/${pair%:*}.lua" -n $ranks --steps 2
        says "verify: passed"
    done
done

# nnScaler's tables, in its own primitives.
for pair in data:gpt tensor:gpt pipeline:gpt 1f1b:gpt coshard:swin interlaced:t5 3f1b:evoformer; do
    step=micro/${pair#*:}-micro.stablehlo.mlir
    [ -e "$step" ] || continue
    expect 0 verify "$step" --schedule "$schedules/nnscaler-${pair%:*}.lua" --steps 2
    says "verify: passed"
    [ "$(grep -vc '^ *--' "$schedules/nnscaler-${pair%:*}.lua")" -le 10 ] || fail "nnscaler-${pair%:*}.lua is long"
done
expect 0 verify micro/gpt-micro.stablehlo.mlir --schedule "$schedules/nnscaler-data.lua" -n 4 --steps 2
expect 0 pin micro/gpt-micro.stablehlo.mlir --schedule "$schedules/nnscaler-pipeline.lua" -o gpipe.json
grep -q '"0: F0.[0-3] F0.[0-3] F0.[0-3] F0.[0-3] B0' gpipe.json || fail "not all forward tasks come first"
grep -q 'nnscaler-pipeline.lua:7: order forward of layer_0, micro-batch 3 before backward of layer_0, micro-batch 0"' gpipe.json ||
    fail "the order is not kept in the plan"
expect 0 pin micro/gpt-micro.stablehlo.mlir --schedule "$schedules/nnscaler-1f1b.lua" -o one.json
grep -q '"0: F0.0 F0.1 B0.0 F0.2 B0.1 F0.3' one.json || fail "the order is not that of 1F1B"
# What a space leaves open is searched: with less memory another recipe, or more that is computed again, is taken.
space_plan() { # CLUSTER OPTION...
    expect 0 plan micro/gpt-micro.stablehlo.mlir --schedule "$schedules/nnscaler-data.lua" --cluster "$@" -o space.json
    warns "as planned without it"
    expect 0 verify --plan space.json --steps 1
}
space_plan 1x2xCPU
free=$(sed -n 's/.*"memory": \([0-9]*\),.*/\1/p' space.json | head -n 1)
space_plan 1x2xCPU --memory $((free - 1))
less=$(sed -n 's/.*"memory": \([0-9]*\),.*/\1/p' space.json | head -n 1)
[ "$less" -lt "$free" ] || fail "within $((free - 1)) bytes a plan of $less is taken"
expect 1 plan micro/gpt-micro.stablehlo.mlir --schedule "$schedules/nnscaler-data.lua" --cluster 1x2xCPU --memory 10K
warns "plans that the space leaves open fits into the memory of a rank"
expect 2 plan micro/gpt-micro.stablehlo.mlir --schedule "$schedules/nnscaler-1f1b.lua" --cluster 1x4xCPU
warns "the plan is for 2 ranks, the cluster has 4"
expect 2 plan micro/gpt-micro.stablehlo.mlir --schedule "$schedules/nnscaler-data.lua" --cluster 1x2xCPU --stages 2
warns "stages: of a space, this follows from its primitives"
refuse_space() { # what is said of a space of two devices, at its line
    printf 'local space = sheaf.space(2)\n%s\n' "$1" >space.lua
    expect "$2" pin micro/gpt-micro.stablehlo.mlir --schedule space.lua
    warns "$3"
}
refuse_space 'space:trans("layer_0/mlpp", "k", 2)' 1 'space.lua:2: error: "layer_0/mlpp" matches no op'
refuse_space 'space:trans("layer_0/mlp/up/dot_general", "z", 2)' 1 "has no factor z"
refuse_space 'space:assign("layer_0", 7)' 1 "space.lua:2: error:"
refuse_space 'space:trans(nil, "batch", 2, "somewhere")' 1 'in "space" or in "time"'
refuse_space 'space:order({"layer_0", "sideways"}, {"layer_1"})' 1 "space.lua:2: error:"
refuse_space 'sheaf.schedule():mesh("data=4") space:trans(nil, "batch", 2)' 2 "cut into 2 parts, and axis data of the mesh has 4"
refuse_space 'space:trans(nil, "batch", 2) sheaf.schedule()["wte"]:shard("embedding", 0)' 2 'has no axis "model"'
refuse_space 'sheaf.schedule():micro_batches(2)' 1 "beside a space micro_batches follows"
refuse_space 'sheaf.schedule()["layer_1"]:pipeline_split()' 1 "beside a space stages are said by its assign"
refuse_space 'sheaf.space(4)' 1 "devices is said at"

head='local sch = sheaf.schedule() sch:mesh("model=2")'
gpt=micro/gpt-micro.stablehlo.mlir

# A stage does not begin inside of a loop that is not unrolled.
if [ -e micro/gpt-scan-micro.stablehlo.mlir ]; then
    printf 'local sch = sheaf.schedule()\nsch["layers.block.attn"]:pipeline_split()\n' >loop.lua
    expect 1 pin micro/gpt-scan-micro.stablehlo.mlir --schedule loop.lua -n 2 --unroll 0
    warns "loop.lua:2: error: layers/block/attn is computed inside of a loop of the step"
fi

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

# A sync that is missing is made where it must be, and told of at the line of the shard; nothing else is.
echo "$head sch['layer_?.mlp.up']:shard('kernel', 1) sch['layer_?.mlp.down']:shard('kernel', 0)" >missing.lua
expect 0 pin $gpt --schedule missing.lua
says_like "all_reduce +model +forward +2 "
warns "missing.lua:1: warning: layer_0/mlp/down is sharded over what its product adds up"
expect 0 verify $gpt --schedule missing.lua --steps 2
echo "$head sch:strict() sch['layer_?.mlp']:shard('up/kernel', 1) sch['layer_?.mlp']:shard('down/kernel', 0)
sch['layer_?']:sync()" >synced.lua
expect 0 pin $gpt --schedule synced.lua
warns_not "adds up"

# Dropout draws what the whole tensor would have drawn, in pieces and whole.
if [ -e micro/gpt-dropout-micro.stablehlo.mlir ]; then
    for ranks in 2 4; do
        expect 0 verify micro/gpt-dropout-micro.stablehlo.mlir --schedule "$schedules/gpt.lua" -n $ranks --steps 2
    done
    # Where ranks have pieces, they draw differently: of the mask of attention, each has that of its heads; what is whole agrees.
    printf '%s\n' "$head sch['layer_?.attn.Dropout_0']:fork_rng() sch['layer_?.attn']:shard({'q/kernel', 'k/kernel', 'v/kernel'}, 1)
sch['layer_?.attn']:shard('o/kernel', 0) sch['layer_?.attn']:sync()" >fork.lua
    expect 0 verify micro/gpt-dropout-micro.stablehlo.mlir --schedule fork.lua --steps 2
    says "verify: passed"
    # T5 in four stages: the decoder reads what the encoder made two stages before.
    printf "local sch = sheaf.schedule() sch:micro_batches(2)
for _, name in ipairs{'enc_0.mlp', 'dec_0.norm1', 'dec_0.mlp'} do sch[name]:pipeline_split() end\n" >t5.lua
    expect 0 verify micro/t5-micro.stablehlo.mlir --schedule t5.lua -n 4 --steps 2
    says "verify: passed"
fi

# The vocabularies meet: stages, tensor and data parallelism, turns, recompute in half of the layers, state in pieces.
expect 0 pin $gpt --schedule "$schedules/three.lua" -o three.json
says "pipe=2,data=2,model=2, 8 ranks"
says_like "stages +4, by a table, on 2 pipeline ranks"
says_like "recompute +[1-9]"
grep -q '"passes"' three.json || fail "no passes in the plan"
expect 0 verify --plan three.json --steps 2
says "verify: passed"
expect 0 report three.json --step $gpt --cluster 1x8xCPU -o three.html
for words in "fsdp,prefetch" "three.lua:[0-9]*: order forward of layer_1/attn, micro-batch 0 before forward" "shard down/kernel" \
    "checkpoint" "ZeRO-1"; do
    grep -q "$words" three.html || fail "the page does not say $words"
done
cat >all.lua <<'LUA'
local sch = sheaf.schedule()
sch:mesh("pipe=2,data=2,model=2")
sch:recipe("zero1")
sch:micro_batches(2)
sch:schedule("interleaved:2")
for _, name in ipairs{"layer_0.mlp", "layer_1", "layer_1.mlp"} do sch[name]:pipeline_split() end
sch["layer_?.mlp.up"]:shard("kernel", 1, "model")
sch["layer_?.mlp.down"]:shard("kernel", 0, "model")
sch["layer_?.mlp"]:sync("forward", "all_reduce")
sch["layer_0"]:checkpoint()
LUA
cat >passes.lua <<'LUA'
local sch = sheaf.schedule()
sch:mesh("data=2")
sch:recipe("zero3")
sch:passes("fsdp,prefetch")
LUA
expect 0 pin $gpt --schedule passes.lua -o passes.json
grep -q '"passes"' passes.json || fail "no passes in the plan"
expect 0 verify --plan passes.json --steps 2
echo "$head sch:passes('fullshrd')" >passes.lua
expect 1 pin $gpt --schedule passes.lua
warns "fullshrd"
expect 0 pin $gpt --schedule all.lua -o all.json
says "pipe=2,data=2,model=2, 8 ranks"
expect 0 verify --plan all.json --steps 2
says "verify: passed"
grep -q '"stages": 4' all.json || fail "not two stages a group"
expect 0 report all.json --step $gpt --cluster 1x8xCPU -o all.html
grep -q "interleaved" all.html || fail "the page does not say how stages are ordered"

# Runs and training take a schedule as well, on threads and on processes.
expect 0 run $gpt --schedule "$schedules/gpt.lua" -n 2 --steps 2 --threads 1
expect 0 train $gpt --schedule "$schedules/gpt.lua" -n 2 --data synthetic --steps 2 --threads 1
threads=$(grep -o "loss [0-9.]*" out | tail -1)
[ -n "$threads" ] || fail "no loss"
expect 2 train $gpt --schedule gpipe --data synthetic --steps 2
expect 2 run $gpt --schedule "$schedules/gpt.lua" --plan all.json
# Also a step that the schedule makes, beside which the losses are those of the step; a plan of it, which is in no file, is not written.
losses() { awk 'NF == 3 && $1 ~ /^[0-9]+$/ { print $3 }' out; }
expect 0 run $gpt --steps 2 --threads 1
plain=$(losses)
expect 0 run $gpt --schedule "$schedules/fused.lua" -n 2 --steps 2 --threads 1
[ -n "$plain" ] && [ "$(losses)" = "$plain" ] || fail "other losses: $(losses)"
expect 2 pin $gpt --schedule "$schedules/fused.lua" -n 2 -o fused.json
warns "write it first"
if command -v mpirun >/dev/null && "$SHEAF_BIN" version | grep -q '^mpi: in'; then
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
    export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_mpi_yield_when_idle=1
    export ASAN_OPTIONS=${ASAN_OPTIONS:-}:detect_leaks=0
    sheaf=(timeout 120 mpirun -n 2 "$SHEAF_BIN")
    expect 0 verify $gpt --schedule "$schedules/gpt.lua" --steps 2
    says "verify: passed"
    expect 0 verify $gpt --schedule "$schedules/fused.lua" --steps 2
    expect 0 train $gpt --schedule "$schedules/gpt.lua" --data synthetic --steps 2 --threads 1
    says "$threads"
    echo "error('no')" >no.lua
    expect 1 verify $gpt --schedule no.lua --steps 2
    [ "$(grep -c 'no.lua:1: error: rank 0: no' err)" -eq 1 ] || fail "it is not said once"
    sheaf=(timeout 120 "$SHEAF_BIN")
fi

# What --schedule was taken for is said.
expect 0 pin $gpt --stages 2 --micro-batches 2 --schedule gpipe
warns "schedule: gpipe, by its name"
printf '0: F0.0 F0.1 B0.0 B0.1\n1: F1.0 B1.0 F1.1 B1.1\n' >own.txt
expect 0 pin $gpt --stages 2 --schedule own.txt
warns "schedule: own.txt, a table of tasks"
[ "$failures" -eq 0 ] || { echo "$failures failed"; exit 1; }
