/* Readiness, as reported by /readyz, gRPC health and the log. */
#include "call/readiness.h"

#include "base/error.h"
#include "db/db.h"

bool td_server_is_ready(td_server *server, tb_error *why)
{
    tb_error cause = {0};
    if (atomic_load(&server->draining))
        tb_fail(why, TB_UNAVAILABLE, "stopping");
    else if (!atomic_load(&server->ready))
        tb_fail(why, TB_UNAVAILABLE, "warming up");
    else if (db_is_failing(server->db, &cause))
        tb_fail(why, TB_UNAVAILABLE, "the store cannot be written: %.400s", cause.message);
    else
        return true;
    return false;
}
