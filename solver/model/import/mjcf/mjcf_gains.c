/* Gain, bias and activation of MJCF actuators: one general form and its shortcuts.
 *
 * All kinds share one actuator in each default class. A general element changes its own attributes
 * and leaves the rest. A shortcut sets gain, bias and activation, and extends the class's values if
 * these came from its own kind or from a general element. If another shortcut set them last, it
 * takes the nearest outer class with suitable values, or else the initial values. A damping ratio
 * is kept as a positive bias[2], as MuJoCo keeps it. These rules follow the measured behaviour of
 * MuJoCo 4.0. */
#include <stdlib.h>
#include <string.h>

#include "model/import/mjcf/mjcf.h"

static const char *const TAGS = "general motor position velocity intvelocity damper cylinder "
                                "muscle adhesion pid orientation plugin "
                                "dcmotor";

/* MuJoCo's initial parameters; the types stay. */
static void reset(mjcf_general *g)
{
    memset(g->gain, 0, sizeof g->gain);
    memset(g->bias, 0, sizeof g->bias);
    memset(g->dynamics, 0, sizeof g->dynamics);
    g->gain[0] = g->dynamics[0] = 1;
    g->inherit_range = 0;
    g->inputs = MJCF_INPUT_POSITION | MJCF_INPUT_VELOCITY;
    g->quaternion = false;
}

int mjcf_actuator_type(const xmlNode *node)
{
    int32_t type = 0;
    const char *p = TAGS, *name = tb_xml_name(node);
    const size_t length = strlen(name);
    for (; *p != 0; type++) {
        const size_t n = strcspn(p, " ");
        if (n == length && strncmp(p, name, n) == 0) return type;
        p += n;
        while (*p == ' ') p++;
    }
    return -1;
}

static tb_status apply_general(mjcf *m, const xmlNode *node, mjcf_general *g)
{
    static const char *const gains = "fixed affine muscle dcmotor pid so3 user";
    static const char *const biases = "none affine muscle dcmotor so3 user";
    static const char *const dynamics =
        "none integrator filter filterexact pid dcmotor muscle user";
    MJCF_TRY(tb_xml_choice(node, "gaintype", gains, &g->gain_type, m->error));
    MJCF_TRY(tb_xml_choice(node, "biastype", biases, &g->bias_type, m->error));
    MJCF_TRY(tb_xml_choice(node, "dyntype", dynamics, &g->dynamics_type, m->error));
    const int32_t n = MJCF_ACTUATOR_PARAMETERS;
    MJCF_TRY(tb_xml_numbers(node, "gainprm", 1, n, g->gain, NULL, m->error));
    MJCF_TRY(tb_xml_numbers(node, "biasprm", 1, n, g->bias, NULL, m->error));
    MJCF_TRY(tb_xml_numbers(node, "dynprm", 1, n, g->dynamics, NULL, m->error));
    if (tb_xml_attribute(node, "input") != NULL) {
        if (g->gain_type == MJCF_GAIN_PID) return mjcf_apply_pid_input(m, node, g);
        int32_t chart = g->quaternion ? 1 : 0;
        if (g->gain_type == MJCF_GAIN_SO3)
            MJCF_TRY(tb_xml_choice(node, "input", "expmap quat", &chart, m->error));
        g->quaternion = chart == 1;
    }
    return tb_xml_number(node, "inheritrange", &g->inherit_range, m->error);
}

static tb_status negative(mjcf *m, const xmlNode *node, const char *name)
{
    return tb_xml_fail(m->error, TB_INVALID_ARGUMENT, node, name, "%s is negative", name);
}

/* position and intvelocity */
static tb_status apply_servo(mjcf *m, const xmlNode *node, mjcf_general *g)
{
    const bool damped = tb_xml_attribute(node, "kv") != NULL;
    const bool ratio = tb_xml_attribute(node, "dampratio") != NULL;
    double kp = g->gain[0], kv = 0, damping_ratio = 0, time = 0;
    if (damped && ratio)
        return tb_xml_fail(m->error, TB_INVALID_ARGUMENT, node, "dampratio",
                           "both kv and dampratio are given");
    MJCF_TRY(tb_xml_number(node, "kp", &kp, m->error));
    MJCF_TRY(tb_xml_number(node, "kv", &kv, m->error));
    MJCF_TRY(tb_xml_number(node, "dampratio", &damping_ratio, m->error));
    if (kv < 0) return negative(m, node, "kv");
    if (damping_ratio < 0) return negative(m, node, "dampratio");
    const double old = g->bias[2], old_time = g->dynamics[0], old_range = g->inherit_range;
    const bool filtered = g->dynamics_type == MJCF_DYNAMICS_FILTER_EXACT;
    reset(g);
    g->inherit_range = old_range;
    g->gain[0] = kp;
    g->gain_type = MJCF_GAIN_FIXED;
    g->bias_type = MJCF_BIAS_AFFINE;
    g->bias[1] = -kp;
    g->bias[2] = damped ? -kv : (ratio ? damping_ratio : old);
    g->dynamics_type = MJCF_DYNAMICS_NONE;
    if (mjcf_actuator_type(node) == MJCF_INTVELOCITY) {
        g->dynamics_type = MJCF_DYNAMICS_INTEGRATOR;
    } else if (tb_xml_attribute(node, "timeconst") != NULL) {
        MJCF_TRY(tb_xml_number(node, "timeconst", &time, m->error));
        if (time < 0) return negative(m, node, "timeconst");
        if (time > 0) g->dynamics_type = MJCF_DYNAMICS_FILTER_EXACT;
        if (time > 0) g->dynamics[0] = time;
    } else if (filtered) {
        g->dynamics_type = MJCF_DYNAMICS_FILTER_EXACT;
        g->dynamics[0] = old_time;
    }
    MJCF_TRY(tb_xml_number(node, "inheritrange", &g->inherit_range, m->error));
    if (g->inherit_range < 0) return negative(m, node, "inheritrange");
    return TB_OK;
}

