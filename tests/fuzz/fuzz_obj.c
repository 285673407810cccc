/* Fuzzes the OBJ reader, whose failures also name the line. */
#include "fuzz_mesh.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tb_error error = {0};
    if (fuzz_mesh(data, size, tb_obj_parse, "fuzz.obj", 0, &error) != TB_OK && error.line == 0)
        abort();
    return 0;
}
