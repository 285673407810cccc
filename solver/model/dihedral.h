/* The angle of two triangles on an edge, and its derivatives. Corners: the edge's, then the apex of each triangle. */
#ifndef TB_DIHEDRAL_H
#define TB_DIHEDRAL_H

#include "base/base.h"

/* Normals of both triangles, as long as twice their areas, towards one side of a flat pair. */
TB_FN void tb_dihedral_normals(const tb_vec3 x[4], tb_vec3 normals[2])
{
    const tb_vec3 edge = tb_v3_sub(x[1], x[0]);
    normals[0] = tb_v3_cross(edge, tb_v3_sub(x[2], x[0]));
    normals[1] = tb_v3_cross(tb_v3_sub(x[3], x[0]), edge);
}

/* From the first normal to the second one about the edge, rad; 0 where the triangles go on in one plane. */
TB_FN tb_real tb_dihedral_angle(const tb_vec3 x[4])
{
    tb_vec3 n[2];
    tb_dihedral_normals(x, n);
    const tb_vec3 edge = tb_v3_sub(x[1], x[0]);
    return tb_atan2(tb_v3_dot(tb_v3_cross(n[0], n[1]), edge),
                    tb_v3_dot(n[0], n[1]) * tb_v3_length(edge));
}

/* Derivatives of the angle by the corners, 1/m; zero for a triangle without area. The angle does not change where an
 * apex moves in its plane, and changes by the way over its distance from the edge where it leaves it; the edge's corners
 * move as the lever of both demands. */
TB_FN void tb_dihedral_slopes(const tb_vec3 x[4], tb_vec3 slopes[4])
{
    tb_vec3 n[2];
    tb_dihedral_normals(x, n);
    const tb_vec3 edge = tb_v3_sub(x[1], x[0]);
    const tb_real length = tb_v3_length(edge);
    slopes[0] = slopes[1] = slopes[2] = slopes[3] = tb_v3(0, 0, 0);
    for (int k = 0; k < 2; k++) {
        const tb_real square = tb_v3_length2(n[k]);
        if (!(square > 0) || !(length > 0)) continue;
        /* where the apex is along the edge, from 0 to 1 */
        const tb_real at = tb_v3_dot(tb_v3_sub(x[2 + k], x[0]), edge) / (length * length);
        slopes[2 + k] = tb_v3_scale(n[k], -length / square);
        slopes[0] = tb_v3_add_scaled(slopes[0], slopes[2 + k], at - 1);
        slopes[1] = tb_v3_add_scaled(slopes[1], slopes[2 + k], -at);
    }
}

#endif
