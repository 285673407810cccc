/* Protobuf views: arrays in and out, options over their defaults, certificates, scratch memory. */
#include "server/server_util.h"
#include "wire/wire.h"

#include "session/cache.h"

static Tribo__V1__Array array_of(Tribo__V1__DataType dtype, const void *data, size_t bytes,
                                 int64_t *shape, size_t axes)
{
    Tribo__V1__Array array = TRIBO__V1__ARRAY__INIT;
    array.dtype = dtype;
    array.shape = shape;
    array.n_shape = axes;
    array.data.data = (uint8_t *)(uintptr_t)data;
    array.data.len = bytes;
    return array;
}

START_TEST(rows_are_borrowed_where_they_lie_well_and_copied_where_not)
{
    td_wire wire = {0};
    td_wire_rows rows;
    tb_error error = {0};
    double numbers[7] = {1, 2, 3, 4, 5, 6, 7};
    int64_t shape[2] = {2, 3};
    Tribo__V1__Array a = array_of(TRIBO__V1__DATA_TYPE__DATA_TYPE_FLOAT64, numbers, 48, shape, 2);
    TEST_OK(td_wire_read_rows(&wire, &a, "q", 2, 3, &rows, &error), &error);
    ck_assert_ptr_eq(rows.numbers, numbers);
    ck_assert_int_eq(rows.stride, 3);

    /* one row for all worlds */
    int64_t one[1] = {3};
    a = array_of(TRIBO__V1__DATA_TYPE__DATA_TYPE_UNSPECIFIED, numbers, 24, one, 1);
    TEST_OK(td_wire_read_rows(&wire, &a, "q", 2, 3, &rows, &error), &error);
    ck_assert_int_eq(rows.stride, 0);

    /* bytes that begin anywhere */
    unsigned char shifted[49];
    memcpy(shifted + 1, numbers, 48);
    a = array_of(TRIBO__V1__DATA_TYPE__DATA_TYPE_FLOAT64, shifted + 1, 48, shape, 2);
    TEST_OK(td_wire_read_rows(&wire, &a, "q", 2, 3, &rows, &error), &error);
    ck_assert_mem_eq(rows.numbers, numbers, 48);

    const float narrow[6] = {1.5f, -2, 3, 4, 5, 6};
    a = array_of(TRIBO__V1__DATA_TYPE__DATA_TYPE_FLOAT32, narrow, 24, shape, 2);
    TEST_OK(td_wire_read_rows(&wire, &a, "q", 2, 3, &rows, &error), &error);
    TEST_NEAR(rows.numbers[0], 1.5, 0);
    TEST_NEAR(rows.numbers[4], 5, 0);

    /* absent, and empty: a model without actuators */
    TEST_OK(td_wire_read_rows(&wire, NULL, "q", 2, 3, &rows, &error), &error);
    ck_assert_ptr_null(rows.numbers);
    int64_t empty[2] = {2, 0};
    a = array_of(TRIBO__V1__DATA_TYPE__DATA_TYPE_FLOAT64, NULL, 0, empty, 2);
    TEST_OK(td_wire_read_rows(&wire, &a, "q", 2, 0, &rows, &error), &error);
    ck_assert_ptr_nonnull(rows.numbers);
    td_wire_destroy(&wire);
}
END_TEST

START_TEST(rows_that_do_not_fit_name_their_field)
{
    td_wire wire = {0};
    td_wire_rows rows;
    double numbers[6] = {1, 2, 3, 4, (double)NAN, 6};
    int64_t shapes[5][3] = {{2, 4}, {-2, 3}, {2, 3, 1}, {INT64_MAX, 3}, {2, 3}};
    const size_t axes[5] = {2, 2, 3, 2, 2};
    for (int i = 0; i < 5; i++) {
        tb_error error = {0};
        Tribo__V1__Array a =
            array_of(TRIBO__V1__DATA_TYPE__DATA_TYPE_FLOAT64, numbers, 48, shapes[i], axes[i]);
        ck_assert_int_eq(td_wire_read_rows(&wire, &a, "controls", 2, 3, &rows, &error),
                         TB_INVALID_ARGUMENT);
        ck_assert_str_eq(error.field, "controls");
    }
    tb_error error = {0};
    Tribo__V1__Array a =
        array_of(TRIBO__V1__DATA_TYPE__DATA_TYPE_FLOAT64, numbers, 40, shapes[4], 2);
    ck_assert_int_eq(td_wire_read_rows(&wire, &a, "u", 2, 3, &rows, &error), TB_INVALID_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(error.message, "40 bytes"));
    td_wire_destroy(&wire);
}
END_TEST

