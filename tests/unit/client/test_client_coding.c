/* The small grammars of gRPC, both ends of each: percent coding, base64 of -bin headers, timeouts;
 * and the rations that bound the cost of a connection. */
#include <math.h>

#include "client_internal.h"
#include "wire/envelope.h"
#include "test_util.h"
#include "transport/grpc/grpc_internal.h"

START_TEST(messages_come_back_from_percent_coding)
{
    static const char *const TEXTS[] = {"", "plain", "100 % of äöü \"x\"\n\t", "%41", "%", "%4"};
    for (size_t i = 0; i < sizeof TEXTS / sizeof TEXTS[0]; i++) {
        tb_bytes coded = {0}, back = {0};
        ck_assert_int_eq(http_percent_encode(&coded, TEXTS[i]), TB_OK);
        for (size_t k = 0; k < coded.size; k++)
            ck_assert(coded.base[k] >= 0x20 && coded.base[k] < 0x7f);
        ck_assert(tbc_percent_decode(&back, coded.base, coded.size));
        ck_assert_uint_eq(back.size, strlen(TEXTS[i]));
        ck_assert(back.size == 0 || memcmp(back.base, TEXTS[i], back.size) == 0);
        tb_bytes_free(&coded);
        tb_bytes_free(&back);
    }
}
END_TEST

START_TEST(damaged_percent_codes_stay_as_they_are)
{
    static const char *const TEXTS[] = {"50%", "%4", "%zz", "a%2"};
    for (size_t i = 0; i < sizeof TEXTS / sizeof TEXTS[0]; i++) {
        tb_bytes back = {0};
        ck_assert(tbc_percent_decode(&back, (const uint8_t *)TEXTS[i], strlen(TEXTS[i])));
        ck_assert_str_eq((const char *)back.base, TEXTS[i]);
        tb_bytes_free(&back);
    }
}
END_TEST

START_TEST(binary_headers_come_back_padded_or_not)
{
    uint8_t bytes[64];
    for (size_t size = 0; size < sizeof bytes; size++) {
        tb_bytes text = {0}, back = {0};
        for (size_t k = 0; k < size; k++) bytes[k] = (uint8_t)(251 * k + size);
        ck_assert_int_eq(http_text_encode(&text, bytes, size), TB_OK);
        for (int padded = 1; padded >= 0; padded--) {
            while (!padded && text.size > 0 && text.base[text.size - 1] == '=') text.size--;
            back.size = 0;
            ck_assert(tbc_base64_decode(&back, text.base, text.size));
            ck_assert_uint_eq(back.size, size);
            ck_assert(size == 0 || memcmp(back.base, bytes, size) == 0);
        }
        tb_bytes_free(&text);
        tb_bytes_free(&back);
    }
}
END_TEST

START_TEST(text_that_is_no_base64_is_refused)
{
    static const char *const TEXTS[] = {"A", "AAAAA", "A*AA", "=AAA", "AA AA"};
    for (size_t i = 0; i < sizeof TEXTS / sizeof TEXTS[0]; i++) {
        tb_bytes back = {0};
        ck_assert(!tbc_base64_decode(&back, (const uint8_t *)TEXTS[i], strlen(TEXTS[i])));
        tb_bytes_free(&back);
    }
}
END_TEST

START_TEST(timeouts_are_never_shorter_and_hardly_longer)
{
    static const int64_t TIMES[] = {1,          99999999,      100000000,       123456789012,
                                    1000000000, 3600000000000, 999999999999999, 359999996400000000};
    for (size_t i = 0; i < sizeof TIMES / sizeof TIMES[0]; i++) {
        char text[TBC_TEXT_SIZE];
        int64_t read = 0;
        tbc_timeout_print(TIMES[i], text);
        ck_assert(http_timeout_grpc(text, &read));
        ck_assert_int_ge(read, TIMES[i]);
        ck_assert_double_le((double)(read - TIMES[i]), 1e-4 * (double)TIMES[i]);
    }
    static const char *const WRONG[] = {"", "S", "5", "5s", "-1S", "123456789S", "1S ", "0x1S"};
    for (size_t i = 0; i < sizeof WRONG / sizeof WRONG[0]; i++) {
        int64_t read = 0;
        ck_assert(!http_timeout_grpc(WRONG[i], &read));
    }
}
END_TEST

START_TEST(a_ration_is_used_up_and_grows_again)
{
    rpc_ration ration = {0};
    int64_t now = 1000000000;
    for (int i = 0; i < 100; i++) ck_assert(rpc_ration_take(&ration, 1, 10, 100, now));
    ck_assert(!rpc_ration_take(&ration, 1, 10, 100, now));
    now += 1000000000;
    for (int i = 0; i < 9; i++) ck_assert(rpc_ration_take(&ration, 1, 10, 100, now));
    ck_assert(!rpc_ration_take(&ration, 1, 10, 100, now));
    /* the ration never exceeds its burst */
    now += 1000000000000;
    for (int i = 0; i < 100; i++) ck_assert(rpc_ration_take(&ration, 1, 10, 100, now));
    ck_assert(!rpc_ration_take(&ration, 1, 10, 100, now));
}
END_TEST

START_TEST(addresses_name_their_host)
{
    static const struct {
        const char *address, *host;
    } CASES[] = {{"127.0.0.1:7410", "127.0.0.1"},
                 {"[::1]:7410", "::1"},
                 {"robot.example:1", "robot.example"},
                 {"unix:/run/tribod", "localhost"}};
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        char host[TBC_REASON_SIZE];
        tbc_host_of(CASES[i].address, host);
        ck_assert_str_eq(host, CASES[i].host);
    }
}
END_TEST

TEST_MAIN(messages_come_back_from_percent_coding, damaged_percent_codes_stay_as_they_are,
          binary_headers_come_back_padded_or_not, text_that_is_no_base64_is_refused,
          timeouts_are_never_shorter_and_hardly_longer, a_ration_is_used_up_and_grows_again,
          addresses_name_their_host)
