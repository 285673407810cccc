/* See offload.h. */
#include "call/offload.h"

#include <stdlib.h>

#include "base/error.h"

typedef struct offloaded {
    td_call *call;
    td_request *request;
    void (*work)(td_call *, td_request *);
} offloaded;

static void run(void *context)
{
    offloaded *o = context;
    td_call *call = o->call;
    o->work(call, o->request);
    free(o);
    td_call_release(call);
}

void td_offload(td_call *call, td_request *request, void (*work)(td_call *, td_request *))
{
    tb_error error = {0};
    offloaded *o = malloc(sizeof *o);
    tb_status status = TB_OK;
    if (o == NULL) {
        status = tb_fail_memory(&error, sizeof *o, "a request");
    } else {
        *o = (offloaded){.call = call, .request = request, .work = work};
        td_call_hold(call);
        status = td_workers_post(call->server->workers, run, o, &error);
        if (status != TB_OK) td_call_release(call);
    }
    if (status == TB_OK) return;
    free(o);
    td_request_free(request);
    td_call_finish(call, status, &error, 0.1);
}
