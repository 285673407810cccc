/* A compiled model without the contacts of some pairs of shapes, and warnings added after its
 * compilation: see merge.h. */
#include "model/canonical.h"
#include "model/merge.h"
#include "model/model_internal.h"

tb_status tb_model_warn(tb_model *model, const char *text, tb_error *error)
{
    const size_t count = (size_t)model->number_of_warnings;
    const char **warnings = TB_ARENA_ARRAY(&model->arena, const char *, count + 1);
    const char *copy = tb_arena_string(&model->arena, text);
    if (warnings == NULL || copy == NULL) return tb_fail_memory(error, 0, "a warning");
    for (size_t i = 0; i < count; i++) warnings[i] = model->warnings[i];
    warnings[count] = copy;
    model->warnings = warnings;
    model->number_of_warnings++;
    return TB_OK;
}

tb_status tb_model_leave_out(const tb_model *model, const int32_t *pairs, int32_t count,
                             tb_model **without, tb_error *error)
{
    tb_scene *scene = NULL;
    *without = NULL;
    /* the canonical scene has the model's numbering */
    tb_status status = tb_canonical_read(
        model->bytes, model->bytes_size - TB_CANONICAL_CHECKSUM_SIZE, &scene, error);
    for (int32_t i = 0; i < 2 * count && status == TB_OK; i += 2)
        status = tb_scene_exclude_shapes(
            scene, tb_handle_make(TB_HANDLE_SHAPE, scene->owner, pairs[i]),
            tb_handle_make(TB_HANDLE_SHAPE, scene->owner, pairs[i + 1]), error);
    if (status == TB_OK) status = tb_scene_compile(scene, without, error);
    tb_scene_destroy(scene);
    if (status != TB_OK) return status;

    /* the canonical bytes hold no warnings: those of the model replace the compiler's */
    (*without)->number_of_warnings = 0;
    for (int32_t i = 0; i < model->number_of_warnings && status == TB_OK; i++)
        status = tb_model_warn(*without, model->warnings[i], error);
    if (status != TB_OK) {
        tb_model_destroy(*without);
        *without = NULL;
    }
    return status;
}
