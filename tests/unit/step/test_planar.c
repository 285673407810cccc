/* Planar worlds: outlines that touch, models that are none, threads, discs, snapshots, the freeze. */
#include "../gpu/card_util.h"

static tb_error error;

/* a sanitizer needs every path once, not many steps and sweeps */
#ifdef __SANITIZE_ADDRESS__
enum { THREADED_STEPS = 22, THREAD_COUNTS = 2, PLAYED_SWEEPS = 2, PLAYED_PRODUCTS = 12 };
#define PLAYED_OCTAGONS "betz_angle_octagon_5_mu0.5"
#else
enum { THREADED_STEPS = 40, THREAD_COUNTS = 3, PLAYED_SWEEPS = 6, PLAYED_PRODUCTS = 60 };
#define PLAYED_OCTAGONS "betz_angle_octagon_10_mu0.5"
#endif

#define HEAD "<mujoco><option timestep='0.01' gravity='0 0 -9.81'/><worldbody>"
#define TAIL "</worldbody></mujoco>"
#define JOINTS                                                                                     \
    "<joint type='slide' axis='1 0 0'/><joint type='slide' axis='0 0 1'/>"                         \
    "<joint type='hinge' axis='0 -1 0'/>"

typedef struct planar {
    tb_model *model;
    tb_state *state;
    tb_stepper *stepper;
} planar;

static planar open_text(const char *text, const char *solver, int32_t threads)
{
    planar p = {0};
    tb_scene *scene = NULL;
    tb_step_options options = tb_step_defaults();
    options.scheme = TB_SCHEME_PLANAR;
    options.solve.solver = solver;
    options.threads = threads;
    memset(&error, 0, sizeof error);
    TEST_OK(tb_scene_load_mjcf(text, strlen(text), "planar.xml", NULL, &scene, &error), &error);
    TEST_OK(tb_scene_compile(scene, &p.model, &error), &error);
    TEST_OK(tb_state_create(p.model, &p.state, &error), &error);
    TEST_OK(tb_stepper_create(&options, &p.stepper, &error), &error);
    tb_scene_destroy(scene);
    return p;
}

static void close_planar(planar *p)
{
    tb_stepper_destroy(p->stepper);
    tb_state_destroy(p->state);
    tb_model_destroy(p->model);
}

static tb_body_motion motion_of(const planar *p, const char *body)
{
    tb_body_motion m;
    const int32_t index = tb_model_find(p->model, TB_HANDLE_BODY, body);
    ck_assert_int_eq(tb_state_body_motion(p->state, index, &m), TB_OK);
    return m;
}

START_TEST(boxes_and_discs_come_to_rest_where_they_touch)
{
    planar p = open_text(
        HEAD "<geom type='plane' size='5 5 1'/>"
             "<body name='low' pos='0 0 0.12'>" JOINTS
             "<geom type='box' size='0.2 0.05 0.1' mass='2' friction='0.5'/></body>"
             "<body name='high' pos='0.05 0 0.33'>" JOINTS
             "<geom type='box' size='0.1 0.05 0.1' mass='1' friction='0.5'/></body>"
             "<body name='disc' pos='1 0 0.15'>" JOINTS
             "<geom type='cylinder' size='0.1 0.05' euler='90 0 0' mass='1'/></body>" TAIL,
        "sor", 1);
    tb_certificate c;
    TEST_OK(tb_step(p.stepper, p.state, 200, &c, &error), &error);
    ck_assert_int_eq(c.status, TB_OK);
    TEST_NEAR(motion_of(&p, "low").position[2], 0.1, 1e-6);
    TEST_NEAR(motion_of(&p, "high").position[2], 0.3, 1e-6);
    TEST_NEAR(motion_of(&p, "disc").position[2], 0.1, 1e-6);
    TEST_NEAR(motion_of(&p, "low").linear_velocity[0], 0, 1e-6);
    ck_assert_int_eq(tb_state_number_of_contacts(p.state), 5);
    tb_contact_info contact;
    double weight = 0;
    for (int32_t i = 0; i < 5; i++) {
        ck_assert_int_eq(tb_state_contact(p.state, i, &contact), TB_OK);
        if (contact.shape_a == 0) weight += contact.impulse[0] / 0.01;
    }
    TEST_NEAR(weight, 4 * 9.81, 1e-3);
    close_planar(&p);
}
END_TEST