static tb_status apply_velocity(mjcf *m, const xmlNode *node, mjcf_general *g)
{
    double kv = g->gain[0];
    MJCF_TRY(tb_xml_number(node, "kv", &kv, m->error));
    reset(g);
    g->gain_type = MJCF_GAIN_FIXED;
    g->gain[0] = kv;
    g->bias_type = MJCF_BIAS_AFFINE;
    g->bias[2] = -kv;
    g->dynamics_type = MJCF_DYNAMICS_NONE;
    return TB_OK;
}

static tb_status apply_damper(mjcf *m, const xmlNode *node, mjcf_general *g)
{
    double kv = -g->gain[2];
    MJCF_TRY(tb_xml_number(node, "kv", &kv, m->error));
    if (kv < 0) return negative(m, node, "kv");
    reset(g);
    g->gain[0] = 0;
    g->gain_type = MJCF_GAIN_AFFINE;
    g->gain[2] = -kv;
    g->bias_type = MJCF_BIAS_NONE;
    g->dynamics_type = MJCF_DYNAMICS_NONE;
    return TB_OK;
}

static tb_status apply_cylinder(mjcf *m, const xmlNode *node, mjcf_general *g)
{
    double area = g->gain[0], diameter = 0, time = g->dynamics[0];
    double bias[3] = {g->bias[0], g->bias[1], g->bias[2]};
    MJCF_TRY(tb_xml_number(node, "area", &area, m->error));
    if (tb_xml_attribute(node, "diameter") != NULL) {
        MJCF_TRY(tb_xml_number(node, "diameter", &diameter, m->error));
        area = 3.14159265358979323846 / 4 * diameter * diameter;
    }
    MJCF_TRY(tb_xml_number(node, "timeconst", &time, m->error));
    MJCF_TRY(tb_xml_numbers(node, "bias", 3, 3, bias, NULL, m->error));
    reset(g);
    g->gain_type = MJCF_GAIN_FIXED;
    g->gain[0] = area;
    g->bias_type = MJCF_BIAS_AFFINE;
    memcpy(g->bias, bias, sizeof bias);
    g->dynamics_type = MJCF_DYNAMICS_FILTER;
    g->dynamics[0] = time;
    return TB_OK;
}

/* Parameters as in `general`; its values 1 and 0 select a muscle's own default. */
static tb_status apply_muscle(mjcf *m, const xmlNode *node, mjcf_general *g)
{
    static const double OLD[] = {1, 0, 0, 0, 0, 0, 0, 0, 0};
    static const double OWN[] = {0.75, 1.05, -1, 200, 0.5, 1.6, 1.5, 1.3, 1.2};
    static const char *const NAMES[] = {"force", "scale", "lmin", "lmax", "vmax", "fpmax", "fvmax"};
    double times[2] = {-1, -1}, range[2] = {-1, -1};
    if (g->dynamics[0] == 1) g->dynamics[0] = 0.01;
    if (g->dynamics[1] == 0) g->dynamics[1] = 0.04;
    for (int i = 0; i < 9; i++)
        if (g->gain[i] == OLD[i]) g->gain[i] = OWN[i];
    MJCF_TRY(tb_xml_numbers(node, "timeconst", 1, 2, times, NULL, m->error));
    MJCF_TRY(tb_xml_number(node, "tausmooth", &g->dynamics[2], m->error));
    MJCF_TRY(tb_xml_numbers(node, "range", 1, 2, range, NULL, m->error));
    if (g->dynamics[2] < 0) return negative(m, node, "tausmooth");
    for (int i = 0; i < 2; i++) {
        if (times[i] >= 0) g->dynamics[i] = times[i];
        if (range[i] >= 0) g->gain[i] = range[i];
    }
    for (int i = 0; i < 7; i++) {
        double number = -1;
        MJCF_TRY(tb_xml_number(node, NAMES[i], &number, m->error));
        if (number >= 0) g->gain[2 + i] = number;
    }
    memcpy(g->bias, g->gain, 9 * sizeof *g->bias);
    g->gain_type = MJCF_GAIN_MUSCLE;
    g->bias_type = MJCF_BIAS_MUSCLE;
    g->dynamics_type = MJCF_DYNAMICS_MUSCLE;
    return TB_OK;
}

