#!/usr/bin/env bash
# What the command line says of plans in stages, and what it refuses.
set -u
. "$SHEAF_SOURCE/test/support/cli.sh"
step=$SHEAF_SOURCE/examples/gpt-micro.stablehlo.mlir
cd "$work" || exit 1

expect 0 pin "$step" --stages 2 --micro-batches 4 -o plan.json
silent err
says_like "^  stages +2, by 1f1b, on 2 pipeline ranks"
says_like "^  repeats 0.0 %"
says_like "^  between pipeline ranks: [0-9]+ messages of"
if grep -q "splits nothing" out; then fail "the axis of a pipeline is said to do nothing"; fi
expect 0 explain plan.json -c 1x2xCPU
says_like "^  stages +2, by 1f1b, on 2 pipeline ranks"
says_like "^  between pipeline ranks: [0-9]+ messages of"
expect 0 explain plan.json -c 1x2xCPU 'layer_1/mlp/up/kernel'
says "[At(1)]"
expect 0 sim plan.json -c 1x2xCPU
says_like "^  message +pipe "
says_like "^   1 \|[Fbu.]+\|$"
expect 0 report plan.json -c 1x2xCPU -o page.html
grep -q "pp 2" page.html || fail "the page does not say pp 2"

# Tables.
printf '0: F0.0 F0.1 B0.0 B0.1\n1: F1.0 B1.0 F1.1 B1.1\n' >table.txt
expect 0 pin "$step" --stages 2 --schedule table.txt -o table.json
says_like "^  stages +2, by a table"
expect 0 report table.json -c 1x2xCPU --json
says "the table of the pipeline is for 2 micro-batches"

# A schedule says that there are stages, also where plans without are faster.
for schedule in gpipe 1f1b zb-v interleaved:2; do
    expect 0 plan "$step" -c 1x4xV100 --schedule $schedule
    says_like "^  stages +[0-9]+, by $schedule, on [24] pipeline ranks"
done

# What cannot be.
expect 2 plan "$step" -c 1x1xV100 --schedule zb-v
warns "no plan in stages by schedule zb-v is searched for: the cluster has one device"
expect 2 plan "$step" -c 1x4xV100 --schedule zb-v --mesh data=4
warns "the first axis of the mesh that is given is not called pipe"
expect 1 plan "$step" -c 1x4xV100 --schedule zb-v -m 1K
warns "no plan in stages by schedule zb-v was found"
expect 1 plan "$step" -c 1x4xV100 --schedule zb-v --stages 3
warns "no plan in 3 stages was found: on pipeline ranks that divide 4 devices evenly, schedule zb-v runs 4, 8"
for schedule in zb-v interleaved:2; do
    expect 2 pin "$step" --stages 2 --micro-batches 2 --schedule $schedule
    warns "schedule $schedule does not run 2 stages: 2 pipeline ranks have 4"
done
expect 0 pin "$step" --stages 2
expect 2 pin "$step" -r dp -n 2 --schedule 1f1b
warns "say its --stages"
expect 2 pin "$step" --stages 2 --micro-batches 4 --schedule foo
warns "there is no schedule"
expect 2 plan "$step" -c 1x2xCPU --stages 2 --schedule foo
warns "there is no schedule"
expect 2 pin "$step" --stages 2 --micro-batches 4 --schedule table.txt
warns "the schedule is for 2 stages, 2 micro-batches"
[ "$failures" -eq 0 ]
