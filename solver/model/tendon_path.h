/* Path of a spatial tendon, from the poses of the bodies that it touches.
 *
 * The tendon is a string under tension: straight from site to site, and around a sphere or a
 * cylinder between two sites. On a sphere the bend lies in the plane of both sites and the centre.
 * On a cylinder its projection along the axis is the bend around a circle, and the height rises
 * linearly with the length. Both reduce to a circle in a plane. To first order the length of the
 * bend does not change with its end points, so the length changes only by the straight pieces,
 * whose ends move with the bodies that they touch.
 *
 * Choice of the path as in MuJoCo 4.0 (documentation, "tendon/spatial", and its measured results
 * where the documentation is silent): the shorter path, only if the shape obstructs the straight
 * line; but always the longer path if a side point lies opposite to the shorter one, seen from
 * the centre. A side point inside the shape keeps the string inside, where it touches the
 * surface in one point. */
#ifndef TB_TENDON_PATH_H
#define TB_TENDON_PATH_H

#include "model/model.h"

/* Lengths below this (m) count as zero. */
#define TB_TENDON_LEAST TB_R(1e-15)

/* A point in the plane of a circle about the origin. */
typedef struct tb_flat {
    tb_real x, y;
} tb_flat;

TB_FN tb_flat tb_flat_of(tb_real x, tb_real y)
{
    tb_flat p;
    p.x = x;
    p.y = y;
    return p;
}

TB_FN tb_flat tb_flat_sub(tb_flat a, tb_flat b)
{
    return tb_flat_of(a.x - b.x, a.y - b.y);
}

TB_FN tb_real tb_flat_dot(tb_flat a, tb_flat b)
{
    return a.x * b.x + a.y * b.y;
}

TB_FN tb_real tb_flat_cross(tb_flat a, tb_flat b)
{
    return a.x * b.y - a.y * b.x;
}

/* Normalises to unit length; returns the x axis for a zero vector. */
TB_FN tb_flat tb_flat_unit(tb_flat a)
{
    const tb_real length = tb_sqrt(tb_flat_dot(a, a));
    return length < TB_TENDON_LEAST ? tb_flat_of(1, 0) : tb_flat_of(a.x / length, a.y / length);
}

/* Point where the tangent through p touches the circle: counter-clockwise from p for turn = 1,
 * clockwise for -1. */
TB_FN tb_flat tb_circle_touch(tb_flat p, tb_real radius, tb_real turn)
{
    const tb_real square = tb_flat_dot(p, p), along = radius * radius / square;
    const tb_real across =
        turn * radius * tb_sqrt(tb_max(square - radius * radius, TB_R(0))) / square;
    return tb_flat_of(along * p.x - across * p.y, along * p.y + across * p.x);
}

/* Length of the arc from p to q, clockwise for turn = 1. Rounding may swap two touching points;
 * their arc is then 0, not a whole turn. */
TB_FN tb_real tb_circle_arc(tb_flat p, tb_flat q, tb_real radius, tb_real turn)
{
    const tb_real angle = tb_atan2(-turn * tb_flat_cross(p, q), tb_flat_dot(p, q));
    if (angle >= 0) return radius * angle;
    return angle > -64 * TB_REAL_EPSILON ? 0 : radius * (angle + TB_R(6.283185307179586476925));
}

/* Around the circle from a to b. side: NULL, or a direction. Returns the length of the arc and the
 * touching points, or -1 if the straight line is free.
 *
 * Seen from the centre, a and b span an angle of less than a half turn, which contains the
 * straight line and the shorter path. The string takes the longer path if the opposite of the
 * side direction lies within that angle. */
