/* Worlds of balls by the volume law on a card: the data of a run, and each part of an evaluation as one
 * function an element, for the backend's kernels.
 *
 * A body has at most one ball; balls and planes that no dof moves are there too. All worlds of a run have
 * one model. A ball finds its partners in a hash table of cubes at least as wide as the largest ball, and adds
 * their forces in the order of the shapes, as the processor does, so that the sums do not depend on
 * the order in which lanes come to the table. */
#ifndef TB_BALLS_H
#define TB_BALLS_H

#include "penalty/card/ball_law.h"

enum {
    TB_BALLS_STAGES = 4,
    TB_BALLS_NUMBERS = 14, /* of a body: seven coordinates, six velocities, work of its contacts */
    TB_BALLS_WORK = 13,
    TB_BALLS_FORCES = 12, /* of a body: wrench, world (6); applied forces of its dofs (6) */
    TB_BALLS_SEEN =
        12, /* of a ball: its centre; velocity, angular velocity, centre of mass of its body */
    TB_BALLS_PARTNERS = 24
};

/* A shape that collides. */
typedef struct tb_ball {
    int32_t body; /* -1: no dof moves it */
    uint32_t category, mask;
    double radius;      /* m; 0: a plane */
    double position[3]; /* m, of the body's frame; without a body of the world */
    double normal[3];   /* of a plane */
    tb_volume_constants constants;
} tb_ball;

typedef struct tb_balls_body {
    tb_law_body law;
    int32_t ball; /* -1: none */
} tb_balls_body;

/* One model. */
typedef struct tb_balls_scene {
    int32_t shapes, bodies, planes; /* entries of balls, of bodies, of plane */
    tb_ball *balls;
    tb_balls_body *free_bodies;
    int32_t *plane; /* numbers of the planes among the shapes, ascending */
    double gravity[3];
    double cubes_per_metre;
} tb_balls_scene;

/* An explicit Runge-Kutta method of fixed steps, or semi-implicit Euler (one stage). */
typedef struct tb_balls_method {
    bool symplectic;
    int32_t stages;
    double a[TB_BALLS_STAGES][TB_BALLS_STAGES], b[TB_BALLS_STAGES];
    double dt; /* s */
} tb_balls_method;

/* Steps of many worlds. Arrays are of worlds x bodies x numbers. */
typedef struct tb_balls_run {
    const tb_balls_scene *scene;
    bool fresh; /* the scene differs from that of the last run */
    tb_balls_method method;
    int32_t worlds, steps;
    double *y;            /* TB_BALLS_NUMBERS: at the start, then at the end */
    const double *forces; /* TB_BALLS_FORCES */
    double *point;        /* TB_BALLS_NUMBERS: of the last evaluation, without its work */
    double *deepest;      /* 1: m, largest depth in the last evaluations of all steps */
    int32_t *contacts;    /* worlds: the most in the last evaluation of a step */
    int32_t *diverged;    /* worlds: first step, from 0, whose motion is not finite; -1: none */
    int32_t *degenerate;  /* worlds: 1 where a contact had no direction */
    double seconds;       /* on the card */
} tb_balls_run;

/* ---- a point of an integration ---- */

/* The numbers of one body at stage s: y, with slopes of the stages before, `apart` numbers from each other. */
TB_FN void tb_balls_point(const tb_balls_method *m, int32_t s, const double *y,
                          const double *slopes, size_t apart, double *point)
{
    for (int k = 0; k < TB_BALLS_WORK; k++) point[k] = y[k];
    for (int32_t j = 0; j < s; j++) {
        const double weight = m->dt * m->a[s][j];
        const double *slope = slopes + (size_t)j * apart;
        if (weight != 0)
            for (int k = 0; k < TB_BALLS_WORK; k++) point[k] += weight * slope[k];
    }
}

TB_FN tb_mat33 tb_balls_rotation(const double *point)
{
    return tb_q_matrix(tb_q_normalize(tb_q_load(point + 3)));
}

