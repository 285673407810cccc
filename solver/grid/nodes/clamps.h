/* One node that a clamp holds: its reference coordinate and velocity, and the impulse that holding takes. The
 * loops are in grid/clamps.c and, on a card, in gpu/grid. */
#ifndef TB_SOFT_NODES_CLAMPS_H
#define TB_SOFT_NODES_CLAMPS_H

#include "grid/nodes/space.h"

/* The frame of a clamp in a substep. */
typedef struct tb_soft_frame {
    bool moves;         /* else the nodes that are held at the start stay held */
    bool is_body;       /* a rigid body's frame; else it has a constant velocity */
    double velocity[3]; /* m/s */
    double time;        /* s */
    /* of a rigid body: pose in the reference configuration and now, centre of mass, velocity of that
     * centre and angular velocity */
    tb_pose start, now;
    tb_vec3 centre;
    double twist[6];
} tb_soft_frame;

/* Where the material at x was at the start. */
TB_FN void tb_soft_frame_reference(const tb_soft_frame *f, const double x[3], double X[3])
{
    if (f->is_body)
        tb_v3_store(X, tb_pose_point(&f->start, tb_pose_inverse_point(&f->now, tb_v3_load(x))));
    else
        for (int a = 0; a < 3; a++) X[a] = x[a] - f->time * f->velocity[a];
}

TB_FN void tb_soft_frame_velocity(const tb_soft_frame *f, const double x[3], double v[3])
{
    for (int a = 0; a < 3; a++) v[a] = f->velocity[a];
    if (!f->is_body) return;
    const tb_vec3 arm = tb_v3_sub(tb_v3_load(x), f->centre);
    tb_v3_store(v, tb_v3_add(tb_v3_load(f->twist), tb_v3_cross(tb_v3_load(f->twist + 3), arm)));
}

/* Whether a box at the start, with some slack, holds a reference coordinate. */
TB_FN bool tb_soft_box_holds(const tb_soft_space *s, const double lower[3], const double upper[3],
                             const double X[3])
{
    for (int a = 0; a < 3; a++) {
        const double slack = 1e-9 * s->lattice.spacing[a];
        if (!(X[a] >= lower[a] - slack && X[a] <= upper[a] + slack)) return false;
    }
    return true;
}

/* The impulse (momentum, N s) that a node of clamp `number`, counted from 1, gives the clamp's rigid body when
 * it gets the velocity of the frame, and the impulse's moment about the centre of mass (angular, N m s).
 * False: the clamp does not hold the node. */
TB_FN bool tb_soft_held_impulse(const tb_soft_space *s, const tb_soft_field *f,
                                const tb_soft_frame *frame, int32_t number, const int32_t at[3],
                                int32_t n, tb_soft_sums *sums)
{
    double x[3], v[3];
    if (f->held == NULL || f->held[n] != number || f->layer[n] != 0) return false;
    tb_soft_place_of(s, at, x);
    tb_soft_frame_velocity(frame, x, v);
    for (int a = 0; a < 3; a++) sums->momentum[a] = f->mass[n] * (f->v[3 * (int64_t)n + a] - v[a]);
    const tb_vec3 arm = tb_v3_sub(tb_v3_load(x), frame->centre);
    tb_v3_store(sums->angular, tb_v3_cross(arm, tb_v3_load(sums->momentum)));
    return true;
}

#endif
