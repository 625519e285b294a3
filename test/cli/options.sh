#!/usr/bin/env bash
# Options over all commands: a letter is one option everywhere; letters and names of before lead to what they are now.
set -u
. "$SHEAF_SOURCE/test/support/cli.sh"
step=$SHEAF_SOURCE/examples/gpt-micro.hlo
commands="show convert eval verify run train pin plan tune repl explain sim report diff cluster calibrate solve completion version"

# "LETTER NAME VALUE" of every option of every command.
for command in $commands; do
    "$SHEAF_BIN" $command --help | sed -nE 's/^  (-(.), |    )--([a-z-]+)( [A-Z]+|\[[^ ]*)?( .*)?$/\2:\3:\4/p'
done | sort -u >"$work/options"
[ "$(wc -l <"$work/options")" -gt 40 ] || fail "the help was not understood"
for key in 1 2; do # by letter, by name
    twice=$(cut -d: -f$key "$work/options" | grep . | sort | uniq -d)
    # In verify, -t was --tolerance, and is not yet --threads.
    [ $key = 2 ] && twice=$(grep -v '^threads$' <<<"$twice")
    [ -z "$twice" ] || fail "more than one meaning: $twice"
done

# Letters of before, given as people did, with the value behind them or after them.
while read -r command letter name; do
    for given in "-$letter" "-$letter 1" "-${letter}1"; do
        # shellcheck disable=SC2086
        expect 2 $command "$step" $given
        warns "-$letter is not --$name any more"
        warns "--$name"
        silent out
    done
done <<'END'
show d depth
show p program
verify a against
verify t tolerance
verify i init
train i init
train s save
train r resume
pin p pin
plan p pin
plan r recipes
explain s step
diff s step
END
expect 0 eval "$step" -i "${step%.hlo}.io.safetensors" --outputs "$work/old"
expect 0 eval "$step" -i "${step%.hlo}.io.safetensors" -o "$work/new"
cmp "$work/old" "$work/new" || fail "--outputs is not -o"

# Names that are nearly right.
for pair in "verify --tolerence tolerance" "plan --clutser cluster" "train --step-s steps" "run --jsn json"; do
    read -r command given meant <<<"$pair"
    expect 2 "$command" "$step" "$given" 1
    warns "unknown option: $given; did you mean --$meant?"
done
expect 2 run "$step" --xyzzyx
grep -q "did you mean" "$work/err" && fail "a suggestion for nonsense"

# --json and --profile of what makes steps.
for command in "run $step" "train $step -d synthetic"; do
    # shellcheck disable=SC2086
    expect 0 $command -N 3 --json
    says '"engine": "cpu"'
    says '"parameters": 7232'
    says_like '^  "seconds": [0-9.e-]+,?$'
    says_like '^  "memory": [1-9][0-9]*,$'
    [ "$(sed -n '1p;$p' "$work/out" | tr -d '\n')" = "{}" ] || fail "$command --json: not one object"
    # shellcheck disable=SC2086
    expect 0 $command -N 3 --profile "$work/profile"
    grep -q '^step .* ms' "$work/profile" || fail "$command --profile"
    # shellcheck disable=SC2086
    expect 2 $command -N 3 --json --profile -
    warns "cannot both go to standard output"
done
expect 0 run "$step" -N 3 --json
[ "$(grep -c '"loss": ' "$work/out")" = 3 ] || fail "not three losses"
expect 0 train "$step" -d synthetic -N 3 --json
says '"step": 3'
"$SHEAF_BIN" pin "$step" -r dp -n 2 -o "$work/dp.json" >/dev/null
expect 0 run "$step" -p "$work/dp.json" -N 2 --json
says '"ranks": 2'

[ "$failures" -eq 0 ]
