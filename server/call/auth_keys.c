/* Makes and revokes keys, for `tribod --create-key` and `--revoke-key`. */
#include <ctype.h>
#include <math.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>

#include "db/db.h"
#include "call/auth.h"
#include "call/auth_internal.h"
#include "base/error.h"
#include "ops/clock.h"

enum {
    SECRET_SIZE = 32,
    SECRET_TEXT = sodium_base64_ENCODED_LEN(SECRET_SIZE, sodium_base64_VARIANT_URLSAFE_NO_PADDING)
};
/* see auth.c for why so low: 2 passes over 8 MiB */
static const unsigned long long HASH_PASSES = 2;
static const size_t HASH_BYTES = (size_t)8 << 20;

static const double DAYS_MAXIMUM = 36500, DAY_US = 86400e6;

static tb_status check_name(const char *name, tb_error *error)
{
    const size_t length = strlen(name);
    if (length == 0 || length >= TD_CALLER_NAME_SIZE)
        return tb_fail_field(error, TB_INVALID_ARGUMENT, "name",
                             "the name of a key has 1 to %d bytes; this one has %zu",
                             TD_CALLER_NAME_SIZE - 1, length);
    for (const char *c = name; *c != '\0'; c++)
        if (iscntrl((unsigned char)*c))
            return tb_fail_field(error, TB_INVALID_ARGUMENT, "name",
                                 "the name of a key must not hold control characters");
    if (strcmp(name, TD_ANONYMOUS) == 0)
        return tb_fail_field(error, TB_INVALID_ARGUMENT, "name",
                             "'%s' is the name of callers without a key", name);
    return TB_OK;
}

/* An id that no key has yet. */
static tb_status choose_id(struct db *store, char id[16], tb_error *error)
{
    for (int attempt = 0; attempt < 100; attempt++) {
        db_api_key taken;
        snprintf(id, 16, "%08x", (unsigned)randombytes_random());
        const tb_status status = db_get_api_key(store, id, &taken, error);
        if (status == TB_NOT_FOUND) return TB_OK;
        if (status != TB_OK) return status;
    }
    return tb_fail(error, TB_RESOURCE_EXHAUSTED, "no free id for a key was found");
}

static tb_status check_terms(const td_key_terms *terms, tb_error *error)
{
    if (terms->scope < TD_SCOPE_READ || terms->scope > TD_SCOPE_ADMIN)
        return tb_fail_field(error, TB_INVALID_ARGUMENT, "scope",
                             "the scope of a key is read, run or admin");
    if (!(terms->calls_per_second >= 0) || !isfinite(terms->calls_per_second))
        return tb_fail_field(error, TB_INVALID_ARGUMENT, "calls_per_second",
                             "calls_per_second is %g and must be at least 0",
                             terms->calls_per_second);
    if (terms->sessions < 0)
        return tb_fail_field(error, TB_INVALID_ARGUMENT, "sessions",
                             "sessions is %d and must be at least 0", terms->sessions);
    if (!(terms->days >= 0 && terms->days <= DAYS_MAXIMUM))
        return tb_fail_field(error, TB_INVALID_ARGUMENT, "days",
                             "days is %g and must be from 0 to %g", terms->days, DAYS_MAXIMUM);
    return TB_OK;
}

/* The row of a new key without its id and hash. */
static tb_status begin_row(const char *name, const td_key_terms *terms, db_api_key *row,
                           tb_error *error)
{
    const td_clock clock = td_clock_make();
    const int64_t now_us = td_clock_utc_us(&clock);
    tb_status status = check_name(name, error);
    if (status == TB_OK) status = check_terms(terms, error);
    if (status != TB_OK) return status;
    *row = (db_api_key){.scope = (int32_t)terms->scope,
                        .calls_per_second = terms->calls_per_second,
                        .sessions = terms->sessions,
                        .create_time_us = now_us};
    if (terms->days > 0) row->expire_time_us = now_us + (int64_t)(terms->days * DAY_US);
    snprintf(row->name, sizeof row->name, "%s", name);
    return sodium_init() < 0 ? tb_fail(error, TB_INTERNAL, "libsodium cannot start") : TB_OK;
}

