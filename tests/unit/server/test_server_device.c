/* Which device `auto` gives to sessions and grasp jobs, on the card that is there or on one that
 * the processor plays. */
#include "gpu/card_util.h"
#include "grasp/grasp.h"
#include "handlers/grasp_request.h"
#include "schedule/pace.h"
#include "server/session_util.h"
#include "tribo_soft.h"

#include "tribo/v1/grasp.pb-c.h"
#include "tribo/v1/runs.pb-c.h"

enum { MANY = 16, ENOUGH = 8 };

/* A server that gives the card to sessions of ENOUGH worlds. */
static void start_with_card(test_server *t, tb_backend_choice backend)
{
    play_card(NULL, NULL, NULL);
    find_card();
    test_server_init(t, false);
    t->config.backend = backend;
    t->config.gpu_worlds = ENOUGH;
    t->config.gpu_bodies = 100;
    test_server_start(t);
}

/* ---- scenes ---- */

static const double CORNERS[] = {0, 0, 0, 0.1, 0, 0, 0, 0.1, 0, 0, 0, 0.1};
static const int32_t SIDES[] = {0, 2, 1, 0, 1, 3, 0, 3, 2, 1, 2, 3};

/* One free tetrahedron of this type; its shape collides or is only seen. */
static tb_scene *tetrahedron(tb_shape_type type, bool collides)
{
    tb_error error = {0};
    tb_scene *scene = NULL;
    tb_scene_def def = tb_scene_defaults();
    tb_mesh_def mesh = tb_mesh_defaults();
    tb_body_def body = tb_body_defaults();
    tb_joint_def joint = tb_joint_defaults();
    tb_shape_def shape = tb_shape_defaults();
    mesh.vertices = CORNERS, mesh.number_of_vertices = 4;
    mesh.triangles = SIDES, mesh.number_of_triangles = 4;
    joint.type = TB_JOINT_FREE;
    shape.type = type;
    if (!collides) shape.category = shape.mask = 0;
    TEST_OK(tb_scene_create(&def, &scene, &error), &error);
    TEST_OK(tb_scene_add_mesh(scene, &mesh, &shape.asset, &error), &error);
    TEST_OK(tb_scene_add_body(scene, &body, &joint.body, &error), &error);
    shape.body = joint.body;
    TEST_OK(tb_scene_add_joint(scene, &joint, NULL, &error), &error);
    TEST_OK(tb_scene_add_shape(scene, &shape, NULL, &error), &error);
    return scene;
}

/* The ground of a height field, and nothing on it. */
static tb_scene *field(void)
{
    static const double HEIGHTS[4] = {0};
    tb_error error = {0};
    tb_scene *scene = NULL;
    tb_scene_def def = tb_scene_defaults();
    tb_height_field_def ground = tb_height_field_defaults();
    tb_shape_def shape = tb_shape_defaults();
    ground.heights = HEIGHTS;
    ground.rows = ground.columns = 2;
    ground.half_x = ground.half_y = ground.base = 1;
    shape.type = TB_SHAPE_HEIGHT_FIELD;
    TEST_OK(tb_scene_create(&def, &scene, &error), &error);
    TEST_OK(tb_scene_add_height_field(scene, &ground, &shape.asset, &error), &error);
    TEST_OK(tb_scene_add_shape(scene, &shape, NULL, &error), &error);
    return scene;
}

static tb_model *model_of(tb_scene *scene, bool meshes)
{
    tb_error error = {0};
    tb_model *model = NULL;
    ck_assert(tb_scene_has_meshes(scene) == meshes);
    TEST_OK(tb_scene_compile(scene, &model, &error), &error);
    ck_assert(tb_model_has_meshes(model) == meshes);
    tb_scene_destroy(scene);
    return model;
}

