/* COLLADA from memory: see mesh_file.h.
 *
 * A file holds geometries, and a scene of nodes that places instances of them. Geometry:
 * sources of numbers, a <vertices> that names the positions among them, and lists of triangles,
 * polygons, strips or fans whose indices are interleaved with those of normals and textures.
 * Without a scene, geometries are used in place. Source: COLLADA 1.4.1 specification (Khronos
 * Group, 2008), chapters 5 (core) and 6 (geometry).
 *
 * Nodes may instance nodes, so a short file can describe an endless mesh: depth, instances and
 * triangles are limited. */
#include <stdlib.h>
#include <string.h>

#include "base/budget.h"
#include "base/file.h"
#include "model/import/mesh/mesh_file.h"
#include "model/names.h"
#include "model/import/xml.h"

enum { DAE_DEPTH_LIMIT = 64, DAE_INSTANCE_LIMIT = 100000, DAE_STRIDE_LIMIT = 64 };

static const double DEGREE = 3.14159265358979323846 / 180;

/* x -> linear x + shift */
typedef struct affine {
    tb_mat33 linear;
    tb_vec3 shift;
} affine;

typedef struct dae_reader {
    const char *file;
    tb_error *error;
    tb_names ids; /* index in nodes */
    const xmlNode **nodes;
    int32_t number_of_nodes, node_capacity;
    double unit; /* m */
    int32_t instances;
    tb_mesh_data mesh;
    int32_t vertex_capacity, triangle_capacity;
    int32_t *polygon;
    int32_t polygon_capacity;
} dae_reader;

/* One <triangles>, <polylist>, ... as its <input>s describe it. */
typedef struct dae_list {
    const xmlNode *node;
    int32_t stride, offset; /* indices of a corner, and the offset of the position's */
    int32_t first_vertex, number_of_vertices; /* of its positions, in the mesh */
    bool mirrored;
} dae_list;

#define DAE_TRY(call)                                                                              \
    do {                                                                                           \
        const tb_status try_status = (call);                                                       \
        if (try_status != TB_OK) return try_status;                                                \
    } while (0)

/* ---- numbers ---- */

/* All numbers of an element's text; *numbers is the caller's to free. */
static tb_status read_numbers(dae_reader *r, const xmlNode *node, double **numbers, int32_t *count)
{
    int32_t capacity = 0;
    tb_status status = TB_OK;
    *numbers = NULL;
    *count = 0;
    xmlChar *text = xmlNodeGetContent(node);
    if (text == NULL) return tb_fail_memory(r->error, 0, "a mesh");
    const char *p = (const char *)text;
    for (;;) {
        p += strspn(p, " \t\r\n");
        if (*p == 0) break;
        if (*count == capacity) {
            double *larger = *count < 8 * TB_MESH_FILE_LIMIT
                                 ? tb_grow(*numbers, *count + 1, &capacity, sizeof **numbers)
                                 : NULL;
            if (larger == NULL) {
                status = tb_fail_memory(r->error, (size_t)*count * sizeof **numbers, "a mesh");
                break;
            }
            *numbers = larger;
        }
        double *number = &(*numbers)[*count];
        if (!tb_parse_number(&p, number) || !isfinite(*number)) {
            status = tb_xml_fail(r->error, TB_INVALID_ARGUMENT, node, NULL,
                                 "'%.20s' is not a finite number", p);
            break;
        }
        ++*count;
        status = tb_budget_check(r->error);
        if (status != TB_OK) break;
    }
    xmlFree(text);
    if (status != TB_OK) {
        free(*numbers);
        *numbers = NULL;
    }
    return status;
}

/* Exactly `expected` numbers. */
static tb_status read_exactly(dae_reader *r, const xmlNode *node, int32_t expected, double *numbers)
{
    double *all = NULL;
    int32_t count = 0;
    DAE_TRY(read_numbers(r, node, &all, &count));
    const bool good = count == expected;
    if (good) memcpy(numbers, all, (size_t)count * sizeof *numbers);
    free(all);
    return good ? TB_OK
                : tb_xml_fail(r->error, TB_INVALID_ARGUMENT, node, NULL,
                              "%d numbers where %d are expected", (int)count, (int)expected);
}

