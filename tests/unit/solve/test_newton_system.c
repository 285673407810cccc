/* Parts of newton's linear solves: the sparse LU against its own product, large graphs, and the
 * factor of an earlier matrix against a factorization of the matrix itself. */
#include "test_util.h"

#include "problem_util.h"
#include "solve/newton/newton_system.h"

/* ---- the sparse LU ---- */

enum { LU_NODES = 60, LU_ROWS = 6 * LU_NODES };

START_TEST(sparse_lu_solves_what_it_factored)
{
    static double dense[LU_ROWS][LU_ROWS], x[LU_ROWS], b[LU_ROWS], columns[3 * LU_ROWS];
    static int32_t size[LU_NODES], start[LU_NODES + 1], neighbour[LU_NODES * LU_NODES];
    static bool couples[LU_NODES][LU_NODES];
    for (int density = 0; density < 4; density++) {
        tb_random random = tb_random_stream(11, (uint64_t)density);
        const double chance = density == 3 ? 1 : 0.02 * (1 << density);
        memset(dense, 0, sizeof dense);
        memset(couples, 0, sizeof couples);
        for (int i = 0; i < LU_NODES; i++) {
            size[i] = 1 + (int32_t)(6 * tb_random_uniform(&random));
            for (int j = 0; j < i; j++)
                couples[i][j] = couples[j][i] = tb_random_uniform(&random) < chance;
        }
        int32_t entries = 0;
        for (int i = 0; i < LU_NODES; i++) {
            start[i] = entries;
            for (int j = 0; j < LU_NODES; j++)
                if (couples[i][j]) neighbour[entries++] = j;
        }
        start[LU_NODES] = entries;
        tb_arena arena;
        tb_arena_init(&arena, 0);
        tb_block_lu lu;
        const tb_node_graph graph = {LU_NODES, size, start, neighbour};
        ck_assert(tb_block_lu_analyse(&lu, &graph, &arena) == TB_OK);
        if (density == 3) ck_assert(lu.groups < LU_NODES / 4); /* all alike: few large groups */
        tb_block_lu_clear(&lu);
        for (int i = 0; i < LU_NODES; i++)
            for (int j = 0; j < LU_NODES; j++) {
                if (i != j && !couples[i][j]) continue;
                const int32_t row = lu.group[i], column = lu.group[j];
                double *to = tb_block_lu_block(&lu, row, column);
                for (int k = 0; k < size[i]; k++)
                    for (int m = 0; m < size[j]; m++) {
                        /* zeros on the diagonal's diagonal ask for exchanges */
                        double value = tb_random_normal(&random);
                        if (i == j) value = k == m ? 0 : 20 + value;
                        if (size[i] == 1 && i == j) value = 20;
                        to[(lu.offset[i] + k) * lu.size[column] + lu.offset[j] + m] = value;
                        dense[lu.first[row] + lu.offset[i] + k]
                             [lu.first[column] + lu.offset[j] + m] = value;
                    }
            }
        for (int i = 0; i < lu.rows; i++) b[i] = x[i] = tb_random_normal(&random);
        ck_assert(tb_block_lu_factor(&lu));
        tb_block_lu_solve(&lu, x);
        double worst = 0, largest = 0;
        for (int i = 0; i < lu.rows; i++) {
            double sum = -b[i];
            for (int j = 0; j < lu.rows; j++) sum += dense[i][j] * x[j];
            worst = fmax(worst, fabs(sum));
            largest = fmax(largest, fabs(x[i]));
        }
        ck_assert_msg(worst < 1e-9 * (1 + largest), "density %d: %g", density, worst);

        /* several at once: the same answer in each column, and a row that is zero above */
        for (int i = 0; i < lu.rows; i++) {
            columns[3 * i] = columns[3 * i + 1] = b[i];
            columns[3 * i + 2] = i == lu.rows - 1;
        }
        tb_block_lu_solve_columns(&lu, columns, 3);
        for (int i = 0; i < lu.rows; i++) {
            TEST_NEAR(columns[3 * i], x[i], 1e-10 * (1 + largest));
            TEST_NEAR(columns[3 * i + 1], x[i], 1e-10 * (1 + largest));
            double sum = i == lu.rows - 1 ? -1 : 0;
            for (int j = 0; j < lu.rows; j++) sum += dense[i][j] * columns[3 * j + 2];
            ck_assert(fabs(sum) < 1e-10);
        }
        tb_arena_destroy(&arena);
    }
}
END_TEST

