/* The dashboard: the files of clients/web that the build embedded, each packed.
 *
 * Names under /assets/ hold a hash of their content, so a browser keeps these files for good. The
 * page itself is asked for again each time and answered by 304 while it is the same. A build
 * without Node embeds one page that says so. */
#include <string.h>

#include "base/error.h"
#include "transport/http/http_internal.h"
#include "wire/gzip.h"

/* One file in its packed forms. */
struct http_file {
    const char *path;                   /* of its address: "/" or "/assets/NAME-HASH.js" */
    const char *type;                   /* Content-Type */
    const char *tag;                    /* ETag: a hash of the content, in quotes */
    const unsigned char *gzip, *brotli; /* brotli: NULL where the build has none */
    size_t gzip_size, brotli_size;
};

/* FILES, made by clients/web/embed.sh */
#include "dashboard.inc"

enum { FILE_LIMIT_BYTES = 1 << 26 }; /* unpacked, of one file */

/* Scripts, styles and calls of the page's own origin alone. Images are also drawn by the page
 * (blob:, data:). */
static const char POLICY[] =
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' data: blob:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

static const char ASSETS[] = "/assets/";

const http_file *http_file_find(const char *url)
{
    for (size_t i = 0; i < sizeof FILES / sizeof FILES[0]; i++)
        if (strcmp(FILES[i].path, url) == 0) return &FILES[i];
    return NULL;
}

/* Appends the file in the best encoding that the client takes, and names the encoding (NULL: as it
 * is). */
static tb_status file_body(const http_exchange *x, tb_bytes *body, const char **encoding,
                           tb_error *error)
{
    const http_file *file = x->file;
    tb_status status = TB_OK;
    *encoding = NULL;
    if (x->format.response_brotli && file->brotli != NULL) {
        *encoding = "br";
        status = tb_bytes_append(body, file->brotli, file->brotli_size);
    } else if (x->format.response_gzip) {
        *encoding = "gzip";
        status = tb_bytes_append(body, file->gzip, file->gzip_size);
    } else {
        return http_gunzip(file->gzip, file->gzip_size, FILE_LIMIT_BYTES, body, error);
    }
    return status == TB_OK ? TB_OK : tb_fail_memory(error, file->gzip_size, "an answer");
}

enum MHD_Result http_answer_file(http_exchange *x)
{
    const http_file *file = x->file;
    const bool asset = strncmp(file->path, ASSETS, strlen(ASSETS)) == 0;
    const char *known = http_header(x, MHD_HTTP_HEADER_IF_NONE_MATCH);
    const bool same = known != NULL && strstr(known, file->tag) != NULL;
    const char *encoding = NULL;
    tb_bytes body = {0};
    tb_error error = {0};
    if (!same && file_body(x, &body, &encoding, &error) != TB_OK) {
        tb_bytes_free(&body);
        return MHD_NO;
    }
    const http_pair headers[] = {
        {"Content-Security-Policy", POLICY},
        {"Referrer-Policy", "no-referrer"},
        {"X-Frame-Options", "DENY"},
        {"Cross-Origin-Opener-Policy", "same-origin"},
        {MHD_HTTP_HEADER_ETAG, file->tag},
        {MHD_HTTP_HEADER_VARY, "Accept-Encoding"},
        {MHD_HTTP_HEADER_CACHE_CONTROL, asset ? "public, max-age=31536000, immutable" : "no-cache"},
        {encoding != NULL ? MHD_HTTP_HEADER_CONTENT_ENCODING : NULL, encoding},
        {NULL, NULL},
    };
    return http_answer_bytes(x, same ? MHD_HTTP_NOT_MODIFIED : MHD_HTTP_OK, file->type, &body,
                             headers);
}