/* ---- references ---- */

static tb_status note_ids(dae_reader *r, const xmlNode *node)
{
    const char *id = tb_xml_attribute(node, "id");
    if (id != NULL && tb_names_find(&r->ids, TB_HANDLE_NONE, id) < 0) {
        if (r->number_of_nodes == r->node_capacity) {
            const xmlNode **larger =
                tb_grow(r->nodes, r->number_of_nodes + 1, &r->node_capacity, sizeof *larger);
            if (larger == NULL) return tb_fail_memory(r->error, 0, "a mesh");
            r->nodes = larger;
        }
        if (!tb_names_insert(&r->ids, TB_HANDLE_NONE, id, r->number_of_nodes))
            return tb_fail_memory(r->error, 0, "a mesh");
        r->nodes[r->number_of_nodes++] = node;
    }
    for (const xmlNode *c = tb_xml_first(node); c != NULL; c = tb_xml_next(c))
        DAE_TRY(note_ids(r, c));
    return TB_OK;
}

/* The element that an attribute refers to: "#id". */
static tb_status follow(dae_reader *r, const xmlNode *node, const char *attribute,
                        const xmlNode **found)
{
    const char *reference = tb_xml_attribute(node, attribute);
    if (reference == NULL || reference[0] != '#')
        return tb_xml_fail(r->error, TB_INVALID_ARGUMENT, node, attribute,
                           "%s=\"%.80s\" does not refer to this file", attribute,
                           reference != NULL ? reference : "");
    const int32_t index = tb_names_find(&r->ids, TB_HANDLE_NONE, reference + 1);
    if (index < 0)
        return tb_xml_fail(r->error, TB_INVALID_ARGUMENT, node, attribute,
                           "nothing has the id '%.80s'", reference + 1);
    *found = r->nodes[index];
    return TB_OK;
}

/* ---- positions ---- */

static tb_status add_vertex(dae_reader *r, const xmlNode *node, tb_vec3 x)
{
    tb_mesh_data *mesh = &r->mesh;
    x = tb_v3_scale(x, r->unit);
    for (int i = 0; i < 3; i++)
        if (!(fabs(tb_v3_at(x, i)) <= TB_MESH_COORDINATE_LIMIT))
            return tb_xml_fail(r->error, TB_INVALID_ARGUMENT, node, NULL,
                               "a vertex is too far off");
    if (mesh->number_of_vertices >= TB_MESH_FILE_LIMIT)
        return tb_xml_fail(r->error, TB_RESOURCE_EXHAUSTED, node, NULL, "more than %d vertices",
                           (int)TB_MESH_FILE_LIMIT);
    if (mesh->number_of_vertices == r->vertex_capacity) {
        double *larger = tb_grow(mesh->vertices, mesh->number_of_vertices + 1, &r->vertex_capacity,
                                 3 * sizeof *larger);
        if (larger == NULL) return tb_fail_memory(r->error, 0, "a mesh");
        mesh->vertices = larger;
    }
    tb_v3_store(mesh->vertices + 3 * (size_t)mesh->number_of_vertices++, x);
    return TB_OK;
}

