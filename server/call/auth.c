/* Admission: identifies the caller and checks its scope and its rate.
 *
 * A secret of 256 random bits needs no slow hash to resist guessing. argon2id at a low cost (8 MiB)
 * protects against a leaked store and against keys that people may choose one day. Slow
 * verifications run one at a time and are rationed, so that a flood of wrong keys costs a bounded
 * share of one core and 8 MiB. Verified and refused keys are cached under a keyed hash whose key
 * never leaves the process: neither a core dump's strings nor timing reveals a key. Every table has
 * a fixed size; the least recently used entry of a set is replaced first. */
#include "call/auth.h"

#include <ctype.h>
#include <pthread.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "db/db.h"
#include "call/auth_internal.h"
#include "base/error.h"
#include "ops/clock.h"
#include "call/call.h"
#include "ops/daemon.h"

enum { SETS = 256, WAYS = 4, REFUSED_SECONDS = 30 };
enum { DIGEST_SIZE = 32, TOKEN_SIZE_MAXIMUM = 127 };

/* wrong or new keys that may be tried in a row, and per second after that */
static const double SLOW_BURST = 20, SLOW_PER_SECOND = 20;

static const char EXPIRED[] = "expired";

/* Cached data of one token. */
typedef struct remembered {
    uint8_t digest[DIGEST_SIZE];
    int64_t until_ns, used_ns; /* 0: free */
    int64_t noted_ns;          /* the last use written to the store; 0: none */
    int64_t expire_us;         /* UTC; 0: never */
    bool valid;
    const char *refusal; /* why it is not valid */
    char id[16], name[TD_CALLER_NAME_SIZE];
    td_scope scope;
    double calls_per_second;
    int32_t sessions;
} remembered;

struct td_auth {
    struct db *store;
    td_clock clock;
    uint8_t secret[crypto_generichash_KEYBYTES];
    pthread_mutex_t slow; /* held while a key is verified; taken before `mutex` */
    pthread_mutex_t mutex;
    td_scope anonymous;
    bool anonymous_remote;
    double calls_per_second;
    int64_t generation; /* grows at each reload: rows read before may be stale */
    remembered keys[SETS][WAYS];
    td_bucket_table buckets;
    td_audit audit;
    int64_t keys_mark; /* of the store's keys when they were last looked at; -1: never */
};

static void take_settings(td_auth *auth, const td_config *config)
{
    auth->anonymous = (td_scope)config->anonymous;
    auth->anonymous_remote = config->anonymous_remote;
    auth->calls_per_second = config->calls_per_second;
}

tb_status td_auth_create(const td_config *config, struct db *store, td_auth **created,
                         tb_error *error)
{
    *created = NULL;
    if (sodium_init() < 0) return tb_fail(error, TB_INTERNAL, "libsodium cannot start");
    td_auth *auth = calloc(1, sizeof *auth);
    if (auth == NULL) return tb_fail_memory(error, sizeof *auth, "admission");
    auth->store = store;
    auth->clock = td_clock_make();
    auth->keys_mark = -1;
    crypto_generichash_keygen(auth->secret);
    pthread_mutex_init(&auth->slow, NULL);
    pthread_mutex_init(&auth->mutex, NULL);
    take_settings(auth, config);
    *created = auth;
    return TB_OK;
}

