/* Cost of the wire: a streamed step and a unary step of one body's session over loopback beside a
 * raw TCP echo of as many bytes, a call that computes nothing, and the same step without a server,
 * in alternating rounds of one run; 64 callers at once; messages of a server stream; memory and
 * start of the daemon; the first answer for an unknown object.
 *
 * Goals: streamed step <= echo + 20 us + physics; idle < 40 MB; first answer < 1 s. */
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common_daemon.h"
#include "tribo/v1/simulation.pb-c.h"
#include "tribo_client.h"

enum { ROUNDS = 15, CALLS = 1000, CALLERS = 64, ECHO_BYTES = 160 };

static const char MODEL[] = "<mujoco model=\"ball\"><worldbody>"
                            "<geom type=\"plane\" size=\"1 1 0.1\"/>"
                            "<body pos=\"0 0 0.1\"><freejoint/>"
                            "<geom type=\"sphere\" size=\"0.1\" mass=\"1\"/></body>"
                            "</worldbody></mujoco>";

/* ---- the echo ---- */

static void *echo(void *context)
{
    char bytes[ECHO_BYTES];
    const int socket = *(int *)context, one = 1;
    const int peer = accept(socket, NULL, NULL);
    setsockopt(peer, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    for (;;) {
        ssize_t size = recv(peer, bytes, sizeof bytes, MSG_WAITALL);
        if (size != (ssize_t)sizeof bytes) break;
        if (send(peer, bytes, sizeof bytes, 0) != size) break;
    }
    close(peer);
    return NULL;
}

static int connect_echo(int *listener, pthread_t *thread)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t size = sizeof address;
    const int one = 1;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    *listener = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(*listener, (struct sockaddr *)&address, sizeof address) != 0 ||
        listen(*listener, 1) != 0 ||
        getsockname(*listener, (struct sockaddr *)&address, &size) != 0 ||
        pthread_create(thread, NULL, echo, listener) != 0)
        exit(1);
    const int client = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(client, (struct sockaddr *)&address, sizeof address) != 0) exit(1);
    setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    return client;
}

static double time_echo(int client)
{
    char bytes[ECHO_BYTES] = {0};
    const double begun = bench_now();
    for (int i = 0; i < CALLS; i++)
        if (send(client, bytes, sizeof bytes, 0) != sizeof bytes ||
            recv(client, bytes, sizeof bytes, MSG_WAITALL) != sizeof bytes)
            exit(1);
    return (bench_now() - begun) / CALLS;
}

/* ---- calls ---- */

static void make_session(tbc_client *client, const char *text, char session[33])
{
    tb_error error;
    Tribo__V1__CreateSceneRequest scene = TRIBO__V1__CREATE_SCENE_REQUEST__INIT;
    Tribo__V1__CreateSceneResponse *made = NULL;
    Tribo__V1__CreateSessionRequest request = TRIBO__V1__CREATE_SESSION_REQUEST__INIT;
    Tribo__V1__CreateSessionResponse *answer = NULL;
    char path[] = "ball.xml";
    scene.main_case = TRIBO__V1__CREATE_SCENE_REQUEST__MAIN_TEXT;
    scene.text = (char *)(uintptr_t)text;
    scene.path = path;
    bench_check(TBC_CALL(client, "tribo.v1.Simulation/CreateScene", &scene, create_scene_response,
                         &made, &error),
                &error);
    request.scene_id = made->scene_id;
    bench_check(TBC_CALL(client, "tribo.v1.Simulation/CreateSession", &request,
                         create_session_response, &answer, &error),
                &error);
    snprintf(session, 33, "%s", answer->session_id);
    tbc_free(made);
    tbc_free(answer);
}

