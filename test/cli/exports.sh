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

# Without comments and directives, a statement with SF_API and NAME( declares an exported function.
cat "$SHEAF_SOURCE"/include/sheaf/*.h "$SHEAF_BUILD"/include/sheaf/version.h | grep -v '^ *#' | tr '\n' ' ' |
    sed -E 's|/\*([^*]*\*+[^/*])*[^*]*\*+/| |g' | tr ';' '\n' | grep -w SF_API |
    sed -nE 's/^[^(]*\b(sf_[a-z0-9_]+) ?\([^*].*$/\1/p' | sort -u >"$work/declared"

# The linker's own marks of where sections end are no functions.
nm -D --defined-only "$library" | awk '{print $NF}' |
    grep -vxE '_init|_fini|_edata|_end|__bss_start(__)?|_bss_end__|__bss_end__|__end__' |
    sort -u >"$work/versioned"
sed 's/@.*//' "$work/versioned" | grep -v '^SHEAF_' >"$work/exported"

# All are of the interface of the major version, which is that of the soname, pkg-config and the headers too.
major=$(sed -nE 's/#define SF_VERSION "([0-9]+)\..*/\1/p' "$SHEAF_BUILD/include/sheaf/version.h")
if grep -vE "^SHEAF_$major(@@SHEAF_$major)?\$|^sf_[a-z0-9_]+@@SHEAF_$major\$" "$work/versioned"; then
    echo "FAILED: these are not of the version SHEAF_$major"
    exit 1
fi
if command -v objdump >/dev/null && ! objdump -p "$library" | grep -q "SONAME *libsheaf.so.$major\$"; then
    echo "FAILED: the soname is not that of version $major"
    exit 1
fi

for name in sf_version sf_load sf_train sf_choices_solve; do
    grep -qx $name "$work/declared"
done
if ! diff "$work/declared" "$work/exported"; then
    echo "FAILED: < is declared and not exported, > is exported and not declared"
    exit 1
fi
echo "$(wc -l <"$work/declared") functions: ok"
