#!/usr/bin/env bash
# sheaf train: the losses are JAX's own, runs repeat bit for bit, a run that stopped goes on as if it
# never had, and what does not fit is refused with a word.
set -u
. "$SHEAF_SOURCE/test/support/cli.sh"
bin=$SHEAF_BIN
step=$SHEAF_SOURCE/examples/gpt-micro.stablehlo.mlir
io=$SHEAF_SOURCE/examples/gpt-micro.io.safetensors
engine=${SHEAF_TEST_ENGINE:-oracle}
sheaf=("$bin" train --engine "$engine")

# losses LOG: "STEP LOSS" of every step.
losses() { sed -n 's/.*"event":"step","step":\([0-9]*\),"loss":\([^,]*\),.*/\1 \2/p' "$1"; }

same_state() { cmp -s "$1/state.safetensors" "$2/state.safetensors" || fail "$1 and $2 differ"; }

# JAX's weights and batches give JAX's losses.
expect 0 "$step" --steps 10 --data "$io" --init "$io" --save "$work/jax" --save-every 3
says "step 1/10  loss 3.51568"
says "step 2/10  loss 3.80045"
says "step 10/10  loss 3.59618"
says "saved $work/jax/step-000010"
says "done after 10 steps"
[ "$(cd "$work/jax" && echo *)" = "latest step-000009 step-000010" ] || fail "two are kept"
[ "$(cat "$work/jax/latest")" = step-000010 ] || fail "latest"

# Tokens: one file for all that follows, random but always the same.
awk 'BEGIN { s = 1; for (i = 0; i < 1001; i++) { s = (s * 1103515245 + 12345) % 2147483648;
    printf "%c%c", 97 + int(s / 65536) % 3, 0 } }' | LC_ALL=C tr abc '\001\002\003' >"$work/tokens.u16"
tokens=(--data "$work/tokens.u16" --seed 7)

expect 0 "$step" --steps 12 "${tokens[@]}" --save "$work/a" --save-every 5 --keep 0 --log "$work/a.jsonl"
expect 0 "$step" --steps 12 "${tokens[@]}" --save "$work/b" --save-every 4 --log "$work/b.jsonl"
[ "$(losses "$work/a.jsonl" | wc -l)" -eq 12 ] || fail "12 losses in the log"
[ "$(losses "$work/a.jsonl")" = "$(losses "$work/b.jsonl")" ] || fail "same seed, other losses"
same_state "$work/a/step-000012" "$work/b/step-000012"
[ "$(cd "$work/a" && echo *)" = "latest step-000005 step-000010 step-000012" ] || fail "all are kept"
expect 0 "$step" --steps 12 --data "$work/tokens.u16" --seed 8 --log "$work/c.jsonl" --quiet
[ -s "$work/out" ] && fail "--quiet prints"
[ "$(losses "$work/a.jsonl")" = "$(losses "$work/c.jsonl")" ] && fail "other seed, same losses"
expect 0 "$step" --steps 12 "${tokens[@]}" --order sequential --log "$work/d.jsonl" --log-every 6
[ "$(grep -c '^step' "$work/out")" -eq 2 ] || fail "--log-every 6"
[ "$(losses "$work/a.jsonl")" = "$(losses "$work/d.jsonl")" ] && fail "the order changes nothing"

# Stopped at 5 and resumed is the same as never stopped; more than one epoch of 125 windows in all.
expect 0 "$step" --steps 40 "${tokens[@]}" --save "$work/whole" --log "$work/whole.jsonl" -q
expect 0 "$step" --steps 5 "${tokens[@]}" --save "$work/part" --log "$work/part.jsonl" -q
for stop in 6 33 40; do
    expect 0 "$step" --steps $stop --data "$work/tokens.u16" --save "$work/part" --resume \
        --log "$work/part.jsonl"
    says "resumed from $work/part/step-"
done
[ "$(losses "$work/whole.jsonl")" = "$(losses "$work/part.jsonl")" ] || fail "resumed losses differ"
same_state "$work/whole/step-000040" "$work/part/step-000040"
expect 0 "$step" --steps 40 "${tokens[@]}" --save "$work/part" --resume
says "nothing to do"
expect 0 "$step" --steps 6 "${tokens[@]}" --resume="$work/a/step-000005" --save "$work/fork" -q
expect 0 "$step" --steps 12 "${tokens[@]}" --save "$work/fork" --resume -q
same_state "$work/fork/step-000012" "$work/a/step-000012"

expect 0 "$step" --steps 13 "${tokens[@]}" --save "$work/fork" --resume -q
[ -e "$work/fork/step-000013" ] || fail "-r is not --resume"