START_TEST(sparse_lu_says_what_is_singular_and_what_is_too_large)
{
    static const int32_t size[2] = {1, 1}, start[3] = {0, 0, 0}, huge[1] = {12000};
    tb_arena arena;
    tb_arena_init(&arena, 0);
    tb_block_lu lu;
    const tb_node_graph large = {1, huge, start, start};
    ck_assert(12000 * 12000 > TB_BLOCK_LU_NUMBERS);
    ck_assert(tb_block_lu_analyse(&lu, &large, &arena) == TB_UNSUPPORTED);
    const tb_node_graph small = {2, size, start, start};
    ck_assert(tb_block_lu_analyse(&lu, &small, &arena) == TB_OK);
    tb_block_lu_clear(&lu);
    *tb_block_lu_block(&lu, 0, 0) = 1;
    ck_assert(!tb_block_lu_factor(&lu));
    const tb_node_graph nothing = {0, size, start, start};
    ck_assert(tb_block_lu_analyse(&lu, &nothing, &arena) == TB_OK && lu.rows == 0);
    tb_arena_destroy(&arena);
}
END_TEST

/* The number of two nodes of one row each. */
static double *number_of(const tb_block_lu *lu, int32_t row, int32_t column)
{
    const int32_t group = lu->group[column];
    return tb_block_lu_block(lu, lu->group[row], group) + lu->offset[row] * lu->size[group] +
           lu->offset[column];
}

/* Where a node of one row lies in a right side. */
static int32_t place_of(const tb_block_lu *lu, int32_t node)
{
    return lu->first[lu->group[node]] + lu->offset[node];
}

/* The five-point Laplacian of a square. Minimum degree fills some 31 n log2 n / 4 numbers below the
 * diagonal (George and Liu, SIAM Review 31, 1989, have it beside nested dissection); a band of the
 * square's width has n^1.5. */
START_TEST(large_graphs_are_ordered_with_little_fill)
{
    enum { SIDE = 160, NODES = SIDE * SIDE };
    static int32_t size[NODES], start[NODES + 1], neighbour[4 * NODES];
    static double x[NODES];
    static const int MOVES[4][2] = {{1, 0}, {0, -1}, {-1, 0}, {0, 1}}; /* in no order */
    int32_t entries = 0;
    for (int i = 0; i < NODES; i++) {
        size[i] = 1;
        start[i] = entries;
        for (int m = 0; m < 4; m++) {
            const int row = i / SIDE + MOVES[m][0], column = i % SIDE + MOVES[m][1];
            if (row < 0 || row >= SIDE || column < 0 || column >= SIDE) continue;
            neighbour[entries++] = SIDE * row + column;
        }
    }
    start[NODES] = entries;
    tb_arena arena;
    tb_arena_init(&arena, 0);
    tb_block_lu lu;
    const tb_node_graph graph = {NODES, size, start, neighbour};
    ck_assert(tb_block_lu_analyse(&lu, &graph, &arena) == TB_OK);
    ck_assert_int_eq(lu.rows, NODES);
    ck_assert_int_lt(lu.groups, NODES); /* the last ones are joined */
    ck_assert_msg(lu.numbers < 2 * 31 * NODES * 3, "%lld numbers", (long long)lu.numbers);
    tb_block_lu_clear(&lu);
    for (int i = 0; i < NODES; i++) {
        *number_of(&lu, i, i) = 4.01;
        for (int32_t k = start[i]; k < start[i + 1]; k++) *number_of(&lu, i, neighbour[k]) = -1;
    }
    for (int i = 0; i < NODES; i++) x[place_of(&lu, i)] = i % 7 - 3;
    ck_assert(tb_block_lu_factor(&lu));
    tb_block_lu_solve(&lu, x);
    for (int i = 0; i < NODES; i++) {
        double left = 4.01 * x[place_of(&lu, i)] - (i % 7 - 3);
        for (int32_t k = start[i]; k < start[i + 1]; k++) left -= x[place_of(&lu, neighbour[k])];
        ck_assert(fabs(left) < 1e-11);
    }
    tb_arena_destroy(&arena);
}
END_TEST

