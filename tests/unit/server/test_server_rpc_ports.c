/* The gRPC transport's beginning and end: ports and sockets, TLS, shutdown. */
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "step/certificate_util.h"
#include "server/rpc_bench.h"

/* ---- ports, shutdown ---- */

START_TEST(a_port_in_use_is_refused_by_name)
{
    bench b, second;
    tb_error error = {0};
    bench_open(&b);
    memcpy(&second, &b, sizeof b);
    second.server.config = &second.config;
    strcpy(second.config.grpc_address, td_rpc_address(b.server.rpc));
    TEST_STATUS(td_rpc_create(&second.server, &second.server.rpc, &error), TB_FAILED_PRECONDITION,
                &error);
    ck_assert_ptr_null(second.server.rpc);
    ck_assert_ptr_nonnull(strstr(error.message, td_rpc_address(b.server.rpc)));
    ck_assert_ptr_nonnull(strstr(error.message, strerror(EADDRINUSE)));
    ck_assert_int_eq(echo_number(&b.client, 3), GRPC_STATUS_OK);
    bench_close(&b);
}
END_TEST

/* Makes a socket file without a server. */
static void leave_socket(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const int s = socket(AF_UNIX, SOCK_STREAM, 0);
    ck_assert_uint_lt(strlen(path), sizeof address.sun_path);
    strcpy(address.sun_path, path);
    ck_assert_int_eq(bind(s, (const struct sockaddr *)&address, sizeof address), 0);
    ck_assert_int_eq(listen(s, 1), 0);
    close(s);
}

START_TEST(a_unix_socket_serves_too)
{
    char folder[] = "/tmp/test_server_rpc.XXXXXX", target[128];
    bench b, second;
    client local;
    tb_error error = {0};
    ck_assert_ptr_nonnull(mkdtemp(folder));
    bench_configure(&b);
    snprintf(b.config.grpc_socket, sizeof b.config.grpc_socket, "%s/rpc", folder);
    leave_socket(b.config.grpc_socket); /* as a crash does */
    bench_serve(&b);
    client_open(&b.client, td_rpc_address(b.server.rpc));
    snprintf(target, sizeof target, "unix:%s/rpc", folder);
    client_open(&local, target);
    ck_assert_int_eq(echo_number(&local, 5), GRPC_STATUS_OK);
    ck_assert_int_eq(echo_number(&b.client, 6), GRPC_STATUS_OK);

    /* a second server does not take the socket from the first */
    memcpy(&second, &b, sizeof b);
    second.server.config = &second.config;
    TEST_STATUS(td_rpc_create(&second.server, &second.server.rpc, &error), TB_FAILED_PRECONDITION,
                &error);
    ck_assert_ptr_nonnull(strstr(error.message, b.config.grpc_socket));
    ck_assert_int_eq(echo_number(&local, 7), GRPC_STATUS_OK);
    client_close(&local);
    bench_close(&b);
    ck_assert_int_eq(rmdir(folder), 0); /* the socket is gone */
}
END_TEST

/* Writes a certificate signed by the authority, and its key, to where the configuration says. */
static void write_certificate(const td_config *config, const authority *ca)
{
    char pem[CERTIFICATE_PEM_SIZE];
    authority a = certificate_make("localhost", ca);
    certificate_pem(&a, pem);
    certificate_write(config->tls_certificate, pem);
    certificate_key_pem(&a, pem);
    certificate_write(config->tls_key, pem);
    certificate_free(&a);
}

/* Echoes over a connection of its own that trusts the authority; gives the code. */
static grpc_status_code echo_over_tls(const bench *b, const authority *ca, const authority *self)
{
    char root[CERTIFICATE_PEM_SIZE], own[CERTIFICATE_PEM_SIZE], key[CERTIFICATE_PEM_SIZE];
    gnutls_certificate_credentials_t credentials = NULL;
    client c;
    client_call call;
    number n = number_of(1);
    certificate_pem(ca, root);
    certificate_check(gnutls_certificate_allocate_credentials(&credentials));
    const gnutls_datum_t roots = {(unsigned char *)root, (unsigned)strlen(root)};
    certificate_check(
        gnutls_certificate_set_x509_trust_mem(credentials, &roots, GNUTLS_X509_FMT_PEM));
    if (self != NULL) {
        certificate_pem(self, own);
        certificate_key_pem(self, key);
        const gnutls_datum_t mine = {(unsigned char *)own, (unsigned)strlen(own)};
        const gnutls_datum_t secret = {(unsigned char *)key, (unsigned)strlen(key)};
        certificate_check(
            gnutls_certificate_set_x509_key_mem(credentials, &mine, &secret, GNUTLS_X509_FMT_PEM));
    }
    client_open_with(&c, td_rpc_address(b->server.rpc), credentials);
    call_begin_with(&call, &c, "/tribo.test.Test/Echo", 3, NULL);
    if (call_send(&call, &n)) call_half_close(&call);
    free_message(call_receive(&call, NUMBER));
    const grpc_status_code code = call_status(&call);
    call_end(&call);
    client_close(&c);
    return code;
}

