#!/bin/sh
# Completions and manual pages come from the tables of options: every option that --help names is in
# them, bash completes by them, and groff finds nothing wrong.
. tests/e2e/common.sh

commands=$("$TRIBO" --help | sed -n 's/^  \([a-z][a-z]*\)  .*/\1/p' | grep -v '^help$')
check 'there are commands' [ -n "$commands" ]
for shell in bash zsh fish; do
    run 0 completion $shell
    cp "$dir/out" "$dir/$shell"
done
check 'bash reads its completions' bash -n "$dir/bash"
command -v zsh >/dev/null 2>&1 && check 'zsh reads its completions' zsh -n "$dir/zsh"
command -v fish >/dev/null 2>&1 && check 'fish reads its completions' fish -n "$dir/fish"
for command in $commands; do
    run 0 man "$command"
    sed 's/\\-/-/g; s/\\f[BRI]//g' "$dir/out" >"$dir/man"
    "$TRIBO" "$command" --help | sed -n 's/^  --\([a-z0-9-]*\).*/\1/p' | grep -v '^help$' >"$dir/options"
    missing=
    while read -r option; do
        grep -q -- "^--$option\b" "$dir/man" || missing="$missing man:$option"
        sed -n "s/^        $command) COMPREPLY.*\"\(.*\)\" -- .*/\1/p" "$dir/bash" | tr ' ' '\n' |
            grep -qx -- "--$option" || missing="$missing bash:$option"
        grep -q "seen_subcommand_from $command' -l $option " "$dir/fish" || missing="$missing fish:$option"
        sed -n "/^    $command) _arguments/,/;;/p" "$dir/zsh" | grep -q -- "'\*\{0,1\}--$option[=[]" ||
            missing="$missing zsh:$option"
    done <"$dir/options"
    check "all options of $command are everywhere ($missing)" [ -z "$missing" ]
    if command -v groff >/dev/null 2>&1; then
        faults=$(groff -man -ww -Tutf8 -z "$dir/out" 2>&1)
        check "groff takes the manual of $command ($faults)" [ -z "$faults" ]
    fi
done
run 0 man
has '.TH TRIBO 1'

# completions that bash offers after: tribo WORD...
offers() {
    bash -c '. "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _tribo; echo "${COMPREPLY[@]}"' \
        bash "$dir/bash" tribo "$@"
}
check 'commands' [ "$(offers ru)" = 'run runs' ]
check 'options' [ "$(offers run --back)" = '--backend' ]
check 'choices' [ "$(offers run --backend g)" = 'gpu' ]

run 2 completion tcsh
says 'bash, zsh and fish'
run 2 completion
run 2 man rnu
says "did you mean 'run'"
finish
