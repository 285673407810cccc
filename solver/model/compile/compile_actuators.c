/* Compiles actuators: their transmissions and the dofs of their moments.
 *
 * An actuator on a hinge, a slide, a fixed tendon, or along axes of its own joint has constant
 * moments. The step computes all other moments, one for each dof of a list built here: the chain
 * above a site, and for a pair of sites the dofs that move exactly one of the two. */
#include "model/model_internal.h"

#include <string.h>

static bool has_dof(const tb_compiler *c, int32_t body, int32_t dof)
{
    for (int32_t i = c->bodies[body].last_dof; i >= 0; i = c->dofs[i].parent)
        if (i == dof) return true;
    return false;
}

/* Writes (if `into` is not NULL) and counts the dofs above `body` that are not above `other`, from
 * the leaf to the root; other -1: none. */
static int32_t chain_of(const tb_compiler *c, int32_t body, int32_t other, int32_t *into)
{
    int32_t count = 0;
    for (int32_t i = c->bodies[body].last_dof; i >= 0; i = c->dofs[i].parent) {
        if (other >= 0 && has_dof(c, other, i)) continue;
        if (into != NULL) into[count] = i;
        count++;
    }
    return count;
}

/* The dofs of an actuator's moments. */
static int32_t list_moments(const tb_compiler *c, const tb_model_actuator *a, int32_t *into)
{
    const tb_model *m = c->model;
    if (a->transmission == TB_TRANSMISSION_JOINT) {
        const tb_model_joint *joint = &c->joints[a->joint];
        const int32_t count = tb_joint_dofs(joint->type);
        for (int32_t i = 0; into != NULL && i < count; i++) into[i] = joint->dof + i;
        return count;
    }
    if (a->site < 0) return 0;
    const int32_t body = m->sites[a->site].body;
    if (a->reference < 0) return chain_of(c, body, -1, into);
    const int32_t other = m->sites[a->reference].body;
    const int32_t own = chain_of(c, body, other, into);
    return own + chain_of(c, other, body, into != NULL ? into + own : NULL);
}

static int32_t model_site(const tb_compiler *c, tb_handle handle)
{
    const int32_t index = scene_index(handle);
    for (int32_t i = 0; i < c->model->number_of_sites; i++)
        if (c->scene_site[i] == index) return i;
    return -1;
}

static void set_target(const tb_compiler *c, const tb_actuator_def *def, tb_model_actuator *a)
{
    a->joint = a->tendon = a->site = a->body = a->reference = -1;
    a->transmission = TB_TRANSMISSION_FIXED;
    a->rod_length = def->rod_length;
    switch (def->target.kind) {
    case TB_HANDLE_TENDON: a->tendon = scene_index(def->target); break;
    case TB_HANDLE_BODY:
        a->body = c->model_body[scene_index(def->target)];
        a->transmission = TB_TRANSMISSION_BODY;
        break;
    case TB_HANDLE_SITE:
        a->site = model_site(c, def->target);
        if (!tb_handle_is_none(def->reference)) a->reference = model_site(c, def->reference);
        a->transmission = def->rod_length > 0 ? TB_TRANSMISSION_CRANK
                          : a->reference >= 0 ? TB_TRANSMISSION_SITE_TO_SITE
                                              : TB_TRANSMISSION_SITE;
        break;
    default:
        a->joint = c->model_joint[scene_index(def->target)];
        if (def->in_parent) a->transmission = TB_TRANSMISSION_JOINT;
    }
}

static double norm3(const double *x)
{
    return sqrt(x[0] * x[0] + x[1] * x[1] + x[2] * x[2]);
}

double tb_actuator_period(const tb_model_joint *joints, const tb_model_actuator *a)
{
    const double turn = 2 * 3.14159265358979323846;
    if (a->orientation != TB_ORIENTATION_NONE) return 0;
    const bool servo = a->gain_curve == TB_CURVE_AFFINE && a->bias_curve == TB_CURVE_AFFINE &&
                       a->gain[1] == 0 && a->gain[2] == 0 && a->gain[0] == -a->bias[1] &&
                       a->bias[1] != 0 &&
                       (a->activation < 0 || a->activation_kind == TB_ACTIVATION_INTEGRATOR);
    if (!servo) return 0;
    if (a->transmission == TB_TRANSMISSION_SITE_TO_SITE && norm3(a->gear) == 0)
        return turn * norm3(a->gear + 3);
    if (a->joint >= 0 && joints[a->joint].type == TB_JOINT_BALL) return turn * norm3(a->gear);
    return 0;
}

