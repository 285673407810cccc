/* The table of sessions: identity, owner, lease, quota, and the end of a session. */
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "ops/replica.h"
#include "schedule/pace.h"
#include "session/session_internal.h"

enum { FIRST_BUCKETS = 256 };

/* ---- identifiers ---- */

void td_id_print(const db_id *id, char text[33])
{
    sodium_bin2hex(text, 33, id->bytes, sizeof id->bytes);
}

bool td_id_parse(const char *text, db_id *id)
{
    size_t size = 0;
    if (strlen(text) != 32 || strspn(text, "0123456789abcdef") != 32) return false;
    return sodium_hex2bin(id->bytes, sizeof id->bytes, text, 32, NULL, &size, NULL) == 0 &&
           size == sizeof id->bytes;
}

static int digit_value(char c)
{
    return c <= '9' ? c - '0' : c - 'a' + 10;
}

bool td_id_range(const char *text, void *lower, void *upper, size_t size)
{
    const size_t digits = strlen(text);
    uint8_t *low = lower, *high = upper;
    if (digits < TD_ID_PREFIX_DIGITS || digits > 2 * size ||
        strspn(text, "0123456789abcdef") != digits)
        return false;
    memset(low, 0, size);
    memset(high, 0xff, size);
    for (size_t i = 0; i < digits; i++) {
        const int shift = i % 2 == 0 ? 4 : 0, value = digit_value(text[i]);
        low[i / 2] = (uint8_t)(low[i / 2] | value << shift);
        high[i / 2] = (uint8_t)((high[i / 2] & ~(15 << shift)) | value << shift);
    }
    return true;
}

db_id td_id_random(void)
{
    db_id id;
    randombytes_buf(id.bytes, sizeof id.bytes);
    return id;
}

/* Identifiers are random: any part of them is a hash. */
static uint32_t hash_of(const db_id *id)
{
    uint32_t hash;
    memcpy(&hash, id->bytes, sizeof hash);
    return hash;
}

/* ---- one session's memory ---- */

void td_session_hold(td_session *s)
{
    atomic_fetch_add_explicit(&s->references, 1, memory_order_relaxed);
}

void td_session_release(td_session *s)
{
    if (s == NULL || atomic_fetch_sub_explicit(&s->references, 1, memory_order_acq_rel) != 1)
        return;
    td_session_destroy_worlds(s, s->states);
    td_session_give_memory_back(s);
    td_session_end_recording(s);
    td_scene_release(s->all->server->catalog, s->scene);
    if (s->origin != NULL) td_origin_release(s->all, s->origin);
    if (s->device != NULL) td_session_leave_device(s);
    free(s->certificates);
    free(s->failure);
    pthread_mutex_destroy(&s->mutex);
    free(s);
}

td_session *td_session_new(td_sessions *all, tb_error *error)
{
    td_session *s = calloc(1, sizeof *s);
    if (s == NULL) {
        tb_fail_memory(error, sizeof *s, "a session");
        return NULL;
    }
    s->all = all;
    s->keyframe = -1;
    atomic_init(&s->references, 1);
    pthread_mutex_init(&s->mutex, NULL);
    s->id = td_id_random();
    td_replica_mark(all->server->config, s->id.bytes);
    td_id_print(&s->id, s->text);
    return s;
}

uint64_t td_session_pace(const td_session *s)
{
    return td_pace_key(td_pace_hash(TD_PACE_SEED, s->scene_id, strlen(s->scene_id)), &s->options);
}

void td_session_leave_device(td_session *s)
{
    atomic_fetch_sub(&s->device->sessions, 1);
    atomic_fetch_sub(&s->device->worlds, s->worlds);
}

void td_session_set_device(td_session *s, td_device *device)
{
    s->device = device;
    s->pace = td_session_pace(s);
    atomic_fetch_add(&device->sessions, 1);
    atomic_fetch_add(&device->worlds, s->worlds);
    td_session_publish_memory(s); /* a fork has booked it before it has a device */
    td_device_apply(device, &s->options);
}

tb_status td_session_fetch(td_session *s, td_wire_want want, tb_error *error)
{
    return td_session_fetch_worlds(s, s->states, s->worlds, want, error);
}