/* ---- the factor of an earlier matrix ---- */

enum { BODIES = 60, CONTACTS = 150 };
static made_problem made;

/* A step's matrix: each block's term and its right side. */
typedef struct made_step {
    double weight[CONTACTS], slope[18 * CONTACTS], prox_gap[3 * CONTACTS];
    uint8_t statuses[CONTACTS];
} made_step;

/* sticks: D = 1; slips along the second tangent: Alart and Curnier's slope there */
static void set_status(made_step *step, int b, tb_contact_status status, double turn)
{
    double *d = step->slope + 18 * b;
    memset(d, 0, 9 * sizeof *d);
    step->statuses[b] = (uint8_t)status;
    if (status == TB_CONTACT_OPEN) return;
    d[0] = 1;
    if (status == TB_CONTACT_STICK) d[4] = d[8] = 1;
    if (status != TB_CONTACT_SLIP) return;
    d[3] = 0.5 * sin(turn);
    d[6] = 0.5 * cos(turn);
    d[4] = 0.1 * cos(turn) * cos(turn);
    d[5] = d[7] = -0.1 * sin(turn) * cos(turn);
    d[8] = 0.1 * sin(turn) * sin(turn);
}

static void make_step(made_step *step, double epsilon, uint64_t seed)
{
    tb_random random = tb_random_stream(seed, 5);
    for (int b = 0; b < CONTACTS; b++) {
        step->weight[b] = epsilon * 6;
        set_status(step, b, (tb_contact_status)(b % 7 == 0 ? TB_CONTACT_OPEN : b % 5 ? 1 : 2), b);
        for (int i = 0; i < 3; i++) step->prox_gap[3 * b + i] = tb_random_normal(&random);
    }
}

/* largest difference of two answers over the largest number of one */
static double difference(const double *a, const double *b)
{
    double most = 0, largest = 0;
    for (int i = 0; i < 3 * CONTACTS; i++) {
        most = fmax(most, fabs(a[i] - b[i]));
        largest = fmax(largest, fabs(b[i]));
    }
    return most / largest;
}

