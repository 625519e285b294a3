#!/usr/bin/env bash
# sheaf plan, explain, diff: a step and a cluster in, a plan out that runs; what it says; what is refused.
set -u
. "$SHEAF_SOURCE/test/support/cli.sh"
# Layouts alone: nothing is recomputed, no micro-batches.
in_space="--recompute none --micro-batches 1 --co-shard none --passes none"
bin=$SHEAF_BIN
step=$SHEAF_SOURCE/examples/gpt-micro.stablehlo.mlir

# number KEY: the value of a key of the JSON in $work/out.
number() { sed -n "s/^  \"$1\": \([0-9.e+-]*\),*\$/\1/p" "$work/out"; }

# A plan comes out, with its price and what it was compared with; it runs and computes the step.
expect 0 plan "$step" --cluster 1x4xV100 --compare -o "$work/plan.json"
says_like "4 ranks"
says_like "^  bound "
for recipe in dp zero1 zero2 zero3 megatron sequence 2d; do
    says_like "^  $recipe +[a-z]+="
done
[[ $(tail -1 "$work/out") =~ ^step\ [0-9.]+\ [mu]?s,\ memory\ [0-9.]+\ [KMG]iB,\ communication\ [0-9.]+\ [KMG]?i?B,\ gap\ [0-9.]+\ %(,\ [0-9.]+\ %\ without\ stages)?$ ]] ||
    fail "the last line is no summary"
silent err
cp "$work/out" "$work/compared"
expect 0 verify "$step" --plan "$work/plan.json" --steps 2
expect 0 train "$step" --plan "$work/plan.json" --steps 2 --data synthetic

# What is to be left free is: by default what the device reserves; not more than it has, and not of devices that differ.
for reserve in "" "--reserve 4G" "--reserve 1K"; do
    expect 0 plan "$step" -c 1x4xV100 --recipes $reserve --json
    case $reserve in *4G) room=28 ;; *1K) room=31.99 ;; *) room=29.75 ;; esac
    awk -v limit="$(number memory_limit)" -v room=$room 'BEGIN { exit limit < (room - 0.01) * 2^30 || limit > (room + 0.01) * 2^30 }' ||
        fail "the limit with $reserve is $(number memory_limit)"
done
expect 2 plan "$step" -c 1x4xV100 --reserve 32G
warns "less than the 32.0 GiB of a device"
expect 2 plan "$step" -c 1x2xV100+1x2xA100 --reserve 2G
warns "differ in memory"
expect 2 plan "$step" -c 1x4xV100 --reserve 2G --memory 4G

# A limit above what devices leave to a rank is none, and said so by every command that takes one.
expect 0 plan "$step" -c 1x2xV100 --recipes --memory 31G --passes none --json
warns "the memory limit of 31.0 GiB exceeds what a device of the cluster leaves to a rank, 29.8 GiB"
[ "$(number memory_limit)" -eq $((119 * 2 ** 28)) ] || fail "the limit is $(number memory_limit)"
expect 0 pin "$step" -r zero3 -c 1x2xV100 --passes fsdp --memory 31G -o "$work/above.json"
warns "29.8 GiB, which is used instead"
expect 0 sim "$work/above.json" -c 1x2xV100 --passes fsdp,prefetch --memory 31G
warns "29.8 GiB, which is used instead"
expect 0 sim "$work/above.json" -c 1x2xV100 --passes fsdp,prefetch --memory 29G
warns_not "exceeds"

# Ranks that the cluster has no devices for, or too many of them, are refused before a plan is written.
expect 2 pin "$step" -r dp -n 4 -c 1x2xV100 -o "$work/more.json"
warns "the plan is for 4 ranks, the cluster has 2"
[ ! -e "$work/more.json" ] || fail "a plan was written that no command simulates"

# The bound is of the cluster, whoever made the plan.
expect 0 pin "$step" -r dp -n 2 -o "$work/hand2.json"
expect 0 explain "$work/hand2.json" -c 1x2xV100 --json
awk -v s="$(number seconds)" -v b="$(number bound)" -v g="$(number gap)" 'BEGIN { d = (s - b) / s - g; exit !(b > 0 && d * d < 1e-12) }' ||
    fail "the bound of a pinned plan is '$(number bound)', its gap '$(number gap)'"

