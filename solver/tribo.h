/* libtribo: exact Coulomb contact dynamics.
 *
 * This is the library's first public header; tribo_qp.h and tribo_poulsen.h extend it. A caller
 * describes a scene (`tb_scene`, by the builder below or from MJCF, URDF, OBJ and STL files),
 * compiles it into an immutable `tb_model`, makes one `tb_state` per world and steps states with a
 * `tb_stepper`. Every step of every world returns a `tb_certificate`: the residual and errors of
 * that step.
 *
 * Conventions. SI units, radians, seconds. World frame right-handed, Z up. Quaternions are
 * (w, x, y, z), unit, and rotate body coordinates into the parent's or world's. Arrays are
 * row-major. Contact normals point from shape A to shape B in world axes; a positive gap is a
 * separation. Impulses are N s (N m s for torques), forces N (N m).
 *
 * Errors. A function that can fail returns `tb_status` and, where it has a `tb_error *` (may be
 * NULL), writes a message that names the faulty argument, element or file. The library never aborts
 * or exits.
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

/* Cause and location of a failure. The size is fixed, so that an error can be filled when memory
 * runs out. */
typedef struct tb_error {
    tb_status status;
    char message[TB_ERROR_MESSAGE_SIZE]; /* one complete line of English */
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

/* Identifies a body, joint, shape or other element of a scene. A handle carries its kind and its
 * scene's stamp, so that functions refuse handles of another scene or kind. A zeroed handle
 * means "none"; as a body it means the world. */
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

/* Source of body masses when a scene is compiled. */
typedef enum tb_inertia_source {
    TB_INERTIA_AUTO,   /* the given inertia if the body has one, else from the shapes */
    TB_INERTIA_SHAPES, /* always from the shapes */
    TB_INERTIA_GIVEN   /* only as given */
} tb_inertia_source;

typedef struct tb_scene_def {
    const char *name;  /* copied; may be NULL */
    double gravity[3]; /* m/s^2, world */
    double dt;         /* s; the step that the scene asks for */
    tb_inertia_source inertia_source;
    double minimum_mass;    /* kg; raises the masses of bodies below it; 0: off */
    double minimum_inertia; /* kg m^2; the same for principal moments; 0: off */
    double total_mass;      /* kg; scales all masses and inertias to this sum; 0: off */
    bool balance_inertia;   /* repair moments that break the triangle inequality by averaging */
    bool filter_parent;     /* no contact between a body and its parent (static parents excepted) */
    double density;         /* kg/m^3, of the medium around all bodies; 0: none */
    double viscosity;       /* Pa s, of that medium */
    double wind[3];         /* m/s, world: velocity of the medium */
    int32_t inertia_groups[2]; /* shapes of groups in this closed range count for inertia */
} tb_scene_def;

typedef struct tb_body_def {
    const char *name;      /* copied; unique if given */
    tb_handle parent;      /* zeroed: the world */
    double position[3];    /* m, of the body frame in the parent's frame, all joints at reference */
    double orientation[4]; /* body to parent */
    bool kinematic;        /* moves by prescribed poses and velocities; child of the world, no
                              joints */
    bool has_inertia;      /* the next four fields are used */
    double mass;           /* kg, > 0 for a moving body */
    double com[3];         /* m, centre of mass in the body frame */
    double inertia_frame[4]; /* orientation of the inertia's axes in the body frame */
    double inertia[6];       /* kg m^2 about the centre of mass: xx, yy, zz, xy, xz, yz */
    /* fraction of the body's weight that an upward force at its centre of mass cancels; 1: the
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
    double spring_reference; /* rad or m: rest coordinate of the spring */
    double damping;          /* N s/m or N m s/rad */
    double dry_friction;     /* N or N m, largest */
    double armature;         /* kg or kg m^2, rotor inertia added to the dof */
    double reference;        /* rad or m: the coordinate in the described pose */
    /* A spring's force at stretch x is -x (stiffness + s[0] x + s[1] x^2), a damper's at speed v is
     * -v (damping + d[0] |v| + d[1] v^2). The stretch of a ball joint is its rotation vector;
     * the stretch of a free joint is its displacement (m) and its rotation vector (rad) from the
     * described pose. There x is the length of the vector. */
    double stiffness_polynomial[2], damping_polynomial[2];
    /* Bounds of the sum of all actuator forces on the joint (hinge, slide); N or N m. */
    bool actuator_force_limited;
    double actuator_force_lower, actuator_force_upper;
    /* The joint's share of its bodies' gravity compensation counts as an actuator force. */
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

/* Rows of a contact. Of two shapes with equal priority the larger kind applies. */
typedef enum tb_contact_kind {
    TB_CONTACT_FRICTIONLESS = 1,
    TB_CONTACT_COULOMB = 3, /* normal and two tangents */
    TB_CONTACT_SPIN = 4,    /* plus Coulomb-Contensou spin about the normal */
    TB_CONTACT_ROLLING = 6  /* plus rolling about both tangents */
} tb_contact_kind;

typedef struct tb_surface {
    tb_contact_kind kind;
    double friction;    /* mu, >= 0; the larger of two shapes applies */
    double restitution; /* Newton's e, 0 to 1; the larger of two shapes applies */
    /* m; the spin torque is at most 2/3 mu spin_radius lambda_n;
     * the larger torque of two shapes applies */
    double spin_radius;
    double rolling_length; /* m; the rolling torque is at most rolling_length lambda_n */
    /* N, >= 0: each contact pulls its shapes together with this force, so that it opens only where
     * they are pulled apart by more, and friction is bounded by mu times the compressive impulse
     * that remains. The adhesions of two shapes of equal priority add. Reported normal impulses
     * include the pull. */
    double adhesion;
    /* m, >= 0: widest gap at which adhesion acts; the ranges of two shapes add. 0: contacts that
     * touch */
    double adhesion_range;
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
    /* How viewers show the shape, without effect on motion: red, green, blue, opacity, 0 to 1, and
     * the name of a material (copied; NULL: none). */
    bool has_colour;
    double colour[4];
    const char *material;
} tb_shape_def;

/* Mass of a mesh without a watertight surface (MJCF's mesh inertia). */
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
    int32_t most_hull_vertices; /* largest number of hull vertices, >= 4; 0: no limit */
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
    TB_TENDON_SPHERE,   /* between two sites: the tendon wraps around the sphere where it
                           obstructs the straight path */
    TB_TENDON_CYLINDER, /* the same, an infinite cylinder along z of its frame */
    TB_TENDON_PULLEY    /* a new branch begins; the tendon adds its length times 1 / divisor */
} tb_tendon_point_kind;

/* One element of a spatial tendon's path. A side point makes the tendon pass a sphere or
 * cylinder on that side; a side point closer to the position than the radius makes the tendon
 * run inside. */
typedef struct tb_tendon_point {
    tb_tendon_point_kind kind;
    tb_handle body;     /* zeroed: the world; ignored for a PULLEY */
    double position[3]; /* m, body frame */
    double orientation[4];
    double radius;  /* m; SPHERE and CYLINDER */
    double divisor; /* PULLEY */
    bool has_side;
    tb_handle side_body; /* zeroed: the world */
    double side[3];      /* m, in the frame of side_body */
} tb_tendon_point;

/* Fixed: length = sum of coefficient times joint coordinate; hinge and slide joints only.
 * Spatial: length = the shortest path along the points, in m; every branch begins and ends with
 * a site, and a sphere or cylinder lies between two sites. A tendon has either joints or points. */
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
    double armature;                   /* kg, or kg m^2 where the length is in rad: inertia that
                                          moves with the tendon */
    /* The spring's force is -x (stiffness + p0 x + p1 x^2) at a stretch x, the damper's
     * -v (damping + p0 |v| + p1 v^2). */
    double stiffness_polynomial[2], damping_polynomial[2];
    /* N: bounds on the sum of the forces (before the gear) of the tendon's actuators, which are
     * scaled to meet them */
    bool actuator_force_limited;
    double actuator_force_lower, actuator_force_upper;
} tb_tendon_def;

typedef enum tb_activation {
    TB_ACTIVATION_NONE,       /* the control acts directly */
    TB_ACTIVATION_INTEGRATOR, /* d act/dt = control */
    TB_ACTIVATION_FILTER,     /* d act/dt = (control - act) / time_constant */
    TB_ACTIVATION_MUSCLE      /* a filter whose time constant depends on act and control */
} tb_activation;

