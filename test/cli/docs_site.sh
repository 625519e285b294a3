#!/usr/bin/env bash
# The site of the documents: every page is in it, its search finds a word that only one page has, viewing it needs no network,
# and a broken link or anchor fails the build. Skipped where MkDocs cannot be installed.
set -euo pipefail
command -v python3 >/dev/null || exit 77
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() {
    echo "docs_site: $1"
    exit 1
}

status=0
SF_BUILD=$SHEAF_BUILD "$SHEAF_SOURCE/scripts/docs" >"$work/said" 2>&1 || status=$?
[ $status -ne 77 ] || exit 77
[ $status -eq 0 ] || fail "the site was not built: $(cat "$work/said")"

site=$SHEAF_BUILD/docs
(cd "$SHEAF_SOURCE/docs" && find . -name '*.md') | while read -r page; do
    [ -s "$site/${page%.md}.html" ] || fail "$page is not in the site"
done
grep -q 'TRW-S' "$site/search/search_index.json" || fail "the search index lacks the page on the solver"
for part in Guides Reference Design; do
    grep -q "<span class=\"caption-text\">$part" "$site/index.html" || fail "no part $part in the navigation"
done
if grep -rhoE '<(script|link|img)[^>]*(src|href)="(https?:)?//[^"]*"' "$site" --include='*.html'; then
    fail "pages load files from the network"
fi

# A copy with mistakes is refused. It has the same virtual environment.
mkdir -p "$work/copy/scripts" "$work/build"
ln -s "$SHEAF_BUILD/docs-venv" "$work/build/docs-venv"
cp "$SHEAF_SOURCE/scripts/docs" "$work/copy/scripts/"
cp -r "$SHEAF_SOURCE/docs" "$work/copy/"
for name in README.md CONTRIBUTING.md include examples zoo; do
    ln -s "$SHEAF_SOURCE/$name" "$work/copy/$name"
done
for mistake in '[a](no-such-page.md)' '[a](design/solver.md#no-such-heading)' '[a](../no-such-file)'; do
    cp "$SHEAF_SOURCE/docs/index.md" "$work/copy/docs/index.md"
    printf '\n%s\n' "$mistake" >>"$work/copy/docs/index.md"
    ! SF_BUILD=$work/build "$work/copy/scripts/docs" >"$work/said" 2>&1 || fail "$mistake was not refused"
    grep -q 'no-such' "$work/said" || fail "$mistake was refused for another reason: $(cat "$work/said")"
done
