/* Handlers of scenes: CreateScene, GetScene, ListScenes. Compiling runs on a worker. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "session/catalog.h"
#include "handlers/handlers.h"
#include "call/offload.h"
#include "session/uploads.h"
#include "wire/scene_message.h"
#include "wire/wire.h"

/* ---- compiling ---- */

/* Paths and digests of the request's files, in the form that the bundle takes. */
static tb_status make_bundle(td_call *call, const Tribo__V1__CreateSceneRequest *message,
                             td_bundle **bundle, tb_error *error)
{
    enum { MOST_FILES = 10000 };
    const size_t n = message->n_files;
    if (n > MOST_FILES)
        return tb_fail_field(error, TB_INVALID_ARGUMENT, "files", "%zu files, at most %d are taken",
                             n, MOST_FILES);
    const char **texts = calloc(2 * n + 1, sizeof(const char *));
    if (texts == NULL) return tb_fail_memory(error, 2 * n * sizeof(const char *), "paths");
    for (size_t i = 0; i < n; i++) {
        texts[i] = message->files[i]->path;
        texts[n + i] = message->files[i]->sha256;
    }
    const tb_status status =
        td_bundle_create(call->server->catalog, texts, texts + n, (int32_t)n, bundle, error);
    free(texts);
    return status;
}

static tb_status read_options(const td_config *config, const Tribo__V1__CreateSceneRequest *message,
                              tb_import_options *options, tb_error *error)
{
    *options = tb_import_defaults();
    options->file_limit = (size_t)config->asset_bytes;
    options->fixed_base = !message->floating_base;
    options->balance_inertia = message->balance_inertia;
    options->visuals = message->visuals;
    if (message->overlap_keyframe[0] != '\0') options->overlap_keyframe = message->overlap_keyframe;
    const tb_status status =
        td_wire_read_overlaps(message->overlaps, "overlaps", &options->overlaps, error);
    if (status != TB_OK) return status;
    if (message->density == 0) return TB_OK;
    if (!(message->density > 0) || !isfinite(message->density))
        return tb_fail_field(error, TB_INVALID_ARGUMENT, "density",
                             "density is %g kg/m^3, expected a positive number, or 0 for 1000",
                             message->density);
    options->density = message->density;
    return TB_OK;
}

/* The main file's bytes and name; *asset (released by the caller) holds them, if it is one. */
static tb_status find_main(td_call *call, const Tribo__V1__CreateSceneRequest *message,
                           const td_asset **asset, const char **path, const unsigned char **bytes,
                           size_t *size, tb_error *error)
{
    *path = message->path;
    switch (message->main_case) {
    case TRIBO__V1__CREATE_SCENE_REQUEST__MAIN_SHA256: {
        const tb_status status =
            td_catalog_asset(call->server->catalog, message->sha256, asset, error);
        if (status != TB_OK) return status;
        *bytes = (*asset)->bytes;
        *size = (*asset)->size;
        if (**path == '\0') *path = (*asset)->name;
        break;
    }
    case TRIBO__V1__CREATE_SCENE_REQUEST__MAIN_TEXT:
        *bytes = (const unsigned char *)message->text;
        *size = strlen(message->text);
        break;
    default:
        return tb_fail_field(error, TB_INVALID_ARGUMENT, "main",
                             "the request has neither sha256 nor text");
    }
    if (**path == '\0') *path = "scene";
    return TB_OK;
}

static tb_status compile(td_call *call, const Tribo__V1__CreateSceneRequest *message,
                         tb_model **model, tb_error *error)
{
    const td_config *config = call->server->config;
    const td_asset *asset = NULL;
    td_bundle *bundle = NULL;
    const char *path = NULL;
    const unsigned char *bytes = NULL;
    size_t size = 0;
    tb_import_options options;
    const int64_t begin = td_monotonic_ns();

    tb_status status = read_options(config, message, &options, error);
    if (status == TB_OK) status = find_main(call, message, &asset, &path, &bytes, &size, error);
    if (status == TB_OK) status = make_bundle(call, message, &bundle, error);
    if (status == TB_OK) status = td_bundle_add_main(bundle, path, bytes, size, error);
    if (status == TB_OK) {
        options.files = td_bundle_source(bundle);
        tb_budget budget = td_upload_budget(call);
        tb_budget_bind(&budget);
        status = tb_model_load(path, &options, model, error);
        tb_budget_release();
        status = td_upload_failure(call, &budget, status, error);
        /* a damaged file is the caller's, not the server's */
        if (status == TB_DATA_LOSS) status = error->status = TB_INVALID_ARGUMENT;
        td_metrics_observe(call->server->metrics, TD_HISTOGRAM_COMPILE,
                           1e-9 * (double)(td_monotonic_ns() - begin));
    }
    td_bundle_destroy(bundle);
    td_asset_release(call->server->catalog, asset);
    return status;
}

/* ---- answers ---- */

