/* Certificates of the gRPC server.
 *
 * The core asks for them at every handshake, and gets new ones when one of the files has changed:
 * a certificate that is renewed on disk is served from then on, without a restart. Files that
 * cannot be read, or do not fit together, leave the old certificate in place. */
#include "rpc_grpc_internal.h"

#include <grpc/grpc_security.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/error.h"
#include "base/file.h"

enum { CERTIFICATE, KEY, CLIENT_CA, FILES, FILE_LIMIT_BYTES = 1 << 20 };

typedef struct rpc_tls {
    char paths[FILES][TD_CONFIG_TEXT_SIZE]; /* "" for none */
    pthread_mutex_t lock;                   /* for the rest */
    struct timespec seen[FILES];            /* when the files that are served were changed */
    bool loaded;
} rpc_tls;

static bool is_newer(const rpc_tls *tls, struct timespec changed[FILES])
{
    bool newer = !tls->loaded;
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

/* Reads the files; NULL with the error if one cannot be read. */
static grpc_ssl_server_certificate_config *load(const rpc_tls *tls, tb_error *error)
{
    tb_bytes bytes[FILES] = {{0}};
    grpc_ssl_server_certificate_config *config = NULL;
    for (int i = 0; i < FILES; i++) {
        if (tls->paths[i][0] == '\0') continue;
        if (tb_file_read(tls->paths[i], FILE_LIMIT_BYTES, &bytes[i], error) != TB_OK) goto done;
    }
    const grpc_ssl_pem_key_cert_pair pair = {.private_key = (const char *)bytes[KEY].base,
                                             .cert_chain = (const char *)bytes[CERTIFICATE].base};
    /* the core insists on roots, also where it asks no client for a certificate */
    const tb_bytes *roots =
        tls->paths[CLIENT_CA][0] != '\0' ? &bytes[CLIENT_CA] : &bytes[CERTIFICATE];
    config = grpc_ssl_server_certificate_config_create((const char *)roots->base, &pair, 1);
done:
    if (bytes[KEY].base != NULL) explicit_bzero(bytes[KEY].base, bytes[KEY].size);
    for (int i = 0; i < FILES; i++) tb_bytes_free(&bytes[i]);
    return config;
}

static grpc_ssl_certificate_config_reload_status fetch(void *context,
                                                       grpc_ssl_server_certificate_config **config)
{
    rpc_tls *tls = context;
    grpc_ssl_certificate_config_reload_status result = GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_UNCHANGED;
    struct timespec changed[FILES];
    tb_error error;
    pthread_mutex_lock(&tls->lock);
    if (is_newer(tls, changed)) {
        *config = load(tls, &error);
        if (*config != NULL) {
            result = GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_NEW;
            memcpy(tls->seen, changed, sizeof changed);
            tls->loaded = true;
        } else {
            result = GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_FAIL;
        }
    }
    pthread_mutex_unlock(&tls->lock);
    return result;
}

/* Credentials that come from the files. Takes the tls's lock as it is. */
static grpc_server_credentials *secure_credentials(rpc_tls *tls)
{
    const grpc_ssl_client_certificate_request_type request =
        tls->paths[CLIENT_CA][0] != '\0'
            ? GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY
            : GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE;
    return grpc_ssl_server_credentials_create_with_options(
        grpc_ssl_server_credentials_create_options_using_config_fetcher(request, fetch, tls));
}

tb_status rpc_credentials(const td_config *config, grpc_server_credentials **credentials,
                          struct rpc_tls **made, tb_error *error)
{
    *made = NULL;
    *credentials = NULL;
    if (config->tls_certificate[0] == '\0' && config->tls_key[0] == '\0') {
        *credentials = grpc_insecure_server_credentials_create();
        return TB_OK;
    }
    rpc_tls *tls = calloc(1, sizeof *tls);
    if (tls == NULL) return tb_fail_memory(error, sizeof *tls, "certificates");
    if (pthread_mutex_init(&tls->lock, NULL) != 0) {
        free(tls);
        return tb_fail_memory(error, 0, "a lock for certificates");
    }
    memcpy(tls->paths[CERTIFICATE], config->tls_certificate, TD_CONFIG_TEXT_SIZE);
    memcpy(tls->paths[KEY], config->tls_key, TD_CONFIG_TEXT_SIZE);
    memcpy(tls->paths[CLIENT_CA], config->tls_client_ca, TD_CONFIG_TEXT_SIZE);

    /* a file that cannot be read is told now and not at the first handshake */
    tb_status status = TB_OK;
    grpc_ssl_server_certificate_config *files = load(tls, error);
    if (files == NULL) {
        status = error != NULL && error->status != TB_OK ? error->status : TB_INVALID_ARGUMENT;
    } else {
        grpc_ssl_server_certificate_config_destroy(files);
        *credentials = secure_credentials(tls);
        if (*credentials == NULL)
            status = tb_fail(error, TB_INVALID_ARGUMENT, "%s and %s are no certificate and key",
                             config->tls_certificate, config->tls_key);
    }
    if (status != TB_OK)
        rpc_tls_destroy(tls);
    else
        *made = tls;
    return status;
}

void rpc_tls_destroy(rpc_tls *tls)
{
    if (tls == NULL) return;
    pthread_mutex_destroy(&tls->lock);
    free(tls);
}