START_TEST(only_shapes_that_collide_count_as_meshes)
{
    tb_error error = {0};
    tb_model_destroy(model_of(tetrahedron(TB_SHAPE_MESH, true), true));
    tb_model_destroy(model_of(tetrahedron(TB_SHAPE_CONVEX, true), false));
    tb_model_destroy(model_of(tetrahedron(TB_SHAPE_MESH, false), false));
    tb_model_destroy(model_of(field(), true));

    /* a listed pair collides under any masks */
    tb_scene *scene = tetrahedron(TB_SHAPE_MESH, false);
    tb_shape_def plane = tb_shape_defaults();
    tb_pair_def pair = tb_pair_defaults();
    plane.type = TB_SHAPE_PLANE;
    plane.name = "ground";
    TEST_OK(tb_scene_add_shape(scene, &plane, &pair.b, &error), &error);
    pair.a = pair.b;
    pair.a.index--;
    TEST_OK(tb_scene_add_pair(scene, &pair, NULL, &error), &error);
    tb_model_destroy(model_of(scene, true));
}
END_TEST

/* ---- sessions ---- */

/* The device of a session of `worlds` copies of the model, which is taken over. */
static void expect_session(td_server *s, tb_model *model, int worlds, const char *named,
                           const char *device)
{
    tb_error error = {0};
    const td_scene *scene = NULL;
    Tribo__V1__CreateSessionRequest request = TRIBO__V1__CREATE_SESSION_REQUEST__INIT;
    TEST_OK(td_catalog_add_scene(s->catalog, model, &scene, &error), &error);
    request.scene_id = (char *)(uintptr_t)scene->id;
    request.worlds = worlds;
    request.device = (char *)(uintptr_t)named;
    Tribo__V1__CreateSessionResponse *answer =
        test_unary(s, "tribo.v1.Simulation/CreateSession", "one", &request, NULL, NULL);
    ck_assert_str_eq(answer->device, device);
    ck_assert_int_eq(delete_session(s, "one", TD_SCOPE_RUN, answer->session_id), TB_OK);
    tribo__v1__create_session_response__free_unpacked(answer, NULL);
    td_scene_release(s->catalog, scene);
}

START_TEST(many_worlds_get_the_card_unless_meshes_collide_in_them)
{
    test_server t;
    start_with_card(&t, TB_BACKEND_AUTO);
    td_server *s = &t.server;
    expect_session(s, pile_of_boxes(1, 0.5), MANY, "", "gpu:0");
    expect_session(s, pile_of_boxes(1, 0.5), 1, "", "cpu");
    expect_session(s, model_of(tetrahedron(TB_SHAPE_CONVEX, true), false), MANY, "", "gpu:0");
    expect_session(s, model_of(tetrahedron(TB_SHAPE_MESH, false), false), MANY, "", "gpu:0");
    expect_session(s, model_of(tetrahedron(TB_SHAPE_MESH, true), true), MANY, "", "cpu");
    expect_session(s, model_of(field(), true), MANY, "", "cpu");
    /* an explicit choice is honoured */
    expect_session(s, model_of(tetrahedron(TB_SHAPE_MESH, true), true), MANY, "gpu:0", "gpu:0");
    test_server_stop(&t);

    start_with_card(&t, TB_BACKEND_GPU);
    expect_session(s, model_of(tetrahedron(TB_SHAPE_MESH, true), true), 1, "", "gpu:0");
    test_server_stop(&t);
}
END_TEST

/* ---- large worlds ---- */

START_TEST(a_large_world_gets_the_card_unless_meshes_collide_in_it)
{
    test_server t;
    tb_error error = {0};
    const tb_step_options options = tb_step_defaults();
    td_device_wish wish = {.name = "", .worlds = 1, .bodies = 100, .options = &options};
    td_device *device = NULL;
    start_with_card(&t, TB_BACKEND_AUTO);
    TEST_OK(td_device_choose(&t.server, &wish, &device, &error), &error);
    ck_assert_str_eq(device->name, "gpu:0");
    wish.meshes = true;
    TEST_OK(td_device_choose(&t.server, &wish, &device, &error), &error);
    ck_assert_str_eq(device->name, "cpu");
    test_server_stop(&t);
}
END_TEST

static const char *chosen_for(test_server *t, td_device_wish *wish)
{
    tb_error error = {0};
    td_device *device = NULL;
    TEST_OK(td_device_choose(&t->server, wish, &device, &error), &error);
    return device->name;
}

