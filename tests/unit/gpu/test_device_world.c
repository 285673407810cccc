/* The step of a card equals the step of the library: compiled as C++ from the same sources and run
 * on this machine, it leaves the same bytes; and where memory is short the step names the bytes it
 * needs and leaves the world as it was. */
#include "device_world_util.h"
#include "search_scenes.h"

tb_status device_world_step_f32(device_job *job, tb_certificate *certificate);
tb_status team_world_step_f32(device_job *job, int32_t lanes, tb_certificate *certificate);

/* Lanes that take a world together; 0: the step that knows of no team. */
static int32_t lanes;

/* Inputs and outputs of the world, and the next step of its course; NULL: none. */
static const tb_course *course;
static int32_t step_of_course;

/* ---- scenes ---- */

/* A model with every kind of row: chains with springs, limits and dry friction, loops, tendons,
 * servos, a kinematic body, every shape. */
static const char EVERYTHING[] =
    "<mujoco><option timestep=\"0.004\"/><compiler angle=\"radian\"/><worldbody>\n"
    "<body name=\"told\" mocap=\"true\" pos=\"0 0.6 0.2\"><geom type=\"box\" size=\".1 .1 .1\"/>"
    "<body pos=\"0.2 0 0\"><joint name=\"f\" type=\"hinge\" axis=\"0 1 0\"/>"
    "<geom type=\"capsule\" fromto=\"0 0 0 0.1 0 0.1\" size=\"0.02\"/></body></body>\n"
    "<body pos=\"0 0 1\"><joint name=\"a\" type=\"hinge\" axis=\"0 1 0\" damping=\"0.1\""
    " frictionloss=\"0.02\" limited=\"true\" range=\"-1 1\"/>"
    "<geom type=\"capsule\" fromto=\"0 0 0 0.3 0 0\" size=\"0.03\"/>\n"
    " <body pos=\"0.3 0 0\"><joint name=\"b\" type=\"hinge\" axis=\"0 1 0\" stiffness=\"2\""
    " armature=\"0.01\"/><geom type=\"capsule\" fromto=\"0 0 0 0 0 -0.3\" size=\"0.03\"/>\n"
    "  <body name=\"end\" pos=\"0 0 -0.3\"><joint name=\"c\" type=\"ball\"/>"
    "<geom type=\"sphere\" size=\"0.05\"/></body></body></body>\n"
    "<body name=\"tied\" pos=\"0.3 0 0.6\"><freejoint/><geom type=\"box\" size=\".05 .04 .03\"/>"
    "</body>\n"
    "<body pos=\"-0.4 0 0.5\"><joint name=\"d\" type=\"slide\" axis=\"0 0 1\" limited=\"true\""
    " range=\"-0.2 0.3\"/><geom type=\"cylinder\" size=\"0.06 0.05\"/>\n"
    " <body pos=\"0 0 -0.15\"><joint name=\"e\" type=\"slide\" axis=\"0 0 1\"/>"
    "<geom type=\"ellipsoid\" size=\"0.06 0.05 0.04\"/></body></body>\n"
    "<body pos=\"0.1 0.6 0.4\"><freejoint/><geom type=\"box\" size=\".06 .05 .04\"/></body>\n"
    "<body pos=\"0.6 0 0.2\" euler=\"0.3 0.2 0\"><freejoint/><geom type=\"cylinder\""
    " size=\"0.05 0.08\"/></body>\n"
    "<body pos=\"-0.6 -0.3 0.15\" euler=\"0.3 0.2 0\"><freejoint/><geom type=\"capsule\""
    " size=\"0.04 0.08\" condim=\"6\" friction=\"0.7 0.005 0.001\"/></body>\n"
    "<body pos=\"-0.6 0.3 0.1\"><freejoint/><geom type=\"sphere\" size=\"0.06\" condim=\"4\""
    " friction=\"0.7 0.005 0.001\"/></body>\n"
    "</worldbody>\n"
    "<equality><connect body1=\"end\" body2=\"tied\" anchor=\"0 0 -0.1\"/>"
    "<joint joint1=\"e\" joint2=\"d\" polycoef=\"0 0.5 0 0 0\"/></equality>\n"
    "<tendon><fixed name=\"t\" stiffness=\"3\" damping=\"0.2\" limited=\"true\" range=\"-1 0.4\">"
    "<joint joint=\"a\" coef=\"1\"/><joint joint=\"b\" coef=\"-0.5\"/></fixed></tendon>\n"
    "<actuator><position joint=\"a\" kp=\"4\" kv=\"0.5\" forcelimited=\"true\""
    " forcerange=\"-2 2\"/><motor joint=\"d\" ctrllimited=\"true\" ctrlrange=\"-5 5\"/>"
    "<position tendon=\"t\" kp=\"1\"/></actuator></mujoco>\n";

