/* One world of a grasp job: sets it up, steps it course by course, and judges the trial. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/random.h"
#include "grasp/grasp.h"

/* beyond this depth, before it closes, the hand counts as colliding */
static const double COLLISION_DEPTH_M = 1e-3;
/* the hand has lost the object when it has not touched it for this long: LET_GO_S at the end of
 * the hold; GONE_S, with the object away from its place, ends the trial early */
static const double LET_GO_S = 0.05, GONE_S = 0.1;
/* fraction of the lift: an object that rose less was dropped */
static const double LEAST_RISE = 0.25;
static const double LEAST_MASS_FACTOR = 0.01;
enum { SLIP_EVERY = 5 }; /* steps between measurements of the slip */

/* ---- life ---- */

/* Rows of a course's arrays. */
static tb_status take_rows(grasp_world *world, tb_error *error)
{
    const tb_model *m = world->plan->model;
    const size_t rows = (size_t)world->plan->steps_at_once;
    const size_t numbers =
        13 + 6 + (size_t)m->number_of_actuators + (size_t)m->number_of_coordinates + 13;
    world->rows = calloc(rows * numbers, sizeof *world->rows);
    world->touches = calloc(rows * GRASP_WATCHES, sizeof *world->touches);
    world->steps = calloc(rows, sizeof *world->steps);
    if (world->rows == NULL || world->touches == NULL || world->steps == NULL)
        return tb_fail_memory(error, rows * numbers * sizeof *world->rows, "a grasp's world");
    grasp_watch(world->plan, world->course.watches);
    world->course.number_of_watches = GRASP_WATCHES;
    return TB_OK;
}

tb_status grasp_world_take(const tb_grasp_plan *plan, grasp_world *world, tb_error *error)
{
    const size_t hand = (size_t)(plan->hand_end - plan->carrier);
    memset(world, 0, sizeof *world);
    world->plan = plan;
    world->motions = calloc((size_t)plan->model->number_of_bodies, sizeof *world->motions);
    world->holds = calloc(hand, sizeof *world->holds);
    world->marks = calloc(hand * 12, sizeof *world->marks);
    if (world->motions == NULL || world->holds == NULL || world->marks == NULL)
        return tb_fail_memory(error, 0, "a grasp's world");
    const tb_status status = tb_state_create(plan->model, &world->shown, error);
    return status == TB_OK ? take_rows(world, error) : status;
}

void grasp_world_end(grasp_world *world)
{
    tb_state_destroy(world->state);
    tb_model_destroy(world->variant);
    grasp_film_free(&world->film);
    free(world->contacts);
    world->state = NULL;
    world->variant = NULL;
    world->contacts = NULL;
    world->number_of_contacts = 0;
}

void grasp_world_give(grasp_world *world)
{
    grasp_world_end(world);
    tb_state_destroy(world->shown);
    free(world->rows);
    free(world->touches);
    free(world->steps);
    free(world->motions);
    free(world->holds);
    free(world->marks);
    memset(world, 0, sizeof *world);
}

/* ---- setting up ---- */

/* Perturbation of a copy. */
typedef struct noise {
    tb_vec3 shift, turn; /* m; rotation vector, rad; in the object's frame */
    double friction, mass;
} noise;

static noise draw(const tb_grasp_perturbation *p, int32_t copy)
{
    noise n = {tb_v3(0, 0, 0), tb_v3(0, 0, 0), 1, 1};
    if (copy == 0) return n;
    /* draws the same numbers in the same order, even if some are unused */
    tb_random random = tb_random_stream(p->seed, (uint64_t)copy);
    double z[9];
    for (int i = 0; i < 9; i++) z[i] = tb_random_normal(&random);
    n.shift = tb_v3_scale(tb_v3(z[0], z[1], z[2]), p->position);
    const tb_vec3 axis = tb_v3_normalize(tb_v3(z[3], z[4], z[5]), tb_v3(0, 0, 1));
    n.turn = tb_v3_scale(axis, p->angle * z[6]);
    n.friction = fmax(0, 1 + p->friction * z[7]);
    n.mass = fmax(LEAST_MASS_FACTOR, 1 + p->mass * z[8]);
    return n;
}

