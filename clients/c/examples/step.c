/* Steps a model on a daemon and prints where its first body is.
 *
 *     cc step.c $(pkg-config --cflags --libs tribo-client) -o step
 *     ./step 127.0.0.1:7410 scene.xml 1000 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tribo/v1/simulation.pb-c.h>
#include <tribo_client.h>

int main(int argc, char **argv)
{
    tb_error error = {0};
    tbc_client *client = NULL;
    char scene[65];
    Tribo__V1__CreateSessionRequest create = TRIBO__V1__CREATE_SESSION_REQUEST__INIT;
    Tribo__V1__CreateSessionResponse *session = NULL;
    Tribo__V1__StepReturn want = TRIBO__V1__STEP_RETURN__INIT;
    Tribo__V1__StepRequest step = TRIBO__V1__STEP_REQUEST__INIT;
    Tribo__V1__StepResponse *stepped = NULL;

    tbc_options options = tbc_options_defaults();
    if (argc != 4) {
        fprintf(stderr, "usage: %s ADDRESS MODEL STEPS\n", argv[0]);
        return 2;
    }
    options.address = argv[1];
    options.api_key = getenv("TRIBO_API_KEY");
    tb_status status = tbc_connect(&options, &client, &error);

    /* uploads the model and its files to the daemon and opens a session of one world */
    if (status == TB_OK) status = tbc_load_scene(client, argv[2], NULL, scene, &error);
    create.scene_id = scene;
    if (status == TB_OK)
        status = TBC_CALL(client, "tribo.v1.Simulation/CreateSession", &create,
                          create_session_response, &session, &error);

    want.bodies = 1;
    step.want = &want;
    step.steps = atoi(argv[3]);
    if (status == TB_OK) step.session_id = session->session_id;
    if (status == TB_OK)
        status =
            TBC_CALL(client, "tribo.v1.Simulation/Step", &step, step_response, &stepped, &error);

    if (status == TB_OK) {
        /* worlds x bodies x 13; body 0 is the world itself */
        double position[3];
        memcpy(position, stepped->state->bodies->data.data + 13 * sizeof(double), sizeof position);
        printf("%.3f s, body 1 at %.4f %.4f %.4f m, residual below 1e-6: %s\n",
               stepped->state->time, position[0], position[1], position[2],
               stepped->certificates[0]->residual < 1e-6 ? "yes" : "no");
    } else {
        fprintf(stderr, "%s\n", error.message);
    }
    tbc_free(stepped);
    tbc_free(session);
    tbc_disconnect(client);
    return status == TB_OK ? 0 : 1;
}
