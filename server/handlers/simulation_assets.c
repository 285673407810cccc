/* Handlers of assets: PutAsset, CreateAsset, ListAssets, GetAsset. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "session/catalog.h"
#include "handlers/handlers.h"
#include "call/offload.h"
#include "session/uploads.h"
#include "wire/scene_message.h"

#include "tribo/v1/simulation.pb-c.h"

/* ---- storing ---- */

/* An upload in progress: its state, then its response once the asset is durable. */
typedef struct upload {
    td_call *call;
    char name[128];
    char expected[TD_SHA256_TEXT], sha256[TD_SHA256_TEXT];
    unsigned char *bytes;
    size_t size, capacity;
    bool begun;
} upload;

static void destroy_upload(void *state)
{
    upload *u = state;
    if (u == NULL) return;
    free(u->bytes);
    free(u);
}

static void answer_put(upload *u)
{
    Tribo__V1__PutAssetResponse response = TRIBO__V1__PUT_ASSET_RESPONSE__INIT;
    response.sha256 = u->sha256;
    response.size = u->size;
    td_call_reply(u->call, &response.base);
}

static void answer_create(upload *u)
{
    Tribo__V1__CreateAssetResponse response = TRIBO__V1__CREATE_ASSET_RESPONSE__INIT;
    response.sha256 = u->sha256;
    response.size = u->size;
    td_call_reply(u->call, &response.base);
}

/* On the store's writer thread. */
static void on_stored(void *context, tb_status status, const tb_error *error)
{
    upload *u = context;
    td_call *call = u->call;
    if (status != TB_OK)
        td_call_finish(call, status, error, 0);
    else if (call->method->client_streaming)
        answer_put(u);
    else
        answer_create(u);
    td_call_release(call); /* and with it the upload, which is its state */
}

/* Answers once the bytes are durable. */
static void store(upload *u, const unsigned char *bytes)
{
    td_call *call = u->call;
    tb_error error = {0};
    td_call_hold(call);
    const tb_status status = td_catalog_put_durably(call->server->catalog, u->name, bytes, u->size,
                                                    u->expected, u->sha256, on_stored, u, &error);
    if (status == TB_OK) return;
    td_call_fail(call, &error);
    td_call_release(call);
}

static tb_status name_upload(upload *u, const char *name, const char *expected, tb_error *error)
{
    if (strlen(name) >= sizeof u->name)
        return tb_fail_field(error, TB_INVALID_ARGUMENT, "name",
                             "the file's name has %zu bytes, at most %zu are taken", strlen(name),
                             sizeof u->name - 1);
    if (*expected != '\0' && strlen(expected) != TD_SHA256_TEXT - 1)
        return tb_fail_field(error, TB_INVALID_ARGUMENT, "sha256",
                             "sha256 is '%.80s', expected 64 lower-case hexadecimal digits",
                             expected);
    memcpy(u->name, name, strlen(name) + 1);
    memcpy(u->expected, expected, strlen(expected) + 1);
    u->begun = true;
    return TB_OK;
}

static upload *begin_upload(td_call *call, tb_error *error)
{
    upload *u = calloc(1, sizeof *u);
    if (u == NULL) {
        tb_fail_memory(error, sizeof *u, "an upload");
        return NULL;
    }
    u->call = call;
    call->state = u;
    call->destroy_state = destroy_upload;
    return u;
}

/* ---- one message ---- */

static void create_asset(td_call *call, td_request *request)
{
    const Tribo__V1__CreateAssetRequest *message =
        (const Tribo__V1__CreateAssetRequest *)request->message;
    tb_error error = {0};
    upload *u = begin_upload(call, &error);
    if (u == NULL || name_upload(u, message->name, message->sha256, &error) != TB_OK) {
        td_call_fail(call, &error);
    } else {
        u->size = message->data.len;
        store(u, message->data.data);
    }
    td_request_free(request);
}

void td_simulation_create_asset(td_call *call, td_request *request)
{
    td_upload(call, request, create_asset);
}

/* ---- a stream of pieces ---- */

