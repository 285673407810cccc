#!/bin/sh
# A controls file moves the named actuators, a row at a time; errors name line and field.
. tests/e2e/common.sh
write_scene "$dir/scene.xml"
scene=$dir/scene.xml
lift() { grep -o '"lift":{"position":[^,]*' "$dir/out" | head -n 1 | sed 's/.*://'; }

printf 'time,servo\n0,0\n0.5,0.2\n' >"$dir/c.csv"
run 0 run "$scene" --time 0.5 --controls "$dir/c.csv" --json
check "before its time a row does nothing" near "$(lift)" 0 0.01
run 0 run "$scene" --time 2 --controls "$dir/c.csv" --json
check "then the lift is where it was sent" near "$(lift)" 0.2 0.01

# a row begins with its step, however the run is cut into portions
printf 'time,servo\n0,0\n0.1,0.3\n' >"$dir/c.csv"
run 0 run "$scene" --steps 51 --controls "$dir/c.csv" --json
grep -o '"joints":.*"certificate"' "$dir/out" >"$dir/whole"
run 0 run "$scene" --steps 51 --controls "$dir/c.csv" --json --record "$dir/steps.csv"
grep -o '"joints":.*"certificate"' "$dir/out" >"$dir/single"
check "portions do not matter" cmp "$dir/whole" "$dir/single"
check "step 50 does not move yet, step 51 does" awk -F, '
    NR == 1 { for (i = 1; i <= NF; i++) if ($i == "lift.velocity") column = i }
    NR == 51 { before = $column } NR == 52 { after = $column }
    END { exit !(before * before < 1e-2 && after - before > 0.1) }' "$dir/steps.csv"

wrong() {
    printf "$1" >"$dir/c.csv"
    run 1 run "$scene" --steps 5 --controls "$dir/c.csv"
    says "c.csv:$2"
    says "$3"
}
wrong 'time,knee\n0,1\n' 1 "no actuator named 'knee'; there are: servo"
wrong 'when,servo\n0,1\n' 1 "time,ACTUATOR"
wrong 'time,servo\n0,1\n\n# note\n0,2\n' 5 "does not come after"
wrong 'time,servo\n0,nan\n' 2 "servo: 'nan'"
wrong 'time,servo\n0,1e999\n' 2 "servo"
wrong 'time,servo\n0,one\n' 2 "servo: 'one'"
wrong 'time,servo\n0\n' 2 "servo"
wrong 'time,servo\n0,1,2\n' 2 "more fields"
wrong 'time,servo,servo\n0,1,2\n' 1 "two columns"
wrong 'time,servo\n' 1 "no row"
wrong '' 1 "no header"
run 1 run "$scene" --controls "$dir/absent.csv"
says absent.csv
finish
