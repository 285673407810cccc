/* Reads a soft flexcomp: its points and simplices in the parent's frame, which of them are pinned, and its
 * edges. */
#include <stdlib.h>
#include <string.h>

#include "model/import/import.h"
#include "model/import/mjcf/flex/flex.h"

static const mjcf_words FLEX = {
    .used = "name type dim dof file content_type rigid pos quat axisangle xyaxes zaxis euler scale "
            "radius point element count spacing mass inertiabox origin",
    .silent = "cellcount group material rgba texcoord flatskin",
};

static const mjcf_words EDGE = {.used = "equality stiffness damping", .soft = "solref solimp"};

static const mjcf_words ELASTICITY = {.used = "young poisson damping thickness elastic2d"};

static const mjcf_words PIN = {.used = "id range grid gridrange"};

enum { PATH_SIZE = 4096 };

/* A flex of radius 0 touches as one of this radius does, by a ball at each point. */
#define POINT_RADIUS_M 1e-6

void flex_free(flex *f)
{
    tb_simplices_free(&f->body);
    free(f->pinned);
    free(f->edges);
    free(f->faces);
    free(f->hinges);
    f->hinges = NULL;
    f->pinned = NULL;
    f->edges = NULL;
    f->faces = NULL;
}

/* ---- points and simplices ---- */

tb_status flex_read_direct(mjcf *m, const xmlNode *node, tb_simplices *body)
{
    const int32_t corners = body->dimension + 1;
    double *elements = NULL;
    int32_t count = 0;
    MJCF_TRY(tb_xml_number_list(node, "point", &body->points, &count, m->error));
    if (count % 3 != 0 || count == 0)
        return tb_xml_fail(m->error, TB_INVALID_ARGUMENT, node, "point",
                           "point has %d numbers, not 3 for each point", (int)count);
    body->number_of_points = count / 3;
    MJCF_TRY(tb_xml_number_list(node, "element", &elements, &count, m->error));
    tb_status status = TB_OK;
    if (count % corners != 0 || count == 0)
        status = tb_xml_fail(m->error, TB_INVALID_ARGUMENT, node, "element",
                             "element has %d numbers, not %d for each element", (int)count,
                             (int)corners);
    body->number_of_simplices = count / corners;
    body->simplices = malloc(((size_t)count + 1) * sizeof *body->simplices);
    if (status == TB_OK && body->simplices == NULL)
        status = tb_fail_memory(m->error, (size_t)count * 4, "a flexcomp");
    for (int32_t i = 0; i < count && status == TB_OK; i++) {
        const double e = elements[i];
        if (!(e >= 0 && e < body->number_of_points && e == floor(e)))
            status = tb_xml_fail(m->error, TB_INVALID_ARGUMENT, node, "element",
                                 "element has %g, not the number of one of %d points", e,
                                 (int)body->number_of_points);
        else
            body->simplices[i] = (int32_t)e;
    }
    free(elements);
    return status;
}

/* Six times the volume of the tetrahedron that a triangle makes with the origin. */
static double volume_from(tb_vec3 origin, const double *points, const int32_t *t)
{
    tb_vec3 v[3];
    for (int k = 0; k < 3; k++) v[k] = tb_v3_sub(tb_v3_load(points + 3 * (size_t)t[k]), origin);
    return tb_v3_dot(tb_v3_cross(v[0], v[1]), v[2]);
}

/* A surface as triangles, or as the tetrahedra that they make with a point inside, the first one. */
static tb_status take_surface(mjcf *m, const xmlNode *node, tb_mesh_data *mesh, tb_simplices *body)
{
    double origin[3] = {0};
    const size_t points = (size_t)mesh->number_of_vertices;
    if (body->dimension == 2) {
        body->points = mesh->vertices;
        body->number_of_points = mesh->number_of_vertices;
        body->simplices = mesh->triangles;
        body->number_of_simplices = mesh->number_of_triangles;
        memset(mesh, 0, sizeof *mesh);
        return TB_OK;
    }
    MJCF_TRY(tb_xml_numbers(node, "origin", 3, 3, origin, NULL, m->error));
    body->points = malloc(3 * (points + 1) * sizeof *body->points);
    body->simplices = malloc((4 * (size_t)mesh->number_of_triangles + 1) * sizeof *body->simplices);
    if (body->points == NULL || body->simplices == NULL)
        return tb_fail_memory(m->error, points * 24, "a flexcomp");
    memcpy(body->points, origin, sizeof origin);
    memcpy(body->points + 3, mesh->vertices, 3 * points * sizeof *body->points);
    body->number_of_points = mesh->number_of_vertices + 1;
    for (int32_t i = 0; i < mesh->number_of_triangles; i++) {
        const int32_t *t = mesh->triangles + 3 * (size_t)i;
        if (volume_from(tb_v3_load(origin), mesh->vertices, t) < 1e-15) continue; /* MuJoCo's */
        int32_t *to = body->simplices + 4 * (size_t)body->number_of_simplices++;
        to[0] = 0;
        for (int k = 0; k < 3; k++) to[k + 1] = t[k] + 1;
    }
    return TB_OK;
}

