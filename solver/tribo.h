/* libtribo: exact Coulomb contact dynamics.
 *
 * This is the library's one public header. A caller describes a scene (`tb_scene`, by the builder
 * below or from MJCF, URDF, OBJ and STL files), compiles it into an immutable `tb_model`, makes one
 * `tb_state` per world and steps states with a `tb_stepper`. Every step of every world answers with
 * a `tb_certificate` that says how exact the step was.
 *
 * Conventions. SI units, radians, seconds. World frame right-handed, Z up. Quaternions are
 * (w, x, y, z), unit, and rotate body coordinates into the parent's or world's. Arrays are
 * row-major. Contact normals point from shape A to shape B in world axes; a positive gap is a
 * separation. Impulses are N s (N m s for torques), forces N (N m).
 *
 * Errors. A function that can fail returns `tb_status` and, where it has a `tb_error *` (may be
 * NULL), leaves a message that names the thing at fault. Nothing aborts, nothing exits.
 *
 * Threads. A `tb_model` may be shared by any number of threads. A `tb_state`, a `tb_scene` and a
 * `tb_stepper` belong to one thread at a time. */
#ifndef TRIBO_H
#define TRIBO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TB_VERSION "0.1.0"

/* ---- statuses -------------------------------------------------------------------------------- */

/* name, text, gRPC code, HTTP code */
#define TB_STATUS_LIST(X)                                                                          \
    X(OK, "ok", 0, 200)                                                                            \
    X(INVALID_ARGUMENT, "invalid argument", 3, 400)                                                \
    X(NOT_FOUND, "not found", 5, 404)                                                              \
    X(FAILED_PRECONDITION, "failed precondition", 9, 400)                                          \
    X(RESOURCE_EXHAUSTED, "resource exhausted", 8, 429)                                            \
    X(UNSUPPORTED, "not supported", 12, 501)                                                       \
    X(DATA_LOSS, "corrupt data", 15, 500)                                                          \
    X(DIVERGED, "diverged", 10, 409)                                                               \
    X(NOT_CONVERGED, "tolerance not reached", 10, 409)                                             \
    X(DEADLINE_EXCEEDED, "deadline exceeded", 4, 504)                                              \
    X(CANCELLED, "cancelled", 1, 499)                                                              \
    X(UNAVAILABLE, "unavailable", 14, 503)                                                         \
    X(UNAUTHENTICATED, "no valid key", 16, 401)                                                    \
    X(PERMISSION_DENIED, "permission denied", 7, 403)                                              \
    X(ABORTED, "aborted", 10, 409)                                                                 \
    X(INTERNAL, "internal error", 13, 500)

typedef enum tb_status {
#define TB_STATUS_ENUM(name, text, grpc, http) TB_##name,
    TB_STATUS_LIST(TB_STATUS_ENUM)
#undef TB_STATUS_ENUM
} tb_status;

/* The name of a status ("INVALID_ARGUMENT"), its text, and its codes on the wire. Unknown values
 * give "UNKNOWN", "unknown status", 2 and 500. */
const char *tb_status_name(tb_status status);
const char *tb_status_text(tb_status status);
int tb_status_grpc(tb_status status);
int tb_status_http(tb_status status);

enum { TB_ERROR_MESSAGE_SIZE = 512, TB_ERROR_NAME_SIZE = 160 };

/* What went wrong and where. Fixed size, so that it can be filled when memory is gone. */
typedef struct tb_error {
    tb_status status;
    char message[TB_ERROR_MESSAGE_SIZE]; /* one line of English, complete in itself */
    char file[TB_ERROR_NAME_SIZE];       /* file at fault, or "" */
    int line;                            /* line in that file, 0 if unknown */
    char field[TB_ERROR_NAME_SIZE];      /* argument, element or attribute at fault, or "" */
} tb_error;

/* ---- logging --------------------------------------------------------------------------------- */

typedef enum tb_log_level { TB_LOG_DEBUG, TB_LOG_INFO, TB_LOG_WARNING, TB_LOG_ERROR } tb_log_level;

/* Receives messages; `message` lives for the call only. May be called from any thread. */
typedef void tb_log_function(void *context, tb_log_level level, const char *message);

/* Where a library object sends its messages. A zeroed hook is silent. */
typedef struct tb_log {
    tb_log_function *function;
    void *context;
} tb_log;

/* ---- scenes: descriptions that can still change ---------------------------------------------- */

typedef struct tb_scene tb_scene;

/* A thing in a scene. Carries its kind and its scene's stamp, so that a handle of another scene or
 * of another kind is refused and not mistaken. A zeroed handle means "none";
 * as a body it means the world. */
typedef struct tb_handle {
    uint32_t index; /* 1-based; 0: none */
    uint16_t kind;  /* tb_handle_kind */
    uint16_t owner; /* stamp of the scene */
} tb_handle;

typedef enum tb_handle_kind {
    TB_HANDLE_NONE,
    TB_HANDLE_BODY,
    TB_HANDLE_JOINT,
    TB_HANDLE_SHAPE,
    TB_HANDLE_MESH,
    TB_HANDLE_HEIGHT_FIELD,
    TB_HANDLE_SITE,
    TB_HANDLE_TENDON,
    TB_HANDLE_ACTUATOR,
    TB_HANDLE_EQUALITY,
    TB_HANDLE_PAIR,
    TB_HANDLE_EXCLUDE,
    TB_HANDLE_KEYFRAME
} tb_handle_kind;

/* How body masses come about when a scene is compiled. */
typedef enum tb_inertia_source {
    TB_INERTIA_AUTO,   /* given inertia where there is one, else from the shapes */
    TB_INERTIA_SHAPES, /* always from the shapes */
    TB_INERTIA_GIVEN   /* only as given */
} tb_inertia_source;

typedef struct tb_scene_def {
    const char *name;  /* copied; may be NULL */
    double gravity[3]; /* m/s^2, world */
    double dt;         /* s; the step that the scene asks for */
    tb_inertia_source inertia_source;
    double minimum_mass;    /* kg; raises the masses of bodies below it; 0: off */
    double minimum_inertia; /* kg m^2; likewise for principal moments; 0: off */
    double total_mass;      /* kg; scales all masses and inertias to this sum; 0: off */
    bool balance_inertia;   /* repair moments that break the triangle inequality by averaging */
    bool filter_parent;     /* no contact between a body and its parent (static parents excepted) */
    double density;         /* kg/m^3, of the medium that all bodies move in; 0: none */
    double viscosity;       /* Pa s, likewise */
    double wind[3];         /* m/s, world: velocity of the medium */
    int32_t inertia_groups[2]; /* shapes of groups in this closed range count for inertia */
} tb_scene_def;

typedef struct tb_body_def {
    const char *name;      /* copied; unique if given */
    tb_handle parent;      /* zeroed: the world */
    double position[3];    /* m, of the body frame in the parent's frame, all joints at reference */
    double orientation[4]; /* body to parent */
    bool kinematic;        /* driven by given poses and velocities; child of the world, no joints */
    bool has_inertia;      /* the next four hold */
    double mass;           /* kg, > 0 for a moving body */
    double com[3];         /* m, centre of mass in the body frame */
    double inertia_frame[4]; /* orientation of the inertia's axes in the body frame */
    double inertia[6];       /* kg m^2 about the centre of mass: xx, yy, zz, xy, xz, yz */
    /* fraction of the body's weight that an upward force at its centre of mass takes away; 1: the
     * body floats */
    double gravity_compensation;
} tb_body_def;

typedef enum tb_joint_type {
    TB_JOINT_FIXED, /* welds the body to its parent; the same as no joint */
    TB_JOINT_HINGE, /* 1 dof, rad */
    TB_JOINT_SLIDE, /* 1 dof, m */
    TB_JOINT_BALL,  /* 3 dofs; 4 coordinates (quaternion); velocity in body axes, rad/s */
    TB_JOINT_FREE,  /* 6 dofs; 7 coordinates (position, quaternion); velocity: linear of the body
                        origin in world axes, then angular in body axes. Child of the world only */
    /* 3 dofs: two slides and a hinge, in the plane normal to the axis; compiled into joints NAME_x,
     * NAME_y, NAME_angle */
    TB_JOINT_PLANAR
} tb_joint_type;

/* Joints of one body act in the order in which they were added, the first nearest to the parent. */
typedef struct tb_joint_def {
    const char *name;
    tb_handle body;
    tb_joint_type type;
    double position[3]; /* m, anchor in the body frame */
    double axis[3];     /* in the body frame; normalised by the builder */
    bool limited;
    double lower, upper;     /* rad or m; ball: upper is the largest angle, lower is 0 */
    double stiffness;        /* N/m or N m/rad */
    double spring_reference; /* rad or m: coordinate of the spring's rest */
    double damping;          /* N s/m or N m s/rad */
    double dry_friction;     /* N or N m, largest */
    double armature;         /* kg or kg m^2, rotor inertia added to the dof */
    double reference;        /* rad or m: the coordinate in the described pose */
    /* A spring's force at stretch x is -x (stiffness + s[0] x + s[1] x^2), a damper's at speed v is
     * -v (damping + d[0] |v| + d[1] v^2). The stretch of a ball joint is its rotation vector, that of
     * a free joint the way (m) and the turn (rad) from the described pose; x is then their length. */
    double stiffness_polynomial[2], damping_polynomial[2];
    /* Bounds of the sum of all actuator forces on the joint (hinge, slide); N or N m. */
    bool actuator_force_limited;
    double actuator_force_lower, actuator_force_upper;
    /* The joint's part of its bodies' gravity compensation counts as a force of its actuators. */
    bool actuators_compensate_gravity;
} tb_joint_def;

