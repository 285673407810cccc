/* Antipodal grasps: two points of the surface whose line lies in both friction cones hold an object
 * between two fingers (V. Nguyen, Constructing force-closure grasps, IJRR 7, 1988).
 *
 * The sampler draws a point by area and a line through it from a cone about its normal. Every exit of
 * the line within the hand's opening, inside the same cone there, gives a pair. The approach
 * angle about the closing axis is drawn from the allowed angles.
 *
 * Fingers have flat pads: an object whose faces lean to the pads touches them at opposite edges and
 * turns until it lies flat on them, as soon as the table lets it. So the cone begins narrow and
 * widens to the friction cone as attempts fail: objects with parallel faces are gripped there, other
 * objects still get their samples. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/random.h"
#include "grasp/surface.h"

static const double PI = 3.14159265358979323846;
/* share of the friction cone from which the first attempts draw */
static const double NARROWEST = 0.1;
enum { TRIES_FOR_ONE = 2000, SAMPLES_LIMIT = 1000000, ANGLES = 16 };

tb_grasp_sampling tb_grasp_sampling_defaults(void)
{
    tb_grasp_sampling s = {0};
    s.count = 16;
    s.opening = 0.08;
    s.friction = 0.5;
    s.axis[1] = 1;
    s.approach[2] = 1;
    s.from_above[2] = -1;
    s.spread = 1.2;
    return s;
}

static tb_status check(const tb_grasp_sampling *s, tb_error *error)
{
    if (s->count < 1 || s->count > SAMPLES_LIMIT)
        return tb_fail_field(error, TB_INVALID_ARGUMENT, "sampling.count",
                             "%d samples, expected 1 to %d", (int)s->count, SAMPLES_LIMIT);
    if (!(s->opening > 0) || !isfinite(s->opening))
        return tb_fail_field(error, TB_INVALID_ARGUMENT, "sampling.opening",
                             "the opening is %g m, not positive", s->opening);
    if (!(s->least_opening >= 0 && s->least_opening < s->opening))
        return tb_fail_field(error, TB_INVALID_ARGUMENT, "sampling.least_opening",
                             "the least opening is %g m, expected 0 to the opening, %g m",
                             s->least_opening, s->opening);
    if (!(s->friction > 0 && s->friction <= 1e3))
        return tb_fail_field(error, TB_INVALID_ARGUMENT, "sampling.friction",
                             "the friction is %g, expected up to 1000 and above 0", s->friction);
    const tb_vec3 axis = tb_v3_load(s->axis), approach = tb_v3_load(s->approach);
    const double lengths = tb_v3_length(axis) * tb_v3_length(approach);
    if (!(lengths > 1e-12) || !(fabs(tb_v3_dot(axis, approach)) < 1e-3 * lengths))
        return tb_fail_field(error, TB_INVALID_ARGUMENT, "sampling.approach",
                             "the closing axis and the approach are no two normal directions");
    if (!(tb_v3_length(tb_v3_load(s->from_above)) > 1e-6))
        return tb_fail_field(error, TB_INVALID_ARGUMENT, "sampling.from_above",
                             "from_above is zero");
    if (!(s->spread > 0))
        return tb_fail_field(error, TB_INVALID_ARGUMENT, "sampling.spread",
                             "the spread is %g rad, not positive", s->spread);
    return TB_OK;
}

/* The triangle that holds this part of the surface's area. */
static const grasp_triangle *triangle_at(const grasp_surface *s, double area)
{
    int32_t lower = 0, upper = s->count - 1;
    while (lower < upper) {
        const int32_t middle = lower + (upper - lower) / 2;
        if (s->triangles[middle].area < area)
            lower = middle + 1;
        else
            upper = middle;
    }
    return &s->triangles[lower];
}

/* Distance along a unit direction at which a ray meets a triangle; negative: no hit. T. Möller,
 * B. Trumbore, Fast, minimum storage ray-triangle intersection, 1997. */
static double meets(const grasp_triangle *t, tb_vec3 from, tb_vec3 way)
{
    const tb_vec3 p = tb_v3_cross(way, t->edge2);
    const double determinant = tb_v3_dot(t->edge1, p);
    if (determinant == 0) return -1;
    const tb_vec3 s = tb_v3_sub(from, t->corner);
    const double u = tb_v3_dot(s, p) / determinant;
    if (!(u >= 0 && u <= 1)) return -1;
    const tb_vec3 q = tb_v3_cross(s, t->edge1);
    const double v = tb_v3_dot(way, q) / determinant;
    if (!(v >= 0 && u + v <= 1)) return -1;
    return tb_v3_dot(t->edge2, q) / determinant;
}

/* Draws a pair of points whose line leans to both normals by a tangent of at most `widest`; *gap
 * their distance, *way the unit direction from the first. */
