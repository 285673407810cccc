/* Named scenes: generators that write MJCF, each with its own name (tb_named_scene_mjcf).
 *
 * A family of scenes is one file of this folder: it ends in an array of recipes, and the array stands
 * in TB_SCENE_FAMILIES. The file of a thesis's scenes lists the numbers of the thesis and the
 * numbers chosen here. */
#ifndef TB_SCENES_H
#define TB_SCENES_H

#include "base/base.h"

/* A growing text. `status` keeps the first failure, and later writes are dropped, so that
 * generators need not check. */
typedef struct tb_scene_text {
    tb_bytes bytes;
    tb_status status;
} tb_scene_text;

/* Appends formatted text, at most 1,000 characters a call. */
void tb_scene_put(tb_scene_text *text, const char *format, ...) TB_PRINTF(2, 3);

/* One named scene. `write` receives the recipe, so that one function can write a whole family. */
typedef struct tb_scene_recipe {
    const char *name, *summary, *source;
    void (*write)(tb_scene_text *text, const struct tb_scene_recipe *recipe);
    int32_t size;       /* spheres along an edge, groups, bodies: the family's choice */
    double angle;       /* rad, of a slope */
    double friction;    /* mu of all contacts */
    const char *detail; /* the shape of its bodies, or NULL */
} tb_scene_recipe;

/* Families: each is an array tb_scenes_FAMILY that ends with a NULL name. */
#define TB_SCENE_FAMILIES(X) X(readme) X(betz) X(poulsen) X(nuetzi) X(goteman) X(litven)

#define TB_SCENE_DECLARE(family) extern const tb_scene_recipe tb_scenes_##family[];
TB_SCENE_FAMILIES(TB_SCENE_DECLARE)
#undef TB_SCENE_DECLARE

/* The recipe of this name, or NULL. */
const tb_scene_recipe *tb_scene_recipe_find(const char *name);

#endif
