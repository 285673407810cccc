/* The compiled model: the immutable data of a scene.
 *
 * Arrays in double, indexed by body, joint, dof, shape, ... Body 0 is the world. Bodies are
 * numbered depth first, so a parent has a smaller number than its children and every kinematic
 * tree owns a contiguous range of bodies, joints, coordinates and dofs. The float build uses the
 * same model and converts on load. */
#ifndef TB_MODEL_H
#define TB_MODEL_H

#include "base/base.h"

/* Convex polyhedron, from qhull. Faces are merged to polygons, vertices counter-clockwise seen from
 * outside. Edges are listed once. */
typedef struct tb_hull {
    int32_t number_of_vertices, number_of_faces, number_of_edges, number_of_face_indices;
    const double *vertices;    /* number_of_vertices x 3, m, shape frame of the asset */
    const double *planes;      /* number_of_faces x 4: outward unit normal, offset d with n.x = d */
    const int32_t *face_start; /* number_of_faces + 1, into face_vertices */
    const int32_t *face_vertices;   /* number_of_face_indices */
    const int32_t *edges;           /* number_of_edges x 4: vertex from, to; face left, right */
    const int32_t *neighbour_start; /* number_of_vertices + 1, into neighbours: along edges */
    const int32_t *neighbours;
    double centre[3]; /* m, mean of the vertices: inside */
    double thickness; /* m, smallest distance from the centre to a face's plane */
    double middle[3]; /* m, centre of the axis-aligned bounding box */
    double half[3];   /* m, its half extents */

    /* Faces whose plane contains a vertex to rounding, ascending: the faces that meet there, and
     * faces nearly coplanar with them. NULL: not listed, the caller tests all faces. */
    const int32_t *vertex_face_start; /* number_of_vertices + 1, into vertex_faces */
    const int32_t *vertex_faces;
    const int32_t *climb_start; /* number_of_vertices + 1, into climbs; NULL: no hill climbing */
    const int32_t *climbs;      /* neighbours along the edges of the hull before faces are merged */
    const int32_t *starts; /* 6 x cells x cells: first vertices of climbs, by tb_hull_cell; NULL:
                              vertex 0 */
    int32_t cells;         /* 0: the fields from `thickness` on are not set */
} tb_hull;

/* Cell of a direction among 6 x cells x cells: the sides of a cube by axis, lower side first; on
 * a side the other two axes in cyclic order, the first of the two innermost. 0 for a zero
 * direction. */
TB_FN int32_t tb_hull_cell(tb_vec3 direction, int32_t cells)
{
    const tb_real x = direction.x, y = direction.y, z = direction.z;
    const tb_real ax = tb_abs(x), ay = tb_abs(y), az = tb_abs(z);
    const int32_t axis = ax >= ay && ax >= az ? 0 : (ay >= az ? 1 : 2);
    const tb_real along = axis == 0 ? x : (axis == 1 ? y : z);
    const tb_real first = axis == 0 ? y : (axis == 1 ? z : x);
    const tb_real second = axis == 0 ? z : (axis == 1 ? x : y);
    if (!(tb_abs(along) > TB_R(1e-30) && tb_abs(along) < TB_R(1e30))) return 0;
    const tb_real scale = TB_R(0.5) * TB_R(cells), per = scale / tb_abs(along);
    int32_t column = (int32_t)(first * per + scale), row = (int32_t)(second * per + scale);
    if (column >= cells) column = cells - 1;
    if (row >= cells) row = cells - 1;
    return ((2 * axis + (along > 0)) * cells + row) * cells + column;
}

/* A node of a bounding-volume tree, in depth-first order. No leaf is deeper than 64. */
typedef struct tb_tree_node {
    double lower[3], upper[3];
    int32_t right; /* index of the right child (the left one follows its parent); 0 for a leaf */
    int32_t first, count; /* leaf: range in tree_triangles */
} tb_tree_node;

/* Triangles with topology. A triangle of zero area stays in the list, so that indices hold, but
 * not in the tree. */
