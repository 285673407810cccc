#!/bin/sh
# tribo info lists counts, masses, inertias and joints; in JSON with all digits, for comparing
# importers.
. tests/e2e/common.sh
write_scene "$dir/scene.xml"
scene=$dir/scene.xml

run 0 info "$scene"
has "total mass 3.5 kg"
has "3 bodies"
has "1 actuator"
has lift
run 0 info --json "$scene"
for key in model_sha256 dt gravity counts bodies dofs shapes actuators equalities tendons total_mass \
    mass com inertia principal joints warnings position orientation; do
    has "\"$key\":"
done
check "13 dofs" test "$(number dofs)" = 13
check "mass" near "$(number total_mass)" 3.5 1e-12
# a cube of 1 kg and side 0.2 m: m a^2 / 6
moment=$(grep -o '"inertia":\[[^,]*' "$dir/out" | head -n 1 | sed 's/.*\[//')
check "moment of the cube" near "$moment" 0.00666666666666666667 1e-15
hasnt mass_matrix

run 0 info --json --mass-matrix --acceleration --keyframe high "$scene"
has '"mass_matrix":[['
acceleration=$(grep -o '"acceleration":\[[^]]*' "$dir/out" | cut -d , -f 3)
check "the box falls with g" near "$acceleration" -9.81 1e-12
run 0 info --json --q 0,0,0.25,1,0,0,0,0.5,0,0.3,1,0,0,0,0.1 "$scene"
has '"q":[0.0,0.0,0.25,'
run 1 info --json --q 1,2,3 "$scene"
run 1 info --json --q 1,x,3 "$scene"
says "--q: number 2"
run 2 info --mass-matrix "$scene"
says "--json"

# the same model has the same hash, another model another
run 0 info --json "$scene"
grep -o '"model_sha256":"[^"]*"' "$dir/out" >"$dir/a"
sed 's/mass="1"/mass="1.000001"/' "$scene" >"$dir/other.xml"
run 0 info --json "$dir/other.xml"
grep -o '"model_sha256":"[^"]*"' "$dir/out" >"$dir/b"
check "hashes differ" sh -c "! cmp -s '$dir/a' '$dir/b'"
finish
