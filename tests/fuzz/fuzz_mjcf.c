/* Fuzzes the MJCF reader. The reader returns a scene, which compiles or fails with a message,
 * or a failure with a message. Includes and mesh files are refused, so that the reader opens no
 * other file. An input of odd size sets a shallow depth limit. */
#include <stdlib.h>

#include "base/base.h"

enum { FUZZ_BYTES = 1 << 16 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tb_import_options options = tb_import_defaults();
    tb_scene *scene = NULL;
    tb_model *model = NULL;
    tb_error error = {0};

    options.no_files = true;
    options.file_limit = FUZZ_BYTES;
    if (size % 2 == 1) options.depth_limit = 12;
    tb_status status =
        tb_scene_load_mjcf((const char *)data, size, "/nowhere/fuzz.xml", &options, &scene, &error);
    if (status != TB_OK && (error.message[0] == 0 || scene != NULL)) abort();
    if (status == TB_OK) {
        status = tb_scene_compile(scene, &model, &error);
        if (status != TB_OK && (error.message[0] == 0 || model != NULL)) abort();
    }
    tb_model_destroy(model);
    tb_scene_destroy(scene);
    return 0;
}
