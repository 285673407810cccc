/* Steps by the volume law on a card beside those of the processor. */
#ifndef VOLUME_UTIL_H
#define VOLUME_UTIL_H

#include <math.h>

#include "card_util.h"
#include "scene_util.h"
#include "step/step.h"
#include "tribo.h"

/* The steps that the environment asks for, else those that a played card has time for. */
static inline int32_t steps_asked(const char *variable, int32_t played)
{
    const char *asked = getenv(variable);
    return asked != NULL ? atoi(asked) : played;
}

static inline tb_model *written(const char *text)
{
    tb_scene *scene = NULL;
    tb_model *model = NULL;
    tb_error error;
    TEST_OK(tb_scene_load_mjcf(text, strlen(text), "written", NULL, &scene, &error), &error);
    TEST_OK(tb_scene_compile(scene, &model, &error), &error);
    tb_scene_destroy(scene);
    return model;
}

static inline tb_stepper *stepper_by(tb_backend_choice backend, const char *integrator, bool energy)
{
    tb_step_options options = tb_step_defaults();
    tb_stepper *stepper = NULL;
    tb_error error;
    options.scheme = TB_SCHEME_VOLUME;
    options.backend = backend;
    options.solve.solver = integrator;
    options.report_energy = energy;
    TEST_OK(tb_stepper_create(&options, &stepper, &error), &error);
    return stepper;
}

/* A state at the model's keyframe "start", or at its described coordinates; nudge: mm along the first. */
static inline void start(const tb_model *model, tb_state **state, int32_t nudge)
{
    const int32_t key = tb_model_find(model, TB_HANDLE_KEYFRAME, "start");
    tb_error error;
    TEST_OK(tb_state_create(model, state, &error), &error);
    TEST_OK(tb_state_reset(*state, key, &error), &error);
    if (nudge > 0) (*state)->q[0] += 1e-3 * nudge;
}

static inline double farthest(const double *a, const double *b, int32_t count)
{
    double most = 0;
    for (int32_t i = 0; i < count; i++) most = fmax(most, fabs(a[i] - b[i]));
    return most;
}

/* Steps both ways from one start; the largest difference of coordinates and velocities. contacts: of one step
 * at the least; before: steps of the processor from the start. */
static inline double compare(const tb_model *model, const char *integrator, int32_t steps,
                             int32_t contacts, int32_t before, bool *equal)
{
    tb_state *a = NULL, *b = NULL;
    tb_certificate ca, cb;
    tb_error error;
    tb_stepper *cpu = stepper_by(TB_BACKEND_CPU, integrator, true),
               *card = stepper_by(TB_BACKEND_GPU, integrator, true);
    start(model, &a, 0);
    start(model, &b, 0);
    TEST_OK(tb_step(cpu, a, before, &ca, &error), &error);
    TEST_OK(tb_step(cpu, b, before, &cb, &error), &error);
    TEST_OK(tb_step(cpu, a, steps, &ca, &error), &error);
    TEST_OK(tb_step(card, b, steps, &cb, &error), &error);
    const tb_model *m = a->model;
    *equal = memcmp(a->q, b->q, (size_t)m->number_of_coordinates * sizeof(double)) == 0 &&
             memcmp(a->u, b->u, (size_t)m->number_of_dofs * sizeof(double)) == 0;
    const double most = fmax(farthest(a->q, b->q, m->number_of_coordinates),
                             farthest(a->u, b->u, m->number_of_dofs));
    ck_assert_int_eq(a->steps, b->steps);
    ck_assert_double_eq(a->time, b->time);
    ck_assert_int_eq(ca.contacts, cb.contacts);
    ck_assert_int_eq(ca.iterations, cb.iterations);
    ck_assert_int_eq(a->number_of_contacts, b->number_of_contacts);
    ck_assert_int_ge(ca.contacts, contacts);
    ck_assert_double_le(fabs(ca.penetration - cb.penetration), 1e-10);
    const double scale = 1 + fabs(ca.energy) + fabs(ca.energy_friction);
    ck_assert_double_le(fabs(ca.energy - cb.energy), 1e-9 * scale);
    ck_assert_double_le(fabs(ca.energy_friction - cb.energy_friction), 1e-9 * scale);
    for (int32_t i = 0; i < a->number_of_contacts && *equal; i++)
        ck_assert_mem_eq(&a->contacts[i], &b->contacts[i], sizeof a->contacts[i]);
    tb_stepper_destroy(cpu);
    tb_stepper_destroy(card);
    tb_state_destroy(a);
    tb_state_destroy(b);
    return most;
}

#endif
