/* MJCF tendons: fixed ones, which are linear combinations of joint coordinates, and parts shared
 * with spatial ones (mjcf_spatial.c). */
#include <stdlib.h>
#include <string.h>

#include "model/import/mjcf/mjcf.h"

static const mjcf_words TENDON = {
    .used = "name class limited range stiffness damping frictionloss springlength actuatorfrcrange "
            "actuatorfrclimited armature",
    .silent = "group user width material rgba",
    .soft = "margin solreflimit solimplimit solreffriction solimpfriction",
    .zero = "springyield",
};

static const mjcf_words TERM = {.used = "joint coef"};

static tb_status read_coefficient(mjcf *m, const mjcf_element *element, const char *name,
                                  double *coefficient, double polynomial[2])
{
    double values[3] = {0};
    MJCF_TRY(mjcf_numbers(m, element, name, 1, 3, values, NULL));
    *coefficient = values[0];
    memcpy(polynomial, values + 1, 2 * sizeof *polynomial);
    return TB_OK;
}

/* Joints and coefficients, owned by the waiting tendon. */
static tb_status read_terms(mjcf *m, const xmlNode *node, mjcf_tendon *tendon)
{
    int32_t count = 0;
    for (const xmlNode *c = tb_xml_first(node); c != NULL; c = tb_xml_next(c)) count++;
    if (count == 0)
        return tb_xml_fail(m->error, TB_INVALID_ARGUMENT, node, NULL, "a tendon without joints");
    double *coefficients = calloc((size_t)count, sizeof *coefficients);
    tendon->def.coefficients = coefficients;
    tendon->joint_indices = calloc((size_t)count, sizeof *tendon->joint_indices);
    if (coefficients == NULL || tendon->joint_indices == NULL)
        return tb_fail_memory(m->error, (size_t)count, "a tendon");
    tendon->def.number_of_joints = count;
    int32_t i = 0;
    for (const xmlNode *c = tb_xml_first(node); c != NULL; c = tb_xml_next(c), i++) {
        const char *name = NULL, *text = NULL;
        if (!tb_xml_is(c, "joint"))
            return tb_xml_fail(m->error, TB_INVALID_ARGUMENT, c, NULL,
                               "unknown element in 'fixed'");
        MJCF_TRY(mjcf_check_attributes(m, c, &TERM));
        MJCF_TRY(tb_xml_require(c, "joint", &text, m->error));
        MJCF_TRY(tb_xml_require(c, "coef", &text, m->error));
        MJCF_TRY(mjcf_reference(m, c, "joint", &name));
        MJCF_TRY(tb_xml_number(c, "coef", &coefficients[i], m->error));
        const int32_t joint = mjcf_find_joint(m, name);
        if (joint < 0)
            return tb_xml_fail(m->error, TB_NOT_FOUND, c, "joint", "there is no joint '%.100s'",
                               name);
        const tb_joint_type type = m->joints[joint].def.type;
        if (type != TB_JOINT_HINGE && type != TB_JOINT_SLIDE)
            return tb_xml_fail(m->error, TB_INVALID_ARGUMENT, c, "joint",
                               "joint '%.100s' is neither hinge nor slide", name);
        tendon->joint_indices[i] = joint;
    }
    return TB_OK;
}

/* The rest length: as given, else that of the joints' own spring references. */
static tb_status read_spring_length(mjcf *m, const mjcf_element *element, mjcf_tendon *tendon)
{
    double length[2] = {-1, -1};
    int32_t count = 0;
    MJCF_TRY(mjcf_numbers(m, element, "springlength", 1, 2, length, &count));
    if (count == 1) length[1] = length[0];
    const bool by_joints = length[0] == -1 && length[1] == -1;
    tendon->rests_by_joints = by_joints && tendon->def.number_of_points > 0;
    if (by_joints) {
        double sum = 0;
        for (int32_t i = 0; i < tendon->def.number_of_joints; i++)
            sum += tendon->def.coefficients[i] *
                   m->joints[tendon->joint_indices[i]].def.spring_reference;
        length[0] = length[1] = sum;
    }
    if (length[0] > length[1])
        return tb_xml_fail(m->error, TB_INVALID_ARGUMENT, element->node, "springlength",
                           "springlength is %g to %g: the first is larger", length[0], length[1]);
    tendon->def.spring_lower = length[0];
    tendon->def.spring_upper = length[1];
    return TB_OK;
}

