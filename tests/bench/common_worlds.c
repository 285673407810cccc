/* Loads a benchmark's scene and draws the starts of its worlds. See common_worlds.h. */
#include "common_worlds.h"

#include <unistd.h>

enum { NUMBERS = 64 }; /* a world has for its start */

const char *bench_build_folder(void)
{
    static char self[512];
    const ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    self[length > 0 ? length : 0] = '\0';
    char *tests = strstr(self, "/tests/bench/");
    if (tests != NULL) *tests = '\0';
    return self;
}

/* ---- options ---- */

/* Cuts the text behind a colon, which it leaves in front of the rest; NULL: there is none. */
static char *cut(char *text)
{
    char *colon = text != NULL ? strchr(text, ':') : NULL;
    if (colon == NULL) return NULL;
    *colon = '\0';
    return colon + 1;
}

static double number(char **text)
{
    char *next = cut(*text);
    const double value = *text != NULL ? strtod(*text, NULL) : 0;
    *text = next;
    return value;
}

bool bench_scene_option(bench_scene *scene, const char *option, char *value)
{
    if (strcmp(option, "--scene") == 0) {
        scene->name = value;
    } else if (strcmp(option, "--model") == 0) {
        scene->model_path = value;
    } else if (strcmp(option, "--controls") == 0) {
        scene->controls_path = value;
    } else if (strcmp(option, "--steps") == 0) {
        scene->steps = atoi(value);
    } else if (strcmp(option, "--vary") == 0) {
        char *rest = cut(value);
        scene->joint = value;
        scene->shift = number(&rest);
        scene->turn = number(&rest);
        scene->hinges = number(&rest);
        scene->rise = number(&rest);
    } else if (strcmp(option, "--held") == 0) {
        char *rest = cut(value);
        scene->body = value;
        scene->height = number(&rest);
    } else {
        return false;
    }
    return true;
}

/* ---- loading ---- */

/* Jaw and mug: close, lift to 0.2 m between 1 s and 2 s in steps of 20 ms, hold until 3 s. */
static void write_jaw_mug(bench_scene *scene, const char *build)
{
    static char folder[] = "/tmp/tribo_bench_XXXXXX", model[64], controls[64];
    char command[700];
    if (mkdtemp(folder) == NULL) exit(1);
    snprintf(command, sizeof command, "'%s/tests/data/jaw_mug' %s > /dev/null", build, folder);
    if (system(command) != 0) exit(1);
    snprintf(model, sizeof model, "%s/jaw_mug.xml", folder);
    snprintf(controls, sizeof controls, "%s/jaw_mug.csv", folder);
    FILE *file = fopen(controls, "w");
    if (file == NULL) exit(1);
    fprintf(file, "time,lift,close-1,close+1\n0,0,20,20\n");
    for (int i = 500; i <= 1000; i += 10)
        fprintf(file, "%.17g,%.17g,20,20\n", 2e-3 * i, 0.2 * fmin(2e-3 * (i + 5) - 1, 1));
    fclose(file);
    scene->name = "jaw_mug";
    scene->model_path = model;
    scene->controls_path = controls;
    scene->steps = scene->steps > 0 ? scene->steps : 1500;
    scene->joint = scene->body = "mug";
    scene->shift = 0.005;
    scene->turn = 0.3;
    scene->height = 0.15;
}

static void read_controls(bench_scene *scene)
{
    tb_error error;
    const tb_model_counts n = tb_model_count(scene->model);
    const char **names = calloc((size_t)n.actuators + 1, sizeof *names);
    FILE *file = fopen(scene->controls_path, "r");
    char *text = NULL;
    size_t size = 0;
    if (names == NULL || file == NULL || getdelim(&text, &size, '\0', file) < 0) {
        fprintf(stderr, "bench: %s cannot be read\n", scene->controls_path);
        exit(1);
    }
    fclose(file);
    for (int32_t i = 0; i < n.actuators; i++)
        names[i] = tb_model_thing_name(scene->model, TB_HANDLE_ACTUATOR, i);
    bench_check(controls_parse(text, strlen(text), scene->controls_path, names, n.actuators,
                               &scene->controls, &error),
                &error);
    free(text);
    free(names);
}

