#!/usr/bin/env bash
# Pipelines: stages and schedules from the command line, the plan file there and back, simulated and run on threads and
# over MPI; checkpoints that move between them and other plans; and tables and files that are wrong.
set -u
. "$SHEAF_SOURCE/test/support/cli.sh"
step=$SHEAF_SOURCE/examples/gpt-micro.stablehlo.mlir
io=$SHEAF_SOURCE/examples/gpt-micro.io.safetensors
cd "$work" || exit 1
sheaf=(timeout 120 "$SHEAF_BIN")
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_mpi_yield_when_idle=1
export ASAN_OPTIONS=${ASAN_OPTIONS:-}:detect_leaks=0 # MPI leaks
mpi=
command -v mpirun >/dev/null && "$SHEAF_BIN" version | grep -q '^mpi: in' && mpi=yes
[ -n "$mpi" ] || echo "no mpirun, or a build without MPI: only threads are tested"

losses() { sed -n 's/.*"event":"step","step":\([0-9]*\),"loss":\([^,]*\),.*/\1 \2/p' "$1"; }

# close LOG LOG: steps of the first have the losses that they have in the second, within 1e-5.
close() {
    join <(losses "$1" | sort) <(losses "$2" | sort) | awk '
        function abs(x) { return x < 0 ? -x : x }
        abs($2 - $3) > 1e-5 * abs($2) { bad = 1 }
        END { exit bad || NR == 0 }' || fail "losses differ: $1 $2"
    [ "$(losses "$1" | wc -l)" -eq "$(join <(losses "$1" | sort) <(losses "$2" | sort) | wc -l)" ] ||
        fail "steps differ: $1 $2"
}

# Every schedule: pinned, simulated, and verified.
for schedule in gpipe 1f1b zb-h1 chimera dualpipe; do
    expect 0 pin "$step" --stages 2 --micro-batches 2 --schedule $schedule -o $schedule.json
    says "pipe=2, 2 ranks"
    expect 0 sim $schedule.json -c 1x2xCPU
    says_like "^  schedule +$schedule, 2 micro-batches"
    expect 0 verify --plan $schedule.json --steps 2 --check
    says "passed"
    expect 0 run --plan $schedule.json --steps 1 --engine oracle --wait 60
done
for schedule in interleaved:2 zb-v; do
    expect 0 pin "$step" --stages 4 --micro-batches 2 --schedule $schedule -o four.json
    expect 0 sim four.json -c 1x2xCPU
    says_like "^  stages +4, on 2 pipeline ranks"
    expect 0 verify --plan four.json --steps 2
done
expect 0 pin "$step" --stages 2 -o one.json # without turns
expect 0 pin "$step" --stages 2 --micro-batches 2 -r dp -n 2 -o one.json # its axis has one rank
expect 0 verify --plan one.json --steps 2
expect 0 pin "$step" --stages layer_1 --micro-batches 4 -o scopes.json
says "pipe=2, 2 ranks"
expect 0 verify --plan scopes.json --steps 2

# What turns need of all turns, of steps as JAX writes them (zoo/metrics.py): loads of experts that the backward pass reads, and
# weights of examples by all of them. By gpipe what the backward pass needs is there between the passes, so less is sent.
for name in balanced focus; do
    whole=$SHEAF_SOURCE/test/data/turns/metrics-$name.stablehlo.mlir.xz
    for schedule in gpipe zb-h1; do
        expect 0 pin "$whole" --stages 2 --micro-batches 4 --schedule $schedule -r dp -n 4 -o $name-$schedule.json
        sed -n 's/.*between pipeline ranks: \([0-9]*\) messages.*/\1/p' out >$name-$schedule.sent
        expect 0 verify --plan $name-$schedule.json --steps 1
        says "passed"
    done
done
[ "$(cat balanced-gpipe.sent)" -lt "$(cat balanced-zb-h1.sent)" ] || fail "gpipe takes a survey, too"

