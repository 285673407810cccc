/* Statuses, errors, log lines and handles. */
#include "base/error.h"
#include "base/handle.h"
#include "test_util.h"

START_TEST(every_status_has_its_name_and_codes)
{
    ck_assert_str_eq(tb_status_name(TB_OK), "OK");
    ck_assert_int_eq(tb_status_grpc(TB_OK), 0);
    ck_assert_int_eq(tb_status_http(TB_OK), 200);
    ck_assert_str_eq(tb_status_name(TB_INVALID_ARGUMENT), "INVALID_ARGUMENT");
    ck_assert_str_eq(tb_status_text(TB_NOT_FOUND), "not found");
    ck_assert_int_eq(tb_status_http(TB_RESOURCE_EXHAUSTED), 429);
    ck_assert_str_eq(tb_status_name(TB_INTERNAL), "INTERNAL");
    ck_assert_int_eq(tb_status_grpc(TB_INTERNAL), 13);
    for (int s = 0; s <= TB_INTERNAL; s++) {
        ck_assert_int_ge(tb_status_grpc((tb_status)s), 0);
        ck_assert_int_le(tb_status_grpc((tb_status)s), 16);
        ck_assert_str_ne(tb_status_name((tb_status)s), "UNKNOWN");
    }
}
END_TEST

START_TEST(an_unknown_status_is_said_to_be_unknown)
{
    const tb_status strange[] = {(tb_status)(TB_INTERNAL + 1), (tb_status)9999, (tb_status)-1};
    for (int i = 0; i < 3; i++) {
        ck_assert_str_eq(tb_status_name(strange[i]), "UNKNOWN");
        ck_assert_str_eq(tb_status_text(strange[i]), "unknown status");
        ck_assert_int_eq(tb_status_grpc(strange[i]), 2);
        ck_assert_int_eq(tb_status_http(strange[i]), 500);
    }
}
END_TEST

START_TEST(a_failure_fills_all_fields)
{
    tb_error e;
    memset(&e, 'x', sizeof e);
    TEST_STATUS(tb_fail(&e, TB_NOT_FOUND, "no body named '%s'", "cup"), TB_NOT_FOUND, NULL);
    ck_assert_int_eq(e.status, TB_NOT_FOUND);
    ck_assert_str_eq(e.message, "no body named 'cup'");
    ck_assert_str_eq(e.file, "");
    ck_assert_str_eq(e.field, "");
    ck_assert_int_eq(e.line, 0);

    tb_fail_field(&e, TB_INVALID_ARGUMENT, "mass", "mass is %g", -1.0);
    ck_assert_str_eq(e.field, "mass");
    ck_assert_str_eq(e.message, "mass is -1");

    tb_fail_file(&e, TB_DATA_LOSS, "a/b.xml", 12, "geom", "size is missing");
    ck_assert_str_eq(e.message, "a/b.xml:12: size is missing");
    ck_assert_str_eq(e.file, "a/b.xml");
    ck_assert_str_eq(e.field, "geom");
    ck_assert_int_eq(e.line, 12);

    tb_fail_file(&e, TB_DATA_LOSS, "a/b.xml", 0, NULL, "is empty");
    ck_assert_str_eq(e.message, "a/b.xml: is empty");
    ck_assert_str_eq(e.field, "");

    TEST_STATUS(tb_fail_memory(&e, 123456, "contacts"), TB_RESOURCE_EXHAUSTED, NULL);
    ck_assert_ptr_nonnull(strstr(e.message, "123456"));
    ck_assert_ptr_nonnull(strstr(e.message, "contacts"));

    /* no log hook */
    TEST_STATUS(tb_fail(NULL, TB_ABORTED, "%d", 1), TB_ABORTED, NULL);
    TEST_STATUS(tb_fail_file(NULL, TB_ABORTED, "f", 1, "g", "h"), TB_ABORTED, NULL);
}
END_TEST

START_TEST(long_texts_are_cut_at_the_end)
{
    char text[2000];
    memset(text, 'a', sizeof text);
    text[sizeof text - 1] = 0;
    tb_error e;
    tb_fail(&e, TB_INTERNAL, "%s", text);
    ck_assert_uint_eq(strlen(e.message), sizeof e.message - 1);
    tb_fail_file(&e, TB_INTERNAL, text, 5, text, "%s", text);
    ck_assert_uint_eq(strlen(e.message), sizeof e.message - 1);
    ck_assert_uint_eq(strlen(e.file), sizeof e.file - 1);
    ck_assert_uint_eq(strlen(e.field), sizeof e.field - 1);

    /* just fitting */
    tb_fail(&e, TB_INTERNAL, "%.511s", text);
    ck_assert_uint_eq(strlen(e.message), 511);
}
END_TEST

START_TEST(a_cut_does_not_split_a_character)
{
    /* each character has 2, 3 or 4 bytes; shifted by `pad`, every split comes up */
    const char *characters[] = {"\xC3\xA4", "\xE2\x82\xAC", "\xF0\x9F\xA6\xBE"};
    for (int c = 0; c < 3; c++) {
        const size_t length = strlen(characters[c]);
        for (int pad = 0; pad < 4; pad++) {
            char text[1200] = "";
            for (int i = 0; i < pad; i++) strcat(text, "x");
            while (strlen(text) < 1000) strcat(text, characters[c]);
            tb_error e;
            tb_fail(&e, TB_INTERNAL, "%s", text);
            const size_t kept = strlen(e.message);
            ck_assert_uint_le(kept, 511);
            ck_assert_uint_gt(kept, 511 - length);
            ck_assert_uint_eq((kept - (size_t)pad) % length, 0);
            ck_assert_int_eq(strncmp(e.message, text, kept), 0);
        }
    }
}
END_TEST

