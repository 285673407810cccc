/* Certificates made for a test: an authority, and certificates that it signs, as PEM files. */
#ifndef CERTIFICATE_UTIL_H
#define CERTIFICATE_UTIL_H

#include <gnutls/gnutls.h>
#include <gnutls/x509.h>
#include <time.h>

#include "test_util.h"

enum { CERTIFICATE_PATH_SIZE = 256, CERTIFICATE_PEM_SIZE = 8192 };

typedef struct authority {
    gnutls_x509_privkey_t key;
    gnutls_x509_crt_t certificate;
} authority;

static inline void certificate_check(int result)
{
    ck_assert_msg(result >= 0, "gnutls: %s", gnutls_strerror(result));
}

/* A key and a certificate of this name, good for an hour; signed by `by`, or by itself. */
static inline authority certificate_make(const char *name, const authority *by)
{
    authority a;
    static unsigned char serial = 1;
    certificate_check(gnutls_x509_privkey_init(&a.key));
    certificate_check(gnutls_x509_privkey_generate(
        a.key, GNUTLS_PK_ECDSA, GNUTLS_CURVE_TO_BITS(GNUTLS_ECC_CURVE_SECP256R1), 0));
    certificate_check(gnutls_x509_crt_init(&a.certificate));
    gnutls_x509_crt_t c = a.certificate;
    serial++;
    certificate_check(gnutls_x509_crt_set_version(c, 3));
    certificate_check(gnutls_x509_crt_set_serial(c, &serial, 1));
    certificate_check(gnutls_x509_crt_set_dn_by_oid(c, GNUTLS_OID_X520_COMMON_NAME, 0, name,
                                                    (unsigned)strlen(name)));
    certificate_check(gnutls_x509_crt_set_activation_time(c, time(NULL) - 60));
    certificate_check(gnutls_x509_crt_set_expiration_time(c, time(NULL) + 3600));
    certificate_check(gnutls_x509_crt_set_key(c, a.key));
    certificate_check(gnutls_x509_crt_set_ca_status(c, by == NULL));
    certificate_check(gnutls_x509_crt_set_key_usage(c, by == NULL ? GNUTLS_KEY_KEY_CERT_SIGN
                                                                  : GNUTLS_KEY_DIGITAL_SIGNATURE));
    if (by != NULL) {
        const unsigned char loopback[] = {127, 0, 0, 1};
        certificate_check(gnutls_x509_crt_set_subject_alt_name(c, GNUTLS_SAN_IPADDRESS, loopback,
                                                               sizeof loopback, GNUTLS_FSAN_SET));
        certificate_check(gnutls_x509_crt_set_subject_alt_name(c, GNUTLS_SAN_DNSNAME, "localhost",
                                                               9, GNUTLS_FSAN_APPEND));
    }
    certificate_check(gnutls_x509_crt_sign2(c, by != NULL ? by->certificate : c,
                                            by != NULL ? by->key : a.key, GNUTLS_DIG_SHA256, 0));
    return a;
}

static inline void certificate_free(authority *a)
{
    gnutls_x509_crt_deinit(a->certificate);
    gnutls_x509_privkey_deinit(a->key);
}

static inline void certificate_pem(const authority *a, char pem[CERTIFICATE_PEM_SIZE])
{
    size_t size = CERTIFICATE_PEM_SIZE - 1;
    certificate_check(gnutls_x509_crt_export(a->certificate, GNUTLS_X509_FMT_PEM, pem, &size));
    pem[size] = '\0';
}

static inline void certificate_key_pem(const authority *a, char pem[CERTIFICATE_PEM_SIZE])
{
    size_t size = CERTIFICATE_PEM_SIZE - 1;
    certificate_check(gnutls_x509_privkey_export_pkcs8(a->key, GNUTLS_X509_FMT_PEM, NULL,
                                                       GNUTLS_PKCS_PLAIN, pem, &size));
    pem[size] = '\0';
}

static inline void certificate_write(const char *path, const char *pem)
{
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_ge(fputs(pem, file), 0);
    ck_assert_int_eq(fclose(file), 0);
}

#endif