/* ---- soft bodies ---- */

/* A box of so many cells, which are 0.1 m, along each axis. */
static tb_model *soft_box(double cells)
{
    char path[] = "/tmp/tribo_soft_XXXXXX.xml";
    tb_error error = {0};
    tb_model *model = NULL;
    const double half = 0.05 * cells, far = half + 0.45;
    const int file = mkstemps(path, 4);
    ck_assert_int_ge(file, 0);
    ck_assert_int_gt(
        dprintf(file,
                "<soft model=\"s\"><grid lower=\"-%g -%g -%g\" upper=\"%g %g %g\" "
                "spacing=\"0.1\"/><material name=\"m\" density=\"1000\" young=\"1e4\" "
                "poisson=\"0.3\"/><body name=\"b\" material=\"m\" type=\"box\" size=\"%g %g %g\"/>"
                "</soft>",
                far, far, far, far, far, far, half, half, half),
        0);
    close(file);
    TEST_OK(tb_model_load(path, NULL, &model, &error), &error);
    ck_assert_int_eq(unlink(path), 0);
    return model;
}

START_TEST(soft_bodies_on_many_nodes_get_the_card)
{
    test_server t;
    tb_error error = {0};
    td_device *device = NULL;
    start_with_card(&t, TB_BACKEND_AUTO);
    const double many = cbrt(TB_SOFT_CARD_NODES) - 6, few = many - 3; /* three layers around it */
    expect_session(&t.server, soft_box(many), 1, "", "gpu:0");
    expect_session(&t.server, soft_box(few), 1, "", "cpu");
    expect_session(&t.server, soft_box(few), MANY, "", "cpu");
    expect_session(&t.server, soft_box(few), 1, "gpu:0", "gpu:0");

    /* not where they find no memory */
    const tb_step_options options = tb_step_defaults();
    td_device_wish wish = {.name = "",
                           .worlds = 3,
                           .soft_nodes = 2 * TB_SOFT_CARD_NODES,
                           .bytes = t.server.devices[0].memory_bytes / 2,
                           .options = &options};
    ck_assert_str_eq(chosen_for(&t, &wish), "gpu:0");
    wish.bytes *= 3;
    ck_assert_str_eq(chosen_for(&t, &wish), "cpu");
    wish.name = "gpu:0";
    TEST_STATUS(td_device_choose(&t.server, &wish, &device, &error), TB_RESOURCE_EXHAUSTED, &error);
    ck_assert_str_eq(error.field, "memory");

    /* where both have stepped them, by their paces */
    t.config.gpu_worlds = 0;
    wish = (td_device_wish){.name = "",
                            .worlds = 1,
                            .soft_nodes = TB_SOFT_CARD_NODES / 8,
                            .pace = 5,
                            .options = &options};
    ck_assert_str_eq(chosen_for(&t, &wish), "cpu");
    td_device_note(&t.server, td_device_cpu(&t.server), 5, 1, 2e6);
    td_device_note(&t.server, &t.server.devices[0], 5, 1, 1e6);
    ck_assert_str_eq(chosen_for(&t, &wish), "gpu:0");
    test_server_stop(&t);
}
END_TEST

/* ---- measured paces ---- */

/* A server that has measured nothing: as it says by itself, the card gets 1,024 worlds and more. */
static void start_unmeasured(test_server *t)
{
    start_with_card(t, TB_BACKEND_AUTO);
    t->config.gpu_worlds = 0;
    ck_assert_int_eq(td_device_card_worlds(&t->server), 1024);
}

