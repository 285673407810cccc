/* Mass properties of shapes and meshes.
 *
 * Tests compare the importers' results with MuJoCo's to 1e-9. If a shape has no closed form (the
 * shell of an ellipsoid) or a mesh is not a closed surface, the definition is therefore
 * MuJoCo's; all other values are analytic. Meshes: signed tetrahedra, Göteman and Roxling 3.11;
 * Tonon, Explicit exact formulas for the 3-D tetrahedron inertia tensor, 2004. */
#include "model/model_internal.h"

#include <stdlib.h>
#include <string.h>

static const double PI = 3.141592653589793;

/* ---- inertia algebra ---- */

void tb_inertia_rotate(const double r[9], const double in[6], double out[6])
{
    const tb_mat33 s = tb_m33_symmetric(in);
    tb_mat33 rotation;
    memcpy(rotation.m, r, sizeof rotation.m);
    const tb_mat33 t = tb_m33_rotate_symmetric(&rotation, &s);
    out[0] = t.m[0], out[1] = t.m[4], out[2] = t.m[8];
    out[3] = 0.5 * (t.m[1] + t.m[3]);
    out[4] = 0.5 * (t.m[2] + t.m[6]);
    out[5] = 0.5 * (t.m[5] + t.m[7]);
}

void tb_inertia_add_offset(double inertia[6], double mass, const double d[3])
{
    inertia[0] += mass * (d[1] * d[1] + d[2] * d[2]);
    inertia[1] += mass * (d[0] * d[0] + d[2] * d[2]);
    inertia[2] += mass * (d[0] * d[0] + d[1] * d[1]);
    inertia[3] -= mass * d[0] * d[1];
    inertia[4] -= mass * d[0] * d[2];
    inertia[5] -= mass * d[1] * d[2];
}

bool tb_moments_repair(double moments[3], double minimum, bool balance)
{
    const double TOLERANCE = 1e-9; /* relative; given numbers are rounded */
    double largest = 0;
    for (int i = 0; i < 3; i++) largest = tb_max(largest, fabs(moments[i]));
    for (int i = 0; i < 3; i++) {
        if (moments[i] < -TOLERANCE * largest) return false;
        moments[i] = tb_max(moments[i], tb_max(minimum, 0));
    }
    const double a = moments[0], b = moments[1], c = moments[2];
    const double slack = TOLERANCE * tb_max(a, tb_max(b, c));
    if (a + b >= c - slack && a + c >= b - slack && b + c >= a - slack) return true;
    if (balance) moments[0] = moments[1] = moments[2] = (a + b + c) / 3;
    return balance;
}

/* ---- primitives: volume (area of a shell) and moments per mass ---- */

static double sphere_moments(double r, bool shell, double k[3])
{
    k[0] = k[1] = k[2] = (shell ? 2.0 / 3.0 : 2.0 / 5.0) * r * r;
    return shell ? 4 * PI * r * r : 4.0 / 3.0 * PI * r * r * r;
}

static double cylinder_moments(double r, double half, bool shell, double k[3])
{
    const double h = 2 * half;
    if (!shell) {
        k[0] = k[1] = (3 * r * r + h * h) / 12;
        k[2] = r * r / 2;
        return PI * r * r * h;
    }
    /* side and two disks, by their share of the area */
    const double disks = 2 * PI * r * r, side = 2 * PI * r * h, area = disks + side;
    k[0] = k[1] = side / area * (6 * r * r + h * h) / 12 + disks / area * (r * r / 4 + half * half);
    k[2] = side / area * r * r + disks / area * r * r / 2;
    return area;
}

/* A tube or cylinder and two hemispheres; those are moved from the sphere's centre to their own
 * centre of mass (3/8 r, shell r/2) and out by half the length. */
