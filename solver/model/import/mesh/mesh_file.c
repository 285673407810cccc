/* Which mesh format a file has: see mesh_file.h. */
#include "model/import/mesh/mesh_file.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

void tb_mesh_data_free(tb_mesh_data *mesh)
{
    free(mesh->vertices);
    free(mesh->triangles);
    memset(mesh, 0, sizeof *mesh);
}

void tb_simplices_free(tb_simplices *body)
{
    free(body->points);
    free(body->simplices);
    memset(body, 0, sizeof *body);
}

tb_status tb_mesh_data_compact(tb_mesh_data *mesh, tb_error *error)
{
    const size_t vertices = (size_t)mesh->number_of_vertices;
    int32_t *place = malloc((vertices + 1) * sizeof *place);
    if (place == NULL) return tb_fail_memory(error, vertices * sizeof *place, "vertices");
    for (size_t i = 0; i < vertices; i++) place[i] = -1;
    const size_t corners = 3 * (size_t)mesh->number_of_triangles;
    for (size_t i = 0; i < corners; i++) place[mesh->triangles[i]] = 0;

    int32_t kept = 0;
    for (size_t i = 0; i < vertices; i++) {
        if (place[i] < 0) continue;
        memmove(mesh->vertices + 3 * (size_t)kept, mesh->vertices + 3 * i, 3 * sizeof(double));
        place[i] = kept++;
    }
    for (size_t i = 0; i < corners; i++) mesh->triangles[i] = place[mesh->triangles[i]];
    mesh->number_of_vertices = kept;
    free(place);
    return TB_OK;
}

static bool has_extension(const char *path, const char *extension)
{
    const size_t length = strlen(path), n = strlen(extension);
    return length >= n && strcasecmp(path + length - n, extension) == 0;
}

bool tb_mesh_is_dae(const char *file)
{
    return has_extension(file, ".dae");
}

tb_status tb_mesh_data_parse(const char *bytes, size_t size, const char *file, tb_mesh_data *mesh,
                             tb_error *error)
{
    static const char *const KNOWN[] = {".ply", ".gltf", ".glb", ".fbx", ".3ds", ".dxf"};
    for (size_t i = 0; i < sizeof KNOWN / sizeof KNOWN[0]; i++)
        if (has_extension(file, KNOWN[i])) {
            memset(mesh, 0, sizeof *mesh);
            return tb_fail_file(
                error, TB_UNSUPPORTED, file, 0, "mesh",
                "mesh files of type %s are not supported: use OBJ, STL, DAE, MSH or CSG", KNOWN[i]);
        }
    if (has_extension(file, ".obj")) return tb_obj_parse(bytes, size, file, mesh, error);
    if (has_extension(file, ".stl")) return tb_stl_parse(bytes, size, file, mesh, error);
    if (tb_mesh_is_dae(file)) return tb_dae_parse(bytes, size, file, mesh, error);
    if (has_extension(file, ".csg")) return tb_csg_parse(bytes, size, file, mesh, error);
    if (has_extension(file, ".msh")) return tb_msh_parse(bytes, size, file, mesh, error);

    /* no zero byte and no "solid": text, and the only other text is OBJ */
    const size_t head = size < 1024 ? size : 1024;
    const bool solid = size >= 5 && strncasecmp(bytes, "solid", 5) == 0;
    if (solid || memchr(bytes, 0, head) != NULL)
        return tb_stl_parse(bytes, size, file, mesh, error);
    return tb_obj_parse(bytes, size, file, mesh, error);
}