/* Dependence of an actuator's gain or bias on its length and velocity. */
typedef enum tb_actuator_curve {
    TB_CURVE_AFFINE, /* c0 + c1 length + c2 velocity */
    TB_CURVE_MUSCLE  /* MuJoCo's FLV curves: active force as a gain, passive force as a bias */
} tb_actuator_curve;

/* Meaning of the controls of an orientation servo; see tb_actuator_def. */
typedef enum tb_orientation_input {
    TB_ORIENTATION_NONE,
    TB_ORIENTATION_ROTATION_VECTOR, /* rad, three controls */
    TB_ORIENTATION_QUATERNION       /* w x y z, four controls; normalized, zero is the identity */
} tb_orientation_input;

/* How a delayed control is found between two samples. */
typedef enum tb_interpolation {
    TB_INTERPOLATION_HOLD,
    TB_INTERPOLATION_LINEAR,
    TB_INTERPOLATION_CUBIC /* Catmull-Rom */
} tb_interpolation;

/* Parameters of a muscle: MuJoCo's gainprm and biasprm with the peak force resolved. */
typedef struct tb_muscle {
    double range[2];          /* normalized lengths at the ends of the actuator's length range */
    double force;             /* N, peak active force */
    double shortest, longest; /* normalized lengths between which the muscle is active */
    double fastest;           /* optimal lengths per second, shortening */
    double passive;           /* passive force at the longest length, of the peak force */
    double lengthening;       /* active force when lengthened fast, of the peak force */
} tb_muscle;

/* force = (gain . (1, length, velocity)) * x + bias . (1, length, velocity), clamped to the force
 * limits, with x the clamped control or activation; the joint receives gear times that force.
 * length and velocity are gear times the joint's or the tendon's length and velocity. The
 * stepper integrates every term that is affine in velocity or length implicitly, under the force
 * limits. */
typedef struct tb_actuator_def {
    const char *name;
    /* Joint, tendon, site or body. On a site, the force acts along and about the axes of the
     * site's frame. With a reference site, the reference's axes are used, and the pose of the
     * target is measured from the reference. On a body, the force pulls the body towards the
     * shapes that touch it, in equal shares over its contacts (adhesion). */
    tb_handle target;
    tb_handle reference; /* site, or none */
    /* m, > 0: a slider-crank. The target is the pin between crank and rod, the reference the pin
     * between rod and slider, which moves along its Z axis; rod_length is the length of the rod. */
    double rod_length;
    bool in_parent; /* ball, free: the gear's torque is in the parent's axes, not the child's */
    double gear[6]; /* one number for hinge, slide, tendon, slider-crank; three for ball; six for
                       free and site: force, then torque; none for a body */
    tb_actuator_curve gain_curve, bias_curve;
    double gain[3];
    double bias[3];
    tb_muscle muscle_gain, muscle_bias; /* used where the curve is TB_CURVE_MUSCLE */
    double length_range[2];             /* of muscles: shortest and longest length, m or rad */
    bool disabled;                      /* exerts no force and keeps its activation */
    bool early;                         /* uses the activation at the end of the step */
    bool control_limited;
    double control_lower, control_upper;
    bool force_limited;
    double force_lower, force_upper; /* N or N m, before the gear */
    tb_activation activation;
    double time_constant; /* s */
    /* s, s, dimensionless: activation and deactivation of a muscle, width of the range of
     * (control - act) over which the time constant blends between them */
    double muscle_times[3];
    bool activation_limited;
    double activation_lower, activation_upper;
    /* The actuator is a further input of the nearest one before it that is not such an input: its
     * clamped control times gain[0] is added to that actuator's force. All else but the control
     * limits is ignored. */
    bool is_input;
    /* Integral action: integral_gain times z is added to the force, dz/dt = x - length with
     * |z| <= integral_limit (0: no limit). z is an activation; `early` uses its value at the end of
     * the step. */
    double integral_gain, integral_limit;
    /* 1/s: x follows the control at this rate at most (0: at once). The followed value is an
     * activation, before that of the integral. With slew_from_control the first step of a world at
     * time 0 takes the control itself. */
    double slew_rate;
    bool slew_from_control;
    /* Orientation servo on a ball joint: three actuators in a row, whose gears are the joint's axes
     * X, Y, Z, turn it to the orientation that the controls of the three give together (for a
     * quaternion a fourth actuator follows, an input of gain 0). x - length is the component of the
     * rotation vector from the present to the wanted orientation, in the child's axes. */
    tb_orientation_input orientation;
    /* The control acts delay (s) after it was set: `samples` controls of past steps are kept, two
     * activations each behind all others of the model; before the oldest, the oldest counts. */
    double delay;
    int32_t samples;
    tb_interpolation interpolation;
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
    bool has_anchor_b;     /* false: anchor_b is the place of anchor_a in the described pose */
    double orientation[4]; /* WELD: of body B in A */
    bool has_orientation;  /* false: as in the described pose */
    double polynomial[5];  /* a - a0 = p0 + p1 y + p2 y^2 + p3 y^3 + p4 y^4, y = b - b0; a0 and b0
                          are the coordinates in the described pose */
    bool disabled;
} tb_equality_def;

/* A pair of shapes that collides regardless of masks, with its own surface. */
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

/* Each function adds one element, copies the arrays and names of its definition and writes the
 * handle (may be NULL). INVALID_ARGUMENT names the field: numbers that are not finite, negative
 * sizes or masses, an inertia that breaks the triangle inequality, a handle of another scene, a
 * name used twice in its kind. RESOURCE_EXHAUSTED beyond TB_SCENE_LIMIT elements of a kind. */
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

/* Makes two shapes never collide, regardless of masks, pairs and excludes of bodies. */
tb_status tb_scene_exclude_shapes(tb_scene *, tb_handle shape_a, tb_handle shape_b, tb_error *);

/* Replaces the options given to tb_scene_create. */
tb_status tb_scene_set_options(tb_scene *, const tb_scene_def *, tb_error *);
tb_scene_def tb_scene_options(const tb_scene *); /* name borrowed from the scene */

/* Finds an element by name; returns a zeroed handle if the scene has none. */
tb_handle tb_scene_find(const tb_scene *, tb_handle_kind kind, const char *name);

/* Adds a warning for the scene's author (an ignored element, for example). */
tb_status tb_scene_warn(tb_scene *, const char *message, tb_error *);
/* Whether a shape that collides is a triangle mesh or a height field; see tb_model_has_meshes. */
bool tb_scene_has_meshes(const tb_scene *);
int32_t tb_scene_number_of_warnings(const tb_scene *);
const char *tb_scene_warning(const tb_scene *, int32_t index);

enum { TB_SCENE_LIMIT = 4000000 };

/* ---- importers ------------------------------------------------------------------------------- */

/* Source of the files that a scene refers to. */
typedef struct tb_file_source {
    /* Reads a whole file; `path` is the path in the referring file, joined to that file's folder
     * and normalised. `*bytes` is malloc'ed; the library takes and frees it. NOT_FOUND if the
     * file does not exist. */
    tb_status (*read)(void *context, const char *path, unsigned char **bytes, size_t *size,
                      tb_error *error);
    void *context;
} tb_file_source;

/* Treatment of pairs of shapes that may collide and overlap by more than the contact slop (1e-6 m)
 * in the first pose. The model has a warning for each of them under every policy, the deepest
 * first. */
typedef enum tb_overlap_policy {
    /* The shapes collide; the stepper pushes them apart from the first step on. This is the
     * default, because a contact silently left out lets a finger pass through the palm. */
    TB_OVERLAPS_KEEP,
    /* Links of one mechanism (below one body that is not the world) and pairs that no joint
     * separates (tb_overlap.persists) never collide. Other bodies that begin too deep in each
     * other, such as a mug in a table, still collide. */
    TB_OVERLAPS_IGNORE,
    TB_OVERLAPS_ERROR /* FAILED_PRECONDITION names the deepest pair */
} tb_overlap_policy;

