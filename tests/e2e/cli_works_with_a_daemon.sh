#!/bin/sh
# The command against a daemon: steps there equal steps here; sessions, runs, top, load and
# backup; and errors without a daemon or a key.
. tests/e2e/common.sh
. tests/e2e/common_daemon.sh
write_scene "$dir/scene.xml"
daemon store
export TRIBO_SERVER="$grpc"

# ---- a run here and there: the same bytes but for the time that it took ----

same_run() {
    run 0 run "$dir/scene.xml" --json "$@"
    sed -E 's/"(seconds|world_steps_per_second)":[^,]*,//g' "$dir/out" >"$dir/here"
    run 0 run "$dir/scene.xml" --json "$@" --server "$grpc"
    sed -E 's/"(seconds|world_steps_per_second)":[^,]*,//g' "$dir/out" >"$dir/there"
    check "the same with $*" cmp "$dir/here" "$dir/there"
    check "something with $*" grep -q '"box":{"position"' "$dir/here"
}
same_run --time 0.5
same_run --time 0.2 --worlds 3 --keyframe high
same_run --time 0.3 --scheme moreau
same_run --time 0.3 --precision single
same_run --time 0.2 --tolerance 1e-12 --no-energy --dt 0.001
printf 'time,servo\n0,0.1\n0.1,0.3\n0.15,-0.05\n' >"$dir/controls.csv"
same_run --time 0.2 --controls "$dir/controls.csv"
for kind in csv jsonl; do
    run 0 run "$dir/scene.xml" --time 0.1 --controls "$dir/controls.csv" --record "$dir/a.$kind" --quiet
    run 0 run "$dir/scene.xml" --time 0.1 --controls "$dir/controls.csv" --record "$dir/b.$kind" \
        --quiet --server "$grpc"
    check "the same $kind" cmp "$dir/a.$kind" "$dir/b.$kind"
done
check 'a row for every step' [ "$(wc -l <"$dir/b.csv")" = 51 ]
run 2 run "$dir/scene.xml" --server "$grpc" --storage dense
says '--storage'

# a model's includes are uploaded with it
mkdir "$dir/one"
printf '<mujoco><include file="part.xml"/></mujoco>' >"$dir/one/model.xml"
printf '<mujoco><worldbody><body name="b"><freejoint/><geom size="0.1"/></body></worldbody></mujoco>' \
    >"$dir/one/part.xml"
run 0 run "$dir/one/model.xml" --steps 1 --server "$grpc"
has 'b '

# ---- a problem: the same but for the time

grep -v -e actuator -e '<position' "$dir/scene.xml" >"$dir/free.xml"
run 0 export "$dir/free.xml" --steps 30 --problem "$dir/problem.dat"
run 0 solve "$dir/problem.dat" --json
sed 's/"seconds":[^,]*,//' "$dir/out" >"$dir/here"
run 0 solve "$dir/problem.dat" --json --server "$grpc"
sed 's/"seconds":[^,]*,//' "$dir/out" >"$dir/there"
check 'the same solution' cmp "$dir/here" "$dir/there"
has '"status":"OK"'
run 3 solve "$dir/problem.dat" --tolerance 1e-300 --max-iterations 2 --server "$grpc"
run 1 solve "$dir/absent.dat" --server "$grpc"
says absent.dat
run 2 solve "$dir/problem.dat" --storage dense --server "$grpc"

# ---- grasps: the same, but for bodies and margins of single contacts, which the wire does not
# carry

# functions of Modelica: the daemon's answer is the one from here
printf 'function f\n  input Real x;\n  output Real y;\nalgorithm\n  y := 1 / x;\nend f;\n' >"$dir/f.mo"
run 0 function call "$dir/f.mo" --input x=3 --backend interpreter
cp "$dir/out" "$dir/here"
run 0 function call "$dir/f.mo" --input x=3 --backend interpreter --server "$grpc"
check "a daemon's function gives what one here gives" cmp "$dir/out" "$dir/here"
run 1 function call "$dir/f.mo" --input x=0 --server "$grpc"
says 'f.mo:5:10: division by zero'

