#!/usr/bin/env bash
# The documents name files, pages and layers that exist, and are no longer than agreed (scripts/check-docs).
set -euo pipefail
command -v python3 >/dev/null || exit 77
"$SHEAF_SOURCE/scripts/check-docs" --self-test
"$SHEAF_SOURCE/scripts/check-docs"
