/* Geometry on the wire: GetScene, GetAsset, and a Watch with everything that a viewer draws. */
#include "server/session_util.h"

/* A box of 1 kg rests on the floor; a servo presses a hinge against its limit. */
static const char SCENE[] =
    "<mujoco><option timestep='0.002'/>"
    "<asset><mesh name='cube' vertex='0 0 0 1 0 0 1 1 0 0 1 0 0 0 1 1 0 1 1 1 1 0 1 1'/></asset>"
    "<worldbody><geom name='floor' type='plane' size='5 5 .1' rgba='.2 .4 .6 1'/>"
    "<body name='box' pos='0 0 .1'><freejoint/>"
    "<geom name='box' type='box' size='.1 .1 .1' mass='1' friction='.5'/></body>"
    "<body name='arm' pos='3 0 2' gravcomp='1'><joint name='hinge' axis='0 1 0' range='-10 10'/>"
    "<geom type='mesh' mesh='cube' contype='0' conaffinity='0' mass='1'/></body></worldbody>"
    "<actuator><motor name='press' joint='hinge' ctrlrange='-9 9'/></actuator>"
    "<sensor><jointlimitfrc name='stop' joint='hinge'/><framepos name='place' objtype='geom' "
    "objname='box'/></sensor></mujoco>";

static void create(td_server *s, char scene[65])
{
    Tribo__V1__CreateSceneRequest request = TRIBO__V1__CREATE_SCENE_REQUEST__INIT;
    request.main_case = TRIBO__V1__CREATE_SCENE_REQUEST__MAIN_TEXT;
    request.text = (char *)(uintptr_t)SCENE;
    request.path = (char *)(uintptr_t) "scene.xml";
    Tribo__V1__CreateSceneResponse *answer =
        test_unary(s, "tribo.v1.Simulation/CreateScene", "one", &request, NULL, NULL);
    snprintf(scene, 65, "%s", answer->scene_id);
    tribo__v1__create_scene_response__free_unpacked(answer, NULL);
}

START_TEST(a_scene_says_all_that_drawing_it_takes)
{
    test_server t;
    char scene[65], mesh[65];
    test_server_init(&t, false);
    test_server_start(&t);
    create(&t.server, scene);
    Tribo__V1__GetSceneRequest request = TRIBO__V1__GET_SCENE_REQUEST__INIT;
    request.scene_id = scene;
    Tribo__V1__GetSceneResponse *answer =
        test_unary(&t.server, "tribo.v1.Simulation/GetScene", "one", &request, NULL, NULL);
    ck_assert_uint_eq(answer->n_shape_infos, 3);
    ck_assert_uint_eq(answer->n_shapes, 3);
    const Tribo__V1__ShapeInfo *floor = answer->shape_infos[0], *box = answer->shape_infos[1];
    const Tribo__V1__ShapeInfo *cube = answer->shape_infos[2];
    ck_assert_str_eq(floor->name, "floor");
    ck_assert_int_eq(floor->type, TRIBO__V1__SHAPE_TYPE__SHAPE_TYPE_PLANE);
    ck_assert_uint_eq(floor->n_colour, 4);
    TEST_NEAR(floor->colour[1], 0.4, 1e-15);
    ck_assert_uint_eq(box->n_colour, 0);
    ck_assert_int_eq(box->type, TRIBO__V1__SHAPE_TYPE__SHAPE_TYPE_BOX);
    ck_assert_int_eq(box->body, 1);
    TEST_NEAR(box->size[0], 0.1, 1e-15);
    TEST_NEAR(box->friction, 0.5, 0);
    ck_assert_uint_eq(box->pose->n_position, 3);
    ck_assert(box->collides && !cube->collides);
    ck_assert_uint_eq(answer->n_meshes, 1);
    ck_assert_str_eq(answer->meshes[0]->sha256, cube->mesh_sha256);
    ck_assert_int_eq(answer->meshes[0]->vertices, 8);
    snprintf(mesh, sizeof mesh, "%s", cube->mesh_sha256);
    ck_assert_uint_eq(answer->n_sensors, 2);
    const Tribo__V1__SensorInfo *stop = answer->sensors[0], *place = answer->sensors[1];
    ck_assert_str_eq(stop->name, "stop");
    ck_assert_str_eq(stop->type, "jointlimitfrc");
    ck_assert_str_eq(stop->object_kind, "joint");
    ck_assert_int_eq(stop->object, 1);
    ck_assert_str_eq(stop->unit, "N m");
    ck_assert_str_eq(place->object_kind, "shape");
    ck_assert_int_eq(place->first, 1);
    ck_assert_int_eq(place->numbers, 3);
    ck_assert_uint_eq(answer->n_actuator_infos, 1);
    ck_assert_str_eq(answer->actuator_infos[0]->target_kind, "joint");
    TEST_NEAR(answer->actuator_infos[0]->control_upper, 9, 0);
    ck_assert_uint_eq(answer->joints[1]->n_axis, 3);
    TEST_NEAR(answer->joints[1]->axis[1], 1, 0);
    TEST_NEAR(answer->bodies[2]->pose->position[0], 3, 0);
    tribo__v1__get_scene_response__free_unpacked(answer, NULL);

    Tribo__V1__GetAssetRequest get = TRIBO__V1__GET_ASSET_REQUEST__INIT;
    get.sha256 = mesh;
    get.scene_id = scene;
    Tribo__V1__GetAssetResponse *asset =
        test_unary(&t.server, "tribo.v1.Simulation/GetAsset", "one", &get, NULL, NULL);
    ck_assert_ptr_nonnull(asset->mesh);
    ck_assert_int_eq(asset->mesh->vertices->dtype, TRIBO__V1__DATA_TYPE__DATA_TYPE_FLOAT32);
    ck_assert_int_eq((int)asset->mesh->vertices->shape[0], 8);
    ck_assert_uint_eq(asset->mesh->vertices->data.len, 8 * 3 * sizeof(float));
    ck_assert_int_eq((int)asset->mesh->triangles->shape[0], 12);
    ck_assert_ptr_null(asset->mesh->hull_vertices); /* the mesh does not collide */
    ck_assert_str_eq(asset->name, "cube");
    tribo__v1__get_asset_response__free_unpacked(asset, NULL);

    tb_status status;
    tb_error error = {0};
    mesh[0] = mesh[0] == 'a' ? 'b' : 'a';
    ck_assert_ptr_null(
        test_unary(&t.server, "tribo.v1.Simulation/GetAsset", "one", &get, &status, &error));
    ck_assert_int_eq(status, TB_NOT_FOUND);
    ck_assert_str_eq(error.field, "sha256");
    test_server_stop(&t);
}
END_TEST

