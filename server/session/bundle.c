/* Bundles: files of a scene, stored in the catalog under paths that the client chooses.
 *
 * An importer requests a path joined to the folder of the file that names it. The bundle looks for
 * the path unchanged ("package://..." too), without its "." and ".." parts, and relative to the
 * folder of the main file. The bundle must never read a file outside of itself. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "session/catalog.h"

enum { PATH_SIZE = 1024 };

typedef struct bundle_file {
    char *path;            /* normalised, owned */
    const td_asset *asset; /* NULL: the main file */
    const unsigned char *bytes;
    size_t size;
} bundle_file;

struct td_bundle {
    td_catalog *catalog;
    bundle_file *files;
    int32_t count, capacity;
    char folder[PATH_SIZE]; /* of the main file, "" or with a slash at its end */
    tb_file_source source;
};

/* Drops "." and empty parts, and "name/.."; addresses with "://" stay as they are. False if it does
 * not fit. */
static bool normalise(const char *path, char out[PATH_SIZE])
{
    if (strstr(path, "://") != NULL) return snprintf(out, PATH_SIZE, "%s", path) < PATH_SIZE;
    size_t length = 0;
    for (const char *part = path; *part != '\0';) {
        const size_t n = strcspn(part, "/\\");
        const bool up = n == 2 && part[0] == '.' && part[1] == '.';
        const bool parent_known =
            length > 0 && !(length >= 3 && strncmp(out + length - 3, "../", 3) == 0);
        if (up && parent_known) {
            length--; /* the slash, then the name before it */
            while (length > 0 && out[length - 1] != '/') length--;
        } else if (n > 0 && !(n == 1 && part[0] == '.')) {
            if (length + n + 1 >= PATH_SIZE) return false;
            memcpy(out + length, part, n);
            length += n;
            out[length++] = '/';
        }
        part += n + (part[n] != '\0');
    }
    if (length > 0) length--; /* the last slash */
    out[length] = '\0';
    return true;
}

static const bundle_file *find(const td_bundle *bundle, const char *normalised)
{
    for (int32_t i = 0; i < bundle->count; i++)
        if (strcmp(bundle->files[i].path, normalised) == 0) return &bundle->files[i];
    return NULL;
}

static tb_status add(td_bundle *bundle, const char *path, const td_asset *asset,
                     const unsigned char *bytes, size_t size, tb_error *error)
{
    char normalised[PATH_SIZE];
    if (!normalise(path, normalised) || *normalised == '\0')
        return tb_fail_field(error, TB_INVALID_ARGUMENT, "files.path",
                             "'%.80s' is no path of a file", path);
    if (find(bundle, normalised) != NULL)
        return tb_fail_field(error, TB_INVALID_ARGUMENT, "files.path",
                             "the path '%.80s' is given twice", path);
    if (bundle->count == bundle->capacity) {
        const int32_t capacity = 2 * bundle->capacity + 8;
        bundle_file *grown = realloc(bundle->files, (size_t)capacity * sizeof *grown);
        if (grown == NULL) return tb_fail_memory(error, 0, "a bundle of files");
        bundle->files = grown;
        bundle->capacity = capacity;
    }
    char *copy = strdup(normalised);
    if (copy == NULL) return tb_fail_memory(error, strlen(normalised), "a path");
    bundle->files[bundle->count++] =
        (bundle_file){.path = copy, .asset = asset, .bytes = bytes, .size = size};
    return TB_OK;
}

/* The file that an importer means by `path`. */
static const bundle_file *resolve(const td_bundle *bundle, const char *path)
{
    char normalised[PATH_SIZE], joined[2 * PATH_SIZE];
    if (!normalise(path, normalised)) return NULL;
    const bundle_file *file = find(bundle, normalised);
    if (file != NULL || *bundle->folder == '\0') return file;

    /* a path in the bundle may be relative to the main file's folder */
    for (int32_t i = 0; i < bundle->count; i++) {
        char beside[PATH_SIZE];
        snprintf(joined, sizeof joined, "%s%s", bundle->folder, bundle->files[i].path);
        if (normalise(joined, beside) && strcmp(beside, normalised) == 0) return &bundle->files[i];
    }
    return NULL;
}

static tb_status read_file(void *context, const char *path, unsigned char **bytes, size_t *size,
                           tb_error *error)
{
    const bundle_file *file = resolve(context, path);
    *bytes = NULL;
    *size = 0;
    if (file == NULL)
        return tb_fail_file(error, TB_NOT_FOUND, path, 0, "files",
                            "the request's files do not hold it");
    *bytes = malloc(file->size + 1);
    if (*bytes == NULL) return tb_fail_memory(error, file->size, path);
    if (file->size > 0) memcpy(*bytes, file->bytes, file->size);
    (*bytes)[file->size] = '\0';
    *size = file->size;
    return TB_OK;
}

tb_status td_bundle_create(td_catalog *catalog, const char *const *paths, const char *const *sha256,
                           int32_t count, td_bundle **bundle, tb_error *error)
{
    *bundle = NULL;
    td_bundle *b = calloc(1, sizeof *b);
    if (b == NULL) return tb_fail_memory(error, sizeof *b, "a bundle of files");
    b->catalog = catalog;
    b->source = (tb_file_source){.read = read_file, .context = b};
    tb_status status = TB_OK;
    for (int32_t i = 0; i < count && status == TB_OK; i++) {
        const td_asset *asset = NULL;
        tb_error cause = {0};
        status = td_catalog_asset(catalog, sha256[i], &asset, &cause);
        if (status != TB_OK) {
            status = tb_fail_field(error, status, "files.sha256", "the file '%.80s': %s", paths[i],
                                   cause.message);
            break;
        }
        status = add(b, paths[i], asset, asset->bytes, asset->size, error);
        if (status != TB_OK) td_asset_release(catalog, asset);
    }
    if (status == TB_OK)
        *bundle = b;
    else
        td_bundle_destroy(b);
    return status;
}

tb_status td_bundle_add_main(td_bundle *bundle, const char *path, const unsigned char *bytes,
                             size_t size, tb_error *error)
{
    const char *slash = strrchr(path, '/');
    if (slash != NULL) {
        const size_t length = (size_t)(slash - path) + 1;
        if (length >= sizeof bundle->folder)
            return tb_fail_field(error, TB_INVALID_ARGUMENT, "path", "the path is too long");
        memcpy(bundle->folder, path, length);
        bundle->folder[length] = '\0';
    }
    return add(bundle, path, NULL, bytes, size, error);
}

const tb_file_source *td_bundle_source(const td_bundle *bundle)
{
    return &bundle->source;
}

void td_bundle_destroy(td_bundle *bundle)
{
    if (bundle == NULL) return;
    for (int32_t i = 0; i < bundle->count; i++) {
        free(bundle->files[i].path);
        td_asset_release(bundle->catalog, bundle->files[i].asset);
    }
    free(bundle->files);
    free(bundle);
}
