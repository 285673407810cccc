#!/bin/sh
# Soft bodies: named scenes run, are recorded for ParaView and as a table, and bad input is named.
. tests/e2e/common.sh
export OMP_NUM_THREADS=1

# Litven's nine cylinders on a coarse grid, through the first contact
run 0 scene nine_cylinders_coarse --out "$dir/nine.xml"
run 0 run "$dir/nine.xml" --steps 10 --json --record "$dir/nine.csv" --plot "$dir/nine.svg"
has '"scene":"nine_cylinders_coarse"'
has '"bodies":9'
has '"status":"OK"'
check "contacts" [ "$(number contacts)" -gt 200 ]
check "at most 2 projections" [ "$(number projections)" -le 2 ]
check "momentum is kept" awk "BEGIN { exit !($(number momentum_error) < 1e-8) }"
check "a header and 10 rows" test "$(wc -l <"$dir/nine.csv")" -eq 11
check "rows as wide as the header" awk -F, 'NR == 1 { n = NF } NF != n { exit 1 }' "$dir/nine.csv"
check "the energy never grows" awk -F, 'NR > 1 { e = $3 + $4 + $5; if (NR > 2 && e > old * 1.0001) exit 1; old = e }' "$dir/nine.csv"
for text in "energy (J)" contacts iterations "warm share"; do
    check "the plot says $text" grep -qF ">$text<" "$dir/nine.svg"
done
cp "$dir/nine.csv" "$dir/first.csv"
run 0 run "$dir/nine.xml" --steps 10 --quiet --solver direct --record "$dir/nine.csv"
check "DIRECT gives SCHURPA's energies" awk -F, 'NR == FNR { e[FNR] = $3; next }
    FNR > 1 && ($3 - e[FNR]) ^ 2 > (1e-9 * $3) ^ 2 { exit 1 }' "$dir/first.csv" "$dir/nine.csv"

# files for ParaView
run 0 scene jelly_sticks --out "$dir/jelly.xml"
run 0 run "$dir/jelly.xml" --steps 3 --record "$dir/jelly.pvd"
has "off the circular cone"
check "a list of 8 files" [ "$(grep -c '<DataSet' "$dir/jelly.pvd")" -eq 8 ]
for name in X v mass body stress occupied; do
    check "the volume has $name" grep -q "Name=\"$name\"" "$dir/jelly_volume_0003.vtu"
done
check "the surface has pressure" grep -q 'Name="pressure"' "$dir/jelly_surface_0003.vtp"
check "the list names files beside it" grep -q 'file="jelly_volume_0003.vtu"' "$dir/jelly.pvd"
for file in "$dir"/jelly*.pvd "$dir"/jelly_*.vt?; do
    check "$file is XML" python3 -c "import sys, xml.dom.minidom; xml.dom.minidom.parse(sys.argv[1])" "$file"
done

# several worlds give what one gives
run 0 run "$dir/jelly.xml" --steps 5 --json
one=$(number elastic)
run 0 run "$dir/jelly.xml" --steps 5 --json --worlds 3
check "3 worlds" [ "$(number worlds)" -eq 3 ]
check "the same energy" [ "$(number elastic)" = "$one" ]
run 0 run "$dir/jelly.xml" --steps 2 --worlds 2
has "2 worlds"

# a body of triangles; one that is not closed is named with the place
cat >"$dir/wedge.obj" <<'END'
v 0 0 0
v 0.6 0 0
v 0 0.6 0
v 0 0 0.28
f 1 3 2
f 1 2 4
f 1 4 3
f 2 3 4
END
sed 's/type="box" size="[^"]*" pos="[^"]*"/type="mesh" mesh="wedge" pos="-0.3 -0.3 0"/; s#<material#<mesh name="wedge" file="wedge.obj"/><material#' "$dir/jelly.xml" >"$dir/wedge.xml"
run 1 run "$dir/wedge.xml"
says "body 'block' is too thin for the grid"
sed -i 's/spacing="0.15"/spacing="0.075"/' "$dir/wedge.xml"
run 0 run "$dir/wedge.xml" --steps 20 --json
has '"status":"OK"'
check "it stands on the floor" [ "$(number contacts)" -gt 10 ]
check "the wedge's mass is that of its volume" awk "BEGIN { exit !($(number mass_error) < 0.1) }"
sed -i '$d' "$dir/wedge.obj"
run 1 run "$dir/wedge.xml"
says "wedge.obj: the mesh is not closed: 3 of its edges"

# the exact cone
run 0 run "$dir/jelly.xml" --steps 5 --solver newton --json
check "newton meets the cone" awk "BEGIN { exit !($(number cone_error) < 1e-4) }"

# a body that is clamped as a whole carries one on a slide: no impulse moves a node, and across the
# slide none moves anything
cat >"$dir/lid.xml" <<-'END'
	<mujoco><worldbody><body name="lid" pos="0 0 0.2"><joint type="slide" axis="0 0 1"/>
	  <geom type="box" size="0.3 0.3 0.1" mass="50"/></body></worldbody></mujoco>
END
cat >"$dir/block.xml" <<-'END'
	<soft model="block">
	  <option timestep="0.002" gravity="0 0 -9.81"/>
	  <grid lower="-0.7 -0.7 -0.7" upper="0.7 0.7 0.6" spacing="0.1"/>
	  <material name="jelly" density="1000" young="1e5" poisson="0.3" damping="0.002"/>
	  <body name="block" material="jelly" type="box" size="0.2 0.2 0.1" pos="0 0 0"/>
	  <clamp body="block" lower="-1 -1 -1" upper="1 1 1"/>
	  <rigid file="lid.xml"/>
	</soft>
END
run 0 run "$dir/block.xml" --steps 10 --threads 1 --json
check "the lid stands on 16 cells" [ "$(number contacts)" -eq 16 ]
check "it does not sink" awk "BEGIN { exit !($(number penetration) < 1e-4) }"
sed -i 's/axis="0 0 1"/axis="1 0 0"/' "$dir/lid.xml"
run 0 run "$dir/block.xml" --steps 10 --threads 1 --json
has '"status":"OK"'
check "what nothing can move has no rows" [ "$(number contacts)" -eq 0 ]

# bad input
run 1 run "$dir/jelly.xml" --solver sor
says "schurpa, direct and newton"
run 2 run "$dir/jelly.xml" --server 127.0.0.1:1
says "--server takes no scene of soft bodies"
run 1 run "$dir/jelly.xml" --steps 1 --record "$dir/a.vtk"
says ".csv or .pvd"
run 1 run "$dir/jelly.xml" --steps 1 --dt 0.9
says "are allowed"
sed 's/young="1e5"/young="-1e5"/' "$dir/jelly.xml" >"$dir/bad.xml"
run 1 run "$dir/bad.xml"
says "body 'block'"
sed 's/pos="0 0 0.15"/pos="0 0 5"/' "$dir/jelly.xml" >"$dir/bad.xml"
run 1 run "$dir/bad.xml"
says "body 'block' reaches from"
sed 's/type="box"/typ="box"/' "$dir/jelly.xml" >"$dir/bad.xml"
run 1 run "$dir/bad.xml"
says "bad.xml:5: body 'block'"
finish