tb_status td_session_fetch_worlds(td_session *s, tb_state *const *states, int32_t worlds,
                                  td_wire_want want, tb_error *error)
{
    const bool contacts = want.contacts || want.pairs || want.sensors;
    if (!want.state && !want.bodies && !want.poses && !want.forces && !contacts) return TB_OK;
    const tb_status status = tb_states_fetch(states, worlds, contacts, error);
    if (status == TB_ABORTED) td_device_lose(s->all->server, s->device);
    return status;
}

/* ---- the table, under its mutex ---- */

static td_session **bucket_of(td_sessions *all, const db_id *id)
{
    return &all->buckets[hash_of(id) & (all->number_of_buckets - 1)];
}

/* A failure to grow is harmless: longer lists are only slower. */
static void grow(td_sessions *all)
{
    const uint32_t n = 2 * all->number_of_buckets;
    td_session **buckets = calloc(n, sizeof(td_session *));
    if (buckets == NULL) return;
    free(all->buckets);
    all->buckets = buckets;
    all->number_of_buckets = n;
    for (td_session *s = all->oldest; s != NULL; s = s->newer) {
        td_session **bucket = bucket_of(all, &s->id);
        s->hash_next = *bucket;
        *bucket = s;
    }
}

static td_session *look_up(td_sessions *all, const db_id *id)
{
    td_session *s = *bucket_of(all, id);
    while (s != NULL && memcmp(&s->id, id, sizeof *id) != 0) s = s->hash_next;
    return s;
}

/* True if it was there. */
static bool take_out(td_sessions *all, td_session *s)
{
    td_session **link = bucket_of(all, &s->id);
    while (*link != NULL && *link != s) link = &(*link)->hash_next;
    if (*link == NULL) return false;
    *link = s->hash_next;
    *(s->newer != NULL ? &s->newer->older : &all->newest) = s->older;
    *(s->older != NULL ? &s->older->newer : &all->oldest) = s->newer;
    all->count--;
    td_metrics_set(all->server->metrics, TD_METRIC_SESSIONS, all->count);
    return true;
}

static td_owner *owner_of(td_sessions *all, const char *name)
{
    for (int32_t i = 0; i < all->number_of_owners; i++)
        if (strcmp(all->owners[i].name, name) == 0) return &all->owners[i];
    return NULL;
}

static td_owner *add_owner(td_sessions *all, const char *name)
{
    if (all->number_of_owners == all->owner_capacity) {
        const int32_t capacity = 2 * all->owner_capacity + 16;
        td_owner *grown = realloc(all->owners, (size_t)capacity * sizeof *grown);
        if (grown == NULL) return NULL;
        all->owners = grown;
        all->owner_capacity = capacity;
    }
    td_owner *owner = &all->owners[all->number_of_owners++];
    *owner = (td_owner){.sessions = 0};
    snprintf(owner->name, sizeof owner->name, "%s", name);
    return owner;
}

/* An owner has `count` sessions less. */
static void discount(td_sessions *all, const char *name, int32_t count)
{
    td_owner *owner = owner_of(all, name);
    if (owner == NULL) return;
    owner->sessions -= count;
    if (owner->sessions <= 0) *owner = all->owners[--all->number_of_owners];
}

/* ---- quota ---- */

static tb_status check_quota(td_sessions *all, const td_caller *caller, int32_t count,
                             tb_error *error)
{
    const td_config *config = all->server->config;
    const td_owner *owner = owner_of(all, caller->name);
    const int64_t mine = owner != NULL ? owner->sessions : 0;
    const int64_t total = (int64_t)all->count + all->reserved;
    const int32_t quota = caller->sessions > 0 ? caller->sessions : config->sessions_per_client;
    if (mine + count > quota)
        return tb_fail_field(error, TB_RESOURCE_EXHAUSTED, "sessions",
                             "%s has %lld sessions, %d more would be over its quota of %d",
                             caller->name, (long long)mine, count, quota);
    if (total + count > config->sessions)
        return tb_fail_field(error, TB_RESOURCE_EXHAUSTED, "sessions",
                             "%lld sessions are open, %d more would be over the limit of %d",
                             (long long)total, count, config->sessions);
    return TB_OK;
}

