#!/bin/sh
# tribo grasp: grasps of the mug from a file and sampled; table, JSON, record, plot; errors name
# their place; the same numbers on any number of threads.
. tests/e2e/common.sh
data=$(dirname "$TRIBO")/tests/data
check "the generators are built" test -x "$data/mug" -a -x "$data/hand"
"$data/mug" "$dir" >/dev/null && "$data/hand" "$dir" >/dev/null
cat >"$dir/poses.csv" <<'END'
name,x,y,z,qw,qx,qy,qz,force
middle,0,0,0.055,1,0,0,0,20
weak,0,0,0.055,1,0,0,0,1
in the table,0,0,-0.01,1,0,0,0,20
END
cat >"$dir/poses.json" <<'END'
[{"name": "middle", "position": [0, 0, 0.055], "force": 20},
 {"position": [0, 0, 0.055], "orientation": [0.7071, 0, 0, 0.7071], "force": 20}]
END
set -- --hand "$dir/hand.xml" --object "$dir/mug.xml" --approach 0,0,-1 --lift 0.02 --hold 0.1

run 0 grasp "$@" --poses "$dir/poses.csv"
has "middle         held"
has "weak           dropped"
has "in the table   collided"
has "1 of 3 grasps held"
says "joint 'lift' of the hand's base is replaced by the path"

run 0 grasp "$@" --poses "$dir/poses.csv" --json --quiet --record "$dir/trials.csv" \
    --plot "$dir/grasps.svg" --perturb 2 --seed 5 --threads 1
check "one object, three grasps" test "$(grep -c '"grasp":' "$dir/out")" -eq 3
for key in outcome reason stage grip press lean tool uncertified hand controls least_opening warnings success_lower success_upper slip drop_time epsilon volume \
    weakest_margin fingers contacts trials certificate residual model_sha256 grasps_held; do
    has "\"$key\":"
done
has '"outcome":"held"'
has '"body":"finger_left"'
check "quiet is quiet" test ! -s "$dir/err"
check "a header and six trials" test "$(wc -l <"$dir/trials.csv")" -eq 7
check "names in the record" grep -q '"in the table"' "$dir/trials.csv"
check "a plot" grep -q '<svg' "$dir/grasps.svg"
sed 's/"seconds":[^,]*,//' "$dir/out" >"$dir/one"
run 0 grasp "$@" --poses "$dir/poses.csv" --json --quiet --perturb 2 --seed 5 --threads 2
sed 's/"seconds":[^,]*,//' "$dir/out" >"$dir/two"
check "the same bytes on two threads" cmp -s "$dir/one" "$dir/two"

run 0 grasp "$@" --poses "$dir/poses.json" --json --quiet
check "poses from JSON" grep -q '"name":"middle"' "$dir/out"
run 0 grasp "$@" --sample 3 --seed 2 --json --quiet
check "three samples" test "$(grep -c '"grasp":' "$dir/out")" -eq 3

# a brick on its edge falls before the fingers come
cat >"$dir/brick.xml" <<'END'
<mujoco><worldbody><body name="brick"><freejoint/>
<geom type="box" size="0.02 0.045 0.02" euler="30 0 0" mass="0.1"/></body></worldbody></mujoco>
END
run 0 grasp --hand "$dir/hand.xml" --object "$dir/brick.xml" --approach 0,0,-1 --sample 1 --json
check "a warning in the JSON" grep -q '"warnings":.*the object does not rest: alone on the table' "$dir/out"
says "warning: the object does not rest"

# reasons of failed grasps, and the hand's motion
run 0 grasp "$@" --poses "$dir/poses.csv"
has "mm inside '"
has "the contact of 'finger_"
run 3 grasp "$@" --poses "$dir/poses.csv" --solver jor --max-iterations 1 --tolerance 1e-13 --json
has '"outcome":"uncertified"'
has '"outcome":"collided"'
says "trials have no verdict"
run 0 hand "$dir/hand.xml" --out "$dir/hand.svg"
has "finger_left"
has "motion"
check "a drawing" grep -q '<polygon class="closed"' "$dir/hand.svg"
check "its opening" grep -q 'opening' "$dir/hand.svg"
run 0 hand "$dir/hand.xml" --json
has '"tips":'
has '"least_opening":'
run 1 hand "$dir/hand.xml" --profile panda
says "no joint whose name ends in 'finger_joint1'"
run 1 grasp "$@" --poses "$dir/poses.csv" --profile claw
says "there is no profile 'claw', only panda"

# errors
run 2 grasp --hand "$dir/hand.xml" --poses "$dir/poses.csv"
says "--hand and --object are needed"
run 2 grasp "$@"
says "--poses FILE or by --sample N"
run 1 grasp "$@" --poses "$dir/absent.csv"
says absent.csv
run 1 grasp "$@" --poses "$dir/poses.csv" --plot "$dir/grasps.png" --record "$dir/unwanted.csv"
says "grasps.png: a plot ends in .svg"
hasnt held
check "nothing was written" test ! -e "$dir/grasps.png" -a ! -e "$dir/unwanted.csv"
printf 'x,y,z\n0,0,0\n0,zero,0\n' >"$dir/bad.csv"
run 1 grasp "$@" --poses "$dir/bad.csv"
says "bad.csv:3"
says "'zero' is no number"
printf 'x,y,height\n' >"$dir/bad.csv"
run 1 grasp "$@" --poses "$dir/bad.csv"
says "column 'height'"
printf '[{"position": [0, 0]}]' >"$dir/bad.json"
run 1 grasp "$@" --poses "$dir/bad.json"
says "position is no list of 3 numbers"
run 1 grasp "$@" --poses "$dir/poses.csv" --closing thumb
says "no actuator 'thumb'"
run 1 grasp "$@" --poses "$dir/poses.csv" --width 0.5
says "protocol.width"
run 1 grasp --hand "$dir/hand.xml" --object "$dir/grasp.xml" --poses "$dir/poses.csv"
says "bodies on the world, not one"
run 1 grasp --hand "$dir/hand.xml" --object "$dir/grasp.xml" --sample 3
says "bodies on the world, not one"
finish
