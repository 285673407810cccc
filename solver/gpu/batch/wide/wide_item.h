/* Items of a wide world's problem in the lanes of a warp: their laws' projections and natural maps, and
 * the residual of impulses, in double. */
#ifndef TB_GPU_WIDE_ITEM_H
#define TB_GPU_WIDE_ITEM_H

#include "gpu/batch/wide/wide_data.h"
#include "solve/newton/law_slope.h"

/* Share of friction's radius from which on impulses count as on the rim. */
static const double WIDE_RIM = 0.999;
/* The least slip that is assumed of a contact on the rim, as a share of its radius. */
static const double WIDE_LEAST_SLIP = 1e-3;

/* ---- one item ---- */

/* An item's numbers in a lane; rows that it has not are zero. */
typedef struct wide_own {
    double lambda[WIDE_ROWS], x[WIDE_ROWS];
    int32_t row, rows; /* WIDE_ROWS: its law is that of spin */
    tb_real mu;
    double lower, upper;
} wide_own;

WIDE_FN wide_own wide_item_of(const wide_memory *m, int32_t item)
{
    const uint32_t columns = m->columns[item];
    const int32_t rows = wide_rows(columns);
    const tb_real bound = m->bound[item];
    return TB_VALUE(wide_own){.row = wide_row(columns),
                              .rows = rows,
                              .mu = rows > 1 ? bound : TB_R(0),
                              .lower = (double)m->lower[item],
                              .upper = (double)(rows > 1 ? TB_REAL_MAX : bound)};
}

TB_FN tb_block wide_spin_law(const wide_own *o)
{
    return TB_VALUE(tb_block){.law = TB_LAW_SPIN, .rows = WIDE_ROWS, .mu = o->mu};
}

/* The square of the natural map of a contact with spin. */
TB_CALLED double wide_natural_of_spin(const wide_own *o)
{
    const tb_block law = wide_spin_law(o);
    return tb_block_natural(&law, o->lambda, o->x);
}

WIDE_FN double wide_square_of_natural(const wide_own *o)
{
    if (o->rows == WIDE_ROWS) {
        const wide_own own = *o;
        return wide_natural_of_spin(&own);
    }
    return warp_natural_of(o->lambda, o->x, (double)o->mu, o->lower, o->upper);
}

/* The status of impulses in the item's set: open, within it, on friction's rim. Of an item of one row: at
 * its lower bound, between, at its upper one. */
WIDE_FN tb_contact_status wide_status_of(const wide_own *o, const double l[WIDE_ROWS])
{
    const double radius = WIDE_RIM * (double)o->mu * l[0], spin = 1.5 * l[3];
    if (!(l[0] > o->lower)) return TB_CONTACT_OPEN;
    if (o->rows == 1) return l[0] < o->upper ? TB_CONTACT_STICK : TB_CONTACT_SLIP;
    return l[1] * l[1] + l[2] * l[2] + spin * spin < radius * radius ? TB_CONTACT_STICK
                                                                     : TB_CONTACT_SLIP;
}

/* The nearest impulses to z of a contact with spin, in place, and the slope d, as they were if it had
 * the status (tb_law_slope_of_status). Numbers that the projection in working precision has not
 * moved keep their double. */
TB_CALLED void wide_project_spin(const wide_own *o, int32_t status, double z[WIDE_ROWS],
                                 tb_real d[WIDE_SLOPES])
{
    const tb_block law = wide_spin_law(o);
    tb_real from[WIDE_ROWS], at[WIDE_ROWS], lambda[WIDE_ROWS];
    for (int32_t r = 0; r < WIDE_ROWS; r++) {
        from[r] = TB_R(z[r]);
        lambda[r] = TB_R(o->lambda[r]);
    }
    (void)tb_law_slope_of_status(&law, status, 0, from, lambda, at, d);
    for (int32_t r = 0; r < WIDE_ROWS; r++)
        if (at[r] != from[r]) z[r] = (double)at[r];
}

/* The nearest impulses to z of an item without spin, in place. Returns the factor of the tangents,
 * and in *inverse one over their length before. */
WIDE_FN double wide_project_disk(const wide_own *o, double z[WIDE_ROWS], double *inverse)
{
    z[0] = fmin(fmax(z[0], o->lower), o->upper);
    const double radius = (double)o->mu * z[0], length2 = z[1] * z[1] + z[2] * z[2];
    *inverse = warp_inverse_root(length2);
    const double f = length2 > radius * radius ? radius * *inverse : 1;
    z[1] *= f;
    z[2] *= f;
    return f;
}

