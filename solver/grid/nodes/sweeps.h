/* Sweeps of projected Gauss-Seidel over the contacts of soft bodies: what one of
 * them does to a contact. grid/warm/sweeps.c says why there are sweeps and loops over the contacts; on a
 * card gpu/grid does. */
#ifndef TB_SOFT_NODES_SWEEPS_H
#define TB_SOFT_NODES_SWEEPS_H

#include "grid/nodes/links.h"

/* Sweeps end when SETTLED of them in a row have changed no working set. */
enum { TB_SOFT_SWEEPS = 100, TB_SOFT_SETTLED = 20 };
/* The most contacts, and rigid bodies of their world, for which sweeps visit the contacts of a rigid body in groups, and the size of
 * a group: a block of a card has memory for so many. */
enum { TB_SOFT_FEW_CONTACTS = 160, TB_SOFT_FEW_RIGID = 128, TB_SOFT_GROUP = 4 };
/* components of y of a rigid body */
enum { TB_SOFT_TWIST = 6 };
/* relative: a sum or difference of friction impulses this near to its bound is at it */
static const double TB_SOFT_AT_BOUND = 1e-9;

/* A node whose velocity a contact changes, listed by contact. */
typedef struct tb_soft_share {
    double weight, inverse_mass; /* as of tb_soft_entry */
    int32_t place;               /* of the node among those of all contacts */
} tb_soft_share;

/* A contact of a sweep. u is its relative velocity along the normal and the tangents. */
typedef struct tb_soft_swept {
    double direction[3][3];             /* normal, tangents */
    double base[3];                     /* m/s: u without impulses */
    double gap_velocity;                /* m/s, u of (C) in grid/programs.c */
    double alpha, beta[2];              /* N s */
    double rigid_row[3][TB_SOFT_TWIST]; /* change of u by y of the rigid body */
    double across[2]; /* 1/kg: change of u along the tangents by the normal impulse */
    double along[2];  /* 1/kg: and by equal impulses along both tangents */
    double inverse
        [3]; /* kg: impulse along the normal for a change of u there; twice that of equal impulses along both
                         * tangents and of opposite ones for the sum and for the difference of u there */
    int32_t contact;     /* its number */
    int32_t first, last; /* its shares, last excluded */
    uint32_t active;     /* bits as in tb_soft_contact */
    int32_t rigid;       /* number of the rigid body that it moves, or -1 */
    int32_t rank;        /* among the contacts of its colour that move the body */
    int32_t parts;       /* that the body is split into */
} tb_soft_swept;

/* Contacts of a colour move no node in common: they may be visited at the same time. Those of them that move one
 * rigid body are visited in groups. Each contact of a group sees the body's
 * velocity as it was before the group, and moves a part of it, with a part of the mass (mass
 * splitting: Tonge, Benevolenski, Voroshilov, Mass splitting for jitter-free parallel rigid body simulation, 2012); the body
 * then gets all of their impulses. With n parts they never overshoot together, as
 * |x1 + ... + xn|^2 <= n (|x1|^2 + ... + |xn|^2); with n / 2 the energy still never grows, and fewer sweeps are needed. Few
 * contacts have small groups, with which sweeps find the sets of light bodies as soon as contact by contact. A group of many
 * contacts is a whole colour. */
typedef struct tb_soft_sweeps {
    tb_soft_swept *contacts; /* by colour */
    tb_soft_share *shares;   /* by contact, then by place */
    int32_t *colours;        /* number_of_colours + 1: their first contacts */
    double *change;          /* places x 3, m/s: velocities of nodes by the impulses */
    int32_t number_of_contacts, number_of_shares, number_of_colours, places;
    double friction;
} tb_soft_sweeps;

/* Whether a world's contacts are few. */
TB_FN bool tb_soft_sweeps_are_few(int32_t contacts, int32_t rigid_bodies)
{
    return contacts <= TB_SOFT_FEW_CONTACTS && rigid_bodies <= TB_SOFT_FEW_RIGID;
}

/* Parts of a rigid body for a contact of a colour; all: contacts of the colour that move the body. */
TB_FN int32_t tb_soft_parts(int32_t rank, int32_t all, bool few)
{
    const int32_t before = few ? rank / TB_SOFT_GROUP * TB_SOFT_GROUP : 0, rest = all - before;
    return ((few && rest > TB_SOFT_GROUP ? TB_SOFT_GROUP : rest) + 1) / 2;
}

/* Whether the contact is the last of a group of few contacts. */
TB_FN bool tb_soft_ends_group(const tb_soft_swept *c)
{
    return c->rank % TB_SOFT_GROUP == TB_SOFT_GROUP - 1;
}

