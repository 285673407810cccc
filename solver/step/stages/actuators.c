/* Actuators: control and activation to force.
 *
 * An actuator's force is gain times input plus bias, both functions of its length l and velocity v.
 * Here that becomes f = constant - damping v with v at the end of the step, exact where gain and
 * bias are affine and linearized where they are a muscle's, so that servos, dampers and muscles are
 * integrated implicitly. A part that would push harder the faster it moves stays explicit. */
#include <math.h>

#include "step/stages/delay.h"
#include "step/stages/muscle.h"
#include "step/stages/stages.h"

/* ---- activation ---- */

TB_EXTERN double tb_actuator_control_now(const tb_world *world, int32_t actuator)
{
    const tb_model_actuator *a = &world->model->actuators[actuator];
    const tb_state *s = world->state;
    double control = s->controls[actuator];
    if (a->past >= 0)
        control = tb_past_control(s->activations + a->past, a->samples, s->time - a->delay,
                                  a->interpolation);
    return tb_actuator_control(a, control);
}

TB_EXTERN double tb_activation_after(const tb_model_actuator *actuator, double control,
                                     double velocity, double activation, double dt)
{
    const tb_model_actuator *a = actuator;
    const double x = tb_actuator_control(a, control);
    double act = activation, time = a->time_constant, target = x;
    if (a->disabled) return act;
    if (a->activation_kind == TB_ACTIVATION_MUSCLE) {
        time = fmax(1e-15, tb_muscle_time(a->muscle_times, x, act));
        target = fmin(fmax(x, 0.0), 1.0);
    }
    if (a->activation_kind == TB_ACTIVATION_CURRENT)
        target = (x - a->back_emf * velocity) / a->resistance;
    if (a->activation_kind == TB_ACTIVATION_INTEGRATOR)
        act += dt * x;
    else /* exact for a control and a time constant that are held */
        act += (target - act) * -expm1(-dt / time);
    if (a->activation_limited) act = fmin(fmax(act, a->activation_lower), a->activation_upper);
    return act;
}

TB_STATIC double step_time(const tb_world *w)
{
    return w->dt > 0 ? (double)w->dt : w->model->dt;
}

/* The control's value at the end of the step's slew, which starts at the followed setpoint. */
TB_STATIC double followed_setpoint(const tb_world *w, const tb_model_actuator *a, double control)
{
    if (a->slew < 0 || (a->slew_from_control && !(w->state->time > 0))) return control;
    const double before = w->state->activations[a->slew], way = a->slew_rate * step_time(w);
    if (a->period > 0) control -= a->period * rint((control - before) / a->period);
    return fmin(fmax(control, before - way), before + way);
}

/* The gain's input: the control, or the activation. A current's input leaves out the back EMF, which
 * damps (current_damping). */
TB_STATIC double input_of(const tb_world *w, int32_t actuator)
{
    const tb_model_actuator *a = &w->model->actuators[actuator];
    const double control = tb_actuator_control_now(w, actuator);
    if (a->activation < 0) return followed_setpoint(w, a, control);
    const double act = w->state->activations[a->activation];
    return a->early ? tb_activation_after(a, control, 0, act, step_time(w)) : act;
}

/* Damping that a current's back EMF makes during a step: the force at the step's end falls by it
 * times the velocity. */
TB_STATIC double current_damping(const tb_world *w, const tb_model_actuator *a)
{
    if (a->activation_kind != TB_ACTIVATION_CURRENT || a->activation < 0) return 0;
    const double share = -expm1(-step_time(w) / a->time_constant);
    return a->gain[0] * a->back_emf / a->resistance * share;
}

/* Velocity of an actuator at which dampers act during a step, as in tb_spring_damper. */
TB_STATIC double damped_velocity(const tb_world *w, int32_t actuator)
{
    const tb_transmission t = tb_actuator_transmission(w, actuator);
    const double theta = (double)w->theta;
    return theta * tb_transmission_velocity(&t, w->u_end) +
           (1 - theta) * tb_transmission_velocity(&t, w->u);
}

TB_STATIC double integral_after(const tb_model_actuator *a, double integral, double error,
                                double dt)
{
    const double z = integral + dt * error, most = a->integral_limit;
    return most > 0 ? fmin(fmax(z, -most), most) : z;
}

