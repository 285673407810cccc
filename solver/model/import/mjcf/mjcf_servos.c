/* MJCF servos beyond the general actuator: pid, its plugin mujoco.pid, dcmotor, orientation; delays.
 *
 * A servo with several controls becomes one actuator for each control: the first makes the force,
 * the others are inputs of it; an orientation servo is three actuators, one for each axis of its
 * ball joint. So controls are in MuJoCo's order. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/import/mjcf/mjcf.h"

/* ---- parameters ---- */

static const char *const INPUTS[] = {"pos", "vel", "ff", "voltage"};

/* Reads `input`, a list of the first `kinds` names of INPUTS. */
static tb_status read_inputs(mjcf *m, const xmlNode *node, int kinds, int32_t *inputs)
{
    const char *text = tb_xml_attribute(node, "input");
    if (text == NULL) return TB_OK;
    *inputs = 0;
    for (const char *p = text; *p != 0;) {
        const size_t n = strcspn(p, " \t\n");
        bool known = n == 0;
        for (int i = 0; i < kinds && n > 0; i++)
            if (strlen(INPUTS[i]) == n && strncmp(p, INPUTS[i], n) == 0) {
                *inputs |= 1 << i;
                known = true;
            }
        if (!known)
            return tb_xml_fail(m->error, TB_INVALID_ARGUMENT, node, "input",
                               "input=\"%.60s\" is not of pos, vel%s", text,
                               kinds == 3 ? " and ff" : ", ff and voltage");
        p += n;
        p += strspn(p, " \t\n");
    }
    if (*inputs != 0) return TB_OK;
    return tb_xml_fail(m->error, TB_INVALID_ARGUMENT, node, "input", "input is empty");
}

tb_status mjcf_apply_pid_input(mjcf *m, const xmlNode *node, mjcf_general *g)
{
    return read_inputs(m, node, 3, &g->inputs);
}

tb_status mjcf_apply_pid(mjcf *m, const xmlNode *node, mjcf_general *g)
{
    double kp = g->bias[1] != 0 ? -g->bias[1] : 1, kv = 0, ratio = 0;
    const bool damped = tb_xml_attribute(node, "kv") != NULL;
    const bool has_ratio = tb_xml_attribute(node, "dampratio") != NULL;
    if (damped && has_ratio)
        return tb_xml_fail(m->error, TB_INVALID_ARGUMENT, node, "dampratio",
                           "both kv and dampratio are given");
    if (g->type != MJCF_PID && g->gain_type != MJCF_GAIN_PID) g->gain[0] = g->dynamics[0] = 0;
    MJCF_TRY(tb_xml_number(node, "kp", &kp, m->error));
    MJCF_TRY(tb_xml_number(node, "kv", &kv, m->error));
    MJCF_TRY(tb_xml_number(node, "dampratio", &ratio, m->error));
    if (!(kv >= 0) || !(ratio >= 0))
        return tb_xml_fail(m->error, TB_INVALID_ARGUMENT, node, damped ? "kv" : "dampratio",
                           "is less than 0");
    g->gain_type = MJCF_GAIN_PID;
    g->bias_type = MJCF_BIAS_AFFINE;
    g->dynamics_type = MJCF_DYNAMICS_PID;
    g->bias[0] = 0;
    g->bias[1] = -kp;
    if (damped || has_ratio) g->bias[2] = damped ? -kv : ratio;
    MJCF_TRY(tb_xml_number(node, "ki", &g->gain[0], m->error));
    MJCF_TRY(tb_xml_number(node, "imax", &g->dynamics[0], m->error));
    MJCF_TRY(tb_xml_number(node, "slewmax", &g->dynamics[1], m->error));
    MJCF_TRY(tb_xml_number(node, "inheritrange", &g->inherit_range, m->error));
    return read_inputs(m, node, 3, &g->inputs);
}