/* Activations in MuJoCo's order: followed setpoint, integral, own activation. */
static void take_memory(tb_compiler *c, const tb_actuator_def *def, tb_model_actuator *a)
{
    int32_t *count = &c->model->number_of_activations;
    a->activation = a->integral = a->slew = a->past = -1;
    if (def->is_input) return;
    if (def->slew_rate > 0) a->slew = (*count)++;
    if (def->integral_gain != 0) a->integral = (*count)++;
    if (def->activation != TB_ACTIVATION_NONE) a->activation = (*count)++;
    a->integral_gain = def->integral_gain;
    a->integral_limit = def->integral_limit;
    a->slew_rate = def->slew_rate;
    a->slew_from_control = def->slew_from_control;
    c->model->has_servo_memory = c->model->has_servo_memory || a->slew >= 0 || a->integral >= 0;
}

/* Past controls, behind all other activations of the model. */
static void take_pasts(tb_compiler *c, tb_model_actuator *actuators)
{
    for (int32_t i = 0; i < c->scene->number_of_actuators; i++) {
        const tb_actuator_def *def = &c->scene->actuators[i];
        if (!(def->delay > 0)) continue;
        actuators[i].past = c->model->number_of_activations;
        actuators[i].samples = def->samples;
        actuators[i].delay = def->delay;
        actuators[i].interpolation = def->interpolation;
        c->model->number_of_activations += 2 * def->samples;
    }
}

/* Counts the inputs behind each actuator, and numbers the actuators of each orientation servo. */
static tb_status join_actuators(tb_compiler *c, tb_model_actuator *actuators)
{
    int32_t owner = -1, component = 0;
    for (int32_t i = 0; i < c->scene->number_of_actuators; i++) {
        const tb_actuator_def *def = &c->scene->actuators[i];
        tb_model_actuator *a = &actuators[i];
        a->is_input = def->is_input;
        a->orientation = def->orientation;
        if (def->is_input && owner < 0)
            return tb_fail_field(c->error, TB_INVALID_ARGUMENT, "actuator",
                                 "actuator %d is an input, but there is no actuator before it",
                                 (int)i);
        if (def->is_input) {
            actuators[owner].number_of_inputs++;
            continue;
        }
        owner = i;
        const bool follows = component > 0 && def->orientation == actuators[i - 1].orientation &&
                             a->joint == actuators[i - 1].joint;
        if (component % 3 != 0 && !follows) break;
        component = def->orientation == TB_ORIENTATION_NONE ? 0 : component % 3 + 1;
        a->component = component > 0 ? component - 1 : 0;
    }
    if (component % 3 == 0) return TB_OK;
    return tb_fail_field(c->error, TB_INVALID_ARGUMENT, "orientation",
                         "needs three actuators in a row on one ball joint");
}

static void set_law(tb_compiler *c, const tb_actuator_def *def, tb_model_actuator *a)
{
    take_memory(c, def, a);
    a->activation_kind = def->activation;
    a->time_constant = def->time_constant;
    a->resistance = def->resistance;
    a->back_emf = def->back_emf;
    memcpy(a->muscle_times, def->muscle_times, sizeof a->muscle_times);
    a->gain_curve = def->gain_curve;
    a->bias_curve = def->bias_curve;
    memcpy(a->gear, def->gear, sizeof a->gear);
    memcpy(a->gain, def->gain, sizeof a->gain);
    memcpy(a->bias, def->bias, sizeof a->bias);
    a->muscle_gain = def->muscle_gain;
    a->muscle_bias = def->muscle_bias;
    memcpy(a->length_range, def->length_range, sizeof a->length_range);
    a->disabled = def->disabled;
    a->early = def->early;
    a->control_limited = def->control_limited;
    a->control_lower = def->control_lower;
    a->control_upper = def->control_upper;
    a->force_limited = def->force_limited;
    a->force_lower = def->force_lower;
    a->force_upper = def->force_upper;
    a->activation_limited = def->activation_limited;
    a->activation_lower = def->activation_lower;
    a->activation_upper = def->activation_upper;
    a->period = tb_actuator_period(c->joints, a);
}

/* ---- bounds of joints ---- */

/* Whether the actuator moves the dof, and whether it is on that joint alone. */
static bool moves(const tb_compiler *c, const tb_model_actuator *a, int32_t dof)
{
    const tb_model *m = c->model;
    if (a->joint >= 0) return c->dofs[dof].joint == a->joint;
    if (a->tendon >= 0) {
        const tb_model_tendon *t = &m->tendons[a->tendon];
        for (int32_t i = t->first; i < t->first + t->count; i++)
            if (m->tendon_dofs[i] == dof) return true;
        return false;
    }
    for (int32_t i = a->moment; i < a->moment + a->number_of_moments; i++)
        if (m->moment_dofs[i] == dof) return true;
    return false;
}

