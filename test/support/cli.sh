# What the tests of the command line share; sourced by them. $work is a folder that goes when they end,
# `sheaf` the command and what comes first of its arguments.
work=$(mktemp -d)
export XDG_CACHE_HOME=$work/cache # what is compiled is gone with it
trap 'rm -rf "$work"' EXIT
sheaf=("$SHEAF_BIN")
failures=0
# A library in the place of a GPU, for SHEAF_CUDA (test/emulator).
# shellcheck disable=SC2034
emulator=$SHEAF_BUILD/test/support/libemulator.so

fail() {
    echo "FAILED: $*"
    sed 's/^/    /' "$work/out" "$work/err" | head -20
    failures=$((failures + 1))
}

# expect CODE ARGUMENT...: runs sheaf; its output is in $work/out and $work/err.
expect() {
    local code=$1 got=0
    shift
    "${sheaf[@]}" "$@" >"$work/out" 2>"$work/err" </dev/null || got=$?
    [ "$got" -eq "$code" ] || fail "${sheaf[*]} $*: exit code $got, expected $code"
    warns_not "a fault of the cost model"
}

says() { grep -qF -e "$1" "$work/out" || fail "standard output lacks '$1'"; }
says_like() { grep -qE -e "$1" "$work/out" || fail "standard output has no line like '$1'"; }
warns() { grep -qF -e "$1" "$work/err" || fail "standard error lacks '$1'"; }
warns_not() { ! grep -qF -e "$1" "$work/err" || fail "standard error has '$1'"; }
silent() { [ ! -s "$work/$1" ] || fail "something on $1"; }

# Whether to run the long version, of `make nightly`. With sanitizers always the short one.
nightly() { [ -n "${SHEAF_NIGHTLY:-}" ] && [ -z "${SHEAF_SANITIZE:-}" ]; }
