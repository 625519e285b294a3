#!/usr/bin/env bash
# What examples/export.py writes of steps as people write them: roles by place, all of the state linked, the loss found
# among metrics, and the values those of JAX; unsplit and split. SHEAF_PYTHON names a python that has jax.
set -u
. "$SHEAF_SOURCE/test/support/cli.sh"
python=${SHEAF_PYTHON:-python3}
if ! command -v "$python" >/dev/null || ! "$python" -c 'import jax' 2>/dev/null; then
    echo "jax is not installed (for $python; SHEAF_PYTHON names another)"
    exit 77
fi
names=$("$python" "$SHEAF_SOURCE/test/cli/export.py" "$work" 2>"$work/err") || {
    cat "$work/err"
    exit 1
}
cat "$work/err"
cd "$work" || exit 1
for name in $names; do
    expect 0 show "$name.stablehlo.mlir"
    says_like "^  param +2 +640 .* sidecar"
    says_like "^  batch +2 "
    case $name in plain | losses) ;; *) says_like "^  key +1 " ;; esac
    case $name in plain) state=4 loss='result 4' ;; losses) state=4 loss="['d_loss']" ;; train-state) state=8 loss="['loss']" ;; *) state=5 loss="['loss']" ;; esac
    says "$state of them become arguments of the next step"
    grep '^  loss ' out | grep -qF "$loss" || fail "$name: not the loss"
    expect 0 verify "$name.stablehlo.mlir" --against "$name.io.safetensors"
    says "losses: 3 compared"
    expect 0 pin "$name.stablehlo.mlir" -r zero1 -n 2 -o plan.json
    expect 0 verify "$name.stablehlo.mlir" --plan plan.json --against "$name.io.safetensors"
done
for name in carried:3 fed:2 reported:2; do
    expect 0 show "${name%:*}.stablehlo.mlir" --strict
    says "${name#*:} of them become arguments of the next step"
done
expect 0 show shapes.stablehlo.mlir
says_like "^  param +2 +640 .* sidecar"
[ "$failures" -eq 0 ]
