/* TLS of the gRPC server by GnuTLS: certificates and handshakes.
 *
 * At every handshake the files' times are looked at: a certificate that is renewed on disk is served
 * from then on, without a restart. Files that cannot be read, or do not fit together, leave the old
 * certificate in place. TLS 1.2 at least, and HTTP/2 by ALPN (RFC 9113 3.2 and 9.2). */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/error.h"
#include "transport/grpc/grpc_internal.h"

enum { CERTIFICATE, KEY, CLIENT_CA, FILES, FILE_LIMIT_BYTES = 1 << 20 };

static const char PRIORITIES[] = "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2";

/* One state of the files; connections that use it keep it. */
typedef struct rpc_certificate {
    gnutls_certificate_credentials_t credentials;
    atomic_int references;
} rpc_certificate;

struct rpc_tls {
    char paths[FILES][TD_CONFIG_TEXT_SIZE]; /* "" for none */
    gnutls_priority_t priorities;
    pthread_mutex_t lock;        /* for the rest */
    struct timespec seen[FILES]; /* when the files that are served were changed */
    rpc_certificate *current;
};

static void certificate_release(rpc_certificate *certificate)
{
    if (certificate == NULL || atomic_fetch_sub(&certificate->references, 1) != 1) return;
    gnutls_certificate_free_credentials(certificate->credentials);
    free(certificate);
}

/* When each file was changed; true if one has changed since it was read. */
static bool is_newer(const rpc_tls *tls, struct timespec changed[FILES])
{
    bool newer = tls->current == NULL;
    for (int i = 0; i < FILES; i++) {
        struct stat file;
        changed[i] = tls->seen[i];
        if (tls->paths[i][0] == '\0' || stat(tls->paths[i], &file) != 0) continue;
        changed[i] = file.st_mtim;
        newer = newer || file.st_mtim.tv_sec != tls->seen[i].tv_sec ||
                file.st_mtim.tv_nsec != tls->seen[i].tv_nsec;
    }
    return newer;
}

static gnutls_datum_t datum(const tb_bytes *bytes)
{
    return (gnutls_datum_t){.data = bytes->base, .size = (unsigned)bytes->size};
}

static tb_status fill(const rpc_tls *tls, const tb_bytes bytes[FILES],
                      gnutls_certificate_credentials_t credentials, tb_error *error)
{
    const gnutls_datum_t certificate = datum(&bytes[CERTIFICATE]), key = datum(&bytes[KEY]);
    const gnutls_datum_t authority = datum(&bytes[CLIENT_CA]);
    if (gnutls_certificate_set_x509_key_mem(credentials, &certificate, &key, GNUTLS_X509_FMT_PEM) <
        0)
        return tb_fail_field(error, TB_INVALID_ARGUMENT, "certificate",
                             "%s and %s are no certificate and key that belong together",
                             tls->paths[CERTIFICATE], tls->paths[KEY]);
    if (tls->paths[CLIENT_CA][0] != '\0' &&
        gnutls_certificate_set_x509_trust_mem(credentials, &authority, GNUTLS_X509_FMT_PEM) <= 0)
        return tb_fail_field(error, TB_INVALID_ARGUMENT, "client_ca", "%s holds no certificate",
                             tls->paths[CLIENT_CA]);
    return TB_OK;
}

/* Reads the files. */
static tb_status load(const rpc_tls *tls, rpc_certificate **made, tb_error *error)
{
    tb_bytes bytes[FILES] = {{0}};
    rpc_certificate *certificate = calloc(1, sizeof *certificate);
    tb_status status = TB_OK;
    *made = NULL;
    if (certificate == NULL ||
        gnutls_certificate_allocate_credentials(&certificate->credentials) != 0) {
        free(certificate);
        return tb_fail_memory(error, sizeof *certificate, "a certificate");
    }
    atomic_init(&certificate->references, 1);
    for (int i = 0; i < FILES && status == TB_OK; i++)
        if (tls->paths[i][0] != '\0')
            status = tb_file_read(tls->paths[i], FILE_LIMIT_BYTES, &bytes[i], error);
    if (status == TB_OK) status = fill(tls, bytes, certificate->credentials, error);
    if (bytes[KEY].base != NULL) explicit_bzero(bytes[KEY].base, bytes[KEY].size);
    for (int i = 0; i < FILES; i++) tb_bytes_free(&bytes[i]);
    if (status == TB_OK)
        *made = certificate;
    else
        certificate_release(certificate);
    return status;
}