static tb_status append(upload *u, const ProtobufCBinaryData *data, uint64_t limit, tb_error *error)
{
    if (data->len > limit - u->size)
        return tb_fail_field(error, TB_RESOURCE_EXHAUSTED, "data",
                             "the file has more than %llu bytes", (unsigned long long)limit);
    if (u->capacity - u->size < data->len) {
        size_t capacity = 2 * u->capacity;
        if (capacity < u->size + data->len) capacity = u->size + data->len;
        unsigned char *grown = realloc(u->bytes, capacity);
        if (grown == NULL) return tb_fail_memory(error, capacity, "an upload");
        u->bytes = grown;
        u->capacity = capacity;
    }
    if (data->len > 0) memcpy(u->bytes + u->size, data->data, data->len);
    u->size += data->len;
    return TB_OK;
}

void td_simulation_put_asset(td_call *call, td_request *request)
{
    const Tribo__V1__PutAssetRequest *message =
        (const Tribo__V1__PutAssetRequest *)request->message;
    const td_config *config = call->server->config;
    tb_error error = {0};
    tb_status status = TB_OK;
    upload *u = call->state != NULL ? call->state : begin_upload(call, &error);
    if (u == NULL)
        status = TB_RESOURCE_EXHAUSTED;
    else if (!u->begun)
        status = name_upload(u, message->name, message->sha256, &error);
    else if (*message->name != '\0' || *message->sha256 != '\0')
        status = tb_fail_field(&error, TB_INVALID_ARGUMENT, "name",
                               "only the first message names the file");
    if (status == TB_OK) status = append(u, &message->data, config->asset_bytes, &error);
    td_request_free(request);
    if (status == TB_OK)
        td_call_read(call);
    else
        td_call_fail(call, &error);
}

static void store_upload(td_call *call, td_request *request)
{
    upload *u = call->state;
    td_request_free(request);
    store(u, u->bytes);
}

void td_simulation_put_asset_half_closed(td_call *call)
{
    if (call->state != NULL) {
        td_upload(call, NULL, store_upload);
        return;
    }
    tb_error error;
    tb_fail_field(&error, TB_INVALID_ARGUMENT, "name", "the stream ended before its first message");
    td_call_fail(call, &error);
}

void td_simulation_put_asset_writable(td_call *call)
{
    (void)call; /* one answer, and it comes at the end */
}

void td_simulation_put_asset_cancelled(td_call *call)
{
    tb_error error;
    tb_fail(&error, TB_CANCELLED, "the upload was cancelled");
    td_call_fail(call, &error);
}

/* ---- lists ---- */

static void list_assets(td_call *call, td_request *request)
{
    const Tribo__V1__ListAssetsRequest *message =
        (const Tribo__V1__ListAssetsRequest *)request->message;
    Tribo__V1__ListAssetsResponse response = TRIBO__V1__LIST_ASSETS_RESPONSE__INIT;
    char next[DB_TOKEN_SIZE] = "";
    int32_t size = 0, count = 0;
    tb_error error = {0};
    struct row {
        char sha256[TD_SHA256_TEXT];
        Tribo__V1__AssetInfo info;
    } *rows = NULL;
    db_asset *assets = NULL;
    Tribo__V1__AssetInfo **pointers = NULL;

    tb_status status = td_page_size(message->page_size, &size, &error);
    if (status != TB_OK) goto done;
    rows = calloc((size_t)size, sizeof *rows);
    assets = calloc((size_t)size, sizeof *assets);
    pointers = calloc((size_t)size, sizeof(Tribo__V1__AssetInfo *));
    if (rows == NULL || assets == NULL || pointers == NULL) {
        status = tb_fail_memory(&error, (size_t)size * sizeof *rows, "a list");
        goto done;
    }
    status =
        db_list_assets(call->server->db, message->page_token, assets, size, &count, next, &error);
    if (status != TB_OK) goto done;
    for (int32_t i = 0; i < count; i++) {
        Tribo__V1__AssetInfo *info = &rows[i].info;
        tribo__v1__asset_info__init(info);
        td_sha256_print(&assets[i].sha256, rows[i].sha256);
        info->sha256 = rows[i].sha256;
        info->name = assets[i].name;
        info->size = assets[i].size;
        info->create_time_us = assets[i].create_time_us;
        pointers[i] = info;
    }
    response.assets = pointers;
    response.n_assets = (size_t)count;
    response.next_page_token = next;
    td_call_reply(call, &response.base);
done:
    if (status != TB_OK) td_call_fail(call, &error);
    free(rows);
    free(assets);
    free(pointers);
    td_request_free(request);
}

void td_simulation_list_assets(td_call *call, td_request *request)
{
    td_offload(call, request, list_assets);
}

/* ---- GetAsset ---- */

