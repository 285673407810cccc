/* Authentication and authorization: API keys, scopes, rates and quotas.
 *
 * Keys are stored as argon2id hashes (libsodium) in the store's api_key table. A key is "tribo_" +
 * an 8-digit id + "_" + a random secret: the id finds the row, the secret is verified. Verified
 * keys are cached for a while under a keyed hash, so that the slow hash runs once. A key may
 * expire; the store records its last use, and refused keys with reason and peer. Anonymous callers
 * have the configuration's scope on loopback, and none elsewhere. */
#ifndef SERVER_AUTH_H
#define SERVER_AUTH_H

#include "call/call.h"
#include "ops/config.h"

typedef struct td_auth td_auth;
struct db;

tb_status td_auth_create(const td_config *, struct db *, td_auth **, tb_error *);
void td_auth_destroy(td_auth *);
/* After a change of keys or configuration. */
void td_auth_reload(td_auth *, const td_config *);

/* Clears cached keys if another process made or revoked keys; writes uses and refusals of keys to
 * the store. From one thread, about once a second. */
void td_auth_follow_store(td_auth *, const td_config *);

/* Decides over one call before its first message is dispatched. `authorization` is the value of
 * the header ("Bearer tribo_..."), or NULL; `peer_loopback` says whether the peer is on loopback.
 * OK fills call->caller. Statuses: UNAUTHENTICATED for a bad or missing key, PERMISSION_DENIED for
 * a scope that is too small, RESOURCE_EXHAUSTED above the key's rate (with *retry_after, s). May
 * take tens of milliseconds for a key seen for the first time. */
tb_status td_auth_admit(td_auth *, td_call *, const char *authorization, bool peer_loopback,
                        double *retry_after, tb_error *);
/* Rank of an idle connection for eviction: that of the best caller admitted on it. Connections
 * below TD_STANDING_KEY are evicted when the limit is reached, the lowest rank first. */
typedef enum td_standing {
    TD_STANDING_NONE,      /* no call was admitted */
    TD_STANDING_ANONYMOUS, /* calls without a key */
    TD_STANDING_KEY
} td_standing;

td_standing td_auth_standing(const td_caller *);
/* Whether td_auth_admit will answer for this header without the slow hash: there is none, or its
 * key is remembered. Transports that must not wait hand the others to a worker. */
bool td_auth_quick(td_auth *, const char *authorization);

/* A key's row id: 8 hexadecimal digits and a zero, taken from a key, from "tribo_" and the digits,
 * or from the digits alone. False for any other text. */
bool td_auth_key_id(const char *text, char id[16]);

/* Permissions of a key, and its expiry. */
typedef struct td_key_terms {
    td_scope scope;
    double calls_per_second; /* 0: the configuration's */
    int32_t sessions;        /* 0: the configuration's */
    double days;             /* until it expires; 0: never */
} td_key_terms;

/* Makes a key, stores its hash and writes the key itself, once, to `key` (128 bytes). */
tb_status td_auth_create_key(struct db *, const char *name, const td_key_terms *, char key[128],
                             tb_error *);
/* Stores the hash of a key that the caller has from elsewhere, in the form that td_auth_create_key
 * makes. A store that has the key already keeps its row. INVALID_ARGUMENT for another form,
 * FAILED_PRECONDITION for a revoked key or a second key with the same id. */
tb_status td_auth_import_key(struct db *, const char *name, const td_key_terms *, const char *key,
                             tb_error *);
/* Revokes a key by its id. NOT_FOUND. A daemon that runs learns it by td_auth_reload, or when it
 * verifies the key again, at the latest after TD_AUTH_REMEMBER_SECONDS. */
tb_status td_auth_revoke_key(struct db *, const char *id, tb_error *);
enum { TD_AUTH_REMEMBER_SECONDS = 300 };

#endif
