#!/usr/bin/env bash
# Every option that --help lists is in the man page and in docs/cli.md.
set -euo pipefail

failures=0
for command in show convert eval verify train run pin plan tune repl explain sim report diff passes cluster calibrate solve completion version; do
    options=$("$SHEAF_BIN" $command --help | grep -oE '^  (-., |    )--[a-z-]+' | grep -oE -- '--.*')
    [ -n "$options" ]
    for option in $options; do
        for page in sheaf.1 cli.md; do
            # A hyphen is \- in the man page. A word that goes on is another option.
            if ! sed 's/\\-/-/g' "$SHEAF_SOURCE/docs/$page" | grep -E -- "$option([^a-z-]|\$)" >/dev/null
            then
                echo "FAILED: docs/$page does not know $option of $command"
                failures=$((failures + 1))
            fi
        done
    done
done
[ "$failures" -eq 0 ]
