/* Fuzzes canonical model bytes behind their checksum. A model that is read compiles or fails
 * with a message. A compiled model, written to bytes and read again, is the same model. */
#include "model/model_internal.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tb_error error = {0};
    tb_scene *scene = NULL;
    tb_model *model = NULL, *again = NULL;
    if (size > 65536) return 0;
    if (tb_canonical_read(data, size, &scene, &error) != TB_OK) {
        if (scene != NULL || error.message[0] == 0) abort();
        return 0;
    }
    memset(&error, 0, sizeof error);
    if (tb_scene_compile(scene, &model, &error) != TB_OK) {
        if (model != NULL || error.message[0] == 0) abort();
    } else {
        if (tb_model_from_bytes(model->bytes, model->bytes_size, &again, &error) != TB_OK) abort();
        if (strcmp(model->sha256, again->sha256) != 0) abort();
    }
    tb_model_destroy(again);
    tb_model_destroy(model);
    tb_scene_destroy(scene);
    return 0;
}
