/* The grasps of the demo as one batch of worlds: set-up, forces, measurements. See demo.h. */
#include "demo/demo.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/cli.h"
#include "common/interrupt.h"

static const double DEFAULT_TOLERANCE = 1e-10;
enum { MOST_ITERATIONS = 20000 };
const double DEMO_HELD_M = 1e-3;
static const double POINT_RADIUS_M = 0.04; /* of the points whose way is the slip */

/* ---- setting up ---- */

static tb_status find(const tb_model *model, tb_handle_kind kind, const char *what,
                      const char *name, int32_t *index, tb_error *error)
{
    *index = tb_model_find(model, kind, name);
    if (*index >= 0) return TB_OK;
    return cli_fail(error, TB_NOT_FOUND, "", 0, name, "the demo's scene has no %s '%s'", what,
                    name);
}

static tb_status find_parts(demo *d, int32_t closing[2], tb_error *error)
{
    static const char *const SIDES[2] = {"left", "right"};
    tb_status status = find(d->model, TB_HANDLE_BODY, "body", "mug", &d->mug, error);
    for (int i = 0; i < DEMO_HAND_AXES && status == TB_OK; i++)
        status = find(d->model, TB_HANDLE_ACTUATOR, "actuator", DEMO_AXES[i], &d->axis[i], error);
    for (int i = 0; i < 2 && status == TB_OK; i++) {
        char name[32];
        snprintf(name, sizeof name, "finger_%s", SIDES[i]);
        status = find(d->model, TB_HANDLE_BODY, "body", name, &d->finger[i], error);
        if (status == TB_OK)
            status = find(d->model, TB_HANDLE_SHAPE, "shape", name, &d->finger_shapes[i][1], error);
        snprintf(name, sizeof name, "pad_%s", SIDES[i]);
        if (status == TB_OK)
            status = find(d->model, TB_HANDLE_SHAPE, "shape", name, &d->finger_shapes[i][0], error);
        snprintf(name, sizeof name, "close_%s", SIDES[i]);
        if (status == TB_OK)
            status = find(d->model, TB_HANDLE_ACTUATOR, "actuator", name, &closing[i], error);
    }
    return status;
}

/* One world in the pose of its keyframe. */
static tb_status open_grasp(demo *d, int32_t index, const int32_t closing[2], double force,
                            tb_error *error)
{
    demo_grasp *g = &d->grasps[index];
    tb_state **world = &d->worlds[index];
    tb_status status = tb_state_create(d->model, world, error);
    if (status != TB_OK) return status;
    d->count++;
    status = tb_state_reset(*world, index, error);
    for (int i = 0; i < 2 && force > 0 && status == TB_OK; i++)
        status = tb_state_set_control(*world, closing[i], force, error);
    if (status != TB_OK) return status;

    tb_body_motion mug;
    const double *controls = tb_state_controls(*world);
    g->name = tb_model_thing_name(d->model, TB_HANDLE_KEYFRAME, index);
    g->command = controls[closing[0]];
    for (int i = 0; i < DEMO_HAND_AXES; i++) d->base[index][i] = controls[d->axis[i]];
    status = tb_state_body_motion(*world, d->mug, &mug);
    g->first_height = mug.com[2];
    return status;
}