/* The same with the slope d of the projection, 3 x 3. */
WIDE_FN void wide_project_with_slope(const wide_own *o, double z[WIDE_ROWS], tb_real d[WIDE_SLOPES])
{
    const bool inside = z[0] > o->lower && z[0] < o->upper;
    double inverse;
    const double t1 = z[1], t2 = z[2], f = wide_project_disk(o, z, &inverse);
    for (int i = 1; i < 9; i++) d[i] = 0;
    d[0] = inside ? TB_R(1) : TB_R(0);
    const tb_real radius = o->mu * TB_R(z[0]);
    if (!(radius > 0)) return;
    d[4] = d[8] = TB_R(f);
    if (!(f < 1)) return;
    /* on the rim, with the iterate's own direction on the left while it lies within */
    const tb_real n1 = TB_R(t1 * inverse), n2 = TB_R(t2 * inverse), over = 1 / radius;
    tb_real a1 = TB_R(o->lambda[1]) * over, a2 = TB_R(o->lambda[2]) * over;
    const tb_real extent = a1 * a1 + a2 * a2;
    if (o->rows < 3 || !(extent <= TB_REAL_MAX)) {
        a1 = n1;
        a2 = n2;
    } else if (extent > 1) {
        const tb_real scale = tb_rsqrt(extent);
        a1 *= scale;
        a2 *= scale;
    }
    d[3] = o->mu * n1 * d[0];
    d[6] = o->mu * n2 * d[0];
    d[4] -= TB_R(f) * a1 * n1;
    d[5] = -TB_R(f) * a1 * n2;
    d[7] = -TB_R(f) * a2 * n1;
    d[8] -= TB_R(f) * a2 * n2;
}

/* The nearest impulses to z of an item without spin, and their slope, as they were if it had the
 * status, to first order: a contact that slips does so along its impulses, by `reach` (N s) of z beyond
 * them. As tb_law_slope_of_status, in double. */
WIDE_FN void wide_assume_status(const wide_own *o, int32_t status, double reach,
                                double z[WIDE_ROWS], tb_real d[WIDE_SLOPES])
{
    for (int i = 0; i < 9; i++) d[i] = 0;
    if (status == TB_CONTACT_OPEN || (o->rows == 1 && status == TB_CONTACT_SLIP)) {
        z[0] = status == TB_CONTACT_OPEN ? o->lower : o->upper;
        z[1] = z[2] = 0;
        return;
    }
    d[0] = 1;
    if (o->rows == 1) return;
    if (status == TB_CONTACT_STICK) {
        d[4] = d[8] = 1;
        return;
    }
    const double l1 = o->lambda[1], l2 = o->lambda[2], length2 = l1 * l1 + l2 * l2;
    const double radius = (double)o->mu * o->lambda[0], over = z[0] - o->lambda[0];
    if (!(radius > 0) || !(length2 > FLT_MIN)) {
        z[1] = z[2] = 0;
        return;
    }
    const double inverse = warp_inverse_root(length2), n1 = l1 * inverse, n2 = l2 * inverse;
    const double far = fmax(reach / radius, WIDE_LEAST_SLIP), f = 1 / (1 + far);
    const double e1 = z[1] - l1 * (1 + far), e2 = z[2] - l2 * (1 + far);
    const double along = n1 * e1 + n2 * e2, rim = radius + (double)o->mu * over;
    z[1] = n1 * rim + f * (e1 - n1 * along);
    z[2] = n2 * rim + f * (e2 - n2 * along);
    d[3] = o->mu * TB_R(n1);
    d[6] = o->mu * TB_R(n2);
    d[4] = TB_R(f * (1 - n1 * n1));
    d[5] = d[7] = -TB_R(f * n1 * n2);
    d[8] = TB_R(f * (1 - n2 * n2));
}

/* The nearest impulses of the item's law to z, in place. */
WIDE_FN void wide_project(const wide_own *o, double z[WIDE_ROWS])
{
    if (o->rows == WIDE_ROWS) {
        const wide_own own = *o;
        double x[WIDE_ROWS];
        tb_real d[WIDE_SLOPES];
        for (int32_t r = 0; r < WIDE_ROWS; r++) x[r] = z[r];
        wide_project_spin(&own, TB_STATUS_UNKNOWN, x, d);
        for (int32_t r = 0; r < WIDE_ROWS; r++) z[r] = x[r];
        return;
    }
    double inverse;
    (void)wide_project_disk(o, z, &inverse);
}

