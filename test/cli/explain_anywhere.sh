#!/usr/bin/env bash
# A plan file leads to its step and its cluster: from any directory, moved with them or alone, by pin and by plan.
set -u
. "$SHEAF_SOURCE/test/support/cli.sh"
examples=$SHEAF_SOURCE/examples

# make FOLDER: a step in it, and plans below it, of all who write them; made in the folder.
make() {
    mkdir -p "$1/plans"
    cp "$examples/gpt-micro.hlo" "$examples/gpt-micro.json" "$1"
    (
        cd "$1" || exit 1
        "$SHEAF_BIN" cluster 1x2xCPU --json >machine.json
        "$SHEAF_BIN" pin gpt-micro.hlo -r dp -n 2 -o plans/pin.json
        "$SHEAF_BIN" pin gpt-micro.hlo -M data=2 -P 'ids=S(0)@data' -o - >plans/piped.json
        "$SHEAF_BIN" plan gpt-micro.hlo -c 1x2xCPU -O2 --stages 1 -o plans/plan.json
        "$SHEAF_BIN" plan gpt-micro.hlo -c machine.json -O2 --stages 1 -o plans/file.json
    ) >/dev/null 2>&1
}

# explained FOLDER: all of its plans are, from three places.
explained() {
    for name in pin plan file; do
        for from in / "$1" "$1/plans"; do
            cd "$from" || exit 1
            expect 0 explain "$1/plans/$name.json"
            says_like "^  mesh +data=2, 2 ranks"
            expect 0 diff "$1/plans/$name.json" "$1/plans/pin.json"
        done
        cd "$1/plans" || exit 1
        expect 0 explain "$name.json"
    done
}

make "$work/a"
explained "$work/a"
cd / && expect 0 explain "$work/a/plans/piped.json"

# Made in two places, they differ in where the step is and in nothing else.
make "$work/elsewhere/b"
for name in pin plan; do
    diff "$work/a/plans/$name.json" "$work/elsewhere/b/plans/$name.json" >"$work/out"
    grep '^[<>]' "$work/out" | grep -qv '"absolute": ' && fail "$name: not the path alone differs"
done

# Moved together; and the plan alone.
mv "$work/elsewhere/b" "$work/moved"
explained "$work/moved"
mkdir "$work/alone"
cp "$work/a/plans/"*.json "$work/alone"
for name in pin plan file; do
    cd / && expect 0 explain "$work/alone/$name.json"
done

# Something else is where the step was beside the plan: the unchanged file is taken.
cp "$examples/check.mlir" "$work/gpt-micro.hlo"
expect 0 explain "$work/alone/pin.json"
# The same step in another text is as good.
sed '1i // a comment' "$examples/gpt-micro.stablehlo.mlir" >"$work/moved/gpt-micro.hlo"
expect 0 explain "$work/moved/plans/pin.json"
# Another is not.
cp "$examples/check.mlir" "$work/moved/gpt-micro.hlo"
expect 1 explain "$work/moved/plans/pin.json"
warns "the plan is for another step"
warns "moved/gpt-micro.hlo: the plan was made from another, or it was changed"
silent out

# Nowhere: the message says where it was looked for, and what to do.
rm "$work/moved/gpt-micro.hlo"
expect 1 explain "$work/moved/plans/plan.json"
warns "elsewhere/b/gpt-micro.hlo: error: cannot open"
warns "STEP or --step names where it is now"
expect 0 explain "$work/moved/plans/plan.json" --step "$examples/gpt-micro.hlo"
"$SHEAF_BIN" pin - -r dp -n 2 -o "$work/stdin.json" <"$examples/gpt-micro.hlo" >/dev/null 2>&1
expect 2 explain "$work/stdin.json"
warns "the plan does not say where its step is"

# A step is read as it was when the plan was made, by all who take plans, and need not be named to them.
cp "$SHEAF_SOURCE/test/data/loops/"*.xz "$work/a"
cd "$work/a" || exit 1
if "$SHEAF_BIN" version --json | grep -q '"lzma": true'; then
    step=$(ls -- *.stablehlo.mlir.xz | head -1)
    for how in "--unroll 0" "--unroll 3" "--sidecar none" "--assume-trip-count 7 --unroll 0"; do
        # shellcheck disable=SC2086
        expect 0 pin "$step" -r dp -n 2 $how -o plans/read.json
        cd / || exit 1
        for command in explain "diff $work/a/plans/read.json" "verify --steps 1 --plan" "run --steps 1 --plan"; do
            # shellcheck disable=SC2086
            expect 0 $command "$work/a/plans/read.json"
        done
        cd "$work/a" || exit 1
        expect 0 verify "$step" --plan plans/read.json --steps 1
    done
    # But what is said to the command comes first.
    expect 1 explain plans/read.json --unroll 100000
    warns "the plan is for another step"
fi
expect 0 pin gpt-micro.hlo -r dp -n 2 --sidecar gpt-micro.json -o plans/read.json
grep -q '"reading"' plans/read.json || fail "the sidecar is not told"
expect 0 verify --plan plans/read.json --steps 1
expect 0 pin gpt-micro.hlo -r dp -n 2 --state none -o plans/read.json
expect 0 explain plans/read.json
expect 1 train --plan plans/read.json --steps 1
expect 2 run
warns "STEP is missing"

# Plans of before, which had the path as it was given, or none.
cd "$work/a" || exit 1
sed '/"source": {/,/},/d' plans/pin.json >old-pin.json
expect 2 explain old-pin.json
expect 0 explain old-pin.json --step gpt-micro.hlo
cd "$work/a" || exit 1
sed '/"source": {/,/},/d; s/"predicted": {/&\n    "step": "gpt-micro.hlo",/' plans/plan.json >old.json
expect 0 explain old.json
cd / && expect 0 explain "$work/a/old.json"
# A file is not believed: a pin that its layouts do not keep is warned of, and the bound is found again.
cd "$work/a" || exit 1
"$SHEAF_BIN" pin gpt-micro.hlo -r dp -n 2 -P 'mlp/up/kernel=S(1)@data' -o pinned.json >/dev/null 2>&1
expect 0 explain "$work/a/pinned.json"
grep -q "do not keep" "$work/err" && fail "a pin that is kept is not"
sed 's|\("params/layer_0/mlp/up/kernel": \)"\[S(1)\]"|\1"[S(0)]"|' "$work/a/pinned.json" >"$work/a/odd.json"
expect 0 explain "$work/a/odd.json"
warns 'the layouts of this plan do not keep its pin "mlp/up/kernel=S(1)@data"'
"$SHEAF_BIN" explain "$work/a/plans/plan.json" >"$work/believed" 2>/dev/null
sed 's/"bound": [0-9.e-]*/"bound": 0.0/' "$work/a/plans/plan.json" >"$work/a/odd.json"
expect 0 explain "$work/a/odd.json"
cmp -s "$work/believed" "$work/out" || fail "the bound of the file is believed"

# And what is written there by hand.
sed 's/"absolute": .*/"absolute": 3,/' "$work/a/plans/pin.json" >"$work/odd.json"
expect 2 explain "$work/odd.json"
sed "s|\"absolute\": .*|\"absolute\": \"$(printf 'x%.0s' {1..5000})\",|" "$work/a/plans/pin.json" >"$work/odd.json"
expect 1 explain "$work/odd.json"
warns "a path in this plan is longer than 4095 bytes"

[ "$failures" -eq 0 ]