typedef enum tb_shape_type {
    TB_SHAPE_PLANE,     /* half space below the XY plane of the shape's frame, normal +Z; static */
    TB_SHAPE_SPHERE,    /* size: radius */
    TB_SHAPE_CAPSULE,   /* size: radius, half length of the segment along Z */
    TB_SHAPE_CYLINDER,  /* size: radius, half length along Z */
    TB_SHAPE_BOX,       /* size: half extents */
    TB_SHAPE_ELLIPSOID, /* size: semi-axes */
    TB_SHAPE_CONVEX,    /* convex hull of a mesh asset's vertices */
    TB_SHAPE_MESH,      /* the triangles of a mesh asset, static or moving */
    TB_SHAPE_HEIGHT_FIELD
} tb_shape_type;

/* Which rows a contact has. Of two shapes of equal priority the larger counts. */
typedef enum tb_contact_kind {
    TB_CONTACT_FRICTIONLESS = 1,
    TB_CONTACT_COULOMB = 3, /* normal and two tangents */
    TB_CONTACT_SPIN = 4,    /* and Coulomb-Contensou spin about the normal */
    TB_CONTACT_ROLLING = 6  /* and rolling about both tangents */
} tb_contact_kind;

typedef struct tb_surface {
    tb_contact_kind kind;
    double friction;    /* mu, >= 0; of two shapes the larger counts */
    double restitution; /* Newton's e, 0 to 1; of two shapes the larger counts */
    /* m; the spin torque is at most 2/3 mu spin_radius lambda_n;
     * of two shapes the larger torque counts */
    double spin_radius;
    double rolling_length; /* m; the rolling torque is at most rolling_length lambda_n */
} tb_surface;

typedef struct tb_shape_def {
    const char *name;
    tb_handle body; /* zeroed: fixed to the world */
    tb_shape_type type;
    double position[3]; /* m, shape frame in the body frame */
    double orientation[4];
    double size[3];  /* m, see tb_shape_type */
    tb_handle asset; /* mesh or height field */
    double density;  /* kg/m^3 (shell: kg/m^2), used when mass < 0 */
    double mass;     /* kg; < 0: from density and volume */
    bool shell;      /* mass spread over the surface, not the volume */
    tb_surface surface;
    uint32_t category; /* two shapes collide if a.category & b.mask or b.category & a.mask */
    uint32_t mask;
    int32_t group; /* see inertia_groups */
    /* of two shapes the one of higher priority gives the whole surface of their contact; of equal
     * ones the larger of both counts in every number */
    int32_t priority;
    /* The medium acts on the shape as on an ellipsoid, and no longer on its body as on a box with
     * the body's inertia. Coefficients: blunt drag, slender drag, angular drag, Kutta lift, Magnus
     * lift. */
    bool fluid_ellipsoid;
    double fluid_coefficients[5];
    /* How the material of the surface moves past the shape, as a belt or a turntable does: linear
     * velocity of the shape's origin (m/s) and angular velocity (rad/s), shape frame. Contacts feel
     * the tangential part and the spin about their normal. */
    double surface_velocity[6];
} tb_shape_def;

/* What a mesh without a watertight surface weighs (MJCF's mesh inertia). */
typedef enum tb_mesh_inertia {
    TB_MESH_INERTIA_EXACT,  /* signed tetrahedra of the triangles */
    TB_MESH_INERTIA_CONVEX, /* of the convex hull */
    TB_MESH_INERTIA_LEGACY, /* tetrahedra about the mesh's centre, all counted positive */
    TB_MESH_INERTIA_SHELL   /* of the surface */
} tb_mesh_inertia;

typedef struct tb_mesh_def {
    const char *name;
    const double *vertices; /* number_of_vertices x 3, m; copied */
    int32_t number_of_vertices;
    const int32_t
        *triangles; /* number_of_triangles x 3, counter-clockwise outside; copied; may be NULL */
    int32_t number_of_triangles;
    tb_mesh_inertia inertia;
    int32_t most_hull_vertices; /* the hull stops growing at so many, >= 4; 0: it is kept whole */
} tb_mesh_def;

/* A grid of heights; the shape is everything below the surface down to -base. */
typedef struct tb_height_field_def {
    const char *name;
    const double
        *heights; /* rows x columns, m, >= 0; row index runs along +Y, column along +X; copied */
    int32_t rows, columns; /* >= 2 */
    double half_x, half_y; /* m */
    double base;           /* m, >= 0, thickness below height 0 */
} tb_height_field_def;

typedef struct tb_site_def {
    const char *name;
    tb_handle body;
    double position[3];
    double orientation[4];
} tb_site_def;

typedef enum tb_tendon_point_kind {
    TB_TENDON_SITE,     /* the tendon is threaded through a point of a body */
    TB_TENDON_SPHERE,   /* between two sites: the tendon goes around it where it is in the way */
    TB_TENDON_CYLINDER, /* likewise, of any height, along z of its frame */
    TB_TENDON_PULLEY    /* a new branch begins, whose length counts 1 / divisor */
} tb_tendon_point_kind;

/* One thing on the path of a spatial tendon. A side point makes the tendon pass a sphere or cylinder
 * on that side; if it lies within the radius about the position, the tendon runs inside. */
typedef struct tb_tendon_point {
    tb_tendon_point_kind kind;
    tb_handle body;     /* zeroed: the world; of no meaning for a PULLEY */
    double position[3]; /* m, body frame */
    double orientation[4];
    double radius;  /* m; SPHERE and CYLINDER */
    double divisor; /* PULLEY */
    bool has_side;
    tb_handle side_body; /* zeroed: the world */
    double side[3];      /* m, in the frame of side_body */
} tb_tendon_point;

/* Fixed: length = sum of coefficient times joint coordinate; hinge and slide joints only. Spatial:
 * the length of the shortest way along the points, in m; the first and the last of every branch are
 * sites, and a sphere or cylinder stands between two. A tendon has joints or points. */
typedef struct tb_tendon_def {
    const char *name;
    const tb_handle *joints;    /* number_of_joints */
    const double *coefficients; /* number_of_joints */
    int32_t number_of_joints;
    int32_t number_of_points;
    const tb_tendon_point *points; /* number_of_points */
    bool limited;
    double lower, upper;
    double stiffness, damping, dry_friction;
    double spring_lower, spring_upper; /* no spring force between the two */
    double armature;                   /* kg, or kg m^2 of a length in rad: of what runs with it */
} tb_tendon_def;

typedef enum tb_activation {
    TB_ACTIVATION_NONE,       /* the control acts directly */
    TB_ACTIVATION_INTEGRATOR, /* d act/dt = control */
    TB_ACTIVATION_FILTER,     /* d act/dt = (control - act) / time_constant */
    TB_ACTIVATION_MUSCLE      /* a filter whose time constant depends on act and control */
} tb_activation;

/* How an actuator's gain or bias depends on its length and velocity. */
typedef enum tb_actuator_curve {
    TB_CURVE_AFFINE, /* c0 + c1 length + c2 velocity */
    TB_CURVE_MUSCLE  /* MuJoCo's FLV curves: active force as a gain, passive force as a bias */
} tb_actuator_curve;

/* What MuJoCo calls gainprm and biasprm of a muscle, its force known. */
typedef struct tb_muscle {
    double range[2];          /* normalized lengths at the ends of the actuator's length range */
    double force;             /* N, peak active force */
    double shortest, longest; /* normalized lengths between which the muscle is active */
    double fastest;           /* optimal lengths per second, shortening */
    double passive;           /* passive force at the longest length, of the peak force */
    double lengthening;       /* active force when lengthened fast, of the peak force */
} tb_muscle;

/* force = (gain . (1, length, velocity)) * x + bias . (1, length, velocity), clamped to the force
 * limits, with x the clamped control or activation; the joint gets gear times that force. length
 * and velocity are gear times the joint's or the tendon's. Every part that is affine in the
 * velocity or the length is integrated implicitly, under the force limits. */
typedef struct tb_actuator_def {
    const char *name;
    /* Joint, tendon, site or body. A site is pushed along and about the axes of its own frame, or,
     * if there is a reference, those of the reference's, from which it is then measured. A body is
     * pulled towards what it touches: the force is shared equally by its contacts (adhesion). */
    tb_handle target;
    tb_handle reference; /* site, or none */
    /* m, > 0: a slider-crank. The target is the pin between crank and rod, the reference the pin
     * between rod and slider, which moves along its Z axis; this is the rod's length. */
    double rod_length;
    bool in_parent; /* ball, free: the gear's torque stands in the parent's axes, not the child's */
    double gear[6]; /* one number for hinge, slide, tendon, slider-crank; three for ball; six for
                       free and site: force, then torque; none for a body */
    tb_actuator_curve gain_curve, bias_curve;
    double gain[3];
    double bias[3];
    tb_muscle muscle_gain, muscle_bias; /* of curves that are muscles */
    double length_range[2];             /* of muscles: shortest and longest length, m or rad */
    bool disabled;                      /* makes no force and keeps its activation */
    bool early;                         /* acts by the activation at the end of the step */
    bool control_limited;
    double control_lower, control_upper;
    bool force_limited;
    double force_lower, force_upper; /* N or N m, before the gear */
    tb_activation activation;
    double time_constant; /* s */
    /* s, s, dimensionless: activation and deactivation of a muscle, width of the range of (control -
     * act) over which the one becomes the other */
    double muscle_times[3];
    bool activation_limited;
    double activation_lower, activation_upper;
} tb_actuator_def;