TB_EXTERN void tb_actuator_advance(const tb_world *world, int32_t actuator, tb_state *state)
{
    const tb_world *w = world;
    const tb_model_actuator *a = &w->model->actuators[actuator];
    const double dt = (double)w->dt;
    if (a->activation >= 0) {
        double *act = &state->activations[a->activation];
        const bool current = a->activation_kind == TB_ACTIVATION_CURRENT;
        const double velocity = current ? damped_velocity(w, actuator) : 0;
        *act = tb_activation_after(a, tb_actuator_control_now(w, actuator), velocity, *act, dt);
    }
    if (a->slew >= 0 && !a->disabled) state->activations[a->slew] = w->setpoints[actuator];
    if (a->integral >= 0 && !a->disabled) {
        double *z = &state->activations[a->integral];
        *z = integral_after(a, *z, w->servo_errors[actuator], dt);
    }
    if (a->past >= 0)
        tb_keep_control(state->activations + a->past, a->samples, state->time,
                        state->controls[actuator], dt);
}

/* Rotation vector (rad, child's axes) from a ball joint's orientation to the wanted one; its
 * component for the actuator. */
TB_STATIC double orientation_error(const tb_world *w, int32_t actuator)
{
    const tb_model_actuator *a = &w->model->actuators[actuator];
    const tb_real *x = w->q + w->model->joints[a->joint].coordinate;
    const int32_t first = actuator - a->component;
    tb_real c[4] = {0, 0, 0, 0};
    for (int i = 0; i < (a->orientation == TB_ORIENTATION_QUATERNION ? 4 : 3); i++)
        c[i] = TB_R(tb_actuator_control_now(w, first + i));
    tb_quaternion wanted = tb_q_identity();
    if (a->orientation == TB_ORIENTATION_ROTATION_VECTOR)
        wanted = tb_q_from_rotation_vector(tb_v3(c[0], c[1], c[2]));
    else if (c[0] != 0 || c[1] != 0 || c[2] != 0 || c[3] != 0)
        wanted = tb_q_normalize(tb_q(c[0], c[1], c[2], c[3]));
    const tb_quaternion now = tb_q_normalize(tb_q(x[0], x[1], x[2], x[3]));
    const tb_vec3 turn = tb_q_rotation_vector(tb_q_mul(tb_q_conjugate(now), wanted));
    return (double)tb_v3_at(turn, a->component);
}

/* ---- force ---- */

/* Stiffness and damping of a law, and the rest of it: f = rest - k l - d v. */
typedef struct force_law {
    double rest, k, d;
} force_law;

/* Adds `scale` times a muscle's force, linearized at length l and velocity v. A destabilising
 * spring or damper term keeps its value at l and v. */
TB_STATIC void add_muscle(force_law *law, tb_muscle_force f, double scale, double l, double v)
{
    const double k = fmax(0.0, -scale * f.by_length), d = fmax(0.0, -scale * f.by_velocity);
    law->rest += scale * f.force + k * l + d * v;
    law->k += k;
    law->d += d;
}

TB_STATIC force_law law_of(const tb_model_actuator *a, double input, double l, double v)
{
    force_law law = {0, 0, 0};
    if (a->gain_curve == TB_CURVE_MUSCLE) {
        add_muscle(&law, tb_muscle_gain(&a->muscle_gain, a->length_range, l, v), input, l, v);
    } else {
        law.rest += a->gain[0] * input;
        law.k -= a->gain[1] * input;
        law.d -= a->gain[2] * input;
    }
    if (a->bias_curve == TB_CURVE_MUSCLE) {
        add_muscle(&law, tb_muscle_bias(&a->muscle_bias, a->length_range, l), 1, l, v);
    } else {
        law.rest += a->bias[0];
        law.k -= a->bias[1];
        law.d -= a->bias[2];
    }
    return law;
}

TB_STATIC bool is_muscle(const tb_model_actuator *a)
{
    return a->gain_curve == TB_CURVE_MUSCLE || a->bias_curve == TB_CURVE_MUSCLE;
}

