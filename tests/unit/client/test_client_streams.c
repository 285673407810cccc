/* The C client's streams against a daemon in this process, in every direction and to every end;
 * and the uploads that are made of them. */
#include <pthread.h>

#include "client/client_util.h"

static const ProtobufCMessageDescriptor *const STEPPED =
    &tribo__v1__step_stream_response__descriptor;

static tbc_stream *open_steps(tbc_client *client, double timeout)
{
    tb_error error = {0};
    tbc_stream *stream = NULL;
    TEST_OK(tbc_stream_open(client, "tribo.v1.Simulation/StepStream", STEPPED, timeout, &stream,
                            &error),
            &error);
    return stream;
}

static tb_status send_step(tbc_stream *stream, char *session, int32_t steps, uint64_t tag,
                           tb_error *error)
{
    Tribo__V1__StepRequest step = TRIBO__V1__STEP_REQUEST__INIT;
    Tribo__V1__StepStreamRequest request = TRIBO__V1__STEP_STREAM_REQUEST__INIT;
    step.session_id = session;
    step.steps = steps;
    request.step = &step;
    request.tag = tag;
    return tbc_stream_send(stream, &request.base, error);
}

/* The next answer's tag; 0 at the end of the stream, or with *status. */
static uint64_t receive_tag(tbc_stream *stream, tb_status *status, tb_error *error)
{
    ProtobufCMessage *message = NULL;
    *status = tbc_stream_receive(stream, &message, error);
    ck_assert(*status == TB_OK || message == NULL);
    const uint64_t tag =
        message != NULL ? ((const Tribo__V1__StepStreamResponse *)(const void *)message)->tag : 0;
    tbc_free(message);
    return tag;
}

typedef struct reader {
    tbc_stream *stream;
    uint64_t last;
    tb_status status;
    tb_error error;
} reader;

static void *read_all(void *context)
{
    reader *r = context;
    for (uint64_t tag; (tag = receive_tag(r->stream, &r->status, &r->error)) != 0;) {
        ck_assert_uint_eq(tag, r->last + 1);
        r->last = tag;
    }
    return NULL;
}

START_TEST(one_thread_sends_while_another_receives)
{
    enum { STEPS = 500 };
    const td_config config = daemon_config();
    td_server *server = daemon_start(&config);
    tbc_client *client = client_of(server);
    tb_error error = {0};
    char session[33];
    create_session(client, session);
    reader r = {.stream = open_steps(client, 0)};
    pthread_t thread;
    ck_assert_int_eq(pthread_create(&thread, NULL, read_all, &r), 0);
    for (int i = 1; i <= STEPS; i++)
        TEST_OK(send_step(r.stream, session, 1, (uint64_t)i, &error), &error);
    TEST_OK(tbc_stream_half_close(r.stream, &error), &error);
    TEST_OK(tbc_stream_half_close(r.stream, &error), &error);
    TEST_STATUS(send_step(r.stream, session, 1, 1, &error), TB_FAILED_PRECONDITION, NULL);
    pthread_join(thread, NULL);
    TEST_OK(r.status, &r.error);
    ck_assert_uint_eq(r.last, STEPS);
    /* an end stays an end */
    tb_status status;
    ck_assert_uint_eq(receive_tag(r.stream, &status, &error), 0);
    TEST_OK(status, &error);
    tbc_stream_close(r.stream);
    tbc_stream_close(NULL);
    tbc_disconnect(client);
    daemon_stop(server);
}
END_TEST

START_TEST(a_refused_message_ends_the_stream_with_its_reason)
{
    const td_config config = daemon_config();
    td_server *server = daemon_start(&config);
    tbc_client *client = client_of(server);
    tb_error error = {0};
    tb_status status = TB_OK;
    char session[33];
    create_session(client, session);
    tbc_stream *stream = open_steps(client, 0);
    TEST_OK(send_step(stream, session, 1, 1, &error), &error);
    ck_assert_uint_eq(receive_tag(stream, &status, &error), 1);
    TEST_OK(send_step(stream, session, -7, 2, &error), &error);
    ck_assert_uint_eq(receive_tag(stream, &status, &error), 0);
    TEST_STATUS(status, TB_INVALID_ARGUMENT, NULL);
    ck_assert_str_eq(error.field, "steps");
    /* sending says that it is over, receiving says why, as often as it is asked */
    TEST_STATUS(send_step(stream, session, 1, 3, &error), TB_UNAVAILABLE, NULL);
    ck_assert_uint_eq(receive_tag(stream, &status, &error), 0);
    TEST_STATUS(status, TB_INVALID_ARGUMENT, NULL);
    tbc_stream_close(stream);
    tbc_disconnect(client);
    daemon_stop(server);
}
END_TEST

