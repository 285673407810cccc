/* Data of another version: a snapshot or checkpoint in a format that this build does not read,
 * or of another model than the session's, is refused with both named, and everything else goes
 * on. */
#include "server/session_util.h"

/* Layout of a snapshot's bytes, as session_store.c and snapshot_once.c write it: for the store
 * "TDWORLD", format, worlds and a table of sizes; for each world "TBSTATE", format, status, and
 * the SHA-256 of the model, and at its end a checksum of the bytes before. */
enum { STORED_FORMAT = 8, STORED_SIZE = 16, STORED_WORLD = 24, WORLD_FORMAT = 8, WORLD_MODEL = 16 };

static void put_u32(unsigned char *bytes, size_t at, uint32_t number)
{
    memcpy(bytes + at, &number, sizeof number);
}

/* The checksum of a world written by another build, so that the bytes are valid. */
static void seal_world(unsigned char *world, size_t size)
{
    uint64_t hash = 0xcbf29ce484222325u, word;
    ck_assert_uint_gt(size, sizeof hash);
    for (size_t i = 0; i + 8 <= size - sizeof hash; i += 8) {
        memcpy(&word, world + i, 8);
        hash = (hash ^ word) * 0x100000001b3u;
        hash ^= hash >> 29;
    }
    memcpy(world + size - sizeof hash, &hash, sizeof hash);
}

/* ---- bytes that a client sends ---- */

/* The one world of a session. */
static Tribo__V1__SnapshotResponse *world_bytes(td_server *s, const char *id)
{
    Tribo__V1__SnapshotRequest r = TRIBO__V1__SNAPSHOT_REQUEST__INIT;
    r.session_id = (char *)(uintptr_t)id;
    r.want_data = true;
    Tribo__V1__SnapshotResponse *snapshot =
        test_unary(s, "tribo.v1.Simulation/Snapshot", "one", &r, NULL, NULL);
    ck_assert_uint_eq(snapshot->n_data, 1);
    return snapshot;
}

/* Expects a refusal whose message contains both words. */
static void refuse(td_server *s, const char *id, ProtobufCBinaryData *data, tb_status expected,
                   const char *word, const char *other)
{
    tb_status status;
    tb_error error = {0};
    Tribo__V1__RestoreRequest r = TRIBO__V1__RESTORE_REQUEST__INIT;
    r.session_id = (char *)(uintptr_t)id;
    r.data = data;
    r.n_data = 1;
    ck_assert_ptr_null(test_unary(s, "tribo.v1.Simulation/Restore", "one", &r, &status, &error));
    ck_assert_msg(status == expected, "%s: %s", tb_status_name(status), error.message);
    ck_assert_msg(strstr(error.message, word) != NULL && strstr(error.message, other) != NULL,
                  "'%s' names neither '%s' nor '%s'", error.message, word, other);
}

START_TEST(bytes_of_another_format_or_model_are_refused)
{
    test_server t;
    char id[33], other[33], before[65], after[65], model[13];
    test_server_init(&t, false);
    test_server_start(&t);
    open_pile(&t.server, "one", 2, 1, id);
    open_pile(&t.server, "one", 3, 1, other);
    ck_assert_int_eq(step_session(&t.server, "one", id, 20), TB_OK);
    Tribo__V1__SnapshotResponse *snapshot = world_bytes(&t.server, id);
    ProtobufCBinaryData *data = &snapshot->data[0];
    digest_of(&t.server, "one", id, before);

    put_u32(data->data, WORLD_FORMAT, 1);
    refuse(&t.server, id, data, TB_FAILED_PRECONDITION, "version 1", "reads 6");
    put_u32(data->data, WORLD_FORMAT, 6);

    /* the same scene, compiled to something else by another version */
    memcpy(model, data->data + WORLD_MODEL, 12);
    model[12] = '\0';
    data->data[WORLD_MODEL] ^= 1;
    refuse(&t.server, id, data, TB_INVALID_ARGUMENT, "data", "its checksum is another");
    seal_world(data->data, data->len);
    refuse(&t.server, id, data, TB_FAILED_PRECONDITION, "is of model", model);
    data->data[WORLD_MODEL] ^= 1;
    seal_world(data->data, data->len);

    /* and one of another scene */
    refuse(&t.server, other, data, TB_FAILED_PRECONDITION, "another scene", model);

    data->data[0] ^= 1;
    refuse(&t.server, id, data, TB_INVALID_ARGUMENT, "data", "not a snapshot");
    tribo__v1__snapshot_response__free_unpacked(snapshot, NULL);

    digest_of(&t.server, "one", id, after);
    ck_assert_str_eq(before, after);
    ck_assert_int_eq(step_session(&t.server, "one", id, 20), TB_OK);
    ck_assert_int_eq(step_session(&t.server, "one", other, 20), TB_OK);
    test_server_stop(&t);
}
END_TEST