/* The input at an actuator's length l, on the turn nearest to it. */
TB_STATIC double servo_input(const tb_world *w, int32_t actuator, double l)
{
    const tb_model_actuator *a = &w->model->actuators[actuator];
    if (a->orientation != TB_ORIENTATION_NONE) return l + orientation_error(w, actuator);
    const double input = input_of(w, actuator);
    return a->period > 0 ? input - a->period * rint((input - l) / a->period) : input;
}

/* Force of the inputs behind an actuator. */
TB_STATIC double further_inputs(const tb_world *w, int32_t actuator)
{
    const tb_model_actuator *a = &w->model->actuators[actuator];
    double force = 0;
    for (int32_t i = 1; i <= a->number_of_inputs; i++)
        force += a[i].gain[0] * tb_actuator_control_now(w, actuator + i);
    return force;
}

TB_STATIC double integral_force(const tb_world *w, const tb_model_actuator *a, double error)
{
    if (a->integral < 0) return 0;
    const double z = w->state->activations[a->integral];
    return a->integral_gain * (a->early ? integral_after(a, z, error, step_time(w)) : z);
}

TB_EXTERN tb_actuator_law tb_actuator_evaluate(const tb_world *world, int32_t actuator)
{
    const tb_world *w = world;
    const tb_model_actuator *a = &w->model->actuators[actuator];
    tb_actuator_law law = {.lower = -INFINITY, .upper = INFINITY};
    if (a->disabled || a->is_input || a->transmission == TB_TRANSMISSION_BODY) return law;
    if (w->held && w->held[actuator]) {
        law.constant = w->actuator_force[actuator];
        return law;
    }
    const tb_transmission t = tb_actuator_transmission(w, actuator);
    const double l = tb_actuator_length(w, actuator);
    const double v = is_muscle(a) ? tb_transmission_velocity(&t, w->u) : 0;
    double past;
    const double input = servo_input(w, actuator, l);
    force_law f = law_of(a, input, l, v);
    f.rest += further_inputs(w, actuator) + integral_force(w, a, input - l);
    f.d += current_damping(w, a);
    tb_spring_damper(w, f.k, f.d, &past, &law.damping);
    law.constant = f.rest - f.k * l;
    if (past != 0) law.constant += past * tb_transmission_velocity(&t, w->u);
    if (a->force_limited) {
        law.lower = a->force_lower;
        law.upper = a->force_upper;
    }
    return law;
}

/* ---- pushing ---- */

/* Adds an actuator's force to the forces of the dofs. */
TB_STATIC void add_push(const tb_world *w, int32_t actuator, tb_real *force)
{
    const double f = w->actuator_force[actuator];
    if (f == 0) return;
    const tb_transmission t = tb_actuator_transmission(w, actuator);
    for (int32_t i = 0; i < t.count; i++)
        force[tb_transmission_dof(&t, i)] += TB_R(t.scale * t.coefficients[i] * f);
}

/* Force at the start of the step without the limits. */
TB_STATIC double force_wanted(const tb_world *w, int32_t actuator)
{
    const tb_actuator_law law = tb_actuator_evaluate(w, actuator);
    const tb_transmission t = tb_actuator_transmission(w, actuator);
    return law.constant - law.damping * tb_transmission_velocity(&t, w->u);
}

TB_STATIC bool acts_on(const tb_transmission *t, int32_t dof)
{
    for (int32_t i = 0; i < t->count; i++)
        if (tb_transmission_dof(t, i) == dof && t->coefficients[i] != 0) return true;
    return false;
}

/* Joints bound the sum of their actuators' forces (MuJoCo's actuatorfrcrange). Where the forces at
 * the start of the step exceed the bounds, the actuators of that joint push with these forces, and
 * the joint takes the excess away. One lane's work; motor_excess holds the sums first. */
