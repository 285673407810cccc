/* Assets and scenes: two caches over the store. See catalog.h.
 *
 * The store's writer works in order of submission, so a durable session implies a durable scene: no
 * caller has to wait for a scene before using it. */
#include "session/catalog.h"

#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/error.h"
#include "session/cache.h"
#include "session/session.h"

/* Limit of unreferenced cached bytes. */
static const size_t IDLE_ASSET_BYTES = (size_t)64 << 20, IDLE_SCENE_BYTES = (size_t)64 << 20;
/* A compiled model against its canonical bytes, with its trees and hulls; and the address space that
 * the smallest one takes: its arenas are half empty, and as scenes come and go all of that
 * gets touched. */
enum { MODEL_OVER_BYTES = 4, MODEL_LEAST_BYTES = 48 << 10 };

/* Retention keeps rows put into the store within the last hour (db/retain.c). An object used from
 * memory is put again after this time: its row may be gone, and the store must record the use. */
static const int64_t PUT_AGAIN_US = INT64_C(1200) * 1000000;

typedef struct asset_entry {
    td_cached cached;
    atomic_llong put_us; /* of the steady clock; 0: not since it was read from the store */
    td_asset asset;
} asset_entry;

typedef struct scene_entry {
    td_cached cached;
    atomic_llong put_us;
    td_scene scene;
} scene_entry;

struct td_catalog {
    td_server *server;
    td_cache assets, scenes;
    pthread_mutex_t mutex;
    pthread_cond_t loaded;
    struct loading *loading; /* under the mutex */
};

/* A scene that a thread compiles from the store; others that want it wait. */
typedef struct loading {
    struct loading *next;
    const char *id;
} loading;

/* ---- digests ---- */

void td_sha256_print(const db_sha256 *digest, char text[TD_SHA256_TEXT])
{
    sodium_bin2hex(text, TD_SHA256_TEXT, digest->bytes, sizeof digest->bytes);
}

bool td_sha256_parse(const char *text, db_sha256 *digest)
{
    size_t size = 0;
    if (strlen(text) != TD_SHA256_TEXT - 1 || strspn(text, "0123456789abcdef") != strlen(text))
        return false;
    return sodium_hex2bin(digest->bytes, sizeof digest->bytes, text, strlen(text), NULL, &size,
                          NULL) == 0 &&
           size == sizeof digest->bytes;
}

db_sha256 td_sha256_of(const void *bytes, size_t size)
{
    static const unsigned char nothing = 0;
    db_sha256 digest;
    crypto_hash_sha256(digest.bytes, size > 0 ? bytes : &nothing, size);
    return digest;
}

static tb_status parse_digest(const char *text, const char *what, db_sha256 *digest,
                              tb_error *error)
{
    if (td_sha256_parse(text, digest)) return TB_OK;
    return tb_fail_field(error, TB_INVALID_ARGUMENT, what,
                         "%s is '%.80s', expected 64 lower-case hexadecimal digits", what, text);
}

/* ---- life ---- */

static void destroy_asset(td_cached *cached)
{
    asset_entry *entry = (asset_entry *)cached;
    free((void *)(uintptr_t)entry->asset.bytes);
    free(entry);
}

static void destroy_scene(td_cached *cached)
{
    scene_entry *entry = (scene_entry *)cached;
    tb_model_destroy(entry->scene.model);
    free(entry->scene.digests);
    free(entry);
}

tb_status td_catalog_create(td_server *server, td_catalog **catalog, tb_error *error)
{
    *catalog = NULL;
    if (sodium_init() < 0) return tb_fail(error, TB_INTERNAL, "libsodium does not start");
    td_catalog *c = calloc(1, sizeof *c);
    if (c == NULL) return tb_fail_memory(error, sizeof *c, "the catalog");
    c->server = server;
    td_cache_init(&c->assets, IDLE_ASSET_BYTES, destroy_asset);
    td_cache_init(&c->scenes, IDLE_SCENE_BYTES, destroy_scene);
    pthread_mutex_init(&c->mutex, NULL);
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&c->loaded, &attributes);
    pthread_condattr_destroy(&attributes);
    *catalog = c;
    return TB_OK;
}