TB_FN_LARGE tb_real tb_wrap_circle(tb_flat a, tb_flat b, const tb_flat *side, tb_real radius,
                                   tb_flat touch[2])
{
    const tb_real square = radius * radius;
    const tb_flat ab = tb_flat_sub(b, a);
    const tb_real apart = tb_flat_dot(ab, ab);
    if (tb_flat_dot(a, a) < square || tb_flat_dot(b, b) < square || radius < TB_TENDON_LEAST ||
        apart < TB_TENDON_LEAST)
        return -1;
    const tb_real from_a = side ? tb_flat_cross(a, *side) : 0;
    const tb_real to_b = side ? tb_flat_cross(*side, b) : 0;
    const tb_real opening = tb_flat_cross(a, b);
    const int away = opening > 0 ? from_a < 0 && to_b < 0 : from_a > 0 && to_b > 0;

    /* the point of the straight line nearest to the centre */
    const tb_real s = tb_clamp(-tb_flat_dot(ab, a) / apart, TB_R(0), TB_R(1));
    const tb_flat nearest = tb_flat_of(a.x + s * ab.x, a.y + s * ab.y);
    if (!away && tb_flat_dot(nearest, nearest) > square) return -1;

    /* of two equally long paths, take the one on the side */
    int clockwise = opening < 0;
    if (away) clockwise = !clockwise;
    if (opening == 0) clockwise = from_a < 0;
    const tb_real turn = clockwise ? TB_R(1) : TB_R(-1);
    touch[0] = tb_circle_touch(a, radius, -turn);
    touch[1] = tb_circle_touch(b, radius, turn);
    return tb_circle_arc(touch[0], touch[1], radius, turn);
}

/* The angle that both lines make with the circle's normal where they touch its inner side:
 *
 *     asin(A sin x) + asin(B sin x) - 2 x + G = 0,
 *
 * with A, B the radius over the distance of each end and G the angle between them, as the centre
 * sees them. Newton starts at the right end: the left-hand side is decreasing and concave, so every
 * iterate stays to the right of the root. */
TB_FN_LARGE tb_real tb_wrap_angle(tb_real a, tb_real b, tb_real g)
{
    enum { STEPS = 50 };
    tb_real x = TB_R(1.5707963267948966192);
    for (int i = 0; i < STEPS; i++) {
        const tb_real s = tb_sin(x), c = tb_cos(x);
        const tb_real f = tb_asin(a * s) + tb_asin(b * s) - 2 * x + g;
        const tb_real slope =
            a * c / tb_sqrt(1 - a * a * s * s) + b * c / tb_sqrt(1 - b * b * s * s) - 2;
        if (!(f < -2 * TB_REAL_EPSILON) || !(slope < 0)) break;
        x -= f / slope;
    }
    return tb_max(x, TB_R(0));
}

/* Inside of the circle from a to b, both outside: the string touches its inner side in one
 * point. Returns 0, or -1 if the straight line passes inside. */
TB_FN_LARGE tb_real tb_wrap_inside(tb_flat a, tb_flat b, tb_real radius, tb_flat touch[2])
{
    const tb_real from = tb_sqrt(tb_flat_dot(a, a)), to = tb_sqrt(tb_flat_dot(b, b));
    const tb_flat ab = tb_flat_sub(b, a);
    const tb_real apart = tb_flat_dot(ab, ab);
    if (from <= radius || to <= radius || radius < TB_TENDON_LEAST) return -1;
    if (apart > TB_TENDON_LEAST) {
        const tb_real s = -tb_flat_dot(ab, a) / apart;
        const tb_flat nearest = tb_flat_of(a.x + s * ab.x, a.y + s * ab.y);
        if (s > 0 && s < 1 && tb_flat_dot(nearest, nearest) <= radius * radius) return -1;
    }
    const tb_real cosine = (from * from + to * to - apart) / (2 * from * to);
    if (cosine < -1 + TB_TENDON_LEAST) return -1;
    const tb_real x = tb_wrap_angle(radius / from, radius / to,
                                    tb_atan2(tb_abs(tb_flat_cross(a, b)), tb_flat_dot(a, b)));
    const int ahead = tb_flat_cross(a, b) > 0;
    const tb_flat start = tb_flat_unit(ahead ? a : b);
    const tb_real angle = x - tb_asin(radius / (ahead ? from : to) * tb_sin(x));
    const tb_real c = radius * tb_cos(angle), s = radius * tb_sin(angle);
    touch[0] = touch[1] = tb_flat_of(c * start.x - s * start.y, s * start.x + c * start.y);
    return 0;
}

