/* Arrays that stay between calls: the same bytes on each back end, no upload where the card has them, and
 * the card's memory free after the last release. */
#include <dlfcn.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common_modelica.h"
#include "test_util.h"

static const char SOURCE[] =
    "function heat\n  input Real u[:, :];\n  input Real a = 0.125;\n"
    "  output Real v[size(u, 1), size(u, 2)];\n  output Real total;\nalgorithm\n  v := u;\n"
    "  for i in 2:size(u, 1) - 1, j in 2:size(u, 2) - 1 loop\n"
    "    v[i, j] := u[i, j] + a * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1] - 4 * "
    "u[i, j]);\n"
    "  end for;\n  total := sum(v);\n  annotation(gpuFunction = true);\nend heat;\n"
    "function scale\n  input Real x[:];\n  input Real by;\n  output Real y[size(x, "
    "1)];\nalgorithm\n"
    "  for i in 1:size(x, 1) loop\n    y[i] := x[i] * by;\n  end for;\n"
    "  annotation(gpuFunction = true);\nend scale;\n"
    "function mark\n  input Real x[:];\n  output Boolean b[size(x, 1)];\n  output Integer n[2];\n"
    "algorithm\n  for i in 1:size(x, 1) loop\n    b[i] := x[i] > 0;\n  end for;\n"
    "  n := {size(x, 1), 7};\n  annotation(gpuFunction = true);\nend mark;\n"
    "function count\n  input Boolean b[:];\n  input Integer n[:];\n  output Integer k;\nalgorithm\n"
    "  k := n[2];\n  for i in 1:n[1] loop\n    if b[i] then k := k + 1; end if;\n  end for;\n"
    "  annotation(gpuFunction = true);\nend count;\n";

static tb_function_program *program;
static long long *uploaded;
static const int *arrays;

static void setup(void)
{
    tb_error error = {0};
    void *card = play_card();
    void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    ck_assert_ptr_nonnull(card);
    ck_assert_ptr_nonnull(driver);
    uploaded = dlsym(driver, "played_uploaded");
    arrays = dlsym(driver, "played_arrays");
    ck_assert_ptr_nonnull(uploaded);
    program = compile_text(SOURCE, &error);
    ck_assert_msg(program != NULL, "%s", error.message);
}

static void teardown(void)
{
    tb_function_destroy(program);
}

static tb_status call(const char *name, tb_function_backend backend,
                      const tb_function_value *inputs, const bool *keep, tb_function_value *outputs,
                      tb_error *error)
{
    tb_function_options options = tb_function_defaults();
    options.backend = backend;
    options.cache = "";
    options.keep = keep;
    return tb_function_call(program, tb_function_find(program, name), &options, inputs, outputs,
                            NULL, error);
}

/* `steps` steps of heat from the same field; kept or carried by the caller */
static tb_function_value steps_of_heat(tb_function_backend backend, int steps, bool kept)
{
    static const bool KEEP[] = {true, false};
    tb_error error = {0};
    tb_function_value u = grid(13, 17, 1, 2), out[2];
    for (int k = 0; k < steps; k++) {
        const tb_function_value inputs[] = {u, {0}};
        const tb_status status = call("heat", backend, inputs, kept ? KEEP : NULL, out, &error);
        ck_assert_msg(status == TB_OK, "%s", error.message);
        ck_assert_ptr_nonnull(kept ? (void *)out[0].kept : out[0].data);
        ck_assert(kept ? out[0].data == NULL : out[0].kept == NULL);
        ck_assert(out[0].rank == 2 && out[0].size[0] == 13 && out[0].size[1] == 17);
        tb_function_value_free(&u);
        tb_function_value_free(&out[1]);
        u = out[0];
    }
    if (!kept) return u;
    tb_function_value read;
    ck_assert_int_eq(tb_function_array_read(u.kept, &read, &error), TB_OK);
    ck_assert_uint_eq(tb_function_array_bytes(u.kept), 13 * 17 * 8);
    tb_function_value_free(&u);
    return read;
}

START_TEST(kept_arrays_give_the_bytes_of_arrays_sent)
{
    setup();
    tb_function_value sent = steps_of_heat(TB_FUNCTION_INTERPRETER, 5, false);
    for (int b = TB_FUNCTION_INTERPRETER; b <= TB_FUNCTION_GPU; b++) {
        tb_function_value kept = steps_of_heat((tb_function_backend)b, 5, true);
        ck_assert_mem_eq(kept.data, sent.data, 13 * 17 * 8);
        tb_function_value_free(&kept);
    }
    tb_function_value_free(&sent);
    ck_assert_int_eq(*arrays, 0);
    teardown();
}
END_TEST

