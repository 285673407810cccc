/* The staggered projections of a substep at one contact, and the order of sums over contacts. grid/programs.c loops
 * over the contacts; on a card gpu/grid does. */
#ifndef TB_SOFT_NODES_PROJECTIONS_H
#define TB_SOFT_NODES_PROJECTIONS_H

#include "contact/prox.h"
#include "grid/nodes/links.h"

/* relative to the largest normal impulse: smaller ones count as none */
static const double TB_SOFT_SMALLEST_IMPULSE = 1e-12;
static const double TB_SOFT_PROGRAM_TOLERANCE = 1e-10;
/* Overlaps are pushed apart at this part of the speed of waves, times the overlap over the spacing:
 * a pressure of a tenth of what the overlap would cause as a strain over a cell. */
static const double TB_SOFT_PUSH_OF_WAVE_SPEED = 0.1;
/* Of the smallest spacing: overlaps up to it stay. Without it the surface of a body that rests on a plane
 * of nodes would change from the cells above the plane to those below and back. */
static const double TB_SOFT_OVERLAP_SLOP = 0.01;
/* the most of an overlap that one substep takes back */
static const double TB_SOFT_MOST_PUSH = 0.2;
/* Of the bodies' kinetic and elastic energy: the most that a substep adds by pushing overlaps apart */
static const double TB_SOFT_MOST_PUSHED_ENERGY = 1e-3;

/* ---- sums over contacts ---- */

/* Runs of so many contacts are added each in order, and then the runs in order. */
enum { TB_SOFT_CONTACT_RUN = 32 };

/* Begins with zeros. */
typedef struct tb_soft_run_sum {
    double run, whole;
} tb_soft_run_sum;

/* Adds the part of contact i; contacts come in order. */
TB_FN void tb_soft_run_add(tb_soft_run_sum *sum, int32_t i, double part)
{
    if (i % TB_SOFT_CONTACT_RUN == 0) {
        sum->whole += sum->run;
        sum->run = 0;
    }
    sum->run += part;
}

TB_FN double tb_soft_run_end(const tb_soft_run_sum *sum)
{
    return sum->whole + sum->run;
}

/* ---- a contact ---- */

/* 1/s: the rate at which overlaps of a body are pushed apart, by its stiffness and density. */
TB_FN double tb_soft_push_rate(double stiffness, double density, double least_spacing)
{
    return TB_SOFT_PUSH_OF_WAVE_SPEED * tb_sqrt(stiffness / density) / least_spacing;
}

/* m/s: u of (C) in grid/programs.c. rate: the lower one of both sides. */
TB_FN double tb_soft_gap_velocity(double gap, double dt, double least_spacing, double rate)
{
    if (gap >= 0) return gap / dt;
    return tb_min(gap + TB_SOFT_OVERLAP_SLOP * least_spacing, 0.0) *
           tb_min(TB_SOFT_MOST_PUSH / dt, rate);
}

/* Relative to the sum of a contact's three diagonal entries (normal and tangents): an entry below it is
 * that of a direction in which nothing can move. */
static const double TB_SOFT_IMMOVABLE = 1e-12;

/* Whether an impulse along the normal changes the normal velocity. It does not where clamps and joints hold both sides
 * in this direction; such a contact has no row in the programs. mobility: how much an impulse along normal
 * and tangents changes their own velocities, 1/kg. */
TB_FN bool tb_soft_moves(const double mobility[3])
{
    return mobility[0] > TB_SOFT_IMMOVABLE * (mobility[0] + mobility[1] + mobility[2]);
}

/* N s, on a, world axes; `normal`, `tangential`: which parts count. */
TB_FN void tb_soft_contact_impulse(const tb_soft_contact *c, bool normal, bool tangential,
                                   double impulse[3])
{
    for (int a = 0; a < 3; a++) {
        impulse[a] = normal ? c->alpha * c->normal[a] : 0;
        if (tangential) impulse[a] += c->beta[0] * c->tangent[0][a] + c->beta[1] * c->tangent[1][a];
    }
}

/* Wrench (N s, N m s, about the centre) of a contact's impulses on a rigid body: of impulses on its shape and of
 * impulses on nodes that it holds. held: 2 x 8, clamps of the corners' nodes of both sides, counted from 1, 0 where none; followed: clamps: their
 * rigid bodies, or -1; touched: the rigid body of side b, or -1. */
TB_FN void tb_soft_contact_wrench(const tb_soft_space *s, const tb_soft_contact *c,
                                  const uint8_t *held, const int32_t *followed, int32_t touched,
                                  int32_t rigid, tb_vec3 centre, double wrench[6])
{
    double impulse[3], push[3];
    for (int k = 0; k < 6; k++) wrench[k] = 0;
    tb_soft_contact_impulse(c, true, true, impulse);
    for (int side = 0; side < 2; side++)
        for (int k = 0; k < 8; k++) {
            double x[3];
            if (held[8 * side + k] == 0 || followed[held[8 * side + k] - 1] != rigid) continue;
            const int64_t node = tb_soft_corner_of(s, c->cell, k);
            const int64_t at[3] = {node % s->stride[1], node % s->stride[2] / s->stride[1],
                                   node / s->stride[2]};
            for (int a = 0; a < 3; a++) {
                x[a] = tb_soft_place(s, a, (int32_t)at[a]);
                push[a] = c->weights[side][k] * (side == 0 ? impulse[a] : -impulse[a]);
            }
            tb_soft_add_wrench(centre, x, push, wrench);
        }
    if (touched != rigid) return;
    for (int a = 0; a < 3; a++) push[a] = -impulse[a];
    tb_soft_add_wrench(centre, c->point, push, wrench);
}

/* The part of an impulse on a that acts from outside on the bodies that are free; free: no clamp holds it. */
TB_FN double tb_soft_external(bool free_a, bool free_b, double impulse)
{
    if (free_a == free_b) return 0;
    return free_a ? impulse : -impulse;
}

/* J: the most by which pushing the overlap apart raises the kinetic energy. */
TB_FN double tb_soft_pushed(double alpha, double gap_velocity)
{
    return -(alpha * tb_min(gap_velocity, 0.0));
}

/* Distance (N s) of a contact's impulse from lambda = prox(lambda - r xi) with the circular cone, r the
 * reciprocal of the diagonal entry of H in its normal direction. slip: relative velocity with all impulses. */
TB_FN double tb_soft_cone_distance(const tb_soft_contact *c, double diagonal, const double slip[3],
                                   double gap_velocity, double friction)
{
    if (!(diagonal > 0)) return 0;
    const double r = 1 / diagonal;
    double x[3] = {c->alpha - r * (slip[0] + gap_velocity), c->beta[0] - r * slip[1],
                   c->beta[1] - r * slip[2]};
    tb_prox_coulomb(x, friction);
    const double d[3] = {c->alpha - x[0], c->beta[0] - x[1], c->beta[1] - x[2]};
    return tb_sqrt(d[0] * d[0] + d[1] * d[1] + d[2] * d[2]);
}

#endif