START_TEST(a_penetration_is_given_back_in_one_step)
{
    planar p =
        open_text(HEAD "<geom type='plane' size='5 5 1'/><body name='box' pos='0 0 0.08'>" JOINTS
                       "<geom type='box' size='0.1 0.05 0.1' mass='1'/></body>" TAIL,
                  "lemke", 1);
    tb_certificate c;
    TEST_OK(tb_step(p.stepper, p.state, 1, &c, &error), &error);
    TEST_NEAR(c.penetration, 0.02, 1e-12);
    TEST_NEAR(motion_of(&p, "box").position[2], 0.1, 1e-12);
    TEST_NEAR(motion_of(&p, "box").linear_velocity[2], 2, 1e-9);
    close_planar(&p);
}
END_TEST

START_TEST(what_is_no_planar_world_is_named)
{
    static const struct {
        const char *text, *words;
    } BAD[] = {
        {HEAD "<body name='loose' pos='0 0 1'><freejoint/><geom size='0.1'/></body>" TAIL,
         "body 'loose' can leave the plane"},
        {HEAD "<body name='good' pos='0 0 1'>" JOINTS "<geom size='0.1'/></body>"
              "<body name='askew' pos='0 0 2'><joint type='slide' axis='1 0 0'/>"
              "<joint type='slide' axis='0 1 0'/><joint type='hinge' axis='0 0 1'/>"
              "<geom size='0.1'/></body>" TAIL,
         "body 'askew' is out of the plane"},
        {HEAD "<body pos='0 0 1'>" JOINTS
              "<geom name='pin' type='cylinder' size='0.1 0.2'/></body>" TAIL,
         "shape 'pin' is a cylinder or capsule that lies across"},
        {HEAD "<geom name='floor' type='plane' size='5 5 1' euler='90 0 0'/>"
              "<body pos='0 0 1'>" JOINTS "<geom size='0.1'/></body>" TAIL,
         "shape 'floor' is a plane that cuts"},
        {HEAD
         "<body pos='0 0 1'><joint type='slide' axis='1 0 0'/><joint type='slide' axis='0 0 1'/>"
         "<joint name='wheel' type='hinge' axis='0 1 0' damping='1'/>"
         "<geom size='0.1'/></body>" TAIL,
         "joint 'wheel' has a spring, a damper"},
        {"<mujoco><option timestep='0.01' gravity='0 0 -9.81'/><asset><mesh name='dart' vertex='"
         "0.1 -0.02 0  -0.1 -0.02 0.1  -0.03 -0.02 0  -0.1 -0.02 -0.1 "
         "0.1 0.02 0  -0.1 0.02 0.1  -0.03 0.02 0  -0.1 0.02 -0.1' face='0 1 2 0 2 3 4 6 5 4 7 6 "
         "1 0 4 1 4 5 2 1 5 2 5 6 3 2 6 3 6 7 0 3 7 0 7 4'/></asset><worldbody>"
         "<body pos='0 0 1'>" JOINTS "<inertial pos='0 0 0' mass='1' diaginertia='0.01 0.01 0.01'/>"
         "<geom name='arrow' type='sdf' mesh='dart'/></body>" TAIL,
         "shape 'arrow' is a mesh of triangles, whose outline need not be convex"},
        {HEAD "<geom type='plane' size='1 1 1'/>" TAIL, "no body of the model moves in a plane"}};
    for (size_t i = 0; i < sizeof BAD / sizeof BAD[0]; i++) {
        planar p = open_text(BAD[i].text, "sor", 1);
        const uint64_t before = tb_state_hash(p.state);
        TEST_STATUS(tb_step(p.stepper, p.state, 1, NULL, &error), TB_UNSUPPORTED, &error);
        ck_assert_msg(strstr(error.message, BAD[i].words) != NULL, "'%s' lacks '%s'", error.message,
                      BAD[i].words);
        ck_assert(tb_state_hash(p.state) == before);
        close_planar(&p);
    }
}
END_TEST