typedef struct tb_triangle_mesh {
    int32_t number_of_vertices, number_of_triangles, number_of_nodes, number_of_tree_triangles;
    const double *vertices;   /* x 3, m; equal vertices merged */
    const int32_t *triangles; /* x 3, counter-clockwise outside */
    const int32_t *adjacent; /* x 3: triangle across the edge (v0 v1), (v1 v2), (v2 v0); -1: none */
    const double *normals;   /* x 3, unit; zero for a triangle of zero area */
    const uint8_t *edge_kind; /* x 3: tb_edge_kind */
    const tb_tree_node *nodes;
    const int32_t *tree_triangles;
    double lower[3], upper[3];
    int32_t
        hull; /* the mesh is closed and convex and collides as this hull of the model; -1: none */
} tb_triangle_mesh;

typedef enum tb_edge_kind {
    TB_EDGE_BOUNDARY, /* no neighbour */
    TB_EDGE_FLAT,     /* neighbours in one plane */
    TB_EDGE_CONVEX,
    TB_EDGE_CONCAVE
} tb_edge_kind;

typedef struct tb_height_field {
    int32_t rows, columns;
    const double *heights; /* rows x columns, m */
    double half_x, half_y, base;
    double highest; /* m, largest height */
} tb_height_field;

/* Number of entries that a joint adds to q and to u, after planar joints are split. */
TB_FN int32_t tb_joint_coordinates(tb_joint_type type)
{
    return type == TB_JOINT_FREE ? 7 : (type == TB_JOINT_BALL ? 4 : 1);
}

TB_FN int32_t tb_joint_dofs(tb_joint_type type)
{
    return type == TB_JOINT_FREE ? 6 : (type == TB_JOINT_BALL ? 3 : 1);
}

/* One joint, after planar joints are split. */
typedef struct tb_model_joint {
    tb_joint_type type; /* HINGE, SLIDE, BALL or FREE */
    int32_t body, coordinate, dof;
    double position[3], axis[3]; /* body frame */
    bool limited;
    double lower, upper;
    double stiffness, spring_reference, reference;
    double stiffness_polynomial[2];
    bool force_limited; /* bound on the sum of all its actuators */
    double force_lower, force_upper;
    bool actuators_compensate_gravity;
} tb_model_joint;

typedef struct tb_model_body {
    int32_t parent;
    int32_t tree;                    /* index in trees; -1: no dof between it and the world */
    int32_t joint, number_of_joints; /* first own joint, -1 if none */
    int32_t dof, number_of_dofs;     /* first own dof, -1 if none */
    int32_t last_dof;  /* nearest dof at or above the body, -1: none; dofs[].parent leads on */
    int32_t kinematic; /* index among kinematic bodies, -1 */
    int32_t fixed_to;  /* nearest body, itself or an ancestor, with joints or kinematic; 0: the
                          world */
    int32_t level; /* number of ancestors whose poses must be computed first: 0 for the world and
                      kinematic bodies */
    double position[3], orientation[4]; /* in the parent's frame at the reference coordinates */
    double mass;                        /* kg */
    double com[3];                      /* m, body frame */
    double inertia[6]; /* kg m^2 about the centre of mass in body axes: xx, yy, zz, xy, xz, yz */
    double gravity_compensation;     /* fraction of the weight */
    int32_t fluid, number_of_fluids; /* first in fluids, and how many */
} tb_model_body;

/* A part with fluid forces: a body as a box of its inertia, or a shape as an ellipsoid. */
typedef struct tb_model_fluid {
    int32_t body;
    bool ellipsoid;
    double position[3], rotation[9];        /* part frame in the body frame */
    double size[3];                         /* m: edges of the box, or semi-axes */
    double coefficients[5];                 /* coefficients of the ellipsoid, as in tb_shape_def */
    double added_mass[3], added_inertia[3]; /* of the ellipsoid, divided by the medium's density */
} tb_model_fluid;

typedef struct tb_model_tree {
    int32_t body, number_of_bodies;
    int32_t joint, number_of_joints;
    int32_t coordinate, number_of_coordinates;
    int32_t dof, number_of_dofs;
    bool single_free; /* one free body whose centre of mass is its origin: M is block diagonal and
                            constant in (world linear, body angular) velocities */
    double inverse_mass;       /* single_free: 1 / (mass + armature) */
    double inverse_inertia[9]; /* single_free: of inertia + armature, body axes */
    double inverse_mass_root;  /* single_free: square root of inverse_mass */
    double inverse_root[9];    /* single_free: C, lower triangular, with C C' = inverse_inertia */
    tb_sleep sleep;            /* of models with sleep */
    int32_t sleep_group;       /* a tree of the group that sleeps and wakes with this one */
} tb_model_tree;