/* A ground of triangles and, beside it, one of heights. */
static void add_grounds(tb_scene *scene)
{
    enum { SIDE = 6 };
    double vertices[3 * SIDE * SIDE], heights[SIDE * SIDE];
    int32_t triangles[6 * (SIDE - 1) * (SIDE - 1)], n = 0;
    for (int r = 0; r < SIDE; r++)
        for (int c = 0; c < SIDE; c++) {
            double *v = &vertices[3 * (r * SIDE + c)];
            v[0] = 0.4 * c - 1;
            v[1] = 0.4 * r - 1;
            v[2] = 0.03 * ((r * 7 + c * 3) % 4);
            heights[r * SIDE + c] = 0.02 * ((r * 5 + c * 3) % 5);
        }
    for (int r = 0; r + 1 < SIDE; r++)
        for (int c = 0; c + 1 < SIDE; c++) {
            const int32_t k = r * SIDE + c;
            const int32_t both[6] = {k, k + 1, k + SIDE + 1, k, k + SIDE + 1, k + SIDE};
            for (int i = 0; i < 6; i++) triangles[n++] = both[i];
        }

    tb_error error;
    tb_handle asset;
    tb_mesh_def mesh = {.name = "ground", .vertices = vertices, .triangles = triangles};
    mesh.number_of_vertices = SIDE * SIDE;
    mesh.number_of_triangles = n / 3;
    mesh.inertia = TB_MESH_INERTIA_SHELL;
    TEST_OK(tb_scene_add_mesh(scene, &mesh, &asset, &error), &error);
    tb_shape_def shape = tb_shape_defaults();
    shape.type = TB_SHAPE_MESH;
    shape.asset = asset;
    TEST_OK(tb_scene_add_shape(scene, &shape, NULL, &error), &error);

    const tb_height_field_def field = {.name = "field",
                                       .heights = heights,
                                       .rows = SIDE,
                                       .columns = SIDE,
                                       .half_x = 0.4,
                                       .half_y = 0.4,
                                       .base = 0.1};
    TEST_OK(tb_scene_add_height_field(scene, &field, &asset, &error), &error);
    shape.type = TB_SHAPE_HEIGHT_FIELD;
    shape.asset = asset;
    shape.position[0] = 0.6;
    TEST_OK(tb_scene_add_shape(scene, &shape, NULL, &error), &error);
}

static tb_model *everything(void)
{
    tb_error error;
    tb_scene *scene = NULL;
    tb_model *model = NULL;
    TEST_OK(
        tb_scene_load_mjcf(EVERYTHING, strlen(EVERYTHING), "everything.xml", NULL, &scene, &error),
        &error);
    add_grounds(scene);
    TEST_OK(tb_scene_compile(scene, &model, &error), &error);
    tb_scene_destroy(scene);
    return model;
}

/* ---- the same world twice ---- */

enum { ENOUGH_TO_SEARCH = 1 << 20 };

