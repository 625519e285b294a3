#!/usr/bin/env bash
# Names that are not UTF-8, of files and in texts: what is written is UTF-8, and is found again.
set -u
. "$SHEAF_SOURCE/test/support/cli.sh"
sheaf=(env LC_ALL=C "$SHEAF_BIN")
good=$SHEAF_SOURCE/examples/gpt-micro.stablehlo.mlir
cd "$work" || exit 1

# is_json FILE: UTF-8 and JSON, or lines of JSON.
is_json() {
    python3 - "$1" <<'END' || fail "$1 is no JSON"
import json, sys
text = open(sys.argv[1], "rb").read().decode()
try:
    json.loads(text)
except ValueError:
    [json.loads(line) for line in text.splitlines()]
END
}

i=0
for bytes in '\xff' '\xc3' '\xe2\x82' '\xc0\xaf' '\xed\xa0\x80' '\xf4\x90\x80\x80' '\x80\xbf'; do
    i=$((i + 1))
    bad=$(printf "$bytes")
    # The name of a file: the plan says where its step is, and it is found there.
    cp "$good" "s$bad.stablehlo.mlir"
    expect 0 plan "s$bad.stablehlo.mlir" -c 1x2xV100 -o "p$bad.json"
    is_json "p$bad.json"
    expect 0 explain "p$bad.json"
    expect 0 show "s$bad.stablehlo.mlir" --json
    is_json out
    expect 0 train "s$bad.stablehlo.mlir" --data synthetic --steps 1 --save "d$bad" --log "l$bad" --quiet
    is_json "l$bad"
    expect 0 train "s$bad.stablehlo.mlir" --data synthetic --steps 2 --save "d$bad" --resume --quiet
    # Names in a text: two that differ in such bytes alone stay apart, in checkpoints and in plans.
    LC_ALL=C sed "s/layer_0/layer$bytes/g; s/layer_1/layer$bytes$bytes/g" "$good" >"n$i.mlir"
    expect 0 show "n$i.mlir" --json
    is_json out
    expect 0 train "n$i.mlir" --data synthetic --steps 1 --save "c$i" --quiet
    expect 0 train "n$i.mlir" --data synthetic --steps 2 --save "c$i" --resume --quiet
    expect 0 pin "n$i.mlir" --recipe zero3 -n 2 -o "q$i.json"
    is_json "q$i.json"
    expect 0 run "n$i.mlir" --plan "q$i.json" --steps 1
    # JSON that is not UTF-8 is refused.
    printf '{"args": [{"name": "%s"}]}' "$bad" >"j$i.json"
    expect 1 show "n$i.mlir" --sidecar "j$i.json"
    warns "the string is not valid UTF-8"
done

[ "$failures" -eq 0 ]
