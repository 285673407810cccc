#!/bin/sh
# A problem that tribo exports is one that tribo solves, as text and as HDF5 alike.
. tests/e2e/common.sh
write_scene "$dir/servo.xml"
# two boxes and a ball, one box on the other
cat >"$dir/scene.xml" <<'XML'
<mujoco>
  <worldbody>
    <geom type="plane" size="1 1 0.1"/>
    <body pos="0 0 0.1"><freejoint/><geom type="box" size="0.1 0.1 0.1" mass="1"/></body>
    <body pos="0.02 0 0.3"><freejoint/><geom type="box" size="0.1 0.1 0.1" mass="2"/></body>
    <body pos="0.5 0 0.1"><freejoint/><geom type="sphere" size="0.1" mass="1"/></body>
  </worldbody>
</mujoco>
XML

for kind in dat hdf5; do
    run 0 export "$dir/scene.xml" --steps 300 --problem "$dir/p.$kind"
    has contacts
    run 0 solve --json "$dir/p.$kind"
    check "solved to 1e-8" near "$(number residual)" 0 1e-8
    number contacts >"$dir/contacts.$kind"
done
check "as many contacts in both" cmp "$dir/contacts.dat" "$dir/contacts.hdf5"
run 1 export "$dir/scene.xml" --steps 1 --problem "$dir/p.txt"
says p.txt
run 1 export "$dir/servo.xml" --problem "$dir/p.dat"
says "law 'box'"

# HDF5's library and the thirty behind it are loaded for such files alone
hdf5=$(grep -ao 'libhdf5[a-z_]*\.so[.0-9]*' "$TRIBO" | head -n 1)
mkdir "$dir/broken"
: >"$dir/broken/$hdf5"
(
    LD_LIBRARY_PATH=$dir/broken
    export LD_LIBRARY_PATH
    "$TRIBO" solve --json "$dir/p.dat" >"$dir/out.dat" 2>"$dir/err.dat"
    echo $? >"$dir/code.dat"
    "$TRIBO" solve --json "$dir/p.hdf5" >"$dir/out" 2>"$dir/err"
    echo $? >"$dir/code.hdf5"
)
ran="solve without HDF5's library"
check "text is solved without it" grep -qx 0 "$dir/code.dat"
check "HDF5 is not" grep -qx 1 "$dir/code.hdf5"
says "$hdf5"
says "HDF5 library"
# ldd knows no sanitizer's own libraries
[ -n "${ASAN_OPTIONS:-}" ] || check "few libraries" [ "$(ldd "${TRIBOD:-$TRIBO}" | wc -l)" -le 40 ]
finish
