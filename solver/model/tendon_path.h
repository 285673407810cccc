/* The way of a spatial tendon through space, from the poses of the bodies that it touches.
 *
 * The tendon is a string under tension: straight from site to site, and around a sphere or a cylinder
 * that stands between two of them. On a sphere the bend lies in the plane of both sites and the
 * centre; on a cylinder its image along the axis does, and the height rises evenly with the length.
 * Both are problems of a circle in a plane. The bent part has no ends of its own that could move
 * its length to first order, so a change of length is that of the straight pieces, with their ends
 * held by the bodies that they touch.
 *
 * Rules of choice as in MuJoCo 4.0 (documentation, "tendon/spatial", and its answers where that is
 * silent): without a side point the shorter way, and only where the shape is in the way; with a side
 * point the way on its side, also where the straight line passes the shape on the other side; a side
 * point inside the shape keeps the string inside, where it touches the surface in one point. */
#ifndef TB_TENDON_PATH_H
#define TB_TENDON_PATH_H

#include "model/model.h"

/* Lengths below this (m) are none. */
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

/* Unit length; along x where there is no direction. */
TB_FN tb_flat tb_flat_unit(tb_flat a)
{
    const tb_real length = tb_sqrt(tb_flat_dot(a, a));
    return length < TB_TENDON_LEAST ? tb_flat_of(1, 0) : tb_flat_of(a.x / length, a.y / length);
}

/* Whether the segments from a to b and from c to d meet. */
TB_FN int tb_flat_meet(tb_flat a, tb_flat b, tb_flat c, tb_flat d)
{
    const tb_flat ab = tb_flat_sub(b, a), cd = tb_flat_sub(d, c), ca = tb_flat_sub(a, c);
    const tb_real area = tb_flat_cross(ab, cd);
    if (tb_abs(area) < TB_TENDON_LEAST) return 0;
    const tb_real s = tb_flat_cross(cd, ca) / area, t = tb_flat_cross(ab, ca) / area;
    return s >= 0 && s <= 1 && t >= 0 && t <= 1;
}

/* Where the tangent through p touches the circle: ahead of p counter-clockwise for turn = 1, behind
 * for -1. */
TB_FN tb_flat tb_circle_touch(tb_flat p, tb_real radius, tb_real turn)
{
    const tb_real square = tb_flat_dot(p, p), along = radius * radius / square;
    const tb_real across =
        turn * radius * tb_sqrt(tb_max(square - radius * radius, TB_R(0))) / square;
    return tb_flat_of(along * p.x - across * p.y, along * p.y + across * p.x);
}

/* Length of the arc from p to q, clockwise for turn = 1. Touching points that rounding has put behind
 * one another are no whole turn apart. */
TB_FN tb_real tb_circle_arc(tb_flat p, tb_flat q, tb_real radius, tb_real turn)
{
    const tb_real angle = tb_atan2(-turn * tb_flat_cross(p, q), tb_flat_dot(p, q));
    if (angle >= 0) return radius * angle;
    return angle > -64 * TB_REAL_EPSILON ? 0 : radius * (angle + TB_R(6.283185307179586476925));
}

/* Around the circle from a to b. side: NULL, or a point on the circle. Returns the length of the arc
 * and the touching points, or -1 where the straight way is free. */
