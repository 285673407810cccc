/* Admission: keys, scopes, rates, revocation, over a real store. */
#include <pthread.h>
#include <unistd.h>

#include "db/db.h"
#include "call/auth_internal.h"
#include "ops/clock.h"
#include "server.h"
#include "test_util.h"

/* Fixture of every test: a store in memory, a configuration, admission. */
typedef struct fixture {
    td_config config;
    struct db *store;
    td_auth *auth;
    td_server server;
    char run_key[128], read_key[128];
} fixture;

static void set_up(fixture *f)
{
    tb_error error;
    memset(f, 0, sizeof *f);
    f->config = td_config_defaults();
    const db_options options = {.folder = "", .queue_length = 64};
    TEST_OK(db_open(&options, &f->store, &error), &error);
    TEST_OK(td_auth_create(&f->config, f->store, &f->auth, &error), &error);
    TEST_OK(td_metrics_create(&f->server.metrics, &error), &error);
    TEST_OK(td_auth_create_key(
                f->store, "planner",
                &(td_key_terms){.scope = TD_SCOPE_RUN, .calls_per_second = 0, .sessions = 17},
                f->run_key, &error),
            &error);
    TEST_OK(td_auth_create_key(
                f->store, "viewer",
                &(td_key_terms){.scope = TD_SCOPE_READ, .calls_per_second = 0, .sessions = 0},
                f->read_key, &error),
            &error);
}

static void tear_down(fixture *f)
{
    td_auth_destroy(f->auth);
    td_metrics_destroy(f->server.metrics);
    db_close(f->store);
}

/* Result of one call of a method with this scope. */
static tb_status call_as(fixture *f, const char *key, td_scope scope, bool loopback,
                         td_caller *caller, double *retry_after, tb_error *error)
{
    const td_method method = {.name = "Step", .scope = scope};
    td_call call = {.method = &method, .server = &f->server, .peer = "192.0.2.7:4242"};
    char header[256] = "";
    double wait = 0;
    if (key != NULL) snprintf(header, sizeof header, "Bearer %s", key);
    memset(error, 0, sizeof *error);
    const tb_status status = td_auth_admit(f->auth, &call, key != NULL ? header : NULL, loopback,
                                           retry_after != NULL ? retry_after : &wait, error);
    if (caller != NULL) *caller = call.caller;
    return status;
}

START_TEST(a_key_names_its_caller)
{
    fixture f;
    tb_error error;
    td_caller caller;
    set_up(&f);
    /* the second time from memory */
    for (int i = 0; i < 2; i++) {
        TEST_OK(call_as(&f, f.run_key, TD_SCOPE_RUN, false, &caller, NULL, &error), &error);
        ck_assert_str_eq(caller.name, "planner");
        ck_assert_int_eq(caller.scope, TD_SCOPE_RUN);
        ck_assert_int_eq(caller.sessions, 17);
        ck_assert(!caller.loopback);
    }
    TEST_OK(call_as(&f, f.read_key, TD_SCOPE_READ, true, &caller, NULL, &error), &error);
    ck_assert_str_eq(caller.name, "viewer");
    ck_assert(caller.loopback);
    tear_down(&f);
}
END_TEST

START_TEST(a_remembered_key_is_quick)
{
    fixture f;
    tb_error error;
    set_up(&f);
    TEST_OK(call_as(&f, f.run_key, TD_SCOPE_RUN, false, NULL, NULL, &error), &error);
    char header[256];
    snprintf(header, sizeof header, "Bearer %s", f.run_key);
    ck_assert(td_auth_quick(f.auth, header));
    ck_assert(td_auth_quick(f.auth, NULL));
    ck_assert(td_auth_quick(f.auth, "Bearer nonsense"));
    snprintf(header, sizeof header, "Bearer %s", f.read_key);
    ck_assert(!td_auth_quick(f.auth, header));

    /* far more than the slow hash could do in this time, and more than its ration */
    const int64_t start = td_monotonic_ns();
    for (int i = 0; i < 2000; i++)
        TEST_OK(call_as(&f, f.run_key, TD_SCOPE_RUN, false, NULL, NULL, &error), &error);
    ck_assert_int_lt(td_monotonic_ns() - start, INT64_C(5000000000));
    tear_down(&f);
}
END_TEST

