/* One world of a grasp job: set up, played step by step, judged. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/random.h"
#include "grasp/grasp.h"

/* deeper than this the hand counts as inside of what it touches before it closes */
static const double COLLISION_DEPTH_M = 1e-3;
/* the hand has let go when it has not touched the object for this long: at the end of the hold, and
 * with the object away from its place, so that the rest need not be played */
static const double LET_GO_S = 0.05, GONE_S = 0.1;
/* of the lift: an object that rose less was left behind */
static const double LEAST_RISE = 0.25;
static const double LEAST_MASS_FACTOR = 0.01;
enum { SLIP_EVERY = 5 }; /* steps between measurements of the slip */

/* ---- life ---- */

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
    return TB_OK;
}

void grasp_world_end(grasp_world *world)
{
    tb_state_destroy(world->state);
    tb_model_destroy(world->variant);
    free(world->contacts);
    free(world->surfaces);
    world->state = NULL;
    world->variant = NULL;
    world->contacts = NULL;
    world->surfaces = NULL;
    world->number_of_contacts = 0;
}

void grasp_world_give(grasp_world *world)
{
    grasp_world_end(world);
    free(world->motions);
    free(world->holds);
    free(world->marks);
    memset(world, 0, sizeof *world);
}

/* ---- setting up ---- */

/* What makes a copy differ from the first. */
typedef struct noise {
    tb_vec3 shift, turn; /* m; rotation vector, rad; in the object's frame */
    double friction, mass;
} noise;

static noise draw(const tb_grasp_perturbation *p, int32_t copy)
{
    noise n = {tb_v3(0, 0, 0), tb_v3(0, 0, 0), 1, 1};
    if (copy == 0) return n;
    /* always the same numbers in the same order, whatever is used */
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

/* Puts the weight of the object on it upwards, or takes that away. */
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

/* Whether what is fixed to the carrier reaches into the table: two things that cannot give way make
 * no contact. */
static bool base_in_table(const grasp_world *world)
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
            if (low < plan->table_height - COLLISION_DEPTH_M) return true;
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
    world->pushed = false;
    world->velocity = world->spin = tb_v3(0, 0, 0);
    world->trial = (tb_grasp_trial){.verdict = TB_GRASP_HELD, .drop_time = -1};

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
    if (status != TB_OK) return status;
    if (plan->table && base_in_table(world)) world->trial.verdict = TB_GRASP_COLLIDED;
    return TB_OK;
}

/* ---- one step ---- */

/* Forces on the hand's bodies in the place of those that the carrier's acceleration (m/s^2,
 * rad/s^2, about its origin) brings in its own frame. */
static tb_status push_fingers(grasp_world *world, const grasp_frame *carrier, tb_vec3 acceleration,
                              tb_vec3 turning, tb_error *error)
{
    const tb_grasp_plan *plan = world->plan;
    const tb_model *m = plan->model;
    tb_status status = tb_state_body_motions(world->state, world->motions);
    for (int32_t b = plan->carrier + 1; b < plan->hand_end && status == TB_OK; b++) {
        const tb_model_body *body = &m->bodies[b];
        if (body->tree < 0) continue;
        const tb_body_motion *at = &world->motions[b];
        const tb_vec3 arm = tb_v3_sub(tb_v3_load(at->com), carrier->position);
        const tb_vec3 a = tb_v3_add(acceleration, tb_v3_cross(turning, arm));
        const tb_quaternion q = tb_q_load(at->orientation);
        const tb_mat33 inertia = tb_m33_symmetric(body->inertia);
        const tb_vec3 own = tb_m33_mul_v3(&inertia, tb_q_rotate(tb_q_conjugate(q), turning));
        double wrench[6];
        tb_v3_store(wrench, tb_v3_scale(a, -body->mass));
        tb_v3_store(wrench + 3, tb_v3_negate(tb_q_rotate(q, own)));
        status = tb_state_set_body_wrench(world->state, b, wrench, error);
    }
    return status;
}

