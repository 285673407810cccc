/* Model images: see model_image.h.
 *
 * Every array of a model is listed once below, with the number of its items. A test
 * compares the image with the model word by word, so that an address which no list names is
 * noticed. */
#include "gpu/device/model_image.h"

#include <string.h>

/* array of tb_model, items */
#define MODEL_ARRAYS(X)                                                                            \
    X(bodies, m->number_of_bodies)                                                                 \
    X(joints, m->number_of_joints)                                                                 \
    X(dofs, m->number_of_dofs)                                                                     \
    X(trees, m->number_of_trees)                                                                   \
    X(jointed_trees, m->number_of_jointed_trees)                                                   \
    X(dry_dofs, m->number_of_dry_dofs)                                                             \
    X(limited_joints, m->number_of_limited_joints)                                                 \
    X(chain_start, m->number_of_dofs + 1)                                                          \
    X(chains, m->number_of_chain_dofs)                                                             \
    X(level_start, m->number_of_levels + 1)                                                        \
    X(level_bodies, m->number_of_bodies)                                                           \
    X(depth_start, m->longest_chain + 1)                                                           \
    X(depth_dofs, m->number_of_dofs)                                                               \
    X(shapes, m->number_of_shapes)                                                                 \
    X(filters, m->number_of_shapes)                                                                \
    X(hulls, m->number_of_hulls)                                                                   \
    X(meshes, m->number_of_meshes)                                                                 \
    X(height_fields, m->number_of_height_fields)                                                   \
    X(sites, m->number_of_sites)                                                                   \
    X(tendons, m->number_of_tendons)                                                               \
    X(tendon_dofs, m->number_of_tendon_terms)                                                      \
    X(tendon_coordinates, m->number_of_tendon_terms)                                               \
    X(tendon_coefficients, m->number_of_tendon_terms)                                              \
    X(tendon_points, m->number_of_tendon_points)                                                   \
    X(actuators, m->number_of_actuators)                                                           \
    X(moment_dofs, m->number_of_moments)                                                           \
    X(fluids, m->number_of_fluids)                                                                 \
    X(equalities, m->number_of_equalities)                                                         \
    X(pairs, m->number_of_pairs)                                                                   \
    X(excludes, m->number_of_excludes)                                                             \
    X(shape_excludes, m->number_of_shape_excludes)                                                 \
    X(kinematic_bodies, m->number_of_kinematic_bodies)                                             \
    X(first_trees, m->number_of_first_trees)                                                       \
    X(q_reference, m->number_of_coordinates)                                                       \
    X(shape_pair_start, m->number_of_shapes + 1)                                                   \
    X(colliding_shapes, m->number_of_colliding_shapes)

#define HULL_ARRAYS(X)                                                                             \
    X(vertices, 3 * m->number_of_vertices)                                                         \
    X(planes, 4 * m->number_of_faces)                                                              \
    X(face_start, m->number_of_faces + 1)                                                          \
    X(face_vertices, m->number_of_face_indices)                                                    \
    X(edges, 4 * m->number_of_edges)                                                               \
    X(neighbour_start, m->number_of_vertices + 1)                                                  \
    X(neighbours, m->neighbour_start[m->number_of_vertices])                                       \
    X(vertex_face_start, m->number_of_vertices + 1)                                                \
    X(vertex_faces, m->vertex_face_start[m->number_of_vertices])                                   \
    X(climb_start, m->number_of_vertices + 1)                                                      \
    X(climbs, m->climb_start[m->number_of_vertices])                                               \
    X(starts, 6 * m->cells * m->cells)

#define MESH_ARRAYS(X)                                                                             \
    X(vertices, 3 * m->number_of_vertices)                                                         \
    X(triangles, 3 * m->number_of_triangles)                                                       \
    X(adjacent, 3 * m->number_of_triangles)                                                        \
    X(normals, 3 * m->number_of_triangles)                                                         \
    X(edge_kind, 3 * m->number_of_triangles)                                                       \
    X(nodes, m->number_of_nodes)                                                                   \
    X(tree_triangles, m->number_of_tree_triangles)

#define FIELD_ARRAYS(X) X(heights, m->rows * m->columns)

/* The image while it grows; without bytes it is only measured. */
typedef struct writer {
    uintptr_t base, origin;
    unsigned char *bytes; /* or NULL */
    size_t size;
} writer;

/* Appends an array, padded with zeros to the alignment; returns its offset. */
static size_t append(writer *w, const void *items, int64_t count, size_t size)
{
    const size_t at = w->size, alignment = TB_MODEL_IMAGE_ALIGNMENT;
    const size_t bytes = items != NULL && count > 0 ? (size_t)count * size : 0;
    w->size += (bytes + alignment - 1) / alignment * alignment;
    if (w->bytes == NULL || bytes == 0) return at;
    memcpy(w->bytes + at, items, bytes);
    memset(w->bytes + at + bytes, 0, w->size - at - bytes);
    return at;
}

