/* The row of a contact in the velocities that it changes, J and T of Litven's chapter 4. The sums are in
 * grid/links.c and, on a card, in gpu/grid. */
#ifndef TB_SOFT_NODES_LINKS_H
#define TB_SOFT_NODES_LINKS_H

#include "grid/nodes/touch.h"

/* Relative to the sum of a contact's three diagonal entries (normal and tangents), added to each of
 * its entries: neighbours with almost equal constraints, and bodies that a joint or a clamp leaves few
 * ways to move, leave H definite only up to rounding. */
static const double TB_SOFT_SHIFT = 1e-10;

/* of a contact: eight nodes on each side, or eight and two halves of a rigid body */
enum { TB_SOFT_MOST_ENTRIES = 16 };

/* A rigid body in a substep (grid/partners.c). */
typedef struct tb_soft_partner {
    tb_vec3 centre;  /* of mass, m */
    double twist[6]; /* without the substep's impulses: velocity of the centre, angular velocity */
    double root[36]; /* L */
    bool moves;      /* by impulses */
} tb_soft_partner;

/* m/s, of a rigid body's point. */
TB_FN void tb_soft_partner_velocity(tb_vec3 centre, const double twist[6], const double point[3],
                                    double velocity[3])
{
    const tb_vec3 arm = tb_v3_sub(tb_v3_load(point), centre);
    tb_v3_store(velocity, tb_v3_add(tb_v3_load(twist), tb_v3_cross(tb_v3_load(twist + 3), arm)));
}

/* Adds an impulse (N s) at a point, and its moment about the centre of mass. */
TB_FN void tb_soft_add_wrench(tb_vec3 centre, const double point[3], const double push[3],
                              double wrench[6])
{
    const tb_vec3 arm = tb_v3_sub(tb_v3_load(point), centre);
    double moment[3];
    tb_v3_store(moment, tb_v3_cross(arm, tb_v3_load(push)));
    for (int a = 0; a < 3; a++) {
        wrench[a] += push[a];
        wrench[3 + a] += moment[a];
    }
}

/* The normal (0) or a tangent of a contact. */
TB_FN const double *tb_soft_direction(const tb_soft_contact *c, int which)
{
    return which == 0 ? c->normal : c->tangent[which - 1];
}

/* The rows of a contact's b side in the three components y of a half of a rigid body (grid/partners.c), whose twist
 * changes by L y: y-row = map direction. */
TB_FN void tb_soft_rigid_map(const double root[36], tb_vec3 centre, const double point[3], int half,
                             double map[9])
{
    const tb_vec3 arm = tb_v3_sub(tb_v3_load(point), centre);
    /* column a: L' (e_a, arm x e_a), components 3 half to 3 half + 2; negative: the body is side b */
    for (int a = 0; a < 3; a++) {
        const tb_vec3 axis = tb_v3(a == 0, a == 1, a == 2);
        double wrench[6];
        tb_v3_store(wrench, axis);
        tb_v3_store(wrench + 3, tb_v3_cross(arm, axis));
        for (int k = 0; k < 3; k++) {
            map[3 * k + a] = 0;
            for (int i = 0; i < 6; i++) map[3 * k + a] -= root[6 * i + 3 * half + k] * wrench[i];
        }
    }
}

/* The row of a direction in the three components of a node, with the signed weight of the contact there, or of a half
 * of a rigid body with its map. */
TB_FN void tb_soft_row(double weight, const double *map, const double direction[3], double row[3])
{
    for (int k = 0; k < 3; k++) {
        row[k] = weight * direction[k];
        if (map != NULL)
            row[k] = map[3 * k] * direction[0] + map[3 * k + 1] * direction[1] +
                     map[3 * k + 2] * direction[2];
    }
}

TB_FN double tb_soft_dot(const double a[3], const double b[3])
{
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

#endif
