/* Reading and writing whole files, and growing byte buffers. */
#ifndef TB_FILE_H
#define TB_FILE_H

#include "base/error.h"

typedef struct tb_bytes {
    unsigned char *base; /* heap; one zero byte stands behind the last, not counted in size */
    size_t size, capacity;
} tb_bytes;

/* Leaves an empty buffer. */
void tb_bytes_free(tb_bytes *bytes);
/* RESOURCE_EXHAUSTED where memory is refused; then nothing changed. */
tb_status tb_bytes_append(tb_bytes *bytes, const void *data, size_t size);

/* Reads a regular file in the place of what `bytes` (zeroed or filled before) held; on failure it
 * is empty. NOT_FOUND, RESOURCE_EXHAUSTED above `limit` bytes (0: no limit), INVALID_ARGUMENT for a
 * folder or device, FAILED_PRECONDITION without permission, INTERNAL where reading fails. */
tb_status tb_file_read(const char *path, size_t limit, tb_bytes *bytes, tb_error *error);

/* Replaces a file as a whole: written and synced beside it, then renamed, so that a reader sees the
 * old or the new one. Keeps the old one's permissions. Statuses as above; RESOURCE_EXHAUSTED for a
 * full disk. */
tb_status tb_file_write(const char *path, const void *data, size_t size, tb_error *error);

/* folder of `base` joined with `relative` (as it is if absolute), at most `size` bytes with the
 * zero; RESOURCE_EXHAUSTED if longer. */
tb_status tb_path_join(const char *base, const char *relative, char *joined, size_t size);

/* Takes "." and "a/.." and doubled slashes out of a path, in place. A ".." with nothing before it
 * stays, or goes behind a leading slash; what stands before "://" is kept. */
void tb_path_normalise(char *path);

/* The double nearest to the number at *text, in C syntax with a '.' whatever the locale; moves
 * *text behind it. False, and nothing moved, where there is none: also before white space, which is
 * the caller's to pass. Accepts inf and nan, and 1e999 is inf: callers say whether they do. */
bool tb_parse_number(const char **text, double *number);

#endif