void td_catalog_destroy(td_catalog *c)
{
    if (c == NULL) return;
    /* pending writes borrow cached bytes */
    db_flush(c->server->db, NULL);
    td_cache_destroy(&c->assets);
    td_cache_destroy(&c->scenes);
    pthread_mutex_destroy(&c->mutex);
    pthread_cond_destroy(&c->loaded);
    free(c);
}

/* ---- assets ---- */

static asset_entry *new_asset(const char *sha256, const char *name, unsigned char *bytes,
                              size_t size)
{
    asset_entry *entry = calloc(1, sizeof *entry);
    if (entry == NULL) return NULL;
    snprintf(entry->cached.key, sizeof entry->cached.key, "%s", sha256);
    entry->cached.bytes = sizeof *entry + size;
    snprintf(entry->asset.sha256, sizeof entry->asset.sha256, "%s", sha256);
    snprintf(entry->asset.name, sizeof entry->asset.name, "%s", name);
    entry->asset.size = size;
    entry->asset.bytes = bytes;
    return entry;
}

static const td_asset *asset_of(td_cached *cached)
{
    return &((asset_entry *)cached)->asset;
}

/* A write that borrows an entry until it is done. */
typedef struct pending_write {
    td_catalog *catalog;
    td_cached *entry;
    db_done *done;
    void *context;
    bool scene;
} pending_write;

static void on_written(void *context, tb_status status, const tb_error *error)
{
    pending_write *write = context;
    td_catalog *c = write->catalog;
    if (status != TB_OK)
        td_log_write(c->server->log, TB_LOG_ERROR, "catalog.write_failed", "sha256=%s message=%s",
                     write->entry->key, error != NULL ? error->message : "");
    if (write->done != NULL) write->done(write->context, status, error);
    td_cache_release(write->scene ? &c->scenes : &c->assets, write->entry);
    free(write);
}

static pending_write *begin_write(td_catalog *c, td_cached *entry, bool scene, db_done *done,
                                  void *context)
{
    pending_write *write = malloc(sizeof *write);
    if (write == NULL) return NULL;
    *write = (pending_write){
        .catalog = c, .entry = entry, .done = done, .context = context, .scene = scene};
    td_cache_hold(scene ? &c->scenes : &c->assets, entry);
    return write;
}

static tb_status check_asset(td_catalog *c, const char *name, size_t size, tb_error *error)
{
    const td_config *config = c->server->config;
    if (size > config->asset_bytes)
        return tb_fail_field(error, TB_RESOURCE_EXHAUSTED, "data",
                             "the file has %zu bytes, at most %llu are taken", size,
                             (unsigned long long)config->asset_bytes);
    const size_t length = strlen(name);
    if (length >= sizeof((td_asset *)0)->name)
        return tb_fail_field(error, TB_INVALID_ARGUMENT, "name",
                             "the file's name has %zu bytes, at most %zu are taken", length,
                             sizeof((td_asset *)0)->name - 1);
    return TB_OK;
}

static tb_status put_asset(td_catalog *c, td_cached *entry, const char *name, db_done *done,
                           void *context, tb_error *error)
{
    const td_asset *asset = asset_of(entry);
    db_asset row = {.size = asset->size, .create_time_us = td_clock_utc_us(&c->server->clock)};
    td_sha256_parse(asset->sha256, &row.sha256);
    snprintf(row.name, sizeof row.name, "%s", name);
    pending_write *write = begin_write(c, entry, false, done, context);
    if (write == NULL) return tb_fail_memory(error, sizeof *write, "an asset");
    atomic_store(&((asset_entry *)entry)->put_us, td_clock_steady_us(&c->server->clock));
    const tb_status status =
        db_put_asset(c->server->db, &row, asset->bytes, on_written, write, error);
    if (status == TB_OK) return TB_OK;
    td_cache_release(&c->assets, entry);
    free(write);
    return status;
}

/* Whether it is time to put an entry again; then this thread does it. */
static bool is_due(td_catalog *c, atomic_llong *put_us)
{
    const int64_t now = td_clock_steady_us(&c->server->clock);
    long long last = atomic_load(put_us);
    return (last == 0 || now - last > PUT_AGAIN_US) &&
           atomic_compare_exchange_strong(put_us, &last, now);
}