static void call_step(tbc_client *client, char *session, bool state)
{
    tb_error error;
    Tribo__V1__StepReturn want = TRIBO__V1__STEP_RETURN__INIT;
    Tribo__V1__StepRequest request = TRIBO__V1__STEP_REQUEST__INIT;
    Tribo__V1__StepResponse *answer = NULL;
    want.state = state;
    request.session_id = session;
    request.want = &want;
    bench_check(
        TBC_CALL(client, "tribo.v1.Simulation/Step", &request, step_response, &answer, &error),
        &error);
    tbc_free(answer);
}

/* A call that computes nothing: the cost of gRPC itself, both ways. */
static double time_heartbeat(tbc_client *client, char *session)
{
    tb_error error;
    Tribo__V1__HeartbeatRequest request = TRIBO__V1__HEARTBEAT_REQUEST__INIT;
    request.session_id = session;
    const double begun = bench_now();
    for (int i = 0; i < CALLS; i++) {
        Tribo__V1__HeartbeatResponse *answer = NULL;
        bench_check(TBC_CALL(client, "tribo.v1.Simulation/Heartbeat", &request, heartbeat_response,
                             &answer, &error),
                    &error);
        tbc_free(answer);
    }
    return (bench_now() - begun) / CALLS;
}

static double time_unary(tbc_client *client, char *session)
{
    const double begun = bench_now();
    for (int i = 0; i < CALLS; i++) call_step(client, session, true);
    return (bench_now() - begun) / CALLS;
}

static double time_stream(tbc_client *client, char *session)
{
    tb_error error;
    tbc_stream *stream = NULL;
    Tribo__V1__StepReturn want = TRIBO__V1__STEP_RETURN__INIT;
    Tribo__V1__StepRequest step = TRIBO__V1__STEP_REQUEST__INIT;
    Tribo__V1__StepStreamRequest request = TRIBO__V1__STEP_STREAM_REQUEST__INIT;
    want.state = true;
    step.session_id = session;
    step.want = &want;
    request.step = &step;
    bench_check(tbc_stream_open(client, "tribo.v1.Simulation/StepStream",
                                &tribo__v1__step_stream_response__descriptor, 0, &stream, &error),
                &error);
    double begun = 0;
    for (int i = -1; i < CALLS; i++) {
        ProtobufCMessage *answer = NULL;
        if (i == 0) begun = bench_now(); /* the first opens the stream */
        bench_check(tbc_stream_send(stream, &request.base, &error), &error);
        bench_check(tbc_stream_receive(stream, &answer, &error), &error);
        tbc_free(answer);
    }
    const double seconds = (bench_now() - begun) / CALLS;
    tbc_stream_close(stream);
    return seconds;
}

/* Sends as many steps ahead as answers allow: throughput of a stream. */
static double stream_messages(tbc_client *client, char *session)
{
    enum { WINDOW = 32 };
    tb_error error;
    tbc_stream *stream = NULL;
    Tribo__V1__StepRequest step = TRIBO__V1__STEP_REQUEST__INIT;
    Tribo__V1__StepStreamRequest request = TRIBO__V1__STEP_STREAM_REQUEST__INIT;
    step.session_id = session;
    request.step = &step;
    bench_check(tbc_stream_open(client, "tribo.v1.Simulation/StepStream",
                                &tribo__v1__step_stream_response__descriptor, 0, &stream, &error),
                &error);
    const double begun = bench_now();
    for (int sent = 0, received = 0; received < CALLS;) {
        while (sent < CALLS && sent - received < WINDOW) {
            bench_check(tbc_stream_send(stream, &request.base, &error), &error);
            sent++;
        }
        ProtobufCMessage *answer = NULL;
        bench_check(tbc_stream_receive(stream, &answer, &error), &error);
        tbc_free(answer);
        received++;
    }
    const double seconds = bench_now() - begun;
    tbc_stream_close(stream);
    return CALLS / seconds;
}

/* Messages that reach a watcher of a session which is stepped as fast as it goes. */
typedef struct watcher {
    tbc_client *client;
    char *session;
    atomic_bool ready;
    long messages;
} watcher;