START_TEST(what_a_planar_stepper_cannot_do_is_refused)
{
    tb_stepper *stepper = NULL;
    tb_step_options options = tb_step_defaults();
    (void)find_card();
    options.scheme = TB_SCHEME_PLANAR;
    options.precision = TB_FLOAT;
    TEST_STATUS(tb_stepper_create(&options, &stepper, &error), TB_UNSUPPORTED, &error);
    ck_assert_str_eq(error.field, "precision");
    options.precision = TB_DOUBLE;
    options.backend = TB_BACKEND_GPU;
    TEST_STATUS(tb_stepper_create(&options, &stepper, &error), TB_UNSUPPORTED, &error);
    ck_assert_str_eq(error.field, "solve.solver");
    options.solve.solver = "prox_cuda";
    options.solve.r_strategy = TB_R_GAUSS_SEIDEL;
    TEST_STATUS(tb_stepper_create(&options, &stepper, &error), TB_UNSUPPORTED, &error);
    ck_assert_str_eq(error.field, "solve.r_strategy");
    options.solve.r_strategy = TB_R_DIAGONAL;
    options.device = 9;
    TEST_STATUS(tb_stepper_create(&options, &stepper, &error), TB_NOT_FOUND, &error);
    ck_assert_str_eq(error.field, "device");
    ck_assert_ptr_null(stepper);
}
END_TEST

static planar open_named(const char *name, const char *solver, int32_t threads)
{
    unsigned char *text = NULL;
    size_t size = 0;
    TEST_OK(tb_named_scene_mjcf(name, &text, &size, &error), &error);
    planar p = open_text((const char *)text, solver, threads);
    tb_bytes_destroy(text);
    return p;
}

START_TEST(threads_do_not_change_a_byte)
{
    static const char *const SOLVERS[] = {"newton", "prox_cuda", "sor", "mprgp"};
    for (int i = 0; i < 4; i++) {
        static const int32_t THREADS[] = {1, 7, 2};
        uint64_t hashes[THREAD_COUNTS];
        for (int k = 0; k < THREAD_COUNTS; k++) {
            planar p = open_named("betz_angle_hexagon_10_mu0.2", SOLVERS[i], THREADS[k]);
            TEST_OK(tb_step(p.stepper, p.state, THREADED_STEPS, NULL, &error), &error);
            ck_assert_int_gt(tb_state_number_of_contacts(p.state), 25); /* hexagons have met */
            hashes[k] = tb_state_hash(p.state);
            ck_assert(hashes[k] == hashes[0]);
            close_planar(&p);
        }
    }
}
END_TEST

START_TEST(a_snapshot_goes_on_byte_for_byte)
{
    planar p = open_named("betz_angle_octagon_5_mu0.5", "newton", 1);
    unsigned char *bytes = NULL;
    size_t size = 0;
    TEST_OK(tb_step(p.stepper, p.state, 30, NULL, &error), &error);
    TEST_OK(tb_state_snapshot(p.state, &bytes, &size, &error), &error);
    TEST_OK(tb_step(p.stepper, p.state, 20, NULL, &error), &error);
    const uint64_t straight = tb_state_hash(p.state);
    TEST_OK(tb_state_restore(p.state, bytes, size, &error), &error);
    TEST_OK(tb_step(p.stepper, p.state, 20, NULL, &error), &error);
    ck_assert(tb_state_hash(p.state) == straight);
    tb_bytes_destroy(bytes);
    close_planar(&p);
}
END_TEST

