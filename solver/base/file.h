/* Reading and writing whole files, and growing byte buffers. */
#ifndef TB_FILE_H
#define TB_FILE_H

#include "base/error.h"

typedef struct tb_bytes {
    unsigned char *base; /* heap; one zero byte follows the last byte, not counted in size */
    size_t size, capacity;
} tb_bytes;

/* Leaves an empty buffer. */
void tb_bytes_free(tb_bytes *bytes);
/* RESOURCE_EXHAUSTED, without a change, if memory is refused. */
tb_status tb_bytes_append(tb_bytes *bytes, const void *data, size_t size);

/* Reads a regular file into `bytes` (zeroed or filled before), replacing its content; on failure
 * `bytes` is empty. NOT_FOUND, RESOURCE_EXHAUSTED above `limit` bytes (0: no limit),
 * INVALID_ARGUMENT for a folder or device, FAILED_PRECONDITION without permission, INTERNAL if
 * reading fails. */
tb_status tb_file_read(const char *path, size_t limit, tb_bytes *bytes, tb_error *error);

/* Replaces a file atomically: the content is written and synced to a temporary file beside it,
 * then renamed, so that a reader sees the old or the new file. Keeps the old file's permissions.
 * Statuses as above; RESOURCE_EXHAUSTED for a full disk. */
tb_status tb_file_write(const char *path, const void *data, size_t size, tb_error *error);

/* folder of `base` joined with `relative` (as it is if absolute), at most `size` bytes with the
 * zero; RESOURCE_EXHAUSTED if longer. */
tb_status tb_path_join(const char *base, const char *relative, char *joined, size_t size);

/* Takes "." and "a/.." and doubled slashes out of a path, in place. A ".." with nothing before
 * it stays, or is dropped behind a leading slash; the part before "://" is kept. */
void tb_path_normalise(char *path);

/* Parses the number at *text, in C syntax with a '.' in any locale, to the nearest double; moves
 * *text behind it. False, without a move, if no number begins there, also before white space:
 * the caller skips it. Accepts inf and nan, and reads 1e999 as inf: the caller checks the range. */
bool tb_parse_number(const char **text, double *number);

#endif
