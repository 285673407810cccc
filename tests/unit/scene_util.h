/* Models of named scenes (tribo_scene.h). Any failure ends the test. */
#ifndef SCENE_UTIL_H
#define SCENE_UTIL_H

#include "test_util.h"

/* The caller destroys the model. */
static inline tb_model *named_model(const char *name)
{
    unsigned char *text = NULL;
    size_t size = 0;
    tb_scene *scene = NULL;
    tb_model *model = NULL;
    tb_error error;
    TEST_OK(tb_named_scene_mjcf(name, &text, &size, &error), &error);
    TEST_OK(tb_scene_load_mjcf((const char *)text, size, name, NULL, &scene, &error), &error);
    TEST_OK(tb_scene_compile(scene, &model, &error), &error);
    tb_scene_destroy(scene);
    tb_bytes_destroy(text);
    return model;
}

#endif
