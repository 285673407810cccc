/* See priority.h. */
#include "schedule/priority.h"

#include "base/error.h"

tb_status td_priority_read(const td_call *call, Tribo__V1__Priority from, td_priority *to,
                           tb_error *error)
{
    static const char *const SCOPES[] = {"none", "read", "run", "admin"};
    const int32_t needed = call->server->config->high_priority;
    switch (from) {
    case TRIBO__V1__PRIORITY__PRIORITY_LOW: *to = TD_PRIORITY_LOW; return TB_OK;
    case TRIBO__V1__PRIORITY__PRIORITY_UNSPECIFIED:
    case TRIBO__V1__PRIORITY__PRIORITY_NORMAL: *to = TD_PRIORITY_NORMAL; return TB_OK;
    case TRIBO__V1__PRIORITY__PRIORITY_HIGH: *to = TD_PRIORITY_HIGH; break;
    default:
        return tb_fail_field(error, TB_INVALID_ARGUMENT, "priority",
                             "priority is %d, which has no meaning", (int)from);
    }
    if ((int32_t)call->caller.scope >= needed) return TB_OK;
    return tb_fail_field(error, TB_PERMISSION_DENIED, "priority",
                         "PRIORITY_HIGH needs scope %s ([auth] high_priority)", SCOPES[needed]);
}
