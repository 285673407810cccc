#!/bin/sh
# Every command that reports something does so as JSON on request, and the precision of numbers is one
# word with the same two values wherever a command takes it.
. tests/e2e/common.sh

commands=$("$TRIBO" --help | sed -n 's/^  \([a-z][a-z]*\)  .*/\1/p' | grep -v '^help$')
check 'there are commands' [ -n "$commands" ]
with_precision=
for command in $commands; do
    run 0 "$command" --help
    case $command in
    completion | man) ;; # text for a shell and for man
    *) has ' --json ' ;;
    esac
    check "$command has no other word for the precision" \
        sh -c "! grep -qE '^  --(single|double|float|f32|f64|real)\b' '$dir/out'"
    grep -q '^  --precision' "$dir/out" || continue
    with_precision="$with_precision $command"
    check "the precisions of $command" \
        sh -c "grep '^  --precision NAME' '$dir/out' | grep -q ': double, single$'"
done
check "commands take a precision: $with_precision" [ "$(echo "$with_precision" | wc -w)" -ge 3 ]
write_scene "$dir/scene.xml"
for name in double single; do
    run 0 run "$dir/scene.xml" --steps 5 --json --precision $name
    has '"status":"OK"'
done
run 2 run "$dir/scene.xml" --steps 5 --precision float
says 'double, single'
finish
