/* Sessions through their handlers: owners, leases, quotas, snapshots, forks, and recovery from
 * the store. */
#include "server/session_util.h"

#include "tribo/v1/runs.pb-c.h"

/* ---- creation ---- */

START_TEST(a_session_belongs_to_its_owner)
{
    test_server t;
    char id[33];
    test_server_init(&t, false);
    test_server_start(&t);
    open_pile(&t.server, "one", 2, 1, id);
    ck_assert_int_eq(step_session(&t.server, "one", id, 3), TB_OK);
    ck_assert_int_eq(step_session(&t.server, "two", id, 3), TB_NOT_FOUND);
    ck_assert_int_eq(step_session(&t.server, "one", "12", 3), TB_INVALID_ARGUMENT);
    ck_assert_int_eq(delete_session(&t.server, "two", TD_SCOPE_RUN, id), TB_NOT_FOUND);
    ck_assert_int_eq(td_sessions_count(t.server.sessions), 1);
    ck_assert_int_eq(delete_session(&t.server, "two", TD_SCOPE_ADMIN, id), TB_OK);
    ck_assert_int_eq(td_sessions_count(t.server.sessions), 0);
    ck_assert_int_eq(step_session(&t.server, "one", id, 3), TB_NOT_FOUND);
    test_server_stop(&t);
}
END_TEST

START_TEST(a_request_that_asks_for_nonsense_names_the_field)
{
    test_server t;
    char scene[65], id[33];
    tb_error error = {0};
    static char long_label[202];
    test_server_init(&t, false);
    test_server_start(&t);
    add_pile(&t.server, 1, scene);
    memset(long_label, 'a', 201);
    for (int i = 0; i < 11; i++) {
        Tribo__V1__CreateSessionRequest r = TRIBO__V1__CREATE_SESSION_REQUEST__INIT;
        Tribo__V1__StepOptions options = TRIBO__V1__STEP_OPTIONS__INIT;
        Tribo__V1__SolveOptions solve = TRIBO__V1__SOLVE_OPTIONS__INIT;
        const char *field = "";
        options.solve = &solve;
        r.options = &options;
        r.scene_id = scene;
        switch (i) {
        case 0: r.scene_id = "12", field = "scene_id"; break;
        case 1: r.worlds = -1, field = "worlds"; break;
        case 2: r.worlds = 1000001, field = "worlds"; break;
        case 3: r.ttl_seconds = -5, field = "ttl_seconds"; break;
        case 4: r.ttl_seconds = 1e8, field = "ttl_seconds"; break;
        case 5: r.use_keyframe = true, r.keyframe = 0, field = "keyframe"; break;
        case 6: r.label = long_label, field = "label"; break;
        case 7: r.device = "cuda:7", field = "device"; break;
        case 8: options.dt = -1, field = "options.dt"; break;
        case 9: solve.solver = "magic", field = "options.solve.solver"; break;
        default: solve.omega = (double)NAN, field = "options.solve.omega"; break;
        }
        const tb_status status = open_session(&t.server, "one", &r, id, &error);
        ck_assert_msg(status == TB_INVALID_ARGUMENT || status == TB_NOT_FOUND, "case %d: %s", i,
                      tb_status_name(status));
        ck_assert_str_eq(error.field, field);
    }
    ck_assert_int_eq(td_sessions_count(t.server.sessions), 0);
    test_server_stop(&t);
}
END_TEST

START_TEST(quotas_hold_for_a_client_and_for_all)
{
    test_server t;
    char scene[65], id[33], first[33];
    tb_error error = {0};
    test_server_init(&t, false);
    t.config.sessions = 5;
    t.config.sessions_per_client = 3;
    test_server_start(&t);
    add_pile(&t.server, 1, scene);
    Tribo__V1__CreateSessionRequest r = TRIBO__V1__CREATE_SESSION_REQUEST__INIT;
    r.scene_id = scene;
    for (int i = 0; i < 3; i++)
        TEST_OK(open_session(&t.server, "one", &r, i == 0 ? first : id, &error), &error);
    ck_assert_int_eq(open_session(&t.server, "one", &r, id, &error), TB_RESOURCE_EXHAUSTED);
    for (int i = 0; i < 2; i++) TEST_OK(open_session(&t.server, "two", &r, id, &error), &error);
    ck_assert_int_eq(open_session(&t.server, "two", &r, id, &error), TB_RESOURCE_EXHAUSTED);
    ck_assert_int_eq(delete_session(&t.server, "one", TD_SCOPE_RUN, first), TB_OK);
    TEST_OK(open_session(&t.server, "two", &r, id, &error), &error);
    ck_assert_int_eq(td_metrics_get(t.server.metrics, TD_METRIC_SESSIONS), 5);
    test_server_stop(&t);
}
END_TEST