static tb_status read_lines_or_gmsh(mjcf *m, const xmlNode *node, bool gmsh, tb_simplices *body)
{
    char path[PATH_SIZE];
    tb_bytes file = {0};
    tb_error refusal = {0};
    MJCF_TRY(
        mjcf_path(m, node, m->mesh_directory, tb_xml_attribute(node, "file"), path, sizeof path));
    tb_status status = tb_import_read(m->options, path, m->options->file_limit, &file, &refusal);
    if (status == TB_OK)
        status = gmsh
                     ? tb_gmsh_parse((const char *)file.base, file.size, path, body, &refusal)
                     : tb_obj_parse_lines((const char *)file.base, file.size, path, body, &refusal);
    tb_bytes_free(&file);
    return status == TB_OK ? TB_OK : mjcf_refused(m, node, &refusal);
}

static tb_status read_file(mjcf *m, const xmlNode *node, flex *f)
{
    tb_mesh_data mesh = {0};
    if (tb_xml_attribute(node, "file") == NULL)
        return tb_xml_fail(m->error, TB_INVALID_ARGUMENT, node, "file",
                           "attribute 'file' is missing");
    if (f->type == FLEX_GMSH || f->body.dimension == 1)
        return read_lines_or_gmsh(m, node, f->type == FLEX_GMSH, &f->body);
    tb_status status = mjcf_parse_mesh_file(m, node, &mesh);
    if (status == TB_OK) status = take_surface(m, node, &mesh, &f->body);
    tb_mesh_data_free(&mesh);
    return status;
}

/* Leaves out points that no simplex uses; `pinned` goes with its points. */
static tb_status drop_unused(mjcf *m, flex *f)
{
    tb_simplices *b = &f->body;
    const size_t corners = (size_t)b->number_of_simplices * (size_t)(b->dimension + 1);
    int32_t *place = malloc(((size_t)b->number_of_points + 1) * sizeof *place);
    if (place == NULL) return tb_fail_memory(m->error, (size_t)b->number_of_points * 4, "points");
    for (int32_t i = 0; i < b->number_of_points; i++) place[i] = -1;
    for (size_t i = 0; i < corners; i++) place[b->simplices[i]] = 0;
    int32_t kept = 0;
    for (int32_t i = 0; i < b->number_of_points; i++) {
        if (place[i] < 0) continue;
        memmove(b->points + 3 * (size_t)kept, b->points + 3 * (size_t)i, 3 * sizeof *b->points);
        f->pinned[kept] = f->pinned[i];
        place[i] = kept++;
    }
    for (size_t i = 0; i < corners; i++) b->simplices[i] = place[b->simplices[i]];
    b->number_of_points = kept;
    free(place);
    return TB_OK;
}

/* ---- pins ---- */

static tb_status pin(mjcf *m, const xmlNode *node, const char *attribute, flex *f, double point)
{
    if (!(point >= 0 && point < f->body.number_of_points && point == floor(point)))
        return tb_xml_fail(m->error, TB_INVALID_ARGUMENT, node, attribute,
                           "%s has %g, not the number of one of %d points", attribute, point,
                           (int)f->body.number_of_points);
    f->pinned[(int32_t)point] = true;
    return TB_OK;
}

