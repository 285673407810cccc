/* MJCF actuators: what they act on, their limits, and what they add to joints and tendons. Gain,
 * bias and activation are read in mjcf_gains.c; a damping ratio, kept as a positive bias[2],
 * becomes damping once the reflected inertia is known.
 *
 * What an actuator adds to its joint (armature, damping times the square of the gear) goes there; a
 * limit of the joint's total actuator force becomes the actuator's, where it is the only one. */
#include <stdlib.h>
#include <string.h>

#include "model/mjcf.h"

#define COMMON                                                                                     \
    "name class group joint jointinparent tendon gear ctrllimited ctrlrange forcelimited "         \
    "forcerange "                                                                                  \
    "damping armature "
#define TRANSMISSIONS "site refsite body cranksite slidersite cranklength "
#define SILENT        "user lengthrange nsample interp input"

static const mjcf_words WORDS[] = {
    {.used =
         COMMON "actlimited actrange dyntype gaintype biastype dynprm gainprm biasprm inheritrange "
                "actdim actearly " TRANSMISSIONS,
     .silent = SILENT " velrange ffrange",
     .zero = "delay"},
    {.used = COMMON TRANSMISSIONS, .silent = SILENT, .zero = "delay"},
    {.used = COMMON "kp kv dampratio timeconst inheritrange " TRANSMISSIONS,
     .silent = SILENT,
     .zero = "delay"},
    {.used = COMMON "kv " TRANSMISSIONS, .silent = SILENT, .zero = "delay"},
    {.used = COMMON "actlimited actrange kp kv dampratio inheritrange " TRANSMISSIONS,
     .silent = SILENT,
     .zero = "delay"},
    {.used = COMMON "kv " TRANSMISSIONS, .silent = SILENT, .zero = "delay"},
    {.used = COMMON "area diameter bias timeconst " TRANSMISSIONS,
     .silent = SILENT,
     .zero = "delay"},
};

static tb_status check_words(mjcf *m, const mjcf_element *element)
{
    for (int32_t i = 0; i < element->number_of_sources; i++) {
        const int type = mjcf_actuator_type(element->sources[i]);
        if (type >= 0 && type <= MJCF_LAST_SUPPORTED)
            MJCF_TRY(mjcf_check_attributes(m, element->sources[i], &WORDS[type]));
    }
    return TB_OK;
}

/* ---- transmission ---- */

static tb_status read_target(mjcf *m, const mjcf_element *element, mjcf_actuator *actuator)
{
    const xmlNode *node = element->node;
    static const char *const OTHERS[] = {"site", "body", "cranksite", "slidersite", "refsite"};
    for (size_t i = 0; i < sizeof OTHERS / sizeof OTHERS[0]; i++)
        if (mjcf_text(element, OTHERS[i]) != NULL)
            return tb_xml_fail(m->error, TB_UNSUPPORTED, node, OTHERS[i],
                               "actuators on a %s are not supported: only on joints and tendons",
                               OTHERS[i]);
    static const char *const NAMES[] = {"joint", "jointinparent", "tendon"};
    const char *attribute = NULL;
    for (int i = 0; i < 3; i++) {
        if (tb_xml_attribute(node, NAMES[i]) == NULL) continue;
        if (attribute != NULL)
            return tb_xml_fail(m->error, TB_INVALID_ARGUMENT, node, NAMES[i],
                               "both %s and %s are given", attribute, NAMES[i]);
        attribute = NAMES[i];
    }
    if (attribute == NULL)
        return tb_xml_fail(m->error, TB_INVALID_ARGUMENT, node, "joint",
                           "neither a joint nor a tendon is given");
    const char *name = NULL;
    MJCF_TRY(mjcf_reference(m, node, attribute, &name));
    actuator->joint = actuator->tendon = -1;
    if (strcmp(attribute, "tendon") == 0) {
        actuator->tendon = tb_names_find(&m->names, TB_HANDLE_TENDON, name);
        if (actuator->tendon < 0)
            return tb_xml_fail(m->error, TB_NOT_FOUND, node, "tendon",
                               "there is no tendon '%.100s'", name);
        return TB_OK;
    }
    actuator->joint = mjcf_find_joint(m, name);
    if (actuator->joint < 0)
        return tb_xml_fail(m->error, TB_NOT_FOUND, node, attribute, "there is no joint '%.100s'",
                           name);
    const tb_joint_type type = m->joints[actuator->joint].def.type;
    const double *turn = actuator->def.gear + (type == TB_JOINT_FREE ? 3 : 0);
    if (strcmp(attribute, "jointinparent") == 0 &&
        (type == TB_JOINT_BALL || type == TB_JOINT_FREE) &&
        (turn[0] != 0 || turn[1] != 0 || turn[2] != 0))
        return tb_xml_fail(
            m->error, TB_UNSUPPORTED, node, attribute,
            "torques of ball and free joints about the parent's axes are not supported");
    return TB_OK;
}