/* Appends a source's positions, moved to where the instance is. */
static tb_status add_positions(dae_reader *r, const xmlNode *source, const affine *place)
{
    const xmlNode *array = tb_xml_first_named(source, "float_array");
    const xmlNode *common = tb_xml_first_named(source, "technique_common");
    const xmlNode *accessor = common != NULL ? tb_xml_first_named(common, "accessor") : NULL;
    int32_t stride = 3, offset = 0, count = 0;
    double *numbers = NULL;
    if (array == NULL)
        return tb_xml_fail(r->error, TB_INVALID_ARGUMENT, source, NULL, "there is no float_array");
    if (accessor != NULL) {
        DAE_TRY(tb_xml_integer(accessor, "stride", &stride, r->error));
        DAE_TRY(tb_xml_integer(accessor, "offset", &offset, r->error));
    }
    if (stride < 3 || stride > DAE_STRIDE_LIMIT || offset < 0)
        return tb_xml_fail(r->error, TB_INVALID_ARGUMENT, accessor, "stride",
                           "positions of stride %d at offset %d", (int)stride, (int)offset);
    tb_status status = read_numbers(r, array, &numbers, &count);
    for (int32_t i = offset; status == TB_OK && i <= count - 3; i += stride) {
        const tb_vec3 x = tb_m33_mul_v3(&place->linear, tb_v3_load(numbers + i));
        status = add_vertex(r, array, tb_v3_add(x, place->shift));
    }
    free(numbers);
    return status;
}

/* ---- faces ---- */

static tb_status add_polygon(dae_reader *r, const dae_list *list, int32_t count)
{
    tb_mesh_data *mesh = &r->mesh;
    if (count < 3) return TB_OK;
    if (mesh->number_of_triangles > TB_MESH_FILE_LIMIT - count)
        return tb_xml_fail(r->error, TB_RESOURCE_EXHAUSTED, list->node, NULL,
                           "more than %d triangles", (int)TB_MESH_FILE_LIMIT);
    if (mesh->number_of_triangles + count - 2 > r->triangle_capacity) {
        int32_t *larger = tb_grow(mesh->triangles, mesh->number_of_triangles + count - 2,
                                  &r->triangle_capacity, 3 * sizeof *larger);
        if (larger == NULL) return tb_fail_memory(r->error, 0, "a mesh");
        mesh->triangles = larger;
    }
    if (list->mirrored)
        for (int32_t i = 0, j = count - 1; i < j; i++, j--) {
            const int32_t swap = r->polygon[i];
            r->polygon[i] = r->polygon[j];
            r->polygon[j] = swap;
        }
    int32_t *first = mesh->triangles + 3 * (size_t)mesh->number_of_triangles;
    if (tb_polygon_triangulate(mesh->vertices, r->polygon, count, first) != TB_OK)
        return tb_xml_fail(r->error, TB_RESOURCE_EXHAUSTED, list->node, NULL,
                           "a face of %d vertices is too large", (int)count);
    mesh->number_of_triangles += count - 2;
    return TB_OK;
}

/* Appends a corner's position to the present polygon. */
static tb_status set_corner(dae_reader *r, const dae_list *list, const double *indices, int32_t at,
                            int32_t corner)
{
    if (at >= r->polygon_capacity) {
        int32_t *larger = tb_grow(r->polygon, at + 1, &r->polygon_capacity, sizeof *larger);
        if (larger == NULL) return tb_fail_memory(r->error, 0, "a mesh");
        r->polygon = larger;
    }
    const double index = indices[(size_t)corner * (size_t)list->stride + (size_t)list->offset];
    if (!(index >= 0 && index < list->number_of_vertices && index == floor(index)))
        return tb_xml_fail(r->error, TB_INVALID_ARGUMENT, list->node, NULL,
                           "index %g is not that of one of %d positions", index,
                           (int)list->number_of_vertices);
    r->polygon[at] = list->first_vertex + (int32_t)index;
    return TB_OK;
}

/* Corners [first, first + count) as one polygon. */
static tb_status add_face(dae_reader *r, const dae_list *list, const double *indices, int32_t first,
                          int32_t count)
{
    for (int32_t i = 0; i < count; i++) DAE_TRY(set_corner(r, list, indices, i, first + i));
    return add_polygon(r, list, count);
}

