/* MJCF joints. They wait in the context until the whole document has been read: an actuator's
 * armature and damping belong to its joint, limits of a joint's actuator force belong to its
 * actuator, and a springdamper needs the mass matrix. */
#include <stdlib.h>
#include <string.h>

#include "model/import/mjcf/mjcf.h"

static const double DEGREE = 3.14159265358979323846 / 180;

static const mjcf_words JOINT = {
    .used = "name class type pos axis range limited actuatorfrcrange actuatorfrclimited stiffness "
            "damping "
            "springdamper springref ref armature frictionloss actuatorgravcomp",
    .silent = "group user",
    .soft = "margin solreflimit solimplimit solreffriction solimpfriction",
    .zero = "springyield",
};

static const mjcf_words FREEJOINT = {.used = "name align", .silent = "group"};

static const tb_joint_type TYPES[] = {TB_JOINT_FREE, TB_JOINT_BALL, TB_JOINT_SLIDE, TB_JOINT_HINGE};

/* A coefficient, and the higher parts of the polynomial that it may begin. */
static tb_status read_coefficient(mjcf *m, const mjcf_element *element, const char *name,
                                  double *coefficient, double polynomial[2])
{
    double all[3] = {*coefficient, polynomial[0], polynomial[1]};
    MJCF_TRY(mjcf_numbers(m, element, name, 1, 3, all, NULL));
    *coefficient = all[0];
    memcpy(polynomial, all + 1, 2 * sizeof *polynomial);
    return TB_OK;
}

static tb_status read_spring(mjcf *m, const mjcf_element *element, mjcf_joint *joint)
{
    double pair[2] = {0};
    int32_t count = 0;
    MJCF_TRY(read_coefficient(m, element, "stiffness", &joint->def.stiffness,
                              joint->def.stiffness_polynomial));
    MJCF_TRY(read_coefficient(m, element, "damping", &joint->def.damping,
                              joint->def.damping_polynomial));
    MJCF_TRY(mjcf_numbers(m, element, "springdamper", 2, 2, pair, &count));
    if (count == 0 || (pair[0] == 0 && pair[1] == 0)) return TB_OK;
    if (!(pair[0] > 0) || !(pair[1] > 0))
        return tb_xml_fail(m->error, TB_INVALID_ARGUMENT, element->node, "springdamper",
                           "springdamper is %g %g, not two positive numbers", pair[0], pair[1]);
    joint->time_constant = pair[0];
    joint->damping_ratio = pair[1];
    m->needs_inertia = true;
    return TB_OK;
}

static tb_status read_range(mjcf *m, const mjcf_element *element, mjcf_joint *joint)
{
    double range[2] = {0};
    tb_joint_def *def = &joint->def;
    if (def->type == TB_JOINT_FREE) return TB_OK;
    const char *limited = mjcf_text(element, "limited"), *given = mjcf_text(element, "range");
    if (def->type == TB_JOINT_BALL && limited != NULL && strcmp(limited, "true") == 0 &&
        given == NULL)
        def->limited = true; /* to no turn at all: MuJoCo's range is 0 0 */
    else
        MJCF_TRY(mjcf_limits(m, element, "limited", "range", &def->limited, range));
    if (def->limited && def->type == TB_JOINT_BALL && range[0] != 0)
        return tb_xml_fail(m->error, TB_INVALID_ARGUMENT, element->node, "range",
                           "range of a ball joint begins at %g, not at 0", range[0]);
    const double unit = m->degrees && def->type != TB_JOINT_SLIDE ? DEGREE : 1;
    def->lower = range[0] * unit;
    def->upper = range[1] * unit;
    return TB_OK;
}

static tb_status read_force_range(mjcf *m, const mjcf_element *element, mjcf_joint *joint)
{
    double range[2] = {0};
    bool limited = false;
    MJCF_TRY(mjcf_limits(m, element, "actuatorfrclimited", "actuatorfrcrange", &limited, range));
    if (joint->def.type != TB_JOINT_HINGE && joint->def.type != TB_JOINT_SLIDE) return TB_OK;
    joint->def.actuator_force_limited = limited;
    joint->def.actuator_force_lower = range[0];
    joint->def.actuator_force_upper = range[1];
    return TB_OK;
}

static tb_status read_align(mjcf *m, const mjcf_element *element, mjcf_joint *joint)
{
    enum { NO, YES, AUTO };
    int32_t align = AUTO;
    MJCF_TRY(mjcf_choice(m, element, "align", "false true auto", &align));
    joint->aligned =
        joint->def.type == TB_JOINT_FREE && (align == YES || (align == AUTO && m->align_free));
    return TB_OK;
}

static tb_status enter(mjcf *m, const xmlNode *node, mjcf_joint *joint)
{
    MJCF_TRY(mjcf_name(m, node, &joint->def.name));
    const char *name = joint->def.name;
    if (name != NULL) {
        if (mjcf_find_joint(m, name) >= 0)
            return tb_xml_fail(m->error, TB_INVALID_ARGUMENT, node, "name",
                               "the name '%.100s' is used twice", name);
        if (!tb_names_insert(&m->names, TB_HANDLE_JOINT, name, m->number_of_joints))
            return tb_fail_memory(m->error, strlen(name), "a name");
    }
    MJCF_TRY(mjcf_grow(m, (void **)&m->joints, m->number_of_joints, &m->joint_capacity,
                       sizeof *m->joints));
    m->joints[m->number_of_joints++] = *joint;
    return TB_OK;
}