static void fill_counts(Tribo__V1__SceneCounts *out, const int32_t counts[9])
{
    tribo__v1__scene_counts__init(out);
    out->bodies = counts[0];
    out->joints = counts[1];
    out->coordinates = counts[2];
    out->dofs = counts[3];
    out->shapes = counts[4];
    out->actuators = counts[5];
    out->equalities = counts[6];
    out->tendons = counts[7];
    out->keyframes = counts[8];
}

static void fill_model_counts(Tribo__V1__SceneCounts *out, const tb_model_counts *n)
{
    const int32_t counts[9] = {n->bodies,    n->joints,     n->coordinates, n->dofs,     n->shapes,
                               n->actuators, n->equalities, n->tendons,     n->keyframes};
    fill_counts(out, counts);
}

static char **warnings_of(td_wire *wire, const tb_model *model, size_t *count)
{
    const int32_t n = tb_model_count(model).warnings;
    char **texts = td_wire_take(wire, (size_t)n * sizeof *texts);
    if (texts == NULL) return NULL;
    for (int32_t i = 0; i < n; i++) texts[i] = (char *)(uintptr_t)tb_model_warning(model, i);
    *count = (size_t)n;
    return texts;
}

static void fail_wire(td_call *call)
{
    tb_error error;
    tb_fail_memory(&error, 0, "an answer");
    td_call_fail(call, &error);
}

/* ---- CreateScene ---- */

enum { OVERLAP_SAMPLES = 64, MOST_OVERLAPS = 1000 };

typedef struct creation {
    td_call *call;
    const td_scene *scene;
    tb_overlap *overlaps; /* that collide, in the first pose */
    int32_t number_of_overlaps;
} creation;

/* Keyframe of the request's first pose, by name or number; -1: the reference pose. */
static int32_t first_pose(const tb_model *model, const Tribo__V1__CreateSceneRequest *message)
{
    const char *keyframe = message->overlap_keyframe;
    if (keyframe[0] == '\0') return -1;
    const int32_t index = tb_model_find(model, TB_HANDLE_KEYFRAME, keyframe);
    return index >= 0 ? index : (int32_t)strtol(keyframe, NULL, 10); /* the importer checked it */
}

/* The pairs that overlap in that pose. */
static tb_status list_overlaps(const tb_model *model, int32_t keyframe, creation *made,
                               tb_error *error)
{
    tb_state *state = NULL;
    tb_status status = tb_state_create(model, &state, error);
    if (status == TB_OK && keyframe >= 0) status = tb_state_reset(state, keyframe, error);
    /* a crowd in one place has too many pairs to sample */
    const double slop = tb_step_defaults().contact_slop;
    if (status == TB_OK)
        status =
            tb_state_overlaps(state, slop, 0, &made->overlaps, &made->number_of_overlaps, error);
    if (status == TB_OK && made->number_of_overlaps > 0 &&
        made->number_of_overlaps <= MOST_OVERLAPS) {
        tb_overlaps_destroy(made->overlaps);
        status = tb_state_overlaps(state, slop, OVERLAP_SAMPLES, &made->overlaps,
                                   &made->number_of_overlaps, error);
    }
    if (made->number_of_overlaps > MOST_OVERLAPS) made->number_of_overlaps = MOST_OVERLAPS;
    tb_state_destroy(state);
    return status;
}

static void free_creation(creation *made)
{
    if (made != NULL) tb_overlaps_destroy(made->overlaps);
    free(made);
}

static void answer_creation(td_call *call, const creation *made)
{
    const td_scene *scene = made->scene;
    Tribo__V1__CreateSceneResponse response = TRIBO__V1__CREATE_SCENE_RESPONSE__INIT;
    Tribo__V1__SceneCounts counts;
    td_wire wire = {0};
    const tb_model_counts n = tb_model_count(scene->model);
    fill_model_counts(&counts, &n);
    response.scene_id = (char *)(uintptr_t)scene->id;
    response.counts = &counts;
    response.total_mass = tb_model_total_mass(scene->model);
    response.dt = tb_model_dt(scene->model);
    response.warnings = warnings_of(&wire, scene->model, &response.n_warnings);
    response.n_overlaps = (size_t)made->number_of_overlaps;
    response.overlaps =
        td_wire_overlaps(&wire, scene->model, made->overlaps, made->number_of_overlaps);
    if (wire.failed)
        fail_wire(call);
    else
        td_call_reply(call, &response.base);
    td_wire_destroy(&wire);
}

/* On the store's writer thread, once the scene is durable. */
static void on_created(void *context, tb_status status, const tb_error *error)
{
    creation *made = context;
    td_call *call = made->call;
    if (status == TB_OK)
        answer_creation(call, made);
    else
        td_call_finish(call, status, error, 0);
    td_scene_release(call->server->catalog, made->scene);
    free_creation(made);
    td_call_release(call);
}

