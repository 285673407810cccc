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
wrong '<mujoco><include file="."/></mujoco>' folder
wrong '<mujoco><include file="back.xml"/></mujoco>' back.xml
printf '<mujoco><include file="scene.xml"/></mujoco>\n' >"$dir/back.xml"
wrong '<mujoco><include file="back.xml"/></mujoco>' cycle scene.xml
inline() {
    printf '<mujoco><asset><mesh name="m" %s/></asset><worldbody><body><freejoint/>' "$1"
    printf '<geom type="mesh" mesh="m"/></body></worldbody></mujoco>'
}
wrong "$(inline 'vertex="0 0 0 1 0 0 0 1 0 1 1 0"')" "mesh 'm'" plane
wrong "$(inline 'vertex="0 0 0 1 0 0 0 nan 0 0 0 1"')" "mesh 'm'" vertex
wrong "$(inline 'vertex="0 0 0 1 0 0 0 1 0 0 0 1" face="0 1 4"')" "mesh 'm'" face 4
wrong "$(inline 'file="."')" "mesh 'm'" folder

# more than a machine holds
wrong "<mujoco><worldbody>
<replicate count='10000000'><body><freejoint/><geom size='1'/></body></replicate>
</worldbody></mujoco>" scene.xml:2 replicate
wrong "<mujoco><asset><hfield name='h' nrow='100000' ncol='100000' size='1 1 1 1'/></asset>
<worldbody><geom type='hfield' hfield='h'/></worldbody></mujoco>" \
    "hfield 'h'" 100000
awk 'BEGIN { printf "<mujoco><option"; for (i = 0; i < 100000; i++) printf " a%d=\"\"", i;
    print "/></mujoco>" }' >"$dir/wide.xml"
run 1 info "$dir/wide.xml"
says 'wide.xml:1: a tag has more than'

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
urdf() {
    printf '<robot name="r"><link name="a"/><link name="b"><inertial><mass value="%s"/>\n' "$1"
    printf '<inertia ixx="1" iyy="1" izz="%s" ixy="0" ixz="0" iyz="0"/></inertial></link>' "$2"
    printf '<joint name="j" type="floating"><parent link="a"/><child link="b"/>'
    printf '<origin xyz="%s"/></joint></robot>\n' "$3"
}
wrong "$(urdf -1 1 '0 0 0')" scene.xml:1 mass
wrong "$(urdf nan 1 '0 0 0')" scene.xml:1 mass
wrong "$(urdf 1 5 '0 0 0')" scene.xml "link 'b'" triangle
wrong "$(urdf 1 nan '0 0 0')" scene.xml:2 izz
wrong "$(urdf 1 1 '0 nan 0')" scene.xml:2 xyz
printf '<robot name="r"><link name="a"/><joint name="j" type="revolute"><parent link="a"/><child link="b"/></joint></robot>\n' \
    >"$dir/r.urdf"
run 1 info "$dir/r.urdf"
says r.urdf
run 1 info "$dir"
run 1 info "$dir/absent.xml"
says absent.xml
run 1 run /dev/null

# nothing to read
for name in empty.xml empty.urdf empty.obj empty.stl; do
    : >"$dir/$name"
    run 1 info "$dir/$name"
    says "$name"
done
: >"$dir/empty.dat"
for file in "$dir/empty.dat" "$dir/absent.dat" "$dir"; do
    run 1 solve "$file"
    says "$file"
done

# controls
write_scene "$dir/scene.xml"
controls() {
    printf '%b\n' "$1" >"$dir/c.csv"
    run 1 run "$dir/scene.xml" --steps 2 --controls "$dir/c.csv"
    says "$2"
}
controls 'time,servo\n0,nan' c.csv:2
controls 'time,servo\n0,1e999' c.csv:2
controls 'time,servo\n1,0\n1,0' c.csv:3
controls 'time,absent\n0,0' absent
controls '' c.csv
awk 'BEGIN { printf "time"; for (i = 0; i < 1000000; i++) printf ",servo"; print "" }' >"$dir/wide.csv"
mkfifo "$dir/pipe"
for file in "$dir/wide.csv" "$dir/pipe" "$dir" "$dir/absent.csv"; do
    run 1 run "$dir/scene.xml" --steps 2 --controls "$file"
    says "$file"
done

# options out of range, files that cannot be written
for option in '--worlds 1000000000' '--worlds 0' '--steps -1' '--steps 1e3' '--dt 1e300' '--dt nan' \
    '--dt 0' '--threads 100000' '--time 1e300' '--tolerance -1' '--omega 3' \
    '--max-iterations 99999999999'; do
    # shellcheck disable=SC2086
    run 2 run "$dir/scene.xml" $option
    says "${option%% *}"
    says "${option##* }"
done
for option in '--record /absent/r.csv' '--record absent.txt' '--plot /absent/p.svg' \
    '--keyframe absent'; do
    # shellcheck disable=SC2086
    run 1 run "$dir/scene.xml" --steps 2 $option
    says "${option##* }"
done

# a step without a solution is not silent
printf 'time,servo\n0,1e308\n' >"$dir/c.csv"
run 3 run "$dir/scene.xml" --steps 2 --quiet --controls "$dir/c.csv"
says scene.xml
finish
