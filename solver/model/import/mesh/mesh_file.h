/* Reads untrusted mesh files from memory into plain arrays.
 *
 * OBJ and STL know no units: numbers are taken as metres. Readers keep the geometry only and
 * ignore groups, materials, normals and texture coordinates. Every failure names file and line,
 * or the byte offset of a binary file. */
#ifndef TB_MESH_FILE_H
#define TB_MESH_FILE_H

#include "base/base.h"

enum {
    TB_MESH_FILE_LIMIT = 1 << 24, /* most vertices and most triangles of one file */
    TB_MESH_FACE_LIMIT = 4096     /* most vertices of one face that is not convex */
};

/* Farthest coordinate, m: its sixth power, the size of a product of inertia, stays finite. */
#define TB_MESH_COORDINATE_LIMIT 1e12

typedef struct tb_mesh_data {
    double *vertices; /* number_of_vertices x 3, m; heap */
    int32_t number_of_vertices;
    int32_t *triangles; /* number_of_triangles x 3, counter-clockwise outside; heap */
    int32_t number_of_triangles;
} tb_mesh_data;

void tb_mesh_data_free(tb_mesh_data *mesh);

/* A body cut into simplices: segments, triangles or tetrahedra. */
typedef struct tb_simplices {
    int32_t dimension; /* 1, 2 or 3: a simplex has one point more */
    double *points;    /* number_of_points x 3, m; heap */
    int32_t number_of_points;
    int32_t *simplices; /* number_of_simplices x (dimension + 1); heap */
    int32_t number_of_simplices;
} tb_simplices;

void tb_simplices_free(tb_simplices *body);

/* Leaves out vertices that no triangle uses. RESOURCE_EXHAUSTED without memory. */
tb_status tb_mesh_data_compact(tb_mesh_data *mesh, tb_error *error);

/* x rounded to single precision. A pair of casts does not do: the SLP vectorizer of gcc 12 drops
 * them where it finds several side by side. */
static inline double tb_round_to_float(double x)
{
    const volatile float rounded = (float)x;
    return (double)rounded;
}

/* Wavefront OBJ. text[size] must be a zero byte. Faces of any number of sides become triangles;
 * vertices that no face uses are left out, unless there is no face at all (a cloud of points, good
 * for a hull). INVALID_ARGUMENT for malformed text and indices out of range, UNSUPPORTED for
 * free-form surfaces, RESOURCE_EXHAUSTED beyond the limits. The caller frees *mesh. */
tb_status tb_obj_parse(const char *text, size_t size, const char *file, tb_mesh_data *mesh,
                       tb_error *error);

/* STL, ASCII or binary by content. bytes[size] must be 0. Equal vertices are merged.
 * DATA_LOSS for a file that ends early or whose count of triangles does not fit its size. The
 * caller frees *mesh. */
tb_status tb_stl_parse(const char *bytes, size_t size, const char *file, tb_mesh_data *mesh,
                       tb_error *error);

/* MuJoCo's binary MSH. DATA_LOSS where the size does not fit the counts, INVALID_ARGUMENT for
 * vertices that are not finite and faces that name no vertex. The caller frees *mesh. */
tb_status tb_msh_parse(const char *bytes, size_t size, const char *file, tb_mesh_data *mesh,
                       tb_error *error);

/* COLLADA 1.4 and 1.5: the triangles of all geometries, placed by the scene, in metres by the
 * file's unit. Its up axis is ignored, as in ROS: URDF and MJCF take the axes unchanged. Skins,
 * splines and physics are ignored. INVALID_ARGUMENT for malformed XML and indices out of range,
 * UNSUPPORTED for skew and lookat, RESOURCE_EXHAUSTED beyond the limits. The caller frees *mesh. */
tb_status tb_dae_parse(const char *text, size_t size, const char *file, tb_mesh_data *mesh,
                       tb_error *error);

/* Solids by constructive solid geometry, as OpenSCAD exports them (.csg): union, difference,
 * intersection, multmatrix, translate, rotate, scale, mirror, cube, sphere, cylinder, polyhedron, and
 * linear_extrude of square, circle and polygon. Numbers are taken as metres. The surface is closed.
 * INVALID_ARGUMENT for malformed text and for an empty solid, UNSUPPORTED for other modules,
 * RESOURCE_EXHAUSTED beyond the limits. The caller frees *mesh. */
tb_status tb_csg_parse(const char *text, size_t size, const char *file, tb_mesh_data *mesh,
                       tb_error *error);

/* The lines of a Wavefront OBJ (statement l), as segments; faces are ignored, all vertices stay.
 * Failures are those of tb_obj_parse. The caller frees *body. */
tb_status tb_obj_parse_lines(const char *text, size_t size, const char *file, tb_simplices *body,
                             tb_error *error);

/* GMSH's MSH, versions 2.2 and 4.1, text or binary: the tetrahedra of all entities, where there are none
 * the triangles, where there are none the segments. Points stay in the file's order, also those that no
 * simplex uses. INVALID_ARGUMENT for malformed text and nodes that are not there, DATA_LOSS for a file
 * that ends early, UNSUPPORTED for other versions, byte orders and curved elements, RESOURCE_EXHAUSTED
 * beyond the limits. The caller frees *body. */
tb_status tb_gmsh_parse(const char *bytes, size_t size, const char *file, tb_simplices *body,
                        tb_error *error);

/* Whether a file's name ends like one of COLLADA, the one mesh format that is XML. */
bool tb_mesh_is_dae(const char *file);

/* Any of them, by the extension of `file`, else by content. */
tb_status tb_mesh_data_parse(const char *bytes, size_t size, const char *file, tb_mesh_data *mesh,
                             tb_error *error);

/* Cuts the polygon of `count` >= 3 vertex indices into count - 2 triangles (3 indices each): a fan
 * from its first vertex if it is convex, ears if it is simple, else a fan again. Faces should be
 * nearly planar. Ear clipping: Meisters, Polygons have ears, 1975. RESOURCE_EXHAUSTED without
 * memory or beyond TB_MESH_FACE_LIMIT. */
tb_status tb_polygon_triangulate(const double *vertices, const int32_t *polygon, int32_t count,
                                 int32_t *triangles);

#endif