static tb_status step_device_world(device_world *w, const tb_step_options *options, size_t *wanted,
                                   tb_certificate *certificate)
{
    device_job job = {.state = &w->state,
                      .options = options,
                      .course = course,
                      .step = step_of_course,
                      .solver = tb_solver_number(options->solve.solver),
                      .memory = w->memory,
                      .bytes = w->bytes,
                      .search = w->state.steps % 3 > 0 ? w->search : NULL,
                      .late = w->state.steps % 3 > 1};
    tb_status status;
    if (options->precision == TB_FLOAT)
        status = lanes > 0 ? team_world_step_f32(&job, lanes, certificate)
                           : device_world_step_f32(&job, certificate);
    else
        status = lanes > 0 ? team_world_step(&job, lanes, certificate)
                           : device_world_step(&job, certificate);
    *wanted = job.wanted;
    ck_assert(job.found == (job.search != NULL) || w->bytes < ENOUGH_TO_SEARCH);
    return status;
}

static size_t state_bytes(const tb_state *state, unsigned char **bytes)
{
    size_t size = 0;
    tb_error error;
    TEST_OK(tb_state_snapshot(state, bytes, &size, &error), &error);
    return size;
}

static bool same_state(const tb_state *a, const tb_state *b)
{
    unsigned char *p = NULL, *q = NULL;
    const size_t m = state_bytes(a, &p), n = state_bytes(b, &q);
    const bool same = m == n && memcmp(p, q, m) == 0;
    tb_bytes_destroy(p);
    tb_bytes_destroy(q);
    return same;
}

/* Gives the contacts of a state other features, as if those that touched were gone. */
static bool renames;
static void rename_contacts(tb_state *state)
{
    for (int32_t i = 0; i < state->number_of_contacts; i++)
        state->contacts[i].feature ^= 0x15555555ull << 32;
}

/* From the state that the library is in after `before` steps. */
static void compare(const tb_model *model, const tb_step_options *options, int before, int steps)
{
    tb_error error;
    tb_state *state = NULL, *other = NULL;
    tb_stepper *stepper = NULL;
    TEST_OK(tb_state_create(model, &state, &error), &error);
    push(state, options->precision == TB_DOUBLE);
    TEST_OK(tb_stepper_create(options, &stepper, &error), &error);
    if (before > 0) TEST_OK(tb_step(stepper, state, before, NULL, &error), &error);
    if (renames) rename_contacts(state);
    TEST_OK(tb_state_fork(state, &other, &error), &error);
    device_world w = make_device_world(other, 1024, 64 << 20);
    int32_t most = 0;
    for (int i = 0; i < steps; i++) {
        tb_certificate expected, certificate;
        size_t wanted = 0;
        TEST_OK(tb_step(stepper, state, 1, &expected, &error), &error);
        TEST_OK(step_device_world(&w, options, &wanted, &certificate), NULL);
        ck_assert_msg(same_state(state, &w.state), "the states differ after step %d", i + 1);
        ck_assert_int_eq(certificate.iterations, expected.iterations);
        ck_assert_int_eq(certificate.rows, expected.rows);
        ck_assert_str_eq(certificate.solver, expected.solver);
        ck_assert(memcmp(&certificate.residual, &expected.residual, sizeof(double)) == 0);
        ck_assert(memcmp(&certificate.closure_error, &expected.closure_error, sizeof(double)) == 0);
        if (options->precision == TB_DOUBLE)
            ck_assert(memcmp(&certificate.energy, &expected.energy, sizeof(double)) == 0);
        if (certificate.contacts > most) most = certificate.contacts;
    }
    ck_assert_int_gt(most, 3); /* or nothing was shown */
    free_device_world(&w);
    tb_stepper_destroy(stepper);
    tb_state_destroy(other);
    tb_state_destroy(state);
}

/* With every solver, scheme and precision. */
static void compare_all(tb_model *model, int steps)
{
    static const char *const SOLVERS[] = {"sor", "jor", "newton", "auto"};
    for (int k = 0; k < 16; k++) {
        tb_step_options options = tb_step_defaults();
        options.solve.solver = SOLVERS[k >> 2];
        options.scheme = k & 1 ? TB_SCHEME_MOREAU : TB_SCHEME_STEWART_TRINKLE;
        options.precision = k & 2 ? TB_FLOAT : TB_DOUBLE;
        options.report_energy = true;
        options.solve.local_solve = k % 5 == 0;
        compare(model, &options, 0, steps);
    }
    tb_model_destroy(model);
}