START_TEST(a_scope_that_is_too_small_is_refused)
{
    fixture f;
    tb_error error;
    set_up(&f);
    TEST_STATUS(call_as(&f, f.read_key, TD_SCOPE_RUN, false, NULL, NULL, &error),
                TB_PERMISSION_DENIED, &error);
    ck_assert_ptr_nonnull(strstr(error.message, "viewer"));
    ck_assert_ptr_nonnull(strstr(error.message, "scope run"));
    TEST_STATUS(call_as(&f, f.run_key, TD_SCOPE_ADMIN, true, NULL, NULL, &error),
                TB_PERMISSION_DENIED, &error);
    TEST_OK(call_as(&f, f.run_key, TD_SCOPE_READ, false, NULL, NULL, &error), &error);
    tear_down(&f);
}
END_TEST

START_TEST(wrong_keys_are_refused_and_not_repeated)
{
    fixture f;
    tb_error error;
    set_up(&f);
    char changed[128], prefix[128];
    snprintf(changed, sizeof changed, "%s", f.run_key);
    char *last = &changed[strlen(changed) - 1];
    *last = *last == 'A' ? 'B' : 'A';
    snprintf(prefix, sizeof prefix, "%.30s", f.run_key);
    const char *const wrong[] = {
        changed,
        prefix,
        "tribo_00000000_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
        "tribo_",
        "tribo_zzzzzzzz_x",
        "password",
        "",
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        for (int repeated = 0; repeated < 2; repeated++) {
            TEST_STATUS(call_as(&f, wrong[i], TD_SCOPE_NONE, true, NULL, NULL, &error),
                        TB_UNAUTHENTICATED, &error);
            ck_assert_str_eq(error.field, "authorization");
            ck_assert_ptr_null(strstr(error.message, f.run_key + strlen("tribo_")));
            ck_assert_ptr_null(strstr(error.message, "password"));
        }
    ck_assert_int_eq(td_metrics_get(f.server.metrics, TD_METRIC_UNAUTHENTICATED), 14);

    /* other schemes, and a header that ends early */
    const td_method method = {.name = "Step", .scope = TD_SCOPE_NONE};
    const char *const headers[] = {"Basic dXNlcjpwYXNz", "Bearer", "Bear", "Bearertribo_0", " "};
    for (size_t i = 0; i < sizeof headers / sizeof headers[0]; i++) {
        td_call call = {.method = &method};
        double wait;
        TEST_STATUS(td_auth_admit(f.auth, &call, headers[i], true, &wait, &error),
                    TB_UNAUTHENTICATED, &error);
    }
    /* the scheme's name is case-blind */
    char header[256];
    td_call call = {.method = &method};
    double wait;
    snprintf(header, sizeof header, "bEARER  %s", f.run_key);
    TEST_OK(td_auth_admit(f.auth, &call, header, true, &wait, &error), &error);
    tear_down(&f);
}
END_TEST

START_TEST(callers_without_a_key_have_rights_on_loopback_only)
{
    fixture f;
    tb_error error;
    td_caller caller;
    set_up(&f);
    TEST_OK(call_as(&f, NULL, TD_SCOPE_RUN, true, &caller, NULL, &error), &error);
    ck_assert_str_eq(caller.name, "anonymous");
    TEST_STATUS(call_as(&f, NULL, TD_SCOPE_ADMIN, true, NULL, NULL, &error), TB_UNAUTHENTICATED,
                &error);
    TEST_STATUS(call_as(&f, NULL, TD_SCOPE_READ, false, NULL, NULL, &error), TB_UNAUTHENTICATED,
                &error);
    TEST_OK(call_as(&f, NULL, TD_SCOPE_NONE, false, NULL, NULL, &error), &error);

    f.config.anonymous = TD_SCOPE_NONE;
    td_auth_reload(f.auth, &f.config);
    TEST_STATUS(call_as(&f, NULL, TD_SCOPE_READ, true, NULL, NULL, &error), TB_UNAUTHENTICATED,
                &error);
    f.config.anonymous = TD_SCOPE_READ;
    f.config.anonymous_remote = true;
    td_auth_reload(f.auth, &f.config);
    TEST_OK(call_as(&f, NULL, TD_SCOPE_READ, false, NULL, NULL, &error), &error);
    TEST_STATUS(call_as(&f, NULL, TD_SCOPE_RUN, false, NULL, NULL, &error), TB_UNAUTHENTICATED,
                &error);
    tear_down(&f);
}
END_TEST

START_TEST(a_revoked_key_ends_with_the_reload)
{
    fixture f;
    tb_error error;
    set_up(&f);
    TEST_OK(call_as(&f, f.run_key, TD_SCOPE_RUN, false, NULL, NULL, &error), &error);
    /* by the whole key, as an operator may paste it; a second time does no harm */
    TEST_OK(td_auth_revoke_key(f.store, f.run_key, &error), &error);
    TEST_OK(td_auth_revoke_key(f.store, f.run_key, &error), &error);
    td_auth_reload(f.auth, &f.config);
    TEST_STATUS(call_as(&f, f.run_key, TD_SCOPE_RUN, false, NULL, NULL, &error), TB_UNAUTHENTICATED,
                &error);
    TEST_OK(call_as(&f, f.read_key, TD_SCOPE_READ, false, NULL, NULL, &error), &error);
    TEST_STATUS(td_auth_revoke_key(f.store, "ffffffff", &error), TB_NOT_FOUND, &error);
    TEST_STATUS(td_auth_revoke_key(f.store, "planner", &error), TB_INVALID_ARGUMENT, &error);
    tear_down(&f);
}
END_TEST

START_TEST(a_rate_says_when_to_come_back)
{
    fixture f;
    tb_error error;
    char key[128];
    double wait = 0;
    int admitted = 0;
    set_up(&f);
    TEST_OK(td_auth_create_key(
                f.store, "slow",
                &(td_key_terms){.scope = TD_SCOPE_RUN, .calls_per_second = 5, .sessions = 0}, key,
                &error),
            &error);
    tb_status status = TB_OK;
    for (; admitted < 100; admitted++) {
        status = call_as(&f, key, TD_SCOPE_RUN, false, NULL, &wait, &error);
        if (status != TB_OK) break;
    }
    TEST_STATUS(status, TB_RESOURCE_EXHAUSTED, &error);
    ck_assert_int_ge(admitted, 5);
    ck_assert(wait > 0 && wait <= 0.2);
    ck_assert_int_eq(td_metrics_get(f.server.metrics, TD_METRIC_RATE_LIMITED), 1);
    /* others have buckets of their own */
    TEST_OK(call_as(&f, f.run_key, TD_SCOPE_RUN, false, NULL, NULL, &error), &error);

    /* and an address without a key has one, on any port */
    f.config.calls_per_second = 1;
    td_auth_reload(f.auth, &f.config);
    TEST_OK(call_as(&f, NULL, TD_SCOPE_NONE, false, NULL, NULL, &error), &error);
    TEST_STATUS(call_as(&f, NULL, TD_SCOPE_NONE, false, NULL, &wait, &error), TB_RESOURCE_EXHAUSTED,
                &error);
    ck_assert(wait > 0 && wait <= 1);
    tear_down(&f);
}
END_TEST

START_TEST(buckets_fill_at_their_rate)
{
    td_bucket bucket = {0};
    const int64_t second = 1000000000;
    for (int i = 0; i < 10; i++) TEST_NEAR(td_bucket_take(&bucket, 2, 10, second), 0, 0);
    TEST_NEAR(td_bucket_take(&bucket, 2, 10, second), 0.5, 1e-12);
    TEST_NEAR(td_bucket_take(&bucket, 2, 10, second + second / 4), 0.25, 1e-12);
    TEST_NEAR(td_bucket_take(&bucket, 2, 10, second + second / 2), 0, 0);
    TEST_NEAR(td_bucket_take(&bucket, 2, 10, second + second / 2), 0.5, 1e-12);
    /* never more than the burst */
    for (int i = 0; i < 10; i++) TEST_NEAR(td_bucket_take(&bucket, 2, 10, 1000 * second), 0, 0);
    ck_assert(td_bucket_take(&bucket, 2, 10, 1000 * second) > 0);
}
END_TEST

START_TEST(unknown_ids_cost_nothing_of_the_ration)
{
    fixture f;
    tb_error error;
    double wait = 0;
    char real[128], guess[128], id[16];
    set_up(&f);
    TEST_OK(td_auth_create_key(
                f.store, "robot",
                &(td_key_terms){.scope = TD_SCOPE_RUN, .calls_per_second = 0, .sessions = 0}, real,
                &error),
            &error);
    ck_assert(td_auth_key_id(real, id));
    /* ids that no key has are refused as quickly as they come */
    for (unsigned i = 0; i < 1000; i++) {
        const unsigned other = i == strtoul(id, NULL, 16) ? 5000 : i;
        snprintf(guess, sizeof guess, "tribo_%08x_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
                 other);
        TEST_STATUS(call_as(&f, guess, TD_SCOPE_RUN, false, NULL, &wait, &error),
                    TB_UNAUTHENTICATED, &error);
    }
    /* so that a key that is seen for the first time does not wait for them */
    TEST_OK(call_as(&f, real, TD_SCOPE_RUN, false, NULL, &wait, &error), &error);
    tear_down(&f);
}
END_TEST

START_TEST(keys_are_checked_when_they_are_made)
{
    fixture f;
    tb_error error;
    char key[128], other[128], long_name[80];
    set_up(&f);
    memset(long_name, 'a', sizeof long_name);
    long_name[sizeof long_name - 1] = '\0';
    const char *const names[] = {"", "anonymous", "a\nb", long_name};
    for (int i = 0; i < 4; i++) {
        TEST_STATUS(
            td_auth_create_key(
                f.store, names[i],
                &(td_key_terms){.scope = TD_SCOPE_RUN, .calls_per_second = 0, .sessions = 0}, key,
                &error),
            TB_INVALID_ARGUMENT, &error);
        ck_assert_str_eq(error.field, "name");
    }
    TEST_STATUS(td_auth_create_key(
                    f.store, "a",
                    &(td_key_terms){.scope = TD_SCOPE_NONE, .calls_per_second = 0, .sessions = 0},
                    key, &error),
                TB_INVALID_ARGUMENT, &error);
    TEST_STATUS(td_auth_create_key(
                    f.store, "a",
                    &(td_key_terms){.scope = TD_SCOPE_RUN, .calls_per_second = -1, .sessions = 0},
                    key, &error),
                TB_INVALID_ARGUMENT, &error);
    TEST_STATUS(td_auth_create_key(
                    f.store, "a",
                    &(td_key_terms){.scope = TD_SCOPE_RUN, .calls_per_second = 0, .sessions = -1},
                    key, &error),
                TB_INVALID_ARGUMENT, &error);

    /* two keys of one name differ; neither key is in the store */
    char id[16];
    db_api_key row;
    TEST_OK(td_auth_create_key(
                f.store, "a",
                &(td_key_terms){.scope = TD_SCOPE_RUN, .calls_per_second = 0, .sessions = 0}, key,
                &error),
            &error);
    TEST_OK(td_auth_create_key(
                f.store, "a",
                &(td_key_terms){.scope = TD_SCOPE_RUN, .calls_per_second = 0, .sessions = 0}, other,
                &error),
            &error);
    ck_assert_str_ne(key, other);
    ck_assert(td_auth_key_id(key, id));
    TEST_OK(db_get_api_key(f.store, id, &row, &error), &error);
    ck_assert(strncmp(row.hash, "$argon2id$", 10) == 0);
    ck_assert_ptr_null(strstr(row.hash, key + strlen("tribo_") + 9));
    ck_assert_str_eq(row.name, "a");
    tear_down(&f);
}
END_TEST

enum { CALLS_AT_LEAST = 200, CALLS_AT_MOST = 20000, ADMITTED_AT_LEAST = 11 };

typedef struct caller_thread {
    fixture *f;
    int admitted;
} caller_thread;

static void *call_many(void *context)
{
    caller_thread *t = context;
    tb_error error;
    for (int i = 0; i < CALLS_AT_LEAST || (i < CALLS_AT_MOST && t->admitted < ADMITTED_AT_LEAST);
         i++) {
        const char *key = i % 2 != 0 ? t->f->run_key : t->f->read_key;
        if (call_as(t->f, key, TD_SCOPE_READ, false, NULL, NULL, &error) == TB_OK)
            t->admitted++;
        else if (i >= CALLS_AT_LEAST)
            nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        if (i < CALLS_AT_LEAST && i % 50 == 49) td_auth_reload(t->f->auth, &t->f->config);
    }
    return NULL;
}

START_TEST(threads_may_admit_and_reload_at_once)
{
    enum { THREADS = 4 };
    fixture f;
    set_up(&f);
    pthread_t threads[THREADS];
    caller_thread contexts[THREADS];
    for (int i = 0; i < THREADS; i++) {
        contexts[i] = (caller_thread){&f, 0};
        pthread_create(&threads[i], NULL, call_many, &contexts[i]);
    }
    /* a reload makes the slow hash necessary again, and its ration refuses some calls, on a busy
     * machine many: refused callers come again */
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        ck_assert_int_ge(contexts[i].admitted, ADMITTED_AT_LEAST);
    }
    tear_down(&f);
}
END_TEST