/* Records a use in the store. If the store refuses now, the next use records it. */
static void use_asset(td_catalog *c, td_cached *cached)
{
    asset_entry *entry = (asset_entry *)cached;
    tb_error ignored;
    if (is_due(c, &entry->put_us) &&
        put_asset(c, cached, entry->asset.name, NULL, NULL, &ignored) != TB_OK)
        atomic_store(&entry->put_us, 0);
}

tb_status td_catalog_put_durably(td_catalog *c, const char *name, const unsigned char *bytes,
                                 size_t size, const char *expected, char sha256[TD_SHA256_TEXT],
                                 db_done *done, void *context, tb_error *error)
{
    tb_status status = check_asset(c, name, size, error);
    if (status != TB_OK) return status;
    const db_sha256 digest = td_sha256_of(bytes, size);
    td_sha256_print(&digest, sha256);
    if (expected != NULL && *expected != '\0' && strcmp(expected, sha256) != 0)
        return tb_fail_field(error, TB_INVALID_ARGUMENT, "sha256",
                             "the file's SHA-256 is %s, not %.80s", sha256, expected);

    td_cached *entry = td_cache_find(&c->assets, sha256);
    if (entry == NULL) {
        unsigned char *copy = malloc(size + 1);
        asset_entry *made = copy != NULL ? new_asset(sha256, name, copy, size) : NULL;
        if (made == NULL) {
            free(copy);
            return tb_fail_memory(error, size, "an asset");
        }
        if (size > 0) memcpy(copy, bytes, size);
        entry = td_cache_add(&c->assets, &made->cached);
    }
    status = put_asset(c, entry, name, done, context, error);
    td_cache_release(&c->assets, entry);
    return status;
}

tb_status td_catalog_asset(td_catalog *c, const char *sha256, const td_asset **asset,
                           tb_error *error)
{
    *asset = NULL;
    db_sha256 digest;
    tb_status status = parse_digest(sha256, "sha256", &digest, error);
    if (status != TB_OK) return status;
    td_cached *entry = td_cache_find(&c->assets, sha256);
    if (entry == NULL) {
        db_asset row;
        unsigned char *bytes = NULL;
        status = db_get_asset(c->server->db, &digest, &row, &bytes, error);
        if (status == TB_NOT_FOUND)
            return tb_fail_field(error, status, "sha256", "there is no asset %s", sha256);
        if (status != TB_OK) return status;
        asset_entry *made = new_asset(sha256, row.name, bytes, (size_t)row.size);
        if (made == NULL) {
            free(bytes);
            return tb_fail_memory(error, sizeof *made, "an asset");
        }
        entry = td_cache_add(&c->assets, &made->cached);
    }
    use_asset(c, entry);
    *asset = asset_of(entry);
    return TB_OK;
}

void td_asset_release(td_catalog *c, const td_asset *asset)
{
    if (asset == NULL) return;
    asset_entry *entry = (asset_entry *)(void *)((uintptr_t)asset - offsetof(asset_entry, asset));
    td_cache_release(&c->assets, &entry->cached);
}

/* ---- scenes ---- */

static const td_scene *scene_of(td_cached *cached)
{
    return &((scene_entry *)cached)->scene;
}

static td_cached *cached_scene(const td_scene *scene)
{
    scene_entry *entry = (scene_entry *)(void *)((uintptr_t)scene - offsetof(scene_entry, scene));
    return &entry->cached;
}

/* Digests of all meshes, then of all height fields; NULL if out of memory. */
static char (*digests_of(const tb_model *model))[TD_SHA256_TEXT]
{
    const int32_t meshes = tb_model_count(model).meshes;
    const int32_t fields = tb_model_number_of_height_fields(model);
    char(*digests)[TD_SHA256_TEXT] = calloc((size_t)(meshes + fields) + 1, sizeof *digests);
    if (digests == NULL) return NULL;
    for (int32_t i = 0; i < meshes; i++)
        tb_model_asset_sha256(model, TB_HANDLE_MESH, i, digests[i]);
    for (int32_t i = 0; i < fields; i++)
        tb_model_asset_sha256(model, TB_HANDLE_HEIGHT_FIELD, i, digests[meshes + i]);
    return digests;
}

