/* Files of the importers: from the disk, or from the caller's source.
 *
 * With a source, paths are keys and nothing else: they are normalised as text, symbolic links are
 * unknown to them, and nothing here or behind touches the disk. A leading ".." stays where it is:
 * "../mesh.stl" names another key, which the source has or has not. */
#include "model/import/import.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PATH_SIZE = 4096 };

/* One normalised path, from the option's point of view. */
static tb_status key_of(const char *path, char key[PATH_SIZE], tb_error *error)
{
    if (strlen(path) >= PATH_SIZE)
        return tb_fail(error, TB_RESOURCE_EXHAUSTED, "the path of '%.100s' is too long", path);
    strcpy(key, path);
    tb_path_normalise(key);
    return TB_OK;
}

static tb_status read_source(const tb_import_options *options, const char *path, size_t limit,
                             tb_bytes *bytes, tb_error *error)
{
    char key[PATH_SIZE];
    unsigned char *base = NULL;
    size_t size = 0;
    tb_error cause = {0};
    tb_status status = key_of(path, key, error);
    if (status != TB_OK) return status;
    status = options->files->read(options->files->context, key, &base, &size, &cause);
    if (status != TB_OK) {
        free(base);
        return tb_fail_file(error, status, key, 0, NULL, "%s",
                            cause.message[0] != 0 ? cause.message : tb_status_text(status));
    }
    if (size > limit) {
        free(base);
        return tb_fail_file(error, TB_RESOURCE_EXHAUSTED, key, 0, NULL,
                            "%zu bytes are more than the %zu that are allowed", size, limit);
    }
    /* readers count on a zero behind the last byte */
    unsigned char *larger = realloc(base, size + 1);
    if (larger == NULL) {
        free(base);
        return tb_fail_memory(error, size + 1, key);
    }
    larger[size] = 0;
    bytes->base = larger;
    bytes->size = size;
    bytes->capacity = size + 1;
    return TB_OK;
}

tb_status tb_import_read(const tb_import_options *options, const char *path, size_t limit,
                         tb_bytes *bytes, tb_error *error)
{
    tb_bytes_free(bytes);
    if (limit == 0)
        return tb_fail_file(error, TB_RESOURCE_EXHAUSTED, path, 0, NULL,
                            "the files together are larger than allowed");
    if (options->files != NULL) return read_source(options, path, limit, bytes, error);
    return tb_file_read(path, limit, bytes, error);
}

bool tb_import_has(const tb_import_options *options, const char *path)
{
    if (options->files == NULL) {
        /* a folder exists too: reading it reports the error */
        return access(path, R_OK) == 0;
    }
    char key[PATH_SIZE];
    unsigned char *base = NULL;
    size_t size = 0;
    tb_error ignored = {0};
    if (key_of(path, key, &ignored) != TB_OK) return false;
    const tb_status status =
        options->files->read(options->files->context, key, &base, &size, &ignored);
    free(base);
    return status == TB_OK;
}

char *tb_import_resolve(const tb_import_options *options, const char *path)
{
    char *resolved = options->files == NULL ? realpath(path, NULL) : NULL;
    if (resolved == NULL) resolved = strdup(path);
    if (resolved != NULL && options->files != NULL) tb_path_normalise(resolved);
    return resolved;
}