START_TEST(a_key_expires_though_it_is_remembered)
{
    fixture f;
    tb_error error;
    char key[128];
    set_up(&f);
    const td_key_terms terms = {.scope = TD_SCOPE_RUN, .days = 0.5 / 86400};
    TEST_OK(td_auth_create_key(f.store, "guest", &terms, key, &error), &error);
    TEST_OK(call_as(&f, key, TD_SCOPE_RUN, false, NULL, NULL, &error), &error);
    usleep(600000);
    TEST_STATUS(call_as(&f, key, TD_SCOPE_RUN, false, NULL, NULL, &error), TB_UNAUTHENTICATED,
                &error);
    ck_assert_str_eq(error.message, "the key has expired");
    td_auth_reload(f.auth, &f.config);
    TEST_STATUS(call_as(&f, key, TD_SCOPE_RUN, false, NULL, NULL, &error), TB_UNAUTHENTICATED,
                &error);
    /* a caller without the whole key does not learn that the key existed */
    key[strlen(key) - 1] ^= 1;
    TEST_STATUS(call_as(&f, key, TD_SCOPE_RUN, false, NULL, NULL, &error), TB_UNAUTHENTICATED,
                &error);
    ck_assert_str_eq(error.message, "the key is unknown, wrong or revoked");
    tear_down(&f);
}
END_TEST

