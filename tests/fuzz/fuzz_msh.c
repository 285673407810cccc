/* Fuzzes the MSH reader. The reader returns a mesh with valid indices, or a failure with a
 * message. */
#include <stdlib.h>

#include "model/import/mesh/mesh_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tb_bytes bytes = {0};
    tb_mesh_data mesh;
    tb_error error = {0};
    if (tb_bytes_append(&bytes, data, size) != TB_OK || bytes.base == NULL) return 0;

    const tb_status status =
        tb_msh_parse((const char *)bytes.base, bytes.size, "fuzz.msh", &mesh, &error);
    if (status == TB_OK) {
        for (int32_t i = 0; i < 3 * mesh.number_of_vertices; i++)
            if (!(fabs(mesh.vertices[i]) <= TB_MESH_COORDINATE_LIMIT)) abort();
        for (int32_t i = 0; i < 3 * mesh.number_of_triangles; i++)
            if (mesh.triangles[i] < 0 || mesh.triangles[i] >= mesh.number_of_vertices) abort();
    } else if (error.message[0] == 0 || mesh.vertices != NULL) {
        abort();
    }
    tb_mesh_data_free(&mesh);
    tb_bytes_free(&bytes);
    return 0;
}