typedef struct tb_import_options {
    const tb_file_source *files; /* NULL: the disk. Otherwise the importer never reads the disk */
    const char *package_path;    /* ':'-separated roots for package:// addresses; may be NULL */
    size_t file_limit;           /* bytes; larger files are refused */
    int32_t depth_limit;         /* nested elements and includes */
    double density;              /* kg/m^3 for OBJ and STL files loaded as scenes */
    bool no_files;   /* refuse references to other files: for text received from a network */
    bool fixed_base; /* URDF: the root link is fixed to the world (the default) */
    /* repair principal moments that break the triangle inequality by averaging them, regardless
     * of the file's own option (tb_scene_def.balance_inertia) */
    bool balance_inertia;
    /* keep geometry that is only seen (MJCF's geoms without contact and mass, URDF's <visual>) as
     * shapes that neither collide nor weigh; an unreadable mesh of that kind is left out with a
     * warning */
    bool visuals;
    tb_overlap_policy overlaps;   /* for tb_model_load */
    const char *overlap_keyframe; /* the first pose: name or number; NULL: the reference pose */
    tb_log log;                   /* receives warnings too */
} tb_import_options;

tb_import_options tb_import_defaults(void);

/* Loads a scene from a file of any known format: MJCF or URDF (by root element), a zip archive
 * of an MJCF with its files (.mjz), or a mesh (OBJ, STL, DAE, MSH: one free body). `options` may
 * be NULL. Errors name file, line and element. */
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

/* A scene built into the library: from its README or from a thesis that it implements. */
typedef struct tb_named_scene {
    const char *name, *summary; /* "poulsen_grid_8"; one line of English */
    const char *source;         /* thesis and section, or "README" */
} tb_named_scene;

/* Describes the scene of an index, from 0. Past the last scene it returns false and a zeroed
 * description. */
bool tb_named_scene_describe(int32_t index, tb_named_scene *scene);
/* Writes a named scene as MJCF, the same bytes every time, without references to other files.
 * The caller frees *text (size bytes and a zero) by tb_bytes_destroy. NOT_FOUND names an unknown
 * scene. */
tb_status tb_named_scene_mjcf(const char *name, unsigned char **text, size_t *size,
                              tb_error *error);

/* The counts that Poulsen publishes for his scenes: contacts, blocks of A = J W J' and colours
 * of the contact graph. In that graph the ground is a body like any other. */
enum { TB_POULSEN_COLOURS = 16 };
typedef struct tb_poulsen_counts {
    int32_t bodies, contacts; /* bodies include the ground */
    int64_t nnz;              /* blocks of A */
    int32_t largest_degree;   /* largest degree d_e of a contact */
    int32_t greedy_colours;   /* first-free, before small colours are merged */
    int32_t colours;          /* after merging; sizes below */
    int32_t unsafe;           /* 1: the last colour is the unsafe one */
    int32_t size[TB_POULSEN_COLOURS];
    int32_t balanced_colours, balanced_smallest, balanced_largest;
} tb_poulsen_counts;

/* Counts of a named scene; NOT_FOUND if the scene is not one of Poulsen's. */
tb_status tb_poulsen_count(const char *scene, tb_poulsen_counts *counts, tb_error *error);

/* ---- models: immutable, shared, content-addressed -------------------------------------------- */

typedef struct tb_model tb_model;

/* Compiles a scene; the scene may be destroyed afterwards. */
tb_status tb_scene_compile(const tb_scene *, tb_model **, tb_error *);
void tb_model_destroy(tb_model *); /* NULL is fine; every state of the model must be destroyed
                                      before */

/* The same, with a policy for shapes that overlap in the first pose: the reference pose
 * (keyframe NULL) or the pose of a keyframe (name or number). NOT_FOUND for an unknown keyframe. */
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
/* Whether triangle meshes or height fields can collide in the model. TB_BACKEND_AUTO steps such
 * worlds on the CPU, because a warp takes longer for a mesh pair than a core does
 * (tests/bench/gpu/results/README.md). */
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

/* Compiled index of an element by kind and name; -1 if the model has none. */
int32_t tb_model_find(const tb_model *, tb_handle_kind kind, const char *name);
/* Name of an element, "" if it has none or the index is out of range. */
const char *tb_model_thing_name(const tb_model *, tb_handle_kind kind, int32_t index);

typedef struct tb_body_info {
    int32_t parent;
    bool kinematic;
    double mass;         /* kg */
    double com[3];       /* m, body frame */
    double inertia[6];   /* kg m^2 about the centre of mass in body axes: xx, yy, zz, xy, xz, yz */
    double principal[3]; /* kg m^2, descending */
    double position[3];  /* m, body frame in the parent's frame, all joints at their reference */
    double orientation[4];
} tb_body_info;

tb_status tb_model_body_info(const tb_model *, int32_t body, tb_body_info *);

typedef struct tb_joint_info {
    int32_t body;
    tb_joint_type type;
    int32_t coordinate, dof; /* first of this joint in q and u */
    int32_t coordinates, dofs;
    bool limited;
    double lower, upper;
    double position[3], axis[3]; /* m, anchor; unit; body frame */
} tb_joint_info;

tb_status tb_model_joint_info(const tb_model *, int32_t joint, tb_joint_info *);

typedef struct tb_shape_info {
    tb_shape_type type;
    int32_t body;
    double position[3], orientation[4]; /* m, shape frame in the body frame */
    double size[3];                     /* m, see tb_shape_type */
    bool collides;                      /* with anything at all */
    int32_t group;                      /* as the scene gives it */
    double friction;
    bool has_colour;
    double colour[4];     /* red, green, blue, opacity, 0 to 1 */
    const char *material; /* "": none; the model's */
    int32_t mesh;         /* of CONVEX and MESH: index among the meshes; else -1 */
    int32_t height_field; /* index among the height fields, else -1 */
} tb_shape_info;

/* These give INVALID_ARGUMENT for an index out of range, as tb_model_body_info does. */
tb_status tb_model_shape_info(const tb_model *, int32_t shape, tb_shape_info *);

typedef struct tb_site_info {
    int32_t body;
    double position[3], orientation[4]; /* m, in the body frame */
} tb_site_info;

tb_status tb_model_site_info(const tb_model *, int32_t site, tb_site_info *);

typedef struct tb_actuator_info {
    tb_handle_kind target_kind; /* JOINT, TENDON, SITE or BODY */
    int32_t target;
    bool control_limited, force_limited;
    double control_lower, control_upper;
    double force_lower, force_upper; /* N or N m, before the gear */
    double gear[6];
} tb_actuator_info;

tb_status tb_model_actuator_info(const tb_model *, int32_t actuator, tb_actuator_info *);

/* Triangles to draw, in the frame of the shapes that use the mesh. */
typedef struct tb_triangles {
    int32_t number_of_vertices, number_of_triangles;
    float *vertices;    /* x 3, m */
    int32_t *triangles; /* x 3, counter-clockwise seen from outside */
} tb_triangles;

/* Triangles of a mesh, or (hull) of its convex hull as shapes collide. A mesh without triangles of
 * its own gives those of its hull. NOT_FOUND for the hull of a mesh that no shape collides as; the
 * caller frees the arrays by tb_triangles_free, also after an error. */
tb_status tb_model_mesh(const tb_model *, int32_t mesh, bool hull, tb_triangles *, tb_error *);
void tb_triangles_free(tb_triangles *);
/* Vertices and triangles of a mesh as the scene gives them; 0 for an index out of range. */
void tb_model_mesh_size(const tb_model *, int32_t mesh, int32_t *vertices, int32_t *triangles);

/* A height field of a model; arrays are the model's. */
int32_t tb_model_number_of_height_fields(const tb_model *);
/* Shape of a height field; the heights (rows x columns, m) are a copy that the caller frees by free.
 * RESOURCE_EXHAUSTED. */
tb_status tb_model_height_field(const tb_model *, int32_t field, tb_height_field_def *,
                                float **heights, tb_error *);
/* Hex SHA-256 of the content of a mesh or height field (kind TB_HANDLE_MESH or
 * TB_HANDLE_HEIGHT_FIELD): equal geometry has equal digests in all models. Takes time in proportion
 * to its size. An empty text for an index out of range. */
void tb_model_asset_sha256(const tb_model *, tb_handle_kind kind, int32_t index, char hex[65]);

/* ---- states: one world each ------------------------------------------------------------------ */

typedef struct tb_state tb_state;

/* A world in the model's reference pose at rest, time 0. The model must outlive it. */
tb_status tb_state_create(const tb_model *, tb_state **, tb_error *);
void tb_state_destroy(tb_state *);
const tb_model *tb_state_model(const tb_state *);

/* Resets the whole state to a keyframe (index), or to the reference pose (-1). */
tb_status tb_state_reset(tb_state *, int32_t keyframe, tb_error *);

double tb_state_time(const tb_state *);
int64_t tb_state_steps(const tb_state *);

