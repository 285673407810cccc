/* The server as a whole: creation, warm-up, reload, drain; and its messages to systemd. */
#include <arpa/inet.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "ops/notify.h"
#include "schedule/scheduler.h"
#include "server.h"
#include "test_util.h"

/* ---- sd_notify
 * -------------------------------------------------------------------------------- */

/* A socket under this name ('@': abstract) that NOTIFY_SOCKET leads to. */
static int listen_as(const char *name)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const struct timeval timeout = {.tv_sec = 10};
    memcpy(address.sun_path, name, strlen(name));
    if (*name == '@') address.sun_path[0] = '\0';
    const int file = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    ck_assert_int_ge(file, 0);
    setsockopt(file, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout);
    const socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(name));
    ck_assert_int_eq(bind(file, (const struct sockaddr *)&address, size), 0);
    setenv("NOTIFY_SOCKET", name, 1);
    return file;
}

START_TEST(systemd_hears_what_the_daemon_is_at)
{
    char folder[] = "/tmp/test_server_life_XXXXXX", path[64], abstract[80], heard[256];
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/notify", folder);
    snprintf(abstract, sizeof abstract, "@%s", path);
    const char *const names[] = {path, abstract};
    for (int i = 0; i < 2; i++) {
        const int file = listen_as(names[i]);
        ck_assert(td_notify("READY=1"));
        memset(heard, 0, sizeof heard);
        ck_assert_int_gt(recv(file, heard, sizeof heard - 1, 0), 0);
        ck_assert_str_eq(heard, "READY=1");
        ck_assert(td_notify_reloading());
        memset(heard, 0, sizeof heard);
        ck_assert_int_gt(recv(file, heard, sizeof heard - 1, 0), 0);
        long long us = 0;
        ck_assert_int_eq(sscanf(heard, "RELOADING=1\nMONOTONIC_USEC=%lld", &us), 1);
        ck_assert_int_gt(us, 0);
        close(file);
    }
    unlink(path);
    rmdir(folder);

    /* no listener, nonsense, not set */
    ck_assert(!td_notify("READY=1"));
    setenv("NOTIFY_SOCKET", "relative", 1);
    ck_assert(!td_notify("READY=1"));
    unsetenv("NOTIFY_SOCKET");
    ck_assert(!td_notify("READY=1"));
}
END_TEST

START_TEST(the_watchdog_is_for_this_process_only)
{
    char pid[32];
    unsetenv("WATCHDOG_PID");
    unsetenv("WATCHDOG_USEC");
    ck_assert_int_eq(td_notify_watchdog_ns(), 0);
    setenv("WATCHDOG_USEC", "30000000", 1);
    ck_assert_int_eq(td_notify_watchdog_ns(), 30000000000);
    snprintf(pid, sizeof pid, "%d", (int)getpid());
    setenv("WATCHDOG_PID", pid, 1);
    ck_assert_int_eq(td_notify_watchdog_ns(), 30000000000);
    setenv("WATCHDOG_PID", "1", 1);
    ck_assert_int_eq(td_notify_watchdog_ns(), 0);
    unsetenv("WATCHDOG_PID");
    unsetenv("WATCHDOG_USEC");
}
END_TEST

/* ---- the server
 * ------------------------------------------------------------------------------- */

static td_config config_for_tests(void)
{
    td_config config = td_config_defaults();
    snprintf(config.grpc_address, sizeof config.grpc_address, "127.0.0.1:0");
    snprintf(config.http_address, sizeof config.http_address, "127.0.0.1:0");
    config.data[0] = '\0';
    config.drain_seconds = 10;
    config.log_level = TB_LOG_ERROR;
    return config;
}

static td_server *start_server(const td_config *config)
{
    tb_error error;
    td_server *server = NULL;
    TEST_OK(td_server_create(config, &server, &error), &error);
    TEST_OK(td_server_start(server, &error), &error);
    return server;
}

/* The status of a GET over a real connection; 0 if there is no answer. */
static int http_status(const char *address, const char *path)
{
    char host[TD_CONFIG_TEXT_SIZE], text[512];
    uint16_t port;
    int status = 0;
    ck_assert(td_address_parse(address, host, &port));
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(port)};
    ck_assert_int_eq(inet_pton(AF_INET, host, &to.sin_addr), 1);
    const struct timeval timeout = {.tv_sec = 10};
    const int file = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    setsockopt(file, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout);
    if (connect(file, (const struct sockaddr *)&to, sizeof to) == 0) {
        const int length = snprintf(
            text, sizeof text, "GET %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", path);
        ck_assert_int_eq(send(file, text, (size_t)length, MSG_NOSIGNAL), length);
        const ssize_t size = recv(file, text, sizeof text - 1, 0);
        text[size > 0 ? size : 0] = '\0';
        if (sscanf(text, "HTTP/1.1 %d", &status) != 1) status = 0;
    }
    close(file);
    return status;
}

