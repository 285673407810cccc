/* The scene builder: actuators. They refer to joints, tendons, sites and bodies. */
#include "model/model_internal.h"

#include <string.h>

tb_actuator_def tb_actuator_defaults(void)
{
    tb_actuator_def def = {0};
    def.gear[0] = 1;
    def.gain[0] = 1;
    return def;
}

void tb_actuator_position_servo(tb_actuator_def *def, double stiffness, double damping)
{
    const double gain[3] = {stiffness, 0, 0}, bias[3] = {0, -stiffness, -damping};
    memcpy(def->gain, gain, sizeof gain);
    memcpy(def->bias, bias, sizeof bias);
}

void tb_actuator_velocity_servo(tb_actuator_def *def, double gain)
{
    const double gains[3] = {gain, 0, 0}, bias[3] = {0, 0, -gain};
    memcpy(def->gain, gains, sizeof gains);
    memcpy(def->bias, bias, sizeof bias);
}

/* ---- targets ---- */

/* Gears that a joint has. */
static int check_joint_target(tb_check *check, const tb_scene *scene, tb_actuator_def *actuator)
{
    int32_t target = -1;
    tb_check_handle(check, scene, "target", actuator->target, TB_HANDLE_JOINT, false, &target);
    const tb_joint_type type = check->status == TB_OK ? scene->joints[target].type : TB_JOINT_HINGE;
    if (type == TB_JOINT_FIXED || type == TB_JOINT_PLANAR)
        tb_check_fail(check, "target", "must not be a fixed or planar joint");
    if (type != TB_JOINT_BALL && type != TB_JOINT_FREE) actuator->in_parent = false;
    return tb_joint_dofs(type);
}

static bool is_zero(const double *x, int count)
{
    bool zero = true;
    for (int i = 0; i < count; i++) zero = zero && x[i] == 0;
    return zero;
}

/* An adhesion force is a control times a constant gain, without length and velocity terms, and
 * never pushes. */
static void check_adhesion(tb_check *check, const tb_actuator_def *a)
{
    if (a->gain_curve != TB_CURVE_AFFINE || a->bias_curve != TB_CURVE_AFFINE ||
        a->activation != TB_ACTIVATION_NONE || !is_zero(a->bias, 3) || !is_zero(a->gain + 1, 2))
        tb_check_fail(check, "target",
                      "is a body, whose force must be the gain times the control alone");
    else if (!(a->gain[0] >= 0) || !a->control_limited || !(a->control_lower >= 0))
        tb_check_fail(check, "target",
                      "is a body, which needs a gain and control limits that are not negative");
}

/* Checks the actuator's target, and clears unused gears. */
static void check_target(tb_check *check, const tb_scene *scene, tb_actuator_def *actuator)
{
    const tb_handle none = {0};
    int32_t index = -1;
    int gears = 1;
    const uint16_t kind = actuator->target.kind;
    if (kind != TB_HANDLE_SITE) {
        actuator->reference = none;
        actuator->rod_length = 0;
    }
    if (kind != TB_HANDLE_JOINT) actuator->in_parent = false;
    if (kind == TB_HANDLE_TENDON) {
        tb_check_handle(check, scene, "target", actuator->target, TB_HANDLE_TENDON, false, &index);
    } else if (kind == TB_HANDLE_SITE) {
        tb_check_handle(check, scene, "target", actuator->target, TB_HANDLE_SITE, false, &index);
        tb_check_handle(check, scene, "reference", actuator->reference, TB_HANDLE_SITE, true,
                        &index);
        tb_check_not_negative(check, "rod_length", &actuator->rod_length, 1);
        if (actuator->rod_length > 0 && tb_handle_is_none(actuator->reference))
            tb_check_fail(check, "reference", "is missing: a slider-crank needs the slider's site");
        gears = actuator->rod_length > 0 ? 1 : 6;
    } else if (kind == TB_HANDLE_BODY) {
        tb_check_handle(check, scene, "target", actuator->target, TB_HANDLE_BODY, false, &index);
        check_adhesion(check, actuator);
        gears = 0;
    } else {
        gears = check_joint_target(check, scene, actuator);
    }
    for (int i = gears; i < 6; i++) actuator->gear[i] = 0;
}

/* ---- curves and activation ---- */