/* Borrowed arrays, valid until the state is destroyed: q (coordinates), u (dofs), controls
 * (actuators), activations. Write through the setters only. For worlds that stay on a GPU
 * (tb_step_options.resident), each call copies newer data from the device, and later steps leave
 * the arrays unchanged until the next call. A lost GPU copies nothing; tb_states_fetch reports
 * it. */
const double *tb_state_q(const tb_state *);
const double *tb_state_u(const tb_state *);
const double *tb_state_controls(const tb_state *);
const double *tb_state_activations(const tb_state *);

/* INVALID_ARGUMENT for a wrong count or numbers that are not finite. Quaternions are normalised.
 * Setting q keeps the contact history: cached impulses are only a warm start. */
tb_status tb_state_set_q(tb_state *, const double *q, int32_t count, tb_error *);
tb_status tb_state_set_u(tb_state *, const double *u, int32_t count, tb_error *);
tb_status tb_state_set_controls(tb_state *, const double *controls, int32_t count, tb_error *);
tb_status tb_state_set_control(tb_state *, int32_t actuator, double value, tb_error *);

/* Generalized force on every dof (N, N m), held until changed; NULL clears. */
tb_status tb_state_set_applied_force(tb_state *, const double *force, int32_t count, tb_error *);
/* Force (N) and torque (N m) on a body at its centre of mass in world axes, held until changed. */
tb_status tb_state_set_body_wrench(tb_state *, int32_t body, const double wrench[6], tb_error *);

/* Pose and velocity (linear m/s of the body origin, angular rad/s, world axes) of a kinematic body
 * at the start of the next step; the body keeps this velocity until the next call. */
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

/* Lengths of all tendons (m, or rad) and their Jacobian with respect to the dofs (tendons x
 * dofs, row-major; may be NULL). For tests and planners. */
tb_status tb_state_tendons(const tb_state *, double *lengths, double *jacobian, tb_error *);

/* Two shapes that may collide and overlap. Their bodies are distinct, and neither welded
 * together, parent and child, nor excluded. */
typedef struct tb_overlap {
    int32_t shape_a, shape_b; /* model indices, a < b */
    int32_t body_a, body_b;   /* of the shapes */
    double depth;             /* m, > 0: depth of the deepest contact point in this pose */
    /* number of bodies with joints on the tree path from one body to the other; 1: neighbours
     * across a joint */
    int32_t joints;
    bool linked; /* parts of one mechanism: both bodies descend from, or one is, a common body
                    other than the world */
    /* m, smallest depth over the sampled joint poses; 0: the shapes separate in some pose, or
     * can move anywhere (free joints, kinematic bodies, slides without range). 0 without samples */
    double least_depth;
    bool persists; /* least_depth is above the slop: no sampled pose separates the shapes */
} tb_overlap;

/* Lists the pairs that overlap by more than `slop` (m, >= 0) in the state's pose, the deepest
 * first.
 * `samples` (0 to 65536, rounded up to a power of two; 64 is usual): number of poses that decide
 * `persists`. Every joint takes that many values spread evenly over its range, ends included
 * (hinges without range: a whole turn; ball joints: angles about random axes). Joints that
 * follow others by an equality follow them here too; other equalities are ignored. The same
 * model gives the same list. The caller frees *overlaps (NULL if there are none) by
 * tb_overlaps_destroy. INVALID_ARGUMENT for a slop or a number of samples out of range,
 * INVALID_ARGUMENT for poses that are not finite. */
tb_status tb_state_overlaps(const tb_state *, double slop, int32_t samples, tb_overlap **overlaps,
                            int32_t *count, tb_error *);
void tb_overlaps_destroy(tb_overlap *); /* NULL is fine */

/* A snapshot holds everything that the next step depends on, including the contact cache. A
 * restored state resumes bit-exactly. The caller frees `*bytes` by tb_bytes_destroy. Restoring
 * gives FAILED_PRECONDITION for a snapshot of another model or of a format that this build does
 * not read, DATA_LOSS for bytes that are damaged or no snapshot (snapshots carry a checksum,
 * except those of format 3, from older builds). On failure the state is unchanged. */
tb_status tb_state_snapshot(const tb_state *, unsigned char **bytes, size_t *size, tb_error *);
tb_status tb_state_restore(tb_state *, const unsigned char *bytes, size_t size, tb_error *);
void tb_bytes_destroy(unsigned char *bytes);
/* Makes an independent copy of a state. A world on a GPU is copied on the device. */
tb_status tb_state_fork(const tb_state *, tb_state **, tb_error *);
/* Copies worlds that stay on a GPU (tb_step_options.resident) to the host in one transfer.
 * Without this call, the first getter of each world copies that world. `contacts` adds their
 * contacts. ABORTED if the GPU is lost. */
tb_status tb_states_fetch(tb_state *const *states, int32_t worlds, bool contacts, tb_error *);
/* 64-bit hash of the content of a snapshot, for determinism tests. */
uint64_t tb_state_hash(const tb_state *);

/* State of a contact in the last step. */
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
/* By which a joint's limits pushed its coordinate in the last step: positive at the lower limit (of a
 * ball joint negative, against its angle). N s or N m s. */
double tb_state_limit_impulse(const tb_state *, int32_t joint);

/* ---- stepping -------------------------------------------------------------------------------- */

typedef enum tb_scheme {
    TB_SCHEME_STEWART_TRINKLE, /* gap term, no restitution by default: for grasps and stacks */
    TB_SCHEME_MOREAU,          /* midpoint, Newton restitution: for impacts */
    /* Betz's Stewart-Trinkle stepping in a plane: bodies of two slides and a hinge, convex
     * outlines, the whole gap is recovered within the step, no restitution. Double precision on
     * the CPU only. UNSUPPORTED names the element of the model that does not fit */
    TB_SCHEME_PLANAR,
    /* Soft contacts: forces from the overlap volume (Göteman and Roxling), integrated as ordinary
     * differential equations. solve.solver names the integrator (tb_integrator_name; "auto":
     * rkfix4), solve.tolerance is its tolerance; `iterations` of the certificate counts its
     * evaluations of all forces. Double precision on the CPU only. UNSUPPORTED names the element
     * of the model that does not fit */
    TB_SCHEME_VOLUME
} tb_scheme;

typedef enum tb_precision { TB_DOUBLE, TB_FLOAT } tb_precision;

/* Backend that steps the worlds. The CPU is built in. The GPU is a plug-in, searched once at the
 * first call that needs it; it is available if a driver and a card are available too. Both
 * backends run the same formulas: their results agree to rounding, and each backend gives the
 * same bytes every time. Before the driver enumerates cards, the library sets
 * CUDA_DEVICE_MAX_CONNECTIONS=32 in the environment unless the variable exists. A program whose
 * threads read the environment must therefore call a GPU function before it starts them. */
typedef enum tb_backend_choice {
    TB_BACKEND_CPU,
    TB_BACKEND_GPU, /* UNAVAILABLE without a GPU */
    TB_BACKEND_AUTO /* the GPU if available; the CPU otherwise and for meshes
                       (tb_model_has_meshes) */
} tb_backend_choice;

typedef struct tb_backend_info {
    const char *name; /* "cpu", "gpu" */
    int32_t devices;  /* usable devices; 0: none, and `reason` gives the cause */
    char reason[TB_ERROR_MESSAGE_SIZE];
} tb_backend_info;

typedef struct tb_device_info {
    char name[96];         /* "NVIDIA H200" */
    char driver[32];       /* version; "" for the CPU */
    char architecture[16]; /* "sm_90"; "" for the CPU */
    int32_t processors;    /* parallel units: multiprocessors of a GPU, threads of a CPU */
    uint64_t memory;       /* bytes of device memory; 0: uses the machine's */
} tb_device_info;

/* Describes the backend of a number in tb_backend_choice; INVALID_ARGUMENT past the last. */
tb_status tb_backend_describe(tb_backend_choice, tb_backend_info *);
/* Describes a device of a backend. NOT_FOUND names the device; UNAVAILABLE gives the cause why
 * the backend is missing. */
tb_status tb_device_describe(tb_backend_choice, int32_t device, tb_device_info *, tb_error *);