START_TEST(jaw_and_mug_have_the_bytes_of_the_library)
{
    compare_all(jaw_and_mug(), 200);
}
END_TEST

START_TEST(joints_loops_tendons_and_meshes_have_the_bytes_of_the_library)
{
    compare_all(everything(), 120);
}
END_TEST

/* With a kernel of its own on a card; here it is in one unit with all. */
static void compare_staggered(const tb_model *model, int before, int steps)
{
    for (int k = 0; k < 4; k++) {
        tb_step_options options = tb_step_defaults();
        options.solve.solver = "staggered";
        options.scheme = k & 1 ? TB_SCHEME_MOREAU : TB_SCHEME_STEWART_TRINKLE;
        options.precision = k & 2 ? TB_FLOAT : TB_DOUBLE;
        options.report_energy = true;
        compare(model, &options, before, steps);
    }
}

START_TEST(staggered_projections_have_the_bytes_of_the_library_whatever_the_team)
{
    tb_model *jaw = jaw_and_mug();
    compare_staggered(jaw, 0, 200);
    lanes = 4;
    compare_staggered(jaw, 120, 2);
    lanes = 32;
    compare_staggered(jaw, 120, 1);
    lanes = 0;
    tb_model_destroy(jaw);
}
END_TEST

/* With some of all combinations, for lanes that are played are slow. */
static void compare_teams(tb_model *model, int steps, int first)
{
    static const int32_t LANES[] = {1, 2, 8, 32};
    for (int k = 0; k < 4; k++) {
        tb_step_options options = tb_step_defaults();
        lanes = LANES[(k + first) % 4];
        static const char *const SOLVERS[] = {"sor", "jor", "newton", "auto"};
        options.solve.solver = SOLVERS[first];
        if (first < 2) options.solve.maximum_iterations = 10;
        options.scheme = k & 1 ? TB_SCHEME_MOREAU : TB_SCHEME_STEWART_TRINKLE;
        options.precision = k & 2 ? TB_FLOAT : TB_DOUBLE;
        options.report_energy = true;
        compare(model, &options, 100, lanes == 32 ? 1 : steps);
    }
    lanes = 0;
}

/* Of the mug's radius of gyration: 1e-4 m. */
static const double MERGE = 3e-3;

START_TEST(merged_points_have_the_bytes_of_the_library_whatever_the_team)
{
    static const int32_t LANES[] = {0, 1, 8, 32};
    tb_model *jaw = jaw_and_mug(), *all = everything();
    for (int k = 0; k < 4; k++) {
        tb_step_options options = tb_step_defaults();
        options.contact_merge = MERGE;
        options.precision = k & 1 ? TB_FLOAT : TB_DOUBLE;
        lanes = LANES[k];
        compare(jaw, &options, 100, lanes == 32 ? 1 : 6);
        compare(all, &options, 100, lanes == 32 ? 1 : 6);
    }
    lanes = 0;
    tb_model_destroy(all);
    tb_model_destroy(jaw);
}
END_TEST

START_TEST(teams_of_any_size_have_the_bytes_of_the_library)
{
    tb_model *jaw = jaw_and_mug(), *all = everything();
    for (int first = 0; first < 4; first++) {
        compare_teams(jaw, 6, first);
        compare_teams(all, 4, first);
    }
    tb_model_destroy(all);
    tb_model_destroy(jaw);
}
END_TEST

/* Contacts with new features look for the nearest records of the last step. */
START_TEST(new_features_have_the_bytes_of_the_library_whatever_the_team)
{
    static const int32_t LANES[] = {0, 1, 8, 32};
    tb_model *jaw = jaw_and_mug(), *all = everything();
    renames = true;
    for (int k = 0; k < 8; k++) {
        tb_step_options options = tb_step_defaults();
        options.precision = k & 1 ? TB_FLOAT : TB_DOUBLE;
        lanes = LANES[k / 2];
        compare(jaw, &options, 100, lanes == 32 ? 1 : 3);
        compare(all, &options, 100, lanes == 32 ? 1 : 3);
    }
    renames = false;
    lanes = 0;
    tb_model_destroy(all);
    tb_model_destroy(jaw);
}
END_TEST