# The same plan from one thread and from several; test/search/search_test.c asks the same.
if nightly; then
    expect 0 plan "$step" -c 1x4xV100 -t 1 -o "$work/one.json"
    expect 0 plan "$step" -c 1x4xV100 -t 4 -o "$work/four.json"
    cmp -s "$work/one.json" "$work/four.json" && cmp -s "$work/plan.json" "$work/four.json" ||
        fail "the plan depends on the number of threads"
fi

# none_faster SHARE: of what fits, nothing is faster by the same price; what the search made, by that share at most.
none_faster() {
    grep -A4 '"name": ' "$work/out" | awk -v ours="$(number seconds)" -v share="$1" '
        /"name"/ { least = $2 ~ /search/ ? ours / (1 + share) : ours }
        /"seconds"/ { seconds = $2 + 0 }
        /"fits": true/ && seconds < least * (1 - 1e-9) { print "faster: " seconds; exit 1 }'
}

# A searched plan is passed over for a recipe by the margin and what axes count for, at most; without a margin never.
# In the short version, one cluster will do.
clusters=(1x2xV100) levels=(2)
if nightly; then clusters=(1x2xV100 1x4xV100 2x2xH100 1x8xV100-PCIe) levels=(2 3); fi
for cluster in "${clusters[@]}"; do
    for level in "${levels[@]}"; do
        expect 0 plan "$step" -c "$cluster" -O "$level" --json
        none_faster 0.014 || fail "$cluster -O$level: an alternative is faster than $(number seconds)"
    done
done
expect 0 plan "$step" -c 1x2xCPU --margin 0 --json
none_faster 0 || fail "--margin 0: an alternative is faster than $(number seconds)"

# Tighter memory is obeyed, or refused with a reason. In the short version, two devices will do.
tight=1x4xV100
nightly || tight=1x2xV100
expect 0 plan "$step" -c $tight -m 140K --json
[ "$(number memory)" -le 143360 ] || fail "the plan does not fit"
expect 1 plan "$step" -c $tight -m 1K $in_space
warns "no plan was found that fits in 1.00 KiB: a rank of the smallest that was found takes "
warns "with its peak at "

# That the plan can be written is tried before the search, which would find nothing here. What is there stays.
expect 1 plan "$step" -c 1x4xV100 -m 1K -o "$work/no/such/plan.json"
warns "plan.json: error: cannot write: No such file or directory"
mkdir "$work/folder"
echo old >"$work/folder/old.json"
expect 1 plan "$step" -c 1x4xV100 -m 1K -o "$work/folder"
warns "folder: error: cannot write: Is a directory"
expect 1 plan "$step" -c 1x4xV100 -m 1K --recipes $in_space -o "$work/folder/old.json"
warns "no plan was found"
expect 1 plan "$step" -c 1x4xV100 -m 1K --recipes $in_space -o "$work/folder/new.json"
[ "$(ls -A "$work/folder") $(cat "$work/folder/old.json")" = "old.json old" ] ||
    fail "a search that failed left $(ls -A "$work/folder")"

# What is read is not written over.
cp "$step" "$work/step.mlir"
"$SHEAF_BIN" cluster 1x4xCPU --json >"$work/cluster.json"
expect 2 plan "$work/step.mlir" -c 1x4xCPU -o "$work/step.mlir"
warns "step.mlir: error: is read, so it cannot be the output as well"
expect 2 plan "$work/step.mlir" -c "$work/cluster.json" -o "$work/folder/../cluster.json"
expect 2 pin "$work/step.mlir" -r dp -n 2 -o "$work/step.mlir"
cmp -s "$step" "$work/step.mlir" || fail "the step was written over"

