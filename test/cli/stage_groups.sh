#!/usr/bin/env bash
# Stages that several groups run together: interlaced pipelines, and groups of unequal size; by number, by scopes and as tables;
# the plan file there and back, simulated, verified on threads and trained over MPI; checkpoints; and wishes that are wrong.
set -u
. "$SHEAF_SOURCE/test/support/cli.sh"
step=$SHEAF_SOURCE/examples/gpt-micro.stablehlo.mlir
io=$SHEAF_SOURCE/examples/gpt-micro.io.safetensors
cd "$work" || exit 1
sheaf=(timeout 120 "$SHEAF_BIN")
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_mpi_yield_when_idle=1
export ASAN_OPTIONS=${ASAN_OPTIONS:-}:detect_leaks=0 # MPI leaks
mpi=
command -v mpirun >/dev/null && "$SHEAF_BIN" version | grep -q '^mpi: in' && mpi=yes

# All ways to say it, alone and with splits inside of groups, with and without recompute.
# In the short version every second of them.
row=0
while IFS='|' read -r ranks options; do
    row=$((row + 1))
    nightly || [ $((row % 2)) -eq 0 ] || continue
    # shellcheck disable=SC2086
    expect 0 pin "$step" $options -o plan.json
    says_like "^  mesh +pipe=.*, $ranks ranks"
    expect 0 sim plan.json -c "1x${ranks}xCPU"
    expect 0 verify --plan plan.json --steps 2
    says "passed"
done <<'CASES'
2|--stages 2 --schedule interlaced --micro-batches 4
4|--stages 4 --schedule interlaced --micro-batches 4
4|--stages 2 --schedule interlaced --micro-batches 2 -r dp -n 4
4|--stages 2 --schedule interlaced --micro-batches 2 -r megatron -n 4
4|--stages 2 --schedule interlaced --micro-batches 2 -r zero1 -n 4
2|--stages 2 --schedule interlaced --micro-batches 4 --recompute layer
3|--stages @0-1,layer_1@2 --micro-batches 4
3|--stages @0,layer_1@1-2 --micro-batches 4 --recompute layer
3|--stages @0-1,@2 --micro-batches 2
3|--stages @0-1,@1-2 --micro-batches 2
4|--stages @0-1,@2-3 --micro-batches 2
3|--stages @0+2,@1 --micro-batches 2
6|--stages @0-1,@2 --micro-batches 2 -r dp -n 6
2|--stages 2 --schedule interlaced --micro-batches 1 --co-shard sequence:2
2|--stages @0+1,layer_1@1 --micro-batches 1 --co-shard sequence:2
2|--stages @all,layer_0@0,layer_1@1,norm_f@all --micro-batches 2 --co-shard dp:2
4|-M pipe=2,data=2 -r zero1 --stages @0+1,layer_1@1 --micro-batches 2 --co-shard dp:2
3|--stages @0+1,layer_1@2 --micro-batches 2 --passes fsdp
4|-M pipe=2,model=2 -r megatron --stages @0+1,layer_1@1 --micro-batches 4 --passes fsdp
2|--stages @0+1,layer_1@1 --micro-batches 2 --passes fsdp
CASES

# The vocabulary is in pieces, and each rank has one of it.
expect 0 pin "$step" --stages 4 --schedule interlaced --micro-batches 4 -o four.json
says_like "^  stages +6, by interlaced, on 4 pipeline ranks"
says_like "all_reduce +pipe +forward"
grep -q '"params/wte/embedding": "\[S(0)\]"' four.json || fail "the table of tokens is not split over the groups"
grep -q '"params/layer_0/attn/q/kernel": "\[At(0)\]"' four.json || fail "a layer is not on its group"
expect 0 pin "$step" --stages 2 --schedule interlaced --micro-batches 2 -r megatron -n 4 -o both.json
grep -q '"params/wte/embedding": "\[S(0), S(0)\]"' both.json || fail "the table is not split over all ranks"
expect 0 pin "$step" --stages @0-1,layer_1@2 --micro-batches 4 -o unequal.json
grep -q '"params/layer_0/mlp/up/kernel": "\[S(1)At(0,1)\]"' unequal.json || fail "a layer is not split over its groups"
says_like "^  stages +2, by a table, on 3 pipeline ranks"

# Targets that are made anywhere, of the batch alone, in the pieces of the vocabulary: what is summed over them is brought
# together by who reads it.
if "$SHEAF_BIN" version | grep '^lzma: in' >/dev/null; then
    expect 0 pin "$SHEAF_SOURCE/test/data/turns/gpt-smoothed.stablehlo.mlir.xz" --stages 2 --schedule interlaced --micro-batches 4 -o smoothed.json
    says_like "all_reduce +pipe +backward"
    expect 0 verify --plan smoothed.json --steps 2
    says "passed"
fi

# The same command, the same bytes; what is read is written again as it was.
expect 0 pin "$step" --stages @0-1,layer_1@2 --micro-batches 4 -o again.json
cmp -s again.json unequal.json || fail "two plans of one command differ"
expect 0 diff again.json unequal.json