static double capsule_moments(double r, double half, bool shell, double k[3])
{
    const double h = 2 * half;
    const double ball = shell ? 4 * PI * r * r : 4.0 / 3.0 * PI * r * r * r;
    const double tube = shell ? 2 * PI * r * h : PI * r * r * h;
    const double total = ball + tube, ball_share = ball / total, tube_share = tube / total;
    const double centre = shell ? r / 2 : 3 * r / 8;
    const double ball_inertia = (shell ? 2.0 / 3.0 : 2.0 / 5.0) * r * r;
    const double shift = half * half + 2 * half * centre;
    k[0] = k[1] =
        tube_share * ((shell ? 6 : 3) * r * r + h * h) / 12 + ball_share * (ball_inertia + shift);
    k[2] = tube_share * r * r * (shell ? 1 : 0.5) + ball_share * ball_inertia;
    return total;
}

static double box_moments(const double s[3], bool shell, double k[3])
{
    const double a2 = s[0] * s[0], b2 = s[1] * s[1], c2 = s[2] * s[2];
    if (!shell) {
        k[0] = (b2 + c2) / 3;
        k[1] = (a2 + c2) / 3;
        k[2] = (a2 + b2) / 3;
        return 8 * s[0] * s[1] * s[2];
    }
    /* pairs of faces normal to x, y, z: mean of x^2 is a^2 on its own pair, a^2/3 on the others */
    const double fx = s[1] * s[2], fy = s[0] * s[2], fz = s[0] * s[1], f = fx + fy + fz;
    const double x2 = a2 * (fx + (fy + fz) / 3) / f;
    const double y2 = b2 * (fy + (fx + fz) / 3) / f;
    const double z2 = c2 * (fz + (fx + fy) / 3) / f;
    k[0] = y2 + z2;
    k[1] = x2 + z2;
    k[2] = x2 + y2;
    return 8 * f;
}

/* The shell's area is Thomsen's approximation (error below 1.1 %) and its moments are those of the
 * layer between the ellipsoid and one whose semi-axes are a micrometre longer:
 * MuJoCo's definition. */
static double ellipsoid_moments(const double s[3], bool shell, double k[3])
{
    const double a2 = s[0] * s[0], b2 = s[1] * s[1], c2 = s[2] * s[2];
    const double solid[3] = {(b2 + c2) / 5, (a2 + c2) / 5, (a2 + b2) / 5};
    const double volume = 4 * PI * s[0] * s[1] * s[2] / 3;
    memcpy(k, solid, sizeof solid);
    if (!shell) return volume;

    const double LAYER = 1e-6, P = 1.6075;
    const double a = s[0] + LAYER, b = s[1] + LAYER, c = s[2] + LAYER;
    const double outer[3] = {(b * b + c * c) / 5, (a * a + c * c) / 5, (a * a + b * b) / 5};
    const double outer_volume = 4 * PI * a * b * c / 3;
    for (int i = 0; i < 3; i++)
        k[i] = (outer_volume * outer[i] - volume * solid[i]) / (outer_volume - volume);
    const double mean = (pow(s[0] * s[1], P) + pow(s[1] * s[2], P) + pow(s[2] * s[0], P)) / 3;
    return 4 * PI * pow(mean, 1 / P);
}

