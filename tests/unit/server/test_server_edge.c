/* Which callers count as loopback, and which framings of a request are refused. */
#include <string.h>

#include "wire/descriptors.h"
#include "call/edge.h"
#include "test_util.h"

START_TEST(headers_of_proxies_make_strangers)
{
    td_config c = td_config_defaults();
    static const char *const NAMES[] = {"X-Forwarded-For", "x-real-ip", "VIA", "CF-Connecting-IP",
                                        "Forwarded"};
    for (size_t i = 0; i < sizeof NAMES / sizeof NAMES[0]; i++)
        ck_assert_msg(td_edge_forwards(&c, NAMES[i], strlen(NAMES[i])), "%s", NAMES[i]);
    ck_assert(!td_edge_forwards(&c, "X-Forwarded", 11));
    ck_assert(!td_edge_forwards(&c, "Content-Type", 12));
    snprintf(c.forwarding_headers, sizeof c.forwarding_headers, "X-Mine");
    ck_assert(td_edge_forwards(&c, "x-mine", 6));
    ck_assert(!td_edge_forwards(&c, "Via", 3));
    ck_assert_uint_eq(td_edge_forwarding_lengths(&c), 1 << 6);
    snprintf(c.forwarding_headers, sizeof c.forwarding_headers, "Via, X-%080d", 1);
    ck_assert_uint_eq(td_edge_forwarding_lengths(&c), 1 << 3 | UINT64_C(1) << 63);
    c.forwarding_headers[0] = '\0';
    ck_assert_uint_eq(td_edge_forwarding_lengths(&c), 0);
    ck_assert(!td_edge_forwards(&c, "Via", 3));
    ck_assert(!td_edge_forwards(&c, "", 0));
}
END_TEST

START_TEST(loopback_is_a_place_a_name_and_no_proxy)
{
    td_config c = td_config_defaults();
    ck_assert(td_edge_is_loopback(&c, true, false, "127.0.0.1:7480"));
    ck_assert(td_edge_is_loopback(&c, true, false, "LOCALHOST"));
    ck_assert(td_edge_is_loopback(&c, true, false, "[::1]:80"));
    ck_assert(td_edge_is_loopback(&c, true, false, NULL));
    ck_assert(!td_edge_is_loopback(&c, true, false, "localhost.evil.example"));
    ck_assert(!td_edge_is_loopback(&c, true, false, "127.0.0.1.evil.example"));
    ck_assert(!td_edge_is_loopback(&c, true, true, "localhost"));
    ck_assert(!td_edge_is_loopback(&c, false, false, "localhost"));
    c.behind_proxy = true;
    ck_assert(!td_edge_is_loopback(&c, true, false, "localhost"));
}
END_TEST

START_TEST(hosts_and_names_are_judged)
{
    ck_assert(td_edge_host_is_sound("robot7:7480"));
    ck_assert(td_edge_host_is_sound("[fe80::1]:80"));
    ck_assert(!td_edge_host_is_sound("localhost@evil.example"));
    ck_assert(!td_edge_host_is_sound("localhost/evil"));
    ck_assert(!td_edge_host_is_sound("local host"));
    ck_assert(td_edge_name_is_sound("X-A_b!", 6));
    ck_assert(!td_edge_name_is_sound("X\0A", 3));
    ck_assert(!td_edge_name_is_sound("X\r", 2));
    ck_assert(!td_edge_name_is_sound("", 0));
}
END_TEST

/* The fault of a request with these "name: value" pairs; NULL-terminated. */
static const char *fault_of(const char *const *pairs)
{
    td_framing framing = {0};
    for (; *pairs != NULL; pairs += 2)
        td_framing_add(&framing, pairs[0], strlen(pairs[0]), pairs[1], strlen(pairs[1]));
    return td_framing_fault(&framing);
}

START_TEST(framing_that_can_be_read_in_two_ways_is_refused)
{
    ck_assert_ptr_null(fault_of((const char *[]){"Host", "a", "Content-Length", "5", NULL}));
    ck_assert_ptr_null(fault_of((const char *[]){"transfer-encoding", "Chunked", NULL}));
    static const char *const WRONG[][5] = {
        {"Content-Length", "5", "Content-Length", "5", NULL},
        {"Content-Length", "5", "Transfer-Encoding", "chunked", NULL},
        {"Transfer-Encoding", "gzip, chunked", NULL},
        {"Transfer-Encoding", "chunked", "Transfer-Encoding", "chunked", NULL},
        {"Transfer-Encoding", "identity", NULL},
        {"Content-Length", "+5", NULL},
        {"Content-Length", "", NULL},
        {"Host", "a", "Host", "a", NULL},
        {"Bad name", "a", NULL}};
    for (size_t i = 0; i < sizeof WRONG / sizeof WRONG[0]; i++)
        ck_assert_msg(fault_of(WRONG[i]) != NULL, "case %zu", i);
}
END_TEST

START_TEST(connections_leave_descriptors_for_the_rest)
{
    const int64_t limit = td_descriptors_raise();
    ck_assert_int_gt(td_descriptors_open(), 2);
    ck_assert_int_eq(td_descriptors_for_connections(1, 2), 1);
    if (limit == 0) return;
    const int32_t most = td_descriptors_for_connections(INT32_MAX, 2);
    ck_assert_int_gt(most, 0);
    if (limit > 200) ck_assert_int_le(2 * (int64_t)most, limit - 100);
}
END_TEST

TEST_MAIN(headers_of_proxies_make_strangers, loopback_is_a_place_a_name_and_no_proxy,
          hosts_and_names_are_judged, framing_that_can_be_read_in_two_ways_is_refused,
          connections_leave_descriptors_for_the_rest)
