/* Shared by the tests of the daemon: a server of real parts around a store in memory, calls
 * without a wire with answers to inspect, and small worlds. */
#ifndef SERVER_UTIL_H
#define SERVER_UTIL_H

#include <pthread.h>
#include <time.h>
#include <unistd.h>

#include "db/db.h"
#include "call/call.h"
#include "session/catalog.h"
#include "session/programs.h"
#include "handlers/handlers.h"
#include "schedule/scheduler.h"
#include "server.h"
#include "session/session.h"
#include "test_util.h"

#include "base/error.h"
#include "call/memory.h"
#include "session/uploads.h"

/* ---- worlds ---- */

/* `boxes` boxes in a pile on a plane, each with a slide actuator if `actuated`. */
static inline tb_model *pile_of_boxes(int boxes, double friction)
{
    tb_error error = {0};
    tb_scene *scene = NULL;
    tb_handle body, none = {0};
    TEST_OK(tb_scene_create(NULL, &scene, &error), &error);
    tb_shape_def plane = tb_shape_defaults();
    plane.type = TB_SHAPE_PLANE;
    plane.surface.friction = friction;
    TEST_OK(tb_scene_add_shape(scene, &plane, NULL, &error), &error);
    for (int i = 0; i < boxes; i++) {
        tb_body_def def = tb_body_defaults();
        def.parent = none;
        def.position[0] = 0.03 * (i % 3);
        def.position[2] = 0.1 + 0.2 * i;
        TEST_OK(tb_scene_add_body(scene, &def, &body, &error), &error);
        tb_joint_def joint = tb_joint_defaults();
        joint.body = body;
        joint.type = TB_JOINT_FREE;
        TEST_OK(tb_scene_add_joint(scene, &joint, NULL, &error), &error);
        tb_shape_def box = tb_shape_defaults();
        box.body = body;
        box.type = TB_SHAPE_BOX;
        box.size[0] = box.size[1] = box.size[2] = 0.1;
        TEST_OK(tb_scene_add_shape(scene, &box, NULL, &error), &error);
    }
    tb_model *model = NULL;
    TEST_OK(tb_scene_compile(scene, &model, &error), &error);
    tb_scene_destroy(scene);
    return model;
}

static inline tb_state *world_of(const tb_model *model, int steps)
{
    tb_error error = {0};
    tb_state *state = NULL;
    tb_stepper *stepper = NULL;
    TEST_OK(tb_state_create(model, &state, &error), &error);
    TEST_OK(tb_stepper_create(NULL, &stepper, &error), &error);
    if (steps > 0) TEST_OK(tb_step(stepper, state, steps, NULL, &error), &error);
    tb_stepper_destroy(stepper);
    return state;
}

/* ---- calls without a wire ---- */

typedef struct test_message {
    uint8_t *bytes;
    size_t size;
} test_message;

enum { TEST_MESSAGES = 4096 };

typedef struct test_call {
    td_call call;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    test_message messages[TEST_MESSAGES];
    int sent, reads;
    bool stalled, finished, destroyed; /* stalled: nothing leaves until test_call_flow */
    tb_status status;
    tb_error error;
    double retry_after;
} test_call;

static inline void test_call_send(td_call *call, const ProtobufCMessage *message)
{
    test_call *t = (test_call *)call;
    pthread_mutex_lock(&t->mutex);
    ck_assert_int_lt(t->sent, TEST_MESSAGES);
    test_message *m = &t->messages[t->sent];
    m->size = protobuf_c_message_get_packed_size(message);
    m->bytes = malloc(m->size + 1);
    protobuf_c_message_pack(message, m->bytes);
    t->sent++;
    if (!t->stalled) atomic_fetch_sub(&call->queued, 1);
    pthread_cond_broadcast(&t->changed);
    pthread_mutex_unlock(&t->mutex);
}

static inline void test_call_finish(td_call *call, tb_status status, const tb_error *error,
                                    double retry_after)
{
    test_call *t = (test_call *)call;
    pthread_mutex_lock(&t->mutex);
    t->finished = true;
    t->status = status;
    if (error != NULL) t->error = *error;
    t->retry_after = retry_after;
    pthread_cond_broadcast(&t->changed);
    pthread_mutex_unlock(&t->mutex);
}

static inline void test_call_read(td_call *call)
{
    test_call *t = (test_call *)call;
    pthread_mutex_lock(&t->mutex);
    t->reads++;
    pthread_cond_broadcast(&t->changed);
    pthread_mutex_unlock(&t->mutex);
}