START_TEST(lists_show_what_the_caller_may_see_newest_first)
{
    test_server t;
    char ids[5][33], token[64] = "";
    test_server_init(&t, false);
    test_server_start(&t);
    for (int i = 0; i < 5; i++) open_pile(&t.server, i == 2 ? "two" : "one", 1, 1, ids[i]);
    ck_assert_int_eq(step_session(&t.server, "one", ids[4], 7), TB_OK);
    static const int expected[] = {4, 3, 1, 0};
    int seen = 0;
    do {
        Tribo__V1__ListSessionsRequest r = TRIBO__V1__LIST_SESSIONS_REQUEST__INIT;
        r.page_size = 3;
        r.page_token = token;
        Tribo__V1__ListSessionsResponse *page =
            test_unary(&t.server, "tribo.v1.Simulation/ListSessions", "one", &r, NULL, NULL);
        for (size_t i = 0; i < page->n_sessions; i++, seen++) {
            ck_assert_str_eq(page->sessions[i]->session_id, ids[expected[seen]]);
            ck_assert_int_eq(page->sessions[i]->steps, seen == 0 ? 7 : 0);
            ck_assert_int_eq(page->sessions[i]->status,
                             TRIBO__V1__SESSION_STATUS__SESSION_STATUS_ACTIVE);
        }
        snprintf(token, sizeof token, "%s", page->next_page_token);
        tribo__v1__list_sessions_response__free_unpacked(page, NULL);
    } while (token[0] != '\0');
    ck_assert_int_eq(seen, 4);
    test_server_stop(&t);
}
END_TEST

/* ---- leases ---- */

START_TEST(a_lease_is_renewed_by_calls_and_ends_the_session_when_it_runs_out)
{
    test_server t;
    char scene[65], id[33];
    tb_error error = {0};
    test_server_init(&t, false);
    snprintf(t.clock, sizeof t.clock, "/tmp/tribod-clock-%d", (int)getpid());
    shift_clock(&t, 0);
    test_server_start(&t);
    add_pile(&t.server, 1, scene);
    Tribo__V1__CreateSessionRequest r = TRIBO__V1__CREATE_SESSION_REQUEST__INIT;
    r.scene_id = scene;
    r.ttl_seconds = 100;
    TEST_OK(open_session(&t.server, "one", &r, id, &error), &error);

    /* every call sets the clock of the lease back */
    for (int i = 1; i <= 3; i++) {
        shift_clock(&t, 80 * i);
        td_sessions_reap(t.server.sessions);
        ck_assert_int_eq(td_sessions_count(t.server.sessions), 1);
        Tribo__V1__HeartbeatRequest h = TRIBO__V1__HEARTBEAT_REQUEST__INIT;
        h.session_id = id;
        Tribo__V1__HeartbeatResponse *answer =
            test_unary(&t.server, "tribo.v1.Simulation/Heartbeat", "one", &h, NULL, NULL);
        const double left =
            1e-6 * (double)(answer->expire_time_us - td_clock_utc_us(&t.server.clock));
        TEST_NEAR(left, 100, 5);
        tribo__v1__heartbeat_response__free_unpacked(answer, NULL);
    }
    /* the reaper runs by itself, and counts the ended sessions */
    shift_clock(&t, 345);
    int64_t expired = 0;
    for (int i = 0; i < 200 && expired == 0; i++) {
        test_sleep(0.05);
        expired = td_metrics_get(t.server.metrics, TD_METRIC_SESSIONS_EXPIRED);
    }
    ck_assert_int_eq(expired, 1);
    ck_assert_int_eq(td_sessions_count(t.server.sessions), 0);
    ck_assert_int_eq(step_session(&t.server, "one", id, 1), TB_NOT_FOUND);
    test_server_stop(&t);
    unlink(t.clock);
}
END_TEST

