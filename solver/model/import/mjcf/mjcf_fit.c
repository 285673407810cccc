/* MJCF geoms that are primitives fitted to a mesh: <geom type="box" mesh="..."/>.
 *
 * A mesh is measured in the axes of its inertia, either by the box of equal mass and inertia or,
 * with compiler/fitaabb, by the box around its vertices. The rules are those of MuJoCo 4.0. So is
 * the way in which axes are found for equal moments, where any axes would do: the frame decides on
 * the pose of a fitted box, and Jacobi's rotations stop where MuJoCo's do. */
#include <string.h>

#include "model/model_internal.h"
#include "model/import/mjcf/mjcf.h"

/* Share of the largest moment: moments with smaller differences are not sorted, smaller products
 * are left alone. MuJoCo 4.0's mesh_quat shows this value. */
#define EIGEN_TOLERANCE 1e-7

/* Exchanges two columns of a rotation and turns one round, so that it stays a rotation. */
static void swap_columns(tb_mat33 *axes, double moments[3], int first)
{
    const double moment = moments[first];
    moments[first] = moments[first + 1];
    moments[first + 1] = moment;
    for (int row = 0; row < 3; row++) {
        double *r = axes->m + 3 * row + first;
        const double old = r[0];
        r[0] = r[1];
        r[1] = -old;
    }
}

/* Principal axes by Jacobi's method, the largest product first (Golub and Van Loan 8.5), sorted to
 * descending moments. */
static tb_mat33 principal_axes(const tb_mat33 *inertia, double moments[3])
{
    tb_mat33 axes = tb_m33_identity();
    const double tolerance =
        EIGEN_TOLERANCE * tb_max(inertia->m[0], tb_max(inertia->m[4], inertia->m[8]));
    for (int round = 0; round < 500; round++) {
        const tb_mat33 back = tb_m33_transpose(&axes);
        const tb_mat33 d = tb_m33_rotate_symmetric(&back, inertia);
        for (int i = 0; i < 3; i++) moments[i] = d.m[4 * i];
        int p = 1, q = 2;
        if (fabs(d.m[1]) > fabs(d.m[2]) && fabs(d.m[1]) > fabs(d.m[5]))
            p = 0, q = 1;
        else if (fabs(d.m[2]) > fabs(d.m[5]))
            p = 0;
        const double product = d.m[3 * p + q];
        if (fabs(product) <= tolerance) break;
        const double tau = (d.m[4 * q] - d.m[4 * p]) / (2 * product);
        const double t = (tau >= 0 ? 1 : -1) / (fabs(tau) + sqrt(1 + tau * tau));
        const double c = 1 / sqrt(1 + t * t), s = t * c;
        for (int row = 0; row < 3; row++) {
            double *r = axes.m + 3 * row;
            const double x = r[p], y = r[q];
            r[p] = c * x - s * y;
            r[q] = s * x + c * y;
        }
    }
    for (int i = 0; i < 3; i++)
        if (moments[i % 2] + tolerance < moments[i % 2 + 1]) swap_columns(&axes, moments, i % 2);
    return axes;
}

tb_status mjcf_find_extent(mjcf *m, const xmlNode *node, const tb_mesh_def *mesh,
                           mjcf_extent *extent)
{
    tb_mass_properties own = {0};
    tb_error refusal = {0};
    if (tb_mesh_asset_mass(mesh, &own, &refusal) != TB_OK) return mjcf_refused(m, node, &refusal);
    if (!(own.mass > 0))
        return tb_xml_fail(m->error, TB_INVALID_ARGUMENT, node, "inertia",
                           "the mesh has volume %g, so nothing can be fitted to it (is it a "
                           "surface? then inertia=\"shell\")",
                           own.mass);
    double moments[3] = {0};
    const tb_mat33 inertia = tb_m33_symmetric(own.inertia);
    const tb_mat33 axes = principal_axes(&inertia, moments);
    extent->principal.position = tb_v3_load(own.com);
    extent->principal.orientation = tb_q_from_matrix(&axes);
    const double sum = moments[0] + moments[1] + moments[2];
    for (int i = 0; i < 3; i++)
        extent->half[i] = 0.5 * sqrt(tb_max(6 * (sum - 2 * moments[i]) / own.mass, 0));

    for (int i = 0; i < 3; i++) {
        extent->lower[i] = INFINITY;
        extent->upper[i] = -INFINITY;
    }
    for (int32_t v = 0; v < mesh->number_of_vertices; v++) {
        const tb_vec3 from =
            tb_v3_sub(tb_v3_load(mesh->vertices + 3 * (size_t)v), extent->principal.position);
        for (int i = 0; i < 3; i++) {
            const double along = tb_v3_dot(from, tb_m33_column(&axes, i));
            extent->lower[i] = tb_min(extent->lower[i], along);
            extent->upper[i] = tb_max(extent->upper[i], along);
        }
    }
    return TB_OK;
}

/* Sizes by the box of equal inertia. */
static void fit_inertia(tb_shape_type type, const double half[3], double size[3])
{
    const double radius = (half[0] + half[1]) / 2;
    switch (type) {
    case TB_SHAPE_SPHERE: size[0] = (half[0] + half[1] + half[2]) / 3; break;
    case TB_SHAPE_CAPSULE:
        size[0] = radius;
        size[1] = tb_max(half[2] - radius / 2, 0);
        break;
    case TB_SHAPE_CYLINDER:
        size[0] = radius;
        size[1] = half[2];
        break;
    default: memcpy(size, half, 3 * sizeof *size);
    }
}

/* Sizes by the box around the vertices. */
static void fit_bounds(tb_shape_type type, const double half[3], double size[3])
{
    const double radius = tb_max(half[0], half[1]);
    switch (type) {
    case TB_SHAPE_SPHERE: size[0] = tb_max(radius, half[2]); break;
    case TB_SHAPE_CAPSULE:
        size[0] = radius;
        size[1] = half[2] - radius;
        break;
    case TB_SHAPE_CYLINDER:
        size[0] = radius;
        size[1] = half[2];
        break;
    default: memcpy(size, half, 3 * sizeof *size);
    }
}

tb_status mjcf_fit(mjcf *m, const xmlNode *node, const char *mesh, double scale, tb_shape_def *def,
                   mjcf_pose *pose)
{
    const mjcf_extent *extent = NULL;
    MJCF_TRY(mjcf_measure_mesh(m, node, mesh, &extent));
    mjcf_pose centre = mjcf_pose_identity();
    memset(def->size, 0, sizeof def->size);
    if (m->fit_aabb) {
        double half[3], middle[3];
        for (int i = 0; i < 3; i++) {
            half[i] = (extent->upper[i] - extent->lower[i]) / 2;
            middle[i] = (extent->upper[i] + extent->lower[i]) / 2;
        }
        centre.position = tb_v3_load(middle);
        fit_bounds(def->type, half, def->size);
    } else {
        fit_inertia(def->type, extent->half, def->size);
    }
    for (int i = 0; i < 3; i++) def->size[i] *= scale;
    *pose = mjcf_pose_mul(pose, &extent->principal);
    *pose = mjcf_pose_mul(pose, &centre);
    return TB_OK;
}
