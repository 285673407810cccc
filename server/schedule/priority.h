/* The priority that a request asks for, and whether its caller may have it. */
#ifndef SERVER_PRIORITY_H
#define SERVER_PRIORITY_H

#include "schedule/scheduler.h"

#include "tribo/v1/simulation.pb-c.h"

/* INVALID_ARGUMENT for an unknown priority; PERMISSION_DENIED for PRIORITY_HIGH if the caller's
 * scope is below [auth] high_priority. */
tb_status td_priority_read(const td_call *, Tribo__V1__Priority from, td_priority *to, tb_error *);

#endif
