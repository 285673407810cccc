#!/bin/sh
# An output that is also an input is refused under any name, and an output replaces a file only
# when complete. The exit code of `tribo grasp` reports a missed tolerance.
. tests/e2e/common.sh
"$TRIBO_BUILD/tests/data/hand" "$dir" >/dev/null && "$TRIBO_BUILD/tests/data/mug" "$dir" >/dev/null
cat >"$dir/slide.xml" <<'XML'
<mujoco><worldbody><body name="b"><joint name="j" type="slide"/><geom size=".1"/></body></worldbody>
<actuator><motor name="m" joint="j"/></actuator></mujoco>
XML
printf 'time,m\n0,1\n' >"$dir/lift.csv"
cp "$dir/lift.csv" "$dir/before.csv"
ln -s lift.csv "$dir/link.csv"
ln "$dir/lift.csv" "$dir/hard.csv"

for name in lift.csv link.csv hard.csv ../"$(basename "$dir")"/lift.csv; do
    run 1 run "$dir/slide.xml" --controls "$dir/lift.csv" --record "$dir/$name"
    says 'read by this command'
    check "$name leaves the controls" cmp -s "$dir/lift.csv" "$dir/before.csv"
done
run 1 run "$dir/slide.xml" --record "$dir/one.svg" --plot "$dir/one.svg"

# ---- written beside, then renamed ----

printf 'old\n' >"$dir/out.csv"
chmod 640 "$dir/out.csv"
run 1 run "$dir/slide.xml" --controls "$dir/none.csv" --record "$dir/out.csv"
check 'a run that fails leaves what was there' grep -q old "$dir/out.csv"
run 0 run "$dir/slide.xml" --time 0.1 --controls "$dir/link.csv" --record "$dir/out.csv"
check 'a run that works replaces it' grep -q '^time,' "$dir/out.csv"
check 'with its permissions' [ "$(stat -c %a "$dir/out.csv")" = 640 ]
ln -s out.csv "$dir/to_out.csv"
run 0 run "$dir/slide.xml" --time 0.05 --record "$dir/to_out.csv"
check 'a link stays one' [ -L "$dir/to_out.csv" ]
check 'nothing is left beside' sh -c "! ls '$dir' | grep -q part"

# ---- the tolerance of grasps ----

cat >"$dir/poses.csv" <<'CSV'
name,x,y,z
middle,0,0,0.055
CSV
grasp() {
    run "$1" grasp --hand "$dir/hand.xml" --object "$dir/mug.obj" --poses "$dir/poses.csv" \
        --closing close_left,close_right --hold 0.05 --lift-time 0.1 --close-time 0.2 $2
}
grasp 3 '--tolerance 1e-14 --max-iterations 3'
says 'no verdict: a step missed the tolerance'
finish
