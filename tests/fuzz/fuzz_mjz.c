/* Fuzzes the reader of archives that hold a model. The reader returns a scene, or a failure
 * with a message. All files come from the archive. */
#include <stdlib.h>

#include "model/import/mjz.h"

enum { FUZZ_BYTES = 1 << 18 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tb_import_options options = tb_import_defaults();
    tb_bytes bytes = {0};
    tb_scene *scene = NULL;
    tb_error error = {0};
    if (tb_bytes_append(&bytes, data, size) != TB_OK || bytes.base == NULL) return 0;

    options.file_limit = FUZZ_BYTES;
    const tb_status status =
        tb_scene_load_mjz(&bytes, "/nowhere/fuzz.mjz", &options, &scene, &error);
    if ((status == TB_OK) != (scene != NULL)) abort();
    if (status != TB_OK && error.message[0] == 0) abort();
    tb_scene_destroy(scene);
    tb_bytes_free(&bytes);
    return 0;
}
