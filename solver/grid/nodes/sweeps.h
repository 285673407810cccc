/* Sweeps of projected Gauss-Seidel over the contacts of soft bodies: what one of
 * them does to a contact. grid/warm/sweeps.c says why there are sweeps and loops over the contacts; on a
 * card gpu/grid does. */
#ifndef TB_SOFT_NODES_SWEEPS_H
#define TB_SOFT_NODES_SWEEPS_H

#include "grid/nodes/links.h"

/* Sweeps end when SETTLED of them in a row have changed no working set. */
enum { TB_SOFT_SWEEPS = 100, TB_SOFT_SETTLED = 20 };
/* relative: a sum or difference of friction impulses this near to its bound is at it */
static const double TB_SOFT_AT_BOUND = 1e-9;

/* One entry of tb_soft_links, listed by contact. */
typedef struct tb_soft_share {
    int32_t place; /* in tb_soft_links; on a card, of half h of rigid body r: 2 r + h */
    double weight, inverse_mass;
    const double *map; /* 3 x 3 of a half of a rigid body; NULL: a node */
} tb_soft_share;

/* A contact of a sweep. */
typedef struct tb_soft_swept {
    double direction[3][3]; /* normal, tangents */
    double base[3];         /* m/s, along them: relative velocity without impulses */
    double gap_velocity;    /* m/s, u of (C) in grid/programs.c */
    double alpha, beta[2];  /* N s */
    double mobility[9];  /* 1/kg: symmetric, in normal and tangents; of its share of a rigid body */
    int32_t contact;     /* its number */
    int32_t first, last; /* its shares, last excluded */
    uint32_t active;     /* bits as in tb_soft_contact */
    int32_t rigid;       /* number of the rigid body that it moves, or -1 */
    int32_t parts;       /* that the body is split into: tb_soft_split */
} tb_soft_swept;

/* Contacts of a colour move no node in common: they may be visited at the same time. Where n of them move one
 * rigid body, each sees the body's velocity as it was before the colour, and moves a part of it, with a part of the mass (mass
 * splitting: Tonge, Benevolenski, Voroshilov, Mass splitting for jitter-free parallel rigid body simulation, 2012); the body
 * then gets all of their impulses. With n parts they never overshoot together, as
 * |x1 + ... + xn|^2 <= n (|x1|^2 + ... + |xn|^2); with n / 2 the energy still never grows, and fewer sweeps are needed. */
typedef struct tb_soft_sweeps {
    tb_soft_swept *contacts; /* by colour */
    tb_soft_share *shares;   /* by contact, then by place */
    int32_t *colours;        /* number_of_colours + 1: their first contacts */
    double *change;          /* places x 3, m/s: velocities by the impulses */
    double *seen; /* places beyond soft_places x 3: of rigid bodies, before the present colour */
    int32_t number_of_contacts, number_of_shares, number_of_colours, places, soft_places;
    double friction;
} tb_soft_sweeps;

/* Parts of a rigid body that so many contacts of a colour move. */
TB_FN int32_t tb_soft_split(int32_t contacts)
{
    return (contacts + 1) / 2;
}

/* ---- a share ---- */

/* The share's part in the relative velocity of its contact, world axes; v: velocity of its place by all impulses. */
TB_FN void tb_soft_share_velocity(const tb_soft_share *x, const double v[3], double velocity[3])
{
    for (int k = 0; k < 3; k++) {
        velocity[k] = x->weight * v[k];
        if (x->map != NULL)
            velocity[k] = x->map[k] * v[0] + x->map[3 + k] * v[1] + x->map[6 + k] * v[2];
    }
}

/* Change of the place's velocity by an impulse (N s, world axes) of the contact. */
TB_FN void tb_soft_share_change(const tb_soft_share *x, const double impulse[3], double change[3])
{
    for (int k = 0; k < 3; k++) {
        change[k] = x->inverse_mass * x->weight * impulse[k];
        if (x->map != NULL)
            change[k] =
                x->inverse_mass * (x->map[3 * k] * impulse[0] + x->map[3 * k + 1] * impulse[1] +
                                   x->map[3 * k + 2] * impulse[2]);
    }
}