typedef enum tb_equality_type {
    TB_EQUALITY_CONNECT, /* a point of body A stays at a point of body B: 3 rows */
    TB_EQUALITY_WELD,    /* body B keeps its pose in body A: 6 rows */
    TB_EQUALITY_JOINT,   /* joint A follows a polynomial of joint B (mimic): 1 row */
    TB_EQUALITY_TENDON   /* tendon A follows a polynomial of tendon B: 1 row */
} tb_equality_type;

typedef struct tb_equality_def {
    const char *name;
    tb_equality_type type;
    tb_handle a, b; /* bodies (zeroed: world), joints or tendons (b zeroed: a is held constant) */
    double anchor_a[3];    /* m, in the frame of body A (CONNECT, WELD) */
    double anchor_b[3];    /* m, in the frame of body B */
    bool has_anchor_b;     /* false: anchor_b is where anchor_a lies in the described pose */
    double orientation[4]; /* WELD: of body B in A */
    bool has_orientation;  /* false: as in the described pose */
    double
        polynomial[5]; /* a - a0 = p0 + p1 y + p2 y^2 + p3 y^3 + p4 y^4, y = b - b0; the zeros are
                              the coordinates in the described pose */
    bool disabled;
} tb_equality_def;

/* A pair of shapes that collides whatever the masks say, with a surface of its own. */
typedef struct tb_pair_def {
    const char *name;
    tb_handle a, b;
    tb_surface surface;
} tb_pair_def;

/* A stored state: q, u, controls as in the compiled model; sizes are checked when compiled. */
typedef struct tb_keyframe_def {
    const char *name;
    double time;
    const double *q; /* number_of_q or NULL: the reference state */
    int32_t number_of_q;
    const double *u; /* or NULL: rest */
    int32_t number_of_u;
    const double *controls; /* or NULL: zero */
    int32_t number_of_controls;
    const double *activations; /* or NULL: zero */
    int32_t number_of_activations;
    /* 7 for each kinematic body: position, orientation; or NULL: as described */
    const double *kinematic;
    int32_t number_of_kinematic;
} tb_keyframe_def;

tb_scene_def tb_scene_defaults(void);
tb_body_def tb_body_defaults(void);
tb_joint_def tb_joint_defaults(void);
tb_shape_def tb_shape_defaults(void); /* density 1000, mu 1, e 0, COULOMB, category 1, mask 1 */
tb_surface tb_surface_defaults(void);
tb_mesh_def tb_mesh_defaults(void);
tb_height_field_def tb_height_field_defaults(void);
tb_site_def tb_site_defaults(void);
tb_tendon_def tb_tendon_defaults(void);
tb_tendon_point tb_tendon_point_defaults(void); /* a site at the world's origin */
tb_actuator_def tb_actuator_defaults(void);     /* a motor: gain 1, gear 1 */
tb_equality_def tb_equality_defaults(void);
tb_pair_def tb_pair_defaults(void);
tb_keyframe_def tb_keyframe_defaults(void);

/* Turns an actuator into a servo: force = stiffness (x - length) - damping velocity. */
void tb_actuator_position_servo(tb_actuator_def *def, double stiffness, double damping);
/* force = gain (x - velocity) */
void tb_actuator_velocity_servo(tb_actuator_def *def, double gain);

tb_status tb_scene_create(const tb_scene_def *def, tb_scene **scene, tb_error *error);
void tb_scene_destroy(tb_scene *scene); /* NULL is fine */

/* Each adds one thing, copies what the definition points at, and gives its handle (may be NULL).
 * INVALID_ARGUMENT names the field: numbers that are not finite, negative sizes or masses, an
 * inertia that breaks the triangle inequality, a handle of another scene, a name used twice in its
 * kind. RESOURCE_EXHAUSTED beyond TB_SCENE_LIMIT things of a kind. */
tb_status tb_scene_add_body(tb_scene *, const tb_body_def *, tb_handle *, tb_error *);
tb_status tb_scene_add_joint(tb_scene *, const tb_joint_def *, tb_handle *, tb_error *);
tb_status tb_scene_add_shape(tb_scene *, const tb_shape_def *, tb_handle *, tb_error *);
tb_status tb_scene_add_mesh(tb_scene *, const tb_mesh_def *, tb_handle *, tb_error *);
tb_status tb_scene_add_height_field(tb_scene *, const tb_height_field_def *, tb_handle *,
                                    tb_error *);
tb_status tb_scene_add_site(tb_scene *, const tb_site_def *, tb_handle *, tb_error *);
tb_status tb_scene_add_tendon(tb_scene *, const tb_tendon_def *, tb_handle *, tb_error *);
tb_status tb_scene_add_actuator(tb_scene *, const tb_actuator_def *, tb_handle *, tb_error *);
tb_status tb_scene_add_equality(tb_scene *, const tb_equality_def *, tb_handle *, tb_error *);
tb_status tb_scene_add_pair(tb_scene *, const tb_pair_def *, tb_handle *, tb_error *);
tb_status tb_scene_add_exclude(tb_scene *, tb_handle body_a, tb_handle body_b, tb_error *);
tb_status tb_scene_add_keyframe(tb_scene *, const tb_keyframe_def *, tb_handle *, tb_error *);

/* Two shapes that never collide, whatever masks, pairs and excludes of bodies say. */
tb_status tb_scene_exclude_shapes(tb_scene *, tb_handle shape_a, tb_handle shape_b, tb_error *);

/* Changes what the scene said at its creation. */
tb_status tb_scene_set_options(tb_scene *, const tb_scene_def *, tb_error *);
tb_scene_def tb_scene_options(const tb_scene *); /* name borrowed from the scene */

/* Finds a thing by name; a zeroed handle if there is none. */
tb_handle tb_scene_find(const tb_scene *, tb_handle_kind kind, const char *name);

/* Notes something that the scene's author should know (an ignored element, say). */
tb_status tb_scene_warn(tb_scene *, const char *message, tb_error *);
/* Whether shapes that collide are triangle meshes or height fields; tb_model_has_meshes says why one
 * asks. */
bool tb_scene_has_meshes(const tb_scene *);
int32_t tb_scene_number_of_warnings(const tb_scene *);
const char *tb_scene_warning(const tb_scene *, int32_t index);

enum { TB_SCENE_LIMIT = 4000000 };

/* ---- importers ------------------------------------------------------------------------------- */

/* Where an importer finds the files that a scene refers to. */
typedef struct tb_file_source {
    /* Reads a whole file; `path` is what the referring file says, joined to that file's folder and
     * normalised. `*bytes` is malloc'ed and then the library's. NOT_FOUND if there is none. */
    tb_status (*read)(void *context, const char *path, unsigned char **bytes, size_t *size,
                      tb_error *error);
    void *context;
} tb_file_source;

/* Treatment of pairs of shapes that may collide and overlap by more than the contact slop (1e-6 m)
 * in the first pose. Each is named in a warning of the model in any case, the deepest first. */
typedef enum tb_overlap_policy {
    /* They collide: they are pushed apart from the first step on. The default, since a contact that
     * is left out unasked lets a finger pass through the palm. */
    TB_OVERLAPS_KEEP,
    /* Links of one mechanism (below one body that is not the world) and pairs that no joint parts
     * (tb_overlap.persists) never collide. Bodies that merely begin too deep in each other, a mug in
     * a table, still do. */
    TB_OVERLAPS_IGNORE,
    TB_OVERLAPS_ERROR /* FAILED_PRECONDITION names the deepest pair */
} tb_overlap_policy;

typedef struct tb_import_options {
    const tb_file_source *files; /* NULL: the disk. Otherwise nothing is read from the disk */
    const char *package_path;    /* ':'-separated roots for package:// addresses; may be NULL */
    size_t file_limit;           /* bytes; larger files are refused */
    int32_t depth_limit;         /* nested elements and includes */
    double density;              /* kg/m^3 for OBJ and STL files loaded as scenes */
    bool no_files;   /* refuse references to other files: for texts that came from a network */
    bool fixed_base; /* URDF: the root link is fixed to the world (the default) */
    /* repair principal moments that break the triangle inequality by averaging them, whatever the
     * file says (tb_scene_def.balance_inertia) */
    bool balance_inertia;
    tb_overlap_policy overlaps;   /* for tb_model_load */
    const char *overlap_keyframe; /* the first pose: name or number; NULL: the reference pose */
    tb_log log;                   /* receives warnings too */
} tb_import_options;

tb_import_options tb_import_defaults(void);

