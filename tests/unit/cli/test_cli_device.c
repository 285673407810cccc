/* Meaning of --backend and --device: for a stepper here, and as a name for a daemon. */
#include "simulation/device.h"
#include "test_util.h"

/* As parsed from "--backend ... --device ..."; "" where an option was not given. */
static device_options given(const char *backend, const char *index)
{
    device_options o = device_defaults();
    args_option list[DEVICE_OPTIONS];
    device_option_list(&o, list);
    ck_assert_str_eq(list[0].name, "backend");
    ck_assert_str_eq(list[1].name, "device");
    ck_assert_ptr_null(list[2].name);
    for (int i = 0; *backend != '\0' && list[0].choices[i] != NULL; i++)
        if (strcmp(list[0].choices[i], backend) == 0) *(int *)list[0].target = i;
    if (*index != '\0') *(int64_t *)list[1].target = atoi(index);
    return o;
}

START_TEST(a_daemon_is_told_what_was_asked_for_and_chooses_the_rest)
{
    const struct {
        const char *backend, *index, *name;
        bool wrong;
    } CASES[] = {
        {"", "", "", false},          {"auto", "", "", false},     {"cpu", "", "cpu", false},
        {"cpu", "0", "cpu", false},   {"gpu", "", "gpu:0", false}, {"gpu", "0", "gpu:0", false},
        {"gpu", "3", "gpu:3", false}, {"cpu", "1", "cpu", true},   {"", "1", "", true},
        {"", "0", "", true},          {"auto", "2", "", true},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        char name[DEVICE_NAME];
        const device_options o = given(CASES[i].backend, CASES[i].index);
        ck_assert_str_eq(device_name(&o, name), CASES[i].name);
        ck_assert_msg((device_objection(&o) != NULL) == CASES[i].wrong, "case %zu", i);
    }
}
END_TEST

START_TEST(here_the_library_decides_where_nothing_was_given)
{
    tb_step_options step = tb_step_defaults();
    device_options o = given("", "");
    device_apply(&o, &step);
    ck_assert_int_eq(step.backend, tb_step_defaults().backend);
    ck_assert_int_eq(step.device, 0);
    o = given("gpu", "2");
    device_apply(&o, &step);
    ck_assert_int_eq(step.backend, TB_BACKEND_GPU);
    ck_assert_int_eq(step.device, 2);
}
END_TEST

TEST_MAIN(a_daemon_is_told_what_was_asked_for_and_chooses_the_rest,
          here_the_library_decides_where_nothing_was_given)
