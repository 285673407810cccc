#!/bin/sh
# A formula is in one file, which the processor and a card both compile: the GPU backend holds
# none of its own, and every source of the rooms of physics is in its unit or known to stay out.
. tests/e2e/common.sh

# Sources that no step on a card needs, unless the unit includes them: files (*_file.c), sources
# compiled once (*_once.c), the broad phase of large worlds, sleep (cards step every body), nets of
# equalities, elastics, and solvers that cards do not have.
HOST='*_file.c *_once.c collide/broad/broad.c collide/broad/brute.c contact/graph.c
step/stages/sleep.c step/stages/equality_sparse.c step/stages/elastic/*.c qp/*.c solve/*.c'

# Memory on a card: no formulas, and other functions than the library's by design.
MEMORY='tb_arena_take tb_arena_take_array tb_arena_take_zeroed tb_arena_reset tb_arena_get_mark
tb_arena_begin tb_arena_piece tb_arena_end tb_arena_return_to tb_state_reserve_next
tb_state_take_next tb_team_fast'

# names of the functions that the files define, one a line
functions() {
    awk 'FNR == 1 { text = "" }
         /^[A-Za-z_].*[(]/ && text == "" && !/;$/ { text = $0; next }
         /^\{/ && text != "" {
             sub(/__launch_bounds__[(][^)]*[)]/, "", text); sub(/ *[(].*/, "", text)
             sub(/.*[ *]/, "", text); print text
         }
         /^[{}]/ || /;$/ || /^$/ { text = "" }' "$@" | sort -u
}

# Files of a card that may calculate, since the processor has no counterpart of them:
# - linear algebra of quadratic programs in tiles (gpu/qp); tests compare it with the band solver
# - products with a stored T (gpu/stored), summed by blocks; the projections are those of contact/prox.h
# - the kernel of small worlds (batch/small), a schedule of its own with a lane for an item, and with
#   its own box pairs, mass matrix and Newton; test_device_world and test_gpu_step compare it with the
#   general step
# - the solve of wide worlds (batch/wide), newton.c's method for a warp; projections, slopes and the natural
#   map are shared; test_wide_world and test_gpu_step compare it with the general solve
PROGRAMS='/batch/(small|wide)/|/(band_(factor|multiply|solve)|card|schurpa(_base|_border|_schur|_sets)?|symgbmm|tile(_factor)?)\.(h|cu)$|/stored/'


# prints the faults of the tree in folder $1
faults() (
    cd "$1" || exit
    sed -n 's/^#include "\(.*\.c\)"$/\1/p' solver/gpu/batch/physics.h | sort >"$dir/unit"
    rooms=$(printf 'solver/%s ' base model collide contact qp solve step)
    # on the card, every function that it gets from the rooms; elsewhere those of outward names
    # shellcheck disable=SC2046,SC2086 # lists of files
    {
        functions $(find $rooms -name '*.h') $(sed 's/^/solver\//' "$dir/unit")
        functions $(find $rooms -name '*.c') | grep ^tb_
    } | sort -u >"$dir/rooms"
    # shellcheck disable=SC2046
    {
        functions $(find solver/gpu -name '*.cu')
        functions $(find solver/gpu -name '*.[ch]' -not -path '*/batch/small/*') | grep ^tb_
    } | sort -u >"$dir/backend"
    printf '%s\n' $MEMORY | sort >"$dir/memory"
    comm -12 "$dir/rooms" "$dir/backend" | comm -23 - "$dir/memory" | sed 's/^/defined twice: /'

    # to calculate takes numbers
    grep -nE '\<(tb_real|tb_vec3|tb_quaternion|tb_mat33|tb_pose)\>|\<(sqrt|fabs|sin|cos|exp)f?\(' \
        $(find solver/gpu -name '*.[ch]' -o -name '*.cu' | grep -vE "$PROGRAMS") | sed 's/^/calculates: /'

    uniq -d "$dir/unit" | sed 's/^/included twice: /'
    for source in $(cd solver && find collide contact qp solve step -name '*.c'); do
        grep -qxF "$source" "$dir/unit" && continue
        known=no
        for pattern in $HOST; do
            # shellcheck disable=SC2254 # it is a pattern
            case $source in $pattern) known=yes ;; esac
        done
        [ $known = yes ] || echo "neither in the unit nor known to stay out: $source"
    done
)

faults . >"$dir/faults"
sed 's/^/    /' "$dir/faults"
check 'nothing is wrong' [ ! -s "$dir/faults" ]
check 'functions of the rooms were found' grep -qx tb_prox_disk "$dir/rooms"
check 'functions of files were found' grep -qx tb_world_step "$dir/rooms"
check 'functions of the backend were found' grep -qx tb_arena_take "$dir/backend"

# each kind of fault, put into a copy of the tree, is found
spoiled() { # $1 expected message, $2 file, $3 text
    rm -rf "$dir/tree"
    mkdir "$dir/tree"
    cp -r solver "$dir/tree/"
    printf '%s\n' "$3" >"$dir/tree/solver/$2"
    faults "$dir/tree" >"$dir/faults"
    check "told: $1" grep -q "$1" "$dir/faults"
}
spoiled 'defined twice: tb_prox_disk' gpu/prox.cu '__device__ static void tb_prox_disk(float *x)
{
}'
spoiled 'calculates: solver/gpu/length.cu' gpu/length.cu '__device__ double length(double x)
{
    return sqrt(x * x);
}'
spoiled 'stay out: step/more.c' step/more.c 'int more(void);'
finish