/* Loads a scene by what the file is: MJCF or URDF (by root element), a zip archive of an MJCF with
 * its files (.mjz), or a mesh (OBJ, STL, DAE, MSH: one free body).
 * `options` may be NULL. Errors name file, line and element. */
tb_status tb_scene_load(const char *path, const tb_import_options *, tb_scene **, tb_error *);

/* The same from memory; `path` names the text in messages and is the base of relative paths. */
tb_status tb_scene_load_mjcf(const char *text, size_t size, const char *path,
                             const tb_import_options *, tb_scene **, tb_error *);
tb_status tb_scene_load_urdf(const char *text, size_t size, const char *path,
                             const tb_import_options *, tb_scene **, tb_error *);

/* Reads a mesh file (OBJ, STL, DAE, MSH) as one asset of the scene, scaled per axis (NULL: 1). */
tb_status tb_scene_load_mesh(tb_scene *, const char *path, const char *name, const double scale[3],
                             tb_mesh_inertia inertia, const tb_import_options *, tb_handle *,
                             tb_error *);

/* ---- named scenes ---------------------------------------------------------------------------- */

/* Scenes that come with the library: those of its README and those of the theses that it implements. */
typedef struct tb_named_scene {
    const char *name, *summary; /* "poulsen_grid_8"; one line of English */
    const char *source;         /* thesis and section, or "README" */
} tb_named_scene;

/* The scene of this index, from 0; false, and a zeroed description, past the last. */
bool tb_named_scene_describe(int32_t index, tb_named_scene *scene);
/* A named scene as MJCF, the same bytes every time; it refers to no other file. The caller frees *text
 * (size bytes and a zero) by tb_bytes_destroy. NOT_FOUND names a scene that is none. */
tb_status tb_named_scene_mjcf(const char *name, unsigned char **text, size_t *size,
                              tb_error *error);

/* What Poulsen tells of his scenes: contacts, blocks of A = J W J' and colours of the contact graph, of
 * which the ground is a body like any other. */
enum { TB_POULSEN_COLOURS = 16 };
typedef struct tb_poulsen_counts {
    int32_t bodies, contacts; /* the ground is among the bodies */
    int64_t nnz;              /* blocks of A */
    int32_t largest_degree;   /* of a contact: d_e */
    int32_t greedy_colours;   /* first-free, before small colours are merged */
    int32_t colours;          /* after: sizes below */
    int32_t unsafe;           /* 1: the last of these is the unsafe one */
    int32_t size[TB_POULSEN_COLOURS];
    int32_t balanced_colours, balanced_smallest, balanced_largest;
} tb_poulsen_counts;

/* Counts of a named scene; NOT_FOUND where it is none of Poulsen's. */
tb_status tb_poulsen_count(const char *scene, tb_poulsen_counts *counts, tb_error *error);

/* ---- models: immutable, shared, content-addressed -------------------------------------------- */

typedef struct tb_model tb_model;

/* Compiles a scene; the scene may be destroyed afterwards. */
tb_status tb_scene_compile(const tb_scene *, tb_model **, tb_error *);
void tb_model_destroy(tb_model *); /* NULL is fine; no state may be left that uses it */

/* The same with an eye on shapes that overlap in the first pose: the reference pose, or that of a
 * keyframe (name or number; NULL: none). NOT_FOUND for a keyframe that is not there. */
tb_status tb_scene_compile_apart(const tb_scene *, tb_overlap_policy, const char *keyframe,
                                 tb_model **, tb_error *);

/* tb_scene_load, tb_scene_compile_apart by the options, tb_scene_destroy in one. */
tb_status tb_model_load(const char *path, const tb_import_options *, tb_model **, tb_error *);

typedef struct tb_model_counts {
    int32_t bodies; /* the world is body 0 */
    int32_t joints, coordinates, dofs, shapes, meshes, sites, tendons, actuators, activations,
        equalities, pairs, keyframes, kinematic_bodies, trees, warnings;
} tb_model_counts;

tb_model_counts tb_model_count(const tb_model *);
/* Whether triangle meshes or height fields can collide in it. `auto` keeps such worlds on the
 * processors, since a warp takes longer for a mesh pair than a core does. 64 grasps of
 * a mug of triangles (daemon_bench.py) make 1,048 world-steps/s on an H200, 12,900 on the 16 threads
 * beside it. */
bool tb_model_has_meshes(const tb_model *);
const char *tb_model_name(const tb_model *);
double tb_model_dt(const tb_model *);                       /* s */
void tb_model_gravity(const tb_model *, double gravity[3]); /* m/s^2 */
double tb_model_total_mass(const tb_model *);               /* kg */
const char *tb_model_warning(const tb_model *, int32_t index);

/* Hex SHA-256 of the canonical bytes, 64 characters and a zero. The model owns it. */
const char *tb_model_sha256(const tb_model *);
/* The canonical bytes: equal for equal models on every platform. The model owns them. */
const unsigned char *tb_model_bytes(const tb_model *, size_t *size);
/* Compiles canonical bytes back into a model. DATA_LOSS if they are damaged. */
tb_status tb_model_from_bytes(const unsigned char *bytes, size_t size, tb_model **, tb_error *);

/* Compiled index of a thing by name, by kind; -1 if there is none. */
int32_t tb_model_find(const tb_model *, tb_handle_kind kind, const char *name);
/* Name of a thing, "" if it has none or the index is out of range. */
const char *tb_model_thing_name(const tb_model *, tb_handle_kind kind, int32_t index);

typedef struct tb_body_info {
    int32_t parent;
    bool kinematic;
    double mass;         /* kg */
    double com[3];       /* m, body frame */
    double inertia[6];   /* kg m^2 about the centre of mass in body axes: xx, yy, zz, xy, xz, yz */
    double principal[3]; /* kg m^2, descending */
} tb_body_info;

tb_status tb_model_body_info(const tb_model *, int32_t body, tb_body_info *);

typedef struct tb_joint_info {
    int32_t body;
    tb_joint_type type;
    int32_t coordinate, dof; /* first of this joint in q and u */
    int32_t coordinates, dofs;
    bool limited;
    double lower, upper;
} tb_joint_info;

tb_status tb_model_joint_info(const tb_model *, int32_t joint, tb_joint_info *);

/* ---- states: one world each ------------------------------------------------------------------ */

typedef struct tb_state tb_state;

/* A world in the model's reference pose at rest, time 0. The model must outlive it. */
tb_status tb_state_create(const tb_model *, tb_state **, tb_error *);
void tb_state_destroy(tb_state *);
const tb_model *tb_state_model(const tb_state *);

/* Sets everything back to the reference pose, or to a keyframe (index, or -1). */
tb_status tb_state_reset(tb_state *, int32_t keyframe, tb_error *);

double tb_state_time(const tb_state *);
int64_t tb_state_steps(const tb_state *);

/* Borrowed arrays, valid until the state is destroyed: q (coordinates), u (dofs), controls
 * (actuators), activations. Write through the setters only. Worlds that stay on a GPU
 * (tb_step_options.resident): asking brings what the GPU has newer, and later steps do not change
 * the arrays until somebody asks again. A lost GPU brings nothing: tb_states_fetch tells. */
const double *tb_state_q(const tb_state *);
const double *tb_state_u(const tb_state *);
const double *tb_state_controls(const tb_state *);
const double *tb_state_activations(const tb_state *);

/* INVALID_ARGUMENT for a wrong count or numbers that are not finite. Quaternions are normalised.
 * Setting q forgets no contact history: cached impulses are only a first guess. */
tb_status tb_state_set_q(tb_state *, const double *q, int32_t count, tb_error *);
tb_status tb_state_set_u(tb_state *, const double *u, int32_t count, tb_error *);
tb_status tb_state_set_controls(tb_state *, const double *controls, int32_t count, tb_error *);
tb_status tb_state_set_control(tb_state *, int32_t actuator, double value, tb_error *);

/* Generalized force on every dof (N, N m), held until changed; NULL clears. */
tb_status tb_state_set_applied_force(tb_state *, const double *force, int32_t count, tb_error *);
/* Force (N) and torque (N m) on a body at its centre of mass in world axes, held until changed. */
tb_status tb_state_set_body_wrench(tb_state *, int32_t body, const double wrench[6], tb_error *);

/* Pose and velocity (linear m/s of the body origin, angular rad/s, world axes) of a kinematic body
 * at the start of the next step; it moves on by this velocity until told otherwise. */
tb_status tb_state_set_kinematic(tb_state *, int32_t body, const double position[3],
                                 const double orientation[4], const double linear_velocity[3],
                                 const double angular_velocity[3], tb_error *);

typedef struct tb_body_motion {
    double position[3]; /* m, body origin, world */
    double orientation[4];
    double com[3];              /* m, world */
    double linear_velocity[3];  /* m/s of the body origin, world axes */
    double angular_velocity[3]; /* rad/s, world axes */
} tb_body_motion;

/* Pose and velocity of a body from the state's q and u. */
tb_status tb_state_body_motion(const tb_state *, int32_t body, tb_body_motion *);
/* The same of all bodies at once: `motions` has as many entries as the model has bodies. */
tb_status tb_state_body_motions(const tb_state *, tb_body_motion *motions);

/* Kinetic plus potential energy (gravity and springs), J. */
double tb_state_energy(const tb_state *);

