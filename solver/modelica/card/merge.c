/* Kernels that do the same are compiled once: generated integrators repeat the same sums and scalar
 * products for each state, and NVRTC's time goes with the number of kernels. Their texts are compared with
 * the variables numbered in the order of their first appearance; a check that can fail holds its place in
 * the source, so that kernels with such checks stay apart. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "modelica/card/kernels.h"

enum { MOST_NUMBERS = 8192 };

static void append(mo_text *text, const char *piece, size_t size)
{
    if (tb_bytes_append(&text->bytes, piece, size) != TB_OK) text->failed = true;
}

/* the length of a variable's name, v12 or A12, at the begin of a text; 0: it is none */
static size_t name_length(const char *text, size_t size)
{
    size_t length = 1;
    if (memchr("vATHS", text[0], 5) == NULL) return 0;
    while (length < size && isdigit((unsigned char)text[length])) length++;
    const bool longer =
        length < size && (isalnum((unsigned char)text[length]) || text[length] == '_');
    return length > 1 && !longer ? length : 0;
}

static void renumber(const mo_text *own, mo_text *to)
{
    int32_t number[MOST_NUMBERS] = {0}, count = 0;
    const char *text = (const char *)own->bytes.base;
    const size_t size = own->bytes.size;
    bool inside = false; /* of a word */
    size_t from = 0;
    for (size_t k = 0; k < size; k++) {
        const size_t length = inside ? 0 : name_length(text + k, size - k);
        const long variable = length > 0 ? strtol(text + k + 1, NULL, 10) : MOST_NUMBERS;
        inside = isalnum((unsigned char)text[k]) || text[k] == '_';
        if (variable >= MOST_NUMBERS) continue;
        if (number[variable] == 0) number[variable] = ++count;
        append(to, text + from, k + 1 - from);
        tb_mo_print(to, "%d", number[variable]);
        from = k + length;
        k += length - 1;
    }
    append(to, text + from, size - from);
}

/* the text with the kernel's number for each @ */
static void add_numbered(mo_text *to, const mo_text *own, int32_t number)
{
    const char *text = (const char *)own->bytes.base, *end = text + own->bytes.size;
    for (const char *at; text < end; text = at + 1) {
        at = memchr(text, '@', (size_t)(end - text));
        if (at == NULL) at = end;
        append(to, text, (size_t)(at - text));
        if (at < end) tb_mo_print(to, "%d", number);
    }
}

int32_t tb_mo_merge(mo_merge *merge, const mo_text *own)
{
    mo_text plain = {0};
    renumber(own, &plain);
    for (int32_t k = 0; k < merge->count; k++) {
        const tb_bytes *kept = &merge->kept[k].bytes;
        if (kept->size != plain.bytes.size || memcmp(kept->base, plain.bytes.base, kept->size) != 0)
            continue;
        tb_bytes_free(&plain.bytes);
        return k;
    }
    if (merge->count == merge->capacity) {
        mo_text *grown = tb_grow(merge->kept, merge->count + 1, &merge->capacity, sizeof *grown);
        if (grown == NULL) {
            merge->text->failed = true;
            tb_bytes_free(&plain.bytes);
            return 0;
        }
        merge->kept = grown;
    }
    if (own->failed || plain.failed) merge->text->failed = true;
    add_numbered(merge->text, &plain, merge->count);
    merge->kept[merge->count] = plain;
    return merge->count++;
}

void tb_mo_merge_end(mo_merge *merge)
{
    for (int32_t k = 0; k < merge->count; k++) tb_bytes_free(&merge->kept[k].bytes);
    free(merge->kept);
}
