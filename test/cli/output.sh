#!/usr/bin/env bash
# Where output goes, and that one that gets lost is not passed over.
set -u
bin=$SHEAF_BIN
examples=$SHEAF_SOURCE/examples
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0

fail() {
    echo "FAILED: $*"
    failures=$((failures + 1))
}

# A step converted is the same step, whichever way it came and went.
"$bin" convert "$examples/gpt-micro.hlo" -o "$work/a.mlir" || fail "convert -o"
"$bin" convert "$examples/gpt-micro.hlo" >"$work/b.mlir" || fail "convert to standard output"
"$bin" convert - --sidecar "$examples/gpt-micro.json" <"$examples/gpt-micro.hlo" >"$work/c.mlir" ||
    fail "convert from standard input"
cmp "$work/a.mlir" "$work/b.mlir" || fail "a file and standard output differ"
cmp "$work/a.mlir" "$work/c.mlir" || fail "a file and standard input differ"
"$bin" convert "$work/a.mlir" --sidecar "$examples/gpt-micro.json" >"$work/d.mlir" ||
    fail "convert of what was converted"
[ -s "$work/a.mlir" ] || fail "nothing was written"

# A sidecar is found, also compressed: the roles are those it says, which this one changes.
mkdir "$work/beside"
cp "$examples/gpt-micro.hlo" "$work/beside"
for packer in "cat .json sheaf" "gzip .json.gz zlib:.in" "xz .json.xz lzma:.in"; do
    read -r tool ending feature <<<"$packer"
    if ! command -v "$tool" >/dev/null || ! grep -q "^$feature" <<<"$("$bin" version)"; then
        continue
    fi
    rm -f "$work"/beside/*.json*
    sed 's/"role": "param"/"role": "other"/' "$examples/gpt-micro.json" | "$tool" \
        >"$work/beside/gpt-micro$ending"
    "$bin" show "$work/beside/gpt-micro.hlo" --json >"$work/roles" || fail "show with $ending"
    grep -q '"role": "param"' "$work/roles" && fail "gpt-micro$ending was not found"
done

# What is read is not written over, by whatever name.
cp "$examples/gpt-micro.hlo" "$work/step.hlo"
cp "$examples/gpt-micro.io.safetensors" "$work/io.safetensors"
ln -s step.hlo "$work/link.hlo"
ln "$work/step.hlo" "$work/hard.hlo"
cd "$work" || exit 1
for output in step.hlo "$work/step.hlo" link.hlo hard.hlo ./step.hlo; do
    for arguments in "convert step.hlo" "convert link.hlo" "eval step.hlo -i io.safetensors"; do
        "$bin" $arguments -o "$output" 2>"$work/err"
        [ $? -eq 2 ] || fail "$arguments -o $output: exit code"
        grep -q "is read, so it cannot be the output" "$work/err" || fail "$arguments -o $output: no message"
    done
    cmp -s "$examples/gpt-micro.hlo" "$work/step.hlo" || fail "the step was written over"
done
"$bin" eval step.hlo -i io.safetensors -o io.safetensors 2>/dev/null && fail "the inputs were written over"
cmp -s "$examples/gpt-micro.io.safetensors" "$work/io.safetensors" || fail "the inputs were written over"
rm "$work"/*.hlo "$work/io.safetensors"
cd - >/dev/null || exit 1

# Written whole or not at all.
echo old >"$work/kept"
"$bin" convert "$work/nowhere" -o "$work/kept" 2>/dev/null && fail "converted nothing"
[ "$(cat "$work/kept")" = old ] || fail "a failed convert touched its output"
"$bin" convert "$examples/gpt-micro.hlo" -o "$work/no/such/folder" 2>"$work/err" &&
    fail "wrote into a folder that is not there"
grep -q "no/such/folder" "$work/err" || fail "the message does not name the file"
[ "$(ls -A "$work" | grep -c '^\.')" -eq 0 ] || fail "temporary files were left behind"

for arguments in "version" "--help" "convert $examples/gpt-micro.hlo" "show $examples/gpt-micro.hlo"
do
    # A full disk.
    if [ -e /dev/full ]; then
        "$bin" $arguments >/dev/full 2>"$work/err"
        [ $? -eq 1 ] || fail "$arguments >/dev/full: exit code"
        [ -s "$work/err" ] || fail "$arguments >/dev/full: no message"
    fi
    # A closed standard output.
    "$bin" $arguments >&- 2>/dev/null
    [ $? -eq 1 ] || fail "$arguments >&-: exit code"
    # A reader that goes away: silence, and an end by the signal if it came to that.
    { "$bin" $arguments 2>"$work/err"; echo $? >"$work/code"; } | true
    code=$(cat "$work/code")
    [ "$code" -eq 0 ] || [ "$code" -eq 141 ] || fail "$arguments | true: exit code $code"
    [ ! -s "$work/err" ] || fail "$arguments | true: $(cat "$work/err")"
done

[ "$failures" -eq 0 ]