/* Strips and fans: a triangle for every corner from the third on. */
static tb_status add_strip(dae_reader *r, const dae_list *list, const double *indices,
                           int32_t corners, bool fan)
{
    for (int32_t i = 2; i < corners; i++) {
        const bool turned = !fan && i % 2 == 1;
        DAE_TRY(set_corner(r, list, indices, 0, fan ? 0 : turned ? i - 1 : i - 2));
        DAE_TRY(set_corner(r, list, indices, 1, fan ? i - 1 : turned ? i - 2 : i - 1));
        DAE_TRY(set_corner(r, list, indices, 2, i));
        DAE_TRY(add_polygon(r, list, 3));
    }
    return TB_OK;
}

/* The faces of one <p>; `counts` are a polylist's numbers of corners. */
static tb_status add_faces(dae_reader *r, const dae_list *list, const double *indices,
                           int32_t corners, const double *counts, int32_t number_of_counts)
{
    const char *kind = tb_xml_name(list->node);
    if (strcmp(kind, "tristrips") == 0) return add_strip(r, list, indices, corners, false);
    if (strcmp(kind, "trifans") == 0) return add_strip(r, list, indices, corners, true);
    if (strcmp(kind, "polygons") == 0) return add_face(r, list, indices, 0, corners);
    if (strcmp(kind, "triangles") == 0) {
        for (int32_t i = 0; i <= corners - 3; i += 3) DAE_TRY(add_face(r, list, indices, i, 3));
        return TB_OK;
    }
    int32_t at = 0;
    for (int32_t i = 0; i < number_of_counts; i++) {
        if (!(counts[i] >= 0 && counts[i] <= corners - at && counts[i] == floor(counts[i])))
            return tb_xml_fail(r->error, TB_INVALID_ARGUMENT, list->node, NULL,
                               "vcount asks for more corners than the %d of p", (int)corners);
        DAE_TRY(add_face(r, list, indices, at, (int32_t)counts[i]));
        at += (int32_t)counts[i];
    }
    return TB_OK;
}

static tb_status read_faces(dae_reader *r, const dae_list *list)
{
    double *counts = NULL;
    int32_t number_of_counts = 0;
    const xmlNode *vcount = tb_xml_first_named(list->node, "vcount");
    if (vcount != NULL) DAE_TRY(read_numbers(r, vcount, &counts, &number_of_counts));
    tb_status status = TB_OK;
    for (const xmlNode *p = tb_xml_first_named(list->node, "p"); p != NULL && status == TB_OK;
         p = tb_xml_next_named(p, "p")) {
        double *indices = NULL;
        int32_t count = 0;
        status = read_numbers(r, p, &indices, &count);
        if (status == TB_OK)
            status = add_faces(r, list, indices, count / list->stride, counts, number_of_counts);
        free(indices);
    }
    free(counts);
    return status;
}

/* Reads the <input>s of a list: its stride, and the source of its positions. */
static tb_status read_inputs(dae_reader *r, dae_list *list, const xmlNode **source)
{
    *source = NULL;
    list->stride = 1;
    for (const xmlNode *i = tb_xml_first_named(list->node, "input"); i != NULL;
         i = tb_xml_next_named(i, "input")) {
        const char *semantic = tb_xml_attribute(i, "semantic");
        int32_t offset = 0;
        DAE_TRY(tb_xml_integer(i, "offset", &offset, r->error));
        if (offset < 0 || offset >= DAE_STRIDE_LIMIT)
            return tb_xml_fail(r->error, TB_INVALID_ARGUMENT, i, "offset", "offset is %d",
                               (int)offset);
        if (offset + 1 > list->stride) list->stride = offset + 1;
        if (semantic == NULL || strcmp(semantic, "VERTEX") != 0) continue;
        list->offset = offset;
        const xmlNode *vertices = NULL;
        DAE_TRY(follow(r, i, "source", &vertices));
        for (const xmlNode *v = tb_xml_first_named(vertices, "input"); v != NULL;
             v = tb_xml_next_named(v, "input")) {
            const char *of = tb_xml_attribute(v, "semantic");
            if (of != NULL && strcmp(of, "POSITION") == 0) DAE_TRY(follow(r, v, "source", source));
        }
    }
    return *source != NULL ? TB_OK
                           : tb_xml_fail(r->error, TB_INVALID_ARGUMENT, list->node, NULL,
                                         "no input leads to positions");
}

