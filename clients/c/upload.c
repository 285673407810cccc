/* Uploads models: the file, and every file that it refers to.
 *
 * The client imports the model locally through a file source that reads the disk and records every
 * requested name. So the client knows the exact names that the server's importer, which is the same
 * code, will request. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/error.h"
#include "base/file.h"
#include "tribo/v1/simulation.pb-c.h"
#include "tribo_client.h"

enum { CHUNK_BYTES = 1 << 18, MOST_FILES = 10000, MOST_FOLDERS = 32 };

tb_status tbc_put_asset(tbc_client *client, const char *name, const void *bytes, size_t size,
                        char sha256[65], tb_error *error)
{
    tbc_stream *stream;
    ProtobufCMessage *answer = NULL;
    tb_status status =
        tbc_stream_open(client, "tribo.v1.Simulation/PutAsset",
                        &tribo__v1__put_asset_response__descriptor, 0, &stream, error);
    if (status != TB_OK) return status;
    size_t at = 0;
    do {
        Tribo__V1__PutAssetRequest piece = TRIBO__V1__PUT_ASSET_REQUEST__INIT;
        if (at == 0) piece.name = (char *)(uintptr_t)name;
        piece.data.len = size - at < CHUNK_BYTES ? size - at : CHUNK_BYTES;
        piece.data.data = (uint8_t *)(uintptr_t)bytes + at;
        at += piece.data.len;
        /* a refused piece ends the call: its status has the reason */
        if (tbc_stream_send(stream, &piece.base, NULL) != TB_OK) break;
    } while (at < size);
    tbc_stream_half_close(stream, NULL);
    status = tbc_stream_receive(stream, &answer, error);
    if (status == TB_OK && answer == NULL)
        status = tb_fail(error, TB_DATA_LOSS, "PutAsset was answered without a message");
    if (status == TB_OK) {
        const Tribo__V1__PutAssetResponse *put = (const void *)answer;
        snprintf(sha256, 65, "%s", put->sha256);
    }
    tbc_free(answer);
    tbc_stream_close(stream);
    return status;
}

/* ---- files of a model ---- */

typedef struct recorder {
    tbc_client *client;
    const char *folder;       /* of the main file, with its slash, or "" */
    const char *package_path; /* as in tbc_upload_model */
    tbc_files *files;
} recorder;

static bool is_file(const char *path)
{
    struct stat about;
    return stat(path, &about) == 0 && S_ISREG(about.st_mode);
}

/* PACKAGE/REST below one of the roots, and REST in a root that is the package itself. */
static bool locate_below(const char *roots, const char *address, char path[PATH_MAX])
{
    const size_t package = strcspn(address, "/");
    for (const char *at = roots; at != NULL && *at != 0;) {
        const int length = (int)strcspn(at, ":");
        const bool own = (size_t)length >= package && address[package] == '/' &&
                         memcmp(at + (size_t)length - package, address, package) == 0;
        snprintf(path, PATH_MAX, "%.*s/%s", length, at, address);
        if (is_file(path)) return true;
        snprintf(path, PATH_MAX, "%.*s/%s", length, at, address + package + 1);
        if (own && is_file(path)) return true;
        at += at[length] == ':' ? length + 1 : length;
    }
    return false;
}

/* Finds a reference on disk. PACKAGE/REST of package:// is searched in the package path, beside the
 * model and in its parent folders, as the importer does. */
static bool locate(const recorder *r, const char *reference, char path[PATH_MAX])
{
    const char *rest = strstr(reference, "://");
    if (rest == NULL) {
        snprintf(path, PATH_MAX, "%s%s", reference[0] == '/' ? "" : r->folder, reference);
        return is_file(path);
    }
    rest += 3;
    if (locate_below(r->package_path, rest, path)) return true;
    char base[PATH_MAX];
    snprintf(base, sizeof base, "%s", r->folder);
    for (int depth = 0; depth < MOST_FOLDERS; depth++) {
        if (snprintf(path, PATH_MAX, "%s%s", base, rest) < PATH_MAX && is_file(path)) return true;
        const size_t length = strlen(base);
        if (length + 4 > sizeof base) break;
        memcpy(base + length, "../", 4);
    }
    return false;
}

