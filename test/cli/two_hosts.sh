#!/usr/bin/env bash
# Ranks on two hosts, which are network namespaces, make the losses of threads; nothing stays behind, also
# when the script is interrupted.
set -u
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
PATH=$PATH:/usr/sbin:/sbin
export ASAN_OPTIONS=${ASAN_OPTIONS:-}:detect_leaks=0

give_up() {
    echo "FAILED: $*"
    sed 's/^/    /' "$work/out" | tail -n 20
    exit 1
}

# Whether anything of the script with this number is still there.
stays() { ip netns list | grep -q "^sheaf-$1-"; }

timeout 200 "$SHEAF_SOURCE/scripts/two-hosts" >"$work/out" 2>&1 &
pid=$!
status=0
wait $pid || status=$?
if [ $status -eq 77 ]; then
    tail -n 1 "$work/out"
    exit 77
fi
[ $status -eq 0 ] || give_up "exit code $status"
grep -q "the losses of 10 steps are those of threads" "$work/out" || give_up "nothing was compared"
tail -n 2 "$work/out"

# Interrupted while the ranks sleep.
: >"$work/out"
"$SHEAF_SOURCE/scripts/two-hosts" sh -c 'echo started; sleep 100' >"$work/out" 2>&1 &
pid=$!
for _ in $(seq 300); do
    [ "$(grep -c started "$work/out")" -eq 2 ] && break
    sleep 0.1
done
[ "$(grep -c started "$work/out")" -eq 2 ] || give_up "two ranks do not start"
kill -TERM $pid
status=0
wait $pid || status=$?
[ $status -eq 143 ] || give_up "interrupted: exit code $status"
stays $pid && give_up "namespaces stay"
pgrep -f "sheaf-$pid-" >"$work/out" && give_up "processes stay"
echo "good"