START_TEST(setting_the_wall_clock_ends_no_lease)
{
    test_server t;
    char id[33], scene[65];
    tb_error error = {0};
    test_server_init(&t, false);
    snprintf(t.clock, sizeof t.clock, "/tmp/tribod-wall-%d", (int)getpid());
    shift_clock(&t, 0);
    setenv("TRIBOD_TEST_WALL_CLOCK", t.clock, 1);
    char *const wall = strdup(t.clock);
    t.clock[0] = '\0';
    test_server_start(&t);
    unsetenv("TRIBOD_TEST_WALL_CLOCK");
    add_pile(&t.server, 1, scene);
    Tribo__V1__CreateSessionRequest r = TRIBO__V1__CREATE_SESSION_REQUEST__INIT;
    r.scene_id = scene;
    r.ttl_seconds = 100;
    TEST_OK(open_session(&t.server, "one", &r, id, &error), &error);

    const int64_t before = td_clock_utc_us(&t.server.clock);
    snprintf(t.clock, sizeof t.clock, "%s", wall);
    shift_clock(&t, 86400);
    ck_assert_int_gt(td_clock_utc_us(&t.server.clock) - before, (int64_t)86000 * 1000000);
    td_sessions_reap(t.server.sessions);
    ck_assert_int_eq(td_sessions_count(t.server.sessions), 1);

    /* callers get the end of the lease by the current setting */
    Tribo__V1__HeartbeatRequest h = TRIBO__V1__HEARTBEAT_REQUEST__INIT;
    h.session_id = id;
    Tribo__V1__HeartbeatResponse *answer =
        test_unary(&t.server, "tribo.v1.Simulation/Heartbeat", "one", &h, NULL, NULL);
    TEST_NEAR(1e-6 * (double)(answer->expire_time_us - td_clock_utc_us(&t.server.clock)), 100, 5);
    tribo__v1__heartbeat_response__free_unpacked(answer, NULL);
    test_server_stop(&t);
    unlink(wall);
    free(wall);
}
END_TEST

/* ---- snapshots ---- */

START_TEST(a_restored_session_goes_on_bit_by_bit)
{
    test_server t;
    char id[33], snapshot[33], other[33], before[65], after[65], again[65];
    tb_error error = {0};
    test_server_init(&t, false);
    test_server_start(&t);
    open_pile(&t.server, "one", 4, 3, id);
    ck_assert_int_eq(step_session(&t.server, "one", id, 40), TB_OK);
    snapshot_session(&t.server, "one", id, snapshot);
    digest_of(&t.server, "one", id, before);
    ck_assert_int_eq(step_session(&t.server, "one", id, 25), TB_OK);
    digest_of(&t.server, "one", id, after);
    ck_assert_str_ne(before, after);
    TEST_OK(restore_session(&t.server, "one", id, snapshot, &error), &error);
    digest_of(&t.server, "one", id, again);
    ck_assert_str_eq(before, again);
    ck_assert_int_eq(step_session(&t.server, "one", id, 25), TB_OK);
    digest_of(&t.server, "one", id, again);
    ck_assert_str_eq(after, again);

    /* no other owner's, and none of another scene */
    open_pile(&t.server, "two", 4, 3, other);
    ck_assert_int_eq(restore_session(&t.server, "two", other, snapshot, &error), TB_NOT_FOUND);
    open_pile(&t.server, "one", 4, 2, other);
    ck_assert_int_eq(restore_session(&t.server, "one", other, snapshot, &error),
                     TB_FAILED_PRECONDITION);
    open_pile(&t.server, "one", 5, 3, other);
    ck_assert_int_eq(restore_session(&t.server, "one", other, snapshot, &error),
                     TB_FAILED_PRECONDITION);
    open_pile(&t.server, "one", 4, 3, other);
    TEST_OK(restore_session(&t.server, "one", other, snapshot, &error), &error);
    digest_of(&t.server, "one", other, again);
    ck_assert_str_eq(before, again);
    test_server_stop(&t);
}
END_TEST

