/* Generated kernels on a played card: reductions side by side, calls inside of loops, kernels that are
 * compiled once, and machine code that is kept. */
#include <dirent.h>
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common_modelica.h"
#include "test_util.h"

enum { MOST_OUTPUTS = 8 };

static tb_function_program *compile_checked(const char *text)
{
    tb_error error = {0};
    tb_function_program *program = compile_text(text, &error);
    ck_assert_msg(program != NULL, "%s\n%s", error.message, text);
    return program;
}

/* Calls a function on each back end, compares the bytes of the outputs, and gives those of the card. */
static int64_t check_bytes(const tb_function_program *program, const char *name,
                           const tb_function_value *inputs, tb_function_value *outputs)
{
    tb_error error = {0};
    tb_function_info info;
    tb_function_timing timing = {0};
    tb_function_value other[MOST_OUTPUTS] = {{0}};
    const int32_t function = tb_function_find(program, name);
    tb_function_options options = tb_function_defaults();
    options.cache = "";
    options.backend = TB_FUNCTION_GPU;
    tb_function_describe(program, function, &info);
    ck_assert_msg(tb_function_call(program, function, &options, inputs, outputs, &timing, &error) ==
                      TB_OK,
                  "%s", error.message);
    for (int b = TB_FUNCTION_INTERPRETER; b <= TB_FUNCTION_CPU; b++) {
        ck_assert_msg(call_on(program, name, (tb_function_backend)b, inputs, other, &error) ==
                          TB_OK,
                      "%s", error.message);
        for (int32_t k = 0; k < info.outputs; k++) {
            ck_assert_int_eq(value_count(&other[k]), value_count(&outputs[k]));
            ck_assert_mem_eq(other[k].data, outputs[k].data, (size_t)value_count(&other[k]) * 8);
            tb_function_value_free(&other[k]);
        }
    }
    return timing.launches;
}

START_TEST(sums_of_arrays_are_trees_on_each_back_end)
{
    static const char SOURCE[] =
        "function f input Real x[:]; output Real y[4]; algorithm y[1] := sum(x); "
        "y[2] := sum(x[i] * x[i] for i in 1:size(x, 1)); y[3] := x * x; y[4] := max(x); "
        "annotation(gpuFunction = true); end f;";
    static const int64_t SIZES[] = {1, 63, 64, 65, 1000, 4095, 4096, 4097, 270000};
    play_card();
    tb_function_program *program = compile_checked(SOURCE);
    for (size_t k = 0; k < sizeof SIZES / sizeof SIZES[0]; k++) {
        tb_function_value x = real_array(1, &SIZES[k], 0.1, 2), y = {0};
        check_bytes(program, "f", &x, &y);
        double exact = 0, largest = -HUGE_VAL;
        for (int64_t i = 0; i < SIZES[k]; i++) {
            exact += value_at(&x, i);
            largest = fmax(largest, value_at(&x, i));
        }
        ck_assert_double_le(fabs(value_at(&y, 0) - exact), 1e-9 * (1 + fabs(exact)));
        ck_assert(value_at(&y, 1) == value_at(&y, 2) && value_at(&y, 3) == largest);
        tb_function_value_free(&x);
        tb_function_value_free(&y);
    }
    tb_function_destroy(program);
}
END_TEST

/* Smaller and larger side by side are those of the rounds in order: a tie keeps the first, which shows in the
 * sign of 0, and terms that are no numbers are passed over. */
START_TEST(extremes_are_those_of_the_order)
{
    static const char SOURCE[] =
        "function f input Real x[:]; input Integer k[size(x, 1)]; output Real y[4]; "
        "output Integer z[2]; protected Real a; Real b; Integer m; Integer n; algorithm "
        "a := 3; b := -3; m := 5; n := 5; for i in 1:size(x, 1) loop "
        "a := min(a, (x[i] * x[i] * 1e300) * 1e300 - (x[i] * x[i] * 1e300) * 1e300); "
        "b := max(b, x[i]); if k[i] > 100 then m := min(m, k[i]); end if; n := max(n, k[i]); "
        "end for; y := {a, b, min(x), 1 / (if min(abs(x)) > 0 then min(abs(x)) else 2)}; z := {m, "
        "n}; "
        "annotation(gpuFunction = true); end f;";
    const int64_t n = 5000;
    play_card();
    tb_function_program *program = compile_checked(SOURCE);
    tb_function_value x = real_array(1, &n, 0, 2), y[2] = {{0}};
    int64_t *k = calloc((size_t)n, sizeof *k);
    for (int64_t i = 0; i < n; i++) k[i] = (i * 7919) % 1009 - 500;
    ((double *)x.data)[77] = 0;
    tb_function_value inputs[] = {x,
                                  {.type = TB_FUNCTION_INTEGER, .rank = 1, .size = {n}, .data = k}};
    check_bytes(program, "f", inputs, y);
    /* inf - inf is no number in each round but the one with x = 0 */
    ck_assert(value_at(&y[0], 0) == 0 && value_at(&y[1], 0) == 5 && value_at(&y[1], 1) == 508);
    for (int i = 0; i < 2; i++) {
        tb_function_value_free(&inputs[i]);
        tb_function_value_free(&y[i]);
    }
    tb_function_destroy(program);
}
END_TEST

