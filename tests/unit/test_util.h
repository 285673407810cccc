/* Shared by all unit tests: a main made from a list of tests, and a few checks.
 *
 *     #include "test_util.h"
 *
 *     START_TEST(a_box_has_the_moments_of_a_box)
 *     {
 *         TEST_NEAR(ixx, 2.0 / 3.0, 1e-12);
 *     }
 *     END_TEST
 *
 *     TEST_MAIN(a_box_has_the_moments_of_a_box, another_test)
 *
 * Test names are sentences. Each is a libcheck case of its own, so CK_RUN_CASE=name runs one,
 * and CK_FORK=no keeps them in one process for a debugger or a sanitizer. */
#ifndef TEST_UTIL_H
#define TEST_UTIL_H

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tribo.h"

/* Seconds one test may take before libcheck ends it; CK_DEFAULT_TIMEOUT overrules. */
#define TEST_TIMEOUT_S 60

/* |actual - expected| <= tolerance; not a number fails */
#define TEST_NEAR(actual, expected, tolerance)                                                     \
    do {                                                                                           \
        const double test_a_ = (double)(actual), test_e_ = (double)(expected);                     \
        ck_assert_msg(fabs(test_a_ - test_e_) <= (double)(tolerance),                              \
                      "%s is %.17g, not %.17g (off by %.3g, tolerance %s)", #actual, test_a_,      \
                      test_e_, test_a_ - test_e_, #tolerance);                                     \
    } while (0)

/* the same relative to the expected value */
#define TEST_NEAR_RELATIVE(actual, expected, tolerance)                                            \
    do {                                                                                           \
        const double test_r_ = (double)(expected);                                                 \
        TEST_NEAR(actual, test_r_, fabs(test_r_) * (double)(tolerance));                           \
    } while (0)

/* checks that a tb_status is as expected; `error` (tb_error *, may be NULL) gives the reason if
 * not */
#define TEST_STATUS(actual, expected, error)                                                       \
    do {                                                                                           \
        const tb_error *test_error_ = (error);                                                     \
        const tb_status test_s_ = (actual), test_w_ = (expected);                                  \
        ck_assert_msg(test_s_ == test_w_, "%s gave %s, not %s: %s", #actual,                       \
                      tb_status_name(test_s_), tb_status_name(test_w_),                            \
                      test_s_ != TB_OK && test_error_ != NULL ? test_error_->message : "");        \
    } while (0)

#define TEST_OK(actual, error) TEST_STATUS(actual, TB_OK, error)

/* Runs the tests of a list, each as a case of its name; 0 if all passed. */
static inline int test_run(const char *file, const TTest *const *tests, size_t count)
{
    const char *slash = strrchr(file, '/');
    Suite *suite = suite_create(slash != NULL ? slash + 1 : file);
    for (size_t i = 0; i < count; i++) {
        TCase *test_case = tcase_create(tests[i]->name);
        if (getenv("CK_DEFAULT_TIMEOUT") == NULL) tcase_set_timeout(test_case, TEST_TIMEOUT_S);
        tcase_add_test(test_case, tests[i]);
        suite_add_tcase(suite, test_case);
    }
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed > 0;
}

#define TEST_MAIN(...)                                                                             \
    int main(void)                                                                                 \
    {                                                                                              \
        const TTest *const tests[] = {__VA_ARGS__};                                                \
        return test_run(__FILE__, tests, sizeof tests / sizeof tests[0]);                          \
    }

#endif
