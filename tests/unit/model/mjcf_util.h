/* MJCF documents in few lines, for the importer's tests. Any failure ends the test.
 *
 * Expected numbers were read from MuJoCo 4.0 given the same documents, where they are not
 * obvious. */
#ifndef MJCF_UTIL_H
#define MJCF_UTIL_H

#include "model/model_internal.h"
#include "test_util.h"

/* frame of most documents */
#define MJCF(text)  "<mujoco>" text "</mujoco>"
#define WORLD(text) MJCF("<worldbody>" text "</worldbody>")
/* a hinged ball, 0.3 m off its axis */
#define PENDULUM(attributes)                                                                       \
    "<body name='p'><joint name='j' " attributes "/><geom size='.1' pos='.3 0 0'/></body>"

typedef struct mjcf_case {
    tb_scene *scene;
    tb_model *model;
    tb_error error;
} mjcf_case;

static inline mjcf_case mjcf_load(const char *text)
{
    mjcf_case c = {0};
    TEST_OK(tb_scene_load_mjcf(text, strlen(text), "t.xml", NULL, &c.scene, &c.error), &c.error);
    TEST_OK(tb_scene_compile(c.scene, &c.model, &c.error), &c.error);
    return c;
}

static inline void mjcf_free(mjcf_case *c)
{
    tb_model_destroy(c->model);
    tb_scene_destroy(c->scene);
}

/* Loads, expects a refusal with this status at this line whose message begins with the place and
 * contains `words`. */
static inline void mjcf_refuses(const char *text, tb_status expected, int line, const char *words)
{
    tb_scene *scene = NULL;
    tb_error error = {0};
    char place[64];
    const tb_status status = tb_scene_load_mjcf(text, strlen(text), "t.xml", NULL, &scene, &error);
    ck_assert_msg(status == expected, "%s gave %s, not %s (%s)", text, tb_status_name(status),
                  tb_status_name(expected), error.message);
    ck_assert_ptr_null(scene);
    snprintf(place, sizeof place, line > 0 ? "t.xml:%d: " : "t.xml: ", line);
    ck_assert_msg(strncmp(error.message, place, strlen(place)) == 0,
                  "'%s' does not begin with '%s'", error.message, place);
    ck_assert_int_eq(error.line, line);
    ck_assert_msg(strstr(error.message, words) != NULL, "'%s' lacks '%s'", error.message, words);
}

/* How many warnings hold `words`. */
static inline int mjcf_warnings(const mjcf_case *c, const char *words)
{
    int count = 0;
    for (int32_t i = 0; i < tb_scene_number_of_warnings(c->scene); i++)
        count += strstr(tb_scene_warning(c->scene, i), words) != NULL;
    return count;
}

static inline int32_t mjcf_index(const mjcf_case *c, tb_handle_kind kind, const char *name)
{
    const int32_t index = tb_model_find(c->model, kind, name);
    ck_assert_msg(index >= 0, "there is no %s", name);
    return index;
}

static inline const tb_model_body *mjcf_body(const mjcf_case *c, const char *name)
{
    return &c->model->bodies[mjcf_index(c, TB_HANDLE_BODY, name)];
}

static inline const tb_model_joint *mjcf_joint_of(const mjcf_case *c, const char *name)
{
    return &c->model->joints[mjcf_index(c, TB_HANDLE_JOINT, name)];
}

static inline const tb_model_shape *mjcf_shape(const mjcf_case *c, const char *name)
{
    return &c->model->shapes[mjcf_index(c, TB_HANDLE_SHAPE, name)];
}

#define MJCF_NEAR3(actual, x, y, z)                                                                \
    do {                                                                                           \
        const double *near_ = (actual);                                                            \
        TEST_NEAR(near_[0], x, 1e-12);                                                             \
        TEST_NEAR(near_[1], y, 1e-12);                                                             \
        TEST_NEAR(near_[2], z, 1e-12);                                                             \
    } while (0)

/* the same rotation: quaternions up to their sign */
static inline void mjcf_near_quaternion(const double *actual, double w, double x, double y,
                                        double z)
{
    const double length = sqrt(w * w + x * x + y * y + z * z);
    const double dot = (actual[0] * w + actual[1] * x + actual[2] * y + actual[3] * z) / length;
    ck_assert_msg(fabs(fabs(dot) - 1) < 1e-12, "(%g %g %g %g) is not (%g %g %g %g)", actual[0],
                  actual[1], actual[2], actual[3], w / length, x / length, y / length, z / length);
}

#endif