START_TEST(options_that_are_zero_keep_their_defaults)
{
    tb_step_options options;
    tb_error error = {0};
    const tb_step_options usual = tb_step_defaults();
    TEST_OK(td_wire_read_step_options(NULL, "options", &options, &error), &error);
    ck_assert_str_eq(options.solve.solver, usual.solve.solver);
    TEST_NEAR(options.solve.tolerance, usual.solve.tolerance, 0);
    ck_assert_int_eq(options.solve.threads, 1);

    Tribo__V1__StepOptions message = TRIBO__V1__STEP_OPTIONS__INIT;
    Tribo__V1__SolveOptions solve = TRIBO__V1__SOLVE_OPTIONS__INIT;
    message.solve = &solve;
    message.dt = 0.01;
    message.scheme = TRIBO__V1__SCHEME__SCHEME_MOREAU;
    message.precision = TRIBO__V1__PRECISION__PRECISION_SINGLE;
    message.report_energy = true;
    solve.solver = "jor";
    solve.maximum_iterations = 77;
    TEST_OK(td_wire_read_step_options(&message, "options", &options, &error), &error);
    TEST_NEAR(options.dt, 0.01, 0);
    ck_assert_int_eq(options.scheme, TB_SCHEME_MOREAU);
    ck_assert_int_eq(options.precision, TB_FLOAT);
    ck_assert_str_eq(options.solve.solver, "jor");
    ck_assert_int_eq(options.solve.maximum_iterations, 77);
    TEST_NEAR(options.solve.tolerance, usual.solve.tolerance, 0);
    TEST_NEAR(options.recovery_speed, usual.recovery_speed, 0);
    ck_assert(options.report_energy);
    TEST_NEAR(options.contact_merge, 0, 0);

    message.contact_merge = 3e-3;
    TEST_OK(td_wire_read_step_options(&message, "options", &options, &error), &error);
    TEST_NEAR(options.contact_merge, 3e-3, 0);
    message.contact_merge = 0.5;
    ck_assert_int_eq(td_wire_read_step_options(&message, "options", &options, &error),
                     TB_INVALID_ARGUMENT);
    ck_assert_str_eq(error.field, "options.contact_merge");
    message.contact_merge = 0;
    message.scheme = (Tribo__V1__Scheme)9;
    ck_assert_int_eq(td_wire_read_step_options(&message, "options", &options, &error),
                     TB_INVALID_ARGUMENT);
    ck_assert_str_eq(error.field, "options.scheme");
    message.scheme = 0;
    solve.tolerance = (double)INFINITY;
    ck_assert_int_eq(td_wire_read_step_options(&message, "options", &options, &error),
                     TB_INVALID_ARGUMENT);
    ck_assert_str_eq(error.field, "options.solve.tolerance");
}
END_TEST

START_TEST(scratch_memory_is_aligned_zeroed_and_used_again)
{
    td_wire wire = {0};
    for (int round = 0; round < 3; round++) {
        for (size_t bytes = 1; bytes < 20000; bytes = bytes * 2 + 1) {
            unsigned char *memory = td_wire_take(&wire, bytes);
            ck_assert_ptr_nonnull(memory);
            ck_assert_uint_eq((uintptr_t)memory % 16, 0);
            for (size_t i = 0; i < bytes; i++) ck_assert_uint_eq(memory[i], 0);
            memset(memory, 0xff, bytes);
        }
        td_wire_reset(&wire);
    }
    ck_assert(!wire.failed);
    ck_assert_ptr_null(td_wire_take(&wire, SIZE_MAX - 3));
    ck_assert(wire.failed);
    td_wire_reset(&wire);
    ck_assert(!wire.failed);
    td_wire_destroy(&wire);
}
END_TEST

/* ---- the catalog's cache ---- */

static int destroyed;

static void count_destroyed(td_cached *entry)
{
    destroyed++;
    free(entry);
}

static td_cached *entry_of(const char *key, size_t bytes)
{
    td_cached *entry = calloc(1, sizeof *entry);
    snprintf(entry->key, sizeof entry->key, "%s", key);
    entry->bytes = bytes;
    return entry;
}

START_TEST(a_cache_keeps_what_is_held_and_drops_the_least_used)
{
    td_cache cache;
    td_cache_init(&cache, 100, count_destroyed);
    td_cached *a = td_cache_add(&cache, entry_of("a", 60));
    td_cached *b = td_cache_add(&cache, entry_of("b", 60));
    td_cached *c = td_cache_add(&cache, entry_of("c", 30));
    ck_assert_ptr_eq(td_cache_add(&cache, entry_of("a", 60)), a);
    ck_assert_int_eq(destroyed, 1);
    td_cache_release(&cache, a);
    td_cache_release(&cache, b);
    ck_assert_int_eq(destroyed, 1); /* a is held once more */
    td_cache_release(&cache, c);
    ck_assert_ptr_eq(td_cache_find(&cache, "b"), b);
    td_cache_release(&cache, b);
    td_cache_release(&cache, a); /* 150 bytes idle: c is the oldest, then b */
    ck_assert_int_eq(destroyed, 3);
    ck_assert_ptr_null(td_cache_find(&cache, "c"));
    ck_assert_ptr_null(td_cache_find(&cache, "b"));
    ck_assert_ptr_eq(td_cache_find(&cache, "a"), a);
    td_cache_destroy(&cache);
    ck_assert_int_eq(destroyed, 4);
}
END_TEST

TEST_MAIN(rows_are_borrowed_where_they_lie_well_and_copied_where_not,
          rows_that_do_not_fit_name_their_field, options_that_are_zero_keep_their_defaults,
          scratch_memory_is_aligned_zeroed_and_used_again,
          a_cache_keeps_what_is_held_and_drops_the_least_used)
