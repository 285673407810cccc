/* Kernels of the models in tests/data/modelica on a played card: the same bytes as the interpreter
 * and compiled C, and failures with their place. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common_modelica.h"
#include "test_util.h"

static char *read_text(const char *path)
{
    char *text = calloc(1, 1 << 16);
    FILE *file = fopen(path, "r");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_gt(fread(text, 1, (1 << 16) - 1, file), 0);
    fclose(file);
    return text;
}

/* Calls a function by all back ends and compares the bytes of the outputs. */
static void check_model(const char *file, const char *name, tb_function_value *inputs, int count)
{
    char path[256];
    tb_error error = {0};
    tb_function_info info;
    tb_function_value outputs[3][8] = {{{0}}};
    snprintf(path, sizeof path, "tests/data/modelica/%s", file);
    char *text = read_text(path);
    tb_function_program *program = compile_text(text, &error);
    ck_assert_msg(program != NULL, "%s", error.message);
    tb_function_describe(program, tb_function_find(program, name), &info);
    for (int b = 0; b < 3; b++) {
        const tb_status status =
            call_on(program, name, (tb_function_backend)(b + 1), inputs, outputs[b], &error);
        ck_assert_msg(status == TB_OK, "%s on %d: %s", name, b + 1, error.message);
    }
    for (int b = 1; b < 3; b++)
        for (int32_t k = 0; k < info.outputs; k++) {
            const long long n = value_count(&outputs[0][k]);
            ck_assert_int_eq(value_count(&outputs[b][k]), n);
            ck_assert_mem_eq(outputs[b][k].data, outputs[0][k].data, (size_t)n * 8);
        }
    for (int b = 0; b < 3; b++)
        for (int32_t k = 0; k < info.outputs; k++) tb_function_value_free(&outputs[b][k]);
    for (int k = 0; k < count; k++) tb_function_value_free(&inputs[k]);
    tb_function_destroy(program);
    free(text);
}

#define CHECK_MODEL(file, name, ...)                                                               \
    do {                                                                                           \
        tb_function_value inputs[] = {__VA_ARGS__};                                                \
        check_model(file, name, inputs, (int)(sizeof inputs / sizeof inputs[0]));                  \
    } while (0)

START_TEST(models_give_the_same_bytes_on_each_back_end)
{
    const tb_function_value none = {0};
    play_card();
    CHECK_MODEL("matmul.mo", "multiply", grid(20, 30, 0, 2), grid(30, 10, 0, 2));
    /* tiles, of which some are not full */
    CHECK_MODEL("matmul.mo", "multiply", grid(70, 37, 0, 2), grid(37, 90, 0, 2));
    CHECK_MODEL("matmul.mo", "multiply", grid(130, 34, 0, 2), grid(34, 66, 0, 2));
    CHECK_MODEL("matmul.mo", "multiply", grid(64, 3, 0, 2), grid(3, 31, 0, 2));
    CHECK_MODEL("shallow_water.mo", "euler", grid(16, 16, 8, 1), grid(17, 16, 0, 0),
                grid(16, 17, 0, 0), none, none, number(0.01), whole(40));
    CHECK_MODEL("shallow_water.mo", "euler", grid(40, 27, 8, 1), grid(41, 27, 0, 0),
                grid(40, 28, 0, 0), none, none, number(0.01), whole(11));
    CHECK_MODEL("stam.mo", "jacobi", grid(37, 52, 1, 1), number(0.5), number(3), whole(9));
    CHECK_MODEL("stam.mo", "red_black", grid(37, 52, 1, 1), number(0.5), number(3), whole(7));
    CHECK_MODEL("shallow_water.mo", "runge_kutta", grid(8, 8, 8, 1), grid(9, 8, 0, 0),
                grid(8, 9, 0, 0), none, none, number(0.01), whole(10));
    CHECK_MODEL("cold_plates.mo", "simulate", grid(16, 8, 295, 0), line_of(16, 100500),
                line_of(16, 295), none, whole(10));
    CHECK_MODEL("stam.mo", "step", grid(18, 18, 0, 1), grid(18, 18, 0, 1), grid(18, 18, 1, 1), none,
                none, none, whole(1), none);
    CHECK_MODEL("airflow.mo", "flows", real_array(3, (int64_t[]){5, 6, 7}, 295, 10),
                real_array(3, (int64_t[]){5, 6, 7}, 0, 1),
                real_array(3, (int64_t[]){5, 6, 7}, 0, 1),
                real_array(3, (int64_t[]){5, 6, 7}, 0, 1), none);
}
END_TEST

