/* Fuzzes the OBJ reader. The reader returns a mesh with valid indices, or a failure that names
 * the line. */
#include <stdlib.h>

#include "model/import/mesh/mesh_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tb_bytes text = {0};
    tb_mesh_data mesh;
    tb_error error = {0};
    if (tb_bytes_append(&text, data, size) != TB_OK || text.base == NULL) return 0;

    const tb_status status =
        tb_obj_parse((const char *)text.base, text.size, "fuzz.obj", &mesh, &error);
    if (status == TB_OK) {
        for (int32_t i = 0; i < 3 * mesh.number_of_vertices; i++)
            if (!(fabs(mesh.vertices[i]) <= TB_MESH_COORDINATE_LIMIT)) abort();
        for (int32_t i = 0; i < 3 * mesh.number_of_triangles; i++)
            if (mesh.triangles[i] < 0 || mesh.triangles[i] >= mesh.number_of_vertices) abort();
    } else if (error.message[0] == 0 || error.line == 0 || mesh.vertices != NULL) {
        abort();
    }
    tb_mesh_data_free(&mesh);
    tb_bytes_free(&text);
    return 0;
}