/* A sum in the rounds of a kernel is in order on each back end. */
START_TEST(sums_in_kernels_keep_their_order)
{
    static const char SOURCE[] =
        "function f input Real x[:, :]; output Real y[size(x, 1)]; output Real s; "
        "protected Real t; algorithm for i in 1:size(x, 1) loop y[i] := sum(x[i, :]); end for; "
        "t := 0; for i in 1:size(x, 1) loop t := t + x[i, 1]; end for; s := t + sum(y); "
        "annotation(gpuFunction = true); end f;";
    play_card();
    tb_function_program *program = compile_checked(SOURCE);
    tb_function_value x = grid(1200, 130, 0, 2), y[2] = {{0}};
    check_bytes(program, "f", &x, y);
    double first = 0;
    for (int64_t j = 0; j < 130; j++) first += value_at(&x, j);
    ck_assert(value_at(&y[0], 0) == first);
    tb_function_value_free(&x);
    tb_function_value_free(&y[0]);
    tb_function_value_free(&y[1]);
    tb_function_destroy(program);
}
END_TEST

/* ---- calls inside of loops ---- */

static void expect_report(const char *text, const char *name, const char *expected)
{
    tb_error error = {0};
    char *report = NULL;
    tb_function_program *program = compile_checked(text);
    ck_assert_int_eq(tb_function_report(program, tb_function_find(program, name), &report, &error),
                     TB_OK);
    ck_assert_msg(strstr(report, expected) != NULL, "%s -> %s", text, report);
    free(report);
    tb_function_destroy(program);
}

START_TEST(the_analysis_sees_through_calls)
{
#define HELPERS                                                                                    \
    "function own input Real y[:]; input Integer k; output Real z; algorithm z := 2 * y[k]; "      \
    "end own; function behind input Real y[:]; input Integer k; output Real z; "                   \
    "algorithm z := own(y, k - 1); end behind; function early input Real y[:]; input Integer k; "  \
    "output Real z; algorithm z := y[k]; return; end early; "
#define LOOP(call)                                                                                 \
    HELPERS "function f input Real x[:]; output Real y[size(x, 1)]; algorithm y := x; "            \
            "for i in 2:size(x, 1) loop y[i] := " call "; end for; "                               \
            "annotation(gpuFunction = true); end f;"
    expect_report(LOOP("own(y, i)"), "f", "kernel over (i)");
    expect_report(LOOP("behind(y, i + 1)"), "f", "kernel over (i)");
    expect_report(LOOP("behind(y, i)"), "f", "'y' is assigned and handed to 'behind'");
    expect_report(LOOP("early(y, i)"), "f", "'y' is assigned and handed to 'early'");
    play_card();
    tb_function_program *program = compile_checked(LOOP("behind(y, i + 1) + own(y, i)"));
    const int64_t n = 700;
    tb_function_value x = real_array(1, &n, 0, 2), y = {0};
    ck_assert_int_eq(check_bytes(program, "f", &x, &y), 1);
    tb_function_value_free(&x);
    tb_function_value_free(&y);
    tb_function_destroy(program);
}
END_TEST

/* Explicit Euler as the integrator writes it: calls of a function of rates with arrays as outputs. */
static const char RATES[] =
    "function rates input Real h[:, :]; input Real v[size(h, 1) + 1, size(h, 2)]; input Real c = "
    "3; "
    "output Real dh[size(h, 1), size(h, 2)]; output Real dv[size(h, 1) + 1, size(h, 2)]; "
    "protected Real q; algorithm "
    "for i in 1:size(h, 1), j in 1:size(h, 2) loop q := v[i, j] - v[i + 1, j]; "
    "dh[i, j] := c * q; end for; "
    "for i in 2:size(h, 1), j in 1:size(h, 2) loop dv[i, j] := h[i - 1, j] - h[i, j]; end for; "
    "annotation(gpuFunction = true); end rates;";

START_TEST(integrators_take_several_steps_a_launch)
{
    tb_error error = {0};
    char *source = NULL;
    play_card();
    tb_function_program *rates = compile_checked(RATES);
    ck_assert_int_eq(tb_function_integrator(rates, 0, TB_FUNCTION_EULER, &source, &error), TB_OK);
    expect_report(source, "rates_euler", "takes several rounds a launch, in tiles");
    tb_function_program *program = compile_checked(source);
    for (int64_t steps = 0; steps < 30; steps += steps < 4 ? 1 : 13) {
        tb_function_value y[2] = {{0}};
        tb_function_value inputs[] = {grid(45, 33, 8, 1), grid(46, 33, 0, 1), number(0.01),
                                      whole(steps)};
        const int64_t launches = check_bytes(program, "rates_euler", inputs, y);
        /* the first step by four kernels, then eight a launch along one dimension */
        ck_assert_msg(steps < 2 || launches <= 4 + (steps + 2) / 4, "%lld launches of %lld steps",
                      (long long)launches, (long long)steps);
        for (int k = 0; k < 4; k++) tb_function_value_free(&inputs[k]);
        for (int k = 0; k < 2; k++) tb_function_value_free(&y[k]);
    }
    tb_function_destroy(program);
    tb_function_destroy(rates);
    free(source);
}
END_TEST