data=$TRIBO_BUILD/tests/data
"$data/mug" "$dir" >/dev/null && "$data/hand" "$dir" >/dev/null
printf 'name,x,y,z,force\nmiddle,0,0,0.055,20\nweak,0,0,0.055,1\n' >"$dir/poses.csv"
set -- --hand "$dir/hand.xml" --object "$dir/mug.xml" --approach 0,0,-1 --lift 0.02 --hold 0.1 \
    --poses "$dir/poses.csv" --perturb 2 --seed 5
alike() {
    sed -E 's/"seconds":[^,]*,//; s/"body":"[^"]*","position"/"position"/g; s/,"margin":[^}]*\}/}/g' "$dir/out"
}
run 0 grasp "$@" --json --quiet
alike >"$dir/here"
run 0 grasp "$@" --json --quiet --record "$dir/trials.csv" --server "$grpc"
alike >"$dir/there"
check 'the same grasps' cmp "$dir/here" "$dir/there"
check 'with contacts' grep -q '"contacts":\[{"position"' "$dir/there"
check 'four trials' [ "$(wc -l <"$dir/trials.csv")" = 5 ]
run 0 grasp "$@" --server "$grpc"
has 'middle         held'
has 'weak           dropped'
run 0 grasp --hand "$dir/hand.urdf" --object "$dir/mug.obj" --approach 0,0,-1 --sample 1 --lift 0.01 \
    --hold 0.05 --quiet --server "$grpc"
run 1 grasp "$@" --hold 0 --server "$grpc"
says '--hold'
# a refusal is all that is said
for form in '' --json; do
    # shellcheck disable=SC2086
    run 1 grasp "$@" --closing thumb $form --server "$grpc"
    says "'thumb'"
    hasnt 'grasps held'
    hasnt grasps_held
    hasnt model
done
set --

# ---- sessions ----

call Simulation/CreateScene "{\"text\":$(printf '<mujoco><worldbody><body name="b"><freejoint/><geom size="0.1"/></body></worldbody></mujoco>' |
    sed 's/"/\\"/g; s/.*/"&"/')}"
scene=$(sed -E 's/.*"sceneId":"([0-9a-f]*)".*/\1/' "$dir/out")
for label in first second; do
    call Simulation/CreateSession "{\"sceneId\":\"$scene\",\"label\":\"$label\"}"
    is 'CreateSession' "$status" 200
    eval "$label=$(sed -E 's/.*"sessionId":"([0-9a-f]*)".*/\1/' "$dir/out")"
done
run 0 sessions
has "$first"
has "$second"
has second
run 0 sessions --json
check 'one object a session' [ "$(grep -c '"status":"active"' "$dir/out")" = 2 ]
"$TRIBO" sessions watch "$second" >"$dir/watched" 2>"$dir/err" &
watcher=$!
check 'the first state is shown' await grep -q '^step 0' "$dir/watched"
call Simulation/Step "{\"sessionId\":\"$second\",\"steps\":7}"
check 'a step is shown' await grep -q '^step 7' "$dir/watched"
run 0 sessions delete "$second"
has "deleted $second"
wait "$watcher"
is 'exit code of the watcher' "$?" 0
check 'the end is shown' grep -q '^deleted' "$dir/watched"
run 1 sessions delete "$second"
says "$second"
run 1 sessions watch "$second"
says "$second"
run 2 sessions delete
says "'delete' needs the ID"
run 2 sessions watch
says "'watch' needs the ID"
run 2 sessions list "$second"
says "'list' takes no operands"
run 2 sessions dance
says "'dance' is no action; there are list, delete ID... and watch ID"

# ---- runs ----

