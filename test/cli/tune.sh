#!/usr/bin/env bash
# sheaf tune: what is tried, what is not, logs that are taken up, and the plan of the best setting.
set -u
. "$SHEAF_SOURCE/test/support/cli.sh"
if ! "$SHEAF_BIN" version | grep -q '^lua: in'; then
    echo "skipped: no Lua"
    exit 77
fi
sheaf=(timeout 300 "$SHEAF_BIN")
step=$SHEAF_SOURCE/examples/gpt-micro.stablehlo.mlir
cd "$work" || exit 1

cat >s.lua <<'LUA'
local sch = sheaf.schedule()
local data = tune.choice("data", {1, 2, 4})
local turns = tune.int("turns", 1, 4 // data)
local again = tune.choice("again", {"none", "layer"})
assert(tune.int("turns", 1, 4 // data) == turns)
sch:mesh{{"data", data}, {"model", 4 // data}}
sch:recipe("2d")
sch:recompute(again)
if turns > 1 then sch:micro_batches(turns) end
LUA

# All of them: 4 + 2 + 1 numbers of turns by two ways, three of them with turns that do not divide the batch.
expect 0 tune s.lua "$step" --cluster 1x4xCPU --algorithm exhaustive --log all.log -o best.json
says "14 of 14 settings looked at"
says "does not split into 3 equal parts"
best=$(grep '^best: ' out | cut -d, -f1-3)
[ "$(wc -l <all.log)" -eq 15 ] || fail "the log has not a line for each setting"
expect 0 verify --plan best.json --steps 2
# A plan is made for the best setting: what it is simulated to take is what the table says.
expect 0 tune s.lua "$step" --cluster 1x4xCPU --algorithm exhaustive --json
cp out all.json
expect 0 tune s.lua "$step" --cluster 1x4xCPU --algorithm model --json
[ "$(grep '"best"' out)" = "$(grep '"best"' all.json)" ] || fail "the model does not find the best"

# A log is taken up: nothing is tried again, also where the last line is torn.
cp all.log before.log
expect 0 tune s.lua "$step" --cluster 1x4xCPU --algorithm exhaustive --log all.log
says "14 from the log"
says "$best"
cmp -s all.log before.log || fail "what is in the log was written again"
head -c -20 before.log >torn.log
expect 0 tune s.lua "$step" --cluster 1x4xCPU --algorithm exhaustive --log torn.log
says "13 from the log"
expect 0 tune s.lua "$step" --cluster 1x4xCPU --algorithm exhaustive --log torn.log
says "14 from the log"
expect 0 tune s.lua "$step" --cluster 1x4xCPU --trials 5 --log few.log
says "5 of 14 settings"
expect 0 tune s.lua "$step" --cluster 1x4xCPU --trials 8 --log few.log
says "5 from the log"
# One of another cluster, or another program, is refused and left as it is.
expect 2 tune s.lua "$step" --cluster 1x4xV100 --log all.log
warns "all.log: error: this log is of another run"
sed 's/{"none", "layer"}/{"none", "cheap"}/' s.lua >other.lua
expect 2 tune other.lua "$step" --cluster 1x4xCPU --log all.log
cmp -s all.log before.log || fail "a log of another run was changed"

# A page: the data that --json prints, and nothing from outside (cli/report_browser opens it).
expect 0 tune s.lua "$step" --cluster 1x4xCPU --algorithm exhaustive --log all.log --json --page tune.html
grep -qF '"variables":["data",' tune.html || fail "the page has no variables"
[ "$(grep -o '"pruned":' tune.html | wc -l)" -eq "$(grep -c '"pruned":' out)" ] || fail "not all trials are on the page"
grep -qE '(src|href)="?http|<(link|img)|@import|url\(' tune.html && fail "the page asks for something outside"

# What does not fit is predicted, and not tried.
expect 0 tune s.lua "$step" --cluster 1x4xCPU --algorithm exhaustive --memory 110K
says "does not fit"
says_like "14 of 14 settings looked at, [1-9][0-9]* of them predicted not to fit"
expect 1 tune s.lua "$step" --cluster 1x4xCPU --algorithm exhaustive --memory 10K -o none.json
warns "none can be"
[ ! -e none.json ] || fail "a plan of nothing"

# By running: the same settings, on real ranks.
expect 0 tune s.lua "$step" --by run --trials 4 --steps 2 --threads 1 -o ran.json
says "4 of 14 settings"
expect 0 verify --plan ran.json --steps 2

expect 0 tune s.lua "$step" --by cpu --trials 3 --steps 2 --threads 1 --log cpu.log
says "3 of 14 settings"
grep -q "by cpu on" cpu.log || fail "the log does not say by what"
expect 2 tune s.lua "$step" --by run --trials 3 --steps 2 --threads 1 --log cpu.log
warns "cpu.log: error: this log is of another run"

# A step of which ops are replaced stands in no file: it is written beside the plan, which is of that.
cat >replaced.lua <<'LUA'
local sch, mlp = sheaf.schedule(), sheaf.schedule()["layer_?.mlp"]
sch:mesh{{"data", tune.choice("data", {1, 2})}}
sch:recipe("dp")
mlp:trace{}
mlp:replace(function(x) return 2 / (1 + exp(x * -2)) - 1 end, mlp:find(function(x) return tanh(x) end))
LUA
expect 0 tune replaced.lua "$step" --cluster 1x2xCPU -o replaced.json
warns "step: replaced.stablehlo.mlir, as the schedule makes it"
expect 0 verify --plan replaced.json --steps 2
says "verify: passed"
! grep -q tanh replaced.stablehlo.mlir || fail "the step is not the one that the schedule makes"
expect 2 tune replaced.lua "$step" --cluster 1x2xCPU -o -
warns "write it first, sheaf convert STEP --schedule LUA -o FILE"

# Without a tuner a schedule has the first of all values.
expect 0 pin "$step" --schedule s.lua
says "data=1,model=4"

# Mistakes.
refuse() {
    printf '%s\n' "$1" >wrong.lua
    expect "$2" tune wrong.lua "$step" --cluster 1x2xCPU
    warns "$3"
}
refuse "local sch = sheaf.schedule()" 2 "nothing is asked for"
refuse "x = = 1" 1 "wrong.lua:1: error: unexpected symbol"
refuse "local a = tune.int('a', 1, 3)
tune.int('a', 1, 4)" 1 "none can be"
warns 'was asked for before, with other values'
refuse "tune.int('a', 3, 1)" 1 'wrong.lua:1: error: "a" is of 3 to 1'
refuse "tune.choice('a', {})" 1 "wrong.lua:1: error: bad argument #2 to 'choice'"
refuse "tune.int('a,b', 1, 2)" 1 "without = and ,"
refuse "for i = 1, 8 do tune.int('x' .. i, 1, 100) end" 2 "narrow the ranges"
expect 2 tune s.lua "$step"
warns "give a --cluster"
expect 2 tune s.lua "$step" --cluster 1x2xCPU --by guess
expect 2 tune s.lua "$step" --cluster 1x2xCPU --algorithm luck
expect 2 tune s.lua
warns "STEP is missing"
expect 1 tune nowhere.lua "$step" --cluster 1x2xCPU

# The space of Slapo's Figure 10: 91 settings for OPT-350M. The best of all is found in at most 17, on two clusters.
if nightly; then
    "$SHEAF_BUILD/test/gpt_step" 24 1024 16 768 1024 51200 >opt.mlir || fail "no step"
    schedule=$SHEAF_SOURCE/examples/schedules/tune-opt.lua
    for cluster in 8x1xV100 4x2xV100; do
        expect 0 tune "$schedule" opt.mlir --cluster $cluster --algorithm exhaustive --log $cluster.log
        says "91 of 91 settings"
        best=$(grep '^best: ' out)
        expect 0 tune "$schedule" opt.mlir --cluster $cluster --log $cluster.log
        says "$best"
        looked=$(grep -oE '^[0-9]+ of 91 settings' out | cut -d' ' -f1)
        [ "$looked" -le 17 ] || fail "$looked of 91 settings were looked at"
    done
fi
[ "$failures" -eq 0 ] || { echo "$failures failed"; exit 1; }