/* Points from one corner of a grid to another one. */
static tb_status pin_grid(mjcf *m, const xmlNode *node, const char *attribute, flex *f,
                          const double *from, const double *to)
{
    const int32_t *n = f->count;
    int32_t lower[3] = {0}, upper[3] = {0};
    for (int k = 0; k < f->body.dimension; k++) {
        if (!(from[k] >= 0 && from[k] < n[k] && to[k] >= 0 && to[k] < n[k]) ||
            from[k] != floor(from[k]) || to[k] != floor(to[k]))
            return tb_xml_fail(m->error, TB_INVALID_ARGUMENT, node, attribute,
                               "%s has a place that is not in the grid", attribute);
        lower[k] = (int32_t)from[k];
        upper[k] = (int32_t)to[k];
    }
    const int32_t depth = f->body.dimension == 3 ? n[2] : 1;
    for (int32_t i = lower[0]; i <= upper[0]; i++)
        for (int32_t j = lower[1]; j <= upper[1]; j++)
            for (int32_t k = lower[2]; k <= upper[2]; k++)
                f->pinned[(i * n[1] + j) * depth + k] = true;
    return TB_OK;
}

/* One attribute of a pin, whose numbers come in groups. */
static tb_status read_pins_of(mjcf *m, const xmlNode *node, const char *attribute, flex *f)
{
    const int32_t dimension = f->body.dimension;
    const bool grid = strncmp(attribute, "grid", 4) == 0;
    const bool range = strstr(attribute, "range") != NULL;
    const int32_t group = (grid ? dimension : 1) * (range ? 2 : 1);
    double *numbers = NULL;
    int32_t count = 0;
    MJCF_TRY(tb_xml_number_list(node, attribute, &numbers, &count, m->error));
    tb_status status = TB_OK;
    if (count % group != 0 || (count > 0 && grid && (f->type != FLEX_GRID || dimension == 1)))
        status = tb_xml_fail(m->error, TB_INVALID_ARGUMENT, node, attribute,
                             "%s has %d numbers, not %d for each pin%s", attribute, (int)count,
                             (int)group, grid ? " of a grid of dim 2 or 3" : "");
    for (int32_t i = 0; i < count && status == TB_OK; i += group) {
        const double *n = numbers + i, *end = range ? n + group / 2 : n;
        if (grid) {
            status = pin_grid(m, node, attribute, f, n, end);
            continue;
        }
        status = pin(m, node, attribute, f, *end);
        for (double point = *n; point <= *end && status == TB_OK; point++)
            status = pin(m, node, attribute, f, point);
    }
    free(numbers);
    return status;
}

static tb_status read_pins(mjcf *m, const xmlNode *node, flex *f)
{
    f->pinned = calloc((size_t)f->body.number_of_points + 1, sizeof *f->pinned);
    if (f->pinned == NULL)
        return tb_fail_memory(m->error, (size_t)f->body.number_of_points, "pins");
    for (const xmlNode *c = tb_xml_first_named(node, "pin"); c != NULL;
         c = tb_xml_next_named(c, "pin")) {
        MJCF_TRY(mjcf_check_attributes(m, c, &PIN));
        MJCF_TRY(read_pins_of(m, c, "id", f));
        MJCF_TRY(read_pins_of(m, c, "range", f));
        MJCF_TRY(read_pins_of(m, c, "grid", f));
        MJCF_TRY(read_pins_of(m, c, "gridrange", f));
    }
    if (f->dofs == FLEX_RADIAL) f->pinned[0] = true;
    return TB_OK;
}

/* ---- edges ---- */

static int by_points(const void *a, const void *b)
{
    const flex_edge *p = a, *q = b;
    return p->a != q->a ? (p->a > q->a) - (p->a < q->a) : (p->b > q->b) - (p->b < q->b);
}

/* The edges of all simplices, each once. */
static tb_status find_edges(mjcf *m, const xmlNode *node, flex *f)
{
    const int32_t corners = f->body.dimension + 1, each = corners * (corners - 1) / 2;
    const size_t most = (size_t)f->body.number_of_simplices * (size_t)each;
    size_t count = 0;
    f->edges = malloc((most + 1) * sizeof *f->edges);
    if (f->edges == NULL) return tb_fail_memory(m->error, most * sizeof *f->edges, "edges");
    for (int32_t e = 0; e < f->body.number_of_simplices; e++) {
        const int32_t *s = f->body.simplices + (size_t)corners * (size_t)e;
        for (int32_t i = 0; i < corners; i++)
            for (int32_t j = i + 1; j < corners; j++) {
                if (s[i] == s[j])
                    return tb_xml_fail(m->error, TB_INVALID_ARGUMENT, node, "element",
                                       "element %d has point %d twice", (int)e, (int)s[i]);
                f->edges[count++] = s[i] < s[j] ? (flex_edge){s[i], s[j]} : (flex_edge){s[j], s[i]};
            }
    }
    qsort(f->edges, count, sizeof *f->edges, by_points);
    for (size_t i = 0; i < count; i++)
        if (i == 0 || by_points(&f->edges[i], &f->edges[i - 1]) != 0)
            f->edges[f->number_of_edges++] = f->edges[i];
    return TB_OK;
}