tb_status mjcf_read_joint(mjcf *m, const xmlNode *node, int32_t childclass, const mjcf_pose *frame,
                          tb_handle body, const mjcf_pose *world)
{
    mjcf_joint joint = {.node = node, .body_order = (int32_t)body.index};
    mjcf_element element;
    int32_t type = 3;
    const bool free_element = tb_xml_is(node, "freejoint");
    joint.def = tb_joint_defaults();
    joint.def.body = body;
    tb_v3_store(joint.reference_pose, world->position);
    tb_q_store(joint.reference_pose + 3, world->orientation);
    MJCF_TRY(tb_xml_check_children(node, "", m->error));
    if (body.index == 0)
        return tb_xml_fail(m->error, TB_INVALID_ARGUMENT, node, NULL, "the world has no joints");
    if (free_element) {
        MJCF_TRY(mjcf_open(m, node, NULL, -1, &FREEJOINT, &element));
        joint.def.type = TB_JOINT_FREE;
        MJCF_TRY(read_align(m, &element, &joint));
        return enter(m, node, &joint);
    }

    MJCF_TRY(mjcf_open(m, node, "joint", childclass, &JOINT, &element));
    MJCF_TRY(mjcf_choice(m, &element, "type", "free ball slide hinge", &type));
    joint.def.type = TYPES[type];
    joint.aligned = joint.def.type == TB_JOINT_FREE && m->align_free;
    double position[3] = {0}, axis[3] = {0, 0, 1};
    MJCF_TRY(mjcf_numbers(m, &element, "pos", 3, 3, position, NULL));
    MJCF_TRY(mjcf_numbers(m, &element, "axis", 3, 3, axis, NULL));
    if (joint.def.type != TB_JOINT_FREE) {
        const tb_vec3 local = tb_q_rotate(frame->orientation, tb_v3_load(position));
        tb_v3_store(joint.def.position, tb_v3_add(frame->position, local));
    }
    if (joint.def.type == TB_JOINT_HINGE || joint.def.type == TB_JOINT_SLIDE) {
        const tb_vec3 given = tb_v3_load(axis);
        if (!(tb_v3_length(given) > 1e-14))
            return tb_xml_fail(m->error, TB_INVALID_ARGUMENT, node, "axis",
                               "axis has no direction");
        const tb_vec3 unit = tb_v3_normalize(given, tb_v3(0, 0, 1));
        tb_v3_store(joint.def.axis, tb_q_rotate(frame->orientation, unit));
        const double unit_of_angle = m->degrees && joint.def.type == TB_JOINT_HINGE ? DEGREE : 1;
        MJCF_TRY(mjcf_number(m, &element, "ref", &joint.def.reference));
        MJCF_TRY(mjcf_number(m, &element, "springref", &joint.def.spring_reference));
        joint.def.reference *= unit_of_angle;
        joint.def.spring_reference *= unit_of_angle;
    }
    MJCF_TRY(mjcf_number(m, &element, "armature", &joint.def.armature));
    MJCF_TRY(mjcf_number(m, &element, "frictionloss", &joint.def.dry_friction));
    MJCF_TRY(read_spring(m, &element, &joint));
    MJCF_TRY(read_range(m, &element, &joint));
    MJCF_TRY(read_force_range(m, &element, &joint));
    MJCF_TRY(mjcf_bool(m, &element, "actuatorgravcomp", &joint.def.actuators_compensate_gravity));
    return enter(m, node, &joint);
}

int32_t mjcf_find_joint(const mjcf *m, const char *name)
{
    return tb_names_find(&m->names, TB_HANDLE_JOINT, name);
}

/* Applies the option's flags and the damping ratios to a joint. */
static void finish(const mjcf *m, int32_t index, tb_joint_def *def)
{
    const mjcf_joint *joint = &m->joints[index];
    if (joint->time_constant > 0 && m->joint_inertia != NULL) {
        const double t = joint->time_constant, r = joint->damping_ratio;
        def->stiffness = m->joint_inertia[index] / fmax(1e-15, t * t * r * r);
        def->damping = 2 * m->joint_inertia[index] / fmax(1e-15, t);
    }
    if (m->no_spring) {
        def->stiffness = 0;
        memset(def->stiffness_polynomial, 0, sizeof def->stiffness_polynomial);
    }
    if (m->no_damper) {
        def->damping = 0;
        memset(def->damping_polynomial, 0, sizeof def->damping_polynomial);
    }
    if (m->no_dry_friction) def->dry_friction = 0;
    if (m->no_limit) def->limited = false;
}

tb_status mjcf_add_joints(mjcf *m)
{
    for (int32_t i = 0; i < m->number_of_joints; i++) {
        tb_joint_def def = m->joints[i].def;
        tb_error refusal = {0};
        finish(m, i, &def);
        if (tb_scene_add_joint(m->scene, &def, &m->joints[i].handle, &refusal) != TB_OK)
            return mjcf_refused(m, m->joints[i].node, &refusal);
    }
    return TB_OK;
}
