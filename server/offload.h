/* Handlers that may wait for the disk or work for milliseconds do so on a worker. */
#ifndef SERVER_OFFLOAD_H
#define SERVER_OFFLOAD_H

#include "server.h"

/* Runs `work` on a worker, which answers the call (now or later) and owns the request. The call is
 * held until `work` returns. Without room the call fails with RESOURCE_EXHAUSTED and the request is
 * freed. */
void td_offload(td_call *, td_request *, void (*work)(td_call *, td_request *));

/* The page size that a list request asks for: 0 means 100. INVALID_ARGUMENT outside of 0..1000. */
tb_status td_page_size(int32_t asked, int32_t *size, tb_error *);

#endif