START_TEST(another_thread_may_cancel_and_a_deadline_ends_a_stream)
{
    const td_config config = daemon_config();
    td_server *server = daemon_start(&config);
    tbc_client *client = client_of(server);
    tb_error error = {0};
    tb_status status = TB_OK;
    char session[33];
    create_session(client, session);

    /* the reader waits for an answer that will not come */
    reader r = {.stream = open_steps(client, 0)};
    pthread_t thread;
    ck_assert_int_eq(pthread_create(&thread, NULL, read_all, &r), 0);
    TEST_OK(send_step(r.stream, session, 1, 1, &error), &error);
    usleep(100000);
    tbc_stream_cancel(r.stream);
    pthread_join(thread, NULL);
    TEST_STATUS(r.status, TB_CANCELLED, &r.error);
    ck_assert_uint_eq(r.last, 1);
    tbc_stream_cancel(r.stream);
    tbc_stream_close(r.stream);

    tbc_stream *stream = open_steps(client, 0.2);
    TEST_OK(send_step(stream, session, 1, 1, &error), &error);
    ck_assert_uint_eq(receive_tag(stream, &status, &error), 1);
    ck_assert_uint_eq(receive_tag(stream, &status, &error), 0);
    TEST_STATUS(status, TB_DEADLINE_EXCEEDED, &error);
    tbc_stream_close(stream);

    /* closed in the middle, and before anything was said */
    for (int i = 0; i < 20; i++) {
        stream = open_steps(client, 0);
        if (i % 2 == 0) TEST_OK(send_step(stream, session, 1, 1, &error), &error);
        if (i % 4 == 0) ck_assert_uint_eq(receive_tag(stream, &status, &error), 1);
        tbc_stream_close(stream);
    }
    TEST_OK(step_session(client, session, 1, 0, NULL, &error), &error);
    tbc_disconnect(client);
    daemon_stop(server);
}
END_TEST

START_TEST(a_watcher_hears_steps_and_the_end)
{
    const td_config config = daemon_config();
    td_server *server = daemon_start(&config);
    tbc_client *client = client_of(server);
    tb_error error = {0};
    char session[33];
    create_session(client, session);
    tbc_stream *stream = NULL;
    Tribo__V1__WatchRequest request = TRIBO__V1__WATCH_REQUEST__INIT;
    request.session_id = session;
    TEST_OK(tbc_stream_open(client, "tribo.v1.Simulation/Watch",
                            &tribo__v1__watch_response__descriptor, 0, &stream, &error),
            &error);
    TEST_OK(tbc_stream_send(stream, &request.base, &error), &error);
    TEST_OK(tbc_stream_half_close(stream, &error), &error);
    ProtobufCMessage *message = NULL;
    TEST_OK(tbc_stream_receive(stream, &message, &error), &error);
    ck_assert_ptr_nonnull(message);
    tbc_free(message);

    Tribo__V1__DeleteSessionRequest delete = TRIBO__V1__DELETE_SESSION_REQUEST__INIT;
    Tribo__V1__DeleteSessionResponse *deleted = NULL;
    delete.session_id = session;
    TEST_OK(step_session(client, session, 3, 0, NULL, &error), &error);
    TEST_OK(TBC_CALL(client, "tribo.v1.Simulation/DeleteSession", &delete, delete_session_response,
                     &deleted, &error),
            &error);
    tbc_free(deleted);
    int event = 0;
    for (;;) {
        TEST_OK(tbc_stream_receive(stream, &message, &error), &error);
        if (message == NULL) break;
        event = (int)((const Tribo__V1__WatchResponse *)(const void *)message)->event;
        tbc_free(message);
    }
    ck_assert_int_eq(event, TRIBO__V1__SESSION_EVENT__SESSION_EVENT_DELETED);
    tbc_stream_close(stream);
    tbc_disconnect(client);
    daemon_stop(server);
}
END_TEST

/* ---- uploads ---- */

#define TETRAHEDRON "v 0 0 0\nv 0.1 0 0\nv 0 0.1 0\nv 0 0 0.1\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n"

/* Uploads a model with its files; the scene must equal the one that the library makes here. */
static void check_upload(tbc_client *client, const char *path, const char *package_path, int files)
{
    tb_error error = {0};
    tb_model *model = NULL;
    tbc_files list;
    char sha256[65], scene[65];
    tb_import_options options = tb_import_defaults();
    options.package_path = package_path;
    TEST_OK(tb_model_load(path, &options, &model, &error), &error);
    TEST_OK(tbc_upload_model(client, path, package_path, sha256, &list, &error), &error);
    ck_assert_int_eq(list.count, files);
    tbc_files_free(&list);
    TEST_OK(tbc_load_scene(client, path, package_path, scene, &error), &error);
    ck_assert_str_eq(scene, tb_model_sha256(model));
    tb_model_destroy(model);
}

