#!/usr/bin/env bash
# sheaf plan --pin: what is forced or forbidden holds in every plan, with and without a mesh, and what cannot
# hold is refused with a reason.
set -u
. "$SHEAF_SOURCE/test/support/cli.sh"
step=$SHEAF_SOURCE/examples/gpt-micro.stablehlo.mlir
cluster=2x2xV100

# planned PIN...: a plan with these pins, in $work/p.json.
planned() {
    local pins=()
    for pin in "$@"; do pins+=(-P "$pin"); done
    expect 0 plan "$step" -c "$cluster" --stages 1 "${more[@]}" "${pins[@]}" -o "$work/p.json"
}

# layout NAME: how the argument stands; nothing where it is replicated.
layout() { sed -n "s|^    \"$1\": \"\(.*\)\",*\$|\1|p" "$work/p.json"; }

# place AXIS: the number of the axis in the mesh, from 1.
place() { sed -n '/"mesh"/,/}/p' "$work/p.json" | grep '": [0-9]' | grep -n "\"$1\":" | cut -d: -f1; }

# along AXIS NAME: what stands in the layout for that axis. Periods are left out.
along() {
    layout "$2" | sed 's/S(\([0-9]\),[0-9]*)/S(\1)/g; s/[][ ]//g' | cut -d, -f"$(place "$1")"
}

# In the short version, one way to search will do.
ways=("" "--recipes" "-O2" "-M data=2,model=2")
nightly || ways=("-M data=2,model=2")
for options in "${ways[@]}"; do
    read -ra more <<<"$options"

    # Whole along every axis.
    planned 'batch/*=R@*'
    [ -z "$(layout batch/ids)$(layout batch/labels)" ] || fail "$options: the batch is split"
    planned '/params/*=R@*'
    [ -z "$(layout 'params/.*')" ] || fail "$options: a parameter is split"

    # Along some axis, and along no other dimension.
    planned 'mlp/up/kernel=S(0)@*' 'wte/embedding=S(1)@*'
    for name in params opt/0/mu/params; do
        for layer in 0 1; do
            [[ $(layout "$name/layer_$layer/mlp/up/kernel") =~ ^[^1]*S\(0[^1]*$ ]] ||
                fail "$options: $name/layer_$layer/mlp/up/kernel is $(layout "$name/layer_$layer/mlp/up/kernel")"
        done
    done
    [[ $(layout params/wte/embedding) == *S\(1* ]] || fail "$options: wte/embedding"

    # Forbidden, on arguments and on what is made.
    planned 'batch/*=!S(0)@*'
    [[ $(layout batch/ids) != *S\(0* ]] || fail "$options: batch/ids is split along 0"
    planned 'layer_*/attn*=R@*'
    grep -E '"layer_[01]/attn[^"]*", \[.*S\(.*\], \[.*S\(' "$work/p.json" &&
        fail "$options: something is split in attention"

    # Axes by name: the mesh has them.
    planned 'batch/*=S(0)@data' 'mlp/up/kernel=S(1)@model' 'mlp/down/kernel=!S(1)@*'
    [ "$(along data batch/ids)" = "S(0)" ] || fail "$options: batch/ids is $(layout batch/ids)"
    [ "$(along model params/layer_1/mlp/up/kernel)" = "S(1)" ] || fail "$options: up/kernel"
    [[ $(layout params/layer_1/mlp/down/kernel) != *S\(1* ]] || fail "$options: down/kernel"
    grep -qF '"mlp/down/kernel=!S(1)@*"' "$work/p.json" || fail "$options: the plan lacks its pins"
done
more=()

# An axis of one's own; the plan runs.
planned 'mlp/up/kernel=S(1)@tp' 'wte/embedding=!S(0)@*'
[ "$(along tp params/layer_0/mlp/up/kernel)" = "S(1)" ] || fail "axis tp"
expect 0 verify "$step" --plan "$work/p.json" --steps 1
expect 0 explain "$work/p.json" 'wte/embedding'
says_like 'wte/embedding=!S\(0\)@\*'
expect 0 train "$step" --plan "$work/p.json" --steps 1 --data synthetic

# Exceptions come first.
planned '/params/layer_0/mlp/up/kernel=R@*' '/params/*/mlp/up/kernel=S(1)@*'
[ -z "$(layout params/layer_0/mlp/up/kernel)" ] || fail "the exception"
[ -n "$(layout params/layer_1/mlp/up/kernel)" ] || fail "the rule"

# The same plan from one thread and from several.
for threads in 1 4; do
    expect 0 plan "$step" -c "$cluster" -t "$threads" -P 'mlp/up/kernel=S(1)@*' -P 'batch/*=S(0)@data' \
        -o "$work/$threads.json"
done
cmp -s "$work/1.json" "$work/4.json" || fail "the plan depends on the number of threads"

# refused MESSAGE PIN...: what, where, and what to do.
refused() {
    local message=$1 pins=()
    shift
    for pin in "$@"; do pins+=(-P "$pin"); done
    expect 2 plan "$step" -c "$cluster" "${pins[@]}"
    warns "$message"
    silent out
}
refused 'matches no argument, gradient or scope' 'nothing=S(0)@*'
warns "names are written as"
refused 'there is no dimension 5 in a tensor of rank 2' 'mlp/up/kernel=S(5)@*'
refused 'there is no dimension 5 in a tensor of rank 2' 'mlp/up/kernel=S(5)@model'
refused 'contradicts pin "batch/ids=R@*"' 'batch/ids=R@*' 'batch/ids=S(0)@data'
refused 'no axis is left' 'batch/ids=S(0)@*' 'batch/ids=!S(0)@*'
refused 'more than three axes' 'a=R@a' 'a=R@b' 'a=R@c' 'a=R@d'
refused 'only splits can be forbidden' 'batch/ids=!R@data'
cluster=1x8xV100
refused 'does not go with the others' 'batch/ids=S(0)@a' 'batch/ids=S(0)@b' 'batch/ids=S(0)@c'
warns "so it is on a=2,b=2,c=2"
cluster=1x3xV100
refused 'dimension 0 of size 4 does not split into 3 equal parts' 'batch/ids=S(0)@data'
warns "so it is on data=3, and the pins hold on no other mesh of 3 devices either"
refused 'pins name 2 axes, and 3 devices cannot be cut into so many' 'batch/ids=R@a' 'batch/ids=R@b'

[ "$failures" -eq 0 ] || { echo "$failures failed"; exit 1; }