START_TEST(a_kernel_fails_at_the_first_round_that_does)
{
    static const char SOURCE[] =
        "function f\n  input Real x[:];\n  input Integer shift;\n  output Real y[size(x, 1)];\n"
        "algorithm\n  for i in 1:size(x, 1) loop\n    y[i] := 1 / x[i + shift];\n  end for;\n"
        "  annotation(gpuFunction = true);\nend f;\n";
    tb_error error = {0};
    tb_function_value y = {0};
    play_card();
    tb_function_program *program = compile_text(SOURCE, &error);
    ck_assert_msg(program != NULL, "%s", error.message);
    tb_function_value inputs[] = {line_of(700, 2), whole(1)};
    ck_assert_int_eq(call_on(program, "f", TB_FUNCTION_GPU, inputs, &y, &error),
                     TB_INVALID_ARGUMENT);
    ck_assert_str_eq(error.message,
                     "test.mo:7:17: index 701 is outside of 1:700 in dimension 1 of 'x'");
    *(int64_t *)inputs[1].data = 0;
    ck_assert_int_eq(call_on(program, "f", TB_FUNCTION_GPU, inputs, &y, &error), TB_OK);
    ck_assert(value_at(&y, 699) == 0.5);
    tb_function_value_free(&y);
    ((double *)inputs[0].data)[3] = 0;
    ck_assert_int_eq(call_on(program, "f", TB_FUNCTION_GPU, inputs, &y, &error),
                     TB_INVALID_ARGUMENT);
    ck_assert_str_eq(error.message, "test.mo:7:15: division by zero");
    tb_function_value_free(&inputs[0]);
    tb_function_value_free(&inputs[1]);
    tb_function_destroy(program);
}
END_TEST

START_TEST(reductions_keep_the_order_of_the_rounds)
{
    static const char SOURCE[] =
        "function f\n  input Real x[:, :];\n  input Integer k[:];\n  output Real y[6];\n"
        "  output Integer z[2];\n  output Real d[size(x, 1), size(x, 2)];\nprotected\n"
        "  Real s;\n  Real p;\n  Integer n;\nalgorithm\n"
        "  y[1] := sum(x);\n  y[2] := max(x);\n  y[3] := min(x);\n  s := 3;\n  p := 1;\n"
        "  for i in 1:size(x, 1), j in 1:size(x, 2) loop\n"
        "    if x[i, j] > 0 then\n      s := s + x[i, j] / 3;\n    end if;\n"
        "    p := p * (1 + 1e-3 * x[i, j]);\n    d[i, j] := 2 * x[i, j];\n  end for;\n"
        "  y[4] := s;\n  y[5] := p;\n  y[6] := sum(d);\n  n := 0;\n"
        "  for i in 1:size(k, 1) loop\n    n := n + k[i];\n  end for;\n"
        "  z[1] := n;\n  z[2] := max(k);\n"
        "  annotation(gpuFunction = true);\nend f;\n";
    tb_error error = {0};
    tb_function_value y[3][3] = {{{0}}};
    int64_t *whole_numbers = calloc(1500, sizeof *whole_numbers);
    for (int64_t k = 0; k < 1500; k++) whole_numbers[k] = k * k % 77;
    tb_function_value inputs[] = {
        grid(60, 40, 0, 2),
        {.type = TB_FUNCTION_INTEGER, .rank = 1, .size = {1500}, .data = whole_numbers}};
    play_card();
    tb_function_program *program = compile_text(SOURCE, &error);
    ck_assert_msg(program != NULL, "%s", error.message);
    for (int b = 0; b < 3; b++)
        ck_assert_msg(call_on(program, "f", (tb_function_backend)(b + 1), inputs, y[b], &error) ==
                          TB_OK,
                      "%s", error.message);
    for (int b = 1; b < 3; b++)
        for (int k = 0; k < 3; k++)
            ck_assert_mem_eq(y[b][k].data, y[0][k].data, (size_t)value_count(&y[0][k]) * 8);
    /* the sum leaves Integer at its 1000th term, for all back ends */
    for (int k = 0; k < 3; k++) tb_function_value_free(&y[0][k]);
    whole_numbers[998] = INT64_MAX / 2;
    whole_numbers[999] = INT64_MAX / 2;
    for (int b = 0; b < 3; b++) {
        ck_assert_int_eq(call_on(program, "f", (tb_function_backend)(b + 1), inputs, y[0], &error),
                         TB_INVALID_ARGUMENT);
        ck_assert_str_eq(error.message, "test.mo:29:12: the result is outside of Integer");
    }
    for (int b = 0; b < 3; b++)
        for (int k = 0; k < 3; k++) tb_function_value_free(&y[b][k]);
    tb_function_value_free(&inputs[0]);
    tb_function_value_free(&inputs[1]);
    tb_function_destroy(program);
}
END_TEST