static bool is_known(const tbc_files *files, const char *reference)
{
    for (int32_t i = 0; i < files->count; i++)
        if (strcmp(files->references[i], reference) == 0) return true;
    return false;
}

static tb_status remember(tbc_files *files, const char *reference, const char sha256[65],
                          tb_error *error)
{
    if (files->count >= MOST_FILES)
        return tb_fail(error, TB_RESOURCE_EXHAUSTED, "the model refers to more than %d files",
                       MOST_FILES);
    const size_t count = (size_t)files->count + 1;
    char **references = realloc(files->references, count * sizeof *references);
    if (references != NULL) files->references = references;
    char(*digests)[65] = realloc(files->sha256, count * sizeof *digests);
    if (digests != NULL) files->sha256 = digests;
    char *copy = strdup(reference);
    if (references == NULL || digests == NULL || copy == NULL) {
        free(copy);
        return tb_fail_memory(error, 0, "the list of files");
    }
    files->references[files->count] = copy;
    memcpy(files->sha256[files->count], sha256, 65);
    files->count++;
    return TB_OK;
}

/* tb_file_source.read: reads the file from the disk and uploads it. */
static tb_status record(void *context, const char *reference, unsigned char **bytes, size_t *size,
                        tb_error *error)
{
    recorder *r = context;
    char path[PATH_MAX], sha256[65];
    tb_bytes file = {0};
    if (!locate(r, reference, path))
        return tb_fail_field(error, TB_NOT_FOUND, reference, "there is no file %.300s", reference);
    tb_status status = tb_file_read(path, 0, &file, error);
    if (status == TB_OK && !is_known(r->files, reference)) {
        const char *slash = strrchr(path, '/');
        status = tbc_put_asset(r->client, slash != NULL ? slash + 1 : path, file.base, file.size,
                               sha256, error);
        if (status == TB_OK) status = remember(r->files, reference, sha256, error);
    }
    if (status != TB_OK) {
        tb_bytes_free(&file);
        return status;
    }
    *bytes = file.base;
    *size = file.size;
    return TB_OK;
}

/* Whether a file may refer to others, and whether it is a robot description, not a MJCF model. */
static bool is_model(const char *path, bool *urdf, const tb_bytes *text)
{
    const char *dot = strrchr(path, '.');
    if (dot == NULL ||
        (strcmp(dot, ".xml") != 0 && strcmp(dot, ".mjcf") != 0 && strcmp(dot, ".urdf") != 0))
        return false;
    *urdf = text->base != NULL && strstr((const char *)text->base, "<robot") != NULL &&
            strstr((const char *)text->base, "<mujoco") == NULL;
    return true;
}

tb_status tbc_upload_model(tbc_client *client, const char *path, const char *package_path,
                           char sha256[65], tbc_files *files, tb_error *error)
{
    char folder[PATH_MAX];
    tb_bytes text = {0};
    tb_scene *scene = NULL;
    bool urdf = false;
    *files = (tbc_files){0};
    const char *slash = strrchr(path, '/');
    const char *name = slash != NULL ? slash + 1 : path;
    snprintf(folder, sizeof folder, "%.*s", slash != NULL ? (int)(name - path) : 0, path);

    tb_status status = tb_file_read(path, 0, &text, error);
    if (status != TB_OK) goto done;
    status = tbc_put_asset(client, name, text.base, text.size, sha256, error);
    if (status != TB_OK || !is_model(path, &urdf, &text)) goto done;

    recorder r = {.client = client, .folder = folder, .package_path = package_path, .files = files};
    const tb_file_source source = {.read = record, .context = &r};
    tb_import_options options = tb_import_defaults();
    options.files = &source;
    options.balance_inertia = true; /* the daemon judges inertias: here only the files count */
    const char *characters = (const char *)text.base;
    status = urdf ? tb_scene_load_urdf(characters, text.size, name, &options, &scene, error)
                  : tb_scene_load_mjcf(characters, text.size, name, &options, &scene, error);
done:
    tb_scene_destroy(scene);
    tb_bytes_free(&text);
    if (status != TB_OK) tbc_files_free(files);
    return status;
}