# Passes that are asked for are in a plan in stages as well.
expect 0 plan "$step" --cluster 1x2xCPU --stages 2 --micro-batches 2 --passes offload -o passes.json
grep -q '"offload"' passes.json || fail "a plan in stages has not the passes that were asked for"
expect 0 verify --plan passes.json --steps 1

# Memory is that of the rank that takes most, whoever prints it: here not the first, which has embeddings alone.
memory_of() { sed -n 's/^ *"memory": \([0-9]*\),*$/\1/p' out | sort -n | tail -1; }
expect 0 pin "$step" --stages layer_0 --micro-batches 4 -o head.json
expect 0 sim head.json -c 1x2xCPU --json
most=$(memory_of)
expect 0 run --plan head.json --steps 1 --json
[ "$(memory_of)" -ge "$most" ] || fail "a rank takes $most, and run says $(memory_of)"
expect 0 pin "$step" --stages 2 --micro-batches 2 -r dp -n 4 --recompute layer -o both.json
says "pipe=2,data=2, 4 ranks"
expect 0 verify --plan both.json --steps 2
expect 0 run --plan both.json --steps 2
expect 0 plan "$step" --cluster 1x2xCPU --stages 2 --micro-batches 2 -o searched.json
grep -q '"pipeline"' searched.json || fail "no stages in what plan --stages found"
expect 0 verify --plan searched.json --steps 2

# The same command, the same bytes; what is read is written again as it was.
expect 0 pin "$step" --stages 2 --micro-batches 2 -o again.json
cmp -s again.json 1f1b.json || fail "1f1b is not the default, or two plans of one command differ"
expect 0 diff 1f1b.json again.json
expect 0 diff 1f1b.json gpipe.json
says_like "^  stages +2, by 1f1b, .* 2, by gpipe"

# A table of one's own.
printf '0: F0.0 F0.1 B0.0 B0.1\n1: F1.0 B1.0 F1.1 B1.1\n' >own.txt
expect 0 pin "$step" --stages 2 --micro-batches 2 --schedule own.txt -o own.json
grep -q '"0: F0.0 F0.1 B0.0 B0.1"' own.json || fail "the table is not in the plan"
expect 0 verify --plan own.json --steps 2

# refuse CODE MESSAGE: what stands on standard input is no schedule for two stages in two turns.
refuse() {
    cat >bad.txt
    expect "$1" pin "$step" --stages 2 --micro-batches 2 --schedule bad.txt -o bad.json
    warns "$2"
    silent out
    [ ! -e bad.json ] || fail "a plan was written: $2"
}
refuse 1 "the schedule never ends: B0.0 on pipeline rank 0 waits for B1.0" <<<'0: F0.0 B0.0 F0.1 B0.1
1: F1.1 F1.0 B1.0 B1.1'
refuse 1 "pipeline rank 0 does not run B0.1" <<<'0: F0.0 F0.1 B0.0
1: F1.0 B1.0 F1.1 B1.1'
refuse 2 "the schedule is for 3 stages" <<<'0: F0.0 F0.1 B0.0 B0.1
1: F1.0 B1.0 F1.1 B1.1
2: F2.0 B2.0 F2.1 B2.1'
refuse 2 "has no backward pass of stage 0" <<<'0: F0.0 F0.1
1: F1.0 F1.1'
refuse 1 'not "Q"' <<<'0: F0.0 Q'
refuse 2 "run by several pipeline ranks together" <<<'0: F0.0 F0.1 F1.0 F1.1 B1.0 B1.1 B0.0 B0.1
1: F1.0 B1.0'
refuse 1 "there are no tasks" </dev/null
head -c 3000 /dev/urandom >noise.txt
expect 1 pin "$step" --stages 2 --micro-batches 2 --schedule noise.txt

# Misuse.
while IFS='|' read -r code options message; do
    # shellcheck disable=SC2086
    expect "$code" pin "$step" $options
    warns "$message"