static tb_status add_geometry(dae_reader *r, const xmlNode *geometry, const affine *place)
{
    static const char *const LISTS = "triangles polylist polygons tristrips trifans";
    const xmlNode *mesh = tb_xml_first_named(geometry, "mesh"), *last = NULL;
    dae_list list = {.mirrored = tb_m33_determinant(&place->linear) < 0};
    if (mesh == NULL) return TB_OK; /* a spline or a hull of another geometry */
    for (const xmlNode *c = tb_xml_first(mesh); c != NULL; c = tb_xml_next(c)) {
        const xmlNode *source = NULL;
        if (!tb_xml_in_words(LISTS, tb_xml_name(c)) || tb_xml_first_named(c, "p") == NULL) continue;
        list.node = c;
        DAE_TRY(read_inputs(r, &list, &source));
        if (source != last) { /* lists of several materials share their positions */
            list.first_vertex = r->mesh.number_of_vertices;
            DAE_TRY(add_positions(r, source, place));
            list.number_of_vertices = r->mesh.number_of_vertices - list.first_vertex;
            last = source;
        }
        DAE_TRY(read_faces(r, &list));
    }
    return TB_OK;
}

/* ---- the scene ---- */

static affine affine_identity(void)
{
    const affine a = {tb_m33_identity(), tb_v3(0, 0, 0)};
    return a;
}

/* Applies one transformation of a node after the preceding ones. */
static tb_status apply(dae_reader *r, const xmlNode *node, affine *place)
{
    double n[16];
    affine own = affine_identity();
    const char *kind = tb_xml_name(node);
    if (strcmp(kind, "matrix") == 0) {
        DAE_TRY(read_exactly(r, node, 16, n));
        for (int row = 0; row < 3; row++)
            for (int i = 0; i < 3; i++) own.linear.m[3 * row + i] = n[4 * row + i];
        own.shift = tb_v3(n[3], n[7], n[11]);
    } else if (strcmp(kind, "translate") == 0) {
        DAE_TRY(read_exactly(r, node, 3, n));
        own.shift = tb_v3_load(n);
    } else if (strcmp(kind, "scale") == 0) {
        DAE_TRY(read_exactly(r, node, 3, n));
        for (int i = 0; i < 3; i++) own.linear.m[4 * i] = n[i];
    } else if (strcmp(kind, "rotate") == 0) {
        DAE_TRY(read_exactly(r, node, 4, n));
        const tb_vec3 axis = tb_v3_normalize(tb_v3_load(n), tb_v3(0, 0, 1));
        const double half = 0.5 * DEGREE * n[3], s = sin(half);
        own.linear = tb_q_matrix(tb_q(cos(half), s * axis.x, s * axis.y, s * axis.z));
    } else if (tb_xml_in_words("skew lookat", kind)) {
        return tb_xml_fail(r->error, TB_UNSUPPORTED, node, NULL,
                           "transformations of this kind are not supported");
    } else {
        return TB_OK;
    }
    place->shift = tb_v3_add(place->shift, tb_m33_mul_v3(&place->linear, own.shift));
    place->linear = tb_m33_mul(&place->linear, &own.linear);
    return TB_OK;
}

static tb_status add_node(dae_reader *r, const xmlNode *node, affine place, int depth);

static tb_status add_instance(dae_reader *r, const xmlNode *instance, const affine *place,
                              int depth)
{
    const xmlNode *what = NULL;
    if (++r->instances > DAE_INSTANCE_LIMIT)
        return tb_xml_fail(r->error, TB_RESOURCE_EXHAUSTED, instance, NULL,
                           "more than %d instances", DAE_INSTANCE_LIMIT);
    DAE_TRY(tb_budget_check(r->error));
    DAE_TRY(follow(r, instance, "url", &what));
    return tb_xml_is(what, "node") ? add_node(r, what, *place, depth + 1)
                                   : add_geometry(r, what, place);
}

