/* Steps of many worlds of one model by the volume law on a card: what the host gives and gets, and the
 * integration of one body, which the kernels of balls (balls.h) and of solids (solids.h) share. */
#ifndef TB_VOLUME_RUN_H
#define TB_VOLUME_RUN_H

#include "penalty/card/body_law.h"

enum {
    TB_VOLUME_STAGES = 4,
    TB_VOLUME_NUMBERS = 14, /* of a body: coordinates, velocities, work of its contacts */
    TB_VOLUME_VELOCITY = 7, /* the first velocity */
    TB_VOLUME_WORK = 13,
    TB_VOLUME_FORCES = 12 /* of a body: wrench, world (6); applied forces of its dofs (6) */
};

/* An explicit Runge-Kutta method of fixed steps, or semi-implicit Euler (one stage). */
typedef struct tb_volume_method {
    bool symplectic;
    int32_t stages;
    double a[TB_VOLUME_STAGES][TB_VOLUME_STAGES], b[TB_VOLUME_STAGES];
    double dt; /* s */
} tb_volume_method;

struct tb_balls_scene;
struct tb_solids_scene;

/* Steps of many worlds. Arrays are of worlds x bodies x numbers. */
typedef struct tb_volume_run {
    const struct tb_balls_scene *balls; /* one of the two, the other is NULL */
    const struct tb_solids_scene *solids;
    int32_t bodies;
    bool fresh; /* the scene differs from that of the last run */
    tb_volume_method method;
    int32_t worlds, steps;
    double *y;            /* TB_VOLUME_NUMBERS: at the start, then at the end */
    const double *forces; /* TB_VOLUME_FORCES */
    double *point;        /* TB_VOLUME_NUMBERS: of the last evaluation, without its work */
    double *deepest;      /* 1: m, largest depth in the last evaluations of all steps */
    int32_t *contacts;    /* worlds: the most in the last evaluation of a step */
    int32_t *diverged;    /* worlds: first step, from 0, whose motion is not finite; -1: none */
    int32_t *degenerate;  /* worlds: 1 where a contact had no direction */
    double seconds;       /* on the card */
} tb_volume_run;

/* Forces on a body that are being added up. */
typedef struct tb_volume_sum {
    double wrench[6];
    double
        power; /* W, of contacts with shapes of higher numbers and with those that nothing moves */
    double deepest;
    int32_t contacts; /* of the same */
    bool degenerate;
} tb_volume_sum;

/* The numbers of one body at stage s: y, with slopes of the stages before, `apart` numbers from each other. */
TB_FN void tb_volume_point(const tb_volume_method *m, int32_t s, const double *y,
                           const double *slopes, size_t apart, double *point)
{
    for (int k = 0; k < TB_VOLUME_WORK; k++) point[k] = y[k];
    for (int32_t j = 0; j < s; j++) {
        const double weight = m->dt * m->a[s][j];
        const double *slope = slopes + (size_t)j * apart;
        if (weight != 0)
            for (int k = 0; k < TB_VOLUME_WORK; k++) point[k] += weight * slope[k];
    }
}

/* The slope of one body at a point under the forces of its contacts, `sum`, and `forces`; rotation, com: of the
 * body there. */
TB_FN void tb_volume_slope(const tb_law_body *law, const double gravity[3],
                           const tb_mat33 *rotation, tb_vec3 com, const double *point,
                           const double *forces, const tb_volume_sum *sum, double *slope)
{
    const double *velocity = point + TB_VOLUME_VELOCITY;
    for (int k = 0; k < TB_VOLUME_WORK; k++) slope[k] = 0;
    tb_law_coordinate_slopes(law, point, velocity, slope);
    tb_law_acceleration(law, gravity, rotation, com, velocity, sum->wrench, forces, forces + 6,
                        slope + TB_VOLUME_VELOCITY);
    slope[TB_VOLUME_WORK] = sum->power;
}

TB_FN bool tb_volume_finite(const double *numbers, int32_t count)
{
    bool finite = true;
    for (int32_t k = 0; k < count; k++) finite = finite && tb_abs(numbers[k]) <= TB_REAL_MAX;
    return finite;
}

/* One body's numbers after a step, from the slopes of all stages. False if they are not finite. */
TB_FN bool tb_volume_advance(const tb_volume_method *m, const tb_law_body *law, double *y,
                             const double *slopes, size_t apart)
{
    if (m->symplectic) {
        for (int k = TB_VOLUME_VELOCITY; k < TB_VOLUME_NUMBERS; k++) y[k] += m->dt * slopes[k];
        tb_law_fly(law, y, y + TB_VOLUME_VELOCITY, m->dt);
    } else {
        for (int32_t s = 0; s < m->stages; s++) {
            const double weight = m->dt * m->b[s];
            const double *slope = slopes + (size_t)s * apart;
            if (weight != 0)
                for (int k = 0; k < TB_VOLUME_NUMBERS; k++) y[k] += weight * slope[k];
        }
    }
    const bool finite = tb_volume_finite(y, TB_VOLUME_NUMBERS);
    if (tb_law_is_free(law)) tb_q_store(y + 3, tb_q_normalize(tb_q_load(y + 3)));
    return finite;
}

#endif