/* ---- judging ---- */

#ifdef TB_UNIT_PILE
/* A dof of Y' lambda, summed over some of the items of its group. */
TB_STATIC double wide_sum_dof(wide_solve *w, const double *lambda, int32_t dof, uint32_t items)
{
    const wide_memory *m = wide_memory_of(w);
    double sum = 0;
    WIDE_IS_SHARED(lambda);
    TB_ROLLED
    for (uint32_t left = m->items_of[dof / WIDE_GROUP] & items; left != 0; left &= left - 1) {
        const uint32_t columns = m->columns[lowest_bit(left)];
        const int32_t row = wide_row(columns), rows = wide_rows(columns);
        const int32_t stride = WIDE_GROUP * tb_count_bits(wide_groups(columns));
        const tb_real *y = wide_value_at(m, columns, dof);
        for (int32_t r = 0; r < 3; r++)
            if (r < rows) sum += lambda[row + r] * (double)y[r * stride];
    }
    return sum;
}

/* s = Y' lambda: a lane sums a dof, and eight lanes each of the dofs from WIDE_LANES on. */
TB_STATIC void wide_whiten(wide_solve *w, const double *lambda)
{
    static const uint32_t EIGHTH = 0x01010101;
    wide_memory *m = wide_memory_of(w);
    const int32_t lane = tb_team_lane();
    tb_team_sync(); /* all have read the last s */
    m->s[lane] = wide_sum_dof(w, lambda, lane, ~0u);
    if (w->dofs > WIDE_LANES) {
        const int32_t dof = WIDE_LANES + lane % WIDE_GROUP;
        double sum = wide_sum_dof(w, lambda, dof, EIGHTH << lane / WIDE_GROUP);
        for (int32_t step = WIDE_GROUP; step < WIDE_LANES; step *= 2)
            sum += tb_team_take_double(sum, lane ^ step);
        if (lane < WIDE_GROUP) m->s[dof] = sum;
    }
    tb_team_sync();
}
#else
/* A dof of Y' lambda, summed over every `stride`-th row from `first` on. */
TB_STATIC double wide_sum_dof(wide_solve *w, const double *lambda, int32_t dof, int32_t first,
                              int32_t stride)
{
    const wide_memory *m = wide_memory_of(w);
    double sum = 0;
    WIDE_IS_SHARED(lambda);
    if (w->common_groups != 0) { /* the numbers of all dofs of a row lie in a row */
        const int32_t width = WIDE_GROUP * tb_count_bits(w->common_groups);
        if (dof >= width) return 0;
        const tb_real *y = m->quads[0].v + dof;
        TB_UNROLLED
        for (int32_t row = 0; row < w->rows; row++, y += width) sum += lambda[row] * (double)*y;
        return sum;
    }
    TB_UNROLLED
    for (int32_t row = first; row < w->rows; row += stride)
        sum += lambda[row] * (double)wide_value(m, m->row_columns[row], dof);
    return sum;
}

/* s = Y' lambda: a lane sums a dof over all rows, and some lanes each of the dofs from WIDE_LANES on. */
TB_STATIC void wide_whiten(wide_solve *w, const double *lambda)
{
    wide_memory *m = wide_memory_of(w);
    const int32_t lane = tb_team_lane();
    tb_team_sync(); /* all have read the last s */
    m->s[lane] = wide_sum_dof(w, lambda, lane, 0, 1);
    if (w->dofs > WIDE_LANES) {
        const int32_t dof = WIDE_LANES + lane % WIDE_GROUP;
        double sum = wide_sum_dof(w, lambda, dof, lane / WIDE_GROUP, WIDE_LANES / WIDE_GROUP);
        for (int32_t step = WIDE_GROUP; step < WIDE_LANES; step *= 2)
            sum += tb_team_take_double(sum, lane ^ step);
        if (lane < WIDE_GROUP) m->s[dof] = sum;
    }
    tb_team_sync();
}
#endif

