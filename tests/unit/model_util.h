/* Scenes in few lines, for the tests of the model room. Any failure ends the test. */
#ifndef MODEL_UTIL_H
#define MODEL_UTIL_H

#include "model/model_internal.h"
#include "test_util.h"

static inline tb_scene *new_scene(void)
{
    tb_scene *scene = NULL;
    tb_error error = {0};
    TEST_OK(tb_scene_create(NULL, &scene, &error), &error);
    return scene;
}

static inline tb_handle add_body(tb_scene *scene, tb_handle parent, const char *name)
{
    tb_error error = {0};
    tb_handle handle;
    tb_body_def def = tb_body_defaults();
    def.name = name;
    def.parent = parent;
    TEST_OK(tb_scene_add_body(scene, &def, &handle, &error), &error);
    return handle;
}

static inline tb_handle add_joint(tb_scene *scene, tb_handle body, tb_joint_type type,
                                  const char *name)
{
    tb_error error = {0};
    tb_handle handle;
    tb_joint_def def = tb_joint_defaults();
    def.name = name;
    def.body = body;
    def.type = type;
    TEST_OK(tb_scene_add_joint(scene, &def, &handle, &error), &error);
    return handle;
}

static inline tb_handle add_shape(tb_scene *scene, tb_handle body, tb_shape_type type, double a,
                                  double b, double c)
{
    tb_error error = {0};
    tb_handle handle;
    tb_shape_def def = tb_shape_defaults();
    def.body = body;
    def.type = type;
    def.size[0] = a, def.size[1] = b, def.size[2] = c;
    TEST_OK(tb_scene_add_shape(scene, &def, &handle, &error), &error);
    return handle;
}

/* A body that flies free, with a sphere. */
static inline tb_handle add_ball(tb_scene *scene, const char *name)
{
    const tb_handle none = {0}, body = add_body(scene, none, name);
    add_joint(scene, body, TB_JOINT_FREE, NULL);
    add_shape(scene, body, TB_SHAPE_SPHERE, 0.1, 0, 0);
    return body;
}

static inline tb_model *compile(tb_scene *scene)
{
    tb_model *model = NULL;
    tb_error error = {0};
    TEST_OK(tb_scene_compile(scene, &model, &error), &error);
    return model;
}

/* Compiling must fail with this status, field and word in the message. */
static inline void compile_fails(tb_scene *scene, tb_status status, const char *field,
                                 const char *word)
{
    tb_model *model = NULL;
    tb_error error = {0};
    TEST_STATUS(tb_scene_compile(scene, &model, &error), status, &error);
    ck_assert_ptr_null(model);
    ck_assert_str_eq(error.field, field);
    ck_assert_msg(strstr(error.message, word) != NULL, "'%s' is not in: %s", word, error.message);
}

/* Corners of a box, and its twelve triangles. */
static inline void box_mesh(const double half[3], double vertices[24], int32_t triangles[36])
{
    static const int32_t quads[6][4] = {{0, 4, 6, 2}, {1, 3, 7, 5}, {0, 1, 5, 4},
                                        {2, 6, 7, 3}, {0, 2, 3, 1}, {4, 5, 7, 6}};
    for (int i = 0; i < 8; i++)
        for (int k = 0; k < 3; k++) vertices[3 * i + k] = (i >> k & 1) ? half[k] : -half[k];
    for (int i = 0; i < 6; i++) {
        const int32_t *q = quads[i];
        const int32_t two[6] = {q[0], q[1], q[2], q[0], q[2], q[3]};
        memcpy(triangles + 6 * i, two, sizeof two);
    }
}

/* One of everything: the scene that the tests of bytes and names take apart. */
tb_scene *rich_scene(void);

#endif