START_TEST(a_factor_serves_while_few_blocks_change)
{
    static made_step step;
    static double change[3 * CONTACTS], anew[3 * CONTACTS], compliance[3 * CONTACTS];
    static const double EPSILON[] = {1e-1, 1e-4, 1e-7};
    for (int k = 0; k < 6; k++) {
        made_random(&made, (uint64_t)k, CONTACTS, BODIES, 0.5, 1);
        for (int i = 0; i < 3 * CONTACTS; i++) compliance[i] = 0.01 * (i % 4);
        if (k % 2) made.problem.compliance = compliance;
        make_step(&step, EPSILON[k / 2], (uint64_t)k);
        tb_arena arenas[2];
        tb_newton_system warm, cold;
        tb_arena_init(&arenas[0], 0);
        ck_assert(tb_newton_system_prepare(&warm, &made.problem, &arenas[0]) == TB_OK);
        for (int n = 0; n < 8; n++) {
            /* nothing; one more each time, open ones too; all of another weight; two of them */
            for (int b = 0; b < (n < 5 ? (n + 1) / 2 : 0); b++)
                set_status(&step, 7 * b + (n + b) % 3, (tb_contact_status)((n + b) % 3), n + 2 * b);
            for (int b = 0; n == 6 && b < CONTACTS; b++) step.weight[b] *= 0.5;
            if (n == 7) set_status(&step, 20, TB_CONTACT_SLIP, 3);
            if (n == 7) set_status(&step, 21, TB_CONTACT_OPEN, 3);
            bool solved = false, solved_anew = false;
            ck_assert(tb_newton_system_solve(&warm, step.weight, step.slope, step.prox_gap,
                                             step.statuses, change, &solved) == TB_OK);
            tb_arena_init(&arenas[1], 0);
            ck_assert(tb_newton_system_prepare(&cold, &made.problem, &arenas[1]) == TB_OK);
            ck_assert(tb_newton_system_solve(&cold, step.weight, step.slope, step.prox_gap,
                                             step.statuses, anew, &solved_anew) == TB_OK);
            const double apart = difference(change, anew);
            ck_assert_msg(apart < 1e-13 / EPSILON[k / 2], "problem %d, step %d: %g", k, n, apart);
            ck_assert_int_eq(cold.factorizations, 1);
            tb_arena_destroy(&arenas[1]);
        }
        ck_assert_int_eq(warm.solves, 8);
        ck_assert_int_eq(warm.factorizations, 2);
        tb_arena_destroy(&arenas[0]);
    }
}
END_TEST

/* Where more has changed than a factorization costs, it is made. */
START_TEST(a_factor_goes_when_much_has_changed)
{
    static made_step step;
    static double change[3 * CONTACTS];
    made_random(&made, 3, CONTACTS, BODIES, 0.5, 1);
    make_step(&step, 1e-3, 3);
    tb_arena arena;
    tb_newton_system system;
    tb_arena_init(&arena, 0);
    ck_assert(tb_newton_system_prepare(&system, &made.problem, &arena) == TB_OK);
    for (int n = 0; n < 4; n++) {
        bool solved = false;
        for (int b = 0; b < CONTACTS; b++)
            set_status(&step, b, (tb_contact_status)((b + n) % 3), b + n);
        ck_assert(tb_newton_system_solve(&system, step.weight, step.slope, step.prox_gap,
                                         step.statuses, change, &solved) == TB_OK);
        ck_assert(solved);
        ck_assert_int_eq(system.factorizations, n + 1);
    }
    tb_arena_destroy(&arena);
}
END_TEST

/* ---- rows along one velocity ---- */

/* Solves the made problem by a system of its own, whose memory the caller destroys. */
static void solve_made(tb_newton_system *system, tb_arena *arena, const double *weight,
                       const double *slope, const double *gap, const uint8_t *statuses,
                       double *change)
{
    bool solved = false;
    tb_arena_init(arena, 0);
    ck_assert(tb_newton_system_prepare(system, &made.problem, arena) == TB_OK);
    ck_assert(tb_newton_system_solve(system, weight, slope, gap, statuses, change, &solved) ==
              TB_OK);
    ck_assert(solved);
}

