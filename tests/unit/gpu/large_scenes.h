/* Worlds for the tests of large-world mode, and steps of them by lanes that play a card. */
#ifndef LARGE_SCENES_H
#define LARGE_SCENES_H

#include "large_played.h"
#include "model_util.h"

/* ---- scenes ---- */

/* of every shape that is added from now on */
static double friction = 0.5, spin_radius = 0, rolling_length = 0;
static tb_contact_kind kind = TB_CONTACT_COULOMB;

static inline void set_surface(tb_surface *surface)
{
    surface->kind = kind;
    surface->friction = friction;
    surface->spin_radius = spin_radius;
    surface->rolling_length = rolling_length;
}

static inline void add_part(tb_scene *scene, tb_handle body, tb_shape_type type, double a, double b,
                            double c)
{
    tb_error error;
    tb_shape_def def = tb_shape_defaults();
    def.body = body;
    def.type = type;
    def.size[0] = a, def.size[1] = b, def.size[2] = c;
    set_surface(&def.surface);
    TEST_OK(tb_scene_add_shape(scene, &def, NULL, &error), &error);
}

static inline void place(tb_scene *scene, tb_shape_type type, const double position[3], double a,
                         double b, double c, double turn)
{
    tb_error error;
    tb_body_def body = tb_body_defaults();
    memcpy(body.position, position, sizeof body.position);
    body.orientation[0] = cos(turn / 2);
    body.orientation[1] = 0.6 * sin(turn / 2);
    body.orientation[3] = 0.8 * sin(turn / 2);
    tb_handle handle;
    TEST_OK(tb_scene_add_body(scene, &body, &handle, &error), &error);
    add_joint(scene, handle, TB_JOINT_FREE, NULL);
    add_part(scene, handle, type, a, b, c);
}

static inline void add_wall(tb_scene *scene, double x, double y, double turn, double axis_x,
                            double axis_y)
{
    const tb_handle none = {0};
    tb_error error;
    tb_shape_def def = tb_shape_defaults();
    def.body = none;
    def.type = TB_SHAPE_PLANE;
    set_surface(&def.surface);
    def.position[0] = x, def.position[1] = y;
    def.orientation[0] = cos(turn / 2);
    def.orientation[1] = axis_x * sin(turn / 2);
    def.orientation[2] = axis_y * sin(turn / 2);
    TEST_OK(tb_scene_add_shape(scene, &def, NULL, &error), &error);
}

static inline tb_model *finish(tb_scene *scene)
{
    tb_model *model = compile(scene);
    tb_scene_destroy(scene);
    return model;
}

static inline double noise(uint32_t *seed)
{
    *seed = *seed * 1664525u + 1013904223u;
    return (double)(*seed >> 8) / 16777216.0 - 0.5;
}

/* Balls dropped into a box of planes. */
static inline tb_model *pile(double mu)
{
    enum { SIDE = 5, HIGH = 6 };
    uint32_t seed = 7;
    friction = mu;
    tb_scene *scene = new_scene();
    const tb_handle none = {0};
    add_part(scene, none, TB_SHAPE_PLANE, 0, 0, 0);
    add_wall(scene, -0.05, 0, M_PI / 2, 0, 1);
    add_wall(scene, 0.1 * SIDE, 0, -M_PI / 2, 0, 1);
    add_wall(scene, 0, -0.05, -M_PI / 2, 1, 0);
    add_wall(scene, 0, 0.1 * SIDE, M_PI / 2, 1, 0);
    for (int k = 0; k < SIDE * SIDE * HIGH; k++) {
        const double p[3] = {0.1 * (k % SIDE) + 0.02 * noise(&seed),
                             0.1 * (k / SIDE % SIDE) + 0.02 * noise(&seed),
                             0.06 + 0.11 * (k / SIDE / SIDE) + 0.01 * noise(&seed)};
        place(scene, TB_SHAPE_SPHERE, p, 0.045 + 0.005 * noise(&seed), 0, 0, 0);
    }
    return finish(scene);
}

