#!/bin/sh
# tribo bench betz|poulsen: tables beside the theses' figures, as text, JSON, SVG and rows of a
# store.
. tests/e2e/common.sh
. tests/e2e/common_daemon.sh

run 0 bench poulsen --table counts --scene poulsen_grid_24
has "40320 (40320)"
has "757824 (757824)"
run 0 bench poulsen --table counts --json
check "five objects" [ "$(wc -l <"$dir/out")" -eq 5 ]
has '"scene":"poulsen_grid_24"'
has '"contacts":40320'
has '"nnz":757824'
has '"colours":[6912,6911,6898,6906,6794,5329,570]'
has '"colours":[50125,2784]'
has '"commit":"'
has '"processor":"'

# seconds to equal gamma by threads; iterations do not depend on their number
run 0 bench poulsen --table equal --scene poulsen_grid_8 --threads 2 --repeats 1 --json
check "seven methods" [ "$(wc -l <"$dir/out")" -eq 7 ]
has '"method":"balanced T"'
has '"same_bytes":1'
hasnt '"same_bytes":0'
run 0 bench poulsen --table equal --scene poulsen_grid_8 --threads 1 --repeats 1 \
    --plot "$dir/equal.svg"
check "its drawing" grep -q "</svg>" "$dir/equal.svg"

# processes and channels: gamma of naive sweeps by workers, times by workers
run 0 bench poulsen --table naive --scene poulsen_grid_8 --json
check "gamma of one worker" near "$(number workers_1)" 246.88 0.01
check "gamma of eight" near "$(number workers_8)" 287.76 0.01
run 0 bench poulsen --table extreme --threads 1 --repeats 1 --json
check "five ways" [ "$(wc -l <"$dir/out")" -eq 5 ]
has '"method":"in one thread"'
run 0 bench poulsen --table csp --scene poulsen_grid_8 --threads 2 --repeats 1 --json
check "four ways" [ "$(wc -l <"$dir/out")" -eq 4 ]
has '"method":"poulsen_grid_8 T float"'
run 0 bench poulsen --table ladder --scene poulsen_grid_8 --threads 2 --repeats 1
has "pages of 100, own channels"
run 0 bench poulsen --table order --scene poulsen_grid_8 --json
has '"last":54'
has '"first":'
run 0 bench poulsen --table shutdown --threads 2 --repeats 1 --json
has '"way":"poison"'
run 0 bench poulsen --table waits --scene poulsen_grid_8 --threads 2 --json
has '"workers":"2"'
has '"jitter_T":'
run 0 bench poulsen --table csp-sweeps --scene poulsen_grid_8 --threads 2 --repeats 1 --json
has '"method":"relaxed T"'
hasnt '"sweeps_1":null'

run 0 bench betz --table slide
has "175.62801 (175.62801)"
run 0 bench betz --table slide --scene betz_slide_10_mu0.1 --json --store "$dir/store"
check "acceleration" near "$(number prox_serial)" 79.1129 1e-3
check "the thesis's" near "$(grep -o '"thesis":{[^}]*' "$dir/out" | grep -o '"lemke":[0-9.]*' |
    cut -d : -f 2)" 79.1129 1e-3
check "a store" [ -f "$dir/store/tribo.db" ]
run 0 bench poulsen --table counts --scene poulsen_grid_8 --plot "$dir/counts.svg"
check "a drawing" grep -q "</svg>" "$dir/counts.svg"
# curves of a Friction Angle scene: Lemke's body 17 sticks, the sweeps' slides
run 0 bench betz --table curves --steps 60 --json --plot "$dir/curves.svg"
check "forty times" [ "$(wc -l <"$dir/out")" -eq 40 ]
check "body 17 sticks" near "$(tail -n 1 "$dir/out" | grep -o '"lemke_17":[0-9.]*' |
    cut -d : -f 2)" 17 0.2
check "a panel for both bodies and theta" [ "$(grep -c 'X of body\|theta of body' \
    "$dir/curves.svg")" -ge 3 ]
