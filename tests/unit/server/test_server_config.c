/* Configuration: files, environment, ranges, printing, and that deploy/tribod.ini holds the
 * defaults. */
#include <unistd.h>

#include "base/file.h"
#include "call/call.h"
#include "ops/config.h"
#include "test_util.h"

static tb_status parse(td_config *config, const char *text, tb_error *error)
{
    memset(error, 0, sizeof *error);
    return td_config_parse(config, text, strlen(text), "test.ini", error);
}

/* The configuration as it would be printed; the caller frees. */
static char *printed(const td_config *config)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    ck_assert_ptr_nonnull(out);
    td_config_print(config, out);
    ck_assert_int_eq(fclose(out), 0);
    return text;
}

START_TEST(defaults_are_complete_and_fit_together)
{
    tb_error error;
    const td_config c = td_config_defaults();
    TEST_OK(td_config_check(&c, &error), &error);
    ck_assert_str_eq(c.grpc_address, "127.0.0.1:7410");
    ck_assert_str_eq(c.http_address, "127.0.0.1:7480");
    ck_assert_uint_eq(c.message_bytes, 64U << 20);
    ck_assert_uint_eq(c.chunk_bytes, 1U << 20);
    ck_assert_int_eq(c.nesting, 64);
    ck_assert_int_ge(c.sessions_per_client, 2000);
    ck_assert_int_eq(c.log_level, TB_LOG_INFO);
    ck_assert_int_eq(c.anonymous, TD_SCOPE_RUN);
    ck_assert(!c.anonymous_remote);
    TEST_NEAR(c.session_ttl_seconds, 600, 0);
    TEST_NEAR(c.drain_seconds, 20, 0);
}
END_TEST

START_TEST(values_are_taken_in_their_units)
{
    tb_error error;
    td_config c = td_config_defaults();
    TEST_OK(parse(&c,
                  "# comment\n; another\n[server]\ngrpc_address = [::1]:0   ; IPv6\n"
                  "http_address=\nthreads: 3\r\n\n[limits]\nmessage_bytes = 8192\n"
                  "asset_bytes = 2 MiB\ncalls_per_second = 2.5e1\n"
                  "[log]\nlevel = warning\nformat = json\n"
                  "[auth]\nanonymous = admin\nanonymous_remote = yes",
                  &error),
            &error);
    ck_assert_str_eq(c.grpc_address, "[::1]:0");
    ck_assert_str_eq(c.http_address, "");
    ck_assert_int_eq(c.threads, 3);
    ck_assert_uint_eq(c.message_bytes, 8192);
    ck_assert_uint_eq(c.asset_bytes, 2U << 20);
    TEST_NEAR(c.calls_per_second, 25, 0);
    ck_assert_int_eq(c.log_level, TB_LOG_WARNING);
    ck_assert(c.log_json);
    ck_assert_int_eq(c.anonymous, TD_SCOPE_ADMIN);
    ck_assert(c.anonymous_remote);
    TEST_OK(td_config_check(&c, &error), &error);
}
END_TEST

START_TEST(a_wrong_line_is_named_and_changes_nothing)
{
    static const struct {
        const char *text;
        int line;
        const char *words[3];
    } CASES[] = {
        {"[server]\n\nthreads = many\n", 3, {"test.ini:3", "threads = 'many'", "whole number"}},
        {"[server]\nthreads = -1\n", 2, {"threads = '-1'", "from 0 to 4096"}},
        {"[server]\nthreads = 99999999999999999999\n", 2, {"whole number"}},
        {"[server]\nthreads =\n", 2, {"threads = ''"}},
        {"[server]\ndrain_seconds = nan\n", 2, {"'nan'", "seconds"}},
        {"[server]\ndrain_seconds = 1e9\n", 2, {"'1e9'", "86400"}},
        {"[server]\ndrain_seconds = 5 s\n", 2, {"'5 s'"}},
        {"[limits]\nmessage_bytes = 2GiB\n", 2, {"'2GiB'", "1073741824"}},
        {"[limits]\nmessage_bytes = 99999999999999 GiB\n", 2, {"bytes"}},
        {"[limits]\nmessage_bytes = -4096\n", 2, {"'-4096'"}},
        {"[limits]\nmessage_bytes = 64 MB\n", 2, {"'64 MB'", "MiB"}},
        {"[log]\nlevel = loud\n", 2, {"'loud'", "debug, info, warning or error"}},
        {"[log]\nformat = xml\n", 2, {"'xml'", "text or json"}},
        {"[auth]\nanonymous_remote = 1\n", 2, {"'1'", "no or yes"}},
        {"[server]\nport = 1\n", 2, {"no option 'port'", "[server]"}},
        {"[sever]\nthreads = 1\n", 2, {"no section [sever]"}},
        {"threads = 1\n", 1, {"before the first section"}},
        {"[server]\nthreads 1\n", 2, {"test.ini:2", "option = value"}},
        {"[server\nthreads = 1\n", 1, {"test.ini:1"}},
        {"[server]\nthreads = 1\nthreads = 2\n", 3, {"[server] threads", "second time"}},
        {"[server]\ndata = a\n  b\n", 3, {"second time"}},
        {"[server]\ndata = a\tb\n", 2, {"control character"}},
    };
    const td_config defaults = td_config_defaults();
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        tb_error error;
        td_config c = defaults;
        TEST_STATUS(parse(&c, CASES[i].text, &error), TB_INVALID_ARGUMENT, &error);
        ck_assert_msg(error.line == CASES[i].line, "line %d of: %s", error.line, CASES[i].text);
        ck_assert_str_eq(error.file, "test.ini");
        for (int w = 0; w < 3 && CASES[i].words[w] != NULL; w++)
            ck_assert_msg(strstr(error.message, CASES[i].words[w]) != NULL, "'%s' is not in '%s'",
                          CASES[i].words[w], error.message);
        ck_assert(td_config_equal(&c, &defaults));
    }
}
END_TEST