/* Change of a component of the node's velocity by the same of an impulse (N s) of the contact. */
TB_FN double tb_soft_share_change(const tb_soft_share *x, double impulse)
{
    return x->inverse_mass * x->weight * impulse;
}

/* ---- rows of a contact ---- */

/* The row of half of a rigid body. */
TB_FN void tb_soft_sweep_half(tb_soft_swept *c, int half, const double map[9])
{
    for (int k = 0; k < 3; k++) tb_soft_row(1, map, c->direction[k], c->rigid_row[k] + 3 * half);
}

/* The numbers that a visit to the contact needs, from its shares and its rigid body's rows, if there is one. */
TB_FN void tb_soft_sweep_prepare(const tb_soft_share *shares, tb_soft_swept *c)
{
    double mobility[9] = {0, 0, 0, 0, 0, 0, 0, 0, 0}; /* 1/kg: symmetric, in normal and tangents */
    for (int32_t i = c->first; i < c->last; i++) {
        double row[3][3];
        for (int k = 0; k < 3; k++) tb_soft_row(shares[i].weight, NULL, c->direction[k], row[k]);
        for (int k = 0; k < 9; k++)
            mobility[k] += shares[i].inverse_mass * tb_soft_dot(row[k / 3], row[k % 3]);
    }
    for (int half = 0; half < 2 && c->rigid >= 0; half++)
        for (int k = 0; k < 9; k++)
            mobility[k] += c->parts * tb_soft_dot(c->rigid_row[k / 3] + 3 * half,
                                                  c->rigid_row[k % 3] + 3 * half);
    for (int k = 0; k < 2; k++) {
        c->across[k] = mobility[3 * (k + 1)];
        c->along[k] = mobility[3 * (k + 1) + 1] + mobility[3 * (k + 1) + 2];
    }
    c->inverse[0] = 1 / mobility[0];
    for (int k = 0; k < 2; k++) {
        const double sign = k == 0 ? 1 : -1;
        const double curvature = mobility[4] + 2 * sign * mobility[5] + mobility[8];
        c->inverse[1 + k] = curvature > 0 ? 2 / curvature : 0;
    }
}

/* u by velocities of nodes alone; velocity: the sum over the contact's shares, weight times velocity by the impulses, in
 * world axes. */
TB_FN double tb_soft_sweep_slip(const tb_soft_swept *c, int which, const double velocity[3])
{
    return tb_soft_dot(c->direction[which], velocity) + c->base[which];
}

/* The part of the rigid body in u; row: of the direction. */
TB_FN double tb_soft_sweep_carried(const double row[TB_SOFT_TWIST], const double y[TB_SOFT_TWIST])
{
    return tb_soft_dot(row, y) + tb_soft_dot(row + 3, y + 3);
}

/* Component k of the change of y by a change of the contact's impulses. */
TB_FN double tb_soft_sweep_turn(const tb_soft_swept *c, int k, const double change[3])
{
    return c->rigid_row[0][k] * change[0] + c->rigid_row[1][k] * change[1] +
           c->rigid_row[2][k] * change[2];
}

/* Component k of an impulse in world axes, by its components along the normal and the tangents. */
TB_FN double tb_soft_sweep_impulse(const tb_soft_swept *c, int k, const double change[3])
{
    return change[0] * c->direction[0][k] + change[1] * c->direction[1][k] +
           change[2] * c->direction[2][k];
}

/* ---- one contact ---- */

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
 * facets are bounds. u: by all impulses; change: of the impulses along the normal and the tangents.
 * Whether the contact's working set changes. */
TB_FN bool tb_soft_sweep_improve(tb_soft_swept *c, double friction, const double u[3],
                                 double change[3])
{
    const double alpha = c->alpha, b1 = c->beta[0], b2 = c->beta[1];
    c->alpha = tb_max(alpha - (u[0] + c->gap_velocity) * c->inverse[0], 0.0);
    change[0] = c->alpha - alpha;
    const double most = friction * c->alpha;
    double u1 = u[1] + c->across[0] * change[0], u2 = u[2] + c->across[1] * change[0];
    const double sum = b1 + b2;
    const double half = 0.5 * (tb_clamp(sum - (u1 + u2) * c->inverse[1], -most, most) - sum);
    u1 += half * c->along[0];
    u2 += half * c->along[1];
    const double s1 = b1 + half, s2 = b2 + half, difference = s1 - s2;
    const double turn =
        0.5 * (tb_clamp(difference - (u1 - u2) * c->inverse[2], -most, most) - difference);
    c->beta[0] = s1 + turn;
    c->beta[1] = s2 - turn;
    change[1] = c->beta[0] - b1;
    change[2] = c->beta[1] - b2;
    const uint32_t before = c->active;
    c->active = tb_soft_sweep_active(c, friction);
    return c->active != before;
}

#endif