static inline void test_call_destroy(td_call *call)
{
    test_call *t = (test_call *)call;
    pthread_mutex_lock(&t->mutex);
    t->destroyed = true;
    pthread_cond_broadcast(&t->changed);
    pthread_mutex_unlock(&t->mutex);
}

static const td_call_transport TEST_TRANSPORT = {.name = "test",
                                                 .send = test_call_send,
                                                 .finish = test_call_finish,
                                                 .read = test_call_read,
                                                 .destroy = test_call_destroy};

/* A call of a method by a client; the test holds the transport's reference until _end. */
static inline test_call *test_call_begin(td_server *server, const char *path, const char *client)
{
    test_call *t = calloc(1, sizeof *t);
    ck_assert_ptr_nonnull(t);
    pthread_mutex_init(&t->mutex, NULL);
    pthread_cond_init(&t->changed, NULL);
    td_call_init(&t->call, &TEST_TRANSPORT, server);
    if (path != NULL) {
        t->call.method = td_method_find(path);
        ck_assert_msg(t->call.method != NULL, "no method %s", path);
    }
    snprintf(t->call.caller.name, sizeof t->call.caller.name, "%s", client);
    t->call.caller.scope = TD_SCOPE_RUN;
    return t;
}

/* Waits up to 20 s until an int of the call is at least `least`, or the call has finished. */
static inline void test_call_wait(test_call *t, const int *number, int least)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 20;
    int failed = 0;
    pthread_mutex_lock(&t->mutex);
    while ((number != NULL ? *number < least && !t->finished : !t->finished) && failed == 0)
        failed = pthread_cond_timedwait(&t->changed, &t->mutex, &until);
    pthread_mutex_unlock(&t->mutex);
    ck_assert_msg(failed == 0, "the call did not answer");
}

/* An int of the call as it is now. */
static inline int test_call_number(test_call *t, const int *number)
{
    pthread_mutex_lock(&t->mutex);
    const int value = *number;
    pthread_mutex_unlock(&t->mutex);
    return value;
}

/* Lets a stalled reader go on. */
static inline void test_call_flow(test_call *t)
{
    pthread_mutex_lock(&t->mutex);
    t->stalled = false;
    pthread_mutex_unlock(&t->mutex);
    atomic_store(&t->call.queued, 0);
    if (t->call.method->writable != NULL) t->call.method->writable(&t->call);
}

/* Gives the transport's reference back and waits until the handlers have given back theirs. */
static inline void test_call_end(test_call *t)
{
    td_call_release(&t->call);
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 20;
    int failed = 0;
    pthread_mutex_lock(&t->mutex);
    while (!t->destroyed && failed == 0)
        failed = pthread_cond_timedwait(&t->changed, &t->mutex, &until);
    pthread_mutex_unlock(&t->mutex);
    ck_assert_msg(failed == 0, "somebody still holds the call");
    for (int i = 0; i < t->sent; i++) free(t->messages[i].bytes);
    pthread_mutex_destroy(&t->mutex);
    pthread_cond_destroy(&t->changed);
    free(t);
}

/* Packs a request, unpacks it as a transport would, and dispatches it. */
static inline void test_call_request(test_call *t, const ProtobufCMessage *message)
{
    const size_t size = protobuf_c_message_get_packed_size(message);
    uint8_t *bytes = malloc(size + 1);
    protobuf_c_message_pack(message, bytes);
    td_request *request = NULL;
    tb_error error = {0};
    TEST_OK(td_request_unpack(t->call.server, t->call.method->input, bytes, size, &request, &error),
            &error);
    free(bytes);
    td_call_dispatch(&t->call, request);
}

/* The i-th answer, unpacked; free it by protobuf_c_message_free_unpacked. */
static inline void *test_call_answer(test_call *t, int i)
{
    ck_assert_int_lt(i, t->sent);
    ProtobufCMessage *message = protobuf_c_message_unpack(
        t->call.method->output, NULL, t->messages[i].size, t->messages[i].bytes);
    ck_assert_ptr_nonnull(message);
    return message;
}

/* A unary call from start to end: the answer, or NULL with *status (and *error, may be NULL). */
static inline void *test_unary(td_server *server, const char *path, const char *client,
                               const void *request, tb_status *status, tb_error *error)
{
    test_call *t = test_call_begin(server, path, client);
    test_call_request(t, request);
    test_call_wait(t, NULL, 0);
    void *answer = t->sent > 0 ? test_call_answer(t, 0) : NULL;
    if (status != NULL)
        *status = t->status;
    else
        ck_assert_msg(t->status == TB_OK, "%s: %s", path, t->error.message);
    if (error != NULL) *error = t->error;
    test_call_end(t);
    return answer;
}

