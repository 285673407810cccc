/* Sessions in few lines, for the tests of the handlers around them. Any failure ends the test. */
#ifndef SESSION_UTIL_H
#define SESSION_UTIL_H

#include "server/server_util.h"

#include "tribo/v1/simulation.pb-c.h"

/* A pile of boxes in the catalog. */
static inline void add_pile(td_server *s, int boxes, char id[65])
{
    const td_scene *scene = NULL;
    tb_error error = {0};
    TEST_OK(td_catalog_add_scene(s->catalog, pile_of_boxes(boxes, 0.5), &scene, &error), &error);
    snprintf(id, 65, "%s", scene->id);
    td_scene_release(s->catalog, scene);
}

static inline tb_status open_session(td_server *s, const char *client,
                                     Tribo__V1__CreateSessionRequest *request, char id[33],
                                     tb_error *error)
{
    tb_status status;
    Tribo__V1__CreateSessionResponse *answer =
        test_unary(s, "tribo.v1.Simulation/CreateSession", client, request, &status, error);
    if (answer != NULL) {
        snprintf(id, 33, "%s", answer->session_id);
        ck_assert_int_gt(answer->expire_time_us, 0);
        tribo__v1__create_session_response__free_unpacked(answer, NULL);
    }
    return status;
}

/* `worlds` piles of `boxes` boxes. */
static inline void open_pile(td_server *s, const char *client, int boxes, int worlds, char id[33])
{
    char scene[65];
    tb_error error = {0};
    add_pile(s, boxes, scene);
    Tribo__V1__CreateSessionRequest request = TRIBO__V1__CREATE_SESSION_REQUEST__INIT;
    request.scene_id = scene;
    request.worlds = worlds;
    TEST_OK(open_session(s, client, &request, id, &error), &error);
}

static inline tb_status step_session(td_server *s, const char *client, const char *id, int steps)
{
    tb_status status;
    Tribo__V1__StepRequest request = TRIBO__V1__STEP_REQUEST__INIT;
    request.session_id = (char *)(uintptr_t)id;
    request.steps = steps;
    Tribo__V1__StepResponse *answer =
        test_unary(s, "tribo.v1.Simulation/Step", client, &request, &status, NULL);
    if (answer != NULL) tribo__v1__step_response__free_unpacked(answer, NULL);
    return status;
}

/* The SHA-256 of a session's worlds: equal for equal bytes. */
static inline void digest_of(td_server *s, const char *client, const char *id, char sha256[65])
{
    Tribo__V1__SnapshotRequest request = TRIBO__V1__SNAPSHOT_REQUEST__INIT;
    request.session_id = (char *)(uintptr_t)id;
    request.transient = true;
    Tribo__V1__SnapshotResponse *answer =
        test_unary(s, "tribo.v1.Simulation/Snapshot", client, &request, NULL, NULL);
    snprintf(sha256, 65, "%s", answer->sha256);
    tribo__v1__snapshot_response__free_unpacked(answer, NULL);
}

static inline void snapshot_session(td_server *s, const char *client, const char *id,
                                    char snapshot[33])
{
    Tribo__V1__SnapshotRequest request = TRIBO__V1__SNAPSHOT_REQUEST__INIT;
    request.session_id = (char *)(uintptr_t)id;
    request.label = "kept";
    Tribo__V1__SnapshotResponse *answer =
        test_unary(s, "tribo.v1.Simulation/Snapshot", client, &request, NULL, NULL);
    snprintf(snapshot, 33, "%s", answer->snapshot_id);
    tribo__v1__snapshot_response__free_unpacked(answer, NULL);
}

static inline tb_status restore_session(td_server *s, const char *client, const char *id,
                                        const char *snapshot, tb_error *error)
{
    tb_status status;
    Tribo__V1__RestoreRequest request = TRIBO__V1__RESTORE_REQUEST__INIT;
    request.session_id = (char *)(uintptr_t)id;
    request.snapshot_id = (char *)(uintptr_t)snapshot;
    Tribo__V1__RestoreResponse *answer =
        test_unary(s, "tribo.v1.Simulation/Restore", client, &request, &status, error);
    if (answer != NULL) tribo__v1__restore_response__free_unpacked(answer, NULL);
    return status;
}

static inline tb_status delete_session(td_server *s, const char *client, td_scope scope,
                                       const char *id)
{
    Tribo__V1__DeleteSessionRequest request = TRIBO__V1__DELETE_SESSION_REQUEST__INIT;
    request.session_id = (char *)(uintptr_t)id;
    test_call *call = test_call_begin(s, "tribo.v1.Simulation/DeleteSession", client);
    call->call.caller.scope = scope;
    test_call_request(call, &request.base);
    test_call_wait(call, NULL, 0);
    const tb_status status = call->status;
    test_call_end(call);
    return status;
}

/* Moves the server's clock; the reaper looks at it five times a second. */
static inline void shift_clock(test_server *t, double seconds)
{
    FILE *file = fopen(t->clock, "w");
    ck_assert_ptr_nonnull(file);
    fprintf(file, "%.6f\n", seconds);
    fclose(file);
}

#endif
