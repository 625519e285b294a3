#!/usr/bin/env bash
# Every exported function, with each pointer argument NULL in turn, comes back and says so (test/abi/nulls.py).
set -euo pipefail

compiler=${CC:-cc}
if [ -n "${SHEAF_SANITIZE:-}" ]; then
    echo "a library with sanitizers is not for programs without them"
    exit 77
fi
if ! command -v "${compiler%% *}" >/dev/null || ! command -v python3 >/dev/null; then
    echo "there is no C compiler, or no Python"
    exit 77
fi
[ -e "$SHEAF_BUILD/libsheaf.so" ] || { echo "FAILED: $SHEAF_BUILD/libsheaf.so is not built"; exit 1; }

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
abi=$SHEAF_SOURCE/test/abi
python3 -B "$abi/nulls.py" "$SHEAF_SOURCE/include/sheaf" >"$work/nulls.c"
$compiler -std=gnu17 -Wall -Werror=implicit-function-declaration -I "$abi" -I "$SHEAF_SOURCE/include" -I "$SHEAF_BUILD/include" \
    "$work/nulls.c" -o "$work/nulls" -L "$SHEAF_BUILD" -lsheaf -Wl,-rpath,"$SHEAF_BUILD"
# The messages of calls that write to standard output are of no interest. What calls save stays in the folder.
ln -s "$SHEAF_SOURCE/examples" "$SHEAF_SOURCE/test" "$work/"
cd "$work"
"$work/nulls" >"$work/out"
tail -n 1 "$work/out"
