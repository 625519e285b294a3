#!/usr/bin/env bash
# sheaf sim: what it says, the timeline that it writes and that a run writes, and one beside the other.
set -u
. "$SHEAF_SOURCE/test/support/cli.sh"
step=$SHEAF_SOURCE/examples/gpt-micro.stablehlo.mlir
cd "$work" || exit 1

# count FILE KEY VALUE: how often "KEY": "VALUE" stands in it.
count() {
    grep -c "\"$2\": \"$3\"" "$1"
}

expect 0 pin "$step" -r megatron -n 2 -o plan.json
expect 0 pin "$step" -r dp -n 2 -o other.json
expect 0 sim plan.json --trace simulated.json
says_like "^  mesh +model=2, 2 ranks"
says_like "^  all_reduce +model +inside hosts"
says_like "^step .*, MFU "
[ "$(count simulated.json name process_name)" -eq 1 ] || fail "not one rank in the timeline"
expect 0 sim plan.json --trace simulated.json --ranks 2
[ "$(count simulated.json name process_name)" -eq 2 ] || fail "not two ranks in the timeline"

# Prices are those of explain.
for cluster in 1x2xCPU 2x1xV100 1x2xH100; do
    expect 0 explain plan.json -c "$cluster" --json
    grep -m1 '"seconds"' out >explained
    expect 0 sim plan.json -c "$cluster" --json
    grep -m1 '"seconds"' out | cmp -s - explained || fail "$cluster: sim and explain do not agree"
done

# Products of f32 are simulated in TF32 where a device has it, and everyone says so. Collectives have one name.
for what in explain sim; do
    expect 0 $what plan.json -c 1x2xH100
    says_like "^  products +of f32 in TF32"
    says_like "^  all_reduce +model"
    expect 0 $what plan.json -c 1x2xH100 --json
    says '"precision": "tf32"'
    says '"kind": "all_reduce"'
    expect 0 $what plan.json -c 1x2xV100 --json
    says '"precision": "f32"'
done

# Plans of pin have no times of their own: diff says how to get them.
expect 0 diff plan.json other.json
says "--cluster CLUSTER simulates both"
says "arguments with other layouts"
expect 0 diff plan.json other.json -c 1x2xCPU
says_like "^  step +[0-9]"

# A run has a timeline of the same instructions, of all its ranks.
expect 0 run --plan plan.json --steps 3 --profile timed.json
[ "$(count timed.json name process_name)" -eq 2 ] || fail "not two ranks were timed"
for kind in dot loop comm; do
    [ "$(count timed.json cat "$kind")" -eq "$(count simulated.json cat "$kind")" ] ||
        fail "$kind: not as many were timed as simulated"
done
expect 0 train --plan plan.json --steps 2 --data synthetic --profile trained.json
[ "$(count trained.json name process_name)" -eq 2 ] || fail "train does not write a timeline"
expect 0 run "$step" --steps 2 --profile whole.json
[ "$(count whole.json name process_name)" -eq 1 ] || fail "a run of one has no timeline"
expect 0 run "$step" --steps 2 --profile table.txt
grep -q "^  loop " table.txt || fail "no table where the name is none of a timeline"
expect 0 sim plan.json --against timed.json
says "simulated beside measured"
says "largest differences"
says_like "measured .*, of which that is"
expect 0 sim plan.json --against simulated.json -c 1x2xCPU
says_like "of which that is 100"
expect 0 sim plan.json --against timed.json --json
says '"measured": '

# Ranks of a pipeline have programs of their own, and the trace has each: as many events of a kind as are simulated.
expect 0 pin "$step" --stages 2 --micro-batches 2 --schedule 1f1b -o stages.json
expect 0 sim stages.json -c 1x2xCPU --ranks 2 --trace stages-simulated.json
expect 0 run --plan stages.json --steps 2 --profile stages-timed.json
# events FILE RANK: kinds and names of its instructions, in order.
events() {
    tr -d '\n' <"$1" | sed 's/{ *"name"/\n"name"/g' | grep "\"ph\": \"X\", *\"pid\": $2," |
        sed 's/"ts".*"instruction"/"instruction"/; s/"bytes".*//; s/"mean_us": [^,]*, *//; s/[ }]*,* *$//'
}
for rank in 0 1; do
    events stages-simulated.json $rank >simulated-events
    events stages-timed.json $rank >timed-events
    [ -s timed-events ] || fail "no events of rank $rank of the pipeline"
    cmp -s simulated-events timed-events || fail "rank $rank of a pipeline: the trace is of another program"
done
cmp -s <(events stages-timed.json 0 | sed 's/"pid": .,//') <(events stages-timed.json 1 | sed 's/"pid": .,//') &&
    fail "both ranks of the pipeline have the same program"
expect 0 sim stages.json -c 1x2xCPU --against stages-timed.json
says "simulated beside measured"
expect 0 report stages.json -c 1x2xCPU --against stages-timed.json -o stages.html

# What is none, or of something else.
expect 1 sim other.json --against timed.json
warns "the trace"
silent out
echo '{"traceEvents": 3}' >none.json
echo '[' >bad.json
sed 's/"dur": [0-9.]*/"dur": -1/' timed.json >negative.json
sed 's/"instruction": [0-9]*/"instruction": 99999999999/' timed.json >far.json
for trace in none bad negative far; do
    expect 1 sim plan.json --against "$trace.json"
    silent out
done
expect 1 sim plan.json --against nowhere.json
expect 2 sim plan.json -c 1x4xCPU
warns "the plan is for 2 ranks"
expect 2 sim plan.json --trace plan.json
expect 2 sim
expect 1 sim "$step"
expect 2 run "$step" --engine oracle --steps 1 --profile oracle.json
warns "there is no timeline"

[ "$failures" -eq 0 ]