/* inheritrange: the target's range about its middle */
static tb_status inherit(mjcf *m, const mjcf_element *element, mjcf_actuator *actuator,
                         double scale, bool integrator)
{
    const xmlNode *node = element->node;
    const char *own = integrator ? "actrange" : "ctrlrange";
    tb_actuator_def *def = &actuator->def;
    if (tb_xml_attribute(node, own) != NULL) {
        if (tb_xml_attribute(node, "inheritrange") == NULL) return TB_OK;
        return tb_xml_fail(m->error, TB_INVALID_ARGUMENT, node, "inheritrange",
                           "both %s and inheritrange are given", own);
    }
    double lower, upper;
    bool limited;
    if (actuator->joint >= 0) {
        const tb_joint_def *joint = &m->joints[actuator->joint].def;
        limited = joint->limited, lower = joint->lower, upper = joint->upper;
    } else {
        const tb_tendon_def *tendon = &m->tendons[actuator->tendon].def;
        limited = tendon->limited, lower = tendon->lower, upper = tendon->upper;
    }
    if (!limited)
        return tb_xml_fail(m->error, TB_INVALID_ARGUMENT, node, "inheritrange",
                           "inheritrange needs a range of the joint or tendon");
    const double middle = 0.5 * (lower + upper), half = 0.5 * (upper - lower) * scale;
    if (integrator) {
        def->activation_limited = true;
        def->activation_lower = middle - half;
        def->activation_upper = middle + half;
    } else {
        def->control_limited = true;
        def->control_lower = middle - half;
        def->control_upper = middle + half;
    }
    return TB_OK;
}

static tb_status read_ranges(mjcf *m, const mjcf_element *element, const mjcf_general *g,
                             mjcf_actuator *actuator)
{
    tb_actuator_def *def = &actuator->def;
    double control[2] = {0}, force[2] = {0}, activation[2] = {0};
    MJCF_TRY(mjcf_limits(m, element, "ctrllimited", "ctrlrange", &def->control_limited, control));
    MJCF_TRY(mjcf_limits(m, element, "forcelimited", "forcerange", &def->force_limited, force));
    MJCF_TRY(
        mjcf_limits(m, element, "actlimited", "actrange", &def->activation_limited, activation));
    def->control_lower = control[0], def->control_upper = control[1];
    def->force_lower = force[0], def->force_upper = force[1];
    def->activation_lower = activation[0], def->activation_upper = activation[1];
    if (g->type == MJCF_DAMPER) {
        if (!(control[0] >= 0) || !(control[0] < control[1]))
            return tb_xml_fail(m->error, TB_INVALID_ARGUMENT, element->node, "ctrlrange",
                               "a damper's ctrlrange is %g to %g, not 0 or more and rising",
                               control[0], control[1]);
        def->control_limited = true;
    }
    bool early = false;
    MJCF_TRY(mjcf_bool(m, element, "actearly", &early));
    if (early && g->dynamics_type != MJCF_DYNAMICS_NONE)
        return tb_xml_fail(m->error, TB_UNSUPPORTED, element->node, "actearly",
                           "actearly is not supported: a force follows the activation as it was");
    if (g->inherit_range > 0)
        MJCF_TRY(inherit(m, element, actuator, g->inherit_range,
                         g->dynamics_type == MJCF_DYNAMICS_INTEGRATOR));
    if (m->no_control_clamp) def->control_limited = false;
    return TB_OK;
}

/* ---- forces ---- */

