/* Fuzzes the reader of GMSH files, and that of an OBJ's lines: bounded points and valid indices, or a failure
 * with a message and nothing else. */
#include <math.h>
#include <stdlib.h>

#include "model/import/mesh/mesh_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(tb_status status, tb_simplices *body, const tb_error *error)
{
    if (status != TB_OK && (error->message[0] == 0 || body->points != NULL)) abort();
    const int64_t corners = (int64_t)body->number_of_simplices * (body->dimension + 1);
    for (int32_t i = 0; i < 3 * body->number_of_points; i++)
        if (!(fabs(body->points[i]) <= TB_MESH_COORDINATE_LIMIT)) abort();
    for (int64_t i = 0; i < corners; i++)
        if (body->simplices[i] < 0 || body->simplices[i] >= body->number_of_points) abort();
    tb_simplices_free(body);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tb_bytes bytes = {0};
    tb_simplices body;
    tb_error error = {0}, of_lines = {0};
    if (tb_bytes_append(&bytes, data, size) != TB_OK || bytes.base == NULL) return 0;
    const char *text = (const char *)bytes.base;
    check(tb_gmsh_parse(text, bytes.size, "fuzz.msh", &body, &error), &body, &error);
    check(tb_obj_parse_lines(text, bytes.size, "fuzz.obj", &body, &of_lines), &body, &of_lines);
    tb_bytes_free(&bytes);
    return 0;
}