/* Clamps the actuator's own limits to the joint's or tendon's, divided by the gear: its own limits
 * first. */
static void narrow(tb_model_actuator *a, double gear, double first, double second)
{
    if (gear == 0) return;
    const double lower = fmin(first / gear, second / gear);
    const double upper = fmax(first / gear, second / gear);
    a->force_lower = a->force_limited ? fmin(fmax(a->force_lower, lower), upper) : lower;
    a->force_upper = a->force_limited ? fmin(fmax(a->force_upper, lower), upper) : upper;
    a->force_limited = true;
}

/* If a joint has one actuator, which acts on this joint alone, the joint's bound becomes the
 * actuator's limit; otherwise the step bounds the sum. */
static void bound_joints(tb_compiler *c, tb_model_actuator *actuators)
{
    tb_model *m = c->model;
    for (int32_t j = 0; j < m->number_of_joints; j++) {
        tb_model_joint *joint = &c->joints[j];
        int32_t count = 0, only = -1;
        if (!joint->force_limited) continue;
        for (int32_t i = 0; i < m->number_of_actuators; i++)
            if (moves(c, &actuators[i], joint->dof)) count++, only = i;
        const bool compensates = joint->actuators_compensate_gravity && m->compensates_gravity;
        if (count == 1 && actuators[only].joint == j && !compensates) {
            narrow(&actuators[only], actuators[only].gear[0], joint->force_lower,
                   joint->force_upper);
            joint->force_limited = false;
        } else if (count > 0 || compensates) {
            m->has_joint_forces = true;
        }
    }
}

/* The same for tendons, whose bounds are for forces before the gear (as MuJoCo has them). */
static void bound_tendons(tb_compiler *c, tb_model_actuator *actuators, tb_model_tendon *tendons)
{
    tb_model *m = c->model;
    for (int32_t t = 0; t < m->number_of_tendons; t++) {
        int32_t count = 0, only = -1;
        if (!tendons[t].force_limited) continue;
        for (int32_t i = 0; i < m->number_of_actuators; i++)
            if (actuators[i].tendon == t && !actuators[i].is_input) count++, only = i;
        if (count == 1) narrow(&actuators[only], 1, tendons[t].force_lower, tendons[t].force_upper);
        if (count < 2) tendons[t].force_limited = false;
        m->has_joint_forces = m->has_joint_forces || count > 1;
    }
}

tb_status tb_compile_actuators(tb_compiler *c)
{
    const int32_t count = c->scene->number_of_actuators;
    tb_model *model = c->model;
    tb_model_actuator *actuators = TB_ARENA_ZEROED(&model->arena, tb_model_actuator, count);
    if (actuators == NULL)
        return tb_fail_memory(c->error, (size_t)count * sizeof *actuators, "actuators");
    int64_t moments = 0;
    for (int32_t i = 0; i < count; i++) {
        tb_model_actuator *a = &actuators[i];
        set_target(c, &c->scene->actuators[i], a);
        set_law(c, &c->scene->actuators[i], a);
        a->number_of_moments = a->own_moments = list_moments(c, a, NULL);
        if (a->reference >= 0)
            a->own_moments =
                chain_of(c, model->sites[a->site].body, model->sites[a->reference].body, NULL);
        a->moment = (int32_t)moments;
        moments += a->number_of_moments;
        model->has_adhesion = model->has_adhesion || a->transmission == TB_TRANSMISSION_BODY;
        if (moments > INT32_MAX)
            return tb_fail_memory(c->error, (size_t)moments * sizeof(int32_t), "moments");
    }
    int32_t *dofs = TB_ARENA_ARRAY(&model->arena, int32_t, moments);
    if (dofs == NULL) return tb_fail_memory(c->error, (size_t)moments * sizeof *dofs, "moments");
    for (int32_t i = 0; i < count; i++) list_moments(c, &actuators[i], dofs + actuators[i].moment);
    model->actuators = actuators;
    model->number_of_actuators = count;
    model->moment_dofs = dofs;
    model->number_of_moments = (int32_t)moments;
    take_pasts(c, actuators);
    bound_joints(c, actuators);
    bound_tendons(c, actuators, c->tendons);
    return join_actuators(c, actuators);
}
