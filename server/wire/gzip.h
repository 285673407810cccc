/* gzip of request and response bodies. */
#ifndef SERVER_HTTP_GZIP_H
#define SERVER_HTTP_GZIP_H

#include "base/file.h"

/* Appends the bytes that a gzip body unpacks to. RESOURCE_EXHAUSTED above `limit` bytes, however
 * small the packed form is; INVALID_ARGUMENT if it is not gzip, truncated, or followed by other
 * bytes. */
tb_status http_gunzip(const unsigned char *packed, size_t size, uint64_t limit, tb_bytes *,
                      tb_error *);
/* Appends the bytes packed. */
tb_status http_gzip(const void *bytes, size_t size, tb_bytes *packed, tb_error *);

#endif