tb_status mjcf_apply_orientation(mjcf *m, const xmlNode *node, mjcf_general *g)
{
    double kp = g->gain[0], kv = 0, ratio = 0;
    int32_t quaternion = g->quaternion ? 1 : 0;
    const bool damped = tb_xml_attribute(node, "kv") != NULL;
    const bool has_ratio = tb_xml_attribute(node, "dampratio") != NULL;
    MJCF_TRY(tb_xml_number(node, "kp", &kp, m->error));
    MJCF_TRY(tb_xml_number(node, "kv", &kv, m->error));
    MJCF_TRY(tb_xml_number(node, "dampratio", &ratio, m->error));
    MJCF_TRY(tb_xml_choice(node, "input", "expmap quat", &quaternion, m->error));
    if ((damped && has_ratio) || !(kv >= 0) || !(ratio >= 0))
        return tb_xml_fail(m->error, TB_INVALID_ARGUMENT, node, "dampratio",
                           "kv and dampratio are given both, or less than 0");
    g->gain_type = MJCF_GAIN_SO3;
    g->bias_type = MJCF_BIAS_SO3;
    g->dynamics_type = MJCF_DYNAMICS_NONE;
    g->quaternion = quaternion == 1;
    g->gain[0] = kp;
    g->bias[0] = 0;
    g->bias[1] = -kp;
    if (damped || has_ratio) g->bias[2] = damped ? -kv : ratio;
    return TB_OK;
}

/* ---- pid ---- */

static void set_position_servo(tb_actuator_def *def, const double bias[3])
{
    for (int i = 0; i < 3; i++) def->gain[i] = 0, def->bias[i] = bias[i];
    def->gain[0] = -bias[1];
}

/* A damping ratio, kept as a positive bias[2], needs the reflected inertia. */
static void take_ratio(mjcf *m, mjcf_actuator *actuator)
{
    if (!(actuator->def.bias[2] > 0)) return;
    actuator->damping_ratio = actuator->def.bias[2];
    actuator->def.bias[2] = 0;
    m->needs_inertia = true;
}

/* Range of one input's control: posrange is another name of ctrlrange. */
static tb_status read_input_range(mjcf *m, const mjcf_element *element, int32_t input,
                                  tb_actuator_def *def)
{
    static const char *const RANGES[] = {"posrange", "velrange", "ffrange", "ctrlrange"};
    double range[2] = {0};
    bool limited = false;
    if (mjcf_text(element, RANGES[input]) == NULL) {
        if (input > 0) def->control_limited = false;
        return TB_OK;
    }
    MJCF_TRY(mjcf_limits(m, element, "ctrllimited", RANGES[input], &limited, range));
    def->control_limited = limited && !m->no_control_clamp;
    def->control_lower = range[0], def->control_upper = range[1];
    return TB_OK;
}

/* Gives the actuator the first of its controls, which it returns. */
static int32_t begin_inputs(int32_t inputs, mjcf_actuator *actuator)
{
    tb_actuator_def *def = &actuator->def;
    int32_t first = 0;
    actuator->inputs = inputs;
    while ((inputs >> first & 1) == 0) first++;
    if (first > 0) def->gain[0] = first == 1 ? -def->bias[2] : 1;
    return first;
}

tb_status mjcf_translate_pid(mjcf *m, const mjcf_element *element, const mjcf_general *g,
                             mjcf_actuator *actuator)
{
    const xmlNode *node = element->node;
    tb_actuator_def *def = &actuator->def;
    if (g->bias_type != MJCF_BIAS_AFFINE ||
        (g->dynamics_type != MJCF_DYNAMICS_NONE && g->dynamics_type != MJCF_DYNAMICS_PID))
        return tb_xml_fail(m->error, TB_UNSUPPORTED, node, "gaintype",
                           "gaintype=\"pid\" with another biastype than affine, or another dyntype "
                           "than none and pid, is not supported");
    const bool dynamic = g->dynamics_type == MJCF_DYNAMICS_PID;
    set_position_servo(def, g->bias);
    def->integral_gain = dynamic ? g->gain[0] : 0;
    def->integral_limit = dynamic ? g->dynamics[0] : 0;
    def->slew_rate = dynamic ? g->dynamics[1] : 0;
    if (!(def->integral_gain >= 0) || !(def->integral_limit >= 0) || !(def->slew_rate >= 0))
        return tb_xml_fail(m->error, TB_INVALID_ARGUMENT, node, "ki",
                           "ki, imax or slewmax is less than 0");
    if ((g->inputs & 1) == 0 && (def->integral_gain > 0 || def->slew_rate > 0 || def->bias[2] > 0))
        return tb_xml_fail(m->error, TB_INVALID_ARGUMENT, node, "input",
                           "ki, slewmax and dampratio need the input pos");
    take_ratio(m, actuator);
    return read_input_range(m, element, begin_inputs(g->inputs, actuator), def);
}

