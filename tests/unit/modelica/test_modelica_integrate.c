/* Generated integrators: one step's factor of each method for x' = k x, implicit Euler for stiff,
 * coupled and nonlinear rates, and functions that are no rates. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common_modelica.h"
#include "test_util.h"

static tb_function_value three(double a, double b, double c)
{
    double *data = malloc(3 * sizeof *data);
    memcpy(data, (double[]){a, b, c}, 3 * sizeof *data);
    return (tb_function_value){.type = TB_FUNCTION_REAL, .rank = 1, .size = {3}, .data = data};
}

/* Integrates the function of rates that the source holds; takes the inputs. */
static void integrate(const char *source, tb_function_method method, tb_function_value *inputs,
                      int count, tb_function_value *outputs)
{
    tb_error error = {0};
    char *more = NULL, name[64];
    tb_function_program *rates = compile_text(source, &error);
    ck_assert_msg(rates != NULL, "%s", error.message);
    ck_assert_msg(tb_function_integrator(rates, 0, method, &more, &error) == TB_OK, "%s",
                  error.message);
    tb_function_program *program = compile_text(more, &error);
    ck_assert_msg(program != NULL, "%s\n%s", error.message, more);
    snprintf(name, sizeof name, "rates_%s", tb_function_method_name(method));
    ck_assert_msg(call_on(program, name, TB_FUNCTION_INTERPRETER, inputs, outputs, &error) == TB_OK,
                  "%s", error.message);
    for (int k = 0; k < count; k++) tb_function_value_free(&inputs[k]);
    tb_function_destroy(program);
    tb_function_destroy(rates);
    free(more);
}

static void check_near(double x, double expected, double tolerance)
{
    ck_assert_msg(fabs(x - expected) <= tolerance * (1 + fabs(expected)), "%.17g, expected %.17g",
                  x, expected);
}

START_TEST(each_method_has_its_factor)
{
    static const char SOURCE[] =
        "function rates input Real x[:]; input Real k; input Real unused = 7; "
        "output Real dx[size(x, 1)]; algorithm dx := k * x; end rates;";
    const double z = -0.25;
    const double factor[] = {1 + z, 1 + z + z * z / 2,
                             1 + z + z * z / 2 + z * z * z / 6 + z * z * z * z / 24, 1 / (1 - z)};
    for (int m = 0; m < 4; m++) {
        tb_function_value inputs[] = {three(1, -2, 3), number(-0.5), number(0.5), whole(3)};
        tb_function_value x = {0};
        integrate(SOURCE, (tb_function_method)m, inputs, 4, &x);
        for (int k = 0; k < 3; k++)
            check_near(value_at(&x, k), (double[]){1, -2, 3}[k] * pow(factor[m], 3), 1e-12);
        tb_function_value_free(&x);
    }
}
END_TEST

START_TEST(implicit_euler_bears_stiff_and_nonlinear_rates)
{
    /* dt k = 1e4: explicit methods would be off by 1e4 in a step */
    static const char STIFF[] =
        "function rates input Real x[:]; output Real dx[size(x, 1)]; "
        "algorithm dx := {-1e6 * x[1], -x[2] * x[2] * x[2], -1e6 * (x[3] - x[1])}; end rates;";
    tb_function_value inputs[] = {three(1, 2, 3), number(0.01), whole(1)}, x = {0};
    integrate(STIFF, TB_FUNCTION_IMPLICIT_EULER, inputs, 3, &x);
    const double first = 1 / (1 + 1e4), second = value_at(&x, 1);
    check_near(value_at(&x, 0), first, 1e-10);
    check_near(second + 0.01 * second * second * second, 2, 1e-10);
    check_near(value_at(&x, 2), (3 + 1e4 * first) / (1 + 1e4), 1e-10);
    tb_function_value_free(&x);

    /* a pendulum's two states, which its rates exchange: (I - dt J) is 2 x 2 */
    static const char COUPLED[] = "function rates input Real p; input Real v; output Real dp; "
                                  "output Real dv; algorithm dp := v; dv := -9 * p; end rates;";
    tb_function_value two[] = {number(1), number(0), number(0.5), whole(1)}, out[2] = {{0}};
    integrate(COUPLED, TB_FUNCTION_IMPLICIT_EULER, two, 4, out);
    check_near(value_at(&out[0], 0), 1 / (1 + 0.25 * 9), 1e-10);
    check_near(value_at(&out[1], 0), -0.5 * 9 / (1 + 0.25 * 9), 1e-10);
    tb_function_value_free(&out[0]);
    tb_function_value_free(&out[1]);
}
END_TEST

START_TEST(functions_that_are_no_rates_are_refused)
{
    static const struct {
        const char *source, *message;
    } CASES[] = {
        {"function f input Real x; output Real y[2]; algorithm y := {x, x}; end f;",
         "output 'y' of 'f' is no rate of its input 'x'"},
        {"function f input Integer x; output Integer y; algorithm y := x; end f;", "is no rate"},
        {"function f input Real x = 1; output Real y; algorithm y := x; end f;", "is no rate"},
        {"function f output Real y; algorithm y := 1; end f;", "has 0 inputs and 1 outputs"},
    };
    for (size_t k = 0; k < sizeof CASES / sizeof CASES[0]; k++) {
        tb_error error = {0};
        char *more = NULL;
        tb_function_program *program = compile_text(CASES[k].source, &error);
        ck_assert_msg(program != NULL, "%s", error.message);
        ck_assert_int_eq(tb_function_integrator(program, 0, TB_FUNCTION_EULER, &more, &error),
                         TB_FAILED_PRECONDITION);
        ck_assert_msg(strstr(error.message, CASES[k].message) != NULL, "%s", error.message);
        ck_assert_ptr_null(more);
        tb_function_destroy(program);
    }
}
END_TEST

TEST_MAIN(each_method_has_its_factor, implicit_euler_bears_stiff_and_nonlinear_rates,
          functions_that_are_no_rates_are_refused)
