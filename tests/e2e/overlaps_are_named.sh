#!/bin/sh
# Links that overlap in the first pose: named with their depth, listed by tribo info, left out or refused on
# demand, here and with a daemon.
. tests/e2e/common.sh
. tests/e2e/common_daemon.sh
cat >"$dir/arm.urdf" <<'END'
<robot name="arm">
  <link name="base"><collision name="socket"><geometry><box size="0.1 0.1 0.1"/></geometry></collision></link>
  <link name="upper"><inertial><mass value="1"/><inertia ixx="0.01" iyy="0.01" izz="0.01"/></inertial></link>
  <link name="lower"><inertial><mass value="1"/><inertia ixx="0.01" iyy="0.01" izz="0.01"/></inertial>
    <collision name="hull"><geometry><cylinder radius="0.06" length="0.12"/></geometry></collision></link>
  <joint name="j1" type="revolute"><parent link="base"/><child link="upper"/><origin xyz="0 0 0.1"/>
    <axis xyz="0 0 1"/><limit lower="-1" upper="1" effort="10"/></joint>
  <joint name="j2" type="revolute"><parent link="upper"/><child link="lower"/>
    <axis xyz="0 0 1"/><limit lower="-1" upper="1" effort="10"/></joint>
</robot>
END
arm=$dir/arm.urdf

run 0 run "$arm" --steps 1
says "shapes 'socket' of 'base' and 'hull' of 'lower' overlap by 10 mm in the first pose across 2 joints"
run 0 run "$arm" --steps 1 --overlaps ignore
says "do not collide (overlaps: ignore)"
has "contacts           0,"
run 1 run "$arm" --steps 1 --overlaps error
says "'hull' of 'lower' overlap by 10 mm"
run 2 run "$arm" --overlaps perhaps
says "keep, ignore, error"

run 0 info "$arm" --overlaps
has "10 mm      10 mm  2 joints  base"
run 0 info --overlaps ignore "$arm"
has "no shapes overlap"
run 1 info --overlaps error "$arm"
says "1 pairs of shapes overlap"
run 0 info --overlaps --json "$arm"
has '"persists":true,"linked":true,"joints":2'
check "depth" near "$(number depth)" 0.01 1e-12

daemon store
run 0 run "$arm" --steps 5 --overlaps ignore --json --server "$grpc"
sed -E 's/"(seconds|world_steps_per_second)":[^,]*,//g' "$dir/out" >"$dir/there"
run 0 run "$arm" --steps 5 --overlaps ignore --json
sed -E 's/"(seconds|world_steps_per_second)":[^,]*,//g' "$dir/out" >"$dir/here"
check "the same here and there" cmp "$dir/here" "$dir/there"
run 1 run "$arm" --steps 5 --overlaps error --server "$grpc"
finish
