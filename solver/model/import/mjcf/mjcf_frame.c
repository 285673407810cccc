/* MJCF's ways to say where a frame is: position with one of five orientations, or two end points.
 *
 * Angles are in degrees unless the compiler says radians. In an Euler sequence lower-case letters
 * turn about the frame's own axes, upper-case ones about the parent's, and the two may be mixed. */
#include <string.h>

#include "model/import/mjcf/mjcf.h"

static const double DEGREE = 3.14159265358979323846 / 180;
static const double SMALLEST_DIRECTION = 1e-10;

mjcf_pose mjcf_pose_identity(void)
{
    const mjcf_pose pose = {tb_v3(0, 0, 0), tb_q_identity()};
    return pose;
}

mjcf_pose mjcf_pose_mul(const mjcf_pose *a, const mjcf_pose *b)
{
    const mjcf_pose pose = {tb_v3_add(a->position, tb_q_rotate(a->orientation, b->position)),
                            tb_q_normalize(tb_q_mul(a->orientation, b->orientation))};
    return pose;
}

static tb_quaternion about(tb_vec3 unit_axis, double angle)
{
    const double s = sin(angle / 2);
    return tb_q(cos(angle / 2), s * unit_axis.x, s * unit_axis.y, s * unit_axis.z);
}

/* The rotation that takes the z axis to `z`, the shortest. */
static tb_quaternion from_z(tb_vec3 z)
{
    z = tb_v3_normalize(z, tb_v3(0, 0, 1));
    const tb_vec3 cross = tb_v3_cross(tb_v3(0, 0, 1), z);
    const double sine = tb_v3_length(cross);
    const tb_vec3 axis = sine < SMALLEST_DIRECTION ? tb_v3(1, 0, 0) : tb_v3_scale(cross, 1 / sine);
    return about(axis, atan2(sine, z.z));
}

tb_quaternion mjcf_from_euler(const mjcf *m, const double angles[3])
{
    tb_quaternion q = tb_q_identity();
    for (int i = 0; i < 3; i++) {
        const char letter = m->euler_sequence[i];
        const bool moving = letter >= 'a';
        const int axis = (moving ? letter - 'x' : letter - 'X');
        const tb_quaternion turn = about(tb_v3(axis == 0, axis == 1, axis == 2),
                                         m->degrees ? angles[i] * DEGREE : angles[i]);
        q = moving ? tb_q_mul(q, turn) : tb_q_mul(turn, q);
    }
    return tb_q_normalize(q);
}

static tb_status too_small(mjcf *m, const xmlNode *node, const char *name)
{
    return tb_xml_fail(m->error, TB_INVALID_ARGUMENT, node, name, "%s has no direction", name);
}

static tb_status from_axes(mjcf *m, const xmlNode *node, const double v[6], tb_quaternion *q)
{
    if (tb_v3_length(tb_v3_load(v)) < SMALLEST_DIRECTION) return too_small(m, node, "xyaxes");
    const tb_vec3 x = tb_v3_normalize(tb_v3_load(v), tb_v3(1, 0, 0));
    const tb_vec3 given = tb_v3_load(v + 3);
    const tb_vec3 y = tb_v3_add_scaled(given, x, -tb_v3_dot(given, x));
    if (tb_v3_length(y) < SMALLEST_DIRECTION) return too_small(m, node, "xyaxes");
    const tb_vec3 unit = tb_v3_normalize(y, tb_v3(0, 1, 0));
    const tb_mat33 r = tb_m33_from_columns(x, unit, tb_v3_cross(x, unit));
    *q = tb_q_from_matrix(&r);
    return TB_OK;
}

