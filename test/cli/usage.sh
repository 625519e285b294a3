#!/usr/bin/env bash
# Command lines, right and wrong: exit codes, and what goes to which stream.
set -u
. "$SHEAF_SOURCE/test/support/cli.sh"
bin=$SHEAF_BIN
step=$SHEAF_SOURCE/examples/gpt-micro.hlo

expect 2
warns "usage: sheaf"
silent out
for help in --help -h help; do
    expect 0 $help
    says "usage: sheaf"
    silent err
done
for command in show convert eval verify run train pin plan tune repl explain sim report diff passes cluster calibrate solve completion version; do
    expect 0 --help
    says "  $command "
    expect 0 help $command
    says "usage: sheaf $command"
    expect 0 $command --help
    says "usage: sheaf $command"
    says "--help"
    silent err
    expect 0 $command -h
    expect 2 $command --no-such-option
    warns "--no-such-option"
    silent out
    expect 2 $command -Q
    warns "-Q"
    expect 2 $command --help=yes
done
expect 2 help nothing
expect 2 verifi
warns "did you mean 'verify'?"
expect 2 xyzzy
warns "no command 'xyzzy'"
if grep -q "did you mean" "$work/err"; then fail "a suggestion for nonsense"; fi
expect 2 "$(printf 'x%.0s' {1..10000})"

expect 0 --version
says "sheaf "
expect 0 version
says "compiler:"
says "zlib: "
expect 0 version --json
says '"features"'
expect 2 version extra

for command in show convert eval; do
    expect 2 $command
    warns "STEP is missing"
    expect 2 $command "$step" more
    warns "one argument too many: 'more'"
    expect 1 $command "$work/nowhere.hlo"
    warns "nowhere.hlo"
    silent out
    expect 1 $command "$work"
    expect 2 $command "$step" --unroll x
    warns "--unroll wants an integer"
    expect 2 $command "$step" --unroll -1
    expect 2 $command "$step" --max-nodes
    warns "a value is missing after: --max-nodes"
    expect 1 $command "$step" --max-nodes 10
    expect 1 $command "$step" --sidecar "$work/nowhere.json"
    echo '{"args": 3' >"$work/bad.json"
    expect 1 $command "$step" --sidecar "$work/bad.json"
    warns "bad.json"
done

expect 2 verify "$step"
warns "--against FILE, --plan PLAN or --schedule LUA is missing"
expect 1 verify "$step" --against "$work/nowhere.safetensors"
warns "nowhere.safetensors"
expect 2 verify "$step" --against x --tolerance -1
warns "a positive number"
expect 2 verify "$step" --against x --tolerance nan
expect 2 verify "$step" --against x --steps 1.5
expect 1 verify "$step" --against "$SHEAF_SOURCE/examples/gpt-micro.io.safetensors" --steps 11
warns "11 steps were asked for, but there are 10 losses"
expect 2 verify "$step" --st 3
warns "--st is short for several options: --steps, --state"
for options in "--ops --json" "--ops $step" "$step --op"; do
    # shellcheck disable=SC2086
    expect 2 show $options
    warns "--ops takes no STEP"
done
expect 0 show --op
expect 0 show --ops --help

# Sidecars: what is wrong is said, and where. One that was only found, and is none, does no harm.
sidecar() {
    printf '%s' "$1" >"$work/bad.json"
    expect 1 show "$step" --sidecar "$work/bad.json"
    warns "$2"
}
sidecar '{"args": [{"role": "weights", "shape": []}]}' 'bad.json:1:20: error: the "role" of entry 0'
sidecar '{"state": 3}' 'bad.json:1:11: error: "state" must be a text such as "0=0,1=3", not a number'
sidecar '{"state": "0=999"}' 'there is no result "999"'
sidecar '{"args": [{"role": "param"}]}' 'entry 0 of "args" has no "shape"'
sidecar '{"args": [{"role": "param", "shape": {"a": 1}}]}' 'the "shape" of entry 0 must be an array'
sidecar '{"args": [{"role": "param", "shape": [-1]}]}' 'the "shape" of entry 0 must be an array'
sidecar '{"args": [{"role": "param", "shape": [3]}]}' 'entry 0 has another shape'
sidecar '{"args": [3]}' 'must be an object, not a number'
sidecar '{"args": 3}' '"args" must be an array'
sidecar '{"args": []}' 'no entry is left for argument 0'
sidecar '[]' 'this is no sidecar'
cp "$step" "$work/other.hlo"
echo '{"name": "my-package", "version": "1.0"}' >"$work/other.json"
expect 0 show "$work/other.hlo"
silent err
echo '{' >"$work/other.json"
expect 1 show "$work/other.hlo"
warns "--sidecar none"
expect 0 show "$work/other.hlo" --sidecar none

# Twenty errors are told.
for i in {1..40}; do echo "%$i = nothing.known : tensor<f32>"; done >"$work/many.mlir"
expect 1 show "$work/many.mlir"
warns "stopped after 20 errors"
for size in x 0 -1 1Q 9999999999G 99999999.5T 1.5.1M 1,5M 5.M .5K 0.1 M 5KB 1e3K ' 5' ''; do
    expect 2 eval "$step" --memory "$size"
    warns "--memory wants a size such as 512M or 7.5G, with K, M, G or T for powers of 1024, not '$size'"
done

# An instruction set that is none is no reason to take another.
SHEAF_VEC=mmx expect 2 verify "$step" --against "$SHEAF_SOURCE/examples/gpt-micro.io.safetensors"
warns "SHEAF_VEC is 'mmx'"
silent out

for text in '' 'HloModule' 'module {' 'not a step at all' $'HloModule m\n\nENTRY e {'; do
    printf '%s' "$text" >"$work/bad"
    for command in show convert eval; do
        expect 1 $command "$work/bad"
        warns "error:"
        silent out
    done
done

NO_COLOR= expect 1 convert "$work/bad"
if grep -q $'\033' "$work/err"; then fail "colours, but not on a terminal"; fi

[ "$failures" -eq 0 ]