START_TEST(what_was_stepped_on_both_is_given_to_the_quicker)
{
    test_server t;
    start_unmeasured(&t);
    const tb_step_options options = tb_step_defaults();
    td_device_wish wish = {.name = "", .worlds = 1024, .pace = 77, .options = &options};
    td_device *card = &t.server.devices[0], *cpu = td_device_cpu(&t.server);
    const double threads = td_scheduler_threads(cpu->scheduler);
    ck_assert_str_eq(chosen_for(&t, &wish), "gpu:0");

    /* a hand: the card takes twice as long as all threads */
    td_device_note(&t.server, cpu, 77, 1, 1e5);
    td_device_note(&t.server, card, 77, 1024, 2 * 1024 * 1e5 / threads);
    ck_assert_str_eq(chosen_for(&t, &wish), "cpu");
    ck_assert_int_eq(atomic_load(&cpu->chosen_by_pace), 1);
    /* of far more it is not known, and by size they are for the card */
    wish.worlds = 16 * 1024;
    ck_assert_str_eq(chosen_for(&t, &wish), "gpu:0");
    ck_assert_int_eq(atomic_load(&card->chosen_by_pace), 0);
    td_device_note(&t.server, card, 77, 16 * 1024, 2 * 16 * 1024 * 1e5 / threads);
    ck_assert_str_eq(chosen_for(&t, &wish), "cpu");
    /* nor of one: a short time for 1,024 worlds does not make a card fast */
    wish.worlds = 1;
    td_device_note(&t.server, card, 77, 1024, 1e5);
    ck_assert_str_eq(chosen_for(&t, &wish), "cpu");

    /* and the other way round: 40 worlds that the card is quicker with */
    wish.pace = 78;
    wish.worlds = 40;
    ck_assert_str_eq(chosen_for(&t, &wish), "cpu");
    td_device_note(&t.server, cpu, 78, 40, 40 * 1e6);
    td_device_note(&t.server, card, 78, 40, 0.9 * 40 * 1e6 / fmin(threads, 40));
    ck_assert_str_eq(chosen_for(&t, &wish), "gpu:0");
    ck_assert_int_eq(atomic_load(&card->chosen_by_pace), 1);
    /* not scenes in which meshes collide, and not with an operator's threshold */
    wish.meshes = true;
    ck_assert_str_eq(chosen_for(&t, &wish), "cpu");
    wish.meshes = false;
    t.config.gpu_worlds = 41;
    ck_assert_str_eq(chosen_for(&t, &wish), "cpu");
    t.config.gpu_worlds = 0;
    wish.name = "cpu";
    ck_assert_str_eq(chosen_for(&t, &wish), "cpu");
    wish.name = "";
    wish.pace = 79;
    ck_assert_str_eq(chosen_for(&t, &wish), "cpu");
    test_server_stop(&t);
}
END_TEST

START_TEST(what_was_stepped_on_one_tries_the_other_where_little_is_lost)
{
    test_server t;
    start_unmeasured(&t);
    const tb_step_options options = tb_step_defaults();
    td_device_wish wish = {.name = "", .pace = 77, .options = &options};
    td_device *card = &t.server.devices[0], *cpu = td_device_cpu(&t.server);

    /* known on the card alone */
    td_device_note(&t.server, card, 77, 3000, 1e6);
    wish.worlds = 4000; /* a session would lose too much */
    ck_assert_str_eq(chosen_for(&t, &wish), "gpu:0");
    wish.ends = true;
    ck_assert_str_eq(chosen_for(&t, &wish), "cpu");
    ck_assert_str_eq(chosen_for(&t, &wish), "gpu:0"); /* a trial runs already */
    wish.pace = 78;
    td_device_note(&t.server, card, 78, 3000, 1e6);
    wish.worlds = 10000; /* too much for a job */
    ck_assert_str_eq(chosen_for(&t, &wish), "gpu:0");
    wish.worlds = 2000;
    wish.ends = false;
    ck_assert_str_eq(chosen_for(&t, &wish), "cpu");
    wish.worlds = 900; /* by size they are the processors' anyway */
    ck_assert_str_eq(chosen_for(&t, &wish), "cpu");
    ck_assert_str_eq(chosen_for(&t, &wish), "cpu");

    /* known on the processors alone */
    wish.pace = 79;
    td_device_note(&t.server, cpu, 79, 1, 1e5);
    wish.worlds = 300;
    ck_assert_str_eq(chosen_for(&t, &wish), "cpu");
    wish.ends = true;
    ck_assert_str_eq(chosen_for(&t, &wish), "gpu:0");
    ck_assert_str_eq(chosen_for(&t, &wish), "cpu");
    wish.worlds = 2000;
    ck_assert_str_eq(chosen_for(&t, &wish), "gpu:0");
    ck_assert_int_eq(atomic_load(&cpu->chosen_by_pace) + atomic_load(&card->chosen_by_pace), 0);
    test_server_stop(&t);
}
END_TEST

