/* Compiles elastic triangles, tetrahedra and hinges (tb_elastic_def) to the strains and stiffnesses of their rest shapes.
 *
 * With n_i the gradients of the linear functions that are 1 at a corner and 0 at the others, the deformation's gradient
 * is F = sum of x_i n_i'. The n_i add up to zero, so that F'F depends on the distances of corners alone, and Green's
 * strain is
 *
 *     G = (F'F - 1) / 2 = - 1/2 sum over the edges (i j) of (l^2 - L^2) sym(n_i n_j').
 *
 * In an orthonormal basis of symmetric matrices whose first is 1 / sqrt(d), d the dimension, the energy has no mixed
 * terms: volume (d lambda / 2 + mu) of the first coordinate's square, volume mu of the others'. Coordinates are taken
 * times a length of the simplex, so that rows of a step are velocities in m/s.
 *
 * A hinge is a discrete shell's: of Wardetzky, Bergou, Harmon, Zorin and Grinspun, Discrete quadratic curvature energies,
 * Computer Aided Geometric Design 24, 2007, where it is flat at rest and its edges keep their length; else of Garg,
 * Grinspun, Wardetzky and Zorin, Cubic shells, Symposium on Computer Animation, 2007. Both write the cosine and sine of
 * the angle as polynomials of the corners, which hold as long as no edge changes its length. */
#include <math.h>
#include <string.h>

#include "model/dihedral.h"
#include "model/model_internal.h"

/* The sine between edges up to which corners are in a line or plane. */
#define FLAT 1e-9

/* A rest shape. */
typedef struct rest_shape {
    tb_vec3 corners[4];
    tb_vec3 gradients[4]; /* 1/m */
    tb_vec3 axes[3];      /* orthonormal; of a triangle two, in its plane */
    double volume;        /* m^3; of a triangle its area, m^2 */
} rest_shape;

/* D L^2 / (A + B) and the angle. False for corners in a line. */
static bool write_hinge(const rest_shape *r, const tb_elastic_def *def, tb_model_elastic *e)
{
    tb_vec3 normals[2];
    double areas = 0;
    const tb_vec3 edge = tb_v3_sub(r->corners[1], r->corners[0]);
    tb_dihedral_normals(r->corners, normals);
    for (int k = 0; k < 2; k++) {
        const tb_vec3 side = tb_v3_sub(r->corners[2 + k], r->corners[0]);
        const double twice = tb_v3_length(normals[k]);
        if (!(twice > FLAT * tb_v3_length(edge) * tb_v3_length(side))) return false;
        areas += twice / 2;
    }
    const double t = def->thickness, nu = def->poisson;
    const double rigidity = def->young * t * t * t / (12 * (1 - nu * nu));
    e->angle = tb_dihedral_angle(r->corners);
    e->stiffness[0] = rigidity * tb_v3_length2(edge) / areas;
    return true;
}

/* False for corners in a line. */
static bool measure_triangle(rest_shape *r)
{
    const tb_vec3 a = tb_v3_sub(r->corners[1], r->corners[0]);
    const tb_vec3 b = tb_v3_sub(r->corners[2], r->corners[0]);
    const tb_vec3 normal = tb_v3_cross(a, b);
    const double twice = tb_v3_length(normal), scale = 1 / (twice * twice);
    if (!(twice > FLAT * tb_v3_length(a) * tb_v3_length(b))) return false;
    r->gradients[1] = tb_v3_scale(tb_v3_cross(b, normal), scale);
    r->gradients[2] = tb_v3_scale(tb_v3_cross(normal, a), scale);
    r->gradients[0] = tb_v3_negate(tb_v3_add(r->gradients[1], r->gradients[2]));
    r->axes[0] = tb_v3_scale(a, 1 / tb_v3_length(a));
    r->axes[1] = tb_v3_scale(tb_v3_cross(normal, r->axes[0]), 1 / twice);
    r->volume = twice / 2;
    return true;
}

/* False for corners in a plane. */
static bool measure_tetrahedron(rest_shape *r)
{
    const tb_vec3 a = tb_v3_sub(r->corners[1], r->corners[0]);
    const tb_vec3 b = tb_v3_sub(r->corners[2], r->corners[0]);
    const tb_vec3 c = tb_v3_sub(r->corners[3], r->corners[0]);
    const double six = tb_v3_dot(a, tb_v3_cross(b, c));
    if (!(fabs(six) > FLAT * tb_v3_length(a) * tb_v3_length(b) * tb_v3_length(c))) return false;
    r->gradients[1] = tb_v3_scale(tb_v3_cross(b, c), 1 / six);
    r->gradients[2] = tb_v3_scale(tb_v3_cross(c, a), 1 / six);
    r->gradients[3] = tb_v3_scale(tb_v3_cross(a, b), 1 / six);
    r->gradients[0] =
        tb_v3_negate(tb_v3_add(r->gradients[1], tb_v3_add(r->gradients[2], r->gradients[3])));
    for (int k = 0; k < 3; k++) r->axes[k] = tb_v3(k == 0, k == 1, k == 2);
    r->volume = fabs(six) / 6;
    return true;
}