/* The orientation that one node gives; *given is false where there is none. */
static tb_status orientation_of(mjcf *m, const xmlNode *node, tb_quaternion *q, bool *given)
{
    double quat[4], axisangle[4], xyaxes[6], zaxis[3], euler[3];
    int32_t n[5];
    MJCF_TRY(tb_xml_numbers(node, "quat", 4, 4, quat, &n[0], m->error));
    MJCF_TRY(tb_xml_numbers(node, "axisangle", 4, 4, axisangle, &n[1], m->error));
    MJCF_TRY(tb_xml_numbers(node, "xyaxes", 6, 6, xyaxes, &n[2], m->error));
    MJCF_TRY(tb_xml_numbers(node, "zaxis", 3, 3, zaxis, &n[3], m->error));
    MJCF_TRY(tb_xml_numbers(node, "euler", 3, 3, euler, &n[4], m->error));
    int specifiers = 0;
    for (int i = 0; i < 5; i++) specifiers += n[i] > 0;
    *given = specifiers > 0;
    if (specifiers > 1)
        return tb_xml_fail(m->error, TB_INVALID_ARGUMENT, node, NULL,
                           "more than one of quat, axisangle, xyaxes, zaxis and euler");
    if (n[0] > 0) {
        const tb_quaternion raw = tb_q_load(quat);
        const double length2 = raw.w * raw.w + raw.x * raw.x + raw.y * raw.y + raw.z * raw.z;
        if (!(length2 > 0) || !isfinite(length2))
            return tb_xml_fail(m->error, TB_INVALID_ARGUMENT, node, "quat",
                               "quat is zero or too large");
        *q = tb_q_normalize(raw);
    } else if (n[1] > 0) {
        if (tb_v3_length(tb_v3_load(axisangle)) < SMALLEST_DIRECTION)
            return too_small(m, node, "axisangle");
        const tb_vec3 axis = tb_v3_normalize(tb_v3_load(axisangle), tb_v3(0, 0, 1));
        *q = about(axis, m->degrees ? axisangle[3] * DEGREE : axisangle[3]);
    } else if (n[2] > 0) {
        MJCF_TRY(from_axes(m, node, xyaxes, q));
    } else if (n[3] > 0) {
        if (tb_v3_length(tb_v3_load(zaxis)) < SMALLEST_DIRECTION)
            return too_small(m, node, "zaxis");
        *q = from_z(tb_v3_load(zaxis));
    } else if (n[4] > 0) {
        *q = mjcf_from_euler(m, euler);
    }
    return TB_OK;
}

tb_status mjcf_orientation(mjcf *m, const mjcf_element *element, tb_quaternion *orientation,
                           bool *given)
{
    bool any = false;
    *orientation = tb_q_identity();
    for (int32_t i = 0; i < element->number_of_sources; i++) {
        bool here = false;
        MJCF_TRY(orientation_of(m, element->sources[i], orientation, &here));
        any = any || here;
    }
    if (given != NULL) *given = any;
    return TB_OK;
}

tb_status mjcf_read_pose(mjcf *m, const mjcf_element *element, mjcf_pose *pose)
{
    double position[3] = {0};
    MJCF_TRY(mjcf_numbers(m, element, "pos", 3, 3, position, NULL));
    pose->position = tb_v3_load(position);
    return mjcf_orientation(m, element, &pose->orientation, NULL);
}

tb_status mjcf_fromto(mjcf *m, const mjcf_element *element, mjcf_pose *pose, double *half_length,
                      bool *given)
{
    double ends[6] = {0};
    int32_t count = 0;
    MJCF_TRY(mjcf_numbers(m, element, "fromto", 6, 6, ends, &count));
    *given = count > 0;
    if (!*given) return TB_OK;
    if (tb_v3_length2(pose->position) > 0)
        MJCF_TRY(mjcf_note_past(m, element->node, "pos", "has no effect: fromto gives the place"));
    const tb_vec3 from = tb_v3_load(ends), to = tb_v3_load(ends + 3);
    const tb_vec3 axis = tb_v3_sub(from, to);
    const double length = tb_v3_length(axis);
    if (!(length > SMALLEST_DIRECTION) || !isfinite(length))
        return tb_xml_fail(m->error, TB_INVALID_ARGUMENT, element->node, "fromto",
                           "the points of fromto coincide or are too far apart");
    pose->position = tb_v3_scale(tb_v3_add(from, to), 0.5);
    pose->orientation = from_z(axis);
    *half_length = length / 2;
    return TB_OK;
}