/* ---- faces ---- */

/* A triangle of a tetrahedron: its points ascending, and as they are there. */
typedef struct tetra_face {
    int32_t sorted[3], points[3];
} tetra_face;

static void put_in_order(int32_t *a, int32_t *b)
{
    const int32_t lower = *a < *b ? *a : *b, upper = *a < *b ? *b : *a;
    *a = lower;
    *b = upper;
}

static int by_sorted(const void *a, const void *b)
{
    const int32_t *p = ((const tetra_face *)a)->sorted, *q = ((const tetra_face *)b)->sorted;
    for (int k = 0; k < 3; k++)
        if (p[k] != q[k]) return p[k] < q[k] ? -1 : 1;
    return 0;
}

/* The triangles that one tetrahedron has alone. */
static tb_status find_outer_faces(mjcf *m, flex *f)
{
    static const int CORNERS[4][3] = {{0, 1, 2}, {0, 3, 1}, {1, 3, 2}, {2, 3, 0}};
    const size_t count = 4 * (size_t)f->body.number_of_simplices;
    tetra_face *all = malloc(count * sizeof *all);
    f->faces = malloc(3 * count * sizeof *f->faces);
    if (all == NULL || f->faces == NULL) {
        free(all);
        return tb_fail_memory(m->error, count * sizeof *all, "faces");
    }
    for (size_t i = 0; i < count; i++) {
        const int32_t *t = f->body.simplices + 4 * (i / 4);
        for (int k = 0; k < 3; k++) all[i].sorted[k] = all[i].points[k] = t[CORNERS[i % 4][k]];
        put_in_order(&all[i].sorted[0], &all[i].sorted[1]);
        put_in_order(&all[i].sorted[1], &all[i].sorted[2]);
        put_in_order(&all[i].sorted[0], &all[i].sorted[1]);
    }
    qsort(all, count, sizeof *all, by_sorted);
    for (size_t i = 0; i < count; i++)
        if ((i == 0 || by_sorted(&all[i], &all[i - 1]) != 0) &&
            (i + 1 == count || by_sorted(&all[i], &all[i + 1]) != 0))
            memcpy(f->faces + 3 * (size_t)f->number_of_faces++, all[i].points,
                   sizeof all[i].points);
    free(all);
    return TB_OK;
}

static tb_status find_faces(mjcf *m, flex *f)
{
    const tb_simplices *b = &f->body;
    f->face_corners = b->dimension == 1 ? 2 : 3;
    if (b->dimension == 3) return find_outer_faces(m, f);
    const size_t size = (size_t)b->number_of_simplices * (size_t)f->face_corners;
    f->faces = malloc(size * sizeof *f->faces);
    if (f->faces == NULL) return tb_fail_memory(m->error, size * sizeof *f->faces, "faces");
    memcpy(f->faces, b->simplices, size * sizeof *f->faces);
    f->number_of_faces = b->number_of_simplices;
    return TB_OK;
}

/* ---- the element ---- */

static tb_status read_edge(mjcf *m, const xmlNode *node, flex *f)
{
    int32_t equality = 0;
    MJCF_TRY(mjcf_check_attributes(m, node, &EDGE));
    MJCF_TRY(tb_xml_choice(node, "equality", "false true vert strain", &equality, m->error));
    MJCF_TRY(tb_xml_number(node, "stiffness", &f->stiffness, m->error));
    MJCF_TRY(tb_xml_number(node, "damping", &f->damping, m->error));
    if (equality > 1)
        return tb_xml_fail(m->error, TB_UNSUPPORTED, node, "equality",
                           "equalities of vertices and of strain are not supported");
    f->closes_edges = equality == 1;
    if (f->stiffness < 0 || f->damping < 0 || (f->stiffness > 0 && f->body.dimension > 1))
        return tb_xml_fail(
            m->error, TB_INVALID_ARGUMENT, node, "stiffness",
            "stiffness and damping are at least 0, and stiffness is 0 but for dim 1");
    return TB_OK;
}