static void create_scene(td_call *call, td_request *request)
{
    tb_error error = {0};
    tb_model *model = NULL;
    const Tribo__V1__CreateSceneRequest *message =
        (const Tribo__V1__CreateSceneRequest *)request->message;
    td_catalog *catalog = call->server->catalog;
    creation *made = calloc(1, sizeof *made);
    tb_status status = made != NULL ? TB_OK : tb_fail_memory(&error, sizeof *made, "a scene");
    if (status == TB_OK) status = compile(call, message, &model, &error);
    if (status == TB_OK) status = list_overlaps(model, first_pose(model, message), made, &error);
    td_request_free(request);
    if (status != TB_OK) {
        free_creation(made);
        tb_model_destroy(model);
        td_call_fail(call, &error);
        return;
    }

    made->call = call;
    td_call_hold(call);
    status = td_catalog_add_scene_durably(catalog, model, &made->scene, on_created, made, &error);
    if (status == TB_OK) return;
    free_creation(made);
    td_call_fail(call, &error);
    td_call_release(call);
}

void td_simulation_create_scene(td_call *call, td_request *request)
{
    td_upload(call, request, create_scene);
}

/* ---- GetScene, GetAsset ---- */

static void answer_scene(td_call *call, const td_scene *scene)
{
    Tribo__V1__GetSceneResponse r = TRIBO__V1__GET_SCENE_RESPONSE__INIT;
    Tribo__V1__SceneCounts counts;
    td_wire wire = {0};
    double gravity[3];
    const tb_model *model = scene->model;
    const tb_model_counts n = tb_model_count(model);
    fill_model_counts(&counts, &n);
    tb_model_gravity(model, gravity);
    r.scene_id = (char *)(uintptr_t)scene->id;
    r.name = (char *)(uintptr_t)tb_model_name(model);
    r.counts = &counts;
    r.total_mass = tb_model_total_mass(model);
    r.dt = tb_model_dt(model);
    r.gravity = gravity;
    r.n_gravity = 3;
    td_wire_scene(&wire, model, scene->digests, &r);
    r.warnings = warnings_of(&wire, model, &r.n_warnings);
    td_call_reply_bounded(call, &r.base, wire.failed, "");
    td_wire_destroy(&wire);
}

static void get_scene(td_call *call, td_request *request)
{
    const Tribo__V1__GetSceneRequest *message =
        (const Tribo__V1__GetSceneRequest *)request->message;
    td_catalog *catalog = call->server->catalog;
    const td_scene *scene = NULL;
    tb_error error = {0};
    if (td_upload_scene(call, message->scene_id, &scene, &error) == TB_OK)
        answer_scene(call, scene);
    else
        td_call_fail(call, &error);
    td_scene_release(catalog, scene);
    td_request_free(request);
}

static void find_scene(td_call *call, td_request *request)
{
    td_upload_for_scene(
        call, request, ((const Tribo__V1__GetSceneRequest *)request->message)->scene_id, get_scene);
}

void td_simulation_get_scene(td_call *call, td_request *request)
{
    td_offload(call, request, find_scene);
}

/* ---- ListScenes ---- */

static void list_scenes(td_call *call, td_request *request)
{
    const Tribo__V1__ListScenesRequest *message =
        (const Tribo__V1__ListScenesRequest *)request->message;
    Tribo__V1__ListScenesResponse response = TRIBO__V1__LIST_SCENES_RESPONSE__INIT;
    char next[DB_TOKEN_SIZE] = "";
    int32_t size = 0, count = 0;
    tb_error error = {0};
    struct row {
        char id[TD_SHA256_TEXT];
        Tribo__V1__SceneInfo info;
        Tribo__V1__SceneCounts counts;
    } *rows = NULL;
    db_scene *scenes = NULL;
    Tribo__V1__SceneInfo **pointers = NULL;

    tb_status status = td_page_size(message->page_size, &size, &error);
    if (status != TB_OK) goto done;
    rows = calloc((size_t)size, sizeof *rows);
    scenes = calloc((size_t)size, sizeof *scenes);
    pointers = calloc((size_t)size, sizeof(Tribo__V1__SceneInfo *));
    if (rows == NULL || scenes == NULL || pointers == NULL) {
        status = tb_fail_memory(&error, (size_t)size * sizeof *rows, "a list");
        goto done;
    }
    status =
        db_list_scenes(call->server->db, message->page_token, scenes, size, &count, next, &error);
    if (status != TB_OK) goto done;
    for (int32_t i = 0; i < count; i++) {
        Tribo__V1__SceneInfo *info = &rows[i].info;
        tribo__v1__scene_info__init(info);
        td_sha256_print(&scenes[i].sha256, rows[i].id);
        fill_counts(&rows[i].counts, scenes[i].counts);
        info->scene_id = rows[i].id;
        info->name = scenes[i].name;
        info->counts = &rows[i].counts;
        info->create_time_us = scenes[i].create_time_us;
        pointers[i] = info;
    }
    response.scenes = pointers;
    response.n_scenes = (size_t)count;
    response.next_page_token = next;
    td_call_reply(call, &response.base);
done:
    if (status != TB_OK) td_call_fail(call, &error);
    free(rows);
    free(scenes);
    free(pointers);
    td_request_free(request);
}

void td_simulation_list_scenes(td_call *call, td_request *request)
{
    td_offload(call, request, list_scenes);
}