tb_status tb_shape_mass(const tb_shape_def *shape, const tb_mass_properties *mesh,
                        tb_mass_properties *result, tb_error *error)
{
    double k[3] = {0};
    memset(result, 0, sizeof *result);
    switch (shape->type) {
    case TB_SHAPE_SPHERE: result->volume = sphere_moments(shape->size[0], shape->shell, k); break;
    case TB_SHAPE_CAPSULE:
        result->volume = capsule_moments(shape->size[0], shape->size[1], shape->shell, k);
        break;
    case TB_SHAPE_CYLINDER:
        result->volume = cylinder_moments(shape->size[0], shape->size[1], shape->shell, k);
        break;
    case TB_SHAPE_BOX: result->volume = box_moments(shape->size, shape->shell, k); break;
    case TB_SHAPE_ELLIPSOID:
        result->volume = ellipsoid_moments(shape->size, shape->shell, k);
        break;
    case TB_SHAPE_CONVEX:
    case TB_SHAPE_MESH:
        if (!(mesh->mass > 0))
            return tb_fail_field(error, TB_INVALID_ARGUMENT, "asset",
                                 "shape '%.100s': its mesh has volume %g and so no mass (are the "
                                 "triangles turned inside out? is it a surface? then use a shell)",
                                 shape->name, mesh->mass);
        *result = *mesh;
        break;
    default: return TB_OK; /* planes and height fields have no mass */
    }
    const bool is_mesh = shape->type == TB_SHAPE_CONVEX || shape->type == TB_SHAPE_MESH;
    const double measure = is_mesh ? mesh->mass : result->volume;
    result->mass = shape->mass >= 0 ? shape->mass : shape->density * measure;
    for (int i = 0; i < 6; i++) {
        if (is_mesh)
            result->inertia[i] = mesh->inertia[i] / mesh->mass * result->mass;
        else
            result->inertia[i] = i < 3 ? k[i] * result->mass : 0;
    }
    return TB_OK;
}

/* ---- meshes ---- */

typedef struct triangle {
    tb_vec3 a, b, c;
    tb_vec3 centre;
    tb_vec3 area; /* normal times area */
} triangle;

static triangle triangle_at(const double *vertices, const int32_t *index, tb_vec3 origin)
{
    triangle t;
    t.a = tb_v3_sub(tb_v3_load(vertices + 3 * (size_t)index[0]), origin);
    t.b = tb_v3_sub(tb_v3_load(vertices + 3 * (size_t)index[1]), origin);
    t.c = tb_v3_sub(tb_v3_load(vertices + 3 * (size_t)index[2]), origin);
    t.centre = tb_v3_scale(tb_v3_add(t.a, tb_v3_add(t.b, t.c)), 1.0 / 3.0);
    t.area = tb_v3_scale(tb_v3_cross(tb_v3_sub(t.b, t.a), tb_v3_sub(t.c, t.a)), 0.5);
    return t;
}

/* Weight of a triangle: its area, or the volume of the pyramid with its apex at the origin. */
static double weight_of(const triangle *t, tb_mesh_inertia kind)
{
    if (kind == TB_MESH_INERTIA_SHELL) return tb_v3_length(t->area);
    const double volume = tb_v3_dot(t->centre, t->area) / 3;
    return kind == TB_MESH_INERTIA_LEGACY ? fabs(volume) : volume;
}

/* Integral of x_i x_j over a triangle or pyramid of this weight: weight / 12 or / 20 times this. */
static double product_sum(const triangle *t, int i, int j)
{
    const double a[2] = {tb_v3_at(t->a, i), tb_v3_at(t->a, j)};
    const double b[2] = {tb_v3_at(t->b, i), tb_v3_at(t->b, j)};
    const double c[2] = {tb_v3_at(t->c, i), tb_v3_at(t->c, j)};
    return 2 * (a[0] * a[1] + b[0] * b[1] + c[0] * c[1]) + a[0] * b[1] + a[1] * b[0] + a[0] * c[1] +
           a[1] * c[0] + b[0] * c[1] + b[1] * c[0];
}

/* First pass: centre of mass, with apexes at the centroid of the surface,
 * which matters for LEGACY only. */
static tb_vec3 centre_of_mass(const double *vertices, const int32_t *triangles, int32_t count,
                              tb_mesh_inertia kind)
{
    tb_vec3 centroid = tb_v3(0, 0, 0), sum = tb_v3(0, 0, 0);
    double area = 0, total = 0;
    for (int32_t i = 0; i < count; i++) {
        const triangle t = triangle_at(vertices, triangles + 3 * (size_t)i, tb_v3(0, 0, 0));
        const double weight = tb_v3_length(t.area);
        centroid = tb_v3_add_scaled(centroid, t.centre, weight);
        area += weight;
    }
    if (!(area > 0)) return tb_v3(0, 0, 0);
    centroid = tb_v3_scale(centroid, 1 / area);
    if (kind == TB_MESH_INERTIA_SHELL) return centroid;
    for (int32_t i = 0; i < count; i++) {
        const triangle t = triangle_at(vertices, triangles + 3 * (size_t)i, centroid);
        const double weight = weight_of(&t, kind);
        sum = tb_v3_add_scaled(sum, t.centre, 0.75 * weight);
        total += weight;
    }
    return total > 0 ? tb_v3_add_scaled(centroid, sum, 1 / total) : centroid;
}

