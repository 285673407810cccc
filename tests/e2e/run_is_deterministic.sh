#!/bin/sh
# The same model and controls give the same bytes: run after run, on one thread or two, alone or
# beside other worlds, stepped one by one or in portions.
. tests/e2e/common.sh
write_scene "$dir/scene.xml"
scene=$dir/scene.xml

# the parts that depend neither on the clock nor on the number of worlds
state() {
    sed -E 's/"seconds":[^,]*,//; s/"world_steps_per_second":[^,]*,//; s/"worlds":[^,]*,//;
            s/"certificate":.*"last_step"/"last_step"/' "$dir/out"
}

run 0 run "$scene" --steps 500 --threads 1 --json
state >"$dir/first"
for options in "--threads 1" "--threads 2" "--worlds 3 --threads 1" "--worlds 3 --threads 2" \
    "--threads 2 --record $dir/steps.csv"; do
    # shellcheck disable=SC2086
    run 0 run "$scene" --steps 500 --json $options
    state >"$dir/again"
    check "the same state with $options" cmp "$dir/first" "$dir/again"
done

for threads in 1 2; do
    for worlds in 1 3; do
        run 0 run "$scene" --steps 300 --threads $threads --worlds $worlds --quiet \
            --record "$dir/$threads-$worlds.csv"
        check "the same recording on $threads threads with $worlds worlds" \
            cmp "$dir/1-1.csv" "$dir/$threads-$worlds.csv"
    done
done
finish