/* Memory and work counters of a device for this process, summed over all steppers. */
typedef struct tb_device_use {
    uint64_t memory_bytes;     /* device memory of this process */
    uint64_t pool_bytes;       /* part of memory_bytes reserved for worlds */
    uint64_t pool_used_bytes;  /* part of pool_bytes in use by worlds on the device */
    uint64_t model_bytes;      /* part of memory_bytes used by compiled models */
    int64_t worlds;            /* worlds kept between calls, on the device or swapped out */
    int64_t worlds_swapped;    /* worlds of these that are swapped out to the host */
    int64_t launches, fetches; /* steps begun; copies of worlds to the host */
    int64_t uploads, moves; /* worlds copied from the host; worlds copied on the device, for forks
                              and growth */
    int64_t evictions;      /* worlds swapped out to free memory for others */
    int64_t captures;       /* kinds of small calls captured as a CUDA graph */
    uint64_t copied_bytes;  /* to and from the device */
    double copy_seconds, compute_seconds; /* on the device, by its own clock */
    bool lost;
} tb_device_use;

/* All zero for the CPU, and for a device without steppers. Any thread may call this at any time. */
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
    /* (diag(G) / omega + lower triangle of G)^-1 (Betz 2.54): omega / G_ii, and every contact
     * sees the new impulses of the contacts before it; prox_serial and prox_cuda only */
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
    int32_t maximum_halvings; /* largest number of halvings of omega after divergence */
    int32_t threads;          /* 0: all processors; serial solvers ignore it */
    /* N s, prox_serial only: a larger normal impulse restarts the solve with half the omega and
     * twice the sweeps (Betz's p_nLimit); 0: off */
    double impulse_limit;
    /* prox_serial, prox_cuda: reproduces the errors of the thesis's listings (r computed before
     * omega is halved; gap instead of gap / h; a first sweep with mu = 1; on a GPU a fence in place
     * of the barriers, so that threads read velocities of other sweeps) */
    bool as_listed;
    /* the solver calls it between sweeps, on a GPU every 32 steps; true ends the solve as
     * CANCELLED. NULL: never */
    bool (*cancelled)(void *context);
    void *cancelled_context;
} tb_solve_options;

tb_solve_options tb_solve_defaults(void);

/* Names and one-line descriptions of the solvers, NULL past the last. */
const char *tb_solver_name(int32_t index);
const char *tb_solver_summary(int32_t index);

/* Names and one-line descriptions of the integrators of TB_SCHEME_VOLUME, NULL past the last. */
const char *tb_integrator_name(int32_t index);
const char *tb_integrator_summary(int32_t index);

typedef struct tb_step_options {
    double dt; /* s; 0: the model's */
    tb_scheme scheme;
    tb_precision precision;
    tb_solve_options solve;
    double recovery_speed; /* m/s, cap on the speed at which penetration is removed */
    /* m; gaps within +-slop count as touching and require no motion; larger gaps are rounded to
     * eighths of the slop. Without the slop, rounding errors make the gaps of redundant contacts
     * inconsistent, and solvers do not converge on them. */
    double contact_slop;
    /* in steps: contacts are also created for bodies that may meet within this time */
    double speculative_time;
    double contact_margin;    /* m, contacts are also created up to this gap */
    double closure_tolerance; /* m or rad; the stepper projects loops to this error after the
                                 step */
    /* m or rad; loop errors and limit violations up to this remain uncorrected if no motion
     * removes them */
    double closure_slop;
    int32_t threads;    /* worlds in parallel; 0: all processors */
    bool report_energy; /* fills the certificate's energies, at a small cost */
    tb_backend_choice backend;
    int32_t device; /* device of the backend, from 0; the CPU has one */
    /* On a GPU: worlds stay on the device after a step, and a getter copies them to the host.
     * Otherwise every step copies all worlds. Results are the same. */
    bool resident;
} tb_step_options;

tb_step_options tb_step_defaults(void);

typedef enum tb_certificate_flags {
    TB_CERTIFICATE_NOT_CONVERGED = 1, /* tolerance not reached within the iterations */
    TB_CERTIFICATE_DIVERGED = 2,      /* the world is frozen at its last good state */
    TB_CERTIFICATE_OVERFLOW = 4,      /* a capacity grew and the step was redone */
    TB_CERTIFICATE_HALVED = 8,        /* omega was halved at least once */
    TB_CERTIFICATE_DEGENERATE = 16,   /* a pair of shapes had no well-defined normal */
    /* not all gaps can be closed: the velocities are exact, the positions are the nearest
     * possible, and `worst_fault` names the gap with the largest error */
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
    double amount; /* m or rad, error of the gap, >= 0 */
} tb_fault;

/* Accuracy of a step: residual, errors and energies. Every result carries one. */
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
    /* J: contributions to the change, in double precision: position corrections (recovery and
     * the closing of loops); actuators; dampers of joints and tendons; contacts, dry friction,
     * limits and loops; applied forces and kinematic bodies. energy_unexplained is the rest: the
     * error of the step itself */
    double energy_recovery, energy_motors, energy_damping, energy_friction, energy_applied;
    double energy_unexplained;
    int32_t contacts, rows, iterations;
    char solver[16]; /* solver of the final impulses; "auto": the warm start was accepted
                        unchanged */
    /* quality of the warm start: blocks with a known status (open, stick, slip) before the
     * solve, and the number of them that kept it; sums over merged steps */
    int64_t known_statuses, kept_statuses;
    int64_t linear_solves;  /* solves of Newton's system, with new or kept factorizations */
    int64_t factorizations; /* factorizations of Newton's system */
    int64_t resets;         /* abandoned warm starts from the active sets of the last step */
    int32_t faults;         /* gaps that could not be closed, most in one step */
    tb_fault worst_fault;
} tb_certificate;

/* One line of English for a fault, with the model's names: "'pad' and 'mug' overlap by 0.3 mm
 * ...". */
void tb_fault_describe(const tb_model *, const tb_fault *, char *text, size_t size);

/* The certificate of the state's last step, zeroed before the first; borrowed until the next
 * step. */
const tb_certificate *tb_state_certificate(const tb_state *);

/* Combines the certificates of several steps: worst errors, last time, sums of iterations. */
void tb_certificate_merge(tb_certificate *into, const tb_certificate *other);

typedef struct tb_stepper tb_stepper;

/* Options and scratch memory for stepping. The scratch memory grows to the largest world stepped
 * so far; later steps allocate nothing. */
tb_status tb_stepper_create(const tb_step_options *, tb_stepper **, tb_error *);
void tb_stepper_destroy(tb_stepper *);
tb_step_options tb_stepper_options(const tb_stepper *);
tb_status tb_stepper_set_options(tb_stepper *, const tb_step_options *, tb_error *);
/* Bytes allocated so far by this stepper and its scratch. Tests use it to show that a warm step
 * allocates nothing. */
size_t tb_stepper_allocated(const tb_stepper *);
int64_t tb_stepper_allocations(const tb_stepper *);

/* Memory and transfer counters of a stepper. */
typedef struct tb_stepper_use {
    const char *backend; /* backend in use: "cpu" or "gpu", also with TB_BACKEND_AUTO */
    uint64_t host_bytes, device_bytes;
    int64_t allocations;                  /* number of allocations from the system or the driver */
    int64_t regrowths;                    /* launches repeated because a capacity was too small */
    uint64_t copied_bytes;                /* to and from the device */
    double copy_seconds, compute_seconds; /* on the device, by its own clock */
    bool lost; /* the device failed: every call returns ABORTED until the process restarts */
} tb_stepper_use;

tb_stepper_use tb_stepper_measure(const tb_stepper *);
/* Runs every kernel that a GPU step may need once on empty input, so that the first step has no
 * start-up cost. Returns OK at once on the CPU. */
tb_status tb_stepper_warm(tb_stepper *, tb_error *);

/* Steps one world `steps` times. `certificate` (may be NULL) merges all steps. DIVERGED freezes the
 * world; NOT_CONVERGED is a certificate status, not a failure. */
tb_status tb_step(tb_stepper *, tb_state *, int32_t steps, tb_certificate *, tb_error *);

/* Steps many worlds, of one or many models, in parallel. Results do not depend on the batch or on
 * the number of threads. certificates: `worlds` entries or NULL; zero for a world that made no
 * step. Returns the first failure. The other worlds are stepped all the same, unless the whole
 * call fails to begin (no memory, a lost device). */
tb_status tb_step_batch(tb_stepper *, tb_state *const *states, int32_t worlds, int32_t steps,
                        tb_certificate *certificates, tb_error *);