/* Dense mass matrix with armature (dofs x dofs, kg, kg m, kg m^2), and the smooth acceleration
 * (dofs) without contacts, limits or equalities. For tests and planners, not for inner loops. */
tb_status tb_state_mass_matrix(const tb_state *, double *mass, tb_error *);
tb_status tb_state_smooth_acceleration(const tb_state *, double *acceleration, tb_error *);

/* Lengths of all tendons (m, or rad) and how they change with the dofs (tendons x dofs, row by row;
 * may be NULL). For tests and planners. */
tb_status tb_state_tendons(const tb_state *, double *lengths, double *jacobian, tb_error *);

/* Two shapes that may collide and overlap: neither one body nor welded together, parent and child, or
 * excluded. */
typedef struct tb_overlap {
    int32_t shape_a, shape_b; /* model indices, a < b */
    int32_t body_a, body_b;   /* of the shapes */
    double depth;             /* m, > 0: the deepest contact point that a step in this pose finds */
    /* bodies with joints on the way from one body to the other through the tree; 1: neighbours across
     * a joint */
    int32_t joints;
    bool linked; /* parts of one mechanism: a body other than the world is above both, or is one */
    /* m, smallest over the sampled poses of the joints; 0: they part in some, or they can go anywhere
     * (free joints, kinematic bodies, slides without range). 0 without samples */
    double least_depth;
    bool persists; /* least_depth is above the slop: no sampled pose parts them */
} tb_overlap;

/* Lists the pairs that overlap by more than `slop` (m, >= 0) in the state's pose, the deepest first.
 * `samples` (0 to 65536, rounded up to a power of two; 64 is usual): poses in which `persists` is
 * sought. Every joint visits that many values spread evenly over its range, ends included (hinges
 * without range: a whole turn; ball joints: angles about random axes), joints that follow others by
 * an equality excepted; other equalities are not asked. The same model gives the same list. The
 * caller frees *overlaps (NULL if there are none) by tb_overlaps_destroy. INVALID_ARGUMENT for a slop
 * or a number of samples out of range, INVALID_ARGUMENT for poses that are not finite. */
tb_status tb_state_overlaps(const tb_state *, double slop, int32_t samples, tb_overlap **overlaps,
                            int32_t *count, tb_error *);
void tb_overlaps_destroy(tb_overlap *); /* NULL is fine */

/* Snapshot: everything that the next step depends on, the contact cache included. Restoring it
 * resumes bit-exactly. The caller frees `*bytes` by tb_bytes_destroy. Restoring gives
 * FAILED_PRECONDITION for a snapshot of another model or of a format that this build does not read,
 * DATA_LOSS for bytes that are none or damaged (they carry a checksum, but for those of older
 * builds, format 3); then the state is as it was. */
tb_status tb_state_snapshot(const tb_state *, unsigned char **bytes, size_t *size, tb_error *);
tb_status tb_state_restore(tb_state *, const unsigned char *bytes, size_t size, tb_error *);
void tb_bytes_destroy(unsigned char *bytes);
/* A copy that goes its own way. Of a world on a GPU the copy is made there. */
tb_status tb_state_fork(const tb_state *, tb_state **, tb_error *);
/* Brings worlds to the host where they stay on a GPU (tb_step_options.resident), all at once; one by
 * one, the first question about a world does it. contacts: theirs too. ABORTED if the GPU is lost. */
tb_status tb_states_fetch(tb_state *const *states, int32_t worlds, bool contacts, tb_error *);
/* 64-bit hash of all that a snapshot holds, for determinism tests. */
uint64_t tb_state_hash(const tb_state *);

/* What a contact did in the last step. */
typedef enum tb_contact_status {
    TB_CONTACT_OPEN,
    TB_CONTACT_STICK,
    TB_CONTACT_SLIP
} tb_contact_status;

typedef struct tb_contact_info {
    int32_t shape_a, shape_b; /* model indices */
    uint64_t feature;
    double position[3]; /* m, midway between both points */
    double normal[3];   /* from A to B */
    double tangent1[3], tangent2[3];
    double gap; /* m, at the collision configuration of the step */
    double
        impulse[6]; /* N s: normal, tangents; N m s: spin, rolling; acts on B, its negative on A */
    double velocity[3]; /* m/s after the step: normal, tangents, of B relative to A */
    tb_contact_kind kind;
    tb_contact_status status;
} tb_contact_info;

/* Contacts of the last step, borrowed until the next. */
int32_t tb_state_number_of_contacts(const tb_state *);
tb_status tb_state_contact(const tb_state *, int32_t index, tb_contact_info *);
/* Impulses of the other rows of the last step: limits, dry friction, actuators (N s, N m s). */
double tb_state_actuator_force(const tb_state *, int32_t actuator); /* N or N m, before the gear */

/* ---- stepping -------------------------------------------------------------------------------- */

typedef enum tb_scheme {
    TB_SCHEME_STEWART_TRINKLE, /* gap term, no restitution by default: grasps and stacks */
    TB_SCHEME_MOREAU,          /* midpoint, Newton restitution: impacts */
    /* Betz's Stewart-Trinkle stepping in a plane: bodies of two slides and a hinge, convex outlines, the
     * whole gap given back within the step, no restitution. In double, on the processor. UNSUPPORTED
     * names what of a model does not fit */
    TB_SCHEME_PLANAR
} tb_scheme;

typedef enum tb_precision { TB_DOUBLE, TB_FLOAT } tb_precision;

/* Where worlds are stepped. The CPU is built in. The GPU is a plug-in that is looked for once, when
 * it is first asked about; it counts as there if a driver and a card are there too. Both run the
 * same formulas: results agree to rounding, and on each of them they are the same bytes every time.
 * Before the driver looks for cards, CUDA_DEVICE_MAX_CONNECTIONS=32 is put into the environment where
 * it is not there: programs with threads that read it ask about GPUs before they start them. */
typedef enum tb_backend_choice {
    TB_BACKEND_CPU,
    TB_BACKEND_GPU, /* UNAVAILABLE where there is none */
    TB_BACKEND_AUTO /* the GPU where there is one, else and for meshes (tb_model_has_meshes) the CPU */
} tb_backend_choice;

typedef struct tb_backend_info {
    const char *name; /* "cpu", "gpu" */
    int32_t devices;  /* that it can use here; 0: none, and `reason` says why */
    char reason[TB_ERROR_MESSAGE_SIZE];
} tb_backend_info;

typedef struct tb_device_info {
    char name[96];         /* "NVIDIA H200" */
    char driver[32];       /* version; "" for the CPU */
    char architecture[16]; /* "sm_90"; "" for the CPU */
    int32_t processors;    /* that run side by side: multiprocessors, threads */
    uint64_t memory;       /* bytes of its own; 0: the machine's */
} tb_device_info;

/* A backend by its number in tb_backend_choice; INVALID_ARGUMENT past the last. */
tb_status tb_backend_describe(tb_backend_choice, tb_backend_info *);
/* One of its devices. NOT_FOUND names the device; UNAVAILABLE says why there is no such backend. */
tb_status tb_device_describe(tb_backend_choice, int32_t device, tb_device_info *, tb_error *);

/* What a device holds and has done for this process, all steppers together. */
typedef struct tb_device_use {
    uint64_t memory_bytes;     /* of the device, that this process holds */
    uint64_t pool_bytes;       /* of these, kept for worlds */
    uint64_t pool_used_bytes;  /* of these, by worlds that are there */
    uint64_t model_bytes;      /* by compiled models */
    int64_t worlds;            /* that the device keeps between calls, on it or swapped out */
    int64_t worlds_swapped;    /* of these, swapped out to the host for others */
    int64_t launches, fetches; /* steps begun; times worlds were brought to the host */
    int64_t uploads,
        moves;             /* worlds sent there from the host; copied there, for forks and growth */
    int64_t evictions;     /* worlds that made room for others */
    int64_t captures;      /* kinds of small calls that were made a graph of */
    uint64_t copied_bytes; /* to and from the device */
    double copy_seconds, compute_seconds; /* on the device, by its own clock */
    bool lost;
} tb_device_use;

/* All zero for the CPU, and for a device that nobody steps on. Any thread may ask at any time. */
tb_status tb_device_measure(tb_backend_choice, int32_t device, tb_device_use *, tb_error *);

typedef enum tb_storage {
    TB_STORAGE_AUTO,
    TB_STORAGE_FACTORIZED, /* velocities kept, rows applied */
    TB_STORAGE_DENSE,      /* G assembled */
    TB_STORAGE_T           /* T = 1 - R G assembled */
} tb_storage;

typedef enum tb_r_strategy {
    TB_R_DIAGONAL,   /* omega / G_ii, one for both tangents (Nützi 4.41) */
    TB_R_RICHARDSON, /* omega */
    TB_R_SPECTRUM,   /* 2 / (smallest + largest eigenvalue of G), times omega */
    /* (diag(G) / omega + lower triangle of G)^-1 (Betz 2.54): omega / G_ii, and every contact sees those
     * before it; prox_serial and prox_cuda only */
    TB_R_GAUSS_SEIDEL
} tb_r_strategy;