# A plan elsewhere: its step is not there, and its cluster may be too small for it.
expect 0 plan "$step" -c 1x4xCPU --recipes -o "$work/here.json"
sed 's/"memory": [0-9.e+]*/"memory": 60000/' "$work/cluster.json" >"$work/small.json"
expect 0 explain "$work/here.json" -c "$work/small.json"
says "it does not fit: a device of this cluster has 58.6 KiB"
expect 0 explain "$work/here.json" -c "$work/small.json" --json
says '"fits": false'
sed -E 's/"(path|absolute)": "[^"]*"/"\1": "gone.mlir"/' "$work/here.json" >"$work/there.json"
expect 1 explain "$work/there.json"
warns "gone.mlir: error: cannot open"
warns "--step names where it is now"

expect 1 plan "$step" -c 1x4xV100 -m 1 --recipes $in_space
warns "no plan was found that fits in 1 B: "
# A size has a unit in either case, and perhaps a point.
for size in 7864320k 7864320K 7680M 7.5G; do
    expect 0 plan "$step" -c 1x4xV100 -m "$size" --recipes --json
    [ "$(number memory_limit)" = 8053063680 ] || fail "$size is $(number memory_limit)"
done

large=$SHEAF_SOURCE/test/data/plan/gpt-batch.stablehlo.mlir.xz
if "$bin" version | grep '^lzma: in' >/dev/null && nightly; then
    # What would make it fit is so: on as many devices a plan is found. It is said to machines as well.
    expect 1 plan "$large" -c 1x8xV100 -m 540M --json $in_space
    warns "no plan was found that fits in 540 MiB"
    warns "are activations"
    warns "with a batch of 32 instead of 64"
    warns "with recomputed activations"
    devices=$(sed -n 's/.*it would fit on \([0-9]*\) devices.*/\1/p' "$work/err")
    [ -n "$devices" ] || fail "no number of devices"
    [ "$(number memory_limit)" = 566231040 ] || fail "the limit is $(number memory_limit)"
    [ "$(number memory)" -gt 566231040 ] || fail "the least is $(number memory)"
    says '"fits": false'
    says_like '"scope": "'
    for by in '"devices"' '"batch"' '"recomputation"'; do says "\"by\": $by"; done
    says "\"devices\": $devices,"
    says '"whole_batch": 64'
    python=$(command -v python3) && { "$python" -m json.tool <"$work/out" >/dev/null || fail "no JSON"; }
    expect 0 plan "$large" -c "$((devices / 8))x8xV100" -m 540M $in_space

    # A plan is not slower with more memory, nor refused with as much as a refusal says that one takes.
    before=0
    for memory in 850M 780M; do
        expect 0 plan "$large" -c 1x8xV100 -O2 -m "$memory" --json $in_space
        awk -v a="$before" -v b="$(number seconds)" 'BEGIN { exit !(a <= b) }' ||
            fail "more memory than $memory is slower: $before s, and $(number seconds) s"
        before=$(number seconds)
    done
    expect 1 plan "$large" -c 1x8xV100 -O2 -m 400M $in_space
    warns "are activations"
    silent out
    least=$(sed -n 's/.*the smallest that was found takes \([0-9]*\)[.0-9]* MiB.*/\1/p' "$work/err")
    expect 0 plan "$large" -c 1x8xV100 -O2 -m "$((least + 1))M" $in_space
    # With time it fits in less.
    expect 0 plan "$large" -c 1x8xV100 -O2 -m 400M
    says_like "^  (recompute|micro-batches|shards) "
fi

# The user's mesh and pins are kept.
expect 0 plan "$step" -c 1x4xV100 -M data=2,model=2 -P 'batch/*=S(0)@data' \
    -P 'layer_*/mlp/up/kernel=S(1)@model' -o "$work/hand.json"
