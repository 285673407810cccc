#!/bin/sh
# The tables of `make bench-gpu`, from files as a run leaves them: no ratio if the peer's motion
# has another number of steps, or if worlds missed their tolerance; wrong files are refused; and
# missing parts are reported before any measurement.
. tests/e2e/common.sh

# bench CODE ARGUMENT...: as run does with tribo
bench() {
    expected=$1
    shift
    ran="(tests/bench/gpu/run.py $*)"
    "${TEST_PYTHON:-python3}" tests/bench/gpu/run.py "$@" >"$dir/out" 2>"$dir/err" </dev/null
    code=$?
    if [ "$code" -eq "$expected" ]; then pass; else fail "exit code $code, not $expected"; fi
}
# the cells of the line that begins with $1, without blanks
line() { grep -F "$1" "$dir/out" | head -n 1 | tr -d ' '; }
# told LINE END: its last cells are the ratios at 1e-3 and 1e-6
told() { check "'$1' ends in $2" sh -c "case '$(line "$1")' in *'|$2') ;; *) false ;; esac"; }
one_line() { check 'one line of error' [ "$(wc -l <"$dir/err")" -eq 1 ]; }

# rows of ours and of MuJoCo Warp: SCENE STEPS RATE UNCONVERGED, SCENE STEPS RATE
ours() {
    printf '{"of": "ours", "scene": "%s", "part": "whole", "precision": "double",
        "tolerance": 1e-6, "worlds": 8192, "steps": %s, "way": %s, "scene_steps": 1500,
        "world_steps_per_s": %s, "contact_steps_per_s": 5, "us_per_step": 7, "residual": 1e-7,
        "unconverged": %s, "held": 8192},' "$1" "$2" "$2" "$3" "$4"
}
theirs() {
    printf '{"of": "mujoco", "scene": "%s", "part": "whole", "worlds": 8192, "steps": %s,
        "world_steps_per_s": %s, "held": 8192},' "$1" "$2" "$3"
}
# whole HAND_STEPS: a file of a run with the hand's way so long
whole() {
    echo '{"commit": "1", "card": "a card", "driver": "2", "date": "3",
        "failures": ["ours: longer than 600 s: it hung"], "what": "made up",
        "notes": {"what": "by hand", "results": [{"lanes": 8, "rate": 1.5}]}, "results": ['
    ours hand "$1" 2e6 0
    theirs hand 1500 1e6
    ours mug 1500 3e6 0
    theirs mug 1500 1e6
    ours humanoid 1500 3e6 2
    theirs humanoid 1500 1e6
    echo '{"of": "schurpa", "name": "symgbmm", "unit": "ms", "median": 2.5}]}'
}

whole 300 >"$dir/cut.json"
bench 1 --join "$dir/cut.json"
told 'hand, whole' '|~'
has '300 of 1500'
told 'mug, whole' '|3.00'
told 'humanoid, whole' '|'
check 'the mark of those that missed it' sh -c "case '$(line 'humanoid, whole')' in *'|3M!|'*) ;; *) false ;; esac"
has 'FAILED ours: longer than 600 s: it hung'
has 'symgbmm'
has 'cut.json: made up'
has 'cut.json, notes: by hand'
check 'rows of another shape' [ "$(line 'lanes | rate')" = 'lanes|rate' ]

# the same way on both sides
whole 1500 >"$dir/all.json"
bench 1 --join "$dir/all.json"
told 'hand, whole' '|2.00'
hasnt ' of 1500'

for file in tests/bench/gpu/results/*.json; do
    bench "$(grep -c '"failures": \[$' "$file")" --join "$file"
done

# unreadable files
bench 2 --join "$dir/none.json"
says 'none.json: No such file or directory'
one_line
echo '{' >"$dir/half.json"
bench 2 --join "$dir/half.json"
says 'half.json is no JSON'
one_line
echo '{"results": {}}' >"$dir/other.json"
bench 2 --join "$dir/other.json"
says 'other.json is no file of run.py'
one_line
echo '{"results": [{"of": "ours"}]}' >"$dir/rows.json"
bench 2 --join "$dir/all.json" "$dir/rows.json"
says 'rows.json has rows that run.py does not write'
one_line

# missing parts
bench 2 --parts ours --build "$dir/none"
says 'none: there is no such folder'
one_line
bench 2 --parts ours --build "$dir"
says "$dir has no tribo, tests/bench/bench_gpu"
one_line
finish
