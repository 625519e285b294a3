#!/usr/bin/env bash
# The reference is what the program says: the option tables of docs/reference/cli.md and the commands in docs/sheaf.1 are
# those of --help, docs/reference/ops.md is `sheaf show --ops`; cli.md names no option that does not exist, passes.md has
# all passes and their options, api.md all functions of the headers. With --update, writes the generated parts.
set -euo pipefail
cd "${SHEAF_SOURCE:-$(dirname "$0")/../..}"

binary=${SHEAF_BIN:-build/sheaf}
update=${1:-}
page=docs/reference/cli.md
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
commands=$("$binary" --help | sed -n 's/^  \([a-z]*\) .*/\1/p')
[ "$(wc -w <<<"$commands")" -gt 15 ]

# options COMMAND: a line for each, "LETTER NAME VALUE" and its description, with tabs between the four.
options() {
    "$binary" "$1" --help | awk '
        /^options:/ { inside = 1; next }
        !inside { next }
        /^  (-., |    )--/ {
            if (row) print row
            letter = substr($0, 3, 2); sub(/^ +/, "", letter)
            rest = substr($0, 7)
            match(rest, /^--[a-z-]+/); name = substr(rest, 1, RLENGTH); rest = substr(rest, RLENGTH + 1)
            value = ""
            if (match(rest, /^( [A-Z]+|\[[^]]*\])( |$)/)) {
                value = substr(rest, 1, RLENGTH); sub(/ $/, "", value); rest = substr(rest, RLENGTH + 1)
            }
            sub(/^ +/, "", rest)
            row = letter "\t" name "\t" value "\t" rest
            next
        }
        { sub(/^ +/, ""); row = row (row ~ /\t$/ ? "" : " ") $0 }
        END { if (row) print row }'
}

for command in $commands; do
    options "$command" | sort >"$work/all.$command"
done
# What every command that reads a step has, once.
comm -12 "$work/all.show" "$work/all.convert" >"$work/shared"
[ "$(wc -l <"$work/shared")" -ge 7 ]

# own COMMAND: its options in the order of the help, without the shared ones.
own() {
    options "$1" | grep -vxFf "$work/shared" | grep -vP '\t--(max-input|help)\t' || true
}

as_rows() {
    printf '\n| option | meaning |\n|---|---|\n'
    # The description is text: what Markdown would read is escaped, and options are code.
    awk -F '\t' '{
        text = $4; gsub(/[*|<]/, "\\\\&", text); gsub(/--[a-z][a-z-]+/, "`&`", text)
        printf "| %s`%s%s` | %s |\n", $1 ? "`" $1 "`, " : "", $2, $3, text
    }'
}

# A table is what follows its marker and an empty line, up to the next empty line.
skip=0
while IFS= read -r line; do
    if [ "$skip" -gt 0 ] && [ -z "$line" ]; then
        skip=$((skip - 1))
    fi
    [ "$skip" -gt 0 ] || printf '%s\n' "$line"
    if [[ $line =~ ^'<!-- options: '([a-z]+)' -->'$ ]]; then
        skip=2
        name=${BASH_REMATCH[1]}
        echo "$name" >>"$work/tables"
        if [ "$name" = shared ]; then
            options show | grep -xFf "$work/shared" | as_rows
        else
            own "$name" | as_rows
        fi
    fi
done <"$page" >"$work/cli.md"

roff() {
    sed -e 's/\\/\\e/g' -e 's/-/\\-/g' -e "s/^[.']/\\\\\&&/"
}

{
    sed '/^\.\\" commands/q' docs/sheaf.1
    for command in $commands; do
        echo ".SS $command"
        "$binary" "$command" --help | sed -n '1s/^usage: //p' | roff | sed 's/^/.B /'
        echo .PP
        "$binary" "$command" --help | sed -n '3,/^$/p' | sed '/^$/d' | roff
        own "$command" | roff | awk -F '\t' '{
            printf ".TP\n.B %s%s%s\n%s\n", $1 ? $1 ", " : "", $2, $3, $4
        }'
    done
    sed -n '/^\.\\" end/,$p' docs/sheaf.1
} >"$work/sheaf.1"

"$binary" show --ops >"$work/ops.md"

if [ -n "$update" ]; then
    cp "$work/cli.md" "$page"
    cp "$work/sheaf.1" docs/sheaf.1
    cp "$work/ops.md" docs/reference/ops.md
fi
failures=0
fail() {
    echo "FAILED: $1"
    failures=$((failures + 1))
}
for command in $commands; do
    grep -qx "$command" "$work/tables" || [ -z "$(own "$command")" ] || fail "$page has no table for $command"
    grep -qF "| [\`$command\`](#$command) |" "$page" || fail "$page does not list $command"
done
for file in "$page" docs/sheaf.1 docs/reference/ops.md; do
    diff "$file" "$work/${file##*/}" || fail "$file is out of date: test/cli/man.sh --update writes it"
done
cut -f2 "$work"/all.* | sort -u >"$work/known"
echo --version >>"$work/known"
for option in $(grep -oE -- '(^|[^a-z-])--[a-z][a-z-]*' "$page" | grep -oE -- '--[a-z-]+' | sort -u); do
    grep -qxF -- "$option" "$work/known" || fail "$page names $option, which no command has"
done

"$binary" passes | sed -nE 's/^  ([a-z0-9-]+)(,.*)?$/\1/p; s/^    ([a-z]+=[A-Z]+)  .*/\1/p' >"$work/passes"
[ "$(wc -l <"$work/passes")" -gt 10 ]
while read -r word; do
    grep -qF "| \`$word\` |" docs/reference/passes.md || fail "docs/reference/passes.md does not have $word"
done <"$work/passes"

tr '\n' ' ' <<<"$(cat include/sheaf/*.h)" | grep -oE 'SF_API [^;(]*\(' | grep -oE 'sf_[a-z0-9_]+\($' | tr -d '(' |
    sort -u >"$work/declared"
sed -n '/^## Functions/,/^## R/p' docs/reference/api.md | grep -oE '`sf_[a-z0-9_]+`' | tr -d '`' | sort -u >"$work/listed"
diff "$work/declared" "$work/listed" || fail "docs/reference/api.md lists (>) other functions than the headers (<)"
[ "$failures" -eq 0 ]
