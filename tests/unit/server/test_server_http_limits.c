/* The HTTP server besides its calls: limits, clients that do not behave, health, browsers, TLS,
 * and its end. */
#include <gnutls/gnutls.h>
#include <gnutls/x509.h>

#include "server/http_server_util.h"

/* ---- limits ---------------------------------------------------------------------------------- */

/* Sends a byte every 30 ms; seconds until the other end has enough. */
static double drip(const char *first, const char *drops)
{
    const int s = http_connect(at);
    const double begin = seconds();
    ck_assert(http_write(s, first, strlen(first)));
    for (int i = 0; i < 1000; i++) {
        const char drop = drops[(size_t)i % strlen(drops)];
        if (http_closes(s, 0.03) || !http_write(s, &drop, 1)) {
            close(s);
            return seconds() - begin;
        }
    }
    close(s);
    return INFINITY;
}

START_TEST(a_slowloris_client_is_cut_off)
{
    prepare();
    config.http_timeout_seconds = 0.5;
    start();
    double took = drip("", "a");
    ck_assert_msg(took > 0.3 && took < 20, "in the request line: %g s", took);
    took = drip("GET / HTTP/1.1\r\nHost: localhost\r\nX-A: ", "b");
    ck_assert_msg(took > 0.3 && took < 20, "in the headers: %g s", took);
    took = drip("GET / HTTP/1.1\r\nHost: localhost\r\n", "X: y\r\n");
    ck_assert_msg(took > 0.3 && took < 20, "in many headers: %g s", took);
    took = drip("POST /tribo.v1.Test/Size HTTP/1.1\r\nHost: localhost\r\nContent-Type: "
                "application/json\r\nContent-Length: 100000\r\n\r\n",
                " ");
    ck_assert_msg(took > 0.3 && took < 20, "in the body: %g s", took);
    /* so is one that says nothing */
    const int s = http_connect(at);
    ck_assert(http_closes(s, 30));
    close(s);
    EVENTUALLY(td_metrics_get(server.metrics, TD_METRIC_CONNECTIONS_HTTP) == 0);
    stop();
}
END_TEST

START_TEST(bodies_that_are_too_large_are_refused)
{
    prepare();
    start();
    /* by their promise, before they come */
    const int s = http_connect(at);
    http_answer answer;
    const char head[] = "POST /tribo.v1.Test/Size HTTP/1.1\r\nHost: localhost\r\nContent-Type: "
                        "application/json\r\nContent-Length: 99999999999\r\n\r\n";
    http_write(s, head, strlen(head));
    ck_assert(http_receive(s, &answer));
    ck_assert_str_eq(http_value(&answer, "Connection"), "close");
    is_error(answer, 413, "resource_exhausted", "1048576 bytes");
    close(s);

    /* in chunks without a promise */
    const int c = http_connect(at);
    const char chunked[] = "POST /tribo.v1.Test/Size HTTP/1.1\r\nHost: localhost\r\nContent-Type: "
                           "application/json\r\nTransfer-Encoding: chunked\r\n\r\n";
    static char chunk[65536 + 16];
    strcpy(chunk, "10000\r\n");
    memset(chunk + 7, ' ', 65536);
    strcpy(chunk + 7 + 65536, "\r\n");
    http_write(c, chunked, strlen(chunked));
    for (int i = 0; i < 20; i++) http_write(c, chunk, strlen(chunk));
    http_write(c, "0\r\n\r\n", 5);
    ck_assert(http_receive(c, &answer));
    is_error(answer, 413, "resource_exhausted", "1048576 bytes");
    close(c);

    /* a little too large, and sent whole: the answer is read, not a reset */
    char *body = calloc(1, 1200000);
    memset(body, ' ', 1199999);
    is_error(http_ask(at, "POST", "/tribo.v1.Test/Size", JSON, body, 1199999), 413,
             "resource_exhausted", "");
    /* as large as allowed */
    memset(body, ' ', 1048576);
    memcpy(body, "{}", 2);
    is_json(http_ask(at, "POST", "/tribo.v1.Test/Size", JSON, body, 1048576), "{}");
    free(body);
    stop();
}
END_TEST