START_TEST(a_file_comes_back_in_pieces)
{
    test_server t;
    tb_status status;
    tb_error error = {0};
    test_server_init(&t, false);
    test_server_start(&t);
    Tribo__V1__CreateAssetRequest put = TRIBO__V1__CREATE_ASSET_REQUEST__INIT;
    put.name = (char *)(uintptr_t) "a.txt";
    put.data.data = (uint8_t *)(uintptr_t) "0123456789";
    put.data.len = 10;
    Tribo__V1__CreateAssetResponse *made =
        test_unary(&t.server, "tribo.v1.Simulation/CreateAsset", "one", &put, NULL, NULL);
    Tribo__V1__GetAssetRequest get = TRIBO__V1__GET_ASSET_REQUEST__INIT;
    get.sha256 = made->sha256;
    get.offset = 3;
    get.size = 4;
    Tribo__V1__GetAssetResponse *asset =
        test_unary(&t.server, "tribo.v1.Simulation/GetAsset", "one", &get, NULL, NULL);
    ck_assert_uint_eq(asset->size, 10);
    ck_assert_uint_eq(asset->data.len, 4);
    ck_assert_mem_eq(asset->data.data, "3456", 4);
    tribo__v1__get_asset_response__free_unpacked(asset, NULL);
    get.offset = 11;
    ck_assert_ptr_null(
        test_unary(&t.server, "tribo.v1.Simulation/GetAsset", "one", &get, &status, &error));
    ck_assert_int_eq(status, TB_INVALID_ARGUMENT);
    tribo__v1__create_asset_response__free_unpacked(made, NULL);
    test_server_stop(&t);
}
END_TEST

/* A session of `worlds` such scenes. */
static void open_scene(td_server *s, int worlds, char id[33])
{
    char scene[65];
    tb_error error = {0};
    create(s, scene);
    Tribo__V1__CreateSessionRequest request = TRIBO__V1__CREATE_SESSION_REQUEST__INIT;
    request.scene_id = scene;
    request.worlds = worlds;
    TEST_OK(open_session(s, "one", &request, id, &error), &error);
}

