#!/usr/bin/env bash
# Kills a training run at random moments, again and again, for about 8 seconds or until it is through.
# Each time the last good checkpoint must load, and in the end the run must equal one that nobody
# killed: every loss, and every bit of the state.
set -u
bin=$SHEAF_BIN
step=$SHEAF_SOURCE/examples/gpt-micro.stablehlo.mlir
engine=${SHEAF_TEST_ENGINE:-oracle}
seconds=${SHEAF_KILL_SECONDS:-8}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
RANDOM=${SHEAF_KILL_SEED:-1}

# The vocabulary is 32.
awk 'BEGIN { for (i = 0; i < 4001; i++) printf "%c", 97 + int(i * i + i / 7) % 26 }' |
    LC_ALL=C tr 'a-z' '\001-\032' >"$work/tokens.u8"
common=(--engine "$engine" --data "$work/tokens.u8" --init normal:0.02 --seed 3)

give_up() {
    echo "FAILED: $*"
    sed 's/^/    /' "$work/out" | tail -n 20
    exit 1
}

losses() { sed -n 's/.*"event":"step","step":\([0-9]*\),"loss":\([^,]*\),.*/\1 \2/p' "$1"; }

# Saving after every second step, so that most kills fall into a save or close to one.
run=("$bin" train "$step" "${common[@]}" --save "$work/killed" --save-every 2 --resume
    --log "$work/killed.jsonl" --quiet --steps)

# Kills fall into the time that a run takes to its first checkpoints here and now, sanitizers and load included.
start=$(date +%s%N)
"${run[@]}" 4 >"$work/out" 2>&1 || give_up "the first steps"
span=$((($(date +%s%N) - start) / 1000000 + 100))
rm -rf "$work/killed" "$work/killed.jsonl"

kills=0 steps=0 began=$SECONDS
while [ $((SECONDS - began)) -lt "$seconds" ]; do
    "${run[@]}" 1000000 >"$work/out" 2>&1 &
    pid=$!
    ms=$((RANDOM % span))
    sleep "$((ms / 1000)).$(printf '%03d' $((ms % 1000)))"
    kill -KILL $pid 2>/dev/null || give_up "it ended by itself"
    wait $pid 2>/dev/null
    kills=$((kills + 1))
    if [ -e "$work/killed/latest" ]; then
        now=$(sed 's/step-0*//' "$work/killed/latest")
        [ "${now:-0}" -ge "$steps" ] || give_up "went back from step $steps to $now"
        steps=${now:-0}
        [ -s "$work/killed/$(cat "$work/killed/latest")/checkpoint.json" ] ||
            give_up "latest names no checkpoint"
    fi
done
[ "$steps" -gt 0 ] || give_up "no checkpoint after $kills kills"

end=$((steps + 3))
"${run[@]}" $end >"$work/out" 2>&1 || give_up "cannot go on after $kills kills"
[ -z "$(find "$work/killed" -mindepth 1 -name '.*')" ] || give_up "leftovers stay"
"$bin" train "$step" "${common[@]}" --save "$work/whole" --save-every 1000000 --quiet --steps $end \
    --log "$work/whole.jsonl" >"$work/out" 2>&1 || give_up "the run that nobody killed"
name=$(printf 'step-%06d' $end)
cmp "$work/killed/$name/state.safetensors" "$work/whole/$name/state.safetensors" ||
    give_up "the states differ"
# The killed run may have logged a step more than once: always with the same loss, and no step is
# missing.
losses "$work/whole.jsonl" >"$work/expected"
losses "$work/killed.jsonl" | awk -v end=$end '$1 <= end' | sort -n -u >"$work/got"
cmp "$work/expected" "$work/got" || give_up "the losses differ"
echo "$kills kills, $end steps"
