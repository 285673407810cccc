#!/bin/sh
# URDF as ROS users write it: an ignored element gives a warning with its line, from the command and
# from a daemon; packages are found where ROS finds them; impossible inertias are repaired on request.
. tests/e2e/common.sh
. tests/e2e/common_daemon.sh
mkdir -p "$dir/src/arm/meshes" "$dir/install/share/tool/meshes" "$dir/else"
for file in "$dir/src/arm/meshes/link.obj" "$dir/install/share/tool/meshes/tip.obj"; do
    printf 'v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n' >"$file"
done
urdf=$dir/else/arm.urdf
cat >"$urdf" <<'END'
<?xml version="0.0" ?>
<robot name="arm">
  <link name="base"/>
  <link name="link">
    <inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" iyx="0.1" ixz="0" iyz="0"/></inertial>
    <collision><geometry><mesh filename="package://arm/meshes/link.obj"/></geometry></collision>
    <collision><geometry><mesh filename="package://tool/meshes/tip.obj"/></geometry></collision>
  </link>
  <joint name="j" type="continuous"><parent link="base"/><child link="link"/><axis xyz="0 0 1"/>
    <dynamics D="3"/></joint>
  <wheel/>
</robot>
left over
END
run 1 info "$urdf"
says "arm.urdf:6: mesh"
says "'package://arm/meshes/link.obj' was found neither"
ROS_PACKAGE_PATH=/nowhere:$dir/src AMENT_PREFIX_PATH=$dir/install
export ROS_PACKAGE_PATH AMENT_PREFIX_PATH
run 0 run "$urdf" --steps 1
says "arm.urdf:1: the XML declaration names no version 1"
says "arm.urdf:13: the text behind the root element is not read"
says "arm.urdf:11: wheel: unknown element <wheel> in <robot>: not read"
says "arm.urdf:10: dynamics: unknown attribute 'D' of <dynamics>: not read"
says "arm.urdf:5: inertia: 'iyx' is read as 'ixy'"
check "each is said once" [ "$(grep -c wheel "$dir/err")" = 1 ]
unset ROS_PACKAGE_PATH AMENT_PREFIX_PATH
run 0 info "$urdf" --package-path "$dir/src:$dir/install/share"
has "1 dof"

# a daemon answers with the same warnings
daemon store
call Simulation/CreateScene '{"path":"r.urdf","text":"<robot name=\"r\"><link name=\"a\"/>\n<wheel/></robot>"}'
has 'r.urdf:2: wheel: unknown element'
run 0 run "$urdf" --steps 3 --package-path "$dir/src:$dir/install/share" --server "$grpc"

# inertias
sed 's/izz="1" iyx="0.1"/izz="4"/' "$urdf" >"$dir/else/thin.urdf"
run 1 info "$dir/else/thin.urdf" --package-path "$dir/src:$dir/install/share"
says "--balance-inertia"
run 0 info "$dir/else/thin.urdf" --package-path "$dir/src:$dir/install/share" --balance-inertia --json
check "balanced" [ "$(grep -o '"principal":\[2.0,2.0,2.0\]' "$dir/out" | wc -l)" = 1 ]
run 0 run "$dir/else/thin.urdf" --package-path "$dir/src:$dir/install/share" --balance-inertia --steps 1 \
    --server "$grpc"
printf '<robot xmlns:xacro="http://x"><xacro:macro name="m"/><link name="a"/></robot>' >"$dir/x.urdf"
run 1 info "$dir/x.urdf"
says "xacro must be expanded"
finish
