/* Shared by the importers: checking options, finding files, and passing a scene's warnings on. */
#ifndef TB_IMPORT_H
#define TB_IMPORT_H

#include "base/base.h"
#include "base/file.h"

/* INVALID_ARGUMENT naming the option that makes no sense. */
tb_status tb_import_check(const tb_import_options *options, tb_error *error);

/* Sends every warning of the scene to the hook. */
void tb_import_report(const tb_scene *scene, const tb_log *log);

/* Reads a whole file of at most `limit` bytes from the options' source, or from the disk.
 * Statuses of tb_file_read, or of the source. */
tb_status tb_import_read(const tb_import_options *options, const char *path, size_t limit,
                         tb_bytes *bytes, tb_error *error);
/* Whether such a file is there and can be read. */
bool tb_import_has(const tb_import_options *options, const char *path);
/* A name that two paths of one file share; malloc'ed, NULL without memory. */
char *tb_import_resolve(const tb_import_options *options, const char *path);

#endif
