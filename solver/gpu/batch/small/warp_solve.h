/* Solves a small contact problem by one warp: semismooth Newton on the velocities.
 *
 * With the whitened rows Y (one column a dof), s = Y' lambda and u = c + Y s + E lambda, a round
 * predicts the impulses of every block, lambda^ = prox(lambda - rho u), and takes the step dw of
 *
 *     (I + Y' K Y) dw = Y' (lambda^ - lambda),   K = rho prox'(lambda - rho u),
 *     lambda <- prox(lambda - rho (u + Y dw)),
 *
 * the semismooth Newton method on the augmented Lagrangian of Alart and Curnier (1991), with a weight of its own for
 * the question whether a contact is closed and sticks. The system has
 * the size of the dofs and not of the rows, so that redundant contacts cost nothing, and the proximal
 * term makes it regular. A step that does not lower the residual is taken back: rho falls, and
 * Gauss-Seidel sweeps go on before the next round. Where Newton's steps stall, impulses creep along
 * a null space of Y'; the next step is then extended to the first impulse that becomes zero.
 *
 * Lanes hold blocks in the judgement and in sweeps over few blocks, dofs in sweeps over many, and parts of rows of
 * the system in its elimination. The start is judged first: an accepted warm start costs one judgement. Residuals are
 * in double for any working precision. */
#ifndef TB_GPU_WARP_SOLVE_H
#define TB_GPU_WARP_SOLVE_H

#include "gpu/batch/small/warp_block.h"

/* Dofs of a problem at most, and how the system's matrix is dealt out: lane l holds the columns
 * WARP_PART (l % WARP_PARTS) on of the row l / WARP_PARTS. */
enum { WARP_DOFS = 10, WARP_PARTS = 3, WARP_COLUMNS = (int)WARP_PARTS * (int)WARP_PART };
enum { WARP_GROUP = 16 /* lanes that hold a column each */ };

/* One block, in shared memory: the numbers that other lanes read of it. Lanes read the same of theirs, and their
 * banks differ, because its size is odd by 16 bytes in float. */
typedef struct TB_ALIGNED(16) warp_item {
    union {
        tb_real y[3][WARP_COLUMNS]; /* whitened rows; absent rows are zero */
        warp_quad part[3][WARP_PARTS];
    };
    warp_quad k[3];   /* K of the round, row-major */
    warp_quad step;   /* lambda^ - lambda */
    warp_quad lambda; /* N s; behind it the compliance E of the first row */
    warp_quad c;      /* m/s; behind it mu, 0: no friction */
    warp_quad rate;   /* of sweeps: 1 / G of the first row, of both tangents; G between them */
    warp_quad bounds; /* of the first impulse */
} warp_item;

typedef struct TB_ALIGNED(16) warp_problem {
    double s[WARP_COLUMNS]; /* Y' lambda */
    tb_real dw[WARP_COLUMNS];
    warp_item items[1]; /* as many as fit */
} warp_problem;

/* Most items of a problem whose Delassus matrix finds room behind them, and the matrix's numbers of two items. */
enum { WARP_FEW = 12, WARP_DELASSUS = 9 };
static_assert((int)WARP_FEW * ((int)sizeof(warp_item) +
                               (int)WARP_FEW * (int)WARP_DELASSUS * (int)sizeof(tb_real)) <=
                  (int)WARP_ITEMS * (int)sizeof(warp_item),
              "the matrix lies in the memory of items");

/* Shared memory of a solve. */
enum { WARP_BYTES = sizeof(warp_problem) + (WARP_ITEMS - 1) * sizeof(warp_item) };

typedef tb_real warp_impulse; /* of the last step or the answer, N s */

/* The lane's own block, in its registers. */
typedef struct warp_own {
    tb_real lambda[3], kept[3];                /* now, and before the round */
    tb_real u[3], c[3];                        /* m/s */
    tb_real lower, upper, mu, compliance, rho; /* rho: kappa over the mean of G's diagonal */
    bool is;
} warp_own;