done <<'CASES'
2|--stages 0|--stages "0": expected 1 to 64 stages
2|--stages 65|expected 1 to 64 stages
2|--stages nowhere|is no scope of the forward pass
2|--stages -3|give how many stages
2|--stages 2 --schedule nope|there is no schedule "nope"
2|--stages 3 --schedule interleaved:2|does not run 3 stages
1|--stages 2 --micro-batches 3|does not split into 3 equal parts
1|--stages 6 --schedule 3f1b|the step has 1
2|--stages 2 --micro-batches 1000000|are more than 1048576 tasks
2|--stages 2 -n 3|3 ranks do not make 2 equal groups
2|--stages 2 -M data=2|no axis of 2 pipeline ranks
2|--stages 2 -M pipe=4|no axis of 2 pipeline ranks
2|--schedule 1f1b -r dp -n 2|--stages
2|--stages 2 -P layer_0/mlp/up/kernel=At(1)@pipe -M pipe=2|follow from the stages
CASES

# hostile CODE MESSAGE SED: the plan with that change is refused.
hostile() {
    sed "$3" 1f1b.json >hostile.json
    cmp -s 1f1b.json hostile.json && fail "nothing was changed: $3"
    expect "$1" verify "$step" --plan hostile.json --steps 1
    warns "$2"
}
hostile 1 "names the \"axis\"" 's/"axis": "pipe"/"axis": "data"/'
hostile 1 "names the \"axis\"" 's/"axis": "pipe"/"axis": 0/'
hostile 2 "there is no schedule" 's/"schedule": "1f1b"/"schedule": "2f2b"/'
hostile 1 "expected the name of a schedule" 's/"schedule": "1f1b"/"schedule": {}/'
hostile 1 "never ends" 's/"schedule": "1f1b"/"schedule": ["0: F0.0 B0.0 F0.1 B0.1", "1: F1.1 F1.0 B1.0 B1.1"]/'
hostile 2 "the schedule is for 1 stages" 's/"schedule": "1f1b"/"schedule": ["0: F0.0 B0.0"]/'
hostile 1 "expected a number of stages" 's/"stages": 2/"stages": 0/'
hostile 1 "expected a number of stages" 's/"stages": 2/"stages": 99999999999/'
hostile 1 "expected [FIRST, LAST, STAGE]" '/"pipeline"/,/"arguments"/s/\[\([0-9]*\), \([0-9]*\), 0\]/[\1, \2, 2]/'
hostile 1 "expected [FIRST, LAST, STAGE]" '/"pipeline"/,/"arguments"/s/\[\([0-9]*\), \([0-9]*\), 0\]/[\1, 99999999, 0]/'
hostile 1 "expected [FIRST, LAST, STAGE]" '/"pipeline"/,/"arguments"/s/\[\([0-9]*\), \([0-9]*\), 0\]/[-1, \2, 0]/'
hostile 1 "has a stage already" '/"pipeline"/,/"arguments"/s/\[\([0-9]*\), \([0-9]*\), 0\]/[\1, \2, 0], [\2, \2, 1]/'
hostile 2 "of stage 1" '/"pipeline"/,/"arguments"/{s/, 0\]/, X]/;s/, 1\]/, 0]/;s/, X\]/, 1]/}'

# A table is not searched for; and what is wrong with a plan is not said of its step.
expect 2 plan "$step" -c 1x2xCPU --schedule own.txt
warns "a table of tasks is for sheaf pin"
expect 1 plan "$step" -c 1x4xCPU --stages 2 --schedule 3f1b
warns "on pipeline ranks that divide 4 devices evenly, schedule 3f1b runs 6, 12"
head -c 3000 1f1b.json >short.json
for plan in nowhere.json short.json; do
    expect 1 train --plan $plan --steps 1
    if grep -q "was made from this step" err; then fail "$plan: the hint is about the step"; fi