START_TEST(models_are_uploaded_with_all_they_refer_to)
{
    const td_config config = daemon_config();
    td_server *server = daemon_start(&config);
    tbc_client *client = client_of(server);
    tb_error error = {0};
    char folder[] = "/tmp/test_client_XXXXXX", path[600], roots[600], scene[65];
    ck_assert_ptr_nonnull(mkdtemp(folder));
    make_folder(folder, "parts");
    make_folder(folder, "robot");
    make_folder(folder, "robot/urdf");
    make_folder(folder, "robot/meshes");
    make_folder(folder, "elsewhere");
    make_folder(folder, "elsewhere/tool");
    write_text(folder, "parts/corner.obj", TETRAHEDRON);
    write_text(folder, "robot/meshes/link.obj", TETRAHEDRON);
    write_text(folder, "elsewhere/tool/tip.obj", TETRAHEDRON "v 1 1 1\n");

    write_text(folder, "floor.xml",
               "<mujoco><worldbody><geom type='plane' size='1 1 1'/></worldbody></mujoco>");
    write_text(folder, "scene.xml",
               "<mujoco><compiler meshdir='parts'/><include file='floor.xml'/>"
               "<asset><mesh name='corner' file='corner.obj'/></asset><worldbody>"
               "<body pos='0 0 1'><freejoint/><geom type='mesh' mesh='corner'/></body>"
               "<body pos='0 1 1'><freejoint/><geom type='mesh' mesh='corner'/></body>"
               "</worldbody></mujoco>");
    snprintf(path, sizeof path, "%s/scene.xml", folder);
    check_upload(client, path, NULL, 2);

#define LINK(name, address)                                                                        \
    "<link name='" name "'><inertial><mass value='1'/>"                                            \
    "<inertia ixx='1' iyy='1' izz='1' ixy='0' ixz='0' iyz='0'/></inertial>"                        \
    "<collision><geometry><mesh filename='" address "'/></geometry></collision></link>"
    write_text(folder, "robot/urdf/robot.urdf",
               "<robot name='r'>" LINK("a", "package://robot/meshes/link.obj")
                   LINK("b", "package://tool/tip.obj") LINK(
                       "c", "../meshes/link.obj") "<joint name='j' type='fixed'><parent "
                                                  "link='a'/><child link='b'/></joint>"
                                                  "<joint name='k' type='fixed'><parent "
                                                  "link='a'/><child link='c'/></joint></robot>");
    snprintf(path, sizeof path, "%s/robot/urdf/robot.urdf", folder);
    snprintf(roots, sizeof roots, "/nowhere:%s/elsewhere", folder);
    check_upload(client, path, roots, 3);
    /* a root that is the package itself */
    snprintf(roots, sizeof roots, "%s/elsewhere/tool", folder);
    check_upload(client, path, roots, 3);

    /* a mesh alone; from the folder it is in */
    snprintf(path, sizeof path, "%s/parts", folder);
    ck_assert_int_eq(chdir(path), 0);
    check_upload(client, "corner.obj", NULL, 0);
    ck_assert_int_eq(chdir("/"), 0);

    /* missing files are named */
    snprintf(path, sizeof path, "%s/robot/urdf/robot.urdf", folder);
    TEST_STATUS(tbc_load_scene(client, path, NULL, scene, &error), TB_NOT_FOUND, &error);
    ck_assert_ptr_nonnull(strstr(error.message, "tip.obj"));
    snprintf(path, sizeof path, "%s/absent.xml", folder);
    TEST_STATUS(tbc_load_scene(client, path, NULL, scene, &error), TB_NOT_FOUND, &error);
    ck_assert_ptr_nonnull(strstr(error.message, "absent.xml"));
    remove_folder(folder);
    tbc_disconnect(client);
    daemon_stop(server);
}
END_TEST

START_TEST(assets_are_sent_in_pieces_and_refused_when_too_large)
{
    enum { SIZE = 1 << 20 };
    td_config config = daemon_config();
    config.asset_bytes = SIZE;
    td_server *server = daemon_start(&config);
    tbc_client *client = client_of(server);
    tb_error error = {0};
    char sha256[65];
    char *bytes = calloc(1, SIZE + 1);
    ck_assert_ptr_nonnull(bytes);
    TEST_OK(tbc_put_asset(client, "zeros.stl", bytes, SIZE, sha256, &error), &error);
    /* SHA-256 of 2^20 zeros, by sha256sum */
    ck_assert_str_eq(sha256, "30e14955ebf1352266dc2ff8067e68104607e750abb9d3b36582b8af909fcb58");
    TEST_OK(tbc_put_asset(client, "empty.obj", "", 0, sha256, &error), &error);
    ck_assert_str_eq(sha256, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    TEST_STATUS(tbc_put_asset(client, "large.stl", bytes, SIZE + 1, sha256, &error),
                TB_RESOURCE_EXHAUSTED, &error);
    free(bytes);
    tbc_disconnect(client);
    daemon_stop(server);
}
END_TEST

TEST_MAIN(one_thread_sends_while_another_receives,
          a_refused_message_ends_the_stream_with_its_reason,
          another_thread_may_cancel_and_a_deadline_ends_a_stream, a_watcher_hears_steps_and_the_end,
          models_are_uploaded_with_all_they_refer_to,
          assets_are_sent_in_pieces_and_refused_when_too_large)