START_TEST(snapshot_bytes_travel_to_the_client_and_back)
{
    test_server t;
    char id[33], digest[65];
    tb_status status;
    tb_error error = {0};
    test_server_init(&t, false);
    test_server_start(&t);
    open_pile(&t.server, "one", 2, 2, id);
    ck_assert_int_eq(step_session(&t.server, "one", id, 30), TB_OK);
    Tribo__V1__SnapshotRequest r = TRIBO__V1__SNAPSHOT_REQUEST__INIT;
    r.session_id = id;
    r.want_data = true;
    Tribo__V1__SnapshotResponse *snapshot =
        test_unary(&t.server, "tribo.v1.Simulation/Snapshot", "one", &r, NULL, NULL);
    ck_assert_uint_eq(snapshot->n_data, 2);
    ck_assert_uint_eq(snapshot->data[0].len + snapshot->data[1].len, snapshot->size);
    unsigned char *joined = malloc(snapshot->size);
    memcpy(joined, snapshot->data[0].data, snapshot->data[0].len);
    memcpy(joined + snapshot->data[0].len, snapshot->data[1].data, snapshot->data[1].len);
    const db_sha256 sha256 = td_sha256_of(joined, snapshot->size);
    td_sha256_print(&sha256, digest);
    ck_assert_str_eq(digest, snapshot->sha256);

    ck_assert_int_eq(step_session(&t.server, "one", id, 30), TB_OK);
    Tribo__V1__RestoreRequest back = TRIBO__V1__RESTORE_REQUEST__INIT;
    back.session_id = id;
    back.data = snapshot->data;
    back.n_data = 2;
    Tribo__V1__RestoreResponse *answer =
        test_unary(&t.server, "tribo.v1.Simulation/Restore", "one", &back, NULL, NULL);
    ck_assert_int_eq(answer->steps, 30);
    tribo__v1__restore_response__free_unpacked(answer, NULL);
    digest_of(&t.server, "one", id, digest);
    ck_assert_str_eq(digest, snapshot->sha256);

    /* damaged bytes change nothing */
    snapshot->data[1].len -= 8;
    ck_assert_ptr_null(
        test_unary(&t.server, "tribo.v1.Simulation/Restore", "one", &back, &status, &error));
    ck_assert_int_eq(status, TB_INVALID_ARGUMENT);
    back.n_data = 1;
    ck_assert_ptr_null(
        test_unary(&t.server, "tribo.v1.Simulation/Restore", "one", &back, &status, &error));
    ck_assert_str_eq(error.field, "data");
    digest_of(&t.server, "one", id, digest);
    ck_assert_str_eq(digest, snapshot->sha256);
    free(joined);
    snapshot->data[1].len += 8;
    tribo__v1__snapshot_response__free_unpacked(snapshot, NULL);
    test_server_stop(&t);
}
END_TEST

/* ---- after a restart ---- */

START_TEST(a_session_resumes_from_its_last_snapshot_after_a_restart)
{
    test_server t;
    char id[33], fresh[33], snapshot[33], kept[65], later[65], again[65];
    tb_error error = {0};
    test_server_init(&t, true);
    test_server_start(&t);
    open_pile(&t.server, "one", 3, 2, id);
    open_pile(&t.server, "one", 3, 2, fresh);
    ck_assert_int_eq(step_session(&t.server, "one", id, 33), TB_OK);
    snapshot_session(&t.server, "one", id, snapshot);
    digest_of(&t.server, "one", id, kept);
    ck_assert_int_eq(step_session(&t.server, "one", id, 9), TB_OK);
    digest_of(&t.server, "one", id, later);
    test_server_stop(&t);

    test_server_start(&t);
    ck_assert_int_eq(td_sessions_count(t.server.sessions), 2);
    Tribo__V1__ListSessionsRequest r = TRIBO__V1__LIST_SESSIONS_REQUEST__INIT;
    Tribo__V1__ListSessionsResponse *list =
        test_unary(&t.server, "tribo.v1.Simulation/ListSessions", "one", &r, NULL, NULL);
    ck_assert_int_eq(list->sessions[0]->status, TRIBO__V1__SESSION_STATUS__SESSION_STATUS_PAUSED);
    ck_assert_int_eq(list->sessions[0]->steps + list->sessions[1]->steps, 33);
    tribo__v1__list_sessions_response__free_unpacked(list, NULL);
    digest_of(&t.server, "one", id, again);
    ck_assert_str_eq(kept, again);
    ck_assert_int_eq(step_session(&t.server, "one", id, 9), TB_OK);
    digest_of(&t.server, "one", id, again);
    ck_assert_str_eq(later, again);
    TEST_OK(restore_session(&t.server, "one", id, snapshot, &error), &error);
    ck_assert_int_eq(step_session(&t.server, "one", fresh, 33), TB_OK);
    digest_of(&t.server, "one", fresh, again);
    ck_assert_str_eq(kept, again);
    ck_assert_int_eq(delete_session(&t.server, "one", TD_SCOPE_RUN, fresh), TB_OK);
    test_server_stop(&t);

    test_server_start(&t);
    ck_assert_int_eq(td_sessions_count(t.server.sessions), 1);
    test_server_stop(&t);
    test_server_remove(&t);
}
END_TEST