static tb_status apply_adhesion(mjcf *m, const xmlNode *node, mjcf_general *g)
{
    double gain = g->gain[0];
    MJCF_TRY(tb_xml_number(node, "gain", &gain, m->error));
    if (gain < 0) return negative(m, node, "gain");
    reset(g);
    g->gain[0] = gain;
    g->gain_type = MJCF_GAIN_FIXED;
    g->bias_type = MJCF_BIAS_NONE;
    g->dynamics_type = MJCF_DYNAMICS_NONE;
    return TB_OK;
}

static void apply_motor(mjcf_general *g)
{
    reset(g);
    g->gain_type = MJCF_GAIN_FIXED;
    g->bias_type = MJCF_BIAS_NONE;
    g->dynamics_type = MJCF_DYNAMICS_NONE;
}

/* Whether a shortcut can build on this: its own kind, or a general element with its kind of
 * gain. */
static bool is_base(const mjcf_general *g, int type)
{
    const int32_t gain_type = type == MJCF_DAMPER        ? MJCF_GAIN_AFFINE
                              : type == MJCF_MUSCLE      ? MJCF_GAIN_MUSCLE
                              : type == MJCF_PID         ? MJCF_GAIN_PID
                              : type == MJCF_ORIENTATION ? MJCF_GAIN_SO3
                              : type == MJCF_DC_MOTOR    ? MJCF_GAIN_DC_MOTOR
                                                         : MJCF_GAIN_FIXED;
    return g->type == type || (g->type == MJCF_GENERAL && g->gain_type == gain_type);
}

/* The base of a shortcut: the current values, an enclosing class's values, or none. Damping and
 * torque limit are attributes of all kinds and stay. */
static void find_base(const mjcf *m, int type, int32_t class_index, mjcf_general *g)
{
    const double damping = g->damping, torque_limit = g->torque_limit;
    if (is_base(g, type)) return;
    while (class_index >= 0) {
        if (is_base(&m->class_actuators[class_index], type)) {
            *g = m->class_actuators[class_index];
            g->damping = damping;
            g->torque_limit = torque_limit;
            return;
        }
        class_index = m->classes[class_index].parent;
    }
    reset(g);
}

/* Applies one source's gain, bias and activation; `class_index` is the class to search for
 * bases. */
static tb_status apply(mjcf *m, const xmlNode *node, int32_t class_index, mjcf_general *g)
{
    const int type = mjcf_actuator_type(node);
    tb_status status = TB_OK;
    double damping[3] = {g->damping, 0, 0};
    MJCF_TRY(tb_xml_numbers(node, "damping", 1, 3, damping, NULL, m->error));
    g->damping = damping[0];
    if (type == MJCF_GENERAL) {
        g->type = type;
        return apply_general(m, node, g);
    }
    find_base(m, type, class_index, g);
    switch (type) {
    case MJCF_MOTOR: apply_motor(g); break;
    case MJCF_POSITION:
    case MJCF_INTVELOCITY: status = apply_servo(m, node, g); break;
    case MJCF_VELOCITY: status = apply_velocity(m, node, g); break;
    case MJCF_DAMPER: status = apply_damper(m, node, g); break;
    case MJCF_CYLINDER: status = apply_cylinder(m, node, g); break;
    case MJCF_MUSCLE: status = apply_muscle(m, node, g); break;
    case MJCF_ADHESION: status = apply_adhesion(m, node, g); break;
    case MJCF_PID: status = mjcf_apply_pid(m, node, g); break;
    case MJCF_ORIENTATION: status = mjcf_apply_orientation(m, node, g); break;
    case MJCF_DC_MOTOR: status = mjcf_apply_dc_motor(m, node, g); break;
    default: reset(g); break; /* a plugin has its own parameters */
    }
    g->type = type;
    return status;
}

tb_status mjcf_read_class_actuators(mjcf *m)
{
    m->class_actuators = calloc((size_t)m->number_of_classes + 1, sizeof *m->class_actuators);
    if (m->class_actuators == NULL)
        return tb_fail_memory(m->error, (size_t)m->number_of_classes, "default classes");
    for (int32_t i = 0; i < m->number_of_classes; i++) {
        mjcf_general *g = &m->class_actuators[i];
        const int32_t parent = m->classes[i].parent;
        reset(g);
        if (parent >= 0) *g = m->class_actuators[parent];
        for (int32_t k = 0; k < m->classes[i].number_of_settings; k++) {
            const xmlNode *c = m->settings[m->classes[i].first_setting + k];
            if (mjcf_actuator_type(c) >= 0) MJCF_TRY(apply(m, c, parent, g));
        }
    }
    return TB_OK;
}

tb_status mjcf_read_general(mjcf *m, const xmlNode *node, int32_t class_index, mjcf_general *g)
{
    memset(g, 0, sizeof *g);
    reset(g);
    if (class_index >= 0) *g = m->class_actuators[class_index];
    return apply(m, node, class_index, g);
}
