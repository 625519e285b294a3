#!/usr/bin/env bash
# Runs every example in the documents and compares what it prints with what the document shows.
#
# An example is a block that is marked `console`: lines that begin with "$ " are commands, the lines up
# to the next command are their output, standard error included. They run one after another in an
# empty folder that holds examples/. A line "..." stands for any lines. A block after the comment
# <!-- numbers vary --> is compared without its numbers and names of results: those depend on the C
# library.
#
# With --update, writes the real output into the documents instead; blocks with "..." are left alone. Other arguments
# are the documents to run, in place of all of them.
set -euo pipefail
cd "$(dirname "$0")/../.."

root=$PWD
binary=$(realpath "${SHEAF_BIN:-build/sheaf}")
update=
if [ "${1:-}" = --update ]; then
    update=yes
    shift
fi
work=$(mktemp -d)
export XDG_CACHE_HOME=$work/cache # what is compiled
trap 'rm -rf "$work"' EXIT
mkdir "$work/bin" "$work/run"
ln -s "$binary" "$work/bin/sheaf"
ln -s "$root/examples" "$work/run/examples"
PATH=$work/bin:$PATH
unset COLUMNS
failures=0

# Runs a command in the folder of the examples. To plan a large step takes seconds: a command that does so again, with nothing
# that other commands made, has the output and the plan of the first time.
run_command() {
    local first kept=''
    if [[ $1 =~ ^sheaf\ plan\ examples/[^\ ]+\.gz\ -c\ [0-9A-Zx]+\ -o\ plan\.json$ ]]; then
        kept=$work/kept-$(cksum <<<"$1" | tr ' ' -)
        if [ -e "$kept.json" ]; then
            cp "$kept.json" "$work/run/plan.json"
            cat "$kept.out"
            return
        fi
    fi
    first=$(cd "$work/run" && bash -c "$1" 2>&1 </dev/null) || true
    printf '%s\n' "$first"
    if [ -n "$kept" ] && [ -e "$work/run/plan.json" ]; then
        printf '%s\n' "$first" >"$kept.out"
        cp "$work/run/plan.json" "$kept.json"
    fi
}

# matches ACTUAL EXPECTED: equal, where "..." in the expected text stands for anything.
matches() {
    local pattern
    pattern=$(printf '%s' "$2" | sed -e 's/[][*?\\]/\\&/g' -e 's/^\.\.\.$/*/')
    # shellcheck disable=SC2053
    [[ $1 == $pattern ]]
}

without_numbers() {
    printf '%s\n' "$1" | sed -E -e "s/result\[[^ ,]*/R/g" -e 's/[-+]?[0-9]+(\.[0-9]+)?(e[-+]?[0-9]+)?/N/g' \
        -e 's/ +/ /g'
}

# check COMMAND EXPECTED VARY PLACE: writes what the document should show to $work/new.
check() {
    local actual expected=$2
    actual=$(run_command "$1")
    printf '$ %s\n' "$1" >>"$work/new"
    if [ -n "$update" ] && ! grep -qx '\.\.\.' <<<"$expected"; then
        [ -z "$actual" ] || printf '%s\n' "$actual" >>"$work/new"
        return
    fi
    [ -z "$expected" ] || printf '%s\n' "$expected" >>"$work/new"
    if [ -n "$3" ]; then
        actual=$(without_numbers "$actual")
        expected=$(without_numbers "$expected")
    fi
    if ! matches "$actual" "$expected"; then
        echo "$4: \$ $1"
        diff <(printf '%s\n' "$expected") <(printf '%s\n' "$actual") | sed 's/^/    /' || true
        failures=$((failures + 1))
    fi
}

# document FILE: checks its examples.
document() {
    local file=$1 line inside='' command='' expected='' vary='' number=0 place='' found=0
    : >"$work/new"
    while IFS= read -r line; do
        number=$((number + 1))
        if [ -z "$inside" ]; then
            [ "$line" = '```console' ] && inside=yes
            [ "$line" = '<!-- numbers vary -->' ] && vary=yes
            printf '%s\n' "$line" >>"$work/new"
        elif [ "$line" = '```' ] || [[ $line == '$ '* ]]; then
            [ -z "$command" ] || check "$command" "${expected%$'\n'}" "$vary" "$place"
            command='' expected=''
            if [ "$line" = '```' ]; then
                inside='' vary=''
                printf '%s\n' "$line" >>"$work/new"
            else
                command=${line#'$ '}
                place=$file:$number
                found=$((found + 1))
            fi
        else
            expected+=$line$'\n'
        fi
    done <"$file"
    echo "$file: $found examples"
    if [ -n "$update" ] && ! cmp -s "$work/new" "$file"; then
        cat "$work/new" >"$file"
    fi
}

if [ $# -gt 0 ]; then
    pages=("$@")
else
    pages=(README.md docs/*.md docs/*/*.md)
fi
lua=$("$binary" version | grep '^lua: in' || true)
for page in "${pages[@]}"; do
    # Examples that need Lua are on the pages about schedules and extensions.
    if [[ -n $lua || ! $page =~ /(schedules|extend)\.md$ ]] && grep -qx '```console' "$page"; then
        document "$page"
    fi
done
[ "$failures" -eq 0 ] || {
    echo "$failures examples differ; test/cli/docs_examples.sh --update writes the real output"
    exit 1
}