TB_FN_LARGE tb_real tb_wrap_circle(tb_flat a, tb_flat b, const tb_flat *side, tb_real radius,
                                   tb_flat touch[2])
{
    const tb_real square = radius * radius;
    const tb_flat ab = tb_flat_sub(b, a);
    const tb_real apart = tb_flat_dot(ab, ab);
    if (tb_flat_dot(a, a) < square || tb_flat_dot(b, b) < square || radius < TB_TENDON_LEAST ||
        apart < TB_TENDON_LEAST)
        return -1;

    /* the point of the straight way that is nearest to the centre */
    const tb_real s = tb_clamp(-tb_flat_dot(ab, a) / apart, TB_R(0), TB_R(1));
    const tb_flat nearest = tb_flat_of(a.x + s * ab.x, a.y + s * ab.y);
    const int free = tb_flat_dot(nearest, nearest) > square;
    if (free && (!side || tb_flat_dot(*side, nearest) >= 0)) return -1;

    /* clockwise and counter-clockwise: nearer to the side, or shorter; lines that cross are worst */
    tb_real best = 0;
    int chosen = 0;
    for (int i = 0; i < 2; i++) {
        const tb_real turn = i == 0 ? TB_R(1) : TB_R(-1);
        const tb_flat p = tb_circle_touch(a, radius, -turn), q = tb_circle_touch(b, radius, turn);
        const tb_flat pq = tb_flat_sub(q, p);
        tb_real merit = -tb_flat_dot(pq, pq);
        if (side) merit = tb_flat_dot(*side, tb_flat_unit(tb_flat_of(p.x + q.x, p.y + q.y)));
        const int crossing = tb_flat_meet(a, p, b, q);
        if (crossing) merit = -TB_REAL_MAX;
        if (i == 1 && best > merit) break;
        best = merit;
        chosen = crossing ? 0 : (i == 0 ? 1 : -1);
        touch[0] = p;
        touch[1] = q;
    }
    return chosen == 0 ? TB_R(-1) : tb_circle_arc(touch[0], touch[1], radius, TB_R(chosen));
}

/* asin(A z) + asin(B z) - 2 asin(z) + G */
TB_FN tb_real tb_wrap_equation(tb_real a, tb_real b, tb_real g, tb_real z, tb_real *slope)
{
    *slope = a / tb_max(TB_TENDON_LEAST, tb_sqrt(1 - z * z * a * a)) +
             b / tb_max(TB_TENDON_LEAST, tb_sqrt(1 - z * z * b * b)) -
             2 / tb_max(TB_TENDON_LEAST, tb_sqrt(1 - z * z));
    return tb_asin(a * z) + tb_asin(b * z) - 2 * tb_asin(z) + g;
}

/* z = sine of the angle that both lines make with the circle's normal where they touch its inner side,
 * by Newton from the right end, where the function is concave and falls; -1 where that has no answer.
 * a, b: radius over the distance of each end; g: the angle between the ends, as the centre sees them. */
TB_FN_LARGE tb_real tb_wrap_sine(tb_real a, tb_real b, tb_real g)
{
    enum { STEPS = 20 };
    const tb_real close = TB_R(1e-6);
    tb_real slope, z = TB_R(1 - 1e-7), f = tb_wrap_equation(a, b, g, z, &slope);
    if (f > 0) return -1;
    for (int i = 0; tb_abs(f) > close; i++) {
        if (i == STEPS || slope > -TB_TENDON_LEAST || z - f / slope > z) return -1;
        z -= f / slope;
        f = tb_wrap_equation(a, b, g, z, &slope);
        if (f > close) return -1;
    }
    return z;
}

/* Inside of the circle from a to b, both outside: touches its inner side in one point. Returns 0, or
 * -1 where the straight way passes inside. Where the angle has no answer, the point lies midway. */
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
    const tb_flat middle = tb_flat_unit(tb_flat_of((a.x + b.x) / 2, (a.y + b.y) / 2));
    touch[0] = touch[1] = tb_flat_of(radius * middle.x, radius * middle.y);

    const tb_real cosine = (from * from + to * to - apart) / (2 * from * to);
    if (cosine < -1 + TB_TENDON_LEAST) return -1;
    if (cosine > 1 - TB_TENDON_LEAST) return 0;
    const tb_real z = tb_wrap_sine(radius / from, radius / to, tb_acos(cosine));
    if (z < 0) return 0;
    const int ahead = tb_flat_cross(a, b) > 0;
    const tb_flat start = tb_flat_unit(ahead ? a : b);
    const tb_real angle = tb_asin(z) - tb_asin(radius / (ahead ? from : to) * z);
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

/* Around a sphere or cylinder. a, b: the sites in its frame; side: NULL, or a point there. Returns the
 * length of the bend and where it begins and ends, or -1 where there is none. */
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

/* What leads from one site to the next: one piece, or two with a bend between them. */
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
    if (to->kind != TB_TENDON_SITE) shape = to++;
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

/* What a run adds to the tendon's length, m. */
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
