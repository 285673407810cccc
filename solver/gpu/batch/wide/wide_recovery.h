/* The recovery of positions (step/stages/recovery.c) of a wide world whose step has its impulses.
 *
 * The rows are in shared memory by then, and every row that recovers has a compliance E. So the rows that
 * push tell the whitened motion v by the system of a Newton step (wide_system.h) with K = 1 / E:
 *
 *     (I + Y' K Y) v = -Y' K c,
 *
 * and a row pushes where c + Y v, what E lets it lack, is negative. Where loops and limits are stiff, 1 / E
 * is a thousand times their 1 / G, which working precision bears. */
#ifndef TB_GPU_WIDE_RECOVERY_H
#define TB_GPU_WIDE_RECOVERY_H

#include "gpu/batch/wide/wide_solve.h"

/* Numbers of the rows in the place of those of the step; a row that does not recover has no compliance.
 * Returns the largest wanted motion. */
TB_STATIC tb_real wide_take_recovery(wide_solve *s, const tb_world *w, const tb_solution *solution)
{
    const int32_t equalities = tb_row_memory_layout(w->model).equalities;
    wide_memory *m = wide_memory_of(s);
    double largest = 0;
    TB_EACH (b, w->number_of_blocks) {
        const int32_t rows = w->blocks[b].rows, row = w->blocks[b].row;
        const int32_t recovering = recovering_rows(w, equalities, b);
        TB_ROLLED
        for (int32_t r = 0; r < rows; r++) {
            recovery_row own = {0, 0};
            if (r < recovering) own = make_row(w, solution, b, r);
            m->c[row + r] = own.c;
            m->compliance[row + r] = own.compliance;
            m->change[row + r] = 0;
            largest = tb_larger(largest, fabs((double)own.c));
        }
    }
    tb_team_sync();
    return TB_R(tb_team_largest(largest));
}

/* Whether an item pushes. `pushed`: it did. */
TB_FN bool wide_pushes(const wide_memory *m, int32_t item, int32_t row, bool pushed,
                       tb_real rounding)
{
    const bool is_free = m->lower[item] == -TB_REAL_MAX;
    const tb_real lack = m->c[row] + m->change[row];
    return m->compliance[row] > 0 && (is_free || (pushed ? lack <= 0 : lack < -rounding));
}

/* K and the right side of the items that push at the motion that the rows have got. Returns whether they
 * are others than before. */
TB_STATIC bool wide_put_pushes(wide_solve *s, bool is_first, tb_real rounding)
{
    wide_memory *m = wide_memory_of(s);
    bool changes = is_first;
    TB_EACH (item, s->items) {
        const int32_t row = wide_row(m->columns[item]), rows = wide_rows(m->columns[item]);
        const bool pushed = !is_first && m->active[item];
        const bool pushes = wide_pushes(m, item, row, pushed, is_first ? TB_R(0) : rounding);
        changes = changes || pushes != pushed;
        m->active[item] = pushes;
        if (!pushes) continue;
        const tb_real slope = 1 / m->compliance[row], lack = -slope * m->c[row];
        TB_ROLLED
        for (int32_t r = 1; r < rows; r++) {
            m->k[row + r] = wide_no_numbers();
            m->lack[row + r] = 0;
        }
        /* contacts with spin have their lack apart */
        m->k[row] = TB_VALUE(warp_quad){{slope, 0, 0, rows < WIDE_ROWS ? lack : TB_R(0)}};
        m->lack[row] = lack;
    }
    tb_team_sync();
    return tb_team_any(changes);
}

/* Whether a contact or a limit got next to nothing of its motion. */
TB_STATIC bool wide_lacks_motion(wide_solve *s)
{
    const wide_memory *m = wide_memory_of(s);
    bool lacks = false;
    TB_EACH (item, s->items) {
        const int32_t row = wide_row(m->columns[item]);
        const bool recovers = m->compliance[row] > 0 && m->lower[item] == 0;
        lacks = lacks || (recovers && lacks_motion(m->c[row], m->change[row]));
    }
    return tb_team_any(lacks);
}

/* Finds the set of items that push, and with it v; false: the set does not settle. */
TB_STATIC bool wide_find_pushes(wide_solve *s, tb_real rounding)
{
    TB_ROLLED
    for (int set = 0; set < RECOVERY_SETS; set++) {
        if (!wide_put_pushes(s, set == 0, rounding)) return true;
        wide_solve_system(s);
        wide_expand(s);
    }
    return !wide_put_pushes(s, false, rounding);
}

/* The motion by which positions recover; NULL: tb_world_recover is to find it, because the set of rows
 * that push does not settle, or because rows have to be named that got no motion. */
TB_CALLED tb_real *wide_recover(wide_solve *s, tb_world *w, const tb_solution *solution)
{
    const tb_arena_mark mark = tb_arena_get_mark(w->arena);
    double *whitened = TB_ARENA_ARRAY(w->arena, double, s->dofs);
    tb_real *velocity = TB_ARENA_ARRAY(w->arena, tb_real, s->dofs);
    bool found = false;
    if (whitened && velocity) {
        const tb_real largest = wide_take_recovery(s, w, solution);
        found = wide_find_pushes(s, RECOVERY_ROUNDING * largest) && !wide_lacks_motion(s);
    }
    if (!found) {
        tb_team_sync();
        tb_arena_return_to(w->arena, mark);
        return NULL;
    }
    const warp_quad *v = wide_right(wide_memory_of(s));
    TB_EACH (i, s->dofs) whitened[i] = (double)v[i / WIDE_GROUP].v[i % WIDE_GROUP];
    tb_team_sync();
    take_velocity(w, whitened, velocity);
    return velocity;
}

#endif
