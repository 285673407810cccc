/* Name storage and lookup: open addressing with linear probing over a keyed hash. */
#include "model/names.h"

#include <sodium.h>
#include <stdlib.h>
#include <string.h>

struct tb_name_block {
    tb_name_block *next;
    size_t used, capacity;
    char text[];
};

enum { NAME_BLOCK_SIZE = 32768 };

void tb_names_init(tb_names *names)
{
    memset(names, 0, sizeof *names);
    /* randombytes_buf works without sodium_init, which only selects faster code */
    randombytes_buf(names->key, sizeof names->key);
}

void tb_names_destroy(tb_names *names)
{
    for (tb_name_block *block = names->blocks; block != NULL;) {
        tb_name_block *next = block->next;
        free(block);
        block = next;
    }
    free(names->slots);
    memset(names, 0, sizeof *names);
}

const char *tb_names_keep(tb_names *names, const char *text)
{
    const size_t size = strlen(text) + 1;
    tb_name_block *block = names->blocks;
    if (block == NULL || block->capacity - block->used < size) {
        const size_t capacity = size > NAME_BLOCK_SIZE ? size : NAME_BLOCK_SIZE;
        block = malloc(sizeof *block + capacity);
        if (block == NULL) return NULL;
        block->next = names->blocks;
        block->used = 0;
        block->capacity = capacity;
        names->blocks = block;
    }
    char *copy = block->text + block->used;
    memcpy(copy, text, size);
    block->used += size;
    return copy;
}

static uint64_t hash_of(const tb_names *names, tb_handle_kind kind, const char *name)
{
    _Static_assert(sizeof names->key == crypto_shorthash_KEYBYTES, "SipHash key");
    uint64_t hash = 0;
    unsigned char out[crypto_shorthash_BYTES];
    crypto_shorthash(out, (const unsigned char *)name, strlen(name), names->key);
    memcpy(&hash, out, sizeof hash);
    return hash ^ ((uint64_t)kind * UINT64_C(0x9E3779B97F4A7C15));
}

static tb_name_slot *slot_of(const tb_names *names, uint64_t hash, tb_handle_kind kind,
                             const char *name)
{
    for (size_t i = (size_t)hash & (names->capacity - 1);; i = (i + 1) & (names->capacity - 1)) {
        tb_name_slot *slot = &names->slots[i];
        if (slot->name == NULL) return slot;
        if (slot->hash == hash && slot->kind == kind && strcmp(slot->name, name) == 0) return slot;
    }
}

int32_t tb_names_find(const tb_names *names, tb_handle_kind kind, const char *name)
{
    if (names->capacity == 0) return -1;
    const tb_name_slot *slot = slot_of(names, hash_of(names, kind, name), kind, name);
    return slot->name == NULL ? -1 : slot->index;
}

static bool grow_table(tb_names *names)
{
    tb_names larger = *names;
    larger.capacity = names->capacity > 0 ? 2 * names->capacity : 64;
    larger.slots = calloc(larger.capacity, sizeof *larger.slots);
    if (larger.slots == NULL) return false;
    for (size_t i = 0; i < names->capacity; i++) {
        const tb_name_slot *slot = &names->slots[i];
        if (slot->name != NULL) *slot_of(&larger, slot->hash, slot->kind, slot->name) = *slot;
    }
    free(names->slots);
    *names = larger;
    return true;
}

bool tb_names_insert(tb_names *names, tb_handle_kind kind, const char *name, int32_t index)
{
    if (2 * (names->count + 1) > names->capacity && !grow_table(names)) return false;
    const uint64_t hash = hash_of(names, kind, name);
    tb_name_slot *slot = slot_of(names, hash, kind, name);
    if (slot->name == NULL) names->count++;
    slot->name = name;
    slot->hash = hash;
    slot->kind = kind;
    slot->index = index;
    return true;
}

bool tb_name_is_valid(const char *name, const char **why)
{
    /* lead byte -> number of continuation bytes and smallest code point of that length */
    static const uint32_t smallest[4] = {0, 0x80, 0x800, 0x10000};
    const unsigned char *p = (const unsigned char *)name;
    if (strnlen(name, TB_NAME_LENGTH_LIMIT + 1) > TB_NAME_LENGTH_LIMIT) {
        *why = "is longer than 4096 bytes";
        return false;
    }
    while (*p != 0) {
        const int more = *p < 0x80       ? 0
                         : *p >> 5 == 6  ? 1
                         : *p >> 4 == 14 ? 2
                         : *p >> 3 == 30 ? 3
                                         : -1;
        if (more == 0 && (*p < 0x20 || *p == 0x7f)) {
            *why = "has a control character";
            return false;
        }
        *why = "is not UTF-8";
        if (more < 0) return false;
        uint32_t code = more == 0 ? *p : *p & (0x3fu >> more);
        p++;
        for (int i = 0; i < more; i++, p++) {
            if (*p >> 6 != 2) return false;
            code = code << 6 | (*p & 0x3fu);
        }
        if (code < smallest[more] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000))
            return false;
    }
    return true;
}
