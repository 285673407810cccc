/* Spatial vectors: rigid-body motion, force and inertia as six-vectors about a fixed point.
 *
 * Everything of one kinematic tree is expressed in world axes about one point O of space, the
 * origin of the tree's root body at the instant of the step. A motion is (angular velocity,
 * velocity of the body point at O); a force is (moment about O, force). Featherstone, Rigid Body
 * Dynamics Algorithms, ch. 2. */
#ifndef TB_SPATIAL_H
#define TB_SPATIAL_H

#include "base/base.h"

/* A card reads and writes two numbers at once where their alignment allows it. */
#ifdef TB_DEVICE
#define TB_BY_PAIRS TB_ALIGNED(2 * sizeof(tb_real))
#else
#define TB_BY_PAIRS
#endif

typedef struct TB_BY_PAIRS tb_motion {
    tb_vec3 angular, linear;
} tb_motion;

typedef struct TB_BY_PAIRS tb_force {
    tb_vec3 moment, force;
} tb_force;

/* mass, first moment m c, and second moment about O */
typedef struct TB_BY_PAIRS tb_inertia {
    tb_real mass;
    tb_vec3 first;
    tb_real xx, yy, zz, xy, xz, yz;
} tb_inertia;

TB_FN tb_force tb_force_zero(void)
{
    return TB_VALUE(tb_force){tb_v3(0, 0, 0), tb_v3(0, 0, 0)};
}

TB_FN tb_motion tb_motion_zero(void)
{
    tb_motion m;
    m.angular = tb_v3(0, 0, 0);
    m.linear = tb_v3(0, 0, 0);
    return m;
}

/* a + s b */
TB_FN tb_motion tb_motion_add_scaled(tb_motion a, tb_motion b, tb_real s)
{
    a.angular = tb_v3_add_scaled(a.angular, b.angular, s);
    a.linear = tb_v3_add_scaled(a.linear, b.linear, s);
    return a;
}

/* velocity of the body point at r from O */
TB_FN tb_vec3 tb_motion_at(tb_motion m, tb_vec3 r)
{
    return tb_v3_add(m.linear, tb_v3_cross(m.angular, r));
}

/* v x m: rate of change of a motion m that is carried along by v */
TB_FN tb_motion tb_motion_cross(tb_motion v, tb_motion m)
{
    tb_motion r;
    r.angular = tb_v3_cross(v.angular, m.angular);
    r.linear = tb_v3_add(tb_v3_cross(v.angular, m.linear), tb_v3_cross(v.linear, m.angular));
    return r;
}

/* v x* f: rate of change of a force f that is carried along by v */
TB_FN tb_force tb_force_cross(tb_motion v, tb_force f)
{
    tb_force r;
    r.moment = tb_v3_add(tb_v3_cross(v.angular, f.moment), tb_v3_cross(v.linear, f.force));
    r.force = tb_v3_cross(v.angular, f.force);
    return r;
}

TB_FN tb_real tb_motion_dot(tb_motion m, tb_force f)
{
    return tb_v3_dot(m.angular, f.moment) + tb_v3_dot(m.linear, f.force);
}

TB_FN tb_force tb_force_add(tb_force a, tb_force b)
{
    a.moment = tb_v3_add(a.moment, b.moment);
    a.force = tb_v3_add(a.force, b.force);
    return a;
}

/* momentum of a body that moves with m, as a force-like vector */
TB_FN tb_force tb_inertia_mul(const tb_inertia *i, tb_motion m)
{
    tb_force f;
    const tb_vec3 w = m.angular;
    f.force = tb_v3_add(tb_v3_scale(m.linear, i->mass), tb_v3_cross(w, i->first));
    f.moment =
        tb_v3(i->xx * w.x + i->xy * w.y + i->xz * w.z, i->xy * w.x + i->yy * w.y + i->yz * w.z,
              i->xz * w.x + i->yz * w.y + i->zz * w.z);
    f.moment = tb_v3_add(f.moment, tb_v3_cross(i->first, m.linear));
    return f;
}

/* of a body with mass, centre of mass c from O, and inertia about c in world axes */
TB_FN tb_inertia tb_inertia_make(tb_real mass, tb_vec3 c, const tb_mat33 *about_c)
{
    tb_inertia i;
    const tb_real *m = about_c->m;
    i.mass = mass;
    i.first = tb_v3_scale(c, mass);
    i.xx = m[0] + mass * (c.y * c.y + c.z * c.z);
    i.yy = m[4] + mass * (c.x * c.x + c.z * c.z);
    i.zz = m[8] + mass * (c.x * c.x + c.y * c.y);
    i.xy = m[1] - mass * c.x * c.y;
    i.xz = m[2] - mass * c.x * c.z;
    i.yz = m[5] - mass * c.y * c.z;
    return i;
}

TB_FN void tb_inertia_add(tb_inertia *a, const tb_inertia *b)
{
    a->mass += b->mass;
    a->first = tb_v3_add(a->first, b->first);
    a->xx += b->xx, a->yy += b->yy, a->zz += b->zz;
    a->xy += b->xy, a->xz += b->xz, a->yz += b->yz;
}

/* Body-frame angular velocity after dt of torque-free rotation, by the implicit midpoint rule
 *     I (w1 - w0) = -dt wm x I wm,  wm = (w0 + w1) / 2,
 * which keeps energy and the length of the angular momentum to rounding (both are quadratic).
 * Newton from w0; where it does not contract (dt |w| of order 1) the last iterate is returned.
 * inertia, inverse: body axes, kg m^2 and its inverse. */
TB_FN_LARGE tb_vec3 tb_gyroscopic_step(const tb_mat33 *inertia, tb_vec3 w0, tb_real dt)
{
    tb_vec3 w1 = w0;
    for (int iteration = 0; iteration < 8; iteration++) {
        const tb_vec3 wm = tb_v3_scale(tb_v3_add(w0, w1), TB_R(0.5));
        const tb_vec3 momentum = tb_m33_mul_v3(inertia, wm);
        const tb_vec3 change = tb_m33_mul_v3(inertia, tb_v3_sub(w1, w0));
        const tb_vec3 f = tb_v3_add_scaled(change, tb_v3_cross(wm, momentum), dt);

        /* J = I + dt/2 (skew(wm) I - skew(I wm)) */
        tb_mat33 j;
        const tb_real h = dt * TB_R(0.5);
        for (int k = 0; k < 3; k++) {
            const tb_vec3 column = tb_m33_column(inertia, k);
            const tb_vec3 e = tb_v3(TB_R(k == 0), TB_R(k == 1), TB_R(k == 2));
            tb_vec3 c = tb_v3_cross(wm, column);
            c = tb_v3_sub(c, tb_v3_cross(momentum, e));
            c = tb_v3_add_scaled(column, c, h);
            j.m[k] = c.x, j.m[3 + k] = c.y, j.m[6 + k] = c.z;
        }
        tb_mat33 inverse;
        if (tb_m33_inverse(&j, &inverse) == 0) return w1;
        const tb_vec3 correction = tb_m33_mul_v3(&inverse, f);
        w1 = tb_v3_sub(w1, correction);
        if (tb_v3_length2(correction) <= tb_v3_length2(w1) * TB_REAL_EPSILON * TB_REAL_EPSILON * 4)
            break;
    }
    return w1;
}

#endif
