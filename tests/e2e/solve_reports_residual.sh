#!/bin/sh
# tribo solve prints a line for each problem, with the residual; unsolved and unreadable problems
# show in the exit code.
. tests/e2e/common.sh

# one contact, W = I, q = (-1, 0.3, 0), mu 0.5: sticks with r = (1, -0.3, 0)
cat >"$dir/one.dat" <<'DAT'
3
1
0
3
3
3
3
1 0 0
0 1 0
0 0 1
-1 0.3 0
0.5
DAT
run 0 solve "$dir/one.dat"
has one.dat
has OK
run 0 solve --json "$dir/one.dat" "$dir/one.dat"
check "two objects" test "$(wc -l <"$dir/out")" -eq 2
for key in file contacts solver status residual iterations seconds; do has "\"$key\":"; done
has '"contacts":1'
check "solved to 1e-8" near "$(number residual)" 0 1e-8
for solver in sor jor; do
    for storage in auto dense T; do
        run 0 solve --json --solver $solver --storage $storage "$dir/one.dat"
        has "\"solver\":\"$solver\""
    done
done

run 1 solve --json "$dir/absent.dat" "$dir/one.dat"
has '"status":"NOT_FOUND"'
has '"status":"OK"'
says absent.dat
head -n 8 "$dir/one.dat" >"$dir/cut.dat"
run 1 solve "$dir/cut.dat"
says cut.dat
printf '3\n1\n0\n3\n3\n3\n3\n1 0 0 0 nan 0 0 0 1\n-1 0 0\n0.5\n' >"$dir/nan.dat"
run 1 solve "$dir/nan.dat"
says nan.dat
printf '3\n2000000000\n0\n3\n3\n' >"$dir/huge.dat"
run 1 solve "$dir/huge.dat"
says huge.dat

# published problems, if they are there
problems=../shared/data/contact-problems
if [ -e $problems/Capsules-i100-1090.dat ]; then
    run 0 solve --json $problems/Capsules-i100-1090.dat $problems/Confeti-ex03-Fc3D-SBM.dat
    check "both to 1e-8" sh -c "! grep -v '\"status\":\"OK\"' '$dir/out'"
    run 3 solve --max-iterations 2 $problems/Capsules-i100-1090.dat
    has NOT_CONVERGED

    # minutes of one solver's turns: a request to end is heard within them
    ran="solve --solver staggered (and a signal)"
    "$TRIBO" solve --solver staggered $problems/RockPile_tob1.dat >"$dir/out" 2>"$dir/err" &
    child=$!
    sleep 1
    began=$(date +%s)
    kill -TERM "$child"
    wait "$child"
    code=$?
    check "exit code 130, not $code" test "$code" -eq 130
    check "within seconds" test "$(($(date +%s) - began))" -le 10
    says "told to end"
else
    skip "$problems is not here"
fi
finish
