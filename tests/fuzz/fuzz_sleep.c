/* Fuzzes worlds whose bodies sleep. An input is a list of operations on a world: pushes of every
 * kind, steps, forks, snapshots and resets, three bytes each behind the byte that chooses the
 * world. After every step
 *   coordinates and velocities are finite, unless the world has diverged;
 *   as many trees sleep as there are at most;
 *   a world in which all trees sleep in two steps one after the other keeps every bit;
 * and a fork or a restored snapshot takes the next step with the bytes of the original. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tribo.h"

enum { MOST_OPERATIONS = 48, MOST_NUMBERS = 64, MOST_STEPS = 4 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define BOX(name, place, more)                                                                     \
    "<body name='" name "' pos='" place "' " more "><freejoint/>"                                  \
    "<geom type='box' size='.05 .05 .05' mass='1'/></body>"
#define HEAD                                                                                       \
    "<mujoco><option timestep='.005'><flag sleep='enable'/></option><worldbody><geom "             \
    "type='plane' size='5 5 1'/>"

static const char *const MODELS[] = {
    /* a stack, a box that hangs asleep above it, and a hand that can come */
    HEAD BOX("low", "0 0 .05", "") BOX("high", "0 0 .15", "")
        BOX("hung", "0 .02 .5", "sleep='init'")
            BOX("never", "1 0 .05", "sleep='never'") "<body name='hand' mocap='true' pos='.3 0 "
                                                     ".1'><geom size='.05'/></body></worldbody>"
                                                     "</mujoco>",
    /* an arm with a motor beside a box, a loop of two arms, a tendon */
    HEAD BOX(
        "box", ".3 0 .05",
        "") "<body pos='0 0 .1'><joint name='a' damping='1' axis='0 0 1'/><geom type='capsule' "
            "fromto='0 0 0 .2 0 0' size='.03'/></body>"
            "<body pos='0 1 .1'><joint name='b' damping='1' axis='0 0 1' frictionloss='.1'/><geom "
            "type='capsule' fromto='0 0 0 .2 0 0' size='.03'/></body>"
            "<body pos='0 2 .1'><joint name='c' damping='1' axis='0 0 1' range='-40 40'/><geom "
            "type='capsule' fromto='0 0 0 .2 0 0' size='.03'/></body></worldbody>"
            "<equality><joint joint1='b' joint2='c'/></equality><tendon><fixed range='-1 1' "
            "limited='true'><joint joint='a' coef='1'/><joint joint='b' coef='1'/></fixed></tendon>"
            "<actuator><motor joint='a'/><position joint='c' kp='5' kv='1'/></actuator></mujoco>",
};
enum { WORLDS = sizeof MODELS / sizeof MODELS[0] };

typedef struct world {
    const tb_model *model;
    tb_stepper *stepper;
    tb_state *state;
    bool slept; /* all trees, in the last step */
    bool diverged;
} world;

static const tb_model *model_of(int index)
{
    static tb_model *models[WORLDS];
    if (models[index]) return models[index];
    const tb_import_options options = tb_import_defaults();
    tb_scene *scene = NULL;
    tb_error error = {0};
    if (tb_scene_load_mjcf(MODELS[index], strlen(MODELS[index]), "/nowhere/fuzz.xml", &options,
                           &scene, &error) != TB_OK ||
        tb_scene_compile(scene, &models[index], &error) != TB_OK)
        abort();
    tb_scene_destroy(scene);
    return models[index];
}

static tb_stepper *the_stepper(void)
{
    static tb_stepper *stepper;
    tb_error error = {0};
    const tb_step_options options = tb_step_defaults();
    if (!stepper && tb_stepper_create(&options, &stepper, &error) != TB_OK) abort();
    return stepper;
}

static void step(world *w)
{
    const tb_model_counts counts = tb_model_count(w->model);
    double q[MOST_NUMBERS];
    tb_certificate c;
    tb_error error = {0};
    memcpy(q, tb_state_q(w->state), (size_t)counts.coordinates * sizeof *q);
    const tb_status status = tb_step(w->stepper, w->state, 1, &c, &error);
    w->diverged = status == TB_DIVERGED || c.status == TB_DIVERGED;
    if (w->diverged) return;
    if (status != TB_OK) abort();
    for (int32_t i = 0; i < counts.coordinates; i++)
        if (!isfinite(tb_state_q(w->state)[i])) abort();
    for (int32_t i = 0; i < counts.dofs; i++)
        if (!isfinite(tb_state_u(w->state)[i])) abort();
    if (c.asleep < 0 || c.asleep > counts.trees) abort();
    bool moves = false;
    for (int32_t i = 0; i < counts.dofs; i++) moves = moves || tb_state_u(w->state)[i] != 0;
    const bool sleeps = c.asleep > 0 && !moves;
    if (sleeps && w->slept && c.rows == 0 &&
        memcmp(q, tb_state_q(w->state), (size_t)counts.coordinates * sizeof *q) != 0)
        abort();
    w->slept = sleeps && c.rows == 0;
}