/* Adds a node and all below it. All transformations of the node apply to its children, also
 * transformations written after them. */
static tb_status add_node(dae_reader *r, const xmlNode *node, affine place, int depth)
{
    if (depth > DAE_DEPTH_LIMIT)
        return tb_xml_fail(r->error, TB_RESOURCE_EXHAUSTED, node, NULL,
                           "nodes are nested more than %d deep", DAE_DEPTH_LIMIT);
    for (const xmlNode *c = tb_xml_first(node); c != NULL; c = tb_xml_next(c))
        DAE_TRY(apply(r, c, &place));
    for (const xmlNode *c = tb_xml_first(node); c != NULL; c = tb_xml_next(c)) {
        if (tb_xml_is(c, "node")) DAE_TRY(add_node(r, c, place, depth + 1));
        if (tb_xml_in_words("instance_geometry instance_node", tb_xml_name(c)))
            DAE_TRY(add_instance(r, c, &place, depth));
    }
    return TB_OK;
}

static tb_status read_document(dae_reader *r, const xmlNode *root)
{
    const affine identity = affine_identity();
    const xmlNode *asset = tb_xml_first_named(root, "asset"), *scene = NULL;
    const xmlNode *unit = asset != NULL ? tb_xml_first_named(asset, "unit") : NULL;
    if (!tb_xml_is(root, "COLLADA"))
        return tb_xml_fail(r->error, TB_INVALID_ARGUMENT, root, NULL,
                           "the root element is not 'COLLADA'");
    r->unit = 1;
    if (unit != NULL) DAE_TRY(tb_xml_number(unit, "meter", &r->unit, r->error));
    if (!(r->unit > 0))
        return tb_xml_fail(r->error, TB_INVALID_ARGUMENT, unit, "meter", "a unit of %g m", r->unit);
    DAE_TRY(note_ids(r, root));

    const xmlNode *scenes = tb_xml_first_named(root, "scene");
    const xmlNode *instance =
        scenes != NULL ? tb_xml_first_named(scenes, "instance_visual_scene") : NULL;
    if (instance != NULL) DAE_TRY(follow(r, instance, "url", &scene));
    if (scene != NULL) return add_node(r, scene, identity, 0);
    for (const xmlNode *l = tb_xml_first_named(root, "library_geometries"); l != NULL;
         l = tb_xml_next_named(l, "library_geometries"))
        for (const xmlNode *g = tb_xml_first_named(l, "geometry"); g != NULL;
             g = tb_xml_next_named(g, "geometry"))
            DAE_TRY(add_geometry(r, g, &identity));
    return TB_OK;
}

tb_status tb_dae_parse(const char *text, size_t size, const char *file, tb_mesh_data *mesh,
                       tb_error *error)
{
    dae_reader r = {.file = file, .error = error};
    tb_import_options options = tb_import_defaults();
    tb_xml *xml = NULL;
    memset(mesh, 0, sizeof *mesh);
    options.file_limit = 0;
    tb_status status = tb_xml_parse_with_text(text, size, file, &options, &xml, error);
    if (status != TB_OK) return status;
    tb_names_init(&r.ids);
    status = read_document(&r, tb_xml_root(xml));
    if (status == TB_OK && r.mesh.number_of_triangles == 0)
        status = tb_xml_fail(error, TB_INVALID_ARGUMENT, tb_xml_root(xml), NULL,
                             "the scene has no triangles");
    if (status == TB_OK) status = tb_mesh_data_compact(&r.mesh, error);
    if (status == TB_OK)
        *mesh = r.mesh;
    else
        tb_mesh_data_free(&r.mesh);
    free(r.polygon);
    free(r.nodes);
    tb_names_destroy(&r.ids);
    tb_xml_destroy(xml);
    return status;
}
