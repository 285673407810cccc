/* Handles: see handle.h. */
#include "base/handle.h"

#include <stdatomic.h>

uint16_t tb_handle_owner(void)
{
    /* One counter per process, so that stamps differ between independent scenes. The 64-bit
     * counter never wraps, so the cycle of 65,535 stamps has no gap. */
    static atomic_uint_least64_t given;
    return (uint16_t)(1 + atomic_fetch_add_explicit(&given, 1, memory_order_relaxed) % 65535);
}

tb_handle tb_handle_make(tb_handle_kind kind, uint16_t owner, int32_t index)
{
    const tb_handle handle = {(uint32_t)index + 1, (uint16_t)kind, owner};
    return handle;
}

const char *tb_handle_kind_name(tb_handle_kind kind)
{
    switch (kind) {
    case TB_HANDLE_NONE: return "nothing";
    case TB_HANDLE_BODY: return "body";
    case TB_HANDLE_JOINT: return "joint";
    case TB_HANDLE_SHAPE: return "shape";
    case TB_HANDLE_MESH: return "mesh";
    case TB_HANDLE_HEIGHT_FIELD: return "height field";
    case TB_HANDLE_SITE: return "site";
    case TB_HANDLE_TENDON: return "tendon";
    case TB_HANDLE_ACTUATOR: return "actuator";
    case TB_HANDLE_EQUALITY: return "equality";
    case TB_HANDLE_PAIR: return "pair";
    case TB_HANDLE_EXCLUDE: return "exclude";
    case TB_HANDLE_KEYFRAME: return "keyframe";
    case TB_HANDLE_SENSOR: return "sensor";
    }
    return "unknown kind";
}

tb_status tb_handle_index(tb_handle handle, tb_handle_kind kind, uint16_t owner, int32_t count,
                          const char *field, int32_t *index, tb_error *error)
{
    const char *wanted = tb_handle_kind_name(kind);
    if (tb_handle_is_none(handle))
        return tb_fail_field(error, TB_INVALID_ARGUMENT, field, "%s: a %s is needed, none is given",
                             field, wanted);
    if (handle.kind != (uint16_t)kind)
        return tb_fail_field(error, TB_INVALID_ARGUMENT, field,
                             "%s: handle of a %s where a %s is needed", field,
                             tb_handle_kind_name((tb_handle_kind)handle.kind), wanted);
    if (handle.owner != owner)
        return tb_fail_field(error, TB_INVALID_ARGUMENT, field,
                             "%s: handle of a %s of another scene", field, wanted);
    if (count < 0 || handle.index > (uint32_t)count)
        return tb_fail_field(error, TB_INVALID_ARGUMENT, field, "%s: there is no %s number %u",
                             field, wanted, (unsigned)handle.index - 1);
    *index = (int32_t)(handle.index - 1);
    return TB_OK;
}
