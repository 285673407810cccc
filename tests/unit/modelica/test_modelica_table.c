/* The table of cases.h, by the interpreter and by compiled C. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "modelica/cases.h"
#include "common_modelica.h"
#include "test_util.h"

typedef struct table_case {
    int number;
    const char *declaration, *locals, *statements;
    double tolerance; /* relative; below 0: the case is left out of Modelica and refused */
    int count;
    double expected[8];
} table_case;

#define COUNT_OF(...) ((int)(sizeof((double[]){__VA_ARGS__}) / sizeof(double)))
#define ROW(number, declaration, locals, statements, tolerance, ...)                               \
    {number, declaration, locals, statements, tolerance, COUNT_OF(__VA_ARGS__), {__VA_ARGS__}},

static const table_case TABLE[] = {CASES(ROW)};
enum { TABLE_SIZE = sizeof TABLE / sizeof TABLE[0] };

static void write_function(char *to, size_t size, const table_case *c)
{
    snprintf(to, size, "  function f%d output %s; %s %s algorithm %s end f%d;\n", c->number,
             c->declaration, *c->locals != '\0' ? "protected" : "", c->locals, c->statements,
             c->number);
}

/* one package of all functions; the caller frees it */
static char *write_package(void)
{
    const size_t size = 1 << 18;
    char *text = malloc(size);
    size_t used = (size_t)snprintf(text, size, "package Table\n" CASES_HELPERS);
    for (int k = 0; k < TABLE_SIZE; k++) {
        if (TABLE[k].tolerance < 0) continue;
        write_function(text + used, size - used, &TABLE[k]);
        used += strlen(text + used);
    }
    snprintf(text + used, size - used, "end Table;\n");
    return text;
}

static void run_table(tb_function_backend backend)
{
    char *text = write_package();
    tb_error error = {0};
    tb_function_program *program = compile_text(text, &error);
    ck_assert_msg(program != NULL, "%s", error.message);
    int failed = 0;
    for (int k = 0; k < TABLE_SIZE; k++) {
        const table_case *c = &TABLE[k];
        char name[16];
        if (c->tolerance < 0) continue;
        snprintf(name, sizeof name, "f%d", c->number);
        tb_function_value y = {0};
        const tb_status status = call_on(program, name, backend, NULL, &y, &error);
        bool good = status == TB_OK && value_count(&y) == c->count;
        for (int i = 0; good && i < c->count; i++)
            good = fabs(value_at(&y, i) - c->expected[i]) <= c->tolerance * fabs(c->expected[i]);
        if (!good) {
            failed++;
            printf("f%d: %s: %s -> %s, %lld values, first %.17g, expected %.17g\n", c->number,
                   c->locals, c->statements, status == TB_OK ? "ok" : error.message,
                   (long long)value_count(&y), y.data != NULL ? value_at(&y, 0) : NAN,
                   c->expected[0]);
        }
        tb_function_value_free(&y);
    }
    tb_function_destroy(program);
    free(text);
    ck_assert_int_eq(failed, 0);
}

START_TEST(interpreter_gives_the_table)
{
    run_table(TB_FUNCTION_INTERPRETER);
}
END_TEST

START_TEST(compiled_code_gives_the_table)
{
    run_table(TB_FUNCTION_CPU);
}
END_TEST

START_TEST(rows_below_zero_are_refused)
{
    int refused = 0;
    for (int k = 0; k < TABLE_SIZE; k++) {
        char text[8192];
        if (TABLE[k].tolerance >= 0) continue;
        size_t used = (size_t)snprintf(text, sizeof text, "package Table\n" CASES_HELPERS);
        write_function(text + used, sizeof text - used, &TABLE[k]);
        strcat(text, "end Table;\n");
        tb_error error = {0};
        ck_assert_ptr_null(compile_text(text, &error));
        refused++;
    }
    ck_assert_int_ge(refused, 2);
    ck_assert_int_ge(TABLE_SIZE - refused, 200);
}
END_TEST

TEST_MAIN(interpreter_gives_the_table, compiled_code_gives_the_table, rows_below_zero_are_refused)
