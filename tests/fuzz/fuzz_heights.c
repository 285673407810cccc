/* Fuzzes the height field reader; input that begins with the byte 0x89 is read as PNG, other
 * input as binary. The reader returns a finite grid, or a failure with a message. */
#include <math.h>
#include <stdlib.h>

#include "model/import/mesh/height_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tb_bytes bytes = {0};
    double *heights = NULL;
    int32_t rows = 0, columns = 0;
    tb_error error = {0};
    if (tb_bytes_append(&bytes, data, size) != TB_OK || bytes.base == NULL) return 0;

    const bool image = size > 0 && data[0] == 0x89;
    const tb_status status =
        image ? tb_heights_parse_png(&bytes, "fuzz.png", &rows, &columns, &heights, &error)
              : tb_heights_parse_binary(&bytes, "fuzz.bin", &rows, &columns, &heights, &error);
    if (status == TB_OK) {
        if (rows < 2 || columns < 2) abort();
        for (int32_t i = 0; i < rows * columns; i++)
            if (!isfinite(heights[i])) abort();
    } else if (error.message[0] == 0 || heights != NULL) {
        abort();
    }
    free(heights);
    tb_bytes_free(&bytes);
    return 0;
}
