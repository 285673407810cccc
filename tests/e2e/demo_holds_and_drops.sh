#!/bin/sh
# The demo's firm grasps hold without slipping, the weak one does not, and no grasp holds without
# friction.
. tests/e2e/common.sh

# the demo's line about one grasp
grasp() { grep -o "\"$1\":{\"outcome\":.*" "$dir/out" | head -n 1; }
value() { grasp "$1" | grep -o "\"$2\":[^,}]*" | head -n 1 | cut -d : -f 2; }

# the hand of `make demo` is another one and stays as it is
other=$TRIBO_BUILD/demo/hand.xml
mkdir -p "${other%/*}"
[ -e "$other" ] || echo kept >"$other"
before=$(cksum "$other")

run 0 demo --json --quiet --out "$dir"
check "the middle is held" test "$(value middle outcome)" = '"held"'
check "the rim is held" test "$(value rim outcome)" = '"held"'
check "1 N is too weak" test "$(value weak outcome)" = '"dropped"'
check "in the hold it does not move: 1e-12 m" near "$(value middle slip_hold)" 0 1e-12
check "lifted and shaken it moves by less than 0.1 mm" near "$(value middle slip_moving)" 0 1e-4
check "a plot" grep -q "^</svg>" "$dir/grasps.svg"
check "a record" test "$(wc -l <"$dir/grasps.csv")" -gt 1000

run 0 demo --quiet --out "$dir" --friction 0
has dropped
hasnt " held  "
check "nothing is held without friction" grep -q "^0 held" "$dir/out"

check "the other demo keeps its hand" test "$(cksum "$other")" = "$before"

run 1 demo --data "$dir"
says grasp.xml
finish
