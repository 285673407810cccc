/* The catalog: assets and compiled scenes, content-addressed, in memory and in the store.
 *
 * Models are compiled once, shared by every session and job that uses them, and kept in memory
 * while referenced and for a while after (least recently used are evicted first). */
#ifndef SERVER_CATALOG_H
#define SERVER_CATALOG_H

#include "db/db.h"
#include "base/budget.h"
#include "call/auth.h"
#include "call/call.h"
#include "ops/daemon.h"
#include "schedule/device.h"

enum { TD_SHA256_TEXT = 65 };

/* 64 hexadecimal digits and back. */
void td_sha256_print(const db_sha256 *, char text[TD_SHA256_TEXT]);
bool td_sha256_parse(const char *text, db_sha256 *);
db_sha256 td_sha256_of(const void *bytes, size_t size);

/* An asset's bytes, counted; immutable. */
typedef struct td_asset {
    char sha256[TD_SHA256_TEXT];
    char name[128];
    size_t size;
    const unsigned char *bytes;
} td_asset;

/* A compiled scene, counted; immutable. */
typedef struct td_scene {
    char id[TD_SHA256_TEXT];
    tb_model *model;
    char (*digests)[TD_SHA256_TEXT]; /* of its meshes, then of its height fields */
} td_scene;

tb_status td_catalog_create(td_server *, td_catalog **, tb_error *);
void td_catalog_destroy(td_catalog *);

/* Keeps a copy of the bytes, at once in memory and soon in the store; every later write to the
 * store becomes durable later than this. `expected` is "" or the digest that the client promised.
 * Calls `done` once the asset is durable, unless it failed at once. */
tb_status td_catalog_put_durably(td_catalog *, const char *name, const unsigned char *bytes,
                                 size_t size, const char *expected, char sha256[TD_SHA256_TEXT],
                                 db_done *done, void *context, tb_error *);
/* NOT_FOUND names the digest. Each asset and scene taken is given back by its release. */
tb_status td_catalog_asset(td_catalog *, const char *sha256, const td_asset **, tb_error *);
void td_asset_release(td_catalog *, const td_asset *);

/* A scene by id, from memory or compiled again from the store's canonical bytes within the budget,
 * which this binds to the thread: on a thread of the pool for uploads. */
tb_status td_catalog_scene(td_catalog *, const char *id, tb_budget *, const td_scene **,
                           tb_error *);
/* The same from memory alone; NULL if it is not there. */
const td_scene *td_catalog_warm_scene(td_catalog *, const char *id);
/* Takes over a model (destroys it if the catalog has an equal one, or on failure), stores it. */
tb_status td_catalog_add_scene(td_catalog *, tb_model *, const td_scene **, tb_error *);
/* The same, and calls `done` once the scene is durable, unless it failed at once; *scene is set
 * before that. */
tb_status td_catalog_add_scene_durably(td_catalog *, tb_model *, const td_scene **, db_done *done,
                                       void *context, tb_error *);
/* Another reference to a scene that the caller holds. */
const td_scene *td_scene_hold(td_catalog *, const td_scene *);
void td_scene_release(td_catalog *, const td_scene *);

/* A virtual folder over assets, for the importers: `paths[i]` is the asset `sha256[i]`. The bundle
 * borrows the strings; destroy it after the import. INVALID_ARGUMENT for a path given twice,
 * NOT_FOUND for an asset that is not there; both name the path. */
typedef struct td_bundle td_bundle;
tb_status td_bundle_create(td_catalog *, const char *const *paths, const char *const *sha256,
                           int32_t count, td_bundle **, tb_error *);
/* Adds the main file itself, borrowed until the bundle is destroyed. The other paths may also be
 * relative to its folder. */
tb_status td_bundle_add_main(td_bundle *, const char *path, const unsigned char *bytes, size_t size,
                             tb_error *);
const tb_file_source *td_bundle_source(const td_bundle *);
void td_bundle_destroy(td_bundle *);

#endif