static tb_status make_variant(grasp_world *world, const noise *n, tb_error *error)
{
    const tb_grasp_plan *plan = world->plan;
    const double own = plan->poses[world->grasp].force;
    const tb_variation variation = {.friction_scale = n->friction,
                                    .first_body = plan->object,
                                    .last_body = plan->object_end,
                                    .mass_scale = n->mass,
                                    .actuators = plan->closing,
                                    .number_of_actuators = plan->number_of_closing,
                                    .force = own > 0 ? own : plan->protocol.force};
    world->trial.friction = plan->object_friction * n->friction;
    world->trial.mass = plan->object_mass * n->mass;
    if (n->friction == 1 && n->mass == 1 && !(variation.force > 0)) return TB_OK;
    return tb_model_vary(plan->model, &variation, &world->variant, error);
}

/* Applies the object's weight upwards, or removes this force. */
static tb_status hold_up(grasp_world *world, bool on, tb_error *error)
{
    const tb_grasp_plan *plan = world->plan;
    const tb_model *m = tb_state_model(world->state);
    tb_status status = TB_OK;
    for (int32_t b = plan->object; b < plan->object_end && status == TB_OK; b++) {
        double wrench[6] = {0};
        for (int k = 0; k < 3 && on; k++)
            wrench[k] = -m->bodies[b].mass * plan->protocol.gravity[k];
        status = tb_state_set_body_wrench(world->state, b, wrench, error);
    }
    return status;
}

/* Whether a body fixed to the carrier penetrates the table: two immovable bodies make no
 * contact, so the stepper does not detect it. */
static bool base_in_table(grasp_world *world)
{
    const tb_grasp_plan *plan = world->plan;
    const tb_model *m = plan->model;
    const int64_t when[2] = {0, plan->phases.approach};
    for (int i = 0; i < 2; i++) {
        const grasp_frame carrier = grasp_carrier_at(plan, &world->target, when[i]);
        for (int32_t s = 0; s < m->number_of_shapes; s++) {
            const int32_t b = m->shapes[s].body;
            if (b < plan->carrier || b >= plan->hand_end || m->bodies[b].tree >= 0) continue;
            if (m->shapes[s].category == 0 && m->shapes[s].mask == 0) continue;
            grasp_frame frame = {tb_v3(0, 0, 0), tb_q_identity()};
            for (int32_t p = b; p != plan->carrier; p = m->bodies[p].parent) {
                const grasp_frame in =
                    grasp_frame_make(m->bodies[p].position, m->bodies[p].orientation);
                frame = grasp_frame_mul(&in, &frame);
            }
            frame = grasp_frame_mul(&carrier, &frame);
            const double low = -grasp_support(m, s, &frame, tb_v3(0, 0, -1));
            if (!(low < plan->table_height - COLLISION_DEPTH_M)) continue;
            grasp_reason_in_table(world, s, when[i], plan->table_height - low);
            return true;
        }
    }
    return false;
}

static tb_status set_start(grasp_world *world, tb_error *error)
{
    const tb_grasp_plan *plan = world->plan;
    const tb_model *m = tb_state_model(world->state);
    double *q = malloc(((size_t)m->number_of_coordinates + 1) * sizeof *q);
    if (q == NULL) return tb_fail_memory(error, 0, "a grasp's world");
    memcpy(q, tb_state_q(world->state), (size_t)m->number_of_coordinates * sizeof *q);
    memcpy(q, plan->open_q, (size_t)plan->hand_coordinates * sizeof *q);
    tb_status status = tb_state_set_q(world->state, q, m->number_of_coordinates, error);
    free(q);
    if (status == TB_OK)
        status = tb_state_set_controls(world->state, plan->controls, m->number_of_actuators, error);
    if (status == TB_OK && !plan->table) status = hold_up(world, true, error);
    return status;
}

