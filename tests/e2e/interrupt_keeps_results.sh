#!/bin/sh
# Ctrl-C ends a run early with exit code 130, and the results until then are reported and written.
. tests/e2e/common.sh
write_scene "$dir/scene.xml"

# a shell ignores SIGINT for its background jobs: env resets nothing, so the test sends SIGTERM
ran="run --time 100000 (and a signal)"
"$TRIBO" run "$dir/scene.xml" --time 100000 --json --record "$dir/a.csv" >"$dir/out" 2>"$dir/err" &
child=$!
i=0
while [ "$i" -lt 100 ] && ! [ -s "$dir/a.csv" ]; do
    sleep 0.1
    i=$((i + 1))
done
kill -TERM "$child"
wait "$child"
code=$?
check "exit code 130, not $code" test "$code" -eq 130
has '"status":"CANCELLED"'
says interrupted
steps=$(number steps)
check "some steps were done" test "${steps:-0}" -gt 0
check "the recording holds them" test "$(wc -l <"$dir/a.csv")" -eq "$((steps + 1))"
finish