/* Rows of one number each on chains of dofs. padded: as rows on all dofs, zero on the others. */
static void solve_chains(bool padded, double *change)
{
    enum { DOFS = 9, BLOCKS = 9 };
    static const int CHAINS[BLOCKS][4] = {{0, 3, 0, 0}, {0, 5, 0, 0}, {0, 5, 6, 1},
                                          {0, 5, 6, 2}, {0, 5, 6, 3}, {0, 2, 0, 0},
                                          {0, 2, 5, 2}, {4, 5, 0, 0}, {1, 8, 0, 0}};
    double weight[BLOCKS], slope[TB_BLOCK_ROWS * BLOCKS] = {0}, gap[BLOCKS];
    uint8_t statuses[BLOCKS];
    tb_random random = tb_random_stream(37, 0);
    made_begin(&made, DOFS);
    for (int b = 0; b < BLOCKS; b++) {
        const int *chain = CHAINS[b];
        double y[DOFS] = {0}, all[DOFS] = {0};
        const double c = 0;
        for (int k = 0; k < chain[1] + chain[3]; k++) {
            y[k] = tb_random_normal(&random);
            all[k < chain[1] ? chain[0] + k : chain[2] + k - chain[1]] = y[k];
        }
        if (padded)
            made_add(&made, TB_LAW_BOX, 1, 0, 0, DOFS, 0, 0, all, &c);
        else
            made_add(&made, TB_LAW_BOX, 1, 0, chain[0], chain[1], chain[2], chain[3], y, &c);
        weight[b] = 0.1;
        statuses[b] = TB_CONTACT_STICK;
        slope[TB_BLOCK_ROWS * b] = 1;
        gap[b] = tb_random_normal(&random);
    }
    tb_arena arena;
    tb_newton_system system;
    solve_made(&system, &arena, weight, slope, gap, statuses, change);
    ck_assert(system.one_node);
    tb_arena_destroy(&arena);
}

/* Rows on dofs that contain one another go into the matrix three at a time. That changes no bit: rows
 * that all are on the same dofs, with zeros, and so are taken in other threes, give the same. */
START_TEST(rows_of_a_chain_go_together_and_change_no_bit)
{
    double chains[9], padded[9];
    solve_chains(false, chains);
    solve_chains(true, padded);
    for (int i = 0; i < 9; i++) ck_assert(chains[i] != 0 && isfinite(chains[i]));
    ck_assert_mem_eq(chains, padded, sizeof chains);
}
END_TEST

/* The rows of a robot of LIMBS chains on a free base: one for each joint, which moves with all dofs above it,
 * twice, and a contact for the end of each chain. dofs: LIMB_DOFS, or more that no row moves. */
enum { LIMBS = 4, LIMB = 17, BASE = 6, LIMB_DOFS = BASE + LIMBS * LIMB, LIMB_ROWS = 2 * LIMB + 3 };

static void solve_limbs(int32_t dofs, double change[LIMBS * LIMB_ROWS])
{
    enum { BLOCKS = LIMBS * (2 * LIMB + 1), ROWS = LIMBS * LIMB_ROWS };
    double weight[BLOCKS], slope[TB_BLOCK_ROWS * ROWS] = {0}, gap[ROWS];
    double y[3 * (BASE + LIMB)];
    uint8_t statuses[BLOCKS];
    tb_random random = tb_random_stream(53, 0);
    const double c[3] = {0};
    made_begin(&made, dofs);
    for (int b = 0, row = 0; b < BLOCKS; b++) {
        const int joint = b % (2 * LIMB + 1) / 2, limb = b / (2 * LIMB + 1);
        const bool touches = joint == LIMB;
        const int rows = touches ? 3 : 1, length = touches ? LIMB : joint + 1;
        for (int k = 0; k < rows * (BASE + length); k++) y[k] = tb_random_normal(&random);
        made_add(&made, touches ? TB_LAW_COULOMB : TB_LAW_BOX, rows, 0, 0, BASE, BASE + limb * LIMB,
                 length, y, c);
        weight[b] = 0.1;
        statuses[b] = joint == 3 ? TB_CONTACT_OPEN : TB_CONTACT_STICK;
        for (int i = 0; i < rows; i++) {
            slope[TB_BLOCK_ROWS * row + i * (rows + 1)] = 1;
            gap[row + i] = tb_random_normal(&random);
        }
        row += rows;
    }
    tb_arena arena;
    tb_newton_system system;
    solve_made(&system, &arena, weight, slope, gap, statuses, change);
    ck_assert(!system.one_node && (system.full != NULL) == (dofs == LIMB_DOFS));
    tb_arena_destroy(&arena);
}