/* Writes uses of keys to the store: of each key once a minute at most, or of all when `all`. */
static void store_uses(td_auth *auth, bool all)
{
    enum { AT_ONCE = 64 };
    static const int64_t USE_NS = 60000000000;
    struct {
        char id[16];
        int64_t time_us;
    } uses[AT_ONCE];
    int32_t count = 0;
    const int64_t now = td_monotonic_ns(), now_us = td_clock_utc_us(&auth->clock);
    pthread_mutex_lock(&auth->mutex);
    for (remembered *r = auth->keys[0]; r < auth->keys[0] + SETS * WAYS && count < AT_ONCE; r++) {
        if (r->until_ns == 0 || !r->valid || r->used_ns <= r->noted_ns) continue;
        if (!all && r->noted_ns != 0 && now - r->noted_ns < USE_NS) continue;
        snprintf(uses[count].id, sizeof uses->id, "%s", r->id);
        uses[count++].time_us = now_us - (now - r->used_ns) / 1000;
        r->noted_ns = now;
    }
    pthread_mutex_unlock(&auth->mutex);
    tb_error ignored;
    for (int32_t i = 0; i < count; i++)
        if (db_note_key_use(auth->store, uses[i].id, uses[i].time_us, &ignored) != TB_OK) return;
}

static void store_refusals(td_auth *auth)
{
    pthread_mutex_lock(&auth->mutex);
    const td_audit audit = auth->audit;
    auth->audit.count = 0;
    pthread_mutex_unlock(&auth->mutex);
    td_audit_store(&audit, auth->store);
}

void td_auth_destroy(td_auth *auth)
{
    if (auth == NULL) return;
    store_uses(auth, true);
    store_refusals(auth);
    pthread_mutex_destroy(&auth->mutex);
    pthread_mutex_destroy(&auth->slow);
    sodium_memzero(auth, sizeof *auth);
    free(auth);
}

void td_auth_reload(td_auth *auth, const td_config *config)
{
    pthread_mutex_lock(&auth->mutex);
    take_settings(auth, config);
    auth->generation++;
    memset(auth->keys, 0, sizeof auth->keys);
    pthread_mutex_unlock(&auth->mutex);
}

/* ---- tokens ------------------------------------------------------------------------------------*/

bool td_auth_key_id(const char *text, char id[16])
{
    if (strncmp(text, TD_KEY_PREFIX, strlen(TD_KEY_PREFIX)) == 0) text += strlen(TD_KEY_PREFIX);
    if (strspn(text, "0123456789abcdef") != TD_KEY_ID_DIGITS) return false;
    if (text[TD_KEY_ID_DIGITS] != '\0' && text[TD_KEY_ID_DIGITS] != '_') return false;
    memcpy(id, text, TD_KEY_ID_DIGITS);
    id[TD_KEY_ID_DIGITS] = '\0';
    return true;
}

/* The token of "Bearer TOKEN", NULL if the header holds none that could be a key. */
static const char *bearer_token(const char *authorization, char id[16])
{
    static const char SCHEME[] = "bearer";
    while (*authorization == ' ') authorization++;
    for (const char *c = SCHEME; *c != '\0'; c++, authorization++)
        if (tolower((unsigned char)*authorization) != *c) return NULL;
    if (*authorization != ' ') return NULL;
    while (*authorization == ' ') authorization++;
    if (strncmp(authorization, TD_KEY_PREFIX, strlen(TD_KEY_PREFIX)) != 0) return NULL;
    if (strlen(authorization) > TOKEN_SIZE_MAXIMUM) return NULL;
    return td_auth_key_id(authorization, id) ? authorization : NULL;
}

/* The place of a digest, if it is remembered; else the place to put it. Under the mutex. */
static remembered *find(td_auth *auth, const uint8_t digest[DIGEST_SIZE], int64_t now, bool *found)
{
    remembered *set = auth->keys[digest[0] % SETS], *oldest = &set[0];
    *found = false;
    for (int i = 0; i < WAYS; i++) {
        if (set[i].until_ns > now && sodium_memcmp(set[i].digest, digest, DIGEST_SIZE) == 0) {
            *found = true;
            set[i].used_ns = now;
            return &set[i];
        }
        if (set[i].until_ns <= now) set[i].used_ns = 0;
        if (set[i].used_ns < oldest->used_ns) oldest = &set[i];
    }
    return oldest;
}