/* Numbers of sleep in a state: of the world, of a tree (step/state/sleep_once.c). */
enum { TB_SLEEP_HEADER = 5, TB_SLEEP_OF_TREE = 3 };

typedef struct tb_model_dof {
    int32_t body, joint, tree;
    int32_t parent; /* next dof towards the root, -1: none */
    int32_t end;    /* the dofs from its own to this one have it in their chains */
    int32_t last;   /* of its run: each dof up to this one carries the next one alone */
    double armature, damping, dry_friction;
    double damping_polynomial[2];
} tb_model_dof;

typedef struct tb_model_shape {
    tb_shape_type type;
    int32_t body;
    /* index in hulls, meshes or height_fields by type; -1 for other types and for shapes that
     * cannot collide (category and mask 0, not in a listed pair) */
    int32_t asset;
    double position[3], orientation[4], rotation[9]; /* body frame */
    double size[3];
    double reach; /* m, radius of the ball around the body origin that holds the shape; 1e15
                            for a plane */
    tb_surface surface;
    uint32_t category, mask;
    int32_t priority;           /* see tb_shape_def */
    bool conveys;               /* surface_velocity is not zero */
    double surface_velocity[6]; /* see tb_shape_def */
} tb_model_shape;

/* Collision filter of a shape in 20 bytes. A broad phase tests many pairs in random order;
 * compact filters cause fewer cache misses than whole shapes and bodies. */
typedef struct tb_model_filter {
    int32_t root;  /* fixed_to of the shape's body */
    int32_t above; /* root of the root's parent; -1: none, the world, or parents are not filtered */
    uint32_t category, mask;
    bool moves;     /* a dof moves it */
    bool is_corner; /* of an element: it touches no other corner, but its parent's shapes */
} tb_model_filter;

typedef struct tb_model_tendon {
    /* range in tendon_dofs, tendon_coordinates, tendon_coefficients; for a spatial tendon only
     * tendon_dofs is used: the dofs that can change its length, ascending */
    int32_t first, count;
    int32_t first_point, number_of_points; /* range in tendon_points; empty for a fixed tendon */
    bool limited;
    double lower, upper, stiffness, damping, dry_friction, spring_lower, spring_upper, armature;
    bool is_polynomial; /* one of the polynomials is not zero */
    double stiffness_polynomial[2], damping_polynomial[2];
    bool force_limited; /* bound on the sum of all its actuators */
    double force_lower, force_upper;
} tb_model_tendon;

/* One element of a spatial tendon's path; see tb_tendon_point. */
typedef struct tb_model_tendon_point {
    tb_tendon_point_kind kind;
    int32_t body;
    double position[3], rotation[9]; /* m, body frame */
    double radius, divisor;
    int32_t side_body; /* -1: no side */
    double side[3];    /* m, in its frame */
} tb_model_tendon_point;

/* Target kind of an actuator. The lengths and moments of all kinds except FIXED depend on the
 * pose; the step computes them, one moment for each dof in moment_dofs. */
typedef enum tb_transmission_kind {
    TB_TRANSMISSION_FIXED, /* joint or tendon, moments are constant */
    TB_TRANSMISSION_JOINT, /* ball or free, torque in the parent's axes */
    TB_TRANSMISSION_SITE,
    TB_TRANSMISSION_SITE_TO_SITE,
    TB_TRANSMISSION_CRANK,
    TB_TRANSMISSION_BODY /* adhesion: no moments, the force acts on the body's contacts */
} tb_transmission_kind;

