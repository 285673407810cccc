/* The catalog: assets and compiled scenes, content-addressed, in memory and in the store.
 *
 * Models are compiled once, shared by every session and job that uses them, and kept warm while
 * anybody holds them and for a while after (least recently used go first). */
#ifndef SERVER_CATALOG_H
#define SERVER_CATALOG_H

#include "server.h"

enum { TD_SHA256_TEXT = 65 };

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
} td_scene;

tb_status td_catalog_create(td_server *, td_catalog **, tb_error *);
void td_catalog_destroy(td_catalog *);

/* Keeps a copy of the bytes. `expected` is "" or the digest the client promised. */
tb_status td_catalog_put(td_catalog *, const char *name, const unsigned char *bytes, size_t size,
                         const char *expected, char sha256[TD_SHA256_TEXT], tb_error *);
/* NOT_FOUND names the digest. Each asset and scene taken is given back by its release. */
tb_status td_catalog_asset(td_catalog *, const char *sha256, const td_asset **, tb_error *);
void td_asset_release(td_catalog *, const td_asset *);

/* A scene by id, from memory or compiled again from the store's canonical bytes. */
tb_status td_catalog_scene(td_catalog *, const char *id, const td_scene **, tb_error *);
/* Takes over a model (destroys it if the catalog has an equal one) and stores it. */
tb_status td_catalog_add_scene(td_catalog *, tb_model *, const td_scene **, tb_error *);
void td_scene_release(td_catalog *, const td_scene *);

/* A virtual folder over assets, for the importers: `paths[i]` is the asset `sha256[i]`. The bundle
 * borrows the strings; destroy it after the import. */
typedef struct td_bundle td_bundle;
tb_status td_bundle_create(td_catalog *, const char *const *paths, const char *const *sha256,
                           int32_t count, td_bundle **, tb_error *);
const tb_file_source *td_bundle_source(const td_bundle *);
void td_bundle_destroy(td_bundle *);

#endif
