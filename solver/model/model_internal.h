/* Private header of solver/model: the content of a scene, and the stages of its compilation.
 *
 * scene*.c       builder: every definition is checked and normalised as it is added
 * compile*.c     scene to model, in stages that all work in the model's numbering
 * mass.c         mass properties of shapes and meshes
 * hull.c, triangle_mesh.c, mesh_tree.c   geometry
 * canonical*.c   the scene as bytes and back
 * model.c        queries of a compiled model; looks.c: queries for drawing it */
#ifndef TB_MODEL_INTERNAL_H
#define TB_MODEL_INTERNAL_H

#include "model/model.h"
#include "model/names.h"

/* ---- scene ---- */

/* Most vertices, triangles or heights of one asset: three times as many still fit 32 bits. */
enum { TB_MESH_LIMIT = 1 << 24 };

/* Inertia given with a body; stored separately, so that a body without one stays small. */
typedef struct scene_inertia {
    double mass, com[3], frame[4], inertia[6];
} scene_inertia;

typedef struct scene_body {
    const char *name; /* "" if none */
    int32_t parent;   /* scene index, -1: the world */
    int32_t inertia;  /* index in scene.inertias, -1: none given */
    double position[3], orientation[4];
    double gravity_compensation;
    tb_sleep sleep;
    bool kinematic;
    bool has_free, has_ball; /* joint types of the body, for the rules about combining joints */
    uint8_t number_of_dofs;
} scene_body;

/* Exclude in scene numbering: body indices, -1 for the world; or shape indices. */
typedef struct scene_exclude {
    int32_t a, b;
    bool shapes;
} scene_exclude;

/* A scene stores elements as their public definitions: names point into `names` ("" if none),
 * arrays into `data`, quaternions and axes are unit, unused numbers are zero. */
struct tb_scene {
    uint16_t owner;
    tb_scene_def options;
    tb_names names;
    tb_arena data; /* vertices, heights, coefficients, keyframes */

    scene_body *bodies;
    scene_inertia *inertias;
    tb_joint_def *joints;
    tb_shape_def *shapes;
    tb_mesh_def *meshes;
    tb_height_field_def *height_fields;
    tb_site_def *sites;
    tb_tendon_def *tendons;
    tb_actuator_def *actuators;
    tb_equality_def *equalities;
    tb_pair_def *pairs;
    tb_element_def *elements;
    tb_elastic_def *elastics;
    scene_exclude *excludes;
    tb_keyframe_def *keyframes;
    tb_sensor_def *sensors;
    const char **warnings;
    const unsigned char *soft; /* model/soft.h; in `data`; NULL: none */
    size_t soft_size;

    int32_t number_of_bodies, number_of_inertias, number_of_joints, number_of_shapes,
        number_of_meshes, number_of_height_fields, number_of_sites, number_of_tendons,
        number_of_actuators, number_of_equalities, number_of_pairs, number_of_excludes,
        number_of_keyframes, number_of_sensors, number_of_warnings, number_of_elements,
        number_of_elastics;
    int32_t body_capacity, inertia_capacity, joint_capacity, shape_capacity, mesh_capacity,
        height_field_capacity, site_capacity, tendon_capacity, actuator_capacity, equality_capacity,
        pair_capacity, exclude_capacity, keyframe_capacity, sensor_capacity, warning_capacity,
        element_capacity, elastic_capacity;
};

/* Scene index of a valid handle; -1 for a zeroed one. */
static inline int32_t scene_index(tb_handle handle)
{
    return (int32_t)handle.index - 1;
}

/* ---- checks of definitions ---- */

/* Records the first fault of one definition; later checks then do nothing. */
typedef struct tb_check {
    tb_status status;
    tb_error *error;
    tb_handle_kind kind;
    const char *name; /* of the thing, "" if none */
    int32_t index;    /* its index, for messages about unnamed elements */
} tb_check;

/* Geometry and masses beyond this are refused, so that products of several numbers stay finite. */
#define TB_LARGEST_NUMBER 1e30
/* Smallest valid length of an axis or a quaternion. */
#define TB_SMALLEST_DIRECTION 1e-10

tb_check tb_check_begin(tb_handle_kind kind, const char *name, int32_t index, tb_error *error);
/* Fails with "<kind> '<name>': <field> <text>". */
void tb_check_fail(tb_check *check, const char *field, const char *format, ...) TB_PRINTF(3, 4);
/* The checks take a pointer because they also turn -0 into 0, so that equal models have equal
 * bytes. */