static tb_status translate(mjcf *m, const xmlNode *node, const mjcf_general *g,
                           mjcf_actuator *actuator)
{
    tb_actuator_def *def = &actuator->def;
    if (g->gain_type > MJCF_GAIN_AFFINE)
        return tb_xml_fail(m->error, TB_UNSUPPORTED, node, "gaintype",
                           "gaintype is neither fixed nor affine");
    if (g->bias_type > MJCF_BIAS_AFFINE)
        return tb_xml_fail(m->error, TB_UNSUPPORTED, node, "biastype",
                           "biastype is neither none nor affine");
    if (g->dynamics_type > MJCF_DYNAMICS_FILTER_EXACT)
        return tb_xml_fail(m->error, TB_UNSUPPORTED, node, "dyntype",
                           "dyntype is none of none, integrator, filter, filterexact");
    for (int i = 0; i < 3; i++) {
        def->gain[i] = i == 0 || g->gain_type == MJCF_GAIN_AFFINE ? g->gain[i] : 0;
        def->bias[i] = g->bias_type == MJCF_BIAS_AFFINE ? g->bias[i] : 0;
    }
    static const tb_activation ACTIVATIONS[] = {TB_ACTIVATION_NONE, TB_ACTIVATION_INTEGRATOR,
                                                TB_ACTIVATION_FILTER, TB_ACTIVATION_FILTER};
    def->activation = ACTIVATIONS[g->dynamics_type];
    if (def->activation == TB_ACTIVATION_FILTER) {
        def->time_constant = g->dynamics[0];
        if (!(def->time_constant > 0))
            return tb_xml_fail(m->error, TB_INVALID_ARGUMENT, node, "dynprm",
                               "the filter's time constant is %g s, not positive",
                               def->time_constant);
    }
    /* a position servo with a positive bias[2] means a damping ratio */
    if (g->gain_type == MJCF_GAIN_FIXED && g->bias_type == MJCF_BIAS_AFFINE &&
        g->gain[0] == -g->bias[1] && g->bias[2] > 0) {
        actuator->damping_ratio = g->bias[2];
        def->bias[2] = 0;
        m->needs_inertia = true;
        if (g->gain[0] < 0)
            return tb_xml_fail(m->error, TB_INVALID_ARGUMENT, node, "kp",
                               "kp is negative beside a damping ratio");
    }
    return TB_OK;
}

/* Narrows the actuator's force to what its joint or tendon lets through. */
static tb_status narrow_force(mjcf *m, mjcf_actuator *actuator, double lower, double upper,
                              int32_t others, const char *what)
{
    tb_actuator_def *def = &actuator->def;
    const double gear = def->gear[0];
    if (others > 1)
        return tb_xml_fail(m->error, TB_UNSUPPORTED, actuator->node, "actuatorfrcrange",
                           "actuatorfrcrange of a %s with more than one actuator is not supported",
                           what);
    if (gear == 0) return TB_OK;
    const double a = lower / gear, b = upper / gear;
    lower = fmin(a, b);
    upper = fmax(a, b);
    if (def->force_limited) {
        /* clamped twice: first to the actuator's own range */
        const double own_lower = def->force_lower, own_upper = def->force_upper;
        def->force_lower = fmin(fmax(own_lower, lower), upper);
        def->force_upper = fmin(fmax(own_upper, lower), upper);
    } else {
        def->force_lower = lower;
        def->force_upper = upper;
    }
    def->force_limited = true;
    return TB_OK;
}

static tb_status read_extras(mjcf *m, const mjcf_element *element, mjcf_actuator *actuator)
{
    double damping[3] = {0}, armature = 0;
    MJCF_TRY(mjcf_numbers(m, element, "damping", 1, 3, damping, NULL));
    MJCF_TRY(mjcf_number(m, element, "armature", &armature));
    if (damping[1] != 0 || damping[2] != 0)
        return tb_xml_fail(m->error, TB_UNSUPPORTED, element->node, "damping",
                           "damping with quadratic or cubic parts is not supported");
    if (damping[0] == 0 && armature == 0) return TB_OK;
    const double gear2 = actuator->def.gear[0] * actuator->def.gear[0];
    if (actuator->tendon >= 0) {
        m->tendons[actuator->tendon].def.armature += armature * gear2;
        m->tendons[actuator->tendon].def.damping += damping[0] * gear2;
        return TB_OK;
    }
    mjcf_joint *joint = &m->joints[actuator->joint];
    if (joint->def.type != TB_JOINT_HINGE && joint->def.type != TB_JOINT_SLIDE)
        return tb_xml_fail(
            m->error, TB_UNSUPPORTED, element->node, "armature",
            "armature and damping of an actuator on a ball or free joint are not supported");
    joint->def.armature += armature * gear2;
    joint->def.damping += damping[0] * gear2;
    return TB_OK;
}

