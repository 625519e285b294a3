#!/usr/bin/env bash
# What `sheaf convert` writes, JAX takes: its parser accepts and verifies all the micro steps, and the
# small GPT, compiled and run by JAX from the converted text, gives the results that JAX gave for the
# original. SHEAF_PYTHON names a python that has jax; unless set, python3 is tried.
set -euo pipefail
cd "$SHEAF_SOURCE"

python=${SHEAF_PYTHON:-python3}
if ! command -v "$python" >/dev/null; then
    echo "$python is not installed"
    exit 77
fi
if ! "$python" -c 'import jax' 2>/dev/null; then
    echo "jax is not installed (for $python; SHEAF_PYTHON names another)"
    exit 77
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for file in examples/{gpt-micro.stablehlo.mlir,gpt-micro.hlo,check.mlir} test/data/complex/net.{stablehlo.mlir,hlo}; do
    "$SHEAF_BIN" convert "$file" -o "$work/$(basename "$file").mlir"
done
if "$SHEAF_BIN" version | grep '^lzma: in' >/dev/null; then
    for file in test/data/micro/*.{stablehlo.mlir,hlo}.xz; do
        "$SHEAF_BIN" convert "$file" -o "$work/$(basename "$file" .xz).mlir"
    done
fi
"$python" test/cli/jax_accepts.py parse "$work"/*.mlir
"$python" test/cli/jax_accepts.py run "$work/gpt-micro.hlo.mlir" examples/gpt-micro.io.safetensors