START_TEST(checkpoints_bring_back_what_nobody_snapshotted)
{
    test_server t;
    char ids[6][33], digests[6][65], again[65];
    tb_error error = {0};
    test_server_init(&t, true);
    test_server_start(&t);
    for (int i = 0; i < 6; i++) {
        open_pile(&t.server, "one", 2, 1, ids[i]);
        ck_assert_int_eq(step_session(&t.server, "one", ids[i], 10 + i), TB_OK);
        digest_of(&t.server, "one", ids[i], digests[i]);
    }
    TEST_OK(td_sessions_checkpoint_all(t.server.sessions, 10, &error), &error);
    test_server_stop(&t);
    test_server_start(&t);
    for (int i = 0; i < 6; i++) {
        digest_of(&t.server, "one", ids[i], again);
        ck_assert_str_eq(digests[i], again);
    }
    test_server_stop(&t);
    test_server_remove(&t);
}
END_TEST

START_TEST(the_reaper_checkpoints_by_the_clock)
{
    test_server t;
    char id[33], digest[65], again[65];
    test_server_init(&t, true);
    t.config.checkpoint_seconds = 50;
    snprintf(t.clock, sizeof t.clock, "/tmp/tribod-clock-%d", (int)getpid());
    shift_clock(&t, 0);
    test_server_start(&t);
    open_pile(&t.server, "one", 2, 1, id);
    ck_assert_int_eq(step_session(&t.server, "one", id, 10), TB_OK);
    digest_of(&t.server, "one", id, digest);
    test_sleep(0.5);
    const int64_t before = db_count(t.server.db).committed_jobs;
    shift_clock(&t, 60);
    for (int i = 0; i < 100 && db_count(t.server.db).committed_jobs < before + 3; i++)
        test_sleep(0.05);
    test_server_stop(&t);
    shift_clock(&t, 0);
    test_server_start(&t);
    digest_of(&t.server, "one", id, again);
    ck_assert_str_eq(digest, again);
    test_server_stop(&t);
    test_server_remove(&t);
    unlink(t.clock);
}
END_TEST

START_TEST(a_session_is_a_run_with_counts_and_a_certificate)
{
    test_server t;
    char id[33];
    db_id key;
    db_run run;
    tb_error error = {0};
    test_server_init(&t, false);
    test_server_start(&t);
    open_pile(&t.server, "one", 2, 3, id);
    ck_assert(td_id_parse(id, &key));
    TEST_OK(db_get_run(t.server.db, &key, &run, &error), &error);
    ck_assert_int_eq(run.status, TRIBO__V1__RUN_STATUS__RUN_STATUS_RUNNING);
    free((void *)(uintptr_t)run.options_json);
    ck_assert_int_eq(step_session(&t.server, "one", id, 50), TB_OK);
    ck_assert_int_eq(delete_session(&t.server, "one", TD_SCOPE_RUN, id), TB_OK);
    for (int i = 0; i < 200; i++) {
        TEST_OK(db_get_run(t.server.db, &key, &run, &error), &error);
        free((void *)(uintptr_t)run.options_json);
        if (run.status == TRIBO__V1__RUN_STATUS__RUN_STATUS_DONE) break;
        test_sleep(0.02);
    }
    ck_assert_int_eq(run.status, TRIBO__V1__RUN_STATUS__RUN_STATUS_DONE);
    ck_assert_int_eq(run.steps, 150);
    ck_assert_int_eq(run.worlds, 3);
    ck_assert_int_gt(run.compute_time_us, 0);
    ck_assert_int_eq(run.certificate.step, 50);
    ck_assert_int_gt(run.certificate.contacts, 0);
    ck_assert_str_eq(run.owner, "one");
    ck_assert_int_gt(run.end_time_us, run.start_time_us);
    test_server_stop(&t);
}
END_TEST

