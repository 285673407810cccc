/* Courses: inputs applied to a state before a step, and outputs recorded after it.
 *
 * The processor compiles this once, in double, for the float stepper too; a card's float build
 * finds bodies in float. Inputs are written to the state as if the caller had set them, so the
 * step is independent of courses. */
#include <math.h>

#include "step/dynamics/dynamics.h"
#include "step/step.h"

TB_STATIC void copy_numbers(double *to, const double *from, int32_t count)
{
    TB_EACH (i, count) to[i] = from[i];
}

/* ---- recording ---- */

#ifdef TB_DEVICE
/* Poses of a course reach a card normalised: the processor has done it, in double. */
TB_STATIC void apply_kinematic(double *to, const double *from, int32_t bodies)
{
    copy_numbers(to, from, TB_KINEMATIC_NUMBERS * bodies);
}
#else
TB_STATIC void apply_kinematic(double *to, const double *from, int32_t bodies)
{
    copy_numbers(to, from, TB_KINEMATIC_NUMBERS * bodies);
    tb_course_normalize(to, bodies);
}

void tb_course_normalize(double *kinematic, int64_t bodies)
{
    for (int64_t i = 0; i < bodies; i++) {
        double *orientation = kinematic + TB_KINEMATIC_NUMBERS * i + 3;
        tb_q_store(orientation, tb_q_normalize(tb_q_load(orientation)));
    }
}
#endif

/* The kinematic body that carries the body's tree, as an index of kinematic bodies; -1: none. */
TB_STATIC int32_t carrier_of(const tb_model *m, int32_t body)
{
    const int32_t tree = m->bodies[body].tree;
    if (tree < 0 || m->trees[tree].single_free) return -1;
    return m->bodies[m->bodies[m->bodies[m->trees[tree].body].parent].fixed_to].kinematic;
}

/* Force and torque that give a body the acceleration of its carrier: 6 numbers, from the
 * carrier's 13 and the acceleration's 6. */
TB_STATIC void carry_body(const tb_dynamics *d, int32_t b, const double *carrier,
                          const double *acceleration, double *wrench)
{
    const tb_model_body *body = &d->model->bodies[b];
    const tb_vec3 com = tb_pose_point(&d->poses[b], tb_v3_load(body->com));
    const tb_vec3 turning = tb_v3_load(acceleration + 3);
    const tb_vec3 arm = tb_v3_sub(com, tb_v3_load(carrier));
    const tb_vec3 a = tb_v3_add(tb_v3_load(acceleration), tb_v3_cross(turning, arm));
    const tb_quaternion q = d->orientations[b];
    const tb_mat33 inertia = tb_m33_symmetric(body->inertia);
    const tb_vec3 own = tb_m33_mul_v3(&inertia, tb_q_rotate(tb_q_conjugate(q), turning));
    tb_v3_store(wrench, tb_v3_scale(a, TB_R(-body->mass)));
    tb_v3_store(wrench + 3, tb_v3_negate(tb_q_rotate(q, own)));
}

/* Wrenches of all bodies that are carried. */
TB_STATIC tb_status carry_bodies(tb_state *state, const double *accelerations, tb_arena *arena)
{
    const tb_model *m = state->model;
    tb_dynamics d = {.model = m};
    bool any = false;
    for (int32_t i = 0; i < 6 * m->number_of_kinematic_bodies; i++)
        any = any || accelerations[i] != 0;
    if (any) {
        if (tb_dynamics_take(&d, m, arena) != TB_OK) return TB_RESOURCE_EXHAUSTED;
        tb_real *q = TB_ARENA_ARRAY(arena, tb_real, m->number_of_coordinates);
        if (!q) return TB_RESOURCE_EXHAUSTED;
        TB_EACH (i, m->number_of_coordinates) q[i] = TB_R(state->q[i]);
        tb_team_sync();
        tb_dynamics_positions(&d, q, state->kinematic);
    }
    TB_EACH (b, m->number_of_bodies) {
        const int32_t carrier = carrier_of(m, b);
        double *wrench = state->wrenches + 6 * b;
        if (carrier < 0) continue;
        for (int k = 0; k < 6; k++) wrench[k] = 0;
        if (any)
            carry_body(&d, b, state->kinematic + TB_KINEMATIC_NUMBERS * carrier,
                       accelerations + 6 * carrier, wrench);
    }
    tb_team_sync();
    return TB_OK;
}

TB_EXTERN tb_status tb_course_apply_inputs(tb_state *state, const tb_course *course, int32_t step,
                                           tb_arena *arena)
{
    const tb_model *m = state->model;
    const int32_t bodies = m->number_of_kinematic_bodies;
    if (state->status == TB_DIVERGED) return TB_OK;
    if (course->kinematic)
        apply_kinematic(state->kinematic,
                        course->kinematic + (int64_t)step * TB_KINEMATIC_NUMBERS * bodies, bodies);
    if (course->controls)
        copy_numbers(state->controls, course->controls + (int64_t)step * m->number_of_actuators,
                     m->number_of_actuators);
    tb_team_sync();
    if (!course->accelerations) return TB_OK;
    return carry_bodies(state, course->accelerations + (int64_t)step * 6 * bodies, arena);
}

/* ---- noting ---- */

TB_STATIC bool is_within(int32_t body, int32_t first, int32_t end)
{
    return body >= first && body < end;
}

/* Contacts that bear less than one of this many shares of the watch's largest normal impulse have
 * no margin that matters: one of several points of a face may slide while the others hold. */
enum { SHARES = 10 };