/* A stepper keeps the world that it read: another model beside it, or one that is gone, changes no
 * byte. Worlds of a batch trade places, so that the one a place or a thread keeps is the other's. */
static void step_models_by_turns(tb_backend_choice backend, const char *solver, int32_t most,
                                 int rounds)
{
    static const char *const SCENES[] = {"betz_angle_hexagon_5_mu0.1", "betz_angle_octagon_5_mu0"};
    enum { MODELS = 2, FALL = 70 };
    planar alone[MODELS], turn[MODELS];
    tb_stepper *shared = NULL;
    for (int i = 0; i < MODELS; i++) {
        planar *both[] = {&alone[i], &turn[i]};
        for (int k = 0; k < 2; k++) {
            *both[k] = open_named(SCENES[i], solver, 1);
            TEST_OK(tb_step(both[k]->stepper, both[k]->state, FALL, NULL, &error), &error);
        }
    }
    tb_step_options options = tb_stepper_options(alone[0].stepper);
    options.solve.maximum_iterations = most;
    for (int i = 0; i < MODELS; i++)
        TEST_OK(tb_stepper_set_options(alone[i].stepper, &options, &error), &error);
    options.backend = backend;
    TEST_OK(tb_stepper_create(&options, &shared, &error), &error);
    for (int round = 0; round < rounds; round++) {
        tb_state *worlds[] = {turn[round % MODELS].state, turn[(round + 1) % MODELS].state};
        TEST_OK(tb_step_batch(shared, worlds, MODELS, 1, NULL, &error), &error);
        for (int i = 0; i < MODELS; i++) {
            TEST_OK(tb_step(alone[i].stepper, alone[i].state, 1, NULL, &error), &error);
            ck_assert_int_gt(tb_state_number_of_contacts(turn[i].state), 4);
            ck_assert(tb_state_hash(turn[i].state) == tb_state_hash(alone[i].state));
        }
    }
    for (int i = 0; i < MODELS; i++) { /* the same model, read once more */
        unsigned char *bytes = NULL;
        size_t size = 0;
        TEST_OK(tb_step(shared, turn[i].state, 1, NULL, &error), &error);
        TEST_OK(tb_step(alone[i].stepper, alone[i].state, 1, NULL, &error), &error);
        TEST_OK(tb_state_snapshot(turn[i].state, &bytes, &size, &error), &error);
        close_planar(&turn[i]);
        turn[i] = open_named(SCENES[i], solver, 1);
        TEST_OK(tb_state_restore(turn[i].state, bytes, size, &error), &error);
        tb_bytes_destroy(bytes);
        TEST_OK(tb_step(shared, turn[i].state, 1, NULL, &error), &error);
        TEST_OK(tb_step(alone[i].stepper, alone[i].state, 1, NULL, &error), &error);
        ck_assert(tb_state_hash(turn[i].state) == tb_state_hash(alone[i].state));
    }
    tb_stepper_destroy(shared);
    for (int i = 0; i < MODELS; i++) {
        close_planar(&alone[i]);
        close_planar(&turn[i]);
    }
}

START_TEST(one_stepper_steps_two_models_by_turns)
{
    step_models_by_turns(TB_BACKEND_CPU, "newton", 1000, 6);
    (void)find_card();
    step_models_by_turns(TB_BACKEND_GPU, "prox_cuda", 2, 2);
}
END_TEST

/* Largest difference of a velocity after a step by `solver` from newton's states, in steps that both
 * solve to the tolerance; *steps: how many those are. */