typedef struct tb_model_actuator {
    tb_transmission_kind transmission;
    int32_t joint, tendon, site, body; /* one index is set, the others are -1 */
    int32_t reference;                 /* site, -1: none */
    /* range in moment_dofs; not for FIXED. The first own_moments belong to the site, the others
     * to the reference. */
    int32_t moment, number_of_moments, own_moments;
    double rod_length;
    double period;      /* rad, > 0: period of a servo's target */
    int32_t activation; /* index in activations, -1: none */
    tb_activation activation_kind;
    double time_constant, muscle_times[3];
    double resistance, back_emf;
    tb_actuator_curve gain_curve, bias_curve;
    double gear[6], gain[3], bias[3];
    tb_muscle muscle_gain, muscle_bias;
    double length_range[2];
    bool disabled, early;
    bool control_limited, force_limited, activation_limited;
    double control_lower, control_upper, force_lower, force_upper, activation_lower,
        activation_upper;
    bool is_input;            /* see tb_actuator_def */
    int32_t number_of_inputs; /* actuators behind this one that are inputs of it */
    int32_t integral, slew;   /* indices in activations, -1: none */
    double integral_gain, integral_limit, slew_rate;
    bool slew_from_control;
    tb_orientation_input orientation;
    int32_t component; /* of an orientation: 0 to 2 */
    /* index in activations of `samples` pairs (time s, control), newest first; -1: no delay */
    int32_t past;
    int32_t samples;
    double delay;
    tb_interpolation interpolation;
} tb_model_actuator;

typedef struct tb_model_equality {
    tb_equality_type type;
    int32_t a, b; /* bodies, joints or tendons; b -1: none */
    double anchor_a[3], anchor_b[3], orientation[4];
    double polynomial[5];
    double reference_a, reference_b; /* coordinates or tendon lengths in the described pose */
    bool disabled;
} tb_model_equality;

/* Shapes of a listed pair, or an excluded pair of bodies; sorted by (a, b) with a < b. */
typedef struct tb_model_pair {
    int32_t a, b;
    tb_surface surface;
} tb_model_pair;

/* A segment or triangle between balls, which are shapes. */
typedef struct tb_model_element {
    int32_t corners, balls[3];
    int32_t group; /* > 0: does not touch others of its group */
} tb_model_element;

/* An elastic thing (tb_elastic_def) with the energy 1/2 sum of stiffness[k] s_k^2. Of a triangle or tetrahedron the s_k
 * are Green's strain, times a length, in an orthonormal basis of symmetric matrices,
 *
 *     s_k = sum over the edges e of strain[k][e] (l_e^2 - L_e^2),   m,
 *
 * edges as in tb_elastic_edge. A hinge has one, 2 sin((theta - angle) / 2). */
typedef struct tb_model_elastic {
    tb_elastic_kind kind;
    int32_t corners, modes; /* 3 and 3, 4 and 6, of a hinge 4 and 1 */
    int32_t bodies[4];
    double points[4][3]; /* m, body frame */
    double angle;        /* rad, of a hinge at rest */
    double squares[6];   /* L_e^2, m^2 */
    double strain[6][6]; /* 1/m */
    double stiffness[6]; /* N/m; of a hinge N m */
    double damping;      /* s */
} tb_model_elastic;

/* Corners of an edge: (0 1) (0 2) (1 2) (0 3) (1 3) (2 3). */
TB_FN void tb_elastic_edge(int32_t edge, int32_t ends[2])
{
    ends[1] = edge < 1 ? 1 : edge < 3 ? 2 : 3;
    ends[0] = edge - ends[1] * (ends[1] - 1) / 2;
}

typedef struct tb_model_exclude {
    int32_t a, b; /* bodies, or shapes; a < b */
} tb_model_exclude;

typedef struct tb_model_site {
    int32_t body;
    double position[3], orientation[4];
} tb_model_site;

/* A body, shape or site as the frame of a sensor. */
typedef struct tb_model_frame {
    int32_t body;
    double position[3], orientation[4]; /* m, body frame */
} tb_model_frame;

typedef struct tb_model_sensor {
    tb_sensor_type type;
    tb_handle_kind object_kind;
    int32_t object;              /* of that kind, -1: none */
    tb_model_frame of, relative; /* of bodies, shapes and sites; of the reference */
    bool has_reference;
    int32_t first, numbers; /* among the numbers of all sensors */
    double cutoff;
    tb_shape_type zone_type;
    double zone_size[3];
} tb_model_sensor;

/* Properties of a shape that viewers alone use. */
typedef struct tb_model_look {
    int32_t asset; /* mesh or height field by the shape's type, in the scene's order; -1: none */
    int32_t group;
    bool has_colour;
    double colour[4];
    const char *material; /* "": none */
} tb_model_look;

/* Where the content of a mesh or height field lies in the model's canonical bytes, which are its
 * only copy: most models are never drawn. */