/* A solve in progress: its problem, residual, penalty and counts. */
typedef struct warp_solve {
    warp_problem *p;
    int32_t items;
    double inverse_norm;      /* of c */
    double residual, start;   /* of the impulses that were judged last, and first */
    tb_real kappa;            /* share of each block's rho */
    int32_t rounds, sweeps;   /* of this solve */
    int32_t burst, extension; /* sweeps of the next burst; Newton steps extended so far */
    bool by_newton;           /* a Newton step made the impulses that are judged next */
    bool has_delassus;        /* the matrix of few items has been made */
    double reference;         /* residual that the next Newton step is held against */
} warp_solve;

/* kappa: a proximal term so weak that two or three rounds suffice, and no weaker, for the sake of
 * redundant blocks. A step must lower the residual to ACCEPTED of what it was; one that lowers it to no
 * less than STALLED of it has stalled. */
static const tb_real WARP_KAPPA = TB_R(1000), WARP_LEAST_KAPPA = TB_R(1e-3);
static const double WARP_ACCEPTED = 0.9, WARP_STALLED = 0.3, WARP_FAR = 1e-3;
/* The share of kappa with which a solve begins whose start is near, with a residual of so many tolerances at
 * most: one round lowers such a residual enough. */
static const tb_real WARP_NEAR_KAPPA = TB_R(0.03);
static const double WARP_NEAR = 30;
enum { WARP_ROUNDS = 200, WARP_SWEEPS = 1024 /* of a step, until it is left to others */ };
enum { WARP_BURST = 4, WARP_LONGEST_BURST = 64, WARP_EXTENSIONS = 20 };

/* ---- numbers ---- */

TB_TEAM_FN tb_real warp_group_sum(tb_real x)
{
    for (int32_t step = WARP_GROUP / 2; step > 0; step /= 2)
        x += tb_team_take_real(x, tb_team_lane() ^ step);
    return x;
}

/* ---- one block ---- */

/* Nearest admissible impulses: the first one in its bounds, friction in the disk of the new one. */
TB_FN void warp_prox(tb_real lower, tb_real upper, tb_real mu, tb_real x[3])
{
    x[0] = tb_clamp(x[0], lower, upper);
    const tb_real radius = mu * x[0], length2 = x[1] * x[1] + x[2] * x[2];
    const tb_real inverse = tb_rsqrt(tb_max(length2, TB_REAL_MIN_NORMAL));
    const tb_real f = length2 > radius * radius ? radius * inverse : TB_R(1);
    x[1] *= f;
    x[2] *= f;
}

/* The impulses x that the block's law predicts, and their derivative times rho, row-major. x begins as kept - rho u.
 *
 * Whether a contact is closed and sticks is asked at kept - guess u. With `guess` about the impulse that stops the
 * block alone, a contact changes its state where that impulse is not admissible. At rho, a thousand times that, the
 * velocities of a start that is not near would make each contact open or slip. At a solution both say the same. */
TB_FN void warp_predict_block(const warp_own *b, tb_real normal_rho, tb_real rho, tb_real guess,
                              tb_real x[3], tb_real k[9])
{
    const bool contact = b->mu > 0;
    const tb_real y0 = contact ? b->kept[0] - guess * b->u[0] : x[0];
    const tb_real y1 = b->kept[1] - guess * b->u[1], y2 = b->kept[2] - guess * b->u[2];
    const bool inside = y0 > b->lower && y0 < b->upper;
    if (!(contact && inside)) x[0] = tb_clamp(x[0], b->lower, b->upper);
    const tb_real radius = b->mu * tb_max(x[0], 0), length2 = x[1] * x[1] + x[2] * x[2];
    const bool sticks =
        contact && inside &&
        (y1 * y1 + y2 * y2 <= b->mu * y0 * (b->mu * y0) || length2 <= radius * radius);
    const tb_real inverse = tb_rsqrt(tb_max(length2, TB_REAL_MIN_NORMAL));
    const tb_real f = sticks ? TB_R(1) : radius * inverse;
    const tb_real t1 = x[1] * inverse, t2 = x[2] * inverse;
    x[1] *= f;
    x[2] *= f;
    const tb_real kt = rho * f, along = sticks ? TB_R(0) : -kt;
    k[0] = inside ? normal_rho : TB_R(0);
    k[1] = k[2] = 0;
    const tb_real by_normal = sticks ? TB_R(0) : b->mu * k[0];
    k[3] = by_normal * t1;
    k[6] = by_normal * t2;
    k[4] = kt + along * t1 * t1;
    k[5] = k[7] = along * t1 * t2;
    k[8] = kt + along * t2 * t2;
}