tb_status demo_open(demo *d, const char *path, const demo_options *options, tb_error *error)
{
    int32_t closing[2] = {0};
    tb_body_info mug = {0};
    memset(d, 0, sizeof *d);
    tb_step_options step = tb_step_defaults();
    step.dt = options->dt;
    step.scheme = (tb_scheme)options->scheme;
    step.threads = (int32_t)options->threads;
    step.solve.threads = 1;
    step.solve.maximum_iterations = MOST_ITERATIONS;
    step.solve.tolerance = options->tolerance > 0 ? options->tolerance : DEFAULT_TOLERANCE;
    if (options->solver != NULL) step.solve.solver = options->solver;

    tb_status status = tb_model_load(path, NULL, &d->model, error);
    if (status != TB_OK) return status;
    const int32_t count = tb_model_count(d->model).keyframes;
    if (count < 1 || count > DEMO_GRASPS)
        status =
            cli_fail(error, TB_INVALID_ARGUMENT, path, 0, "keyframe",
                     "%d keyframes; the demo takes 1 to %d, each a grasp", (int)count, DEMO_GRASPS);
    if (status == TB_OK) status = find_parts(d, closing, error);
    if (status == TB_OK) status = tb_model_body_info(d->model, d->mug, &mug);
    if (status == TB_OK) status = tb_stepper_create(&step, &d->stepper, error);
    for (int32_t i = 0; i < count && status == TB_OK; i++)
        status = open_grasp(d, i, closing, options->force, error);
    d->dt = step.dt > 0 ? step.dt : tb_model_dt(d->model);
    d->mug_mass = mug.mass;
    if (status != TB_OK) demo_close(d);
    return status;
}

void demo_close(demo *d)
{
    for (int32_t i = 0; i < d->count; i++) tb_state_destroy(d->worlds[i]);
    tb_stepper_destroy(d->stepper);
    tb_model_destroy(d->model);
    memset(d, 0, sizeof *d);
}

/* ---- measuring ---- */

/* rotates v by the quaternion: v + 2 w (a x v) + 2 a x (a x v) */
static void rotate(const double q[4], const double v[3], double out[3])
{
    const double *a = q + 1;
    const double c[3] = {a[1] * v[2] - a[2] * v[1], a[2] * v[0] - a[0] * v[2],
                         a[0] * v[1] - a[1] * v[0]};
    const double e[3] = {a[1] * c[2] - a[2] * c[1], a[2] * c[0] - a[0] * c[2],
                         a[0] * c[1] - a[1] * c[0]};
    for (int k = 0; k < 3; k++) out[k] = v[k] + 2 * (q[0] * c[k] + e[k]);
}

/* A point of the world in a body's frame. */
static void into_frame(const tb_body_motion *frame, const double point[3], double out[3])
{
    const double inverse[4] = {frame->orientation[0], -frame->orientation[1],
                               -frame->orientation[2], -frame->orientation[3]};
    double difference[3];
    for (int k = 0; k < 3; k++) difference[k] = point[k] - frame->position[k];
    rotate(inverse, difference, out);
}

/* The mug's centre of mass and three points around it, seen from a finger. A mug that does not slip
 * is at rest in both fingers' frames, however the hand moves; motion of the fingers along their
 * slides is not slip. */
static void mark_points(const tb_body_motion *mug, const tb_body_motion *finger,
                        double points[DEMO_POINTS][3])
{
    for (int i = 0; i < DEMO_POINTS; i++) {
        double arm[3] = {0}, point[3];
        if (i > 0) arm[i - 1] = POINT_RADIUS_M;
        rotate(mug->orientation, arm, point);
        for (int k = 0; k < 3; k++) point[k] += mug->com[k];
        into_frame(finger, point, points[i]);
    }
}

static double distance(const double a[3], const double b[3])
{
    return sqrt((a[0] - b[0]) * (a[0] - b[0]) + (a[1] - b[1]) * (a[1] - b[1]) +
                (a[2] - b[2]) * (a[2] - b[2]));
}

static double largest_way(double a[2][DEMO_POINTS][3], double b[2][DEMO_POINTS][3])
{
    double largest = 0;
    for (int f = 0; f < 2; f++)
        for (int i = 0; i < DEMO_POINTS; i++) largest = fmax(largest, distance(a[f][i], b[f][i]));
    return largest;
}

/* Which finger a shape belongs to, -1 for none. */
static int finger_of(const demo *d, int32_t shape)
{
    for (int f = 0; f < 2; f++)
        if (shape == d->finger_shapes[f][0] || shape == d->finger_shapes[f][1]) return f;
    return -1;
}

