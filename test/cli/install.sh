#!/usr/bin/env bash
# What is installed is complete: a C program is built against it with pkg-config, with the shared and
# with the static library, and runs. The prefix is not the one that was configured, so nothing may
# remember that.
set -euo pipefail

if [ -n "${SHEAF_SANITIZE:-}" ]; then
    echo "a build with sanitizers is not for installing"
    exit 77
fi
for tool in cc make pkg-config; do
    if ! command -v $tool >/dev/null; then
        echo "$tool is not installed"
        exit 77
    fi
done

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
prefix=$work/prefix
cmake --install "$SHEAF_BUILD" --prefix "$prefix" >"$work/log"

# one PATTERN...: each matches a file that is not empty
one() {
    local pattern
    for pattern in "$@"; do
        if [ -z "$(find "$prefix" -path "$prefix/$pattern" -size +0)" ]; then
            echo "FAILED: not installed: $pattern"
            (cd "$prefix" && find . -type f)
            exit 1
        fi
    done
}
one bin/sheaf 'lib*/libsheaf.a' 'lib*/libsheaf.so' 'lib*/pkgconfig/sheaf.pc' 'share/man/man1/sheaf.1' \
    share/bash-completion/completions/sheaf share/zsh/site-functions/_sheaf share/fish/vendor_completions.d/sheaf.fish \
    include/sheaf/version.h 'lib*/cmake/sheaf/sheaf-config.cmake' 'lib*/cmake/sheaf/sheaf-config-version.cmake'
for header in "$SHEAF_SOURCE"/include/sheaf/*.h; do
    one "include/sheaf/$(basename "$header")"
done
if grep -rIl -e "$SHEAF_SOURCE" -e '@PROJECT' "$prefix"; then
    echo "FAILED: these name the source tree or were not filled in"
    exit 1
fi

# Each header stands alone.
for header in "$prefix"/include/sheaf/*.h; do
    echo "#include <sheaf/$(basename "$header")>" |
        cc -std=c17 -Wall -Wextra -Werror -fsyntax-only -I "$prefix/include" -x c -
done

pc=$(dirname "$(find "$prefix" -name sheaf.pc)")
library=$(dirname "$(find "$prefix" -name libsheaf.a)")
cp -r "$SHEAF_SOURCE/examples/c" "$work/c"
step=$SHEAF_SOURCE/examples/gpt-micro

# try NAME [MAKE-VARIABLE...]: builds the example and runs it
try() {
    local name=$1
    shift
    rm -f "$work/c/step_info"
    PKG_CONFIG_PATH=$pc make -s -C "$work/c" CFLAGS='-Wall -Wextra -Werror' "$@"
    LD_LIBRARY_PATH=$library "$work/c/step_info" "$step.hlo" "$work/$name.mlir" \
        "$step.io.safetensors" >"$work/$name.out"
    grep -q '110 results: as expected' "$work/$name.out"
    "$prefix/bin/sheaf" convert "$step.hlo" | cmp - "$work/$name.mlir"
    echo "$name: ok"
}
unset MAKEFLAGS MFLAGS MAKELEVEL
try shared
if ! ldd "$work/c/step_info" | grep libsheaf >/dev/null; then
    echo "FAILED: not linked with the shared library"
    exit 1
fi
try static STATIC=1
if ldd "$work/c/step_info" | grep libsheaf; then
    echo "FAILED: linked with the shared library"
    exit 1
fi

# find_package finds it, for C and, where there is a compiler, C++; versions agree.
version=$(sed -nE 's/#define SF_VERSION "(.*)"/\1/p' "$prefix/include/sheaf/version.h")
mkdir "$work/found"
cat >"$work/found/use.c" <<'END'
#include <sheaf/sheaf.h>
#include <stdio.h>
#include <string.h>
int main(void)
{
    puts(sf_version());
    return strcmp(sf_version(), SF_VERSION) != 0;
}
END
cp "$work/found/use.c" "$work/found/use.cpp"
languages=C
if command -v c++ >/dev/null; then
    languages="C CXX"
fi
cat >"$work/found/CMakeLists.txt" <<END
cmake_minimum_required(VERSION 3.16)
project(use LANGUAGES $languages)
find_package(sheaf $version EXACT REQUIRED CONFIG)
add_executable(use_shared use.c)
target_link_libraries(use_shared PRIVATE sheaf::sheaf)
add_executable(use_static use.c)
target_link_libraries(use_static PRIVATE sheaf::static)
if(CMAKE_CXX_COMPILER)
    add_executable(use_cpp use.cpp)
    target_link_libraries(use_cpp PRIVATE sheaf::sheaf)
endif()
END
cmake -S "$work/found" -B "$work/found/build" -DCMAKE_PREFIX_PATH="$prefix" >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
cmake --build "$work/found/build" >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
for program in "$work/found/build"/use_*; do
    [ "$("$program")" = "$version" ]
    echo "find_package, $(basename "$program"): ok"
done
[ "$(PKG_CONFIG_PATH=$pc pkg-config --modversion sheaf)" = "$version" ]
[ "$("$prefix/bin/sheaf" --version | grep -c "$version")" -gt 0 ]