START_TEST(a_server_starts_serves_drains_and_ends)
{
    const td_config config = config_for_tests();
    td_server *server = start_server(&config);
    char http[TD_CONFIG_TEXT_SIZE];
    snprintf(http, sizeof http, "%s", td_server_http_address(server));
    ck_assert(atomic_load(&server->ready));
    ck_assert(atomic_load(&server->alive));
    ck_assert_ptr_null(strstr(td_server_grpc_address(server), ":0"));
    ck_assert_int_eq(http_status(http, "/readyz"), 200);
    /* warm: both precisions were stepped */
    ck_assert_int_eq(td_metrics_get(server->metrics, TD_METRIC_WORLD_STEPS), 60);

    ck_assert(td_server_drain(server));
    ck_assert(!atomic_load(&server->ready));
    ck_assert(atomic_load(&server->draining));
    /* health is reported until the end */
    ck_assert_int_eq(http_status(http, "/readyz"), 503);
    ck_assert_int_eq(http_status(http, "/livez"), 200);
    td_server_destroy(server);
    ck_assert_int_eq(http_status(http, "/livez"), 0);
}
END_TEST

START_TEST(a_server_ends_without_having_been_drained_or_started)
{
    tb_error error;
    const td_config config = config_for_tests();
    td_server *server = start_server(&config);
    td_server_destroy(server);
    TEST_OK(td_server_create(&config, &server, &error), &error);
    td_server_destroy(server);
    td_server_destroy(NULL);
}
END_TEST

START_TEST(a_port_in_use_is_named)
{
    tb_error error;
    td_config config = config_for_tests();
    td_server *server = start_server(&config), *second = NULL;
    snprintf(config.grpc_address, sizeof config.grpc_address, "%s", td_server_grpc_address(server));
    TEST_STATUS(td_server_create(&config, &second, &error), TB_FAILED_PRECONDITION, &error);
    ck_assert_ptr_nonnull(strstr(error.message, config.grpc_address));
    config = config_for_tests();
    snprintf(config.http_address, sizeof config.http_address, "%s", td_server_http_address(server));
    TEST_STATUS(td_server_create(&config, &second, &error), TB_FAILED_PRECONDITION, &error);
    ck_assert_ptr_nonnull(strstr(error.message, config.http_address));
    ck_assert_ptr_null(second);
    td_server_destroy(server);
}
END_TEST

START_TEST(a_reload_changes_limits_and_keeps_the_rest)
{
    tb_error error;
    td_config config = config_for_tests();
    td_server *server = start_server(&config);
    const td_config *before = server->config;

    /* nothing new: nothing is kept */
    TEST_OK(td_server_reload(server, &config, &error), &error);
    ck_assert_ptr_eq(server->config, before);

    config.sessions = 5;
    config.threads = before->threads + 1;
    snprintf(config.http_address, sizeof config.http_address, "127.0.0.1:1");
    TEST_OK(td_server_reload(server, &config, &error), &error);
    const td_config *now = server->config;
    ck_assert_int_eq(now->sessions, 5);
    ck_assert_int_eq(now->threads, before->threads);
    ck_assert_str_eq(now->http_address, "127.0.0.1:0");
    /* readers of the old configuration keep the old values */
    ck_assert_int_ne(before->sessions, 5);
    td_server_destroy(server);
}
END_TEST

START_TEST(a_warm_up_without_time_gives_up)
{
    tb_error error;
    td_config config = config_for_tests();
    config.warm_up_seconds = 0;
    td_server *server = start_server(&config);
    ck_assert_int_eq(td_metrics_get(server->metrics, TD_METRIC_WORLD_STEPS), 0);
    TEST_OK(td_server_warm_up(server, 1e-9, &error), &error);
    TEST_OK(td_server_warm_up(server, 10, &error), &error);
    ck_assert_int_ge(td_metrics_get(server->metrics, TD_METRIC_WORLD_STEPS), 60);
    td_server_destroy(server);
}
END_TEST

TEST_MAIN(systemd_hears_what_the_daemon_is_at, the_watchdog_is_for_this_process_only,
          a_server_starts_serves_drains_and_ends,
          a_server_ends_without_having_been_drained_or_started, a_port_in_use_is_named,
          a_reload_changes_limits_and_keeps_the_rest, a_warm_up_without_time_gives_up)