static tb_status put_row(struct db *store, db_api_key *row, const char *key, tb_error *error)
{
    _Static_assert(sizeof row->hash >= crypto_pwhash_argon2id_STRBYTES, "a hash fits its column");
    if (crypto_pwhash_argon2id_str(row->hash, key, strlen(key), HASH_PASSES, HASH_BYTES) != 0)
        return tb_fail_memory(error, HASH_BYTES, "hashing a key");
    return db_put_api_key(store, row, error);
}

tb_status td_auth_create_key(struct db *store, const char *name, const td_key_terms *terms,
                             char key[128], tb_error *error)
{
    uint8_t secret[SECRET_SIZE];
    char text[SECRET_TEXT];
    db_api_key row;
    tb_status status = begin_row(name, terms, &row, error);
    if (status == TB_OK) status = choose_id(store, row.id, error);
    if (status != TB_OK) return status;

    randombytes_buf(secret, sizeof secret);
    sodium_bin2base64(text, sizeof text, secret, sizeof secret,
                      sodium_base64_VARIANT_URLSAFE_NO_PADDING);
    snprintf(key, 128, TD_KEY_PREFIX "%s_%s", row.id, text);
    status = put_row(store, &row, key, error);
    if (status != TB_OK) sodium_memzero(key, 128);
    sodium_memzero(secret, sizeof secret);
    sodium_memzero(text, sizeof text);
    return status;
}

tb_status td_auth_import_key(struct db *store, const char *name, const td_key_terms *terms,
                             const char *key, tb_error *error)
{
    /* the id as it is written, and 32 bytes of secret after it */
    enum { HEAD = sizeof TD_KEY_PREFIX + TD_KEY_ID_DIGITS };
    uint8_t secret[SECRET_SIZE];
    size_t size = 0;
    db_api_key row, known;
    tb_status status = begin_row(name, terms, &row, error);
    if (status != TB_OK) return status;
    const bool formed =
        strlen(key) == HEAD + SECRET_TEXT - 1 &&
        strncmp(key, TD_KEY_PREFIX, sizeof TD_KEY_PREFIX - 1) == 0 && td_auth_key_id(key, row.id) &&
        strncmp(key + sizeof TD_KEY_PREFIX - 1, row.id, TD_KEY_ID_DIGITS) == 0 &&
        key[HEAD - 1] == '_' &&
        sodium_base642bin(secret, sizeof secret, key + HEAD, SECRET_TEXT - 1, NULL, &size, NULL,
                          sodium_base64_VARIANT_URLSAFE_NO_PADDING) == 0 &&
        size == SECRET_SIZE;
    sodium_memzero(secret, sizeof secret);
    if (!formed)
        return tb_fail_field(error, TB_INVALID_ARGUMENT, "key-file",
                             "a key is '" TD_KEY_PREFIX "', %d hexadecimal digits, '_' and %d "
                             "characters of base64url",
                             TD_KEY_ID_DIGITS, (int)SECRET_TEXT - 1);

    status = db_get_api_key(store, row.id, &known, error);
    if (status == TB_NOT_FOUND) return put_row(store, &row, key, error);
    if (status != TB_OK) return status;
    if (known.revoked || crypto_pwhash_str_verify(known.hash, key, strlen(key)) != 0)
        return tb_fail_field(error, TB_FAILED_PRECONDITION, "key-file",
                             known.revoked ? "the key %s was revoked"
                                           : "the store has another key with the id %s",
                             row.id);
    return TB_OK;
}

tb_status td_auth_revoke_key(struct db *store, const char *text, tb_error *error)
{
    char id[16];
    db_api_key row;
    /* the text may be a whole key, pasted: it is not repeated */
    if (!td_auth_key_id(text, id))
        return tb_fail_field(error, TB_INVALID_ARGUMENT, "id",
                             "the id of a key has %d hexadecimal digits", TD_KEY_ID_DIGITS);
    tb_status status = db_get_api_key(store, id, &row, error);
    if (status == TB_NOT_FOUND)
        return tb_fail_field(error, TB_NOT_FOUND, "id", "there is no key '%s'", id);
    if (status != TB_OK || row.revoked) return status;
    row.revoked = true;
    return db_put_api_key(store, &row, error);
}
