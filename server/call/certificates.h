/* The certificate that both ports serve: read from files, and again when the files change.
 *
 * At every handshake the files' times are looked at: a certificate that is renewed on disk is served
 * from then on, without a restart or a signal. Files that cannot be read, or do not fit together,
 * leave the old certificate in place. */
#ifndef SERVER_CERTIFICATES_H
#define SERVER_CERTIFICATES_H

#include <gnutls/gnutls.h>

#include "ops/config.h"

/* TLS 1.2 at least, on both ports. */
#define TD_TLS_PRIORITIES "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2"

typedef struct td_certificates td_certificates;
/* One state of the files; a connection that uses it keeps it. */
typedef struct td_certificate td_certificate;

/* Reads the configuration's certificate, key and authority of clients; *made is NULL where it names
 * none. INVALID_ARGUMENT names files that do not fit together. */
tb_status td_certificates_create(const td_config *, td_certificates **made, tb_error *);
void td_certificates_destroy(td_certificates *);
/* The certificate to serve now, with a reference. */
td_certificate *td_certificates_current(td_certificates *);
void td_certificate_release(td_certificate *); /* may be NULL */
gnutls_certificate_credentials_t td_certificate_credentials(const td_certificate *);

#endif