/* A body's ball at a point, as its partners see it. */
TB_FN void tb_balls_show(const tb_ball *ball, const double *point, double *seen)
{
    tb_pose pose;
    pose.position = tb_v3_load(point);
    pose.rotation = tb_balls_rotation(point);
    tb_v3_store(seen, tb_pose_point(&pose, tb_v3_load(ball->position)));
    for (int k = 0; k < 3; k++) seen[3 + k] = point[7 + k];
    tb_v3_store(seen + 6, tb_m33_mul_v3(&pose.rotation, tb_v3_load(point + 10)));
    tb_v3_store(seen + 9, pose.position);
}

TB_FN void tb_balls_show_fixed(const tb_ball *ball, double *seen)
{
    for (int k = 0; k < TB_BALLS_SEEN; k++) seen[k] = k < 3 ? ball->position[k] : 0;
}

/* ---- cubes ---- */

TB_FN int32_t tb_balls_cube(double x, double cubes_per_metre)
{
    const double most = 1 << 30;
    const double cube = tb_floor(x * cubes_per_metre);
    return cube > -most ? (int32_t)(cube < most ? cube : most) : -(1 << 30); /* NaN too */
}

/* The slot of a cube in a table of `slots` entries, a power of two. */
TB_FN uint32_t tb_balls_slot(int32_t x, int32_t y, int32_t z, uint32_t slots)
{
    uint64_t h = (uint64_t)(uint32_t)x * 0x9e3779b97f4a7c15u;
    h ^= (uint64_t)(uint32_t)y * 0xc2b2ae3d27d4eb4fu;
    h ^= (uint64_t)(uint32_t)z * 0x165667b19e3779f9u;
    h ^= h >> 29;
    h *= 0xbf58476d1ce4e5b9u;
    return (uint32_t)(h >> 32) & (slots - 1);
}

/* ---- contacts ---- */

/* Forces on a body that are being added up. */
typedef struct tb_balls_sum {
    double wrench[6];
    double
        power; /* W, of contacts with shapes of higher numbers and with those that nothing moves */
    double deepest;
    int32_t contacts; /* of the same */
    bool degenerate;
} tb_balls_sum;

TB_FN bool tb_balls_collide(const tb_ball *a, const tb_ball *b)
{
    return (a->body >= 0 || b->body >= 0) &&
           ((a->category & b->mask) != 0 || (b->category & a->mask) != 0);
}

/* Whether two balls' boxes meet, and their centres are near enough: the processor's two tests. */
TB_FN bool tb_balls_near(const double *xa, double ra, const double *xb, double rb)
{
    bool meet = true;
    for (int k = 0; k < 3; k++) meet = meet && xa[k] - ra <= xb[k] + rb && xb[k] - rb <= xa[k] + ra;
    const double distance2 = tb_v3_length2(tb_v3_sub(tb_v3_load(xa), tb_v3_load(xb)));
    return meet && distance2 < (ra + rb) * (ra + rb);
}

TB_FN tb_law_motion tb_balls_motion(const double *seen)
{
    tb_law_motion m;
    m.com = tb_v3_load(seen + 9), m.linear = tb_v3_load(seen + 3), m.angular = tb_v3_load(seen + 6);
    return m;
}