/* ---- contents of the store ---- */

static void on_kept(void *context, tb_status status, const tb_error *error)
{
    TEST_OK(status, error);
    atomic_store((atomic_bool *)context, true);
}

/* A second, newer snapshot of the session with one place of its bytes changed; sealed: by a build
 * that wrote it so, not by damage. */
static void keep_changed(td_server *s, const char *kept, size_t at, uint32_t number, bool sealed,
                         char id[33])
{
    db_snapshot row;
    db_id of;
    unsigned char *bytes = NULL;
    tb_error error = {0};
    atomic_bool done = false;
    ck_assert(td_id_parse(kept, &of));
    TEST_OK(db_get_snapshot(s->db, &of, &row, &bytes, &error), &error);
    ck_assert_uint_gt(row.size, at + sizeof number);
    put_u32(bytes, at, number);
    uint64_t world;
    memcpy(&world, bytes + STORED_SIZE, sizeof world);
    if (sealed) {
        ck_assert_uint_eq(STORED_WORLD + world, row.size);
        seal_world(bytes + STORED_WORLD, (size_t)world);
    }
    row.id.bytes[0] ^= 0xff;
    row.create_time_us++;
    td_id_print(&row.id, id);
    TEST_OK(db_put_snapshot(s->db, &row, bytes, on_kept, &done, &error), &error);
    for (int i = 0; i < 2000 && !atomic_load(&done); i++) test_sleep(0.01);
    ck_assert(atomic_load(&done));
}

/* After a restart over a newest snapshot that was changed so: every call that needs the worlds is
 * refused with the word in it, the session is still listed and can be deleted, and its neighbour
 * steps. */
static void check_restart(size_t at, uint32_t number, bool sealed, tb_status expected,
                          const char *word)
{
    test_server t;
    char id[33], neighbour[33], kept[33], changed[33];
    tb_error error = {0};
    test_server_init(&t, true);
    test_server_start(&t);
    open_pile(&t.server, "one", 2, 1, id);
    open_pile(&t.server, "one", 2, 1, neighbour);
    ck_assert_int_eq(step_session(&t.server, "one", id, 20), TB_OK);
    snapshot_session(&t.server, "one", id, kept);
    keep_changed(&t.server, kept, at, number, sealed, changed);
    TEST_STATUS(restore_session(&t.server, "one", id, changed, &error), expected, &error);
    ck_assert_msg(strstr(error.message, word) != NULL, "%s", error.message);
    TEST_OK(restore_session(&t.server, "one", id, kept, &error), &error);
    test_server_stop(&t);

    test_server_start(&t);
    ck_assert_int_eq(td_sessions_count(t.server.sessions), 2);
    tb_status status;
    Tribo__V1__GetStateRequest r = TRIBO__V1__GET_STATE_REQUEST__INIT;
    r.session_id = id;
    ck_assert_ptr_null(
        test_unary(&t.server, "tribo.v1.Simulation/GetState", "one", &r, &status, &error));
    TEST_STATUS(status, expected, &error);
    ck_assert_msg(strstr(error.message, word) != NULL, "%s", error.message);
    ck_assert_int_eq(step_session(&t.server, "one", id, 1), expected);
    ck_assert_int_eq(step_session(&t.server, "one", neighbour, 20), TB_OK);
    ck_assert_int_eq(delete_session(&t.server, "one", TD_SCOPE_RUN, id), TB_OK);
    ck_assert_int_eq(td_sessions_count(t.server.sessions), 1);
    test_server_stop(&t);
    test_server_remove(&t);
}

START_TEST(a_checkpoint_of_another_format_is_refused_after_a_restart)
{
    check_restart(STORED_FORMAT, 7, true, TB_FAILED_PRECONDITION, "format 7, this build reads 1");
    check_restart(STORED_WORLD + WORLD_FORMAT, 12, true, TB_FAILED_PRECONDITION,
                  "version 12, this build reads 6 to 11");
}
END_TEST

START_TEST(a_checkpoint_of_another_model_is_refused_after_a_restart)
{
    check_restart(STORED_WORLD + WORLD_MODEL, 0x30303030, true, TB_FAILED_PRECONDITION,
                  "is of model 0000");
}
END_TEST

START_TEST(a_damaged_checkpoint_is_a_loss)
{
    check_restart(0, 0, false, TB_DATA_LOSS, "not a snapshot");
    check_restart(STORED_WORLD, 0, false, TB_DATA_LOSS, "not a snapshot");
    check_restart(STORED_WORLD + WORLD_MODEL, 0x30303030, false, TB_DATA_LOSS,
                  "its checksum is another");
}
END_TEST

TEST_MAIN(bytes_of_another_format_or_model_are_refused,
          a_checkpoint_of_another_format_is_refused_after_a_restart,
          a_checkpoint_of_another_model_is_refused_after_a_restart, a_damaged_checkpoint_is_a_loss)
