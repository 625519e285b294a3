#!/usr/bin/env bash
# The interface is the one that test/abi/abi.txt holds: prototypes, sizes and offsets of structs, values of enumerators; and programs
# that were built against shorter or longer structs work.
#
# With --update, writes the interface as it is to the file instead. Lines that go away or change break programs that exist: that
# takes a new major version. Lines that are added do not.
set -euo pipefail

root=${SHEAF_SOURCE:-$(realpath "$(dirname "$0")/../..")}
build=${SHEAF_BUILD:-$root/build}
compiler=${CC:-cc}
if [ -n "${SHEAF_SANITIZE:-}" ]; then
    echo "a library with sanitizers is not for programs without them"
    exit 77
fi
if ! command -v "${compiler%% *}" >/dev/null || ! command -v python3 >/dev/null; then
    echo "there is no C compiler, or no Python"
    exit 77
fi
[ -e "$build/libsheaf.so" ] || { echo "FAILED: $build/libsheaf.so is not built"; exit 1; }

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
flags=(-std=gnu17 -Wall -Werror -I "$root/include" -I "$build/include")
python3 -B "$root/test/abi/layout.py" "$root/include/sheaf" >"$work/layout.c"
$compiler "${flags[@]}" "$work/layout.c" -o "$work/layout"
"$work/layout" | LC_ALL=C sort >"$work/abi.txt"
held=$root/test/abi/abi.txt
if [ "${1:-}" = --update ]; then
    cp "$work/abi.txt" "$held"
    exit
fi

# A struct may grow: its fields are where they were.
breaks=$(LC_ALL=C comm -23 "$held" "$work/abi.txt" | grep -v '^struct ' || true)
shrunk=$(LC_ALL=C join -j 2 -o 1.2,1.3,2.3 <(grep '^struct ' "$held") <(grep '^struct ' "$work/abi.txt") | awk '$2 > $3')
gone=$(LC_ALL=C join -v 1 -j 2 <(grep '^struct ' "$held") <(grep '^struct ' "$work/abi.txt"))
if [ -n "$breaks$shrunk$gone" ]; then
    printf 'FAILED: programs that exist break:\n%s\n%s\n%s\n' "$breaks" "$shrunk" "$gone"
    exit 1
fi
if ! cmp -s "$held" "$work/abi.txt"; then
    echo "FAILED: the interface has grown; bash test/cli/abi.sh --update holds what is new:"
    diff "$held" "$work/abi.txt" || true
    exit 1
fi
echo "$(wc -l <"$held") lines: ok"

$compiler "${flags[@]}" "$root/test/abi/older.c" -o "$work/older" -L "$build" -lsheaf -Wl,-rpath,"$build"
"$work/older" "$root/examples/gpt-micro.hlo" | grep -qx ok
echo "structs of other versions: ok"