void tb_check_numbers(tb_check *check, const char *field, double *x, int count);
void tb_check_not_negative(tb_check *check, const char *field, double *x, int count);
void tb_check_positive(tb_check *check, const char *field, double *x, int count);
/* Finite bounds with lower <= upper if `on`, else both set to 0. */
void tb_check_bounds(tb_check *check, const char *field, bool on, double *lower, double *upper);
/* Normalises a vector; a vector that is unit to rounding stays unchanged, so that the check is
 * idempotent. */
void tb_check_quaternion(tb_check *check, const char *field, double q[4]);
void tb_check_axis(tb_check *check, const char *field, double v[3]);
void tb_check_surface(tb_check *check, tb_surface *surface);
void tb_check_volume_constants(tb_check *check, tb_volume_constants *constants);
/* Scene index of a handle; `optional` lets a zeroed handle pass as -1. */
void tb_check_handle(tb_check *check, const tb_scene *scene, const char *field, tb_handle handle,
                     tb_handle_kind kind, bool optional, int32_t *index);
/* Requires UTF-8 without control characters and a name not yet used in its kind. */
void tb_check_name(tb_check *check, const tb_scene *scene);
/* Principal moments >= 0 that obey the triangle inequality after the scene's minimum and balancing;
 * see tb_inertia_is_physical. */
void tb_check_inertia(tb_check *check, const tb_scene_def *options, const scene_inertia *given);

/* ---- adding, shared by scene.c and scene_parts.c ---- */

/* Grows *items for one more element; RESOURCE_EXHAUSTED beyond TB_SCENE_LIMIT. */
tb_status tb_scene_reserve(void *items, int32_t count, int32_t *capacity, size_t size,
                           tb_handle_kind kind, tb_error *error);
/* Copies a name and enters it; *kept becomes "" without a name. */
tb_status tb_scene_enter_name(tb_scene *scene, tb_handle_kind kind, const char *name, int32_t index,
                              const char **kept, tb_error *error);

/* Gives a shape (scene index) constants of its own. INVALID_ARGUMENT. */
tb_status tb_scene_set_volume_constants(tb_scene *scene, int32_t shape,
                                        const tb_volume_constants *constants, tb_error *error);

/* Checks a shape's colour and material and copies the material's name into the scene. */
void tb_scene_keep_look(tb_scene *scene, tb_check *check, tb_shape_def *shape);

/* A checked copy of a spatial tendon's path in the scene's memory; NULL after a failure. */
const tb_tendon_point *tb_scene_keep_path(tb_scene *scene, tb_check *check,
                                          const tb_tendon_def *def);

/* ---- mass ---- */

/* Symmetric 3x3 as xx, yy, zz, xy, xz, yz, turned by the matrix r: R S R'. */
void tb_inertia_rotate(const double r[9], const double in[6], double out[6]);
/* Adds mass m at offset d from the reference point to an inertia about that point. */
void tb_inertia_add_offset(double inertia[6], double mass, const double d[3]);

/* Applies `minimum` and `balance` to principal moments; false if the result breaks the triangle
 * inequality (by more than 1e-9 of the largest) or is negative. */
bool tb_moments_repair(double moments[3], double minimum, bool balance);

/* Mass properties of a shape in its own frame, from its mass or density. INVALID_ARGUMENT for a
 * mesh without volume. `mesh` is the asset of CONVEX and MESH shapes. */
tb_status tb_shape_mass(const tb_shape_def *shape, const tb_mass_properties *mesh,
                        tb_mass_properties *result, tb_error *error);

/* Mass properties of a mesh asset at density 1, or of its hull if the definition says so. */
tb_status tb_mesh_asset_mass(const tb_mesh_def *mesh, tb_mass_properties *result, tb_error *error);

/* ---- geometry ---- */

/* Facets of a convex hull as qhull finds them, polygons counter-clockwise seen from outside, by the
 * indices of the points. Only facets that are coplanar to rounding are merged. Heap. */
typedef struct tb_facets {
    int32_t number_of_faces;
    int32_t *face_start; /* number_of_faces + 1 */
    int32_t *face_vertices;
} tb_facets;

/* Builds the facets of a hull of at most `most` vertices; 0: no limit. INVALID_ARGUMENT for
 * fewer than 4 points, points that are not finite, or a flat cloud. */
tb_status tb_facets_build(const double *points, int32_t count, int32_t most, tb_facets *facets,
                          tb_error *error);
void tb_facets_free(tb_facets *facets);

/* Sets the query data of a hull with topology: thickness, faces at vertices, climbs, starts.
 * merged: faces consist of several facets. Arrays come from `arena`, temporary memory from
 * `scratch`. False if memory is refused. */
bool tb_hull_index(tb_hull *hull, bool merged, tb_arena *scratch, tb_arena *arena);

/* Bounding-volume tree over the triangles listed in `ids`: sets nodes, tree_triangles and box of
 * `mesh`, with arrays from the arena. RESOURCE_EXHAUSTED. */
