/* Transport of X and v by v (Litven, section 4.1), and the repair of momentum.
 *
 * The advection of v is not conservative, and masses are measured anew from X. Both errors are those of
 * the discretization. Their sum over the body is taken back as one rigid velocity, so that linear and
 * angular momentum of a body change by impulses alone. */
#include <string.h>

#include "grid/grid_internal.h"

typedef struct stage {
    double dt;
    int number; /* 0: the only one or the first of two; 1: the second */
} stage;

static void advect_plane(tb_soft_world *w, int32_t body, int32_t k, tb_soft_sums *sums,
                         void *context)
{
    const stage *s = context;
    const tb_soft_field *f = w->fields + body;
    const double *h = w->scene.lattice.spacing;
    const tb_soft_advection order = w->scene.options.advection;
    const int64_t stride[3] = {3 * w->stride[0], 3 * w->stride[1], 3 * w->stride[2]};
    (void)sums;
    TB_SOFT_EACH_NODE (w, f, k, n, i, j) {
        const size_t at = 3 * (size_t)n;
        if (f->layer[n] != 0) continue;
        /* the velocity that carries is that of the substep in both stages */
        const double *carrier = s->number == 0 ? f->v + at : w->rate_v + at;
        double rate[2][3];
        for (size_t c = 0; c < 3; c++) {
            rate[0][c] = tb_soft_advection_rate(f->X + at + c, stride, carrier, h, order);
            rate[1][c] = tb_soft_advection_rate(f->v + at + c, stride, carrier, h, order);
        }
        for (size_t c = 0; c < 3; c++) {
            w->next_X[at + c] = f->X[at + c] - s->dt * rate[0][c];
            w->next_v[at + c] = f->v[at + c] - s->dt * rate[1][c];
        }
    }
}

/* Takes over a stage's result; after the second one, the mean of it and the start. */
static void adopt_plane(tb_soft_world *w, int32_t body, int32_t k, tb_soft_sums *sums,
                        void *context)
{
    const stage *s = context;
    tb_soft_field *f = w->fields + body;
    (void)sums;
    TB_SOFT_EACH_NODE (w, f, k, n, i, j) {
        if (f->layer[n] != 0) continue;
        for (size_t at = 3 * (size_t)n; at < 3 * (size_t)n + 3; at++) {
            if (s->number == 0) {
                w->rate_X[at] = f->X[at];
                w->rate_v[at] = f->v[at];
                f->X[at] = w->next_X[at];
                f->v[at] = w->next_v[at];
            } else {
                f->X[at] = 0.5 * (w->rate_X[at] + w->next_X[at]);
                f->v[at] = 0.5 * (w->rate_v[at] + w->next_v[at]);
            }
        }
        if (f->held == NULL || f->held[n] == 0) continue;
        const double x[3] = {tb_soft_coordinate(w, 0, i), tb_soft_coordinate(w, 1, j),
                             tb_soft_coordinate(w, 2, k)};
        tb_soft_clamp_velocity(w, f->held[n] - 1, x, f->v + 3 * (size_t)n);
    }
}

typedef struct rigid_velocity {
    double centre[3], linear[3], angular[3];
} rigid_velocity;

static void repair_plane(tb_soft_world *w, int32_t body, int32_t k, tb_soft_sums *sums,
                         void *context)
{
    const rigid_velocity *r = context;
    tb_soft_field *f = w->fields + body;
    (void)sums;
    TB_SOFT_EACH_NODE (w, f, k, n, i, j) {
        double *v = f->v + 3 * (size_t)n;
        if (f->layer[n] != 0) continue;
        const double d[3] = {tb_soft_coordinate(w, 0, i) - r->centre[0],
                             tb_soft_coordinate(w, 1, j) - r->centre[1],
                             tb_soft_coordinate(w, 2, k) - r->centre[2]};
        for (int a = 0; a < 3; a++) {
            const int b = (a + 1) % 3, c = (a + 2) % 3;
            v[a] += r->linear[a] + r->angular[b] * d[c] - r->angular[c] * d[b];
        }
    }
}

/* The rigid velocity that restores a body's momentum, from `now` to its earlier value. */
static rigid_velocity repair_of(const tb_soft_sums *was, const tb_soft_sums *now)
{
    rigid_velocity r;
    double error[3], turn[3];
    for (int a = 0; a < 3; a++) {
        r.centre[a] = now->moment[a] / now->mass;
        error[a] = was->momentum[a] - now->momentum[a];
        r.linear[a] = error[a] / now->mass;
    }
    tb_mat33 inertia = tb_m33_symmetric(now->inertia), inverse;
    const double *c = r.centre, square = c[0] * c[0] + c[1] * c[1] + c[2] * c[2];
    for (int a = 0; a < 3; a++) {
        const int b = (a + 1) % 3, d = (a + 2) % 3;
        turn[a] = was->angular[a] - now->angular[a] - (c[b] * error[d] - c[d] * error[b]);
        for (int e = 0; e < 3; e++)
            inertia.m[3 * a + e] -= now->mass * ((a == e ? square : 0) - c[a] * c[e]);
    }
    memset(r.angular, 0, sizeof r.angular);
    if (tb_m33_inverse(&inertia, &inverse) > 0)
        tb_v3_store(r.angular, tb_m33_mul_v3(&inverse, tb_v3_load(turn)));
    return r;
}

void tb_soft_transport(tb_soft_world *w, int32_t body, double dt, tb_soft_certificate *c)
{
    tb_soft_field *f = w->fields + body;
    double mass_error;
    const tb_soft_sums was = tb_soft_momentum_pass(w, body);
    const int stages = w->scene.options.advection == TB_SOFT_SECOND_ORDER ? 2 : 1;
    for (stage s = {dt, 0}; s.number < stages; s.number++) {
        tb_soft_extrapolate(w, body, f->v);
        if (s.number > 0) tb_soft_extrapolate(w, body, f->X);
        tb_soft_planes(w, body, advect_plane, &s);
        tb_soft_planes(w, body, adopt_plane, &s);
    }
    tb_soft_extrapolate(w, body, f->X);
    tb_soft_extrapolate(w, body, f->v);
    tb_soft_measure_masses(w, body, &mass_error);
    c->mass_error = tb_max(c->mass_error, mass_error);
    if (f->held == NULL) {
        const tb_soft_sums now = tb_soft_momentum_pass(w, body);
        rigid_velocity r = repair_of(&was, &now);
        tb_soft_planes(w, body, repair_plane, &r);
        c->transport_repair = tb_max(c->transport_repair, tb_v3_length(tb_v3_load(r.linear)));
    }
    tb_soft_extrapolate(w, body, f->v);
}
