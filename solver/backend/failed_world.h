/* The error of a batch, of which one world failed. */
#ifndef TB_FAILED_WORLD_H
#define TB_FAILED_WORLD_H

#include "base/error.h"

/* Takes over the error of a world, named by its index where the batch has several. `error` may be
 * NULL. Returns the status. */
static inline tb_status tb_fail_world(tb_error *error, tb_status status, int32_t worlds,
                                      int32_t world, const tb_error *own)
{
    if (!error) return status;
    if (worlds > 1) return tb_fail(error, status, "world %d: %s", (int)world, own->message);
    *error = *own;
    return status;
}

#endif