/* Contacts between bodies [first_a, end_a) and bodies [first_b, end_b) of a model. */
typedef struct tb_watch {
    int32_t first_a, end_a, first_b, end_b;
} tb_watch;

/* Result of a watch after a step. */
typedef struct tb_touch {
    double gap;     /* m, the smallest; INFINITY without a contact */
    double impulse; /* N s, the largest normal one; 0 without */
    /* smallest 1 - |tangential| / (mu normal), dimensionless, of the contacts that bear at least a
     * tenth of this impulse: 0 slides, 1 without a contact that bears */
    double margin;
    /* m, world, of the contacts with the smallest gap and with the smallest margin; 0 without */
    double nearest_position[3], weakest_position[3];
    int32_t nearest[2], weakest[2]; /* their shapes; -1: none */
} tb_touch;

enum { TB_COURSE_WATCHES = 4 };

/* Inputs and recordings of several steps of a world. One call runs all the steps, on a GPU
 * without the host in between. The caller owns the arrays; each has one row per step, and
 * several worlds may share inputs. With all fields but `steps` zero, the world only steps. */
typedef struct tb_course {
    int32_t steps; /* of this world */
    /* Inputs set before a step; NULL: the state's values remain. */
    /* steps x kinematic bodies (in the model's order) x 13: position, orientation, linear and angular
     * velocity, as tb_state_set_kinematic takes them */
    const double *kinematic;
    /* steps x kinematic bodies x 6, m/s^2 and rad/s^2 about the body's origin, world axes. A
     * kinematic body has a velocity but no acceleration. The bodies of the trees attached to one
     * therefore receive the inertial forces of this acceleration as wrenches, which replace
     * their previous body wrenches. */
    const double *accelerations;
    const double *controls; /* steps x actuators, as tb_state_set_controls takes them */
    /* Recordings after a step; NULL: not recorded. A world that diverges records only its
     * certificate then, and nothing in later steps. */
    double *q;                    /* steps x coordinates */
    double *moved;                /* steps x kinematic bodies x 13 */
    tb_touch *touches;            /* steps x number_of_watches */
    tb_certificate *certificates; /* steps */
    tb_watch watches[TB_COURSE_WATCHES];
    int32_t number_of_watches;
} tb_course;

/* Steps many worlds, each by its own course. The results are the same bytes as with a setter
 * call and a tb_step per step. The last inputs remain in the state; the course itself is not
 * part of the state. certificates: `worlds` entries, merged over the steps, or NULL.
 * INVALID_ARGUMENT, before any state changes, for numbers that are not finite, orientations of
 * length 0, and counts below zero or above TB_COURSE_WATCHES (field "courses"); otherwise as
 * tb_step_batch. */
tb_status tb_step_courses(tb_stepper *, tb_state *const *states, const tb_course *courses,
                          int32_t worlds, tb_certificate *certificates, tb_error *);

/* Sets the pose of a state to the pose that `course` recorded after a step, for inspection only.
 * The course must record q and moved. The state's model must have the same coordinates and
 * bodies as the course's. */
void tb_course_show(const tb_course *course, int32_t step, tb_state *shown);

/* Writes the contact problem of the world's next step to a file. */
tb_status tb_export_problem(tb_stepper *, const tb_state *, const char *path, tb_error *);

/* Cost of one method of finding near pairs or overlaps in the pose of a state. */
typedef struct tb_volume_measure {
    int32_t shapes;    /* that collide and have a box */
    int32_t intervals; /* of Morton codes; 0 for the others */
    int32_t pairs;     /* pairs whose boxes meet; for overlaps, pairs of two polyhedra */
    int32_t triangles; /* of the overlaps' surfaces; 0 for the pieces */
    int32_t mended;    /* overlaps that the pieces had to compute again */
    double volume;     /* m^3, of all overlaps */
    double seconds;    /* of one call, the least of several */
} tb_volume_measure;

/* Measures a method of Göteman and Roxling (2015) at a state's pose: "morton" and "brute" find near
 * pairs; "original", "reduced", "traversal" and "pieces" find the overlaps of the polyhedra among
 * them. cell: m, base cell of the Morton codes; 0: chosen by the boxes. NOT_FOUND for an unknown
 * method, UNSUPPORTED as TB_SCHEME_VOLUME. */
tb_status tb_state_measure_volume(const tb_state *, const char *method, double cell,
                                  tb_volume_measure *, tb_error *);

/* ---- grasps ---------------------------------------------------------------------------------- */

/* A grasp job simulates the grasps of one hand on one object. Each grasp is a separate world:
 * the hand follows a prescribed path, approaches, closes, lifts, shakes and holds. */

typedef struct tb_grasp_object {
    const tb_scene *scene; /* one body, free or without joints (with children); borrowed */
    double mass;           /* kg; 0: the scene's mass */
    double friction;       /* mu of every contact of the world; 0: the scenes' own */
    /* where friction is 0: mu of the object and the table, and the lever (m) of the torque about the
     * normal with which the object's contacts resist spin, as the patch of a soft finger does; 0:
     * the scene's */
    double own_friction, own_spin;
    bool convex;        /* meshes collide as their convex hulls */
    double position[3]; /* m, of the object's frame in the world at the beginning */
    double orientation[4];
    /* false: a horizontal plane below the object's lowest point carries it. true: no plane;
     * gravity does not act on the object until the lift begins */
    bool no_table;
} tb_grasp_object;

/* The base of a hand is the only child of its scene's world (the path replaces the joints of
 * this child). If the world has several children or has shapes, the base is the world itself. */
typedef struct tb_grasp_hand {
    const tb_scene *scene; /* borrowed */
    /* Names of the actuators that close the hand. With 0 names: all actuators whose controls
     * differ between the keyframes "open" and "closed"; without these keyframes, all with a control
     * range (motors: a force range) that move the fingertips apart. */
    const char *const *closing;
    int32_t number_of_closing;
    /* Controls of the closing actuators, number_of_closing each. NULL: the controls of the
     * keyframes "open" and "closed"; without these, of each range the end that moves the fingertips
     * apart is open and the other end is closed. */
    const double *open_controls, *close_controls;
    /* Name of a known hand (tb_hand_profile_name), which gives the tool frame and, where neither
     * names nor controls are given, the closing actuators and their controls. NULL or "": none. */
    const char *profile;
    /* m, tool frame (the frame of the poses) in the base's frame; with a profile: in the profile's
     * tool frame */
    double tool_position[3];
    double tool_orientation[4];
    tb_overlap_policy overlaps; /* for the hand's own links, in its reference pose */
} tb_grasp_hand;

typedef struct tb_grasp_pose {
    const char *name;   /* may be NULL; copied */
    double position[3]; /* m, of the tool frame in the object's frame */
    double orientation[4];
    double force; /* N or N m, limit of each closing actuator; 0: the protocol's limit */
} tb_grasp_pose;

/* A shake moves the hand by amplitude sin(2 pi f t) along an axis and turns it by angle sin(2 pi
 * f t) about that axis, through the tool frame's origin. An envelope makes both zero at both
 * ends. */
typedef struct tb_grasp_shake {
    double axis[3];   /* world; normalised */
    double amplitude; /* m */
    double angle;     /* rad */
    double frequency; /* Hz */
    double seconds;
} tb_grasp_shake;

typedef struct tb_grasp_protocol {
    double gravity[3];        /* m/s^2 */
    double approach[3];       /* direction in which the hand approaches, tool frame; normalised */
    double approach_distance; /* m; 0: the hand begins in the grasp pose */
    double approach_speed;    /* m/s, mean */
    /* s; the controls change during the first half. 0: the time in which the hand closes on
     * nothing, 0.4 to 1 s */
    double close_seconds;
    double force; /* N or N m, limit of each closing actuator; 0: the model's limit */
    double width; /* m; > 0: two opposed sliding fingers stop at this distance from each other */
    double lift;  /* m, upwards */
    double lift_seconds;
    const tb_grasp_shake *shakes; /* in sequence; copied */
    int32_t number_of_shakes;
    double hold_seconds;
    double slip_limit; /* m */
} tb_grasp_protocol;

/* Perturbed copies of every grasp. The first copy is never perturbed. Copy k of every grasp uses
 * the same random numbers, which depend on the seed and k alone: grasps compare, and no result
 * depends on the other grasps of the request. */
typedef struct tb_grasp_perturbation {
    int32_t count; /* copies of each grasp, including the first */
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
    tb_step_options step; /* for every world; dt 0: 0.002 s. threads: worlds in parallel */
    double confidence;    /* of the Wilson interval, between 0 and 1 */
} tb_grasp_request;