typedef enum tb_stop_test {
    TB_STOP_RESIDUAL, /* natural map over the norm of c; always computed for the certificate */
    TB_STOP_ELEMENT,  /* |new - old| <= |old| tolerance + tolerance, every element (Nützi 4.49) */
    TB_STOP_NORM,     /* the same in the 2-norm (Nützi 4.50) */
    TB_STOP_EPSILON,  /* largest change of an impulse (Poulsen's epsilon-infinity) */
    TB_STOP_MERIT,    /* sum of squared changes (Poulsen's Theta) */
    TB_STOP_ONE_SIDED /* rho_n > -tolerance; |rho_f| < tolerance or clamped (Betz) */
} tb_stop_test;

typedef struct tb_solve_options {
    const char *solver; /* "sor", "jor", "newton", "auto"; borrowed */
    double tolerance;   /* on the stop test; TB_STOP_RESIDUAL: dimensionless */
    int32_t maximum_iterations;
    double omega; /* relaxation; 0: the solver's own */
    tb_r_strategy r_strategy;
    tb_storage storage;
    tb_stop_test stop;
    bool warm_start;
    bool local_solve;         /* solve contacts as 3x3 blocks where that pays, else by rows */
    bool accelerate;          /* extrapolate over slow sweeps (Anderson; in field mode, momentum) */
    int32_t maximum_halvings; /* of omega after divergence */
    int32_t threads;          /* 0: all processors; used by solvers that can */
    /* N s, prox_serial: a larger normal impulse begins the solve again with half the omega and twice the
     * sweeps (Betz's p_nLimit); 0: off */
    double impulse_limit;
    /* prox_serial, prox_cuda: with the mistakes of the thesis's listings (r before omega is halved; the
     * gap in the place of gap / h, and a first sweep with mu = 1) */
    bool as_listed;
    /* asked between sweeps, on a card every 32 steps; true ends the work as CANCELLED. NULL: never */
    bool (*cancelled)(void *context);
    void *cancelled_context;
} tb_solve_options;

tb_solve_options tb_solve_defaults(void);

/* Names and one-line descriptions of the solvers, NULL past the last. */
const char *tb_solver_name(int32_t index);
const char *tb_solver_summary(int32_t index);

typedef struct tb_step_options {
    double dt; /* s; 0: the model's */
    tb_scheme scheme;
    tb_precision precision;
    tb_solve_options solve;
    double recovery_speed; /* m/s, cap on the speed at which penetration is removed */
    /* m; gaps within +-slop count as touching and ask for no motion, larger ones count in eighths
     * of it. Without it the last bits of the gaps of redundant contacts contradict each other, and
     * solvers chase the contradiction. */
    double contact_slop;
    /* in steps: contacts are made ahead of bodies that may meet within this */
    double speculative_time;
    double contact_margin;    /* m, contacts are also made up to this gap */
    double closure_tolerance; /* m or rad; loops are projected back to this after the step */
    /* m or rad; errors of loops and violations of limits up to this are left alone where nothing
     * takes them away */
    double closure_slop;
    int32_t threads;    /* worlds in parallel; 0: all processors */
    bool report_energy; /* fill the certificate's energies (costs a few percent) */
    tb_backend_choice backend;
    int32_t device; /* of the backend, from 0; the CPU has one */
    /* On a GPU: worlds stay there after a step and come to the host when somebody reads them; else
     * all of them come with every step. Results are the same. */
    bool resident;
} tb_step_options;

tb_step_options tb_step_defaults(void);

typedef enum tb_certificate_flags {
    TB_CERTIFICATE_NOT_CONVERGED = 1, /* tolerance not reached within the iterations */
    TB_CERTIFICATE_DIVERGED = 2,      /* the world is frozen at its last good state */
    TB_CERTIFICATE_OVERFLOW = 4,      /* a capacity grew and the step was redone */
    TB_CERTIFICATE_HALVED = 8,        /* omega was halved at least once */
    TB_CERTIFICATE_DEGENERATE = 16,   /* a pair of shapes had no well-defined normal */
    /* gaps that cannot all be closed: the velocities are exact, the positions as near as they get,
     * and `worst_fault` names the gap that is off the farthest */
    TB_CERTIFICATE_INFEASIBLE = 32
} tb_certificate_flags;

/* A gap that the positions of a world cannot close. */
typedef enum tb_fault_kind {
    TB_FAULT_NONE,
    TB_FAULT_OVERLAP,      /* a, b: shapes that penetrate each other */
    TB_FAULT_JOINT_LIMIT,  /* a: joint outside of its range */
    TB_FAULT_TENDON_LIMIT, /* a: tendon outside of its range */
    TB_FAULT_EQUALITY      /* a: equality that is not closed */
} tb_fault_kind;

typedef struct tb_fault {
    int32_t kind;  /* tb_fault_kind */
    int32_t a, b;  /* indices in the model, -1: none */
    double amount; /* m or rad that it is off, >= 0 */
} tb_fault;

/* How exact a step was. Present with every answer. */
typedef struct tb_certificate {
    tb_status status; /* OK, NOT_CONVERGED or DIVERGED */
    uint32_t flags;   /* tb_certificate_flags */
    int64_t step;     /* of the world, counted from 1 */
    double time;      /* s, at the end of the step */
    double residual; /* natural map at rho = 1 in De Saxcé form over the norm of c; dimensionless */
    double penetration;           /* m, largest */
    double cone_error;            /* N s, largest excess of a tangential impulse over mu lambda_n */
    double complementarity_error; /* N m s^-1 s = J, largest |lambda_n xi_n| */
    double closure_error;         /* m or rad, largest, of equalities after the step */
    double energy;                /* J, at the end */
    double energy_change;         /* J, over the step */
    /* J: where the change comes from, at double precision: motion of positions alone (recovery and
     * the closing of loops); actuators; dampers of joints and tendons; contacts, dry friction, limits
     * and loops; forces applied and bodies that move as they are told. The rest of the change is the
     * error of the step itself */
    double energy_recovery, energy_motors, energy_damping, energy_friction, energy_applied;
    double energy_unexplained;
    int32_t contacts, rows, iterations;
    char solver[16]; /* which solver ended the work; auto: none, the start stood */
    /* what was warm: blocks whose status (open, stick, slip) was known before the solve, and how
     * many of them had it still after; the certificates of several steps add up */
    int64_t known_statuses, kept_statuses;
    int64_t linear_solves;  /* of Newton's system, by factorizations made or kept */
    int64_t factorizations; /* of it */
    int64_t resets;         /* starts from the sets of the last step that were given up */
    int32_t faults;         /* most in one step: gaps that could not be closed */
    tb_fault worst_fault;
} tb_certificate;

/* One line of English for a fault, with the model's names: "'pad' and 'mug' overlap by 0.3 mm ...". */
void tb_fault_describe(const tb_model *, const tb_fault *, char *text, size_t size);

/* Of the last step that this state took, zeroed before the first; borrowed until the next. */
const tb_certificate *tb_state_certificate(const tb_state *);

/* Combines the certificates of several steps: worst errors, last time, sums of iterations. */
void tb_certificate_merge(tb_certificate *into, const tb_certificate *other);

typedef struct tb_stepper tb_stepper;

/* Working memory and options for stepping; grows to the largest world it meets, then allocates
 * nothing more. */
tb_status tb_stepper_create(const tb_step_options *, tb_stepper **, tb_error *);
void tb_stepper_destroy(tb_stepper *);
tb_step_options tb_stepper_options(const tb_stepper *);
tb_status tb_stepper_set_options(tb_stepper *, const tb_step_options *, tb_error *);
/* Bytes allocated so far, by this stepper and its scratch;
 * a test's window on "warm allocates nothing". */
size_t tb_stepper_allocated(const tb_stepper *);
int64_t tb_stepper_allocations(const tb_stepper *);

/* What a stepper holds and has moved so far. */
typedef struct tb_stepper_use {
    const char *backend; /* that steps: "cpu" or "gpu", also where the choice was AUTO */
    uint64_t host_bytes, device_bytes;
    int64_t allocations;   /* times a system was asked for memory */
    int64_t regrowths;     /* launches that were repeated because a capacity was too small */
    uint64_t copied_bytes; /* to and from the device */
    double copy_seconds, compute_seconds; /* on the device, by its own clock */
    bool lost; /* the device failed: every call says ABORTED until the process has been restarted */
} tb_stepper_use;

tb_stepper_use tb_stepper_measure(const tb_stepper *);
/* Runs everything that a step on a GPU may need once over nothing, so that the first step pays for
 * no first use. OK at once on the CPU. */
tb_status tb_stepper_warm(tb_stepper *, tb_error *);

/* Steps one world `steps` times. `certificate` (may be NULL) merges all steps. DIVERGED freezes the
 * world; NOT_CONVERGED is a certificate status, not a failure. */
tb_status tb_step(tb_stepper *, tb_state *, int32_t steps, tb_certificate *, tb_error *);

/* Steps many worlds, of one or many models, in parallel. Results do not depend on the batch or on
 * the number of threads. certificates: `worlds` entries or NULL; zero for a world that made no step.
 * Returns the first failure; worlds that did not fail have been stepped all the same, where it was
 * not the whole call that could not begin (no memory, a device that is lost). */
tb_status tb_step_batch(tb_stepper *, tb_state *const *states, int32_t worlds, int32_t steps,
                        tb_certificate *certificates, tb_error *);