static void check_muscle(tb_check *check, const char *field, tb_actuator_curve curve,
                         tb_muscle *muscle)
{
    if (curve != TB_CURVE_MUSCLE) {
        memset(muscle, 0, sizeof *muscle);
        return;
    }
    double numbers[] = {muscle->range[0], muscle->range[1], muscle->force,   muscle->shortest,
                        muscle->longest,  muscle->fastest,  muscle->passive, muscle->lengthening};
    tb_check_numbers(check, field, numbers, (int)(sizeof numbers / sizeof numbers[0]));
    if (check->status != TB_OK) return;
    if (!(muscle->range[0] < muscle->range[1]))
        tb_check_fail(check, field, "has a range that does not rise");
    else if (!(muscle->shortest < 1) || !(muscle->longest > 1))
        tb_check_fail(check, field, "is not active around its optimal length, 1");
    else if (!(muscle->force >= 0) || !(muscle->fastest > 0) || !(muscle->passive >= 0) ||
             !(muscle->lengthening > 0))
        tb_check_fail(check, field,
                      "needs force and passive >= 0, fastest > 0 and lengthening > 0");
}

static void check_current(tb_check *check, tb_actuator_def *actuator)
{
    tb_check_positive(check, "resistance", &actuator->resistance, 1);
    tb_check_not_negative(check, "back_emf", &actuator->back_emf, 1);
    actuator->early = true;
    if (actuator->activation_limited)
        tb_check_fail(check, "activation limits", "are not for a current");
    if (actuator->gain_curve != TB_CURVE_AFFINE || actuator->bias_curve != TB_CURVE_AFFINE ||
        !(actuator->gain[0] >= 0) || !is_zero(actuator->gain + 1, 2) || !is_zero(actuator->bias, 3))
        tb_check_fail(check, "gain", "of a current is one number, not negative, without bias");
}

static void check_activation(tb_check *check, tb_actuator_def *actuator)
{
    if ((unsigned)actuator->activation > TB_ACTIVATION_CURRENT)
        tb_check_fail(check, "activation", "%d is none", (int)actuator->activation);
    if (actuator->activation == TB_ACTIVATION_CURRENT)
        check_current(check, actuator);
    else
        actuator->resistance = actuator->back_emf = 0;
    if (actuator->activation == TB_ACTIVATION_FILTER ||
        actuator->activation == TB_ACTIVATION_CURRENT)
        tb_check_positive(check, "time_constant", &actuator->time_constant, 1);
    else
        actuator->time_constant = 0;
    if (actuator->activation == TB_ACTIVATION_MUSCLE) {
        tb_check_positive(check, "muscle_times", actuator->muscle_times, 2);
        tb_check_not_negative(check, "muscle_times", actuator->muscle_times + 2, 1);
    } else {
        memset(actuator->muscle_times, 0, sizeof actuator->muscle_times);
    }
    if (actuator->activation == TB_ACTIVATION_NONE && actuator->integral_gain == 0)
        actuator->early = false;
}

/* Integral action and a slew rate are those of a servo without activation. */
static void check_servo(tb_check *check, tb_actuator_def *a)
{
    tb_check_numbers(check, "integral_gain", &a->integral_gain, 1);
    tb_check_not_negative(check, "integral_limit", &a->integral_limit, 1);
    tb_check_not_negative(check, "slew_rate", &a->slew_rate, 1);
    if (a->integral_gain == 0) a->integral_limit = 0;
    if (a->slew_rate == 0) a->slew_from_control = false;
    if ((a->integral_gain != 0 || a->slew_rate != 0) &&
        (a->activation != TB_ACTIVATION_NONE || a->gain_curve != TB_CURVE_AFFINE ||
         a->target.kind == TB_HANDLE_BODY || a->orientation != TB_ORIENTATION_NONE))
        tb_check_fail(check, "integral_gain",
                      "and slew_rate are for servos without activation, muscle or orientation");
}

static void check_orientation(tb_check *check, const tb_scene *scene, const tb_actuator_def *a)
{
    if ((unsigned)a->orientation > TB_ORIENTATION_QUATERNION)
        tb_check_fail(check, "orientation", "%d is none", (int)a->orientation);
    if (a->orientation == TB_ORIENTATION_NONE || check->status != TB_OK) return;
    if (a->target.kind != TB_HANDLE_JOINT ||
        scene->joints[scene_index(a->target)].type != TB_JOINT_BALL || a->in_parent)
        tb_check_fail(check, "orientation", "is for actuators on a ball joint, in its own axes");
    else if (a->activation != TB_ACTIVATION_NONE || a->gain_curve != TB_CURVE_AFFINE ||
             a->bias_curve != TB_CURVE_AFFINE || a->delay > 0)
        tb_check_fail(check, "orientation", "takes neither activation, muscle nor delay");
}

