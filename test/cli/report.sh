#!/usr/bin/env bash
# sheaf report: what the page has, that nothing in it is fetched or foreign markup, and what is refused.
set -u
. "$SHEAF_SOURCE/test/support/cli.sh"
step=$SHEAF_SOURCE/examples/gpt-micro.stablehlo.mlir
cd "$work" || exit 1

has() { grep -qF -e "$2" "$1" || fail "$1 lacks '$2'"; }
lacks() { ! grep -qF -e "$2" "$1" || fail "$1 has '$2'"; }

# data FILE: the JSON of a page.
data() {
    sed -n 's/.*<script type="application\/json" id="data">\(.*\)<\/script>$/\1/p' "$1"
}

# get FILE KEY: the number of the first key of that name in a JSON.
get() {
    sed -n "s/.*\"$2\": *\\([-+0-9.e]*\\).*/\\1/p" "$1" | head -n 1
}

expect 0 pin "$step" -r 2d -n 4 -o plan.json
expect 0 report plan.json -c 2x2xV100 -o page.html
silent out
for id in glance timeline memory communication modules frontier recipes; do
    has page.html "<section id=\"$id\""
done
has page.html '"title":"gpt-micro"'
has page.html '"words":["dp 2","tp 2"]'
has page.html "between hosts"
[ "$(wc -c <page.html)" -lt 1000000 ] || fail "the page of a small step is large"

# One file, which asks for nothing: no address but the name of SVG.
grep -oE "[a-z]+://[^'\"<> ]*" page.html | grep -v '^http://www.w3.org/2000/svg$' >addresses
[ ! -s addresses ] || fail "the page has addresses: $(cat addresses)"
grep -qE '<(link|img|iframe|object)|<script[^>]* src|@import|url\(' page.html && fail "the page fetches something"
has page.html "default-src 'none'"

# The data are what --json prints, and the prices those of explain.
expect 0 report plan.json -c 2x2xV100 --json
cp out data.json
expect 0 explain plan.json -c 2x2xV100 --json
for key in seconds compute exposed hidden; do
    [ "$(get out $key)" = "$(get data.json $key)" ] || fail "$key: report and explain do not agree"
done
[ "$(get out memory)" = "$(get data.json peak)" ] || fail "memory: report and explain do not agree"
if command -v python3 >/dev/null; then
    data page.html >embedded.json
    python3 -c 'import json; assert json.load(open("data.json")) == json.load(open("embedded.json"))' ||
        fail "the page has other data than --json"
fi
expect 0 report plan.json -c 2x2xV100 --json -o written.json
silent out
cmp -s written.json data.json || fail "--json -o writes something else"
expect 0 report plan.json -c 2x2xV100 -o - --threads 1
cmp -s out page.html || fail "the page depends on the number of threads, or on where it goes"

# Words that people know.
words() { sed -n 's/.*"words": \[\(.*\)\],*$/\1/p' out; }
while read -r recipe ranks expected options; do
    # shellcheck disable=SC2086
    expect 0 pin "$step" -r "$recipe" -n "$ranks" $options -o words.json
    expect 0 report words.json -c "1x${ranks}xCPU" --json
    [ "$(words | tr -d ' ')" = "$expected" ] || fail "$recipe $options: $(words), not $expected"
done <<'END'
dp 2 "dp2"
zero1 2 "dp2","ZeRO-1"
zero2 4 "dp4","ZeRO-2"
zero3 2 "dp2","ZeRO-3"
megatron 2 "tp2"
sequence 2 "sp2"
2d+zero1 4 "dp2","tp2","ZeRO-1"
dp 2 "dp2","recomputelayer" --recompute layer
dp 2 "dp2","2micro-batches" --micro-batches 2
dp 1 "onerank"
END

# A run beside it.
expect 0 pin "$step" -r dp -n 2 --micro-batches 2 -o turns.json
expect 0 run --plan turns.json --steps 2 --profile timed.json
expect 0 report turns.json -c 1x2xCPU --against timed.json -o measured.html --title 'a & "b"'
has measured.html '"differences":[{"op":'
has measured.html '"title":"a & \"b\""'
expect 0 report turns.json -c 1x2xCPU --against timed.json --json
says '"measured": true'

# A plan of a search lists the candidates considered.
expect 0 plan "$step" -c 1x4xCPU -o searched.json
expect 0 report searched.json -o searched.html
has searched.html "candidates considered"

# Names out of files are text, whatever they are.
evil='<\/script><img src=x onerror=bad()><!--\&amp;'
sed "s/layer_0/$evil/g" "$step" >evil.mlir
expect 0 pin evil.mlir -r zero1 -n 2 -o evil-plan.json --sidecar none
expect 0 cluster 1x2xCPU --json
sed 's/"name": "1x2xCPU"/"name": "<\/script><img src=x onerror=bad()>\\u202e\\u0007"/' out >evil-cluster.json
expect 0 report evil-plan.json -c ./evil-cluster.json -o evil.html --title '</title></script><img src=x onerror=bad()>'
lacks evil.html '<img'
[ "$(grep -o '</script>' evil.html | wc -l)" -eq 2 ] || fail "a name ends a script"
lacks evil.html "$(printf '\342\200\256')"
LC_ALL=C grep -q "$(printf '[\001-\010\013-\037]')" evil.html && fail "control characters in the page"
data evil.html | grep -qF 'u003cimg src=x' || fail "the data lacks the name"
LC_ALL=C sed 's/layer_0/layer\xff/g' "$step" >bytes.mlir
expect 0 pin bytes.mlir -r dp -n 2 -o bytes.json --sidecar none
expect 0 report bytes.json -c 1x2xCPU -o bytes.html --title "$(printf '\377')"
if command -v iconv >/dev/null; then
    iconv -f UTF-8 -t UTF-8 bytes.html >/dev/null || fail "the page is not UTF-8"
fi

# Wrong input leaves what is there.
echo old >kept.html
expect 2 report plan.json -c 1x2xCPU -o kept.html
warns "the plan is for 4 ranks"
expect 1 report plan.json -c 2x2xV100 --against timed.json -o kept.html
warns "the trace"
expect 1 report plan.json -c 2x2xV100 --against nowhere.json -o kept.html
expect 1 report "$step" -o kept.html
expect 1 report nowhere.json -o kept.html
echo '{' >bad.json
expect 1 report bad.json -o kept.html
[ "$(cat kept.html)" = old ] || fail "a report that failed changed the file"
expect 2 report plan.json -o plan.json
expect 2 report turns.json -c 1x2xCPU --against timed.json -o timed.json
expect 1 report plan.json -c 2x2xV100 -o nowhere/page.html
expect 2 report plan.json
warns "-o is missing"
expect 2 report
expect 2 report plan.json -o page.html --threads 99999999999
[ -z "$(find . -name '*.html?*')" ] || fail "something is left beside a page"

[ "$failures" -eq 0 ]