/* ---- compilation ---- */

static int *compilations(void)
{
    int *count = (int *)dlsym(play_card(), "played_compilations");
    ck_assert_ptr_nonnull(count);
    return count;
}

/* The same sums and scalar products of three states are one kernel each. */
START_TEST(kernels_that_do_the_same_are_compiled_once)
{
    static const char SOURCE[] =
        "function rates input Real a[:]; input Real b[:]; input Real c[:]; "
        "output Real da[size(a, 1)]; output Real db[size(b, 1)]; output Real dc[size(c, 1)]; "
        "algorithm da := -a; db := -2 * b; dc := -3 * c; annotation(gpuFunction = true); end "
        "rates;";
    tb_error error = {0};
    char *source = NULL;
    const int *kernels = (const int *)dlsym(play_card(), "played_kernels");
    ck_assert_ptr_nonnull(kernels);
    tb_function_program *rates = compile_checked(SOURCE);
    ck_assert_int_eq(tb_function_integrator(rates, 0, TB_FUNCTION_IMPLICIT_EULER, &source, &error),
                     TB_OK);
    tb_function_program *program = compile_checked(source);
    tb_function_value y[3] = {{0}};
    tb_function_value inputs[] = {line_of(1100, 1), line_of(1200, 2), line_of(1300, 3), number(0.5),
                                  whole(2)};
    check_bytes(program, "rates_implicit_euler", inputs, y);
    for (int k = 0; k < 3; k++) {
        const double exact = (k + 1) / pow(1 + 0.5 * (k + 1), 2);
        ck_assert_double_le(fabs(value_at(&y[k], 1000) - exact), 1e-9);
        tb_function_value_free(&y[k]);
    }
    ck_assert_int_le(*kernels, 16);
    for (int k = 0; k < 5; k++) tb_function_value_free(&inputs[k]);
    tb_function_destroy(program);
    tb_function_destroy(rates);
    free(source);
}
END_TEST

static int files_in(const char *folder, const char *ending)
{
    int count = 0;
    DIR *directory = opendir(folder);
    for (struct dirent *e; directory != NULL && (e = readdir(directory)) != NULL;)
        count += strstr(e->d_name, ending) != NULL;
    if (directory != NULL) closedir(directory);
    return count;
}

static void call_cached(const char *folder, double factor)
{
    char text[400];
    tb_error error = {0};
    snprintf(text, sizeof text,
             "function f input Real x[:]; output Real y[size(x, 1)]; algorithm "
             "for i in 1:size(x, 1) loop y[i] := %g * x[i]; end for; "
             "annotation(gpuFunction = true); end f;",
             factor);
    tb_function_program *program = compile_checked(text);
    tb_function_options options = tb_function_defaults();
    tb_function_value x = line_of(9, 2), y = {0};
    options.backend = TB_FUNCTION_GPU;
    options.cache = folder;
    ck_assert_msg(tb_function_call(program, 0, &options, &x, &y, NULL, &error) == TB_OK, "%s",
                  error.message);
    ck_assert(value_at(&y, 8) == 2 * factor);
    tb_function_value_free(&x);
    tb_function_value_free(&y);
    tb_function_destroy(program);
}

START_TEST(machine_code_outlives_its_program)
{
    char folder[] = "/tmp/tribo-test-XXXXXX", path[400];
    int *count = compilations();
    ck_assert_ptr_nonnull(mkdtemp(folder));
    const int before = *count;
    call_cached(folder, 3);
    call_cached(folder, 3);
    ck_assert_int_eq(*count, before + 1);
    call_cached(folder, 4);
    ck_assert_int_eq(*count, before + 2);
    ck_assert_int_eq(files_in(folder, ".cubin"), 2);
    /* a file that others can write is not loaded */
    DIR *directory = opendir(folder);
    for (struct dirent *e; (e = readdir(directory)) != NULL;) {
        snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        if (strstr(e->d_name, ".cubin") != NULL) chmod(path, 0666);
    }
    call_cached(folder, 3);
    ck_assert_int_eq(*count, before + 3);
    rewinddir(directory);
    for (struct dirent *e; (e = readdir(directory)) != NULL;) {
        snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        unlink(path);
    }
    closedir(directory);
    rmdir(folder);
}
END_TEST

TEST_MAIN(sums_of_arrays_are_trees_on_each_back_end, extremes_are_those_of_the_order,
          sums_in_kernels_keep_their_order, the_analysis_sees_through_calls,
          integrators_take_several_steps_a_launch, kernels_that_do_the_same_are_compiled_once,
          machine_code_outlives_its_program)
