/* Assets and scenes through their handlers, over a real store. */
#include "server/server_util.h"

#include "tribo/v1/simulation.pb-c.h"

static const char BALL[] = "<mujoco model='ball'><worldbody><geom type='plane' size='1 1 .1'/>"
                           "<body name='b' pos='0 0 1'><freejoint/><geom size='.1'/></body>"
                           "</worldbody></mujoco>";
static const char CUBE_OBJ[] =
    "v 0 0 0\nv 1 0 0\nv 1 1 0\nv 0 1 0\nv 0 0 1\nv 1 0 1\nv 1 1 1\nv 0 1 1\n"
    "f 1 4 3 2\nf 5 6 7 8\nf 1 2 6 5\nf 2 3 7 6\nf 3 4 8 7\nf 4 1 5 8\n";
static const char WITH_MESH[] =
    "<mujoco model='meshed'><asset><mesh name='cube' file='%s'/></asset><worldbody>"
    "<body name='b'><freejoint/><geom type='mesh' mesh='cube'/></body></worldbody></mujoco>";

static char *create_asset(td_server *s, const char *name, const char *text, char sha256[65])
{
    Tribo__V1__CreateAssetRequest request = TRIBO__V1__CREATE_ASSET_REQUEST__INIT;
    request.name = (char *)(uintptr_t)name;
    request.data.data = (uint8_t *)(uintptr_t)text;
    request.data.len = strlen(text);
    Tribo__V1__CreateAssetResponse *answer =
        test_unary(s, "tribo.v1.Simulation/CreateAsset", "one", &request, NULL, NULL);
    ck_assert_uint_eq(answer->size, strlen(text));
    snprintf(sha256, 65, "%s", answer->sha256);
    tribo__v1__create_asset_response__free_unpacked(answer, NULL);
    return sha256;
}

static Tribo__V1__CreateSceneResponse *create_scene(td_server *s,
                                                    Tribo__V1__CreateSceneRequest *request,
                                                    tb_status *status, tb_error *error)
{
    return test_unary(s, "tribo.v1.Simulation/CreateScene", "one", request, status, error);
}