# What the planner makes of it.
expect 0 plan "$step" --cluster 1x2xCPU --stages 2 --schedule interlaced --micro-batches 2 -o searched.json
grep -q '"schedule": "interlaced"' searched.json || fail "plan --schedule interlaced found something else"
expect 0 verify --plan searched.json --steps 2

# A table.
printf '0: F0.0 F0.1 F1.0 B1.0 B0.0 F1.1 B1.1 B0.1\n1: F1.0 B1.0 F1.1 B1.1\n' >own.txt
expect 0 pin "$step" --stages layer_1 --schedule own.txt -o own.json
expect 0 verify --plan own.json --steps 2
printf '0: F0.0 F0.1 F1.0 B1.0 B0.0 F1.1 B1.1 B0.1\n1: F1.1 B1.1 F1.0 B1.0\n' >stuck.txt
expect 1 pin "$step" --stages layer_1 --schedule stuck.txt
warns "never ends"

# Misuse.
while IFS='|' read -r options message; do
    # shellcheck disable=SC2086
    expect 2 pin "$step" $options
    warns "$message"
done <<'CASES'
--stages @0,layer_1|expected @ and the pipeline ranks of the stage at its end
--stages layer_1@1|the first stage, which begins with the step at character 1
--stages @,layer_1@1|a pipeline rank, 0 to 63, or all at character 2
--stages @0-,layer_1@1|the last pipeline rank of a range, 63 at most at character 4
--stages @1-0,layer_1@1|the last pipeline rank of a range
--stages @0+,layer_1@1|a pipeline rank
--stages @64,layer_1@0|a pipeline rank
--stages @x,layer_1@0|a pipeline rank
--stages @all,layer_1@all|how many pipeline ranks
--stages @0,@1,layer_1@1|as no other stage has a scope at character 7
--stages @0,layer_1@2|pipeline rank 1 has no stage
--stages @0,nowhere@1|is no scope of the forward pass
--stages @0-1,@2 --schedule 1f1b|their order is found
--stages @0-1,@2 --schedule own.txt|a table says itself
CASES
cat >plain.mlir <<'STEP'
func.func @main(%w: tensor<4x4xf32>, %x: tensor<8x4xf32>) -> (tensor<4x4xf32>, tensor<f32>) {
  %y = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %l = stablehlo.reduce(%y init: %z) applies stablehlo.add across dimensions = [0, 1] : (tensor<8x4xf32>, tensor<f32>) -> tensor<f32>
  return %w, %l : tensor<4x4xf32>, tensor<f32>
}
STEP
expect 1 pin plain.mlir --stages 2 --schedule interlaced --micro-batches 2
warns "no table of tokens"

# hostile CODE MESSAGE SED: the plan with that change is refused.
hostile() {
    sed "$3" unequal.json >hostile.json
    cmp -s unequal.json hostile.json && fail "nothing was changed: $3"
    expect "$1" verify "$step" --plan hostile.json --steps 1
    warns "$2"
}
hostile 1 "is no layout" 's/S(1)At(0,1)/S(1)At(0,64)/'
hostile 1 "is no layout" 's/S(1)At(0,1)/S(1)At(7)/'
hostile 1 "is no layout" 's/S(1)At(0,1)/S(1)At()/'

# Checkpoints go from such a plan to others, and back.
train=(train "$step" --seed 5 --data "$io" --init "$io" --quiet)
for plan in four unequal; do
    expect 0 "${train[@]}" --plan $plan.json --steps 2 --save $plan
    expect 0 "${train[@]}" --steps 4 --save $plan --resume
    expect 0 "${train[@]}" --plan $plan.json --steps 6 --save $plan --resume --log $plan.jsonl
done
expect 0 "${train[@]}" --steps 6 --log one.jsonl
for plan in four unequal; do
    last() { sed -n 's/.*"event":"step","step":5,"loss":\([^,]*\),.*/\1/p' "$1"; }
    awk -v a="$(last one.jsonl)" -v b="$(last $plan.jsonl)" \
        'BEGIN { d = a - b; exit !(a > 0 && d < 1e-4 * a && -d < 1e-4 * a) }' ||
        fail "losses differ: $plan: $(last one.jsonl) $(last $plan.jsonl)"
done
if [ -n "$mpi" ]; then
    timeout 250 mpirun -n 4 "$SHEAF_BIN" verify "$step" --plan four.json --steps 2 >"$work/out" 2>"$work/err" ||
        fail "interlaced over MPI: $(cat "$work/err")"
    timeout 250 mpirun -n 3 "$SHEAF_BIN" verify "$step" --plan unequal.json --steps 2 >"$work/out" 2>"$work/err" ||
        fail "unequal groups over MPI: $(cat "$work/err")"
fi
[ "$failures" -eq 0 ] || { echo "$failures failed"; exit 1; }