static inline void test_sleep(double seconds)
{
    const struct timespec time = {.tv_sec = (time_t)seconds,
                                  .tv_nsec = (long)((seconds - (double)(time_t)seconds) * 1e9)};
    nanosleep(&time, NULL);
}

/* ---- a server without ports ---- */

typedef struct test_server {
    td_config config;
    td_server server;
    char folder[64]; /* of the store; "": in memory */
    char clock[96];  /* file that shifts the server's clock; "": none */
} test_server;

/* Starts the configured parts, over the store in t->folder. */
static inline void test_server_start(test_server *t)
{
    tb_error error = {0};
    td_server *s = &t->server;
    memset(s, 0, sizeof *s);
    s->config = &t->config;
    s->clock = td_clock_make();
    if (t->clock[0] != '\0') s->clock.shift_path = t->clock;
    atomic_init(&s->alive, true);
    atomic_init(&s->ready, true);
    const db_options options = {.folder = t->folder,
                                .queue_length = t->config.store_queue_length,
                                .retain_days = t->config.retain_days,
                                .retain_snapshots_bytes = t->config.retain_snapshots_bytes,
                                .retain_unused_bytes = t->config.retain_unused_bytes,
                                .session_snapshots = t->config.session_snapshots,
                                .session_snapshots_bytes = t->config.session_snapshots_bytes};
    TEST_OK(td_log_create(TB_LOG_ERROR, false, &s->log, &error), &error);
    TEST_OK(td_devices_find(s, &error), &error);
    TEST_OK(td_metrics_create(&s->metrics, &error), &error);
    atomic_init(&s->uploads_end_ns, INT64_MAX);
    TEST_OK(td_workers_create(2, 4096, &s->workers, &error), &error);
    TEST_OK(td_uploads_create(&t->config, &s->uploads, &error), &error);
    TEST_OK(td_memory_create(&s->memory, &error), &error);
    TEST_OK(db_open(&options, &s->db, &error), &error);
    TEST_OK(td_catalog_create(s, &s->catalog, &error), &error);
    TEST_OK(td_devices_start(s, &error), &error);
    TEST_OK(td_arrays_create(s, &s->arrays, &error), &error);
    TEST_OK(td_sessions_create(s, &s->sessions, &error), &error);
    TEST_OK(td_sessions_recover(s->sessions, &error), &error);
}

/* Ends without checkpoints; queued writes reach the store. */
static inline void test_server_stop(test_server *t)
{
    td_server *s = &t->server;
    td_devices_drain(s, 60);
    td_pool_stop(s->uploads);
    td_workers_destroy(s->workers);
    td_pool_destroy(s->uploads);
    td_sessions_destroy(s->sessions);
    td_arrays_destroy(s->arrays);
    td_devices_end(s);
    td_catalog_destroy(s->catalog);
    db_close(s->db);
    td_memory_destroy(s->memory);
    td_metrics_destroy(s->metrics);
    td_log_destroy(s->log);
}

static inline void test_server_remove(test_server *t)
{
    if (t->folder[0] == '\0') return;
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", t->folder);
    ck_assert_int_eq(system(command), 0);
}

/* Defaults with two threads; `stored` gives it a folder of its own. */
static inline void test_server_init(test_server *t, bool stored)
{
    memset(t, 0, sizeof *t);
    t->config = td_config_defaults();
    t->config.threads = 2;
    t->config.checkpoint_seconds = 0;
    if (!stored) return;
    snprintf(t->folder, sizeof t->folder, "/tmp/tribod-test-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(t->folder));
}

/* A jaw of two fingers on slides, MJCF. */
#define TEST_JAW                                                                                   \
    "<mujoco><worldbody><body name='palm'>"                                                        \
    "<body name='left' pos='0 0.05 0'><joint name='left' type='slide' axis='0 -1 0' range='0 "     \
    "0.05'"                                                                                        \
    " damping='20'/><geom type='box' size='0.02 0.005 0.02' pos='0 0.005 0' mass='0.05'/></body>"  \
    "<body name='right' pos='0 -0.05 0'><joint name='right' type='slide' axis='0 1 0'"             \
    " range='0 0.05' damping='20'/><geom type='box' size='0.02 0.005 0.02' pos='0 -0.005 0'"       \
    " mass='0.05'/></body></body></worldbody><actuator>"                                           \
    "<motor name='left' joint='left' ctrlrange='0 10'/>"                                           \
    "<motor name='right' joint='right' ctrlrange='0 10'/></actuator></mujoco>"

#endif