done

# Checkpoints: of a pipeline, of ranks with the whole step, and of one device, each going on from another's.
expect 0 pin "$step" -r zero3 -n 2 -o zero3.json
train=(train "$step" --threads 1 --seed 5 --data "$io" --init "$io")
expect 0 "${train[@]}" --steps 6 --log one.jsonl --save one --save-every 3 --keep 0
for plan in 1f1b both zero3 four; do
    expect 0 "${train[@]}" --plan $plan.json --steps 6 --log $plan.jsonl --save $plan --save-every 3 --keep 0
    close $plan.jsonl one.jsonl
done
resume=(train "$step" --threads 1 --seed 5 --data "$io" --steps 6)
froms=(both) tos=(four)
if nightly; then froms=(1f1b both four one) tos=(1f1b zero3 four); fi
for from in "${froms[@]}"; do
    for to in "${tos[@]}"; do
        expect 0 "${resume[@]}" --plan "$to.json" --resume="$from/step-000003" --log resumed.jsonl
        close resumed.jsonl one.jsonl
    done
    expect 0 "${resume[@]}" --resume="$from/step-000003" --log resumed.jsonl
    close resumed.jsonl one.jsonl
done

if [ -n "$mpi" ]; then
    plans=(both:4)
    if nightly; then plans=(1f1b:2 both:4 chimera:2); fi
    for plan in "${plans[@]}"; do
        timeout 120 mpirun -n "${plan#*:}" "$SHEAF_BIN" "${train[@]}" --plan "${plan%:*}.json" --steps 6 \
            --log mpi.jsonl >out 2>err </dev/null || fail "$plan over MPI: exit code $?"
        close mpi.jsonl one.jsonl
    done
fi

# holds STEP OPTION...: such a pipeline is made, and is right.
holds() {
    expect 0 pin "$@" -o held.json
    expect 0 verify "$1" --plan held.json --steps 3 --wait 60
}
data=$SHEAF_SOURCE/test/data
holds "$step" --stages 1
holds "$step" --stages layer_1 --schedule gpipe
holds "$step" --stages 4 --micro-batches 2 --schedule interleaved
# Small numbers that follow from large ones of the update: norms and means of weights.
for micro in 1 2; do
    holds "$data/jump/adafactor.stablehlo.mlir.xz" --stages 2 --micro-batches $micro
done
# Turns in any order.
printf '0: F0.1 F0.0 B0.1 B0.0\n1: F1.1 B1.1 F1.0 B1.0\n' >turned.txt
holds "$step" --stages 2 --micro-batches 2 --schedule turned.txt
# A tied table whose gradients are products in 16 bits and lookups in 32: all are added up, and then converted.
for options in "--stages 2" "--stages 4 --recompute layer" "--stages 2 --schedule interlaced"; do
    # shellcheck disable=SC2086
    holds "$data/turns/t5-half.stablehlo.mlir.xz" $options --micro-batches 4
done
# Where the backward pass is not known as such.
holds "$data/loops/opt-apply-if-finite.stablehlo.mlir.xz" --stages 2 --micro-batches 2

# What a search for stages does not go with is said.
expect 2 plan "$step" --cluster 4xCPU --stages 2 --mesh data=4
warns "is not called pipe"
expect 2 plan "$step" --cluster 1xCPU --stages 2
warns "the cluster has one device"
expect 0 plan "$step" --cluster 4xCPU --stages 2 --co-shard 2 -o both.json
says_like "^  co-shard +2, of what megatron splits"
expect 0 verify --plan both.json --steps 2

expect 2 pin "$step" --stages '' --micro-batches 2 -o no.json
expect 2 plan "$step" --cluster 1x2xCPU --stages 1 --schedule zb-h1 -o no.json
warns "which has 2 stages or more"
[ "$failures" -eq 0 ] || { echo "$failures failed"; exit 1; }
