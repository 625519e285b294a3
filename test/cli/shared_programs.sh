#!/usr/bin/env bash
# The 1,190 programs of one op each that check themselves: all pass. They are not ours to ship, so they
# are looked for beside the source tree.
set -euo pipefail

archive=$SHEAF_SOURCE/../shared/data/stablehlo.tar.xz
if [ ! -r "$archive" ]; then
    echo "not found: ../shared/data/stablehlo.tar.xz"
    exit 77
fi
if ! command -v xz >/dev/null; then
    echo "xz is not installed"
    exit 77
fi

folder=$SHEAF_BUILD/data/programs
rm -rf "$folder"
mkdir -p "$folder"
tar -xJf "$archive" -C "$folder"
"$SHEAF_SOURCE/scripts/selfcheck" "$folder/stablehlo" "$SHEAF_BIN" | tee "$folder/table"
read -r programs passed refused failed < <(sed -n 's/^all, [0-9]* ops//p' "$folder/table")
if [ "$programs/$passed/$refused/$failed" != 1190/1190/0/0 ]; then
    echo "expected 1190 programs: 1190 passed, 0 refused, 0 failed"
    exit 1
fi