static void press(td_server *s, const char *id, double torque, int steps)
{
    Tribo__V1__Array controls = TRIBO__V1__ARRAY__INIT;
    int64_t shape[1] = {1};
    controls.dtype = TRIBO__V1__DATA_TYPE__DATA_TYPE_FLOAT64;
    controls.shape = shape;
    controls.n_shape = 1;
    controls.data.data = (uint8_t *)&torque;
    controls.data.len = sizeof torque;
    Tribo__V1__StepRequest request = TRIBO__V1__STEP_REQUEST__INIT;
    request.session_id = (char *)(uintptr_t)id;
    request.steps = steps;
    request.controls = &controls;
    Tribo__V1__StepResponse *answer =
        test_unary(s, "tribo.v1.Simulation/Step", "one", &request, NULL, NULL);
    tribo__v1__step_response__free_unpacked(answer, NULL);
}

START_TEST(a_watch_carries_poses_and_forces_of_chosen_worlds)
{
    test_server t;
    char id[33];
    test_server_init(&t, false);
    test_server_start(&t);
    open_scene(&t.server, 3, id);
    press(&t.server, id, 4, 1000);
    test_call *call = test_call_begin(&t.server, "tribo.v1.Simulation/Watch", "one");
    Tribo__V1__WatchRequest r = TRIBO__V1__WATCH_REQUEST__INIT;
    Tribo__V1__StepReturn want = TRIBO__V1__STEP_RETURN__INIT;
    int32_t worlds[2] = {0, 2};
    want.poses = want.forces = want.contacts = want.certificate_arrays = true;
    r.session_id = id;
    r.want = &want;
    r.worlds = worlds;
    r.n_worlds = 2;
    r.certificates = true;
    test_call_request(call, &r.base);
    test_call_wait(call, &call->sent, 1);
    Tribo__V1__WatchResponse *a = test_call_answer(call, 0);
    ck_assert_uint_eq(a->n_worlds, 2);
    ck_assert_int_eq(a->worlds[1], 2);
    ck_assert_ptr_null(a->state->q);
    ck_assert_uint_eq(a->state->poses->n_shape, 3);
    ck_assert_int_eq((int)a->state->poses->shape[1], 3);
    float poses[2 * 3 * 7];
    ck_assert_uint_eq(a->state->poses->data.len, sizeof poses);
    memcpy(poses, a->state->poses->data.data, sizeof poses);
    TEST_NEAR((double)poses[7 + 2], 0.1, 1e-4); /* the box lies on the floor */
    TEST_NEAR((double)poses[14 + 0], 3, 1e-6);

    /* the limit bears the motor's 4 N m */
    double actuator[2], limits[2][2];
    memcpy(actuator, a->state->actuator_forces->data.data, sizeof actuator);
    memcpy(limits, a->state->limit_forces->data.data, sizeof limits);
    TEST_NEAR(actuator[1], 4, 1e-9);
    TEST_NEAR(limits[1][1], -4, 1e-3);
    TEST_NEAR(limits[1][0], 0, 0); /* a free joint has none */

    /* and the contacts of the box its weight */
    ck_assert_uint_eq(a->n_contacts, 2);
    const Tribo__V1__Contacts *c = a->contacts[1];
    ck_assert_int_gt(c->count, 0);
    double up = 0;
    for (int i = 0; i < c->count; i++) {
        double force[3];
        int32_t shapes[2];
        memcpy(force, c->forces->data.data + (size_t)i * sizeof force, sizeof force);
        memcpy(shapes, c->shapes->data.data + (size_t)i * sizeof shapes, sizeof shapes);
        up += shapes[1] == 1 ? force[2] : -force[2];
        ck_assert_int_eq(c->laws->data.data[i], TRIBO__V1__CONTACT_LAW__CONTACT_LAW_COULOMB);
    }
    TEST_NEAR(up, 9.81, 1e-3);
    ck_assert_uint_eq(a->n_certificates, 0);
    ck_assert_int_eq((int)a->certificate_arrays->residuals->shape[0], 2);
    int64_t steps[2];
    memcpy(steps, a->certificate_arrays->steps->data.data, sizeof steps);
    ck_assert_int_eq((int)steps[1], 1000);
    ck_assert_int_gt(a->time_us, 0);
    tribo__v1__watch_response__free_unpacked(a, NULL);
    td_call_cancel(&call->call);
    test_call_end(call);
    test_server_stop(&t);
}
END_TEST