/* Reads the key's row and compares the token with its hash; *valid is the result. */
static tb_status verify(td_auth *auth, const char *token, const char *id, remembered *what,
                        tb_error *error)
{
    db_api_key row;
    tb_error trouble = {.status = TB_OK};
    const tb_status status = db_get_api_key(auth->store, id, &row, &trouble);
    what->refusal = "unknown";
    if (status == TB_NOT_FOUND) return TB_OK;
    if (status != TB_OK)
        return tb_fail(error, TB_UNAVAILABLE, "keys cannot be read now: %s", trouble.message);
    row.hash[sizeof row.hash - 1] = '\0';
    what->valid = !row.revoked &&
                  crypto_pwhash_str_verify(row.hash, token, (unsigned long long)strlen(token)) == 0;
    what->refusal = row.revoked ? "revoked" : "wrong";
    what->expire_us = row.expire_time_us;
    snprintf(what->id, sizeof what->id, "%s", id);
    snprintf(what->name, sizeof what->name, "%s", row.name);
    what->scope = (td_scope)row.scope;
    what->calls_per_second = row.calls_per_second;
    what->sessions = row.sessions;
    sodium_memzero(row.hash, sizeof row.hash);
    return TB_OK;
}

static void digest_token(td_auth *auth, const char *token, uint8_t digest[DIGEST_SIZE])
{
    crypto_generichash(digest, DIGEST_SIZE, (const uint8_t *)token, strlen(token), auth->secret,
                       sizeof auth->secret);
}

bool td_auth_quick(td_auth *auth, const char *authorization)
{
    uint8_t digest[DIGEST_SIZE];
    char id[16];
    bool found;
    const char *token = authorization != NULL ? bearer_token(authorization, id) : NULL;
    if (token == NULL) return true;
    digest_token(auth, token, digest);
    pthread_mutex_lock(&auth->mutex);
    find(auth, digest, td_monotonic_ns(), &found);
    pthread_mutex_unlock(&auth->mutex);
    return found;
}

/* "KIND ADDRESS" of the caller, without the port. */
static void name_bucket(const char *kind, const td_call *call, char name[96])
{
    const char *colon = strrchr(call->peer, ':');
    const size_t length = colon != NULL ? (size_t)(colon - call->peer) : strlen(call->peer);
    snprintf(name, 96, "%s %.*s", kind, (int)length, call->peer);
}

/* Finds out about a token: from memory, else from the store by the slow hash. */
static tb_status look_up(td_auth *auth, const td_call *call, const char *token, const char *id,
                         remembered *what, double *retry_after, tb_error *error)
{
    uint8_t digest[DIGEST_SIZE];
    char slow_name[96];
    bool found;
    name_bucket("slow", call, slow_name);
    digest_token(auth, token, digest);
    pthread_mutex_lock(&auth->mutex);
    const remembered *known = find(auth, digest, td_monotonic_ns(), &found);
    if (found) *what = *known;
    pthread_mutex_unlock(&auth->mutex);
    if (found) return TB_OK;

    /* an unknown id is refused by a look into the store: the slow check and its ration are spared */
    db_api_key row;
    tb_error trouble = {.status = TB_OK};
    if (db_get_api_key(auth->store, id, &row, &trouble) == TB_NOT_FOUND) {
        memset(what, 0, sizeof *what);
        what->refusal = "unknown";
        return TB_OK;
    }
    sodium_memzero(row.hash, sizeof row.hash);

    /* another thread may have verified the same key while this one waited */
    pthread_mutex_lock(&auth->slow);
    pthread_mutex_lock(&auth->mutex);
    const int64_t now = td_monotonic_ns(), generation = auth->generation;
    known = find(auth, digest, now, &found);
    if (found) *what = *known;
    double wait = 0;
    if (!found) {
        td_bucket *ration = td_bucket_find(&auth->buckets, slow_name, auth->secret);
        wait = td_bucket_take(ration, SLOW_PER_SECOND, SLOW_BURST, now);
    }
    pthread_mutex_unlock(&auth->mutex);

    tb_status status = TB_OK;
    if (wait > 0) {
        *retry_after = wait;
        status = tb_fail(error, TB_RESOURCE_EXHAUSTED, "too many unknown keys; try again in %.1f s",
                         wait);
    } else if (!found) {
        memset(what, 0, sizeof *what);
        status = verify(auth, token, id, what, error);
    }
    if (status == TB_OK && !found) {
        pthread_mutex_lock(&auth->mutex);
        const int64_t seconds = what->valid ? TD_AUTH_REMEMBER_SECONDS : REFUSED_SECONDS;
        memcpy(what->digest, digest, sizeof digest);
        what->used_ns = td_monotonic_ns();
        what->until_ns = what->used_ns + seconds * 1000000000;
        if (generation == auth->generation) *find(auth, digest, what->used_ns, &found) = *what;
        pthread_mutex_unlock(&auth->mutex);
    }
    pthread_mutex_unlock(&auth->slow);
    return status;
}

