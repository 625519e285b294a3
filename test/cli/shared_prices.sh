#!/usr/bin/env bash
# Prices, estimates and programs of the tiny steps, looked for beside the source tree: test/search/price/price_test.c.
set -u
data=$SHEAF_SOURCE/../shared/data/jax/tiny.tar.xz
work=$SHEAF_BUILD/data/prices

if [ ! -r "$data" ]; then
    echo "not found: ../shared/data/jax/tiny.tar.xz"
    exit 77
fi
if ! command -v xz >/dev/null; then
    echo "xz is not installed"
    exit 77
fi
if [ ! -e "$SHEAF_BUILD/test/search_tests.c" ]; then
    echo "cmocka is not installed: tests written in C are not built"
    exit 77
fi
rm -rf "$work"
mkdir -p "$work"
tar -xJf "$data" -C "$work" || exit 1
mapfile -t steps < <(find "$work" -name '*.stablehlo.mlir' | sort)
# With sanitizers, one will do.
[ -z "${SHEAF_SANITIZE:-}" ] || steps=("${steps[0]}")
[ ${#steps[@]} -gt 0 ] || exit 1
exec "$SHEAF_BUILD/test/search_tests" price/price "${steps[@]}"
