/* Names of elements: storage with stable addresses, and a table from (kind, name) to index.
 *
 * Names come from untrusted clients, so the hash has a random key (SipHash): no client can
 * choose names that collide in one slot. The order of the table is never visible, so results
 * stay deterministic. */
#ifndef TB_NAMES_H
#define TB_NAMES_H

#include "base/base.h"

enum { TB_NAME_LENGTH_LIMIT = 4096 }; /* bytes */

typedef struct tb_name_block tb_name_block;

typedef struct tb_name_slot {
    const char *name; /* NULL: free */
    uint64_t hash;
    int32_t index;
    tb_handle_kind kind;
} tb_name_slot;

typedef struct tb_names {
    unsigned char key[16];
    tb_name_slot *slots; /* capacity is 0 or a power of two, at most half full */
    size_t capacity, count;
    tb_name_block *blocks;
} tb_names;

void tb_names_init(tb_names *names);
void tb_names_destroy(tb_names *names);

/* A copy of a text that lives as long as the names; NULL if memory is refused. */
const char *tb_names_keep(tb_names *names, const char *text);

/* Index of the element of this kind and name, -1 if there is none. */
int32_t tb_names_find(const tb_names *names, tb_handle_kind kind, const char *name);

/* Enters a new name. `name` must outlive the table (tb_names_keep). False if memory is refused. */
bool tb_names_insert(tb_names *names, tb_handle_kind kind, const char *name, int32_t index);

/* Whether a text is UTF-8 without control characters and not too long; else *why names the
 * fault. */
bool tb_name_is_valid(const char *name, const char **why);

#endif
