/* Cross-origin requests: the origins from which a browser may call, and their headers
 * (fetch.spec.whatwg.org, "CORS protocol"). */
#include <string.h>
#include <strings.h>

#include "transport/http/http_internal.h"

/* Whether a comma-separated list has this entry; "*" is any. */
static bool origins_have(const char *list, const char *origin)
{
    const size_t length = strlen(origin);
    while (*list != '\0') {
        list += strspn(list, " ,");
        const size_t item = strcspn(list, " ,");
        if (item == 1 && *list == '*') return true;
        if (item == length && strncasecmp(list, origin, length) == 0) return true;
        list += item;
    }
    return false;
}

bool http_origin_allowed(const http_exchange *x)
{
    const char *origin = http_header(x, "Origin"), *host = http_header(x, "Host");
    if (origin == NULL) return true;
    const char *name = strstr(origin, "://");
    if (name != NULL && host != NULL && strcasecmp(name + 3, host) == 0) return true;
    return origins_have(x->config->cors_origins, origin);
}

void http_cors(const http_exchange *x, struct MHD_Response *response)
{
    if (x->config->cors_origins[0] == '\0') return;
    MHD_add_response_header(response, MHD_HTTP_HEADER_VARY, "Origin");
    const char *origin = http_header(x, "Origin");
    if (origin == NULL || !origins_have(x->config->cors_origins, origin)) return;
    MHD_add_response_header(response, "Access-Control-Allow-Origin", origin);
    MHD_add_response_header(response, "Access-Control-Expose-Headers",
                            "Content-Encoding, Connect-Content-Encoding, Grpc-Encoding, "
                            "Grpc-Status, Grpc-Message, Grpc-Status-Details-Bin, Retry-After, "
                            "WWW-Authenticate");
    if (x->route != HTTP_ROUTE_OPTIONS) return;
    MHD_add_response_header(response, "Access-Control-Allow-Methods", "GET, POST, OPTIONS");
    MHD_add_response_header(response, "Access-Control-Allow-Headers",
                            "Authorization, Content-Type, Content-Encoding, Accept-Encoding, "
                            "Connect-Protocol-Version, Connect-Timeout-Ms, "
                            "Connect-Content-Encoding, Connect-Accept-Encoding, Grpc-Timeout, "
                            "Grpc-Encoding, Grpc-Accept-Encoding, X-Grpc-Web, X-User-Agent, "
                            "Traceparent, Tracestate, Tribo-Arrays");
    MHD_add_response_header(response, "Access-Control-Max-Age", "7200");
}