says_like "data=2,model=2"
grep -qF '"params/layer_1/mlp/up/kernel": "[R, S(1)]"' "$work/hand.json" || fail "up/kernel"
grep -qF '"batch/ids": "[S(0), R]"' "$work/hand.json" || fail "batch/ids"
grep -qF '"layer_*/mlp/up/kernel=S(1)@model"' "$work/hand.json" || fail "the plan lacks its pins"
expect 0 verify "$step" --plan "$work/hand.json" --steps 1
expect 0 plan "$step" -c 1x4xV100 --recipes --compare
says_like "recipe +[a-z0-9]+$"
# Each recipe, and what the search made, once on a mesh.
cp "$work/compared" "$work/out"
twice=$(sed -n '/^candidates considered/,/^$/s/^  \([^ ]*\) *\([^ ]*=[^ ]*\) .*/\1 \2/p' "$work/out" | tee "$work/rows" | sort | uniq -d)
[ -z "$twice" ] || fail "two rows of $twice"
[ "$(grep -cE '^search unused[0-9]*=[0-9]+(,unused[0-9]*=[0-9]+|,[a-z]+=1)*$' "$work/rows")" -le 1 ] ||
    fail "several rows of a search that splits nothing"
[ "$(wc -l <"$work/rows")" -ge 10 ] || fail "few rows"
expect 0 plan "$step" -c 1x4xV100 --seconds 0.001
expect 0 plan "$step" -c 1x2xV100 -O2 --margin 2.5 --json
[ "$(number margin)" = 0.025 ] || fail "the margin is $(number margin)"
expect 0 plan "$step" -c 1x1xV100
says_like "1 ranks"

# Explain: the plan knows its step and its cluster.
expect 0 explain "$work/plan.json"
says_like "^memory of a rank at its peak"
says_like "^step [0-9.]+ [mu]?s, memory"
expect 0 plan "$step" -c 1x4xV100 --stages 1 -o "$work/flat.json"
expect 0 explain "$work/flat.json" 'layer_0/mlp/up/kernel'
says_like "params/layer_0/mlp/up/kernel +param"
says_like "grad/layer_0/mlp/up/kernel"
says_like "other layouts of it"
expect 0 explain "$work/plan.json" 'layer_1/attn/o*' --all
# A scope: what is computed in it, forward and backward, with its parameters, and what else could be done.
expect 0 explain "$work/hand.json" layer_0/mlp
for line in 'params/layer_0/mlp/up/kernel +param +1 ' 'layer_0/mlp +tanh +forward +1 ' \
    'layer_0/mlp/up +dot_general +backward +1 ' 'grad/layer_0/mlp/down/kernel ' \
    'at its peak a rank holds [0-9.]+ KiB, of these [0-9.]+ KiB: at ' \
    'params/layer_0/mlp/up/kernel +all_gather +model +forward' '^other layouts of it' \
    'layer_0/mlp/up +dot_general +forward +\[.*%'; do
    says_like "$line"
done
expect 0 explain "$work/hand.json" grad/layer_0/mlp/up/kernel
says_like '^  grad/layer_0/mlp/up/kernel +transpose +backward +\[.*%'
# The fastest of the others comes first.
awk '/^other layouts/ { on = 1 } on && /%/ { sub(/%/, "", $(NF - 2)); if (n++ && $(NF - 2) + 0 < last) exit 1
    last = $(NF - 2) + 0 }' "$work/out" || fail "the second best is not the first"
expect 0 explain "$work/hand.json" layer_0/mlp/down/kernel --json
for key in tensors collectives other_layouts at_peak; do says "\"$key\": "; done
expect 0 explain "$work/plan.json" --json
says_like '"compute": '
# On another cluster than it was made for, which is said.
grep -q "made for" "$work/out" && fail "made for another cluster"
expect 0 explain "$work/plan.json" --step "$step" --cluster 2x2xV100
says_like "^  made for 1x4xV100, another cluster"
expect 0 explain "$work/plan.json" -c 2x2xV100 --json
says '"made_for": "1x4xV100"'
expect 0 explain "$work/plan.json" layer_0/norm1 -c 2x2xV100
says "on 2x2xV100; the plan was made for another cluster, 1x4xV100"
expect 0 explain "$work/plan.json" layer_0/norm1 -c 2x2xV100 --json
says '"made_for": "1x4xV100"'
expect 0 explain "$work/plan.json" --json
grep -q "made_for" "$work/out" && fail "made for another cluster"
expect 2 explain "$work/plan.json" --cluster 1x8xV100
warns "the plan is for 4 ranks, the cluster has 8"
expect 2 explain "$work/plan.json" 'no/such/thing'
warns "matches no argument, gradient or scope"
"$bin" pin "$step" -r dp -n 4 -o "$work/dp.json" >/dev/null
expect 0 explain "$work/dp.json"
warns "the plan was made for no cluster and is simulated on 1x4xCPU; --cluster names another"
says_like "^  cluster +1x4xCPU"
expect 0 explain "$work/dp.json" --step "$step" --cluster 1x4xV100
expect 1 explain "$step"