START_TEST(lines_that_the_parser_would_cut_are_refused)
{
    tb_error error;
    td_config c = td_config_defaults();
    char text[600];
    /* the longest value that is allowed fits a line */
    char longest[TD_CONFIG_TEXT_LIMIT + 2];
    memset(longest, 'a', sizeof longest);
    longest[TD_CONFIG_TEXT_LIMIT] = '\0';
    snprintf(text, sizeof text, "[limits]\nnesting = 9\n[http]\ncors_origins = %s\n", longest);
    TEST_OK(parse(&c, text, &error), &error);
    ck_assert_str_eq(c.cors_origins, longest);

    c = td_config_defaults();
    snprintf(text, sizeof text, "[http]\ncors_origins = %sa\n", longest);
    TEST_STATUS(parse(&c, text, &error), TB_INVALID_ARGUMENT, &error);
    ck_assert_int_eq(error.line, 2);
    snprintf(text, sizeof text, "[http]\n\ncors_origins = %s%s\n", longest, longest);
    TEST_STATUS(parse(&c, text, &error), TB_INVALID_ARGUMENT, &error);
    ck_assert_int_eq(error.line, 3);

    TEST_STATUS(td_config_parse(&c, "[server]\nda\0ta = x\n", 19, "test.ini", &error),
                TB_INVALID_ARGUMENT, &error);
    ck_assert_int_eq(error.line, 2);
    ck_assert_str_eq(c.cors_origins, "");
}
END_TEST

START_TEST(what_is_printed_can_be_read_again)
{
    tb_error error;
    td_config c = td_config_defaults(), again = td_config_defaults();
    TEST_OK(parse(&c,
                  "[server]\ngrpc_address = 0.0.0.0:1\ngrpc_socket = /run/a b#c.sock\n"
                  "http_address =\ndrain_seconds = 0.1\n[limits]\nmessage_bytes = 1000000\n"
                  "calls_per_second = 33.333333333333336\n[store]\nretain_snapshots_bytes = 0\n"
                  "[auth]\nanonymous = none\n[log]\nlevel = debug\nformat = json\n",
                  &error),
            &error);
    char *text = printed(&c);
    TEST_OK(parse(&again, text, &error), &error);
    ck_assert(td_config_equal(&c, &again));
    ck_assert_ptr_nonnull(strstr(text, "\ncalls_per_second = 33.333333333333336\n"));
    ck_assert_ptr_nonnull(strstr(text, "\nretain_snapshots_bytes = 0\n"));
    free(text);
}
END_TEST

START_TEST(the_example_file_holds_the_defaults)
{
    tb_error error;
    tb_bytes file = {0};
    TEST_OK(tb_file_read("deploy/tribod.ini", 0, &file, &error), &error);
    const td_config defaults = td_config_defaults();
    char *text = printed(&defaults);
    ck_assert_str_eq((const char *)file.base, text);
    free(text);
    tb_bytes_free(&file);
}
END_TEST

START_TEST(the_environment_overrules)
{
    tb_error error;
    td_config c = td_config_defaults();
    char *const environment[] = {"PATH=/bin",
                                 "TRIBOD_SERVER_THREADS=5",
                                 "TRIBOD_LIMITS_SESSIONS_PER_CLIENT=11",
                                 "TRIBOD_TEST_CLOCK=/tmp/x",
                                 "TRIBOD_PORT=tcp://10.0.0.1",
                                 NULL};
    TEST_OK(td_config_environment(&c, environment, &error), &error);
    ck_assert_int_eq(c.threads, 5);
    ck_assert_int_eq(c.sessions_per_client, 11);

    char *const wrong[] = {"TRIBOD_SERVER_THREADS=x", NULL};
    TEST_STATUS(td_config_environment(&c, wrong, &error), TB_INVALID_ARGUMENT, &error);
    ck_assert_ptr_nonnull(strstr(error.message, "TRIBOD_SERVER_THREADS"));
    ck_assert_ptr_nonnull(strstr(error.message, "'x'"));
    ck_assert_str_eq(error.field, "server.threads");
    ck_assert_int_eq(c.threads, 5);
}
END_TEST