/* Defaults of every field except scenes and poses. */
tb_grasp_request tb_grasp_defaults(void);
tb_grasp_pose tb_grasp_pose_defaults(void);
tb_grasp_shake tb_grasp_shake_defaults(void); /* 1 cm along Z, 2 Hz, 0.5 s */

typedef enum tb_grasp_verdict {
    TB_GRASP_HELD,
    TB_GRASP_SLIPPED, /* held to the end, but slipped by more than the limit */
    TB_GRASP_DROPPED,
    TB_GRASP_COLLIDED, /* the hand was inside the object or the table before it closed */
    TB_GRASP_DIVERGED,
    TB_GRASP_UNCERTIFIED /* a step on which the verdict rests missed the tolerance */
} tb_grasp_verdict;

const char *tb_grasp_verdict_name(tb_grasp_verdict verdict); /* "held" */

/* Phase of the protocol. */
typedef enum tb_grasp_stage {
    TB_GRASP_APPROACH,
    TB_GRASP_CLOSING,
    TB_GRASP_LIFT,
    TB_GRASP_SHAKING,
    TB_GRASP_HOLD
} tb_grasp_stage;

const char *tb_grasp_stage_name(tb_grasp_stage stage); /* "approach" */

/* Why a trial has its verdict. Zeros where a verdict has no such quantity.
 *   HELD          nothing but the stage and time of the end
 *   COLLIDED      the two bodies that overlap, the depth, the point
 *   SLIPPED       when the slip passed the limit; the contact that gave way: the first that slid
 *                 without holding again
 *   DROPPED       when the hand lost the object; the contact that gave way
 *   DIVERGED      the step's stage and time
 *   UNCERTIFIED   the first step that missed the tolerance: its stage, time and residual */
typedef struct tb_grasp_reason {
    tb_grasp_stage stage;
    double time; /* s since the start of the trial */
    /* bodies, by their names in their files; "table"; NULL: none. Borrowed from the job */
    const char *hand_body, *other_body;
    double depth;       /* m */
    double point[3];    /* m, of the contact, in the object's frame at that time */
    double margin;      /* smallest of the hand's contacts before it slid, dimensionless */
    double slide_time;  /* s, when that contact began to slide; < 0: it never slid */
    double position[3]; /* m, of the tool frame in the object's frame at `time` */
    double orientation[4];
    double residual;           /* of the step that missed the tolerance */
    tb_grasp_verdict apparent; /* of UNCERTIFIED: the verdict that the motion alone gives */
} tb_grasp_reason;

/* One copy of a grasp. */
typedef struct tb_grasp_trial {
    tb_grasp_verdict verdict;
    /* m: largest displacement, since the lift began, of the object's centre of mass and of three
     * points around it at the object's radius. The displacement is relative to the part of the
     * hand (its base, or a body that touched the object when the lift began) that gives the
     * smallest value */
    double slip;
    /* s since the start of the trial: the hand's last touch of the object, or the start of the
     * lift if that is later; -1: not dropped */
    double drop_time;
    double friction; /* mu in this trial (the largest of the object's contacts) */
    double mass;     /* kg, of the object */
    int64_t steps;
    tb_certificate certificate; /* merged over all steps of this trial */
    tb_grasp_reason reason;
} tb_grasp_trial;

/* The reason as one line of English: "the hand's 'leftfinger' is 3.1 mm inside 'hammer' ...". */
void tb_grasp_explain(const tb_grasp_trial *, char *text, size_t size);

/* A contact of the hand with the object. */
typedef struct tb_grasp_contact {
    const char *body;   /* body of the hand */
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

/* Result of one grasp. Contacts, fingers, wrench space and margin are those of the first copy:
 * at the end, or at the start of the lift if the object was dropped. */
typedef struct tb_grasp_result {
    int32_t index; /* index of the pose in the request */
    const char *name;
    const tb_grasp_trial *trials;
    int32_t number_of_trials;
    int32_t uncertified;          /* trials without a verdict; no part of the fraction */
    double success, lower, upper; /* fraction held of the others, and its Wilson interval */
    double slip;                  /* m, median over the trials that were not dropped */
    const tb_grasp_contact *contacts;
    const tb_grasp_finger *fingers;
    int32_t number_of_contacts, number_of_fingers;
    /* quality of the grasp wrench space: the hull of the wrenches that unit normal forces at the
     * contacts exert, torques divided by the object's radius (Ferrari and Canny 1992, L1).
     * epsilon is the radius of the largest ball about zero inside the hull */
    double epsilon, volume;
    double margin;              /* smallest margin of the contacts; 0 without contacts */
    tb_certificate certificate; /* of the first copy, over its steps */
} tb_grasp_result;

typedef struct tb_grasp_progress {
    int32_t grasps, grasps_done;
    int64_t trials, trials_done, trials_held, trials_uncertified;
    int64_t world_steps_done, world_steps; /* world_steps shrinks as worlds end early */
} tb_grasp_progress;

/* Where the controls of an actuator come from. */
typedef enum tb_control_source {
    TB_CONTROL_IDLE,     /* no closing actuator: holds the control of the open hand */
    TB_CONTROL_REQUEST,  /* the caller */
    TB_CONTROL_PROFILE,  /* the hand's profile */
    TB_CONTROL_KEYFRAME, /* keyframes "open" and "closed" */
    TB_CONTROL_MOTION    /* the end of the range that moves the fingertips apart is open */
} tb_control_source;

const char *tb_control_source_name(tb_control_source source); /* "motion" */

typedef struct tb_hand_control {
    const char *actuator; /* borrowed from the hand or job */
    double open, close;   /* controls; equal for an idle actuator */
    tb_control_source source;
} tb_hand_control;

/* A body that can touch, without children: a fingertip. */
typedef struct tb_hand_tip {
    const char *body;
    double open[3], close[3]; /* m, centre of mass in the tool frame, hand open and closed */
} tb_hand_tip;

/* A hand as a grasp job uses it. Arrays are borrowed from the hand or job. */
typedef struct tb_hand_info {
    const char *profile;     /* the profile in use; "": none */
    const char *base;        /* body that the path carries; "": the file's world */
    double tool_position[3]; /* m, tool frame in the base's frame */
    double tool_orientation[4];
    /* closing direction in the tool frame, a unit vector: the line along which the fingertips
     * approach each other the most; 0 if they do not */
    double axis[3];
    double opening;                  /* m, free space between the open fingertips along the axis */
    double close_seconds;            /* s, in which the hand closes on nothing */
    const tb_hand_control *controls; /* of all actuators, in the order of the file */
    int32_t number_of_controls;
    const tb_hand_tip *tips;
    int32_t number_of_tips;
} tb_hand_info;

/* A hand without an object: its tool frame, closing axis, opening, controls and outlines. */
typedef struct tb_hand tb_hand;

/* Errors name fields of the hand, as for tb_grasp_job_create. */
tb_status tb_hand_create(const tb_grasp_hand *, tb_hand **, tb_error *);
void tb_hand_destroy(tb_hand *); /* NULL is fine */
const tb_hand_info *tb_hand_describe(const tb_hand *);
int32_t tb_hand_number_of_warnings(const tb_hand *);
const char *tb_hand_warning(const tb_hand *, int32_t index);
/* Shapes of the hand that can touch. */
int32_t tb_hand_number_of_shapes(const tb_hand *);
const char *tb_hand_shape_body(const tb_hand *, int32_t shape);
/* Largest n . x (m) over a shape's points x in the tool frame; `closed`: with the hand closed. */
double tb_hand_support(const tb_hand *, int32_t shape, bool closed, const double n[3]);

/* Names of the known hands: "panda"; NULL behind the last. */
const char *tb_hand_profile_name(int32_t index);
const char *tb_hand_profile_title(int32_t index); /* "Franka Emika Panda hand" */
/* Name of the profile whose joints the scene has; NULL: none. */
const char *tb_hand_profile_match(const tb_scene *hand);

typedef struct tb_grasp_job tb_grasp_job;

/* Checks the request and compiles its worlds; the caller may free the request afterwards.
 * INVALID_ARGUMENT names the field ("poses[3].position"), NOT_FOUND names an unknown actuator. */
tb_status tb_grasp_job_create(const tb_grasp_request *, tb_grasp_job **, tb_error *);
void tb_grasp_job_destroy(tb_grasp_job *); /* at any time; NULL is fine */

/* Simulates for about budget_ns (ns, at least a few steps of each active world), on all threads
 * of the step options. Sets *finished once all results exist. Results are the same bytes for any
 * budget and any number of threads. */
tb_status tb_grasp_job_advance(tb_grasp_job *, int64_t budget_ns, bool *finished, tb_error *);
/* Sets a function that every thread calls between a few steps; if it returns true, the advance
 * ends early. NULL, the default: no such call. */
void tb_grasp_job_set_yields(tb_grasp_job *, bool (*yields)(const void *context),
                             const void *context);
/* The next result in the order of the poses, valid until the next call; NULL: not ready yet. */
const tb_grasp_result *tb_grasp_job_next(tb_grasp_job *);
tb_grasp_progress tb_grasp_job_progress(const tb_grasp_job *);
/* The compiled world of the unperturbed copies; the job's warnings name the elements left out or
 * replaced. Borrowed. */
const tb_model *tb_grasp_job_model(const tb_grasp_job *);
int32_t tb_grasp_job_number_of_warnings(const tb_grasp_job *);
const char *tb_grasp_job_warning(const tb_grasp_job *, int32_t index);
/* The hand with its tool frame and the controls in use; borrowed. */
const tb_hand_info *tb_grasp_job_hand(const tb_grasp_job *);
double tb_grasp_job_seconds(const tb_grasp_job *); /* s, duration of the protocol if no world
                                                      ends early */

/* Wilson's score interval of a proportion: `successes` of `trials` at a confidence in (0, 1). */
void tb_wilson_interval(int64_t successes, int64_t trials, double confidence, double *lower,
                        double *upper);

/* Ball and volume of the convex hull of points in 6 dimensions (count x 6): epsilon is the
 * radius of the largest ball about zero inside the hull, 0 if zero is not inside. Flat sets give
 * 0 and 0. */
tb_status tb_wrench_space(const double *wrenches, int32_t count, double *epsilon, double *volume,
                          tb_error *error);

typedef struct tb_grasp_sampling {
    int32_t count;
    uint64_t seed;
    double opening;     /* m, largest distance of the two contacts */
    double friction;    /* mu: both contacts lie in each other's friction cone */
    double axis[3];     /* closing direction of the hand, tool frame */
    double approach[3]; /* direction in which the hand approaches, tool frame; normal to axis */
    /* preferred approach direction, in the object's frame; the sampler draws approach directions
     * about the closing axis that lie within `spread` (rad) of it */
    double from_above[3];
    double spread;
    /* poses in which this open hand would reach below the object's lowest point, where a table
     * carries it, are left out; NULL, the default: no hand is considered. Borrowed */
    const tb_hand *hand;
} tb_grasp_sampling;

tb_grasp_sampling tb_grasp_sampling_defaults(void);

/* Antipodal grasps: pairs of surface points whose line lies in both friction cones, the tool frame
 * in their middle. Writes up to `count` poses (names NULL) and their number to *found, which is
 * smaller if the object has few such pairs. INVALID_ARGUMENT names the fault: an object without
 * exactly one body on its world, or without shapes that collide. */
tb_status tb_grasp_sample(const tb_scene *object, const tb_grasp_sampling *, tb_grasp_pose *poses,
                          int32_t *found, tb_error *);

/* ---- contact problems on their own ----------------------------------------------------------- */

typedef struct tb_problem_file tb_problem_file;

/* Reads a problem: text (local or global form) or FCLIB HDF5, by content. */
tb_status tb_problem_load(const char *path, tb_problem_file **, tb_error *);
/* The same from memory; `name` replaces the file name in messages. */
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
    int32_t cycle; /* staggered: period, in iterations, of the repeated active sets on which it
                      gave up; else 0 */
    bool on_gpu;   /* the impulses are a GPU's */
} tb_problem_result;