tb_mass_properties tb_mesh_mass_properties(const double *vertices, int32_t number_of_vertices,
                                           const int32_t *triangles, int32_t number_of_triangles,
                                           tb_mesh_inertia kind)
{
    static const int pairs[6][2] = {{0, 0}, {1, 1}, {2, 2}, {0, 1}, {0, 2}, {1, 2}};
    tb_mass_properties result = {0};
    double p[6] = {0};
    if (number_of_vertices == 0 || number_of_triangles == 0) return result;

    /* second pass: products of inertia about the centre of mass */
    const tb_vec3 com = centre_of_mass(vertices, triangles, number_of_triangles, kind);
    const double divisor = kind == TB_MESH_INERTIA_SHELL ? 12 : 20;
    for (int32_t i = 0; i < number_of_triangles; i++) {
        const triangle t = triangle_at(vertices, triangles + 3 * (size_t)i, com);
        const double weight = weight_of(&t, kind);
        for (int j = 0; j < 6; j++)
            p[j] += weight / divisor * product_sum(&t, pairs[j][0], pairs[j][1]);
        result.mass += weight;
        result.volume += tb_v3_dot(t.centre, t.area) / 3;
    }
    if (kind == TB_MESH_INERTIA_LEGACY) result.volume = result.mass;
    tb_v3_store(result.com, com);
    result.inertia[0] = p[1] + p[2];
    result.inertia[1] = p[0] + p[2];
    result.inertia[2] = p[0] + p[1];
    for (int j = 3; j < 6; j++) result.inertia[j] = -p[j];
    return result;
}

tb_status tb_mesh_asset_mass(const tb_mesh_def *mesh, tb_mass_properties *result, tb_error *error)
{
    if (mesh->inertia != TB_MESH_INERTIA_CONVEX && mesh->number_of_triangles > 0) {
        *result = tb_mesh_mass_properties(mesh->vertices, mesh->number_of_vertices, mesh->triangles,
                                          mesh->number_of_triangles, mesh->inertia);
        return TB_OK;
    }

    /* the hull's triangles replace the mesh's triangles */
    tb_facets facets = {0};
    const tb_status status = tb_facets_build(mesh->vertices, mesh->number_of_vertices,
                                             mesh->most_hull_vertices, &facets, error);
    if (status != TB_OK) return status;
    const int32_t number_of_triangles =
        facets.face_start[facets.number_of_faces] - 2 * facets.number_of_faces;
    int32_t *triangles = malloc((size_t)number_of_triangles * 3 * sizeof *triangles);
    if (triangles == NULL) {
        tb_facets_free(&facets);
        return tb_fail_memory(error, (size_t)number_of_triangles * 12, "hull triangles");
    }
    int32_t *at = triangles;
    for (int32_t f = 0; f < facets.number_of_faces; f++)
        for (int32_t i = facets.face_start[f] + 1; i + 1 < facets.face_start[f + 1]; i++) {
            *at++ = facets.face_vertices[facets.face_start[f]];
            *at++ = facets.face_vertices[i];
            *at++ = facets.face_vertices[i + 1];
        }
    *result = tb_mesh_mass_properties(
        mesh->vertices, mesh->number_of_vertices, triangles, number_of_triangles,
        mesh->inertia == TB_MESH_INERTIA_SHELL ? TB_MESH_INERTIA_SHELL : TB_MESH_INERTIA_EXACT);
    free(triangles);
    tb_facets_free(&facets);
    return TB_OK;
}
