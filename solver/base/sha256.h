/* SHA-256 of bytes (by libsodium), the name of a model. */
#ifndef TB_SHA256_H
#define TB_SHA256_H

#include <stddef.h>

/* hex: 64 lower-case characters and a zero */
void tb_sha256_hex(const void *bytes, size_t size, char hex[65]);

#endif