/* One of every convex shape many times, and a ground of a box. */
static inline tb_model *mixed(double mu)
{
    friction = mu;
    uint32_t seed = 3;
    tb_scene *scene = new_scene();
    const tb_handle none = {0};
    add_part(scene, none, TB_SHAPE_PLANE, 0, 0, 0);
    for (int k = 0; k < 36; k++) {
        static const tb_shape_type types[] = {TB_SHAPE_SPHERE,   TB_SHAPE_BOX, TB_SHAPE_CAPSULE,
                                              TB_SHAPE_CYLINDER, TB_SHAPE_BOX, TB_SHAPE_ELLIPSOID};
        const double p[3] = {0.16 * (k % 4) + 0.04 * noise(&seed),
                             0.16 * (k / 4 % 4) + 0.04 * noise(&seed), 0.1 + 0.15 * (k / 16)};
        place(scene, types[k % 6], p, 0.06, 0.05, 0.04, 3 * noise(&seed));
    }
    return finish(scene);
}

static inline tb_model *stack(void)
{
    friction = 0.5;
    tb_scene *scene = new_scene();
    const tb_handle none = {0};
    add_part(scene, none, TB_SHAPE_PLANE, 0, 0, 0);
    for (int i = 0; i < 4; i++)
        place(scene, TB_SHAPE_BOX, (const double[]){0, 0, 0.1 + 0.2 * i}, 0.1, 0.1, 0.1, 0);
    return finish(scene);
}

/* A heavy body that a hundred balls lie on: more neighbours than there are colours in a mask. */
static inline tb_model *hub(void)
{
    friction = 0.5;
    uint32_t seed = 5;
    tb_scene *scene = new_scene();
    const tb_handle none = {0};
    add_part(scene, none, TB_SHAPE_PLANE, 0, 0, 0);
    place(scene, TB_SHAPE_BOX, (const double[]){0, 0, 0.05}, 0.7, 0.7, 0.05, 0);
    for (int k = 0; k < 100; k++)
        place(scene, TB_SHAPE_SPHERE,
              (const double[]){0.12 * (k % 10) - 0.54 + 0.01 * noise(&seed),
                               0.12 * (k / 10) - 0.54 + 0.01 * noise(&seed), 0.15},
              0.05, 0, 0, 0);
    return finish(scene);
}

/* ---- stepping ---- */

static inline tb_step_options options_of(double tolerance)
{
    tb_step_options options = tb_step_defaults();
    options.backend = TB_BACKEND_CPU;
    options.threads = 1;
    options.dt = 2e-3;
    options.solve.solver = "sor";
    options.solve.tolerance = tolerance;
    options.solve.maximum_iterations = 4000;
    return options;
}

static inline tb_state *state_of(const tb_model *model)
{
    tb_error error;
    tb_state *state = NULL;
    TEST_OK(tb_state_create(model, &state, &error), &error);
    return state;
}

static inline tb_certificate step_cpu(tb_state *state, const tb_step_options *options,
                                      int32_t steps)
{
    tb_error error;
    tb_stepper *stepper = NULL;
    tb_certificate certificate;
    TEST_OK(tb_stepper_create(options, &stepper, &error), &error);
    const tb_status status = tb_step(stepper, state, steps, &certificate, &error);
    ck_assert(status == TB_OK || status == TB_DIVERGED);
    tb_stepper_destroy(stepper);
    return certificate;
}

/* Lifts and turns the bodies that the caller moves. */
static inline void move_kinematic(tb_state *state)
{
    for (int32_t i = 0; i < state->model->number_of_kinematic_bodies; i++) {
        double *twist = state->kinematic + TB_KINEMATIC_NUMBERS * i + 7;
        twist[1] = 0.05, twist[2] = 0.1, twist[3] = 0.1, twist[5] = 0.3;
    }
}

typedef tb_status large_step(tb_state *state, const tb_large_plan *plan,
                             const tb_step_options *options, int32_t steps, int32_t capacity,
                             tb_certificate *certificate, large_view *view);
large_step large_played_step_f32;

