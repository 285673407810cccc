/* W3C's header traceparent: accepted and ignored values. */
#include <string.h>

#include "trace/trace.h"
#include "test_util.h"

#define ID     "4bf92f3577b34da6a3ce929d0e0e4736"
#define PARENT "00f067aa0ba902b7"

static td_trace read_text(const char *text)
{
    td_trace trace;
    memset(&trace, 0xff, sizeof trace);
    td_trace_read(&trace, text, strlen(text));
    return trace;
}

START_TEST(a_trace_is_read)
{
    const td_trace one = read_text("00-" ID "-" PARENT "-01"),
                   two = read_text("00-" ID "-" PARENT "-02");
    ck_assert(one.given && one.sampled && two.given && !two.sampled);
    ck_assert_str_eq(one.id, ID);
    ck_assert_str_eq(one.parent_id, PARENT);
    ck_assert_uint_eq(strlen(one.span_id), 16);
    ck_assert_uint_eq(strspn(one.span_id, "0123456789abcdef"), 16);
    ck_assert_str_ne(one.span_id, two.span_id);
    /* a later version may append fields */
    ck_assert(read_text("cc-" ID "-" PARENT "-01-what-is-new").given);
    ck_assert(read_text("cc-" ID "-" PARENT "-01").given);
}
END_TEST

START_TEST(other_values_are_ignored)
{
    static const char *const WRONG[] = {
        "",
        "00",
        "00-" ID "-" PARENT "-0",
        "00-" ID "-" PARENT "-01-",
        "00-" ID "-" PARENT "-0g",
        "ff-" ID "-" PARENT "-01",
        "0x-" ID "-" PARENT "-01",
        "cc-" ID "-" PARENT "-01.more",
        "00-4BF92F3577B34DA6A3CE929D0E0E4736-" PARENT "-01",
        "00-00000000000000000000000000000000-" PARENT "-01",
        "00-" ID "-0000000000000000-01",
        "00_" ID "-" PARENT "-01",
        "00-" ID "_" PARENT "-01",
        "00-" ID "-" PARENT "_01",
        "00-" ID "-" PARENT "\n-01",
    };
    for (size_t i = 0; i < sizeof WRONG / sizeof WRONG[0]; i++) {
        const td_trace trace = read_text(WRONG[i]);
        ck_assert_msg(!trace.given && !trace.sampled && trace.id[0] == '\0', "%s", WRONG[i]);
    }
}
END_TEST

START_TEST(tracestate_is_kept_in_either_order)
{
    td_trace trace = {0};
    char wide[TD_TRACE_STATE_BYTES + 1];
    td_trace_read_state(&trace, "a=1", 3);
    td_trace_read(&trace, "00-" ID "-" PARENT "-01", 55);
    td_trace_read_state(&trace, "b=2,c=3", 7);
    ck_assert(trace.given && trace.sampled);
    ck_assert_str_eq(trace.state, "a=1,b=2,c=3");

    memset(wide, 'x', sizeof wide);
    td_trace_read_state(&trace, wide, sizeof wide);
    ck_assert_str_eq(trace.state, "");
    td_trace_read_state(&trace, wide, sizeof wide - 1);
    ck_assert_uint_eq(strlen(trace.state), TD_TRACE_STATE_BYTES);
    td_trace_read_state(&trace, "a=1", 3);
    ck_assert_str_eq(trace.state, "");
    td_trace_read_state(&trace, "a=\xff", 3);
    ck_assert_str_eq(trace.state, "");
}
END_TEST

TEST_MAIN(a_trace_is_read, other_values_are_ignored, tracestate_is_kept_in_either_order)