/* Takes over the model, on failure too. */
static tb_status add_model(td_catalog *c, tb_model *model, td_cached **cached, tb_error *error)
{
    scene_entry *entry = calloc(1, sizeof *entry);
    if (entry != NULL) entry->scene.digests = digests_of(model);
    if (entry == NULL || entry->scene.digests == NULL) {
        free(entry);
        tb_model_destroy(model);
        return tb_fail_memory(error, sizeof *entry, "a scene");
    }
    size_t size = 0;
    tb_model_bytes(model, &size);
    const char *id = tb_model_sha256(model);
    snprintf(entry->cached.key, sizeof entry->cached.key, "%s", id);
    snprintf(entry->scene.id, sizeof entry->scene.id, "%s", id);
    entry->cached.bytes = sizeof *entry + MODEL_LEAST_BYTES + MODEL_OVER_BYTES * size;
    entry->scene.model = model;
    *cached = td_cache_add(&c->scenes, &entry->cached);
    return TB_OK;
}

static db_scene scene_row(const td_catalog *c, const tb_model *model)
{
    const tb_model_counts n = tb_model_count(model);
    db_scene row = {.counts = {n.bodies, n.joints, n.coordinates, n.dofs, n.shapes, n.actuators,
                               n.equalities, n.tendons, n.keyframes},
                    .create_time_us = td_clock_utc_us(&c->server->clock)};
    size_t size = 0;
    tb_model_bytes(model, &size);
    row.size = size;
    td_sha256_parse(tb_model_sha256(model), &row.sha256);
    snprintf(row.name, sizeof row.name, "%s", tb_model_name(model));
    return row;
}

static tb_status put_scene(td_catalog *c, td_cached *entry, db_done *done, void *context,
                           tb_error *error)
{
    const tb_model *model = scene_of(entry)->model;
    const db_scene row = scene_row(c, model);
    size_t size = 0;
    const unsigned char *bytes = tb_model_bytes(model, &size);
    pending_write *write = begin_write(c, entry, true, done, context);
    if (write == NULL) return tb_fail_memory(error, sizeof *write, "a scene");
    atomic_store(&((scene_entry *)entry)->put_us, td_clock_steady_us(&c->server->clock));
    const tb_status status = db_put_scene(c->server->db, &row, bytes, on_written, write, error);
    if (status == TB_OK) return TB_OK;
    td_cache_release(&c->scenes, entry);
    free(write);
    return status;
}

static const td_scene *use_scene(td_catalog *c, td_cached *cached)
{
    scene_entry *entry = (scene_entry *)cached;
    tb_error ignored;
    if (is_due(c, &entry->put_us) && put_scene(c, cached, NULL, NULL, &ignored) != TB_OK)
        atomic_store(&entry->put_us, 0);
    return &entry->scene;
}

tb_status td_catalog_add_scene_durably(td_catalog *c, tb_model *model, const td_scene **scene,
                                       db_done *done, void *context, tb_error *error)
{
    td_cached *entry = NULL;
    *scene = NULL;
    tb_status status = add_model(c, model, &entry, error);
    if (status != TB_OK) return status;
    *scene = scene_of(entry); /* `done` may be called before this returns */
    status = put_scene(c, entry, done, context, error);
    if (status == TB_OK) return TB_OK;
    td_cache_release(&c->scenes, entry);
    *scene = NULL;
    return status;
}

tb_status td_catalog_add_scene(td_catalog *c, tb_model *model, const td_scene **scene,
                               tb_error *error)
{
    return td_catalog_add_scene_durably(c, model, scene, NULL, NULL, error);
}

static tb_status load_scene(td_catalog *c, const db_sha256 *digest, tb_budget *budget,
                            td_cached **entry, tb_error *error)
{
    db_scene row;
    unsigned char *bytes = NULL;
    tb_status status = db_get_scene(c->server->db, digest, &row, &bytes, error);
    if (status != TB_OK) return status;
    const int64_t begin = td_monotonic_ns();
    tb_model *model = NULL;
    tb_budget_bind(budget);
    status = tb_model_from_bytes(bytes, (size_t)row.size, &model, error);
    tb_budget_release();
    free(bytes);
    if (status != TB_OK) return status;
    td_metrics_observe(c->server->metrics, TD_HISTOGRAM_COMPILE,
                       1e-9 * (double)(td_monotonic_ns() - begin));
    return add_model(c, model, entry, error);
}