/* Steps a session of `worlds` copies of the scene on its device. */
static void step_there(td_server *s, const td_scene *scene, int worlds, const char *device)
{
    char id[33];
    tb_error error = {0};
    Tribo__V1__CreateSessionRequest request = TRIBO__V1__CREATE_SESSION_REQUEST__INIT;
    request.scene_id = (char *)(uintptr_t)scene->id;
    request.worlds = worlds;
    request.device = (char *)(uintptr_t)device;
    TEST_OK(open_session(s, "one", &request, id, &error), &error);
    Tribo__V1__StepRequest step = TRIBO__V1__STEP_REQUEST__INIT;
    step.session_id = id;
    step.steps = 40;
    tribo__v1__step_response__free_unpacked(
        test_unary(s, "tribo.v1.Simulation/Step", "one", &step, NULL, NULL), NULL);
    ck_assert_int_eq(delete_session(s, "one", TD_SCOPE_RUN, id), TB_OK);
}

/* Of a session's scene under the usual options. */
static uint64_t pace_of(const char *scene)
{
    const tb_step_options options = tb_step_defaults();
    return td_pace_key(td_pace_hash(TD_PACE_SEED, scene, strlen(scene)), &options);
}

START_TEST(sessions_leave_their_pace)
{
    test_server t;
    tb_error error = {0};
    const td_scene *scene = NULL;
    start_unmeasured(&t);
    td_server *s = &t.server;
    TEST_OK(td_catalog_add_scene(s->catalog, pile_of_boxes(2, 0.5), &scene, &error), &error);
    step_there(s, scene, 3, "cpu");
    step_there(s, scene, 2, "gpu:0");

    const tb_step_options options = tb_step_defaults();
    const uint64_t pace = pace_of(scene->id);
    const double cpu = td_pace_step_ns(s->paces, pace, TB_BACKEND_CPU, 2, INT64_MIN);
    const double card = td_pace_step_ns(s->paces, pace, TB_BACKEND_GPU, 2, INT64_MIN);
    ck_assert_msg(cpu > 0 && card > 0, "%g and %g ns", cpu, card);
    /* two of them go where they are quicker, though by size they were for the processors */
    td_device_wish wish = {.name = "", .worlds = 2, .pace = pace, .options = &options};
    const double threads = fmin(td_scheduler_threads(td_device_cpu(s)->scheduler), 2);
    ck_assert_str_eq(chosen_for(&t, &wish), card <= cpu / threads ? "gpu:0" : "cpu");
    td_scene_release(s->catalog, scene);
    test_server_stop(&t);
}
END_TEST

/* A launch in which a world diverges is shorter than it should be, and says nothing. */
START_TEST(worlds_that_diverge_leave_no_pace)
{
    test_server t;
    tb_error error = {0};
    char id[33];
    const td_scene *scene = NULL;
    start_unmeasured(&t);
    td_server *s = &t.server;
    TEST_OK(td_catalog_add_scene(s->catalog, pile_of_boxes(1, 0.5), &scene, &error), &error);
    Tribo__V1__CreateSessionRequest request = TRIBO__V1__CREATE_SESSION_REQUEST__INIT;
    request.scene_id = (char *)(uintptr_t)scene->id;
    request.device = (char *)(uintptr_t) "cpu";
    TEST_OK(open_session(s, "one", &request, id, &error), &error);
    double u[6] = {0, 0, 0, 1e300, 0, 0};
    int64_t dofs = 6;
    Tribo__V1__Array array = TRIBO__V1__ARRAY__INIT;
    array.shape = &dofs;
    array.n_shape = 1;
    array.data.data = (uint8_t *)u;
    array.data.len = sizeof u;
    Tribo__V1__SetStateRequest set = TRIBO__V1__SET_STATE_REQUEST__INIT;
    set.session_id = id;
    set.u = &array;
    tribo__v1__set_state_response__free_unpacked(
        test_unary(s, "tribo.v1.Simulation/SetState", "one", &set, NULL, NULL), NULL);
    Tribo__V1__StepRequest step = TRIBO__V1__STEP_REQUEST__INIT;
    step.session_id = id;
    step.steps = 10;
    for (int i = 0; i < 5; i++)
        tribo__v1__step_response__free_unpacked(
            test_unary(s, "tribo.v1.Simulation/Step", "one", &step, NULL, NULL), NULL);
    const uint64_t pace = pace_of(scene->id);
    ck_assert_double_eq(td_pace_step_ns(s->paces, pace, TB_BACKEND_CPU, 1, INT64_MIN), 0);
    td_scene_release(s->catalog, scene);
    test_server_stop(&t);
}
END_TEST

