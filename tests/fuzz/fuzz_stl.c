/* Fuzzes the STL reader. */
#include "fuzz_mesh.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tb_error error = {0};
    (void)fuzz_mesh(data, size, tb_stl_parse, "fuzz.stl", 1, &error);
    return 0;
}