/* A sequential loop of stencils: launches that take several rounds, and the first failure of them. */
static tb_status call_sweep(const char *body, tb_function_value *x, int64_t *launches,
                            tb_error *error)
{
    char text[1024];
    snprintf(
        text, sizeof text,
        "function f\n input Real x0[:, :];\n input Integer n;\n"
        " output Real x[size(x0, 1), size(x0, 2)];\nprotected\n Real q;\nalgorithm\n x := x0;\n"
        " for s in 1:n loop\n  for i in 2:size(x0, 1) - 1, j in 1:size(x0, 2) loop\n   %s\n"
        "  end for;\n end for;\n annotation(gpuFunction = true);\nend f;\n",
        body);
    tb_function_program *program = compile_text(text, error);
    ck_assert_msg(program != NULL, "%s", error->message);
    tb_function_value inputs[] = {grid(50, 40, 1, 0.5), whole(10)}, on_host = {0};
    tb_function_options options = tb_function_defaults();
    tb_function_timing timing = {0};
    options.backend = TB_FUNCTION_GPU;
    const tb_status status = tb_function_call(program, 0, &options, inputs, x, &timing, error);
    *launches = timing.launches;
    if (status == TB_OK) {
        ck_assert_int_eq(call_on(program, "f", TB_FUNCTION_INTERPRETER, inputs, &on_host, error),
                         TB_OK);
        ck_assert_mem_eq(x->data, on_host.data, 50 * 40 * 8);
        tb_function_value_free(&on_host);
    }
    tb_function_value_free(x);
    tb_function_value_free(&inputs[0]);
    tb_function_value_free(&inputs[1]);
    tb_function_destroy(program);
    return status;
}

START_TEST(sweeps_take_several_rounds_a_launch)
{
    static const struct {
        const char *body;
        int64_t launches;
        const char *error;
    } CASES[] = {
        /* no reach: 64 rounds a launch at most */
        {"x[i, j] := 0.9 * x[i, j] + x0[i, j];", 1, NULL},
        /* an array that no round stores is read anywhere */
        {"x[i, j] := x[i, j] + x0[i - 1, size(x0, 2) + 1 - j];", 1, NULL},
        /* the round as a factor */
        {"x[i, j] := x[i, j] + 0.1 * s * x[i, j];", 1, NULL},
        {"x[i, j] := if i == 30 and s == 6 then 1 / (x[i, j] - x[i, j]) else x[i, j];", 1,
         "test.mo:11:44: division by zero"},
        {"x[i, j] := if i == 7 and s >= 3 then x[i, j + s] else x[i, j];", 10,
         "test.mo:11:41: index 41 is outside of 1:40 in dimension 2 of 'x'"},
    };
    play_card();
    for (size_t k = 0; k < sizeof CASES / sizeof CASES[0]; k++) {
        tb_error error = {0};
        tb_function_value x = {0};
        int64_t launches = 0;
        const tb_status status = call_sweep(CASES[k].body, &x, &launches, &error);
        ck_assert_msg(status == TB_OK ? CASES[k].error == NULL : CASES[k].error != NULL, "%zu: %s",
                      k, error.message);
        if (status == TB_OK) ck_assert_int_eq(launches, CASES[k].launches);
        if (status != TB_OK) ck_assert_str_eq(error.message, CASES[k].error);
    }
}
END_TEST