/* ---- grasps ---- */

/* An angle iron: a mesh that is not its own hull. */
static const char ANGLE[] =
    "v -.02 -.03 0\nv .02 -.03 0\nv .02 -.01 0\nv 0 -.01 0\nv 0 .03 0\nv -.02 .03 0\n"
    "v -.02 -.03 .05\nv .02 -.03 .05\nv .02 -.01 .05\nv 0 -.01 .05\nv 0 .03 .05\nv -.02 .03 .05\n"
    "f 6 5 4 3 2 1\nf 7 8 9 10 11 12\nf 1 2 8 7\nf 2 3 9 8\nf 3 4 10 9\nf 4 5 11 10\n"
    "f 5 6 12 11\nf 6 1 7 12\n";

/* Where a job of MANY copies of a grasp is played. */
static void expect_grasps(td_server *s, bool convex, const char *named, const char *expected)
{
    Tribo__V1__EvaluateGraspsRequest request = TRIBO__V1__EVALUATE_GRASPS_REQUEST__INIT;
    Tribo__V1__GraspObject object = TRIBO__V1__GRASP_OBJECT__INIT;
    Tribo__V1__GraspHand hand = TRIBO__V1__GRASP_HAND__INIT;
    Tribo__V1__GraspAsset assets[2];
    Tribo__V1__GraspProtocol protocol = TRIBO__V1__GRASP_PROTOCOL__INIT;
    Tribo__V1__GraspPerturbation perturbation = TRIBO__V1__GRASP_PERTURBATION__INIT;
    Tribo__V1__GraspPose pose = TRIBO__V1__GRASP_POSE__INIT, *poses = &pose;
    for (int i = 0; i < 2; i++) {
        const char *text = i == 0 ? ANGLE : TEST_JAW;
        tribo__v1__grasp_asset__init(&assets[i]);
        assets[i].main_case = TRIBO__V1__GRASP_ASSET__MAIN_DATA;
        assets[i].data.data = (uint8_t *)(uintptr_t)text;
        assets[i].data.len = strlen(text);
        assets[i].path = (char *)(uintptr_t)(i == 0 ? "angle.obj" : "jaw.xml");
    }
    object.asset = &assets[0];
    object.convex = convex;
    hand.asset = &assets[1];
    protocol.dt = 0.004;
    protocol.close_seconds = protocol.lift_seconds = protocol.hold_seconds = 0.01;
    protocol.lift = 0.001;
    perturbation.count = MANY;
    request.object = &object;
    request.hand = &hand;
    request.protocol = &protocol;
    request.perturbation = &perturbation;
    request.poses = &poses;
    request.n_poses = 1;
    request.device = (char *)(uintptr_t)named;
    test_call *call = test_call_begin(s, "tribo.v1.Grasp/EvaluateGrasps", "one");
    test_call_request(call, &request.base);
    test_call_wait(call, NULL, 0);
    ck_assert_msg(call->status == TB_OK, "%s", call->error.message);

    Tribo__V1__EvaluateGraspsResponse *last = test_call_answer(call, call->sent - 1);
    db_id id;
    db_run run;
    tb_error error = {0};
    ck_assert_int_eq(last->event_case, TRIBO__V1__EVALUATE_GRASPS_RESPONSE__EVENT_SUMMARY);
    ck_assert(td_id_parse(last->summary->run_id, &id));
    TEST_OK(db_get_run(s->db, &id, &run, &error), &error);
    ck_assert_msg(strncmp(run.device, expected, strlen(expected)) == 0, "on %s", run.device);
    free((void *)(uintptr_t)run.options_json);
    tribo__v1__evaluate_grasps_response__free_unpacked(last, NULL);
    test_call_end(call);
}