static void *watch(void *context)
{
    watcher *w = context;
    tb_error error;
    tbc_stream *stream = NULL;
    Tribo__V1__StepReturn want = TRIBO__V1__STEP_RETURN__INIT;
    Tribo__V1__WatchRequest request = TRIBO__V1__WATCH_REQUEST__INIT;
    want.state = true;
    request.session_id = w->session;
    request.want = &want;
    request.minimum_interval = 1e-9;
    bench_check(tbc_stream_open(w->client, "tribo.v1.Simulation/Watch",
                                &tribo__v1__watch_response__descriptor, 0, &stream, &error),
                &error);
    bench_check(tbc_stream_send(stream, &request.base, &error), &error);
    for (;;) {
        ProtobufCMessage *message = NULL;
        /* ends with the session */
        if (tbc_stream_receive(stream, &message, &error) != TB_OK || message == NULL) break;
        tbc_free(message);
        w->messages++;
        atomic_store(&w->ready, true);
    }
    tbc_stream_close(stream);
    return NULL;
}

static double watch_messages(tbc_client *client, const char *address)
{
    tb_error error;
    tbc_options options = tbc_options_defaults();
    options.address = address;
    char session[33];
    watcher w = {.session = session};
    pthread_t thread;
    make_session(client, MODEL, session);
    bench_check(tbc_connect(&options, &w.client, &error), &error);
    if (pthread_create(&thread, NULL, watch, &w) != 0) exit(1);
    while (!atomic_load(&w.ready)) usleep(1000);
    const double begun = bench_now();
    stream_messages(client, session);
    const double seconds = bench_now() - begun;
    Tribo__V1__DeleteSessionRequest request = TRIBO__V1__DELETE_SESSION_REQUEST__INIT;
    Tribo__V1__DeleteSessionResponse *answer = NULL;
    request.session_id = session;
    bench_check(TBC_CALL(client, "tribo.v1.Simulation/DeleteSession", &request,
                         delete_session_response, &answer, &error),
                &error);
    tbc_free(answer);
    pthread_join(thread, NULL);
    tbc_disconnect(w.client);
    return (double)w.messages / seconds;
}

static double time_physics(tb_stepper *stepper, tb_state *state)
{
    tb_error error;
    tb_certificate certificate;
    const double begun = bench_now();
    for (int i = 0; i < CALLS; i++)
        bench_check(tb_step(stepper, state, 1, &certificate, &error), &error);
    return (bench_now() - begun) / CALLS;
}

/* ---- many callers ---- */

typedef struct caller {
    tbc_client *client;
    char session[33];
    pthread_t thread;
} caller;

static atomic_long calls_done;

static void *call_often(void *context)
{
    caller *c = context;
    for (int i = 0; i < CALLS / 10; i++) {
        call_step(c->client, c->session, false);
        atomic_fetch_add(&calls_done, 1);
    }
    return NULL;
}

static double throughput(const char *address)
{
    static caller callers[CALLERS];
    tb_error error;
    tbc_options options = tbc_options_defaults();
    options.address = address;
    tbc_client *client = NULL;
    bench_check(tbc_connect(&options, &client, &error), &error);
    for (int i = 0; i < CALLERS; i++) {
        callers[i].client = client;
        make_session(client, MODEL, callers[i].session);
    }
    atomic_store(&calls_done, 0);
    const double begun = bench_now();
    for (int i = 0; i < CALLERS; i++)
        if (pthread_create(&callers[i].thread, NULL, call_often, &callers[i]) != 0) exit(1);
    for (int i = 0; i < CALLERS; i++) pthread_join(callers[i].thread, NULL);
    const double rate = (double)atomic_load(&calls_done) / (bench_now() - begun);
    tbc_disconnect(client);
    return rate;
}