/* The same of the lane's own block, which has the velocities x. */
TB_FN double warp_natural(const warp_own *b, const double x[3])
{
    const double l[3] = {(double)b->lambda[0], (double)b->lambda[1], (double)b->lambda[2]};
    return warp_natural_of(l, x, (double)b->mu, (double)b->lower, (double)b->upper);
}

/* Rows times a vector of the columns, in double. */
TB_FN double warp_row_times(const warp_item *item, int r, const double *s)
{
    double sum = 0;
    for (int q = 0; q < WARP_PARTS; q++) {
        const warp_quad y = item->part[r][q];
        for (int i = 0; i < WARP_PART; i++) sum += (double)y.v[i] * s[WARP_PART * q + i];
    }
    return sum;
}

/* ---- loading ---- */

/* Rates of sweeps and the proximal weight, from the block's part of the Delassus matrix. Returns
 * whether anything moves along the first row (contact_rows.c). */
TB_STATIC bool warp_weigh(warp_problem *p, warp_own *b)
{
    warp_item *item = &p->items[tb_team_lane()];
    tb_real g00 = 0, g01 = 0, g02 = 0, g11 = 0, g12 = 0, g22 = 0;
    for (int q = 0; q < WARP_PARTS; q++) {
        const warp_quad y0 = item->part[0][q], y1 = item->part[1][q], y2 = item->part[2][q];
        for (int i = 0; i < WARP_PART; i++) {
            const tb_real a = y0.v[i], d = y1.v[i], e = y2.v[i];
            g00 += a * a, g01 += a * d, g02 += a * e, g11 += d * d, g12 += d * e, g22 += e * e;
        }
    }
    const tb_real half = TB_R(0.5) * (g11 - g22);
    const tb_real largest = TB_R(0.5) * (g11 + g22) + tb_sqrt(half * half + g12 * g12);
    const tb_real own = g00 + b->compliance;
    const tb_real mean = b->mu > 0 ? (g00 + g11 + g22) / 3 : g00;
    item->rate.v[0] = own > 0 ? 1 / own : TB_R(0);
    item->rate.v[1] = largest > 0 ? 1 / largest : TB_R(0);
    item->rate.v[2] = g01;
    item->rate.v[3] = g02;
    b->rho = mean > 0 ? WARP_KAPPA / mean : TB_R(0);
    return g00 > UNREACHABLE_SHARE * UNREACHABLE_SHARE * (g11 + g22) &&
           g00 > UNREACHABLE_M * UNREACHABLE_M;
}

/* ---- judging ---- */

/* s = Y' lambda: a lane sums every WARP_PARTS-th block of a dof. */
TB_STATIC void warp_whiten(const warp_solve *w)
{
    warp_problem *p = w->p;
    const int32_t lane = tb_team_lane(), dof = lane / WARP_PARTS, part = lane - WARP_PARTS * dof;
    double own = 0, sum = 0;
    TB_ROLLED
    for (int32_t t = part; dof < WARP_DOFS && t < w->items; t += WARP_PARTS) {
        const warp_item *item = &p->items[t];
        for (int r = 0; r < 3; r++) own += (double)item->y[r][dof] * (double)item->lambda.v[r];
    }
    for (int32_t k = 0; k < WARP_PARTS; k++) {
        const int32_t from = dof < WARP_DOFS ? dof * WARP_PARTS + k : lane;
        sum += tb_team_take_double(own, from);
    }
    if (part == 0 && dof < WARP_DOFS) p->s[dof] = sum;
    tb_team_sync();
}

/* Residual of the impulses, and the velocities x of the lane's own block. */
TB_STATIC void warp_judge(warp_solve *w, const warp_own *b, double x[3])
{
    double own = 0;
    if (b->is) {
        const warp_item *item = &w->p->items[tb_team_lane()];
        const warp_quad c = item->c;
        for (int r = 0; r < 3; r++) x[r] = (double)c.v[r] + warp_row_times(item, r, w->p->s);
        x[0] += (double)b->compliance * (double)b->lambda[0];
        own = warp_natural(b, x);
    }
    const double sum = tb_team_total(own);
    w->residual = sum > 0 ? sum * warp_inverse_root(sum) * w->inverse_norm : sum;
}