/* Steps the world and another of the same state, which then have the same bytes. Takes `other`. */
static void step_both(world *w, tb_state *other)
{
    world copy = *w;
    copy.state = other;
    if (tb_state_hash(w->state) != tb_state_hash(other)) abort();
    step(w);
    step(&copy);
    if (w->diverged != copy.diverged || tb_state_hash(w->state) != tb_state_hash(other)) abort();
    tb_state_destroy(other);
}

static void restore(world *w)
{
    unsigned char *bytes = NULL;
    size_t size = 0;
    tb_state *other = NULL;
    tb_error error = {0};
    if (tb_state_snapshot(w->state, &bytes, &size, &error) != TB_OK ||
        tb_state_create(w->model, &other, &error) != TB_OK ||
        tb_state_restore(other, bytes, size, &error) != TB_OK)
        abort();
    tb_bytes_destroy(bytes);
    step_both(w, other);
}

static void fork_world(world *w)
{
    tb_state *other = NULL;
    tb_error error = {0};
    if (tb_state_fork(w->state, &other, &error) != TB_OK) abort();
    step_both(w, other);
}

/* Adds to one coordinate or velocity. The state may refuse it, as it refuses a quaternion of length 0. */
static void set_number(world *w, bool velocity, uint8_t index, double value)
{
    const tb_model_counts counts = tb_model_count(w->model);
    const int32_t count = velocity ? counts.dofs : counts.coordinates;
    double numbers[MOST_NUMBERS];
    tb_error error = {0};
    const double *old = velocity ? tb_state_u(w->state) : tb_state_q(w->state);
    memcpy(numbers, old, (size_t)count * sizeof *numbers);
    numbers[index % count] += value;
    const tb_status status = velocity ? tb_state_set_u(w->state, numbers, count, &error)
                                      : tb_state_set_q(w->state, numbers, count, &error);
    if (status != TB_OK && error.message[0] == 0) abort();
    w->slept = false;
}

static void push(world *w, uint8_t index, double value)
{
    const tb_model_counts counts = tb_model_count(w->model);
    const int32_t body = index % counts.bodies;
    const double wrench[6] = {value, 0, value / 2, 0, value / 4, 0}, turn[4] = {1, 0, 0, 0};
    const double place[3] = {value / 8, 0, 0.1}, speed[3] = {value, 0, 0}, still[3] = {0};
    double forces[MOST_NUMBERS] = {0};
    tb_error error = {0};
    if (index % 3 == 0) (void)tb_state_set_body_wrench(w->state, body, wrench, &error);
    if (index % 3 == 1) {
        forces[index % counts.dofs] = value;
        (void)tb_state_set_applied_force(w->state, forces, counts.dofs, &error);
    }
    if (index % 3 == 2)
        (void)tb_state_set_kinematic(w->state, body, place, turn, index & 64 ? speed : still, still,
                                     &error);
    w->slept = false;
}

static void operate(world *w, const uint8_t operation[3])
{
    const double value = ((double)operation[2] - 128) / 32;
    const tb_model_counts counts = tb_model_count(w->model);
    tb_error error = {0};
    switch (operation[0] % 8) {
    case 0: set_number(w, false, operation[1], value / 16); break;
    case 1: set_number(w, true, operation[1], value); break;
    case 2: push(w, operation[1], value); break;
    case 3:
        if (counts.actuators > 0)
            (void)tb_state_set_control(w->state, operation[1] % counts.actuators, value, &error);
        w->slept = false;
        break;
    case 4: restore(w); break;
    case 5: fork_world(w); break;
    case 6:
        if (operation[1] < 16 && tb_state_reset(w->state, -1, &error) != TB_OK) abort();
        w->slept = false;
        break;
    default: break;
    }
    for (int i = 0; i < 1 + operation[1] % MOST_STEPS && !w->diverged; i++) step(w);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1) return 0;
    tb_error error = {0};
    world w = {.model = model_of(data[0] % WORLDS), .stepper = the_stepper()};
    if (tb_state_create(w.model, &w.state, &error) != TB_OK) abort();
    const tb_model_counts counts = tb_model_count(w.model);
    if (counts.coordinates > MOST_NUMBERS || counts.dofs > MOST_NUMBERS) abort();
    for (int i = 0; i < 12 && data[0] & 128; i++) step(&w); /* what rests falls asleep */
    for (size_t i = 0; i < MOST_OPERATIONS && 3 * i + 4 <= size && !w.diverged; i++)
        operate(&w, data + 1 + 3 * i);
    tb_state_destroy(w.state);
    return 0;
}
