#!/usr/bin/env bash
# Plans that people found by hand, found by the search for models of real size: GPTs that test/support/steps writes, and models
# of test/data/plan.
set -u
. "$SHEAF_SOURCE/test/support/cli.sh"
data=$SHEAF_SOURCE/test/data/plan
if ! "$SHEAF_BIN" version | grep '^lzma: in' >/dev/null; then
    echo "lzma is not in this build, and steps are compressed with it"
    exit 77
fi
if [ -n "${SHEAF_SANITIZE:-}" ]; then
    echo "too slow with sanitizers"
    exit 77
fi

# gpt NAME LAYERS WIDTH HEADS BATCH LENGTH VOCABULARY: a step, $work/NAME.stablehlo.mlir.
gpt() { "$SHEAF_BUILD/test/gpt_step" "${@:2}" >"$work/$1.stablehlo.mlir" || fail "no step $1"; }
gpt micro 2 16 2 4 8 32
gpt gpt-350m 24 1024 16 8 1024 51200
gpt gpt-72l-h512 72 512 8 8 1024 51200

# What is planned is a step that trains: on the same batch its loss falls, on the oracle as on the engine.
expect 0 run "$work/micro.stablehlo.mlir" --steps 8 --check
awk '$1 == 1 { first = $3 } $1 == 8 { exit !($3 < first - 0.05) }' "$work/out" || fail "the loss does not fall"

# plan NAME CLUSTER [OPTION...]: the plan is in $work/plan.json, the summary in $work/out. No recipe that
# fits is faster.
plan() {
    local name=$1 cluster=$2 step
    shift 2
    step=$work/$name.stablehlo.mlir
    [ -e "$step" ] || step=$data/$name.stablehlo.mlir.xz
    if ! "$SHEAF_BIN" plan "$step" -c "$cluster" -O2 "$@" --json -o "$work/plan.json" >"$work/out" 2>"$work/err"; then
        fail "$name on $cluster: $(head -1 "$work/err")"
        return 1
    fi
    awk '/^  "seconds"/ { ours = $2 + 0 }
         /^      "name"/ { known = $2 !~ /search/ }
         /^      "seconds"/ { seconds = $2 + 0 }
         /^      "fits": true/ && known && seconds < ours * (1 - 1e-9) { exit 1 }' "$work/out" ||
        fail "$name on $cluster: a recipe is faster"
}

# split PATTERN: how many arguments whose names match are not whole.
split() { sed -n '/"arguments": {/,/^  }/p' "$work/plan.json" | grep -cE "^    \"$1"; }

# of KEY: a number of the summary; moved KIND PHASE: tensors that such collectives move.
of() { sed -n "s/^ *\"$1\": \([0-9.e+-]*\),*\$/\1/p" "$work/out" | head -1; }
moved() {
    awk -v kind="\"$1\"," -v phase="\"$2\"," '
        /"kind":/ { this = $2 }
        /"phase":/ { at = $2 }
        /"tensors":/ && this == kind && at == phase { sum += $2 }
        END { print sum + 0 }' "$work/out"
}
less() { awk -v a="$1" -v b="$2" 'BEGIN { exit !(a < b) }'; }