run 1 bench betz --table curves --scene betz_slide_5_mu0
says "has no bodies '17' and '209'"
run 0 bench betz --table group --scene betz_group_525 --steps 20
has "betz_group_525"
run 0 bench betz --table help
has "Friction Angle"

run 2 bench poulsen --table count
says "did you mean 'counts'"
run 2 bench poulsen --plot x.svg
says "--table NAME is missing"
run 2 bench betz --table slide --plot x.png
says ".svg"

# Nützi's variants over a random system, and refused combinations
run 0 bench nuetzi --table variants --contacts 40 --repeats 1 --json
has '"variant":"full-sor-32"'
has '"time_over_jor5":2'
run 0 bench nuetzi --table crosscheck --contacts 40
has 'sparse-relaxed-sor-128'
# the same over sizes, in single precision too; the parts of an iteration
run 0 bench nuetzi --table sizes --contacts 40 --repeats 1 --json
check "17 variants of 4 sizes" [ "$(wc -l <"$dir/out")" -eq 68 ]
has '"variant_contacts":"jor5-single 40"'
has '"variant_contacts":"full-sor-64 10"'
run 0 bench nuetzi --table breakdown --contacts 256 --json
check "four sizes" [ "$(wc -l <"$dir/out")" -eq 4 ]
has '"contacts":"256"'
has '"barriers":20'
# shares add up to the whole
for part in step_b propagation normal tangential writes rest_of_a; do
    tail -n 1 "$dir/out" | grep -o "\"$part\":[0-9.e+-]*" | head -n 1 | cut -d : -f 2
done >"$dir/shares"
check "shares of all parts" near "$(awk '{ sum += $1 } END { print sum }' "$dir/shares")" 100 1e-3

# problems of the falling spheres: Full SOR takes a half of JOR's sweeps or less, relaxed about as many
run 0 bench nuetzi --table finalists --steps 1 --json
check "sweeps of JOR over those of SOR" awk -v q="$(number jor_over_sor)" 'BEGIN { exit !(q >= 2) }'
check "over those of relaxed" near "$(number jor_over_relaxed)" 1 0.2
run 1 bench nuetzi --table variants --contacts 20000 --solver jor5
says 'T needs 30400000000 bytes'

# near pairs and the generations of intersections
run 0 bench goteman --table broad --scene billiards_10
has 'cell 0.01 m'
has 'billiards_10, rows'
run 0 bench goteman --table intersections --scene geneva
has 'geneva: 0, 0, 0 overlaps of the generations were open'
run 0 bench goteman --table encoding --scene billiards_10
has 'cell 0.01 m'
run 0 bench goteman --table shares --scene prisms_27 --steps 420
has 'list of near pairs, pieces'
run 0 bench goteman --table simulations --scene geneva_12 --steps 2 --json
has '"evaluations":8'
run 0 bench goteman --table splitting --scene prisms_27 --steps 20
has 'prisms_27'
run 0 bench goteman --table tippe-top
has 'stem horizontal'
check "the top is inverted within the thesis's time" grep -qE "^  inverted +1\.[0-9]+ \(3.3\)" "$dir/out"
run 0 bench goteman --table sorts
has '160000 keys'
run 1 bench goteman --table traversals --scene prisms_9
says "table 'traversals' has no row of scene 'prisms_9'"

# Litven's figures; the card that the processor plays takes part in the first three
TRIBO_GPU_PLUGIN=$(dirname "$TRIBO")/tests/plugin/card.so
export TRIBO_GPU_PLUGIN
run 0 bench goteman --table batches --scene prisms_512 --steps 2
has "prisms_512 x 1, 2 steps"
check "card and processor agree" grep -qE "prisms_512 x 1, .* 0 +0 +[0-9]+" "$dir/out"
for table in band products random; do
    run 0 bench litven --table $table --contacts 96 --repeats 1 --plot "$dir/$table.svg"
    has "litven $table"
    check "$table is drawn" grep -q "</svg>" "$dir/$table.svg"
