/* The registry of named scenes, and the text that generators write to. */
#include "scenes/scenes.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define FAMILY_ENTRY(family) tb_scenes_##family,
static const tb_scene_recipe *const FAMILIES[] = {TB_SCENE_FAMILIES(FAMILY_ENTRY)};
enum { NUMBER_OF_FAMILIES = sizeof FAMILIES / sizeof FAMILIES[0], LONGEST_PUT = 1024 };

void tb_scene_put(tb_scene_text *text, const char *format, ...)
{
    char piece[LONGEST_PUT];
    if (text->status != TB_OK) return;
    va_list arguments;
    va_start(arguments, format);
    const int length = vsnprintf(piece, sizeof piece, format, arguments);
    va_end(arguments);
    if (length < 0 || (size_t)length >= sizeof piece)
        text->status = TB_INTERNAL;
    else
        text->status = tb_bytes_append(&text->bytes, piece, (size_t)length);
}

static const tb_scene_recipe *recipe_at(int32_t index)
{
    if (index < 0) return NULL;
    for (int f = 0; f < NUMBER_OF_FAMILIES; f++)
        for (const tb_scene_recipe *r = FAMILIES[f]; r->name; r++)
            if (index-- == 0) return r;
    return NULL;
}

const tb_scene_recipe *tb_scene_recipe_find(const char *name)
{
    const tb_scene_recipe *r = NULL;
    for (int32_t i = 0; name && (r = recipe_at(i)); i++)
        if (strcmp(r->name, name) == 0) return r;
    return NULL;
}

bool tb_named_scene_describe(int32_t index, tb_named_scene *scene)
{
    const tb_scene_recipe *r = recipe_at(index);
    memset(scene, 0, sizeof *scene);
    if (!r) return false;
    *scene = (tb_named_scene){r->name, r->summary, r->source};
    return true;
}

tb_status tb_named_scene_mjcf(const char *name, unsigned char **text, size_t *size, tb_error *error)
{
    *text = NULL;
    *size = 0;
    const tb_scene_recipe *recipe = tb_scene_recipe_find(name);
    if (!recipe)
        return tb_fail_field(error, TB_NOT_FOUND, "name", "there is no scene named '%s'",
                             name ? name : "");
    tb_scene_text written = {.status = TB_OK};
    recipe->write(&written, recipe);
    if (written.status != TB_OK) {
        tb_bytes_free(&written.bytes);
        return tb_fail(error, written.status, "scene '%s': %s", name,
                       tb_status_text(written.status));
    }
    *text = written.bytes.base;
    *size = written.bytes.size;
    return TB_OK;
}