/* All stages of a search for points of a hull, or of boxes that go to the general method: those of shapes
 * that overlap come last. */
START_TEST(searches_by_stages_have_the_bytes_of_the_library_whatever_the_team)
{
    static const int32_t LANES[] = {0, 1, 8, 32};
    tb_model *stone = pressed_stone(), *edges = edges_side_by_side();
    for (int k = 0; k < 8; k++) {
        tb_step_options options = tb_step_defaults();
        options.precision = k & 1 ? TB_FLOAT : TB_DOUBLE;
        lanes = LANES[k / 2];
        compare(stone, &options, 0, lanes == 32 ? 2 : 6);
        options.contact_margin = 0.02;
        compare(edges, &options, 0, 2);
    }
    lanes = 0;
    tb_model_destroy(stone);
    tb_model_destroy(edges);
}
END_TEST

/* Four stacks of three boxes: 72 dofs in four islands. */
static tb_model *stacks(void)
{
    char text[4096];
    size_t n =
        (size_t)snprintf(text, sizeof text, "<mujoco><worldbody><geom type='plane' size='0 0 1'/>");
    for (int i = 0; i < 12; i++)
        n += (size_t)snprintf(text + n, sizeof text - n,
                              "<body pos='%g %g %g' euler='0 0 %d'><freejoint/>"
                              "<geom type='box' size='.1 .08 .05'/></body>",
                              i % 4 * 0.5 + 0.03 * (i / 4), 0.02 * i, 0.0502 + 0.101 * (i / 4),
                              7 * i);
    snprintf(text + n, sizeof text - n, "</worldbody></mujoco>");
    tb_error error;
    tb_scene *scene = NULL;
    tb_model *model = NULL;
    TEST_OK(tb_scene_load_mjcf(text, strlen(text), "stacks.xml", NULL, &scene, &error), &error);
    TEST_OK(tb_scene_compile(scene, &model, &error), &error);
    tb_scene_destroy(scene);
    return model;
}

START_TEST(islands_have_the_bytes_of_the_library_whatever_the_team)
{
    static const int32_t LANES[] = {0, 1, 8, 32};
    tb_model *model = stacks();
    for (int k = 0; k < 8; k++) {
        tb_step_options options = tb_step_defaults();
        options.precision = k & 1 ? TB_FLOAT : TB_DOUBLE;
        options.scheme = k < 4 ? TB_SCHEME_STEWART_TRINKLE : TB_SCHEME_MOREAU;
        options.report_energy = true;
        lanes = LANES[k % 4];
        compare(model, &options, k < 4 ? 3 : 40, lanes == 0 ? 60 : lanes == 32 ? 2 : 6);
    }
    lanes = 0;
    tb_model_destroy(model);
}
END_TEST

/* ---- courses ---- */

enum { COURSE_STEPS = 3, COURSE_Q = 64 };

typedef struct notes {
    double q[COURSE_STEPS * COURSE_Q], moved[COURSE_STEPS * 13];
    tb_touch touches[COURSE_STEPS * 2];
    tb_certificate certificates[COURSE_STEPS];
} notes;

static tb_course course_with(const tb_model *m, const double *kinematic,
                             const double *accelerations, const double *controls, notes *n)
{
    const int32_t bodies = tb_model_count(m).bodies;
    memset(n, 0, sizeof *n);
    ck_assert_int_le(tb_model_count(m).coordinates, COURSE_Q);
    return (tb_course){.steps = COURSE_STEPS,
                       .kinematic = kinematic,
                       .accelerations = accelerations,
                       .controls = controls,
                       .q = n->q,
                       .moved = n->moved,
                       .touches = n->touches,
                       .certificates = n->certificates,
                       .watches = {{0, 1, 1, bodies}, {1, 2, 2, bodies}},
                       .number_of_watches = 2};
}