/* The velocity of a row from s, without c. */
TB_STATIC double wide_row_times_s(const wide_memory *m, uint32_t columns)
{
    const warp_quad *y = m->quads + wide_quad(columns, 0);
    double x = 0;
    TB_ROLLED
    for (uint32_t left = wide_groups(columns); left != 0; left &= left - 1, y++) {
        const double *s = m->s + WIDE_GROUP * tb_count_bits((left & (0 - left)) - 1);
        const warp_quad own = *y;
        for (int32_t i = 0; i < WIDE_GROUP; i++) x += (double)own.v[i] * s[i];
    }
    return x;
}

/* s and x, the velocities of all rows at some impulses. */
TB_CALLED void wide_find_velocities(wide_solve *w, const double *lambda)
{
    wide_memory *m = wide_memory_of(w);
    WIDE_IS_SHARED(lambda);
    wide_whiten(w, lambda);
    TB_EACH (r, w->rows)
        m->x[r] = wide_row_times_s(m, wide_columns_of_row(m, r)) + (double)m->c[r] +
                  (double)wide_compliance(m, r) * lambda[r];
    tb_team_sync();
}

WIDE_FN void wide_take_rows(const wide_own *o, const double *from, double to[WIDE_ROWS])
{
    WIDE_FULL
    for (int32_t r = 0; r < WIDE_ROWS; r++) to[r] = r < o->rows ? from[o->row + r] : 0;
}

WIDE_FN void wide_put_rows(const wide_own *o, const double from[WIDE_ROWS], double *to)
{
    WIDE_FULL
    for (int32_t r = 0; r < WIDE_ROWS; r++)
        if (r < o->rows) to[o->row + r] = from[r];
}

/* The item further along the step. */
WIDE_FN void wide_move(const wide_memory *m, tb_real length, wide_own *o)
{
    WIDE_FULL
    for (int32_t r = 0; r < WIDE_ROWS; r++) {
        if (r >= o->rows) continue;
        o->lambda[r] += (double)(length * m->step[o->row + r]);
        o->x[r] += (double)(length * m->change[o->row + r]);
    }
}

/* An impulse as a step keeps it. */
TB_FN double wide_kept(wide_solve *w, double lambda)
{
    const tb_real coarse = TB_R(lambda);
    return w->has_fine ? (double)coarse + (double)TB_R(lambda - (double)coarse) : (double)coarse;
}

TB_STATIC double wide_root_of_sum(double own)
{
    const double sum = tb_team_total(own);
    return sum <= DBL_MAX ? sqrt(sum) : DBL_MAX;
}

/* Residual of impulses whose velocities are in x, by the natural map of all items; first both go along
 * the step, by `length` of it. */
TB_CALLED double wide_residual_of(wide_solve *w, double *impulses, tb_real length)
{
    wide_memory *m = wide_memory_of(w);
    double sum = 0;
    WIDE_IS_SHARED(impulses);
    TB_EACH (item, w->items) {
        wide_own o = wide_item_of(m, item);
        wide_take_rows(&o, impulses, o.lambda);
        wide_take_rows(&o, m->x, o.x);
        if (length > 0) {
            wide_move(m, length, &o);
            wide_put_rows(&o, o.lambda, impulses);
            wide_put_rows(&o, o.x, m->x);
        }
        sum += wide_square_of_natural(&o);
    }
    tb_team_sync();
    return wide_root_of_sum(sum) * w->inverse_norm;
}

/* The residual of the iterate, brought into the laws' sets. x is the answer's then. */
TB_CALLED double wide_judge(wide_solve *w)
{
    wide_memory *m = wide_memory_of(w);
    TB_EACH (item, w->items) {
        wide_own o = wide_item_of(m, item);
        double z[WIDE_ROWS];
        wide_take_rows(&o, m->lambda, z);
        wide_take_rows(&o, m->lambda, o.lambda);
        wide_project(&o, z);
        WIDE_FULL
        for (int32_t r = 0; r < WIDE_ROWS; r++) z[r] = wide_kept(w, z[r]);
        wide_put_rows(&o, z, m->answer);
    }
    tb_team_sync();
    wide_find_velocities(w, m->answer);
    return wide_residual_of(w, m->answer, 0);
}

/* The answer as the iterate. */
TB_STATIC void wide_take_answer(wide_solve *w)
{
    TB_EACH (r, w->rows) wide_memory_of(w)->lambda[r] = wide_memory_of(w)->answer[r];
    tb_team_sync();
}

#endif
