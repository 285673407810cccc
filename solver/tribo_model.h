/* Models, which are compiled scenes, and states, one world each. Part of tribo.h. */
#ifndef TRIBO_MODEL_H
#define TRIBO_MODEL_H

#include "tribo_scene.h"

#ifdef __cplusplus
extern "C" {
#endif

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
        equalities, pairs, keyframes, kinematic_bodies, trees, warnings, sensors,
        sensor_numbers; /* of all sensors together */
} tb_model_counts;

tb_model_counts tb_model_count(const tb_model *);
/* Whether triangle meshes, height fields or elements can collide in the model. TB_BACKEND_AUTO steps such worlds
 * on the CPU: a warp takes longer for a mesh pair than a core does, and refuses elements
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
    double restitution, tangential_restitution; /* of the normal and of the tangents, 0 to 1 */
    bool has_colour;
    double colour[4];     /* red, green, blue, opacity, 0 to 1 */
    const char *material; /* "": none; the model's */
    int32_t mesh;         /* of CONVEX and MESH: index among the meshes; else -1 */
    int32_t height_field; /* index among the height fields, else -1 */
} tb_shape_info;

/* The functions below give INVALID_ARGUMENT for an index out of range, as tb_model_body_info does. */
tb_status tb_model_shape_info(const tb_model *, int32_t shape, tb_shape_info *);

typedef struct tb_site_info {
    int32_t body;
    double position[3], orientation[4]; /* m, in the body frame */
} tb_site_info;

tb_status tb_model_site_info(const tb_model *, int32_t site, tb_site_info *);

/* A place that a spatial tendon is threaded through. */
typedef struct tb_tendon_waypoint {
    int32_t body;       /* -1: a pulley, behind which another branch begins */
    double position[3]; /* m, in the body frame */
} tb_tendon_waypoint;

/* The places of a spatial tendon along its path, for viewers: what it wraps around between two of them
 * is left out. Writes at most `capacity` of them to `places` (may be NULL); returns how many there are,
 * 0 for a fixed tendon and an index out of range. */
int32_t tb_model_tendon_waypoints(const tb_model *, int32_t tendon, tb_tendon_waypoint *places,
                                  int32_t capacity);

typedef struct tb_actuator_info {
    tb_handle_kind target_kind; /* JOINT, TENDON, SITE or BODY */
    int32_t target;
    bool control_limited, force_limited;
    double control_lower, control_upper;
    double force_lower, force_upper; /* N or N m, before the gear */
    double gear[6];
} tb_actuator_info;

tb_status tb_model_actuator_info(const tb_model *, int32_t actuator, tb_actuator_info *);

typedef struct tb_sensor_info {
    tb_sensor_type type;
    tb_handle_kind object_kind; /* JOINT, TENDON, ACTUATOR, SITE, SHAPE or BODY; NONE of a clock */
    int32_t object;             /* index of that kind, -1: none */
    int32_t first, numbers;     /* among the numbers of all sensors */
} tb_sensor_info;

tb_status tb_model_sensor_info(const tb_model *, int32_t sensor, tb_sensor_info *);

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
/* The model that the state was made of; parameters of the state do not change it. */
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

/* Numbers of all sensors (tb_model_counts.sensor_numbers) in the state. dt: s, length of the last
 * step, for forces and accelerations; before the first step these are 0. INVALID_ARGUMENT for
 * dt <= 0. */
tb_status tb_state_sensors(const tb_state *, double dt, double *numbers, tb_error *);

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

/* Parameters of a world: numbers of its model that differ from world to world, for domain
 * randomisation. A world with parameters steps as a world of a scene that is written with these
 * values, in the same bytes, and costs a copy of the model's bodies, shapes and actuators. */
typedef struct tb_parameters {
    /* shapes: mu of the shape's surface, >= 0. A listed pair keeps its own surface, a frictionless
     * contact stays frictionless, and a spin torque grows with mu */
    double *friction;
    /* bodies, kg; the inertia about the centre of mass scales with the mass. The world's is not
     * used. A body without mass in the scene has no inertia to scale: its mass must be 0 */
    double *mass;
    double *gain, *bias; /* actuators x 3, as in tb_actuator_def; not of a muscle */
    /* joints: of every dof of the joint, >= 0, as in tb_joint_def: N s/m or N m s; N or N m. A free
     * joint that the scene gives no damping takes none */
    double *damping, *dry_friction;
    /* shapes x 3, m: as in tb_shape_def, > 0, unused numbers 0. Of spheres, capsules, cylinders, boxes
     * and ellipsoids; planes, meshes and height fields keep theirs, and so do all shapes of a
     * model with soft bodies or with ellipsoids in a fluid. Mass and inertia stay as they are */
    double *size;
} tb_parameters;

