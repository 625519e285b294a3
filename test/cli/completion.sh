#!/usr/bin/env bash
# What shells complete: every option of every command, and values; bash by its own machinery, the others where they are
# installed.
set -u
. "$SHEAF_SOURCE/test/support/cli.sh"
commands="show convert eval verify run train pin plan tune repl explain sim report diff passes cluster calibrate cache solve completion version"

for shell in bash zsh fish; do
    expect 0 completion $shell
    silent err
    cp "$work/out" "$work/sheaf.$shell"
done
expect 2 completion tcsh
warns "the shell is bash, zsh or fish, not 'tcsh'"
expect 2 completion
expect 0 completion --help

# complete_words WORD...: what bash offers for the last one, one in a line, sorted.
. "$work/sheaf.bash"
complete_words() {
    COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMPREPLY=()
    _sheaf
    printf '%s\n' "${COMPREPLY[@]}" | sort
}
offers() { # EXPECTED WORD...
    local expected=$1
    shift
    complete_words "$@" >"$work/out"
    [ "$(tr '\n' ' ' <"$work/out")" = "$expected " ] || fail "$*: not '$expected'"
}
complete -p sheaf | grep -qF -- '-F _sheaf' || fail "bash was not told"
[ "$(complete_words sheaf "" | grep -vc -e --)" = "$(($(wc -w <<<"$commands") + 1))" ] || fail "not all commands"
offers "plan" sheaf pl
offers "--cluster --co-shard --compare" sheaf plan x --c
offers "megatron" sheaf pin x -r m
offers "megatron" sheaf pin x --recipe = m
offers "cpu cuda oracle" sheaf run x -e ""
offers "slapo" sheaf plan x --cluster sl
offers "slapo" sheaf cluster sl
offers "bash" sheaf completion b
offers "explain" sheaf help exp
offers "" sheaf show examp
offers "" sheaf verify --against ""
for command in $commands; do
    "$SHEAF_BIN" $command --help | grep -oE '^  (-., |    )--[a-z-]+' | grep -oE -- '--.*' | sort >"$work/help"
    complete_words sheaf $command - >"$work/out"
    cmp -s "$work/help" "$work/out" || fail "bash does not offer the options of $command"
done

skipped=
if command -v zsh >/dev/null; then
    zsh -n "$work/sheaf.zsh" || fail "zsh does not read it"
    zsh -fc "autoload -U compinit; compinit -D; . $work/sheaf.zsh; [ \${_comps[sheaf]} = _sheaf ]" ||
        fail "zsh was not told"
    zsh -fc '_arguments() { print -l -- "$@" }
        compdef() { :; }; . '"$work"'/sheaf.zsh
        for c in '"$commands"'; do words=(sheaf $c ""); CURRENT=3; print "== $c"; _sheaf; done' >"$work/out" 2>"$work/err"
    for command in $commands; do
        sed -n "/^== $command\$/,/^== /p" "$work/out" | grep -oE -- '--[a-z-]+[=[]' | tr -d '=[' | sort -u >"$work/zsh"
        "$SHEAF_BIN" $command --help | grep -oE '^  (-., |    )--[a-z-]+' | grep -oE -- '--.*' | sort >"$work/help"
        cmp -s "$work/help" "$work/zsh" || fail "zsh does not offer the options of $command"
    done
else
    skipped="$skipped zsh"
fi
if command -v fish >/dev/null; then
    fish -n "$work/sheaf.fish" || fail "fish does not read it"
    for command in $commands; do
        fish --no-config -c "source $work/sheaf.fish; complete -C 'sheaf $command --'" 2>/dev/null | cut -f1 |
            grep -e -- | sort -u >"$work/fish"
        "$SHEAF_BIN" $command --help | grep -oE '^  (-., |    )--[a-z-]+' | grep -oE -- '--.*' | sort >"$work/help"
        cmp -s "$work/help" "$work/fish" || fail "fish does not offer the options of $command"
    done
    fish --no-config -c "source $work/sheaf.fish; complete -C 'sheaf pin x --recipe m'" >"$work/out" 2>/dev/null
    says megatron
else
    skipped="$skipped fish"
fi
[ -z "$skipped" ] || echo "not installed:$skipped"
[ "$failures" -eq 0 ]
