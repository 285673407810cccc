/* TLS of the gRPC server by GnuTLS: sessions and handshakes. HTTP/2 by ALPN (RFC 9113 3.2 and 9.2). */
#include "base/error.h"
#include "transport/grpc/grpc_internal.h"

bool rpc_tls_begin(rpc_connection *c)
{
    unsigned char protocol[] = "h2";
    const gnutls_datum_t h2 = {.data = protocol, .size = 2};
    if (gnutls_init(&c->tls, GNUTLS_SERVER | GNUTLS_NONBLOCK | GNUTLS_NO_SIGNAL) != 0) {
        c->tls = NULL;
        return false;
    }
    c->certificate = td_certificates_current(c->rpc->certificates);
    gnutls_transport_set_int(c->tls, c->socket);
    /* the peer's certificate is judged in the handshake: one that is missing or foreign ends it */
    if (c->rpc->server->config->tls_client_ca[0] != '\0') {
        gnutls_certificate_server_set_request(c->tls, GNUTLS_CERT_REQUIRE);
        gnutls_session_set_verify_cert(c->tls, NULL, 0);
    }
    return gnutls_priority_set_direct(c->tls, TD_TLS_PRIORITIES, NULL) == 0 &&
           gnutls_credentials_set(c->tls, GNUTLS_CRD_CERTIFICATE,
                                  td_certificate_credentials(c->certificate)) == 0 &&
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
    td_certificate_release(c->certificate);
    c->certificate = NULL;
}