/* A sweep over a matrix on each back end; launches of the card, and how many of them were cooperative. */
static void check_sweep(const char *body, int64_t rows, int64_t columns, int64_t rounds,
                        const char *expected, int64_t launches, int cooperative)
{
    char text[1024];
    tb_error error = {0};
    play_card();
    void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    const int *together = (const int *)dlsym(driver, "played_together");
    snprintf(text, sizeof text,
             "function f\n input Real x0[:, :];\n input Integer n;\n"
             " output Real x[size(x0, 1), size(x0, 2)];\nprotected\n Integer m = size(x0, 1);\n"
             " Real y[size(x0, 1), size(x0, 2)];\nalgorithm\n x := x0;\n y := x0;\n"
             " for s in 1:n loop\n  for i in 3:m - 2, j in 2:size(x0, 2) loop\n   %s\n"
             "  end for;\n  x := y;\n end for;\n annotation(gpuFunction = true);\nend f;\n",
             body);
    tb_function_program *program = compile_text(text, &error);
    ck_assert_msg(program != NULL, "%s", error.message);
    tb_function_value inputs[] = {grid(rows, columns, 1, 0.5), whole(rounds)}, x[2] = {{0}};
    tb_function_options options = tb_function_defaults();
    tb_function_timing timing = {0};
    options.backend = TB_FUNCTION_GPU;
    const int before = *together;
    const tb_status status = tb_function_call(program, 0, &options, inputs, x, &timing, &error);
    ck_assert_msg(*together - before == cooperative, "%d together, %d launches, %s: %s",
                  *together - before, (int)timing.launches, body, error.message);
    if (expected != NULL) {
        ck_assert_int_eq(status, TB_INVALID_ARGUMENT);
        ck_assert_str_eq(error.message, expected);
    } else {
        ck_assert_msg(status == TB_OK, "%s", error.message);
        ck_assert_int_eq(timing.launches, launches);
        ck_assert_int_eq(call_on(program, "f", TB_FUNCTION_CPU, inputs, &x[1], &error), TB_OK);
        ck_assert_mem_eq(x[0].data, x[1].data, (size_t)(rows * columns) * 8);
    }
    for (int k = 0; k < 2; k++) {
        tb_function_value_free(&x[k]);
        tb_function_value_free(&inputs[k]);
    }
    tb_function_destroy(program);
}

/* Blocks that the card runs at once exchange their rims inside of a launch, and give the bytes of single
 * launches; failures of later groups of rounds keep their order. */