static tb_status read_actuator(mjcf *m, const xmlNode *node)
{
    mjcf_element element;
    mjcf_actuator actuator = {.node = node, .joint = -1, .tendon = -1};
    mjcf_general g;
    int32_t group = 0, class_index = m->main_class;
    actuator.def = tb_actuator_defaults();
    const double gear[6] = {1, 0, 0, 0, 0, 0};
    memcpy(actuator.def.gear, gear, sizeof gear);
    const int type = mjcf_actuator_type(node);
    if (type < 0)
        return tb_xml_fail(m->error, TB_INVALID_ARGUMENT, node, NULL,
                           "unknown element in 'actuator'");
    if (type > MJCF_LAST_SUPPORTED)
        return tb_xml_fail(m->error, TB_UNSUPPORTED, node, NULL,
                           "actuators of this kind are not supported");
    MJCF_TRY(tb_xml_check_children(node, "", m->error));

    const char *class_name = tb_xml_attribute(node, "class");
    if (class_name != NULL) MJCF_TRY(mjcf_find_class(m, node, "class", class_name, &class_index));
    MJCF_TRY(mjcf_open(m, node, tb_xml_name(node), m->main_class, NULL, &element));
    MJCF_TRY(check_words(m, &element));
    MJCF_TRY(mjcf_read_general(m, node, class_index, &g));
    MJCF_TRY(mjcf_numbers(m, &element, "gear", 1, 6, actuator.def.gear, NULL));
    MJCF_TRY(mjcf_integer(m, &element, "group", &group));
    MJCF_TRY(read_target(m, &element, &actuator));
    MJCF_TRY(read_ranges(m, &element, &g, &actuator));
    MJCF_TRY(translate(m, node, &g, &actuator));
    MJCF_TRY(read_extras(m, &element, &actuator));
    MJCF_TRY(mjcf_name(m, node, &actuator.def.name));

    const bool disabled =
        group >= 0 && group <= 30 && (m->disabled_actuator_groups >> group & 1u) != 0;
    if (m->no_actuation || disabled) {
        memset(actuator.def.gain, 0, sizeof actuator.def.gain);
        memset(actuator.def.bias, 0, sizeof actuator.def.bias);
        actuator.damping_ratio = 0;
        MJCF_TRY(mjcf_note_past(m, node, tb_xml_name(node), "is disabled and makes no force"));
    }
    if (actuator.joint >= 0) m->joints[actuator.joint].number_of_actuators++;
    if (actuator.tendon >= 0) {
        const mjcf_tendon *tendon = &m->tendons[actuator.tendon];
        m->tendons[actuator.tendon].number_of_actuators++;
        for (int32_t i = 0; i < m->number_of_joints; i++)
            m->joints[i].number_of_tendon_actuators += mjcf_tendon_has_joint(m, tendon, i);
    }
    MJCF_TRY(mjcf_grow(m, (void **)&m->actuators, m->number_of_actuators, &m->actuator_capacity,
                       sizeof *m->actuators));
    m->actuators[m->number_of_actuators++] = actuator;
    return TB_OK;
}

static tb_status apply_force_ranges(mjcf *m, mjcf_actuator *actuator)
{
    if (actuator->joint >= 0) {
        const mjcf_joint *joint = &m->joints[actuator->joint];
        const int32_t all = joint->number_of_actuators + joint->number_of_tendon_actuators;
        if (joint->force_limited)
            return narrow_force(m, actuator, joint->force_lower, joint->force_upper, all, "joint");
        return TB_OK;
    }
    const mjcf_tendon *tendon = &m->tendons[actuator->tendon];
    for (int32_t i = 0; i < m->number_of_joints; i++)
        if (m->joints[i].force_limited && mjcf_tendon_has_joint(m, tendon, i))
            return tb_xml_fail(m->error, TB_UNSUPPORTED, actuator->node, "tendon",
                               "a tendon over a joint with an actuatorfrcrange is not supported");
    if (tendon->force_limited)
        return narrow_force(m, actuator, tendon->force_lower, tendon->force_upper,
                            tendon->number_of_actuators, "tendon");
    return TB_OK;
}

tb_status mjcf_read_actuators(mjcf *m)
{
    static const mjcf_reference_kind REFERENCES[] = {{"joint", TB_HANDLE_JOINT},
                                                     {"jointinparent", TB_HANDLE_JOINT},
                                                     {"tendon", TB_HANDLE_TENDON},
                                                     {NULL, TB_HANDLE_NONE}};
    MJCF_TRY(mjcf_read_class_actuators(m));
    MJCF_TRY(mjcf_for_section(m, "actuator", REFERENCES, read_actuator));
    for (int32_t i = 0; i < m->number_of_actuators; i++)
        MJCF_TRY(apply_force_ranges(m, &m->actuators[i]));
    return TB_OK;
}

tb_status mjcf_add_actuators(mjcf *m)
{
    for (int32_t i = 0; i < m->number_of_actuators; i++) {
        const mjcf_actuator *actuator = &m->actuators[i];
        tb_actuator_def def = actuator->def;
        tb_error refusal = {0};
        def.target = actuator->joint >= 0 ? m->joints[actuator->joint].handle
                                          : m->tendons[actuator->tendon].handle;
        if (actuator->damping_ratio > 0 && m->actuator_inertia != NULL)
            def.bias[2] =
                -2 * actuator->damping_ratio * sqrt(fmax(0, def.gain[0] * m->actuator_inertia[i]));
        if (tb_scene_add_actuator(m->scene, &def, NULL, &refusal) != TB_OK)
            return mjcf_refused(m, actuator->node, &refusal);
    }
    return TB_OK;
}
