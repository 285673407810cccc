/* Contacts of balls: formulas of the volume law that processor and card share, one contact wide
 * (volume_law.h has the sources). */
#ifndef TB_BALL_LAW_H
#define TB_BALL_LAW_H

#include "penalty/card/body_law.h"

/* Result of tb_law_two_balls. */
typedef enum tb_ball_contact {
    TB_BALLS_APART,
    TB_BALLS_TOUCH,
    TB_BALLS_EQUAL /* centres in one place: no direction to push in */
} tb_ball_contact;

/* Whether two balls touch; reach: the sum of their radii, m. */
TB_FN bool tb_law_balls_touch(tb_vec3 xa, tb_vec3 xb, double reach)
{
    return tb_v3_length2(tb_v3_sub(xa, xb)) < reach * reach;
}

/* Two balls, A and B: a spring along the line of centres, nothing else (3.9). */
TB_FN tb_ball_contact tb_law_two_balls(const tb_volume_constants *c, tb_vec3 xa, double ra,
                                       tb_vec3 xb, double rb, tb_overlap_part *part,
                                       tb_contact_push *push)
{
    if (!tb_law_balls_touch(xa, xb, ra + rb)) return TB_BALLS_APART;
    const tb_vec3 line = tb_v3_sub(xa, xb);
    const double distance = tb_v3_length(line);
    if (!(distance > 0)) return TB_BALLS_EQUAL;
    const tb_vec3 normal = tb_v3_scale(line, 1 / distance);
    const double depth = ra + rb - distance;
    push->normal_force = tb_sphere_push(c, ra, rb, depth);
    push->force = tb_v3_scale(normal, push->normal_force);
    push->torque = tb_v3(0, 0, 0);
    part->volume = 0;
    part->depth = depth;
    part->centroid = tb_v3_add_scaled(xb, normal, rb - depth / 2);
    part->area = normal;
    return TB_BALLS_TOUCH;
}

/* A ball, or the surface of a half-space. */
typedef struct tb_law_round {
    double radius;    /* m; 0: a half-space */
    tb_vec3 position; /* m, world: the centre, or a point of the plane */
    tb_vec3 normal;   /* out of the half-space */
} tb_law_round;

/* Whether two shapes meet in closed form: balls with each other, and with half-spaces. */
TB_FN bool tb_law_is_round(double radius_a, bool half_space_a, double radius_b, bool half_space_b)
{
    return (radius_a > 0 && (radius_b > 0 || half_space_b)) || (radius_b > 0 && half_space_a);
}

/* The contact of a ball with a ball or a half-space. *given: `push` is the whole push; else the law of
 * overlaps makes it from the part. */
TB_FN tb_ball_contact tb_law_round_contact(const tb_volume_constants *c, const tb_law_round *a,
                                           const tb_law_round *b, tb_overlap_part *part,
                                           tb_contact_push *push, bool *given)
{
    *given = a->radius > 0 && b->radius > 0;
    if (*given)
        return tb_law_two_balls(c, a->position, a->radius, b->position, b->radius, part, push);
    const tb_law_round *ball = a->radius > 0 ? a : b, *plane = a->radius > 0 ? b : a;
    const double gap = tb_v3_dot(plane->normal, tb_v3_sub(ball->position, plane->position));
    if (!tb_ball_in_half_space(ball->position, ball->radius, plane->normal, gap, part))
        return TB_BALLS_APART;
    if (ball == b) part->area = tb_v3_negate(part->area);
    return TB_BALLS_TOUCH;
}

#endif