static void point(writer *w, size_t member, uintptr_t address)
{
    if (w->bytes != NULL) memcpy(w->bytes + member, &address, sizeof address);
}

/* Appends a member's array, and points the member's copy at it. `home` is the address of the
 * structure's copy in the image. */
#define APPEND_TO(w, m, member, count) append(w, (m)->member, count, sizeof *(m)->member)
#define MEMBER(member)                 (home + (size_t)((const char *)&m->member - (const char *)m))
#define APPEND(member, count)                                                                      \
    point(w, MEMBER(member), m->member != NULL ? w->base + APPEND_TO(w, m, member, count) : 0);

/* Whether a model that may have an origin does not borrow this array from it. */
#define OWNS(member) (origin == NULL || m->member == NULL || m->member != origin->member)

/* Appends arrays that the model owns. Borrowed arrays are in the origin's image already: `there`
 * walks over that image as it was written, without bytes. */
#define APPEND_OR_BORROW(member, count)                                                            \
    if (origin != NULL) place = APPEND_TO(&there, origin, member, count);                          \
    if (OWNS(member)) {                                                                            \
        APPEND(member, count)                                                                      \
    } else {                                                                                       \
        point(w, MEMBER(member), w->origin + place);                                               \
    }

static void append_hull(writer *w, const tb_hull *m, size_t home)
{
    HULL_ARRAYS(APPEND)
}

static void append_mesh(writer *w, const tb_triangle_mesh *m, size_t home)
{
    MESH_ARRAYS(APPEND)
}

static void append_field(writer *w, const tb_height_field *m, size_t home)
{
    FIELD_ARRAYS(APPEND)
}

/* Where the image keeps the items of an array that the model's copy points at. */
static size_t place_of(const writer *w, size_t member)
{
    uintptr_t address = 0;
    if (w->bytes != NULL) memcpy(&address, w->bytes + member, sizeof address);
    return address != 0 ? (size_t)(address - w->base) : 0;
}

static void write_image(writer *w, const tb_model *m)
{
    const tb_model *origin = w->origin != 0 ? m->origin : NULL;
    writer there = {0};
    size_t place = 0;
    /* the model without arrays that only the host reads */
    tb_model bare = *m;
    memset(&bare.arena, 0, sizeof bare.arena);
    memset(bare.names, 0, sizeof bare.names);
    memset(bare.number_of_names, 0, sizeof bare.number_of_names);
    bare.name = NULL;
    bare.warnings = NULL;
    bare.number_of_warnings = 0;
    bare.keyframes = NULL;
    bare.number_of_keyframes = 0;
    bare.name_index = NULL;
    bare.looks = NULL;
    bare.volume_constants = NULL;
    bare.sensors = NULL;
    bare.elements = NULL;
    bare.number_of_elements = 0;
    bare.elastics = NULL;
    bare.number_of_elastics = 0;
    bare.mesh_contents = NULL;
    bare.height_field_contents = NULL;
    bare.origin = NULL;
    bare.soft = NULL;
    bare.soft_size = 0;
    bare.bytes = NULL;
    bare.bytes_size = 0;
    const size_t home = append(w, &bare, 1, sizeof bare);
    append(&there, &bare, 1, sizeof bare);
    MODEL_ARRAYS(APPEND_OR_BORROW)

    const size_t hulls = place_of(w, offsetof(tb_model, hulls));
    const size_t meshes = place_of(w, offsetof(tb_model, meshes));
    const size_t fields = place_of(w, offsetof(tb_model, height_fields));
    for (int32_t i = 0; i < m->number_of_hulls && OWNS(hulls); i++)
        append_hull(w, &m->hulls[i], hulls + (size_t)i * sizeof *m->hulls);
    for (int32_t i = 0; i < m->number_of_meshes && OWNS(meshes); i++)
        append_mesh(w, &m->meshes[i], meshes + (size_t)i * sizeof *m->meshes);
    for (int32_t i = 0; i < m->number_of_height_fields && OWNS(height_fields); i++)
        append_field(w, &m->height_fields[i], fields + (size_t)i * sizeof *m->height_fields);
}

size_t tb_model_image_size(const tb_model *model, uintptr_t origin)
{
    writer w = {.origin = origin};
    write_image(&w, model);
    return w.size;
}

void tb_model_image_write(const tb_model *model, uintptr_t base, uintptr_t origin,
                          unsigned char *bytes)
{
    writer w = {.base = base, .origin = origin, .bytes = bytes};
    write_image(&w, model);
}
