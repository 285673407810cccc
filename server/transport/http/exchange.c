/* Queries of one exchange for every file of the HTTP transport. Must not call the other files. */
#include "transport/http/http_internal.h"

const char *http_header(const http_exchange *x, const char *name)
{
    return MHD_lookup_connection_value(x->wire, MHD_HEADER_KIND, name);
}

void http_call_wake(http_exchange *x)
{
    if (!x->suspended || x->off_wire || x->dispatching) return;
    const bool stream = x->format.protocol != HTTP_CONNECT_UNARY;
    if (!stream && !x->finished && !x->dead) return;
    x->suspended = false;
    MHD_resume_connection(x->wire);
}