/* ---- forks ---- */

static char **fork_session(td_server *s, const char *client, const char *id, int count)
{
    Tribo__V1__ForkRequest r = TRIBO__V1__FORK_REQUEST__INIT;
    r.session_id = (char *)(uintptr_t)id;
    r.count = count;
    Tribo__V1__ForkResponse *answer =
        test_unary(s, "tribo.v1.Simulation/Fork", client, &r, NULL, NULL);
    ck_assert_uint_eq(answer->n_session_ids, (size_t)count);
    char **ids = calloc((size_t)count, sizeof(char *));
    for (int i = 0; i < count; i++) ids[i] = strdup(answer->session_ids[i]);
    tribo__v1__fork_response__free_unpacked(answer, NULL);
    return ids;
}

static void free_ids(char **ids, int count)
{
    for (int i = 0; i < count; i++) free(ids[i]);
    free(ids);
}

START_TEST(forks_go_their_own_way_and_survive_a_restart)
{
    test_server t;
    char id[33], start[65], moved[65], again[65];
    test_server_init(&t, true);
    test_server_start(&t);
    open_pile(&t.server, "one", 3, 2, id);
    ck_assert_int_eq(step_session(&t.server, "one", id, 30), TB_OK);
    digest_of(&t.server, "one", id, start);
    char **ids = fork_session(&t.server, "one", id, 5);
    ck_assert_int_eq(td_sessions_count(t.server.sessions), 6);
    ck_assert_int_eq(step_session(&t.server, "one", ids[0], 12), TB_OK);
    digest_of(&t.server, "one", ids[0], moved);
    ck_assert_str_ne(start, moved);
    digest_of(&t.server, "one", id, again);
    ck_assert_str_eq(start, again);
    ck_assert_int_eq(step_session(&t.server, "one", id, 12), TB_OK);
    digest_of(&t.server, "one", id, again);
    ck_assert_str_eq(moved, again);
    ck_assert_int_eq(delete_session(&t.server, "one", TD_SCOPE_RUN, id), TB_OK);
    ck_assert_int_eq(delete_session(&t.server, "one", TD_SCOPE_RUN, ids[4]), TB_OK);
    test_server_stop(&t);

    /* none of them had a checkpoint: they go back to where they were forked */
    test_server_start(&t);
    ck_assert_int_eq(td_sessions_count(t.server.sessions), 4);
    for (int i = 0; i < 4; i++) {
        digest_of(&t.server, "one", ids[i], again);
        ck_assert_str_eq(start, again);
    }
    ck_assert_int_eq(step_session(&t.server, "one", ids[1], 12), TB_OK);
    tb_error error = {0};
    TEST_OK(td_sessions_checkpoint_all(t.server.sessions, 10, &error), &error);
    test_server_stop(&t);

    test_server_start(&t);
    for (int i = 0; i < 4; i++) {
        digest_of(&t.server, "one", ids[i], again);
        ck_assert_str_eq(again, i == 1 ? moved : start);
    }
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(delete_session(&t.server, "one", TD_SCOPE_RUN, ids[i]), TB_OK);
    test_server_stop(&t);

    /* with the last fork its origin has ended */
    test_server_start(&t);
    db_session *open = NULL;
    int32_t count = -1;
    TEST_OK(db_open_sessions(t.server.db, &open, &count, &error), &error);
    ck_assert_int_eq(count, 0);
    free(open);
    test_server_stop(&t);
    free_ids(ids, 5);
    test_server_remove(&t);
}
END_TEST

