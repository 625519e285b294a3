#!/usr/bin/env bash
# What plan prints can be given to pin: every name of a recipe, on the mesh beside it; names that people know; and what
# was meant by names that are nearly right.
set -u
. "$SHEAF_SOURCE/test/support/cli.sh"
step=$SHEAF_SOURCE/examples/gpt-micro.stablehlo.mlir

steps=("$step")
if nightly && "$SHEAF_BIN" version | grep '^lzma: in' >/dev/null; then
    steps+=("$SHEAF_SOURCE"/test/data/micro/{moe,mlp,bert,t5}-micro.stablehlo.mlir.xz)
fi
names=
for one in "${steps[@]}"; do
    for options in "-c 4xV100" "-c 2x4xCPU -m 600K"; do
        # shellcheck disable=SC2086
        "$SHEAF_BIN" plan "$one" $options -O2 --recipes --compare >"$work/plan" 2>"$work/err" || continue
        rows=$(sed -n '/^candidates considered/,/^$/s/^  \([a-z0-9+]*\)  *\([a-z0-9=,]*=[0-9]*\) .*/\1 \2/p' "$work/plan")
        [ -n "$rows" ] || fail "$one $options: no recipes"
        while read -r name mesh; do
            [ "$name" = what ] && continue
            expect 0 pin "$one" -r "$name" -M "$mesh" -o "$work/pinned.json"
            grep -q "\"recipe\": \"$name\"" "$work/pinned.json" || fail "$name is not what pin calls it"
            names="$names $name"
        done <<<"$rows"
    done
done
for name in dp zero3 megatron 2d 2d+zero2; do
    grep -q " $name\b" <<<"$names " || fail "plan printed no $name"
done
expect 2 pin "$step" -r search -n 2
warns "a plan of a search"

# Names that are known from elsewhere.
for pair in "ddp dp" "fsdp zero3" "tp megatron" "sp sequence"; do
    read -r alias name <<<"$pair"
    "$SHEAF_BIN" pin "$step" -r "$name" -n 2 -o "$work/name.json" >/dev/null
    expect 0 pin "$step" -r "$alias" -n 2 -o "$work/alias.json"
    cmp "$work/name.json" "$work/alias.json" || fail "$alias is not $name"
done
expect 1 pin "$step" -r ep -n 2
warns "recipe expert does not apply"
"$SHEAF_BIN" cluster 1x8xH100 | sed 's/1x8xH100/8xH100/' >"$work/one"
expect 0 cluster 8xH100
cmp -s "$work/one" "$work/out" || fail "8xH100 is not 1x8xH100"
expect 0 cluster 8xH100@400G

# What was meant.
while IFS='|' read -r arguments meant; do
    # shellcheck disable=SC2086
    expect 2 $arguments
    warns "did you mean \"$meant\"?"
done <<END
pin $step -r megatorn -n 2|megatron
pin $step -r Zero1 -n 2|zero1
pin $step -r fspd -n 2|fsdp
pin $step -r dp+zero11 -n 2|zero1
pin $step -M data=2 -P ids=S(0)@dat|data
pin $step -M data=2 -P mlp/upp/kernel=S(0)@data|mlp/up/kernel
pin $step -M data=2 -P batch/idss=S(0)@data|batch/ids
pin $step -M data=2 -P layr_0/*=S(0)@data|layer_0
plan $step -c 2x8xH10|H100
plan $step -c 8xv10o|V100
plan $step -c slappo|slapo
plan $step -c 4xV100 -P bach/*=S(0)@data|batch
END
"$SHEAF_BIN" pin "$step" -r dp -n 2 -o "$work/dp.json" >/dev/null
expect 2 explain "$work/dp.json" layer_0/mpl
warns 'did you mean "layer_0/mlp"?'
for arguments in "pin $step -r xyzzy -n 2" "plan $step -c xyzzy" "pin $step -M data=2 -P xyzzyx=S(0)@data"; do
    # shellcheck disable=SC2086
    expect 2 $arguments
    grep -q "did you mean" "$work/err" && fail "a suggestion for nonsense"
done

# Idle axes are explained where they are printed; little is not 0.
expect 0 plan "$step" -c 2x4xV100 -O2 --stages 1
says_like "^  mesh +unused="
says "replicated over this axis"
expect 1 run "$step" -m 50K
warns "and there are 50.0 KiB"

[ "$failures" -eq 0 ]