# The batch is split, and of activations nothing is sent but the loss: parameters and state of the optimizer may be split between steps,
# and all that are split are gathered before they are used.
data_parallel() {
    local parameters
    parameters=$(split 'params/')
    [ "$(split 'batch/[a-z]+": "\[S\(0\)\]"')" -eq 2 ] || fail "$1: the batch is whole"
    [ "$(split '')" -eq $((2 + parameters + $(split 'opt/'))) ] || fail "$1: more than parameters and state is split"
    [ "$(moved all_gather forward)" -eq "$parameters" ] || fail "$1: not what is split is gathered"
    [ "$(moved all_reduce forward)" -eq 1 ] || fail "$1: more than the loss is reduced"
    [ "$(moved all_to_all forward)" -eq 0 ] || fail "$1: activations are sent"
}

# state_is_large NAME: of parameters and state only kernels and embeddings are split, but for one in five: for a
# bias it makes no difference.
state_is_large() {
    local all large
    all=$(split '(params|opt)/') large=$(split '(params|opt)/.*/(kernel|embedding)"')
    [ $((5 * (all - large))) -le "$all" ] || fail "$1: $((all - large)) small tensors are split of $all"
}

# GPT with memory to spare is data parallel. On two devices nothing but the embedding is split; on more, where all would update what
# one could, no less state of the optimizer is split (Rhino, section 7.3).
memory=1e18
for devices in 2 4 8; do
    plan gpt-350m "1x${devices}xV100" || continue
    data_parallel "gpt-350m on $devices"
    state_is_large "gpt-350m on $devices"
    less "$(of memory)" "$memory" || fail "gpt-350m on $devices: a rank takes no less than before"
    memory=$(of memory)
    eval "on_$devices=$(split 'opt/')"
done
all=$(split '(params|opt)/')
[ "${on_2:-0}" -le 2 ] || fail "gpt-350m on 2: $on_2 tensors of state are split"
[ "${on_4:-0}" -ge "${on_2:-0}" ] && [ "${on_8:-0}" -ge "${on_4:-0}" ] ||
    fail "gpt-350m: ${on_2:-} ${on_4:-} ${on_8:-} tensors of state are split on 2, 4, 8"

# With less memory it takes longer, never less time; no less is split, the large tensors alone; and it fits.
seconds=0
for percent in 82 76 71; do
    limit=$(awk -v m="$memory" -v p=$percent 'BEGIN { printf "%d", m * p / 100 / 1048576 }')
    plan gpt-350m 1x8xV100 -m "${limit}M" || continue
    state_is_large "gpt-350m in $limit MiB"
    now=$(split '(params|opt)/')
    [ "$now" -ge "$all" ] || fail "gpt-350m in $limit MiB: $now tensors are split, $all without a limit"
    less "$(of seconds)" "$seconds" && fail "gpt-350m in $limit MiB: faster than with more memory"
    [ "$(of memory)" -le $((limit << 20)) ] || fail "gpt-350m in $limit MiB: it does not fit"
    seconds=$(awk -v s="$(of seconds)" 'BEGIN { print s / 1.012 }')
done

# Experts: their weights are split and no others, tokens travel to them and back, in both directions.
if plan moe 1x8xV100; then
    [ "$(split 'params/layer_[0-9]+/moe/(up|down)": "\[S\(0\)\]"')" -eq 4 ] || fail "moe: experts are whole"
    [ "$(split 'params/')" -eq 4 ] || fail "moe: more than experts is split"
    [ "$(split 'batch/[a-z]+": "\[S\(0\)\]"')" -eq 2 ] || fail "moe: the batch is whole"
    [ "$(moved all_to_all forward)" -eq 4 ] || fail "moe: $(moved all_to_all forward) all-to-all"
    [ "$(moved all_to_all backward)" -eq 4 ] || fail "moe: $(moved all_to_all backward) all-to-all back"
    [ "$(moved all_gather forward)" -eq 0 ] || fail "moe: gathers"
fi

# A million classes: the classifier and its state are split by classes, which are never gathered; the convolutions split the images, and
# have whole kernels, but perhaps the last, of 2 x 2 pixels.
if plan classes 1x8xV100; then
    [ "$(split 'params/head/kernel": "\[S\(1\)\]"')" -eq 1 ] || fail "classes: the head is whole"
    [ "$(split 'opt_state/.*/head/kernel": "\[S\(1\)\]"')" -eq 2 ] || fail "classes: state of the head"
    [ "$(grep '"convolution"' "$work/plan.json" | head -4 | grep -cF '["[S(0)]", "[R]"], ["[S(0)]"]')" -eq 4 ] ||
        fail "classes: convolutions are split"
    [ "$(split 'batch/x": "\[S\(0\)\]"')" -eq 1 ] || fail "classes: the images are whole"
    less "$(of traffic)" 5e8 || fail "classes: $(of traffic) bytes are sent"
fi

# More effort never ends in a slower plan: estimates of plans with three axes are further off than those of two.
plan gpt-72l-h512 4x8xV100
quick=$(of seconds)
plan gpt-72l-h512 4x8xV100 -O3
less "$quick" "$(of seconds)" && fail "gpt-72l-h512 takes $quick s by -O2, and $(of seconds) by -O3"

[ "$failures" -eq 0 ] || { echo "$failures failed"; exit 1; }
