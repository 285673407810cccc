/* Pages that are not calls: liveness, readiness, metrics; dashboard.c has the files. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "call/readiness.h"
#include "transport/http/http_internal.h"

/* ---- answers --------------------------------------------------------------------------------- */

static const char PLAIN[] = "text/plain; charset=utf-8";

static enum MHD_Result answer_text(http_exchange *x, int http_status, const char *text)
{
    const http_pair headers[] = {{MHD_HTTP_HEADER_CACHE_CONTROL, "no-store"}, {NULL, NULL}};
    tb_bytes body = {0};
    if (tb_bytes_append(&body, text, strlen(text)) != TB_OK) return MHD_NO;
    return http_answer_bytes(x, http_status, PLAIN, &body, headers);
}

static enum MHD_Result answer_live(http_exchange *x)
{
    return atomic_load(&x->http->server->alive)
               ? answer_text(x, MHD_HTTP_OK, "alive\n")
               : answer_text(x, MHD_HTTP_SERVICE_UNAVAILABLE, "not alive: the last card is lost\n");
}

static enum MHD_Result answer_ready(http_exchange *x)
{
    tb_error why = {0};
    char text[TB_ERROR_MESSAGE_SIZE];
    if (atomic_load(&x->http->draining))
        return answer_text(x, MHD_HTTP_SERVICE_UNAVAILABLE, "not ready: stopping\n");
    if (td_server_is_ready(x->http->server, &why)) return answer_text(x, MHD_HTTP_OK, "ready\n");
    snprintf(text, sizeof text, "not ready: %.450s\n", why.message);
    return answer_text(x, MHD_HTTP_SERVICE_UNAVAILABLE, text);
}

static enum MHD_Result answer_metrics(http_exchange *x)
{
    const http_pair headers[] = {{MHD_HTTP_HEADER_CACHE_CONTROL, "no-store"}, {NULL, NULL}};
    const char *accept = http_header(x, MHD_HTTP_HEADER_ACCEPT);
    const bool open = accept != NULL && strstr(accept, "application/openmetrics-text") != NULL;
    const char *const type = open ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
                                  : "text/plain; version=0.0.4; charset=utf-8";
    td_metrics *metrics = x->http->server->metrics;
    tb_bytes text = {0};
    char *page =
        open ? td_metrics_open_metrics(metrics, &text.size) : td_metrics_text(metrics, &text.size);
    if (page == NULL) return answer_text(x, MHD_HTTP_SERVICE_UNAVAILABLE, "out of memory\n");
    text.base = (unsigned char *)page;
    const enum MHD_Result result = http_answer_packed(x, type, &text, headers);
    free(page);
    return result;
}

static enum MHD_Result answer_options(http_exchange *x)
{
    const http_pair headers[] = {{MHD_HTTP_HEADER_ALLOW, x->allow}, {NULL, NULL}};
    tb_bytes nothing = {0};
    return http_answer_bytes(x, MHD_HTTP_NO_CONTENT, NULL, &nothing, headers);
}

enum MHD_Result http_answer_page(http_exchange *x)
{
    switch (x->route) {
    case HTTP_ROUTE_LIVE: return answer_live(x);
    case HTTP_ROUTE_READY: return answer_ready(x);
    case HTTP_ROUTE_METRICS: return answer_metrics(x);
    case HTTP_ROUTE_FILE: return http_answer_file(x);
    case HTTP_ROUTE_OPTIONS: return answer_options(x);
    case HTTP_ROUTE_CALL:
    case HTTP_ROUTE_REFUSED: break;
    }
    return MHD_NO;
}
