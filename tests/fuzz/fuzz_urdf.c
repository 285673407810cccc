/* Fuzzes the URDF reader. The reader returns a scene, which compiles or fails with a message,
 * or a failure with a message. The path of the input names a folder that does not exist, so
 * that the reader finds no mesh files. */
#include <stdlib.h>

#include "base/base.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tb_import_options options = tb_import_defaults();
    tb_scene *scene = NULL;
    tb_model *model = NULL;
    tb_error error = {0};

    options.fixed_base = size % 2 == 0;
    tb_status status = tb_scene_load_urdf((const char *)data, size, "/nowhere/fuzz.urdf", &options,
                                          &scene, &error);
    if (status != TB_OK && (error.message[0] == 0 || scene != NULL)) abort();
    if (status == TB_OK) {
        status = tb_scene_compile(scene, &model, &error);
        if (status != TB_OK && (error.message[0] == 0 || model != NULL)) abort();
    }
    tb_model_destroy(model);
    tb_scene_destroy(scene);
    return 0;
}