START_TEST(an_asset_has_the_digest_of_its_bytes_and_survives_a_restart)
{
    test_server t;
    char sha256[65];
    test_server_init(&t, true);
    test_server_start(&t);
    create_asset(&t.server, "abc.txt", "abc", sha256);
    ck_assert_str_eq(sha256, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    test_server_stop(&t);

    test_server_start(&t);
    const td_asset *asset = NULL;
    tb_error error = {0};
    TEST_OK(td_catalog_asset(t.server.catalog, sha256, &asset, &error), &error);
    ck_assert_str_eq(asset->name, "abc.txt");
    ck_assert_uint_eq(asset->size, 3);
    ck_assert_mem_eq(asset->bytes, "abc", 3);
    td_asset_release(t.server.catalog, asset);
    ck_assert_int_eq(td_catalog_asset(t.server.catalog, "abc", &asset, &error),
                     TB_INVALID_ARGUMENT);
    sha256[0] = 'c';
    ck_assert_int_eq(td_catalog_asset(t.server.catalog, sha256, &asset, &error), TB_NOT_FOUND);
    ck_assert(strstr(error.message, sha256) != NULL);
    test_server_stop(&t);
    test_server_remove(&t);
}
END_TEST

START_TEST(a_wrong_digest_and_a_file_that_is_too_large_are_refused)
{
    test_server t;
    tb_status status;
    tb_error error = {0};
    test_server_init(&t, false);
    t.config.asset_bytes = 10;
    test_server_start(&t);
    Tribo__V1__CreateAssetRequest request = TRIBO__V1__CREATE_ASSET_REQUEST__INIT;
    char digest[] = "aa7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    request.name = "abc.txt";
    request.data.data = (uint8_t *)(uintptr_t) "abc";
    request.data.len = 3;
    request.sha256 = digest;
    ck_assert_ptr_null(
        test_unary(&t.server, "tribo.v1.Simulation/CreateAsset", "one", &request, &status, &error));
    ck_assert_int_eq(status, TB_INVALID_ARGUMENT);
    ck_assert_str_eq(error.field, "sha256");
    request.sha256 = "";
    request.data.data = (uint8_t *)(uintptr_t) "12345678901";
    request.data.len = 11;
    ck_assert_ptr_null(
        test_unary(&t.server, "tribo.v1.Simulation/CreateAsset", "one", &request, &status, &error));
    ck_assert_int_eq(status, TB_RESOURCE_EXHAUSTED);
    ck_assert_str_eq(error.field, "data");
    test_server_stop(&t);
}
END_TEST

START_TEST(an_upload_in_pieces_is_one_asset)
{
    test_server t;
    test_server_init(&t, false);
    test_server_start(&t);
    test_call *call = test_call_begin(&t.server, "tribo.v1.Simulation/PutAsset", "one");
    for (int i = 0; i < 3; i++) {
        Tribo__V1__PutAssetRequest piece = TRIBO__V1__PUT_ASSET_REQUEST__INIT;
        if (i == 0) piece.name = "abc.txt";
        piece.data.data = (uint8_t *)(uintptr_t) & "abc"[i];
        piece.data.len = 1;
        test_call_request(call, &piece.base);
        ck_assert_int_eq(call->reads, i + 1);
    }
    call->call.method->half_closed(&call->call);
    test_call_wait(call, NULL, 0);
    ck_assert_int_eq(call->status, TB_OK);
    Tribo__V1__PutAssetResponse *answer = test_call_answer(call, 0);
    ck_assert_str_eq(answer->sha256,
                     "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    tribo__v1__put_asset_response__free_unpacked(answer, NULL);
    test_call_end(call);
    test_server_stop(&t);
}
END_TEST

START_TEST(the_same_text_gives_the_same_scene_and_comes_back_from_the_store)
{
    test_server t;
    char id[65];
    tb_error error = {0};
    test_server_init(&t, true);
    test_server_start(&t);
    Tribo__V1__CreateSceneRequest request = TRIBO__V1__CREATE_SCENE_REQUEST__INIT;
    request.main_case = TRIBO__V1__CREATE_SCENE_REQUEST__MAIN_TEXT;
    request.text = (char *)(uintptr_t)BALL;
    for (int i = 0; i < 2; i++) {
        Tribo__V1__CreateSceneResponse *answer = create_scene(&t.server, &request, NULL, NULL);
        if (i == 1) ck_assert_str_eq(answer->scene_id, id);
        snprintf(id, sizeof id, "%s", answer->scene_id);
        ck_assert_int_eq(answer->counts->bodies, 2);
        ck_assert_int_eq(answer->counts->dofs, 6);
        tribo__v1__create_scene_response__free_unpacked(answer, NULL);
    }
    test_server_stop(&t);

    test_server_start(&t);
    const td_scene *scene = NULL;
    tb_budget budget = {.seconds = 60};
    TEST_OK(td_catalog_scene(t.server.catalog, id, &budget, &scene, &error), &error);
    ck_assert_str_eq(tb_model_sha256(scene->model), id);
    td_scene_release(t.server.catalog, scene);

    Tribo__V1__GetSceneRequest get = TRIBO__V1__GET_SCENE_REQUEST__INIT;
    get.scene_id = id;
    Tribo__V1__GetSceneResponse *info =
        test_unary(&t.server, "tribo.v1.Simulation/GetScene", "one", &get, NULL, NULL);
    ck_assert_str_eq(info->name, "ball");
    ck_assert_uint_eq(info->n_bodies, 2);
    ck_assert_str_eq(info->bodies[1]->name, "b");
    ck_assert_str_eq(info->joints[0]->type, "free");
    TEST_NEAR(info->gravity[2], -9.81, 1e-12);
    tribo__v1__get_scene_response__free_unpacked(info, NULL);

    Tribo__V1__ListScenesRequest list = TRIBO__V1__LIST_SCENES_REQUEST__INIT;
    Tribo__V1__ListScenesResponse *scenes =
        test_unary(&t.server, "tribo.v1.Simulation/ListScenes", "one", &list, NULL, NULL);
    ck_assert_uint_eq(scenes->n_scenes, 1);
    ck_assert_str_eq(scenes->scenes[0]->scene_id, id);
    ck_assert_int_eq(scenes->scenes[0]->counts->dofs, 6);
    tribo__v1__list_scenes_response__free_unpacked(scenes, NULL);
    test_server_stop(&t);
    test_server_remove(&t);
}
END_TEST

START_TEST(a_scene_finds_its_meshes_in_the_bundle_and_nowhere_else)
{
    test_server t;
    char mesh[65], text[512];
    tb_status status;
    tb_error error = {0};
    test_server_init(&t, false);
    test_server_start(&t);
    create_asset(&t.server, "cube.obj", CUBE_OBJ, mesh);
    Tribo__V1__SceneFile file = TRIBO__V1__SCENE_FILE__INIT, *files[] = {&file};
    file.sha256 = mesh;
    Tribo__V1__CreateSceneRequest request = TRIBO__V1__CREATE_SCENE_REQUEST__INIT;
    request.main_case = TRIBO__V1__CREATE_SCENE_REQUEST__MAIN_TEXT;
    request.text = text;
    request.files = files;
    request.n_files = 1;
    static const struct {
        const char *main, *refers, *file;
        bool found;
    } cases[] = {{"", "cube.obj", "cube.obj", true},
                 {"robots/hand/hand.xml", "meshes/cube.obj", "meshes/cube.obj", true},
                 {"robots/hand/hand.xml", "meshes/cube.obj", "robots/hand/meshes/cube.obj", true},
                 {"robots/hand/hand.xml", "../cube.obj", "../cube.obj", true},
                 {"robots/hand/hand.xml", "./meshes//cube.obj", "meshes/cube.obj", true},
                 {"", "/etc/passwd", "cube.obj", false},
                 {"", "other.obj", "cube.obj", false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        snprintf(text, sizeof text, WITH_MESH, cases[i].refers);
        request.path = (char *)(uintptr_t)cases[i].main;
        file.path = (char *)(uintptr_t)cases[i].file;
        Tribo__V1__CreateSceneResponse *answer = create_scene(&t.server, &request, &status, &error);
        ck_assert_msg((status == TB_OK) == cases[i].found, "case %zu: %s", i, error.message);
        if (answer == NULL) continue;
        TEST_NEAR(answer->total_mass, 1000, 1e-6);
        tribo__v1__create_scene_response__free_unpacked(answer, NULL);
    }
    test_server_stop(&t);
}
END_TEST

START_TEST(a_mesh_file_is_one_free_body_of_the_asked_density)
{
    test_server t;
    char mesh[65];
    test_server_init(&t, false);
    test_server_start(&t);
    create_asset(&t.server, "cube.obj", CUBE_OBJ, mesh);
    Tribo__V1__CreateSceneRequest request = TRIBO__V1__CREATE_SCENE_REQUEST__INIT;
    request.main_case = TRIBO__V1__CREATE_SCENE_REQUEST__MAIN_SHA256;
    request.sha256 = mesh;
    request.density = 500;
    Tribo__V1__CreateSceneResponse *answer = create_scene(&t.server, &request, NULL, NULL);
    TEST_NEAR(answer->total_mass, 500, 1e-6);
    ck_assert_int_eq(answer->counts->dofs, 6);
    tribo__v1__create_scene_response__free_unpacked(answer, NULL);
    test_server_stop(&t);
}
END_TEST

START_TEST(a_broken_scene_says_what_is_wrong)
{
    test_server t;
    tb_status status;
    tb_error error = {0};
    test_server_init(&t, false);
    test_server_start(&t);
    Tribo__V1__CreateSceneRequest request = TRIBO__V1__CREATE_SCENE_REQUEST__INIT;
    ck_assert_ptr_null(create_scene(&t.server, &request, &status, &error));
    ck_assert_int_eq(status, TB_INVALID_ARGUMENT);
    ck_assert_str_eq(error.field, "main");
    request.main_case = TRIBO__V1__CREATE_SCENE_REQUEST__MAIN_TEXT;
    request.text = "<mujoco><worldbody><body><geom size='-1'/></body></worldbody></mujoco>";
    ck_assert_ptr_null(create_scene(&t.server, &request, &status, &error));
    ck_assert_int_ne(status, TB_OK);
    request.text = (char *)(uintptr_t)BALL;
    request.density = -1;
    ck_assert_ptr_null(create_scene(&t.server, &request, &status, &error));
    ck_assert_str_eq(error.field, "density");
    request.density = 0;
    request.main_case = TRIBO__V1__CREATE_SCENE_REQUEST__MAIN_SHA256;
    request.sha256 = "123";
    ck_assert_ptr_null(create_scene(&t.server, &request, &status, &error));
    ck_assert_int_eq(status, TB_INVALID_ARGUMENT);
    test_server_stop(&t);
}
END_TEST

START_TEST(lists_come_in_pages)
{
    test_server t;
    char sha256[65], text[32];
    test_server_init(&t, false);
    test_server_start(&t);
    for (int i = 0; i < 5; i++) {
        snprintf(text, sizeof text, "file %d", i);
        create_asset(&t.server, text, text, sha256);
    }
    Tribo__V1__ListAssetsRequest request = TRIBO__V1__LIST_ASSETS_REQUEST__INIT;
    char token[64] = "";
    int seen = 0;
    request.page_size = 2;
    do {
        request.page_token = token;
        Tribo__V1__ListAssetsResponse *page =
            test_unary(&t.server, "tribo.v1.Simulation/ListAssets", "one", &request, NULL, NULL);
        for (size_t i = 0; i < page->n_assets; i++) {
            snprintf(text, sizeof text, "file %d", 4 - seen++);
            ck_assert_str_eq(page->assets[i]->name, text);
        }
        snprintf(token, sizeof token, "%s", page->next_page_token);
        tribo__v1__list_assets_response__free_unpacked(page, NULL);
    } while (token[0] != '\0');
    ck_assert_int_eq(seen, 5);
    test_server_stop(&t);
}
END_TEST

static void shift_clock(test_server *t, int64_t seconds)
{
    FILE *file = fopen(t->clock, "w");
    ck_assert_ptr_nonnull(file);
    fprintf(file, "%lld\n", (long long)seconds);
    fclose(file);
}

START_TEST(what_retention_took_while_it_was_in_memory_is_stored_again_by_its_use)
{
    static const int64_t DAY_US = INT64_C(86400000000);
    test_server t;
    tb_error error = {0};
    tb_status status;
    char id[65], mesh[65];
    test_server_init(&t, true);
    snprintf(t.clock, sizeof t.clock, "%s/clock", t.folder);
    shift_clock(&t, 0);
    test_server_start(&t);
    Tribo__V1__CreateSceneRequest request = TRIBO__V1__CREATE_SCENE_REQUEST__INIT;
    request.main_case = TRIBO__V1__CREATE_SCENE_REQUEST__MAIN_TEXT;
    request.text = (char *)(uintptr_t)BALL;
    Tribo__V1__CreateSceneResponse *answer = create_scene(&t.server, &request, NULL, NULL);
    snprintf(id, sizeof id, "%s", answer->scene_id);
    tribo__v1__create_scene_response__free_unpacked(answer, NULL);
    create_asset(&t.server, "cube.obj", CUBE_OBJ, mesh);

    /* unused for a year: the store deletes them, memory does not know */
    const td_clock clock = td_clock_make();
    db_sha256 digest, mesh_digest;
    db_scene scene_row;
    db_asset asset_row;
    unsigned char *bytes = NULL;
    td_sha256_parse(id, &digest);
    td_sha256_parse(mesh, &mesh_digest);
    TEST_OK(db_retain(t.server.db, td_clock_utc_us(&clock) + 365 * DAY_US, &error), &error);
    TEST_STATUS(db_get_scene(t.server.db, &digest, &scene_row, &bytes, &error), TB_NOT_FOUND,
                &error);
    shift_clock(&t, 3600);

    Tribo__V1__CreateSessionRequest create = TRIBO__V1__CREATE_SESSION_REQUEST__INIT;
    create.scene_id = id;
    Tribo__V1__CreateSessionResponse *session =
        test_unary(&t.server, "tribo.v1.Simulation/CreateSession", "one", &create, &status, &error);
    TEST_OK(status, &error);
    tribo__v1__create_session_response__free_unpacked(session, NULL);
    const td_asset *asset = NULL;
    TEST_OK(td_catalog_asset(t.server.catalog, mesh, &asset, &error), &error);
    td_asset_release(t.server.catalog, asset);
    TEST_OK(db_flush(t.server.db, &error), &error);
    TEST_OK(db_get_scene(t.server.db, &digest, &scene_row, &bytes, &error), &error);
    free(bytes);
    TEST_OK(db_get_asset(t.server.db, &mesh_digest, &asset_row, &bytes, &error), &error);
    ck_assert_str_eq(asset_row.name, "cube.obj");
    free(bytes);
    test_server_stop(&t);
    test_server_remove(&t);
}
END_TEST

TEST_MAIN(what_retention_took_while_it_was_in_memory_is_stored_again_by_its_use,
          an_asset_has_the_digest_of_its_bytes_and_survives_a_restart,
          a_wrong_digest_and_a_file_that_is_too_large_are_refused, an_upload_in_pieces_is_one_asset,
          the_same_text_gives_the_same_scene_and_comes_back_from_the_store,
          a_scene_finds_its_meshes_in_the_bundle_and_nowhere_else,
          a_mesh_file_is_one_free_body_of_the_asked_density, a_broken_scene_says_what_is_wrong,
          lists_come_in_pages)