# What is no plan, one of another step, one that does not compute the step, and one whose numbers cannot be.
echo '{}' >"$work/no.json"
sed '0,/\("dot_general", .*\], \)\["[^"]*"\]/s//\1["[S(1), S(0)]"]/' "$work/hand.json" >"$work/wrong.json"
cmp -s "$work/hand.json" "$work/wrong.json" && fail "wrong.json is not wrong"
sed 's/"seconds": [0-9.e-]*/"seconds": -1.0/' "$work/plan.json" >"$work/silly.json"
for command in explain "diff $work/dp.json"; do
    for options in "" "--step $step"; do
        expect 1 $command "$work/no.json" $options
        warns "no.json: error: this is no plan"
        expect 1 $command "$work/wrong.json" $options
        warns "wrong.json: error: this plan does not compute the step"
        warns "dot_general"
        expect 1 $command "$work/silly.json" $options
        warns '"predicted" has no number "seconds" that is 0 or more'
        silent out
    done
    expect 1 $command "$work/plan.json" --step "$SHEAF_SOURCE/examples/check.mlir"
    warns "the plan is for another step"
    silent out
done

# Diff.
expect 0 diff "$work/dp.json" "$work/hand.json"
says_like "^  mesh +data=4 +data=2,model=2"
says_like "params/layer_\*/mlp/up/kernel +2 +replicated +\[R, S\(1\)\]"
expect 0 diff "$work/hand.json" "$work/hand.json"
says_like "^  none"
expect 0 diff "$work/dp.json" "$work/hand.json" --all
says_like "params/layer_1/mlp/up/kernel +1 "
expect 0 diff "$work/dp.json" "$work/hand.json" --json
says "\"name\": \"$work/hand.json\""
grep -A1 '"name": "params/layer_1/mlp/up/kernel"' "$work/out" | grep -qF '"layouts": ["replicated", "[R, S(1)]"]' ||
    fail "no layouts of up/kernel"
says_like '"op": "tanh"'
[ "$(grep -c '"seconds": ' "$work/out")" = 1 ] || fail "pins expect nothing, a search does"
expect 0 diff "$work/hand.json" "$work/hand.json" --json
says '"arguments": []'
says '"nodes": []'
expect 0 diff "$work/dp.json" "$work/dp.json" --step "$step"
expect 0 diff "$work/dp.json" "$work/dp.json"
expect 1 diff "$work/dp.json" "$step"
expect 2 diff "$work/dp.json"
warns "OTHER is missing"
expect 2 diff "$work/dp.json" "$work/hand.json" x

# Misuse.
expect 2 plan "$step"
warns "give a --cluster"
expect 2 plan
expect 2 plan "$step" -c 1x4xNoSuch
expect 2 plan "$step" -c 1x4xV100 -O 7
expect 2 plan "$step" -c 1x4xV100 --margin -1
expect 2 plan "$step" -c 1x4xV100 --mesh data=0
expect 2 plan "$step" -c 1x4xV100 -M data=3
warns "the mesh has 3 ranks and the cluster 4 devices"
expect 2 plan "$step" -c 1x4xV100 -M data=4 -P 'nothing=S(0)@data'
warns "matches no argument, gradient or scope"
warns "names are written as"
silent out
expect 1 plan "$work/no-such-step.mlir" -c 1x4xV100
silent out

[ "$failures" -eq 0 ] || { echo "$failures failed"; exit 1; }
