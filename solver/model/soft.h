/* Soft bodies in scenes and models, for the rooms below solver/grid: bytes that only solver/grid reads.
 *
 * The bytes are the text of the scene of soft bodies (grid/README.md). They are part of the model's
 * canonical bytes. */
#ifndef TB_MODEL_SOFT_H
#define TB_MODEL_SOFT_H

#include "base/base.h"

/* Gives the scene soft bodies; copies the bytes. RESOURCE_EXHAUSTED. */
tb_status tb_scene_set_soft(tb_scene *scene, const void *bytes, size_t size, tb_error *error);
bool tb_scene_has_soft(const tb_scene *scene);

/* Reads a scene of soft bodies, with the rigid bodies of the file that it includes; its walls become
 * shapes of the scene. INVALID_ARGUMENT names file, line, element and attribute; UNSUPPORTED: a shape
 * that soft bodies cannot touch. Defined in grid/import.c. */
tb_status tb_soft_import(const char *text, size_t size, const char *path,
                         const tb_import_options *options, tb_scene **scene, tb_error *error);

#endif