static double difference_to_newton(const char *scene, const char *solver, int32_t from, int32_t to,
                                   int32_t *steps)
{
    planar p = open_named(scene, "newton", 1);
    tb_step_options options = tb_stepper_options(p.stepper);
    tb_stepper *other = NULL;
    double worst = 0;
    options.solve.tolerance = 1e-12;
    options.solve.maximum_iterations = 20000;
    TEST_OK(tb_stepper_set_options(p.stepper, &options, &error), &error);
    options.solve.solver = solver;
    TEST_OK(tb_stepper_create(&options, &other, &error), &error);
    TEST_OK(tb_step(p.stepper, p.state, from, NULL, &error), &error);
    *steps = 0;
    for (int32_t i = from; i < to; i++) {
        tb_state *fork = NULL;
        tb_certificate a, b;
        TEST_OK(tb_state_fork(p.state, &fork, &error), &error);
        TEST_OK(tb_step(other, fork, 1, &b, &error), &error);
        TEST_OK(tb_step(p.stepper, p.state, 1, &a, &error), &error);
        ck_assert_str_eq(b.solver, solver);
        for (int32_t k = 0;
             a.status == TB_OK && b.status == TB_OK && k < tb_model_count(p.model).dofs; k++)
            worst = fmax(worst, fabs(tb_state_u(p.state)[k] - tb_state_u(fork)[k]));
        *steps += a.status == TB_OK && b.status == TB_OK;
        tb_state_destroy(fork);
    }
    tb_stepper_destroy(other);
    close_planar(&p);
    return worst;
}

/* Without friction velocities are unique; with friction they are where hexagons slide down. */
START_TEST(mprgp_and_newton_find_the_same_velocities)
{
    static const char *const SCENES[] = {"betz_angle_hexagon_5_mu0", "betz_angle_octagon_10_mu0",
                                         "betz_slide_10_mu0.1"};
    for (int i = 0; i < 3; i++) {
        int32_t steps = 0;
        const double worst = difference_to_newton(SCENES[i], "mprgp", 20, 60, &steps);
        ck_assert_msg(worst <= 1e-8, "%s: %g", SCENES[i], worst);
        ck_assert_int_ge(steps, 36);
    }
}
END_TEST

/* Friction's rounds end at the residual of Coulomb's law, here of 25 hexagons that stick and slip. */
START_TEST(mprgp_solves_friction)
{
    planar p = open_named("betz_angle_hexagon_10_mu0.2", "mprgp", 1);
    tb_step_options options = tb_stepper_options(p.stepper);
    options.solve.maximum_iterations = 20000;
    options.solve.tolerance = 1e-8;
    TEST_OK(tb_stepper_set_options(p.stepper, &options, &error), &error);
    tb_certificate c;
    TEST_OK(tb_step(p.stepper, p.state, 60, &c, &error), &error);
    ck_assert_int_eq(c.status, TB_OK);
    ck_assert(c.residual <= 1e-8);
    ck_assert_str_eq(c.solver, "mprgp");

    /* other stop tests are not its own */
    options.solve.stop = TB_STOP_ONE_SIDED;
    TEST_OK(tb_stepper_set_options(p.stepper, &options, &error), &error);
    TEST_STATUS(tb_step(p.stepper, p.state, 1, &c, &error), TB_UNSUPPORTED, &error);
    close_planar(&p);
}
END_TEST

/* Betz's one-sided test and freeze end sooner and worse than the residual does. */
START_TEST(the_thesis_stops_by_its_own_test)
{
    double residuals[2];
    for (int k = 0; k < 2; k++) {
        planar p = open_named("betz_angle_hexagon_10_mu0.1", "prox_serial", 1);
        tb_step_options options = tb_stepper_options(p.stepper);
        options.solve.stop = k == 0 ? TB_STOP_ONE_SIDED : TB_STOP_RESIDUAL;
        options.solve.tolerance = k == 0 ? 1e-8 : 1e-6;
        options.solve.maximum_iterations = k == 0 ? 500 : 100000;
        options.solve.r_strategy = k == 0 ? TB_R_DIAGONAL : TB_R_GAUSS_SEIDEL;
        options.solve.warm_start = false;
        TEST_OK(tb_stepper_set_options(p.stepper, &options, &error), &error);
        tb_certificate c;
        TEST_OK(tb_step(p.stepper, p.state, 20, &c, &error), &error);
        ck_assert_str_eq(c.solver, "prox_serial");
        residuals[k] = c.residual;
        close_planar(&p);
    }
    ck_assert(residuals[1] <= 1e-6);
    ck_assert(residuals[0] > residuals[1]);
}
END_TEST

