/* See certificates.h. */
#include "call/certificates.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/error.h"
#include "base/file.h"

enum { CERTIFICATE, KEY, CLIENT_CA, FILES, FILE_LIMIT_BYTES = 1 << 20 };

/* One state of the files; connections that use it keep it. */
struct td_certificate {
    gnutls_certificate_credentials_t credentials;
    atomic_int references;
};

struct td_certificates {
    char paths[FILES][TD_CONFIG_TEXT_SIZE]; /* "" for none */
    pthread_mutex_t lock;                   /* for the rest */
    struct timespec seen[FILES];            /* when the files that are served were changed */
    td_certificate *current;
};

void td_certificate_release(td_certificate *certificate)
{
    if (certificate == NULL || atomic_fetch_sub(&certificate->references, 1) != 1) return;
    gnutls_certificate_free_credentials(certificate->credentials);
    free(certificate);
}

/* When each file was changed; true if one has changed since it was read. */
static bool is_newer(const td_certificates *tls, struct timespec changed[FILES])
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

static tb_status fill(const td_certificates *tls, const tb_bytes bytes[FILES],
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
static tb_status load(const td_certificates *tls, td_certificate **made, tb_error *error)
{
    tb_bytes bytes[FILES] = {{0}};
    td_certificate *certificate = calloc(1, sizeof *certificate);
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
        td_certificate_release(certificate);
    return status;
}

tb_status td_certificates_create(const td_config *config, td_certificates **made, tb_error *error)
{
    *made = NULL;
    if (config->tls_certificate[0] == '\0' && config->tls_key[0] == '\0') return TB_OK;
    td_certificates *tls = calloc(1, sizeof *tls);
    if (tls == NULL) return tb_fail_memory(error, sizeof *tls, "certificates");
    if (pthread_mutex_init(&tls->lock, NULL) != 0) {
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
        td_certificates_destroy(tls);
        return status;
    }
    memcpy(tls->seen, changed, sizeof changed);
    *made = tls;
    return TB_OK;
}

void td_certificates_destroy(td_certificates *tls)
{
    if (tls == NULL) return;
    td_certificate_release(tls->current);
    pthread_mutex_destroy(&tls->lock);
    free(tls);
}

gnutls_certificate_credentials_t td_certificate_credentials(const td_certificate *certificate)
{
    return certificate->credentials;
}

td_certificate *td_certificates_current(td_certificates *tls)
{
    struct timespec changed[FILES];
    td_certificate *fresh = NULL;
    tb_error error = {0};
    pthread_mutex_lock(&tls->lock);
    if (is_newer(tls, changed)) {
        memcpy(tls->seen, changed, sizeof changed);
        if (load(tls, &fresh, &error) == TB_OK) {
            td_certificate_release(tls->current);
            tls->current = fresh;
        }
    }
    atomic_fetch_add(&tls->current->references, 1);
    td_certificate *certificate = tls->current;
    pthread_mutex_unlock(&tls->lock);
    return certificate;
}