/* Contacts between bodies [first_a, end_a) and bodies [first_b, end_b) of a model. */
typedef struct tb_watch {
    int32_t first_a, end_a, first_b, end_b;
} tb_watch;

/* What a watch has seen after a step. */
typedef struct tb_touch {
    double gap;     /* m, the smallest; INFINITY without a contact */
    double impulse; /* N s, the largest normal one; 0 without */
} tb_touch;

enum { TB_COURSE_WATCHES = 4 };

/* What a world is told before each of some steps, and what is noted after each, so that nobody has to
 * look at it in between: one call takes all of them, on a GPU without the host. Arrays are the
 * caller's, rows of the steps one behind the other; several worlds may be told the same ones. Zeroed
 * but for `steps`: steps and nothing else. */
typedef struct tb_course {
    int32_t steps; /* of this world */
    /* Told before a step; NULL: what the state has stays. */
    /* steps x kinematic bodies (in the model's order) x 13: position, orientation, linear and angular
     * velocity, as tb_state_set_kinematic takes them */
    const double *kinematic;
    /* steps x kinematic bodies x 6, m/s^2 and rad/s^2 about the body's origin, world axes. A kinematic
     * body has a velocity but no acceleration: bodies of the trees that stand on one get what this one
     * does to them, seen from it, as wrenches, in the place of those that they had. */
    const double *accelerations;
    const double *controls; /* steps x actuators, as tb_state_set_controls takes them */
    /* Noted after a step; NULL: not wanted. Of a world that diverges, the certificate says so, and
     * nothing else is noted then or later. */
    double *q;                    /* steps x coordinates */
    double *moved;                /* steps x kinematic bodies x 13 */
    tb_touch *touches;            /* steps x number_of_watches */
    tb_certificate *certificates; /* steps */
    tb_watch watches[TB_COURSE_WATCHES];
    int32_t number_of_watches;
} tb_course;

/* Steps many worlds, each by a course of its own: the bytes are those of telling and stepping it step
 * by step. What was told last stays with the state; the course is no part of it. certificates: `worlds`
 * entries, merged over the steps, or NULL. INVALID_ARGUMENT, with nothing told or stepped, for numbers
 * that are not finite, orientations of length 0, and counts below zero or above TB_COURSE_WATCHES
 * (field "courses"); otherwise as tb_step_batch. */
tb_status tb_step_courses(tb_stepper *, tb_state *const *states, const tb_course *courses,
                          int32_t worlds, tb_certificate *certificates, tb_error *);

/* Lets a state that is only asked about (of the same model, or of one that has the same coordinates
 * and bodies) stand as `course`, which noted q and moved, found it after one of its steps. */
void tb_course_show(const tb_course *course, int32_t step, tb_state *shown);

/* Writes the contact problem that the next step of this world would solve. */
tb_status tb_export_problem(tb_stepper *, const tb_state *, const char *path, tb_error *);

/* ---- grasps ---------------------------------------------------------------------------------- */

/* What happens when these fingers close on this object: each grasp is a world of its own in which a
 * hand, carried along a prescribed path, approaches, closes, lifts, shakes and holds. */

typedef struct tb_grasp_object {
    const tb_scene *scene; /* one body, free or without joints (with children); borrowed */
    double mass;           /* kg; 0: as the scene says */
    double friction;       /* mu of every contact of the world; 0: as the scenes say */
    bool convex;           /* meshes collide as their convex hulls */
    double position[3];    /* m, of the object's frame in the world at the beginning */
    double orientation[4];
    /* false: a horizontal plane below its lowest point carries the object. true: nothing does, and
     * it weighs nothing until the lift begins */
    bool no_table;
} tb_grasp_object;

/* The base of a hand is the only body that hangs on its scene's world (its own joints are left out:
 * the path replaces them), or, where several do or the world has shapes, the world itself. */
typedef struct tb_grasp_hand {
    const tb_scene *scene; /* borrowed */
    /* Names of the actuators that close it; 0 of them: all that differ between the keyframes "open"
     * and "closed", or without those all that have a control range (motors: a force range). */
    const char *const *closing;
    int32_t number_of_closing;
    /* Their controls, number_of_closing each; NULL: as the keyframes "open" and "closed" say, else
     * the end of the range with the fingers apart, and the other one. */
    const double *open_controls, *close_controls;
    double tool_position[3]; /* m, frame that the poses place, in the base's frame */
    double tool_orientation[4];
    tb_overlap_policy overlaps; /* of its links among each other, in its reference pose */
} tb_grasp_hand;

typedef struct tb_grasp_pose {
    const char *name;   /* may be NULL; copied */
    double position[3]; /* m, of the tool frame in the object's frame */
    double orientation[4];
    double force; /* N or N m, limit of each closing actuator; 0: the protocol's */
} tb_grasp_pose;

/* amplitude sin(2 pi f t) along an axis and angle sin(2 pi f t) about it, through the tool frame's
 * origin, under an envelope that is zero at both ends. */
typedef struct tb_grasp_shake {
    double axis[3];   /* world; normalised */
    double amplitude; /* m */
    double angle;     /* rad */
    double frequency; /* Hz */
    double seconds;
} tb_grasp_shake;

typedef struct tb_grasp_protocol {
    double gravity[3];        /* m/s^2 */
    double approach[3];       /* the way the hand comes, tool frame; normalised */
    double approach_distance; /* m; 0: the hand begins in the pose */
    double approach_speed;    /* m/s, mean */
    double close_seconds;     /* controls change over the first half */
    double force;             /* N or N m, limit of each closing actuator; 0: as the model says */
    double width; /* m; > 0: two opposed sliding fingers stop at this distance from each other */
    double lift;  /* m, upwards */
    double lift_seconds;
    const tb_grasp_shake *shakes; /* one after the other; copied */
    int32_t number_of_shakes;
    double hold_seconds;
    double slip_limit; /* m */
} tb_grasp_protocol;

/* Copies of every grasp. The first is never perturbed; copy k of every grasp draws the same
 * numbers, which depend on the seed and k alone, so that grasps compare and no result depends on
 * what else is in the request. */
typedef struct tb_grasp_perturbation {
    int32_t count; /* copies of each grasp, the first included */
    uint64_t seed;
    double position; /* m, standard deviation of each coordinate of the pose */
    double angle;    /* rad, standard deviation, about a random axis through the tool's origin */
    double friction; /* relative standard deviation; factors stay >= 0 */
    double mass;     /* relative standard deviation; factors stay >= 0.01 */
} tb_grasp_perturbation;

typedef struct tb_grasp_request {
    tb_grasp_object object;
    tb_grasp_hand hand;
    const tb_grasp_pose *poses; /* copied */
    int32_t number_of_poses;
    tb_grasp_protocol protocol;
    tb_grasp_perturbation perturbation;
    tb_step_options step; /* of every world; dt 0: 0.002 s. threads: worlds side by side */
    double confidence;    /* of the interval, between 0 and 1 */
} tb_grasp_request;

/* Everything but scenes and poses. */
tb_grasp_request tb_grasp_defaults(void);
tb_grasp_pose tb_grasp_pose_defaults(void);
tb_grasp_shake tb_grasp_shake_defaults(void); /* 1 cm along Z, 2 Hz, 0.5 s */

typedef enum tb_grasp_verdict {
    TB_GRASP_HELD,
    TB_GRASP_SLIPPED, /* carried to the end, but slipped by more than the limit */
    TB_GRASP_DROPPED,
    TB_GRASP_COLLIDED, /* the hand was inside the object or the table before it closed */
    TB_GRASP_DIVERGED
} tb_grasp_verdict;

const char *tb_grasp_verdict_name(tb_grasp_verdict verdict); /* "held" */

/* One copy of a grasp. */
typedef struct tb_grasp_trial {
    tb_grasp_verdict verdict;
    /* m: largest way since the lift began of the object's centre of mass and of three points around
     * it at the object's radius, seen from that part of the hand (its base or a body that touched
     * the object when the lift began) in which they moved least */
    double slip;
    /* s since the beginning: when the hand last touched it, or when the lift began if that is
     * later; -1: not dropped */
    double drop_time;
    double friction; /* mu that its contacts had (the largest of the object's) */
    double mass;     /* kg, of the object */
    int64_t steps;
    tb_certificate certificate; /* of all its steps */
} tb_grasp_trial;

/* A contact of the hand with the object. */
typedef struct tb_grasp_contact {
    const char *body;   /* of the hand */
    double position[3]; /* m, object frame */
    double normal[3];   /* object frame, into the object */
    double wrench[6];   /* N, N m about the object's centre of mass, world axes, on the object */
    double force;       /* N, normal */
    double margin;      /* 1 - |tangential| / (mu normal) */
} tb_grasp_contact;

typedef struct tb_grasp_finger {
    const char *body;
    double force; /* N, sum of its contacts' normal forces */
} tb_grasp_finger;

/* What came of one grasp. Contacts and what follows from them are the first copy's: at the end, or
 * when the lift began if it was dropped. */
