/* MJCF actuators: their targets, their limits, and their additions to joints and tendons. Gain,
 * bias and activation are read in mjcf_gains.c; a damping ratio, kept as a positive bias[2],
 * becomes damping once the reflected inertia is known.
 *
 * The joint receives the actuator's armature and damping, times the square of the gear. */
#include <stdlib.h>
#include <string.h>

#include "model/import/mjcf/mjcf.h"

#define COMMON                                                                                     \
    "name class group joint jointinparent tendon gear ctrllimited ctrlrange forcelimited "         \
    "forcerange damping armature lengthrange delay nsample interp "
#define TRANSMISSIONS "site refsite body cranksite slidersite cranklength "
#define SILENT        "user"

static const mjcf_words WORDS[] = {
    {.used =
         COMMON "actlimited actrange dyntype gaintype biastype dynprm gainprm biasprm inheritrange "
                "actdim actearly input velrange ffrange " TRANSMISSIONS,
     .silent = SILENT},
    {.used = COMMON TRANSMISSIONS, .silent = SILENT},
    {.used = COMMON "kp kv dampratio timeconst inheritrange " TRANSMISSIONS, .silent = SILENT},
    {.used = COMMON "kv " TRANSMISSIONS, .silent = SILENT},
    {.used = COMMON "actlimited actrange kp kv dampratio inheritrange " TRANSMISSIONS,
     .silent = SILENT},
    {.used = COMMON "kv " TRANSMISSIONS, .silent = SILENT},
    {.used = COMMON "area diameter bias timeconst " TRANSMISSIONS, .silent = SILENT},
    {.used =
         COMMON "timeconst tausmooth range force scale lmin lmax vmax fpmax fvmax " TRANSMISSIONS,
     .silent = SILENT},
    {.used = "name class group body gain ctrllimited ctrlrange forcelimited forcerange delay "
             "nsample interp",
     .silent = SILENT},
    {.used = COMMON "kp kv dampratio ki imax slewmax input posrange velrange ffrange "
                    "inheritrange " TRANSMISSIONS,
     .silent = SILENT},
    {.used = COMMON "kp kv dampratio input " TRANSMISSIONS, .silent = SILENT},
    {.used = COMMON "actlimited actrange dyntype dynprm actdim actearly plugin "
                    "instance " TRANSMISSIONS,
     .silent = SILENT},
    {.used =
         COMMON "motorconst resistance nominal saturation inductance cogging controller thermal "
                "lugre input " TRANSMISSIONS,
     .silent = SILENT},
};

static tb_status check_words(mjcf *m, const mjcf_element *element)
{
    for (int32_t i = 0; i < element->number_of_sources; i++) {
        const int type = mjcf_actuator_type(element->sources[i]);
        if (type >= 0) MJCF_TRY(mjcf_check_attributes(m, element->sources[i], &WORDS[type]));
    }
    return TB_OK;
}

/* ---- transmission ---- */

static tb_status find_site(mjcf *m, const xmlNode *node, const char *attribute, tb_handle *site)
{
    const char *name = NULL;
    MJCF_TRY(mjcf_reference(m, node, attribute, &name));
    *site = tb_scene_find(m->scene, TB_HANDLE_SITE, name);
    if (!tb_handle_is_none(*site)) return TB_OK;
    return tb_xml_fail(m->error, TB_NOT_FOUND, node, attribute, "there is no site '%.100s'", name);
}

static tb_status find_joint(mjcf *m, const xmlNode *node, const char *attribute,
                            mjcf_actuator *actuator)
{
    const char *name = NULL;
    MJCF_TRY(mjcf_reference(m, node, attribute, &name));
    actuator->joint = mjcf_find_joint(m, name);
    actuator->def.in_parent = strcmp(attribute, "jointinparent") == 0;
    if (actuator->joint >= 0) return TB_OK;
    return tb_xml_fail(m->error, TB_NOT_FOUND, node, attribute, "there is no joint '%.100s'", name);
}

static tb_status find_tendon(mjcf *m, const xmlNode *node, mjcf_actuator *actuator)
{
    const char *name = NULL;
    MJCF_TRY(mjcf_reference(m, node, "tendon", &name));
    actuator->tendon = tb_names_find(&m->names, TB_HANDLE_TENDON, name);
    if (actuator->tendon >= 0) return TB_OK;
    return tb_xml_fail(m->error, TB_NOT_FOUND, node, "tendon", "there is no tendon '%.100s'", name);
}