/* A connection in the midst of a call: an answer that never ends has begun. */
static int begin_call(void)
{
    char begun;
    const int s = http_connect(at);
    http_send(s, "POST", "/tribo.v1.Test/Flood", STREAM_PROTO, "\0\0\0\0\0", 5);
    ck_assert_int_eq(recv(s, &begun, 1, 0), 1);
    return s;
}

/* A call whose promised body has not come. */
static int begin_upload(void)
{
    char answer[64] = "";
    const int s = http_connect(at);
    const char head[] =
        "POST /tribo.v1.Test/Size HTTP/1.1\r\nHost: localhost\r\nContent-Type: "
        "application/json\r\nExpect: 100-continue\r\nContent-Length: 1000000\r\n\r\n";
    ck_assert(http_write(s, head, strlen(head)));
    ck_assert_int_gt(recv(s, answer, sizeof answer - 1, 0), 0);
    ck_assert_msg(strstr(answer, "100 Continue") != NULL, "%s", answer);
    return s;
}

START_TEST(an_upload_keeps_its_connection_and_a_trickle_does_not)
{
    enum { PIECE = 50000 };
    prepare();
    config.http_connections = 2;
    start();
    static char piece[PIECE];
    memset(piece, ' ', sizeof piece);
    memcpy(piece, "{}", 2);
    const int upload = begin_upload(), trickle = begin_upload();
    ck_assert(http_write(trickle, "{", 1));
    for (int i = 0; i < 15; i++) {
        ck_assert(http_write(upload, piece, sizeof piece));
        memcpy(piece, "  ", 2);
        usleep(100000);
    }
    /* full, and the newcomer gets the place of the trickle, which is older than the grace */
    is_json(post("Size", JSON, "{}"), "{}");
    char nothing;
    ck_assert_int_le(recv(trickle, &nothing, 1, 0), 0);
    for (int i = 0; i < 5; i++) ck_assert(http_write(upload, piece, sizeof piece));
    http_answer answer;
    ck_assert(http_receive(upload, &answer));
    is_json(answer, "{}");
    close(upload);
    close(trickle);

    /* all of them young uploads: the newcomer is refused, not one of them; once more where a busy
     * machine has let them grow older than the grace */
    int a, b;
    for (;;) {
        /* the server has seen that the earlier ones are closed */
        EVENTUALLY(td_metrics_get(server.metrics, TD_METRIC_CONNECTIONS_HTTP) == 0);
        const double begun = seconds();
        a = begin_upload(), b = begin_upload();
        answer = post("Size", JSON, "{}");
        if (seconds() - begun < 1) break;
        http_answer_free(&answer);
        close(a);
        close(b);
    }
    is_error(answer, 503, "unavailable", "too many connections are open: the limit is 2");

    /* a client that leaves in the middle of its body leaves nothing behind */
    config.http_timeout_seconds = 60;
    ck_assert(http_write(a, "{", 1) && http_write(b, "{", 1));
    close(a);
    close(b);
    const double begin = seconds();
    EVENTUALLY(td_metrics_get(server.metrics, TD_METRIC_CONNECTIONS_HTTP) == 0);
    ck_assert_msg(seconds() - begin < 30, "%g s", seconds() - begin);
    stop();
}
END_TEST

