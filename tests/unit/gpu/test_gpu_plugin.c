/* Backends as plug-ins, without a card: refusals with their reasons, and calls that still work. */
#include <unistd.h>

#include "backend/backend.h"
#include "step/step.h"
#include "test_util.h"

/* A file of the build folder, named by run_all.sh; else of this program's folder. */
static const char *built(const char *name)
{
    static char path[1024];
    char self[512] = "";
    const char *folder = getenv("TRIBO_BUILD");
    if (folder == NULL) {
        const ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
        ck_assert_int_gt((int)length, 0);
        char *tests = strstr(self, "/tests/unit/");
        ck_assert_ptr_nonnull(tests);
        *tests = '\0';
        folder = self;
    }
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

START_TEST(a_plugin_of_another_abi_is_refused_by_both_numbers)
{
    tb_error error = {0};
    const tb_backend *backend = NULL;
    char number[32];
    TEST_STATUS(tb_backend_open(built("tests/plugin/other_abi.so"), &backend, &error),
                TB_FAILED_PRECONDITION, &error);
    ck_assert_ptr_null(backend);
    ck_assert_ptr_nonnull(strstr(error.message, "ABI 1048576"));
    snprintf(number, sizeof number, "takes %d", TB_BACKEND_ABI);
    ck_assert_ptr_nonnull(strstr(error.message, number));
}
END_TEST

START_TEST(what_is_no_plugin_is_not_found)
{
    tb_error error = {0};
    const tb_backend *backend = NULL;
    TEST_STATUS(tb_backend_open("/nowhere/libtribo_gpu.so", &backend, &error), TB_NOT_FOUND,
                &error);
    ck_assert_ptr_nonnull(strstr(error.message, "/nowhere/libtribo_gpu.so"));
    TEST_STATUS(tb_backend_open("libm.so.6", &backend, &error), TB_NOT_FOUND, &error);
    ck_assert_ptr_nonnull(strstr(error.message, "tb_backend_plugin"));
    ck_assert_ptr_null(backend);
}
END_TEST

START_TEST(without_a_gpu_insisting_fails_and_auto_takes_the_cpu)
{
    ck_assert_int_eq(setenv("TRIBO_GPU_PLUGIN", "", 1), 0);
    tb_error error = {0};
    tb_stepper *stepper = NULL;
    tb_step_options options = tb_step_defaults();
    options.backend = TB_BACKEND_GPU;
    TEST_STATUS(tb_stepper_create(&options, &stepper, &error), TB_UNAVAILABLE, &error);
    ck_assert_str_eq(error.field, "backend");
    ck_assert_ptr_nonnull(strstr(error.message, "TRIBO_GPU_PLUGIN"));
    ck_assert_ptr_null(stepper);

    options.backend = TB_BACKEND_AUTO;
    TEST_OK(tb_stepper_create(&options, &stepper, &error), &error);
    ck_assert_str_eq(tb_stepper_measure(stepper).backend, "cpu");
    options.backend = TB_BACKEND_GPU;
    TEST_STATUS(tb_stepper_set_options(stepper, &options, &error), TB_UNAVAILABLE, &error);
    ck_assert_str_eq(tb_stepper_measure(stepper).backend, "cpu");
    tb_stepper_destroy(stepper);

    tb_backend_info info;
    TEST_OK(tb_backend_describe(TB_BACKEND_GPU, &info), NULL);
    ck_assert_str_eq(info.name, "gpu");
    ck_assert_int_eq(info.devices, 0);
    ck_assert_ptr_nonnull(strstr(info.reason, "TRIBO_GPU_PLUGIN"));
    TEST_STATUS(tb_backend_describe(TB_BACKEND_AUTO, &info), TB_INVALID_ARGUMENT, NULL);
}
END_TEST

START_TEST(the_cpu_describes_itself_and_has_one_device)
{
    tb_error error = {0};
    tb_device_info device;
    TEST_OK(tb_device_describe(TB_BACKEND_CPU, 0, &device, &error), &error);
    ck_assert_int_ge(device.processors, 1);
    TEST_STATUS(tb_device_describe(TB_BACKEND_CPU, 1, &device, &error), TB_NOT_FOUND, &error);
    ck_assert_str_eq(error.field, "device");

    /* and worlds do not disturb each other */
    ck_assert_int_eq(setenv("TRIBO_GPU_PLUGIN", "", 1), 0);
    tb_stepper *stepper = NULL;
    tb_step_options options = tb_step_defaults();
    TEST_OK(tb_stepper_create(&options, &stepper, &error), &error);
    options.device = 5;
    TEST_STATUS(tb_stepper_set_options(stepper, &options, &error), TB_NOT_FOUND, &error);
    ck_assert_int_eq(tb_stepper_options(stepper).device, 0);
    tb_stepper_destroy(stepper);
    for (int choice = TB_BACKEND_CPU; choice <= TB_BACKEND_AUTO; choice += TB_BACKEND_AUTO) {
        options.backend = (tb_backend_choice)choice;
        TEST_STATUS(tb_stepper_create(&options, &stepper, &error), TB_NOT_FOUND, &error);
        ck_assert_str_eq(error.field, "device");
        ck_assert_ptr_nonnull(strstr(error.message, "no device 5"));
        ck_assert_ptr_null(stepper);
    }
}
END_TEST

START_TEST(the_gpu_plugin_opens_without_a_driver_and_counts_cards)
{
    tb_error error = {0};
    const tb_backend *gpu = NULL;
    char reason[TB_ERROR_MESSAGE_SIZE];
    const char *path = built("libtribo_gpu.so");
    if (access(path, R_OK) != 0) {
        printf("SKIPPED the_gpu_plugin_opens_without_a_driver_and_counts_cards: no %s\n", path);
        return;
    }
    TEST_OK(tb_backend_open(path, &gpu, &error), &error);
    ck_assert_str_eq(gpu->name, "gpu");
    const int32_t devices = gpu->devices(reason);
    if (devices > 0) return; /* the tests of steps have the rest */
    ck_assert_int_gt((int)strlen(reason), 0);
    void *context = NULL;
    const tb_step_options options = tb_step_defaults();
    TEST_STATUS(gpu->create(&options, &context, &error), TB_NOT_FOUND, &error);
    ck_assert_ptr_null(context);
}
END_TEST

TEST_MAIN(a_plugin_of_another_abi_is_refused_by_both_numbers, what_is_no_plugin_is_not_found,
          without_a_gpu_insisting_fails_and_auto_takes_the_cpu,
          the_cpu_describes_itself_and_has_one_device,
          the_gpu_plugin_opens_without_a_driver_and_counts_cards)