static db_api_key row_of(fixture *f, const char *key)
{
    char id[16];
    db_api_key row;
    tb_error error;
    ck_assert(td_auth_key_id(key, id));
    TEST_OK(db_flush(f->store, &error), &error);
    TEST_OK(db_get_api_key(f->store, id, &row, &error), &error);
    return row;
}

START_TEST(the_store_knows_the_last_use_of_a_key)
{
    fixture f;
    tb_error error;
    set_up(&f);
    const td_clock clock = td_clock_make();
    const int64_t before = td_clock_utc_us(&clock);
    TEST_OK(call_as(&f, f.run_key, TD_SCOPE_RUN, false, NULL, NULL, &error), &error);
    ck_assert_int_eq(row_of(&f, f.run_key).use_time_us, 0);
    td_auth_follow_store(f.auth, &f.config);
    const int64_t first = row_of(&f, f.run_key).use_time_us;
    ck_assert(first >= before - 1000 && first <= td_clock_utc_us(&clock));
    ck_assert_int_eq(row_of(&f, f.read_key).use_time_us, 0);
    /* a busy key costs a write a minute, and the end writes the rest */
    usleep(20000);
    TEST_OK(call_as(&f, f.run_key, TD_SCOPE_RUN, false, NULL, NULL, &error), &error);
    td_auth_follow_store(f.auth, &f.config);
    ck_assert_int_eq(row_of(&f, f.run_key).use_time_us, first);
    td_auth_destroy(f.auth);
    f.auth = NULL;
    ck_assert_int_ge(row_of(&f, f.run_key).use_time_us, first + 20000);
    tear_down(&f);
}
END_TEST