/* The matrix of a robot is summed in a full square of its dofs, that of a larger world block by block, with
 * the same bits. */
START_TEST(a_full_square_of_dofs_changes_no_bit)
{
    double own[LIMBS * LIMB_ROWS], among_others[LIMBS * LIMB_ROWS];
    solve_limbs(LIMB_DOFS, own);
    solve_limbs(400, among_others);
    for (int i = 0; i < LIMBS * LIMB_ROWS; i++) ck_assert(own[i] != 0 && isfinite(own[i]));
    ck_assert_mem_eq(own, among_others, sizeof own);
}
END_TEST

/* Three rows along each of four velocities, one of them turned around, among rows with the same last
 * dof but other numbers and a contact: the step satisfies w change + D (G + E) change = w gap. */
START_TEST(rows_along_one_velocity_are_one_term)
{
    enum { DOFS = 8, VELOCITIES = 4, BLOCKS = 4 * VELOCITIES + 1, ROWS = 4 * VELOCITIES + 3 };
    double weight[BLOCKS], slope[TB_BLOCK_ROWS * ROWS] = {0}, gap[ROWS], change[ROWS];
    uint8_t statuses[BLOCKS];
    tb_random random = tb_random_stream(29, 0);
    made_begin(&made, DOFS);
    for (int kind = 0; kind < 4; kind++)
        for (int v = 0; v < VELOCITIES; v++) {
            tb_random own = tb_random_stream(31, (uint64_t)(kind == 2 ? 9 + v : v));
            double y[DOFS], c = 0;
            for (int i = 0; i < 2 * v + 2; i++)
                y[i] = (kind == 3 ? -1 : 1) * tb_random_normal(&own);
            made_add(&made, TB_LAW_BOX, 1, 0, 0, 2 * v + 2, 0, 0, y, &c);
        }
    double y[3 * DOFS], c[3] = {0, 0, 0};
    for (int i = 0; i < 3 * DOFS; i++) y[i] = tb_random_normal(&random);
    made_add(&made, TB_LAW_COULOMB, 3, 0.5, 0, DOFS, 0, 0, y, c);
    made.problem.compliance = made.compliance;
    for (int i = 0; i < ROWS; i++) {
        made.compliance[i] = i < VELOCITIES ? 0.3 : 0;
        gap[i] = tb_random_normal(&random);
    }
    for (int b = 0; b < BLOCKS; b++) {
        weight[b] = 0.01 * (1 + b % 3);
        statuses[b] = b == 1 || b == VELOCITIES + 2 ? TB_CONTACT_OPEN : TB_CONTACT_STICK;
        for (int i = 0; i < made.blocks[b].rows && statuses[b] != TB_CONTACT_OPEN; i++)
            slope[TB_BLOCK_ROWS * made.blocks[b].row + i * (made.blocks[b].rows + 1)] = 1;
    }
    tb_arena arena;
    tb_newton_system system;
    solve_made(&system, &arena, weight, slope, gap, statuses, change);
    ck_assert(system.one_node);
    for (int b = 0; b < BLOCKS; b++) {
        const int before = b < VELOCITIES || b == BLOCKS - 1 || b / VELOCITIES == 2 ? -1
                           : b / VELOCITIES == 1                                    ? b - VELOCITIES
                                                 : b - 2 * VELOCITIES;
        ck_assert_int_eq(system.alike_before[b], before);
        for (int i = 0; i < made.blocks[b].rows; i++) {
            const int row = made.blocks[b].row + i;
            const double *own = made.values + made.blocks[b].value + i * made.blocks[b].width;
            double velocity = made.compliance[row] * change[row];
            for (int other = 0; other < BLOCKS; other++)
                for (int k = 0; k < made.blocks[other].rows; k++) {
                    const tb_block *o = &made.blocks[other];
                    const double *theirs = made.values + o->value + k * o->width;
                    for (int d = 0; d < o->width && d < made.blocks[b].width; d++)
                        velocity += own[d] * theirs[d] * change[o->row + k];
                }
            const double open = statuses[b] == TB_CONTACT_OPEN ? 0 : 1;
            TEST_NEAR(weight[b] * change[row] + open * velocity, weight[b] * gap[row], 1e-12);
        }
    }
    tb_arena_destroy(&arena);
}
END_TEST

