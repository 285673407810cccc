/* Which mesh format a file has: see mesh_file.h. */
#include "model/mesh_file.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

void tb_mesh_data_free(tb_mesh_data *mesh)
{
    free(mesh->vertices);
    free(mesh->triangles);
    memset(mesh, 0, sizeof *mesh);
}

static bool has_extension(const char *path, const char *extension)
{
    const size_t length = strlen(path), n = strlen(extension);
    return length >= n && strcasecmp(path + length - n, extension) == 0;
}

tb_status tb_mesh_data_parse(const char *bytes, size_t size, const char *file, tb_mesh_data *mesh,
                             tb_error *error)
{
    static const char *const KNOWN[] = {".dae", ".ply", ".gltf", ".glb", ".fbx", ".3ds"};
    for (size_t i = 0; i < sizeof KNOWN / sizeof KNOWN[0]; i++)
        if (has_extension(file, KNOWN[i])) {
            memset(mesh, 0, sizeof *mesh);
            return tb_fail_file(error, TB_UNSUPPORTED, file, 0, "mesh",
                                "mesh files of type %s are not supported: use OBJ or STL",
                                KNOWN[i]);
        }
    if (has_extension(file, ".obj")) return tb_obj_parse(bytes, size, file, mesh, error);
    if (has_extension(file, ".stl")) return tb_stl_parse(bytes, size, file, mesh, error);
    if (has_extension(file, ".msh")) return tb_msh_parse(bytes, size, file, mesh, error);

    /* no zero byte and no "solid": text, and the only other text is OBJ */
    const size_t head = size < 1024 ? size : 1024;
    const bool solid = size >= 5 && strncasecmp(bytes, "solid", 5) == 0;
    if (solid || memchr(bytes, 0, head) != NULL)
        return tb_stl_parse(bytes, size, file, mesh, error);
    return tb_obj_parse(bytes, size, file, mesh, error);
}
