/* Scenes: descriptions of worlds that can still change, built by functions or read from files. Part of tribo.h. */
#ifndef TRIBO_SCENE_H
#define TRIBO_SCENE_H

#include "tribo_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- scenes: descriptions that can still change ---------------------------------------------- */

typedef struct tb_scene tb_scene;

/* Identifies a body, joint, shape or other element of a scene. A handle carries its kind and its scene's stamp, so
 * that functions refuse handles of another scene or kind. A zeroed handle means "none"; as a body it means the world. */
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
    TB_HANDLE_KEYFRAME,
    TB_HANDLE_SENSOR
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
    /* m/s and rad/s: bodies slower than this for several steps may fall asleep: steps leave them
     * out until something touches or pushes them; 0: no body ever sleeps */
    double sleep_tolerance;
} tb_scene_def;

/* Whether the tree of a body that hangs in the world or on a kinematic body may sleep. */
typedef enum tb_sleep {
    TB_SLEEP_AUTO, /* unless actuators with activations move it */
    TB_SLEEP_NEVER,
    TB_SLEEP_ALLOWED, /* as AUTO */
    TB_SLEEP_INIT     /* and it sleeps from the reset on, wherever it is */
} tb_sleep;

typedef struct tb_body_def {
    const char *name;      /* copied; unique if given */
    tb_handle parent;      /* zeroed: the world */
    double position[3];    /* m, of the body frame in the parent's frame, all joints at reference */
    double orientation[4]; /* body to parent */
    bool kinematic;   /* moves by prescribed poses and velocities; child of the world, no joints */
    bool has_inertia; /* the next four fields are used */
    double mass;      /* kg, > 0 for a moving body */
    double com[3];    /* m, centre of mass in the body frame */
    double inertia_frame[4]; /* orientation of the inertia's axes in the body frame */
    double inertia[6];       /* kg m^2 about the centre of mass: xx, yy, zz, xy, xz, yz */
    /* fraction of the body's weight that an upward force at its centre of mass cancels; 1: the body floats */
    double gravity_compensation;
    tb_sleep sleep; /* of its tree, where the scene has a sleep_tolerance */
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
    TB_SHAPE_MESH,      /* the triangles of a mesh asset, static or moving; size: radius of a ball
                           that is rolled over them, usually 0. Triangles that are the whole surface
                           of a convex polytope, to a millionth of its largest half extent, collide
                           as the polytope */
    TB_SHAPE_HEIGHT_FIELD
} tb_shape_type;

/* Friction of a contact. The value is the number of rows, the wire's `ContactLaw`, and the order of kinds: at equal
 * priority, the larger kind of the two shapes applies. `tb_contact_law` makes the solver's `tb_law` of it. */
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
    /* Newton's e of both tangents, 0 to 1 (Nützi's eps_T, 4.28): an impact in which friction holds turns
     * the tangential velocity round; the larger of two shapes applies */
    double tangential_restitution;
    /* m; the spin torque is at most 2/3 mu spin_radius lambda_n; the larger torque of two shapes applies */
    double spin_radius;
    double rolling_length; /* m; the rolling torque is at most rolling_length lambda_n */
    /* N, >= 0: each contact pulls its shapes together with this force, so that it opens only where they are pulled
     * apart by more, and friction is bounded by mu times the compressive impulse that remains. The adhesions of two
     * shapes of equal priority add. Reported normal impulses include the pull. */
    double adhesion;
    /* m, >= 0: widest gap at which adhesion acts; the ranges of two shapes add. 0: contacts that touch */
    double adhesion_range;
} tb_surface;

/* Constants of one shape for the forces of overlapping volumes (TB_SCHEME_VOLUME; Göteman and
 * Roxling 2015, chapter 6). The stiffnesses of two shapes act as springs in series and are doubled,
 * so that equal values stay as they are; the other constants are averaged. */
