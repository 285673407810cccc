#!/bin/sh
# tribo scene: named scenes are listed, written as MJCF, the same bytes every time, and step.
. tests/e2e/common.sh

run 0 scene list
has poulsen_grid_24
has betz_group_2100
has nuetzi_spheres
has incline
run 0 scene list --json
has '"scene":"jaw_mug"'

# the thesis's numbers of contacts, found by collision detection
contacts_of() {
    run 0 scene "$1" --out "$dir/scene.xml"
    run 0 run "$dir/scene.xml" --steps 1 --json
    check "$1 has $2 contacts" [ "$(number contacts)" -eq "$2" ]
}
contacts_of poulsen_grid_8 1408
contacts_of incline 8
contacts_of betz_slide_10_mu0.1 4

run 0 scene jaw_mug
cp "$dir/out" "$dir/first"
run 0 scene jaw_mug --out "$dir/second.xml" --json
has '"scene":"jaw_mug"'
check "the same bytes" cmp "$dir/first" "$dir/second.xml"

run 2 scene inclin
says "did you mean 'incline'"
run 2 scene
says "NAME"
run 1 scene incline --out "$dir/missing/scene.xml"
says "missing/scene.xml"
finish
