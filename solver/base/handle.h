/* Handles: what a caller holds instead of a pointer. The stamp of the owner and the kind are part
 * of the handle, so a wrong one is refused with a status and never read through. */
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

/* The 0-based index in *index if the handle is one of this owner's `count` things of this kind,
 * else INVALID_ARGUMENT naming `field`. */
tb_status tb_handle_index(tb_handle handle, tb_handle_kind kind, uint16_t owner, int32_t count,
                          const char *field, int32_t *index, tb_error *error);

/* "body", "joint", ... */
const char *tb_handle_kind_name(tb_handle_kind kind);

#endif