enum { MOST_SAMPLES = 10000 };

static void check_delay(tb_check *check, tb_actuator_def *a)
{
    tb_check_not_negative(check, "delay", &a->delay, 1);
    if ((unsigned)a->interpolation > TB_INTERPOLATION_CUBIC)
        tb_check_fail(check, "interpolation", "%d is none", (int)a->interpolation);
    if (a->delay > 0 && (a->samples < 1 || a->samples > MOST_SAMPLES))
        tb_check_fail(check, "samples", "must be 1 to %d for a delay, not %d", MOST_SAMPLES,
                      (int)a->samples);
    if (a->delay == 0) a->samples = 0, a->interpolation = TB_INTERPOLATION_HOLD;
}

static void check_curves(tb_check *check, tb_actuator_def *actuator)
{
    if ((unsigned)actuator->gain_curve > TB_CURVE_MUSCLE ||
        (unsigned)actuator->bias_curve > TB_CURVE_MUSCLE)
        tb_check_fail(check, "gain_curve", "is none");
    check_muscle(check, "muscle_gain", actuator->gain_curve, &actuator->muscle_gain);
    check_muscle(check, "muscle_bias", actuator->bias_curve, &actuator->muscle_bias);
    const bool gain = actuator->gain_curve == TB_CURVE_MUSCLE;
    const bool bias = actuator->bias_curve == TB_CURVE_MUSCLE;
    if (gain) memset(actuator->gain, 0, sizeof actuator->gain);
    if (bias) memset(actuator->bias, 0, sizeof actuator->bias);
    if (!gain && !bias) memset(actuator->length_range, 0, sizeof actuator->length_range);
    tb_check_bounds(check, "length_range", gain || bias, &actuator->length_range[0],
                    &actuator->length_range[1]);
    if ((gain || bias) && check->status == TB_OK &&
        !(actuator->length_range[0] < actuator->length_range[1]))
        tb_check_fail(check, "length_range", "must rise");
    tb_check_numbers(check, "gain", actuator->gain, 3);
    tb_check_numbers(check, "bias", actuator->bias, 3);
}

tb_status tb_scene_add_actuator(tb_scene *scene, const tb_actuator_def *def, tb_handle *handle,
                                tb_error *error)
{
    const int32_t index = scene->number_of_actuators;
    tb_actuator_def actuator = *def;
    if (handle != NULL) memset(handle, 0, sizeof *handle);

    tb_check check = tb_check_begin(TB_HANDLE_ACTUATOR, def->name, index, error);
    tb_check_numbers(&check, "gear", actuator.gear, 6);
    check_target(&check, scene, &actuator);
    check_curves(&check, &actuator);
    tb_check_bounds(&check, "control limits", def->control_limited, &actuator.control_lower,
                    &actuator.control_upper);
    tb_check_bounds(&check, "force limits", def->force_limited, &actuator.force_lower,
                    &actuator.force_upper);
    tb_check_bounds(&check, "activation limits", def->activation_limited,
                    &actuator.activation_lower, &actuator.activation_upper);
    check_activation(&check, &actuator);
    check_servo(&check, &actuator);
    check_orientation(&check, scene, &actuator);
    check_delay(&check, &actuator);
    tb_check_name(&check, scene);
    if (check.status != TB_OK) return check.status;

    tb_status status = tb_scene_reserve(&scene->actuators, index, &scene->actuator_capacity,
                                        sizeof actuator, TB_HANDLE_ACTUATOR, error);
    if (status == TB_OK)
        status =
            tb_scene_enter_name(scene, TB_HANDLE_ACTUATOR, def->name, index, &actuator.name, error);
    if (status != TB_OK) return status;
    scene->actuators[index] = actuator;
    scene->number_of_actuators++;
    if (handle != NULL) *handle = tb_handle_make(TB_HANDLE_ACTUATOR, scene->owner, index);
    return TB_OK;
}