/* A piece of an uploaded file. */
static void get_file(td_call *call, const Tribo__V1__GetAssetRequest *message)
{
    enum { HEAD_BYTES = 512 }; /* the answer's other fields */
    td_catalog *catalog = call->server->catalog;
    const td_asset *asset = NULL;
    tb_error error = {0};
    tb_status status = td_catalog_asset(catalog, message->sha256, &asset, &error);
    if (status == TB_OK && message->offset > asset->size)
        status = tb_fail_field(&error, TB_INVALID_ARGUMENT, "offset",
                               "offset is %llu, the file has %zu bytes",
                               (unsigned long long)message->offset, asset->size);
    if (status == TB_OK) {
        Tribo__V1__GetAssetResponse r = TRIBO__V1__GET_ASSET_RESPONSE__INIT;
        uint64_t size = asset->size - message->offset;
        const uint64_t most = call->server->config->message_bytes - HEAD_BYTES;
        if (message->size > 0 && size > message->size) size = message->size;
        if (size > most) size = most;
        r.sha256 = (char *)(uintptr_t)asset->sha256;
        r.name = (char *)(uintptr_t)asset->name;
        r.size = asset->size;
        r.data.data = (uint8_t *)(uintptr_t)asset->bytes + message->offset;
        r.data.len = (size_t)size;
        td_call_reply(call, &r.base);
    } else {
        td_call_fail(call, &error);
    }
    td_asset_release(catalog, asset);
}

/* Index among the scene's meshes and then height fields; -1: none has this digest. */
static int32_t find_digest(const td_scene *scene, const char *sha256)
{
    const int32_t count =
        tb_model_count(scene->model).meshes + tb_model_number_of_height_fields(scene->model);
    for (int32_t i = 0; i < count; i++)
        if (strcmp(scene->digests[i], sha256) == 0) return i;
    return -1;
}

static void answer_geometry(td_call *call, const td_scene *scene, const char *sha256)
{
    Tribo__V1__GetAssetResponse r = TRIBO__V1__GET_ASSET_RESPONSE__INIT;
    const int32_t meshes = tb_model_count(scene->model).meshes;
    const int32_t index = find_digest(scene, sha256);
    tb_triangles triangles[2] = {{0}, {0}};
    float *heights = NULL;
    td_wire wire = {0};
    tb_error error = {0};
    tb_status status = TB_OK;
    r.sha256 = (char *)(uintptr_t)sha256;
    if (index < 0)
        status = tb_fail_field(&error, TB_NOT_FOUND, "sha256",
                               "the scene %.12s has no mesh %.64s; GetScene lists them", scene->id,
                               sha256);
    else if (index < meshes)
        status = td_wire_mesh(&wire, scene->model, index, triangles, &r.mesh, &error);
    else
        status = td_wire_height_field(&wire, scene->model, index - meshes, &heights,
                                      &r.height_field, &error);
    if (status == TB_OK) {
        r.name = (char *)(uintptr_t)tb_model_thing_name(
            scene->model, index < meshes ? TB_HANDLE_MESH : TB_HANDLE_HEIGHT_FIELD,
            index < meshes ? index : index - meshes);
        td_call_reply_bounded(call, &r.base, false, "");
    } else {
        td_call_fail(call, &error);
    }
    tb_triangles_free(&triangles[0]);
    tb_triangles_free(&triangles[1]);
    free(heights);
    td_wire_destroy(&wire);
}

static void get_geometry(td_call *call, td_request *request)
{
    const Tribo__V1__GetAssetRequest *message =
        (const Tribo__V1__GetAssetRequest *)request->message;
    const td_scene *scene = NULL;
    tb_error error = {0};
    if (td_upload_scene(call, message->scene_id, &scene, &error) == TB_OK)
        answer_geometry(call, scene, message->sha256);
    else
        td_call_fail(call, &error);
    td_scene_release(call->server->catalog, scene);
    td_request_free(request);
}

static void get_asset(td_call *call, td_request *request)
{
    const Tribo__V1__GetAssetRequest *message =
        (const Tribo__V1__GetAssetRequest *)request->message;
    if (*message->scene_id != '\0') {
        td_upload_for_scene(call, request, message->scene_id, get_geometry);
        return;
    }
    get_file(call, message);
    td_request_free(request);
}

void td_simulation_get_asset(td_call *call, td_request *request)
{
    td_offload(call, request, get_asset);
}