START_TEST(grasps_of_triangles_are_played_on_the_processors)
{
    test_server t;
    start_with_card(&t, TB_BACKEND_AUTO);
    expect_grasps(&t.server, false, "", "cpu");
    expect_grasps(&t.server, true, "", "gpu:0");
    expect_grasps(&t.server, false, "gpu:0", "gpu:0");
    test_server_stop(&t);
}
END_TEST

/* By size the first ones go to the card; once both kinds have played such grasps, nothing is chosen
 * by size any longer. */
START_TEST(grasps_leave_their_pace)
{
    test_server t;
    start_unmeasured(&t);
    td_server *s = &t.server;
    td_device *card = &s->devices[0], *cpu = td_device_cpu(s);
    t.config.gpu_worlds = 1;
    expect_grasps(s, true, "", "gpu:0");
    ck_assert_int_eq(atomic_load(&card->chosen_by_size), 1);
    expect_grasps(s, true, "cpu", "cpu");
    t.config.gpu_worlds = 0;
    expect_grasps(s, true, "", "");
    ck_assert_int_eq(atomic_load(&card->chosen_by_pace) + atomic_load(&cpu->chosen_by_pace), 1);
    ck_assert_int_eq(atomic_load(&card->chosen_by_size) + atomic_load(&cpu->chosen_by_size), 1);
    test_server_stop(&t);
}
END_TEST

START_TEST(a_pace_of_grasps_is_of_all_but_the_poses_and_their_copies)
{
    tb_step_options options = tb_step_defaults();
    Tribo__V1__EvaluateGraspsRequest m = TRIBO__V1__EVALUATE_GRASPS_REQUEST__INIT;
    Tribo__V1__GraspObject object = TRIBO__V1__GRASP_OBJECT__INIT;
    Tribo__V1__GraspHand hand = TRIBO__V1__GRASP_HAND__INIT;
    Tribo__V1__GraspAsset asset = TRIBO__V1__GRASP_ASSET__INIT;
    Tribo__V1__GraspProtocol protocol = TRIBO__V1__GRASP_PROTOCOL__INIT;
    Tribo__V1__GraspPerturbation perturbation = TRIBO__V1__GRASP_PERTURBATION__INIT;
    Tribo__V1__GraspPose pose = TRIBO__V1__GRASP_POSE__INIT, *poses[] = {&pose, &pose};
    asset.main_case = TRIBO__V1__GRASP_ASSET__MAIN_DATA;
    asset.data.data = (uint8_t *)(uintptr_t)ANGLE;
    asset.data.len = strlen(ANGLE);
    object.asset = hand.asset = &asset;
    m.object = &object;
    m.hand = &hand;
    m.protocol = &protocol;
    const uint64_t pace = td_grasp_request_pace(&m, &options);
    m.poses = poses;
    m.n_poses = 2;
    m.perturbation = &perturbation;
    perturbation.count = 7;
    m.label = (char *)(uintptr_t) "again";
    m.device = (char *)(uintptr_t) "cpu";
    ck_assert_uint_eq(td_grasp_request_pace(&m, &options), pace);
    protocol.lift = 0.1;
    ck_assert_uint_ne(td_grasp_request_pace(&m, &options), pace);
    protocol.lift = 0;
    object.convex = true;
    ck_assert_uint_ne(td_grasp_request_pace(&m, &options), pace);
    object.convex = false;
    asset.data.len--;
    ck_assert_uint_ne(td_grasp_request_pace(&m, &options), pace);
    asset.data.len++;
    ck_assert_uint_eq(td_grasp_request_pace(&m, &options), pace);
    options.dt = 0.01;
    ck_assert_uint_ne(td_grasp_request_pace(&m, &options), pace);
}
END_TEST