typedef struct tb_grasp_result {
    int32_t index; /* of the pose in the request */
    const char *name;
    const tb_grasp_trial *trials;
    int32_t number_of_trials;
    double success, lower, upper; /* fraction held, and its Wilson interval */
    double slip;                  /* m, median over the trials that were not dropped */
    const tb_grasp_contact *contacts;
    const tb_grasp_finger *fingers;
    int32_t number_of_contacts, number_of_fingers;
    /* of the grasp wrench space: the hull of what unit normal forces at the contacts can do, with
     * torques over the object's radius (Ferrari and Canny 1992, L1). Radius of the largest ball
     * about zero in it, and its volume */
    double epsilon, volume;
    double margin;              /* smallest of the contacts; 0 without contacts */
    tb_certificate certificate; /* over all copies and steps */
} tb_grasp_result;

typedef struct tb_grasp_progress {
    int32_t grasps, grasps_done;
    int64_t trials, trials_done, trials_held;
    int64_t world_steps_done, world_steps; /* the latter shrinks as worlds end early */
} tb_grasp_progress;

typedef struct tb_grasp_job tb_grasp_job;

/* Checks and compiles everything; the request may go afterwards. INVALID_ARGUMENT names the field
 * ("poses[3].position"), NOT_FOUND an actuator that is not there. */
tb_status tb_grasp_job_create(const tb_grasp_request *, tb_grasp_job **, tb_error *);
void tb_grasp_job_destroy(tb_grasp_job *); /* at any time; NULL is fine */

/* Plays for about this long (ns, at least a few steps of each world in play), on all of the step
 * options' threads. *finished: all results are there. Results are the same bytes however the work
 * is sliced and on any number of threads. */
tb_status tb_grasp_job_advance(tb_grasp_job *, int64_t budget_ns, bool *finished, tb_error *);
/* Every thread asks `yields` between a few steps: true ends the advance before its time. NULL, as at
 * first: nobody is asked. */
void tb_grasp_job_set_yields(tb_grasp_job *, bool (*yields)(const void *context),
                             const void *context);
/* The next result in the order of the poses, valid until the next call; NULL: not ready yet. */
const tb_grasp_result *tb_grasp_job_next(tb_grasp_job *);
tb_grasp_progress tb_grasp_job_progress(const tb_grasp_job *);
/* The compiled world of the unperturbed copies; what was left out or replaced is among its
 * warnings' count. Borrowed. */
const tb_model *tb_grasp_job_model(const tb_grasp_job *);
int32_t tb_grasp_job_number_of_warnings(const tb_grasp_job *);
const char *tb_grasp_job_warning(const tb_grasp_job *, int32_t index);
double tb_grasp_job_seconds(const tb_grasp_job *); /* of the protocol, without early ends */

/* Wilson's score interval of a proportion: `successes` of `trials` at a confidence in (0, 1). */
void tb_wilson_interval(int64_t successes, int64_t trials, double confidence, double *lower,
                        double *upper);

/* Ball and volume of the convex hull of points in 6 dimensions (count x 6): the radius of the
 * largest ball about zero that lies in it, 0 if zero is not inside. Flat sets give 0 and 0. */
tb_status tb_wrench_space(const double *wrenches, int32_t count, double *epsilon, double *volume,
                          tb_error *error);

typedef struct tb_grasp_sampling {
    int32_t count;
    uint64_t seed;
    double opening;     /* m, largest distance of the two contacts */
    double friction;    /* mu: both contacts lie in each other's friction cone */
    double axis[3];     /* closing direction of the hand, tool frame */
    double approach[3]; /* the way the hand comes, tool frame; normal to axis */
    /* world; of the ways to come about the closing axis, those are drawn that come within `spread`
     * (rad) of this direction. In the object's frame. */
    double from_above[3];
    double spread;
} tb_grasp_sampling;

tb_grasp_sampling tb_grasp_sampling_defaults(void);

/* Antipodal grasps: pairs of surface points whose line lies in both friction cones, the tool frame
 * in their middle. Writes up to `count` poses (names NULL) and their number to *found, which is
 * less where few pairs are there. INVALID_ARGUMENT names what makes no sense: an object that has not
 * exactly one body on its world, or nothing that collides. */
tb_status tb_grasp_sample(const tb_scene *object, const tb_grasp_sampling *, tb_grasp_pose *poses,
                          int32_t *found, tb_error *);

/* ---- contact problems on their own ----------------------------------------------------------- */

typedef struct tb_problem_file tb_problem_file;

/* Reads a problem: text (local or global form) or FCLIB HDF5, by content. */
tb_status tb_problem_load(const char *path, tb_problem_file **, tb_error *);
/* The same from memory; `name` stands for the file in messages. */
tb_status tb_problem_load_memory(const void *bytes, size_t size, const char *name,
                                 tb_problem_file **, tb_error *);
void tb_problem_destroy(tb_problem_file *);
/* Writes text (".dat") or FCLIB HDF5 (".hdf5"), by extension. */
tb_status tb_problem_save(const tb_problem_file *, const char *path, tb_error *);

typedef struct tb_problem_info {
    int32_t dimension; /* 2 or 3 */
    int32_t contacts, rows;
    bool global, dense;
    double asymmetry; /* |W - W'| / |W|, Frobenius */
} tb_problem_info;

tb_problem_info tb_problem_describe(const tb_problem_file *);

typedef struct tb_problem_result {
    tb_status status; /* OK, NOT_CONVERGED, DIVERGED */
    double residual;  /* natural map at rho = 1 in De Saxcé form over ||q||, double */
    int32_t iterations;
    double seconds;
    char solver[16];
    int32_t cycle; /* staggered: turns after which its sets came back when it gave up; else 0 */
} tb_problem_result;

/* Solves from zero; reactions and velocities (rows each) may be NULL. CANCELLED by the options. */
tb_status tb_problem_solve(const tb_problem_file *, const tb_solve_options *, double *reactions,
                           double *velocities, tb_problem_result *, tb_error *);

/* ---- prox iterations with a stored T -------------------------------------------------------- */

/* The contact problem of one step as Nützi iterates it (Computing Non-Smooth Dynamics on the GPU, ETH
 * 2011): lambda <- prox(T lambda + d) with T = I - R^-1 G, d = -R^-1 c, and
 * R_i^-1 = alpha diag(1 / G_ii(1,1), 1 / max(G_ii(2,2), G_ii(3,3)) twice) for contact i (4.40 to 4.43).
 * Contacts have three rows: normal, tangent 1, tangent 2. T is kept in blocks of 3 x 3. */
typedef struct tb_prox_system tb_prox_system;

/* A random system of his section 6.1: G dense, symmetric and diagonally dominant, its entries off the
 * diagonal uniform in [-1, 1]; c uniform in [-1, 1] with most normal entries negative; mu 0.5.
 * INVALID_ARGUMENT; RESOURCE_EXHAUSTED with the bytes wanted. */
tb_status tb_prox_system_random(int32_t contacts, uint64_t seed, double alpha, tb_prox_system **,
                                tb_error *);
/* The system of a problem whose contacts all are Coulomb's; UNSUPPORTED names another law. */
tb_status tb_prox_system_of_problem(const tb_problem_file *, double alpha, tb_prox_system **,
                                    tb_error *);
void tb_prox_system_destroy(tb_prox_system *); /* NULL is fine */
int32_t tb_prox_system_contacts(const tb_prox_system *);
int64_t tb_prox_system_blocks(const tb_prox_system *); /* of 3 x 3 that T has */

/* The variants by name: `jor1` to `jor7` of his table 6.1 (there is no `jor6`), `full-sor-32` and `-64`,
 * `relaxed-sor-2` to `-128`, his two sparse designs, and `jor` and `full-sor`, which go through all
 * iterations in one launch of a card. NULL past the last. */
const char *tb_prox_variant_name(int32_t index);
const char *tb_prox_variant_summary(int32_t index);

typedef struct tb_prox_options {
    const char *variant; /* borrowed */
    tb_precision precision;
    tb_backend_choice backend; /* on the processor every variant has a loop in the card's order */
    int32_t device;
    int32_t threads;      /* of `jor7`; 0: all processors */
    int32_t iterations;   /* at most */
    int32_t check_period; /* the stop test is made at each so-manieth iteration; 0: never */
    double relative,
        absolute; /* |change| <= relative |lambda| + absolute for every row, N s (4.49) */
} tb_prox_options;

/* `jor5` in double on the CPU, 5000 iterations, a test at every one, 1e-7 and 1e-7 N s. */
tb_prox_options tb_prox_defaults(void);

typedef struct tb_prox_result {
    int32_t iterations;
    bool converged;      /* by the stop test */
    double residual;     /* |lambda - prox(T lambda + d)| / |d|, 2-norms, in double */
    double seconds;      /* of the iterations, with the data where they are used */
    double copy_seconds; /* to the card and back; 0 on the processor */
    int64_t bytes;       /* of T as this variant reads it once */
} tb_prox_result;

/* Iterates from `lambda` (3 numbers a contact, N s), which receives the result.
 * INVALID_ARGUMENT, NOT_FOUND names the field; RESOURCE_EXHAUSTED: T does not fit, with the bytes
 * wanted; UNSUPPORTED: the variant needs a library that is not there; UNAVAILABLE, ABORTED: the card. */
tb_status tb_prox_iterate(const tb_prox_system *, const tb_prox_options *, double *lambda,
                          tb_prox_result *, tb_error *);

#ifdef __cplusplus
}
#endif

#endif