START_TEST(connections_and_headers_are_limited)
{
    prepare();
    config.http_connections = 3;
    config.http_header_bytes = 2048;
    start();
    int open[3];
    http_answer answer;
    for (int i = 0; i < 3; i++) open[i] = begin_call();
    answer = post("Size", JSON, "{}");
    ck_assert_str_eq(http_value(&answer, "Retry-After"), "1");
    is_error(answer, 503, "unavailable", "too many connections are open: the limit is 3");
    answer = http_ask(at, "GET", "/livez", "", "", 0);
    ck_assert_int_eq(answer.status, 200);
    http_answer_free(&answer);
    ck_assert_int_ge(td_metrics_get(server.metrics, TD_METRIC_CONNECTIONS_HTTP), 3);
    for (int i = 0; i < 3; i++) close(open[i]);
    EVENTUALLY(td_metrics_get(server.metrics, TD_METRIC_CONNECTIONS_HTTP) == 0);

    /* of the idle connections without a key, the longest idle one closes */
    for (int i = 0; i < 3; i++) {
        open[i] = http_connect(at);
        http_send(open[i], "POST", "/tribo.v1.Test/Size", JSON, "{}", 2);
        ck_assert(http_receive(open[i], &answer));
        is_json(answer, "{}");
    }
    const int64_t displaced = td_metrics_get(server.metrics, TD_METRIC_CONNECTIONS_DISPLACED);
    is_json(post("Size", JSON, "{}"), "{}");
    ck_assert_int_eq(td_metrics_get(server.metrics, TD_METRIC_CONNECTIONS_DISPLACED),
                     displaced + 1);
    char nothing;
    ck_assert_int_eq(recv(open[0], &nothing, 1, 0), 0);
    for (int i = 0; i < 3; i++) close(open[i]);
    EVENTUALLY(td_metrics_get(server.metrics, TD_METRIC_CONNECTIONS_HTTP) == 0);

    char headers[4096] = "Content-Type: application/json\r\nX-Long: ";
    memset(headers + strlen(headers), 'x', 3000);
    strcat(headers, "\r\n");
    is_error(post("Size", headers, "{}"), 431, "resource_exhausted", "at most 2048");
    stop();

    prepare();
    config.http_connections_per_address = 1;
    start();
    const int one = begin_call();
    is_error(post("Size", JSON, "{}"), 503, "unavailable", "from this address");
    close(one);
    stop();
}
END_TEST

/* ---- pages, browsers ------------------------------------------------------------------------- */

static void page_is(const char *path, int status, const char *text)
{
    http_answer answer = http_ask(at, "GET", path, "", "", 0);
    ck_assert_int_eq(answer.status, status);
    ck_assert_msg(strstr((char *)answer.body.base, text) != NULL, "%s: %.300s", path,
                  (char *)answer.body.base);
    http_answer_free(&answer);
}

START_TEST(health_metrics_and_the_status_page)
{
    prepare();
    start();
    page_is("/livez", 200, "alive");
    page_is("/readyz", 200, "ready");
    atomic_store(&server.ready, false);
    page_is("/readyz", 503, "warming up");
    atomic_store(&server.draining, true);
    page_is("/readyz", 503, "stopping");
    atomic_store(&server.alive, false);
    page_is("/livez", 503, "not alive");
    EVENTUALLY(td_metrics_get(server.metrics, TD_METRIC_CONNECTIONS_HTTP) == 0);
    page_is("/metrics", 200, "\ntribod_http_connections 1\n");
    page_is("/", 200, "<title>Tribod</title>");

    http_answer answer = http_ask(at, "HEAD", "/", "", "", 0);
    ck_assert_int_eq(answer.status, 200);
    ck_assert_str_eq(http_value(&answer, "Content-Type"), "text/html; charset=utf-8");
    ck_assert_str_eq(http_value(&answer, "X-Content-Type-Options"), "nosniff");
    ck_assert_ptr_nonnull(strstr(http_value(&answer, "Content-Security-Policy"),
                                 "default-src 'none'; script-src 'self'; style-src 'self'; "));
    http_answer_free(&answer);
    answer = http_ask(at, "OPTIONS", "/livez", "", "", 0);
    ck_assert_int_eq(answer.status, 204);
    ck_assert_str_eq(http_value(&answer, "Allow"), "GET, HEAD, OPTIONS");
    http_answer_free(&answer);
    is_error(http_ask(at, "POST", "/livez", "", "x", 1), 405, "unimplemented", "GET, HEAD");
    stop();
}
END_TEST

