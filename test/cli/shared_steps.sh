#!/usr/bin/env bash
# Training steps that are too large to ship, looked for beside the source tree. All import; both
# forms of a step have one hash; what is inferred about arguments is what the sidecar says; the ones
# that come with numbers compute them.
set -u
bin=$SHEAF_BIN
data=$SHEAF_SOURCE/../shared/data
work=$SHEAF_BUILD/data/steps
# With sanitizers, two of the ten steps will do.
steps=(${SHEAF_SANITIZE:+--steps 2})
failures=0

for name in xla.tar.xz jax/tiny.tar.xz jax/bench.tar.xz jax/large; do
    if [ ! -r "$data/$name" ]; then
        echo "not found: ../shared/data/$name"
        exit 77
    fi
done
if ! command -v xz >/dev/null; then
    echo "xz is not installed"
    exit 77
fi
if ! "$bin" version | grep '^zlib: in' >/dev/null; then
    echo "zlib is not in this build, and the large steps are compressed with gzip"
    exit 77
fi

fail() {
    echo "FAILED: $*"
    failures=$((failures + 1))
}

# show NAME FILE [OPTION...]: keeps what is known about a step as $work/NAME
show() {
    local name=$1
    shift
    "$bin" show --json "$@" >"$work/$name" || fail "$1: does not import"
}

# same_hash NAME NAME
same_hash() {
    local ours theirs
    ours=$(grep '^  "hash": ' "$work/$1")
    theirs=$(grep '^  "hash": ' "$work/$2")
    if [ -z "$ours" ] || [ "$ours" != "$theirs" ]; then
        fail "$1 and $2 are different: $ours $theirs"
    fi
}

# same_roles NAME NAME: roles, state links and loss
same_roles() {
    local pattern='^ *"(parameters|loss|links|role|next)":'
    cmp <(grep -E "$pattern" "$work/$1") <(grep -E "$pattern" "$work/$2") ||
        fail "$1 has other roles or links than $2"
}

rm -rf "$work"
mkdir -p "$work"
for name in xla jax/tiny jax/bench; do
    tar -xJf "$data/$name.tar.xz" -C "$work" || fail "$name: cannot be unpacked"
done

count=0
for file in "$work"/xla/*.hlo "$work"/bench/*.mlir "$data"/jax/large/*.{mlir,hlo}.gz; do
    name=$(basename "$file" .gz)
    step=${name%.hlo}
    step=${step%.stablehlo.mlir}
    show "$name" "$file" --sidecar none
    if [ -r "$data/jax/large/$step.json.gz" ]; then
        show "$step.sidecar" "$file"
        same_roles "$name" "$step.sidecar"
        same_hash "$name" "$step.sidecar"
    fi
    if [ "$name" = "$step.hlo" ] && [ -r "$work/$step.stablehlo.mlir" ]; then
        same_hash "$name" "$step.stablehlo.mlir"
        echo "$step: both forms have one hash"
    fi
    count=$((count + 1))
done
echo "$count steps import"
[ "$count" -eq 29 ] || fail "29 were expected"

for step in gpt gpt-bf16 gpt-scan moe wresnet; do
    for form in stablehlo.mlir hlo; do
        file=$work/tiny/$step-tiny.$form
        show "$step-tiny.$form" "$file"
        "$bin" verify "$file" --against "$work/tiny/$step-tiny.io.safetensors" "${steps[@]}" \
            >"$work/report" ||
            fail "$file does not verify"
        echo "$step-tiny.$form, $(tail -n 1 "$work/report")"
    done
    same_hash "$step-tiny.stablehlo.mlir" "$step-tiny.hlo"
done
[ "$failures" -eq 0 ]
