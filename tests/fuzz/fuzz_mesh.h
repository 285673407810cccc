/* Fuzzing of the readers of mesh files, which share one contract: a mesh with bounded coordinates
 * and valid indices, or a failure with a message and no mesh. */
#ifndef TESTS_FUZZ_MESH_H
#define TESTS_FUZZ_MESH_H

#include <stdlib.h>

#include "model/import/mesh/mesh_file.h"

typedef tb_status mesh_parse(const char *, size_t, const char *path, tb_mesh_data *, tb_error *);

/* Aborts if the reader breaks the contract. *error: of the reader, for further checks. */
static inline tb_status fuzz_mesh(const uint8_t *data, size_t size, mesh_parse *parse,
                                  const char *path, int32_t least_triangles, tb_error *error)
{
    tb_bytes bytes = {0};
    tb_mesh_data mesh;
    if (tb_bytes_append(&bytes, data, size) != TB_OK || bytes.base == NULL) return TB_OK;

    const tb_status status = parse((const char *)bytes.base, bytes.size, path, &mesh, error);
    if (status == TB_OK) {
        if (mesh.number_of_triangles < least_triangles) abort();
        for (int32_t i = 0; i < 3 * mesh.number_of_vertices; i++)
            if (!(fabs(mesh.vertices[i]) <= TB_MESH_COORDINATE_LIMIT)) abort();
        for (int32_t i = 0; i < 3 * mesh.number_of_triangles; i++)
            if (mesh.triangles[i] < 0 || mesh.triangles[i] >= mesh.number_of_vertices) abort();
    } else if (error->message[0] == 0 || mesh.vertices != NULL) {
        abort();
    }
    tb_mesh_data_free(&mesh);
    tb_bytes_free(&bytes);
    return status;
}

#endif