typedef struct tb_volume_constants {
    double elasticity;       /* E, Pa, > 0 */
    double damping;          /* c_d, s/m, >= 0 */
    double sliding_velocity; /* v_s, m/s, > 0: friction is near its peak there */
    double static_friction;  /* mu_s, >= 0 */
    double kinetic_friction; /* mu_k, 0 to mu_s */
    double rotation_damping; /* c_r, s/m, >= 0 */
    double sphere_stiffness; /* c_s, N/m, >= 0, between two balls; 0 on either: Hertz with E */
    /* all overlaps of two shapes push as one contact, if either shape says so; else each disjoint
     * overlap pushes at its own centroid */
    bool joined;
} tb_volume_constants;

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
    /* the shape of higher priority gives the whole surface of a contact; at equal priority, the
     * larger value of each number applies */
    int32_t priority;
    /* The medium acts on the shape as on an ellipsoid, and no longer on its body as on a box with the body's inertia.
     * Coefficients: blunt drag, slender drag, angular drag, Kutta lift, Magnus lift. */
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
    bool has_volume_constants; /* false: tb_volume_constants_defaults */
    tb_volume_constants volume_constants;
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
        *triangles; /* number_of_triangles x 3, counter-clockwise outside; copied; or NULL */
    int32_t number_of_triangles;
    tb_mesh_inertia inertia;
    /* Largest number of hull vertices, >= 4; 0: no limit. With a limit, a closed convex mesh collides as
     * its triangles. */
    int32_t most_hull_vertices;
} tb_mesh_def;

/* A grid of heights; the shape is everything below the surface down to -base. */
typedef struct tb_height_field_def {
    const char *name;
    const double *heights; /* rows x columns, m, >= 0; rows go along +Y, columns along +X; copied */
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
    TB_TENDON_SPHERE,   /* between two sites: the tendon wraps around it where it is in the way */
    TB_TENDON_CYLINDER, /* the same, an infinite cylinder along z of its frame */
    TB_TENDON_PULLEY    /* a new branch begins; the tendon adds its length times 1 / divisor */
} tb_tendon_point_kind;

/* One element of a spatial tendon's path. A side point makes the tendon pass a sphere or cylinder on that side; a side
 * point closer to the position than the radius makes the tendon run inside. */
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
    double armature; /* inertia that moves with the tendon, kg, or kg m^2 of rad */
    /* The spring's force is -x (stiffness + p0 x + p1 x^2) at a stretch x, the damper's
     * -v (damping + p0 |v| + p1 v^2). */
    double stiffness_polynomial[2], damping_polynomial[2];
    /* N: bounds on the sum of the forces (before the gear) of the tendon's actuators, which are scaled to meet them */
    bool actuator_force_limited;
    double actuator_force_lower, actuator_force_upper;
} tb_tendon_def;