START_TEST(refused_keys_are_audited_and_a_flood_of_them_is_bounded)
{
    enum { FLOOD = 500 };
    static db_key_refusal rows[DB_KEY_REFUSALS];
    fixture f;
    tb_error error;
    char key[128], id[16];
    int32_t count = 0;
    set_up(&f);
    TEST_OK(td_auth_revoke_key(f.store, f.read_key, &error), &error);
    TEST_STATUS(call_as(&f, f.read_key, TD_SCOPE_READ, false, NULL, NULL, &error),
                TB_UNAUTHENTICATED, &error);
    for (int i = 0; i < 3; i++)
        TEST_STATUS(call_as(&f, "tribo_00000000_x", TD_SCOPE_READ, false, NULL, NULL, &error),
                    TB_UNAUTHENTICATED, &error);
    td_auth_follow_store(f.auth, &f.config);
    TEST_OK(db_flush(f.store, &error), &error);
    TEST_OK(db_list_key_refusals(f.store, rows, DB_KEY_REFUSALS, &count, &error), &error);
    ck_assert_int_eq(count, 2);
    td_auth_key_id(f.read_key, id);
    for (int32_t i = 0; i < count; i++) {
        const bool revoked = strcmp(rows[i].key, id) == 0;
        ck_assert_str_eq(rows[i].reason, revoked ? "revoked" : "unknown");
        ck_assert_int_eq(rows[i].refusals, revoked ? 1 : 3);
        ck_assert_str_eq(rows[i].peer, "192.0.2.7"); /* without the port */
    }
    int64_t told = 0;
    for (int i = 0; i < FLOOD; i++) {
        snprintf(key, sizeof key, "tribo_%08x_x", 0x1000 + i);
        TEST_STATUS(call_as(&f, key, TD_SCOPE_READ, false, NULL, NULL, &error), TB_UNAUTHENTICATED,
                    &error);
    }
    td_auth_follow_store(f.auth, &f.config);
    TEST_OK(db_flush(f.store, &error), &error);
    TEST_OK(db_list_key_refusals(f.store, rows, DB_KEY_REFUSALS, &count, &error), &error);
    ck_assert_int_eq(count, 2 + TD_AUDIT_ROWS);
    for (int32_t i = 0; i < count; i++) told += rows[i].refusals;
    ck_assert_int_eq(told, 4 + FLOOD);
    tear_down(&f);
}
END_TEST

TEST_MAIN(a_key_expires_though_it_is_remembered, the_store_knows_the_last_use_of_a_key,
          refused_keys_are_audited_and_a_flood_of_them_is_bounded, a_key_names_its_caller,
          a_remembered_key_is_quick, a_scope_that_is_too_small_is_refused,
          wrong_keys_are_refused_and_not_repeated,
          callers_without_a_key_have_rights_on_loopback_only, a_revoked_key_ends_with_the_reload,
          a_rate_says_when_to_come_back, buckets_fill_at_their_rate,
          unknown_ids_cost_nothing_of_the_ration, keys_are_checked_when_they_are_made,
          threads_may_admit_and_reload_at_once)
