#!/usr/bin/env bash
# sheaf eval and sheaf verify: the numbers are JAX's own; a step that was tampered with is found out.
set -u
. "$SHEAF_SOURCE/test/support/cli.sh"
bin=$SHEAF_BIN
examples=$SHEAF_SOURCE/examples
data=$SHEAF_SOURCE/test/data/micro

io=$examples/gpt-micro.io.safetensors
for step in "$examples/gpt-micro.stablehlo.mlir" "$examples/gpt-micro.hlo"; do
    expect 0 verify "$step" --against "$io"
    says "verify: passed, largest error"
    says "losses: 10 compared"
    says "(tolerance 0.0001)"
done
expect 0 verify "$examples/gpt-micro.hlo" --against "$io" --steps 1 --json
says '"passed": true'
says '"excused": 16'
says '"noisy_runs": 2'
[ "$(grep -c '"name"' "$work/out")" -eq 111 ] || fail "110 results and the worst"

# Without the sidecar, and without any names: state and moments are then found by order.
cp "$examples/gpt-micro.hlo" "$work/bare.hlo"
expect 0 verify "$work/bare.hlo" --against "$io" --steps 3
sed -E 's/ loc\("[^"]*"\)//g; s/ loc\(#?[a-z0-9]*\)//g; /^#loc/d; s/jax\.result_info = "[^"]*"//g' \
    "$examples/gpt-micro.stablehlo.mlir" >"$work/bare.mlir"
expect 0 verify "$work/bare.mlir" --against "$io" --steps 1

expect 0 verify "$examples/gpt-micro.hlo" --against "$io" --steps 0
if grep -q losses "$work/out"; then fail "losses of no steps"; fi

# Tolerances that nothing meets.
expect 1 verify "$examples/gpt-micro.hlo" --against "$io" --steps 1 --tolerance 1e-12
says "verify: FAILED"
warns "results differ"
expect 1 verify "$examples/gpt-micro.hlo" --against "$io" --loss-tolerance 1e-12
warns "the losses differ"

# Another learning rate, another epsilon of a norm, another scale of attention: all wrong.
tampered() {
    sed "s/$1/$2/" "$examples/gpt-micro.hlo" >"$work/tampered.hlo"
    if cmp -s "$examples/gpt-micro.hlo" "$work/tampered.hlo"; then
        fail "the step has no $1 to tamper with"
    fi
    expect 1 verify "$work/tampered.hlo" --against "$io" --sidecar "$examples/gpt-micro.json"
    says "verify: FAILED"
}
tampered 'constant(-0\.001)' 'constant(-0.00101)'
tampered 'constant(0\.9)' 'constant(0.91)'
tampered 'constant(0\.999)' 'constant(0.998)'
tampered 'constant(1e-06)' 'constant(1e-03)'

# Runs that change nothing agree, which is said; of a usual step it is not.
sed 's/constant(-0\.001)/constant(0)/' "$examples/gpt-micro.hlo" >"$work/still.hlo"
cp "$examples/gpt-micro.hlo" "$work/usual.hlo"
for name in still usual; do
    expect 0 pin "$work/$name.hlo" --sidecar "$examples/gpt-micro.json" -r dp -n 2 -o "$work/$name.plan"
    expect 0 verify --plan "$work/$name.plan" --against "$io" --steps 1
    case $name in still) warns "no parameter changes in the steps" ;; *) silent err ;; esac
done

# What does not fit.
expect 1 verify "$examples/gpt-micro.hlo" --against "$data/mlp-micro.io.safetensors"
warns "error:"
head -c 100000 "$io" >"$work/cut.safetensors"
expect 1 verify "$examples/gpt-micro.hlo" --against "$work/cut.safetensors"
warns "cut.safetensors"
expect 1 verify "$examples/gpt-micro.hlo" --against "$examples/gpt-micro.json"
warns "is this a safetensors file"

# eval: results are those that verify accepts; inputs by number.
expect 1 eval "$examples/gpt-micro.hlo"
warns "the step needs inputs"
expect 0 eval "$examples/gpt-micro.hlo" --inputs "$io" --output "$work/out.safetensors"
expect 1 eval "$examples/gpt-micro.hlo" --inputs "$work/out.safetensors"
warns "there is neither in.0"
"$bin" eval "$examples/gpt-micro.hlo" --inputs "$io" --output - >"$work/out2.safetensors"
cmp "$work/out.safetensors" "$work/out2.safetensors" || fail "eval --output -"
expect 1 eval "$examples/gpt-micro.hlo" --inputs "$io" --memory 1K
warns "1024"
warns "--memory"

cat >"$work/check.mlir" <<'END'
func.func @main() {
  %a = stablehlo.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %b = stablehlo.add %a, %a : tensor<2xf32>
  %c = stablehlo.constant dense<[2.0, 4.0]> : tensor<2xf32>
  stablehlo.custom_call @check.expect_eq(%b, %c) {has_side_effect = true} : (tensor<2xf32>, tensor<2xf32>) -> ()
  stablehlo.custom_call @check.expect_close(%b, %c) {has_side_effect = true} : (tensor<2xf32>, tensor<2xf32>) -> ()
  return
}
END
expect 0 eval "$work/check.mlir"
says "2 checks passed"
sed -i 's/\[2.0, 4.0\]/[2.0, 5.0]/' "$work/check.mlir"
expect 1 eval "$work/check.mlir"
warns "error:"

cat >"$work/zeros.mlir" <<'END'
func.func @main(%a: tensor<3xf32>) -> tensor<3xf32> {
  %b = stablehlo.exponential %a : tensor<3xf32>
  return %b : tensor<3xf32>
}
END
expect 0 eval "$work/zeros.mlir" --output "$work/ones.safetensors"
[ "$(tail -c 12 "$work/ones.safetensors" | od -An -tx1 | tr -d ' ')" = 0000803f0000803f0000803f ] ||
    fail "exp(0) is not 1"
expect 1 eval "$work/zeros.mlir" --memory 8
warns "more than 8 B of memory"
warns "--memory"
expect 1 eval "$work/zeros.mlir" --memory 1
warns "more than 1 B of memory"

[ "$failures" -eq 0 ]