/* Axes of the plane in which a sphere is wrapped: through its centre, a and b. */
TB_FN_LARGE void tb_wrap_plane(tb_vec3 a, tb_vec3 b, tb_vec3 axes[2])
{
    axes[0] = tb_v3_normalize(a, tb_v3(1, 0, 0));
    tb_vec3 normal = tb_v3_cross(a, b);
    if (tb_v3_length(normal) < TB_TENDON_LEAST) {
        /* any plane through the line */
        const tb_real x = tb_abs(axes[0].x), y = tb_abs(axes[0].y), z = tb_abs(axes[0].z);
        const int largest = z > x && z > y ? 2 : (y > x && y > z ? 1 : 0);
        normal =
            tb_v3_cross(axes[0], tb_v3(TB_R(largest != 0), TB_R(largest != 1), TB_R(largest != 2)));
    }
    normal = tb_v3_normalize(normal, tb_v3(0, 0, 1));
    axes[1] = tb_v3_normalize(tb_v3_cross(normal, axes[0]), tb_v3(0, 1, 0));
}

/* Around a sphere or cylinder. a, b: the sites in its frame; side: NULL, or a point there. Returns
 * the length of the bend and where it begins and ends, or -1 where there is none. */
TB_FN_LARGE tb_real tb_wrap_shape(tb_tendon_point_kind kind, tb_real radius, tb_vec3 a, tb_vec3 b,
                                  const tb_vec3 *side, tb_vec3 ends[2])
{
    if (tb_v3_length(a) < TB_TENDON_LEAST || tb_v3_length(b) < TB_TENDON_LEAST) return -1;
    tb_vec3 axes[2] = {tb_v3(1, 0, 0), tb_v3(0, 1, 0)};
    if (kind == TB_TENDON_SPHERE) tb_wrap_plane(a, b, axes);
    const tb_flat from = tb_flat_of(tb_v3_dot(a, axes[0]), tb_v3_dot(a, axes[1]));
    const tb_flat to = tb_flat_of(tb_v3_dot(b, axes[0]), tb_v3_dot(b, axes[1]));
    tb_flat touch[2];
    tb_real length;
    if (!side) {
        length = tb_wrap_circle(from, to, NULL, radius, touch);
    } else if (tb_v3_length(*side) < radius) {
        length = tb_wrap_inside(from, to, radius, touch);
    } else {
        const tb_flat flat =
            tb_flat_unit(tb_flat_of(tb_v3_dot(*side, axes[0]), tb_v3_dot(*side, axes[1])));
        length = tb_wrap_circle(from, to, &flat, radius, touch);
    }
    if (length < 0) return -1;
    for (int i = 0; i < 2; i++)
        ends[i] = tb_v3_add_scaled(tb_v3_scale(axes[0], touch[i].x), axes[1], touch[i].y);
    if (kind == TB_TENDON_SPHERE) return length;

    /* on a cylinder the height rises evenly along the whole way */
    const tb_flat first = tb_flat_sub(touch[0], from), last = tb_flat_sub(to, touch[1]);
    const tb_real before = tb_sqrt(tb_flat_dot(first, first));
    const tb_real after = tb_sqrt(tb_flat_dot(last, last));
    const tb_real rise = (b.z - a.z) / (before + length + after);
    ends[0].z = a.z + rise * before;
    ends[1].z = a.z + rise * (before + length);
    return tb_sqrt(length * length + rise * length * (rise * length));
}

/* A straight piece of a tendon between points that two bodies hold. */
typedef struct tb_tendon_piece {
    int32_t bodies[2];
    tb_vec3 ends[2]; /* m, world */
} tb_tendon_piece;

/* The path from one site to the next: one piece, or two with a bend between them. */
typedef struct tb_tendon_run {
    int32_t pieces; /* 0: the path has ended */
    tb_tendon_piece piece[2];
    tb_real bend;  /* m */
    tb_real share; /* of the tendon's length: 1 / divisor */
} tb_tendon_run;

/* Where a walk along a path is. */
typedef struct tb_tendon_walk {
    int32_t at; /* the next point */
    tb_real share;
} tb_tendon_walk;

TB_FN tb_tendon_walk tb_tendon_begin(void)
{
    tb_tendon_walk walk;
    walk.at = 0;
    walk.share = 1;
    return walk;
}

