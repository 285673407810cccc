/* Token buckets: a caller may do a burst at once and then goes on at a rate. */
#include <sodium.h>
#include <string.h>

#include "call/auth_internal.h"

double td_bucket_take(td_bucket *bucket, double per_second, double burst, int64_t now_ns)
{
    if (bucket->filled_ns == 0)
        bucket->tokens = burst;
    else
        bucket->tokens += per_second * 1e-9 * (double)(now_ns - bucket->filled_ns);
    if (bucket->tokens > burst) bucket->tokens = burst;
    bucket->filled_ns = now_ns;
    if (bucket->tokens >= 1) {
        bucket->tokens -= 1;
        return 0;
    }
    return (1 - bucket->tokens) / per_second;
}

td_bucket *td_bucket_find(td_bucket_table *table, const char *name, const uint8_t *secret)
{
    /* keyed, so that a caller cannot choose names that share a set with another caller's */
    uint8_t digest[crypto_shorthash_BYTES];
    uint64_t hash;
    crypto_shorthash(digest, (const uint8_t *)name, strlen(name), secret);
    memcpy(&hash, digest, sizeof hash);

    const size_t set = hash % TD_BUCKET_SETS;
    size_t oldest = 0;
    for (size_t i = 0; i < TD_BUCKET_WAYS; i++) {
        td_bucket *bucket = &table->entries[set][i].bucket;
        if (bucket->filled_ns != 0 && table->entries[set][i].name == hash) return bucket;
        if (bucket->filled_ns < table->entries[set][oldest].bucket.filled_ns) oldest = i;
    }
    table->entries[set][oldest].name = hash;
    table->entries[set][oldest].bucket = (td_bucket){0};
    return &table->entries[set][oldest].bucket;
}