START_TEST(a_thousand_forks_are_made_at_once)
{
    test_server t;
    char id[33], start[65], again[65];
    test_server_init(&t, true);
    test_server_start(&t);
    open_pile(&t.server, "one", 10, 1, id);
    ck_assert_int_eq(step_session(&t.server, "one", id, 100), TB_OK);
    digest_of(&t.server, "one", id, start);
    const int64_t begin = td_monotonic_ns();
    char **ids = fork_session(&t.server, "one", id, 1000);
    printf("1000 forks: %.1f ms\n", 1e-6 * (double)(td_monotonic_ns() - begin));
    ck_assert_int_eq(td_sessions_count(t.server.sessions), 1001);
    digest_of(&t.server, "one", ids[999], again);
    ck_assert_str_eq(start, again);
    free_ids(ids, 1000);
    test_server_stop(&t);
    test_server_remove(&t);
}
END_TEST

/* ---- state ---- */

START_TEST(a_state_is_read_and_set_for_one_world_or_all)
{
    test_server t;
    char id[33];
    tb_status status;
    tb_error error = {0};
    test_server_init(&t, false);
    test_server_start(&t);
    open_pile(&t.server, "one", 1, 2, id);
    double q[2][7] = {{0, 0, 1, 1, 0, 0, 0}, {5, 0, 2, 0, 2, 0, 0}};
    int64_t shape[2] = {2, 7};
    Tribo__V1__Array array = TRIBO__V1__ARRAY__INIT;
    array.shape = shape;
    array.n_shape = 2;
    array.data.data = (uint8_t *)q;
    array.data.len = sizeof q;
    Tribo__V1__SetStateRequest set = TRIBO__V1__SET_STATE_REQUEST__INIT;
    set.session_id = id;
    set.q = &array;
    protobuf_c_message_free_unpacked(
        test_unary(&t.server, "tribo.v1.Simulation/SetState", "one", &set, NULL, NULL), NULL);
    Tribo__V1__GetStateRequest get = TRIBO__V1__GET_STATE_REQUEST__INIT;
    Tribo__V1__StepReturn want = TRIBO__V1__STEP_RETURN__INIT;
    get.session_id = id;
    get.want = &want;
    want.bodies = true;
    Tribo__V1__GetStateResponse *state =
        test_unary(&t.server, "tribo.v1.Simulation/GetState", "one", &get, NULL, NULL);
    ck_assert_uint_eq(state->state->q->n_shape, 2);
    ck_assert_int_eq(state->state->q->shape[0], 2);
    double back[2][7], bodies[2][2][13];
    ck_assert_uint_eq(state->state->q->data.len, sizeof back);
    memcpy(back, state->state->q->data.data, sizeof back);
    TEST_NEAR(back[1][0], 5, 0);
    TEST_NEAR(back[1][4], 1, 1e-15); /* the quaternion was normalised */
    ck_assert_uint_eq(state->state->bodies->data.len, sizeof bodies);
    memcpy(bodies, state->state->bodies->data.data, sizeof bodies);
    TEST_NEAR(bodies[1][1][0], 5, 0);
    TEST_NEAR(bodies[0][1][2], 1, 0);
    tribo__v1__get_state_response__free_unpacked(state, NULL);

    /* a bad row changes no world */
    q[0][0] = 77, q[1][3] = q[1][4] = 0;
    ck_assert_ptr_null(
        test_unary(&t.server, "tribo.v1.Simulation/SetState", "one", &set, &status, &error));
    ck_assert_int_eq(status, TB_INVALID_ARGUMENT);
    ck_assert_str_eq(error.field, "q");
    state = test_unary(&t.server, "tribo.v1.Simulation/GetState", "one", &get, NULL, NULL);
    memcpy(back, state->state->q->data.data, sizeof back);
    TEST_NEAR(back[0][0], 0, 0);
    tribo__v1__get_state_response__free_unpacked(state, NULL);

    shape[1] = 6;
    ck_assert_ptr_null(
        test_unary(&t.server, "tribo.v1.Simulation/SetState", "one", &set, &status, &error));
    ck_assert_str_eq(error.field, "q");
    shape[1] = 7;
    q[0][1] = (double)NAN;
    ck_assert_ptr_null(
        test_unary(&t.server, "tribo.v1.Simulation/SetState", "one", &set, &status, &error));
    ck_assert_str_eq(error.field, "q");

    Tribo__V1__ResetRequest reset = TRIBO__V1__RESET_REQUEST__INIT;
    reset.session_id = id;
    protobuf_c_message_free_unpacked(
        test_unary(&t.server, "tribo.v1.Simulation/Reset", "one", &reset, NULL, NULL), NULL);
    state = test_unary(&t.server, "tribo.v1.Simulation/GetState", "one", &get, NULL, NULL);
    memcpy(back, state->state->q->data.data, sizeof back);
    TEST_NEAR(back[1][0], 0, 0);
    TEST_NEAR(back[1][2], 0.1, 1e-15);
    tribo__v1__get_state_response__free_unpacked(state, NULL);
    test_server_stop(&t);
}
END_TEST

