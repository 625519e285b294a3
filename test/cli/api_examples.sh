#!/usr/bin/env bash
# The programs of docs/reference/api.md are built against the headers and the shared library, run, and print what the document
# shows: a block marked `c` is a program, the block marked `text` behind it its output, in which a line "..." stands
# for any lines. They run one after another in a folder that holds examples/.
#
# With --update, writes the real output into the document instead; blocks with "..." are left alone.
set -euo pipefail

root=${SHEAF_SOURCE:-$(realpath "$(dirname "$0")/../..")}
build=${SHEAF_BUILD:-$root/build}
compiler=${CC:-cc}
update=${1:-}
if [ -n "${SHEAF_SANITIZE:-}" ]; then
    echo "a library with sanitizers is not for programs without them"
    exit 77
fi
if ! command -v "${compiler%% *}" >/dev/null; then
    echo "there is no C compiler"
    exit 77
fi

document=$root/docs/reference/api.md
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/run"
ln -s "$root/examples" "$work/run/examples"

# Block N of a kind goes to $work/N.KIND.
awk -v work="$work" '
    /^```c$/ { kind = "c"; file = work "/" ++count ".c"; printf "" >file; next }
    /^```text$/ { kind = "text"; file = work "/" count ".text"; printf "" >file; next }
    /^```/ { kind = ""; next }
    kind { print >file }' "$document"

# matches ACTUAL EXPECTED: equal, where "..." in the expected text stands for anything.
matches() {
    local pattern
    pattern=$(printf '%s' "$2" | sed -e 's/[][*?\\]/\\&/g' -e 's/^\.\.\.$/*/')
    # shellcheck disable=SC2053
    [[ $1 == $pattern ]]
}

# run_program N [LAUNCHER...]: what it prints goes to $work/N.out
run_program() {
    local number=$1
    shift
    (cd "$work/run" && "$@" "$work/$number") >"$work/$number.out" 2>&1
}

check_program() {
    if ! matches "$(cat "$work/$1.out")" "$(cat "$work/$1.text")"; then
        echo "FAILED: program $1 prints"
        diff "$work/$1.text" "$work/$1.out" || true
        exit 1
    fi
}

count=0
for program in "$work"/*.c; do
    number=$(basename "$program" .c)
    # shellcheck disable=SC2086
    $compiler -std=c17 -Wall -Wextra -Werror -I "$root/include" -I "$build/include" "$program" \
        -o "$work/$number" -L "$build" -lsheaf -Wl,-rpath,"$build"
    run_program "$number" || { cat "$work/$number.out"; echo "FAILED: program $number"; exit 1; }
    [ -n "$update" ] || check_program "$number"
    count=$((count + 1))
done
[ "$count" -ge 4 ]

if [ -n "$update" ]; then
    awk -v work="$work" '
        /^```c$/ { count++ }
        /^```text$/ {
            print
            held = ""; dots = 0
            while ((getline line) > 0 && line != "```") { held = held line "\n"; dots += line == "..." }
            if (!dots) { held = ""; while ((getline line < (work "/" count ".out")) > 0) held = held line "\n" }
            printf "%s```\n", held
            next
        }
        { print }' "$document" >"$work/new"
    cp "$work/new" "$document"
    exit
fi
echo "$count programs: ok"

# The session's ranks as processes: each prints the same.
session=$(grep -l sf_session_open "$work"/*.c | head -n 1)
session=$(basename "$session" .c)
if command -v mpirun >/dev/null && grep -q 'SF_FEATURE_MPI 1' "$build/include/sheaf/version.h"; then
    options=()
    if mpirun --version 2>/dev/null | grep -q 'Open MPI'; then
        export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
        options=(--oversubscribe)
    fi
    run_program "$session" mpirun -n 2 "${options[@]}" || { cat "$work/$session.out"; exit 1; }
    sort "$work/$session.out" >"$work/both"
    sort "$work/$session.text" "$work/$session.text" | diff - "$work/both"
    echo "program $session by processes: ok"
fi
