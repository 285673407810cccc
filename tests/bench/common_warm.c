/* Scenes and controls of the grasps that warm starts are measured on. See common_warm.h. */
#include "common_warm.h"

#include <unistd.h>

/* Runs a generator of tests/data; the folder that it wrote to. */
static void generate(const char *program, char folder[520])
{
    char self[512], command[1600];
    const ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    self[length > 0 ? length : 0] = '\0';
    char *slash = strstr(self, "/bench/");
    if (slash != NULL) *slash = '\0';
    snprintf(folder, 520, "%s/data", self);
    snprintf(command, sizeof command, "'%s/%s' '%s' > /dev/null", folder, program, folder);
    if (system(command) != 0) exit(1);
}

static int32_t find(const tb_model *model, tb_handle_kind kind, const char *name)
{
    const int32_t index = tb_model_find(model, kind, name);
    if (index < 0) {
        fprintf(stderr, "bench: the model has no '%s'\n", name);
        exit(1);
    }
    return index;
}

/* The first dof of a free body. */
static int32_t first_dof(const tb_model *model, int32_t body)
{
    tb_joint_info joint;
    for (int32_t i = 0; tb_model_joint_info(model, i, &joint) == TB_OK; i++)
        if (joint.body == body) return joint.dof;
    fprintf(stderr, "bench: the mug has no joint\n");
    exit(1);
}

typedef struct names {
    const char *program, *file, *keyframe, *closing[2];
} names;

static void load(warm_scene *s, const names *n)
{
    tb_error error;
    char folder[520];
    generate(n->program, folder);
    snprintf(s->path, sizeof s->path, "%s/%s", folder, n->file);
    bench_check(tb_model_load(s->path, NULL, &s->model, &error), &error);
    s->counts = tb_model_count(s->model);
    s->keyframe = n->keyframe != NULL ? find(s->model, TB_HANDLE_KEYFRAME, n->keyframe) : -1;
    s->lift = find(s->model, TB_HANDLE_ACTUATOR, "lift");
    s->mug = find(s->model, TB_HANDLE_BODY, "mug");
    s->first = first_dof(s->model, s->mug);
    s->controls = calloc((size_t)s->counts.actuators, sizeof *s->controls);
    s->forces = calloc((size_t)s->counts.dofs, sizeof *s->forces);
    if (s->controls == NULL || s->forces == NULL) exit(1);
    tb_state *state = warm_start(s);
    memcpy(s->controls, tb_state_controls(state),
           (size_t)s->counts.actuators * sizeof *s->controls);
    s->height = s->controls[s->lift];
    for (int k = 0; k < 2; k++)
        s->controls[find(s->model, TB_HANDLE_ACTUATOR, n->closing[k])] = s->force;
    tb_state_destroy(state);
}

void warm_load(warm_scene scenes[WARM_SCENES])
{
    static const names JAW = {"jaw_mug", "jaw_mug.xml", NULL, {"close-1", "close+1"}};
    static const names HAND = {"hand", "grasp.xml", "handle", {"close_left", "close_right"}};
    char folder[520];
    generate("mug", folder); /* the hand's mesh */
    scenes[0] = (warm_scene){.name = "jaw and mug", .force = 20};
    load(&scenes[0], &JAW);
    scenes[1] = (warm_scene){.name = "hand on the handle", .force = 40};
    load(&scenes[1], &HAND);
}

void warm_free(warm_scene *s)
{
    free(s->controls);
    free(s->forces);
    tb_model_destroy(s->model);
}

tb_state *warm_start(const warm_scene *s)
{
    tb_error error;
    tb_state *state = NULL;
    bench_check(tb_state_create(s->model, &state, &error), &error);
    if (s->keyframe >= 0) bench_check(tb_state_reset(state, s->keyframe, &error), &error);
    return state;
}

void warm_command(warm_scene *s, int64_t steps)
{
    const double time = 2e-3 * (double)steps, pull = time - 1.5;
    const bool pulled = pull >= 0 && pull < 0.2;
    s->forces[s->first] = pulled ? 0.5 * sin(60 * pull) : 0;
    s->forces[s->first + 1] = pulled ? 2 * sin(100 * pull) : 0;
    s->forces[s->first + 5] = pulled ? 0.02 : 0;
    s->controls[s->lift] = s->height + 0.1 * fmin(fmax((time - 0.6) / 0.6, 0), 1);
}

void warm_check(const warm_scene *s, const tb_state *state)
{
    tb_body_motion motion;
    bench_check(tb_state_body_motion(state, s->mug, &motion), NULL);
    if (tb_state_steps(state) < WARM_STEPS || motion.position[2] > 0.09) return;
    fprintf(stderr, "bench: %s was not lifted (z %.4f m)\n", s->name, motion.position[2]);
    exit(1);
}

void warm_print(const warm_scene *s, const char *way, const char *what, double value)
{
    char name[160];
    snprintf(name, sizeof name, "%s, %s, %s", s->name, way, what);
    bench_print_number(name, "1", value);
}

void warm_print_work(const warm_scene *s, const char *way, const tb_certificate *c)
{
    warm_print(s, way, "linear solves a step", (double)c->linear_solves / WARM_STEPS);
    warm_print(s, way, "factorizations a step", (double)c->factorizations / WARM_STEPS);
    warm_print(s, way, "sweeps a step", (double)(c->iterations - c->linear_solves) / WARM_STEPS);
    warm_print(s, way, "resets", (double)c->resets);
    if (c->known_statuses > 0)
        warm_print(s, way, "share of statuses kept",
                   (double)c->kept_statuses / (double)c->known_statuses);
    warm_print(s, way, "largest residual", c->residual);
}