tb_status mjcf_add_inputs(mjcf *m, const mjcf_element *element, const mjcf_actuator *actuator)
{
    bool first = true;
    for (int32_t i = 0; i < MJCF_INPUTS; i++) {
        if ((actuator->inputs >> i & 1) == 0) continue;
        if (first) {
            first = false;
            continue;
        }
        if (actuator->def.delay > 0)
            return tb_xml_fail(m->error, TB_UNSUPPORTED, element->node, "delay",
                               "delay of an actuator with several controls is not supported");
        mjcf_actuator input = *actuator;
        input.def.name = NULL;
        input.def.is_input = true;
        input.def.integral_gain = input.def.integral_limit = input.def.slew_rate = 0;
        input.def.force_limited = false;
        input.damping_ratio = 0;
        input.damps = i == 1;
        memset(input.def.bias, 0, sizeof input.def.bias);
        input.def.gain[0] = i == 1 ? -actuator->def.bias[2] : i == 3 ? actuator->voltage_gain : 1;
        /* all controls of a dcmotor have its ctrlrange */
        if (actuator->voltage_gain == 0) MJCF_TRY(read_input_range(m, element, i, &input.def));
        MJCF_TRY(mjcf_push_actuator(m, &input));
    }
    return TB_OK;
}

/* ---- dcmotor ---- */

/* Parameters in MuJoCo's places (its XML reference, actuator/dcmotor, and technical note). */
enum {
    MOTOR_RESISTANCE = 0, /* gain */
    MOTOR_CONSTANT = 1,
    MOTOR_CONTROLLER = 4, /* kp, ki, kd */
    MOTOR_VOLTAGE_LIMIT = 7,
    MOTOR_TIME = 0, /* dynamics */
    MOTOR_CURRENT_RATE = 1,
    MOTOR_THERMAL = 2, /* thermal resistance, capacitance or time: above 0 where they act */
    MOTOR_LUGRE = 5,   /* stiffness */
    MOTOR_SLEW_RATE = 7,
    MOTOR_INTEGRAL_LIMIT = 8
};

/* K and R from the motor's constants or its nominal point: K = sqrt(Kt Ke), or the one that is
 * given; at the nominal voltage the motor runs without load at no_load_speed against the damping
 * B, voltage K = no_load_speed (K^2 + R B), and stalls at K voltage / R. */
static tb_status resolve_motor(mjcf *m, const xmlNode *node, const double constants[2],
                               const double nominal[3], mjcf_general *g)
{
    const double voltage = nominal[0], stall = nominal[1], speed = nominal[2], b = g->damping;
    double kt = constants[0], ke = constants[1], r = g->gain[MOTOR_RESISTANCE];
    if (voltage > 0 && !(ke > 0) && speed > 0) {
        const double square = voltage * voltage - 4 * r * b * speed * speed;
        const double by_stall = stall > 0 ? voltage / speed - voltage * b / stall : 0;
        ke = voltage / speed;
        if (b > 0 && r > 0 && square > 0)
            ke = (voltage + sqrt(square)) / (2 * speed);
        else if (b > 0 && !(r > 0) && by_stall > 0)
            ke = by_stall;
    }
    const double k = kt > 0 && ke > 0 ? sqrt(kt * ke) : fmax(kt, ke);
    if (r == 0 && voltage > 0 && stall > 0) r = k * voltage / stall;
    if (!(k > 0) || !(r > 0))
        return tb_xml_fail(m->error, TB_INVALID_ARGUMENT, node, k > 0 ? "resistance" : "motorconst",
                           "a dcmotor needs a motor constant and a resistance above 0, not %g and "
                           "%g",
                           k, r);
    g->gain[MOTOR_RESISTANCE] = r;
    g->gain[MOTOR_CONSTANT] = k;
    return TB_OK;
}