START_TEST(other_origins_need_leave)
{
    prepare();
    strcpy(config.cors_origins, "https://lab.example, http://localhost:3000");
    start();
    static const char PREFLIGHT[] = "Origin: http://localhost:3000\r\n"
                                    "Access-Control-Request-Method: POST\r\n"
                                    "Access-Control-Request-Headers: connect-protocol-version\r\n";
    http_answer answer = http_ask(at, "OPTIONS", "/tribo.v1.Test/Size", PREFLIGHT, "", 0);
    ck_assert_int_eq(answer.status, 204);
    ck_assert_str_eq(http_value(&answer, "Access-Control-Allow-Origin"), "http://localhost:3000");
    ck_assert_ptr_nonnull(
        strstr(http_value(&answer, "Access-Control-Allow-Headers"), "Connect-Protocol-Version"));
    ck_assert_ptr_nonnull(strstr(http_value(&answer, "Access-Control-Allow-Methods"), "POST"));
    http_answer_free(&answer);

    answer =
        post("Size", "Content-Type: application/json\r\nOrigin: https://lab.example\r\n", "{}");
    ck_assert_str_eq(http_value(&answer, "Access-Control-Allow-Origin"), "https://lab.example");
    ck_assert_ptr_nonnull(
        strstr(http_value(&answer, "Access-Control-Expose-Headers"), "Grpc-Status"));
    ck_assert_str_eq(http_value(&answer, "Vary"), "Accept-Encoding");
    is_json(answer, "{}");

    /* errors can be read too */
    answer =
        post("Fail", "Content-Type: application/json\r\nOrigin: https://lab.example\r\n", "{}");
    ck_assert_str_eq(http_value(&answer, "Access-Control-Allow-Origin"), "https://lab.example");
    http_answer_free(&answer);

    answer =
        http_ask(at, "OPTIONS", "/tribo.v1.Test/Size", "Origin: https://evil.example\r\n", "", 0);
    ck_assert_str_eq(http_value(&answer, "Access-Control-Allow-Origin"), "");
    http_answer_free(&answer);
    is_error(
        post("Size", "Content-Type: application/json\r\nOrigin: https://evil.example\r\n", "{}"),
        403, "permission_denied", "cors_origins");
    /* the server's own page */
    is_json(post("Size",
                 "Host: localhost:9\r\nContent-Type: application/json\r\n"
                 "Origin: http://localhost:9\r\n",
                 "{}"),
            "{}");
    stop();
}
END_TEST

/* ---- beginning and end ----------------------------------------------------------------------- */

START_TEST(an_address_in_use_is_named)
{
    prepare();
    start();
    td_http *second = NULL;
    tb_error e = {0};
    strcpy(config.http_address, at);
    TEST_STATUS(td_http_create(&server, &second, &e), TB_FAILED_PRECONDITION, &e);
    ck_assert_ptr_null(second);
    ck_assert_ptr_nonnull(strstr(e.message, at));
    static const char *const BAD[] = {"localhost", "", "127.0.0.1:http", "::1:80", "127.0.0.1:"};
    for (size_t i = 0; i < sizeof BAD / sizeof BAD[0]; i++) {
        strcpy(config.http_address, BAD[i]);
        TEST_STATUS(td_http_create(&server, &second, &e), TB_INVALID_ARGUMENT, &e);
    }
    stop();
}
END_TEST

static void *shut_down(void *limit)
{
    td_http_shutdown(server.http, *(double *)limit);
    return NULL;
}

START_TEST(stopping_lets_calls_finish_and_answers_health)
{
    prepare();
    start();
    pthread_t thread;
    double limit = 20;
    const int s = http_connect(at), w = http_connect(at);
    http_answer answer;
    http_send(s, "POST", "/tribo.v1.Test/Late", JSON, "{\"pageSize\":700}", 16);
    usleep(200000);
    ck_assert_int_eq(pthread_create(&thread, NULL, shut_down, &limit), 0);
    usleep(100000);
    is_error(post("Size", JSON, "{}"), 503, "unavailable", "stopping");
    page_is("/livez", 200, "alive");
    page_is("/readyz", 503, "stopping");
    ck_assert(http_receive(s, &answer));
    is_json(answer, "{\"nextPageToken\":\"late\"}");
    pthread_join(thread, NULL);
    page_is("/livez", 200, "alive");
    close(s);
    close(w);
    stop();

    /* a call that does not finish in time gets an error */
    prepare();
    start();
    limit = 0.2;
    const int v = http_connect(at);
    http_send(v, "POST", "/tribo.v1.Test/Wait", JSON, "{}", 2);
    usleep(200000);
    ck_assert_int_eq(pthread_create(&thread, NULL, shut_down, &limit), 0);
    ck_assert(http_receive(v, &answer));
    is_error(answer, 503, "unavailable", "stopping");
    pthread_join(thread, NULL);
    close(v);
    stop();
}
END_TEST

/* ---- TLS ------------------------------------------------------------------------------------- */