run 0 runs --limit 3
check 'three runs and a header' [ "$(wc -l <"$dir/out")" = 4 ]
run 0 runs --json
check 'many runs' [ "$(wc -l <"$dir/out")" -ge 8 ]
ids=$(grep '"label":"tribo run"' "$dir/out" | sed -E 's/.*"run_id":"([0-9a-f]*)".*/\1/' | head -n 2)
a=$(echo "$ids" | head -n 1) b=$(echo "$ids" | tail -n 1)
run 0 runs show "$a"
has "$a"
has 'deleted'
run 0 runs show "$a" --json
has '"events":[{'
run 0 runs compare "$a" "$b"
has 'second over first'
run 0 runs compare "$a" "$b" --json
has '"same_build":true'
run 1 runs show 00000000000000000000000000000000
says 00000000000000000000000000000000
run 2 runs show
says "'show' takes 1 ID, not 0"
run 2 runs dance
says "'dance' is no action; there are list, show ID, compare ID ID and benchmarks"
call Runs/RecordBenchmark '{"benchmark":{"name":"e2e","metric":"seconds","unit":"s","testbed":"here","build":"this","samples":[1,2,3]}}'
is 'RecordBenchmark' "$status" 200
run 0 runs benchmarks
has e2e
run 0 runs benchmarks --json
has '"median":2.0'

# ---- description of the daemon ----

run 0 info --server "$grpc"
has "tribod $("$TRIBO" version | awk 'NR == 1 { print $2 }') at $grpc"
has 'cpu'
has 'sor '
has 'sessions   1'
run 0 info --server "$grpc" --json
has '"version":"'
has '"draining":false'
has '"limits":{"message_bytes":'
check 'one open session' [ "$(number sessions)" = 1 ]
uptime=$(number uptime_seconds)
check 'it has been up for a while' awk -v a="$uptime" 'BEGIN { exit !(a > 0.1 && a < 600) }'
run 0 info --server "$grpc" --json
check 'and time passes' awk -v a="$uptime" -v b="$(number uptime_seconds)" 'BEGIN { exit !(b > a) }'
run 2 info
says 'either a MODEL or --server ADDRESS'
run 2 info "$dir/scene.xml" --server "$grpc"
says 'not both'

# ---- top, load, backup ----