tb_status mjcf_apply_dc_motor(mjcf *m, const xmlNode *node, mjcf_general *g)
{
    const bool inherits = g->gain_type == MJCF_GAIN_DC_MOTOR;
    double *gain = g->gain, *dynamics = g->dynamics;
    if (!inherits) {
        memset(gain, 0, sizeof g->gain);
        memset(dynamics, 0, sizeof g->dynamics);
        memset(g->bias, 0, sizeof g->bias);
        g->inputs = MJCF_INPUT_VOLTAGE;
    }
    g->gain_type = MJCF_GAIN_DC_MOTOR;
    g->bias_type = MJCF_BIAS_DC_MOTOR;
    g->dynamics_type = MJCF_DYNAMICS_DC_MOTOR;

    double constants[2] = {gain[MOTOR_CONSTANT], 0}, nominal[3] = {0};
    MJCF_TRY(tb_xml_numbers(node, "motorconst", 1, 2, constants, NULL, m->error));
    MJCF_TRY(tb_xml_number(node, "resistance", &gain[MOTOR_RESISTANCE], m->error));
    MJCF_TRY(tb_xml_numbers(node, "nominal", 1, 3, nominal, NULL, m->error));
    MJCF_TRY(resolve_motor(m, node, constants, nominal, g));

    double saturation[3] = {0, 0, dynamics[MOTOR_CURRENT_RATE]};
    MJCF_TRY(tb_xml_numbers(node, "saturation", 1, 3, saturation, NULL, m->error));
    dynamics[MOTOR_CURRENT_RATE] = saturation[2];
    if (saturation[0] > 0 || saturation[1] > 0)
        g->torque_limit = saturation[0] > 0 ? saturation[0] : gain[MOTOR_CONSTANT] * saturation[1];

    double inductance[2] = {0, dynamics[MOTOR_TIME]};
    MJCF_TRY(tb_xml_numbers(node, "inductance", 1, 2, inductance, NULL, m->error));
    if (!(inductance[0] >= 0) || !(inductance[1] >= 0))
        return tb_xml_fail(m->error, TB_INVALID_ARGUMENT, node, "inductance",
                           "inductance is less than 0");
    dynamics[MOTOR_TIME] =
        inductance[0] > 0 ? inductance[0] / gain[MOTOR_RESISTANCE] : inductance[1];

    double controller[6] = {gain[4],
                            gain[5],
                            gain[6],
                            dynamics[MOTOR_SLEW_RATE],
                            dynamics[MOTOR_INTEGRAL_LIMIT],
                            gain[MOTOR_VOLTAGE_LIMIT]};
    MJCF_TRY(tb_xml_numbers(node, "controller", 1, 6, controller, NULL, m->error));
    memcpy(gain + MOTOR_CONTROLLER, controller, 3 * sizeof *gain);
    dynamics[MOTOR_SLEW_RATE] = controller[3];
    dynamics[MOTOR_INTEGRAL_LIMIT] = controller[4];
    gain[MOTOR_VOLTAGE_LIMIT] = controller[5];

    /* effects that are refused, where they act, when an actuator uses them */
    double thermal[6] = {dynamics[MOTOR_THERMAL]};
    MJCF_TRY(tb_xml_numbers(node, "thermal", 1, 6, thermal, NULL, m->error));
    dynamics[MOTOR_THERMAL] = fmax(thermal[0], fmax(thermal[1], thermal[2]));
    double lugre[5] = {dynamics[MOTOR_LUGRE]};
    MJCF_TRY(tb_xml_numbers(node, "lugre", 1, 5, lugre, NULL, m->error));
    dynamics[MOTOR_LUGRE] = lugre[0];
    MJCF_TRY(tb_xml_numbers(node, "cogging", 1, 3, g->bias, NULL, m->error));
    if (tb_xml_attribute(node, "input") == NULL) return TB_OK;
    if (strcmp(tb_xml_attribute(node, "input"), "none") == 0) {
        g->inputs = 0;
        return TB_OK;
    }
    return read_inputs(m, node, MJCF_INPUTS, &g->inputs);
}

