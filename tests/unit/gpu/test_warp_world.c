/* The kernels in which a warp keeps its world, of small worlds and of piles, come to the answer of the
 * library, with solvers of their own. */
#include "device_world_util.h"

typedef tb_status world_step(device_job *job, tb_certificate *certificate);
world_step warp_world_step_f32, pile_world_step_f32;

/* The steps of a kernel in either precision. */
typedef struct kernel {
    world_step *in_double, *in_float;
} kernel;
static const kernel SMALL = {warp_world_step, warp_world_step_f32};
static const kernel PILE = {pile_world_step, pile_world_step_f32};

static const double MERGE = 3e-3;

/* A comparison with the library's answer after the same steps. */
typedef struct trial {
    const tb_model *model;
    tb_precision precision;
    double merge;
    int before, steps; /* of the library, then of both */
    double tolerance, differs;
} trial;

static double largest_difference(const double *a, const double *b, int32_t count)
{
    double largest = 0;
    for (int32_t i = 0; i < count; i++) largest = fmax(largest, fabs(a[i] - b[i]));
    return largest;
}

static tb_status step_by(const kernel *k, device_world *w, const tb_step_options *options,
                         tb_certificate *certificate)
{
    device_job job = {.state = &w->state,
                      .options = options,
                      .solver = tb_solver_number(options->solve.solver),
                      .memory = w->memory,
                      .bytes = w->bytes};
    w->state.next_contacts = w->contacts[w->state.contacts == w->contacts[0]];
    w->state.next_capacity = 1024;
    return (options->precision == TB_FLOAT ? k->in_float : k->in_double)(&job, certificate);
}

/* The library's state after the trial's first steps. */
static tb_state *start_of(const trial *t, tb_stepper *stepper)
{
    tb_error error;
    tb_state *state = NULL;
    TEST_OK(tb_state_create(t->model, &state, &error), &error);
    push(state, false);
    if (t->before > 0) TEST_OK(tb_step(stepper, state, t->before, NULL, &error), &error);
    return state;
}

/* Another solver goes to the same answer where there is one alone. Returns the steps and sweeps that the
 * kernel took. */
static int32_t compare(const kernel *k, const trial *t)
{
    tb_error error;
    tb_state *other = NULL;
    tb_stepper *stepper = NULL;
    tb_step_options options = tb_step_defaults();
    int32_t iterations = 0;
    options.precision = t->precision;
    options.contact_merge = t->merge;
    options.solve.tolerance = t->tolerance;
    TEST_OK(tb_stepper_create(&options, &stepper, &error), &error);
    tb_state *state = start_of(t, stepper);
    TEST_OK(tb_state_fork(state, &other, &error), &error);
    device_world w = make_device_world(other, 1024, 1 << 20);
    for (int i = 0; i < t->steps; i++) {
        tb_certificate expected, certificate;
        TEST_OK(tb_step(stepper, state, 1, &expected, &error), &error);
        TEST_OK(step_by(k, &w, &options, &certificate), NULL);
        ck_assert_int_eq(certificate.contacts, expected.contacts);
        ck_assert_int_eq(certificate.rows, expected.rows);
        ck_assert(certificate.residual <= t->tolerance);
        ck_assert_int_eq((int)certificate.step, t->before + i + 1);
        iterations += certificate.iterations;
    }
    const tb_model_counts n = tb_model_count(t->model);
    const double q = largest_difference(tb_state_q(state), w.state.q, n.coordinates);
    const double u = largest_difference(tb_state_u(state), w.state.u, n.dofs);
    ck_assert_msg(q <= t->differs && u <= 100 * t->differs, "they differ by %g and %g", q, u);
    free_device_world(&w);
    tb_stepper_destroy(stepper);
    tb_state_destroy(other);
    tb_state_destroy(state);
    return iterations;
}

static void compare_jaw_and_mug(const kernel *k)
{
    tb_model *jaw = jaw_and_mug();
    (void)compare(k, &(trial){jaw, TB_DOUBLE, 0, 0, 12, 1e-11, 1e-11});
    (void)compare(k, &(trial){jaw, TB_FLOAT, 0, 0, 12, 1e-6, 1e-6});
    /* both pads are at the mug, and half of the points are redundant */
    (void)compare(k, &(trial){jaw, TB_DOUBLE, MERGE, 60, 8, 1e-11, 1e-11});
    (void)compare(k, &(trial){jaw, TB_FLOAT, MERGE, 60, 8, 1e-6, 1e-6});
    tb_model_destroy(jaw);
}

START_TEST(a_warp_comes_to_the_answer_of_the_library)
{
    compare_jaw_and_mug(&SMALL);
}
END_TEST

/* Two trees, one of slides and one of a free body. */
START_TEST(jaw_and_mug_come_to_it_as_a_pile)
{
    compare_jaw_and_mug(&PILE);
}
END_TEST

static tb_model *compiled(const char *text)
{
    tb_error error;
    tb_scene *scene = NULL;
    tb_model *model = NULL;
    TEST_OK(tb_scene_load_mjcf(text, strlen(text), "pile.xml", NULL, &scene, &error), &error);
    TEST_OK(tb_scene_compile(scene, &model, &error), &error);
    tb_scene_destroy(scene);
    return model;
}

