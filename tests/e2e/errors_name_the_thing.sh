#!/bin/sh
# Bad input ends with exit code 1 and a message that names the thing at fault; never with a crash.
. tests/e2e/common.sh

# wrong TEXT WORD...: the scene fails and the message holds every word
wrong() {
    printf '%s\n' "$1" >"$dir/scene.xml"
    shift
    run 1 info "$dir/scene.xml"
    for word in "$@"; do says "$word"; done
}
body() {
    printf '<mujoco>\n<worldbody>\n<body name="b">\n<freejoint/>\n%s\n</body>\n</worldbody>\n</mujoco>' "$1"
}

# tags and attributes
wrong "$(body '<geom size="0.1"/><gizmo/>')" scene.xml:5 gizmo
wrong "$(body '<geom type="sphere" size="nan"/>')" scene.xml:5 size
wrong "$(body '<geom type="sphere" size="-1"/>')" scene.xml
wrong "$(body '<geom type="blob" size="0.1"/>')" scene.xml:5 blob
wrong "$(body '<geom size="0.1" mass="-2"/>')" scene.xml mass
wrong "$(body '<inertial pos="0 0 0" mass="-1" diaginertia="1 1 1"/><geom size="0.1"/>')" scene.xml mass
wrong "$(body '<inertial pos="0 0 0" mass="1" diaginertia="1 1 9"/><geom size="0.1"/>')" scene.xml inertia
wrong "$(body '<inertial pos="0 0 nan" mass="1" diaginertia="1 1 1"/><geom size="0.1"/>')" scene.xml:5 pos
wrong "$(body '<geom size="0.1" friction="1 0"/>' | sed 's/freejoint/joint type="wheel"/')" wheel
wrong '<mujoco><worldbody>' scene.xml
wrong '<pancake/>' pancake
wrong '' scene.xml
wrong 'not a scene at all' scene.xml

# files that a scene asks for
wrong '<mujoco><asset><mesh name="m" file="absent.stl"/></asset>
<worldbody><body><freejoint/><geom type="mesh" mesh="m"/></body></worldbody></mujoco>' absent.stl
wrong '<mujoco><include file="absent.xml"/></mujoco>' absent.xml
wrong '<mujoco><worldbody><body><freejoint/><geom type="mesh" mesh="nobody"/></body></worldbody></mujoco>' \
    nobody
wrong '<mujoco><include file="scene.xml"/></mujoco>' scene.xml

# meshes
printf 'v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 9\n' >"$dir/range.obj"
run 1 info "$dir/range.obj"
says range.obj:4
says 9
printf 'v 0 0 0\nv 1 nan 0\nv 0 1 0\nf 1 2 3\n' >"$dir/nan.obj"
run 1 info "$dir/nan.obj"
says nan.obj:2
{ head -c 80 /dev/zero; printf '\144\0\0\0'; head -c 120 /dev/zero; } >"$dir/cut.stl"
run 1 info "$dir/cut.stl"
says cut.stl

# XML that would fill the memory
cat >"$dir/bomb.xml" <<'XML'
<?xml version="1.0"?>
<!DOCTYPE b [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;"><!ENTITY c "&b;&b;&b;&b;&b;&b;">
<!ENTITY d "&c;&c;&c;&c;&c;&c;&c;"><!ENTITY e "&d;&d;&d;&d;&d;&d;&d;"><!ENTITY f "&e;&e;&e;&e;&e;&e;">]>
<mujoco model="&f;"><worldbody/></mujoco>
XML
run 1 info "$dir/bomb.xml"
says bomb.xml
cat >"$dir/leak.xml" <<'XML'
<?xml version="1.0"?>
<!DOCTYPE b [<!ENTITY a SYSTEM "/etc/hostname">]>
<mujoco model="&a;"><worldbody/></mujoco>
XML
run 1 info "$dir/leak.xml"
says leak.xml
awk 'BEGIN { print "<mujoco><worldbody>"; for (i = 0; i < 5000; i++) print "<body>";
    for (i = 0; i < 5000; i++) print "</body>"; print "</worldbody></mujoco>" }' >"$dir/deep.xml"
run 1 info "$dir/deep.xml"
says deep.xml

# URDF
printf '<robot name="r"><link name="a"/><joint name="j" type="revolute"><parent link="a"/><child link="b"/></joint></robot>\n' \
    >"$dir/r.urdf"
run 1 info "$dir/r.urdf"
says r.urdf
run 1 info "$dir"
run 1 info "$dir/absent.xml"
says absent.xml
run 1 run /dev/null
finish