# --resume without anything to resume starts.
expect 0 "$step" --steps 2 "${tokens[@]}" --save "$work/new" --resume
says "step 1/2"
expect 1 "$step" --steps 2 "${tokens[@]}" --resume="$work/none"
warns "there is no checkpoint in it"

# A run does not write over another one, and does not go on with other data or another seed.
expect 2 "$step" --steps 2 "${tokens[@]}" --save "$work/a"
warns "there are checkpoints of another run in it"
expect 2 "$step" --steps 20 --data "$work/tokens.u16" --seed 9 --save "$work/a" --resume
warns "the run had the seed 7"
expect 1 "$step" --steps 20 --data "$io" --save "$work/a" --resume
warns "the run had other data"
warns "--init $work/a/step-000012 starts a new run"
expect 0 "$step" --steps 1 --data "$io" --init "$work/a" -q

# Checkpoints that are damaged, cut off, incomplete or of another step are refused.
damaged() {
    rm -rf "$work/bad"
    cp -r "$work/a" "$work/bad"
    rm -rf "$work/bad/step-000005" "$work/bad/step-000010"
}
refused() {
    expect 1 "$step" --steps 20 "${tokens[@]}" --save "$work/bad" --resume
    warns "$1"
    warns "$work/bad/step-000012"
}
damaged
size=$(wc -c <"$work/bad/step-000012/state.safetensors")
printf 'X' | dd of="$work/bad/step-000012/state.safetensors" bs=1 seek=$((size - 100)) conv=notrunc 2>/dev/null
refused "the file is corrupt"
damaged
truncate -s -8 "$work/bad/step-000012/state.safetensors"
refused "error:"
damaged
rm "$work/bad/step-000012/state.safetensors"
refused "cannot open"
damaged
truncate -s 1000 "$work/bad/step-000012/checkpoint.json"
refused "checkpoint.json:"
damaged
sed -i 's/"shape": \[16, 16\]/"shape": [16, 17]/' "$work/bad/step-000012/checkpoint.json"
refused "the index is not what was saved"
damaged
sed -i 's/"version": 3/"version": 4/' "$work/bad/step-000012/checkpoint.json"
refused "this version of the format is not known"
for key in step position; do
    damaged
    sed -i "s/\"$key\": 12/\"$key\": 11/" "$work/bad/step-000012/checkpoint.json"
    refused "the index is not what was saved"
done
damaged
sed -i 's/"seed": "0/"seed": "1/' "$work/bad/step-000012/checkpoint.json"
refused "the index is not what was saved"
for file in checkpoint.json state.safetensors; do # of another step
    damaged
    cp "$work/a/step-000010/$file" "$work/bad/step-000012/$file"
    refused "the file is corrupt"
done

# What a link points to is never touched, whatever the link is called.
damaged
mkdir -p "$work/mine"
echo precious >"$work/mine/file"
for name in .step-000003.tmp-7 .step-000003.gone step-000001; do
    ln -s "$work/mine" "$work/bad/$name"
done
expect 0 "$step" --steps 14 "${tokens[@]}" --save "$work/bad" --resume --keep 1
[ -f "$work/mine/file" ] || fail "what a link points to was removed"
for name in .step-000003.tmp-7 .step-000003.gone; do
    [ ! -L "$work/bad/$name" ] || fail "the link $name was left"
done
damaged
echo '{}' >"$work/bad/step-000012/checkpoint.json"
refused "not the index of a checkpoint"
sed 's/dense<0.899999976>/dense<0.8>/' "$step" >"$work/other.stablehlo.mlir"
cmp -s "$step" "$work/other.stablehlo.mlir" && fail "the step has no 0.9 to change"
cp "$SHEAF_SOURCE/examples/gpt-micro.json" "$work/other.json"
expect 1 "$work/other.stablehlo.mlir" --steps 20 "${tokens[@]}" --save "$work/a" --resume
warns "the checkpoint is of another step"

# A directory that was not finished is never taken.
cp -r "$work/a" "$work/half"
mkdir "$work/half/step-000099" "$work/half/.step-000100.tmp-1"
cp "$work/a/step-000012/state.safetensors" "$work/half/step-000099"
rm "$work/half/latest"
expect 0 "$step" --steps 13 "${tokens[@]}" --save "$work/half" --resume
says "resumed from $work/half/step-000012"
[ -e "$work/half/.step-000100.tmp-1" ] && fail "leftovers stay"

