/* Large-world mode with one lane that plays a card (large_played.cc) against the CPU's step: the
 * same contacts, proper colours, velocities within the tolerance, certificates that the CPU's own
 * problem confirms, memory that grows, states from which either side continues. */
#include "large_compare.h"

#include <unistd.h>

/* a sanitizer needs every path once */
#ifdef __SANITIZE_ADDRESS__
enum { LONG_STEPS = 50, SETTLING_STEPS = 120 };
#else
enum { LONG_STEPS = 150, SETTLING_STEPS = 300 };
#endif

/* ---- tests ---- */

START_TEST(one_step_of_a_pile_is_that_of_the_cpu)
{
    compare_steps("pile", pile(0.5), 0, 1e-11);
    compare_steps("pile without friction", pile(0), 1e-7, 1e-11);
}
END_TEST

START_TEST(one_step_of_mixed_shapes_is_that_of_the_cpu)
{
    compare_steps("mixed", mixed(0.5), 0, 1e-11);
    compare_steps("mixed without friction", mixed(0), 1e-7, 1e-11);
}
END_TEST

START_TEST(one_step_of_a_stack_is_that_of_the_cpu)
{
    compare_steps("stack", stack(), 1e-7, 1e-11);
}
END_TEST

START_TEST(one_step_of_a_hub_is_that_of_the_cpu)
{
    compare_steps("hub", hub(), 1e-7, 1e-11);
}
END_TEST

static void confirm(tb_model *model, int32_t sweeps)
{
    char path[] = "/tmp/test_large_XXXXXX.dat";
    const int fd = mkstemps(path, 4);
    ck_assert_int_ge(fd, 0);
    close(fd);
    tb_step_options options = options_of(1e-6);
    options.solve.maximum_iterations = sweeps;
    tb_state *state = state_of(model);
    step_large(state, &options, 30, 0, NULL);
    tb_workspace workspace = {.threads = 1};
    tb_error error;
    for (int32_t i = 0; i < model->number_of_dofs; i++) state->u[i] += 0.01 * (i % 5);
    TEST_OK(tb_world_export(state, &options, &workspace, path, &error), &error);
    const tb_certificate certificate = step_large(state, &options, 1, 0, NULL);

    tb_problem_file *file = NULL;
    TEST_OK(tb_problem_load(path, &file, &error), &error);
    const tb_problem *problem = tb_problem_file_local(file);
    ck_assert_int_eq(problem->number_of_rows, certificate.rows);
    double *lambda = calloc((size_t)certificate.rows, sizeof *lambda);
    int32_t row = 0;
    for (int32_t i = 0; i < state->number_of_contacts; i++)
        for (int32_t k = 0; k < state->contacts[i].kind; k++)
            lambda[row++] = state->contacts[i].impulse[k];
    tb_residuals residuals;
    TEST_OK(tb_problem_residuals(problem, lambda, &workspace.arena, NULL, &residuals), NULL);
    ck_assert_double_gt(certificate.residual, 0);
    ck_assert_double_le(fabs(residuals.natural - certificate.residual),
                        1e-9 * certificate.residual + 1e-12);
    ck_assert_double_le(fabs(residuals.complementarity - certificate.complementarity_error),
                        1e-9 * certificate.complementarity_error + 1e-12);
    free(lambda);
    tb_problem_destroy(file);
    tb_arena_destroy(&workspace.arena);
    tb_state_destroy(state);
    tb_model_destroy(model);
    unlink(path);
}

START_TEST(what_the_certificate_says_the_cpus_problem_confirms)
{
    confirm(stack(), 40);
    confirm(pile(0.5), 7);
    confirm(mixed(0.5), 12);
}
END_TEST

START_TEST(calls_and_room_do_not_matter)
{
    compare_calls(pile(0.5));
    compare_calls(mixed(0.5));
}
END_TEST

/* A long way of either: balls come to rest at about the same height. Recovery by velocities, which
 * a large world has, throws a loose pile up a little where it begins with overlaps. */
static void compare_piles(tb_precision precision, const char *solver)
{
    tb_step_options options = options_of(1e-6);
    options.precision = precision;
    if (precision == TB_FLOAT) options.solve.tolerance = 1e-4;
    options.solve.solver = solver;
    options.solve.maximum_iterations = 100;
    tb_model *model = pile(0.5);
    tb_state *large = state_of(model), *cpu = state_of(model);
    const tb_certificate a = step_large(large, &options, LONG_STEPS, 0, NULL);
    const tb_certificate b = step_cpu(cpu, &options, LONG_STEPS);
    double height[2] = {0, 0};
    for (int32_t i = 2; i < model->number_of_coordinates; i += 7) {
        height[0] += large->q[i];
        height[1] += cpu->q[i];
    }
    ck_assert_double_le(fabs(height[0] / height[1] - 1), 6e-2);
    ck_assert_double_le(a.penetration, 1.5 * b.penetration + 1e-5);
    ck_assert_str_eq(a.solver, solver);
    tb_state_destroy(large);
    tb_state_destroy(cpu);
    tb_model_destroy(model);
}