/* The kinematic body accelerates, and bodies on it feel the acceleration. */
START_TEST(a_course_has_the_bytes_of_the_librarys_whatever_the_team)
{
    static notes here, there;
    static const int32_t LANES[] = {0, 2, 8, 32};
    double kinematic[COURSE_STEPS * 13] = {0}, accelerations[COURSE_STEPS * 6] = {0};
    double controls[COURSE_STEPS * 3];
    tb_model *model = everything();
    tb_step_options options = tb_step_defaults();
    tb_error error;
    tb_stepper *stepper = NULL;
    TEST_OK(tb_stepper_create(&options, &stepper, &error), &error);
    for (int i = 0; i < COURSE_STEPS; i++) {
        double *k = kinematic + 13 * i;
        k[1] = 0.6, k[2] = 0.2 + 0.001 * i, k[3] = 1, k[9] = 0.25, k[12] = 0.3;
        accelerations[6 * i + 2] = i == 1 ? 20 : 0;
        accelerations[6 * i + 4] = i == 1 ? 5 : 0;
        for (int a = 0; a < 3; a++) controls[3 * i + a] = 0.1 * (i + a);
    }
    for (int l = 0; l < 4; l++) {
        tb_state *state = NULL, *other = NULL;
        TEST_OK(tb_state_create(model, &state, &error), &error);
        TEST_OK(tb_step(stepper, state, 100, NULL, &error), &error);
        TEST_OK(tb_state_fork(state, &other, &error), &error);
        device_world w = make_device_world(other, 1024, 64 << 20);
        const tb_course plain = course_with(model, kinematic, accelerations, controls, &here);
        const tb_course played = course_with(model, kinematic, accelerations, controls, &there);
        TEST_OK(tb_step_courses(stepper, &state, &plain, 1, NULL, &error), &error);
        lanes = LANES[l];
        course = &played;
        for (step_of_course = 0; step_of_course < COURSE_STEPS; step_of_course++) {
            tb_certificate certificate;
            size_t wanted = 0;
            TEST_OK(step_device_world(&w, &options, &wanted, &certificate), NULL);
        }
        course = NULL;
        lanes = 0;
        ck_assert(same_state(state, &w.state));
        ck_assert_mem_eq(here.q, there.q, sizeof here.q);
        ck_assert_mem_eq(here.moved, there.moved, sizeof here.moved);
        ck_assert_mem_eq(here.touches, there.touches, sizeof here.touches);
        for (int i = 0; i < COURSE_STEPS; i++)
            ck_assert(here.certificates[i].residual == there.certificates[i].residual &&
                      here.certificates[i].contacts == there.certificates[i].contacts);
        ck_assert(here.touches[0].impulse > 0 && here.touches[0].gap < 1e-3);
        free_device_world(&w);
        tb_state_destroy(other);
        tb_state_destroy(state);
    }
    tb_stepper_destroy(stepper);
    tb_model_destroy(model);
}
END_TEST

/* ---- memory ---- */

START_TEST(too_little_memory_is_told_and_changes_nothing)
{
    tb_error error;
    tb_model *model = everything();
    tb_state *state = NULL, *other = NULL;
    tb_stepper *stepper = NULL;
    tb_step_options options = tb_step_defaults();
    options.solve.solver = "sor";
    TEST_OK(tb_state_create(model, &state, &error), &error);
    TEST_OK(tb_state_create(model, &other, &error), &error);
    TEST_OK(tb_stepper_create(&options, &stepper, &error), &error);
    device_world w = make_device_world(other, 1024, 256);
    tb_certificate certificate;
    size_t wanted = 0;
    int refusals = 0;
    for (int step = 0; step < 60; step++) {
        while (step_device_world(&w, &options, &wanted, &certificate) != TB_OK) {
            ck_assert_msg(same_state(state, &w.state), "refusal %d changed the state", refusals);
            ck_assert_uint_gt(wanted, w.bytes);
            ck_assert_int_lt(++refusals, 200);
            /* exactly the request: every next request is refused once too */
            w.bytes = wanted;
            free(w.memory);
            free(w.search);
            take_memory(&w);
        }
        TEST_OK(tb_step(stepper, state, 1, NULL, &error), &error);
        ck_assert_msg(same_state(state, &w.state), "the states differ after step %d", step + 1);
        ck_assert_uint_le(wanted, w.bytes);
    }
    ck_assert_int_gt(refusals, 5);
    free_device_world(&w);
    tb_stepper_destroy(stepper);
    tb_state_destroy(other);
    tb_state_destroy(state);
    tb_model_destroy(model);
}
END_TEST