tb_status grasp_world_begin(grasp_world *world, int32_t grasp, int32_t copy, tb_error *error)
{
    const tb_grasp_plan *plan = world->plan;
    const noise n = draw(&plan->perturbation, copy);
    const tb_grasp_pose *pose = &plan->poses[grasp];
    world->grasp = grasp;
    world->copy = copy;
    world->step = 0;
    world->touched = -1;
    world->trial = (tb_grasp_trial){.verdict = TB_GRASP_HELD, .drop_time = -1};
    grasp_reason_begin(world);

    grasp_frame in_object = grasp_frame_make(pose->position, pose->orientation);
    in_object.position = tb_v3_add(in_object.position, n.shift);
    in_object.orientation =
        tb_q_normalize(tb_q_mul(tb_q_from_rotation_vector(n.turn), in_object.orientation));
    world->target = grasp_frame_mul(&plan->object_frame, &in_object);

    tb_status status = make_variant(world, &n, error);
    if (status == TB_OK)
        status = tb_state_create(world->variant != NULL ? world->variant : plan->model,
                                 &world->state, error);
    if (status == TB_OK) status = set_start(world, error);
    if (status == TB_OK) status = grasp_film_begin(world, error);
    if (status != TB_OK) return status;
    if (plan->table && base_in_table(world)) world->trial.verdict = TB_GRASP_COLLIDED;
    return TB_OK;
}

/* ---- courses ---- */

typedef struct carrier_speed {
    tb_vec3 velocity, spin; /* m/s, rad/s */
} carrier_speed;

/* The carrier's speed in a step; it is at rest before the first one. */
static carrier_speed carrier_speed_in(const grasp_world *world, int64_t step)
{
    const tb_grasp_plan *plan = world->plan;
    carrier_speed speed = {tb_v3(0, 0, 0), tb_v3(0, 0, 0)};
    if (step < 0) return speed;
    const grasp_frame from = grasp_carrier_at(plan, &world->target, step),
                      to = grasp_carrier_at(plan, &world->target, step + 1);
    const tb_quaternion turn = tb_q_mul(to.orientation, tb_q_conjugate(from.orientation));
    const double rate = 1 / plan->dt;
    speed.velocity = tb_v3_scale(tb_v3_sub(to.position, from.position), rate);
    speed.spin = tb_v3_scale(tb_q_rotation_vector(turn), rate);
    return speed;
}

/* Writes the carrier's motion that ends a step in its prescribed frame, and its acceleration
 * then: 13 and 6 numbers. *speed: of the step before; becomes the speed of this one. */
static void carry(const grasp_world *world, int64_t step, carrier_speed *speed, double *motion,
                  double *acceleration)
{
    const grasp_frame from = grasp_carrier_at(world->plan, &world->target, step);
    const carrier_speed before = *speed;
    const double rate = 1 / world->plan->dt;
    *speed = carrier_speed_in(world, step);
    tb_v3_store(motion, from.position);
    tb_q_store(motion + 3, from.orientation);
    tb_v3_store(motion + 7, speed->velocity);
    tb_v3_store(motion + 10, speed->spin);
    tb_v3_store(acceleration, tb_v3_scale(tb_v3_sub(speed->velocity, before.velocity), rate));
    tb_v3_store(acceleration + 3, tb_v3_scale(tb_v3_sub(speed->spin, before.spin), rate));
}

static void close_fingers(const grasp_world *world, int64_t step, double *controls)
{
    const tb_grasp_plan *plan = world->plan;
    const double share = grasp_closing_at(plan, step);
    memcpy(controls, plan->controls, (size_t)plan->model->number_of_actuators * sizeof *controls);
    for (int32_t i = 0; i < plan->number_of_closing; i++)
        controls[plan->closing[i]] = plan->open[i] + share * (plan->close[i] - plan->open[i]);
}

/* Steps up to the next event that a course cannot include: the fingers have closed, the carrier
 * has come to rest, or the trial ends. */
