/* MSH, MuJoCo's own binary mesh: see mesh_file.h.
 *
 * Four little-endian counts (vertices, normals, texture coordinates, faces), then their data, 32
 * bits a number: 3 floats a vertex, 3 a normal, 2 a texture coordinate, 3 indices a face. Normals
 * and texture coordinates are as many as vertices, or none. Format: MuJoCo's XML reference,
 * asset/mesh/file. */
#include <stdlib.h>
#include <string.h>

#include "model/import/mesh/mesh_file.h"

#include "base/little_endian.h"

enum { HEADER_BYTES = 16, VERTICES_LEAST = 4 };

static double read_float(const unsigned char *bytes)
{
    const int32_t i = tb_read_i32(bytes);
    float f;
    memcpy(&f, &i, sizeof f);
    return (double)f;
}

/* Copies and checks the numbers; the arrays are there. */
static tb_status copy_data(const unsigned char *vertices, const unsigned char *faces,
                           const char *file, tb_mesh_data *mesh, tb_error *error)
{
    for (size_t i = 0; i < 3 * (size_t)mesh->number_of_vertices; i++) {
        mesh->vertices[i] = read_float(vertices + 4 * i);
        if (!(fabs(mesh->vertices[i]) <= TB_MESH_COORDINATE_LIMIT))
            return tb_fail_file(error, TB_INVALID_ARGUMENT, file, 0, "vertices",
                                "vertex %zu is not finite or too far away", i / 3);
    }
    for (size_t i = 0; i < 3 * (size_t)mesh->number_of_triangles; i++) {
        mesh->triangles[i] = tb_read_i32(faces + 4 * i);
        if (mesh->triangles[i] < 0 || mesh->triangles[i] >= mesh->number_of_vertices)
            return tb_fail_file(error, TB_INVALID_ARGUMENT, file, 0, "triangles",
                                "face %zu uses vertex %d of %d", i / 3, (int)mesh->triangles[i],
                                (int)mesh->number_of_vertices);
    }
    return TB_OK;
}

tb_status tb_msh_parse(const char *bytes, size_t size, const char *file, tb_mesh_data *mesh,
                       tb_error *error)
{
    const unsigned char *base = (const unsigned char *)bytes;
    int32_t n[4] = {0};
    memset(mesh, 0, sizeof *mesh);
    bool good = size >= HEADER_BYTES;
    for (int i = 0; good && i < 4; i++) {
        n[i] = tb_read_i32(base + 4 * i);
        good = n[i] >= 0 && n[i] <= TB_MESH_FILE_LIMIT;
    }
    good = good && n[0] >= VERTICES_LEAST && (n[1] == 0 || n[1] == n[0]) &&
           (n[2] == 0 || n[2] == n[0]);
    const size_t before_faces =
        good ? HEADER_BYTES + 12 * ((size_t)n[0] + (size_t)n[1]) + 8 * (size_t)n[2] : 0;
    if (!good || size != before_faces + 12 * (size_t)n[3])
        return tb_fail_file(error, TB_DATA_LOSS, file, 0, "file",
                            "no MSH file: %zu bytes do not fit its counts", size);
    mesh->number_of_vertices = n[0];
    mesh->number_of_triangles = n[3];
    mesh->vertices = malloc(3 * (size_t)n[0] * sizeof *mesh->vertices);
    mesh->triangles = malloc((3 * (size_t)n[3] + 1) * sizeof *mesh->triangles);
    const tb_status status =
        mesh->vertices != NULL && mesh->triangles != NULL
            ? copy_data(base + HEADER_BYTES, base + before_faces, file, mesh, error)
            : tb_fail_memory(error, size, "a mesh");
    if (status != TB_OK) tb_mesh_data_free(mesh);
    return status;
}
