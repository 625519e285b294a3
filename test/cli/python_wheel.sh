#!/usr/bin/env bash
# `make wheel`, in an environment that has nothing but what the wheel brings, without a compiler; for each Python that is here.
set -euo pipefail

python=${SHEAF_PYTHON:-python3}
if [ -n "${SHEAF_SANITIZE:-}" ]; then
    echo "a wheel has no sanitizers"
    exit 77
fi
if ! "$python" -m pip --version >/dev/null 2>&1; then
    echo "there is no pip (for $python; SHEAF_PYTHON names another)"
    exit 77
fi
cd "$SHEAF_SOURCE"
scripts/wheel
wheel=$(echo build/wheel/dist/*.whl)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for version in "" .10 .11 .12 .13 .13t .14 .14t; do
    other=$(command -v "python3$version" || true)
    if [ -z "$other" ] || ! "$other" -c 'import sys, venv; sys.exit(sys.version_info < (3, 10))' 2>/dev/null; then
        continue
    fi
    "$other" -m venv "$work/$version"
    if ! "$work/$version/bin/pip" install --quiet "$wheel"; then
        echo "FAILED: python3$version does not install $wheel"
        exit 1
    fi
    test/python/page "$work/$version/bin/python"
    "$work/$version/bin/sheaf" version >"$work/version"
    for feature in zlib lzma lua cuda; do
        grep -q "^$feature: in" "$work/version" || { echo "FAILED: the wheel is without $feature"; exit 1; }
    done
    echo "python3$version: ok"
done