/* ---- the library's own auto ---- */

START_TEST(the_librarys_auto_looks_at_every_batch)
{
    play_card(NULL, NULL, NULL);
    find_card();
    tb_error error = {0};
    tb_stepper *stepper = NULL;
    tb_step_options options = tb_step_defaults();
    tb_model *models[] = {pile_of_boxes(1, 0.5), model_of(tetrahedron(TB_SHAPE_MESH, true), true)};
    tb_state *states[2];
    for (int i = 0; i < 2; i++) TEST_OK(tb_state_create(models[i], &states[i], &error), &error);
    options.backend = TB_BACKEND_AUTO;
    options.resident = true;
    TEST_OK(tb_stepper_create(&options, &stepper, &error), &error);
    TEST_OK(tb_step_batch(stepper, states, 1, 3, NULL, &error), &error);
    ck_assert_str_eq(tb_stepper_measure(stepper).backend, "gpu");
    TEST_OK(tb_step_batch(stepper, states, 2, 3, NULL, &error), &error);
    ck_assert_str_eq(tb_stepper_measure(stepper).backend, "cpu");
    ck_assert_int_eq(tb_state_steps(states[0]), 6);
    ck_assert_int_eq(tb_state_steps(states[1]), 3);
    TEST_OK(tb_step_batch(stepper, states, 1, 3, NULL, &error), &error);
    ck_assert_str_eq(tb_stepper_measure(stepper).backend, "gpu");
    ck_assert_int_eq(tb_state_steps(states[0]), 9);

    options.backend = TB_BACKEND_GPU;
    TEST_OK(tb_stepper_set_options(stepper, &options, &error), &error);
    TEST_OK(tb_step_batch(stepper, states, 2, 1, NULL, &error), &error);
    ck_assert_str_eq(tb_stepper_measure(stepper).backend, "gpu");
    for (int i = 0; i < 2; i++) tb_state_destroy(states[i]);
    tb_stepper_destroy(stepper);
    for (int i = 0; i < 2; i++) tb_model_destroy(models[i]);
}
END_TEST

START_TEST(the_librarys_auto_looks_at_what_a_job_is_about)
{
    play_card(NULL, NULL, NULL);
    find_card();
    for (int i = 0; i < 4; i++) {
        tb_error error = {0};
        tb_grasp_job *job = NULL;
        tb_scene *hand = NULL, *object = tetrahedron(i > 0 ? TB_SHAPE_MESH : TB_SHAPE_CONVEX, true);
        tb_grasp_request request = tb_grasp_defaults();
        const tb_grasp_pose pose = tb_grasp_pose_defaults();
        TEST_OK(tb_scene_load_mjcf(TEST_JAW, strlen(TEST_JAW), NULL, NULL, &hand, &error), &error);
        request.hand.scene = hand;
        request.object.scene = object;
        request.object.convex = i == 1;
        request.poses = &pose;
        request.number_of_poses = 1;
        request.step.backend = i < 3 ? TB_BACKEND_AUTO : TB_BACKEND_GPU;
        TEST_OK(tb_grasp_job_create(&request, &job, &error), &error);
        ck_assert(job->plan.on_card == (i != 2));
        tb_grasp_job_destroy(job);
        tb_scene_destroy(hand);
        tb_scene_destroy(object);
    }
}
END_TEST

TEST_MAIN(only_shapes_that_collide_count_as_meshes,
          many_worlds_get_the_card_unless_meshes_collide_in_them,
          a_large_world_gets_the_card_unless_meshes_collide_in_it,
          soft_bodies_on_many_nodes_get_the_card, what_was_stepped_on_both_is_given_to_the_quicker,
          what_was_stepped_on_one_tries_the_other_where_little_is_lost, sessions_leave_their_pace,
          worlds_that_diverge_leave_no_pace,
          a_pace_of_grasps_is_of_all_but_the_poses_and_their_copies,
          grasps_of_triangles_are_played_on_the_processors, grasps_leave_their_pace,
          the_librarys_auto_looks_at_every_batch, the_librarys_auto_looks_at_what_a_job_is_about)