typedef struct tb_model_content {
    size_t first, size; /* without the name */
    int32_t hull;       /* of a mesh: in hulls, -1: none */
} tb_model_content;

typedef struct tb_model_keyframe {
    double time;
    /* keyframes without an array share the default */
    const double *q, *u, *controls, *activations;
    const double *kinematic; /* kinematic bodies x 7 */
} tb_model_keyframe;

struct tb_model {
    tb_arena arena; /* owns everything below */
    const char *name;
    double gravity[3], dt, total_mass;
    double density, viscosity, wind[3]; /* of the medium */
    bool filter_parent;
    bool compensates_gravity;        /* a body has gravity_compensation, and gravity is not zero */
    bool has_polynomials;            /* a spring or damper of a joint has a polynomial */
    bool has_tangential_restitution; /* of a surface */
    bool has_adhesion; /* an actuator's transmission is a body, or a surface adheres */
    bool has_adhesive_surfaces;
    bool has_element_pairs; /* elements may touch elements */
    double adhesion_reach;  /* m: widest gap at which a surface adheres */
    bool has_joint_forces;  /* a joint or tendon bounds the sum of its actuators' forces */
    bool has_servo_memory;  /* an actuator has an integral or a limited slew rate */

    int32_t number_of_bodies, number_of_joints, number_of_coordinates, number_of_dofs,
        number_of_trees, number_of_shapes, number_of_hulls, number_of_meshes,
        number_of_height_fields, number_of_sites, number_of_tendons, number_of_tendon_terms,
        number_of_tendon_points, number_of_actuators, number_of_activations, number_of_equalities,
        number_of_pairs, number_of_excludes, number_of_shape_excludes, number_of_keyframes,
        number_of_kinematic_bodies, number_of_warnings, number_of_mesh_assets,
        number_of_height_field_assets, number_of_colliding_shapes, number_of_jointed_trees,
        number_of_dry_dofs, number_of_moments, number_of_fluids, number_of_limited_joints,
        number_of_levels, number_of_chain_dofs, longest_chain, number_of_sensors,
        number_of_sensor_numbers, number_of_elements, number_of_elastics;
    int32_t number_of_past_velocities; /* dofs if a sensor needs accelerations, else 0 */
    int32_t number_of_sleep_numbers;   /* in a state; 0: nothing ever sleeps */
    int32_t number_of_first_trees;
    double sleep_tolerance; /* m/s and rad/s */

    const tb_model_body *bodies;
    const tb_model_joint *joints;
    const tb_model_dof *dofs;
    const tb_model_tree *trees;
    const int32_t *jointed_trees;  /* trees other than single free bodies, ascending */
    const int32_t *dry_dofs;       /* dofs with dry friction, ascending */
    const int32_t *limited_joints; /* joints with limits, ascending; none of single free bodies */
    const int32_t
        *chain_start; /* dofs + 1: first of its chain in `chains`; none in single free bodies */
    const int32_t *chains; /* number_of_chain_dofs: a dof, its parent, ... its root */
    const tb_model_shape *shapes;
    const tb_model_filter *filters;              /* shapes */
    const tb_model_look *looks;                  /* shapes */
    const tb_volume_constants *volume_constants; /* shapes; NULL: all have the defaults */
    tb_model_content *mesh_contents, *height_field_contents; /* by asset */
    const tb_hull *hulls;
    const tb_triangle_mesh *meshes;
    const tb_height_field *height_fields;
    const tb_model_site *sites;
    const tb_model_tendon *tendons;
    const int32_t *tendon_dofs;                 /* number_of_tendon_terms */
    const int32_t *tendon_coordinates;          /* number_of_tendon_terms */
    const double *tendon_coefficients;          /* number_of_tendon_terms; 0 of spatial tendons */
    const tb_model_tendon_point *tendon_points; /* number_of_tendon_points */
    const tb_model_actuator *actuators;
    const int32_t *moment_dofs;   /* number_of_moments: dofs of the actuators with moments */
    const tb_model_fluid *fluids; /* by body; none without a medium */
    const tb_model_equality *equalities;
    const tb_model_pair *pairs;
    const tb_model_element *elements;
    const tb_model_elastic *elastics;
    const tb_model_exclude *excludes;
    const tb_model_exclude *shape_excludes; /* shapes that never collide, regardless of pairs and
                                               masks */
    const tb_model_keyframe *keyframes;
    const tb_model_sensor *sensors;
    const int32_t *kinematic_bodies; /* body indices */
    /* of models with sleep: the first tree on which each tendon, then each actuator, then each
     * equality, then each elastic acts, -1: none */
    const int32_t *first_trees;
    const double *q_reference; /* number_of_coordinates: the described pose */
    const char *const *warnings;
    const char *const *names[TB_HANDLE_SENSOR + 1]; /* by tb_handle_kind, "" for an unnamed
                                                         element */
    int32_t number_of_names[TB_HANDLE_SENSOR + 1];  /* elements of each kind */
    struct tb_names *name_index;                    /* for tb_model_find */
    const int32_t *shape_pair_start; /* shapes + 1: first listed pair with this shape as a */
    const int32_t *colliding_shapes; /* shapes that can collide at all, ascending */