START_TEST(an_impulse_limit_restarts_with_half_the_omega)
{
    planar p =
        open_text(HEAD "<geom type='plane' size='5 5 1'/><body name='box' pos='0 0 0.1'>" JOINTS
                       "<geom type='box' size='0.1 0.05 0.1' mass='1'/></body>" TAIL,
                  "prox_serial", 1);
    tb_step_options options = tb_stepper_options(p.stepper);
    options.solve.maximum_iterations = 50;
    options.solve.impulse_limit = 0.02; /* N s; half the weight over a step is 0.049 */
    TEST_OK(tb_stepper_set_options(p.stepper, &options, &error), &error);
    tb_certificate c;
    TEST_OK(tb_step(p.stepper, p.state, 1, &c, &error), &error);
    ck_assert_int_ne(c.flags & TB_CERTIFICATE_HALVED, 0);
    close_planar(&p);
}
END_TEST

/* Jacobi's r with omega 1 diverges in a stack with friction: omega is halved, and impulses stay small. */
START_TEST(divergence_halves_omega)
{
    for (int k = 0; k < 2; k++) {
        planar p =
            open_named("betz_angle_hexagon_10_mu0.5", k == 0 ? "prox_cuda" : "prox_serial", 1);
        tb_step_options options = tb_stepper_options(p.stepper);
        options.solve.stop = TB_STOP_ONE_SIDED;
        options.solve.tolerance = 1e-8;
        options.solve.maximum_iterations = 500;
        options.solve.omega = 1;
        options.solve.warm_start = false;
        TEST_OK(tb_stepper_set_options(p.stepper, &options, &error), &error);
        tb_certificate c;
        TEST_OK(tb_step(p.stepper, p.state, 60, &c, &error), &error);
        ck_assert_int_ne(c.flags & TB_CERTIFICATE_HALVED, 0);
        const double *u = tb_state_u(p.state);
        for (int32_t i = 0; i < tb_model_count(p.model).dofs; i++) ck_assert(fabs(u[i]) < 100);
        close_planar(&p);
    }
}
END_TEST

/* Every kernel of the sweeps adds in the order of the processor: worlds end with the same bytes, alone and
 * beside others, with the thesis's stop test and with the residual's, where an impulse limit restarts
 * solves too. */