START_TEST(blocks_of_a_sweep_wait_for_their_neighbours)
{
    static const char MEAN[] = "y[i, j] := 0.5 * x[i, j] + 0.25 * (x[i - 2, j] + x[i, j - 1]);";
    /* one block; four, of which some are narrower than their rim; more than the card runs at once */
    check_sweep("y[i, j] := x[i - 2, j] + 0.1 * x[i + 2, j];", 20, 20, 9, NULL, 1, 1);
    check_sweep(MEAN, 27, 31, 23, NULL, 1, 1);
    check_sweep(MEAN, 47, 33, 23, NULL, 1, 1);
    check_sweep(MEAN, 70, 70, 7, NULL, 2, 0);
    /* all rounds are one group: blocks need not wait */
    check_sweep(MEAN, 27, 31, 4, NULL, 1, 0);
    /* failures are looked for after 250 groups of two rounds */
    check_sweep("y[i, j] := 0.5 * (x[i - 2, j] + x[i + 2, j]);", 9, 7, 510, NULL, 2, 2);
    /* the earliest failure is told, though another block has one in a later round */
    check_sweep(
        "y[i, j] := if i == m - 2 and s == 6 then 1 / (x[i, j] - x[i, j]) elseif i == 3 and "
        "s > 6 then x0[i, j + 40] else 0.5 * x[i - 2, j] + 0.25 * x[i + 2, j];",
        27, 28, 20, "test.mo:13:47: division by zero", 0, 1);
}
END_TEST

/* loops that are kernels, and the reasons of those that are not */
START_TEST(the_report_names_the_access)
{
    static const struct {
        const char *body, *report;
    } CASES[] = {
        {"for i in 1:n loop y[i] := x[i]; end for;", "kernel over (i)"},
        {"for i in 2:n loop y[i] := y[i - 1]; end for;", "y[i - 1] may be read"},
        {"for i in 1:n loop y[1] := x[i]; end for;", "y[1] may be assigned"},
        {"s := 0; for i in 1:n loop s := s + x[i]; end for; y[1] := s;",
         "kernel over (i), which reduces 's'"},
        {"s := 0; for i in 1:n loop s := s + x[i]; s := s * 2; end for; y[1] := s;",
         "'s' is a reduction"},
        {"s := 0; for i in 1:n loop if x[i] > 0 then s := s + x[i]; else s := 1; end if; end for; "
         "y[1] := s;",
         "stays on the host"},
        {"for i in 1:n loop s := x[i]; y[i] := s; end for;", "kernel over (i)"},
        {"for i in 1:n loop s := x[i]; end for; y[1] := s;", "behind the loop"},
        {"for i in 1:n loop y[i] := s; s := x[i]; end for;", "before its round assigns it"},
        {"for i in 1:n loop if x[i] > 1 then break; end if; end for;", "break leaves the loop"},
        {"for i in 2:n - 1 loop if mod(i, 2) == 0 then y[i] := y[i - 1]; end if; end for;",
         "kernel over (i)"},
        {"for i in 3:n loop if mod(i, 2) == 0 then y[i] := y[i - 2]; end if; end for;",
         "y[i - 2] may be read"},
        {"for i in 2:n loop if mod(i + integer(x[1]), 2) == 0 then y[i] := y[i - 1]; end if; end "
         "for;",
         "y[i - 1] may be read"},
        {"for i in 1:2:n loop y[i] := 1; end for;", "step of the loop is not 1"},
        {"for i in 1:n loop y[integer(x[i])] := 1; end for;", "y[...] may be assigned"},
    };
    for (size_t k = 0; k < sizeof CASES / sizeof CASES[0]; k++) {
        char text[1024], *report = NULL;
        tb_error error = {0};
        snprintf(
            text, sizeof text,
            "function f input Real x[:]; output Real y[size(x, 1)]; protected Real s; "
            "Integer n = size(x, 1); algorithm y := x; %s annotation(gpuFunction = true); end f;",
            CASES[k].body);
        tb_function_program *program = compile_text(text, &error);
        ck_assert_msg(program != NULL, "%s", error.message);
        ck_assert_int_eq(tb_function_report(program, 0, &report, &error), TB_OK);
        ck_assert_msg(strstr(report, CASES[k].report) != NULL, "%s -> %s", CASES[k].body, report);
        free(report);
        tb_function_destroy(program);
    }
}
END_TEST

TEST_MAIN(models_give_the_same_bytes_on_each_back_end, a_kernel_fails_at_the_first_round_that_does,
          reductions_keep_the_order_of_the_rounds, sweeps_take_several_rounds_a_launch,
          blocks_of_a_sweep_wait_for_their_neighbours, the_report_names_the_access)