static int32_t steps_ahead(const grasp_world *world, int32_t most)
{
    const grasp_phases *at = &world->plan->phases;
    const int64_t events[] = {at->close, at->shake + 2, at->end};
    int64_t steps = most;
    for (size_t i = 0; i < sizeof events / sizeof *events; i++)
        if (events[i] > world->step && events[i] - world->step < steps)
            steps = events[i] - world->step;
    return (int32_t)steps;
}

void grasp_world_plan(grasp_world *world, int32_t steps)
{
    const grasp_phases *at = &world->plan->phases;
    const tb_model *m = world->plan->model;
    const int32_t rows = world->plan->steps_at_once;
    const int32_t n = steps_ahead(world, steps < rows ? steps : rows);
    const bool moves = world->step <= at->shake + 1;
    const bool closes = world->step <= at->close && world->step + n > at->approach;
    const bool looks = world->step <= at->approach || world->step + n >= at->close;
    const bool poses = looks || world->film.poses != NULL;
    double *motions = world->rows, *accelerations = motions + 13 * rows;
    double *controls = accelerations + 6 * rows;
    double *q = controls + rows * m->number_of_actuators;
    carrier_speed speed = carrier_speed_in(world, world->step - 1);
    for (int32_t i = 0; i < n && moves; i++)
        carry(world, world->step + i, &speed, motions + 13 * i, accelerations + 6 * i);
    for (int32_t i = 0; i < n && closes; i++)
        close_fingers(world, world->step + i, controls + m->number_of_actuators * i);
    world->course.steps = n;
    world->course.kinematic = moves ? motions : NULL;
    world->course.accelerations = moves ? accelerations : NULL;
    world->course.controls = closes ? controls : NULL;
    world->course.q = poses ? q : NULL;
    world->course.moved = poses ? q + rows * m->number_of_coordinates : NULL;
    world->course.touches = looks ? world->touches : NULL;
    world->course.certificates = world->steps;
}

/* ---- judging ---- */

static void drop(grasp_world *world)
{
    const tb_grasp_plan *plan = world->plan;
    const int64_t when = world->touched > plan->phases.close ? world->touched : plan->phases.close;
    world->trial.verdict = TB_GRASP_DROPPED;
    world->trial.drop_time = (double)when * plan->dt;
    grasp_reason_lost(world, when);
}

/* Whether the object has left the hand: untouched for GONE_S, and away from its place. */
static bool is_gone(const grasp_world *world)
{
    const tb_grasp_plan *plan = world->plan;
    const double untouched = (double)(world->step - world->touched) * plan->dt;
    if (world->step <= plan->phases.close || untouched < GONE_S) return false;
    const grasp_frame carrier = grasp_carrier_at(plan, &world->target, world->step);
    const tb_vec3 place = grasp_frame_in(&carrier, grasp_object_com(world));
    return tb_v3_length(tb_v3_sub(place, world->place)) > plan->object_radius;
}

static tb_status judge_end(grasp_world *world, tb_error *error)
{
    const tb_grasp_plan *plan = world->plan;
    const double untouched = (double)(world->step - world->touched) * plan->dt;
    const double rise = grasp_object_com(world).z - world->height;
    if (untouched > LET_GO_S ||
        (plan->protocol.lift > 0 && rise < LEAST_RISE * plan->protocol.lift))
        drop(world);
    else if (world->trial.slip > plan->protocol.slip_limit)
        world->trial.verdict = TB_GRASP_SLIPPED; /* its reason is that of the step that passed it */
    else
        grasp_reason_now(world);
    if (world->copy == 0 && world->trial.verdict != TB_GRASP_DROPPED)
        return grasp_note_contacts(world, error);
    return TB_OK;
}

