#!/usr/bin/env bash
# The public headers serve C++: each stands alone, and a program calls the library through them.
set -euo pipefail

compiler=
for name in "${CXX:-}" c++ g++ clang++; do
    if [ -n "$name" ] && command -v "${name%% *}" >/dev/null; then
        compiler=$name
        break
    fi
done
if [ -z "$compiler" ]; then
    echo "no C++ compiler is installed"
    exit 77
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
flags=(-std=c++11 -Wall -Wextra -Werror -I "$SHEAF_SOURCE/include" -I "$SHEAF_BUILD/include")
for header in "$SHEAF_SOURCE"/include/sheaf/*.h "$SHEAF_BUILD"/include/sheaf/version.h; do
    echo "#include <sheaf/$(basename "$header")>" | $compiler "${flags[@]}" -fsyntax-only -x c++ -
done
echo "headers: ok"

cat >"$work/hash.cpp" <<'END'
#include <cstdio>
#include <sheaf/sheaf.h>

int main(int argc, char **argv)
{
    sf_graph *graph = nullptr;
    sf_diag *diag = sf_diag_new();
    sf_status status = sf_load(argv[argc - 1], nullptr, diag, &graph);
    if (status == SF_OK)
        std::printf("%016llx\n", static_cast<unsigned long long>(sf_graph_hash(graph)));
    sf_graph_free(graph);
    sf_diag_free(diag);
    return status;
}
END
if [ -n "${SHEAF_SANITIZE:-}" ]; then
    $compiler "${flags[@]}" -fsyntax-only "$work/hash.cpp"
    exit 0
fi
$compiler "${flags[@]}" "$work/hash.cpp" -o "$work/hash" -L "$SHEAF_BUILD" -lsheaf \
    -Wl,-rpath,"$SHEAF_BUILD"
hash=$("$work/hash" "$SHEAF_SOURCE/examples/gpt-micro.hlo")
"$SHEAF_BIN" show "$SHEAF_SOURCE/examples/gpt-micro.hlo" --json >"$work/shown"
grep -q "$hash" "$work/shown"
echo "program: ok"