tb_status td_sessions_reserve(td_sessions *all, const td_caller *caller, int32_t count,
                              tb_error *error)
{
    if (atomic_load(&all->server->draining))
        return tb_fail(error, TB_UNAVAILABLE, "the server is stopping");
    pthread_mutex_lock(&all->mutex);
    tb_status status = check_quota(all, caller, count, error);
    if (status == TB_OK) {
        td_owner *owner = owner_of(all, caller->name);
        if (owner == NULL) owner = add_owner(all, caller->name);
        if (owner != NULL) {
            owner->sessions += count;
            all->reserved += count;
        } else {
            status = tb_fail_memory(error, sizeof *owner, "a client");
        }
    }
    pthread_mutex_unlock(&all->mutex);
    return status;
}

void td_sessions_unreserve(td_sessions *all, const char *owner, int32_t count)
{
    pthread_mutex_lock(&all->mutex);
    all->reserved -= count;
    discount(all, owner, count);
    pthread_mutex_unlock(&all->mutex);
}

void td_sessions_insert(td_sessions *all, td_session *s)
{
    td_session_hold(s);
    pthread_mutex_lock(&all->mutex);
    all->reserved--;
    all->count++;
    td_session **bucket = bucket_of(all, &s->id);
    s->hash_next = *bucket;
    *bucket = s;
    s->sequence = all->next_sequence++;
    s->older = all->newest;
    s->newer = NULL;
    *(s->older != NULL ? &s->older->newer : &all->oldest) = s;
    all->newest = s;
    if ((uint32_t)all->count > 2 * all->number_of_buckets) grow(all);
    td_metrics_set(all->server->metrics, TD_METRIC_SESSIONS, all->count);
    pthread_mutex_unlock(&all->mutex);
}

void td_sessions_adopt(td_sessions *all, td_session *s)
{
    pthread_mutex_lock(&all->mutex);
    td_owner *owner = owner_of(all, s->owner);
    if (owner == NULL) owner = add_owner(all, s->owner);
    if (owner != NULL) owner->sessions++;
    all->reserved++;
    pthread_mutex_unlock(&all->mutex);
    td_sessions_insert(all, s);
}

/* ---- finding ---- */

void td_session_renew(td_session *s)
{
    const int64_t now = td_clock_steady_us(&s->all->server->clock);
    atomic_store_explicit(&s->expire_time_us, now + (int64_t)(s->ttl_seconds * 1e6),
                          memory_order_relaxed);
}

static bool may_see(const td_caller *caller, const td_session *s)
{
    return caller->scope >= TD_SCOPE_ADMIN || strcmp(s->owner, caller->name) == 0;
}

/* The caller's session with an id in a range, and how many there are. Under the table's mutex. */
static td_session *find_between(td_sessions *all, const td_caller *caller, const db_id *lower,
                                const db_id *upper, int32_t *count)
{
    td_session *found = NULL;
    *count = 0;
    for (td_session *s = all->oldest; s != NULL; s = s->newer) {
        if (memcmp(&s->id, lower, sizeof *lower) < 0 || memcmp(&s->id, upper, sizeof *upper) > 0)
            continue;
        if (!may_see(caller, s)) continue;
        found = s;
        ++*count;
    }
    return found;
}

tb_status td_sessions_find(td_sessions *all, const td_caller *caller, const char *text,
                           td_session **session, tb_error *error)
{
    *session = NULL;
    db_id id, lower, upper;
    const bool whole = td_id_parse(text, &id);
    int32_t count = 1;
    if (!whole && !td_id_range(text, &lower, &upper, sizeof id))
        return tb_fail_field(error, TB_INVALID_ARGUMENT, "session_id",
                             "session_id is '%.80s', expected 32 lower-case hexadecimal digits, or "
                             "the first %d or more",
                             text, TD_ID_PREFIX_DIGITS);
    pthread_mutex_lock(&all->mutex);
    td_session *s = whole ? look_up(all, &id) : find_between(all, caller, &lower, &upper, &count);
    if (s != NULL && !may_see(caller, s)) s = NULL;
    if (count > 1) s = NULL;
    if (s != NULL) td_session_hold(s);
    pthread_mutex_unlock(&all->mutex);
    if (count > 1)
        return tb_fail_field(error, TB_INVALID_ARGUMENT, "session_id",
                             "%s begins the ids of %d sessions", text, count);
    if (s == NULL) {
        char address[TD_CONFIG_TEXT_SIZE];
        if (whole && td_replica_of_id(all->server->config, id.bytes, address))
            return td_replica_fail(error, "session_id", text, address);
        return tb_fail_field(error, TB_NOT_FOUND, "session_id", "there is no session %s", text);
    }
    td_session_renew(s);
    *session = s;
    return TB_OK;
}