/* Judges the world after a recorded step of its course; *done when the trial is decided. */
static tb_status look(grasp_world *world, int32_t noted, bool *done, tb_error *error)
{
    const tb_grasp_plan *plan = world->plan;
    const grasp_phases *at = &plan->phases;
    const tb_touch *touches = world->touches + GRASP_WATCHES * noted;
    tb_status status = TB_OK;
    const tb_touch *inside =
        world->step <= at->approach + 1 ? grasp_collides(touches, COLLISION_DEPTH_M) : NULL;
    if (inside != NULL) {
        tb_course_show(&world->course, noted, world->shown);
        world->trial.verdict = TB_GRASP_COLLIDED;
        grasp_reason_collided(world, inside);
        *done = true;
        return TB_OK;
    }
    if (world->step < at->close) return TB_OK;
    tb_course_show(&world->course, noted, world->shown);
    if (world->step == at->close) {
        status = grasp_mark(world, error);
        if (status == TB_OK && world->copy == 0) status = grasp_note_contacts(world, error);
        if (status == TB_OK && !plan->table) status = hold_up(world, false, error);
    }
    if (touches[GRASP_HOLD].impulse > 0) world->touched = world->step;
    grasp_reason_follow(world, &touches[GRASP_HOLD]);
    *done = world->step == at->end;
    if (status == TB_OK && (*done || world->step % SLIP_EVERY == 0)) {
        double slip = 0;
        status = grasp_slip(world, &slip, error);
        const double limit = plan->protocol.slip_limit;
        if (world->trial.slip <= limit && slip > limit) grasp_reason_lost(world, world->step);
        world->trial.slip = fmax(world->trial.slip, slip);
    }
    if (status != TB_OK) return status;
    if (*done) return judge_end(world, error);
    if (is_gone(world)) {
        drop(world);
        *done = true;
    }
    return TB_OK;
}

static void merge_certificate(tb_grasp_trial *trial, const tb_certificate *step)
{
    if (trial->steps++ == 0)
        trial->certificate = *step;
    else
        tb_certificate_merge(&trial->certificate, step);
}

/* Ends a trial whose steps no longer converge. An object that the hand had lost before stays lost. */
static void give_up(grasp_world *world)
{
    const double untouched = (double)(world->step - world->touched) * world->plan->dt;
    const bool lost = world->step > world->plan->phases.close && untouched > LET_GO_S &&
                      world->touched < world->missed_step;
    if (lost)
        drop(world);
    else
        world->trial.verdict = TB_GRASP_UNCERTIFIED;
}

static void note_missed(grasp_world *world, const tb_certificate *step)
{
    if (step->status != TB_NOT_CONVERGED) return;
    if (world->missed++ > 0) return;
    world->missed_step = world->step;
    world->missed_residual = step->residual;
}

bool grasp_world_reads(const grasp_world *world)
{
    const int64_t next = world->step + world->course.steps;
    return next == world->plan->phases.close || next == world->plan->phases.end;
}

tb_status grasp_world_look(grasp_world *world, bool *done, tb_error *error)
{
    tb_status status = TB_OK;
    for (int32_t i = 0; i < world->course.steps && status == TB_OK && !*done; i++) {
        merge_certificate(&world->trial, &world->steps[i]);
        world->step++;
        note_missed(world, &world->steps[i]);
        if (world->steps[i].status != TB_DIVERGED) {
            status = look(world, i, done, error);
            if (!*done && world->missed >= TB_GRASP_MISSED_STEPS) {
                give_up(world);
                *done = true;
            }
            grasp_film_look(world, i, *done);
        } else {
            world->trial.verdict = TB_GRASP_DIVERGED;
            grasp_reason_now(world);
            *done = true;
        }
    }
    if (*done) grasp_reason_certify(world);
    return status;
}

tb_status grasp_world_play(grasp_world *world, tb_stepper *stepper, int64_t steps, bool *done,
                           tb_error *error)
{
    const int64_t until = world->step + steps;
    *done = world->trial.verdict == TB_GRASP_COLLIDED;
    while (world->step < until && !*done) {
        grasp_world_plan(world, (int32_t)(until - world->step));
        tb_status status = tb_step_courses(stepper, &world->state, &world->course, 1, NULL, error);
        if (status != TB_OK && status != TB_DIVERGED) return status;
        status = grasp_world_look(world, done, error);
        if (status != TB_OK) return status;
    }
    return TB_OK;
}