/* A key and a certificate that it signed itself, as two PEM files. */
static void write_certificate(const char *certificate_path, const char *key_path)
{
    gnutls_x509_crt_t certificate;
    gnutls_x509_privkey_t key;
    gnutls_datum_t text;
    tb_error e = {0};
    const unsigned char serial[] = {1};
    gnutls_x509_privkey_init(&key);
    gnutls_x509_crt_init(&certificate);
    ck_assert_int_eq(gnutls_x509_privkey_generate(key, GNUTLS_PK_EDDSA_ED25519, 256, 0), 0);
    gnutls_x509_crt_set_version(certificate, 3);
    gnutls_x509_crt_set_serial(certificate, serial, sizeof serial);
    gnutls_x509_crt_set_activation_time(certificate, time(NULL) - 60);
    gnutls_x509_crt_set_expiration_time(certificate, time(NULL) + 3600);
    gnutls_x509_crt_set_dn_by_oid(certificate, GNUTLS_OID_X520_COMMON_NAME, 0, "localhost", 9);
    gnutls_x509_crt_set_key(certificate, key);
    gnutls_x509_crt_set_basic_constraints(certificate, 1, 0);
    ck_assert_int_eq(gnutls_x509_crt_sign2(certificate, certificate, key, GNUTLS_DIG_SHA512, 0), 0);
    ck_assert_int_eq(gnutls_x509_crt_export2(certificate, GNUTLS_X509_FMT_PEM, &text), 0);
    TEST_OK(tb_file_write(certificate_path, text.data, text.size, &e), &e);
    gnutls_free(text.data);
    ck_assert_int_eq(gnutls_x509_privkey_export2_pkcs8(key, GNUTLS_X509_FMT_PEM, NULL, 0, &text),
                     0);
    TEST_OK(tb_file_write(key_path, text.data, text.size, &e), &e);
    gnutls_free(text.data);
    gnutls_x509_crt_deinit(certificate);
    gnutls_x509_privkey_deinit(key);
}

/* Asks over TLS, with the server's own certificate as the client's if `with_certificate`; appends
 * the answer. */
static void ask_tls(const char *request, bool with_certificate, tb_bytes *answer)
{
    gnutls_session_t session;
    gnutls_certificate_credentials_t credentials;
    char piece[4096];
    ck_assert_int_eq(gnutls_certificate_allocate_credentials(&credentials), 0);
    if (with_certificate)
        ck_assert_int_eq(gnutls_certificate_set_x509_key_file(credentials, config.tls_certificate,
                                                              config.tls_key, GNUTLS_X509_FMT_PEM),
                         0);
    ck_assert_int_eq(gnutls_init(&session, GNUTLS_CLIENT), 0);
    gnutls_set_default_priority(session);
    gnutls_credentials_set(session, GNUTLS_CRD_CERTIFICATE, credentials);
    const int s = http_connect(at);
    gnutls_transport_set_int(session, s);
    ck_assert_int_eq(gnutls_handshake(session), 0);
    ck_assert_int_eq(gnutls_record_send(session, request, strlen(request)), (int)strlen(request));
    for (;;) {
        const ssize_t got = gnutls_record_recv(session, piece, sizeof piece);
        if (got == GNUTLS_E_AGAIN || got == GNUTLS_E_INTERRUPTED) continue;
        if (got <= 0) break;
        ck_assert_int_eq(tb_bytes_append(answer, piece, (size_t)got), TB_OK);
    }
    gnutls_deinit(session);
    gnutls_certificate_free_credentials(credentials);
    close(s);
}