    /* variants only: the model whose unchanged arrays the variant borrows; else NULL */
    const tb_model *origin;

    const unsigned char *soft; /* soft bodies (model/soft.h), ended by a zero; NULL: none */
    size_t soft_size;

    unsigned char *bytes; /* canonical */
    size_t bytes_size;
    char sha256[65];
    /* bodies by level, and dofs of jointed trees by depth (the length of their chain): levels + 1 and
     * longest_chain + 1 first indices, the level's or depth's bodies or dofs ascending */
    const int32_t *level_start, *level_bodies, *depth_start, *depth_dofs;
};

/* Whether two shapes may touch at all, as model indices. Never: shapes of one body or of bodies
 * fixed to each other, two immovable shapes, and excluded pairs of shapes. Otherwise listed
 * pairs always may; other pairs by masks, parent and child, and excludes. */
TB_EXTERN bool tb_model_shapes_collide(const tb_model *model, int32_t a, int32_t b);
/* The contact surface of two shapes: the listed pair's, else the surface of the shape with
 * higher priority, else the larger of both in every number. */
TB_EXTERN tb_surface tb_model_pair_surface(const tb_model *model, int32_t a, int32_t b);
/* The listed pair of two shapes in either order, NULL if there is none. */
TB_EXTERN const tb_model_pair *tb_model_find_pair(const tb_model *model, int32_t a, int32_t b);

/* ---- meshes, shared by the compiler, tests and importers ---- */

/* Hull of a point cloud, from the arena. INVALID_ARGUMENT for fewer than 4 points, points that are
 * not finite, or a flat cloud (use a mesh shape for those).
 * Near-coplanar facets are merged to polygons. */
tb_status tb_hull_build(const double *points, int32_t count, tb_arena *arena, tb_hull *hull,
                        tb_error *error);
/* The same with at most `most` vertices (0: all): the points that qhull adds first, each the
 * farthest from the current hull. */
tb_status tb_hull_build_within(const double *points, int32_t count, int32_t most, tb_arena *arena,
                               tb_hull *hull, tb_error *error);

/* Builds merged vertices, topology, normals, edge kinds and tree, from the arena. */
tb_status tb_triangle_mesh_build(const double *vertices, int32_t number_of_vertices,
                                 const int32_t *triangles, int32_t number_of_triangles,
                                 tb_arena *arena, tb_triangle_mesh *mesh, tb_error *error);

/* *convex: whether the mesh is the whole surface of a convex polytope, facing outwards, to a millionth
 * of its largest half extent and of its area (convex_mesh.c); then *hull is that polytope, from the
 * arena. RESOURCE_EXHAUSTED. */
tb_status tb_triangle_mesh_hull(const tb_triangle_mesh *mesh, tb_arena *arena, tb_hull *hull,
                                bool *convex, tb_error *error);

typedef struct tb_mass_properties {
    double volume, mass;
    double com[3];
    double inertia[6]; /* about the centre of mass: xx, yy, zz, xy, xz, yz */
} tb_mass_properties;

/* Mass properties of a closed surface at density 1 by signed tetrahedra (Göteman and Roxling
 * 3.11; Tonon). */
tb_mass_properties tb_mesh_mass_properties(const double *vertices, int32_t number_of_vertices,
                                           const int32_t *triangles, int32_t number_of_triangles,
                                           tb_mesh_inertia kind);

#endif