/* Why an actuator's parameters are refused; NULL if they are not. */
static const char *motor_refusal(const mjcf *m, const mjcf_general *g,
                                 const mjcf_actuator *actuator, const char **field)
{
    const bool coil = g->dynamics[MOTOR_TIME] > 0;
    const bool controlled = (g->inputs & ~MJCF_INPUT_VOLTAGE) != 0;
    *field = "thermal";
    if (g->dynamics[MOTOR_THERMAL] > 0)
        return "a winding whose resistance changes is not supported";
    *field = "lugre";
    if (g->dynamics[MOTOR_LUGRE] > 0)
        return "LuGre friction is not supported: frictionloss of the joint is dry friction";
    *field = "cogging";
    if (g->bias[0] != 0) return "cogging is not supported";
    *field = "saturation";
    if (coil && g->dynamics[MOTOR_CURRENT_RATE] > 0)
        return "a limit on the current's rate is not supported";
    *field = "input";
    if (g->inputs == 0)
        return "an actuator without control is not supported: the brake of a shorted motor is "
               "damping K^2/R of the joint";
    *field = "controller";
    if (!controlled) return NULL;
    if (coil) return "a controller of a motor with inductance is not supported";
    if (g->gain[MOTOR_VOLTAGE_LIMIT] > 0)
        return "Vmax, whose torque depends on the velocity, is not supported";
    if ((g->inputs & MJCF_INPUT_POSITION) == 0 && g->dynamics[MOTOR_SLEW_RATE] > 0)
        return "slewmax without the input pos is not supported";
    const bool ball = actuator->joint >= 0 && m->joints[actuator->joint].def.type == TB_JOINT_BALL;
    if (ball || !tb_handle_is_none(actuator->def.reference))
        return "a controller on a ball joint or with a refsite is not supported";
    return NULL;
}

/* The torque is K i. Without inductance i = (V - K v) / R; with it the current is the activation.
 * A controller's voltage (R/K) torque + K v makes its torque exactly. */
tb_status mjcf_translate_dc_motor(mjcf *m, const mjcf_element *element, const mjcf_general *g,
                                  mjcf_actuator *actuator)
{
    const xmlNode *node = element->node;
    tb_actuator_def *def = &actuator->def;
    const double k = g->gain[MOTOR_CONSTANT], r = g->gain[MOTOR_RESISTANCE];
    const double *controller = g->gain + MOTOR_CONTROLLER;
    const char *field = NULL, *reason = motor_refusal(m, g, actuator, &field);
    if (reason != NULL) return tb_xml_fail(m->error, TB_UNSUPPORTED, node, field, "%s", reason);
    actuator->voltage_gain = k / r;
    if (g->inputs != MJCF_INPUT_VOLTAGE) {
        const double bias[3] = {0, -controller[0], -controller[2]};
        set_position_servo(def, bias);
        def->integral_gain = controller[1];
        def->integral_limit = g->dynamics[MOTOR_INTEGRAL_LIMIT];
        def->slew_rate = g->dynamics[MOTOR_SLEW_RATE];
        if (!(def->integral_gain >= 0) || !(def->integral_limit >= 0) || !(def->slew_rate >= 0) ||
            ((g->inputs & MJCF_INPUT_POSITION) == 0 && def->integral_gain > 0))
            return tb_xml_fail(m->error, TB_INVALID_ARGUMENT, node, "controller",
                               "ki, Imax or slewmax is less than 0, or ki is given without the "
                               "input pos");
        begin_inputs(g->inputs, actuator);
        return TB_OK;
    }
    for (int i = 0; i < 3; i++)
        if (controller[i] != 0)
            return tb_xml_fail(m->error, TB_INVALID_ARGUMENT, node, "controller",
                               "a controller needs one of the inputs pos, vel and ff");
    const bool coil = g->dynamics[MOTOR_TIME] > 0;
    memset(def->gain, 0, sizeof def->gain);
    memset(def->bias, 0, sizeof def->bias);
    def->gain[0] = coil ? k : k / r;
    def->bias[2] = coil ? 0 : -k * k / r;
    if (coil) {
        def->activation = TB_ACTIVATION_CURRENT;
        def->time_constant = g->dynamics[MOTOR_TIME];
        def->resistance = r;
        def->back_emf = k;
    }
    return TB_OK;
}