static bool draw_pair(const grasp_surface *s, const tb_grasp_sampling *o, double widest,
                      tb_random *random, tb_vec3 *first, tb_vec3 *way, double *gap)
{
    const grasp_triangle *t = triangle_at(s, tb_random_uniform(random) * s->area);
    double u = tb_random_uniform(random), v = tb_random_uniform(random);
    if (u + v > 1) {
        u = 1 - u;
        v = 1 - v;
    }
    *first = tb_v3_add_scaled(tb_v3_add_scaled(t->corner, t->edge1, u), t->edge2, v);
    tb_vec3 t1, t2;
    tb_v3_tangents(t->normal, &t1, &t2);
    const double slope = widest * sqrt(tb_random_uniform(random));
    const double angle = 2 * PI * tb_random_uniform(random);
    tb_vec3 d = tb_v3_negate(t->normal);
    d = tb_v3_add_scaled(d, t1, slope * cos(angle));
    d = tb_v3_add_scaled(d, t2, slope * sin(angle));
    *way = tb_v3_normalize(d, tb_v3_negate(t->normal));

    /* one of the exits within the opening at random: reservoir of one */
    const double steepest = 1 / sqrt(1 + widest * widest);
    int32_t found = 0;
    for (int32_t i = 0; i < s->count; i++) {
        if (!(tb_v3_dot(s->triangles[i].normal, *way) > steepest)) continue;
        const double distance = meets(&s->triangles[i], *first, *way);
        if (!(distance > fmax(1e-4, o->least_opening) && distance <= o->opening)) continue;
        found++;
        if (tb_random_uniform(random) * found < 1) *gap = distance;
    }
    return found > 0;
}

/* An allowed approach direction, normal to the closing axis. */
static bool draw_approach(const tb_grasp_sampling *o, tb_random *random, tb_vec3 axis,
                          tb_vec3 *approach)
{
    const tb_vec3 wanted = tb_v3_normalize(tb_v3_load(o->from_above), tb_v3(0, 0, -1));
    tb_vec3 t1, t2;
    tb_v3_tangents(axis, &t1, &t2);
    for (int i = 0; i < ANGLES; i++) {
        const double angle = 2 * PI * tb_random_uniform(random);
        *approach = tb_v3_add_scaled(tb_v3_scale(t1, cos(angle)), t2, sin(angle));
        const double cosine = tb_v3_dot(*approach, wanted);
        if (acos(fmin(1, fmax(-1, cosine))) <= o->spread) return true;
    }
    return false;
}

/* Lowest point of the object along its z axis, m. */
static double lowest_of(const grasp_surface *s)
{
    double lowest = INFINITY;
    for (int32_t i = 0; i < s->count; i++) {
        const grasp_triangle *t = &s->triangles[i];
        lowest = fmin(lowest, t->corner.z + fmin(0, fmin(t->edge1.z, t->edge2.z)));
    }
    return lowest;
}

/* Whether the open or the closed hand in this pose reaches below a height. */
static bool reaches_below(const tb_hand *hand, const tb_grasp_pose *pose, double height)
{
    const tb_quaternion back = tb_q_conjugate(tb_q_load(pose->orientation));
    double down[3];
    tb_v3_store(down, tb_q_rotate(back, tb_v3(0, 0, -1)));
    for (int32_t i = 0; i < tb_hand_number_of_shapes(hand); i++)
        for (int closed = 0; closed < 2; closed++)
            if (pose->position[2] - tb_hand_support(hand, i, closed != 0, down) < height)
                return true;
    return false;
}

/* The rotation that takes one pair of normal unit directions to another. */
static tb_quaternion turn_of(tb_vec3 a, tb_vec3 b, tb_vec3 to_a, tb_vec3 to_b)
{
    const tb_vec3 c = tb_v3_cross(a, b), to_c = tb_v3_cross(to_a, to_b);
    const tb_vec3 from[3] = {a, b, c}, to[3] = {to_a, to_b, to_c};
    tb_mat33 r = {{0}};
    for (int i = 0; i < 3; i++)
        for (int k = 0; k < 3; k++)
            for (int v = 0; v < 3; v++) r.m[3 * i + k] += tb_v3_at(to[v], i) * tb_v3_at(from[v], k);
    return tb_q_from_matrix(&r);
}

tb_status tb_grasp_sample(const tb_scene *object, const tb_grasp_sampling *sampling,
                          tb_grasp_pose *poses, int32_t *found, tb_error *error)
{
    tb_model *model = NULL;
    grasp_surface surface = {0};
    *found = 0;
    tb_status status = check(sampling, error);
    if (status == TB_OK) status = tb_scene_compile(object, &model, error);
    if (status == TB_OK) status = grasp_surface_make(model, &surface, error);
    if (status != TB_OK) goto done;

    const tb_vec3 up = tb_v3(0, 0, 1);
    const tb_vec3 axis = tb_v3_normalize(tb_v3_load(sampling->axis), up);
    const tb_vec3 approach =
        tb_v3_normalize(tb_v3_add_scaled(tb_v3_load(sampling->approach), axis,
                                         -tb_v3_dot(axis, tb_v3_load(sampling->approach))),
                        up);
    const double floor = lowest_of(&surface);
    for (int32_t i = 0; i < sampling->count; i++) {
        /* one stream per sample: a larger count does not change the first samples */
        tb_random random = tb_random_stream(sampling->seed, (uint64_t)i);
        bool good = false;
        for (int attempt = 0; attempt < TRIES_FOR_ONE && !good; attempt++) {
            tb_vec3 first, way, coming;
            double gap = 0;
            const double share = fmax(NARROWEST, (double)attempt / TRIES_FOR_ONE);
            const double widest = share * sampling->friction;
            if (!draw_pair(&surface, sampling, widest, &random, &first, &way, &gap)) continue;
            if (!draw_approach(sampling, &random, way, &coming)) continue;
            tb_grasp_pose *pose = &poses[*found];
            *pose = tb_grasp_pose_defaults();
            tb_v3_store(pose->position, tb_v3_add_scaled(first, way, gap / 2));
            tb_q_store(pose->orientation, turn_of(axis, approach, way, coming));
            good = sampling->hand == NULL || !reaches_below(sampling->hand, pose, floor);
        }
        *found += good;
    }
done:
    grasp_surface_free(&surface);
    tb_model_destroy(model);
    return status;
}
