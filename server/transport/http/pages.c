/* Pages that are not calls: liveness, readiness, metrics, the status page. */
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/error.h"
#include "call/readiness.h"
#include "transport/http/http_internal.h"

static const unsigned char STATUS_PAGE[] = {
#include "server/transport/http/status.html.inc"
};

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
               : answer_text(x, MHD_HTTP_SERVICE_UNAVAILABLE, "not alive: a device is lost\n");
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
    tb_bytes text = {0};
    char *page = td_metrics_text(x->http->server->metrics, &text.size);
    if (page == NULL) return answer_text(x, MHD_HTTP_SERVICE_UNAVAILABLE, "out of memory\n");
    text.base = (unsigned char *)page;
    const enum MHD_Result result =
        http_answer_packed(x, "text/plain; version=0.0.4; charset=utf-8", &text, headers);
    free(page);
    return result;
}

static enum MHD_Result answer_status_page(http_exchange *x)
{
    const http_pair headers[] = {{"Content-Security-Policy", x->http->page_policy},
                                 {"Referrer-Policy", "no-referrer"},
                                 {"X-Frame-Options", "DENY"},
                                 {MHD_HTTP_HEADER_CACHE_CONTROL, "no-cache"},
                                 {NULL, NULL}};
    const tb_bytes page = {.base = (unsigned char *)(uintptr_t)STATUS_PAGE, /* only read */
                           .size = sizeof STATUS_PAGE};
    return http_answer_packed(x, "text/html; charset=utf-8", &page, headers);
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
    case HTTP_ROUTE_PAGE: return answer_status_page(x);
    case HTTP_ROUTE_OPTIONS: return answer_options(x);
    case HTTP_ROUTE_CALL:
    case HTTP_ROUTE_REFUSED: break;
    }
    return MHD_NO;
}

/* ---- the status page's policy ---------------------------------------------------------------- */

/* The hash by which a Content-Security-Policy allows the text between two tags of the page. */
static bool hash_between(const char *open, const char *close, char hash[64])
{
    const char *page = (const char *)STATUS_PAGE;
    const char *end = page + sizeof STATUS_PAGE;
    const char *begin = memmem(page, sizeof STATUS_PAGE, open, strlen(open));
    if (begin == NULL) return false;
    begin += strlen(open);
    const char *last = memmem(begin, (size_t)(end - begin), close, strlen(close));
    if (last == NULL) return false;
    unsigned char digest[crypto_hash_sha256_BYTES];
    crypto_hash_sha256(digest, (const unsigned char *)begin, (size_t)(last - begin));
    sodium_bin2base64(hash, 64, digest, sizeof digest, sodium_base64_VARIANT_ORIGINAL);
    return true;
}

tb_status http_pages_create(td_http *http, tb_error *error)
{
    char style[64], script[64], policy[512];
    if (!hash_between("<style>", "</style>", style) ||
        !hash_between("<script>", "</script>", script))
        return tb_fail(error, TB_INTERNAL, "the status page has no style or no script");
    snprintf(policy, sizeof policy,
             "default-src 'none'; style-src 'sha256-%s'; script-src 'sha256-%s'; "
             "connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; "
             "frame-ancestors 'none'",
             style, script);
    http->page_policy = strdup(policy);
    return http->page_policy != NULL ? TB_OK : tb_fail_memory(error, sizeof policy, "a header");
}