tb_status tb_mesh_tree_build(const double *vertices, const int32_t *triangles, const int32_t *ids,
                             int32_t count, tb_arena *arena, tb_triangle_mesh *mesh,
                             tb_error *error);

/* ---- compilation ---- */

/* State of a compilation. Arrays named scene_* give the scene index of a model index, model_*
 * the model index of a scene index; body indices in the model count the world as 0. */
typedef struct tb_compiler {
    const tb_scene *scene;
    tb_model *model;
    tb_error *error;
    tb_arena scratch;

    int32_t *scene_body;  /* model bodies; [0] is -1 */
    int32_t *model_body;  /* scene bodies */
    int32_t *body_shapes; /* model bodies + 1: first shape of a body in scene_shape */
    int32_t *scene_shape, *model_shape;
    int32_t *scene_joint; /* scene joints in the model's order, fixed ones included */
    int32_t *body_joints; /* model bodies + 1: first joint of a body in scene_joint */
    int32_t *model_joint; /* scene joints; -1 for fixed joints, the first part of planar joints */
    int32_t *scene_site;
    int32_t *scene_pair; /* scene indices of the kept pairs, sorted */

    /* writable views of the model's arrays */
    tb_model_body *bodies;
    tb_model_joint *joints;
    tb_model_tendon *tendons;
    tb_model_dof *dofs;
    tb_model_tree *trees;
    tb_model_shape *shapes;
    tb_model_look *looks;
    tb_pose *poses; /* world poses of the bodies in the described pose */
    const char **warnings;
    int32_t warning_capacity;
} tb_compiler;

/* Stages, in this order. */
tb_status tb_compile_order(tb_compiler *compiler); /* numbering of bodies, joints, shapes, sites */
tb_status tb_compile_tree(tb_compiler *compiler);  /* bodies, joints, dofs, trees, reference pose */
tb_status tb_compile_mass(tb_compiler *compiler);  /* masses and inertias of bodies */
tb_status tb_compile_geometry(tb_compiler *compiler); /* shapes, hulls, meshes, height fields */
tb_status tb_compile_parts(tb_compiler *compiler); /* tendons, actuators, equalities, pairs, ... */
tb_status tb_compile_tendons(tb_compiler *compiler);   /* called by tb_compile_parts; after the
                                                          tree */
tb_status tb_compile_actuators(tb_compiler *compiler); /* after joints, sites and tendons */
tb_status tb_compile_elastics(tb_compiler *compiler);  /* called by tb_compile_parts */
tb_status tb_compile_sensors(tb_compiler *compiler);   /* after all that sensors refer to */
tb_status tb_compile_fluid(tb_compiler *compiler);     /* parts with fluid forces; after masses */
tb_status
tb_compile_dynamics(tb_compiler *compiler);        /* free bodies' inverses; M must be invertible */
tb_status tb_compile_sleep(tb_compiler *compiler); /* which trees may sleep; after all parts */

/* Radius of the ball around the body origin that holds a shape without an asset, m. */
double tb_primitive_reach(tb_shape_type type, const tb_pose *pose, const double size[3]);
/* Computes the constant inverses of a single free body; false if its inertia has none. */
bool tb_tree_invert(tb_model_tree *tree, const tb_model_body *body, double armature);
/* Period of a position servo about one axis of a rotation, whose target is defined up to whole
 * turns (MuJoCo 4.0, XML reference, general/joint), in the servo's length unit; 0: no period. */
double tb_actuator_period(const tb_model_joint *joints, const tb_model_actuator *actuator);

tb_status tb_compile_warn(tb_compiler *compiler, const char *format, ...) TB_PRINTF(2, 3);
/* Length of a tendon in the described pose. */
double tb_compile_tendon_length(const tb_compiler *compiler, int32_t tendon);
const char *tb_compile_body_name(const tb_compiler *compiler, int32_t body);

/* ---- canonical bytes ---- */

/* Writes a scene in the compiler's numbering as bytes (heap). */
tb_status tb_canonical_write(const tb_compiler *compiler, tb_bytes *bytes, tb_error *error);
/* Reads bytes without their checksum into a scene; for tb_model_from_bytes and fuzzing. */
tb_status tb_canonical_read(const unsigned char *bytes, size_t size, tb_scene **scene,
                            tb_error *error);

/* Models with parts that version 1 lacks (looks) have version 2. */
enum {
    TB_CANONICAL_VERSION = 6,
    TB_CANONICAL_VERSION_WITH_EXTRAS = 7,
    TB_CANONICAL_CHECKSUM_SIZE = 32
};
#define TB_CANONICAL_MAGIC "TRIBOMDL"

#endif
