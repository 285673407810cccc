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
#include "penalty/card/volume_run.h"

enum {
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

/* ---- places ---- */

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

TB_FN tb_law_round tb_balls_round(const tb_ball *ball, const double *seen)
{
    tb_law_round round;
    round.radius = ball->radius;
    round.position = tb_v3_load(ball->radius > 0 ? seen : ball->position);
    round.normal = tb_v3_load(ball->normal);
    return round;
}

/* Adds the contact of shapes a and b, a < b, to the sum of one of them (`of_a`). */
TB_FN void tb_balls_push(const tb_ball *a, const double *seen_a, const tb_ball *b,
                         const double *seen_b, bool of_a, bool counted, tb_volume_sum *sum)
{
    const tb_volume_constants c = tb_volume_constants_of_pair(&a->constants, &b->constants);
    const tb_law_motion ma = tb_balls_motion(seen_a), mb = tb_balls_motion(seen_b);
    const tb_law_round ra = tb_balls_round(a, seen_a), rb = tb_balls_round(b, seen_b);
    tb_overlap_part part;
    tb_contact_push push;
    tb_law_pressed x;
    bool given;
    const tb_ball_contact way = tb_law_round_contact(&c, &ra, &rb, &part, &push, &given);
    sum->degenerate = sum->degenerate || way == TB_BALLS_EQUAL;
    if (way != TB_BALLS_TOUCH) return;
    tb_law_press(&c, &part, given ? &push : NULL, &ma, &mb, &x);
    sum->degenerate = sum->degenerate || !(tb_v3_length2(part.area) > 0);
    sum->deepest = part.depth > sum->deepest ? part.depth : sum->deepest;
    tb_law_add_wrench(sum->wrench, of_a ? ma.com : mb.com, part.centroid,
                      of_a ? x.push.force : tb_v3_negate(x.push.force),
                      of_a ? x.push.torque : tb_v3_negate(x.push.torque));
    if (!counted) return;
    sum->power += x.power;
    sum->contacts++;
}

/* The slope of a body at its point under the forces of its contacts. */
TB_FN void tb_balls_slope(const tb_balls_body *body, const double gravity[3], const double *point,
                          const double *forces, const tb_volume_sum *sum, double *slope)
{
    const tb_mat33 rotation = tb_balls_rotation(point);
    tb_volume_slope(&body->law, gravity, &rotation, tb_v3_load(point), point, forces, sum, slope);
}

#endif
