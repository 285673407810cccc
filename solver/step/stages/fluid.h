/* Forces of a medium on one box or ellipsoid that moves through it.
 *
 * The formulas are MuJoCo's (documentation, "Fluid forces"): for a box viscous drag as on a sphere
 * of its mean edge and quadratic drag face by face; for an ellipsoid added mass, the lifts of
 * Kutta-Joukowski and Magnus, and viscous and quadratic drag. Everything is in the frame of the box
 * or ellipsoid, about its centre, and shared by processors and cards.
 *
 * Drag also returns its slope over the velocity, as one number that bounds all directions: an
 * implicit step adds it to the mass and stays stable. */
#ifndef TB_FLUID_H
#define TB_FLUID_H

#include "model/model.h"

typedef struct tb_drag {
    tb_vec3 force, moment;         /* N, N m */
    tb_real by_linear, by_angular; /* N s/m, N m s: growth of the drag with the velocity, at most */
} tb_drag;

#define TB_PI TB_R(3.14159265358979323846)

TB_FN tb_vec3 tb_fluid_products(tb_vec3 a, tb_vec3 b)
{
    return tb_v3(a.x * b.x, a.y * b.y, a.z * b.z);
}

/* v, w: velocity against the medium, angular velocity. */
TB_FN tb_drag tb_fluid_box(const tb_model_fluid *f, tb_real density, tb_real viscosity, tb_vec3 v,
                           tb_vec3 w)
{
    const tb_real b[3] = {TB_R(f->size[0]), TB_R(f->size[1]), TB_R(f->size[2])};
    const tb_real mean = (b[0] + b[1] + b[2]) / 3;
    const tb_real linear = 3 * TB_PI * mean * viscosity;
    const tb_real angular = TB_PI * mean * mean * mean * viscosity;
    tb_real force[3], moment[3], most_linear = 0, most_angular = 0;
    for (int i = 0; i < 3; i++) {
        const tb_real y = b[(i + 1) % 3], z = b[(i + 2) % 3];
        const tb_real vi = tb_v3_at(v, i), wi = tb_v3_at(w, i);
        const tb_real fi = TB_R(0.5) * density * y * z * tb_abs(vi);
        const tb_real mi = density * b[i] * (y * y * y * y + z * z * z * z) / 64 * tb_abs(wi);
        force[i] = -(linear + fi) * vi;
        moment[i] = -(angular + mi) * wi;
        most_linear = tb_max(most_linear, 2 * fi);
        most_angular = tb_max(most_angular, 2 * mi);
    }
    tb_drag drag;
    drag.force = tb_v3(force[0], force[1], force[2]);
    drag.moment = tb_v3(moment[0], moment[1], moment[2]);
    drag.by_linear = linear + most_linear;
    drag.by_angular = angular + most_angular;
    return drag;
}

/* Force of an ellipsoid's added mass: momentum crossed with velocity. */
TB_FN void tb_fluid_added(const tb_model_fluid *f, tb_real density, tb_vec3 v, tb_vec3 w,
                          tb_drag *drag)
{
    const tb_vec3 p = tb_v3_scale(tb_fluid_products(tb_v3_load(f->added_mass), v), density);
    const tb_vec3 l = tb_v3_scale(tb_fluid_products(tb_v3_load(f->added_inertia), w), density);
    drag->force = tb_v3_add(drag->force, tb_v3_cross(p, w));
    drag->moment = tb_v3_add(drag->moment, tb_v3_add(tb_v3_cross(p, v), tb_v3_cross(l, w)));
}

/* Lifts of Magnus (a turning body) and Kutta (an inclined one), and quadratic drag along the way,
 * by the ellipsoid's projected area. */
TB_FN tb_real tb_fluid_lift(const tb_model_fluid *f, tb_real density, tb_vec3 v, tb_vec3 w,
                            tb_real largest_area, tb_drag *drag)
{
    const tb_real a = TB_R(f->size[0]), b = TB_R(f->size[1]), c = TB_R(f->size[2]);
    const tb_real blunt = TB_R(f->coefficients[0]), slender = TB_R(f->coefficients[1]);
    const tb_real kutta = TB_R(f->coefficients[3]), magnus = TB_R(f->coefficients[4]);
    const tb_real volume = 4 * TB_PI / 3 * a * b * c, least = TB_R(1e-15);
    const tb_vec3 squares = tb_v3(b * c * b * c, c * a * c * a, a * b * a * b);
    const tb_vec3 normal = tb_fluid_products(squares, v); /* of the cross-section, unscaled */
    const tb_real over = tb_v3_dot(normal, v), under = tb_v3_dot(normal, normal);
    const tb_real area = TB_PI * tb_sqrt(under / tb_max(least, over));
    const tb_real speed = tb_v3_length(v), cosine = over / tb_max(least, speed * under);
    const tb_vec3 turn = tb_v3_cross(w, v);
    drag->force = tb_v3_add_scaled(drag->force, turn, magnus * density * volume);
    const tb_vec3 circulation = tb_v3_cross(normal, v);
    drag->force =
        tb_v3_add_scaled(drag->force, tb_v3_cross(circulation, v), kutta * density * cosine * area);
    return density * speed * (area * blunt + slender * (largest_area - area));
}

TB_FN tb_drag tb_fluid_ellipsoid(const tb_model_fluid *f, tb_real density, tb_real viscosity,
                                 tb_vec3 v, tb_vec3 w)
{
    const tb_real s[3] = {TB_R(f->size[0]), TB_R(f->size[1]), TB_R(f->size[2])};
    const tb_real longest = tb_max(tb_max(s[0], s[1]), s[2]);
    const tb_real middle = s[0] + s[1] + s[2] - longest - tb_min(tb_min(s[0], s[1]), s[2]);
    const tb_real diameter = TB_R(2.0 / 3) * (s[0] + s[1] + s[2]);
    const tb_real eighth = TB_R(8.0 / 15) * TB_PI;
    const tb_real slender = TB_R(f->coefficients[1]), angular = TB_R(f->coefficients[2]);
    tb_drag drag;
    drag.force = drag.moment = tb_v3(0, 0, 0);
    tb_fluid_added(f, density, v, w, &drag);
    const tb_real lift = tb_fluid_lift(f, density, v, w, TB_PI * longest * middle, &drag);

    /* turning: each axis by the moment of area of the disk that it sweeps */
    const tb_real most = eighth * middle * longest * longest * longest * longest;
    tb_real swept[3];
    for (int i = 0; i < 3; i++) {
        const tb_real r = tb_max(s[(i + 1) % 3], s[(i + 2) % 3]);
        const tb_real own = eighth * s[i] * r * r * r * r;
        swept[i] = tb_v3_at(w, i) * (angular * own + slender * (most - own));
    }
    const tb_real quadratic = density * tb_v3_length(tb_v3(swept[0], swept[1], swept[2]));
    const tb_real linear = 3 * TB_PI * diameter * viscosity;
    const tb_real turning = TB_PI * diameter * diameter * diameter * viscosity;
    drag.force = tb_v3_add_scaled(drag.force, v, -(linear + lift));
    drag.moment = tb_v3_add_scaled(drag.moment, w, -(turning + quadratic));
    drag.by_linear = linear + 2 * tb_max(lift, 0);
    drag.by_angular = turning + 2 * tb_max(quadratic, 0);
    return drag;
}

#endif
