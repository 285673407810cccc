/* One r for all rows from the spectrum of G: r = 2 / (smallest + largest eigenvalue) is the best
 * step of the Richardson iteration for a symmetric G (Poulsen 3.7).
 *
 * The largest comes from the power method on G; the smallest from the power method on (largest 1 -
 * G), which finds largest - smallest. Redundant contacts make the smallest 0, and then r = 2 /
 * largest is at the limit of stability: the iteration detects divergence and halves omega. */
#include "solve/sweep/sweep_internal.h"

enum { POWER_STEPS = 40 };

TB_CALLED double normalise(tb_real *x, int32_t n)
{
    double length = 0;
    for (int32_t i = 0; i < n; i++) length += (double)x[i] * (double)x[i];
    length = sqrt(length);
    tb_team_sync();
    if (length > 0)
        TB_EACH (i, n) x[i] = TB_R((double)x[i] / length);
    tb_team_sync();
    return length;
}

TB_EXTERN tb_status tb_spectrum_r(const tb_problem *problem, tb_arena *scratch, double *r)
{
    const tb_arena_mark mark = tb_arena_get_mark(scratch);
    const int32_t n = problem->number_of_rows;
    tb_real *x = TB_ARENA_ARRAY(scratch, tb_real, n), *y = TB_ARENA_ARRAY(scratch, tb_real, n);
    tb_real *zero = TB_ARENA_ZEROED(scratch, tb_real, n);
    tb_real *s = TB_ARENA_ARRAY(scratch, tb_real, problem->number_of_dofs);
    if (!x || !y || !zero || !s) {
        tb_arena_return_to(scratch, mark);
        return TB_RESOURCE_EXHAUSTED;
    }
    tb_problem linear = *problem;
    linear.c = zero;

    double shift = 0, found[2] = {0, 0};
    for (int pass = 0; pass < 2; pass++) {
        /* a start that no symmetry of the problem makes orthogonal to the wanted vector */
        tb_random random = tb_random_stream(20110801, (uint64_t)pass);
        for (int32_t i = 0; i < n; i++) {
            const tb_real value = TB_R(tb_random_between(&random, 0.5, 1.5));
            if (TB_LEADER) x[i] = value;
        }
        tb_team_sync();
        normalise(x, n);
        for (int k = 0; k < POWER_STEPS; k++) {
            tb_problem_apply(&linear, x, s, y);
            TB_EACH (i, n) x[i] = pass == 0 ? y[i] : TB_R(shift) * x[i] - y[i];
            tb_team_sync();
            found[pass] = normalise(x, n);
        }
        shift = found[0];
    }
    const double largest = found[0], smallest = fmax(largest - found[1], 0.0);
    *r = largest > 0 && largest <= (double)TB_REAL_MAX ? 2 / (smallest + largest) : 1;
    tb_arena_return_to(scratch, mark);
    return TB_OK;
}