TB_STATIC void hold_joints(tb_world *w)
{
    const tb_model *m = w->model;
    for (int32_t i = 0; i < m->number_of_dofs; i++) w->motor_excess[i] = 0;
    for (int32_t a = 0; a < m->number_of_actuators; a++) add_push(w, a, w->motor_excess);
    for (int32_t i = 0; i < m->number_of_dofs; i++) {
        const tb_model_joint *joint = &m->joints[m->dofs[i].joint];
        const bool compensates = joint->actuators_compensate_gravity && w->compensation;
        const tb_real sum = w->motor_excess[i] + (compensates ? w->compensation[i] : TB_R(0));
        w->motor_excess[i] = 0;
        if (!joint->force_limited ||
            (sum >= TB_R(joint->force_lower) && sum <= TB_R(joint->force_upper)))
            continue;
        w->motor_excess[i] =
            tb_clamp(sum, TB_R(joint->force_lower), TB_R(joint->force_upper)) - sum;
        for (int32_t a = 0; a < m->number_of_actuators; a++) {
            const tb_transmission t = tb_actuator_transmission(w, a);
            w->held[a] = w->held[a] || acts_on(&t, i);
        }
    }
}

/* Tendons bound the sum of their actuators' forces, which are scaled to meet the bound (MuJoCo's
 * actuatorfrcrange), before the actuators' own limits. One lane's work. */
TB_STATIC void hold_tendons(tb_world *w)
{
    const tb_model *m = w->model;
    for (int32_t i = 0; i < m->number_of_tendons; i++) {
        const tb_model_tendon *t = &m->tendons[i];
        double sum = 0;
        if (!t->force_limited) continue;
        for (int32_t a = 0; a < m->number_of_actuators; a++)
            if (m->actuators[a].tendon == i) sum += force_wanted(w, a);
        if (sum >= t->force_lower && sum <= t->force_upper) continue;
        const double scale = (sum < t->force_lower ? t->force_lower : t->force_upper) / sum;
        for (int32_t a = 0; a < m->number_of_actuators; a++) {
            if (m->actuators[a].tendon != i || m->actuators[a].disabled) continue;
            const double force = scale * force_wanted(w, a);
            const tb_model_actuator *own = &m->actuators[a];
            w->actuator_force[a] =
                own->force_limited ? fmin(fmax(force, own->force_lower), own->force_upper) : force;
            w->held[a] = true;
        }
    }
}

/* Force at the start of the step, within the actuator's own limits. */
TB_STATIC double force_now(const tb_world *w, int32_t actuator, const tb_actuator_law *law)
{
    const tb_transmission t = tb_actuator_transmission(w, actuator);
    const double velocity = tb_transmission_velocity(&t, w->u);
    return fmin(fmax(law->constant - law->damping * velocity, law->lower), law->upper);
}

/* Keeps the change of a servo's activations for the end of the step. */
TB_STATIC void note_servo(tb_world *w, int32_t actuator)
{
    const tb_model_actuator *a = &w->model->actuators[actuator];
    if (a->is_input || (a->slew < 0 && a->integral < 0)) return;
    const double l = tb_actuator_length(w, actuator);
    w->setpoints[actuator] = input_of(w, actuator);
    w->servo_errors[actuator] = servo_input(w, actuator, l) - l;
}

TB_EXTERN void tb_actuators_push(tb_world *world, bool all)
{
    tb_world *w = world;
    const tb_model *m = w->model;
    bool any = false;
    TB_EACH (a, m->number_of_actuators) {
        if (w->held) w->held[a] = false;
        const tb_actuator_law law = tb_actuator_evaluate(w, a);
        if (w->setpoints) note_servo(w, a);
        w->actuator_force[a] = 0;
        if (law.damping > 0 && !all && !w->held) continue;
        w->actuator_force[a] = force_now(w, a, &law);
        any = true;
    }
    tb_team_sync();
    if (!tb_team_any(any)) return;
    if (w->held) {
        if (TB_LEADER) hold_tendons(w);
        if (TB_LEADER) hold_joints(w);
        tb_team_sync();
        TB_EACH (a, m->number_of_actuators)
            if (!all && !w->held[a] && tb_actuator_evaluate(w, a).damping > 0)
                w->actuator_force[a] = 0; /* has a row */
        TB_EACH (i, m->number_of_dofs) w->force[i] += w->motor_excess[i];
        tb_team_sync();
    }
    /* several may push one dof */
    for (int32_t a = 0; TB_LEADER && a < m->number_of_actuators; a++) add_push(w, a, w->force);
    tb_team_sync();
}
