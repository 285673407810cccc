/* MJCF documents that name other files, all of them in memory. */
#ifndef MJCF_FILES_H
#define MJCF_FILES_H

#include "mjcf_util.h"

typedef struct mjcf_file {
    const char *path;
    const void *bytes;
    size_t size;
} mjcf_file;

#define MJCF_TEXT_FILE(path, text)                                                                 \
    {                                                                                              \
        path, text, sizeof(text) - 1                                                               \
    }

/* A folder in memory; the last file has no path. */
static inline tb_status mjcf_read_entry(void *context, const char *path, unsigned char **bytes,
                                        size_t *size, tb_error *error)
{
    for (const mjcf_file *f = context; f->path != NULL; f++) {
        if (strcmp(f->path, path) != 0) continue;
        *bytes = malloc(f->size + 1);
        ck_assert_ptr_nonnull(*bytes);
        memcpy(*bytes, f->bytes, f->size);
        *size = f->size;
        return TB_OK;
    }
    snprintf(error->message, sizeof error->message, "no entry '%.200s'", path);
    return error->status = TB_NOT_FOUND;
}

/* Loads the first of the files by its own type. The text is freed by mjcf_free if that went
 * well. */
static inline tb_status mjcf_load_files(const mjcf_file *files, mjcf_case *c)
{
    const tb_file_source source = {mjcf_read_entry, (void *)(uintptr_t)files};
    tb_import_options options = tb_import_defaults();
    options.files = &source;
    memset(c, 0, sizeof *c);
    const tb_status status = tb_scene_load(files[0].path, &options, &c->scene, &c->error);
    if (status == TB_OK) TEST_OK(tb_scene_compile(c->scene, &c->model, &c->error), &c->error);
    return status;
}

#endif
