#!/usr/bin/env bash
# The shared library exports the functions that the public headers declare, and nothing else.
set -euo pipefail

if [ -n "${SHEAF_SANITIZE:-}" ]; then
    echo "sanitizers add symbols of their own"
    exit 77
fi
library=$SHEAF_BUILD/libsheaf.so
if ! command -v nm >/dev/null; then
    echo "there is no nm"
    exit 77
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Without comments and directives, a statement that is no typedef and has NAME( declares a function.
cat "$SHEAF_SOURCE"/include/sheaf/*.h "$SHEAF_BUILD"/include/sheaf/version.h | grep -v '^ *#' | tr '\n' ' ' |
    sed -E 's|/\*([^*]*\*+[^/*])*[^*]*\*+/| |g' | tr ';' '\n' | grep -vw typedef |
    sed -nE 's/^[^(]*\b(sf_[a-z0-9_]+) ?\([^*].*$/\1/p' | sort -u >"$work/declared"

# The linker's own marks of where sections end are no functions.
nm -D --defined-only "$library" | awk '{print $NF}' | sed 's/@.*//' |
    grep -vxE '_init|_fini|_edata|_end|__bss_start(__)?|_bss_end__|__bss_end__|__end__' |
    sort -u >"$work/exported"

for name in sf_version sf_load sf_train sf_choices_solve; do
    grep -qx $name "$work/declared"
done
if ! diff "$work/declared" "$work/exported"; then
    echo "FAILED: < is declared and not exported, > is exported and not declared"
    exit 1
fi
echo "$(wc -l <"$work/declared") functions: ok"