/* ---- admission ---------------------------------------------------------------------------------*/

static void count(const td_call *call, td_metric metric)
{
    if (call->server != NULL && call->server->metrics != NULL)
        td_metrics_add(call->server->metrics, metric, 1);
}

static tb_status unauthenticated(td_call *call, tb_error *error, const char *why)
{
    count(call, TD_METRIC_UNAUTHENTICATED);
    return tb_fail_field(error, TB_UNAUTHENTICATED, "authorization", "%s", why);
}

/* Takes one call from the caller's bucket: of the key, or of the address without its port. */
static tb_status check_rate(td_auth *auth, td_call *call, const char *key_id, double rate,
                            double *retry_after, tb_error *error)
{
    pthread_mutex_lock(&auth->mutex);
    if (rate <= 0) rate = auth->calls_per_second;
    double wait = 0;
    if (rate > 0) {
        char name[96];
        if (key_id != NULL)
            snprintf(name, sizeof name, "key %s", key_id);
        else
            name_bucket("peer", call, name);
        /* a second's worth at once, but never less than one call */
        const int64_t now = td_monotonic_ns();
        td_bucket *bucket = td_bucket_find(&auth->buckets, name, auth->secret);
        wait = td_bucket_take(bucket, rate, rate > 1 ? rate : 1, now);
    }
    pthread_mutex_unlock(&auth->mutex);
    if (wait <= 0) return TB_OK;
    *retry_after = wait;
    count(call, TD_METRIC_RATE_LIMITED);
    return tb_fail(error, TB_RESOURCE_EXHAUSTED,
                   "more than %g calls per second; try again in %.3f s", rate, wait);
}

static const char *scope_name(td_scope scope)
{
    static const char *const NAMES[] = {"none", "read", "run", "admin"};
    return NAMES[scope >= TD_SCOPE_NONE && scope <= TD_SCOPE_ADMIN ? scope : TD_SCOPE_NONE];
}

/* Refuses a key. Counts the refusal in the audit, and logs at most ten a second: the id (not
 * secret), the reason and the peer. */
static tb_status refuse_key(td_auth *auth, td_call *call, const char *id, const char *reason,
                            tb_error *error)
{
    enum { AUDITS_PER_SECOND = 10 };
    pthread_mutex_lock(&auth->mutex);
    td_audit_note(&auth->audit, id, call->peer, reason, td_clock_utc_us(&auth->clock));
    td_bucket *told = td_bucket_find(&auth->buckets, "audit", auth->secret);
    const bool tell =
        td_bucket_take(told, AUDITS_PER_SECOND, AUDITS_PER_SECOND, td_monotonic_ns()) <= 0;
    pthread_mutex_unlock(&auth->mutex);
    if (tell && call->server != NULL && call->server->log != NULL)
        td_log_write(call->server->log, TB_LOG_WARNING, "auth.refused",
                     "key=%s reason=%s peer=%s method=%s", id, reason, call->peer,
                     call->method != NULL ? call->method->name : "");
    /* only the holder of the whole key learns that it has expired */
    return unauthenticated(call, error,
                           strcmp(reason, EXPIRED) == 0 ? "the key has expired"
                                                        : "the key is unknown, wrong or revoked");
}

