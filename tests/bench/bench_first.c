/* Waiting time of a new caller: from the start of the process to the first answer for an unknown
 * model, then for another one; and for the same again when all is warm.
 *
 *   bench_first [--backend cpu] [--worlds N] [MODEL MODEL]       (1; hand and mug, jaw and mug)
 *
 * An answer is one step of every world with its certificates. The process's start is the system's:
 * loading the program, the plug-in and the driver count. */
#include <time.h>
#include <unistd.h>

#include "common_worlds.h"

/* s since the system started this process, to one of its clock's ticks */
static double age_of_process(void)
{
    unsigned long long ticks = 0;
    char text[2048];
    FILE *file = fopen("/proc/self/stat", "r");
    if (file == NULL) return 0;
    const size_t length = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[length] = '\0';
    /* behind the name, which may hold anything, the 20th number */
    char *field = strrchr(text, ')');
    for (int i = 0; field != NULL && i < 20; i++) field = strchr(field + 1, ' ');
    if (field == NULL || sscanf(field, "%llu", &ticks) != 1) return 0;
    struct timespec now;
    clock_gettime(CLOCK_BOOTTIME, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec -
           (double)ticks / (double)sysconf(_SC_CLK_TCK);
}

static const char *generated(const char *build, const char *program, const char *file,
                             const char *folder, char path[700])
{
    char command[1500];
    snprintf(command, sizeof command,
             "'%s/tests/data/mug' %s 1 > /dev/null; '%s/tests/data/%s' %s > /dev/null", build,
             folder, build, program, folder);
    if (system(command) != 0) exit(1);
    snprintf(path, 700, "%s/%s", folder, file);
    return path;
}

/* Loads a model and steps its worlds once; the models stay, as a server's do. */
static void answer(tb_stepper *stepper, const char *path, int32_t worlds, double began,
                   const char *what)
{
    tb_error error;
    tb_model *model = NULL;
    tb_state **states = calloc((size_t)worlds, sizeof(tb_state *));
    tb_certificate *certificates = calloc((size_t)worlds, sizeof *certificates);
    if (states == NULL || certificates == NULL) exit(1);
    bench_check(tb_model_load(path, NULL, &model, &error), &error);
    const double loaded = bench_now();
    for (int32_t i = 0; i < worlds; i++)
        bench_check(tb_state_create(model, &states[i], &error), &error);
    bench_check(tb_step_batch(stepper, states, worlds, 1, certificates, &error), &error);
    const double end = bench_now();
    printf("{\"bench\": \"first\", \"what\": \"%s\", \"backend\": \"%s\", \"worlds\": %d, "
           "\"shapes\": %d, \"ms\": %.5g, \"ms_after_loading\": %.5g, \"residual\": %.3g}\n",
           what, tb_stepper_measure(stepper).backend, worlds, tb_model_count(model).shapes,
           1e3 * (end - began), 1e3 * (end - loaded), certificates[0].residual);
    fflush(stdout);
    for (int32_t i = 0; i < worlds; i++) tb_state_destroy(states[i]);
    free(states);
    free(certificates);
}

int main(int argc, char **argv)
{
    const double age = age_of_process(), now = bench_now();
    char folder[] = "/tmp/tribo_first_XXXXXX", paths[2][700];
    const char *models[2] = {NULL, NULL};
    tb_step_options options = tb_step_defaults();
    tb_stepper *stepper = NULL;
    tb_error error;
    int32_t worlds = 1, given = 0;
    double generating = 0;
    options.backend = TB_BACKEND_GPU;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--backend") == 0 && i + 1 < argc) {
            i++;
            if (strcmp(argv[i], "cpu") == 0) options.backend = TB_BACKEND_CPU;
        } else if (strcmp(argv[i], "--worlds") == 0 && i + 1 < argc) {
            worlds = atoi(argv[++i]);
        } else if (given < 2) {
            models[given++] = argv[i];
        }
    }
    const char *build = bench_build_folder();
    snprintf(paths[0], sizeof paths[0], "%s/libtribo_gpu.so", build);
    if (setenv("TRIBO_GPU_PLUGIN", paths[0], 0) != 0 || worlds < 1) return 2;
    if (given < 2) {
        if (mkdtemp(folder) == NULL) return 1;
        models[0] = generated(build, "hand", "grasp.xml", folder, paths[0]);
        models[1] = generated(build, "jaw_mug", "jaw_mug.xml", folder, paths[1]);
        generating = bench_now() - now; /* of files that a caller has */
    }
    const tb_status status = tb_stepper_create(&options, &stepper, &error);
    if (status == TB_UNAVAILABLE) {
        printf("bench: no GPU: %s\n", error.message);
        return 0;
    }
    bench_check(status, &error);
    answer(stepper, models[0], worlds, now - age + generating, "first after process start");
    answer(stepper, models[1], worlds, bench_now(), "one more unseen");
    answer(stepper, models[0], worlds, bench_now(), "the first again");
    tb_stepper_destroy(stepper);
    return 0;
}
