#!/bin/sh
# The same model and controls give the same bytes: run after run, on one thread or two, alone or
# beside other worlds, stepped one by one or in portions, and on a machine that stands still at times.
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

# The certificate sums energies over steps and worlds: its digits depend neither on the clock nor on
# threads, nor on a recording that looks at every step.
numbers() { sed -E 's/"seconds":[^,]*,//; s/"world_steps_per_second":[^,]*,//' "$1"; }
for worlds in 1 3; do
    run 0 run "$scene" --steps 20000 --threads 1 --worlds $worlds --json
    numbers "$dir/out" >"$dir/first"
    check 'energies are summed' grep -q '"energy_friction":-' "$dir/first"
    for options in "--threads 2" "--threads 1 --record $dir/steps.csv"; do
        # shellcheck disable=SC2086
        run 0 run "$scene" --steps 20000 --worlds $worlds --json $options
        numbers "$dir/out" >"$dir/again"
        check "the same certificate of $worlds worlds with $options" cmp "$dir/first" "$dir/again"
    done

    "$TRIBO" run "$scene" --steps 20000 --threads 1 --worlds $worlds --json >"$dir/out" 2>"$dir/err" &
    slow=$!
    for _ in 1 2 3; do
        sleep 0.02
        kill -STOP $slow 2>/dev/null
        sleep 0.15
        kill -CONT $slow 2>/dev/null
    done
    wait $slow
    numbers "$dir/out" >"$dir/again"
    check "the same certificate of $worlds worlds after pauses" cmp "$dir/first" "$dir/again"
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