/* ---- sweeps ---- */

/* The Delassus matrix of few items, behind these: each lane with an item makes and reads the numbers of its own rows. */
TB_STATIC void warp_put_delassus(const warp_solve *w, const warp_own *b)
{
    const int32_t n = w->items, lane = tb_team_lane();
    tb_real *matrix = (tb_real *)(void *)&w->p->items[n];
    if (!b->is) return;
    warp_quad own[3][WARP_PARTS];
    for (int r = 0; r < 3; r++)
        for (int q = 0; q < WARP_PARTS; q++) own[r][q] = w->p->items[lane].part[r][q];
    TB_ROLLED
    for (int32_t t = 0; t < n; t++) {
        for (int j = 0; j < 3; j++) {
            tb_real sum[3] = {0, 0, 0};
            for (int q = 0; q < WARP_PARTS; q++) {
                const warp_quad y = w->p->items[t].part[j][q];
                for (int i = 0; i < WARP_PART; i++)
                    for (int r = 0; r < 3; r++) sum[r] += own[r][q].v[i] * y.v[i];
            }
            for (int r = 0; r < 3; r++)
                matrix[((int32_t)WARP_DELASSUS * t + 3 * j + r) * n + lane] = sum[r];
        }
    }
    matrix[(int32_t)WARP_DELASSUS * lane * n + lane] += b->compliance;
}

/* Gauss-Seidel sweeps over few items, by their Delassus matrix: each lane keeps the velocities u of its own item.
 * x: u of the impulses that the sweeps begin with. */
TB_STATIC void warp_sweep_few(warp_solve *w, warp_own *b, const double x[3])
{
    const int32_t n = w->items, lane = b->is ? tb_team_lane() : 0;
    warp_item *item = &w->p->items[lane];
    const tb_real *matrix = (const tb_real *)(const void *)&w->p->items[n];
    const warp_quad rate = item->rate;
    tb_real u[3], l[3];
    for (int r = 0; r < 3; r++) {
        u[r] = TB_R(x[r]);
        l[r] = b->lambda[r];
    }
    if (!w->has_delassus) warp_put_delassus(w, b);
    w->has_delassus = true;
    tb_team_sync(); /* lanes without an item read the first one's numbers, and use none */
    TB_ROLLED
    for (int32_t turn = 0; turn < w->burst; turn++) {
        TB_ROLLED
        for (int32_t t = 0; t < n; t++) {
            const tb_real *of = matrix + (int32_t)WARP_DELASSUS * t * n + lane;
            tb_real next[3], change[3];
            next[0] = tb_clamp(l[0] - rate.v[0] * u[0], b->lower, b->upper);
            next[1] = l[1] - rate.v[1] * (u[1] + rate.v[2] * (next[0] - l[0]));
            next[2] = l[2] - rate.v[1] * (u[2] + rate.v[3] * (next[0] - l[0]));
            warp_prox(b->lower, b->upper, b->mu, next);
            for (int r = 0; r < 3; r++) {
                change[r] = tb_team_take_real(next[r] - l[r], t);
                if (tb_team_lane() == t) l[r] = next[r];
            }
            for (int r = 0; r < 3; r++)
                u[r] += of[r * n] * change[0] + of[(3 + r) * n] * change[1] +
                        of[(6 + r) * n] * change[2];
        }
    }
    if (b->is)
        for (int r = 0; r < 3; r++) item->lambda.v[r] = b->lambda[r] = l[r];
    tb_team_sync();
    w->sweeps += w->burst;
}