void bench_scene_load(bench_scene *scene, const char *build)
{
    tb_error error;
    if (scene->model_path == NULL) write_jaw_mug(scene, build);
    if (scene->name == NULL) scene->name = scene->model_path;
    bench_check(tb_model_load(scene->model_path, NULL, &scene->model, &error), &error);
    if (scene->controls_path != NULL && scene->controls_path[0] != '\0') read_controls(scene);
}

void bench_scene_free(bench_scene *scene)
{
    controls_free(&scene->controls);
    tb_model_destroy(scene->model);
}

/* ---- starts ---- */

/* The k-th number of a world, uniform in [-1, 1): SplitMix64, which scenes of other programs draw
 * from in the same way. */
static double draw(int32_t world, int32_t k)
{
    uint64_t x = ((uint64_t)world * NUMBERS + (uint64_t)k + 1) * 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    x ^= x >> 31;
    return (double)(x >> 11) * 0x1p-52 - 1;
}

/* Turns about the world's z, then shifts. */
static void displace(double q[7], double x, double y, double angle)
{
    const double c = cos(angle / 2), s = sin(angle / 2);
    const double w = q[3], i = q[4], j = q[5], k = q[6];
    q[0] += x;
    q[1] += y;
    q[3] = c * w - s * k;
    q[4] = c * i - s * j;
    q[5] = c * j + s * i;
    q[6] = c * k + s * w;
}

void bench_scene_start(const bench_scene *scene, tb_state *state, int32_t index)
{
    tb_error error;
    const tb_model_counts n = tb_model_count(scene->model);
    bench_check(
        tb_state_reset(state, tb_model_find(scene->model, TB_HANDLE_KEYFRAME, "start"), &error),
        &error);
    if (index == 0 || scene->joint == NULL) return;
    double *q = malloc((size_t)n.coordinates * sizeof *q);
    if (q == NULL) exit(1);
    memcpy(q, tb_state_q(state), (size_t)n.coordinates * sizeof *q);
    int32_t k = 0;
    for (int32_t i = 0; i < n.joints; i++) {
        tb_joint_info joint;
        bench_check(tb_model_joint_info(scene->model, i, &joint), NULL);
        const char *name = tb_model_thing_name(scene->model, TB_HANDLE_JOINT, i);
        double *own = q + joint.coordinate;
        if (joint.type == TB_JOINT_FREE) {
            if (strcmp(scene->joint, "*") != 0 && strcmp(scene->joint, name) != 0) continue;
            displace(own, scene->shift * draw(index, k), scene->shift * draw(index, k + 1),
                     scene->turn * draw(index, k + 2));
            own[2] += scene->rise;
            k += 3;
        } else if (joint.type == TB_JOINT_HINGE && scene->hinges > 0) {
            *own += scene->hinges * draw(index, k++);
            if (joint.limited) *own = fmin(fmax(*own, joint.lower), joint.upper);
        }
    }
    bench_check(tb_state_set_q(state, q, n.coordinates, &error), &error);
    free(q);
}

/* ---- the way ---- */

int32_t bench_scene_command(const bench_scene *scene, tb_state *const *states, int32_t worlds,
                            int32_t step)
{
    tb_error error;
    const control_table *table = &scene->controls;
    const double dt = tb_model_dt(scene->model);
    const int32_t row = controls_row(table, dt * step, dt / 1000);
    for (int32_t i = 0; row >= 0 && i < worlds; i++)
        for (int32_t c = 0; c < table->columns; c++)
            bench_check(tb_state_set_control(states[i], table->actuators[c],
                                             table->values[(int64_t)row * table->columns + c],
                                             &error),
                        &error);
    if (row + 1 >= table->rows) return scene->steps;
    const int32_t next = (int32_t)lround(table->times[row + 1] / dt);
    return next < scene->steps ? next : scene->steps;
}

int32_t bench_scene_held(const bench_scene *scene, tb_state *const *states, int32_t worlds)
{
    if (scene->body == NULL || scene->body[0] == '\0') return worlds;
    const int32_t body = tb_model_find(scene->model, TB_HANDLE_BODY, scene->body);
    int32_t held = 0;
    for (int32_t i = 0; i < worlds; i++) {
        tb_body_motion motion;
        bench_check(tb_state_body_motion(states[i], body, &motion), NULL);
        held += motion.position[2] > scene->height;
    }
    return held;
}
