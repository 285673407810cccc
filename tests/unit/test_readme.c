/* The README's example in C, word for word: it compiles, runs on the README's scene, and prints
 * the README's output. */
#include <unistd.h>

#include "test_util.h"

#define README "README.md"
#define SOURCE "tests/unit/test_readme.c"

#define main readme_example
/* example begins */
#include <stdio.h>
#include <tribo.h>

int main(void)
{
    tb_error error = {0};
    tb_model *model = NULL;
    tb_state *state = NULL;
    tb_stepper *stepper = NULL;
    tb_certificate certificate = {0};
    tb_body_motion slider = {0};
    const tb_step_options options = tb_step_defaults();

    tb_status status = tb_model_load("scene.xml", NULL, &model, &error);
    if (status == TB_OK) status = tb_state_create(model, &state, &error);
    if (status == TB_OK) status = tb_stepper_create(&options, &stepper, &error);
    if (status == TB_OK) status = tb_step(stepper, state, 1000, &certificate, &error);
    if (status == TB_OK)
        status =
            tb_state_body_motion(state, tb_model_find(model, TB_HANDLE_BODY, "slider"), &slider);

    if (status == TB_OK)
        printf("after %.1f s the slider moves by %.4f m/s, residual below 1e-6: %s\n",
               tb_state_time(state), slider.linear_velocity[0],
               certificate.residual < 1e-6 ? "yes" : "no");
    else
        fprintf(stderr, "%s\n", error.message);

    tb_stepper_destroy(stepper);
    tb_state_destroy(state);
    tb_model_destroy(model);
    return status == TB_OK ? 0 : 1;
}
/* example ends */
#undef main

/* The text between two marks of a file; the caller frees it. */
static char *text_between(const char *path, const char *begin, const char *end)
{
    FILE *file = fopen(path, "rb");
    ck_assert_msg(file != NULL, "%s cannot be read: tests run in the folder of the README", path);
    char *text = calloc(1, 200000);
    ck_assert_ptr_nonnull(text);
    ck_assert_uint_gt(fread(text, 1, 199999, file), 0);
    fclose(file);

    char *first = strstr(text, begin);
    ck_assert_msg(first != NULL, "%s has no '%s'", path, begin);
    first += strlen(begin);
    char *last = strstr(first, end);
    ck_assert_msg(last != NULL, "%s has no '%s' behind '%s'", path, end, begin);
    *last = '\0';
    memmove(text, first, strlen(first) + 1);
    return text;
}

START_TEST(the_readme_holds_this_example)
{
    char *own = text_between(SOURCE, "/* example begins */\n", "/* example ends */");
    char *told = text_between(README, "```c example.c\n", "```");
    ck_assert_str_eq(own, told);
    free(own);
    free(told);
}
END_TEST

/* Runs the example in a folder with the README's scene and compares its output. */
START_TEST(the_example_prints_what_the_readme_says)
{
    char home[4096], folder[] = "/tmp/tribo_readme_XXXXXX";
    char *scene = text_between(README, "```xml scene.xml\n", "```");
    char *told = text_between(README, "$ ./example\n", "```");
    ck_assert_ptr_nonnull(getcwd(home, sizeof home));
    ck_assert_ptr_nonnull(mkdtemp(folder));
    ck_assert_int_eq(chdir(folder), 0);
    FILE *file = fopen("scene.xml", "w");
    ck_assert_ptr_nonnull(file);
    fputs(scene, file);
    fclose(file);

    /* stdout goes to a file for the while */
    fflush(stdout);
    const int terminal = dup(STDOUT_FILENO);
    ck_assert_ptr_nonnull(freopen("out", "w", stdout));
    const int code = readme_example();
    fflush(stdout);
    ck_assert_int_ge(dup2(terminal, STDOUT_FILENO), 0);
    close(terminal);

    char *out = text_between("out", "", "\n");
    told[strcspn(told, "\n")] = '\0';
    ck_assert_int_eq(code, 0);
    ck_assert_str_eq(out, told);
    free(out);
    free(told);
    free(scene);
    unlink("out");
    unlink("scene.xml");
    ck_assert_int_eq(chdir(home), 0);
    rmdir(folder);
}
END_TEST

TEST_MAIN(the_readme_holds_this_example, the_example_prints_what_the_readme_says)