START_TEST(card_and_processor_step_planar_worlds_to_the_same_bytes)
{
    static const struct {
        const char *scene, *solver;
        tb_stop_test stop;
        double limit;
    } RUNS[] = {{"betz_angle_hexagon_5_mu0.1", "prox_cuda", TB_STOP_ONE_SIDED, 0},
                {PLAYED_OCTAGONS, "prox_serial", TB_STOP_ONE_SIDED, 0.02},
                {"betz_slide_10_mu0.1", "prox_cuda", TB_STOP_RESIDUAL, 0},
                {"betz_angle_hexagon_5_mu0", "mprgp", TB_STOP_RESIDUAL, 0},
                {"betz_angle_hexagon_5_mu0.5", "mprgp", TB_STOP_RESIDUAL, 0}};
    enum { WORLDS = 2, STEPS = 1, FALL = 70 };
    (void)find_card();
    for (size_t r = 0; r < sizeof RUNS / sizeof RUNS[0]; r++) {
        uint64_t hash[2][WORLDS];
        for (int side = 0; side < 2; side++) {
            unsigned char *text = NULL;
            size_t size = 0;
            tb_scene *scene = NULL;
            tb_model *model = NULL;
            tb_stepper *stepper = NULL, *fall = NULL;
            tb_state *worlds[WORLDS];
            tb_certificate certificates[WORLDS];
            tb_step_options options = tb_step_defaults();
            options.scheme = TB_SCHEME_PLANAR;
            options.solve.solver = RUNS[r].solver;
            options.solve.stop = RUNS[r].stop;
            options.solve.impulse_limit = RUNS[r].limit;
            options.solve.tolerance = 1e-8;
            options.solve.maximum_iterations =
                strcmp(RUNS[r].solver, "mprgp") == 0 ? PLAYED_PRODUCTS : PLAYED_SWEEPS;
            TEST_OK(tb_named_scene_mjcf(RUNS[r].scene, &text, &size, &error), &error);
            TEST_OK(tb_scene_load_mjcf((const char *)text, size, "scene", NULL, &scene, &error),
                    &error);
            TEST_OK(tb_scene_compile(scene, &model, &error), &error);
            TEST_OK(tb_stepper_create(&options, &fall, &error), &error);
            for (int w = 0; w < WORLDS; w++) {
                TEST_OK(tb_state_create(model, &worlds[w], &error), &error);
                TEST_OK(tb_step(fall, worlds[w], FALL + w, NULL, &error), &error);
            }
            tb_stepper_destroy(fall);
            options.backend = side == 0 ? TB_BACKEND_CPU : TB_BACKEND_GPU;
            TEST_OK(tb_stepper_create(&options, &stepper, &error), &error);
            TEST_OK(tb_step_batch(stepper, worlds, WORLDS, STEPS, certificates, &error), &error);
            for (int w = 0; w < WORLDS; w++) {
                hash[side][w] = tb_state_hash(worlds[w]);
                ck_assert_str_eq(certificates[w].solver, RUNS[r].solver);
                tb_state_destroy(worlds[w]);
            }
            tb_stepper_destroy(stepper);
            tb_model_destroy(model);
            tb_scene_destroy(scene);
            tb_bytes_destroy(text);
        }
        for (int w = 0; w < WORLDS; w++) ck_assert(hash[0][w] == hash[1][w]);
        ck_assert(hash[0][0] != hash[0][1]);
    }
}
END_TEST

/* As listed the blocks of threads do not wait for each other, so nothing is promised but an end. */
START_TEST(a_card_runs_the_listing_as_it_stands)
{
    (void)find_card();
    planar p = open_named("betz_angle_hexagon_5_mu0.1", "prox_cuda", 1);
    tb_step_options options = tb_stepper_options(p.stepper);
    options.backend = TB_BACKEND_GPU;
    options.solve.as_listed = true;
    options.solve.stop = TB_STOP_ONE_SIDED;
    options.solve.maximum_iterations = 20;
    TEST_OK(tb_stepper_set_options(p.stepper, &options, &error), &error);
    const tb_status status = tb_step(p.stepper, p.state, 5, NULL, &error);
    ck_assert(status == TB_OK || status == TB_DIVERGED);
    close_planar(&p);
}
END_TEST

TEST_MAIN(boxes_and_discs_come_to_rest_where_they_touch, a_penetration_is_given_back_in_one_step,
          what_is_no_planar_world_is_named, what_a_planar_stepper_cannot_do_is_refused,
          threads_do_not_change_a_byte, a_snapshot_goes_on_byte_for_byte,
          one_stepper_steps_two_models_by_turns, mprgp_and_newton_find_the_same_velocities,
          mprgp_solves_friction, the_thesis_stops_by_its_own_test, divergence_halves_omega,
          an_impulse_limit_restarts_with_half_the_omega,
          card_and_processor_step_planar_worlds_to_the_same_bytes,
          a_card_runs_the_listing_as_it_stands)