/* Steps and gives the state its contacts. */
static inline tb_certificate step_by(large_step *step, tb_state *state,
                                     const tb_step_options *options, int32_t steps,
                                     int32_t capacity, large_view *view)
{
    tb_certificate certificate;
    large_view own;
    if (view == NULL) view = &own;
    tb_arena arena = {0};
    tb_large_plan plan;
    ck_assert_pstr_eq(tb_large_refuses(state->model, options), NULL);
    ck_assert_int_eq(tb_large_plan_make(state->model, &arena, &plan), TB_OK);
    ck_assert_int_eq(step(state, &plan, options, steps, capacity, &certificate, view), TB_OK);
    tb_arena_destroy(&arena);
    ck_assert_int_eq(tb_state_reserve_next(state, view->contacts), TB_OK);
    if (view->contacts > 0)
        memcpy(state->next_contacts, view->records, (size_t)view->contacts * sizeof *view->records);
    tb_state_take_next(state, view->contacts);
    return certificate;
}

static inline tb_certificate step_large(tb_state *state, const tb_step_options *options,
                                        int32_t steps, int32_t capacity, large_view *view)
{
    return step_by(options->precision == TB_FLOAT ? large_played_step_f32 : large_played_step,
                   state, options, steps, capacity, view);
}

/* Steps with arrays that are too small at first leave the same bytes. Destroys the model. */
static inline void check_room(large_step *step, tb_model *model, const tb_step_options *options,
                              int32_t steps)
{
    tb_state *wide = state_of(model), *tight = state_of(model);
    large_view view;
    step_by(step, wide, options, steps, 0, NULL);
    step_by(step, tight, options, steps, 8, &view);
    ck_assert_int_gt(view.regrowths, 1);
    ck_assert_uint_eq(tb_state_hash(wide), tb_state_hash(tight));
    tb_state_destroy(wide);
    tb_state_destroy(tight);
    tb_model_destroy(model);
}

/* ---- comparisons ---- */

static inline double largest_difference(const double *a, const double *b, int32_t n)
{
    double largest = 0;
    for (int32_t i = 0; i < n; i++) largest = fmax(largest, fabs(a[i] - b[i]));
    return largest;
}

static inline void check_contacts(const tb_state *large, const tb_state *cpu, double tolerance)
{
    ck_assert_int_eq(large->number_of_contacts, cpu->number_of_contacts);
    for (int32_t i = 0; i < cpu->number_of_contacts; i++) {
        const tb_contact_record *a = &large->contacts[i], *b = &cpu->contacts[i];
        ck_assert_int_eq(a->shape_a, b->shape_a);
        ck_assert_int_eq(a->shape_b, b->shape_b);
        ck_assert(a->feature == b->feature);
        ck_assert_int_eq(a->kind, b->kind);
        ck_assert_double_le(fabs(a->gap - b->gap), tolerance);
        ck_assert_double_le(largest_difference(a->position, b->position, 3), tolerance);
        ck_assert_double_le(largest_difference(a->normal, b->normal, 3), 1e3 * tolerance);
    }
}

/* Steps in one call, in many, and with zero first capacities: the same bytes. */
static inline void compare_calls(tb_model *model)
{
    tb_step_options options = options_of(1e-8);
    options.solve.maximum_iterations = 100;
    tb_state *once = state_of(model), *often = state_of(model), *tight = state_of(model);
    large_view view;
    const tb_certificate a = step_large(once, &options, 25, 0, NULL);
    for (int i = 0; i < 25; i++) step_large(often, &options, 1, 0, NULL);
    const tb_certificate c = step_large(tight, &options, 25, 8, &view);
    ck_assert_int_gt(view.regrowths, 1);
    ck_assert_int_eq(a.iterations, c.iterations);
    ck_assert(memcmp(once->u, tight->u, (size_t)model->number_of_dofs * sizeof(double)) == 0);
    ck_assert(memcmp(once->q, often->q, (size_t)model->number_of_coordinates * 8) == 0);
    ck_assert(memcmp(once->u, often->u, (size_t)model->number_of_dofs * sizeof(double)) == 0);
    ck_assert_int_eq(once->number_of_contacts, often->number_of_contacts);
    ck_assert(memcmp(once->contacts, often->contacts,
                     (size_t)once->number_of_contacts * sizeof *once->contacts) == 0);
    tb_state_destroy(once);
    tb_state_destroy(often);
    tb_state_destroy(tight);
    tb_model_destroy(model);
}

#endif