/* Solves from zero impulses; reactions and velocities (rows each) may be NULL. CANCELLED if the
 * options' function asks for it. */
tb_status tb_problem_solve(const tb_problem_file *, const tb_solve_options *, double *reactions,
                           double *velocities, tb_problem_result *, tb_error *);

/* The same on a device. A GPU iterates `full-sor` on the stored T, in rounds, until the residual
 * meets the tolerance. Where its iterations run out or its convergence is too slow for those left,
 * the options' solver begins again on the CPU. The result names the solver that ended the work and
 * whether that was the GPU's. AUTO is the CPU where there is no GPU. RESOURCE_EXHAUSTED has the
 * bytes
 * that T requires; UNSUPPORTED names a law other than a contact's. */
tb_status tb_problem_solve_on(const tb_problem_file *, tb_backend_choice, int32_t device,
                              const tb_solve_options *, double *reactions, double *velocities,
                              tb_problem_result *, tb_error *);

/* ---- prox iterations with a stored T -------------------------------------------------------- */

/* The contact problem of one step in Nützi's prox form (Computing Non-Smooth Dynamics on the
 * GPU, ETH 2011): lambda <- prox(T lambda + d) with T = I - R^-1 G, d = -R^-1 c, and R_i^-1 =
 * alpha diag(1 / G_ii(1,1), 1 / max(G_ii(2,2), G_ii(3,3)) twice) for contact i (4.40 to 4.43).
 * Contacts have three rows: normal, tangent 1, tangent 2. T is kept in blocks of 3 x 3. */
typedef struct tb_prox_system tb_prox_system;

/* A random system of Nützi's section 6.1: G dense, symmetric and diagonally dominant, its
 * entries off the diagonal uniform in [-1, 1]; c uniform in [-1, 1] with most normal entries
 * negative; mu 0.5. INVALID_ARGUMENT; RESOURCE_EXHAUSTED with the bytes wanted. */
tb_status tb_prox_system_random(int32_t contacts, uint64_t seed, double alpha, tb_prox_system **,
                                tb_error *);
/* The prox system of a problem of contacts: Coulomb's in space or in the plane, and frictionless
 * ones. UNSUPPORTED names any other law. */
tb_status tb_prox_system_of_problem(const tb_problem_file *, double alpha, tb_prox_system **,
                                    tb_error *);
void tb_prox_system_destroy(tb_prox_system *); /* NULL is fine */
int32_t tb_prox_system_contacts(const tb_prox_system *);
int64_t tb_prox_system_blocks(const tb_prox_system *); /* number of 3 x 3 blocks of T */

/* The variants by name: `jor1` to `jor7` of Nützi's table 6.1 (without `jor6`), `full-sor-32`
 * and `-64`, `relaxed-sor-2` to `-128`, Nützi's two sparse designs, and `jor` and `full-sor`,
 * which run all iterations in one GPU launch. NULL past the last. */
const char *tb_prox_variant_name(int32_t index);
const char *tb_prox_variant_summary(int32_t index);

typedef struct tb_prox_options {
    const char *variant; /* borrowed */
    tb_precision precision;
    tb_backend_choice backend; /* on the CPU every variant runs in the GPU's order */
    int32_t device;
    int32_t threads;      /* for `jor7` only; 0: all processors */
    int32_t iterations;   /* largest number of iterations */
    int32_t check_period; /* iterations between two stop tests; 0: no test */
    double relative,
        absolute; /* |change| <= relative |lambda| + absolute for every row, N s (4.49) */
} tb_prox_options;

/* `jor5` in double on the CPU, 5000 iterations, a test at every one, 1e-7 and 1e-7 N s. */
tb_prox_options tb_prox_defaults(void);

typedef struct tb_prox_result {
    int32_t iterations;
    bool converged;      /* by the stop test */
    double residual;     /* |lambda - prox(T lambda + d)| / |d|, 2-norms, in double */
    double seconds;      /* of the iterations alone, without copies */
    double copy_seconds; /* to the GPU and back; 0 on the CPU */
    int64_t bytes;       /* bytes of T that this variant reads per iteration */
} tb_prox_result;

/* Iterates from `lambda` (3 numbers a contact, N s), which receives the result. INVALID_ARGUMENT
 * and NOT_FOUND name the field; RESOURCE_EXHAUSTED: T does not fit, the message has the bytes
 * required; UNSUPPORTED: a library of the variant is missing; UNAVAILABLE, ABORTED: the GPU is
 * missing or failed. */
tb_status tb_prox_iterate(const tb_prox_system *, const tb_prox_options *, double *lambda,
                          tb_prox_result *, tb_error *);

#ifdef __cplusplus
}
#endif

#endif