START_TEST(a_pile_settles_as_on_the_cpu)
{
    compare_piles(TB_DOUBLE, "sor");
    compare_piles(TB_DOUBLE, "jor");
    compare_piles(TB_FLOAT, "sor");
}
END_TEST

/* Sweeps that a step from nothing takes in a world that has settled; with momentum it ends well. */
static int32_t count_sweeps(tb_model *model, const tb_state *settled, const char *solver,
                            bool accelerate)
{
    tb_error error;
    tb_state *state = NULL;
    tb_step_options options = options_of(1e-5);
    options.solve.solver = solver;
    options.solve.accelerate = accelerate;
    options.solve.warm_start = false;
    TEST_OK(tb_state_fork(settled, &state, &error), &error);
    const tb_certificate certificate = step_large(state, &options, 1, 0, NULL);
    if (accelerate) ck_assert_int_eq(certificate.status, TB_OK);
    ck_assert_int_gt(certificate.contacts, model->number_of_trees);
    tb_state_destroy(state);
    return certificate.iterations;
}

static void compare_sweeps(const char *name, tb_model *model, const char *solver)
{
    const tb_step_options options = options_of(1e-6);
    tb_state *state = state_of(model);
    step_large(state, &options, SETTLING_STEPS, 0, NULL);
    const int32_t plain = count_sweeps(model, state, solver, false);
    const int32_t fast = count_sweeps(model, state, solver, true);
    printf("%s, %s: %d sweeps, %d with momentum\n", name, solver, plain, fast);
    ck_assert_int_lt(10 * fast, 6 * plain);
    tb_state_destroy(state);
    tb_model_destroy(model);
}

START_TEST(momentum_saves_sweeps)
{
    compare_sweeps("pile", pile(0.3), "sor");
    compare_sweeps("pile", pile(0.3), "jor");
    compare_sweeps("mixed shapes", mixed(0.3), "sor");
}
END_TEST

START_TEST(worlds_with_joints_are_not_for_it)
{
    tb_step_options options = options_of(1e-6);
    tb_scene *scene = rich_scene();
    tb_model *rich = finish(scene), *balls = pile(0.5);
    ck_assert_ptr_nonnull(tb_large_refuses(rich, &options));
    ck_assert_ptr_null(tb_large_refuses(balls, &options));
    options.solve.solver = "newton";
    ck_assert_ptr_nonnull(tb_large_refuses(balls, &options));
    tb_model_destroy(rich);
    tb_model_destroy(balls);
}
END_TEST

/* Kinds between those that the scene format has: their number of rows is that of no law here. */
START_TEST(worlds_of_other_laws_are_not_for_it)
{
    const tb_step_options options = options_of(1e-6);
    const int32_t others[] = {2, 5}, known[] = {TB_CONTACT_FRICTIONLESS, TB_CONTACT_COULOMB,
                                                TB_CONTACT_SPIN, TB_CONTACT_ROLLING};
    tb_model *balls = pile(0.5);
    const tb_model_shape *shape = &balls->shapes[balls->colliding_shapes[1]];
    tb_surface *surface = (tb_surface *)(uintptr_t)&shape->surface; /* of this test's own model */
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        surface->kind = (tb_contact_kind)others[i];
        ck_assert_ptr_nonnull(tb_large_refuses(balls, &options));
    }
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        surface->kind = (tb_contact_kind)known[i];
        ck_assert_ptr_null(tb_large_refuses(balls, &options));
    }
    tb_model_destroy(balls);
}
END_TEST

TEST_MAIN(one_step_of_a_pile_is_that_of_the_cpu, one_step_of_mixed_shapes_is_that_of_the_cpu,
          one_step_of_a_stack_is_that_of_the_cpu, one_step_of_a_hub_is_that_of_the_cpu,
          what_the_certificate_says_the_cpus_problem_confirms, calls_and_room_do_not_matter,
          a_pile_settles_as_on_the_cpu, momentum_saves_sweeps, worlds_with_joints_are_not_for_it,
          worlds_of_other_laws_are_not_for_it)