int main(void)
{
    static bench_figure start = {.name = "daemon start to ready", .unit = "s"},
                        idle = {.name = "daemon idle memory", .unit = "B"},
                        first = {.name = "start to first answer, unseen object", .unit = "s"},
                        tcp = {.name = "TCP echo round trip", .unit = "s"},
                        physics = {.name = "the step alone", .unit = "s"},
                        stream = {.name = "streamed step round trip", .unit = "s"},
                        unary = {.name = "unary step round trip", .unit = "s"},
                        over = {.name = "streamed step less echo and step", .unit = "s"},
                        empty = {.name = "unary call that computes nothing", .unit = "s"},
                        watched = {.name = "states to a watcher", .unit = "messages/s"},
                        messages = {.name = "stream, 32 on the way", .unit = "messages/s"},
                        many = {.name = "64 callers, unary steps", .unit = "calls/s"};
    tb_error error;
    bench_daemon daemon;
    for (int i = 0; i < 5; i++) {
        /* an object that this process and its store have never seen: its size is new */
        char text[512], session[33];
        snprintf(text, sizeof text,
                 "<mujoco><worldbody><geom type=\"plane\" size=\"1 1 1\"/><body pos=\"0 0 1\">"
                 "<freejoint/><geom type=\"ellipsoid\" size=\"0.1 0.2 0.%d\" mass=\"1\"/></body>"
                 "</worldbody></mujoco>",
                 i + 1);
        const double begun = bench_now();
        bench_daemon_start(&daemon);
        tbc_options options = tbc_options_defaults();
        options.address = daemon.grpc;
        tbc_client *client = NULL;
        bench_check(tbc_connect(&options, &client, &error), &error);
        make_session(client, text, session);
        call_step(client, session, true);
        bench_add(&first, bench_now() - begun);
        bench_add(&start, daemon.start_seconds);
        tbc_disconnect(client);
        bench_daemon_stop(&daemon);
    }

    bench_daemon_start(&daemon);
    bench_add(&idle, bench_daemon_memory(&daemon));
    tbc_options options = tbc_options_defaults();
    options.address = daemon.grpc;
    tbc_client *client = NULL;
    char session[33];
    bench_check(tbc_connect(&options, &client, &error), &error);
    make_session(client, MODEL, session);

    tb_scene *scene = NULL;
    tb_model *model = NULL;
    tb_state *state = NULL;
    tb_stepper *stepper = NULL;
    const tb_step_options step = tb_step_defaults();
    bench_check(tb_scene_load_mjcf(MODEL, strlen(MODEL), "ball.xml", NULL, &scene, &error), &error);
    bench_check(tb_scene_compile(scene, &model, &error), &error);
    bench_check(tb_state_create(model, &state, &error), &error);
    bench_check(tb_stepper_create(&step, &stepper, &error), &error);

    int listener;
    pthread_t echoing;
    const int echo_client = connect_echo(&listener, &echoing);
    for (int i = 0; i < ROUNDS; i++) {
        const double t = time_echo(echo_client), p = time_physics(stepper, state);
        const double s = time_stream(client, session);
        bench_add(&tcp, t);
        bench_add(&physics, p);
        bench_add(&stream, s);
        bench_add(&over, s - t - p);
        bench_add(&unary, time_unary(client, session));
        bench_add(&empty, time_heartbeat(client, session));
        bench_add(&messages, stream_messages(client, session));
        bench_add(&watched, watch_messages(client, daemon.grpc));
    }
    close(echo_client);
    pthread_join(echoing, NULL);
    close(listener);
    for (int i = 0; i < 5; i++) bench_add(&many, throughput(daemon.grpc));

    bench_figure *all[] = {&start, &idle,   &first, &tcp,      &physics, &empty,
                           &unary, &stream, &over,  &messages, &watched, &many};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) bench_print(all[i]);
    tb_stepper_destroy(stepper);
    tb_state_destroy(state);
    tb_model_destroy(model);
    tb_scene_destroy(scene);
    tbc_disconnect(client);
    bench_daemon_stop(&daemon);
    return 0;
}