START_TEST(messages_are_one_line_of_valid_text)
{
    tb_error e;
    tb_fail(&e, TB_INTERNAL,
            "a\nb\r\tc\x7F"
            "d\x1B[31m");
    ck_assert_str_eq(e.message, "a b  c d [31m");
    /* stray, overlong, surrogate, beyond Unicode, broken in the middle and at the end */
    tb_fail(&e, TB_INTERNAL, "%s", "\x80|\xC0\xAF|\xED\xA0\x80|\xF4\x90\x80\x80|\xE2\x82z|\xC3");
    ck_assert_str_eq(e.message, "?|\?\?|\?\?\?|\?\?\?\?|\?\?z|?");
    tb_fail_file(&e, TB_INTERNAL, "a\nb", 1, "f\xFF", "\xC3\xA4");
    ck_assert_str_eq(e.file, "a b");
    ck_assert_str_eq(e.field, "f?");
    ck_assert_str_eq(e.message, "a b:1: \xC3\xA4");
}
END_TEST

START_TEST(a_message_can_wrap_itself)
{
    tb_error e;
    tb_fail_file(&e, TB_NOT_FOUND, "x.obj", 3, "v", "bad number");
    tb_fail_file(&e, TB_DATA_LOSS, e.file, e.line, e.field, "mesh: %s", e.message);
    ck_assert_str_eq(e.message, "x.obj:3: mesh: x.obj:3: bad number");
    ck_assert_str_eq(e.field, "v");
}
END_TEST

static void keep_line(void *context, tb_log_level level, const char *message)
{
    snprintf(context, 2000, "%d %s", (int)level, message);
}

START_TEST(log_lines_reach_the_hook_and_silence_is_allowed)
{
    char line[2000] = "";
    const tb_log log = {keep_line, line}, silent = {0};
    tb_log_write(&log, TB_LOG_WARNING, "%s ignored\n", "sensor");
    ck_assert_str_eq(line, "2 sensor ignored ");
    tb_log_write(&log, TB_LOG_DEBUG, "%1500d", 1);
    ck_assert_uint_gt(strlen(line), 1000);
    tb_log_write(&silent, TB_LOG_ERROR, "%d", 1);
    tb_log_write(NULL, TB_LOG_ERROR, "%d", 1);
}
END_TEST

START_TEST(a_handle_gives_its_index_back)
{
    const uint16_t owner = tb_handle_owner();
    int32_t index = -7;
    tb_error e;
    for (int32_t i = 0; i < 5; i++) {
        const tb_handle h = tb_handle_make(TB_HANDLE_JOINT, owner, i);
        ck_assert(!tb_handle_is_none(h));
        TEST_OK(tb_handle_index(h, TB_HANDLE_JOINT, owner, 5, "joint", &index, &e), &e);
        ck_assert_int_eq(index, i);
    }
}
END_TEST

START_TEST(wrong_handles_are_refused_by_name_of_the_field)
{
    const uint16_t owner = tb_handle_owner(), other = tb_handle_owner();
    const tb_handle none = {0}, good = tb_handle_make(TB_HANDLE_BODY, owner, 2);
    const tb_handle wild = {UINT32_MAX, TB_HANDLE_BODY, owner};
    const tb_handle strange = {1, 999, owner};
    int32_t index = -7;
    tb_error e;
#define REFUSED(handle, kind, own, count, part)                                                    \
    do {                                                                                           \
        TEST_STATUS(tb_handle_index(handle, kind, own, count, "parent", &index, &e),               \
                    TB_INVALID_ARGUMENT, NULL);                                                    \
        ck_assert_str_eq(e.field, "parent");                                                       \
        ck_assert_msg(strstr(e.message, part) != NULL, "%s", e.message);                           \
        ck_assert_int_eq(index, -7);                                                               \
    } while (0)
    REFUSED(none, TB_HANDLE_BODY, owner, 3, "none");
    REFUSED(good, TB_HANDLE_JOINT, owner, 3, "handle of a body where a joint");
    REFUSED(good, TB_HANDLE_BODY, other, 3, "another scene");
    REFUSED(good, TB_HANDLE_BODY, owner, 2, "no body number 2");
    REFUSED(good, TB_HANDLE_BODY, owner, 0, "no body");
    REFUSED(good, TB_HANDLE_BODY, owner, -1, "no body");
    REFUSED(wild, TB_HANDLE_BODY, owner, INT32_MAX, "no body");
    REFUSED(strange, TB_HANDLE_BODY, owner, 3, "unknown kind");
#undef REFUSED
    TEST_STATUS(tb_handle_index(none, TB_HANDLE_BODY, owner, 3, "parent", &index, NULL),
                TB_INVALID_ARGUMENT, NULL);
}
END_TEST

START_TEST(owners_differ_from_the_last_65534)
{
    static int last[65536];
    for (int i = 0; i < 65536; i++) last[i] = -100000;
    for (int i = 0; i < 3 * 65535; i++) {
        const uint16_t owner = tb_handle_owner();
        ck_assert_uint_ne(owner, 0);
        ck_assert_int_gt(i - last[owner], 65534);
        last[owner] = i;
    }
}
END_TEST

TEST_MAIN(every_status_has_its_name_and_codes, an_unknown_status_is_said_to_be_unknown,
          a_failure_fills_all_fields, long_texts_are_cut_at_the_end,
          a_cut_does_not_split_a_character, messages_are_one_line_of_valid_text,
          a_message_can_wrap_itself, log_lines_reach_the_hook_and_silence_is_allowed,
          a_handle_gives_its_index_back, wrong_handles_are_refused_by_name_of_the_field,
          owners_differ_from_the_last_65534)
