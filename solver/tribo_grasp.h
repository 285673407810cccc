/* Grasps: a hand, an object, poses, and trials. Part of tribo.h. */
#ifndef TRIBO_GRASP_H
#define TRIBO_GRASP_H

#include "tribo_step.h"

#ifdef __cplusplus
extern "C" {
#endif

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

/* A trial ends, uncertified, with this many steps above the tolerance: a step that never converges
 * takes all iterations of the options, and the motion means less with each. A trial therefore takes
 * at most this many times the iterations of the options, and the steps that converge. */
enum { TB_GRASP_MISSED_STEPS = 20 };

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
 *                 without holding again; the grip
 *   DROPPED       when the hand lost the object; the contact that gave way; the grip
 *   DIVERGED      the step's stage and time
 *   UNCERTIFIED   the first step that missed the tolerance: its stage, time and residual */
typedef struct tb_grasp_reason {
    tb_grasp_stage stage;
    double time; /* s since the start of the trial */
    /* bodies, by their names in their files; "table"; NULL: none. Borrowed from the job */
    const char *hand_body, *other_body;
    double depth;      /* m */
    double point[3];   /* m, of the contact, in the object's frame at that time */
    double margin;     /* smallest of the hand's contacts before it slid, dimensionless */
    double slide_time; /* s, when that contact began to slide; < 0: it never slid */
    /* of SLIPPED and DROPPED, when the lift began: N, sum of the normal forces of the hand on the
     * object; N, force by which the hand pressed the object on the table, beyond its weight; rad,
     * lean of the faces that the hand gripped: 0 if its normal forces cancel, asin(|sum| / grip)
     * otherwise */
    double grip, press, lean;
    double position[3]; /* m, of the tool frame in the object's frame at `time` */
    double orientation[4];
    double residual; /* of the step that missed the tolerance */
    /* of UNCERTIFIED: the verdict that the motion alone gives; UNCERTIFIED: none, the trial ended
     * after TB_GRASP_MISSED_STEPS */
    tb_grasp_verdict apparent;
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

/* Bytes for a text of tb_grasp_explain; a longer one is cut. */
enum { TB_GRASP_TEXT_SIZE = 480 };
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
    /* mu; torque per unit normal force about the normal and about a tangent, m */
    double friction[3];
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
    const tb_grasp_pose *pose;
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
    double centre[3];           /* m, the object's centre of mass, object frame */
    double radius;              /* m, by which the wrench space divides torques */
    double approach[3];         /* m, way of the tool frame to its pose, object frame */
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
    double least_opening;            /* m, free space that the closed fingertips leave there */
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
    double opening; /* m, largest distance of the two contacts */
    /* m, smallest distance: fingertips that stop apart hold nothing thinner. 0, the default: any */
    double least_opening;
    double friction;    /* mu: both contacts lie in each other's friction cone */
    double axis[3];     /* closing direction of the hand, tool frame */
    double approach[3]; /* direction in which the hand approaches, tool frame; normal to axis */
    /* preferred approach direction, in the object's frame; the sampler draws approach directions
     * about the closing axis that lie within `spread` (rad) of it */
    double from_above[3];
    double spread;
    /* poses in which this hand, open or closed, would reach below the object's lowest point, where
     * a table carries it, are left out: fingers of linkages move forwards as they close. NULL, the
     * default: no hand is considered. Borrowed */
    const tb_hand *hand;
} tb_grasp_sampling;

tb_grasp_sampling tb_grasp_sampling_defaults(void);

/* Antipodal grasps: pairs of surface points whose line lies in both friction cones, the tool frame
 * in their middle. Lines near the normals come first, for flat pads turn an object whose faces lean
 * to them; a line leans further only where the object has no such pairs. Writes up to `count` poses
 * (names NULL) and their number to *found, which is smaller if the object has few such pairs.
 * INVALID_ARGUMENT names the fault: an object without exactly one body on its world, or without
 * shapes that collide. */
tb_status tb_grasp_sample(const tb_scene *object, const tb_grasp_sampling *, tb_grasp_pose *poses,
                          int32_t *found, tb_error *);

#ifdef __cplusplus
}
#endif

#endif