/* The coordinates of sym(g h') in the basis; as many as the simplex has edges. */
static void coordinates_of(const rest_shape *r, int dimension, tb_vec3 g, tb_vec3 h, double *out)
{
    double p[3] = {0}, q[3] = {0};
    for (int k = 0; k < dimension; k++) {
        p[k] = tb_v3_dot(g, r->axes[k]);
        q[k] = tb_v3_dot(h, r->axes[k]);
    }
    *out++ = (p[0] * q[0] + p[1] * q[1] + p[2] * q[2]) / sqrt(dimension);
    *out++ = (p[0] * q[0] - p[1] * q[1]) / sqrt(2);
    if (dimension == 3) *out++ = (p[0] * q[0] + p[1] * q[1] - 2 * p[2] * q[2]) / sqrt(6);
    for (int i = 0; i < dimension; i++)
        for (int j = i + 1; j < dimension; j++) *out++ = (p[i] * q[j] + p[j] * q[i]) / sqrt(2);
}

static void write_simplex(const rest_shape *r, const tb_elastic_def *def, tb_model_elastic *e)
{
    const int dimension = e->corners - 1;
    const double volume = dimension == 2 ? r->volume * def->thickness : r->volume;
    const double nu = def->poisson, mu = def->young / (2 * (1 + nu));
    /* a membrane is free to become thinner */
    const double lambda = dimension == 2 ? def->young * nu / (1 - nu * nu)
                                         : def->young * nu / ((1 + nu) * (1 - 2 * nu));
    double sum = 0;
    int32_t ends[2];
    for (int32_t i = 0; i < e->modes; i++) {
        tb_elastic_edge(i, ends);
        e->squares[i] = tb_v3_length2(tb_v3_sub(r->corners[ends[1]], r->corners[ends[0]]));
        sum += e->squares[i];
    }
    const double length = sqrt(sum / e->modes);
    for (int32_t i = 0; i < e->modes; i++) {
        double x[6];
        tb_elastic_edge(i, ends);
        coordinates_of(r, dimension, r->gradients[ends[0]], r->gradients[ends[1]], x);
        for (int32_t k = 0; k < e->modes; k++) e->strain[k][i] = -length / 2 * x[k];
    }
    for (int32_t k = 0; k < e->modes; k++)
        e->stiffness[k] = volume / (length * length) * (2 * mu + (k == 0 ? dimension * lambda : 0));
}

/* False for corners in a line, or of a tetrahedron in a plane. */
static bool write_elastic(rest_shape *r, const tb_elastic_def *def, tb_model_elastic *e)
{
    if (def->kind == TB_ELASTIC_HINGE) return write_hinge(r, def, e);
    if (!(def->kind == TB_ELASTIC_TRIANGLE ? measure_triangle(r) : measure_tetrahedron(r)))
        return false;
    write_simplex(r, def, e);
    return true;
}

static tb_status compile_elastic(const tb_compiler *c, int32_t index, tb_model_elastic *e)
{
    static const char *const NAMES[] = {"triangle", "tetrahedron", "hinge"};
    static const int32_t MODES[] = {3, 6, 1};
    const tb_elastic_def *def = &c->scene->elastics[index];
    rest_shape r;
    e->kind = def->kind;
    e->corners = def->kind == TB_ELASTIC_TRIANGLE ? 3 : 4;
    e->modes = MODES[def->kind];
    e->damping = def->damping;
    for (int32_t i = 0; i < e->corners; i++) {
        const tb_site_def *site = &c->scene->sites[scene_index(def->sites[i])];
        e->bodies[i] = tb_handle_is_none(site->body) ? 0 : c->model_body[scene_index(site->body)];
        memcpy(e->points[i], site->position, sizeof e->points[i]);
        r.corners[i] = tb_pose_point(&c->poses[e->bodies[i]], tb_v3_load(site->position));
    }
    if (!write_elastic(&r, def, e))
        return tb_fail_field(c->error, TB_INVALID_ARGUMENT, "sites",
                             "the corners of elastic %s %d are in a %s", NAMES[def->kind],
                             (int)index, def->kind == TB_ELASTIC_TETRAHEDRON ? "plane" : "line");
    return TB_OK;
}

tb_status tb_compile_elastics(tb_compiler *c)
{
    const int32_t count = c->scene->number_of_elastics;
    tb_model_elastic *elastics = TB_ARENA_ZEROED(&c->model->arena, tb_model_elastic, count);
    if (!elastics) return tb_fail_memory(c->error, (size_t)count * sizeof *elastics, "elastics");
    for (int32_t i = 0; i < count; i++) {
        const tb_status status = compile_elastic(c, i, &elastics[i]);
        if (status != TB_OK) return status;
    }
    c->model->elastics = elastics;
    c->model->number_of_elastics = count;
    return TB_OK;
}