/* A stack of boxes, each shifted a little, that falls by a fraction of a millimetre. */
static tb_model *stack(int boxes)
{
    char text[4096];
    int at = snprintf(text, sizeof text,
                      "<mujoco><option timestep=\"0.002\"/><default><geom friction=\"0.7 0 0\""
                      " condim=\"3\"/></default><worldbody><geom type=\"plane\" size=\"1 1 1\"/>");
    for (int i = 0; i < boxes; i++)
        at += snprintf(
            text + at, sizeof text - (size_t)at,
            "<body pos=\"%g %g %g\"><freejoint/><geom type=\"box\" size=\".05 .05 .05\"/>"
            "<inertial pos=\"0 0 %g\" mass=\"%g\" diaginertia=\".002 .002 .002\"/>"
            "</body>",
            0.003 * (i % 3), 0.002 * (i % 2), 0.05 + 0.1001 * i, i == 2 ? 0.004 : 0.0, 1 + 0.2 * i);
    snprintf(text + at, sizeof text - (size_t)at, "</worldbody></mujoco>");
    return compiled(text);
}

/* With columns in all lanes and a second row in some, then with fewer; on the way some steps need rounds. */
START_TEST(stacks_of_boxes_come_to_the_answer_of_the_library)
{
    static const int BOXES[] = {6, 5, 3};
    for (int i = 0; i < 3; i++) {
        tb_model *model = stack(BOXES[i]);
        const int32_t iterations =
            compare(&PILE, &(trial){model, TB_DOUBLE, 0, 0, 12, 1e-10, 1e-10});
        ck_assert_int_ge(iterations, 3);
        (void)compare(&PILE, &(trial){model, TB_FLOAT, 0, 4, 8, 1e-6, 1e-6});
        tb_model_destroy(model);
    }
}
END_TEST

/* At rest a step begins with impulses that are its answer, so that few steps need a round. */
START_TEST(a_stack_at_rest_needs_few_rounds)
{
    tb_model *model = stack(6);
    ck_assert_int_le(compare(&PILE, &(trial){model, TB_FLOAT, 0, 200, 40, 1e-6, 1e-6}), 12);
    tb_model_destroy(model);
}
END_TEST

/* A gripper of two slides in one tree that holds a block, which another one stands on, beside a ball. */
static const char GRIPPER[] =
    "<mujoco><option timestep=\"0.002\"/><default><geom friction=\"0.8 0 0\" "
    "condim=\"3\"/></default>"
    "<worldbody><geom type=\"plane\" size=\"1 1 1\"/>"
    "<body pos=\"0 0 0.1\"><joint name=\"z\" type=\"slide\" axis=\"0 0 1\" damping=\"2\"/>"
    "<geom type=\"box\" size=\".01 .01 .01\" pos=\"0 0 0.2\" mass=\"0.3\"/>"
    "<body pos=\"-0.062 0 0\"><joint name=\"l\" type=\"slide\" axis=\"1 0 0\" frictionloss=\"0.1\""
    " limited=\"true\" range=\"-0.05 0.05\"/><geom type=\"box\" size=\".01 .03 .03\" mass=\"0.1\"/>"
    "</body>"
    "<body pos=\"0.062 0 0\"><joint name=\"r\" type=\"slide\" axis=\"-1 0 0\"/>"
    "<geom type=\"box\" size=\".01 .03 .03\" mass=\"0.1\"/></body></body>"
    "<body pos=\"0 0 0.1\"><freejoint/><geom type=\"box\" size=\".05 .04 .04\" "
    "mass=\"0.2\"/></body>"
    "<body pos=\"0.01 0 0.1601\"><freejoint/><geom type=\"box\" size=\".02 .02 .02\" mass=\"0.1\"/>"
    "</body>"
    "<body pos=\"0.3 0 0.0501\"><freejoint/><geom type=\"sphere\" size=\".05\" "
    "mass=\"0.2\"/></body>"
    "</worldbody><actuator>"
    "<position joint=\"z\" kp=\"80\" kv=\"20\"/><motor joint=\"l\" gear=\"0.5\"/>"
    "<motor joint=\"r\" gear=\"30\"/></actuator></mujoco>\n";

START_TEST(a_gripper_with_blocks_comes_to_the_answer_of_the_library)
{
    tb_model *model = compiled(GRIPPER);
    (void)compare(&PILE, &(trial){model, TB_DOUBLE, 0, 0, 2, 1e-11, 1e-11});
    /* the impact of the pads has several solutions: the steps after it */
    (void)compare(&PILE, &(trial){model, TB_DOUBLE, 0, 3, 10, 1e-11, 1e-10});
    (void)compare(&PILE, &(trial){model, TB_DOUBLE, MERGE, 20, 10, 1e-11, 1e-10});
    (void)compare(&PILE, &(trial){model, TB_FLOAT, 0, 20, 6, 1e-6, 1e-6});
    tb_model_destroy(model);
}
END_TEST

TEST_MAIN(a_warp_comes_to_the_answer_of_the_library, jaw_and_mug_come_to_it_as_a_pile,
          stacks_of_boxes_come_to_the_answer_of_the_library, a_stack_at_rest_needs_few_rounds,
          a_gripper_with_blocks_comes_to_the_answer_of_the_library)