run 0 top --interval 0.1
has "tribod"
has "$first"
run 0 load "$dir/scene.xml" --callers 1,3 --window 0.1 --windows 4 --json
check 'a line for each number of callers' [ "$(wc -l <"$dir/out")" = 2 ]
check 'calls were answered' sh -c "! grep -q '\"calls\":0,' '$dir/out'"
check 'none failed' [ "$(grep -c '"failed":0,' "$dir/out")" = 2 ]
check 'quantiles are in order' awk -F'[:,]' '{
    for (i = 1; i < NF; i++) { gsub(/[{}"]/, "", $i); v[$i] = $(i + 1) }
    if (!(v["p50"] > 0 && v["p50"] <= v["p90"] && v["p90"] <= v["p99"] && v["p99"] <= v["worst"]))
        exit 1
}' "$dir/out"
run 0 load --callers 2 --window 0.1 --windows 3
has 'calls/s'
run 0 load "$dir/scene.xml" --method stream --callers 2 --window 0.1 --windows 3 --json
check 'streamed calls' [ "$(grep -c '"failed":0,' "$dir/out")" = 1 ]
# at a rate that any machine sustains, the measured rate is the requested one, and it settles
run 0 load "$dir/scene.xml" --rate 50 --callers 4 --window 1 --windows 12 --json
check 'the rate is held' near "$(number calls_per_second)" 50 5
# the load goes on until three windows agree within 10 %, no longer, or until --windows have passed
cat >"$dir/settled.awk" <<'AWK'
function differ(a, b) { return (a > b ? a - b : b - a) > 0.1 * (a > b ? a : b) + 1e-12 }
{
    claimed = /"settled":true/
    n = 0
    sub(/.*"history":\[/, "")
    while (match($0, /"rate":[-+0-9.eE]+,"median":[-+0-9.eE]+/)) {
        split(substr($0, RSTART, RLENGTH), part, /[:,]/)
        rate[++n] = part[2]
        median[n] = part[4]
        $0 = substr($0, RSTART + RLENGTH)
    }
    first = 0 # number of windows after which three agree
    for (i = 3; i <= n && !first; i++) {
        good = 1
        for (j = i - 2; j <= i; j++)
            for (k = j + 1; k <= i; k++)
                if (differ(rate[j], rate[k]) || differ(median[j], median[k])) good = 0
        if (good) first = i
    }
    if (claimed ? first != n : first || n != limit) exit 1
    lines++
}
END { exit !lines }
AWK
check 'it stops when three windows agree' awk -v limit=12 -f "$dir/settled.awk" "$dir/out"
run 0 load --callers 1,2 --window 0.05 --windows 8 --json
check 'and not before, nor later' awk -v limit=8 -f "$dir/settled.awk" "$dir/out"
run 2 load --callers 0
says "'0'"
run 2 load --callers 1,x
run 0 sessions --json
check 'load leaves no session' [ "$(grep -c 'tribo load' "$dir/out")" = 0 ]

run 0 backup "$dir/store" "$dir/copy.db"
has copy.db
mkdir "$dir/second"
cp "$dir/copy.db" "$dir/second/tribo.db"
main=$pid main_grpc=$grpc
daemon second
run 0 runs show "$a" --server "$grpc"
has "$a"
stop
is 'exit code of the second daemon' "$code" 0
pid=$main grpc=$main_grpc
run 1 backup "$dir/no-such-folder" "$dir/other.db"
says no-such-folder
mkdir "$dir/broken"
printf 'this was a store once, %4096s' '' >"$dir/broken/tribo.db"
run 1 backup "$dir/broken" "$dir/other.db"
says "$dir/broken/tribo.db: file is not a database"

# ---- no daemon, wrong keys ----

for command in sessions load info; do
    run 1 $command --server unix:"$dir/nobody.sock"
    says "$dir/nobody.sock"
done
run 1 run "$dir/scene.xml" --server unix:"$dir/nobody.sock" --json
says "$dir/nobody.sock"
has '"UNAVAILABLE"'
stop
is 'exit code of the daemon' "$code" 0
printf '[auth]\nanonymous = none\n' >"$dir/keys.ini"
daemon locked --config "$dir/keys.ini"
run 1 sessions --server "$grpc"
says key
run 0 info --server "$grpc" --json
has '"sessions":0'
run 1 sessions --server "$grpc" --key tribo_00000000_hushhush
hasnt hushhush
check 'no secret is told' sh -c "! grep -q hushhush '$dir/err'"
tribod 0 --data "$dir/locked" --create-key planner --scope run
TRIBO_API_KEY=$(cat "$dir/out")
export TRIBO_API_KEY
run 0 sessions --server "$grpc"
has 'no sessions'
stop
unset TRIBO_API_KEY

# ---- the library: the README's example compiles and runs ----

daemon example
ran='the example of the C client'
: "${CC:=cc}"
if $CC -std=c11 -Wall -Wextra -Werror -I"$TRIBO_BUILD/generated" -Iclients/c -Isolver \
    clients/c/examples/step.c "$TRIBO_BUILD/libtribo_client.a" "$TRIBO_BUILD/libtribo.a" \
    $(pkg-config --cflags --libs libprotobuf-c libnghttp2 gnutls libxml-2.0 jansson libsodium qhull_r libpng \
        zlib lapack blas) \
    $(pkg-config --libs hdf5-serial 2>/dev/null || pkg-config --libs hdf5) \
    -fopenmp -pthread -lm -o "$dir/step" 2>"$dir/err"; then pass; else fail 'it does not compile'; fi
"$dir/step" "$grpc" "$dir/scene.xml" 500 >"$dir/out" 2>"$dir/err"
is 'exit code of the example' "$?" 0
check 'the box stands' grep -Eq \
    '^1.000 s, body 1 at -?0.0000 -?0.0000 0.1000 m, residual below 1e-6: yes$' "$dir/out"
"$dir/step" "$grpc" "$dir/absent.xml" 1 >"$dir/out" 2>"$dir/err"
is 'exit code without a model' "$?" 1
says absent.xml
stop
for command in sessions runs top load backup info; do
    run 0 $command --help
    has "tribo $command"
done
finish
