/* Zip archives in memory, as far as models need them: .mjz, a model with its files.
 *
 * The reader takes stored and deflated entries by the archive's central directory and checks their
 * checksums. It refuses encrypted, split and 64-bit archives. zlib does the inflating; a library for
 * whole archives would bring writing, encryption and files of its own along, for three records that
 * have not changed since 1993. Source: PKWARE, .ZIP File Format Specification 6.3.10. */
#ifndef TB_ARCHIVE_H
#define TB_ARCHIVE_H

#include "base/base.h"
#include "base/file.h"

typedef struct tb_archive tb_archive;

/* Whether bytes begin like a zip archive. */
bool tb_archive_is(const tb_bytes *bytes);

/* Reads the directory. `bytes` are borrowed until tb_archive_close. DATA_LOSS for a damaged
 * archive,
 * UNSUPPORTED for a kind that is not read. */
tb_status tb_archive_open(const tb_bytes *bytes, const char *file, tb_archive **archive,
                          tb_error *error);
void tb_archive_close(tb_archive *archive); /* NULL is fine */

/* Whether there is a file of that normalised path. */
bool tb_archive_has(const tb_archive *archive, const char *path);

/* A file's bytes, malloc'ed; the caller frees them. NOT_FOUND; RESOURCE_EXHAUSTED for more than
 * `limit` bytes; DATA_LOSS if the bytes do not match the checksum. */
tb_status tb_archive_read(const tb_archive *archive, const char *path, size_t limit,
                          unsigned char **bytes, size_t *size, tb_error *error);

#endif
