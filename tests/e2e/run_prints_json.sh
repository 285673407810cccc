#!/bin/sh
# tribo run --json ends with one object that holds where things are and how exact the steps were.
. tests/e2e/common.sh
write_scene "$dir/scene.xml"

run 0 run "$dir/scene.xml" --time 2 --json --quiet
check "one line" test "$(wc -l <"$dir/out")" -eq 1
for key in model_sha256 steps dt time seconds status contacts bodies joints certificate position \
    orientation linear_velocity angular_velocity velocity residual penetration cone_error \
    complementarity_error closure_error energy energy_change rows iterations solver last_step; do
    has "\"$key\":"
done
has '"steps":1000'
has '"status":"OK"'
has '"box":{"position":['
has '"body2":{"position":['
has '"lift":{"position":'
check "a hash of 64 digits" grep -qE '"model_sha256":"[0-9a-f]{64}"' "$dir/out"
check "time is 2 s" near "$(number time)" 2 1e-9
check "residual is small" near "$(number residual)" 0 1e-5
check "nothing sinks in" near "$(number penetration)" 0 1e-4

# a box at rest on the floor stays where it is
height=$(grep -o '"box":{"position":\[[^]]*' "$dir/out" | head -n 1 | cut -d , -f 3)
check "the box stands at 0.1 m" near "$height" 0.1 1e-5

run 0 run "$dir/scene.xml" --steps 0 --json --keyframe high
height=$(grep -o '"box":{"position":\[[^]]*' "$dir/out" | head -n 1 | cut -d , -f 3)
check "the keyframe is where it begins" near "$height" 1 0
run 1 run "$dir/scene.xml" --keyframe low
says "high"

run 0 run "$dir/scene.xml" --steps 10 --json --no-energy
has '"energy":null'
run 0 run "$dir/scene.xml" --steps 20 --json --precision single --scheme moreau --solver jor
has '"solver":"jor"'

run 0 run "$dir/scene.xml" --steps 100
has certificate
has residual
run 0 run "$dir/scene.xml" --steps 100 --quiet
check "quiet is quiet" test ! -s "$dir/out"

run 1 run "$dir/absent.xml" --json
has '"status":"NOT_FOUND"'
has absent.xml
finish