tb_status rpc_tls_create(const td_config *config, rpc_tls **made, tb_error *error)
{
    *made = NULL;
    if (config->tls_certificate[0] == '\0' && config->tls_key[0] == '\0') return TB_OK;
    rpc_tls *tls = calloc(1, sizeof *tls);
    if (tls == NULL) return tb_fail_memory(error, sizeof *tls, "certificates");
    if (pthread_mutex_init(&tls->lock, NULL) != 0 ||
        gnutls_priority_init(&tls->priorities, PRIORITIES, NULL) != 0) {
        free(tls);
        return tb_fail_memory(error, 0, "a lock for certificates");
    }
    memcpy(tls->paths[CERTIFICATE], config->tls_certificate, TD_CONFIG_TEXT_SIZE);
    memcpy(tls->paths[KEY], config->tls_key, TD_CONFIG_TEXT_SIZE);
    memcpy(tls->paths[CLIENT_CA], config->tls_client_ca, TD_CONFIG_TEXT_SIZE);

    /* reports an unreadable file now and not at the first handshake */
    struct timespec changed[FILES];
    is_newer(tls, changed);
    const tb_status status = load(tls, &tls->current, error);
    if (status != TB_OK) {
        rpc_tls_destroy(tls);
        return status;
    }
    memcpy(tls->seen, changed, sizeof changed);
    *made = tls;
    return TB_OK;
}

void rpc_tls_destroy(rpc_tls *tls)
{
    if (tls == NULL) return;
    certificate_release(tls->current);
    gnutls_priority_deinit(tls->priorities);
    pthread_mutex_destroy(&tls->lock);
    free(tls);
}

/* The certificate to serve now, with a reference. */
static rpc_certificate *current(rpc_tls *tls)
{
    struct timespec changed[FILES];
    rpc_certificate *fresh = NULL;
    tb_error error = {0};
    pthread_mutex_lock(&tls->lock);
    if (is_newer(tls, changed)) {
        memcpy(tls->seen, changed, sizeof changed);
        if (load(tls, &fresh, &error) == TB_OK) {
            certificate_release(tls->current);
            tls->current = fresh;
        }
    }
    atomic_fetch_add(&tls->current->references, 1);
    rpc_certificate *certificate = tls->current;
    pthread_mutex_unlock(&tls->lock);
    return certificate;
}

bool rpc_tls_begin(rpc_tls *tls, rpc_connection *c)
{
    unsigned char protocol[] = "h2";
    const gnutls_datum_t h2 = {.data = protocol, .size = 2};
    if (gnutls_init(&c->tls, GNUTLS_SERVER | GNUTLS_NONBLOCK | GNUTLS_NO_SIGNAL) != 0) {
        c->tls = NULL;
        return false;
    }
    c->certificate = current(tls);
    gnutls_transport_set_int(c->tls, c->socket);
    /* the peer's certificate is judged in the handshake: one that is missing or foreign ends it */
    if (tls->paths[CLIENT_CA][0] != '\0') {
        gnutls_certificate_server_set_request(c->tls, GNUTLS_CERT_REQUIRE);
        gnutls_session_set_verify_cert(c->tls, NULL, 0);
    }
    return gnutls_priority_set(c->tls, tls->priorities) == 0 &&
           gnutls_credentials_set(c->tls, GNUTLS_CRD_CERTIFICATE, c->certificate->credentials) ==
               0 &&
           gnutls_alpn_set_protocols(c->tls, &h2, 1, GNUTLS_ALPN_MANDATORY) == 0;
}

int rpc_tls_handshake(rpc_connection *c)
{
    int result;
    do result = gnutls_handshake(c->tls);
    while (result == GNUTLS_E_INTERRUPTED || result == GNUTLS_E_WARNING_ALERT_RECEIVED);
    if (result == GNUTLS_E_AGAIN) return 0;
    gnutls_datum_t chosen = {0};
    if (result == 0 && gnutls_alpn_get_selected_protocol(c->tls, &chosen) == 0) return 1;
    gnutls_alert_send_appropriate(c->tls, result != 0 ? result : GNUTLS_E_NO_APPLICATION_PROTOCOL);
    return -1;
}

void rpc_tls_end(rpc_connection *c)
{
    if (c->tls != NULL) gnutls_deinit(c->tls);
    c->tls = NULL;
    certificate_release(c->certificate);
    c->certificate = NULL;
}