START_TEST(tls_and_certificates_of_clients)
{
    char folder[] = "/tmp/tribo_test_XXXXXX";
    tb_error e = {0};
    tb_bytes answer = {0};
    static const char ASK[] = "POST /tribo.v1.Test/Late HTTP/1.1\r\nHost: localhost\r\nConnection: "
                              "close\r\nContent-Type: application/json\r\nContent-Length: "
                              "15\r\n\r\n{\"pageSize\":20}";
    static const char HEALTH[] =
        "GET /livez HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    ck_assert_ptr_nonnull(mkdtemp(folder));
    prepare();
    snprintf(config.tls_certificate, sizeof config.tls_certificate, "%s/certificate", folder);
    snprintf(config.tls_key, sizeof config.tls_key, "%s/key", folder);
    write_certificate(config.tls_certificate, config.tls_key);
    start();
    ask_tls(ASK, false, &answer);
    ck_assert_ptr_nonnull(strstr((char *)answer.base, "\r\n\r\n{\"nextPageToken\":\"late\"}"));
    tb_bytes_free(&answer);
    /* a client that speaks no TLS is cut off */
    const int plain = http_connect(at);
    http_write(plain, HEALTH, strlen(HEALTH));
    ck_assert(http_closes(plain, 30));
    close(plain);
    stop();

    /* with an authority for clients, theirs is asked for; probes have none */
    prepare();
    snprintf(config.tls_certificate, sizeof config.tls_certificate, "%s/certificate", folder);
    snprintf(config.tls_key, sizeof config.tls_key, "%s/key", folder);
    strcpy(config.tls_client_ca, config.tls_certificate);
    start();
    ask_tls(ASK, true, &answer);
    ck_assert_ptr_nonnull(strstr((char *)answer.base, "HTTP/1.1 200"));
    tb_bytes_free(&answer);
    ask_tls(ASK, false, &answer);
    ck_assert_ptr_nonnull(strstr((char *)answer.base, "HTTP/1.1 403"));
    tb_bytes_free(&answer);
    ask_tls(HEALTH, false, &answer);
    ck_assert_ptr_nonnull(strstr((char *)answer.base, "HTTP/1.1 200"));
    tb_bytes_free(&answer);
    stop();

    /* a key that is none */
    prepare();
    snprintf(config.tls_certificate, sizeof config.tls_certificate, "%s/certificate", folder);
    strcpy(config.tls_key, config.tls_certificate);
    TEST_STATUS(td_http_create(&server, &server.http, &e), TB_INVALID_ARGUMENT, &e);
    ck_assert_ptr_nonnull(strstr(e.message, config.tls_key));
    ck_assert_ptr_null(server.http);
    remove(config.tls_certificate);
    snprintf(config.tls_key, sizeof config.tls_key, "%s/key", folder);
    remove(config.tls_key);
    ck_assert_int_eq(rmdir(folder), 0);
    *config.tls_certificate = *config.tls_key = '\0';
    start();
    stop();
}
END_TEST

/* Many callers, late answers, and some that leave in the middle: for the sanitizers. */
static void *caller_run(void *context)
{
    unsigned number = *(unsigned *)context;
    for (int i = 0; i < 40; i++) {
        number = number * 1664525 + 1013904223;
        const int s = http_connect(at);
        http_answer answer;
        if (number >> 30 == 0) {
            http_send(s, "POST", "/tribo.v1.Test/Count", STREAM_JSON,
                      "\0\0\0\0\22{\"pageSize\":90000}", 5 + 18);
        } else if (number >> 30 == 1) {
            http_send(s, "POST", "/tribo.v1.Test/Flood", STREAM_PROTO, "\0\0\0\0\0", 5);
        } else {
            http_send(s, "POST", "/tribo.v1.Test/Late", JSON, "{\"pageSize\":3}", 14);
        }
        usleep(number >> 16 & 4095);
        if (number >> 30 == 3 && http_receive(s, &answer)) http_answer_free(&answer);
        close(s);
    }
    return NULL;
}

START_TEST(clients_come_and_go)
{
    prepare();
    start();
    enum { CALLERS = 8 };
    pthread_t threads[CALLERS];
    unsigned numbers[CALLERS];
    for (unsigned i = 0; i < CALLERS; i++) {
        numbers[i] = 77 * i + 1;
        ck_assert_int_eq(pthread_create(&threads[i], NULL, caller_run, &numbers[i]), 0);
    }
    for (int i = 0; i < CALLERS; i++) pthread_join(threads[i], NULL);
    EVENTUALLY(td_metrics_get(server.metrics, TD_METRIC_CONNECTIONS_HTTP) == 0);
    EVENTUALLY(td_metrics_get(server.metrics, TD_METRIC_CALLS_IN_FLIGHT) == 0);
    is_json(post("Size", JSON, "{}"), "{}");
    stop();
}
END_TEST

TEST_MAIN(a_slowloris_client_is_cut_off, bodies_that_are_too_large_are_refused,
          an_upload_keeps_its_connection_and_a_trickle_does_not,
          connections_and_headers_are_limited, health_metrics_and_the_status_page,
          other_origins_need_leave, an_address_in_use_is_named,
          stopping_lets_calls_finish_and_answers_health, tls_and_certificates_of_clients,
          clients_come_and_go)