int32_t td_sessions_count(const td_sessions *all)
{
    td_sessions *open = (td_sessions *)(uintptr_t)all; /* the mutex is no part of the value */
    pthread_mutex_lock(&open->mutex);
    const int32_t count = open->count;
    pthread_mutex_unlock(&open->mutex);
    return count;
}

/* ---- the end of a session ---- */

static const char *event_kind(Tribo__V1__SessionEvent event)
{
    switch (event) {
    case TRIBO__V1__SESSION_EVENT__SESSION_EVENT_EXPIRED: return "expired";
    case TRIBO__V1__SESSION_EVENT__SESSION_EVENT_EVICTED: return "evicted";
    case TRIBO__V1__SESSION_EVENT__SESSION_EVENT_DEVICE_LOST: return "device_lost";
    default: return "deleted";
    }
}

static bool end_session(td_session *s, Tribo__V1__SessionEvent event, const char *reason,
                        td_call *deletion)
{
    td_sessions *all = s->all;
    pthread_mutex_lock(&all->mutex);
    const bool there = take_out(all, s);
    if (there) discount(all, s->owner, 1);
    pthread_mutex_unlock(&all->mutex);
    if (!there) return false;

    /* the closing thread sees this, since `ended` below is set later */
    if (deletion != NULL) td_call_hold(deletion);
    s->deletion = deletion;
    atomic_store(&s->stop, true);
    pthread_mutex_lock(&s->mutex);
    s->ended = true;
    snprintf(s->end_reason, sizeof s->end_reason, "%s", event_kind(event));
    td_job *jobs = s->first;
    s->first = s->last = NULL;
    s->waiting = 0;
    const bool close_now = !s->busy;
    s->busy = true; /* for good */
    pthread_mutex_unlock(&s->mutex);

    tb_error error;
    tb_fail(&error, TB_NOT_FOUND, "the session has ended: %s", reason);
    while (jobs != NULL) {
        td_job *next = jobs->next;
        jobs->refuse(jobs, &error);
        jobs = next;
    }
    td_session_tell(s, event, reason, true);
    td_transients_drop(all, &s->id);
    td_log_write(all->server->log, TB_LOG_INFO, "session.ended", "session=%s reason=%s steps=%lld",
                 s->text, event_kind(event), (long long)atomic_load(&s->steps));
    if (close_now) td_session_close(s);
    td_session_release(s); /* the table's */
    return true;
}

bool td_session_end(td_session *s, Tribo__V1__SessionEvent event, const char *reason)
{
    return end_session(s, event, reason, NULL);
}

void td_session_delete(td_session *s, td_call *call)
{
    /* another owner's session: only an administrator reaches this */
    const bool mine = strcmp(s->owner, call->caller.name) == 0;
    const bool ended =
        mine ? end_session(s, TRIBO__V1__SESSION_EVENT__SESSION_EVENT_DELETED, "by its owner", call)
             : end_session(s, TRIBO__V1__SESSION_EVENT__SESSION_EVENT_EVICTED, "by an admin", call);
    if (ended) return;
    tb_error error;
    tb_fail_field(&error, TB_NOT_FOUND, "session_id", "there is no session %s", s->text);
    td_call_fail(call, &error);
}

/* ---- answers ---- */

int32_t td_session_piece(tb_state *const *states, int32_t worlds, td_wire_want want, uint64_t bytes)
{
    uint64_t sum = td_wire_world_bytes(states[0], want);
    int32_t count = 1;
    while (count < worlds) {
        sum += td_wire_world_bytes(states[count], want);
        if (sum > bytes) break;
        count++;
    }
    return count;
}