/* Callers without a key share a name, but not the turns of others at other addresses. */
static void name_account(td_call *call, bool keyed)
{
    td_caller *caller = &call->caller;
    if (keyed) {
        snprintf(caller->account, sizeof caller->account, "%s", caller->name);
        return;
    }
    /* by hand: every call comes here, and printf takes a microsecond for a width that is given */
    enum { NAME = 16, ADDRESS = 46 };
    _Static_assert(NAME + 1 + ADDRESS < sizeof caller->account, "the account holds both");
    const char *colon = strrchr(call->peer, ':');
    size_t length = colon != NULL ? (size_t)(colon - call->peer) : strlen(call->peer);
    if (length > ADDRESS) length = ADDRESS;
    const size_t begin = strnlen(caller->name, NAME);
    memcpy(caller->account, caller->name, begin);
    caller->account[begin] = ' ';
    memcpy(caller->account + begin + 1, call->peer, length);
    caller->account[begin + 1 + length] = '\0';
}

void td_auth_follow_store(td_auth *auth, const td_config *config)
{
    int64_t mark = 0;
    tb_error ignored;
    store_uses(auth, false);
    store_refusals(auth);
    if (db_api_keys_mark(auth->store, &mark, &ignored) != TB_OK || mark == auth->keys_mark) return;
    const bool first = auth->keys_mark < 0;
    auth->keys_mark = mark;
    if (!first) td_auth_reload(auth, config);
}

tb_status td_auth_admit(td_auth *auth, td_call *call, const char *authorization, bool peer_loopback,
                        double *retry_after, tb_error *error)
{
    const td_scope needed = call->method != NULL ? call->method->scope : TD_SCOPE_NONE;
    remembered who = {.valid = true, .name = TD_ANONYMOUS};
    char id[16];
    bool keyed = false;
    *retry_after = 0;
    call->caller = (td_caller){.scope = TD_SCOPE_NONE, .loopback = peer_loopback};

    if (authorization != NULL && *authorization != '\0') {
        const char *token = bearer_token(authorization, id);
        if (token == NULL)
            return unauthenticated(call, error,
                                   "the authorization header must be 'Bearer tribo_...'");
        const tb_status status = look_up(auth, call, token, id, &who, retry_after, error);
        if (status != TB_OK) return status;
        if (!who.valid) return refuse_key(auth, call, id, who.refusal, error);
        if (who.expire_us != 0 && td_clock_utc_us(&auth->clock) >= who.expire_us)
            return refuse_key(auth, call, id, EXPIRED, error);
        keyed = true;
    } else {
        pthread_mutex_lock(&auth->mutex);
        if (peer_loopback || auth->anonymous_remote) who.scope = auth->anonymous;
        pthread_mutex_unlock(&auth->mutex);
    }

    snprintf(call->caller.name, sizeof call->caller.name, "%s", who.name);
    name_account(call, keyed);
    call->caller.scope = who.scope;
    call->caller.sessions = who.sessions;
    const tb_status status =
        check_rate(auth, call, keyed ? id : NULL, who.calls_per_second, retry_after, error);
    if (status != TB_OK) return status;
    if (who.scope >= needed) return TB_OK;
    if (!keyed) return unauthenticated(call, error, "this needs an API key ('Bearer tribo_...')");
    return tb_fail(error, TB_PERMISSION_DENIED,
                   "%s needs a key of scope %s; the key '%s' has scope %s", call->method->name,
                   scope_name(needed), who.name, scope_name(who.scope));
}