/* Gauss-Seidel sweeps over many items: a lane holds one column, both halves of the warp the same. */
TB_STATIC void warp_sweep(warp_solve *w, warp_own *b)
{
    warp_problem *p = w->p;
    const int32_t column = tb_team_lane() % WARP_GROUP;
    const bool is = column < WARP_COLUMNS;
    tb_real s = is ? TB_R(p->s[column]) : TB_R(0);
    TB_ROLLED
    for (int32_t turn = 0; turn < w->burst; turn++) TB_ROLLED
    for (int32_t t = 0; t < w->items; t++) {
        warp_item *item = &p->items[t];
        const warp_quad l = item->lambda, c = item->c, rate = item->rate, bounds = item->bounds;
        tb_real y[3], g[3], x[3];
        for (int r = 0; r < 3; r++) {
            y[r] = is ? item->y[r][column] : TB_R(0);
            g[r] = warp_group_sum(y[r] * s) + c.v[r];
        }
        tb_team_sync(); /* all have read the impulses */
        x[0] = l.v[0] - rate.v[0] * (g[0] + l.v[3] * l.v[0]);
        const tb_real change = tb_clamp(x[0], bounds.v[0], bounds.v[1]) - l.v[0];
        x[1] = l.v[1] - rate.v[1] * (g[1] + rate.v[2] * change);
        x[2] = l.v[2] - rate.v[1] * (g[2] + rate.v[3] * change);
        warp_prox(bounds.v[0], bounds.v[1], c.v[3], x);
        for (int r = 0; r < 3; r++) {
            s += y[r] * (x[r] - l.v[r]);
            if (TB_LEADER) item->lambda.v[r] = x[r];
        }
        tb_team_sync();
    }
    for (int r = 0; b->is && r < 3; r++) b->lambda[r] = p->items[tb_team_lane()].lambda.v[r];
    w->sweeps += w->burst;
}

/* ---- Newton's step ---- */

/* K and lambda^ - lambda of every block, at the kept impulses. */
TB_STATIC void warp_predict(const warp_solve *w, const warp_own *b)
{
    if (b->is) {
        warp_item *item = &w->p->items[tb_team_lane()];
        const tb_real rho = b->rho * w->kappa, normal = rho / (1 + rho * b->compliance);
        tb_real x[3], k[9];
        for (int r = 0; r < 3; r++) x[r] = b->kept[r] - (r ? rho : normal) * b->u[r];
        warp_predict_block(b, normal, rho, b->rho / WARP_KAPPA, x, k);
        for (int i = 0; i < 9; i++) item->k[i / WARP_PART].v[i % WARP_PART] = k[i];
        for (int r = 0; r < 3; r++) item->step.v[r] = x[r] - b->kept[r];
    }
    tb_team_sync();
}

/* The lane's part of I + Y' K Y and its row's Y' (lambda^ - lambda). */
TB_STATIC tb_real warp_assemble(const warp_solve *w, int32_t row, int32_t part,
                                tb_real h[WARP_PART])
{
    tb_real g = 0;
    for (int j = 0; j < WARP_PART; j++) h[j] = TB_R(row == part * WARP_PART + j);
    TB_ROLLED
    for (int32_t t = 0; t < w->items; t++) {
        const warp_item *item = &w->p->items[t];
        const warp_quad ka = item->k[0], kb = item->k[1], step = item->step;
        const warp_quad p0 = item->part[0][part], p1 = item->part[1][part],
                        p2 = item->part[2][part];
        const tb_real y0 = item->y[0][row], y1 = item->y[1][row], y2 = item->y[2][row];
        const tb_real a0 = y0 * ka.v[0] + y1 * ka.v[3] + y2 * kb.v[2];
        const tb_real a1 = y0 * ka.v[1] + y1 * kb.v[0] + y2 * kb.v[3];
        const tb_real a2 = y0 * ka.v[2] + y1 * kb.v[1] + y2 * item->k[2].v[0];
        for (int j = 0; j < WARP_PART; j++) h[j] += a0 * p0.v[j] + a1 * p1.v[j] + a2 * p2.v[j];
        g += y0 * step.v[0] + y1 * step.v[1] + y2 * step.v[2];
    }
    return g;
}

/* dw by Gauss-Jordan elimination; the diagonal holds the proximal term's one, so no pivot is looked
 * for. */