START_TEST(too_little_room_for_contacts_is_told_and_changes_nothing)
{
    tb_error error;
    tb_model *model = everything();
    tb_state *state = NULL, *other = NULL;
    tb_stepper *stepper = NULL;
    tb_step_options options = tb_step_defaults();
    options.solve.solver = "sor";
    TEST_OK(tb_state_create(model, &state, &error), &error);
    TEST_OK(tb_state_fork(state, &other, &error), &error);
    TEST_OK(tb_stepper_create(&options, &stepper, &error), &error);
    device_world w = make_device_world(other, 3, 64 << 20);
    tb_certificate certificate;
    size_t wanted = 0;
    int steps = 0;
    while (step_device_world(&w, &options, &wanted, &certificate) == TB_OK) {
        TEST_OK(tb_step(stepper, state, 1, NULL, &error), &error);
        ck_assert_msg(same_state(state, &w.state), "the states differ after step %d", steps + 1);
        ck_assert_int_lt(++steps, 120);
    }
    TEST_STATUS(step_device_world(&w, &options, &wanted, &certificate), TB_RESOURCE_EXHAUSTED,
                NULL);
    ck_assert_int_gt(w.state.next_wanted, 3);
    ck_assert(same_state(state, &w.state));

    device_world roomy = make_device_world(&w.state, w.state.next_wanted, 64 << 20);
    TEST_OK(step_device_world(&roomy, &options, &wanted, &certificate), NULL);
    ck_assert_int_eq(roomy.state.next_wanted, 0);
    TEST_OK(tb_step(stepper, state, 1, NULL, &error), &error);
    ck_assert(same_state(state, &roomy.state));
    free_device_world(&roomy);
    free_device_world(&w);
    tb_stepper_destroy(stepper);
    tb_state_destroy(other);
    tb_state_destroy(state);
    tb_model_destroy(model);
}
END_TEST

START_TEST(a_solver_that_devices_do_not_have_is_refused)
{
    tb_error error;
    tb_model *model = everything();
    tb_state *state = NULL;
    TEST_OK(tb_state_create(model, &state, &error), &error);
    tb_step_options options = tb_step_defaults();
    options.solve.solver = "no such solver";
    ck_assert_int_eq(tb_solver_number(options.solve.solver), TB_SOLVER_NONE);
    ck_assert_int_eq(tb_solver_number(NULL), TB_SOLVER_NONE);
    ck_assert_int_eq(tb_solver_number("sor"), TB_SOLVER_NUMBER_sor);
    device_world w = make_device_world(state, 1024, 64 << 20);
    tb_certificate certificate;
    size_t wanted = 0;
    TEST_STATUS(step_device_world(&w, &options, &wanted, &certificate), TB_UNSUPPORTED, NULL);
    ck_assert(same_state(state, &w.state));
    free_device_world(&w);
    tb_state_destroy(state);
    tb_model_destroy(model);
}
END_TEST

TEST_MAIN(jaw_and_mug_have_the_bytes_of_the_library,
          joints_loops_tendons_and_meshes_have_the_bytes_of_the_library,
          staggered_projections_have_the_bytes_of_the_library_whatever_the_team,
          merged_points_have_the_bytes_of_the_library_whatever_the_team,
          teams_of_any_size_have_the_bytes_of_the_library,
          new_features_have_the_bytes_of_the_library_whatever_the_team,
          searches_by_stages_have_the_bytes_of_the_library_whatever_the_team,
          islands_have_the_bytes_of_the_library_whatever_the_team,
          a_course_has_the_bytes_of_the_librarys_whatever_the_team,
          too_little_memory_is_told_and_changes_nothing,
          too_little_room_for_contacts_is_told_and_changes_nothing,
          a_solver_that_devices_do_not_have_is_refused)