/* ---- the factor of an earlier solve ---- */

enum { CACHED_BODIES = 4, CACHED_CONTACTS = 12, CACHED = 1 + 36 * CACHED_BODIES * CACHED_BODIES };

/* A solve from the sets of `from`; the answer in `to`. */
static void solve_from(const made_solution *from, double *factor, double tolerance,
                       made_solution *to)
{
    double speeds[CACHED_CONTACTS];
    const tb_solve_options options = made_options("newton", tolerance);
    tb_arena arena;
    tb_arena_init(&arena, 0);
    for (int b = 0; b < CACHED_CONTACTS; b++)
        speeds[b] = hypot(from->xi[3 * b + 1], from->xi[3 * b + 2]);
    tb_warm_start warm = {.lambda = from->lambda,
                          .statuses = from->statuses,
                          .speeds = speeds,
                          .scratch = &arena,
                          .factor = factor};
    to->solution = (tb_solution){
        .lambda = to->lambda, .xi = to->xi, .whitened = to->whitened, .statuses = to->statuses};
    ck_assert(tb_solver_find("newton")(&made.problem, &options, &warm, &to->solution) == TB_OK);
    ck_assert_msg(to->solution.status == TB_OK, "%g", to->solution.residuals.natural);
    tb_arena_destroy(&arena);
}

static void shake(double share, uint64_t seed)
{
    tb_random random = tb_random_stream(seed, 31);
    for (int i = 0; i < 3 * CACHED_CONTACTS; i++)
        made.c[i] *= 1 + share * tb_random_normal(&random);
    for (int64_t i = 0; i < made.next_value; i++)
        made.values[i] *= 1 + share * tb_random_normal(&random);
}

START_TEST(a_factor_serves_later_solves_that_are_near)
{
    static made_solution start, first, second, third;
    static double factor[CACHED], kept[CACHED];
    const size_t bytes = 3 * CACHED_CONTACTS * sizeof(double);
    ck_assert_int_eq(tb_cached_factor_numbers(6 * CACHED_BODIES), CACHED);
    ck_assert_int_eq(tb_cached_factor_numbers(6 * CACHED_BODIES + 1), 0);
    int served = 0, wrong = 0;
    for (int k = 0; k < 20; k++) {
        made_random(&made, 300 + (uint64_t)k, CACHED_CONTACTS, CACHED_BODIES, 0.8, 1);
        const tb_solve_options cold = made_options("newton", 1e-10);
        made_solve(&made.problem, &cold, NULL, &start);
        memset(factor, 0, sizeof factor);
        shake(1e-7, (uint64_t)k);
        solve_from(&start, factor, 1e-8, &first);
        if (first.solution.work.linear_solves == 0) continue;
        ck_assert(factor[0] > 0 && first.solution.work.factorizations > 0);

        /* the next is solved by it, and it stays as it is */
        memcpy(kept, factor, sizeof kept);
        shake(1e-7, 100 + (uint64_t)k);
        solve_from(&first, factor, 1e-8, &second);
        if (second.solution.work.factorizations < second.solution.work.linear_solves) served++;
        if (second.solution.work.factorizations == 0)
            ck_assert(memcmp(kept, factor, sizeof kept) == 0);

        /* numbers that no solve has left are as good as none */
        memset(factor, 0, sizeof factor);
        solve_from(&first, factor, 1e-8, &second);
        for (int i = 0; i < CACHED; i++) factor[i] = i % 2 ? 1e300 : NAN;
        solve_from(&first, factor, 1e-8, &third);
        ck_assert(memcmp(second.lambda, third.lambda, bytes) == 0);

        /* and a factor of something else is found out */
        for (int i = 1; i < CACHED; i++) kept[i] = i % 5 - 2;
        solve_from(&first, kept, 1e-8, &third);
        wrong += third.solution.work.factorizations > 0;
    }
    ck_assert_msg(served >= 12 && wrong >= 12, "%d, %d", served, wrong);
}
END_TEST

