/* Meshes that MJCF makes from parameters instead of reading a file: mesh builtin="...".
 *
 * Vertices and triangles are those of MuJoCo 4.0, to the float, because masses and hulls follow
 * from them. Source: MuJoCo's XML reference, asset/mesh/builtin, and its answers. */
#ifndef TB_MESH_BUILTIN_H
#define TB_MESH_BUILTIN_H

#include "model/import/mesh/mesh_file.h"

typedef enum tb_builtin_mesh {
    TB_BUILTIN_SPHERE,      /* subdivisions (0 to 4) of an icosahedron of radius 1 */
    TB_BUILTIN_HEMISPHERE,  /* resolution (0 to 10), radius 1, closed by a disk at z = 0 */
    TB_BUILTIN_CONE,        /* edges, radius of the top: from radius 1 at z = -1 to z = 1 */
    TB_BUILTIN_SUPERSPHERE, /* resolution, exponents e (about z) and n (along z) */
    TB_BUILTIN_SUPERTORUS,  /* resolution, radius of the tube, exponents s and t */
    TB_BUILTIN_WEDGE,       /* resolution x 2, field of view x 2 (degree), foveal gamma */
    TB_BUILTIN_PLATE        /* resolution x 2: the square [-1, 1]^2 at z = -1 */
} tb_builtin_mesh;

/* The names of tb_builtin_mesh, in its order, as MJCF writes them. */
#define TB_BUILTIN_MESH_WORDS "sphere hemisphere cone supersphere supertorus wedge plate"

/* Makes the mesh; cone and wedge are points without triangles, that is, their hull. The caller
 * frees *mesh. INVALID_ARGUMENT for a wrong number of parameters or one out of its range;
 * RESOURCE_EXHAUSTED without memory or beyond TB_MESH_FILE_LIMIT. */
tb_status tb_mesh_make_builtin(tb_builtin_mesh kind, const double *parameters, int32_t count,
                               tb_mesh_data *mesh, tb_error *error);

#endif