TB_STATIC void warp_eliminate(const warp_solve *w)
{
    const int32_t lane =
        tb_team_lane() < WARP_DOFS * WARP_PARTS ? tb_team_lane() : WARP_DOFS * WARP_PARTS - 1;
    const int32_t row = lane / WARP_PARTS, part = lane - WARP_PARTS * row;
    tb_real h[WARP_PART], g = warp_assemble(w, row, part, h), diagonal = 1;
    TB_ROLLED
    for (int32_t k = 0; k < WARP_DOFS; k++) {
        const int32_t holder = k / WARP_PART, at = k % WARP_PART, of_pivot = k * WARP_PARTS;
        tb_real own = h[0]; /* h[at], and h stays in registers */
        for (int j = 1; j < WARP_PART; j++) own = at == j ? h[j] : own;
        const tb_real mine = tb_team_take_real(own, row * WARP_PARTS + holder);
        const tb_real pivot = tb_team_take_real(own, of_pivot + holder);
        const tb_real factor = row == k ? TB_R(0) : mine / pivot;
        for (int j = 0; j < WARP_PART; j++)
            h[j] -= factor * tb_team_take_real(h[j], of_pivot + part);
        g -= factor * tb_team_take_real(g, of_pivot);
        if (row == k) diagonal = pivot;
    }
    if (part == 0 && tb_team_lane() == lane) w->p->dw[row] = g / diagonal;
    tb_team_sync();
}

/* New impulses from dw; extended where the last step stalled, to the first normal impulse that becomes
 * zero. */
TB_STATIC void warp_take_step(const warp_solve *w, bool extend, warp_own *b)
{
    tb_real reach = TB_R(1e30), scale = 1, step[3] = {0, 0, 0};
    warp_item *item = &w->p->items[b->is ? tb_team_lane() : 0];
    if (b->is) {
        const tb_real rho = b->rho * w->kappa, normal = rho / (1 + rho * b->compliance);
        for (int r = 0; r < 3; r++) {
            tb_real u = b->u[r];
            for (int q = 0; q < WARP_PARTS; q++) {
                const warp_quad y = item->part[r][q];
                for (int i = 0; i < WARP_PART; i++) u += y.v[i] * w->p->dw[WARP_PART * q + i];
            }
            step[r] = -(r ? rho : normal) * u;
        }
        if (b->lower == 0 && b->kept[0] > 0 && step[0] < 0) reach = b->kept[0] / -step[0];
    }
    if (extend) {
        reach = TB_R(-tb_team_largest(-(double)reach));
        if (reach < TB_R(1e6)) scale = tb_max(TB_R(1), reach * TB_R(1.001));
    }
    if (b->is) {
        for (int r = 0; r < 3; r++) b->lambda[r] = b->kept[r] + scale * step[r];
        warp_prox(b->lower, b->upper, b->mu, b->lambda);
        for (int r = 0; r < 3; r++) item->lambda.v[r] = b->lambda[r];
    }
    tb_team_sync();
}

/* ---- rounds ---- */

/* A burst of sweeps in the place of a Newton step that was no gain. */
TB_STATIC void warp_take_back(warp_solve *w, warp_own *b, double x[3])
{
    for (int r = 0; r < 3; r++) {
        b->lambda[r] = b->kept[r];
        x[r] = (double)b->u[r];
        if (b->is) w->p->items[tb_team_lane()].lambda.v[r] = b->kept[r];
    }
    tb_team_sync();
    w->kappa = tb_max(w->kappa * TB_R(0.3), WARP_LEAST_KAPPA);
    w->burst = 2 * w->burst < WARP_LONGEST_BURST ? 2 * w->burst : (int32_t)WARP_LONGEST_BURST;
    if (w->items > WARP_FEW) warp_whiten(w);
}

/* Rounds until the residual is within the tolerance; false: it was not reached. x: velocities of the
 * lane's own block. */
