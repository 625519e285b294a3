#!/usr/bin/env bash
# docs/reference/ops.md is what `sheaf show --ops` prints. With --update, writes it.
set -euo pipefail
cd "$(dirname "$0")/../.."

binary=${SHEAF_BIN:-build/sheaf}
if [ "${1:-}" = --update ]; then
    "$binary" show --ops >docs/reference/ops.md
elif ! diff docs/reference/ops.md <("$binary" show --ops); then
    echo "docs/reference/ops.md is out of date: test/cli/ops_doc.sh --update writes it"
    exit 1
fi
