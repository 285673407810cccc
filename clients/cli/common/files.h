/* Whole files in, streams out. */
#ifndef CLI_FILES_H
#define CLI_FILES_H

#include <stdio.h>

#include "tribo.h"

/* Reads a regular file of at most `limit` bytes and appends a zero byte. The caller frees *text. */
tb_status files_read(const char *path, size_t limit, char **text, size_t *size, tb_error *error);

/* Opens a file for writing, "-" for stdout. A regular file is written under a temporary name and
 * renamed by files_close, so that the old content is kept until the new content is complete. */
tb_status files_create(const char *path, FILE **file, tb_error *error);
/* Closes a file of files_create and renames it to its path, or fails if a write failed. NULL is
 * fine. */
tb_status files_close(FILE *file, const char *path, tb_error *error);
/* Closes the file and keeps the path's old content. NULL is fine. */
void files_abandon(FILE *file, const char *path);

/* INVALID_ARGUMENT for an output that is one of the inputs or another output, by whatever name.
 * Both lists may hold NULL and "-". */
tb_status files_check_outputs(const char *const *inputs, int number_of_inputs,
                              const char *const *outputs, int number_of_outputs, tb_error *error);

/* 1 if `path` ends with `extension`, whatever the case. */
int files_has_extension(const char *path, const char *extension);

#endif