done
run 0 bench litven --table random --contacts 96 --repeats 1 --json
check "four programs" [ "$(grep -c '"card_schurpa":.*"processor_direct":' "$dir/out")" -eq 6 ]
unset TRIBO_GPU_PLUGIN
run 0 bench litven --table cylinders --scene nine_cylinders_coarse --steps 14 --plot "$dir/c.svg"
has "at most 1 projections a step (2)"
check "bounds of the thesis in the last row" grep -qE "^  all .*\(8\).*\(11\)" "$dir/out"
check "cylinders are drawn" grep -q "bandwidth_over_contacts" "$dir/c.svg"
run 0 bench litven --table cylinder-times --scene nine_cylinders_coarse --steps 4 --json
has '"schurpa_contact_factor":'
has '"speedup_contact":'
has '"schurpa_friction_factorizations":'
run 0 bench litven --table cylinder-times --scene nine_cylinders_coarse --steps 4 --sets empty
has "first sets empty"
run 0 bench litven --table growth --contacts 1 --steps 1 --repeats 1 --json
has '"nodes":"50x50x16"'
check "the substep of a block" grep -qE '"processor_substep":[0-9.]+.*"floor":16\.82' "$dir/out"
run 1 bench litven --table cylinders --scene incline
says "has no soft bodies"

# a planar scene steps by its scheme, with misfits named
run 0 scene betz_slide_10_mu0.1 --out "$dir/slide.xml"
run 0 run "$dir/slide.xml" --scheme planar --solver lemke --steps 50 --plot "$dir/slide.svg"
has "lemke"
check "a drawing of it" grep -q "</svg>" "$dir/slide.svg"
# bodies, the slope under them and contacts with their forces
run 0 run "$dir/slide.xml" --scheme planar --steps 50 --draw "$dir/pose.svg"
has "drawn in"
check "the body" grep -q '<polygon class="body"' "$dir/pose.svg"
check "the slope" grep -q '<polygon class="fixed"' "$dir/pose.svg"
check "a contact's force" grep -q '<line class="force"' "$dir/pose.svg"
run 2 run "$dir/slide.xml" --steps 1 --draw "$dir/pose.svg"
says "--draw goes with --scheme planar"
run 1 run "$dir/slide.xml" --scheme planar --steps 1 --draw "$dir/pose.png"
says ".svg"
run 0 scene incline --out "$dir/incline.xml"
run 1 run "$dir/incline.xml" --scheme planar --steps 1
says "body 'box' can leave the plane"

# a daemon steps planar scenes to the same bytes, and records the rows of a table
"$TRIBO" run "$dir/slide.xml" --scheme planar --solver lemke --steps 50 --json |
    grep -o '"bodies":.*"certificate"' >"$dir/here"
daemon served
run 0 run "$dir/slide.xml" --scheme planar --solver lemke --steps 50 --json --server "$grpc"
grep -o '"bodies":.*"certificate"' "$dir/out" >"$dir/there"
check "something to compare" [ -s "$dir/here" ]
check "the same bytes" cmp "$dir/here" "$dir/there"
run 0 run "$dir/slide.xml" --scheme planar --steps 50 --draw "$dir/served.svg" --server "$grpc"
check "a drawing of served bodies" grep -q '<polygon class="body"' "$dir/served.svg"
# colours by option, here and by the daemon
for colouring in rigid balanced relaxed; do
    run 0 run "$dir/incline.xml" --solver coloured --colouring $colouring --steps 20 --json
    grep -o '"bodies":.*"certificate"' "$dir/out" >"$dir/here"
    run 0 run "$dir/incline.xml" --solver coloured --colouring $colouring --steps 20 --json \
        --server "$grpc"
    grep -o '"bodies":.*"certificate"' "$dir/out" >"$dir/there"
    check "the same bytes, $colouring" cmp "$dir/here" "$dir/there"
done
run 2 run "$dir/incline.xml" --solver coloured --colouring relax --steps 1
says "relaxed"
run 0 bench betz --table slide --scene betz_slide_5_mu0 --server "$grpc"
run 0 runs benchmarks --server "$grpc"
has "betz.slide.betz_slide_5_mu0"
run 1 run "$dir/incline.xml" --scheme planar --steps 1 --server "$grpc"
says "body 'box' can leave the plane"
stop
finish