/* ---- all shares of a contact ---- */

TB_FN void tb_soft_sweep_mobility(const tb_soft_sweeps *s, tb_soft_swept *c)
{
    for (int k = 0; k < 9; k++) c->mobility[k] = 0;
    for (int32_t i = c->first; i < c->last; i++) {
        const tb_soft_share *x = s->shares + i;
        const double inverse_mass = x->map != NULL ? c->parts * x->inverse_mass : x->inverse_mass;
        double row[3][3];
        for (int k = 0; k < 3; k++) tb_soft_row(x->weight, x->map, c->direction[k], row[k]);
        for (int k = 0; k < 9; k++)
            c->mobility[k] += inverse_mass * tb_soft_dot(row[k / 3], row[k % 3]);
    }
}

/* ---- one contact ---- */

/* The impulse that the contact begins with, N s, world axes. */
TB_FN void tb_soft_sweep_first(const tb_soft_swept *c, double impulse[3])
{
    for (int k = 0; k < 3; k++)
        impulse[k] = c->alpha * c->direction[0][k] + c->beta[0] * c->direction[1][k] +
                     c->beta[1] * c->direction[2][k];
}

/* Minimizes in (b1 + b2) or (b1 - b2), by the sign, between -most and most. Changes b and the relative
 * velocity u of the contact. */
TB_FN void tb_soft_sweep_slide(const double d[9], double sign, double most, double b[2],
                               double u[3])
{
    const double curvature = d[4] + 2 * sign * d[5] + d[8];
    if (!(curvature > 0)) return;
    const double old = b[0] + sign * b[1];
    const double next = tb_clamp(old - 2 * (u[1] + sign * u[2]) / curvature, -most, most);
    const double half = 0.5 * (next - old);
    b[0] += half;
    b[1] += sign * half;
    for (int k = 0; k < 3; k++) u[k] += half * (d[3 * k + 1] + sign * d[3 * k + 2]);
}

/* The constraints that an impulse meets: bit 0 the normal's, bits 1 to 4 the facets. */
TB_FN uint32_t tb_soft_sweep_active(const tb_soft_swept *c, double friction)
{
    const double most = friction * c->alpha * (1 - TB_SOFT_AT_BOUND);
    const double sum = c->beta[0] + c->beta[1], difference = c->beta[0] - c->beta[1];
    if (!(c->alpha > 0)) return 1;
    if (friction == 0) return 0;
    return (uint32_t)((sum >= most ? 2 : 0) | (sum <= -most ? 4 : 0) |
                      (difference >= most ? 8 : 0) | (difference <= -most ? 16 : 0));
}

/* Minimizes in the impulses of one contact: the normal impulse, then b1 + b2 and b1 - b2, in which the four
 * facets are bounds. world: its relative velocity by all impulses; impulse: the change, both in world axes.
 * Whether the contact's working set changes. */
TB_FN bool tb_soft_sweep_improve(tb_soft_swept *c, double friction, const double world[3],
                                 double impulse[3])
{
    const double *d = c->mobility;
    const double alpha = c->alpha, beta[2] = {c->beta[0], c->beta[1]};
    double u[3];
    for (int k = 0; k < 3; k++) u[k] = tb_soft_dot(c->direction[k], world) + c->base[k];
    c->alpha = tb_max(alpha - (u[0] + c->gap_velocity) / d[0], 0.0);
    for (int k = 0; k < 3; k++) u[k] += d[3 * k] * (c->alpha - alpha);
    const double most = friction * c->alpha;
    tb_soft_sweep_slide(d, 1, most, c->beta, u);
    tb_soft_sweep_slide(d, -1, most, c->beta, u);
    for (int k = 0; k < 3; k++)
        impulse[k] = (c->alpha - alpha) * c->direction[0][k] +
                     (c->beta[0] - beta[0]) * c->direction[1][k] +
                     (c->beta[1] - beta[1]) * c->direction[2][k];
    const uint32_t before = c->active;
    c->active = tb_soft_sweep_active(c, friction);
    return c->active != before;
}

#endif