START_TEST(contacts_and_the_problem_behind_them_can_be_had)
{
    test_server t;
    char id[33];
    test_server_init(&t, false);
    test_server_start(&t);
    open_pile(&t.server, "one", 2, 1, id);
    ck_assert_int_eq(step_session(&t.server, "one", id, 20), TB_OK);
    Tribo__V1__GetContactsRequest r = TRIBO__V1__GET_CONTACTS_REQUEST__INIT;
    r.session_id = id;
    Tribo__V1__GetContactsResponse *contacts =
        test_unary(&t.server, "tribo.v1.Simulation/GetContacts", "one", &r, NULL, NULL);
    ck_assert_uint_eq(contacts->n_contacts, 1);
    const int32_t n = contacts->contacts[0]->count;
    ck_assert_int_ge(n, 8);
    ck_assert_uint_eq(contacts->contacts[0]->impulses->data.len, (size_t)n * 6 * 8);
    ck_assert_uint_eq(contacts->contacts[0]->statuses->data.len, (size_t)n);
    double weight = 0;
    for (int32_t i = 0; i < n; i++) {
        double impulse[6], normal[3];
        int32_t shapes[2];
        memcpy(impulse, contacts->contacts[0]->impulses->data.data + i * 48, 48);
        memcpy(normal, contacts->contacts[0]->normals->data.data + i * 24, 24);
        memcpy(shapes, contacts->contacts[0]->shapes->data.data + i * 8, 8);
        if (shapes[0] == 0 || shapes[1] == 0) weight += impulse[0];
    }
    TEST_NEAR_RELATIVE(weight, 2 * 8 * 9.81 * 0.002, 0.01); /* two boxes of 8 kg on the plane */
    tribo__v1__get_contacts_response__free_unpacked(contacts, NULL);

    Tribo__V1__ExportProblemRequest e = TRIBO__V1__EXPORT_PROBLEM_REQUEST__INIT;
    e.session_id = id;
    Tribo__V1__ExportProblemResponse *problem =
        test_unary(&t.server, "tribo.v1.Simulation/ExportProblem", "one", &e, NULL, NULL);
    ck_assert_uint_gt(problem->data.len, 100);
    ck_assert_ptr_nonnull(strstr(problem->name, ".dat"));
    tribo__v1__export_problem_response__free_unpacked(problem, NULL);
    tb_status status;
    tb_error error = {0};
    e.world = 1;
    ck_assert_ptr_null(
        test_unary(&t.server, "tribo.v1.Simulation/ExportProblem", "one", &e, &status, &error));
    ck_assert_str_eq(error.field, "world");
    test_server_stop(&t);
}
END_TEST

TEST_MAIN(setting_the_wall_clock_ends_no_lease, a_session_belongs_to_its_owner,
          a_request_that_asks_for_nonsense_names_the_field, quotas_hold_for_a_client_and_for_all,
          lists_show_what_the_caller_may_see_newest_first,
          a_lease_is_renewed_by_calls_and_ends_the_session_when_it_runs_out,
          a_restored_session_goes_on_bit_by_bit, snapshot_bytes_travel_to_the_client_and_back,
          a_session_resumes_from_its_last_snapshot_after_a_restart,
          checkpoints_bring_back_what_nobody_snapshotted, the_reaper_checkpoints_by_the_clock,
          a_session_is_a_run_with_counts_and_a_certificate,
          forks_go_their_own_way_and_survive_a_restart, a_thousand_forks_are_made_at_once,
          a_state_is_read_and_set_for_one_world_or_all,
          contacts_and_the_problem_behind_them_can_be_had)