/* ---- many bodies ---- */

/* A row of bodies, each in contact with the next and with the ground: as random as
 * made_random's. */
START_TEST(newton_solves_rows_of_twenty_thousand_bodies)
{
    enum { MANY = 20000, BLOCKS = 2 * MANY - 1, ROWS = 3 * BLOCKS };
    static tb_block blocks[BLOCKS];
    static tb_segment segments[2 * BLOCKS];
    static double values[36 * BLOCKS], c[ROWS], motion[6 * MANY];
    static double lambda[ROWS], xi[ROWS], whitened[6 * MANY];
    static uint8_t statuses[BLOCKS];
    tb_random random = tb_random_stream(3, 9);
    tb_problem problem = {.number_of_blocks = BLOCKS,
                          .number_of_rows = ROWS,
                          .number_of_dofs = 6 * MANY,
                          .blocks = blocks,
                          .segments = segments,
                          .values = values,
                          .c = c};
    for (int i = 0; i < 6 * MANY; i++) motion[i] = tb_random_normal(&random);
    for (int b = 0; b < BLOCKS; b++) {
        const int body = b / 2, two = b % 2;
        blocks[b] = (tb_block){.law = TB_LAW_COULOMB,
                               .row = 3 * b,
                               .rows = 3,
                               .segment = 2 * b,
                               .segments = 1 + two,
                               .width = 6 + 6 * two,
                               .value = 36 * b,
                               .mu = 0.5};
        segments[2 * b] = (tb_segment){6 * body, 6};
        segments[2 * b + 1] = (tb_segment){6 * body + 6, 6 * two};
        for (int i = 0; i < 3; i++)
            for (int j = 0; j < blocks[b].width; j++) {
                const double y = tb_random_normal(&random);
                values[36 * b + i * blocks[b].width + j] = y;
                c[3 * b + i] += y * motion[6 * body + j];
            }
    }
    const tb_solve_options options = made_options("newton", 1e-10);
    tb_solution solution = {.lambda = lambda, .xi = xi, .whitened = whitened, .statuses = statuses};
    tb_arena arena;
    tb_arena_init(&arena, 0);
    tb_warm_start warm = {.scratch = &arena};
    ck_assert(tb_solver_find("newton")(&problem, &options, &warm, &solution) == TB_OK);
    ck_assert_msg(solution.status == TB_OK, "%g", solution.residuals.natural);
    ck_assert_str_eq(solution.solver, "newton");
    ck_assert(solution.work.linear_solves > 0);
    printf("%d bodies: %d sweeps and steps, %d linear solves, %d factorizations\n", MANY,
           solution.iterations, solution.work.linear_solves, solution.work.factorizations);
    tb_arena_destroy(&arena);
}
END_TEST

TEST_MAIN(sparse_lu_solves_what_it_factored, sparse_lu_says_what_is_singular_and_what_is_too_large,
          large_graphs_are_ordered_with_little_fill, a_factor_serves_while_few_blocks_change,
          a_factor_goes_when_much_has_changed, rows_along_one_velocity_are_one_term,
          a_factor_serves_later_solves_that_are_near, rows_of_a_chain_go_together_and_change_no_bit,
          a_full_square_of_dofs_changes_no_bit, newton_solves_rows_of_twenty_thousand_bodies)