TB_STATIC bool warp_iterate(warp_solve *w, warp_own *b, double tolerance, double x[3])
{
    TB_ROLLED
    for (;; w->rounds++) {
        warp_whiten(w);
        warp_judge(w, b, x);
        if (w->rounds == 0) {
            w->start = w->residual;
            if (w->residual <= WARP_NEAR * tolerance) w->kappa = WARP_NEAR_KAPPA;
        }
        if (w->residual <= tolerance) return true;
        if (w->rounds == WARP_ROUNDS || w->sweeps >= WARP_SWEEPS) return false;
        const double ratio = w->by_newton ? w->residual / w->reference : 0;
        const bool stalled = w->by_newton && ratio > WARP_STALLED && ratio <= 1 &&
                             w->residual < WARP_FAR && w->extension < WARP_EXTENSIONS;
        const bool worse = w->by_newton && !stalled && !(ratio <= WARP_ACCEPTED);
        const bool sweeps = worse || (w->rounds == 0 && !(w->residual <= 1));
        if (worse) warp_take_back(w, b, x);
        if (!worse) {
            if (w->by_newton) w->kappa = tb_min(TB_R(1), w->kappa * 100);
            w->reference = stalled ? 1e30 : w->residual;
            w->extension += stalled;
        }
        w->by_newton = !sweeps;
        if (sweeps) {
            if (w->items <= WARP_FEW)
                warp_sweep_few(w, b, x);
            else
                warp_sweep(w, b);
            continue;
        }
        for (int r = 0; r < 3; r++) {
            b->kept[r] = b->lambda[r];
            b->u[r] = TB_R(x[r]);
        }
        warp_predict(w, b);
        warp_eliminate(w);
        warp_take_step(w, stalled, b);
    }
}

/* ---- the world's blocks ---- */

/* Shared memory that is free until blocks are written. */
TB_FN unsigned char *warp_free_memory(warp_problem *p, size_t *bytes)
{
    *bytes = WARP_ITEMS * sizeof(warp_item);
    return (unsigned char *)p->items;
}

TB_FN const double *warp_whitened(const warp_problem *p)
{
    return p->s;
}

TB_TEAM_FN void warp_clear_block(warp_problem *p)
{
    warp_item *item = &p->items[tb_team_lane()];
    const warp_quad none = {{0, 0, 0, 0}};
    for (int r = 0; r < 3; r++)
        for (int q = 0; q < WARP_PARTS; q++) item->part[r][q] = none;
}

/* Room for the lane's block, whose sides belong to these trees. False: there is none for all. */
TB_TEAM_FN bool warp_open_block(warp_problem *p, bool is, int32_t count,
                                const warp_tree_place trees[2], warp_rows *rows)
{
    (void)count, (void)trees;
    if (is) {
        warp_clear_block(p);
        *rows = TB_VALUE(warp_rows){p->items[tb_team_lane()].y[0], WARP_COLUMNS, {0, 0}};
    }
    return true;
}

/* Publishes the values of the lane's block that the other lanes read. */
TB_TEAM_FN void warp_share_block(warp_problem *p, const warp_own *b)
{
    warp_item *item = &p->items[tb_team_lane()];
    for (int r = 0; r < 3; r++) {
        item->lambda.v[r] = b->lambda[r];
        item->c.v[r] = b->c[r];
    }
    item->lambda.v[3] = b->compliance;
    item->c.v[3] = b->mu;
    item->bounds.v[0] = b->lower;
    item->bounds.v[1] = b->upper;
}

/* Solves for the blocks of all lanes; false: it has not come to the tolerance. x: velocities of the lane's
 * block. */
TB_STATIC bool warp_solve_blocks(warp_problem *p, int32_t items, int32_t columns, double tolerance,
                                 warp_own *b, double x[3], warp_effort *effort)
{
    double own = 0;
    (void)columns;
    for (int r = 0; r < 3; r++) own += (double)b->c[r] * (double)b->c[r];
    const double c2 = tb_team_total(own);
    warp_solve s = {.p = p,
                    .items = items,
                    .inverse_norm = c2 > WARP_LEAST_SQUARE ? warp_inverse_root(c2) : 1,
                    .kappa = 1,
                    .burst = WARP_BURST,
                    .reference = 1e30};
    if (tb_team_lane() < WARP_COLUMNS) p->s[tb_team_lane()] = p->dw[tb_team_lane()] = 0;
    tb_team_sync();
    const bool solved = warp_iterate(&s, b, tolerance, x);
    *effort = TB_VALUE(warp_effort){s.residual, s.start, s.rounds, s.sweeps};
    return solved;
}

#endif
