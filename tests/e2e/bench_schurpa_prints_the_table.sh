#!/bin/sh
# tribo bench schurpa: Litven's table 7.1, a row for every delta; both methods end in the same set.
. tests/e2e/common.sh

run 0 bench schurpa --n 300 --half-bandwidth 40 --repeats 1
has "n 300, half-bandwidth 40, double"
has "all ended in the same set: yes"
check "six rows" [ "$(grep -cE '^ *(0|10|20|30|40|50) +[0-9]+ +[0-9]+ ' "$dir/out")" -eq 6 ]

# one factorization, one right-hand side for each wrong bound and few more, where DIRECT factors
# in every iteration
run 0 bench schurpa --n 300 --half-bandwidth 40 --delta 20 --repeats 1 --json
schurpa=$(grep -o '"schurpa":{[^}]*}' "$dir/out") direct=$(grep -o '"direct":{[^}]*}' "$dir/out")
value() { echo "$1" | grep -o "\"$2\":[-+0-9.eE]*" | cut -d : -f 2; }
check "one factorization" [ "$(value "$schurpa" factorizations)" -eq 1 ]
check "solves" [ "$(value "$schurpa" solves)" -ge 21 ]
check "few solves" [ "$(value "$schurpa" solves)" -le 60 ]
iterations=$(value "$direct" iterations)
check "as many iterations" [ "$(value "$schurpa" iterations)" -eq "$iterations" ]
check "more than one" [ "$iterations" -gt 1 ]
check "a factorization each" [ "$(value "$direct" factorizations)" -eq "$iterations" ]
check "residual of SCHURPA" near "$(value "$schurpa" kkt_residual)" 0 1e-12
check "residual of DIRECT" near "$(value "$direct" kkt_residual)" 0 1e-12
has '"same_set":true'
hasnt '"same_set":false'

run 0 bench schurpa --n 300 --half-bandwidth 40 --delta 20 --repeats 1 --precision single \
    --direct lapack --json
check "residual of floats" near "$(number kkt_residual)" 0 1e-5
has '"direct_factors_by":"lapack"'

# the same on a card, here one that the processor plays
TRIBO_GPU_PLUGIN=$(dirname "$TRIBO")/tests/plugin/card.so
export TRIBO_GPU_PLUGIN
run 0 bench schurpa --backend gpu --n 120 --half-bandwidth 20 --delta 20 --repeats 1
has "a played card"
has "all ended in the same set: yes"
run 2 bench schurpa --backend gpu --direct lapack
says "--direct lapack is for --backend cpu"

run 2 bench schurpa --n 10 --half-bandwidth 10
says "--half-bandwidth must be below --n"
run 2 bench schurpa --n 10 --half-bandwidth 3 --delta 11
says "--delta must not be above --n"
run 2 bench schurpa --precision half
finish
