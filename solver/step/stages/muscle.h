/* Muscles: force by length and velocity, and activation dynamics.
 *
 * MuJoCo's curves (documentation, "Muscles"): the active force is a peak force times a bell over
 * the normalized length times a rising curve over the normalized velocity, and pulls, so that as a
 * gain it is negative; the passive force rises beyond the optimal length. The activation follows
 * the excitation by a filter whose time constants depend on both (Millard et al. 2013, eq. 1).
 * Everything here is one muscle wide and shared by processors and cards. */
#ifndef TB_MUSCLE_H
#define TB_MUSCLE_H

#include "model/model.h"

/* A force and how it changes with the actuator's length and velocity. */
typedef struct tb_muscle_force {
    double force, by_length, by_velocity;
} tb_muscle_force;

/* Half a parabola that rises from 0 at a to 1/2 at b, or falls if b < a, and its slope. */
TB_FN double tb_muscle_ramp(double x, double a, double b, double *slope)
{
    const double width = b - a, t = (x - a) / (fabs(width) > 1e-15 ? width : 1e-15);
    *slope = t / (fabs(width) > 1e-15 ? width : 1e-15);
    return 0.5 * t * t;
}

/* Active force over the normalized length: 0 outside of (shortest, longest), 1 at 1. */
TB_FN double tb_muscle_by_length(const tb_muscle *m, double length, double *slope)
{
    const double a = 0.5 * (m->shortest + 1), b = 0.5 * (1 + m->longest);
    *slope = 0;
    if (length < m->shortest || length > m->longest) return 0;
    if (length <= a) return tb_muscle_ramp(length, m->shortest, a, slope);
    if (length >= b) return tb_muscle_ramp(length, m->longest, b, slope);
    const double fall = tb_muscle_ramp(length, 1, length <= 1 ? a : b, slope);
    *slope = -*slope;
    return 1 - fall;
}

/* Active force over the normalized velocity: 0 when it shortens as fast as it can, 1 at rest. */
TB_FN double tb_muscle_by_velocity(const tb_muscle *m, double velocity, double *slope)
{
    const double y = m->lengthening - 1;
    *slope = 0;
    if (velocity <= -1) return 0;
    if (velocity <= 0) {
        *slope = 2 * (velocity + 1);
        return (velocity + 1) * (velocity + 1);
    }
    if (velocity > y) return m->lengthening;
    const double rest = y - velocity, width = fmax(1e-15, y);
    *slope = 2 * rest / width;
    return m->lengthening - rest * rest / width;
}

/* Optimal length, m or rad, where the actuator's lengths have this range. */
TB_FN double tb_muscle_optimum(const tb_muscle *m, const double range[2])
{
    return fmax(1e-15, (range[1] - range[0]) / fmax(1e-15, m->range[1] - m->range[0]));
}

/* The gain, N per activation. */
TB_FN tb_muscle_force tb_muscle_gain(const tb_muscle *m, const double range[2], double length,
                                     double velocity)
{
    const double optimum = tb_muscle_optimum(m, range), fastest = fmax(1e-15, optimum * m->fastest);
    double length_slope, velocity_slope;
    const double by_length =
        tb_muscle_by_length(m, m->range[0] + (length - range[0]) / optimum, &length_slope);
    const double by_velocity = tb_muscle_by_velocity(m, velocity / fastest, &velocity_slope);
    tb_muscle_force f;
    f.force = -m->force * by_length * by_velocity;
    f.by_length = -m->force * length_slope / optimum * by_velocity;
    f.by_velocity = -m->force * by_length * velocity_slope / fastest;
    return f;
}

/* The passive force, N. */
TB_FN tb_muscle_force tb_muscle_bias(const tb_muscle *m, const double range[2], double length)
{
    const double optimum = tb_muscle_optimum(m, range), peak = m->force * m->passive;
    const double x = m->range[0] + (length - range[0]) / optimum;
    const double b = 0.5 * (1 + m->longest), width = fmax(1e-15, b - 1);
    tb_muscle_force f = {0, 0, 0};
    if (x <= 1) return f;
    const double t = (fmin(x, b) - 1) / width, beyond = fmax(0.0, x - b) / width;
    f.force = -peak * (0.5 * t * t + beyond);
    f.by_length = -peak * (x <= b ? t : 1) / (width * optimum);
    return f;
}

/* Quintic from 0 at t <= 0 to 1 at t >= 1, with two derivatives that vanish at both ends. */
TB_FN double tb_muscle_switch(double t)
{
    t = fmin(fmax(t, 0.0), 1.0);
    return t * t * t * (10 + t * (6 * t - 15));
}

/* Time constant of an activation that follows this control, s; times: activation, deactivation,
 * width of the switch between them (0: hard). */
TB_FN double tb_muscle_time(const double times[3], double control, double activation)
{
    const double excitation = fmin(fmax(control, 0.0), 1.0) - activation;
    const double readiness = 0.5 + 1.5 * fmin(fmax(activation, 0.0), 1.0);
    const double rise = times[0] * readiness, fall = times[1] / readiness;
    if (times[2] < 1e-15) return excitation > 0 ? rise : fall;
    return fall + (rise - fall) * tb_muscle_switch(excitation / times[2] + 0.5);
}

#endif