/* Of dim 2 that which elastic2d names. */
static tb_status read_elasticity(mjcf *m, const xmlNode *node, flex *f)
{
    enum { NONE, BEND, STRETCH, BOTH };
    double young = 0, poisson = 0, thickness = -1;
    int32_t of_plate = NONE;
    MJCF_TRY(mjcf_check_attributes(m, node, &ELASTICITY));
    MJCF_TRY(tb_xml_number(node, "young", &young, m->error));
    MJCF_TRY(tb_xml_number(node, "poisson", &poisson, m->error));
    MJCF_TRY(tb_xml_number(node, "thickness", &thickness, m->error));
    MJCF_TRY(tb_xml_number(node, "damping", &f->loss, m->error));
    MJCF_TRY(tb_xml_choice(node, "elastic2d", "none bend stretch both", &of_plate, m->error));
    if (young < 0 || poisson < 0 || poisson >= 0.5 || f->loss < 0 ||
        (of_plate != NONE && (f->body.dimension != 2 || thickness <= 0)))
        return tb_xml_fail(
            m->error, TB_INVALID_ARGUMENT, node, NULL,
            "young %g, poisson %g, damping %g, thickness %g, dim %d: none may be "
            "negative, poisson is below 0.5, and elastic2d wants dim 2 and a thickness",
            young, poisson, f->loss, thickness, (int)f->body.dimension);
    if (young == 0 || f->body.dimension == 1) return TB_OK;
    f->young = young;
    f->poisson = poisson;
    f->thickness = thickness;
    if (m->no_damper) f->loss = 0;
    if (m->no_spring && f->loss > 0)
        return tb_xml_fail(m->error, TB_UNSUPPORTED, node, "damping",
                           "elasticity that damps while the flag spring is off is not supported");
    if (m->no_spring) return TB_OK;
    f->stretches = f->body.dimension == 3 || of_plate >= STRETCH;
    if (of_plate == BEND || of_plate == BOTH)
        f->rigidity = young * thickness * thickness * thickness / (12 * (1 - poisson * poisson));
    return TB_OK;
}

/* `contact` is read with the vertices; whether the flex is to touch itself is its own. */
static tb_status read_children(mjcf *m, const xmlNode *node, flex *f)
{
    double category = 1, mask = 1;
    int32_t self = 1;
    for (const xmlNode *c = tb_xml_first(node); c != NULL; c = tb_xml_next(c)) {
        if (tb_xml_is(c, "edge")) {
            MJCF_TRY(read_edge(m, c, f));
        } else if (tb_xml_is(c, "elasticity")) {
            MJCF_TRY(read_elasticity(m, c, f));
        } else if (tb_xml_is(c, "contact")) {
            MJCF_TRY(tb_xml_number(c, "contype", &category, m->error));
            MJCF_TRY(tb_xml_number(c, "conaffinity", &mask, m->error));
            MJCF_TRY(tb_xml_choice(c, "selfcollide", "none auto narrow bvh sap", &self, m->error));
        } else if (tb_xml_is(c, "plugin")) {
            return tb_xml_fail(m->error, TB_UNSUPPORTED, c, NULL, "plugins are not supported");
        } else if (!tb_xml_is(c, "pin")) {
            return tb_xml_fail(m->error, TB_INVALID_ARGUMENT, c, NULL,
                               "unknown element in 'flexcomp'");
        }
    }
    f->touches_itself = self != 0 && ((uint32_t)(int64_t)category & (uint32_t)(int64_t)mask) != 0;
    return TB_OK;
}