TB_FN tb_vec3 tb_tendon_place(const tb_model_tendon_point *point, const tb_pose *poses)
{
    return tb_pose_point(&poses[point->body], tb_v3_load(point->position));
}

/* The bend around `shape` of the way that `piece` goes. */
TB_FN_LARGE tb_real tb_tendon_bend(const tb_model_tendon_point *shape, const tb_pose *poses,
                                   const tb_tendon_piece *piece, tb_vec3 ends[2])
{
    tb_pose frame;
    frame.position = tb_v3_load(shape->position);
    for (int k = 0; k < 9; k++) frame.rotation.m[k] = TB_R(shape->rotation[k]);
    frame = tb_pose_mul(&poses[shape->body], &frame);
    const tb_vec3 a = tb_pose_inverse_point(&frame, piece->ends[0]);
    const tb_vec3 b = tb_pose_inverse_point(&frame, piece->ends[1]);
    tb_vec3 side = tb_v3(0, 0, 0);
    if (shape->side_body >= 0)
        side = tb_pose_inverse_point(
            &frame, tb_pose_point(&poses[shape->side_body], tb_v3_load(shape->side)));
    const tb_real length = tb_wrap_shape(shape->kind, TB_R(shape->radius), a, b,
                                         shape->side_body >= 0 ? &side : NULL, ends);
    for (int i = 0; i < 2 && length >= 0; i++) ends[i] = tb_pose_point(&frame, ends[i]);
    return length;
}

/* The next run of a path of `count` points, from the poses of the bodies. */
TB_FN_LARGE tb_tendon_run tb_tendon_next(const tb_model_tendon_point *points, int32_t count,
                                         const tb_pose *poses, tb_tendon_walk *walk)
{
    tb_tendon_run run;
    run.pieces = 0;
    run.bend = 0;
    run.share = walk->share;
    for (; walk->at + 1 < count; walk->at++) {
        if (points[walk->at].kind == TB_TENDON_PULLEY)
            walk->share = TB_R(1 / points[walk->at].divisor);
        else if (points[walk->at + 1].kind != TB_TENDON_PULLEY)
            break;
    }
    if (walk->at + 1 >= count) return run;

    const tb_model_tendon_point *from = &points[walk->at], *to = from + 1, *shape = NULL;
    if (to->kind != TB_TENDON_SITE) {
        if (walk->at + 2 >= count) return run; /* a path that ends on a shape, yet to be refused */
        shape = to++;
    }
    walk->at += shape ? 2 : 1;
    tb_tendon_piece *piece = run.piece;
    run.share = walk->share;
    run.pieces = 1;
    piece->bodies[0] = from->body;
    piece->bodies[1] = to->body;
    piece->ends[0] = tb_tendon_place(from, poses);
    piece->ends[1] = tb_tendon_place(to, poses);
    if (!shape) return run;
    tb_vec3 ends[2];
    const tb_real bend = tb_tendon_bend(shape, poses, piece, ends);
    if (bend < 0) return run;
    run.pieces = 2;
    run.bend = bend;
    piece[1] = piece[0];
    piece[0].bodies[1] = piece[1].bodies[0] = shape->body;
    piece[0].ends[1] = ends[0];
    piece[1].ends[0] = ends[1];
    return run;
}

/* A run's share of the tendon's length, m. */
TB_FN tb_real tb_tendon_run_length(const tb_tendon_run *run)
{
    tb_real length = run->bend;
    for (int i = 0; i < run->pieces; i++)
        length += tb_v3_length(tb_v3_sub(run->piece[i].ends[1], run->piece[i].ends[0]));
    return run->share * length;
}

/* Length of a path at these poses, m. */
TB_FN tb_real tb_tendon_path_length(const tb_model_tendon_point *points, int32_t count,
                                    const tb_pose *poses)
{
    tb_tendon_walk walk = tb_tendon_begin();
    tb_real length = 0;
    for (;;) {
        const tb_tendon_run run = tb_tendon_next(points, count, poses, &walk);
        if (run.pieces == 0) return length;
        length += tb_tendon_run_length(&run);
    }
}

#endif