/* ---- the plugin mujoco.pid ---- */

/* The element that holds the configuration: the named instance, or the actuator itself. */
static tb_status find_configuration(mjcf *m, const xmlNode *node, const xmlNode **found)
{
    const char *name = tb_xml_attribute(node, "instance");
    const xmlNode *root = tb_xml_root(m->xml);
    *found = node;
    if (name == NULL) return TB_OK;
    for (const xmlNode *s = tb_xml_first_named(root, "extension"); s != NULL;
         s = tb_xml_next_named(s, "extension"))
        for (const xmlNode *p = tb_xml_first_named(s, "plugin"); p != NULL;
             p = tb_xml_next_named(p, "plugin"))
            for (const xmlNode *i = tb_xml_first_named(p, "instance"); i != NULL;
                 i = tb_xml_next_named(i, "instance")) {
                const char *own = tb_xml_attribute(i, "name");
                *found = i;
                if (own != NULL && strcmp(own, name) == 0) return TB_OK;
            }
    return tb_xml_fail(m->error, TB_NOT_FOUND, node, "instance",
                       "there is no plugin instance '%.100s'", name);
}

static tb_status read_configuration(mjcf *m, const xmlNode *node, double values[5], bool given[5])
{
    static const char *const KEYS[] = {"kp", "ki", "kd", "imax", "slewmax"};
    for (const xmlNode *c = tb_xml_first_named(node, "config"); c != NULL;
         c = tb_xml_next_named(c, "config")) {
        const char *key = NULL;
        int32_t k = 0;
        MJCF_TRY(tb_xml_check_attributes(c, "key value", m->error));
        MJCF_TRY(tb_xml_require(c, "key", &key, m->error));
        while (k < 5 && strcmp(KEYS[k], key) != 0) k++;
        if (k == 5)
            return tb_xml_fail(m->error, TB_INVALID_ARGUMENT, c, "key",
                               "'%.60s' is not of kp, ki, kd, imax and slewmax", key);
        MJCF_TRY(tb_xml_require(c, "value", &key, m->error));
        MJCF_TRY(tb_xml_number(c, "value", &values[k], m->error));
        given[k] = true;
    }
    return TB_OK;
}

tb_status mjcf_translate_plugin(mjcf *m, const mjcf_element *element, mjcf_actuator *actuator)
{
    const xmlNode *node = element->node, *configuration = NULL;
    const char *plugin = mjcf_text(element, "plugin"), *dynamics = mjcf_text(element, "dyntype");
    double values[5] = {0};
    bool given[5] = {false};
    if (plugin == NULL || strcmp(plugin, "mujoco.pid") != 0)
        return tb_xml_fail(m->error, TB_UNSUPPORTED, node, "plugin",
                           "plugin '%.100s' is not supported: mujoco.pid alone is",
                           plugin != NULL ? plugin : "");
    if (dynamics != NULL && strcmp(dynamics, "none") != 0)
        return tb_xml_fail(m->error, TB_UNSUPPORTED, node, "dyntype",
                           "dyntype=\"%.40s\" of the plugin mujoco.pid is not supported", dynamics);
    MJCF_TRY(find_configuration(m, node, &configuration));
    MJCF_TRY(read_configuration(m, configuration, values, given));
    if ((given[3] && !(values[3] > 0)) || (given[4] && !(values[4] > 0)))
        return tb_xml_fail(m->error, TB_UNSUPPORTED, configuration, given[3] ? "imax" : "slewmax",
                           "imax and slewmax must be above 0");
    tb_actuator_def *def = &actuator->def;
    const double bias[3] = {0, -values[0], -values[2]};
    set_position_servo(def, bias);
    def->activation = TB_ACTIVATION_NONE;
    def->integral_gain = values[1];
    def->integral_limit = given[3] && values[1] != 0 ? values[3] / fabs(values[1]) : 0;
    def->early = true; /* the plugin adds the step's error before it makes the force */
    def->slew_rate = values[4];
    def->slew_from_control = true;
    actuator->integral_first = values[1] != 0 && values[4] > 0;
    return TB_OK;
}

