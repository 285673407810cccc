/* Handles: checked references that callers hold instead of pointers. A handle contains its
 * owner's stamp and its kind, so functions refuse a wrong handle with a status and never
 * dereference it. */
#ifndef TB_HANDLE_H
#define TB_HANDLE_H

#include "base/error.h"

/* A new owner's stamp: never 0, different from the last 65,534 given. Thread-safe. */
uint16_t tb_handle_owner(void);

tb_handle tb_handle_make(tb_handle_kind kind, uint16_t owner, int32_t index);

static inline bool tb_handle_is_none(tb_handle handle)
{
    return handle.index == 0;
}

/* Writes the 0-based index to *index if the handle refers to one of this owner's `count`
 * elements of this kind, else INVALID_ARGUMENT naming `field`. */
tb_status tb_handle_index(tb_handle handle, tb_handle_kind kind, uint16_t owner, int32_t count,
                          const char *field, int32_t *index, tb_error *error);

/* "body", "joint", ... */
const char *tb_handle_kind_name(tb_handle_kind kind);

#endif
