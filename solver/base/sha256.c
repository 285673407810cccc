/* SHA-256 by libsodium: see sha256.h. */
#include "base/sha256.h"

#include <sodium/crypto_hash_sha256.h>
#include <sodium/utils.h>

void tb_sha256_hex(const void *bytes, size_t size, char hex[65])
{
    unsigned char digest[crypto_hash_sha256_BYTES];
    crypto_hash_sha256(digest, size > 0 ? bytes : "", size);
    sodium_bin2hex(hex, 65, digest, sizeof digest);
}