typedef enum tb_activation {
    TB_ACTIVATION_NONE,       /* the control acts directly */
    TB_ACTIVATION_INTEGRATOR, /* d act/dt = control */
    TB_ACTIVATION_FILTER,     /* d act/dt = (control - act) / time_constant */
    TB_ACTIVATION_MUSCLE,     /* a filter whose time constant depends on act and control */
    /* current (A) of a motor's winding, with the control as its voltage (V):
     * d act/dt = ((control - back_emf velocity) / resistance - act) / time_constant. The force
     * uses the activation at the end of the step; gain[0] alone is not zero. */
    TB_ACTIVATION_CURRENT
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

/* force = (gain . (1, length, velocity)) * x + bias . (1, length, velocity), clamped to the force limits, with x the
 * clamped control or activation; the joint receives gear times that force. length and velocity are gear times the
 * joint's or the tendon's length and velocity. The stepper integrates every term that is affine in velocity or length
 * implicitly, under the force limits. */
typedef struct tb_actuator_def {
    const char *name;
    /* Joint, tendon, site or body. On a site, the force acts along and about the axes of the site's frame. With a
     * reference site, the reference's axes are used, and the pose of the target is measured from the reference. On a
     * body, the force pulls the body towards the shapes that touch it, in equal shares over its contacts (adhesion). */
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
    double resistance;    /* ohm, of a current */
    double back_emf;      /* V s/rad or V s/m, of a current */
    /* s, s, dimensionless: activation and deactivation of a muscle, width of the range of
     * (control - act) over which the time constant blends between them */
    double muscle_times[3];
    bool activation_limited;
    double activation_lower, activation_upper;
    /* The actuator is an additional input of the nearest preceding actuator that is not itself an
     * additional input: its clamped control times gain[0] is added to that actuator's force. All
     * fields except the control limits are ignored. */
    bool is_input;
    /* Integral action: integral_gain times z is added to the force, dz/dt = x - length with |z| <= integral_limit (0:
     * no limit). z is an activation; `early` uses its value at the end of the step. */
    double integral_gain, integral_limit;
    /* 1/s: x follows the control at this rate at most (0: at once). The followed value is an activation, before that
     * of the integral. With slew_from_control the first step of a world at time 0 takes the control itself. */
    double slew_rate;
    bool slew_from_control;
    /* Orientation servo on a ball joint: three actuators in a row, whose gears are the joint's axes
     * X, Y, Z, turn it to the orientation that the controls of the three give together (for a
     * quaternion a fourth actuator follows, an input of gain 0). x - length is the component of the
     * rotation vector from the present to the wanted orientation, in the child's axes. */
    tb_orientation_input orientation;
    /* The control acts delay (s) after it was set. The state keeps `samples` past controls, two activations each,
     * after all other activations of the model. A time before the first sample uses the first one. */
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

/* A segment or a triangle between balls, SPHERE shapes of one radius, as wide as they are. An element moves with its
 * balls, and a push on it pushes them. It touches shapes and elements whose masks meet those of its first ball, and
 * has the surface and priority of that ball. It does not touch planes (its balls do), balls of elements, shapes that
 * are fixed to one of its balls, or elements that share one. A card refuses models with elements. */
typedef struct tb_element_def {
    int32_t corners; /* 2 or 3 */
    tb_handle balls[3];
    int32_t group; /* > 0: elements of one group do not touch each other */
} tb_element_def;

typedef enum tb_elastic_kind {
    TB_ELASTIC_TRIANGLE,    /* 3 sites: a membrane in plane stress */
    TB_ELASTIC_TETRAHEDRON, /* 4 sites */
    TB_ELASTIC_HINGE        /* 4 sites: an edge, then the apex of each of the two triangles on it */
} tb_elastic_kind;

/* A massless elastic thing between sites, at rest in the described pose. The energy of a triangle or tetrahedron is
 * that of St. Venant and Kirchhoff, volume (lambda/2 tr(G)^2 + mu G:G), G Green's strain. A hinge resists bending: its
 * energy is k s^2 / 2, s = 2 sin((theta - theta0) / 2), theta the angle of its triangles' normals, k = D L^2 / (A + B),
 * D = young thickness^3 / (12 (1 - poisson^2)), L the edge's length, A and B the areas at rest. Damping adds
 * damping dG/dt to G in the forces, and damping ds/dt to s. Compiling gives INVALID_ARGUMENT for corners in a line or, of a
 * tetrahedron, in a plane. A card refuses models with elastics. */
typedef struct tb_elastic_def {
    tb_elastic_kind kind;
    tb_handle sites[4];
    double young;     /* Pa, > 0 */
    double poisson;   /* >= 0, < 1/2 */
    double thickness; /* m, > 0; not of a tetrahedron */
    double damping;   /* s */
} tb_elastic_def;

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

/* A sensor's quantity, by the words of MJCF; tb_sensor_type_name gives the word. Unless noted, numbers
 * are in world axes. With a reference (frame position to angular velocity) they are relative to the
 * reference's frame and in its axes. Accelerations are means over the last step. */
typedef enum tb_sensor_type {
    TB_SENSOR_JOINT_POSITION,            /* rad or m, of a hinge or slide */
    TB_SENSOR_JOINT_VELOCITY,            /* rad/s or m/s */
    TB_SENSOR_JOINT_LIMIT_FORCE,         /* N or N m, >= 0 */
    TB_SENSOR_BALL_ORIENTATION,          /* 4, of a ball joint */
    TB_SENSOR_BALL_VELOCITY,             /* 3, rad/s, axes of the joint's body */
    TB_SENSOR_TENDON_POSITION,           /* length: m, or the sum of a fixed tendon */
    TB_SENSOR_TENDON_VELOCITY,           /* per second */
    TB_SENSOR_ACTUATOR_POSITION,         /* length times gear, of joints with one dof and tendons */
    TB_SENSOR_ACTUATOR_VELOCITY,         /* per second */
    TB_SENSOR_ACTUATOR_FORCE,            /* N or N m, before the gear */
    TB_SENSOR_FRAME_POSITION,            /* 3, m; of bodies, shapes and sites, as the types below */
    TB_SENSOR_FRAME_ORIENTATION,         /* 4 */
    TB_SENSOR_FRAME_X_AXIS,              /* 3 */
    TB_SENSOR_FRAME_Y_AXIS,              /* 3 */
    TB_SENSOR_FRAME_Z_AXIS,              /* 3 */
    TB_SENSOR_FRAME_LINEAR_VELOCITY,     /* 3, m/s */
    TB_SENSOR_FRAME_ANGULAR_VELOCITY,    /* 3, rad/s */
    TB_SENSOR_FRAME_LINEAR_ACCELERATION, /* 3, m/s^2, minus gravity */
    TB_SENSOR_FRAME_ANGULAR_ACCELERATION, /* 3, rad/s^2 */
    TB_SENSOR_SUBTREE_COM,                /* 3, m, of a body and its descendants */
    TB_SENSOR_SUBTREE_VELOCITY,           /* 3, m/s, of their centre of mass */
    TB_SENSOR_SUBTREE_ANGULAR_MOMENTUM,   /* 3, N m s, about their centre of mass */
    TB_SENSOR_ACCELEROMETER, /* 3, m/s^2, minus gravity; site axes, as the types below */
    TB_SENSOR_VELOCIMETER,   /* 3, m/s */
    TB_SENSOR_GYRO,          /* 3, rad/s */
    TB_SENSOR_FORCE,         /* 3, N, by the parent on the site's body */
    TB_SENSOR_TORQUE,        /* 3, N m, the same, about the site */
    TB_SENSOR_TOUCH, /* N: normal forces on the site's body along lines that meet the site's zone */
    TB_SENSOR_CLOCK, /* s */
    TB_SENSOR_TYPES
} tb_sensor_type;

typedef struct tb_sensor_def {
    const char *name;
    tb_sensor_type type;
    tb_handle object;   /* joint, tendon, actuator, site, shape or body, by type; none: the world */
    bool object_at_com; /* BODY: the frame is at the centre of mass, in the body's axes */
    tb_handle reference; /* body, shape or site; unused without has_reference */
    bool has_reference, reference_at_com;
    double cutoff; /* the numbers stay within +-cutoff; 0: unbounded */
    tb_shape_type
        zone_type; /* TOUCH: SPHERE, CAPSULE, CYLINDER, BOX or ELLIPSOID in the site's frame */
    double zone_size[3]; /* m, see tb_shape_type */
} tb_sensor_def;

/* MJCF's word ("jointpos"), count of numbers and kind of object of a type; "" and 0 out of range. */
const char *tb_sensor_type_name(tb_sensor_type type);
int32_t tb_sensor_type_numbers(tb_sensor_type type);
tb_handle_kind
tb_sensor_type_object(tb_sensor_type type); /* BODY: also shapes and sites if a frame */

tb_scene_def tb_scene_defaults(void);
tb_body_def tb_body_defaults(void);
tb_joint_def tb_joint_defaults(void);
tb_shape_def tb_shape_defaults(void); /* density 1000, mu 1, e 0, COULOMB, category 1, mask 1 */
tb_surface tb_surface_defaults(void);
/* E 10 MPa, c_d 0.3 s/m, v_s 0.1 m/s, mu_s 0.6, mu_k 0.3, c_r 0.02 s/m, c_s 3e5 N/m */
tb_volume_constants tb_volume_constants_defaults(void);
tb_mesh_def tb_mesh_defaults(void);
tb_height_field_def tb_height_field_defaults(void);
tb_site_def tb_site_defaults(void);
tb_tendon_def tb_tendon_defaults(void);
tb_tendon_point tb_tendon_point_defaults(void); /* a site at the world's origin */
tb_actuator_def tb_actuator_defaults(void);     /* a motor: gain 1, gear 1 */
tb_equality_def tb_equality_defaults(void);
tb_pair_def tb_pair_defaults(void);
tb_keyframe_def tb_keyframe_defaults(void);
tb_sensor_def tb_sensor_defaults(void); /* a clock */

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
tb_status tb_scene_add_element(tb_scene *, const tb_element_def *, tb_error *);
tb_status tb_scene_add_elastic(tb_scene *, const tb_elastic_def *, tb_error *);
tb_status tb_scene_add_exclude(tb_scene *, tb_handle body_a, tb_handle body_b, tb_error *);
tb_status tb_scene_add_keyframe(tb_scene *, const tb_keyframe_def *, tb_handle *, tb_error *);
tb_status tb_scene_add_sensor(tb_scene *, const tb_sensor_def *, tb_handle *, tb_error *);

/* Makes two shapes never collide, regardless of masks, pairs and excludes of bodies. */
tb_status tb_scene_exclude_shapes(tb_scene *, tb_handle shape_a, tb_handle shape_b, tb_error *);

/* Replaces the options given to tb_scene_create. */
tb_status tb_scene_set_options(tb_scene *, const tb_scene_def *, tb_error *);
tb_scene_def tb_scene_options(const tb_scene *); /* name borrowed from the scene */

/* Finds an element by name; returns a zeroed handle if the scene has none. */
tb_handle tb_scene_find(const tb_scene *, tb_handle_kind kind, const char *name);

/* Adds a warning for the scene's author (an ignored element, for example). */
tb_status tb_scene_warn(tb_scene *, const char *message, tb_error *);
/* Whether there are elements, or a shape that collides is a triangle mesh or a height field; see
 * tb_model_has_meshes. */
bool tb_scene_has_meshes(const tb_scene *);
int32_t tb_scene_number_of_warnings(const tb_scene *);
const char *tb_scene_warning(const tb_scene *, int32_t index);

enum { TB_SCENE_LIMIT = 4000000 };

/* ---- importers ------------------------------------------------------------------------------- */

/* Source of the files that a scene refers to. */
typedef struct tb_file_source {
    /* Reads a whole file; `path` is the path in the referring file, joined to that file's folder and normalised.
     * `*bytes` is malloc'ed; the library takes and frees it. NOT_FOUND if the file does not exist. */
    tb_status (*read)(void *context, const char *path, unsigned char **bytes, size_t *size,
                      tb_error *error);
    void *context;
} tb_file_source;

/* Treatment of pairs of shapes that may collide and overlap by more than the contact slop (1e-6 m) in the first pose.
 * The model has a warning for each of them under every policy, the deepest first. */
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
    /* keep visual geometry (MJCF's geoms without contact and mass, URDF's <visual>) as shapes
     * without collisions and mass; an unreadable visual mesh is left out with a warning */
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
/* Writes a named scene as MJCF, the same bytes every time, without references to other files. The caller frees *text
 * (size bytes and a zero) by tb_bytes_destroy. NOT_FOUND names an unknown scene. */
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

#ifdef __cplusplus
}
#endif

#endif