START_TEST(tls_and_mutual_tls_are_spoken)
{
    char folder[] = "/tmp/test_server_rpc.XXXXXX", pem[CERTIFICATE_PEM_SIZE];
    bench b;
    authority ca = certificate_make("authority", NULL), other = certificate_make("other", NULL);
    authority friend = certificate_make("friend", &ca), foe = certificate_make("foe", &other);
    ck_assert_ptr_nonnull(mkdtemp(folder));
    bench_configure(&b);
    snprintf(b.config.tls_certificate, TD_CONFIG_TEXT_SIZE, "%s/certificate", folder);
    snprintf(b.config.tls_key, TD_CONFIG_TEXT_SIZE, "%s/key", folder);
    write_certificate(&b.config, &ca);
    bench_serve(&b);
    ck_assert_int_eq(echo_over_tls(&b, &ca, NULL), GRPC_STATUS_OK);
    ck_assert_int_ne(echo_over_tls(&b, &other, NULL), GRPC_STATUS_OK);

    /* a certificate that is renewed on disk is served; one that is broken is not */
    write_certificate(&b.config, &other);
    ck_assert_int_eq(echo_over_tls(&b, &other, NULL), GRPC_STATUS_OK);
    certificate_write(b.config.tls_certificate, "nonsense");
    ck_assert_int_eq(echo_over_tls(&b, &other, NULL), GRPC_STATUS_OK);
    bench_stop(&b);

    bench_configure(&b);
    snprintf(b.config.tls_certificate, TD_CONFIG_TEXT_SIZE, "%s/certificate", folder);
    snprintf(b.config.tls_key, TD_CONFIG_TEXT_SIZE, "%s/key", folder);
    snprintf(b.config.tls_client_ca, TD_CONFIG_TEXT_SIZE, "%s/ca", folder);
    write_certificate(&b.config, &ca);
    certificate_pem(&ca, pem);
    certificate_write(b.config.tls_client_ca, pem);
    bench_serve(&b);
    ck_assert_int_eq(echo_over_tls(&b, &ca, &friend), GRPC_STATUS_OK);
    ck_assert_int_ne(echo_over_tls(&b, &ca, &foe), GRPC_STATUS_OK);
    ck_assert_int_ne(echo_over_tls(&b, &ca, NULL), GRPC_STATUS_OK);
    bench_stop(&b);

    ck_assert_int_eq(unlink(b.config.tls_certificate) | unlink(b.config.tls_key), 0);
    ck_assert_int_eq(unlink(b.config.tls_client_ca) | rmdir(folder), 0);
    certificate_free(&ca);
    certificate_free(&other);
    certificate_free(&friend);
    certificate_free(&foe);
}
END_TEST

/* A connection whose client has sent `size` bytes of a handshake and no more. */
static int stall(const bench *b, const uint8_t *said, size_t size)
{
    const char *address = td_rpc_address(b->server.rpc);
    struct sockaddr_in to = {.sin_family = AF_INET};
    to.sin_port = htons((uint16_t)atoi(strrchr(address, ':') + 1));
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const int s = socket(AF_INET, SOCK_STREAM, 0);
    ck_assert_int_eq(connect(s, (const struct sockaddr *)&to, sizeof to), 0);
    ck_assert_int_eq(send(s, said, size, MSG_NOSIGNAL), (ssize_t)size);
    return s;
}