tb_status td_session_set_kinematic(tb_state *state, const double *numbers, tb_error *error)
{
    const tb_model *model = tb_state_model(state);
    const int32_t bodies = tb_model_count(model).bodies;
    tb_status status = TB_OK;
    for (int32_t b = 0; b < bodies && status == TB_OK; b++) {
        tb_body_info info;
        if (tb_model_body_info(model, b, &info) != TB_OK || !info.kinematic) continue;
        status = tb_state_set_kinematic(state, b, numbers, numbers + 3, numbers + 7, numbers + 10,
                                        error);
        numbers += TD_KINEMATIC_NUMBERS;
    }
    return status;
}

bool td_session_fill_pairs(const td_session *s, td_wire *wire, int32_t first, int32_t count,
                           const Tribo__V1__StepReturn *want, Tribo__V1__State *state)
{
    const td_wire_pair *pairs = NULL;
    int32_t n = 0;
    tb_error ignored;
    if (want == NULL || want->n_pairs == 0) return true;
    if (state == NULL ||
        td_wire_find_pairs(wire, s->scene->model, want, &pairs, &n, &ignored) != TB_OK)
        return false;
    state->pairs =
        td_wire_pair_contacts(wire, s->states + first, count, pairs, n, td_session_dt(s));
    return state->pairs != NULL;
}

double td_session_dt(const td_session *s)
{
    return s->options.dt > 0 ? s->options.dt : tb_model_dt(s->scene->model);
}

td_wire td_wire_borrow(td_sessions *all)
{
    td_wire wire = {0};
    pthread_mutex_lock(&all->wires_mutex);
    if (all->number_of_wires > 0) wire = all->wires[--all->number_of_wires];
    pthread_mutex_unlock(&all->wires_mutex);
    return wire;
}

void td_wire_return(td_sessions *all, td_wire *wire)
{
    td_wire_reset(wire);
    pthread_mutex_lock(&all->wires_mutex);
    const bool room = all->number_of_wires < (int)(sizeof all->wires / sizeof *all->wires);
    if (room) all->wires[all->number_of_wires++] = *wire;
    pthread_mutex_unlock(&all->wires_mutex);
    if (!room) td_wire_destroy(wire);
}

/* ---- life ---- */

tb_status td_sessions_create(td_server *server, td_sessions **sessions, tb_error *error)
{
    *sessions = NULL;
    if (sodium_init() < 0) return tb_fail(error, TB_INTERNAL, "libsodium does not start");
    td_sessions *all = calloc(1, sizeof *all);
    td_session **buckets = calloc(FIRST_BUCKETS, sizeof(td_session *));
    if (all == NULL || buckets == NULL) {
        free(all);
        free(buckets);
        return tb_fail_memory(error, sizeof *all, "the table of sessions");
    }
    all->server = server;
    all->buckets = buckets;
    all->number_of_buckets = FIRST_BUCKETS;
    all->next_due_ns = INT64_MAX;
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_mutex_init(&all->mutex, NULL);
    pthread_mutex_init(&all->transient_mutex, NULL);
    pthread_mutex_init(&all->wires_mutex, NULL);
    pthread_mutex_init(&all->reaper_mutex, NULL);
    pthread_cond_init(&all->reaper_wake, &monotonic);
    pthread_condattr_destroy(&monotonic);
    const tb_status status = td_reaper_start(all, error);
    if (status == TB_OK)
        *sessions = all;
    else
        td_sessions_destroy(all);
    return status;
}

void td_sessions_destroy(td_sessions *all)
{
    if (all == NULL) return;
    td_reaper_stop(all);

    /* pending jobs hold sessions: the device's, then the store's */
    for (td_session *s = all->oldest; s != NULL; s = s->newer) atomic_store(&s->stop, true);
    td_devices_drain(all->server, 60);
    if (all->server->db != NULL) db_flush(all->server->db, NULL);
    for (td_session *s = all->oldest, *newer; s != NULL; s = newer) {
        newer = s->newer;
        td_session_release(s);
    }
    td_transients_drop(all, NULL);
    for (int i = 0; i < all->number_of_wires; i++) td_wire_destroy(&all->wires[i]);
    pthread_mutex_destroy(&all->mutex);
    pthread_mutex_destroy(&all->transient_mutex);
    pthread_mutex_destroy(&all->wires_mutex);
    pthread_mutex_destroy(&all->reaper_mutex);
    pthread_cond_destroy(&all->reaper_wake);
    free(all->owners);
    free(all->buckets);
    free(all);
}
