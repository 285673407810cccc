/* MJZ archives: see mjz.h. Source: MuJoCo's manual, "MJZ archives". */
#include "model/import/mjz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/import/import.h"
#include "model/import/archive.h"

enum { PATH_SIZE = 4096 };

/* Files of an archive as a source: their paths begin with the archive's own. */
typedef struct mjz_files {
    const tb_archive *archive;
    char prefix[PATH_SIZE]; /* "robot.mjz/", normalised */
    size_t limit;           /* bytes of one file */
} mjz_files;

static tb_status read_file(void *context, const char *path, unsigned char **bytes, size_t *size,
                           tb_error *error)
{
    const mjz_files *files = context;
    const size_t length = strlen(files->prefix);
    if (strncmp(path, files->prefix, length) != 0)
        return tb_fail(error, TB_NOT_FOUND, "'%.200s' is outside of the archive", path);
    return tb_archive_read(files->archive, path + length, files->limit, bytes, size, error);
}

/* "robot" of "models/robot.mjz" */
static void name_of(const char *path, char *name, size_t size)
{
    const char *slash = strrchr(path, '/');
    snprintf(name, size, "%s", slash != NULL ? slash + 1 : path);
    char *dot = strrchr(name, '.');
    if (dot != NULL) *dot = 0;
}

static tb_status find_model(const tb_archive *archive, const char *path, char *model, size_t size,
                            tb_error *error)
{
    char name[PATH_SIZE / 8];
    name_of(path, name, sizeof name);
    for (int i = 0; i < 4; i++) {
        switch (i) {
        case 0: snprintf(model, size, "%s.xml", name); break;
        case 1: snprintf(model, size, "%s/%s.xml", name, name); break;
        case 2: snprintf(model, size, "model.xml"); break;
        default: snprintf(model, size, "%s/model.xml", name);
        }
        if (tb_archive_has(archive, model)) return TB_OK;
    }
    return tb_fail_file(error, TB_NOT_FOUND, path, 0, NULL,
                        "the archive has no model: neither %.80s.xml nor model.xml", name);
}

tb_status tb_scene_load_mjz(const tb_bytes *bytes, const char *path,
                            const tb_import_options *options, tb_scene **scene, tb_error *error)
{
    tb_archive *archive = NULL;
    unsigned char *text = NULL;
    size_t size = 0;
    char model[PATH_SIZE / 2], full[PATH_SIZE + PATH_SIZE / 2];
    tb_import_options inside = *options;
    mjz_files *files = calloc(1, sizeof *files);
    *scene = NULL;
    if (files == NULL) return tb_fail_memory(error, sizeof *files, "an archive");
    const tb_file_source source = {read_file, files};
    inside.files = &source;

    tb_status status = tb_archive_open(bytes, path, &archive, error);
    if (status == TB_OK) status = find_model(archive, path, model, sizeof model, error);
    if (status == TB_OK && strlen(path) + 2 > sizeof files->prefix)
        status = tb_fail(error, TB_RESOURCE_EXHAUSTED, "the path of '%.100s' is too long", path);
    if (status != TB_OK) goto done;
    snprintf(files->prefix, sizeof files->prefix, "%s", path);
    tb_path_normalise(files->prefix);
    strcat(files->prefix, "/");
    files->archive = archive;
    files->limit = options->file_limit;
    status = tb_archive_read(archive, model, options->file_limit, &text, &size, error);
    if (status != TB_OK) goto done;
    snprintf(full, sizeof full, "%s%s", files->prefix, model);
    status = tb_scene_load_mjcf((const char *)text, size, full, &inside, scene, error);
done:
    free(text);
    tb_archive_close(archive);
    free(files);
    return status;
}