static tb_status read_values(mjcf *m, const xmlNode *node, mjcf_tendon *tendon)
{
    mjcf_element element;
    double range[2] = {0}, force[2] = {0};
    tb_tendon_def *def = &tendon->def;
    MJCF_TRY(mjcf_open(m, node, "tendon", m->main_class, &TENDON, &element));
    MJCF_TRY(mjcf_limits(m, &element, "limited", "range", &def->limited, range));
    def->lower = range[0];
    def->upper = range[1];
    MJCF_TRY(mjcf_limits(m, &element, "actuatorfrclimited", "actuatorfrcrange",
                         &def->actuator_force_limited, force));
    def->actuator_force_lower = force[0];
    def->actuator_force_upper = force[1];
    MJCF_TRY(
        read_coefficient(m, &element, "stiffness", &def->stiffness, def->stiffness_polynomial));
    MJCF_TRY(read_coefficient(m, &element, "damping", &def->damping, def->damping_polynomial));
    MJCF_TRY(mjcf_number(m, &element, "frictionloss", &def->dry_friction));
    MJCF_TRY(mjcf_number(m, &element, "armature", &def->armature));
    MJCF_TRY(read_spring_length(m, &element, tendon));
    return mjcf_name(m, node, &def->name);
}

static tb_status read_tendon(mjcf *m, const xmlNode *node)
{
    const bool spatial = tb_xml_is(node, "spatial");
    if (!spatial && !tb_xml_is(node, "fixed"))
        return tb_xml_fail(m->error, TB_INVALID_ARGUMENT, node, NULL,
                           "unknown element in 'tendon'");
    /* entered first, so that the context frees its memory */
    MJCF_TRY(mjcf_grow(m, (void **)&m->tendons, m->number_of_tendons, &m->tendon_capacity,
                       sizeof *m->tendons));
    mjcf_tendon *tendon = &m->tendons[m->number_of_tendons++];
    *tendon = (mjcf_tendon){.node = node};
    tendon->def = tb_tendon_defaults();
    MJCF_TRY(spatial ? mjcf_read_path(m, node, tendon) : read_terms(m, node, tendon));
    MJCF_TRY(read_values(m, node, tendon));
    const char *name = tendon->def.name;
    if (name == NULL) return TB_OK;
    if (tb_names_find(&m->names, TB_HANDLE_TENDON, name) >= 0)
        return tb_xml_fail(m->error, TB_INVALID_ARGUMENT, node, "name",
                           "the name '%.100s' is used twice", name);
    if (!tb_names_insert(&m->names, TB_HANDLE_TENDON, name, m->number_of_tendons - 1))
        return tb_fail_memory(m->error, strlen(name), "a name");
    return TB_OK;
}

tb_status mjcf_read_tendons(mjcf *m)
{
    static const mjcf_reference_kind REFERENCES[] = {{"joint", TB_HANDLE_JOINT},
                                                     {"site", TB_HANDLE_SITE},
                                                     {"sidesite", TB_HANDLE_SITE},
                                                     {"geom", TB_HANDLE_SHAPE},
                                                     {NULL, TB_HANDLE_NONE}};
    return mjcf_for_section(m, "tendon", REFERENCES, read_tendon);
}

tb_status mjcf_add_tendons(mjcf *m)
{
    MJCF_TRY(mjcf_rest_tendons(m));
    for (int32_t i = 0; i < m->number_of_tendons; i++) {
        mjcf_tendon *tendon = &m->tendons[i];
        tb_error refusal = {0};
        tb_tendon_def def = tendon->def;
        const size_t count = (size_t)def.number_of_joints;
        tb_handle *joints = calloc(count + 1, sizeof *joints);
        if (joints == NULL) return tb_fail_memory(m->error, count, "a tendon");
        for (size_t k = 0; k < count; k++) joints[k] = m->joints[tendon->joint_indices[k]].handle;
        def.joints = joints;
        def.points = tendon->points;
        if (m->no_spring) {
            def.stiffness = 0;
            memset(def.stiffness_polynomial, 0, sizeof def.stiffness_polynomial);
        }
        if (m->no_damper) {
            def.damping = 0;
            memset(def.damping_polynomial, 0, sizeof def.damping_polynomial);
        }
        if (m->no_dry_friction) def.dry_friction = 0;
        if (m->no_limit) def.limited = false;
        const tb_status status = tb_scene_add_tendon(m->scene, &def, &tendon->handle, &refusal);
        free(joints);
        if (status != TB_OK) return mjcf_refused(m, tendon->node, &refusal);
    }
    return TB_OK;
}
