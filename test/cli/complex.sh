#!/usr/bin/env bash
# A step of complex weights on complex data, with the numbers of JAX: read from both texts, verified on both
# engines, split, trained, saved and resumed; what is wrong in an imaginary part is found.
set -u
. "$SHEAF_SOURCE/test/support/cli.sh"
data=$SHEAF_SOURCE/test/data/complex
io=$data/net.io.safetensors
step=$data/net.stablehlo.mlir

for text in "$step" "$data/net.hlo"; do
    for engine in cpu oracle; do
        expect 0 verify "$text" --against "$io" --engine "$engine"
        says "verify: passed"
        says "losses: 4 compared"
    done
    expect 0 show "$text"
    grep -E '^ *hash' "$work/out" >>"$work/hashes"
    expect 0 convert "$text" -o "$work/again.mlir"
    expect 0 verify "$work/again.mlir" --against "$io" --steps 0
    expect 0 show "$work/again.mlir"
    grep -E '^ *hash' "$work/out" >>"$work/hashes"
done
[ "$(sort -u "$work/hashes" | wc -l)" -eq 1 ] || fail "the texts have several hashes"
expect 0 show "$step"
says "tensor<8x4xcomplex<f32>>"
says "parameters  64"

for ranks in 2 4; do
    for recipe in dp zero1 zero3 megatron; do
        expect 0 pin "$step" --recipe "$recipe" -n "$ranks" -o "$work/$recipe-$ranks.json"
        expect 0 verify "$step" --plan "$work/$recipe-$ranks.json" --against "$io" --check
        says "verify: passed"
    done
done

# Another momentum; a conjugate that keeps one sign.
sed 's/0\.9/0.8/' "$data/net.hlo" >"$work/tampered.hlo"
cmp -s "$data/net.hlo" "$work/tampered.hlo" && fail "nothing was changed"
expect 1 verify "$work/tampered.hlo" --against "$io"
warns "differ"
line=$(grep -nE ' = stablehlo\.negate .*tensor<8x4xf32>' "$step" | tail -1 | cut -d: -f1)
if [ -n "$line" ]; then
    sed -E "${line}s/stablehlo\.negate/stablehlo.abs/" "$step" >"$work/tampered.mlir"
    expect 1 verify "$work/tampered.mlir" --against "$io"
else
    fail "there is no conjugate in the step"
fi

# Training: from the same seed the same losses, whole or resumed on two ranks.
losses() { grep -oE 'loss [0-9.e+-]+' "$work/out" | tail -1; }
expect 0 train "$step" --data "$io" --init "$io" --steps 4 --threads 1
whole=$(losses)
expect 0 train "$step" --data "$io" --init "$io" --steps 2 --threads 1 --save "$work/run"
expect 0 train "$step" --plan "$work/dp-2.json" --data "$io" --steps 4 --save "$work/run" --resume
[ "$(losses)" = "$whole" ] || fail "resumed: $(losses), expected $whole"
expect 0 train "$step" --data synthetic --steps 2
says_like 'loss [0-9]'

# What complex numbers cannot do.
cat >"$work/order.mlir" <<'EOF'
func.func public @main(%a: tensor<2xcomplex<f32>>) -> tensor<2xi1> {
  %0 = stablehlo.compare LT, %a, %a : (tensor<2xcomplex<f32>>, tensor<2xcomplex<f32>>) -> tensor<2xi1>
  return %0 : tensor<2xi1>
}
EOF
expect 1 show "$work/order.mlir"
warns "complex numbers have no order"

[ $failures -eq 0 ] || exit 1
echo "complex steps: read, verified, split, trained"
