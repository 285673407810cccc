/* Log lines on standard error, as text and as JSON. */
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <pthread.h>
#include <unistd.h>

#include "ops/log.h"
#include "test_util.h"

static int kept_stderr, captured;

/* From here on standard error is a file. */
static void capture(void)
{
    fflush(stderr);
    kept_stderr = dup(STDERR_FILENO);
    char path[] = "/tmp/test_server_log_XXXXXX";
    captured = mkostemp(path, O_APPEND);
    ck_assert_int_ge(captured, 0);
    unlink(path);
    dup2(captured, STDERR_FILENO);
}

/* Restores standard error, and returns the captured text; the caller frees it. */
static char *release(void)
{
    dup2(kept_stderr, STDERR_FILENO);
    close(kept_stderr);
    const off_t size = lseek(captured, 0, SEEK_END);
    char *text = calloc(1, (size_t)size + 1);
    ck_assert_ptr_nonnull(text);
    ck_assert_int_eq(pread(captured, text, (size_t)size, 0), size);
    close(captured);
    return text;
}

static td_log *open_log(tb_log_level least, bool json)
{
    tb_error error;
    td_log *log;
    TEST_OK(td_log_create(least, json, &log, &error), &error);
    return log;
}

/* Writes one line by `json` and parses it. */
#define JSON_LINE(...)                                                                             \
    do {                                                                                           \
        td_log *log_ = open_log(TB_LOG_DEBUG, true);                                               \
        capture();                                                                                 \
        td_log_write(log_, __VA_ARGS__);                                                           \
        td_log_destroy(log_);                                                                      \
        char *text_ = release();                                                                   \
        ck_assert_int_eq(text_[strlen(text_) - 1], '\n');                                          \
        ck_assert_ptr_eq(strchr(text_, '\n'), text_ + strlen(text_) - 1);                          \
        parsed = json_loads(text_, 0, NULL);                                                       \
        ck_assert_msg(parsed != NULL, "not JSON: %.300s", text_);                                  \
        free(text_);                                                                               \
    } while (0)

static const char *text_of(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));
    ck_assert_msg(text != NULL, "no text '%s'", name);
    return text;
}

START_TEST(a_text_line_has_time_level_event_and_fields)
{
    td_log *log = open_log(TB_LOG_INFO, false);
    capture();
    td_log_write(log, TB_LOG_INFO, "session.created", "session=%s worlds=%d", "4f2a", 3);
    td_log_destroy(log);
    char *text = release();
    int year, month, day, hour, minute, second, micro;
    ck_assert_int_eq(sscanf(text, "%4d-%2d-%2dT%2d:%2d:%2d.%6dZ", &year, &month, &day, &hour,
                            &minute, &second, &micro),
                     7);
    ck_assert_str_eq(text + strlen("2026-01-31T12:00:00.123456Z"),
                     " INFO session.created session=4f2a worlds=3\n");
    free(text);
}
END_TEST

START_TEST(json_lines_keep_types)
{
    json_t *parsed;
    JSON_LINE(TB_LOG_WARNING, "queue.full",
              "length=%d wide=%" PRId64 " bytes=%zu seconds=%.3f name=%s digits=%s address=%s:%d",
              7, INT64_C(-1234567890123), (size_t)1 << 40, 0.25, "cup", "0042", "127.0.0.1", 80);
    ck_assert_str_eq(text_of(parsed, "level"), "warning");
    ck_assert_str_eq(text_of(parsed, "event"), "queue.full");
    ck_assert_int_eq(json_integer_value(json_object_get(parsed, "length")), 7);
    ck_assert_int_eq(json_integer_value(json_object_get(parsed, "wide")), -1234567890123);
    ck_assert_int_eq(json_integer_value(json_object_get(parsed, "bytes")), 1LL << 40);
    TEST_NEAR(json_real_value(json_object_get(parsed, "seconds")), 0.25, 0);
    /* text stays text, also where it looks like a number */
    ck_assert_str_eq(text_of(parsed, "digits"), "0042");
    ck_assert_str_eq(text_of(parsed, "address"), "127.0.0.1:80");
    json_decref(parsed);
}
END_TEST

START_TEST(numbers_that_are_none_are_text_in_json)
{
    json_t *parsed;
    JSON_LINE(TB_LOG_ERROR, "step.diverged", "residual=%g energy=%g star=%.*s", (double)NAN,
              (double)INFINITY, 2, "abcdef");
    ck_assert(strstr(text_of(parsed, "residual"), "nan") != NULL);
    ck_assert_str_eq(text_of(parsed, "energy"), "inf");
    ck_assert_str_eq(text_of(parsed, "star"), "ab");
    json_decref(parsed);
}
END_TEST

START_TEST(a_value_cannot_forge_a_field_or_a_line)
{
    const char *evil = "x owner=admin\n2026 ERROR \"all is lost\" \\ \x01 \xff\xc3\xa9";
    td_log *log = open_log(TB_LOG_DEBUG, false);
    capture();
    td_log_write(log, TB_LOG_INFO, "call", "label=%s owner=%s", evil, "");
    td_log_destroy(log);
    char *text = release();
    ck_assert_ptr_eq(strchr(text, '\n'), text + strlen(text) - 1);
    ck_assert_ptr_nonnull(
        strstr(text, "label=\"x owner=admin\\u000a2026 ERROR \\\"all is lost\\\""));
    ck_assert_ptr_nonnull(strstr(text, " owner=\"\"\n"));
    free(text);

    json_t *parsed;
    JSON_LINE(TB_LOG_INFO, "call", "label=%s owner=%s", evil, "");
    ck_assert_ptr_nonnull(strstr(text_of(parsed, "label"), "x owner=admin\n2026 ERROR"));
    ck_assert_ptr_nonnull(strstr(text_of(parsed, "label"), "\xef\xbf\xbd\xc3\xa9"));
    ck_assert_str_eq(text_of(parsed, "owner"), "");
    json_decref(parsed);
}
END_TEST