/* ---- orientation ---- */

tb_status mjcf_translate_orientation(mjcf *m, const mjcf_element *element, const mjcf_general *g,
                                     mjcf_actuator *actuator)
{
    const xmlNode *node = element->node;
    tb_actuator_def *def = &actuator->def;
    const char *reason = NULL;
    if (actuator->joint < 0 || m->joints[actuator->joint].def.type != TB_JOINT_BALL ||
        def->in_parent)
        reason = "an orientation servo on anything but a ball joint is not supported";
    else if (g->bias_type != MJCF_BIAS_SO3 || g->dynamics_type != MJCF_DYNAMICS_NONE)
        reason = "an orientation servo whose setpoint is an activation is not supported";
    else if (def->force_limited)
        reason = "forcerange of an orientation servo is not supported";
    else if (def->delay > 0)
        reason = "delay of an actuator with several controls is not supported";
    if (reason != NULL) return tb_xml_fail(m->error, TB_UNSUPPORTED, node, NULL, "%s", reason);
    set_position_servo(def, g->bias);
    def->gain[0] = g->gain[0];
    take_ratio(m, actuator);
    def->orientation = g->quaternion ? TB_ORIENTATION_QUATERNION : TB_ORIENTATION_ROTATION_VECTOR;
    const double gear[6] = {1, 0, 0, 0, 0, 0};
    memcpy(def->gear, gear, sizeof gear);
    return TB_OK;
}

tb_status mjcf_add_axes(mjcf *m, const mjcf_actuator *actuator)
{
    mjcf_actuator axis = *actuator;
    axis.def.name = NULL;
    for (int32_t i = 1; i < 3; i++) {
        axis.def.gear[i - 1] = 0;
        axis.def.gear[i] = 1;
        MJCF_TRY(mjcf_push_actuator(m, &axis));
    }
    if (actuator->def.orientation != TB_ORIENTATION_QUATERNION) return TB_OK;
    axis.def.orientation = TB_ORIENTATION_NONE;
    axis.def.is_input = true;
    axis.damping_ratio = 0;
    memset(axis.def.gain, 0, sizeof axis.def.gain);
    memset(axis.def.bias, 0, sizeof axis.def.bias);
    return mjcf_push_actuator(m, &axis);
}

/* ---- delay ---- */

tb_status mjcf_read_delay(mjcf *m, const mjcf_element *element, tb_actuator_def *def)
{
    int32_t interpolation = 0;
    MJCF_TRY(mjcf_number(m, element, "delay", &def->delay));
    MJCF_TRY(mjcf_integer(m, element, "nsample", &def->samples));
    MJCF_TRY(mjcf_choice(m, element, "interp", "zoh linear cubic", &interpolation));
    if (def->delay < 0 || (def->delay > 0 && def->samples < 1))
        return tb_xml_fail(m->error, TB_INVALID_ARGUMENT, element->node, "delay",
                           "delay is %g s with %d samples: it must not be negative and needs "
                           "nsample",
                           def->delay, (int)def->samples);
    static const tb_interpolation KINDS[] = {TB_INTERPOLATION_HOLD, TB_INTERPOLATION_LINEAR,
                                             TB_INTERPOLATION_CUBIC};
    def->interpolation = KINDS[interpolation];
    if (def->delay == 0) def->samples = 0, def->interpolation = TB_INTERPOLATION_HOLD;
    return TB_OK;
}