/* Adds the contact of shapes a and b, a < b, to the sum of one of them (`of_a`). */
TB_FN void tb_balls_push(const tb_ball *a, const double *seen_a, const tb_ball *b,
                         const double *seen_b, bool of_a, bool counted, tb_balls_sum *sum)
{
    const tb_volume_constants c = tb_volume_constants_of_pair(&a->constants, &b->constants);
    const tb_law_motion ma = tb_balls_motion(seen_a), mb = tb_balls_motion(seen_b);
    const tb_vec3 spin = tb_v3_sub(ma.angular, mb.angular);
    tb_overlap_part part;
    tb_contact_push push;
    tb_vec3 velocity;
    if (a->radius > 0 && b->radius > 0) {
        const tb_ball_contact way = tb_law_two_balls(&c, tb_v3_load(seen_a), a->radius,
                                                     tb_v3_load(seen_b), b->radius, &part, &push);
        sum->degenerate = sum->degenerate || way == TB_BALLS_EQUAL;
        if (way != TB_BALLS_TOUCH) return;
        velocity = tb_v3_sub(tb_law_velocity_at(&ma, part.centroid),
                             tb_law_velocity_at(&mb, part.centroid));
    } else {
        const bool plane_is_b = a->radius > 0;
        const tb_ball *plane = plane_is_b ? b : a;
        const tb_vec3 centre = tb_v3_load(plane_is_b ? seen_a : seen_b);
        const tb_vec3 normal = tb_v3_load(plane->normal);
        const double gap = tb_v3_dot(normal, tb_v3_sub(centre, tb_v3_load(plane->position)));
        if (!tb_ball_in_half_space(centre, plane_is_b ? a->radius : b->radius, normal, gap, &part))
            return;
        if (!plane_is_b) part.area = tb_v3_negate(part.area);
        velocity = tb_v3_sub(tb_law_velocity_at(&ma, part.centroid),
                             tb_law_velocity_at(&mb, part.centroid));
        push = tb_volume_push(&c, &part, velocity, spin);
    }
    sum->degenerate = sum->degenerate || !(tb_v3_length2(part.area) > 0);
    sum->deepest = part.depth > sum->deepest ? part.depth : sum->deepest;
    tb_law_add_wrench(sum->wrench, of_a ? ma.com : mb.com, part.centroid,
                      of_a ? push.force : tb_v3_negate(push.force),
                      of_a ? push.torque : tb_v3_negate(push.torque));
    if (!counted) return;
    sum->power += tb_v3_dot(push.force, velocity) + tb_v3_dot(push.torque, spin);
    sum->contacts++;
}

/* ---- slopes and steps ---- */

/* The slope of one body at a point. */
TB_FN void tb_balls_slope(const tb_balls_scene *scene, const tb_balls_body *body,
                          const double *point, const double *forces, const tb_balls_sum *sum,
                          double *slope)
{
    const tb_mat33 rotation = tb_balls_rotation(point);
    for (int k = 0; k < 3; k++) slope[k] = point[7 + k];
    tb_law_quaternion_slope(point + 3, point + 10, slope + 3);
    tb_law_free_acceleration(&body->law, scene->gravity, &rotation, point + 7, sum->wrench, forces,
                             forces + 6, slope + 7);
    slope[TB_BALLS_WORK] = sum->power;
}

TB_FN bool tb_balls_finite(const double *numbers, int32_t count)
{
    bool finite = true;
    for (int32_t k = 0; k < count; k++) finite = finite && tb_abs(numbers[k]) <= TB_REAL_MAX;
    return finite;
}

/* One body's numbers after a step, from the slopes of all stages. False if they are not finite. */
TB_FN bool tb_balls_advance(const tb_balls_method *m, double *y, const double *slopes, size_t apart)
{
    if (m->symplectic) {
        for (int k = 7; k < TB_BALLS_NUMBERS; k++) y[k] += m->dt * slopes[k];
        for (int k = 0; k < 3; k++) y[k] += m->dt * y[7 + k];
        tb_q_store(y + 3, tb_q_integrate(tb_q_load(y + 3), tb_v3_load(y + 10), m->dt));
    } else {
        for (int32_t s = 0; s < m->stages; s++) {
            const double weight = m->dt * m->b[s];
            const double *slope = slopes + (size_t)s * apart;
            if (weight != 0)
                for (int k = 0; k < TB_BALLS_NUMBERS; k++) y[k] += weight * slope[k];
        }
    }
    const bool finite = tb_balls_finite(y, TB_BALLS_NUMBERS);
    tb_q_store(y + 3, tb_q_normalize(tb_q_load(y + 3)));
    return finite;
}

#endif