static tb_status read_numbers(mjcf *m, const xmlNode *node, flex *f)
{
    static const char DOFS[] = "full radial 2d trilinear quadratic";
    int32_t type = FLEX_GRID, dofs = FLEX_FULL, given = 0;
    double count[3] = {10, 10, 10};
    *f = (flex){.spacing = {0.02, 0.02, 0.02}, .mass = 1, .inertia_box = 0.005, .radius = 0.005};
    f->body.dimension = 2;
    MJCF_TRY(tb_xml_require(node, "name", &f->name, m->error));
    MJCF_TRY(tb_xml_choice(node, "type", FLEX_TYPES, &type, m->error));
    MJCF_TRY(tb_xml_choice(node, "dof", DOFS, &dofs, m->error));
    MJCF_TRY(tb_xml_integer(node, "dim", &f->body.dimension, m->error));
    MJCF_TRY(tb_xml_numbers(node, "count", 1, 3, count, &given, m->error));
    MJCF_TRY(tb_xml_numbers(node, "spacing", 1, 3, f->spacing, NULL, m->error));
    MJCF_TRY(tb_xml_number(node, "mass", &f->mass, m->error));
    MJCF_TRY(tb_xml_number(node, "inertiabox", &f->inertia_box, m->error));
    MJCF_TRY(tb_xml_number(node, "radius", &f->radius, m->error));
    if (dofs > FLEX_PLANAR)
        return tb_xml_fail(m->error, TB_UNSUPPORTED, node, "dof",
                           "a flexcomp that is interpolated between nodes is not supported");
    if (f->body.dimension < 1 || f->body.dimension > 3)
        return tb_xml_fail(m->error, TB_INVALID_ARGUMENT, node, "dim", "dim is %d, not 1, 2 or 3",
                           (int)f->body.dimension);
    if (!(f->mass > 0) || !(f->inertia_box > 0) || !(f->radius >= 0))
        return tb_xml_fail(
            m->error, TB_INVALID_ARGUMENT, node, "mass",
            "mass %g, inertiabox %g and radius %g: the first two are not positive, or "
            "the third is negative",
            f->mass, f->inertia_box, f->radius);
    for (int k = 0; k < 3; k++) {
        f->count[k] = count[k] >= 1 && count[k] <= FLEX_VERTEX_LIMIT ? (int32_t)count[k] : 0;
        if (type < FLEX_MESH && !(f->spacing[k] >= 2 * f->radius))
            return tb_xml_fail(m->error, TB_INVALID_ARGUMENT, node, "spacing",
                               "spacing %g is less than twice the radius %g", f->spacing[k],
                               f->radius);
    }
    if (f->radius == 0) f->radius = POINT_RADIUS_M;
    f->type = (flex_type)type;
    f->dofs = (flex_dofs)dofs;
    return TB_OK;
}

/* Points of a file or a list are scaled, and all placed in the frame of the parent. */
static tb_status place_points(mjcf *m, const xmlNode *node, flex *f)
{
    mjcf_element element;
    mjcf_pose pose;
    double scale[3] = {1, 1, 1};
    MJCF_TRY(mjcf_open(m, node, NULL, -1, &FLEX, &element));
    MJCF_TRY(mjcf_read_pose(m, &element, &pose));
    MJCF_TRY(tb_xml_numbers(node, "scale", 3, 3, scale, NULL, m->error));
    for (int32_t i = 0; i < f->body.number_of_points; i++) {
        double *p = f->body.points + 3 * (size_t)i;
        for (int k = 0; k < 3; k++) p[k] *= f->type >= FLEX_MESH ? scale[k] : 1;
        tb_v3_store(p, tb_v3_add(tb_q_rotate(pose.orientation, tb_v3_load(p)), pose.position));
    }
    return TB_OK;
}

tb_status flex_read(mjcf *m, const xmlNode *node, flex *f)
{
    MJCF_TRY(read_numbers(m, node, f));
    if (f->type == FLEX_DIRECT)
        MJCF_TRY(flex_read_direct(m, node, &f->body));
    else if (f->type >= FLEX_MESH)
        MJCF_TRY(read_file(m, node, f));
    else
        MJCF_TRY(flex_make_shape(f, node, m->error));
    if (f->body.number_of_points > FLEX_VERTEX_LIMIT || f->body.number_of_simplices == 0)
        return tb_xml_fail(m->error, TB_INVALID_ARGUMENT, node, NULL,
                           "%d points and %d elements: there is no element, or more than %d points",
                           (int)f->body.number_of_points, (int)f->body.number_of_simplices,
                           FLEX_VERTEX_LIMIT);
    MJCF_TRY(read_children(m, node, f));
    MJCF_TRY(place_points(m, node, f));
    MJCF_TRY(read_pins(m, node, f));
    if (f->type >= FLEX_MESH) MJCF_TRY(drop_unused(m, f));
    MJCF_TRY(find_edges(m, node, f));
    MJCF_TRY(find_faces(m, f));
    return f->rigidity > 0 ? flex_find_hinges(m, node, f) : TB_OK;
}