/* Sends the carrier to where it is to be at the end of the step. */
static tb_status carry(grasp_world *world, tb_error *error)
{
    const tb_grasp_plan *plan = world->plan;
    const grasp_frame from = grasp_carrier_at(plan, &world->target, world->step),
                      to = grasp_carrier_at(plan, &world->target, world->step + 1);
    const double rate = 1 / plan->dt;
    if (world->step > plan->phases.shake + 1) return TB_OK; /* it has come to rest */
    const tb_vec3 velocity = tb_v3_scale(tb_v3_sub(to.position, from.position), rate);
    const tb_quaternion turn = tb_q_mul(to.orientation, tb_q_conjugate(from.orientation));
    const tb_vec3 spin = tb_v3_scale(tb_q_rotation_vector(turn), rate);
    double p[3], q[4], v[3], w[3];
    tb_v3_store(p, from.position);
    tb_q_store(q, from.orientation);
    tb_v3_store(v, velocity);
    tb_v3_store(w, spin);
    tb_status status = tb_state_set_kinematic(world->state, plan->carrier, p, q, v, w, error);

    const tb_vec3 faster = tb_v3_sub(velocity, world->velocity);
    const tb_vec3 quicker = tb_v3_sub(spin, world->spin);
    const bool pushes = tb_v3_length2(faster) + tb_v3_length2(quicker) > 0;
    if (status == TB_OK && (pushes || world->pushed))
        status = push_fingers(world, &from, tb_v3_scale(faster, rate), tb_v3_scale(quicker, rate),
                              error);
    world->pushed = pushes;
    world->velocity = velocity;
    world->spin = spin;
    return status;
}

static tb_status close_fingers(grasp_world *world, tb_error *error)
{
    const tb_grasp_plan *plan = world->plan;
    if (world->step < plan->phases.approach || world->step > plan->phases.close) return TB_OK;
    const double share = grasp_closing_at(plan, world->step);
    tb_status status = TB_OK;
    for (int32_t i = 0; i < plan->number_of_closing && status == TB_OK; i++)
        status =
            tb_state_set_control(world->state, plan->closing[i],
                                 plan->open[i] + share * (plan->close[i] - plan->open[i]), error);
    return status;
}

/* ---- judging ---- */

static void drop(grasp_world *world)
{
    const tb_grasp_plan *plan = world->plan;
    const int64_t when = world->touched > plan->phases.close ? world->touched : plan->phases.close;
    world->trial.verdict = TB_GRASP_DROPPED;
    world->trial.drop_time = (double)when * plan->dt;
}

/* Whether the object has left the hand for good: untouched for a while, and away from its place. */
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
        world->trial.verdict = TB_GRASP_SLIPPED;
    if (world->copy == 0 && world->trial.verdict != TB_GRASP_DROPPED)
        return grasp_note_contacts(world, error);
    return TB_OK;
}

/* Looks at the world after a step; *done when nothing more needs to be played. */
static tb_status look(grasp_world *world, bool *done, tb_error *error)
{
    const tb_grasp_plan *plan = world->plan;
    const grasp_phases *at = &plan->phases;
    tb_status status = TB_OK;
    if (world->step <= at->approach + 1 && grasp_collides(world, COLLISION_DEPTH_M)) {
        world->trial.verdict = TB_GRASP_COLLIDED;
        *done = true;
        return TB_OK;
    }
    if (world->step < at->close) return TB_OK;
    if (world->step == at->close) {
        status = grasp_mark(world, error);
        if (status == TB_OK && world->copy == 0) status = grasp_note_contacts(world, error);
        if (status == TB_OK && !plan->table) status = hold_up(world, false, error);
    }
    if (grasp_touches(world, NULL)) world->touched = world->step;
    *done = world->step == at->end;
    if (status == TB_OK && (*done || world->step % SLIP_EVERY == 0)) {
        double slip = 0;
        status = grasp_slip(world, &slip, error);
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

bool grasp_world_is_pushed(const grasp_world *world)
{
    const grasp_phases *at = &world->plan->phases;
    return world->step > 0 && world->step <= at->shake + 1 &&
           (world->step <= at->approach + 1 || world->step >= at->close);
}

bool grasp_world_reads(const grasp_world *world)
{
    const grasp_phases *at = &world->plan->phases;
    const int64_t next = world->step + 1;
    return next <= at->approach + 1 || next >= at->close;
}

tb_status grasp_world_before(grasp_world *world, tb_error *error)
{
    const tb_status status = carry(world, error);
    return status == TB_OK ? close_fingers(world, error) : status;
}

tb_status grasp_world_after(grasp_world *world, const tb_certificate *certificate, bool *done,
                            tb_error *error)
{
    merge_certificate(&world->trial, certificate);
    world->step++;
    if (certificate->status != TB_DIVERGED) return look(world, done, error);
    world->trial.verdict = TB_GRASP_DIVERGED;
    *done = true;
    return TB_OK;
}

tb_status grasp_world_play(grasp_world *world, tb_stepper *stepper, int64_t steps, bool *done,
                           tb_error *error)
{
    *done = world->trial.verdict == TB_GRASP_COLLIDED;
    for (int64_t i = 0; i < steps && !*done; i++) {
        tb_certificate certificate = {0};
        tb_status status = grasp_world_before(world, error);
        if (status == TB_OK) status = tb_step(stepper, world->state, 1, &certificate, error);
        if (status != TB_OK && status != TB_DIVERGED) return status;
        status = grasp_world_after(world, &certificate, done, error);
        if (status != TB_OK) return status;
    }
    return TB_OK;
}