/* Normal forces of the mug on the fingers and the number of contacts between them. */
static void measure_forces(const demo *d, const tb_state *world, demo_grasp *g)
{
    const int32_t count = tb_state_number_of_contacts(world);
    g->force[0] = g->force[1] = 0;
    g->contacts = 0;
    for (int32_t i = 0; i < count; i++) {
        tb_contact_info contact;
        if (tb_state_contact(world, i, &contact) != TB_OK || !(contact.impulse[0] > 0)) continue;
        /* fingers that meet each other hold nothing */
        const int a = finger_of(d, contact.shape_a), b = finger_of(d, contact.shape_b);
        if ((a < 0) == (b < 0)) continue;
        g->force[a >= 0 ? a : b] += contact.impulse[0] / d->dt;
        g->contacts++;
    }
}

/* Everything that the table and the plot show of one grasp, at the end of a step. `half` is half a
 * step: it keeps rounding of times from deciding on which side of a phase's end a step lies. */
static void measure(demo *d, int32_t index, double before, double time)
{
    const double half = d->dt / 2;
    const tb_state *world = d->worlds[index];
    demo_grasp *g = &d->grasps[index];
    tb_body_motion mug, finger[2];
    double now[2][DEMO_POINTS][3];
    if (tb_state_body_motion(world, d->mug, &mug) != TB_OK ||
        tb_state_body_motion(world, d->finger[0], &finger[0]) != TB_OK ||
        tb_state_body_motion(world, d->finger[1], &finger[1]) != TB_OK)
        return;
    for (int f = 0; f < 2; f++) mark_points(&mug, &finger[f], now[f]);
    g->height = mug.com[2] - g->first_height;
    measure_forces(d, world, g);
    if (g->contacts > 0) g->touched_at = time;

    if (before + half < DEMO_CLOSED_S && time + half >= DEMO_CLOSED_S)
        memcpy(g->closed, now, sizeof now);
    if (time + half < DEMO_CLOSED_S) return;
    g->slip = largest_way(now, g->closed);
    if (time - half < DEMO_RESTED_S) {
        g->moving_slip = fmax(g->moving_slip, g->slip);
        memcpy(g->rested, now, sizeof now);
    } else {
        g->hold_slip = fmax(g->hold_slip, largest_way(now, g->rested));
    }
}

demo_outcome demo_grasp_outcome(const demo_grasp *g)
{
    if (g->contacts == 0 || g->height < DEMO_LIFT_M / 4) return DEMO_DROPPED;
    return fmax(g->moving_slip, g->hold_slip) <= DEMO_HELD_M ? DEMO_HELD : DEMO_MOVED;
}

/* ---- playing ---- */

static tb_status steer(demo *d, double time, tb_error *error)
{
    double offset[DEMO_HAND_AXES];
    demo_offset(time, offset);
    for (int32_t w = 0; w < d->count; w++)
        for (int i = 0; i < DEMO_HAND_AXES; i++) {
            const tb_status status =
                tb_state_set_control(d->worlds[w], d->axis[i], d->base[w][i] + offset[i], error);
            if (status != TB_OK) return status;
        }
    return TB_OK;
}

tb_status demo_play(demo *d, demo_watch *watch, void *context, progress *bar, tb_error *error)
{
    const int64_t steps = (int64_t)rint(DEMO_END_S / d->dt);
    for (int64_t step = 0; step < steps; step++) {
        const double before = (double)step * d->dt, time = (double)(step + 1) * d->dt;
        if (interrupt_requested())
            return cli_fail(error, TB_CANCELLED, "", 0, NULL, "interrupted at %.3f s", before);
        /* servos follow where the hand should be when the step ends */
        tb_status status = steer(d, time, error);
        if (status == TB_OK)
            status = tb_step_batch(d->stepper, d->worlds, d->count, 1, d->latest, error);
        if (status != TB_OK && status != TB_DIVERGED) return status;

        for (int32_t w = 0; w < d->count; w++) {
            demo_grasp *g = &d->grasps[w];
            g->last = d->latest[w];
            if (step == 0)
                g->certificate = g->last;
            else
                tb_certificate_merge(&g->certificate, &g->last);
            measure(d, w, before, time);
        }
        if (!watch(context, d, time)) return TB_OK;
        progress_update(bar, (double)(step + 1));
    }
    return TB_OK;
}