# Wrong command lines and wrong data.
expect 2 "$step" "${tokens[@]}"
warns "--steps N is missing"
expect 2 "$step" --steps 1 --resume
warns "--resume needs --save DIR"
expect 2 "$step" --steps 1
warns "there is no data"
expect 1 "$step" --steps 1 --data "$work/none"
warns "cannot open"
expect 1 "$step" --steps 1 --data "$SHEAF_SOURCE/test/data/micro/mlp-micro.io.safetensors"
warns "for the argument batch/ids"
head -c 11 "$work/tokens.u16" >"$work/odd.u16"
expect 1 "$step" --steps 1 --data "$work/odd.u16"
warns "no whole number of 2-byte tokens"
head -c 16 "$work/tokens.u16" >"$work/few.u16"
expect 1 "$step" --steps 1 --data "$work/few.u16"
warns "too few"
expect 2 "$step" --steps 1 "${tokens[@]}" --tokens-type u12
warns "tokens are u8, u16 or u32"
expect 2 "$step" --steps 1 "${tokens[@]}" --init narmal:1
warns "there is no rule 'narmal'"
expect 2 "$step" --steps 1 "${tokens[@]}" --init 'wtx*=zeros'
warns "no parameter is called 'wtx*'"
expect 2 "$step" --steps 1 "${tokens[@]}" --engine gpu
warns "an engine is auto, cpu, cuda or oracle"
expect 1 "$step" --steps 1 "${tokens[@]}" --memory 4K
warns "and there are 4.00 KiB"

# Token ids past the vocabulary do not crash; a loss that is no number stops the run.
printf '%s' "$(seq 1 5000)" >"$work/big.txt"
expect 0 "$step" --steps 2 --data "$work/big.txt" --ignore-nan
expect 1 "$step" --steps 2 --data "$work/big.txt"
warns "batch/ids has the id"
warns "the step looks it up has 32 rows: ids are out of range"
expect 1 "$step" --steps 3 "${tokens[@]}" --init '*=constant:1e38' --save "$work/nan" --save-every 1
warns_not "out of range"
warns "the loss of step"
says "step 1/3"
expect 0 "$step" --steps 3 --data synthetic:32

# Interrupted once: the step ends, the state is saved, and the run can go on.
: >"$work/out"
"$bin" train --engine "$engine" "$step" --steps 100000 "${tokens[@]}" --save "$work/int" \
    >"$work/out" 2>"$work/err" &
pid=$!
for _ in $(seq 200); do
    grep -q '^step 3/' "$work/out" && break
    sleep 0.05
done
kill -INT $pid
got=0
wait $pid || got=$?
[ $got -eq 130 ] || fail "interrupted: exit code $got"
says "stopped after"
last=$(sed -n 's/^step \([0-9]*\)\/.*/\1/p' "$work/out" | tail -n 1)
[ "$(cat "$work/int/latest")" = "$(printf 'step-%06d' "$last")" ] || fail "saved at $last"
expect 0 "$step" --steps $((last + 1)) "${tokens[@]}" --save "$work/int" --resume

# Interrupted twice: stopped at once, in the middle of a step that takes long. What it says is its own.
: >"$work/out"
"$bin" train --engine oracle "$SHEAF_SOURCE/examples/char-gpt/step.stablehlo.mlir" --steps 1000 \
    --data "$SHEAF_SOURCE/examples/char-gpt/text.txt" >"$work/out" 2>"$work/err" &
pid=$!
for _ in $(seq 200); do
    grep -q '^data' "$work/out" && break
    sleep 0.05
done
kill -INT $pid
sleep 0.1
kill -INT $pid
got=0
wait $pid || got=$?
[ $got -eq 130 ] || fail "interrupted twice: exit code $got"
warns "again to stop now"
grep -q "stopped" "$work/out" && fail "it went on to the end of the step"

# Python's safetensors opens it.
for python in "${SHEAF_PYTHON:-}" python3; do
    if [ -n "$python" ] && "$python" -c 'import safetensors.numpy' 2>/dev/null; then
        "$python" - "$work/a/step-000012/state.safetensors" >"$work/out" 2>"$work/err" <<'END' ||
import sys
from safetensors.numpy import load_file
tensors = load_file(sys.argv[1])
assert len(tensors) == 109, len(tensors)
assert tensors["params/layer_0/attn/q/kernel"].shape == (16, 16)
assert int(tensors["opt/0/count"]) == 12
END
            fail "Python's safetensors"
        python=
        break
    fi
done
[ -z "$python" ] || echo "skipped: Python's safetensors is not installed"

# A limit on the size of files is an error like a full disk, not the end by a signal.
(ulimit -f 16 && "${sheaf[@]}" "$step" --steps 1 --data "$io" --init "$io" --save "$work/large") >"$work/out" 2>"$work/err"
[ $? -eq 1 ] || fail "a file past the limit is no error"
warns "File too large"

[ "$failures" -eq 0 ]