/* A lane's extreme of a watch and the contact that has it (-1: none). */
typedef struct extreme {
    double value;
    int32_t contact;
    int32_t unused; /* keeps every byte defined: lanes pass bytes */
} extreme;

/* Keeps the smaller value. Of equal ones the first contact of the state's order counts, so that the
 * division into lanes does not matter. */
TB_STATIC void keep_smaller(extreme *own, const extreme *other)
{
    if (other->contact < 0) return;
    if (own->contact < 0 || other->value < own->value ||
        (other->value == own->value && other->contact < own->contact))
        *own = *other;
}

TB_STATIC void join_lanes(extreme *joined)
{
    const extreme own = *joined;
    for (int32_t lane = 0; tb_team_lanes() > 1 && lane < tb_team_lanes(); lane++) {
        extreme other = own;
        tb_team_pass(&other, sizeof other, lane);
        keep_smaller(joined, &other);
    }
}

TB_STATIC bool is_watched(const tb_state *state, const tb_contact_record *r, const tb_watch *watch)
{
    const int32_t a = state->model->shapes[r->shape_a].body;
    const int32_t b = state->model->shapes[r->shape_b].body;
    return (is_within(a, watch->first_a, watch->end_a) &&
            is_within(b, watch->first_b, watch->end_b)) ||
           (is_within(b, watch->first_a, watch->end_a) &&
            is_within(a, watch->first_b, watch->end_b));
}

/* The fraction of the friction limit that a contact leaves unused; 0: it slides. */
TB_STATIC double margin_of(const tb_model *m, const tb_contact_record *r)
{
    const double limit = tb_model_pair_surface(m, r->shape_a, r->shape_b).friction * r->impulse[0];
    const double used = sqrt(r->impulse[1] * r->impulse[1] + r->impulse[2] * r->impulse[2]);
    return limit > used ? 1 - used / limit : 0;
}

TB_STATIC extreme no_extreme(void)
{
    extreme none;
    none.value = INFINITY;
    none.contact = -1;
    none.unused = 0;
    return none;
}

TB_STATIC void set_shapes(int32_t shapes[2], const tb_state *state, int32_t contact)
{
    shapes[0] = contact >= 0 ? state->contacts[contact].shape_a : -1;
    shapes[1] = contact >= 0 ? state->contacts[contact].shape_b : -1;
}

TB_STATIC tb_touch look_between(const tb_state *state, const tb_watch *watch)
{
    extreme nearest = no_extreme(), strongest = no_extreme(), weakest = no_extreme();
    TB_EACH (i, state->number_of_contacts) {
        const tb_contact_record *r = &state->contacts[i];
        if (!is_watched(state, r, watch)) continue;
        extreme one = no_extreme();
        one.contact = i;
        one.value = r->gap;
        keep_smaller(&nearest, &one);
        one.value = -r->impulse[0];
        keep_smaller(&strongest, &one);
    }
    join_lanes(&nearest);
    join_lanes(&strongest);
    const double impulse = strongest.contact >= 0 && strongest.value < 0 ? -strongest.value : 0;
    TB_EACH (i, state->number_of_contacts) {
        const tb_contact_record *r = &state->contacts[i];
        if (!(impulse > 0) || !is_watched(state, r, watch)) continue;
        if (!((int)SHARES * r->impulse[0] >= impulse)) continue;
        extreme one = no_extreme();
        one.contact = i;
        one.value = margin_of(state->model, r);
        keep_smaller(&weakest, &one);
    }
    join_lanes(&weakest);
    tb_touch touch;
    touch.gap = nearest.value;
    touch.impulse = impulse;
    touch.margin = weakest.contact >= 0 ? weakest.value : 1;
    set_shapes(touch.nearest, state, nearest.contact);
    set_shapes(touch.weakest, state, weakest.contact);
    for (int k = 0; k < 3; k++) {
        touch.nearest_position[k] =
            nearest.contact >= 0 ? state->contacts[nearest.contact].position[k] : 0;
        touch.weakest_position[k] =
            weakest.contact >= 0 ? state->contacts[weakest.contact].position[k] : 0;
    }
    return touch;
}

TB_EXTERN void tb_course_record_outputs(const tb_state *state, const tb_course *course,
                                        int32_t step, const tb_certificate *certificate)
{
    const tb_model *m = state->model;
    const int32_t kinematic = TB_KINEMATIC_NUMBERS * m->number_of_kinematic_bodies;
    if (course->certificates && TB_LEADER) course->certificates[step] = *certificate;
    if (certificate->status == TB_DIVERGED) return;
    if (course->q)
        copy_numbers(course->q + (int64_t)step * m->number_of_coordinates, state->q,
                     m->number_of_coordinates);
    if (course->moved)
        copy_numbers(course->moved + (int64_t)step * kinematic, state->kinematic, kinematic);
    for (int32_t w = 0; course->touches && w < course->number_of_watches; w++) {
        const tb_touch touch = look_between(state, &course->watches[w]);
        if (TB_LEADER) course->touches[(int64_t)step * course->number_of_watches + w] = touch;
    }
}

/* ---- looking back ---- */

#ifndef TB_DEVICE
void tb_course_show(const tb_course *course, int32_t step, tb_state *shown)
{
    const tb_model *m = shown->model;
    const int32_t kinematic = TB_KINEMATIC_NUMBERS * m->number_of_kinematic_bodies;
    tb_state_mark_host_newer(shown, TB_STATE_Q | TB_STATE_KINEMATIC);
    copy_numbers(shown->q, course->q + (int64_t)step * m->number_of_coordinates,
                 m->number_of_coordinates);
    copy_numbers(shown->kinematic, course->moved + (int64_t)step * kinematic, kinematic);
}
#endif
