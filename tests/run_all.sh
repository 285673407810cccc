#!/bin/sh
# Runs test programs side by side and adds up their results.
#
#   tests/run_all.sh LOG_FOLDER BUILD_FOLDER:TEST...
#
# A TEST is a path in the tree: a program BUILD_FOLDER/TEST, or a script that drives
# BUILD_FOLDER/tribo. Counted are libcheck's lines "N%: Checks: N, Failures: N, Errors: N", the last
# "N passed, N failed[, N skipped]" of a script, and lines that begin with SKIPPED. A program that
# ends badly without reporting a failure counts as one, and so does one that reports nothing.
# Each program's output goes to LOG_FOLDER; that of the failing ones is shown. The last line is the
# sum, alone: "N passed, N failed, N skipped".
#
# Environment: JOBS (2), TEST_TIMEOUT in seconds for one program (600), TEST_PYTHON, PEERS_PYTHON,
# ARCHER.

jobs=${JOBS:-2}
limit=${TEST_TIMEOUT:-600}

# Prints "passed failed skipped" of one log.
count() {
    awk '
    /^[0-9]+%: Checks: [0-9]+, Failures: [0-9]+, Errors: [0-9]+/ {
        split($0, n, /[^0-9]+/)
        checks += n[2]
        failed += n[3] + n[4]
    }
    /^[0-9]+ passed, [0-9]+ failed/ {
        split($0, n, /[^0-9]+/)
        script_passed = n[1]
        script_failed = n[2]
        script_skipped = n[3]
    }
    # a forked test may flush a line that its parent flushes too: count each text once
    /^SKIPPED/ && !seen[$0]++ { skipped++ }
    END {
        # libcheck has no skipping: a skipped check counts as passed
        passed = checks - failed - skipped
        if (passed < 0) passed = 0
        if (script_skipped > skipped) skipped = script_skipped
        print passed + script_passed, failed + script_failed, skipped + 0
    }' "$1"
}

# Runs one BUILD_FOLDER:TEST, leaves NAME.log and NAME.count, prints one line.
run_one() {
    build=${2%%:*}
    name=${2#*:}
    label=$name
    TRIBO_BUILD=$(cd "$build" && pwd)
    TRIBO=$TRIBO_BUILD/tribo TRIBOD=$TRIBO_BUILD/tribod
    export TRIBO TRIBOD TRIBO_BUILD

    # time limits are this script's; spinning threads would starve the program next door
    export CK_DEFAULT_TIMEOUT="$limit" OMP_WAIT_POLICY=passive CK_RUN_CASE= CK_VERBOSITY=normal
    unset MAKEFLAGS MFLAGS MAKELEVEL CK_RUN_CASE

    # sanitizers: no forks, so that a report belongs to the program, and no address randomization,
    # which on some kernels takes the addresses that they need
    fixed_addresses=
    case $build in
    */asan | */tsan)
        label="${build##*/} $name"
        export CK_FORK=no
        export ASAN_OPTIONS="detect_stack_use_after_return=1:strict_string_checks=1"
        export UBSAN_OPTIONS=print_stacktrace=1
        export TSAN_OPTIONS=ignore_noninstrumented_modules=1:halt_on_error=1
        [ -z "$ARCHER" ] || export OMP_TOOL_LIBRARIES="$ARCHER"
        setarch -R true 2>/dev/null && fixed_addresses="setarch -R"
        ;;
    esac

    case $name in
    tests/peers/*.py) set -- "$1" "${PEERS_PYTHON:-python3}" "$name" ;;
    *.py) set -- "$1" "${TEST_PYTHON:-python3}" "$name" ;;
    *.sh) set -- "$1" "$name" ;;
    */replay_*) set -- "$1" "$build/$name" "tests/fuzz/corpus/${name##*/replay_}" ;;
    *) set -- "$1" "$build/$name" ;;
    esac
    out=$1/$(printf %s "$label" | tr '/ ' '__')
    shift

    start=$(date +%s%N)
    timeout -k 10 "$limit" $fixed_addresses "$@" >"$out.log" 2>&1 </dev/null
    status=$?
    seconds=$(awk "BEGIN { printf \"%.1f\", ($(date +%s%N) - $start) / 1e9 }")

    read -r passed failed skipped <<END
$(count "$out.log")
END
    why=
    if [ "$status" -eq 124 ] || [ "$status" -eq 137 ]; then
        why="ended after $limit s"
    elif [ "$status" -ne 0 ]; then
        why="exit status $status"
    elif [ "$((passed + failed + skipped))" -eq 0 ]; then
        why="reported no checks"
    fi
    [ -z "$why" ] || [ "$failed" -gt 0 ] || failed=1
    echo "$passed $failed $skipped" >"$out.count"

    verdict=ok
    if [ "$failed" -gt 0 ]; then
        verdict=FAIL
        echo "$label${why:+: $why}" >"$out.failed"
    fi
    printf '%-4s %s: %d passed, %d failed, %d skipped, %s s%s\n' "$verdict" "$label" \
        "$passed" "$failed" "$skipped" "$seconds" "${why:+ ($why)}"
}

if [ "$1" = --one ]; then
    run_one "$2" "$3"
    exit 0
fi

cd "$(dirname "$0")/.." || exit 1
log=$1
shift
rm -rf "$log"
mkdir -p "$log" || exit 1
[ $# -eq 0 ] || printf '%s\n' "$@" | xargs -P "$jobs" -n 1 tests/run_all.sh --one "$log"

grep -h '^SKIPPED' "$log"/*.log 2>/dev/null | sort -u
for mark in "$log"/*.failed; do
    [ -e "$mark" ] || continue
    printf '\n==== %s, from %s.log\n' "$(cat "$mark")" "${mark%.failed}"
    tail -n 300 "${mark%.failed}.log"
done

# every test that was asked for must have left its count
finished=$(find "$log" -name '*.count' | wc -l)
cat "$log"/*.count /dev/null 2>/dev/null | awk -v lost=$(($# - finished)) '
    { passed += $1; failed += $2; skipped += $3 }
    END {
        failed += lost
        printf "%d passed, %d failed, %d skipped\n", passed, failed, skipped
        exit failed > 0
    }'