static Tribo__V1__StepResponse *step_pairs(td_server *s, const char *id, const char *a,
                                           const char *b, tb_status *status, tb_error *error)
{
    Tribo__V1__ContactPair pair = TRIBO__V1__CONTACT_PAIR__INIT, *pairs[1] = {&pair};
    Tribo__V1__StepReturn want = TRIBO__V1__STEP_RETURN__INIT;
    Tribo__V1__StepRequest request = TRIBO__V1__STEP_REQUEST__INIT;
    pair.a = (char *)(uintptr_t)a;
    pair.b = (char *)(uintptr_t)b;
    want.pairs = pairs;
    want.n_pairs = 1;
    request.session_id = (char *)(uintptr_t)id;
    request.want = &want;
    return test_unary(s, "tribo.v1.Simulation/Step", "one", &request, status, error);
}

START_TEST(contacts_of_named_pairs_are_summed)
{
    test_server t;
    char id[33];
    tb_status status;
    tb_error error = {0};
    test_server_init(&t, false);
    test_server_start(&t);
    open_scene(&t.server, 2, id);
    press(&t.server, id, 4, 500);
    /* names of shapes or bodies, either way round; the force is on the second */
    static const char *const PAIRS[][2] = {
        {"floor", "box"}, {"box", "floor"}, {"box", ""}, {"arm", "box"}};
    static const double UP[] = {9.81, -9.81, -9.81, 0};
    for (int i = 0; i < 4; i++) {
        Tribo__V1__StepResponse *a =
            step_pairs(&t.server, id, PAIRS[i][0], PAIRS[i][1], NULL, NULL);
        double row[2][6];
        ck_assert_uint_eq(a->state->pairs->n_shape, 3);
        ck_assert_uint_eq(a->state->pairs->data.len, sizeof row);
        memcpy(row, a->state->pairs->data.data, sizeof row);
        TEST_NEAR(row[1][5], UP[i], 1e-3);
        TEST_NEAR(row[1][2], i < 3 ? 9.81 : 0, 1e-3);
        TEST_NEAR(row[1][0], i < 3 ? 4 : 0, 0);
        ck_assert(i < 3 ? fabs(row[1][1]) < 1e-4 : isinf(row[1][1]));
        tribo__v1__step_response__free_unpacked(a, NULL);
    }
    ck_assert_ptr_null(step_pairs(&t.server, id, "box", "cup", &status, &error));
    ck_assert_int_eq(status, TB_NOT_FOUND);
    ck_assert_str_eq(error.field, "want.pairs[0].b");
    ck_assert_ptr_null(step_pairs(&t.server, id, "", "box", &status, &error));
    ck_assert_int_eq(status, TB_INVALID_ARGUMENT);
    test_server_stop(&t);
}
END_TEST

START_TEST(worlds_that_are_none_are_refused)
{
    test_server t;
    char id[33];
    test_server_init(&t, false);
    test_server_start(&t);
    open_pile(&t.server, "one", 1, 2, id);
    static const int32_t BAD[][2] = {{0, 2}, {-1, 0}, {1, 1}, {1, 0}};
    for (size_t i = 0; i < sizeof BAD / sizeof BAD[0]; i++) {
        test_call *call = test_call_begin(&t.server, "tribo.v1.Simulation/Watch", "one");
        Tribo__V1__WatchRequest r = TRIBO__V1__WATCH_REQUEST__INIT;
        int32_t worlds[2] = {BAD[i][0], BAD[i][1]};
        r.session_id = id;
        r.worlds = worlds;
        r.n_worlds = 2;
        test_call_request(call, &r.base);
        test_call_wait(call, NULL, 0);
        ck_assert_int_eq(call->status, TB_INVALID_ARGUMENT);
        ck_assert_str_eq(call->error.field, "worlds");
        test_call_end(call);
    }
    ck_assert_int_eq(step_session(&t.server, "one", id, 1), TB_OK);
    test_server_stop(&t);
}
END_TEST

TEST_MAIN(a_scene_says_all_that_drawing_it_takes, a_file_comes_back_in_pieces,
          a_watch_carries_poses_and_forces_of_chosen_worlds, contacts_of_named_pairs_are_summed,
          worlds_that_are_none_are_refused)
