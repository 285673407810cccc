/* The flags --create-key, --revoke-key, --list-keys and --list-refused-keys. All of them also work
 * beside a daemon that holds the store; the daemon learns of a change within about a second. */
#ifndef SERVER_KEYS_COMMAND_H
#define SERVER_KEYS_COMMAND_H

#include "ops/config.h"

/* Values of flags, not yet understood; NULL: not given. */
typedef struct td_key_request {
    const char *scope; /* "read", "run", "admin" */
    const char *rate, *sessions, *days;
    const char *file; /* holds the key; NULL: a random one is made */
} td_key_request;

/* Makes a key in config->data and prints it, alone on a line of standard output; takes the key from
 * request->file and prints nothing where a file is given. */
tb_status td_key_create(const td_config *, const char *name, const td_key_request *, tb_error *);
tb_status td_key_revoke(const td_config *, const char *id, tb_error *);
/* Prints one line a key: id, scope, whether it holds, rate, sessions, times of creation, end and last
 * use, name. */
tb_status td_key_list(const td_config *, tb_error *);
/* Prints one line for each key, address and reason of refusals, the latest first. */
tb_status td_key_list_refused(const td_config *, tb_error *);

#endif