/* Sets complete arrays. A NULL array keeps the present values; NULL parameters restore the model's.
 * The parameters are part of the state: snapshots and forks have them, a reset keeps them,
 * restoring replaces them. Contact history and caches stay, as after tb_state_set_q.
 * INVALID_ARGUMENT, with the state unchanged, for numbers out of range. */
tb_status tb_state_set_parameters(tb_state *, const tb_parameters *, tb_error *);
/* Writes the present values into the arrays that are not NULL. */
void tb_state_parameters(const tb_state *, const tb_parameters *);
/* Gives a state the parameters of another state of the same model, in shared memory. */
tb_status tb_state_share_parameters(tb_state *, const tb_state *from, tb_error *);

/* A snapshot holds everything that the next step depends on, including the contact cache. A
 * restored state resumes bit-exactly. The caller frees `*bytes` by tb_bytes_destroy. Restoring
 * gives FAILED_PRECONDITION for a snapshot of another model or of a format that this build does
 * not read, DATA_LOSS for bytes that are damaged or no snapshot (snapshots carry a checksum,
 * except those of format 3, from older builds; those of worlds with parameters have format 5). On
 * failure the state is unchanged. */
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
/* Impulse of a joint's limits on its coordinate in the last step, N s or N m s: positive at the
 * lower limit; for a ball joint negative, against its angle. */
double tb_state_limit_impulse(const tb_state *, int32_t joint);

/* ---- evaluations of the volume law ----
 *
 * A step by TB_SCHEME_VOLUME evaluates all contact forces several times, at the times and poses that
 * its integrator chooses. A state that is asked to keep them holds those of its last step, for
 * viewers; they are no part of forks and snapshots, and change no result. */

/* A contact of one evaluation: one disjoint overlap of two shapes. */
typedef struct tb_evaluation_contact {
    int32_t shape_a, shape_b;
    double centroid[3]; /* m */
    double normal[3];   /* from A to B */
    double volume;      /* m^3, 0 for two balls */
    double depth;       /* m */
    double force[3];    /* N, on B, at the centroid */
    double torque[3];   /* N m, on B, besides that of the force */
} tb_evaluation_contact;

/* A triangle of B's surface inside A. The triangles of a contact add up to its normal force: a
 * triangle's share is its area vector over the sum of them. Contacts of balls have none. */
typedef struct tb_evaluation_triangle {
    int32_t contact;       /* in the contacts of its evaluation */
    double vertices[3][3]; /* m, counter-clockwise seen from outside of B */
    double force[3];       /* N, on B */
} tb_evaluation_triangle;

/* One evaluation; contacts and triangles are ranges of the arrays of tb_evaluations. */
typedef struct tb_evaluation {
    double time; /* s, from the start of the step */
    int32_t first_contact, number_of_contacts;
    int32_t first_triangle, number_of_triangles;
} tb_evaluation;

typedef struct tb_evaluations {
    const tb_evaluation *evaluations; /* in the order in which they were made */
    int32_t number_of_evaluations;
    int32_t left_out; /* later ones that exceed the bytes */
    const tb_evaluation_contact *contacts;
    const tb_evaluation_triangle *triangles;
    const double *poses; /* evaluations x bodies x 7: position, m; orientation */
    /* Shapes with a box, by model index, and evaluations x shapes x 6: lower and upper corner of
     * their boxes along the world's axes, m. */
    const int32_t *box_shapes;
    int32_t number_of_box_shapes;
    const double *boxes;
} tb_evaluations;

/* Has the state keep the evaluations of each later step in at most `bytes`; 0: keep none.
 * RESOURCE_EXHAUSTED. */
tb_status tb_state_keep_evaluations(tb_state *, size_t bytes, tb_error *);
/* Evaluations of the last step, borrowed until the next; all 0 where the state keeps none. */
tb_evaluations tb_state_evaluations(const tb_state *);

#ifdef __cplusplus
}
#endif

#endif
