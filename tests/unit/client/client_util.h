/* Shared by the tests of the C client: a whole daemon in this process, and files on disk. */
#ifndef CLIENT_UTIL_H
#define CLIENT_UTIL_H

#include <sys/stat.h>
#include <unistd.h>

#include "server.h"
#include "test_util.h"
#include "tribo/v1/grasp.pb-c.h"
#include "tribo/v1/simulation.pb-c.h"
#include "tribo_client.h"

#define BALL                                                                                       \
    "<mujoco model=\"ball\"><worldbody><geom type=\"plane\" size=\"1 1 0.1\"/>"                    \
    "<body name=\"ball\" pos=\"0 0 0.1\"><freejoint/>"                                             \
    "<geom type=\"sphere\" size=\"0.1\" mass=\"1\"/></body></worldbody></mujoco>"

static inline td_config daemon_config(void)
{
    td_config config = td_config_defaults();
    snprintf(config.grpc_address, sizeof config.grpc_address, "127.0.0.1:0");
    config.http_address[0] = '\0';
    config.data[0] = '\0';
    config.threads = 1;
    config.warm_up_seconds = 0;
    config.drain_seconds = 10;
    config.log_level = TB_LOG_ERROR;
    return config;
}

static inline td_server *daemon_start(const td_config *config)
{
    tb_error error = {0};
    td_server *server = NULL;
    TEST_OK(td_server_create(config, &server, &error), &error);
    TEST_OK(td_server_start(server, &error), &error);
    return server;
}

/* All calls must have ended: a stream left open by a client would show here. */
static inline void daemon_stop(td_server *server)
{
    ck_assert(td_server_drain(server));
    td_server_destroy(server);
}

static inline tbc_client *client_of(const td_server *server)
{
    tb_error error = {0};
    tbc_client *client = NULL;
    tbc_options options = tbc_options_defaults();
    options.address = td_server_grpc_address(server);
    options.timeout = 30;
    TEST_OK(tbc_connect(&options, &client, &error), &error);
    return client;
}

static inline tb_status create_scene(tbc_client *client, const char *text, char scene[65],
                                     tb_error *error)
{
    Tribo__V1__CreateSceneRequest request = TRIBO__V1__CREATE_SCENE_REQUEST__INIT;
    Tribo__V1__CreateSceneResponse *answer = NULL;
    char path[] = "ball.xml";
    request.main_case = TRIBO__V1__CREATE_SCENE_REQUEST__MAIN_TEXT;
    request.text = (char *)(uintptr_t)text;
    request.path = path;
    const tb_status status = TBC_CALL(client, "tribo.v1.Simulation/CreateScene", &request,
                                      create_scene_response, &answer, error);
    ck_assert((answer != NULL) == (status == TB_OK));
    if (answer != NULL) snprintf(scene, 65, "%s", answer->scene_id);
    tbc_free(answer);
    return status;
}

static inline void create_session(tbc_client *client, char session[33])
{
    Tribo__V1__CreateSessionRequest request = TRIBO__V1__CREATE_SESSION_REQUEST__INIT;
    Tribo__V1__CreateSessionResponse *answer = NULL;
    tb_error error = {0};
    char scene[65];
    TEST_OK(create_scene(client, BALL, scene, &error), &error);
    request.scene_id = scene;
    TEST_OK(TBC_CALL(client, "tribo.v1.Simulation/CreateSession", &request, create_session_response,
                     &answer, &error),
            &error);
    snprintf(session, 33, "%s", answer->session_id);
    tbc_free(answer);
}

static inline tb_status step_session(tbc_client *client, char *session, int32_t steps,
                                     double timeout, int64_t *done, tb_error *error)
{
    Tribo__V1__StepRequest request = TRIBO__V1__STEP_REQUEST__INIT;
    ProtobufCMessage *answer = NULL;
    request.session_id = session;
    request.steps = steps;
    const tb_status status =
        tbc_call(client, "tribo.v1.Simulation/Step", &request.base,
                 &tribo__v1__step_response__descriptor, timeout, &answer, error);
    if (status == TB_OK && done != NULL)
        *done = ((const Tribo__V1__StepResponse *)(const void *)answer)->state->steps;
    tbc_free(answer);
    return status;
}

/* ---- files ---- */

static inline void write_text(const char *folder, const char *name, const char *text)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_ge(fputs(text, file), 0);
    ck_assert_int_eq(fclose(file), 0);
}

static inline void make_folder(const char *folder, const char *name)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    ck_assert_int_eq(mkdir(path, 0700), 0);
}

static inline void remove_folder(const char *folder)
{
    char command[600];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    ck_assert_int_eq(system(command), 0);
}

#endif
