/* Whole files in, streams out. */
#ifndef CLI_FILES_H
#define CLI_FILES_H

#include <stdio.h>

#include "tribo.h"

/* Reads a regular file of at most `limit` bytes; a zero byte stands behind the last. The caller
 * frees *text. */
tb_status files_read(const char *path, size_t limit, char **text, size_t *size, tb_error *error);

/* Opens a file for writing, "-" for stdout. */
tb_status files_create(const char *path, FILE **file, tb_error *error);
/* Closes it and says if not everything could be written. NULL is fine. */
tb_status files_close(FILE *file, const char *path, tb_error *error);

/* 1 if `path` ends with `extension`, whatever the case. */
int files_has_extension(const char *path, const char *extension);

#endif