START_TEST(a_stalled_handshake_holds_up_nobody_and_ends)
{
    enum { SILENT, IN_RECORD, IN_HELLO, STALLED = 12 };
    /* a record of 512 bytes with a ClientHello of 508, of which nothing more comes */
    static const uint8_t HELLO[] = {22, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3};
    static const size_t SIZES[] = {[SILENT] = 0, [IN_RECORD] = 3, [IN_HELLO] = sizeof HELLO};
    char folder[] = "/tmp/test_server_rpc.XXXXXX";
    bench b;
    authority ca = certificate_make("authority", NULL);
    int stalled[STALLED];
    ck_assert_ptr_nonnull(mkdtemp(folder));
    bench_configure(&b);
    b.config.grpc_timeout_seconds = 3;
    snprintf(b.config.tls_certificate, TD_CONFIG_TEXT_SIZE, "%s/certificate", folder);
    snprintf(b.config.tls_key, TD_CONFIG_TEXT_SIZE, "%s/key", folder);
    write_certificate(&b.config, &ca);
    bench_serve(&b);

    /* more than there are loops, so that the honest calls share theirs with some */
    const int64_t began = td_monotonic_ns();
    for (int i = 0; i < STALLED; i++) stalled[i] = stall(&b, HELLO, SIZES[i % 3]);
    for (int i = 0; i < 4; i++) ck_assert_int_eq(echo_over_tls(&b, &ca, NULL), GRPC_STATUS_OK);
    ck_assert_int_lt(td_monotonic_ns() - began, (int64_t)2900 * 1000000);

    /* and all of them are closed at their deadline */
    for (int i = 0; i < STALLED; i++) {
        struct timeval limit = {.tv_sec = 10};
        char byte;
        setsockopt(stalled[i], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
        const ssize_t got = recv(stalled[i], &byte, 1, 0);
        ck_assert_msg(got == 0 || (got < 0 && errno == ECONNRESET), "%d: %s", i, strerror(errno));
        close(stalled[i]);
    }
    ck_assert_int_ge(td_monotonic_ns() - began, (int64_t)2900 * 1000000);
    bench_stop(&b);
    ck_assert_int_eq(unlink(b.config.tls_certificate) | unlink(b.config.tls_key) | rmdir(folder),
                     0);
    certificate_free(&ca);
}
END_TEST

START_TEST(certificates_that_cannot_be_used_are_named)
{
    char folder[] = "/tmp/test_server_rpc.XXXXXX";
    bench b;
    tb_error error = {0};
    bench_configure(&b);
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(b.config.tls_certificate, TD_CONFIG_TEXT_SIZE, "%s/certificate", folder);
    snprintf(b.config.tls_key, TD_CONFIG_TEXT_SIZE, "%s/key", folder);
    certificate_write(b.config.tls_certificate, "nonsense");
    certificate_write(b.config.tls_key, "nonsense");
    TEST_STATUS(td_rpc_create(&b.server, &b.server.rpc, &error), TB_INVALID_ARGUMENT, &error);
    ck_assert_ptr_nonnull(strstr(error.message, b.config.tls_certificate));
    ck_assert_int_eq(unlink(b.config.tls_certificate) | unlink(b.config.tls_key) | rmdir(folder),
                     0);
    strcpy(b.config.tls_certificate, "/nowhere/certificate");
    strcpy(b.config.tls_key, "/nowhere/key");
    TEST_STATUS(td_rpc_create(&b.server, &b.server.rpc, &error), TB_NOT_FOUND, &error);
    ck_assert_ptr_nonnull(strstr(error.message, "/nowhere/certificate"));
}
END_TEST

static void *shut_down(void *context)
{
    td_rpc_shutdown(context, 10);
    return NULL;
}

START_TEST(shutdown_waits_for_what_is_in_flight)
{
    bench b;
    client_call call;
    number n = number_of(1);
    pthread_t thread;
    bench_open(&b);
    call_begin(&call, &b.client, "/tribo.test.Test/Hang");
    call_send(&call, &n);
    call_half_close(&call);
    wait_for(&seen.waiting, 1);
    ck_assert_int_eq(pthread_create(&thread, NULL, shut_down, b.server.rpc), 0);
    pause_ms(200);
    /* meanwhile others are refused, and health says why */
    grpc_status_code code;
    ck_assert_int_eq(echo_number(&b.client, 3), GRPC_STATUS_UNAVAILABLE);
    ck_assert_int_eq(check_health(&b.client, "", &code), HEALTH(NOT_SERVING));
    td_call *held = atomic_load(&seen.held);
    n.grasps = 77;
    td_call_reply(held, &n.base);
    td_call_release(held);
    number *answer = call_receive(&call, NUMBER);
    ck_assert_ptr_nonnull(answer);
    ck_assert_int_eq(answer->grasps, 77);
    free_message(answer);
    ck_assert_int_eq(call_status(&call), GRPC_STATUS_OK);
    call_end(&call);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    ck_assert_int_eq(atomic_load(&seen.cancelled), 0);
    bench_close(&b);
}
END_TEST

START_TEST(shutdown_cancels_what_takes_too_long)
{
    bench b;
    client_call call;
    number n = number_of(1);
    bench_open(&b);
    call_begin(&call, &b.client, "/tribo.test.Test/Hang");
    call_send(&call, &n);
    call_half_close(&call);
    wait_for(&seen.waiting, 1);
    td_rpc_shutdown(b.server.rpc, 0.2);
    ck_assert_int_eq(atomic_load(&seen.cancelled), 1);
    ck_assert_int_ne(call_status(&call), GRPC_STATUS_OK);
    call_end(&call);
    bench_close(&b);
}
END_TEST

START_TEST(a_server_that_never_started_goes_quietly)
{
    bench b;
    tb_error error = {0};
    bench_configure(&b);
    TEST_OK(td_metrics_create(&b.server.metrics, &error), &error);
    TEST_OK(td_rpc_create(&b.server, &b.server.rpc, &error), &error);
    td_rpc_destroy(b.server.rpc);
    td_metrics_destroy(b.server.metrics);
}
END_TEST

TEST_MAIN(a_port_in_use_is_refused_by_name, a_unix_socket_serves_too, tls_and_mutual_tls_are_spoken,
          a_stalled_handshake_holds_up_nobody_and_ends, certificates_that_cannot_be_used_are_named,
          shutdown_waits_for_what_is_in_flight, shutdown_cancels_what_takes_too_long,
          a_server_that_never_started_goes_quietly)