START_TEST(a_long_value_is_cut_and_the_line_stays_whole)
{
    char longest[20000];
    memset(longest, 'a', sizeof longest);
    for (size_t i = 0; i < sizeof longest - 1; i += 2) memcpy(longest + i, "\xc3\xa9", 2);
    longest[sizeof longest - 1] = '\0';
    json_t *parsed;
    JSON_LINE(TB_LOG_INFO, "call", "a=%s b=%s c=%s d=%s e=%s f=%s", longest, longest, longest,
              longest, longest, longest);
    json_decref(parsed);
}
END_TEST

START_TEST(what_is_below_the_level_is_not_written)
{
    td_log *log = open_log(TB_LOG_WARNING, false);
    capture();
    td_log_write(log, TB_LOG_INFO, "quiet", "n=%d", 1);
    td_log_write(log, TB_LOG_WARNING, "first", "n=%d", 2);
    td_log_set_level(log, TB_LOG_DEBUG);
    td_log_write(log, TB_LOG_DEBUG, "second", "n=%d", 3);
    td_log_write(NULL, TB_LOG_ERROR, "nowhere", "n=%d", 4);
    const tb_log hook = td_log_hook(log);
    hook.function(hook.context, TB_LOG_WARNING, "mesh 'cup' is open");
    char *text = release();
    td_log_destroy(log);
    ck_assert_ptr_null(strstr(text, "quiet"));
    ck_assert_ptr_null(strstr(text, "nowhere"));
    ck_assert_ptr_nonnull(strstr(text, " WARNING first n=2\n"));
    ck_assert_ptr_nonnull(strstr(text, " DEBUG second n=3\n"));
    ck_assert_ptr_nonnull(strstr(text, " WARNING library message=\"mesh 'cup' is open\"\n"));
    free(text);
}
END_TEST

static void *write_many(void *log)
{
    for (int i = 0; i < 500; i++)
        td_log_write(log, TB_LOG_INFO, "many", "thread=%s n=%d", "abcdefghijklmnopqrstuvwxyz", i);
    return NULL;
}

START_TEST(lines_of_several_threads_do_not_mix)
{
    enum { THREADS = 4 };
    pthread_t threads[THREADS];
    td_log *log = open_log(TB_LOG_INFO, true);
    capture();
    for (int i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, write_many, log);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    char *text = release(), *rest = text, *l;
    td_log_destroy(log);
    int lines = 0;
    while ((l = strsep(&rest, "\n")) != NULL && *l != '\0') {
        json_t *parsed = json_loads(l, 0, NULL);
        ck_assert_msg(parsed != NULL, "not JSON: %.300s", l);
        json_decref(parsed);
        lines++;
    }
    ck_assert_int_eq(lines, THREADS * 500);
    free(text);
}
END_TEST

START_TEST(the_tail_has_the_latest_lines_whole)
{
    static char text[TD_LOG_TAIL_SIZE + 1];
    char value[200];
    td_log *log = open_log(TB_LOG_INFO, false);
    ck_assert_uint_eq(td_log_tail(log, 5, text, sizeof text), 0);
    capture();
    for (int i = 0; i < 2000; i++) { /* more than is kept */
        snprintf(value, sizeof value, "%0*d", 1 + i % 90, i);
        td_log_write(log, TB_LOG_INFO, "test.line", "number=%d value=%s", i, value);
    }
    free(release());
    const size_t size = td_log_tail(log, 3, text, sizeof text);
    ck_assert_uint_eq(size, strlen(text));
    ck_assert_int_eq(text[size - 1], '\n');
    const char *at = text;
    for (int i = 1997; i < 2000; i++) {
        char expected[32];
        snprintf(expected, sizeof expected, "test.line number=%d ", i);
        const char *line = strstr(at, expected);
        ck_assert_msg(line != NULL, "no line %d in %s", i, text);
        at = line + 1;
    }
    int lines = 0;
    for (const char *c = text; *c != '\0'; c++) lines += *c == '\n';
    ck_assert_int_eq(lines, 3);

    /* all that is kept: no more than fits, no line cut */
    ck_assert_uint_gt(td_log_tail(log, 100000, text, sizeof text), TD_LOG_TAIL_SIZE - 400);
    ck_assert_int_eq(strncmp(text, "20", 2), 0);
    ck_assert_uint_lt(td_log_tail(log, 100000, text, 500), 500);
    ck_assert_int_eq(strncmp(text, "20", 2), 0);
    ck_assert_uint_eq(td_log_tail(NULL, 3, text, sizeof text), 0);
    td_log_destroy(log);
}
END_TEST

TEST_MAIN(the_tail_has_the_latest_lines_whole, a_text_line_has_time_level_event_and_fields,
          json_lines_keep_types, numbers_that_are_none_are_text_in_json,
          a_value_cannot_forge_a_field_or_a_line, a_long_value_is_cut_and_the_line_stays_whole,
          what_is_below_the_level_is_not_written, lines_of_several_threads_do_not_mix)