/* Resolves a full digest, or the prefix of exactly one scene's digest in the store. */
static tb_status resolve_scene(td_catalog *c, const char *id, db_sha256 *digest, tb_error *error)
{
    db_sha256 lower, upper;
    int32_t count = 0;
    if (td_sha256_parse(id, digest) || !td_id_range(id, &lower, &upper, sizeof lower))
        return parse_digest(id, "scene_id", digest, error);
    const tb_status status = db_find_scene(c->server->db, &lower, &upper, digest, &count, error);
    if (status != TB_OK) return status;
    if (count == 1) return TB_OK;
    return tb_fail_field(
        error, count == 0 ? TB_NOT_FOUND : TB_INVALID_ARGUMENT, "scene_id",
        count == 0 ? "there is no scene %s" : "%s begins the ids of several scenes", id);
}

static bool is_loading(const td_catalog *c, const char *id)
{
    const loading *l = c->loading;
    while (l != NULL && strcmp(l->id, id) != 0) l = l->next;
    return l != NULL;
}

/* Waits until no other thread compiles this scene. False: the budget's work is no longer wanted. */
static bool wait_for_other(td_catalog *c, const char *id, const tb_budget *budget)
{
    enum { LOOK_NS = 50000000 };
    while (is_loading(c, id)) {
        struct timespec until;
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_nsec += LOOK_NS;
        if (until.tv_nsec >= 1000000000) until.tv_nsec -= 1000000000, until.tv_sec++;
        pthread_cond_timedwait(&c->loaded, &c->mutex, &until);
        if (budget->stop != NULL && budget->stop(budget->context)) return false;
    }
    return true;
}

/* Many sessions of one scene may be recovered at once: the first compiles it, the others wait. */
static tb_status find_or_load(td_catalog *c, const char *id, const db_sha256 *digest,
                              tb_budget *budget, td_cached **entry, tb_error *error)
{
    tb_status status = TB_OK;
    loading own = {.id = id};
    budget->status = TB_OK;
    pthread_mutex_lock(&c->mutex);
    if (!wait_for_other(c, id, budget)) {
        pthread_mutex_unlock(&c->mutex);
        budget->status = TB_CANCELLED;
        return tb_budget_fail(budget, error);
    }
    *entry = td_cache_find(&c->scenes, id);
    if (*entry == NULL) {
        own.next = c->loading;
        c->loading = &own;
        pthread_mutex_unlock(&c->mutex);
        status = load_scene(c, digest, budget, entry, error);
        pthread_mutex_lock(&c->mutex);
        loading **link = &c->loading;
        while (*link != &own) link = &(*link)->next;
        *link = own.next;
        pthread_cond_broadcast(&c->loaded);
    }
    pthread_mutex_unlock(&c->mutex);
    return status;
}

const td_scene *td_catalog_warm_scene(td_catalog *c, const char *id)
{
    db_sha256 digest;
    char whole[TD_SHA256_TEXT];
    tb_error ignored;
    if (resolve_scene(c, id, &digest, &ignored) != TB_OK) return NULL;
    td_sha256_print(&digest, whole);
    td_cached *entry = td_cache_find(&c->scenes, whole);
    return entry != NULL ? use_scene(c, entry) : NULL;
}

tb_status td_catalog_scene(td_catalog *c, const char *id, tb_budget *budget, const td_scene **scene,
                           tb_error *error)
{
    *scene = NULL;
    db_sha256 digest;
    char whole[TD_SHA256_TEXT];
    tb_status status = resolve_scene(c, id, &digest, error);
    if (status != TB_OK) return status;
    td_sha256_print(&digest, whole);
    id = whole;
    td_cached *entry = td_cache_find(&c->scenes, id);
    if (entry == NULL) status = find_or_load(c, id, &digest, budget, &entry, error);
    if (status == TB_NOT_FOUND)
        return tb_fail_field(error, status, "scene_id", "there is no scene %s", id);
    if (status == TB_OK) *scene = use_scene(c, entry);
    return status;
}

const td_scene *td_scene_hold(td_catalog *c, const td_scene *scene)
{
    td_cache_hold(&c->scenes, cached_scene(scene));
    return scene;
}

void td_scene_release(td_catalog *c, const td_scene *scene)
{
    if (scene != NULL) td_cache_release(&c->scenes, cached_scene(scene));
}