void tbc_files_free(tbc_files *files)
{
    for (int32_t i = 0; i < files->count; i++) free(files->references[i]);
    free(files->references);
    free(files->sha256);
    *files = (tbc_files){0};
}

static Tribo__V1__OverlapPolicy policy_of(tb_overlap_policy policy)
{
    switch (policy) {
    case TB_OVERLAPS_IGNORE: return TRIBO__V1__OVERLAP_POLICY__OVERLAP_POLICY_IGNORE;
    case TB_OVERLAPS_ERROR: return TRIBO__V1__OVERLAP_POLICY__OVERLAP_POLICY_ERROR;
    default: return TRIBO__V1__OVERLAP_POLICY__OVERLAP_POLICY_KEEP;
    }
}

static void fill_options(Tribo__V1__CreateSceneRequest *request, const tb_import_options *options)
{
    request->density = options->density;
    request->floating_base = !options->fixed_base;
    request->balance_inertia = options->balance_inertia;
    request->overlaps = policy_of(options->overlaps);
    if (options->overlap_keyframe != NULL)
        request->overlap_keyframe = (char *)(uintptr_t)options->overlap_keyframe;
}

tb_status tbc_load_scene(tbc_client *client, const char *path, const char *package_path,
                         char scene_id[65], tb_error *error)
{
    tb_import_options options = tb_import_defaults();
    options.package_path = package_path;
    return tbc_load_scene_as(client, path, &options, scene_id, error);
}

tb_status tbc_load_scene_as(tbc_client *client, const char *path, const tb_import_options *options,
                            char scene_id[65], tb_error *error)
{
    tbc_files files;
    char sha256[65];
    Tribo__V1__CreateSceneResponse *answer = NULL;
    tb_status status = tbc_upload_model(client, path, options->package_path, sha256, &files, error);
    if (status != TB_OK) return status;

    const size_t count = (size_t)files.count;
    Tribo__V1__SceneFile *entries = calloc(count + 1, sizeof *entries);
    Tribo__V1__SceneFile **pointers = calloc(count + 1, sizeof(void *));
    if (entries == NULL || pointers == NULL) {
        status = tb_fail_memory(error, count * sizeof *entries, "the list of files");
        goto done;
    }
    for (size_t i = 0; i < count; i++) {
        tribo__v1__scene_file__init(&entries[i]);
        entries[i].path = files.references[i];
        entries[i].sha256 = files.sha256[i];
        pointers[i] = &entries[i];
    }
    const char *slash = strrchr(path, '/');
    Tribo__V1__CreateSceneRequest request = TRIBO__V1__CREATE_SCENE_REQUEST__INIT;
    request.main_case = TRIBO__V1__CREATE_SCENE_REQUEST__MAIN_SHA256;
    request.sha256 = sha256;
    request.path = (char *)(uintptr_t)(slash != NULL ? slash + 1 : path);
    request.n_files = count;
    request.files = pointers;
    fill_options(&request, options);
    status = TBC_CALL(client, "tribo.v1.Simulation/CreateScene", &request, create_scene_response,
                      &answer, error);
    if (status == TB_OK) snprintf(scene_id, 65, "%s", answer->scene_id);
    tbc_free(answer);
done:
    free(entries);
    free(pointers);
    tbc_files_free(&files);
    return status;
}
