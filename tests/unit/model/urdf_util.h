/* Shared by the tests of URDF: loading from memory, expected failures and warnings, and pieces of
 * documents. */
#ifndef URDF_UTIL_H
#define URDF_UTIL_H

#include "test_util.h"

#include "model/model.h"

static tb_error error;

static inline tb_status load_as(const char *text, bool fixed_base, tb_scene **scene)
{
    tb_import_options options = tb_import_defaults();
    options.fixed_base = fixed_base;
    memset(&error, 0, sizeof error);
    return tb_scene_load_urdf(text, strlen(text), "/nowhere/t.urdf", &options, scene, &error);
}

static inline tb_model *compiled(const char *text, bool fixed_base)
{
    tb_scene *scene;
    tb_model *model;
    TEST_OK(load_as(text, fixed_base, &scene), &error);
    TEST_OK(tb_scene_compile(scene, &model, &error), &error);
    tb_scene_destroy(scene);
    return model;
}

/* Loads, expects a failure with this status at this line whose message contains these words. */
static inline void check_failure(const char *text, tb_status expected, int line, const char *words)
{
    tb_scene *scene;
    const tb_status status = load_as(text, true, &scene);
    ck_assert_msg(status == expected, "%s\ngave %s (%s)", text, tb_status_name(status),
                  error.message);
    ck_assert_msg(strstr(error.message, words) != NULL, "'%s' lacks '%s'", error.message, words);
    ck_assert_int_eq(error.line, line);
    ck_assert_str_eq(error.file, "/nowhere/t.urdf");
    ck_assert_ptr_null(scene);
}

/* Whether the scene of a text warns with these words. */
static inline bool warns(const char *text, const char *words)
{
    tb_scene *scene;
    bool found = false;
    TEST_OK(load_as(text, true, &scene), &error);
    for (int32_t i = 0; i < tb_scene_number_of_warnings(scene); i++)
        if (strstr(tb_scene_warning(scene, i), words) != NULL) found = true;
    tb_scene_destroy(scene);
    return found;
}

static inline tb_body_info body_named(const tb_model *model, const char *name)
{
    tb_body_info info;
    const int32_t index = tb_model_find(model, TB_HANDLE_BODY, name);
    ck_assert_msg(index > 0, "there is no body %s", name);
    TEST_OK(tb_model_body_info(model, index, &info), NULL);
    return info;
}

#define ROBOT(inside) "<robot name='r'>\n" inside "\n</robot>"
#define MASS          "<inertial><mass value='2'/><inertia ixx='1' iyy='1' izz='1'/></inertial>"
#define LINK(name)    "<link name='" name "'>" MASS "</link>"
#define ENDS(a, b)    "<parent link='" a "'/><child link='" b "'/>"
#define LIMIT         "<limit lower='-1' upper='2' effort='5' velocity='3'/>"
#define HINGE(name, a, b, inside)                                                                  \
    "<joint name='" name "' type='revolute'>" ENDS(a, b) LIMIT inside "</joint>"
/* two links and a joint, with something inside the joint */
#define PAIR(inside) ROBOT(LINK("a") LINK("b") "\n" HINGE("j", "a", "b", inside))
#define COLLISION(shape)                                                                           \
    "<collision><origin xyz='0 0 1'/><geometry><" shape "/></geometry></collision>"
#define WELD(name, a, b) "<joint name='" name "' type='fixed'>" ENDS(a, b) "</joint>"

#endif