START_TEST(nothing_is_uploaded_that_the_card_has)
{
    setup();
    static const bool KEEP[] = {true};
    const int64_t size = 1000;
    tb_error error = {0};
    tb_function_value x = real_array(1, &size, 1, 2), by = number(3), y, z, read;
    tb_function_value kept = {.type = TB_FUNCTION_REAL, .rank = 1};
    ck_assert_int_eq(tb_function_array_make(&x, &kept.kept, &error), TB_OK);
    const long long before = *uploaded;
    const tb_function_value first[] = {kept, by};
    ck_assert_int_eq(call("scale", TB_FUNCTION_GPU, first, KEEP, &y, &error), TB_OK);
    ck_assert_int_eq(*uploaded - before, 8000); /* the caller's array, once */
    tb_function_value_free(&y);
    ck_assert_int_eq(call("scale", TB_FUNCTION_GPU, first, KEEP, &y, &error), TB_OK);
    const tb_function_value second[] = {y, by};
    ck_assert_int_eq(call("scale", TB_FUNCTION_GPU, second, NULL, &z, &error), TB_OK);
    ck_assert_int_eq(*uploaded - before, 8000);
    ck_assert_int_eq(*arrays, 2);
    for (int k = 0; k < size; k++) ck_assert(value_at(&z, k) == value_at(&x, k) * 3 * 3);
    /* the card's array as the input of a processor */
    tb_function_value on_host;
    ck_assert_int_eq(call("scale", TB_FUNCTION_CPU, second, KEEP, &on_host, &error), TB_OK);
    ck_assert_int_eq(tb_function_array_read(on_host.kept, &read, &error), TB_OK);
    ck_assert_mem_eq(read.data, z.data, 8000);
    tb_function_value *all[] = {&x, &by, &y, &z, &kept, &read, &on_host};
    for (size_t k = 0; k < sizeof all / sizeof all[0]; k++) tb_function_value_free(all[k]);
    ck_assert_int_eq(*arrays, 0);
    teardown();
}
END_TEST

START_TEST(arrays_of_each_type_are_kept)
{
    setup();
    static const bool KEEP[] = {true, true};
    tb_error error = {0};
    for (int b = TB_FUNCTION_INTERPRETER; b <= TB_FUNCTION_GPU; b++) {
        tb_function_value x = real_array(1, (int64_t[]){300}, 0, 2), marks[2], k;
        long long positive = 7;
        for (int i = 0; i < 300; i++) positive += value_at(&x, i) > 0;
        ck_assert_int_eq(call("mark", (tb_function_backend)b, &x, KEEP, marks, &error), TB_OK);
        ck_assert_int_eq(call("count", (tb_function_backend)b, marks, NULL, &k, &error), TB_OK);
        ck_assert_int_eq((long long)value_at(&k, 0), positive);
        tb_function_value *all[] = {&x, &marks[0], &marks[1], &k};
        for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) tb_function_value_free(all[i]);
    }
    ck_assert_int_eq(*arrays, 0);
    teardown();
}
END_TEST

START_TEST(kept_outputs_are_finite_and_kept_inputs_fit)
{
    setup();
    static const bool FIRST[] = {true, false}, SCALAR[] = {false, true};
    tb_error error = {0};
    for (int b = TB_FUNCTION_INTERPRETER; b <= TB_FUNCTION_GPU; b++) {
        const tb_function_backend backend = (tb_function_backend)b;
        tb_function_value x = line_of(700, 1), by = number(1e300), out[2];
        ((double *)x.data)[600] = 1e300;
        ((double *)x.data)[650] = -1e300;
        const tb_function_value inputs[] = {x, by};
        ck_assert_int_eq(call("scale", backend, inputs, FIRST, out, &error), TB_DIVERGED);
        ck_assert_str_eq(error.message, "element 601 of output 'y' is not finite");
        ck_assert_ptr_null(out[0].kept);
        tb_function_value u = grid(5, 5, 1, 0), kept = {0};
        const tb_function_value heat[] = {u, {0}};
        ck_assert_int_eq(call("heat", backend, heat, SCALAR, out, &error), TB_INVALID_ARGUMENT);
        ck_assert_str_eq(error.message, "output 'total' is a scalar: arrays alone are kept");
        tb_function_value_free(&out[0]);
        /* a matrix where a vector is expected */
        ck_assert_int_eq(tb_function_array_make(&u, &kept.kept, &error), TB_OK);
        const tb_function_value wrong[] = {kept, by};
        ck_assert_int_eq(call("scale", backend, wrong, NULL, out, &error), TB_INVALID_ARGUMENT);
        ck_assert_str_eq(error.message,
                         "input 'x' is Real with 2 dimensions, expected Real with 1");
        tb_function_value *all[] = {&x, &by, &u, &kept};
        for (size_t k = 0; k < sizeof all / sizeof all[0]; k++) tb_function_value_free(all[k]);
    }
    ck_assert_int_eq(*arrays, 0);
    tb_function_value one = number(1), bad = line_of(3, 1);
    tb_function_array *none;
    ck_assert_int_eq(tb_function_array_make(&one, &none, &error), TB_INVALID_ARGUMENT);
    ((double *)bad.data)[1] = NAN;
    ck_assert_int_eq(tb_function_array_make(&bad, &none, &error), TB_INVALID_ARGUMENT);
    ck_assert_str_eq(error.message, "element 2 of a kept array is not finite");
    ck_assert_ptr_null(none);
    tb_function_value_free(&one);
    tb_function_value_free(&bad);
    teardown();
}
END_TEST

TEST_MAIN(kept_arrays_give_the_bytes_of_arrays_sent, nothing_is_uploaded_that_the_card_has,
          arrays_of_each_type_are_kept, kept_outputs_are_finite_and_kept_inputs_fit)