START_TEST(options_that_do_not_fit_together_are_refused)
{
    static const struct {
        const char *text, *field;
    } CASES[] = {
        {"[server]\ngrpc_address =\nhttp_address =\n", "server.grpc_address"},
        {"[server]\ngrpc_address = localhost\n", "server.grpc_address"},
        {"[server]\nhttp_address = 127.0.0.1:70000\n", "server.http_address"},
        {"[server]\nhttp_address = ::1:80\n", "server.http_address"},
        {"[tls]\ncertificate = Makefile\n", "tls.key"},
        {"[tls]\nkey = Makefile\n", "tls.certificate"},
        {"[tls]\nclient_ca = Makefile\n", "tls.certificate"},
        {"[tls]\nkey = Makefile\ncertificate = no/such.pem\n", "tls.certificate"},
        {"[sessions]\nttl_seconds = 100\nmaximum_ttl_seconds = 99\n", "sessions.ttl_seconds"},
        {"[limits]\nunpack_bytes = 1 MiB\n", "limits.unpack_bytes"},
        {"[fleet]\nreplica = 1\n", "fleet.addresses"},
        {"[fleet]\naddresses = a:1\n", "fleet.replica"},
        {"[fleet]\nreplica = 65536\naddresses = a-{}:1\n", "fleet.replica"},
        {"[fleet]\nreplica = 1\naddresses = a:1\n", "fleet.addresses"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        tb_error error;
        td_config c = td_config_defaults();
        TEST_OK(parse(&c, CASES[i].text, &error), &error);
        TEST_STATUS(td_config_check(&c, &error), TB_INVALID_ARGUMENT, &error);
        ck_assert_str_eq(error.field, CASES[i].field);
    }
}
END_TEST

START_TEST(addresses_are_taken_apart)
{
    char host[TD_CONFIG_TEXT_SIZE];
    uint16_t port;
    ck_assert(td_address_parse("127.0.0.1:7410", host, &port));
    ck_assert_str_eq(host, "127.0.0.1");
    ck_assert_int_eq(port, 7410);
    ck_assert(td_address_parse("[::1]:0", host, &port));
    ck_assert_str_eq(host, "::1");
    ck_assert_int_eq(port, 0);
    ck_assert(td_address_parse("0.0.0.0:65535", host, &port));
    ck_assert_int_eq(port, 65535);
    ck_assert(td_address_parse("box.example:1", host, &port));
    const char *const wrong[] = {"",     "7410",  "a:",     "a:b",   "a:-1",      "a:65536",
                                 "a:1 ", "::1:1", "[::1:1", "a b:1", "http://a:1"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        ck_assert_msg(!td_address_parse(wrong[i], host, &port), "'%s' was taken", wrong[i]);
}
END_TEST

static void remember(void *context, const char *name)
{
    strcat(context, name);
    strcat(context, " ");
}

START_TEST(a_reload_keeps_what_only_a_start_can_change)
{
    tb_error error;
    const td_config running = td_config_defaults();
    td_config c = running;
    char names[256] = "";
    TEST_OK(parse(&c,
                  "[server]\ngrpc_address = 127.0.0.1:1\nthreads = 7\n[log]\nlevel = error\n"
                  "[limits]\nsessions = 5\n[http]\ncors_origins = *\n",
                  &error),
            &error);
    td_config_keep_fixed(&c, &running, remember, names);
    ck_assert_str_eq(names, "server.grpc_address server.threads ");
    ck_assert_str_eq(c.grpc_address, running.grpc_address);
    ck_assert_int_eq(c.threads, running.threads);
    ck_assert_int_eq(c.sessions, 5);
    ck_assert_int_eq(c.log_level, TB_LOG_ERROR);
    ck_assert_str_eq(c.cors_origins, "*");
}
END_TEST

START_TEST(a_file_that_is_not_there_is_named)
{
    tb_error error;
    td_config c = td_config_defaults();
    TEST_STATUS(td_config_read(&c, "no/such/tribod.ini", &error), TB_NOT_FOUND, &error);
    ck_assert_ptr_nonnull(strstr(error.message, "no/such/tribod.ini"));
}
END_TEST

TEST_MAIN(defaults_are_complete_and_fit_together, values_are_taken_in_their_units,
          a_wrong_line_is_named_and_changes_nothing, lines_that_the_parser_would_cut_are_refused,
          what_is_printed_can_be_read_again, the_example_file_holds_the_defaults,
          the_environment_overrules, options_that_do_not_fit_together_are_refused,
          addresses_are_taken_apart, a_reload_keeps_what_only_a_start_can_change,
          a_file_that_is_not_there_is_named)
