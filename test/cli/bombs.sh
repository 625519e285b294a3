#!/usr/bin/env bash
# Files that are far more than they look, or that never end: refused by a sentence, soon, and without much memory.
set -u
. "$SHEAF_SOURCE/test/support/cli.sh"
step=$SHEAF_SOURCE/examples/gpt-micro.hlo

# within SECONDS KIBIBYTES CODE ARGUMENT...: expect, with a limit on the memory that is touched and on the time.
within() {
    local seconds=$1 memory=$2 code=$3 got=0
    shift 3
    python3 - "$seconds" "$memory" "$work/out" "$work/err" "$SHEAF_BIN" "$@" <<'END' || got=$?
import resource, subprocess, sys
seconds, memory, out, err = float(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4]
with open(out, "wb") as o, open(err, "wb") as e:
    try:
        code = subprocess.run(sys.argv[5:], stdout=o, stderr=e, stdin=subprocess.DEVNULL,
                              timeout=seconds).returncode
    except subprocess.TimeoutExpired:
        sys.exit(99)
peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
sys.exit(98 if peak > memory else code)
END
    [ "$got" -eq "$code" ] || fail "$*: $got, expected $code (98: memory, 99: time)"
}

# 10 GiB of zeros in 10 MB: 160 members of 64 MiB.
head -c 64M /dev/zero | gzip >"$work/member.gz"
for i in {1..160}; do cat "$work/member.gz"; done >"$work/bomb.gz"
head -c 256M /dev/zero | gzip | gzip >"$work/twice.gz"
truncate -s 100G "$work/sparse"
head -c 30000 "$work/member.gz" >"$work/cut.gz"

for reader in show convert "plan -c 1x2xV100" solve; do
    within 20 400000 1 $reader "$work/bomb.gz"
    warns "unpacks to more than 900 times its size"
    warns "--max-input"
    within 20 400000 1 $reader "$work/sparse"
    warns "larger than the limit of"
    within 20 400000 1 $reader /dev/zero
    warns "larger than the limit of 67108864 bytes"
    within 20 400000 1 $reader "$work"
    warns "is a directory"
    within 20 400000 1 $reader "$work/cut.gz"
    warns "cut off"
    within 20 400000 1 $reader "$work/bomb.gz" --max-input 128M
    warns "larger than the limit of 134217728 bytes"
done
within 20 400000 1 show "$work/twice.gz" # a gzip in a gzip is bytes, which are no step

for option in "eval $step --inputs" "verify $step --against"; do
    for file in "$work/bomb.gz" /dev/zero "$work"; do
        within 30 600000 1 $option "$file"
    done
done

# Operands by the thousand.
{
    printf 'func.func @main(%%x: tensor<4xf32>) -> tensor<4xf32> {\n%%y = "stablehlo.concatenate"('
    printf '%%x, %.0s' {2..30000}
    printf '%%x) {dimension = 0 : i64} : ('
    printf 'tensor<4xf32>, %.0s' {2..30000}
    printf 'tensor<4xf32>) -> tensor<120000xf32>\n'
    printf '%%s = stablehlo.slice %%y [0:4] : (tensor<120000xf32>) -> tensor<4xf32>\nreturn %%s : tensor<4xf32>\n}\n'
} >"$work/wide.mlir"
within 40 400000 0 eval "$work/wide.mlir"

# What is said stands, for small files too.
within 20 400000 1 show "$step" --max-input 1K
warns "larger than the limit of 1024 bytes"
within 20 400000 0 show "$step" --max-input 1G
expect 2 show "$step" --max-input much

# A pipe that never ends, and data that is a pipe that nobody writes to.
mkfifo "$work/pipe"
yes >"$work/pipe" 2>/dev/null &
writer=$!
within 30 200000 1 show "$work/pipe" --max-input 100M
warns "larger than the limit of 104857600 bytes"
kill $writer 2>/dev/null
mkfifo "$work/silent"
within 20 400000 1 train "$SHEAF_SOURCE/examples/gpt-micro.stablehlo.mlir" --steps 1 --data "$work/silent"
warns "is no regular file"
[ "$failures" -eq 0 ]