static tb_status find_body(mjcf *m, const xmlNode *node, mjcf_actuator *actuator)
{
    const char *name = NULL;
    MJCF_TRY(mjcf_reference(m, node, "body", &name));
    actuator->def.target = tb_scene_find(m->scene, TB_HANDLE_BODY, name);
    if (!tb_handle_is_none(actuator->def.target)) return TB_OK;
    return tb_xml_fail(m->error, TB_NOT_FOUND, node, "body", "there is no body '%.100s'%s", name,
                       strcmp(name, "world") == 0 ? " that could move" : "");
}

static tb_status find_crank(mjcf *m, const mjcf_element *element, mjcf_actuator *actuator)
{
    const xmlNode *node = element->node;
    MJCF_TRY(find_site(m, node, "cranksite", &actuator->def.target));
    MJCF_TRY(find_site(m, node, "slidersite", &actuator->def.reference));
    MJCF_TRY(mjcf_number(m, element, "cranklength", &actuator->def.rod_length));
    if (actuator->def.rod_length > 0) return TB_OK;
    return tb_xml_fail(m->error, TB_INVALID_ARGUMENT, node, "cranklength",
                       "cranklength is %g m, not positive", actuator->def.rod_length);
}

static tb_status read_target(mjcf *m, const mjcf_element *element, mjcf_actuator *actuator)
{
    static const char *const NAMES[] = {"joint",     "jointinparent", "tendon",
                                        "cranksite", "site",          "body"};
    const xmlNode *node = element->node;
    const char *attribute = NULL;
    for (size_t i = 0; i < sizeof NAMES / sizeof NAMES[0]; i++) {
        if (tb_xml_attribute(node, NAMES[i]) == NULL) continue;
        if (attribute != NULL)
            return tb_xml_fail(m->error, TB_INVALID_ARGUMENT, node, NAMES[i],
                               "both %s and %s are given", attribute, NAMES[i]);
        attribute = NAMES[i];
    }
    actuator->joint = actuator->tendon = -1;
    if (attribute == NULL)
        return tb_xml_fail(m->error, TB_INVALID_ARGUMENT, node, "joint",
                           "no joint, tendon, site or body is given to act on");
    if (tb_xml_attribute(node, "refsite") != NULL && strcmp(attribute, "site") != 0)
        return tb_xml_fail(m->error, TB_INVALID_ARGUMENT, node, "refsite",
                           "refsite is for actuators on a site");
    if (strcmp(attribute, "tendon") == 0) return find_tendon(m, node, actuator);
    if (strcmp(attribute, "cranksite") == 0) return find_crank(m, element, actuator);
    if (strcmp(attribute, "body") == 0) return find_body(m, node, actuator);
    if (strcmp(attribute, "site") != 0) return find_joint(m, node, attribute, actuator);
    if (tb_xml_attribute(node, "refsite") != NULL)
        MJCF_TRY(find_site(m, node, "refsite", &actuator->def.reference));
    return find_site(m, node, "site", &actuator->def.target);
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
    double lower = 0, upper = 0;
    bool limited = false;
    if (actuator->joint >= 0) {
        const tb_joint_def *joint = &m->joints[actuator->joint].def;
        limited = joint->limited, lower = joint->lower, upper = joint->upper;
    } else if (actuator->tendon >= 0) {
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
    if (g->torque_limit > 0 &&
        (g->type == MJCF_DC_MOTOR || mjcf_text(element, "forcerange") == NULL)) {
        def->force_limited = true; /* by a dcmotor's saturation, also that of a class */
        def->force_lower = -g->torque_limit, def->force_upper = g->torque_limit;
    }
    def->activation_lower = activation[0], def->activation_upper = activation[1];
    if (g->type == MJCF_DAMPER) {
        if (!(control[0] >= 0) || !(control[0] < control[1]))
            return tb_xml_fail(m->error, TB_INVALID_ARGUMENT, element->node, "ctrlrange",
                               "a damper's ctrlrange is %g to %g, not 0 or more and rising",
                               control[0], control[1]);
        def->control_limited = true;
    }
    if (g->type == MJCF_ADHESION) {
        if (!(control[0] >= 0) || !(control[0] < control[1]))
            return tb_xml_fail(m->error, TB_INVALID_ARGUMENT, element->node, "ctrlrange",
                               "ctrlrange of adhesion is %g to %g, not 0 or more and rising",
                               control[0], control[1]);
        def->control_limited = true;
    }
    double dimension = -1;
    MJCF_TRY(mjcf_number(m, element, "actdim", &dimension));
    if (dimension > 1 && g->type != MJCF_PLUGIN)
        return tb_xml_fail(m->error, TB_UNSUPPORTED, element->node, "actdim",
                           "actdim=\"%g\" needs user dynamics, which are not supported", dimension);
    MJCF_TRY(mjcf_bool(m, element, "actearly", &def->early));
    if (g->inherit_range > 0)
        MJCF_TRY(inherit(m, element, actuator, g->inherit_range,
                         g->dynamics_type == MJCF_DYNAMICS_INTEGRATOR));
    if (m->no_control_clamp) def->control_limited = false;
    return TB_OK;
}

/* ---- forces ---- */

/* A muscle's parameters as MuJoCo has them; a negative force is a scale over the acceleration of a
 * unit force, known in the second round. */
static tb_status read_muscle(mjcf *m, const xmlNode *node, const char *field, const double *p,
                             mjcf_actuator *actuator, int32_t index, tb_muscle *muscle)
{
    if (!(p[0] < p[1]) || !(p[4] < 1) || !(p[5] > 1) || !(p[3] > 0) || !(p[6] > 0) || !(p[7] > 0) ||
        !(p[8] > 0))
        return tb_xml_fail(m->error, TB_INVALID_ARGUMENT, node, field,
                           "a muscle needs a rising range, lmin < 1 < lmax, and scale, vmax, fpmax "
                           "and fvmax above 0");
    *muscle = (tb_muscle){.range = {p[0], p[1]},
                          .force = p[2],
                          .shortest = p[4],
                          .longest = p[5],
                          .fastest = p[6],
                          .passive = p[7],
                          .lengthening = p[8]};
    if (p[2] >= 0) return TB_OK;
    const double acceleration = m->actuator_inertia != NULL ? m->actuator_inertia[index] : 1;
    m->needs_inertia = true;
    actuator->muscle_scale = p[3];
    muscle->force = p[3] / fmax(1e-15, acceleration);
    return TB_OK;
}

/* Length range of a muscle: as given, or the limits of its joint or tendon, or found by
 * mjcf_find_lengths between the two readings. */
static tb_status read_lengths(mjcf *m, const mjcf_element *element, mjcf_actuator *actuator)
{
    tb_actuator_def *def = &actuator->def;
    const xmlNode *node = element->node;
    const mjcf_length_search *search = &m->length_search;
    double *range = def->length_range;
    MJCF_TRY(mjcf_numbers(m, element, "lengthrange", 2, 2, range, NULL));
    if (range[0] < range[1] && (search->off || !search->renews)) return TB_OK;
    const tb_joint_def *joint = actuator->joint >= 0 ? &m->joints[actuator->joint].def : NULL;
    const tb_tendon_def *tendon = actuator->tendon >= 0 ? &m->tendons[actuator->tendon].def : NULL;
    const bool scalar =
        joint != NULL && (joint->type == TB_JOINT_HINGE || joint->type == TB_JOINT_SLIDE);
    if (search->off || (!scalar && tendon == NULL))
        return tb_xml_fail(m->error, TB_UNSUPPORTED, node, "lengthrange",
                           search->off ? "a muscle without lengthrange, which is not to be found"
                                       : "a muscle without lengthrange on neither a hinge, a slide "
                                         "nor a tendon");
    const bool limited = scalar ? joint->limited : tendon->limited;
    const double *found = m->lengths != NULL ? m->lengths + 2 * m->number_of_actuators : NULL;
    const bool lost = found != NULL && !(found[0] < found[1]);
    if (limited && (search->takes_limits || lost)) {
        range[0] = scalar ? joint->lower : tendon->lower;
        range[1] = scalar ? joint->upper : tendon->upper;
        if (!lost) return TB_OK;
        return mjcf_note_past(
            m, node, "lengthrange",
            "is neither given nor found by pulling the muscle short and long: the "
            "range of the joint or tendon is taken");
    }
    if (lost) { /* in a program that cannot step the model */
        range[1] = 1;
        return mjcf_note_past(
            m, node, "lengthrange",
            "is not given, and is found where models are stepped: until then it is "
            "0 to 1");
    }
    actuator->seeks_lengths = m->needs_lengths = true;
    range[0] = found != NULL ? found[0] : 0;
    range[1] = found != NULL ? found[1] : 1;
    return TB_OK;
}

static tb_status refuse_kind(mjcf *m, const xmlNode *node, const char *field)
{
    return tb_xml_fail(m->error, TB_UNSUPPORTED, node, field, "%s=\"%.40s\" is not supported",
                       field,
                       tb_xml_attribute(node, field) != NULL ? tb_xml_attribute(node, field) : "");
}

static tb_status read_curves(mjcf *m, const mjcf_element *element, const mjcf_general *g,
                             mjcf_actuator *actuator)
{
    tb_actuator_def *def = &actuator->def;
    const xmlNode *node = element->node;
    const int32_t index = m->number_of_actuators;
    if (g->gain_type > MJCF_GAIN_MUSCLE) return refuse_kind(m, node, "gaintype");
    if (g->bias_type > MJCF_BIAS_MUSCLE) return refuse_kind(m, node, "biastype");
    for (int i = 0; i < 3; i++) {
        def->gain[i] = i == 0 || g->gain_type == MJCF_GAIN_AFFINE ? g->gain[i] : 0;
        def->bias[i] = g->bias_type == MJCF_BIAS_AFFINE ? g->bias[i] : 0;
    }
    if (g->gain_type == MJCF_GAIN_MUSCLE) {
        def->gain_curve = TB_CURVE_MUSCLE;
        MJCF_TRY(read_muscle(m, node, "gainprm", g->gain, actuator, index, &def->muscle_gain));
    }
    if (g->bias_type == MJCF_BIAS_MUSCLE) {
        def->bias_curve = TB_CURVE_MUSCLE;
        MJCF_TRY(read_muscle(m, node, "biasprm", g->bias, actuator, index, &def->muscle_bias));
    }
    if (def->gain_curve == TB_CURVE_MUSCLE || def->bias_curve == TB_CURVE_MUSCLE)
        return read_lengths(m, element, actuator);
    return TB_OK;
}

static tb_status translate(mjcf *m, const mjcf_element *element, const mjcf_general *g,
                           mjcf_actuator *actuator)
{
    tb_actuator_def *def = &actuator->def;
    const xmlNode *node = element->node;
    if (g->type == MJCF_PLUGIN) return mjcf_translate_plugin(m, element, actuator);
    if (g->gain_type == MJCF_GAIN_PID) return mjcf_translate_pid(m, element, g, actuator);
    if (g->gain_type == MJCF_GAIN_SO3) return mjcf_translate_orientation(m, element, g, actuator);
    if (g->type == MJCF_DC_MOTOR) return mjcf_translate_dc_motor(m, element, g, actuator);
    MJCF_TRY(read_curves(m, element, g, actuator));
    if (g->dynamics_type > MJCF_DYNAMICS_FILTER_EXACT && g->dynamics_type != MJCF_DYNAMICS_MUSCLE)
        return refuse_kind(m, node, "dyntype");
    if (g->dynamics_type == MJCF_DYNAMICS_MUSCLE) {
        def->activation = TB_ACTIVATION_MUSCLE;
        memcpy(def->muscle_times, g->dynamics, sizeof def->muscle_times);
        if (def->muscle_times[0] > 0 && def->muscle_times[1] > 0) return TB_OK;
        return tb_xml_fail(m->error, TB_INVALID_ARGUMENT, node, "dynprm",
                           "a muscle's time constants are %g and %g s, not positive",
                           def->muscle_times[0], def->muscle_times[1]);
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

static tb_status read_extras(mjcf *m, const mjcf_element *element, mjcf_actuator *actuator)
{
    double damping[3] = {0}, armature = 0;
    MJCF_TRY(mjcf_numbers(m, element, "damping", 1, 3, damping, NULL));
    MJCF_TRY(mjcf_number(m, element, "armature", &armature));
    if (damping[0] == 0 && damping[1] == 0 && damping[2] == 0 && armature == 0) return TB_OK;
    if (actuator->tendon < 0 && actuator->joint < 0)
        return tb_xml_fail(m->error, TB_INVALID_ARGUMENT, element->node, "damping",
                           "damping and armature are for actuators on a joint or tendon");
    const double gear2 = actuator->def.gear[0] * actuator->def.gear[0];
    if (actuator->tendon >= 0) {
        tb_tendon_def *tendon = &m->tendons[actuator->tendon].def;
        tendon->armature += armature * gear2;
        tendon->damping += damping[0] * gear2;
        for (int i = 0; i < 2; i++) tendon->damping_polynomial[i] += damping[1 + i] * gear2;
        return TB_OK;
    }
    mjcf_joint *joint = &m->joints[actuator->joint];
    joint->def.armature += armature * gear2;
    joint->def.damping += damping[0] * gear2;
    for (int i = 0; i < 2; i++) joint->def.damping_polynomial[i] += damping[1 + i] * gear2;
    return TB_OK;
}

tb_status mjcf_push_actuator(mjcf *m, const mjcf_actuator *actuator)
{
    MJCF_TRY(mjcf_grow(m, (void **)&m->actuators, m->number_of_actuators, &m->actuator_capacity,
                       sizeof *m->actuators));
    m->actuators[m->number_of_actuators++] = *actuator;
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
    MJCF_TRY(tb_xml_check_children(node, type == MJCF_PLUGIN ? "config" : "", m->error));

    const char *class_name = tb_xml_attribute(node, "class");
    if (class_name != NULL) MJCF_TRY(mjcf_find_class(m, node, "class", class_name, &class_index));
    MJCF_TRY(mjcf_open(m, node, tb_xml_name(node), m->main_class, NULL, &element));
    MJCF_TRY(check_words(m, &element));
    MJCF_TRY(mjcf_read_general(m, node, class_index, &g));
    MJCF_TRY(mjcf_numbers(m, &element, "gear", 1, 6, actuator.def.gear, NULL));
    MJCF_TRY(mjcf_integer(m, &element, "group", &group));
    MJCF_TRY(read_target(m, &element, &actuator));
    MJCF_TRY(read_ranges(m, &element, &g, &actuator));
    MJCF_TRY(mjcf_read_delay(m, &element, &actuator.def));
    MJCF_TRY(translate(m, &element, &g, &actuator));
    MJCF_TRY(read_extras(m, &element, &actuator));
    MJCF_TRY(mjcf_name(m, node, &actuator.def.name));

    const bool disabled =
        group >= 0 && group <= 30 && (m->disabled_actuator_groups >> group & 1u) != 0;
    if (m->no_actuation || disabled) {
        actuator.def.disabled = true;
        MJCF_TRY(mjcf_note_past(m, node, tb_xml_name(node), "is disabled and makes no force"));
    }
    MJCF_TRY(mjcf_push_actuator(m, &actuator));
    if (actuator.def.orientation != TB_ORIENTATION_NONE) return mjcf_add_axes(m, &actuator);
    return actuator.inputs != 0 ? mjcf_add_inputs(m, &element, &actuator) : TB_OK;
}

tb_status mjcf_read_actuators(mjcf *m)
{
    static const mjcf_reference_kind REFERENCES[] = {
        {"joint", TB_HANDLE_JOINT},     {"jointinparent", TB_HANDLE_JOINT},
        {"tendon", TB_HANDLE_TENDON},   {"site", TB_HANDLE_SITE},
        {"refsite", TB_HANDLE_SITE},    {"cranksite", TB_HANDLE_SITE},
        {"slidersite", TB_HANDLE_SITE}, {"body", TB_HANDLE_BODY},
        {NULL, TB_HANDLE_NONE}};
    MJCF_TRY(mjcf_read_class_actuators(m));
    return mjcf_for_section(m, "actuator", REFERENCES, read_actuator);
}

tb_status mjcf_add_actuators(mjcf *m)
{
    double damping = 0; /* of the last actuator with a damping ratio */
    for (int32_t i = 0; i < m->number_of_actuators; i++) {
        const mjcf_actuator *actuator = &m->actuators[i];
        tb_actuator_def def = actuator->def;
        tb_error refusal = {0};
        if (actuator->joint >= 0) def.target = m->joints[actuator->joint].handle;
        if (actuator->tendon >= 0) def.target = m->tendons[actuator->tendon].handle;
        if (actuator->damping_ratio > 0 && m->actuator_inertia != NULL) {
            const double inertia = m->actuator_inertia[i];
            damping = 2 * actuator->damping_ratio * sqrt(fmax(0, def.gain[0] * inertia));
            def.bias[2] = -damping;
        }
        if (!def.is_input && actuator->damping_ratio == 0) damping = 0;
        if (actuator->damps && damping > 0) def.gain[0] = damping; /* its owner's */
        if (tb_scene_add_actuator(m->scene, &def, NULL, &refusal) != TB_OK)
            return mjcf_refused(m, actuator->node, &refusal);
    }
    return TB_OK;
}
