/* Extents of shapes: support and farthest points. Used when a job is created, never in a step. */
#include "grasp/grasp.h"

grasp_frame grasp_frame_make(const double position[3], const double orientation[4])
{
    return (grasp_frame){tb_v3_load(position), tb_q_normalize(tb_q_load(orientation))};
}

grasp_frame grasp_frame_mul(const grasp_frame *a, const grasp_frame *b)
{
    return (grasp_frame){grasp_frame_out(a, b->position),
                         tb_q_normalize(tb_q_mul(a->orientation, b->orientation))};
}

grasp_frame grasp_frame_inverse(const grasp_frame *a)
{
    const tb_quaternion back = tb_q_conjugate(a->orientation);
    return (grasp_frame){tb_v3_negate(tb_q_rotate(back, a->position)), back};
}

tb_vec3 grasp_frame_out(const grasp_frame *frame, tb_vec3 inner)
{
    return tb_v3_add(tb_q_rotate(frame->orientation, inner), frame->position);
}

tb_vec3 grasp_frame_in(const grasp_frame *frame, tb_vec3 outer)
{
    return tb_q_rotate(tb_q_conjugate(frame->orientation), tb_v3_sub(outer, frame->position));
}

grasp_frame grasp_frame_of(const tb_body_motion *motion)
{
    return (grasp_frame){tb_v3_load(motion->position), tb_q_load(motion->orientation)};
}

/* Vertices of a shape that has them. */
static const double *vertices_of(const tb_model *model, const tb_model_shape *shape, int32_t *count)
{
    *count = 0;
    if (shape->asset < 0) return NULL;
    if (shape->type == TB_SHAPE_CONVEX) {
        *count = model->hulls[shape->asset].number_of_vertices;
        return model->hulls[shape->asset].vertices;
    }
    if (shape->type == TB_SHAPE_MESH) {
        *count = model->meshes[shape->asset].number_of_vertices;
        return model->meshes[shape->asset].vertices;
    }
    return NULL;
}

/* n . x over the shape, both in its own frame */
static double own_support(const tb_model *model, const tb_model_shape *shape, tb_vec3 n)
{
    const double *s = shape->size;
    int32_t count;
    const double *vertices = vertices_of(model, shape, &count);
    double largest = -INFINITY;
    switch (shape->type) {
    case TB_SHAPE_SPHERE: return s[0] * tb_v3_length(n);
    case TB_SHAPE_CAPSULE: return s[0] * tb_v3_length(n) + s[1] * fabs(n.z);
    case TB_SHAPE_CYLINDER: return s[0] * hypot(n.x, n.y) + s[1] * fabs(n.z);
    case TB_SHAPE_BOX: return s[0] * fabs(n.x) + s[1] * fabs(n.y) + s[2] * fabs(n.z);
    case TB_SHAPE_ELLIPSOID: return tb_v3_length(tb_v3(s[0] * n.x, s[1] * n.y, s[2] * n.z));
    default: break;
    }
    for (int32_t i = 0; i < count; i++)
        largest = fmax(largest, tb_v3_dot(n, tb_v3_load(vertices + 3 * (size_t)i)));
    if (shape->type == TB_SHAPE_MESH) largest += s[0] * tb_v3_length(n); /* its radius */
    return largest;
}

double grasp_support(const tb_model *model, int32_t index, const grasp_frame *body, tb_vec3 n)
{
    const tb_model_shape *shape = &model->shapes[index];
    const grasp_frame own = grasp_frame_make(shape->position, shape->orientation);
    const grasp_frame frame = grasp_frame_mul(body, &own);
    return tb_v3_dot(n, frame.position) +
           own_support(model, shape, tb_q_rotate(tb_q_conjugate(frame.orientation), n));
}

double grasp_reach(const tb_model *model, int32_t index, tb_vec3 from)
{
    const tb_model_shape *shape = &model->shapes[index];
    const grasp_frame own = grasp_frame_make(shape->position, shape->orientation);
    const tb_vec3 p = grasp_frame_in(&own, from);
    int32_t count;
    const double *vertices = vertices_of(model, shape, &count);
    double largest = 0;
    for (int32_t i = 0; i < count; i++)
        largest = fmax(largest, tb_v3_length(tb_v3_sub(tb_v3_load(vertices + 3 * (size_t)i), p)));
    if (vertices != NULL) return largest;

    /* the farthest point is the support along the direction that leads to it: iterate from the
     * eight octants; the distance never decreases */
    for (int corner = 0; corner < 8; corner++) {
        tb_vec3 n = tb_v3(corner & 1 ? 1 : -1, corner & 2 ? 1 : -1, corner & 4 ? 1 : -1);
        for (int round = 0; round < 50; round++) {
            const double *s = shape->size;
            tb_vec3 x = tb_v3(0, 0, 0);
            const double flat = hypot(n.x, n.y), length = tb_v3_length(n);
            const tb_vec3 scaled = tb_v3(s[0] * n.x, s[1] * n.y, s[2] * n.z);
            switch (shape->type) {
            case TB_SHAPE_SPHERE: x = tb_v3_scale(n, s[0] / length); break;
            case TB_SHAPE_CAPSULE:
                x = tb_v3_scale(n, s[0] / length);
                x.z += copysign(s[1], n.z);
                break;
            case TB_SHAPE_CYLINDER:
                if (flat > 0) x = tb_v3(s[0] * n.x / flat, s[0] * n.y / flat, 0);
                x.z = copysign(s[1], n.z);
                break;
            case TB_SHAPE_BOX:
                x = tb_v3(copysign(s[0], n.x), copysign(s[1], n.y), copysign(s[2], n.z));
                break;
            case TB_SHAPE_ELLIPSOID:
                x = tb_v3_scale(tb_v3(s[0] * scaled.x, s[1] * scaled.y, s[2] * scaled.z),
                                1 / tb_v3_length(scaled));
                break;
            default: return 0;
            }
            const tb_vec3 way = tb_v3_sub(x, p);
            const double distance = tb_v3_length(way);
            if (!(distance > largest * (1 + 1e-12)) && round > 0) break;
            largest = fmax(largest, distance);
            if (!(distance > 0)) break;
            n = way;
        }
    }
    return largest;
}
